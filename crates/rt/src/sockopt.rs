//! What can be set on a stream socket, before it connects and after.
//!
//! Options are no-ops in a simulated world where they only tune the kernel; facts (addresses) exist there
//! too.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::addr::Addr;
use crate::driver::{self, Handle};
use crate::socket::Socket;

/// What is set on a socket before it connects.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The address to connect from.
    pub source: Option<Addr>,
    /// Whether `source` need not be an address of this machine (IP_TRANSPARENT; needs CAP_NET_ADMIN).
    pub transparent: bool,
    /// The interface to connect through (SO_BINDTODEVICE), if it is there.
    pub interface: Option<String>,
    /// The network namespace; `None` is that of the process.
    pub namespace: Option<base::netns::Namespace>,
    /// Sends small segments at once (TCP_NODELAY).
    pub nodelay: bool,
    /// Speaks MPTCP with a peer that does (RFC 8684).
    pub mptcp: bool,
    /// Keep-alive probes.
    pub keepalive: Option<Keepalive>,
    /// How long sent data may stay unacknowledged (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Duration>,
    /// The largest segment (TCP_MAXSEG).
    pub mss: Option<u16>,
    /// The firewall mark (SO_MARK).
    pub mark: Option<u32>,
    /// The type of service or traffic class.
    pub tos: Option<u8>,
    /// Sends data in the SYN where the peer's cookie is known (TCP_FASTOPEN_CONNECT).
    pub fastopen: bool,
    /// The key of TCP MD5 signatures (RFC 2385), at most 80 bytes.
    pub md5sig: Option<Vec<u8>>,
    /// The congestion control algorithm.
    pub congestion: Option<String>,
    /// The sizes of the kernel's buffers.
    pub recv_buffer: Option<usize>,
    /// See `recv_buffer`.
    pub send_buffer: Option<usize>,
    /// How many bytes may wait unsent in the kernel (TCP_NOTSENT_LOWAT).
    pub unsent: Option<u32>,
    /// No acknowledgement is sent for the SYN-ACK until the first data (TCP_QUICKACK off).
    pub delay_ack: bool,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            source: None,
            transparent: false,
            interface: None,
            namespace: None,
            mptcp: false,
            nodelay: true,
            keepalive: None,
            user_timeout: None,
            mss: None,
            mark: None,
            tos: None,
            fastopen: false,
            md5sig: None,
            congestion: None,
            recv_buffer: None,
            send_buffer: None,
            unsent: None,
            delay_ack: false,
        }
    }
}

/// Keep-alive probes; what is `None` is the kernel's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keepalive {
    /// Unanswered probes until the connection is given up.
    pub count: Option<u32>,
    /// Silence before the first probe.
    pub idle: Option<Duration>,
    /// Time between probes.
    pub interval: Option<Duration>,
}

impl Keepalive {
    pub(crate) fn apply(self, socket: &SockRef<'_>) -> io::Result<()> {
        let mut params = TcpKeepalive::new();
        if let Some(count) = self.count {
            params = params.with_retries(count);
        }
        if let Some(idle) = self.idle {
            params = params.with_time(idle);
        }
        if let Some(interval) = self.interval {
            params = params.with_interval(interval);
        }
        socket.set_tcp_keepalive(&params)
    }
}

/// Begins a connection of the kernel's.
pub(crate) fn connect(addr: &Addr, options: &ConnectOptions) -> io::Result<OwnedFd> {
    let fd = crate::listen::stream(addr, options.mptcp, options.namespace)?;
    if !addr.is_unix() {
        prepare(fd.as_fd(), addr, options)?;
    }
    match rustix::net::connect(&fd, &addr.to_os()?) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

/// What became of an option of TCP: MPTCP does without those that it does not know.
pub(crate) fn tolerated(set: io::Result<()>, mptcp: bool) -> io::Result<()> {
    match set {
        Err(e) if mptcp && matches!(e.raw_os_error(), Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP)) => Ok(()),
        set => set,
    }
}

fn prepare(fd: BorrowedFd<'_>, addr: &Addr, options: &ConnectOptions) -> io::Result<()> {
    let v6 = matches!(addr, Addr::Inet(a) if a.is_ipv6());
    let socket = SockRef::from(&fd);
    let tcp = |set: io::Result<()>| tolerated(set, options.mptcp);
    if options.nodelay {
        tcp(socket.set_tcp_nodelay(true))?;
    }
    // Marks are advice to the network: without the privilege to give it traffic goes on.
    if let Some(mark) = options.mark {
        let _ = socket.set_mark(mark);
    }
    if let Some(interface) = &options.interface {
        // As in HAProxy, a connection is made without one that is not there.
        let _ = socket.bind_device(Some(interface.as_bytes()));
    }
    if let Some(source) = &options.source {
        bind_source(fd, source, options.transparent)?;
    }
    if let Some(keepalive) = options.keepalive {
        tcp(keepalive.apply(&socket))?;
    }
    if options.user_timeout.is_some() {
        tcp(socket.set_tcp_user_timeout(options.user_timeout))?;
    }
    if let Some(mss) = options.mss {
        tcp(socket.set_tcp_mss(mss.into()))?;
    }
    if let Some(tos) = options.tos {
        let _ = set_tos(fd, v6, tos);
    }
    if options.fastopen {
        tcp(set_int(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1))?;
    }
    if let Some(key) = &options.md5sig {
        tcp(set_md5sig(fd, addr, key, false))?;
    }
    if let Some(algorithm) = &options.congestion {
        // Where there is no such algorithm, or it is not for us, the system's own serves.
        let _ = socket.set_tcp_congestion(algorithm.as_bytes());
    }
    if let Some(size) = options.recv_buffer {
        socket.set_recv_buffer_size(size)?;
    }
    if let Some(size) = options.send_buffer {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = options.unsent {
        tcp(limit_unsent(fd, size))?;
    }
    if options.delay_ack {
        tcp(socket.set_tcp_quickack(false))?;
    }
    Ok(())
}

/// Binds a connecting socket to its source. Without a port the kernel picks one at connect, when it knows the
/// destination, so that one source port serves many destinations (IP_BIND_ADDRESS_NO_PORT).
fn bind_source(fd: BorrowedFd<'_>, source: &Addr, transparent: bool) -> io::Result<()> {
    let Addr::Inet(inet) = source else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    if transparent {
        set_transparent(fd, inet.is_ipv6())?;
    }
    if inet.port() == 0 {
        let _ = set_int(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
    } else {
        SockRef::from(&fd).set_reuse_address(true)?;
    }
    // By its number this would look as if the kernel had run out of ports.
    rustix::net::bind(fd, &source.to_os()?)
        .map_err(|e| io::Error::new(e.kind(), "cannot bind to the source address"))
}

pub(crate) fn set_transparent(fd: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    let full = if v6 { socket.set_ip_transparent_v6(true) } else { socket.set_ip_transparent_v4(true) };
    // Free bind is weaker but needs no privilege: enough to bind, not to receive.
    full.or_else(|_| if v6 { socket.set_freebind_v6(true) } else { socket.set_freebind_v4(true) })
}

fn set_tos(fd: BorrowedFd<'_>, v6: bool, tos: u8) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    if v6 { socket.set_tclass_v6(tos.into()) } else { socket.set_tos_v4(tos.into()) }
}

/// Sets an option that is a C int.
pub(crate) fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_raw(fd, level, name, &value.to_ne_bytes())
}

/// Limits how many bytes may wait unsent in the kernel. 0 is no limit, and a limit of 2 GB to the kernel: so
/// that it shows that somebody has decided, for whom `Socket::hold_back_if_near` decides nothing.
pub(crate) fn limit_unsent(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(i32::MAX);
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Sets an option to these bytes.
pub(crate) fn set_raw(fd: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let (data, length) = (value.as_ptr().cast(), value.len() as libc::socklen_t);
    // SAFETY: `data` points to `length` readable bytes, which the kernel copies.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, data, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into `value`; returns how many bytes it has.
pub(crate) fn get_raw(fd: BorrowedFd<'_>, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, and the length to `length`.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut length) };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel hand all new connections of a port that several sockets share to the one with this number,
/// for as long as there is one (SO_ATTACH_REUSEPORT_CBPF): the filter's only instruction returns the number.
pub(crate) fn prefer_listener(fd: BorrowedFd<'_>, number: u32) -> io::Result<()> {
    attach(fd, libc::SO_ATTACH_REUSEPORT_CBPF, &mut [instruction(libc::BPF_RET | libc::BPF_K, 0, 0, number)])
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Gives a socket a filter.
fn attach(fd: BorrowedFd<'_>, option: i32, steps: &mut [libc::sock_filter]) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = u16::try_from(steps.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
    let length = size_of_val(&program) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `program`, which are its own, and the `len` instructions
    // that it points to; both live until the call is over, and the kernel keeps a copy.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const program).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel drop what begins a connection to a listening socket (a SYN without ACK), so that its sender
/// asks again, in a second at first, and whoever listens then is asked. What goes on is let pass
/// (SO_ATTACH_FILTER). Accepted sockets inherit it, which does nothing to them.
pub(crate) fn drop_syns(fd: BorrowedFd<'_>) -> io::Result<()> {
    /// Where the flags stand in the header of TCP (RFC 9293 section 3.1), with which the filter's view
    /// begins.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    let mut steps = [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, FLAGS),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, SYN | ACK),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, SYN),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    attach(fd, libc::SO_ATTACH_FILTER, &mut steps)
}

/// Has the kernel share the connections of a port evenly again (SO_DETACH_REUSEPORT_BPF).
pub(crate) fn share_evenly(fd: BorrowedFd<'_>) -> io::Result<()> {
    const SO_DETACH_REUSEPORT_BPF: i32 = 68;
    set_int(fd, libc::SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0)
}

/// Sets the key of MD5 signatures (RFC 2385) exchanged with `peer`, or with all peers of its family.
pub(crate) fn set_md5sig(fd: BorrowedFd<'_>, peer: &Addr, key: &[u8], whole_family: bool) -> io::Result<()> {
    let Addr::Inet(peer) = peer else { return Err(io::ErrorKind::InvalidInput.into()) };
    if key.len() > libc::TCP_MD5SIG_MAXKEYLEN {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let address = socket2::SockAddr::from(*peer);
    // struct tcp_md5sig: sockaddr_storage, u8 flags, u8 prefix length, u16 key length, int interface, key.
    let mut value = vec![0u8; 128 + 8 + libc::TCP_MD5SIG_MAXKEYLEN];
    // SAFETY: the address is `len()` initialised bytes of a sockaddr.
    let bytes = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), address.len() as usize) };
    value[..bytes.len()].copy_from_slice(bytes);
    value[130..132].copy_from_slice(&(key.len() as u16).to_ne_bytes());
    value[136..136 + key.len()].copy_from_slice(key);
    if whole_family {
        // TCP_MD5SIG_FLAG_PREFIX, with a prefix of length 0.
        value[128] = 1;
        return set_raw(fd, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, &value);
    }
    set_raw(fd, libc::IPPROTO_TCP, libc::TCP_MD5SIG, &value)
}

/// An option that only tunes the kernel: nothing to do in a simulated world.
fn tune(handle: &Handle, set: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    handle.kernel().map_or(Ok(()), set)
}

/// Options of an established connection. All fail with what the kernel says: EPERM for want of a capability,
/// ENOPROTOOPT where the socket has no such option, EINVAL when the connection is gone.
#[allow(clippy::missing_errors_doc)]
impl Socket {
    /// The address of this end.
    pub fn local_addr(&self) -> io::Result<Addr> {
        driver::local_addr(self.handle())
    }

    /// The address of the other end.
    pub fn peer_addr(&self) -> io::Result<Addr> {
        driver::peer_addr(self.handle())
    }

    /// Has the next close send a reset and drop what was not sent (SO_LINGER, 0 s).
    pub fn set_linger0(&self) -> io::Result<()> {
        driver::set_linger0(self.handle())
    }

    /// Has the next close tell the peer nothing: neither FIN nor reset leaves (TCP_REPAIR, which needs
    /// CAP_NET_ADMIN), or, where that is not allowed or a number of hops is given, a reset that dies after so
    /// many.
    pub fn vanish(&self, hops: Option<u8>) -> io::Result<()> {
        driver::vanish(self.handle(), hops)
    }

    /// Sends small segments at once, or waits to fill them.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_tcp_nodelay(on))
    }

    /// Acknowledges at once, or lets the kernel wait for an answer to go with it.
    pub fn set_quickack(&self, on: bool) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_tcp_quickack(on))
    }

    /// Turns keep-alive probes on.
    pub fn set_keepalive(&self, keepalive: Keepalive) -> io::Result<()> {
        tune(self.handle(), |fd| keepalive.apply(&SockRef::from(&fd)))
    }

    /// How long sent data may stay unacknowledged.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_tcp_user_timeout(timeout))
    }

    /// The firewall mark of outgoing packets.
    pub fn set_mark(&self, mark: u32) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_mark(mark))
    }

    /// The type of service (IPv4) and traffic class (IPv6) of outgoing packets.
    pub fn set_tos(&self, tos: u8) -> io::Result<()> {
        tune(self.handle(), |fd| {
            let v6 = set_tos(fd, true, tos);
            set_tos(fd, false, tos).or(v6)
        })
    }

    /// The size of the kernel's receive buffer.
    pub fn set_recv_buffer(&self, bytes: usize) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_recv_buffer_size(bytes))
    }

    /// The size of the kernel's send buffer.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        tune(self.handle(), |fd| SockRef::from(&fd).set_send_buffer_size(bytes))
    }

    /// The destination that the client asked for, before a firewall redirected it (SO_ORIGINAL_DST).
    pub fn original_dst(&self) -> io::Result<Addr> {
        let fd = self.handle().os()?;
        let socket = SockRef::from(&fd);
        let address = match self.local_addr()? {
            Addr::Inet(a) if a.is_ipv6() => socket.original_dst_v6()?,
            _ => socket.original_dst_v4()?,
        };
        address.as_socket().map(Addr::Inet).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

/// Reads an address of the kernel's.
pub(crate) fn addr_of(any: Option<rustix::net::SocketAddrAny>) -> io::Result<Addr> {
    any.as_ref().and_then(Addr::from_os).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

pub(crate) fn vanish(fd: BorrowedFd<'_>, hops: Option<u8>) -> io::Result<()> {
    const TCP_REPAIR: i32 = 19;
    if hops.is_none() {
        // What the peer has sent is acknowledged first: it would send that again and be told by a reset.
        let _ = SockRef::from(&fd).set_tcp_quickack(true);
    }
    if hops.is_none() && set_int(fd, libc::IPPROTO_TCP, TCP_REPAIR, 1).is_ok() {
        return Ok(());
    }
    let hops = hops.unwrap_or(1).into();
    // A socket of IPv6 may serve IPv4: both are set, one of them is right.
    let v6 = set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, hops);
    let set = set_int(fd, libc::IPPROTO_IP, libc::IP_TTL, hops).or(v6);
    set_linger0(fd).and(set)
}

pub(crate) fn set_linger0(fd: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&fd).set_linger(Some(Duration::ZERO))
}

pub(crate) fn unacknowledged(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and TIOCOUTQ (SIOCOUTQ for sockets) writes one
    // int.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => Ok(usize::try_from(bytes).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}
