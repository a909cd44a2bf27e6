//! Sockets in other network namespaces (setns(2); `namespace` of `bind` and `server` lines).
//!
//! A socket belongs for good to the namespace of the thread that makes it, so a thread goes there for one
//! system call and comes back. The namespaces are opened before the process changes its root and its user;
//! going there takes CAP_SYS_ADMIN.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use base::netns::{MOST, Namespace};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The namespace of the process.
static HOME: OnceLock<OwnedFd> = OnceLock::new();
static OTHERS: [OnceLock<OwnedFd>; MOST] = [const { OnceLock::new() }; MOST];

fn open(path: &std::path::Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a namespace, so that sockets can be made in it from now on, by all threads.
///
/// # Errors
/// What the system says.
pub fn open_namespace(namespace: Namespace) -> io::Result<()> {
    if HOME.get().is_none() {
        let _ = HOME.set(open(std::path::Path::new("/proc/self/ns/net"))?);
    }
    let place = OTHERS.get(namespace.index()).ok_or(io::ErrorKind::OutOfMemory)?;
    if place.get().is_none() {
        let _ = place.set(open(&namespace.path())?);
    }
    Ok(())
}

/// Whether sockets can be made in it.
pub fn is_namespace_open(namespace: Namespace) -> bool {
    OTHERS.get(namespace.index()).is_some_and(|place| place.get().is_some())
}

/// Brings the thread back, whatever happens.
struct Away<'h>(&'h OwnedFd);

impl Drop for Away<'_> {
    fn drop(&mut self) {
        if let Err(e) = enter(self.0) {
            // A thread that stays elsewhere would connect everybody to other machines than was meant.
            eprintln!("A thread can't leave a network namespace ({e}): the process ends.");
            std::process::abort();
        }
    }
}

fn enter(namespace: &OwnedFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Makes a socket in a namespace; `None` is that of the process.
///
/// # Errors
/// ENOENT if the namespace was never opened, EPERM without the right to go there, or what `make` says.
pub(crate) fn within<T>(namespace: Option<Namespace>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(namespace) = namespace else { return make() };
    let there = OTHERS.get(namespace.index()).and_then(OnceLock::get).ok_or(io::ErrorKind::NotFound)?;
    let home = HOME.get().ok_or(io::ErrorKind::NotFound)?;
    enter(there)?;
    let _away = Away(home);
    make()
}
