//! What the kernel knows of a connection: its TCP state and who is at the other end.

use std::io;
use std::time::Duration;

use crate::socket::Socket;
use crate::sockopt::{get_raw, limit_unsent};

/// A peer at less than this is in the same rack or on the same machine.
const NEAR: Duration = Duration::from_millis(1);
/// Bytes that may wait unsent for a peer that is near. `h1-1m`: 24 to 48 KB differ by less than the noise,
/// with 64 KB a transfer takes half as much CPU again, and without a limit half as many are done in a second.
const UNSENT_IF_NEAR: u32 = 32 * 1024;

/// The kernel's figures of a TCP connection (`struct tcp_info` of Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// The least round-trip time of the last minutes; where the kernel doesn't tell, the smoothed one.
    pub min_rtt: Duration,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments held for lost.
    pub lost: u32,
    /// Segments sent again and not acknowledged.
    pub retrans: u32,
    /// Segments known to have left the network, forward acknowledged.
    pub fackets: u32,
    /// How far segments are seen out of order.
    pub reordering: u32,
    /// The largest segment sent, in bytes.
    pub snd_mss: u32,
}

/// Who is at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The process.
    pub pid: i32,
}

impl Socket {
    /// The kernel's figures of this TCP connection.
    ///
    /// # Errors
    /// If it is no TCP connection, or simulated.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        let mut raw = [0u8; 152];
        let n = get_raw(self.fd()?, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
        // The structure only grows at its end; what an old kernel lacks is 0.
        let field = |offset: usize| match raw.get(offset..offset + 4).filter(|_| offset + 4 <= n) {
            Some(bytes) => u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            None => 0,
        };
        let micros = |offset| Duration::from_micros(field(offset).into());
        Ok(TcpInfo {
            rtt: micros(68),
            rttvar: micros(72),
            min_rtt: if n < raw.len() { micros(68) } else { micros(148) },
            unacked: field(24),
            sacked: field(28),
            lost: field(32),
            retrans: field(36),
            fackets: field(40),
            reordering: field(88),
            snd_mss: field(16),
        })
    }

    /// Lets no more than [`UNSENT_IF_NEAR`] bytes wait unsent for a peer at less than [`NEAR`], unless
    /// somebody has set a limit. A peer so near takes them in moments. What waits longer than that only
    /// leaves the caches of the processors, and each of the machine's programs then fetches it from memory. A
    /// peer far away gets as much as the kernel holds, which takes fewer turns for the same bytes.
    pub fn hold_back_if_near(&self) {
        let limit = || {
            let fd = self.fd()?;
            let mut set = [0u8; 4];
            get_raw(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &mut set)?;
            if set == [0; 4] && self.tcp_info()?.min_rtt < NEAR {
                limit_unsent(fd, UNSENT_IF_NEAR)?;
            }
            io::Result::Ok(())
        };
        // No connection over TCP, an older kernel: all goes on as it did.
        let _ = limit();
    }

    /// The SYN packet of this connection, kept if its listener asked for that ([`ListenOptions::save_syn`]).
    /// It can be had once.
    ///
    /// [`ListenOptions::save_syn`]: crate::ListenOptions::save_syn
    ///
    /// # Errors
    /// If it is no TCP connection, or simulated.
    pub fn saved_syn(&self) -> io::Result<Vec<u8>> {
        let mut raw = vec![0u8; 512];
        let n = get_raw(self.fd()?, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN, &mut raw)?;
        raw.truncate(n);
        Ok(raw)
    }

    /// Who is at the other end of this Unix socket.
    ///
    /// # Errors
    /// If it is no Unix socket, or simulated.
    pub fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        let mut raw = [0u8; 12];
        get_raw(self.fd()?, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut raw)?;
        let [pid, uid, gid] =
            [0, 4, 8].map(|o| u32::from_ne_bytes([raw[o], raw[o + 1], raw[o + 2], raw[o + 3]]));
        Ok(PeerCredentials { uid, gid, pid: pid as i32 })
    }
}
