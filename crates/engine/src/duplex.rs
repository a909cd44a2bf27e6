//! Both directions of a stream at once, until an end policy says stop: the bodies of an exchange, a tunnel, a
//! connection of TCP.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use link::pump::{Break, End, Half};
use model::term::Cause;
use program::Proxy;

use crate::finish;
use crate::stream::Stream;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server: [`Stream::upload`].
    Up,
    /// From the server to the client: [`Duplex::down`].
    Down,
}

/// Where the two directions stand.
pub struct Duplex<'d> {
    /// What goes down.
    pub down: &'d mut Half,
    /// Nothing more goes up.
    pub up_done: bool,
    /// Nothing more goes down.
    pub down_done: bool,
    /// How long the client may be silent, and the server.
    pub limits: (Option<Duration>, Option<Duration>),
}

/// What the end of a direction means, and whose time counts.
pub trait EndPolicy {
    /// How both ended.
    type Over;

    /// The direction that is looked at first.
    const FIRST: Way;

    /// Somebody ended the session.
    fn killed(&mut self, cause: Cause) -> Self::Over;

    /// There is no connection to a server any more.
    fn cut_off(&mut self) -> Self::Over;

    /// One direction came to an end; `None` if that is not the end of both.
    fn came(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        way: Way,
        end: Result<End, Break>,
    ) -> Option<Self::Over>;

    /// Looks for an end that neither direction tells of.
    fn look(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Self::Over>;

    /// Looks at the clocks of those who are waited for.
    fn late(
        &mut self,
        duplex: &mut Duplex<'_>,
        stream: &mut Stream<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Self::Over>;
}

/// Moves what can be moved in one direction; `None` without a connection to a server.
fn poll_way(
    duplex: &mut Duplex<'_>,
    stream: &mut Stream<'_>,
    way: Way,
    cx: &mut Context<'_>,
) -> Option<Poll<Result<End, Break>>> {
    let up = stream.upstream.as_mut()?;
    let client = &mut *stream.client;
    Some(match way {
        Way::Up => stream.upload.poll(cx, &client.socket, &mut client.buf, &mut stream.to_server, &up.socket),
        Way::Down => duplex.down.poll(cx, &up.socket, &mut up.buf, &mut stream.to_client, &client.socket),
    })
}

/// Moves both directions until the policy says that they are over.
pub async fn drive<P: EndPolicy>(
    stream: &mut Stream<'_>,
    duplex: &mut Duplex<'_>,
    policy: &mut P,
    (front, back): (&Proxy, &Proxy),
) -> P::Over {
    let order = if P::FIRST == Way::Up { [Way::Up, Way::Down] } else { [Way::Down, Way::Up] };
    let (mut moved, mut due) = (false, None);
    poll_fn(|cx| {
        if let Some(cause) = stream.client.session.kill.get() {
            return Poll::Ready(policy.killed(cause));
        }
        if front.options.contstats && moved {
            moved = !finish::count_meanwhile(stream, duplex.down);
        }
        for way in order {
            if if way == Way::Up { duplex.up_done } else { duplex.down_done } {
                continue;
            }
            match poll_way(duplex, stream, way, cx) {
                None => return Poll::Ready(policy.cut_off()),
                Some(Poll::Pending) => {}
                Some(Poll::Ready(end)) => {
                    if let Some(over) = policy.came(duplex, stream, way, end) {
                        return Poll::Ready(over);
                    }
                }
            }
        }
        if let Some(over) = policy.look(duplex, stream, cx) {
            return Poll::Ready(over);
        }
        moved |= keep_time(duplex, stream, front, back);
        if front.options.contstats && moved && finish::is_count_due(&mut due, stream, cx) {
            moved = !finish::count_meanwhile(stream, duplex.down);
        }
        match policy.late(duplex, stream, cx) {
            Some(over) => Poll::Ready(over),
            None => Poll::Pending,
        }
    })
    .await
}

/// Gives those more time who said something, or took something; whether anything moved.
fn keep_time(duplex: &mut Duplex<'_>, stream: &mut Stream<'_>, front: &Proxy, back: &Proxy) -> bool {
    let moved_down = std::mem::take(&mut duplex.down.moved);
    let moved_up = std::mem::take(&mut stream.upload.moved);
    if moved_up || moved_down && duplex.down.prolongs(front.options.independent_streams) {
        stream.client.timer.set_after(duplex.limits.0);
    }
    if moved_down || moved_up && stream.upload.prolongs(back.options.independent_streams) {
        stream.server_timer.set_after(duplex.limits.1);
    }
    moved_up || moved_down
}
