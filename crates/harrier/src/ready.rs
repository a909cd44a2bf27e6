//! Telling the service manager how it goes (systemd's `Type=notify`).
//!
//! The socket is opened before the chroot, where its path still leads to it. A master tells of everything; a
//! process without one tells only that it serves.

use std::os::unix::net::{SocketAddr, UnixDatagram};

use supervisor::Notice;

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
        self.notify(Notice::Ready);
    }

    /// Tells how it goes.
    pub fn notify(&self, notice: Notice) {
        let text = match notice {
            Notice::Ready => format!("READY=1\nMAINPID={}\nSTATUS=Ready.\n", std::process::id()),
            Notice::Reloading => {
                let now = rt::kernel_micros();
                format!("RELOADING=1\nSTATUS=Reloading Configuration.\nMONOTONIC_USEC={now}\n")
            }
            Notice::ReloadFailed => "READY=1\nSTATUS=Reload failed!\n".to_owned(),
            Notice::Stopping => "STOPPING=1".to_owned(),
        };
        let _ = self.0.send(text.as_bytes());
    }
}
