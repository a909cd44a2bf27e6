//! What is counted of name servers (`show resolvers`, `show stat domain resolvers`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What happened to questions and answers, each with the name that `show resolvers` gives it, and the one of
/// the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A question was sent.
    Sent,
    /// It could not be sent.
    SendError,
    /// A valid answer.
    Valid,
    /// One that moved a server.
    Update,
    /// An answer with an alias in it; HAProxy counts none here.
    Alias,
    /// An alias that leads nowhere.
    AliasError,
    /// No record of the kind asked for.
    Empty,
    /// The name does not exist.
    Nx,
    /// No answer in time; HAProxy counts none here.
    Timeout,
    /// The server refuses.
    Refused,
    /// Another error.
    Other,
    /// An answer that can't be read, or that is none to the question, or comes from elsewhere.
    Invalid,
    /// An answer longer than was announced.
    TooBig,
    /// An answer that was cut short.
    Truncated,
    /// An answer whose number nobody waits for.
    Outdated,
}

/// All of them in the order of the statistics.
pub const EVENTS: [(Event, &str, &str); 15] = [
    (Event::Sent, "sent", "sent"),
    (Event::SendError, "snd_error", "send_error"),
    (Event::Valid, "valid", "valid"),
    (Event::Update, "update", "update"),
    (Event::Alias, "cname", "cname"),
    (Event::AliasError, "cname_error", "cname_error"),
    (Event::Empty, "any_err", "any_err"),
    (Event::Nx, "nx", "nx"),
    (Event::Timeout, "timeout", "timeout"),
    (Event::Refused, "refused", "refused"),
    (Event::Other, "other", "other"),
    (Event::Invalid, "invalid", "invalid"),
    (Event::TooBig, "too_big", "too_big"),
    (Event::Truncated, "truncated", "truncated"),
    (Event::Outdated, "outdated", "outdated"),
];

/// The figures of one name server. They are written by the worker that resolves names, and cleared by
/// commands.
#[derive(Debug, Default)]
pub struct NameServer([AtomicU64; EVENTS.len()]);

impl NameServer {
    /// Counts something.
    pub fn count(&self, event: Event) {
        if let Some(counter) = self.0.get(event as usize) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// How often something was counted.
    pub fn get(&self, event: Event) -> u64 {
        self.0.get(event as usize).map_or(0, |counter| counter.load(Relaxed))
    }

    /// Begins anew (`clear counters all`).
    pub fn clear(&self) {
        self.0.iter().for_each(|counter| counter.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_counter() {
        let server = NameServer::default();
        for (at, (event, ..)) in EVENTS.iter().enumerate() {
            assert_eq!(*event as usize, at);
            server.count(*event);
            assert_eq!(server.get(*event), 1);
        }
        server.clear();
        assert_eq!(server.get(Event::Outdated), 0);
    }
}
