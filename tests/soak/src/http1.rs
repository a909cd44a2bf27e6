//! HTTP/1, strict and small: heads and bodies read from and written to a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::content::{Content, Rng};
use crate::plan::{Framing, Pace};

/// A connection with perhaps TLS on it.
pub enum Link {
    Plain(TcpStream),
    Client(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    Server(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

impl Link {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Link::Plain(s) => s,
            Link::Client(s) => s.get_ref().0,
            Link::Server(s) => s.get_ref().0,
        }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut dyn Both> {
        match self.get_mut() {
            Link::Plain(s) => Pin::new(s),
            Link::Client(s) => Pin::new(&mut **s),
            Link::Server(s) => Pin::new(&mut **s),
        }
    }
}

trait Both: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Both for T {}

/// Types that read and write what the connection in them does (`stream`).
macro_rules! reads_and_writes {
    ($($name:ty),*) => {$(
        impl AsyncRead for $name {
            fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                self.stream().poll_read(cx, buf)
            }
        }

        impl AsyncWrite for $name {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                self.stream().poll_write(cx, buf)
            }
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.stream().poll_flush(cx)
            }
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.stream().poll_shutdown(cx)
            }
        }
    )*};
}
reads_and_writes!(Link, Gentle);

/// A connection that is not cut when it is dropped: it ends its own direction and reads on until the peer has
/// ended, too. Otherwise the kernel would reset it for what the peer sent meanwhile, and what is still on its
/// way to the peer would be lost.
pub struct Gentle {
    link: Option<Link>,
    /// Set where the connection shall be cut after all.
    pub cut: Arc<AtomicBool>,
}

impl Gentle {
    pub fn new(link: Link) -> Gentle {
        Gentle { link: Some(link), cut: Arc::default() }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut Link> {
        Pin::new(self.get_mut().link.as_mut().expect("a link until it is dropped"))
    }
}

impl Drop for Gentle {
    fn drop(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        if self.cut.load(Relaxed) {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(Duration::from_secs(10), async {
                    let _ = link.shutdown().await;
                    let mut room = vec![0u8; 4096];
                    while link.read(&mut room).await.is_ok_and(|n| n > 0) {}
                })
                .await;
            });
        }
    }
}

/// The first line and the fields of a message.
#[derive(Debug)]
pub struct Head {
    pub first: String,
    fields: Vec<(String, String)>,
}

impl Head {
    /// The value of a field; several are a defect of whoever sent them, and the last one counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// How the body of this message is marked off; `Err` for what two readers could read differently.
    pub fn framing(&self) -> Result<(Option<Framing>, u64), String> {
        let lengths = self.fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case("content-length")).count();
        match (self.get("transfer-encoding"), self.get("content-length")) {
            (Some(_), Some(_)) => Err("transfer-encoding and content-length".to_owned()),
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => Ok((Some(Framing::Chunked), 0)),
            (Some(coding), None) => Err(format!("transfer-encoding {coding}")),
            (None, Some(_)) if lengths > 1 => Err("several content-lengths".to_owned()),
            (None, Some(n)) => {
                Ok((Some(Framing::Length), n.parse().map_err(|_| format!("content-length {n}"))?))
            }
            (None, None) => Ok((None, 0)),
        }
    }
}

/// Why a message could not be read.
#[derive(Debug)]
pub enum Broken {
    /// The connection ended before the message did.
    Cut(String),
    /// The bytes are wrong.
    Wrong(String),
    /// The reader wanted no more.
    Enough,
}

impl From<io::Error> for Broken {
    fn from(e: io::Error) -> Broken {
        Broken::Cut(e.to_string())
    }
}

/// Reads messages.
pub struct Reader<R> {
    from: R,
    buf: BytesMut,
}

/// What a body was.
pub struct Body {
    pub trailers: Vec<(String, String)>,
}

/// How a body shall be read.
pub struct Taking<'a> {
    pub content: &'a mut Content,
    pub pace: Pace,
    /// Stop when so many bytes have come.
    pub until: Option<u64>,
}

impl Taking<'_> {
    pub async fn take(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let rest = self.until.map_or(u64::MAX, |until| until.saturating_sub(self.content.at()));
        let bytes = &bytes[..bytes.len().min(rest.min(usize::MAX as u64) as usize)];
        let before = self.content.at();
        self.content.check(bytes).map_err(|at| Broken::Wrong(format!("byte {at} of the body is wrong")))?;
        if self.until.is_some_and(|until| self.content.at() >= until) {
            return Err(Broken::Enough);
        }
        let rest = self.pace.rest(before, self.content.at());
        if rest > 0 {
            tokio::time::sleep(Duration::from_millis(rest)).await;
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Goes on with what an earlier reader had left.
    pub fn resume(from: R, left: Option<BytesMut>) -> Reader<R> {
        Reader { from, buf: left.unwrap_or_default() }
    }

    /// What was read and not used.
    pub fn into_unused(self) -> BytesMut {
        self.buf
    }

    async fn more(&mut self) -> Result<usize, Broken> {
        self.buf.reserve(16_384);
        Ok(self.from.read_buf(&mut self.buf).await?)
    }

    /// Waits for the next bytes; false at the end of the connection.
    pub async fn wait(&mut self) -> Result<bool, Broken> {
        Ok(!self.buf.is_empty() || self.more().await? > 0)
    }

    async fn line(&mut self) -> Result<String, Broken> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.buf[looked..].iter().position(|b| *b == b'\n') {
                let line = self.buf.split_to(looked + end + 1);
                let Some(line) = line.strip_suffix(b"\r\n") else {
                    return Err(Broken::Wrong("a line ends without CR".to_owned()));
                };
                return String::from_utf8(line.to_vec())
                    .map_err(|_| Broken::Wrong("a line that is not text".to_owned()));
            }
            looked = self.buf.len();
            if looked > 65_536 {
                return Err(Broken::Wrong("a line without end".to_owned()));
            }
            if self.more().await? == 0 {
                return Err(Broken::Cut(if looked == 0 {
                    "closed".to_owned()
                } else {
                    "closed within a line".to_owned()
                }));
            }
        }
    }

    async fn fields(&mut self) -> Result<Vec<(String, String)>, Broken> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(fields);
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(Broken::Wrong(format!("a field without colon: {line}")));
            };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    pub async fn head(&mut self) -> Result<Head, Broken> {
        let first = self.line().await?;
        Ok(Head { first, fields: self.fields().await? })
    }

    async fn exactly(&mut self, mut n: u64, taking: &mut Taking<'_>) -> Result<(), Broken> {
        while n > 0 {
            if self.buf.is_empty() && self.more().await? == 0 {
                return Err(Broken::Cut(format!("closed after {} bytes of the body", taking.content.at())));
            }
            let piece = self.buf.split_to(self.buf.len().min(n as usize));
            n -= piece.len() as u64;
            taking.take(&piece).await?;
        }
        Ok(())
    }

    /// Reads and checks a body.
    pub async fn body(&mut self, framing: (Framing, u64), mut taking: Taking<'_>) -> Result<Body, Broken> {
        let mut trailers = Vec::new();
        match framing {
            (Framing::Length, n) => self.exactly(n, &mut taking).await?,
            (Framing::Close, _) => loop {
                if self.buf.is_empty() && self.more().await? == 0 {
                    break;
                }
                let piece = self.buf.split();
                taking.take(&piece).await?;
            },
            (Framing::Chunked, _) => loop {
                let line = self.line().await?;
                let size = u64::from_str_radix(&line, 16)
                    .map_err(|_| Broken::Wrong(format!("chunk size {line:?}")))?;
                if size == 0 {
                    trailers = self.fields().await?;
                    break;
                }
                self.exactly(size, &mut taking).await?;
                if !self.line().await?.is_empty() {
                    return Err(Broken::Wrong("a chunk does not end where it should".to_owned()));
                }
            },
        }
        Ok(Body { trailers })
    }
}

/// How a body shall be written.
pub struct Giving<'a> {
    pub content: &'a mut Content,
    pub len: u64,
    pub pace: Pace,
    pub framing: Framing,
    /// A trailer behind the last chunk.
    pub trailer: Option<String>,
    /// Stop before this byte and leave the message unfinished.
    pub until: Option<u64>,
}

/// Writes a head and a body behind it. The head goes out with the first piece or alone.
pub async fn write<W: AsyncWrite + Unpin>(
    to: &mut W,
    head: &str,
    giving: Giving<'_>,
    rng: &mut Rng,
) -> io::Result<()> {
    let mut out = Vec::with_capacity(head.len() + 1024);
    out.extend_from_slice(head.as_bytes());
    if rng.percent(15) && !out.is_empty() {
        to.write_all(&out).await?;
        to.flush().await?;
        out.clear();
    }
    let Giving { content, len, pace, framing, trailer, until } = giving;
    let end = until.unwrap_or(len).min(len);
    let most = *rng.pick(&[100, 1_460, 8_192, 16_384, 16_384, 65_536, 65_536]);
    let mut rested = 0;
    while content.at() < end {
        let mut n = rng.between(most / 2, most).min(end - content.at());
        if let Pace::Slow { piece, .. } = pace {
            n = n.min(piece);
        }
        if framing == Framing::Chunked {
            out.extend_from_slice(format!("{n:x}\r\n").as_bytes());
        }
        let at = out.len();
        out.resize(at + n as usize, 0);
        content.fill(&mut out[at..]);
        if framing == Framing::Chunked {
            out.extend_from_slice(b"\r\n");
        }
        if content.at() == len && until.is_none() {
            break;
        }
        if out.len() < 32_768 && most < 4_096 && pace == Pace::Fast && rng.percent(80) {
            continue;
        }
        to.write_all(&out).await?;
        out.clear();
        let rest = pace.rest(rested, content.at());
        if rest > 0 {
            rested = content.at();
            to.flush().await?;
            tokio::time::sleep(Duration::from_millis(rest)).await;
        }
    }
    if framing == Framing::Chunked && until.is_none() {
        out.extend_from_slice(b"0\r\n");
        if let Some(trailer) = trailer {
            out.extend_from_slice(format!("x-tail: {trailer}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
    to.write_all(&out).await?;
    to.flush().await
}
