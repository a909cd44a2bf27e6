//! One end of a connection, client's or server's, in the hands of a script.

use std::io;
use std::time::Duration;

use rt::{Addr, ConnectOptions, Socket};
use wire::h2::{Connection, Event, Received};
use wire::head::Head;

use crate::message::{End, Message, Scan, ends_with_connection, scan};

/// A connection.
pub struct Peer {
    /// Its socket.
    pub socket: Socket,
    /// Bytes received and not understood yet.
    pub buf: Vec<u8>,
}

impl Peer {
    /// Takes an accepted connection.
    pub fn new(socket: Socket) -> Peer {
        Peer { socket, buf: Vec::new() }
    }

    /// Connects.
    ///
    /// # Errors
    /// Refused, timed out, no descriptors.
    pub async fn connect(to: &Addr) -> io::Result<Peer> {
        let socket = Socket::connect(to, &ConnectOptions::default())?;
        // A kernel gives up on a silent address after two minutes.
        let connected = crate::within(Duration::from_secs(130), socket.connected()).await;
        connected.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(Peer::new(socket))
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// The connection's.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send_all(bytes).await
    }

    /// Sends it in pieces of `size`, pausing between them.
    ///
    /// # Errors
    /// The connection's.
    pub async fn send_slowly(&self, bytes: &[u8], size: usize, pause: Duration) -> io::Result<()> {
        for piece in bytes.chunks(size) {
            self.send(piece).await?;
            rt::sleep(pause).await;
        }
        Ok(())
    }

    /// Receives more; what ended it, if it is over.
    pub async fn more(&mut self) -> Result<(), End> {
        let mut room = [0u8; 4096];
        match self.socket.recv(&mut room).await {
            Ok(0) => Err(End::Closed),
            Ok(n) => {
                self.buf.extend_from_slice(&room[..n]);
                Ok(())
            }
            Err(_) => Err(End::Reset),
        }
    }

    /// Takes what came for events of HTTP/2, one after the other; what is not whole yet stays.
    ///
    /// # Panics
    /// On bytes that are no HTTP/2.
    pub fn events(
        &mut self,
        connection: &mut Connection,
        head: &mut Head,
        out: &mut Vec<u8>,
        mut take: impl FnMut(&mut Connection, &mut Head, &mut Vec<u8>, Event<'_>),
    ) {
        let mut at = 0;
        loop {
            let received = connection.receive(&self.buf[at..], head, out);
            let Received { consumed, event } = received.expect("the engine speaks HTTP/2");
            at += consumed;
            let Some(event) = event else { break };
            take(connection, head, out, event);
        }
        self.buf.drain(..at);
    }

    /// The next message; one that is not whole says why. What comes after stays for the next call.
    ///
    /// # Panics
    /// On bytes that are no HTTP: nobody here may send such, except to the proxy.
    pub async fn message(&mut self, bodiless: impl Fn(&Message) -> bool) -> Message {
        loop {
            match scan(&self.buf, &bodiless) {
                Err(e) => panic!("not HTTP ({e}): {}", self.buf.escape_ascii()),
                Ok(Scan::Whole(message, n)) => {
                    message.check_label();
                    self.buf.drain(..n);
                    return message;
                }
                Ok(Scan::Partial(part)) => {
                    if let Err(end) = self.more().await {
                        let message = broken_off(part.unwrap_or_default(), end);
                        message.check_label();
                        return message;
                    }
                }
            }
        }
    }

    /// The next request.
    pub async fn request(&mut self) -> Message {
        self.message(|_| false).await
    }

    /// The next final response to a request that is no HEAD.
    pub async fn response(&mut self) -> Message {
        loop {
            let message = self.any_response().await;
            if !(100..200).contains(&message.status()) || message.status() == 101 {
                return message;
            }
        }
    }

    /// The next response, final or not.
    pub async fn any_response(&mut self) -> Message {
        self.message(|m| m.status() < 200 || m.status() == 204 || m.status() == 304).await
    }

    /// Sends a request and reads its response.
    pub async fn ask(&mut self, request: &[u8]) -> Message {
        // What can't be sent may have been answered before.
        let _ = self.send(request).await;
        self.response().await
    }

    /// Everything up to the end, and which end it was.
    pub async fn rest(&mut self) -> (Vec<u8>, End) {
        loop {
            if let Err(end) = self.more().await {
                return (std::mem::take(&mut self.buf), end);
            }
        }
    }

    /// Exactly `n` bytes, or fewer if the connection ends.
    pub async fn take(&mut self, n: usize) -> Vec<u8> {
        while self.buf.len() < n && self.more().await.is_ok() {}
        let n = n.min(self.buf.len());
        self.buf.drain(..n).collect()
    }

    /// Says that nothing more will be sent.
    pub fn finish(&self) {
        let _ = self.socket.shutdown_write();
    }

    /// Breaks the connection.
    pub fn reset(self) {
        let _ = self.socket.set_linger0();
    }
}

fn broken_off(mut message: Message, end: End) -> Message {
    let whole = end == End::Closed && !message.line.is_empty() && ends_with_connection(&message);
    message.end = Some(if whole { End::Complete } else { end });
    message
}
