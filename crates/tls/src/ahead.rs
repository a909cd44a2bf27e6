//! Data that go out before the handshake is over: a client's early data (RFC 8446 section 4.2.10), and what a
//! server sends behind its last message, which is not the last of all (section 4.4.4).
//!
//! rustls seals them as long as it may. A client's early data can be sealed only while rustls believes that
//! its hello is not sent yet, so it is not told so before that is over.

use rustls::Error;
use rustls::client::ClientConnectionData;
use rustls::server::ServerConnectionData;
use rustls::unbuffered::{ReadEarlyData, TransmitTlsData, WriteTraffic};

use crate::room::{HEADER, Room};
use crate::turn::Turn;

/// Most plaintext in a record, so that it fits beside messages that wait.
const MOST: usize = 8192;
/// So many bytes that may have to be sent again are enough; with what a last record brings they fit a buffer.
const KEPT: usize = 8000;
/// What a record of TLS 1.3 adds to its plaintext: header, type, tag.
const EXTRA: usize = HEADER + 1 + 16;
/// An `EndOfEarlyData` message on the wire: rustls tells nobody whether a server took early data, but it
/// sends this message where it did and nowhere else.
const END_OF_EARLY_DATA: usize = 4 + EXTRA;

/// What is sent ahead, and how far that went.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Data flow.
    pub begun: bool,
    /// To be sealed next.
    plain: Vec<u8>,
    /// As client: bytes that were sealed as early data.
    sent: usize,
    /// As client: they are kept, to be sent again if the server does not take them.
    kept: Option<Vec<u8>>,
    /// As client: there can't be more of them.
    full: bool,
    /// As client: length of the first message after the hello.
    answer: Option<usize>,
    /// As server: the end of data is to be announced.
    farewell: bool,
}

impl Ahead {
    /// Takes as much of the bytes as fits a record.
    pub fn stage(&mut self, first: &[u8], second: &[u8]) -> usize {
        let (a, b) = (first.len().min(MOST), second.len().min(MOST.saturating_sub(first.len())));
        self.plain.clear();
        self.plain.extend_from_slice(first.get(..a).unwrap_or_default());
        self.plain.extend_from_slice(second.get(..b).unwrap_or_default());
        self.plain.len()
    }

    /// What was staged and not sealed is forgotten; how much that is.
    pub fn unstage(&mut self) -> usize {
        let left = self.plain.len();
        self.plain.clear();
        left
    }

    /// Whether something is to be sealed.
    pub fn is_staged(&self) -> bool {
        self.farewell || !self.plain.is_empty()
    }

    /// As client: what a server does not take is to be sent again.
    pub fn keep(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// What is to be sent again.
    pub fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }

    /// As server: no more data will come.
    pub fn say_farewell(&mut self) {
        self.farewell = true;
    }

    /// Whether nothing more can be sent before the handshake is over.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// rustls made a message of so many bytes.
    pub fn note_message(&mut self, length: usize) {
        if self.begun && self.answer.is_none() {
            self.answer = Some(length);
        }
    }

    /// Whether the server, whose session was `resumed` or not, refused what was sent to it.
    pub fn was_refused(&self, resumed: bool) -> bool {
        self.sent > 0 && !(resumed && self.answer == Some(END_OF_EARLY_DATA))
    }

    /// Seals what is staged with the keys of the connection.
    pub fn seal<Data: Transmit>(
        &mut self,
        mut keys: WriteTraffic<'_, Data>,
        output: &mut Option<Room>,
    ) -> Result<Turn, Error> {
        if !Data::SERVES || !self.is_staged() {
            return Ok(Turn::Done);
        }
        let room = output.get_or_insert_default();
        let sealed = match self.plain.is_empty() {
            true => keys.queue_close_notify(room.spare_mut()),
            false => keys.encrypt(&self.plain, room.spare_mut()),
        };
        room.advance(sealed.map_err(|e| Error::General(e.to_string()))?);
        self.farewell &= !self.plain.is_empty();
        self.plain.clear();
        Ok(Turn::Again)
    }
}

/// What a side does when its messages are ready to be sent.
pub(crate) trait Transmit: Sized {
    /// It is the server.
    const SERVES: bool;
    /// Does it.
    ///
    /// # Errors
    /// What rustls refuses.
    fn transmit(
        data: TransmitTlsData<'_, Self>,
        output: &mut Option<Room>,
        ahead: &mut Ahead,
    ) -> Result<Turn, Error>;

    /// Appends early data that came.
    ///
    /// # Errors
    /// What rustls says of them.
    fn early(data: ReadEarlyData<'_, '_, Self>, to: &mut Vec<u8>) -> Result<(), Error>;
}

impl Transmit for ServerConnectionData {
    const SERVES: bool = true;

    fn transmit(data: TransmitTlsData<'_, Self>, _: &mut Option<Room>, _: &mut Ahead) -> Result<Turn, Error> {
        data.done();
        Ok(Turn::Flush)
    }

    fn early(mut data: ReadEarlyData<'_, '_, Self>, to: &mut Vec<u8>) -> Result<(), Error> {
        while let Some(record) = data.next_record() {
            to.extend_from_slice(record?.payload);
        }
        Ok(())
    }
}

impl Transmit for ClientConnectionData {
    const SERVES: bool = false;

    fn transmit(
        mut data: TransmitTlsData<'_, Self>,
        output: &mut Option<Room>,
        ahead: &mut Ahead,
    ) -> Result<Turn, Error> {
        let Some(mut keys) = data.may_encrypt_early_data() else {
            ahead.full = true;
            data.done();
            return Ok(Turn::Flush);
        };
        if ahead.plain.is_empty() || ahead.full {
            return Ok(Turn::Ahead);
        }
        let room = output.get_or_insert_default();
        let sealed = keys.encrypt(&ahead.plain, room.spare_mut());
        let sealed = sealed.map_err(|e| Error::General(e.to_string()))?;
        room.advance(sealed);
        let taken = sealed.saturating_sub(EXTRA).min(ahead.plain.len());
        ahead.sent += taken;
        // The server's limit ends it.
        ahead.full = taken < ahead.plain.len();
        if let Some(kept) = &mut ahead.kept {
            kept.extend_from_slice(ahead.plain.get(..taken).unwrap_or_default());
            ahead.full |= kept.len() > KEPT;
        }
        ahead.plain.drain(..taken);
        Ok(Turn::Again)
    }

    fn early(_: ReadEarlyData<'_, '_, Self>, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}
