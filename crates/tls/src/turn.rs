//! What one turn of a handshake came to.

/// What a turn came to.
pub(crate) enum Turn {
    /// Something was done; there may be something to send.
    Again,
    /// The peer waits for what is to be sent.
    Flush,
    /// More has to come.
    Read,
    /// More has to come; meanwhile early data may be sent.
    Ahead,
    /// The handshake is done.
    Done,
    /// No certificate fits, or something else that rustls does not look at; with the alert that says so.
    Refused(u8),
    /// The peer sends nothing more.
    Closed,
}
