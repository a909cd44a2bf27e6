//! The master process (`-W`, `-Ws`) without its sockets and children: [`machine`] decides, [`line`] is what a
//! worker and its master say to each other, [`route`] and [`said`] read what clients say on the master's
//! socket (management guide, chapter 4). `harrier::master` does what is decided here.

pub mod line;
pub mod machine;
pub mod route;
pub mod said;

/// What the service manager is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The process serves.
    Ready,
    /// A reload begins.
    Reloading,
    /// The reload failed; the worker before goes on.
    ReloadFailed,
    /// The process leaves.
    Stopping,
}
