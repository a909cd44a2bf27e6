//! What of the sinks has to be opened before the process enters its chroot.
//!
//! A path of a Unix socket means something else inside, and the descriptors of standard streams can't be
//! opened anew there. So both are opened once while the whole tree is in sight, and each worker works on a
//! duplicate. HAProxy looks for the path inside the chroot each time; where a socket stands there, it is the
//! one that is meant.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use program::Program;
use program::log::Sink;
use rt::{Addr, Datagram, FdWriter};

use super::ring::Ring;
use super::ring_file::RingFile;

/// Opened sinks, by index of the program.
#[derive(Default)]
pub struct Outlets(Vec<Outlet>);

/// What one sink needs.
pub(super) enum Outlet {
    /// Each worker opens its own.
    Own,
    /// A connected datagram socket.
    Socket(OwnedFd),
    /// A descriptor to write to.
    Writer(Arc<FdWriter>),
}

impl Outlets {
    /// Opens what has to be opened here. What can't be is tried again by the workers when lines come.
    pub fn open(program: &Program) -> Outlets {
        let chroot = program.global.chroot.as_deref();
        let open = |sink: &Sink| match sink {
            Sink::Unix(path) => connect(path, chroot).map_or(Outlet::Own, Outlet::Socket),
            Sink::Fd(fd) => writer(*fd).map_or(Outlet::Own, |w| Outlet::Writer(Arc::new(w))),
            Sink::Udp(_) | Sink::Abstract(_) | Sink::Ring(_) | Sink::Backend(_) | Sink::Server(..) => {
                Outlet::Own
            }
        };
        Outlets(program.sinks.iter().map(open).collect())
    }

    /// Those of a program that takes the place of another, whose places that stay are known; `ask` opens
    /// other sockets, by the index of their sink.
    ///
    /// # Errors
    /// What `ask` says.
    pub fn after<E>(
        program: &Program,
        before: &Program,
        known: &Outlets,
        mut ask: impl FnMut(usize, &[u8]) -> Result<Option<OwnedFd>, E>,
    ) -> Result<Outlets, E> {
        let mut all = Vec::new();
        for (at, sink) in program.sinks.iter().enumerate() {
            let was = before.sinks.iter().position(|was| was == sink).map(|at| known.get(at));
            all.push(match (sink, was) {
                (_, Some(Outlet::Writer(writer))) => Outlet::Writer(writer.clone()),
                (_, Some(Outlet::Socket(fd))) => fd.try_clone().map_or(Outlet::Own, Outlet::Socket),
                (Sink::Unix(path), _) => ask(at, path)?.map_or(Outlet::Own, Outlet::Socket),
                (Sink::Fd(fd), _) => writer(*fd).map_or(Outlet::Own, |w| Outlet::Writer(Arc::new(w))),
                (
                    Sink::Udp(_) | Sink::Abstract(_) | Sink::Ring(_) | Sink::Backend(_) | Sink::Server(..),
                    _,
                ) => Outlet::Own,
            });
        }
        Ok(Outlets(all))
    }

    pub(super) fn get(&self, sink: usize) -> &Outlet {
        self.0.get(sink).unwrap_or(&Outlet::Own)
    }
}

/// The rings of a program that takes the place of another: those of the same name and size go on, and
/// those that have no name but their target.
pub fn rings_after(program: &Program, before: &Program, known: &[Arc<Ring>]) -> Vec<Arc<Ring>> {
    let mut left: Vec<_> = before.rings.iter().zip(known).collect();
    let kept = program.rings.iter().map(|ring| {
        let same = |(was, _): &(&program::log::Ring, _)| {
            let alike = match (is_nameless(was), is_nameless(ring)) {
                (false, false) => was.name == ring.name,
                (true, true) => targets(was) == targets(ring),
                _ => false,
            };
            alike && (was.size, &was.file) == (ring.size, &ring.file)
        };
        let at = left.iter().position(same);
        let Some(at) = at else { return Arc::new(made(ring)) };
        let kept = left.remove(at).1.clone();
        kept.succeed(ring.servers.iter().map(|server| &*server.name));
        kept
    });
    kept.collect()
}

/// The ring of a `log` line: it is numbered, and may have another number in another configuration.
fn is_nameless(ring: &program::log::Ring) -> bool {
    ring.name.starts_with("ring#")
}

fn targets(ring: &program::log::Ring) -> Vec<&model::server::Target> {
    ring.servers.iter().map(|server| &server.target).collect()
}

/// A socket connected to a path as it is inside the chroot or, failing that, as it is here.
pub fn connect(path: &[u8], chroot: Option<&Path>) -> Option<OwnedFd> {
    use std::os::unix::ffi::OsStrExt;
    let inside = chroot.map(|folder| [folder.as_os_str().as_bytes(), b"/", path].concat());
    let socket = inside.and_then(|p| Datagram::connect(&Addr::Unix(p)).ok());
    socket.or_else(|| Datagram::connect(&Addr::Unix(path.to_vec())).ok())?.into_fd().ok()
}

/// A writer on an inherited descriptor.
pub(super) fn writer(fd: i32) -> Option<FdWriter> {
    let owned = rt::sys::inherited(fd).ok()?;
    let borrowed: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(&owned);
    FdWriter::new(borrowed).ok()
}

/// The rings of a program.
pub fn rings(program: &Program) -> Vec<Arc<Ring>> {
    program.rings.iter().map(|r| Arc::new(made(r))).collect()
}

fn made(r: &program::log::Ring) -> Ring {
    match &r.file {
        // That it can be written was seen when the configuration was read.
        Some(path) => match RingFile::create(path, r.size) {
            Ok(file) => Ring::with_file(r.size, file),
            Err(e) => {
                let path = path.display();
                Ring::without_file(r.size, format!("has no backing file '{path}': {e}"))
            }
        },
        None => Ring::new(r.size),
    }
}
