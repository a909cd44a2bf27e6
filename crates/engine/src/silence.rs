//! Clients that owe a word while something else is waited for: a rule, a place in a queue, a server. They are
//! waited for no longer than `timeout client` (manual, "timeout client"), counted from when they were last
//! heard.

use std::future::poll_fn;
use std::task::Poll;

use rt::Mono;

use crate::body;
use crate::stream::Stream;

/// When a client that says nothing from now on will have been silent for too long, be there something that it
/// owes or not; `None`: it may be silent for ever.
pub fn deadline(stream: &Stream<'_>) -> Option<Mono> {
    Some(stream.heard + stream.client_limit()?)
}

/// When it will be too late for a client that owes a part of its request, or its first word in TCP; `None`
/// also where nothing is owed.
pub fn end(stream: &Stream<'_>) -> Option<Mono> {
    deadline(stream).filter(|_| owes(stream))
}

fn owes(stream: &Stream<'_>) -> bool {
    match stream.txn.has_req {
        true => !body::is_whole(stream),
        false => !stream.client.has_input(),
    }
}

/// Whether it is too late by now, and nothing has come that was not read yet.
pub fn is_over(stream: &Stream<'_>) -> bool {
    is_late(stream) && owes(stream)
}

/// The same of a client that is asked for more than it has said.
pub fn is_late(stream: &Stream<'_>) -> bool {
    deadline(stream).is_some_and(|end| end <= rt::now()) && !stream.client.socket.is_readable()
}

/// Has the task woken when it is too late, whatever it waits for then.
pub async fn wake(stream: &mut Stream<'_>) {
    let end = end(stream);
    let timer = &mut stream.client.timer;
    timer.set(end);
    if end.is_some() {
        poll_fn(|cx| Poll::Ready(_ = timer.poll_expired(cx))).await;
    }
}
