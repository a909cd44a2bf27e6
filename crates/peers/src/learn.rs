//! What a peer tells.

use std::sync::Arc;

use program::peers::Shared;
use stick::{Data, KeyKind, RawRate, Row};
use wire::peers::read::{Column, Key, Text, Value, take_key, values};
use wire::peers::{Definition, Fault, Reader, table};

use crate::dict::Seen;
use crate::hub::Fresh;

/// A table as the peer has defined it.
pub(crate) struct Known {
    /// Its number.
    pub id: u64,
    /// Which one of ours it is; `None`: none that we have, or one of another kind.
    pub at: Option<usize>,
    /// The types of data that the peer has in it.
    pub types: u64,
    key: Option<Key>,
    key_len: u64,
    columns: Vec<Column>,
    /// The last update that came.
    pub last: u32,
    /// The peer waits to hear that it came.
    pub owed: bool,
}

/// The key of a table on the wire, and its announced length.
pub(crate) fn key_of(kind: KeyKind) -> (Key, u64) {
    match kind {
        KeyKind::Ip => (Key::Ipv4, 4),
        KeyKind::Ipv6 => (Key::Ipv6, 16),
        KeyKind::Integer => (Key::Integer, 4),
        // The end of the text is counted, too.
        KeyKind::Text(len) => (Key::Text, len as u64 + 1),
        KeyKind::Binary(len) => (Key::Binary, len as u64),
    }
}

impl Known {
    /// A table that was defined, and which of ours it is.
    pub(crate) fn new(defined: Definition<'_>, tables: &[Shared]) -> Known {
        let fits = |t: &Shared| {
            let (key, len) = key_of(t.table.kind());
            t.name.as_bytes() == defined.name && defined.key == Some(key) && defined.key_len == len
        };
        Known {
            id: defined.id,
            at: tables.iter().position(fits),
            types: defined.types,
            key: defined.key,
            key_len: defined.key_len,
            columns: defined.columns,
            last: 0,
            owed: false,
        }
    }
}

/// What has to be known to learn an entry.
pub(crate) struct Lesson<'l> {
    pub tables: &'l [Shared],
    pub seen: &'l mut Seen,
    /// What came as news, as long as not everything is known.
    pub fresh: Option<&'l mut Fresh>,
    pub now: u64,
}

impl Lesson<'_> {
    /// Learns an entry from a message.
    ///
    /// # Errors
    /// It ends too early.
    pub(crate) fn entry(&mut self, known: &mut Known, kind: u8, body: &[u8]) -> Result<(), Fault> {
        let mut r = Reader::new(body);
        let (numbered, timed) = match kind {
            table::UPDATE => (true, false),
            table::NEXT => (false, false),
            table::TIMED => (true, true),
            _ => (false, true),
        };
        known.last = match numbered {
            true => r.long().ok_or(Fault::Protocol)?,
            false => known.last.wrapping_add(1),
        };
        known.owed = true;
        let left = if timed { Some(r.long().ok_or(Fault::Protocol)?) } else { None };
        let found = known.at.and_then(|at| Some((at, self.tables.get(at)?)));
        let (Some((at, shared)), Some(key)) = (found, known.key) else {
            return Ok(());
        };
        let key = take_key(key, known.key_len, &mut r).ok_or(Fault::Protocol)?;
        let settings = shared.table.settings();
        let key = match settings.kind {
            KeyKind::Text(len) => key.get(..len).unwrap_or(key),
            _ => key,
        };
        let stale = self.is_stale(at, key, timed);
        let mut also: Vec<(Data, usize, u64)> = Vec::new();
        let mut server: Option<Option<Arc<str>>> = None;
        let mut row = if stale { None } else { shared.table.learned(key, self.now) };
        let mut differs = false;
        let read = values(&known.columns, &mut r, |column, index, value| {
            let Some(data) = stick::data::TYPES.get(usize::from(column.number)).map(|t| t.data) else {
                return;
            };
            let text = match value {
                Value::Text(Text::New(number, text)) => {
                    self.seen.learn(number, text);
                    self.seen.get(number).cloned()
                }
                Value::Text(Text::Known(number)) => self.seen.get(number).cloned(),
                _ => None,
            };
            let local = data == Data::ConnCur && !settings.recv_only;
            if local || !settings.layout.has(data) {
                return;
            }
            if let Some(row) = &mut row {
                differs |= matches!(value, Value::Number(n) if row.get(data, index) != Some(n));
                set(row, data, index, value, text.as_ref());
            }
            if shared.write_to.is_some() && !stale {
                match (data, value) {
                    (Data::ServerId | Data::Gpt0 | Data::Gpt, Value::Number(n)) => {
                        also.push((data, index, n))
                    }
                    (Data::ServerKey, Value::Text(_)) => server = Some(text),
                    _ => {}
                }
            }
        });
        if let Some(mut row) = row {
            if let Some(left) = left.map(u64::from).filter(|_| settings.expire > 0) {
                row.set_idle(settings.expire.saturating_sub(left));
            }
            // What was counted here before the lesson came is known to others: they hear what counts now.
            if !(timed && differs && row.is_noted()) {
                row.keep_quiet();
            }
        }
        read.ok_or(Fault::Protocol)?;
        if !stale {
            self.pass_on(shared, key, also, server);
        }
        Ok(())
    }

    /// Whether what came of an entry may be older than what is known of it; news of it are noted. Whoever
    /// teaches tells the time left (`timed`), news come without.
    fn is_stale(&mut self, at: usize, key: &[u8], timed: bool) -> bool {
        match &mut self.fresh {
            Some(fresh) if !timed => {
                fresh.note(at, key);
                false
            }
            fresh => fresh.as_ref().is_some_and(|fresh| fresh.has(at, key)),
        }
    }

    /// Copies what is told of an entry to the table that `write-to` names.
    fn pass_on(
        &self,
        shared: &Shared,
        key: &[u8],
        also: Vec<(Data, usize, u64)>,
        server: Option<Option<Arc<str>>>,
    ) {
        let Some(to) = &shared.write_to else { return };
        let Some(held) = to.enter(key, self.now) else { return };
        let mut row = held.row(self.now);
        for (data, index, value) in also {
            if to.layout().has(data) {
                row.set(data, index, value);
            }
        }
        match server {
            Some(Some(name)) => row.set_server(&name),
            Some(None) => row.clear_server(),
            None => {}
        }
    }
}

/// An element of an entry. What does not fit is cut.
fn set(row: &mut Row<'_>, data: Data, index: usize, value: Value<'_>, text: Option<&Arc<str>>) {
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    match value {
        Value::Number(n) => {
            row.set(data, index, n);
        }
        Value::Rate(age, current, before) => {
            let rate = RawRate { age, current: small(current), before: small(before) };
            row.set_rate(data, index, rate);
        }
        Value::Text(_) => match text {
            // Most updates name the server of before.
            Some(name) if row.server().is_some_and(|known| known == name) => {}
            Some(name) => row.set_server(name),
            None => row.clear_server(),
        },
    }
}
