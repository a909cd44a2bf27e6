//! What carries the records of TLS.

use std::io;

use rt::{Direction, RecordKey, Support};

/// What carries the records. It may be able to make them itself, and is then asked to carry data as it is.
pub trait Wire {
    /// Reads some bytes; `None` when that has to be awaited, 0 at the end.
    fn recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>>;
    /// Writes some bytes; `None` when that has to be awaited. `more` follows at once.
    fn send(&self, data: &[u8], more: bool) -> Option<io::Result<usize>>;

    /// Prepares for making records, and says how far that goes.
    fn attach(&self) -> Support {
        Support::None
    }

    /// Takes the key of a direction, and makes its records from now on.
    ///
    /// # Errors
    /// If it can't.
    fn offload(&self, _: Direction, _: &RecordKey<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads some bytes of one content type; `None` when that has to be awaited, 0 and 0 at the end.
    fn recv_record(&self, _: &mut [u8]) -> Option<io::Result<(u8, usize)>> {
        Some(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Writes a record of a content type other than data; `None` when that has to be awaited.
    fn send_record(&self, _kind: u8, _: &[u8]) -> Option<io::Result<usize>> {
        Some(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Writes some data, of two pieces; `None` when that has to be awaited.
    fn send_data(&self, _: &[u8], _: &[u8]) -> Option<io::Result<usize>> {
        Some(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Lets things go on after an error, as far as they can.
    fn forget_error(&self) {}

    /// Whether what is written next is sent at once, behind all that was written before.
    fn has_room(&self) -> bool {
        true
    }
}

impl Wire for rt::Socket {
    fn recv(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        self.try_recv(buf)
    }

    fn send(&self, data: &[u8], more: bool) -> Option<io::Result<usize>> {
        self.try_send(data, more)
    }

    fn attach(&self) -> Support {
        let support = rt::kernel_tls();
        if support == Support::None || self.attach_tls().is_err() { Support::None } else { support }
    }

    fn offload(&self, direction: Direction, key: &RecordKey<'_>) -> io::Result<()> {
        rt::Socket::offload(self, direction, key)
    }

    fn recv_record(&self, buf: &mut [u8]) -> Option<io::Result<(u8, usize)>> {
        self.try_recv_record(buf)
    }

    fn send_record(&self, kind: u8, data: &[u8]) -> Option<io::Result<usize>> {
        self.try_send_record(kind, data)
    }

    fn send_data(&self, first: &[u8], second: &[u8]) -> Option<io::Result<usize>> {
        self.try_send_data(first, second)
    }

    fn forget_error(&self) {
        let _ = self.take_error();
    }

    fn has_room(&self) -> bool {
        rt::Socket::has_room(self)
    }
}

/// What comes next from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Data.
    Data,
    /// The end: it said so, or its connection ended.
    End,
    /// Nothing more: TLS is broken, or the connection.
    Broken,
    /// Whatever the kernel has opened, which can't be put back once it is read.
    Hidden,
}
