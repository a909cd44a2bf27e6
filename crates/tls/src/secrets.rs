//! What can decrypt a connection, for logs that let somebody do so (manual, `tune.ssl.keylog`), and the
//! random numbers that name its handshake.
//!
//! Nothing of it is kept unless the configuration names a fetch that tells it: whoever reads such a fetch
//! says so ([`want`]), before the first connection. rustls hands secrets out while it works on a handshake,
//! on the thread that drives it, so they are left in a cell of the thread, from where the handshake at hand
//! takes them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rustls::KeyLog;

use crate::hello::Cursor;
use crate::room::HEADER;

/// What may be wanted, as bits.
pub mod kind {
    /// Random numbers of both sides, and the id of the session.
    pub const RANDOMS: u8 = 1;
    /// Traffic and exporter secrets.
    pub const TRAFFIC: u8 = 2;
    /// The master secret of TLS 1.2.
    pub const MASTER: u8 = 4;
}

static WANTED: AtomicU8 = AtomicU8::new(0);

/// From now on this kind is kept of each connection.
pub fn want(kind: u8) {
    WANTED.fetch_or(kind, Relaxed);
}

fn wanted(kind: u8) -> bool {
    WANTED.load(Relaxed) & kind != 0
}

/// Label of the master secret.
pub const MASTER: &str = "CLIENT_RANDOM";
/// Labels of the others, as key logs have them.
const LABELS: &[&str] = &[
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
    "EXPORTER_SECRET",
    "EARLY_EXPORTER_SECRET",
];

/// A secret behind its label.
pub type Secret = (&'static str, Box<[u8]>);

/// What is kept of a connection.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Material {
    /// Random of the client.
    pub client_random: Box<[u8]>,
    /// Random of the server.
    pub server_random: Box<[u8]>,
    /// The session's id, as the server said it.
    pub session_id: Box<[u8]>,
    /// Secrets by label.
    pub secrets: Vec<Secret>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Material")
    }
}

thread_local! {
    static LOGGED: RefCell<Vec<Secret>> = const { RefCell::new(Vec::new()) };
}

/// What rustls tells secrets to.
#[derive(Debug)]
pub(crate) struct Log {
    /// `tune.ssl.keylog`.
    pub all: bool,
}

impl KeyLog for Log {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        let known = LABELS.iter().chain([&MASTER]).find(|l| **l == label);
        if let Some(label) = known.filter(|_| self.will_log(label)) {
            LOGGED.with(|list| list.borrow_mut().push((label, secret.into())));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        if label == MASTER { wanted(kind::MASTER) } else { self.all && wanted(kind::TRAFFIC) }
    }
}

/// Gathers what is wanted of a handshake.
#[derive(Debug, Default)]
pub(crate) struct Gatherer {
    material: Option<Box<Material>>,
}

impl Gatherer {
    /// Takes what rustls told since the last time.
    pub fn take(&mut self) {
        LOGGED.with(|list| {
            let mut list = list.borrow_mut();
            if !list.is_empty() {
                self.material.get_or_insert_default().secrets.append(&mut list);
            }
        });
    }

    /// Looks at what the client sends first.
    pub fn client(&mut self, hello: &[u8]) {
        if wanted(kind::RANDOMS)
            && self.material.as_ref().is_none_or(|m| m.client_random.is_empty())
            && let Some(random) = hello.get(2..34)
        {
            self.material.get_or_insert_default().client_random = random.into();
        }
    }

    /// Looks at records that either side begins with, for the hello of that side.
    pub fn records(&mut self, bytes: &[u8]) {
        if !wanted(kind::RANDOMS) {
            return;
        }
        match first_message(bytes) {
            Some((1, hello)) => self.client(hello),
            Some((2, hello)) => self.server(hello),
            _ => {}
        }
    }

    fn server(&mut self, hello: &[u8]) {
        let known = self.material.as_ref().is_some_and(|m| !m.server_random.is_empty());
        let Some(random) = hello.get(2..34).filter(|r| !known && *r != RETRY) else { return };
        let material = self.material.get_or_insert_default();
        material.server_random = random.into();
        let mut rest = Cursor(hello.get(34..).unwrap_or_default());
        material.session_id = rest.vector(1).unwrap_or_default().into();
    }

    /// All of it.
    pub fn finish(&mut self) -> Option<Box<Material>> {
        self.material.take()
    }
}

/// Type and begin of the message in the first record, as far as a hello's numbers go.
fn first_message(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let (kind, body) = (*rest.first()?, rest.get(4..)?);
    // Version, random, and the longest session id.
    (header[0] == 22 && body.len() > 34 && body.len() > 34 + usize::from(body[34])).then_some((kind, body))
}

/// The random of a server that asks for another hello (RFC 8446 section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_tell_their_numbers_but_a_retry_does_not() {
        want(kind::RANDOMS);
        let record = |kind: u8, random: &[u8; 32]| {
            [&[22, 3, 3, 0, 77, kind, 0, 0, 73, 3, 3][..], random, &[2, 8, 9], &[0; 36]].concat()
        };
        let mut all = Gatherer::default();
        all.records(&record(1, &[1; 32]));
        all.records(&record(2, &RETRY));
        all.records(&record(2, &[2; 32]));
        all.records(&record(2, &[3; 32]));
        let found = all.finish().unwrap();
        assert_eq!((&*found.client_random, &*found.server_random), (&[1; 32][..], &[2; 32][..]));
        assert_eq!(*found.session_id, [8, 9]);
        for len in 0..45 {
            let mut none = Gatherer::default();
            none.records(&record(2, &[2; 32])[..len]);
            assert_eq!(none.finish(), None, "{len}");
        }
    }
}
