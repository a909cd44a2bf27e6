//! What `set-bandwidth-limit` decided for a stream.

use stick::Tracked;

/// A limit on the bytes of one direction.
#[derive(Debug)]
pub struct Bandwidth {
    /// Place of its filter among those of the stream: the first to be applied has the lowest.
    pub order: u32,
    /// It is for what the client sends.
    pub upload: bool,
    /// Fewer bytes than this are passed on only at the end of what is there.
    pub min_size: u64,
    /// Bytes in a period.
    pub limit: u64,
    /// Who shares it.
    pub share: Share,
}

/// Who shares a limit.
#[derive(Debug)]
pub enum Share {
    /// The stream alone: the period in ms.
    Alone {
        /// The period, ms.
        period: u32,
    },
    /// All streams that hold this entry; its table knows the period of the rate.
    Entry(Tracked),
}
