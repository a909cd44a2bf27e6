//! Reading a configuration for a worker that can't: it may sit in a chroot, under another user.
//!
//! A child of the master, which has its root and its rights, reads the files and writes down what it read
//! ([`base::outside`]). The worker gets that piece by piece and compiles it beside the child, against what
//! is alive there; then it asks for the sockets that it has not got. It may only ask for those that the
//! configuration names, by their place in it, which the child knows because it compiles, too.
//!
//! ```text
//! child: _adopt LF          worker: go LF
//! child: what it reads, while it reads it; 0 | 1 (check) | 2, eight bytes of length, what is wrong
//! worker: front P B LF | streams S B LF | datagrams S B LF | cli N LF | log N LF
//!                           child: 1 with a descriptor | 0, two bytes of length, why not
//!                                  1 alone: nobody takes these log lines now
//! worker: begin LF          child: 1: the sockets listen from now on | 0, two bytes of length, why not
//! worker: done LETTER LF, and what there is to say, up to the end
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base::outside;
use program::Program;
use program::log::Sink;
use rt::sys;
use wire::handover::ADOPT;

use crate::args::Args;
use crate::config::{self, Renewed};
use crate::inplace::{self, Bound};
use crate::{say, sockets};

/// The word that begins it, which clients of the master may not say.
pub const CALL: &str = "_adopt";

/// How long the worker may take for a step. Once it has begun to adopt a configuration there is no way back,
/// and it is waited for to its end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Reads, talks to the worker at the end of `line`, and tells on `report` what became of it.
pub fn run(args: &Args, line: &OwnedFd, report: &OwnedFd, check: bool) -> ! {
    let _ = sys::end_with_parent();
    let _ = sys::set_priority(inplace::NICE);
    let told = talk(args, line, check).unwrap_or_else(|e| {
        let text = format!("The worker does not answer: {}.", say::reason(&e));
        b"R".iter().copied().chain(say::plain("[ALERT]", &text).into_bytes()).collect()
    });
    if let Ok(report) = report.try_clone() {
        let _ = UnixStream::from(report).write_all(&told);
    }
    std::process::exit(0)
}

fn talk(args: &Args, line: &OwnedFd, check: bool) -> io::Result<Vec<u8>> {
    let (mut stream, theirs) = UnixStream::pair()?;
    sys::send_fds(line.as_fd(), &[0], &[theirs.as_fd()])?;
    drop(theirs);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(ADOPT)?;
    let mut go = [0; 3];
    stream.read_exact(&mut go)?;
    outside::record(stream.try_clone()?);
    let read = config::again(args, None);
    outside::recorded()?;
    match &read {
        Ok(_) => stream.write_all(&[u8::from(check)])?,
        Err(text) => {
            stream.write_all(&[&[2][..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat())?;
        }
    }
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut bound = Bound::default();
    let mut wish = String::new();
    loop {
        wish.clear();
        if lines.read_line(&mut wish)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let words: Vec<&str> = wish.split_ascii_whitespace().collect();
        if let ["done", letter] = words.as_slice() {
            let mut told = letter.as_bytes().to_vec();
            lines.read_to_end(&mut told)?;
            return Ok(told);
        }
        let Ok(Renewed { program, .. }) = &read else { return Err(io::ErrorKind::InvalidData.into()) };
        let given = match words.as_slice() {
            ["begin"] => bound.begin().map(|()| None),
            _ => give(program, &mut bound, &words),
        };
        if given.is_ok() && words == ["begin"] {
            stream.set_read_timeout(None)?;
        }
        match given {
            Ok(Some(fd)) => drop(sys::send_fds(stream.as_fd(), &[1], &[fd.as_fd()])?),
            Ok(None) => stream.write_all(&[1])?,
            Err(why) => {
                let why = why.as_bytes().get(..why.len().min(60_000)).unwrap_or_default();
                let length = u16::try_from(why.len()).unwrap_or(0).to_le_bytes();
                stream.write_all(&[&[0][..], &length, why].concat())?;
            }
        }
    }
}

/// Opens what a worker asks for, as the configuration says it; `None`: it has to do without.
fn give(program: &Program, bound: &mut Bound, words: &[&str]) -> Result<Option<OwnedFd>, String> {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let wrong = || "The worker asks for something that the configuration does not name.".to_owned();
    let mut opened = |bind: &program::Bind, backlog: u32, whose: &str| {
        let listener = bound.open(&program.global, bind, backlog, whose)?;
        let copy = listener.fd().and_then(|fd| fd.try_clone_to_owned());
        copy.map_err(|e| sockets::complaint(bind, whose, &e))
    };
    match (words.first().copied(), number(1), number(2)) {
        (Some("front"), Some(p), Some(b)) => {
            let proxy = program.proxies.configured(p).ok_or_else(wrong)?;
            let bind = proxy.binds.get(b).ok_or_else(wrong)?;
            let whose = format!("{} {}", sockets::noun(proxy), proxy.name);
            opened(bind, engine::listener::backlog(proxy, bind), &whose)
        }
        (Some("streams"), Some(s), Some(b)) => {
            let (forward, bind) = inplace::forwarding(program, (s, b))?;
            opened(bind, forward.backlog_of(bind), &format!("frontend {}", forward.name))
        }
        (Some("datagrams"), Some(s), Some(d)) => {
            let (forward, dgram) = inplace::receiving(program, (s, d))?;
            let copy = sockets::datagrams(&program.global, dgram).and_then(|socket| socket.copy());
            copy.map_err(|e| sockets::datagram_complaint(dgram, &format!("frontend {}", forward.name), &e))
        }
        (Some("cli"), Some(n), None) => {
            opened(program.global.cli.get(n).ok_or_else(wrong)?, 1024, "frontend GLOBAL")
        }
        (Some("log"), Some(n), None) => {
            let Some(Sink::Unix(path)) = program.sinks.get(n) else { return Err(wrong()) };
            return Ok(engine::sinks::connect(path, program.global.chroot.as_deref()));
        }
        _ => Err(wrong()),
    }
    .map(Some)
}
