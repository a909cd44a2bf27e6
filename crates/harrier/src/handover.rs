//! Taking the listening sockets of a running process over, so that no connection is lost between its end and
//! our start: over its runtime API (`-x`), or over the line that a master keeps to its workers.
//!
//! Those that no `bind` line wants are closed here; the old process keeps its own.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use engine::net;
use program::Bind;
use program::address::Listen;
use program::forward::Dgram;
use rt::sys::{self, Bound};
use rt::{Addr, ListenOptions, Listener, SharedDatagram};
use wire::handover::{self, AT_ONCE, Label, ROOM};

use crate::say;

/// How long the old process may take for each of its messages.
const PATIENCE: Duration = Duration::from_secs(5);

/// More sockets than this nobody has; it was no number.
const MOST: usize = 1 << 20;

/// Sockets of another process.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(OwnedFd, Bound, Label)>);

/// Asks the process that listens on a path (`-x`), or the one at the other end of a line, for its sockets.
/// A path that leads nowhere is an error, which has been said; a line may have nobody at its end any more.
///
/// # Errors
/// The sockets that were asked for can't be had.
pub fn ask(path: Option<&Path>, line: Option<OwnedFd>) -> Result<Inherited, ()> {
    if path.is_some_and(|path| path.as_os_str() == "/dev/null") {
        return Ok(Inherited::default());
    }
    let (stream, needed) = match (path, line) {
        (Some(path), _) => (UnixStream::connect(path), true),
        (None, Some(line)) => (call(&line), false),
        (None, None) => return Ok(Inherited::default()),
    };
    match stream.and_then(receive) {
        Ok(inherited) => Ok(inherited),
        Err(e) if needed => {
            let path = path.map_or_else(String::new, |p| p.display().to_string());
            say::warning(&format!("The process at '{path}' hands no sockets over: {}.", say::reason(&e)));
            say::alert("Failed to get the sockets from the old process!");
            Err(())
        }
        Err(e) => {
            let text = "The worker before hands no sockets over, they are opened anew";
            say::warning(&format!("{text}: {}.", say::reason(&e)));
            Ok(Inherited::default())
        }
    }
}

/// A connection to the process at the other end of a line.
fn call(line: &OwnedFd) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    sys::send_fds(line.as_fd(), &[0], &[theirs.as_fd()])?;
    Ok(ours)
}

fn receive(stream: UnixStream) -> io::Result<Inherited> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    (&stream).write_all(handover::REQUEST)?;
    let mut word = [0; 4];
    (&stream).read_exact(&mut word)?;
    let count = u32::from_ne_bytes(word) as usize;
    if count > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut all = Vec::new();
    let mut room = vec![0; AT_ONCE * ROOM];
    while all.len() < count {
        let (mut fds, mut told) = (Vec::new(), Vec::new());
        // What is told of the sockets may come after them.
        let labels = loop {
            let n = sys::recv_fds(stream.as_fd(), &mut room, &mut fds)?;
            told.extend_from_slice(room.get(..n).unwrap_or_default());
            if n == 0 || fds.is_empty() || told.len() > AT_ONCE * ROOM {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(labels) = labels(&told, fds.len()) {
                break labels;
            }
        };
        (&stream).write_all(&handover::number(all.len()))?;
        all.extend(fds.into_iter().zip(labels));
    }
    let looked = all.into_iter().filter_map(|(fd, label)| {
        let bound = sys::bound(fd.as_fd()).ok()?;
        Some((fd, bound, label))
    });
    Ok(Inherited(looked.collect()))
}

/// What is told of so many sockets, once it is all there.
fn labels(told: &[u8], count: usize) -> Option<Vec<Label>> {
    let mut rest = told;
    let mut next = || {
        let (label, behind) = Label::take(rest)?;
        rest = behind;
        Some(label)
    };
    (0..count).map(|_| next()).collect()
}

/// What a line wants of a socket.
struct Wanted<'w> {
    address: &'w Listen,
    interface: Option<&'w str>,
    namespace: Option<base::netns::Namespace>,
    v6only: Option<bool>,
    stream: bool,
    mptcp: bool,
}

impl Inherited {
    /// The socket for a `bind` line, if there is one: same address, same interface, same kind.
    pub fn take(&mut self, bind: &Bind, options: &ListenOptions) -> Option<Listener> {
        let fd = self.find(&Wanted {
            address: &bind.address,
            interface: bind.interface.as_deref(),
            namespace: bind.namespace,
            v6only: bind.v6only,
            stream: true,
            mptcp: bind.mptcp,
        })?;
        Listener::adopt(fd, options).ok()
    }

    /// The same for a `dgram-bind` line.
    pub fn take_datagrams(&mut self, dgram: &Dgram, recv_buffer: Option<usize>) -> Option<SharedDatagram> {
        let fd = self.find(&Wanted {
            address: &dgram.address,
            interface: dgram.interface.as_deref(),
            namespace: dgram.namespace,
            v6only: dgram.v6only,
            stream: false,
            mptcp: false,
        })?;
        SharedDatagram::adopt(fd, recv_buffer).ok()
    }

    fn find(&mut self, wanted: &Wanted<'_>) -> Option<OwnedFd> {
        let addr = net::listen(wanted.address)?;
        let at = self.0.iter().position(|(_, bound, label)| fits(wanted, &addr, bound, label))?;
        Some(self.0.swap_remove(at).0)
    }
}

fn fits(wanted: &Wanted<'_>, addr: &Addr, bound: &Bound, label: &Label) -> bool {
    let interface = wanted.interface.unwrap_or_default().as_bytes();
    let same = match (&bound.addr, addr) {
        (Addr::Unix(there), Addr::Unix(wanted)) => there == wanted || was_renamed(there, wanted),
        (there, wanted) => there == wanted,
    };
    let takes_v4 = match wanted.address {
        Listen::Tcp(a) if a.is_ipv6() => wanted.v6only.is_none_or(|only| only == bound.v6only),
        _ => true,
    };
    let namespace = wanted.namespace.map_or("", |n| n.name()).as_bytes();
    let kind = (bound.stream, bound.mptcp) == (wanted.stream, wanted.mptcp);
    same && kind && takes_v4 && label.namespace == namespace && label.interface == interface
}

/// Whether a socket was bound under a temporary name (`path.PID.tmp`) that became this path.
fn was_renamed(there: &[u8], wanted: &[u8]) -> bool {
    let between = there.strip_prefix(wanted).and_then(|rest| rest.strip_prefix(b"."));
    let pid = between.and_then(|rest| rest.strip_suffix(b".tmp"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_lead_to_their_path() {
        assert!(was_renamed(b"/run/s.123.tmp", b"/run/s"));
        for other in
            ["/run/s", "/run/s.tmp", "/run/s..tmp", "/run/s.12x.tmp", "/run/t.1.tmp", "/run/s.1.tmpx"]
        {
            assert!(!was_renamed(other.as_bytes(), b"/run/s"), "{other}");
        }
    }

    #[test]
    fn what_is_told_of_sockets_is_taken_once_it_is_whole() {
        let mut told = vec![0; 6];
        told.extend_from_slice(b"\0\x02lo\0\0\0\0");
        assert_eq!(labels(&told, 2).map(|l| l[1].interface.clone()), Some(b"lo".to_vec()));
        assert!(labels(&told[..13], 2).is_none() && labels(&told, 3).is_none());
    }
}
