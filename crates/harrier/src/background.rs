//! Going to the background (`-D`, `daemon`).
//!
//! The process that was started stays until its child has given up what it gives up, chroot and rights
//! included, so its exit code tells whether the service runs, and what went wrong on the way is still read on
//! the terminal.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rt::sys::{self, Fork};

use crate::say;

/// The child's side: whoever waits for its start.
pub struct Background {
    parent: UnixStream,
    terminal: File,
}

impl Background {
    /// Splits the process; returns in the child, which has no terminal any more.
    ///
    /// # Errors
    /// What the system says to the fork, or to the way back to the parent.
    pub fn enter() -> io::Result<Background> {
        let background = Background::split()?;
        let _ = sys::detach_from_terminal();
        Ok(background)
    }

    /// As [`Background::enter`], but the child goes on writing to the terminal, until it has nothing to say
    /// there any more.
    ///
    /// # Errors
    /// As [`Background::enter`].
    pub fn enter_attached() -> io::Result<Background> {
        let background = Background::split()?;
        let _ = sys::lead_session();
        Ok(background)
    }

    fn split() -> io::Result<Background> {
        let (ours, theirs) = UnixStream::pair()?;
        let terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        if let Fork::Parent(_) = sys::fork()? {
            drop(theirs);
            wait(ours);
        }
        Ok(Background { parent: theirs, terminal })
    }

    /// The child serves: the parent ends well.
    pub fn started(mut self) {
        let _ = self.parent.write_all(&[1]);
    }

    /// The child can't start and says why: the parent ends with an error.
    pub fn failed(mut self, text: &str) {
        if say::hushed() {
            return;
        }
        let _ = self.terminal.write_all(say::plain("[ALERT]", text).as_bytes());
    }
}

/// Waits for the child's word, or its end without one.
fn wait(mut child: UnixStream) -> ! {
    let code = i32::from(child.read_exact(&mut [0]).is_err());
    std::process::exit(code)
}
