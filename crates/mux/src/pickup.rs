//! From the user of a stream to frames: bodies come in the form of HTTP/1, through a stream inside the
//! worker.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rt::{Buf, Socket};
use wire::head::Head;
use wire::http1::{Body, Scanner, split_trailers};

use crate::carrier::Carrier;
use crate::outbox::Outbox;
use crate::trailers::Trailers;

/// Where a message is.
pub enum Stage {
    /// Its head is awaited.
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    /// The body comes in chunks.
    Chunked(Scanner),
    /// The body ends with the stream; so do tunnels.
    Close,
    /// The body is sent; what follows it is not.
    Trailers,
    /// All is sent.
    Done,
}

impl From<Body> for Stage {
    fn from(body: Body) -> Stage {
        match body {
            Body::None => Stage::Done,
            Body::Length(length) => Stage::Length(length),
            Body::Chunked => Stage::Chunked(Scanner::default()),
            Body::UntilClose => Stage::Close,
        }
    }
}

/// What comes is no body.
#[derive(Debug)]
pub struct Malformed;

/// What the user of a stream sends.
pub struct Pickup {
    pub stage: Stage,
    /// What came and is not understood yet.
    pub buf: Option<Buf>,
    /// The user has said all it had to say.
    pub ended: bool,
    /// Data taken out of chunks and not sent.
    plain: Vec<u8>,
    plain_ends: bool,
    /// Those behind the chunks.
    fields: Vec<u8>,
    /// What follows a body whose length is declared.
    pub trailers: Option<Rc<Trailers>>,
}

impl Pickup {
    /// Nothing so far.
    pub fn new(stage: Stage) -> Pickup {
        let (plain, fields) = (Vec::new(), Vec::new());
        Pickup { stage, buf: None, ended: false, plain, plain_ends: false, fields, trailers: None }
    }

    /// Reads what the user sent, if everything before it is gone; whether there was something.
    pub fn fill(&mut self, cx: &mut Context<'_>, link: &Socket) -> bool {
        if let (Stage::Trailers, Some(trailers)) = (&self.stage, &self.trailers) {
            return trailers.poll_settled(cx).is_ready();
        }
        if self.ended || !self.plain.is_empty() || self.buf.as_ref().is_some_and(Buf::is_full) {
            return false;
        }
        if link.poll_readable(cx).is_pending() {
            return false;
        }
        match self.read(cx, link) {
            Poll::Pending => {
                self.rest();
                return false;
            }
            Poll::Ready(Ok(0) | Err(_)) => self.ended = true,
            Poll::Ready(Ok(_)) => {}
        }
        true
    }

    /// Reads: a whole buffer as it is, or what there is room for behind what is there already.
    fn read(&mut self, cx: &mut Context<'_>, link: &Socket) -> Poll<io::Result<usize>> {
        if self.buf.as_ref().is_none_or(Buf::is_empty)
            && let Some(taken) = link.try_take()
        {
            return Poll::Ready(taken.map(|taken| {
                self.buf = taken;
                self.buf.as_ref().map_or(0, Buf::len)
            }));
        }
        let buf = self.buf.get_or_insert_default();
        buf.compact();
        let read = link.poll_recv(cx, buf.spare_mut());
        if let Poll::Ready(Ok(n)) = read {
            buf.advance(n);
        }
        read
    }

    /// Gives back the buffer while there is nothing in it.
    pub fn rest(&mut self) {
        if self.buf.as_ref().is_some_and(Buf::is_empty) {
            self.buf = None;
        }
    }

    /// Whether nothing that came waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.buf.as_ref().is_none_or(Buf::is_empty)
    }

    /// Whether the message is sent whole.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Sends what is there of the body, as the windows allow; whether something went out.
    ///
    /// # Errors
    /// What came is no body.
    pub fn send(&mut self, carrier: &mut impl Carrier, out: &mut Outbox) -> Result<bool, Malformed> {
        let before = out.len();
        match &mut self.stage {
            Stage::Head => {}
            // Whatever comes behind the message is of no use to anybody.
            Stage::Done => self.buf = None,
            Stage::Length(left) => {
                let Some(buf) = &self.buf else { return Ok(false) };
                let len = buf.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let bare = self.trailers.as_ref().is_none_or(|trailers| trailers.are_none());
                let end = len as u64 == *left && bare;
                *left -= data(&mut self.buf, len, end, carrier, out) as u64;
                if *left == 0 {
                    self.stage = if bare { Stage::Done } else { Stage::Trailers };
                }
            }
            Stage::Trailers => {}
            Stage::Close => {
                let len = self.buf.as_ref().map_or(0, Buf::len);
                data(&mut self.buf, len, false, carrier, out);
                if self.ended && self.is_empty() {
                    carrier.send(&[], true, &mut out.bytes);
                    self.stage = Stage::Done;
                }
            }
            Stage::Chunked(_) => self.chunks(carrier, &mut out.bytes)?,
        }
        if let (Stage::Trailers, Some(trailers)) = (&self.stage, &self.trailers)
            && trailers.send(carrier, &mut out.bytes)
        {
            self.stage = Stage::Done;
        }
        self.rest();
        Ok(out.len() > before)
    }

    fn chunks(&mut self, carrier: &mut impl Carrier, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let Stage::Chunked(scanner) = &mut self.stage else { return Ok(()) };
        if let Some(buf) = self.buf.as_mut().filter(|buf| !buf.is_empty() && self.plain.is_empty()) {
            let plain = &mut self.plain;
            let scanned = scanner.data(buf.filled(), |data| plain.extend_from_slice(data));
            buf.clear();
            self.plain_ends = scanned.map_err(|_| Malformed)?;
            if self.plain_ends {
                self.fields = scanner.take_trailers();
            }
        }
        let end = self.plain_ends && self.fields.is_empty();
        let sent = carrier.send(&self.plain, end, out);
        self.plain.drain(..sent);
        if self.plain_ends && self.plain.is_empty() {
            if !end {
                let mut head = Head::response();
                split_trailers(&self.fields, &mut head);
                carrier.trailers(&head, out);
            }
            self.stage = Stage::Done;
        }
        Ok(())
    }

    /// Nobody will get what is left.
    pub fn discard(&mut self) {
        (self.buf, self.plain, self.ended) = (None, Vec::new(), true);
    }

    /// The user is gone before its message was whole.
    pub fn is_cut(&self) -> bool {
        self.ended && self.is_empty() && !matches!(self.stage, Stage::Done | Stage::Close | Stage::Trailers)
    }
}

/// Sends the first `len` bytes of a buffer, as the windows allow; says how many. One that goes out whole in
/// one frame is handed over.
fn data(buf: &mut Option<Buf>, len: usize, end: bool, carrier: &mut impl Carrier, out: &mut Outbox) -> usize {
    let whole = buf.take_if(|buf| buf.len() == len && out.wants(len));
    if let Some(whole) = whole {
        if carrier.frame(len, end, &mut out.bytes) {
            out.hand_over(whole);
            carrier.framed(end, &mut out.bytes);
            return len;
        }
        *buf = Some(whole);
    }
    let Some(buf) = buf else { return 0 };
    let part = buf.filled().get(..len).unwrap_or_default();
    let sent = carrier.send(part, end, &mut out.bytes);
    buf.consume(sent);
    sent
}
