//! How what lies outside is had: by this process itself, or from one with other rights.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use program::{Bind, Global};
use rt::{Listener, sys};

use crate::{say, sockets};

/// See the module.
pub enum Way {
    /// This process has the rights.
    Near,
    /// The other end of this has them (`master::reader` says what is spoken).
    Far(UnixStream),
}

impl Way {
    /// The socket of a `bind` line of a frontend, which is `at` so many.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn front(
        &mut self,
        global: &Global,
        (proxy, index): (u32, u32),
        bind: &Bind,
        backlog: u32,
        whose: &str,
    ) -> Result<Listener, String> {
        match self {
            Way::Near => {
                let listener = sockets::listen(global, bind, backlog);
                let listener = listener.map_err(|e| sockets::complaint(bind, whose, &e))?;
                sockets::set_congestion(bind, &listener, whose);
                Ok(listener)
            }
            Way::Far(line) => received(ask(line, &format!("front {proxy} {index}"))?),
        }
    }

    /// A socket of the runtime API.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn api(&mut self, global: &Global, at: usize, bind: &Bind) -> Result<Listener, String> {
        match self {
            Way::Near => {
                let listener = sockets::listen(global, bind, 1024);
                listener.map_err(|e| sockets::complaint(bind, "frontend GLOBAL", &e))
            }
            Way::Far(line) => received(ask(line, &format!("cli {at}"))?),
        }
    }

    /// A socket that log lines go to, if this process should not open it itself.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn log(&mut self, at: usize, path: &[u8]) -> Result<Option<OwnedFd>, String> {
        match self {
            Way::Near => Ok(engine::sinks::connect(path, None)),
            Way::Far(line) => ask(line, &format!("log {at}")).map(Some),
        }
    }
}

fn received(fd: OwnedFd) -> Result<Listener, String> {
    Listener::received(fd)
        .map_err(|e| format!("A socket that was opened can't be used: {}.", say::reason(&e)))
}

fn ask(line: &mut UnixStream, wish: &str) -> Result<OwnedFd, String> {
    let lost = |e: io::Error| format!("The master does not answer: {}.", say::reason(&e));
    line.write_all(format!("{wish}\n").as_bytes()).map_err(lost)?;
    let (mut mark, mut fds) = ([0], Vec::new());
    let got = sys::recv_fds(line.as_fd(), &mut mark, &mut fds).map_err(lost)?;
    if let (1, [1], Some(fd)) = (got, mark, fds.pop()) {
        return Ok(fd);
    }
    let mut length = [0; 2];
    line.read_exact(&mut length).map_err(lost)?;
    let mut why = vec![0; usize::from(u16::from_le_bytes(length))];
    line.read_exact(&mut why).map_err(lost)?;
    Err(String::from_utf8_lossy(&why).into_owned())
}
