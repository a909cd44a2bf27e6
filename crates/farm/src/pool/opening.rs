//! Connections of many streams on their way.

use std::cell::RefCell;
use std::rc::Rc;

use rt::Notify;

use super::Identity;

/// A connection that is being opened.
pub struct Opening {
    /// What it may stand in for.
    pub identity: Identity,
    /// The client connection that it is opened for.
    pub session: u64,
    /// Streams that it will have for others.
    pub room: usize,
    /// Who waits for it.
    pub waiting: RefCell<Vec<Rc<Notify>>>,
}
