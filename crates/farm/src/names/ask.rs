//! One resolution of a name: all name servers are asked at once, for one kind of record after the other, as
//! often as the section says. The first valid answer counts; of failures the last one does.
//!
//! Each question has a random number, and over UDP a socket of its own, so that its port is as random as the
//! kernel makes it. What comes from elsewhere, or answers something else, is counted and passed over.

use std::future::poll_fn;
use std::task::{Context, Poll};

use model::names::Event;
use program::Program;
use program::names::{Families, Resolvers};
use rt::{Addr, Datagram, Mono, Receiver, Timer};
use wire::dns::{self, Answer, Fault, Kind, Question};

use super::line::Pending;
use super::{Name, Names, Wanted};

/// A valid answer and the name server that gave it.
pub(super) struct Heard {
    pub answer: Answer,
    pub by: usize,
}

/// Why a name was not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Nx,
    Refused,
    TimedOut,
    Other,
}

impl Failure {
    fn of(fault: Fault) -> Failure {
        match fault {
            Fault::Nx => Failure::Nx,
            Fault::Refused => Failure::Refused,
            _ => Failure::Other,
        }
    }
}

/// What is counted for a message that is no valid answer.
pub(super) fn event(fault: Fault) -> Event {
    match fault {
        Fault::Outdated => Event::Outdated,
        Fault::Stray | Fault::Invalid => Event::Invalid,
        Fault::Truncated => Event::Truncated,
        Fault::Nx => Event::Nx,
        Fault::Refused => Event::Refused,
        Fault::Other => Event::Other,
        Fault::Empty => Event::Empty,
        Fault::Alias => Event::AliasError,
    }
}

/// Messages that one socket passes over before it is given up: somebody floods it.
const MOST_STRAYS: u32 = 64;

/// The kinds of records to ask for, in order.
fn kinds(wanted: Wanted, families: Families) -> &'static [Kind] {
    let both = match families {
        Families::V4 => return if wanted == Wanted::Service { &[Kind::Srv] } else { &[Kind::A] },
        Families::V6 => return if wanted == Wanted::Service { &[Kind::Srv] } else { &[Kind::Aaaa] },
        Families::Both => true,
        Families::Auto => leads_v6(),
    };
    match wanted {
        Wanted::Service => &[Kind::Srv],
        Wanted::Address { .. } if !both => &[Kind::A],
        Wanted::Address { v4: true } => &[Kind::A, Kind::Aaaa],
        Wanted::Address { v4: false } => &[Kind::Aaaa, Kind::A],
    }
}

/// Whether the system knows a way to addresses of IPv6. Connecting a datagram socket sends nothing.
fn leads_v6() -> bool {
    let somewhere = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    Datagram::connect(&Addr::Inet((somewhere, 53).into())).is_ok()
}

/// Resolves a name.
///
/// # Errors
/// Why nothing was found.
pub(super) async fn resolve(names: &Names, program: &Program, name: &Name) -> Result<Heard, Failure> {
    let Some(section) = program.resolvers.get(name.section as usize) else { return Err(Failure::Other) };
    let mut failure = Failure::TimedOut;
    for attempt in 1..=section.tries {
        let until = rt::now() + section.retry.max(std::time::Duration::from_millis(1));
        let mut waited = false;
        for kind in kinds(name.wanted, program.global.tune.families) {
            match ask(names, section, name, *kind).await {
                Ok(heard) => return Ok(heard),
                Err(why) => failure = why,
            }
            // Who was silent is asked the same again.
            waited = failure == Failure::TimedOut;
            if waited {
                break;
            }
        }
        if !waited && attempt < section.tries {
            rt::sleep_until(until).await;
        }
    }
    Err(failure)
}

/// A name server that has not answered yet.
enum Asked {
    Datagram { socket: Datagram, strays: u32 },
    Stream(Receiver<Result<Answer, Fault>>),
}

/// Asks all name servers one question.
async fn ask(names: &Names, section: &Resolvers, name: &Name, kind: Kind) -> Result<Heard, Failure> {
    // Names that rules ask for may be many, and clients choose them: those of servers don't wait behind.
    let turns = if name.servers.borrow().is_empty() { &names.guests } else { &names.turns };
    let _turn = turns.take().await;
    let until = rt::now() + section.retry.max(std::time::Duration::from_millis(1));
    let question = |kind| Question { id: names.number(), name: name.name.clone(), kind };
    let mut open: Vec<(usize, Question, Asked)> = Vec::new();
    for (at, server) in section.servers.iter().enumerate() {
        let question = question(kind);
        let Some(message) = dns::query(&question, section.payload) else { return Err(Failure::Other) };
        let asked = if server.stream {
            let pending = Pending { message, question: question.clone(), until };
            names.line(name.section, at).ask(server, section.payload, pending).map(Asked::Stream)
        } else {
            send(&message, &Addr::Inet(server.addr))
        };
        server.state.count(if asked.is_some() { Event::Sent } else { Event::SendError });
        open.extend(asked.map(|asked| (at, question, asked)));
    }
    let mut listening = Listening { names, section, open, last: None, until };
    let mut timer = Timer::at(until);
    poll_fn(|cx| listening.poll(cx, &mut timer)).await
}

fn send(message: &[u8], to: &Addr) -> Option<Asked> {
    let socket = Datagram::unbound(to).ok()?;
    socket.try_send_to(message, to).ok()?;
    Some(Asked::Datagram { socket, strays: 0 })
}

/// What is waited for after a question was asked.
struct Listening<'n> {
    names: &'n Names,
    section: &'n Resolvers,
    open: Vec<(usize, Question, Asked)>,
    last: Option<Fault>,
    until: Mono,
}

impl Listening<'_> {
    fn poll(&mut self, cx: &mut Context<'_>, timer: &mut Timer) -> Poll<Result<Heard, Failure>> {
        let mut found = None;
        let (names, section, last) = (self.names, self.section, &mut self.last);
        self.open.retain_mut(|(at, question, asked)| {
            if found.is_some() {
                return true;
            }
            let Some(server) = section.servers.get(*at) else { return false };
            let heard = match asked {
                Asked::Stream(receiver) => match receiver.poll_recv(cx) {
                    Poll::Pending => return true,
                    // The line broke: that server will not answer.
                    Poll::Ready(None) => return false,
                    Poll::Ready(Some(heard)) => heard,
                },
                Asked::Datagram { socket, strays } => {
                    match receive(names, cx, (socket, strays), (section, *at), question) {
                        Poll::Pending => return true,
                        Poll::Ready(None) => return false,
                        Poll::Ready(Some(heard)) => heard,
                    }
                }
            };
            match heard {
                Ok(answer) => {
                    server.state.count(Event::Valid);
                    found = Some(Heard { answer, by: *at });
                }
                Err(fault) => *last = Some(fault),
            }
            false
        });
        if let Some(heard) = found {
            return Poll::Ready(Ok(heard));
        }
        if self.open.is_empty()
            && let Some(fault) = self.last
        {
            return Poll::Ready(Err(Failure::of(fault)));
        }
        debug_assert!(timer.deadline().is_none_or(|d| d <= self.until));
        timer.poll_expired(cx).map(|()| Err(self.last.map_or(Failure::TimedOut, Failure::of)))
    }
}

/// Receives what a name server says to a question; `None`: the socket is of no use any more.
fn receive(
    names: &Names,
    cx: &mut Context<'_>,
    (socket, strays): (&Datagram, &mut u32),
    (section, at): (&Resolvers, usize),
    question: &Question,
) -> Poll<Option<Result<Answer, Fault>>> {
    let Some(server) = section.servers.get(at) else { return Poll::Ready(None) };
    let mut buf = names.datagram.borrow_mut();
    // One byte more than was announced shows what is too long.
    buf.resize(usize::from(section.payload) + 1, 0);
    loop {
        if *strays >= MOST_STRAYS {
            return Poll::Ready(None);
        }
        let received = std::task::ready!(socket.poll_recv(cx, &mut buf));
        let Ok((n, from)) = received else {
            *strays += 1;
            continue;
        };
        let from = match from {
            Some(Addr::Inet(from)) => Some((from.ip(), from.port())),
            _ => None,
        };
        if from != Some((server.addr.ip(), server.addr.port())) {
            *strays += 1;
            server.state.count(Event::Invalid);
            continue;
        }
        let message = buf.get(..n).unwrap_or_default();
        if n > usize::from(section.payload) {
            server.state.count(Event::TooBig);
            // Whoever does not know the number is not the one who was asked.
            if dns::number(message) != Some(question.id) {
                *strays += 1;
                continue;
            }
            return Poll::Ready(Some(Err(Fault::Invalid)));
        }
        match dns::answer(message, question) {
            Ok(answer) => return Poll::Ready(Some(Ok(answer))),
            Err(fault) => {
                server.state.count(event(fault));
                if !matches!(fault, Fault::Outdated | Fault::Stray) {
                    return Poll::Ready(Some(Err(fault)));
                }
                *strays += 1;
            }
        }
    }
}
