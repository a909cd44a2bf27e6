//! A master replaces its own program: what goes from the old one to the new one. The state is text in a
//! variable of the environment, which the new program takes out at once; the descriptors stay open under
//! their numbers.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Write;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rt::sys;

use supervisor::machine::Machine;

/// The variable. It is gone before anybody else looks.
const VARIABLE: &str = "HARRIER_MASTER";

/// What stands between the state of the machine and the descriptors.
const BETWEEN: &str = "--\n";

/// What a master has over a reload.
pub struct Kept {
    /// Its state.
    pub machine: Machine,
    /// The ways to its workers, by their process ids.
    pub lines: BTreeMap<i32, OwnedFd>,
    /// The socket on which its commands are taken.
    pub socket: Option<OwnedFd>,
    /// Clients that wait to be told how the reload went.
    pub waiting: Vec<OwnedFd>,
}

impl Kept {
    /// What a master has at first.
    pub fn new(machine: Machine) -> Kept {
        Kept { machine, lines: BTreeMap::new(), socket: None, waiting: Vec::new() }
    }

    /// What the program before this one left, if there was one.
    pub fn take() -> Option<Kept> {
        let text = sys::take_variable(VARIABLE)?;
        let (state, numbers) = text.split_once(BETWEEN)?;
        let mut kept = Kept::new(Machine::resume(state)?);
        for child in &kept.machine.children {
            if let Ok(line) = sys::claim(child.line) {
                kept.lines.insert(child.pid, line);
            }
        }
        for line in numbers.lines() {
            let Some((kind, number)) = line.split_once(' ') else { continue };
            let fd = number.parse().map_err(|_| io::ErrorKind::InvalidData.into()).and_then(sys::claim);
            match (kind, fd) {
                ("socket", Ok(fd)) => kept.socket = Some(fd),
                ("waiting", Ok(fd)) => kept.waiting.push(fd),
                _ => {}
            }
        }
        Some(kept)
    }

    /// The way to the worker that has the sockets: the youngest.
    pub fn predecessor(mut self) -> Option<OwnedFd> {
        let pid = self.machine.first()?.pid;
        self.lines.remove(&pid)
    }
}

/// What has to stay open, beside the lines that the state names.
pub struct Open<'o> {
    /// The ways to the workers.
    pub lines: &'o BTreeMap<i32, OwnedFd>,
    /// The socket on which commands are taken.
    pub socket: Option<OwnedFd>,
    /// Clients that wait.
    pub waiting: &'o [OwnedFd],
}

/// Replaces this program by the one that its name leads to now. Only returns if that fails.
pub fn replace(path: &Path, home: Option<&Path>, machine: &Machine, open: &Open<'_>) -> io::Error {
    let mut text = machine.keep() + BETWEEN;
    let all = open.lines.values().chain(&open.socket).chain(open.waiting);
    for fd in all {
        if let Err(e) = sys::set_inheritable(fd, true) {
            return e;
        }
    }
    if let Some(socket) = &open.socket {
        let _ = writeln!(text, "socket {}", socket.as_raw_fd());
    }
    for client in open.waiting {
        let _ = writeln!(text, "waiting {}", client.as_raw_fd());
    }
    // Relative paths on the command line count from where it was given.
    if let Some(home) = home
        && let Err(e) = std::env::set_current_dir(home)
    {
        return e;
    }
    let words: Result<Vec<CString>, _> = std::env::args_os().map(|a| CString::new(a.into_vec())).collect();
    let Ok(words) = words else { return io::ErrorKind::InvalidInput.into() };
    sys::exec_with(path, &words, VARIABLE, &text)
}

/// Where this program lies: by its name, so that another one that was put there is found, too.
pub fn own_path() -> PathBuf {
    let name = std::env::args_os().next().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    if name.as_bytes().contains(&b'/') {
        return here.join(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| here.join(folder).join(&name))
        .find(|p| p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0));
    found.or_else(|| std::env::current_exe().ok()).unwrap_or_default()
}
