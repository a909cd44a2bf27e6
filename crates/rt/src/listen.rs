//! Making sockets of the kernel listen: options, binding, and Unix paths that appear whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::net::{Protocol, SocketFlags, SocketType};
use socket2::SockRef;

use base::netns::Namespace;

use crate::addr::Addr;
use crate::netns;
use crate::sockopt::{Keepalive, limit_unsent, set_int, set_md5sig, set_transparent};

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted.
    pub backlog: u32,
    /// Other sockets may listen on the same address, and share its connections (SO_REUSEPORT).
    pub reuseport: bool,
    /// The address need not be one of this machine (IP_TRANSPARENT).
    pub transparent: bool,
    /// Only connections through this interface, where it can be had ([`lacking`]).
    pub interface: Option<String>,
    /// Speaks MPTCP with whoever does (RFC 8684).
    pub mptcp: bool,
    /// The network namespace; `None` is that of the process.
    pub namespace: Option<Namespace>,
    /// On an IPv6 address: `Some(true)` refuses IPv4, `Some(false)` takes it too, `None` is the system's
    /// default.
    pub v6only: Option<bool>,
    /// The largest segment, likewise.
    pub mss: Option<u16>,
    /// Accept only once there is data, waiting so long for it (TCP_DEFER_ACCEPT).
    pub defer_accept: Option<Duration>,
    /// Length of the queue of data-in-SYN connections (TCP_FASTOPEN).
    pub fastopen: Option<u32>,
    /// How long sent data may stay unacknowledged on accepted connections.
    pub user_timeout: Option<Duration>,
    /// Keep-alive probes of accepted connections.
    pub keepalive: Option<Keepalive>,
    /// Accepted connections send small segments at once (inherited from the listener, so it costs nothing).
    pub nodelay: bool,
    /// The key of TCP MD5 signatures with any IPv4 and IPv6 peer.
    pub md5sig: Option<Vec<u8>>,
    /// Keeps the SYN packet of accepted connections (TCP_SAVE_SYN): 1 from the IP header on, 2 with the
    /// link's.
    pub save_syn: Option<u8>,
    /// Bytes of the kernel's buffers of accepted connections, instead of what it finds best.
    pub recv_buffer: Option<usize>,
    /// See `recv_buffer`.
    pub send_buffer: Option<usize>,
    /// How many bytes may wait unsent in the kernel (TCP_NOTSENT_LOWAT).
    pub unsent: Option<u32>,
    /// Permissions of a Unix path.
    pub mode: Option<u32>,
    /// Owner of a Unix path.
    pub uid: Option<u32>,
    /// Group of a Unix path.
    pub gid: Option<u32>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 1024,
            reuseport: true,
            transparent: false,
            interface: None,
            namespace: None,
            mptcp: false,
            v6only: None,
            mss: None,
            defer_accept: None,
            fastopen: None,
            user_timeout: None,
            keepalive: None,
            nodelay: true,
            md5sig: None,
            save_syn: None,
            recv_buffer: None,
            send_buffer: None,
            unsent: None,
            mode: None,
            uid: None,
            gid: None,
        }
    }
}

/// A listening socket of the kernel's.
pub(crate) fn listen(addr: &Addr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let (fd, rest) = bound(addr, options)?;
    rest.begin(fd.as_fd())?;
    Ok(fd)
}

/// A socket that has its address and nobody can connect to yet, and what makes it listen. When that is
/// dropped instead, nothing of the address is left.
pub(crate) fn bound(addr: &Addr, options: &ListenOptions) -> io::Result<(OwnedFd, Rest)> {
    let fd = stream(addr, options.mptcp, options.namespace)?;
    let backlog = options.backlog.min(i32::MAX as u32) as i32;
    let path = match addr {
        Addr::Unix(path) => Some(bind_path(&fd, path, options)?),
        Addr::Inet(inet) => {
            prepare(fd.as_fd(), inet.is_ipv6(), options)?;
            rustix::net::bind(&fd, &addr.to_os()?)?;
            None
        }
        Addr::Abstract { .. } => {
            rustix::net::bind(&fd, &addr.to_os()?)?;
            None
        }
    };
    Ok((fd, Rest { backlog, shared: options.reuseport && matches!(addr, Addr::Inet(_)), path }))
}

/// What has to be done to a socket that is bound before somebody can connect to it.
#[derive(Debug)]
pub(crate) struct Rest {
    backlog: i32,
    /// Others may listen on the same port.
    shared: bool,
    path: Option<Renamed>,
}

impl Rest {
    /// It listens from now on.
    pub(crate) fn begin(self, fd: BorrowedFd<'_>) -> io::Result<()> {
        rustix::net::listen(fd, self.backlog)?;
        if let Some(path) = self.path {
            std::fs::rename(&path.from, &path.to)?;
        }
        if self.shared {
            // What a process left behind that has ended (`yield_to_newest`) would send all connections to
            // this socket.
            let _ = crate::sockopt::share_evenly(fd);
            lists();
        }
        Ok(())
    }
}

/// A Unix path that has a temporary name until its socket listens.
#[derive(Debug)]
struct Renamed {
    from: PathBuf,
    to: PathBuf,
}

impl Drop for Renamed {
    fn drop(&mut self) {
        // Gone already if it was renamed.
        let _ = std::fs::remove_file(&self.from);
    }
}

/// A stream socket for an address, perhaps one that speaks MPTCP.
pub(crate) fn stream(addr: &Addr, mptcp: bool, namespace: Option<Namespace>) -> io::Result<OwnedFd> {
    let protocol = (mptcp && matches!(addr, Addr::Inet(_))).then_some(rustix::net::ipproto::MPTCP);
    socket(addr, SocketType::STREAM, protocol, namespace)
}

/// A socket for an address. Paths of the file system are the same in all namespaces.
fn socket(
    addr: &Addr,
    kind: SocketType,
    protocol: Option<Protocol>,
    namespace: Option<Namespace>,
) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let make = || Ok(rustix::net::socket_with(addr.family(), kind, flags, protocol)?);
    netns::within(namespace.filter(|_| !matches!(addr, Addr::Unix(_))), make)
}

/// A socket that receives datagrams, and shares its address with others as listening ones do.
pub(crate) fn receive(addr: &Addr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let fd = socket(addr, SocketType::DGRAM, None, options.namespace)?;
    match addr {
        Addr::Inet(inet) => {
            let socket = SockRef::from(&fd);
            if options.reuseport {
                socket.set_reuse_port(true)?;
            }
            if let (true, Some(only)) = (inet.is_ipv6(), options.v6only) {
                socket.set_only_v6(only)?;
            }
            if options.transparent {
                set_transparent(fd.as_fd(), inet.is_ipv6())?;
            }
            if let Some(interface) = &options.interface {
                let _ = socket.bind_device(Some(interface.as_bytes()));
            }
            if let Some(bytes) = options.recv_buffer {
                socket.set_recv_buffer_size(bytes)?;
            }
        }
        Addr::Unix(path) => {
            // What a process left behind that has ended.
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
            let _ = std::fs::remove_file(path);
        }
        Addr::Abstract { .. } => {}
    }
    rustix::net::bind(&fd, &addr.to_os()?)?;
    Ok(fd)
}

/// A TCP socket listens no more and keeps its address, until `listen` is called again.
pub(crate) fn give_up(fd: BorrowedFd<'_>) -> io::Result<()> {
    // Unlike `shutdown`, this does the same however often it is done, and leaves no mark on later
    // connections.
    Ok(rustix::net::connect_unspec(fd)?)
}

/// Has the kernel hand the connections of a port to the socket that began to listen on it last, if that isn't
/// this one.
///
/// The sockets of a port that share it (SO_REUSEPORT) stand in an array in the order in which they began to
/// listen, and a filter that any of them attaches says the number of the one to be chosen. When this socket
/// closes, that number is one too high and the kernel chooses by itself.
pub(crate) fn yield_to_newest(fd: BorrowedFd<'_>, addr: SocketAddr) -> bool {
    match listening(addr) {
        Some(sockets @ 2..) => crate::sockopt::prefer_listener(fd, sockets - 1).is_ok(),
        _ => false,
    }
}

/// How many sockets listen on exactly this address; `None` if the kernel does not tell. Its list begins with
/// those that listen.
pub fn listening(addr: SocketAddr) -> Option<u32> {
    let lists = lists().lock().unwrap_or_else(PoisonError::into_inner);
    let mut list = lists[usize::from(addr.is_ipv6())].as_ref()?;
    list.seek(SeekFrom::Start(0)).ok()?;
    let wanted = kernel_name(addr);
    let mut count = 0;
    for line in BufReader::new(list).lines().skip(1) {
        let line = line.ok()?;
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        if state != "0A" {
            break;
        }
        count += u32::from(local == wanted);
    }
    Some(count)
}

/// The kernel's lists of TCP sockets. They are opened with the first socket that listens, since they are
/// asked for again when the process stops, which may be in a chroot.
fn lists() -> &'static Mutex<[Option<File>; 2]> {
    static LISTS: OnceLock<Mutex<[Option<File>; 2]>> = OnceLock::new();
    let open = || ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|path| File::open(path).ok());
    LISTS.get_or_init(|| Mutex::new(open()))
}

/// An address as the kernel's lists show it: words in the order of the machine, in hexadecimal digits.
fn kernel_name(addr: SocketAddr) -> String {
    let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
    let ip = match addr.ip() {
        IpAddr::V4(ip) => word(ip.octets()),
        IpAddr::V6(ip) => {
            let o = ip.octets();
            (0..4).map(|i| word([o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]])).collect()
        }
    };
    format!("{ip}:{:04X}", addr.port())
}

fn prepare(fd: BorrowedFd<'_>, v6: bool, options: &ListenOptions) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    socket.set_reuse_address(true)?;
    if options.reuseport {
        socket.set_reuse_port(true)?;
    }
    if let (true, Some(only)) = (v6, options.v6only) {
        socket.set_only_v6(only)?;
    }
    if options.transparent {
        set_transparent(fd, v6)?;
    }
    // As in HAProxy, a socket does without these where they can't be had ([`lacking`] says why).
    if let Some(interface) = &options.interface {
        let _ = socket.bind_device(Some(interface.as_bytes()));
    }
    tune(fd, v6, options)
}

/// Why sockets for this address would have to do without some of their options; `None`: they have them.
#[derive(Debug, Default)]
pub struct Lacking {
    /// Why they can't be bound to the interface.
    pub interface: Option<io::Error>,
    /// Why the largest segment can't be set.
    pub mss: Option<io::Error>,
}

/// Tries the options that a listening socket can do without on one that is closed at once.
///
/// # Errors
/// There are no such sockets.
pub fn lacking(addr: SocketAddr, options: &ListenOptions) -> io::Result<Lacking> {
    let fd = stream(&Addr::Inet(addr), options.mptcp, options.namespace)?;
    let socket = SockRef::from(&fd);
    let interface = options.interface.as_ref().map(|name| socket.bind_device(Some(name.as_bytes())));
    let mss = options.mss.map(|mss| socket.set_tcp_mss(mss.into()));
    Ok(Lacking { interface: interface.and_then(Result::err), mss: mss.and_then(Result::err) })
}

/// Options that a socket takes also when it listens already.
pub(crate) fn tune(fd: BorrowedFd<'_>, v6: bool, options: &ListenOptions) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    let tcp = |set: io::Result<()>| crate::sockopt::tolerated(set, options.mptcp);
    let seconds = |d: Duration| i32::try_from(d.as_secs().max(1)).unwrap_or(i32::MAX);
    if let Some(mss) = options.mss {
        let _ = socket.set_tcp_mss(mss.into());
    }
    if let Some(wait) = options.defer_accept {
        tcp(set_int(fd, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds(wait)))?;
    }
    if let Some(queue) = options.fastopen {
        tcp(set_int(fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, queue.min(i32::MAX as u32) as i32))?;
    }
    if options.user_timeout.is_some() {
        tcp(socket.set_tcp_user_timeout(options.user_timeout))?;
    }
    if let Some(keepalive) = options.keepalive {
        tcp(keepalive.apply(&socket))?;
    }
    if options.nodelay {
        tcp(socket.set_tcp_nodelay(true))?;
    }
    if let Some(key) = &options.md5sig {
        tcp(accept_md5sig(fd, v6, key))?;
    }
    if let Some(mode) = options.save_syn {
        tcp(set_int(fd, libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, mode.into()))?;
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
    Ok(())
}

/// Binds to a temporary name beside the path, which is renamed later: nobody finds a path that does not
/// listen yet, and a failure leaves what was there untouched.
fn bind_path(fd: &OwnedFd, path: &[u8], options: &ListenOptions) -> io::Result<Renamed> {
    let mut temporary = path.to_vec();
    temporary.extend_from_slice(format!(".{}.tmp", std::process::id()).as_bytes());
    let as_path = |bytes: &[u8]| {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
    };
    let (from, to) = (as_path(&temporary), as_path(path));
    let _ = std::fs::remove_file(&from);
    rustix::net::bind(fd, &Addr::Unix(temporary).to_os()?)?;
    let path = Renamed { from, to };
    if let Some(mode) = options.mode {
        rustix::fs::chmod(&path.from, rustix::fs::Mode::from_raw_mode(mode))?;
    }
    if options.uid.is_some() || options.gid.is_some() {
        std::os::unix::fs::chown(&path.from, options.uid, options.gid)?;
    }
    Ok(path)
}

/// Signs with any peer; on an IPv6 socket that may take IPv4 too, for both families.
fn accept_md5sig(fd: BorrowedFd<'_>, v6: bool, key: &[u8]) -> io::Result<()> {
    let any =
        |text: &str| text.parse().map(Addr::Inet).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    if !v6 {
        return set_md5sig(fd, &any("0.0.0.0:0")?, key, true);
    }
    set_md5sig(fd, &any("[::]:0")?, key, true)?;
    // Refused on a socket for IPv6 only, which has no use for it.
    let _ = set_md5sig(fd, &any("[::ffff:0.0.0.0]:0")?, key, true);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_connections_have_the_buffers_that_were_asked_for() {
        let options = ListenOptions {
            recv_buffer: Some(10_000),
            send_buffer: Some(20_000),
            ..ListenOptions::default()
        };
        let listening = listen(&Addr::Inet("127.0.0.1:0".parse().unwrap()), &options).unwrap();
        let at = rustix::net::getsockname(&listening).unwrap();
        let client = std::net::TcpStream::connect(std::net::SocketAddr::try_from(at).unwrap()).unwrap();
        let accepted = rustix::net::accept(&listening).unwrap();
        let socket = SockRef::from(&accepted);
        // The kernel doubles what it is told (socket(7)).
        assert_eq!(socket.recv_buffer_size().unwrap(), 20_000);
        assert_eq!(socket.send_buffer_size().unwrap(), 40_000);
        drop(client);
    }
}
