//! The way to the client of a service or a command, and back.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use mlua::Value;
use rt::{Buf, Socket, Timer};
use wire::head::Head;
use wire::http1::{Body, Limits, Parsed, Scanner, parse_request, request_body};

use crate::came::Came;
use crate::message::field;

/// The most that is gathered for one read.
const MOST: usize = 64 << 20;

/// What a script wants of its client.
#[derive(Debug)]
pub enum Ask {
    /// A line with its end.
    Line,
    /// So many bytes, or all; in that time.
    Receive(Option<usize>, Option<Duration>),
    /// What is there.
    Try,
    /// To say something.
    Send(Vec<u8>),
    /// To begin its answer.
    Start(u16, Option<Vec<u8>>, Vec<(Vec<u8>, Vec<u8>)>),
}

impl Ask {
    /// Reads what the prelude said: the word, and what stands behind it (from the third value on).
    pub fn read(word: &str, values: &[Value]) -> Ask {
        let number = |n: usize| values.get(n).and_then(|v| v.as_i64().or(v.as_f64().map(|f| f as i64)));
        let bytes = |n: usize| values.get(n).and_then(Value::as_string).map(|s| s.as_bytes().to_vec());
        match word {
            "line" => Ask::Line,
            "try" => Ask::Try,
            "send" => Ask::Send(bytes(2).unwrap_or_default()),
            "start" => {
                let status = number(2).and_then(|n| u16::try_from(n).ok()).unwrap_or(200);
                let mut fields = Vec::new();
                if let Some(list) = values.get(4).and_then(Value::as_table) {
                    let all: Vec<mlua::String> = list.sequence_values().filter_map(Result::ok).collect();
                    for pair in all.chunks_exact(2) {
                        if let [name, value] = pair {
                            fields.push((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
                        }
                    }
                }
                Ask::Start(status, bytes(3), fields)
            }
            _ => {
                let size = number(2).and_then(|n| usize::try_from(n).ok());
                let time = number(3).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
                Ask::Receive(size, time.map(Duration::from_millis))
            }
        }
    }
}

/// How an answer is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// As bytes.
    Plain,
    /// In chunks.
    Chunked,
    /// Its body goes nowhere.
    None,
}

/// The way to the client and back.
pub struct Io {
    /// The socket.
    pub socket: Socket,
    http: bool,
    raw: Vec<u8>,
    /// Data without their framing.
    input: Vec<u8>,
    /// What is left of the body.
    pub left: Body,
    scanner: Scanner,
    closed: bool,
    /// It broke off.
    pub broken: bool,
    framing: Option<Framing>,
    to_head: bool,
    old: bool,
}

impl Io {
    /// Over a socket, of a stream of TCP or the runtime API.
    pub fn of_tcp(socket: Socket) -> Io {
        Io {
            socket,
            http: false,
            raw: Vec::new(),
            input: Vec::new(),
            left: Body::UntilClose,
            scanner: Scanner::default(),
            closed: false,
            broken: false,
            framing: Some(Framing::Plain),
            to_head: false,
            old: false,
        }
    }

    /// What came already.
    pub fn with_input(mut self, input: Vec<u8>) -> Io {
        self.input = input;
        self
    }

    /// The socket, for whoever goes on with it.
    pub fn into_socket(self) -> Socket {
        self.socket
    }

    /// Reads the head of a request; `false`: it never came.
    pub async fn head(&mut self) -> Option<Head> {
        self.http = true;
        self.framing = None;
        let mut head = Head::request();
        loop {
            match parse_request(&self.raw, &mut head, &Limits::default(), false) {
                Ok(Parsed::Complete { consumed }) => {
                    self.raw.drain(..consumed.min(self.raw.len()));
                    self.left = request_body(&head);
                    self.to_head = head.method() == b"HEAD";
                    self.old = head.version_read() == b"HTTP/1.0";
                    self.decode();
                    return Some(head);
                }
                Ok(_) => {}
                Err(_) => return None,
            }
            if !self.receive().await {
                return None;
            }
        }
    }

    /// Receives more as it is; `false`: no more comes.
    async fn receive(&mut self) -> bool {
        // Held while something is there to be read, not while the client is silent.
        poll_fn(|cx| self.socket.poll_readable(cx)).await;
        let mut buf = Buf::new();
        match self.socket.recv(buf.spare_mut()).await {
            Ok(n) if n > 0 => {
                buf.advance(n);
                self.raw.extend_from_slice(buf.filled());
                true
            }
            Ok(_) => false,
            Err(_) => {
                self.broken = true;
                false
            }
        }
    }

    /// Takes data out of their framing.
    fn decode(&mut self) {
        match &mut self.left {
            Body::None => self.closed = true,
            Body::Length(n) => {
                let take = usize::try_from(*n).unwrap_or(usize::MAX).min(self.raw.len());
                self.input.extend(self.raw.drain(..take));
                *n = n.saturating_sub(take as u64);
                if *n == 0 {
                    self.closed = true;
                }
            }
            Body::Chunked => {
                let input = &mut self.input;
                let end = self.scanner.data(&self.raw, |part| input.extend_from_slice(part));
                self.raw.clear();
                if end.unwrap_or(true) {
                    self.closed = true;
                }
            }
            Body::UntilClose => self.input.append(&mut self.raw),
        }
    }

    /// Waits for more data; `false`: there is no more.
    async fn more(&mut self) -> bool {
        if self.closed || self.input.len() > MOST {
            return false;
        }
        if !self.receive().await {
            self.closed = true;
            return false;
        }
        self.decode();
        true
    }

    /// Does what a script wants.
    pub async fn fulfil(&mut self, ask: Ask) -> Came {
        match ask {
            Ask::Line => self.line().await,
            Ask::Receive(size, None) => self.take(size).await,
            Ask::Receive(size, Some(time)) => self.take_in_time(size, time).await,
            Ask::Try => {
                self.look();
                self.there()
            }
            Ask::Send(data) => self.send(&data).await,
            Ask::Start(status, reason, fields) => self.start(status, reason, &fields).await,
        }
    }

    async fn line(&mut self) -> Came {
        loop {
            if let Some(at) = self.input.iter().position(|c| *c == b'\n') {
                return Came::Bytes(Some(self.input.drain(..=at).collect()));
            }
            if !self.more().await {
                return Came::Bytes(Some(std::mem::take(&mut self.input)));
            }
        }
    }

    async fn take(&mut self, size: Option<usize>) -> Came {
        while size.is_none_or(|size| self.input.len() < size) {
            if !self.more().await {
                break;
            }
        }
        let n = size.unwrap_or(usize::MAX).min(self.input.len());
        Came::Bytes(Some(self.input.drain(..n).collect()))
    }

    async fn take_in_time(&mut self, size: Option<usize>, time: Duration) -> Came {
        let mut timer = Timer::new();
        timer.set_after(Some(time));
        let came = {
            let mut work = std::pin::pin!(self.take(size));
            poll_fn(|cx| match work.as_mut().poll(cx) {
                Poll::Ready(came) => Poll::Ready(Some(came)),
                Poll::Pending => timer.poll_expired(cx).map(|()| None),
            })
            .await
        };
        match came {
            Some(came) => came,
            None => self.there(),
        }
    }

    /// Takes what has come meanwhile, without waiting.
    fn look(&mut self) {
        let mut buf = Buf::new();
        while !self.closed && self.input.len() < MOST {
            match self.socket.try_recv(buf.spare_mut()) {
                Some(Ok(n)) if n > 0 => {
                    buf.advance(n);
                    self.raw.extend_from_slice(buf.filled());
                    buf.clear();
                    self.decode();
                }
                Some(_) => self.closed = true,
                None => return,
            }
        }
    }

    /// What is there: nil when there may be more, an empty string at the end.
    fn there(&mut self) -> Came {
        match self.input.is_empty() && !self.closed {
            true => Came::Bytes(None),
            false => Came::Bytes(Some(std::mem::take(&mut self.input))),
        }
    }

    async fn send(&mut self, data: &[u8]) -> Came {
        let sent = match self.framing {
            Some(Framing::Chunked) if !data.is_empty() => {
                let mut out = format!("{:x}\r\n", data.len()).into_bytes();
                out.extend_from_slice(data);
                out.extend_from_slice(b"\r\n");
                self.socket.send_all(&out).await
            }
            Some(Framing::Plain) => self.socket.send_all(data).await,
            _ => Ok(()),
        };
        match sent {
            Ok(()) => Came::Number(i64::try_from(data.len()).unwrap_or(i64::MAX)),
            Err(_) => {
                self.broken = true;
                Came::Number(-1)
            }
        }
    }

    async fn start(&mut self, status: u16, reason: Option<Vec<u8>>, fields: &[(Vec<u8>, Vec<u8>)]) -> Came {
        let reason = reason.filter(|r| r.iter().all(|c| !c.is_ascii_control()));
        let known = || Head::reason_for(status).as_bytes().to_vec();
        let version = if self.old { "1.0" } else { "1.1" };
        let mut out = format!("HTTP/{version} {status} ").into_bytes();
        out.extend(reason.unwrap_or_else(known));
        out.extend_from_slice(b"\r\n");
        let mut length = false;
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"content-length") {
                length = true;
            }
            if !name.eq_ignore_ascii_case(b"connection") {
                field(&mut out, name, value);
            }
        }
        let bodiless = matches!(status, 100..=199 | 204 | 304);
        let framing = match (bodiless || self.to_head, length) {
            (true, _) => Framing::None,
            (_, true) => Framing::Plain,
            (_, false) if self.old => Framing::Plain,
            (_, false) => Framing::Chunked,
        };
        let said = |name: &[u8]| fields.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if !bodiless && !length && !self.old && !said(b"transfer-encoding") {
            field(&mut out, b"transfer-encoding", b"chunked");
        }
        field(&mut out, b"connection", b"close");
        out.extend_from_slice(b"\r\n");
        self.framing = Some(framing);
        if self.socket.send_all(&out).await.is_err() {
            self.broken = true;
        }
        Came::Over
    }

    /// Ends the answer; `failed`: it is not as it should have been.
    pub async fn end(mut self, failed: bool) {
        match self.framing {
            None if self.http && !self.broken => {
                let page = engine::errors::page(500);
                let page = format!(
                    "HTTP/1.1 500 Internal Server Error\r\ncontent-length: {}\r\ncache-control: no-cache\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
                let _ = self.socket.send_all(page.as_bytes()).await;
            }
            Some(Framing::Chunked) if !failed => {
                let _ = self.socket.send_all(b"0\r\n\r\n").await;
            }
            _ => {}
        }
        let _ = self.socket.shutdown_write();
        if !self.http {
            return;
        }
        // What the client still says has somewhere to go until the engine lets go of the stream.
        while !self.broken && self.receive().await {
            self.raw.clear();
        }
    }
}
