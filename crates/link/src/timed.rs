//! What takes time on a connection that its user alone holds: each step ends when the user's timer does.
//!
//! Checks and calls of the process's own are made of these steps; a stream with a client, whose sides wait
//! for each other, has a [pump](crate::pump).

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use rt::{Addr, Buf, ConnectOptions, Socket, Timer};

use crate::transport::Transport;

/// Why a step came to nothing.
#[derive(Debug)]
pub enum Trouble {
    /// The deadline passed.
    TimedOut,
    /// The system says no.
    Io(io::Error),
}

/// What an error of a connection that did not come about says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There are no descriptors, ports or memory for it.
    Resource,
    /// The system has waited long enough.
    TimedOut,
    /// The other side refuses, or can't be reached.
    Refused,
}

impl Failure {
    /// What an error says.
    pub fn of(e: &io::Error) -> Failure {
        match e.raw_os_error() {
            // EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EAGAIN (local ports)
            Some(24 | 23 | 105 | 12 | 99 | 11) => Failure::Resource,
            // ETIMEDOUT
            Some(110) => Failure::TimedOut,
            _ => Failure::Refused,
        }
    }
}

/// What moved first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// So many bytes were sent.
    Sent(usize),
    /// So many bytes were received; none: the peer has ended.
    Received(usize),
}

fn late<T>(timer: &mut Timer, cx: &mut Context<'_>) -> Poll<Result<T, Trouble>> {
    timer.poll_expired(cx).map(|()| Err(Trouble::TimedOut))
}

/// Receives more of what is taken whole.
///
/// # Errors
/// The connection's, or the deadline. The end of what the peer sends is an error, too.
pub async fn more(socket: &Transport, input: &mut Vec<u8>, timer: &mut Timer) -> Result<(), Trouble> {
    let mut buf = None;
    let received = receive(socket, &mut buf, timer).await?;
    match buf {
        Some(buf) if received > 0 => {
            input.extend_from_slice(buf.filled());
            Ok(())
        }
        _ => Err(Trouble::Io(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Connects.
///
/// # Errors
/// Why there is no connection.
pub async fn connect(addr: &Addr, options: &ConnectOptions, timer: &mut Timer) -> Result<Transport, Trouble> {
    let socket = Socket::connect(addr, options).map_err(Trouble::Io)?;
    poll_fn(|cx| match socket.poll_connected(cx) {
        Poll::Ready(connected) => Poll::Ready(connected.map_err(Trouble::Io)),
        Poll::Pending => late(timer, cx),
    })
    .await?;
    Ok(socket.into())
}

/// Sends all of `data`.
///
/// # Errors
/// The connection's, or the deadline.
pub async fn send(socket: &Transport, mut data: &[u8], timer: &mut Timer) -> Result<(), Trouble> {
    poll_fn(|cx| {
        while !data.is_empty() {
            match socket.poll_send(cx, data, false) {
                Poll::Ready(Ok(n)) => data = data.get(n..).unwrap_or_default(),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(Trouble::Io(e))),
                Poll::Pending => return late(timer, cx),
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// Receives into the room that `input` has, which is a buffer only while there is something in it. How many
/// bytes came; none: the peer has ended, or there is no room.
///
/// # Errors
/// The connection's, or the deadline.
pub async fn receive(
    socket: &Transport,
    input: &mut Option<Buf>,
    timer: &mut Timer,
) -> Result<usize, Trouble> {
    poll_fn(|cx| match poll_receive(socket, cx, input) {
        Poll::Ready(received) => Poll::Ready(received.map_err(Trouble::Io)),
        Poll::Pending => late(timer, cx),
    })
    .await
}

/// Sends some of `data`, which is not empty, or receives what comes before there is room for it.
///
/// # Errors
/// The connection's, or the deadline.
pub async fn exchange(
    socket: &Transport,
    data: &[u8],
    input: &mut Option<Buf>,
    timer: &mut Timer,
) -> Result<Moved, Trouble> {
    poll_fn(|cx| {
        if let Poll::Ready(sent) = socket.poll_send(cx, data, false) {
            return Poll::Ready(sent.map(Moved::Sent).map_err(Trouble::Io));
        }
        let has_room = input.as_ref().is_none_or(|buf| !buf.is_full());
        if has_room && let Poll::Ready(received) = poll_receive(socket, cx, input) {
            return Poll::Ready(received.map(Moved::Received).map_err(Trouble::Io));
        }
        late(timer, cx)
    })
    .await
}

fn poll_receive(
    socket: &Transport,
    cx: &mut Context<'_>,
    input: &mut Option<Buf>,
) -> Poll<io::Result<usize>> {
    if input.is_none() && socket.poll_readable(cx).is_pending() {
        return Poll::Pending;
    }
    let buf = input.get_or_insert_with(Buf::new);
    let received = socket.poll_recv(cx, buf.spare_mut());
    if let Poll::Ready(Ok(n)) = received {
        buf.advance(n);
    }
    if buf.is_empty() {
        *input = None;
    }
    received
}
