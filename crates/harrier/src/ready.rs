//! Telling the service manager that the start is over (`-Ws`, systemd's `Type=notify`).
//!
//! The socket is opened before the chroot, where its path still leads to it, and told when the workers run.

use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A service manager that waits for a word.
pub struct Ready(UnixDatagram);

impl Ready {
    /// The one that started this process, if there is one.
    pub fn open() -> Option<Ready> {
        use std::os::linux::net::SocketAddrExt;
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let socket = UnixDatagram::unbound().ok()?;
        let text = name.to_str()?;
        let connected = match text.strip_prefix('@') {
            Some(hidden) => socket.connect_addr(&SocketAddr::from_abstract_name(hidden).ok()?),
            None => socket.connect(text),
        };
        connected.ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Ready(socket))
    }

    /// Connections are accepted from now on.
    pub fn tell(&self) {
        let _ = self.0.send(format!("READY=1\nMAINPID={}\n", std::process::id()).as_bytes());
    }
}
