//! Connections whose records the kernel makes (`ktls on`): data goes over the wire as it is, alerts and
//! handshake messages with their content type.
//!
//! A direction goes to the kernel when nothing stands in the way: that of sending once all that was sealed
//! here has been sent, that of receiving at the border of a record. Until then reads end at such a border,
//! for what is read here the kernel never sees. What the kernel refuses stays here, and nobody notices.
//!
//! A peer of TLS 1.3 may change its key at any time, and a kernel before 6.14 takes one key only: what comes
//! next it could not read. With such kernels records of TLS 1.3 are only sealed there, and opened here. If
//! the peer then asks for a new key of ours, too, there is none to be had, and the connection ends with an
//! alert before any more data is sent (RFC 8446 section 4.6.3 forbids to go on with the old one).

use std::io;

use rt::{Cipher, Direction, RecordKey, Support};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

use super::{FATAL, KEY_UPDATE, Kept, Stream, WARNING, Wire};
use crate::record::{self, Bad, Key, content};
use crate::room::{HEADER, MAX_PLAIN};

/// Who seals or opens the records of a direction.
enum Lane {
    /// We do.
    Here,
    /// We do, until the kernel gets this key.
    Going(ConnectionTrafficSecrets),
    /// The kernel.
    There,
}

/// What is kept of a connection that the kernel has to do with.
pub(super) struct Offload {
    tx: Lane,
    rx: Lane,
    /// The kernel takes another key.
    renewable: bool,
    /// Records that the kernel has made with the key at hand, or more than these.
    records: u64,
    /// The first byte of an alert.
    half: Option<u8>,
}

impl Stream {
    /// From now on the kernel makes the records, as soon and as far as possible. The keys are those at hand.
    pub(crate) fn give_to_kernel(
        &mut self,
        wire: &impl Wire,
        tx: ConnectionTrafficSecrets,
        rx: ConnectionTrafficSecrets,
    ) {
        let support = wire.attach();
        if support == Support::None {
            return;
        }
        let renewable = support == Support::Renewable;
        let rx = if renewable || !self.is_tls13() { Lane::Going(rx) } else { Lane::Here };
        let tx = Lane::Going(tx);
        self.offload = Some(Box::new(Offload { tx, rx, renewable, records: 0, half: None }));
    }

    pub(super) fn is_tls13(&self) -> bool {
        self.version == ProtocolVersion::TLSv1_3
    }

    /// Whether data may be read from the wire as it is, past this stream.
    pub fn gives_plain(&self) -> bool {
        self.offload.as_ref().is_some_and(|o| matches!(o.rx, Lane::There))
            && self.input.is_none()
            && self.early.is_empty()
            && self.late.is_empty()
            && !self.eof
            && !self.broken
    }

    /// Whether data may be written to the wire as it is, past this stream; tell [`Stream::passed`] of it.
    pub fn takes_plain(&self) -> bool {
        self.sends_there()
            && self.owed == 0
            && !self.closed
            && !self.update_asked
            && !self.is_old()
            && !self.is_worn()
            && self.sizes.first == 0
            && self.sizes.hard == 0
    }

    /// Before data goes past this stream: replaces the key if that is due; `None` when that has to be
    /// awaited.
    pub fn try_refresh(&mut self, wire: &impl Wire) -> Option<io::Result<()>> {
        let may = !self.closed && !self.is_worn() && self.refresh(wire)?;
        Some(if may { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) })
    }

    /// So many bytes went past this stream at once.
    pub fn passed(&mut self, bytes: usize) {
        if let Some(offload) = &mut self.offload {
            offload.records += 2 + (bytes / MAX_PLAIN) as u64;
        }
    }

    /// Whether the kernel seals what is sent.
    pub(super) fn sends_there(&self) -> bool {
        self.offload.as_ref().is_some_and(|o| matches!(o.tx, Lane::There))
    }

    /// Whether the key for sending should be replaced.
    pub(super) fn is_old(&self) -> bool {
        match &self.offload {
            Some(o) if self.sends_there() => o.renewable && self.is_tls13() && record::is_old(o.records),
            _ => self.tx.is_old(),
        }
    }

    /// Whether no more may be sent with the key for sending.
    pub(super) fn is_worn(&self) -> bool {
        match &self.offload {
            Some(o) if self.sends_there() => record::is_worn(o.records),
            _ => self.tx.is_worn(),
        }
    }

    /// Whether the kernel seals what is sent next. Nothing may be sealed here and not yet sent.
    pub(super) fn sends_from_now(&mut self, wire: &impl Wire) -> bool {
        let Some(offload) = &mut self.offload else { return false };
        if self.output.is_none()
            && let Lane::Going(secrets) = &offload.tx
        {
            let seq = self.tx.seq();
            // Numbers that were used here must not come again: an explicit nonce starts far from them.
            let given = offer(wire, Direction::Send, self.version, secrets, seq);
            offload.records = seq;
            offload.tx = if given.is_ok() { Lane::There } else { Lane::Here };
        }
        matches!(offload.tx, Lane::There)
    }

    /// Whether the kernel opens what comes next.
    pub(super) fn receives_from_now(&mut self, wire: &impl Wire) -> bool {
        let Some(offload) = &mut self.offload else { return false };
        if self.input.is_none()
            && let Lane::Going(secrets) = &offload.rx
        {
            let given = offer(wire, Direction::Receive, self.version, secrets, self.rx.seq());
            offload.rx = if given.is_ok() { Lane::There } else { Lane::Here };
        }
        matches!(offload.rx, Lane::There)
    }

    /// Whether the wire has to say that there is nothing more: what the kernel opens, or begins to, may end
    /// short of it where another content type begins, and nobody would tell of that again.
    pub(super) fn asks_on(&self) -> bool {
        self.offload.as_ref().is_some_and(|o| !matches!(o.rx, Lane::Here))
    }

    /// Most bytes to read now, so that the kernel may begin with the next record.
    pub(super) fn until_border(&self) -> usize {
        let going = self.offload.as_ref().is_some_and(|o| matches!(o.rx, Lane::Going(_)));
        let bytes = self.input.as_ref().map_or(&[][..], |r| r.filled());
        match bytes {
            _ if !going => usize::MAX,
            [_, _, _, high, low, ..] => {
                let whole = HEADER + usize::from(u16::from_be_bytes([*high, *low]));
                whole.saturating_sub(bytes.len()).max(1)
            }
            _ => HEADER - bytes.len(),
        }
    }

    /// Reads what the kernel has opened: `Ok(0)` when that was no data.
    pub(super) fn recv_there(&mut self, wire: &impl Wire, out: &mut [u8]) -> Option<io::Result<usize>> {
        let (kind, len) = match wire.recv_record(out)? {
            Ok(read) => read,
            Err(e) => {
                let Some(bad) = fault(&e) else { return Some(Err(e)) };
                self.fail(wire, bad);
                return Some(Ok(0));
            }
        };
        let read = match kind {
            0 => {
                self.eof = true;
                return Some(Ok(0));
            }
            content::DATA if len > 0 && self.late.is_empty() => {
                self.idle_records = 0;
                return Some(Ok(len));
            }
            content::DATA if len > 0 => Err(record::UNEXPECTED),
            kind => self.control_there(wire, kind, out.get(..len).unwrap_or_default()),
        };
        if let Err(bad) = read {
            self.fail(wire, bad);
        }
        Some(Ok(0))
    }

    /// A piece of what is no data. Whoever reads may have had room for one byte only.
    fn control_there(&mut self, wire: &impl Wire, kind: u8, piece: &[u8]) -> Result<(), Bad> {
        let half = self.offload.as_mut().and_then(|o| o.half.take());
        match (kind, half, piece) {
            (content::ALERT, None, [level]) => {
                if let Some(offload) = &mut self.offload {
                    offload.half = Some(*level);
                }
                Ok(())
            }
            (content::ALERT, Some(level), [what]) => self.control(wire, kind, &[level, *what]),
            (_, None, piece) => self.control(wire, kind, piece),
            _ => Err(record::DECODE),
        }
    }

    /// Sends data that the kernel seals.
    pub(super) fn send_there(
        &mut self,
        wire: &impl Wire,
        first: &[u8],
        second: &[u8],
    ) -> Option<io::Result<usize>> {
        let limited = self.sizes.first != 0 || self.sizes.hard != 0;
        let most = if limited { self.fragment() } else { usize::MAX };
        let first = &first[..first.len().min(most)];
        let second = &second[..second.len().min(most - first.len())];
        let sent = wire.send_data(first, second)?;
        if let Ok(n) = sent {
            self.passed(n);
            self.burst.0 = self.burst.0.saturating_add(n as u32);
        }
        Some(sent)
    }

    /// Replaces the key of the kernel for sending; `None` if that has to be awaited. Whether it was possible.
    pub(super) fn refresh_there(&mut self, wire: &impl Wire) -> Option<bool> {
        if !self.offload.as_ref().is_some_and(|o| o.renewable) {
            self.fail(wire, record::INTERNAL);
            return Some(false);
        }
        if wire.send_record(content::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0])?.is_err() {
            return Some(false);
        }
        self.update_asked = false;
        let fresh = match &mut self.kept {
            Kept::Server(conn) => conn.update_tx_secret(),
            Kept::Client(conn) => conn.update_tx_secret(),
            Kept::Nothing => return Some(false),
        };
        let given = fresh
            .is_ok_and(|(seq, secrets)| offer(wire, Direction::Send, self.version, &secrets, seq).is_ok());
        if let Some(offload) = &mut self.offload {
            offload.records = 0;
        }
        Some(given)
    }

    /// The peer has another key.
    pub(super) fn renew_rx(
        &mut self,
        wire: &impl Wire,
        (seq, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<(), Bad> {
        if self.offload.as_ref().is_some_and(|o| matches!(o.rx, Lane::There)) {
            return offer(wire, Direction::Receive, self.version, &secrets, seq)
                .map_err(|_| record::INTERNAL);
        }
        self.rx = Key::new(self.version, seq, &secrets).ok_or(record::UNEXPECTED)?;
        if let Some(offload) = &mut self.offload
            && let Lane::Going(old) = &mut offload.rx
        {
            *old = secrets;
        }
        Ok(())
    }

    /// We have another key.
    pub(super) fn renew_tx(&mut self, (seq, secrets): (u64, ConnectionTrafficSecrets)) -> bool {
        let Some(key) = Key::new(self.version, seq, &secrets) else { return false };
        self.tx = key;
        if let Some(offload) = &mut self.offload
            && let Lane::Going(old) = &mut offload.tx
        {
            *old = secrets;
        }
        true
    }

    /// Sends a short message that is no data, if the wire takes it.
    pub(super) fn say(&mut self, wire: &impl Wire, kind: u8, message: &[u8; 2]) {
        if self.sends_there() {
            let said = wire.send_record(kind, message);
            // A record that the kernel could not open stands in the way of all that follows.
            if matches!(said, Some(Err(_))) && message[0] == FATAL {
                wire.forget_error();
                let _ = wire.send_record(kind, message);
            }
            return;
        }
        self.queue(kind, message);
        let _ = self.flush(wire, false);
    }

    /// Whether the kernel may hold sealed records that would be lost if the connection were closed now: the
    /// end of data has to be told later.
    pub fn must_drain(&self, wire: &impl Wire) -> bool {
        self.sends_there() && !self.closed && !self.muted && !self.broken && !wire.has_room()
    }

    /// Leaves it to somebody else to tell the peer of the end of data.
    pub fn leave_close(&mut self) {
        self.closed = true;
    }
}

/// Tells the peer of a connection whose records the kernel makes that no more data comes.
pub fn say_closed(wire: &impl Wire) {
    let _ = wire.send_record(content::ALERT, &[WARNING, super::CLOSE_NOTIFY]);
}

/// Offers a key to the kernel.
fn offer(
    wire: &impl Wire,
    direction: Direction,
    version: ProtocolVersion,
    secrets: &ConnectionTrafficSecrets,
    seq: u64,
) -> io::Result<()> {
    let (cipher, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Cipher::Chacha20Poly1305, key, iv),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let tls13 = version == ProtocolVersion::TLSv1_3;
    let mut iv = <[u8; 12]>::try_from(iv.as_ref()).map_err(|_| io::ErrorKind::InvalidInput)?;
    if !tls13 && cipher != Cipher::Chacha20Poly1305 {
        // The kernel counts explicit nonces up from this one. Ours were the initial one with the number of
        // the record mixed in, so those that differ in the highest bit were never used, nor will the count
        // come to the others.
        iv[4] ^= 0x80;
    }
    wire.offload(direction, &RecordKey { tls13, cipher, key: key.as_ref(), iv: &iv, seq })
}

/// What the peer did wrong, as the kernel tells it.
fn fault(e: &io::Error) -> Option<Bad> {
    const EINVAL: i32 = 22;
    const EBADMSG: i32 = 74;
    const EMSGSIZE: i32 = 90;
    match e.raw_os_error()? {
        EBADMSG => Some(record::BAD_MAC),
        EMSGSIZE => Some(record::OVERFLOW),
        EINVAL => Some(record::UNEXPECTED),
        _ => None,
    }
}
