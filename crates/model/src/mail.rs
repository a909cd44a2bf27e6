//! Mail about servers (`email-alert`, `mailers` sections; manual, section 12.3): what a configuration says of
//! it, and letters that wait to be sent.
//!
//! Letters wait by mailer, so that one that stalls holds up nothing but its own. They outlive the
//! configuration that wrote them, for each carries all that it needs.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// What a proxy says of mail, with the section that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// `email-alert from`.
    pub from: Box<str>,
    /// `email-alert to`.
    pub to: Box<str>,
    /// `email-alert myhostname`, or the name of the host.
    pub hostname: Box<str>,
    /// `email-alert level`: the least severity that is told, as a syslog level.
    pub level: u8,
    /// `timeout mail`: how long a mail may take.
    pub timeout: Duration,
    /// The servers.
    pub mailers: Vec<Mailer>,
    /// A script sends it (`core.use_native_mailers_config`), and so nobody else does.
    pub by_script: bool,
}

/// A mail server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailer {
    /// Its name.
    pub name: Box<str>,
    /// Its address.
    pub address: SocketAddr,
}

/// A mail that waits to be sent.
#[derive(Clone, Debug)]
pub struct Letter {
    /// From whom, to whom and by whom.
    pub mail: Arc<Mail>,
    /// What it says, in one line.
    pub text: Arc<str>,
    /// When it was written, in seconds since 1970.
    pub when: u64,
}

/// How many letters wait for a mailer at most.
pub const MOST: usize = 1000;

/// Letters for one mailer.
#[derive(Debug, Default)]
struct Lane {
    letters: VecDeque<Letter>,
    /// Those for which there was no room.
    missed: u64,
}

/// Letters that wait. A lane exists while somebody sends what is in it.
#[derive(Debug, Default)]
pub struct Outbox {
    lanes: Mutex<HashMap<SocketAddr, Lane>>,
}

impl Outbox {
    /// Leaves a letter for a mailer; whether nobody sends his letters yet, so that whoever asks has to.
    pub fn post(&self, mailer: SocketAddr, letter: Letter) -> bool {
        let mut lanes = self.lanes.lock();
        let idle = !lanes.contains_key(&mailer);
        let lane = lanes.entry(mailer).or_default();
        if lane.letters.len() < MOST {
            lane.letters.push_back(letter);
        } else {
            lane.missed += 1;
        }
        idle
    }

    /// The next letter for a mailer, and how many were lost since the last one. `None`: there is no more, and
    /// whoever sent them is done.
    pub fn next(&self, mailer: SocketAddr) -> Option<(Letter, u64)> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.get_mut(&mailer)?;
        let next = lane.letters.pop_front().map(|letter| (letter, std::mem::take(&mut lane.missed)));
        if next.is_none() {
            lanes.remove(&mailer);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter() -> Letter {
        let mail = Arc::new(Mail {
            from: "a".into(),
            to: "b".into(),
            hostname: "c".into(),
            level: 1,
            timeout: Duration::from_secs(10),
            mailers: Vec::new(),
            by_script: false,
        });
        Letter { mail, text: "x".into(), when: 0 }
    }

    #[test]
    fn a_lane_has_one_sender_and_a_limit() {
        let (outbox, at) = (Outbox::default(), SocketAddr::from(([127, 0, 0, 1], 25)));
        assert!(outbox.post(at, letter()));
        assert!(!outbox.post(at, letter()));
        assert!(outbox.post(SocketAddr::from(([127, 0, 0, 2], 25)), letter()), "another mailer");
        for _ in 0..MOST {
            assert!(!outbox.post(at, letter()));
        }
        let told: Vec<u64> = std::iter::from_fn(|| outbox.next(at)).map(|(_, missed)| missed).collect();
        assert_eq!((told.len(), told[0], told[1]), (MOST, 2, 0));
        assert!(outbox.post(at, letter()), "the sender is gone");
    }
}
