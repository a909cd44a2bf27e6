//! Texts that are sent once and then by number: names of servers.

use std::collections::HashMap;
use std::sync::Arc;

/// Numbers go from 1 to this.
pub(crate) const ROOM: usize = 128;

/// The texts that a peer was sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize>,
    /// The one that makes room next.
    oldest: usize,
    /// Something is new since they were shown.
    fresh: bool,
}

impl Sent {
    /// The number of a text, and whether the peer has to be sent it.
    pub(crate) fn number(&mut self, text: &Arc<str>) -> (u64, bool) {
        if let Some(at) = self.numbers.get(text) {
            return (*at as u64 + 1, false);
        }
        self.fresh = true;
        let at = match self.texts.len() < ROOM {
            true => {
                self.texts.push(text.clone());
                self.texts.len() - 1
            }
            false => {
                let at = self.oldest;
                self.oldest = (at + 1) % ROOM;
                if let Some(place) = self.texts.get_mut(at) {
                    let old = std::mem::replace(place, text.clone());
                    self.numbers.remove(&old);
                }
                at
            }
        };
        self.numbers.insert(text.clone(), at);
        (at as u64 + 1, true)
    }

    /// All of them, if something is new.
    pub(crate) fn fresh(&mut self) -> Option<&[Arc<str>]> {
        std::mem::take(&mut self.fresh).then_some(&self.texts)
    }
}

/// The texts that a peer has sent.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    texts: Vec<Option<Arc<str>>>,
    /// Something is new since they were shown.
    fresh: bool,
}

impl Seen {
    /// The text of a number.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<str>> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.texts.get(at)?.as_ref()
    }

    /// A text and the number that it has from here on.
    pub(crate) fn learn(&mut self, number: u64, text: &[u8]) {
        let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1)).filter(|at| *at < ROOM);
        let Some(at) = at else { return };
        if self.texts.len() <= at {
            self.texts.resize(at + 1, None);
        }
        if let Some(place) = self.texts.get_mut(at) {
            *place = std::str::from_utf8(text).ok().map(Into::into);
            self.fresh = true;
        }
    }

    /// All of them, if something is new.
    pub(crate) fn fresh(&mut self) -> Option<&[Option<Arc<str>>]> {
        std::mem::take(&mut self.fresh).then_some(&self.texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_text_makes_room_and_is_sent_again() {
        let mut sent = Sent::default();
        let text = |n: usize| -> Arc<str> { format!("s{n}").into() };
        for n in 0..ROOM {
            assert_eq!(sent.number(&text(n)), (n as u64 + 1, true));
        }
        assert_eq!(sent.number(&text(0)), (1, false));
        assert_eq!(sent.number(&text(200)), (1, true));
        assert_eq!(sent.number(&text(0)), (2, true));
        assert_eq!(sent.number(&text(2)), (3, false));
    }

    #[test]
    fn numbers_out_of_range_are_passed_over() {
        let mut seen = Seen::default();
        for number in [0, 129, u64::MAX] {
            seen.learn(number, b"x");
            assert_eq!(seen.get(number), None);
        }
        seen.learn(128, b"x");
        seen.learn(128, b"y");
        assert_eq!(seen.get(128).map(|t| &**t), Some("y"));
        seen.learn(128, b"\xff");
        assert_eq!(seen.get(128), None);
    }
}
