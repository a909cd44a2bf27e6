//! How what lies outside is had: by this process itself, or from one with other rights.
//!
//! Sockets are bound first and begin to listen only when nothing else can fail: one that listens takes
//! connections of its port, and a Unix path takes the place of the one before.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use program::forward::{Dgram, Forward};
use program::{Bind, Global, Program};
use rt::{Listener, SharedDatagram, Unheard, sys};

use crate::{say, sockets};

/// See the module.
pub enum Way {
    /// This process has the rights.
    Near(Bound),
    /// The other end of this has them (`master::reader` says what is spoken).
    Far(UnixStream),
}

/// Sockets that do not listen yet.
#[derive(Default)]
pub struct Bound(Vec<(Unheard, Bind, String)>);

impl Bound {
    /// Binds one more for `whose`.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn open(
        &mut self,
        global: &Global,
        bind: &Bind,
        backlog: u32,
        whose: &str,
    ) -> Result<Listener, String> {
        let (listener, unheard) =
            sockets::bound(global, bind, backlog).map_err(|e| sockets::complaint(bind, whose, &e))?;
        sockets::tell_lacking(bind, whose);
        sockets::set_congestion(bind, &listener, whose);
        self.0.extend(unheard.map(|unheard| (unheard, bind.clone(), whose.to_owned())));
        Ok(listener)
    }

    /// They listen from now on.
    ///
    /// # Errors
    /// Why one can't.
    pub fn begin(&mut self) -> Result<(), String> {
        // What can fail for a reason other than a race comes last: a path that was replaced is not put back.
        let (ports, paths): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(_, bind, _)| !matches!(bind.address, program::address::Listen::Unix(_)));
        for (unheard, bind, whose) in ports.into_iter().chain(paths) {
            unheard.begin().map_err(|e| sockets::complaint(&bind, &whose, &e))?;
        }
        Ok(())
    }
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
            Way::Near(bound) => bound.open(global, bind, backlog, whose),
            Way::Far(line) => {
                Ok(received(ask(line, &format!("front {proxy} {index}"))?)?.in_namespace(bind.namespace))
            }
        }
    }

    /// The socket of a `bind` line of a `log-forward` section, which is `at` so many.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn streams(&mut self, program: &Program, at: (usize, usize)) -> Result<Listener, String> {
        let (forward, bind) = forwarding(program, at)?;
        match self {
            Way::Near(bound) => {
                let whose = format!("frontend {}", forward.name);
                bound.open(&program.global, bind, forward.backlog_of(bind), &whose)
            }
            Way::Far(line) => {
                Ok(received(ask(line, &format!("streams {} {}", at.0, at.1))?)?.in_namespace(bind.namespace))
            }
        }
    }

    /// The socket of a `dgram-bind` line of a `log-forward` section, which is `at` so many.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn datagrams(&mut self, program: &Program, at: (usize, usize)) -> Result<SharedDatagram, String> {
        let (forward, dgram) = receiving(program, at)?;
        let whose = format!("frontend {}", forward.name);
        let opened = match self {
            Way::Near(_) => sockets::datagrams(&program.global, dgram),
            // It has its size already.
            Way::Far(line) => {
                SharedDatagram::adopt(ask(line, &format!("datagrams {} {}", at.0, at.1))?, None)
            }
        };
        opened.map_err(|e| sockets::datagram_complaint(dgram, &whose, &e))
    }

    /// A socket of the runtime API.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn api(&mut self, global: &Global, at: usize, bind: &Bind) -> Result<Listener, String> {
        match self {
            Way::Near(bound) => bound.open(global, bind, 1024, "frontend GLOBAL"),
            Way::Far(line) => Ok(received(ask(line, &format!("cli {at}"))?)?.in_namespace(bind.namespace)),
        }
    }

    /// A socket that log lines go to, if somebody listens there.
    ///
    /// # Errors
    /// The other end has gone.
    pub fn log(&mut self, at: usize, path: &[u8]) -> Result<Option<OwnedFd>, String> {
        match self {
            Way::Near(_) => Ok(engine::sinks::connect(path, None)),
            Way::Far(line) => answer(line, &format!("log {at}")),
        }
    }

    /// Everything is there: all sockets begin to listen. Who reads for this process may have given up
    /// meanwhile, and then has told that nothing changed.
    ///
    /// # Errors
    /// Why one can't be had after all.
    pub fn begin(&mut self) -> Result<(), String> {
        match self {
            Way::Near(bound) => bound.begin(),
            Way::Far(line) => match answer(line, "begin")? {
                None => Ok(()),
                Some(_) => Err("The master answers what nobody asked.".to_owned()),
            },
        }
    }
}

/// A `bind` line of a `log-forward` section.
///
/// # Errors
/// There is none.
pub fn forwarding(program: &Program, (section, line): (usize, usize)) -> Result<(&Forward, &Bind), String> {
    let of = program.forwards.get(section);
    of.and_then(|forward| Some((forward, forward.binds.get(line)?))).ok_or_else(unnamed)
}

/// A `dgram-bind` line of a `log-forward` section.
///
/// # Errors
/// There is none.
pub fn receiving(program: &Program, (section, line): (usize, usize)) -> Result<(&Forward, &Dgram), String> {
    let of = program.forwards.get(section);
    of.and_then(|forward| Some((forward, forward.datagrams.get(line)?))).ok_or_else(unnamed)
}

fn unnamed() -> String {
    "The configuration names no such socket.".to_owned()
}

fn received(fd: OwnedFd) -> Result<Listener, String> {
    Listener::received(fd)
        .map_err(|e| format!("A socket that was opened can't be used: {}.", say::reason(&e)))
}

fn ask(line: &mut UnixStream, wish: &str) -> Result<OwnedFd, String> {
    answer(line, wish)?.ok_or_else(|| "The master gives no socket.".to_owned())
}

/// What comes back for a wish: a descriptor, or only that it was done.
fn answer(line: &mut UnixStream, wish: &str) -> Result<Option<OwnedFd>, String> {
    let lost = |e: io::Error| format!("The master does not answer: {}.", say::reason(&e));
    line.write_all(format!("{wish}\n").as_bytes()).map_err(lost)?;
    let (mut mark, mut fds) = ([0], Vec::new());
    match (sys::recv_fds(line.as_fd(), &mut mark, &mut fds).map_err(lost)?, mark) {
        (0, _) => return Err(lost(io::ErrorKind::UnexpectedEof.into())),
        (_, [1]) => return Ok(fds.pop()),
        _ => {}
    }
    let mut length = [0; 2];
    line.read_exact(&mut length).map_err(lost)?;
    let mut why = vec![0; usize::from(u16::from_le_bytes(length))];
    line.read_exact(&mut why).map_err(lost)?;
    Err(String::from_utf8_lossy(&why).into_owned())
}
