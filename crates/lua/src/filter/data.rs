//! Data on their way through a filter of a script.
//!
//! A script is told with each piece whether it is the last one. So a piece is shown to it when it is known
//! what comes behind: the next piece, a pause, or the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};

use lang::action::Exec;
use lang::env::{Env, Side};
use lang::filter::{Broken, Moved, Rewriter};
use rt::Timer;

use super::{Said, Shared, channel, message};
use crate::action::PAUSE;
use crate::host::{Host, Serving};
use crate::shown::{Flowing, Length, Wishes};

/// The data of a direction.
pub struct LuaData {
    shared: Rc<Shared>,
    http: bool,
    flowing: Flowing,
    /// Something came that the script was not shown.
    fresh: bool,
    /// It was shown the end.
    told: bool,
    /// It was told that the message is over.
    ended: bool,
    /// When it wants to be asked again.
    timer: Timer,
    /// The timer is set.
    due: bool,
    /// It holds something back.
    waits: bool,
    /// It let something go on when it was asked last.
    moved: bool,
    /// How many bytes are to come yet, where that is known.
    left: Option<u64>,
}

/// A callback about data: it sees a copy of the transaction.
struct Passing<'a, 's> {
    serving: Serving<'a>,
    shared: &'s Shared,
    flowing: RefCell<&'s mut Flowing>,
}

impl Host for Passing<'_, '_> {
    fn id(&self) -> u64 {
        self.serving.id
    }

    fn env(&self, look: &mut dyn FnMut(&Env<'_>)) -> bool {
        let side = self.flowing.try_borrow().map_or(Side::Request, |flowing| flowing.side);
        self.serving.env(&mut |env| look(&Env { side, ..*env }))
    }

    fn exec(&self, _: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        false
    }

    fn wishes(&self) -> Option<&Wishes> {
        Some(&self.shared.wishes)
    }

    fn flowing(&self, change: &mut dyn FnMut(&mut Flowing)) -> bool {
        let Ok(mut flowing) = self.flowing.try_borrow_mut() else { return false };
        change(&mut flowing);
        true
    }
}

/// Shows data to a callback.
fn show(shared: &Shared, flowing: &mut Flowing, name: &str, http: bool) -> Said {
    let facts = shared.facts.borrow();
    let Some(facts) = facts.as_ref() else { return Said::Continue };
    let Some(txn) = facts.txn.as_deref() else { return Said::Continue };
    let side = flowing.side;
    facts.worker.with_arena(|arena| {
        let id = crate::state::host_id(false);
        let serving = Serving { id, worker: &facts.worker, session: &facts.session, txn, arena };
        let host = Passing { serving, shared, flowing: RefCell::new(flowing) };
        shared.callback(&host, name, |state, id| match http {
            true => message(state, id, side),
            false => channel(state, id, side),
        })
    })
}

fn empty_of(side: Side) -> Flowing {
    Flowing {
        side,
        held: Vec::new(),
        out: Vec::new(),
        most: rt::bufsize(),
        over: false,
        eom: false,
        http: true,
        waits: false,
        changed: false,
    }
}

/// A message without data went by.
pub fn empty(shared: &Shared, side: Side) {
    let mut flowing = Flowing { over: true, eom: true, ..empty_of(side) };
    show(shared, &mut flowing, "http_payload", true);
    show(shared, &mut flowing, "http_end", true);
}

impl LuaData {
    /// Those of a direction; `http`: they are the body of a message.
    pub fn new(shared: Rc<Shared>, side: Side, http: bool) -> LuaData {
        let (timer, flowing) = (Timer::new(), Flowing { http, ..empty_of(side) });
        let left = if http { shared.due(side) } else { None };
        LuaData {
            shared,
            http,
            flowing,
            fresh: false,
            told: false,
            ended: false,
            timer,
            due: false,
            waits: false,
            moved: false,
            left,
        }
    }

    /// Shows the script what there is; what it does not hold back goes on.
    fn ask(&mut self) -> Result<(), Broken> {
        (self.fresh, self.waits, self.due) = (false, false, false);
        let mut said = Said::Continue;
        if self.shared.wishes.wants(self.flowing.side) {
            let name = if self.http { "http_payload" } else { "tcp_payload" };
            said = show(&self.shared, &mut self.flowing, name, self.http);
        }
        match said {
            // An error that it returns has no effect here, as in HAProxy.
            Said::Continue | Said::Error => {
                self.flowing.forward(usize::MAX);
            }
            Said::Wait => {
                self.waits = true;
                let time = crate::core::take_wake_time();
                self.due = time.is_some();
                self.timer.set(time.map(|time| rt::now() + time));
            }
            Said::Failed => return Err(Broken),
        }
        self.moved = !self.flowing.out.is_empty();
        Ok(())
    }

    /// Writes what goes on; how much. More than the head says would be taken for the next message.
    fn give(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        let n = self.flowing.out.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..n), self.flowing.out.get(..n)) {
            to.copy_from_slice(from);
        }
        self.flowing.out.drain(..n);
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(n as u64).ok_or(Broken)?;
        }
        Ok(n)
    }
}

impl Rewriter for LuaData {
    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<Moved, Broken>> {
        let full = self.flowing.held.len() >= self.flowing.most;
        if self.flowing.out.is_empty() && self.fresh && full {
            self.ask()?;
        }
        if !self.flowing.out.is_empty() {
            return Poll::Ready(Ok(Moved { taken: 0, made: self.give(room)? }));
        }
        let taken = payload.len().min(self.flowing.most.saturating_sub(self.flowing.held.len()));
        self.flowing.held.extend_from_slice(payload.get(..taken).unwrap_or_default());
        self.fresh |= taken > 0;
        Poll::Ready(Ok(Moved { taken, made: 0 }))
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        if self.flowing.out.is_empty() {
            if self.fresh {
                self.ask()?;
            } else if self.waits && self.due {
                match self.timer.poll_expired(cx) {
                    Poll::Ready(()) => self.ask()?,
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
        let made = self.give(room)?;
        let asked_again = self.waits && self.due;
        Poll::Ready(Ok((made, self.flowing.out.is_empty() && !asked_again)))
    }

    fn poll_end(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<Result<(usize, bool), Broken>> {
        if !self.told {
            if self.flowing.out.is_empty() {
                (self.told, self.flowing.over, self.flowing.eom) = (true, true, true);
                self.ask()?;
            }
        } else if self.flowing.out.is_empty() && self.waits && self.moved {
            self.ask()?;
        } else if self.flowing.out.is_empty() && self.waits {
            // Nothing else will come: it is asked again as long as it makes a difference, and then at times.
            if !self.due {
                self.due = true;
                self.timer.set(Some(rt::now() + PAUSE));
            }
            match self.timer.poll_expired(cx) {
                Poll::Ready(()) => self.ask()?,
                Poll::Pending => return Poll::Pending,
            }
        }
        let made = self.give(room)?;
        let all = self.told && self.flowing.out.is_empty() && (!self.waits || self.flowing.held.is_empty());
        if all && !self.ended {
            self.ended = true;
            if self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Err(Broken));
            }
            if self.http {
                show(&self.shared, &mut self.flowing, "http_end", true);
            }
        }
        Poll::Ready(Ok((made, all)))
    }

    fn keeps_length(&self) -> bool {
        self.shared.wishes.length(self.flowing.side) == Length::Kept
    }

    fn length(&self) -> Option<u64> {
        match self.shared.wishes.length(self.flowing.side) {
            Length::Known(n) => Some(n),
            _ => None,
        }
    }
}
