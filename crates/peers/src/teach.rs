//! What a peer is told: what changes here, and everything if it asks.

use program::peers::Shared;
use stick::data::Shape;
use stick::{Cursor, Row};
use wire::peers::read::Column;
use wire::peers::{control, table, write};

use crate::dict::Sent;
use crate::learn::key_of;
use crate::progress::Progress;

/// No more is put together for one send.
pub(crate) const FULL: usize = 32 * 1024;
/// Entries that are looked at under one lock.
const STRETCH: usize = 128;

/// Where teaching stands.
#[derive(Default)]
pub(crate) enum Teaching {
    /// Nobody is taught.
    #[default]
    No,
    /// Everything is told: which table, and how far it has come.
    On { table: usize, turns: Turns, since: Vec<Vec<Cursor>> },
    /// Everything was told; the peer has to confirm it. Where the logs stood when it began.
    Told { since: Vec<Vec<Cursor>> },
}

impl Teaching {
    /// From the beginning.
    pub(crate) fn begin(tables: &[Shared]) -> Teaching {
        let since = |t: &Shared| (0..t.table.parts()).map(|part| t.table.caught_up(part)).collect();
        let since = tables.iter().map(since).collect();
        Teaching::On { table: 0, turns: Turns::default(), since }
    }
}

/// How far a table is told. Its shards take turns, each with a stretch of its oldest entries that are left:
/// who learns puts every entry where its age belongs, and is quick at it where ages come about in order.
/// Shard by shard they would begin anew with each.
#[derive(Default)]
pub(crate) struct Turns {
    /// For each shard that had its first turn, the places of its entries that are left, the oldest last.
    left: Vec<Vec<u32>>,
    /// Whose turn is next.
    part: u32,
}

impl Turns {
    /// The shard whose turn it is, and the places of its stretch; `None`: everything was told.
    fn next(&mut self, table: &stick::Table, stretch: &mut Vec<u32>) -> Option<u32> {
        if self.part == table.parts() {
            self.left.iter().any(|left| !left.is_empty()).then(|| self.part = 0)?;
        }
        let part = self.part;
        self.part += 1;
        if self.left.len() <= part as usize {
            let mut places = table.places(part);
            places.reverse();
            self.left.push(places);
        }
        let left = self.left.get_mut(part as usize)?;
        stretch.clear();
        stretch.extend(left.drain(left.len().saturating_sub(STRETCH)..).rev());
        Some(part)
    }
}

/// Who is told, and what it knows of tables and texts.
pub(crate) struct Told<'t> {
    pub tables: &'t [Shared],
    pub progress: &'t mut [Progress],
    pub sent: &'t mut Sent,
    /// The table that was named last.
    pub named: &'t mut Option<usize>,
    pub out: &'t mut Vec<u8>,
    /// The group of keys that concern the peer, and how many there are.
    pub group: Group,
    pub now: u64,
}

/// A group of keys (`shard`), and how many there are (`shards`).
#[derive(Clone, Copy)]
pub(crate) struct Group(pub u32, pub u32);

impl Group {
    /// Whether an entry is in it. Who has no group is told everything.
    fn has(self, row: &Row<'_>) -> bool {
        self.0 == 0 || row.group(self.1) == self.0
    }
}

/// An update as it goes out: its kind, its number, whether the time left is told.
#[derive(Clone, Copy)]
struct Form {
    numbered: Option<u32>,
    timed: bool,
}

impl Told<'_> {
    fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    /// Names a table; whether it was another one before.
    fn name(&mut self, at: usize) -> bool {
        if *self.named == Some(at) {
            return false;
        }
        *self.named = Some(at);
        let Some(shared) = self.tables.get(at) else { return true };
        let table = &shared.table;
        let columns: Vec<Column> = table
            .layout()
            .columns()
            .iter()
            .filter_map(|c| {
                let number = c.data as u8;
                let (shape, _) = wire::peers::shape(number)?;
                Some(Column { number, shape, count: c.count as u32, period: c.period.into() })
            })
            .collect();
        let key = key_of(table.kind());
        write::definition(self.out, at as u64 + 1, &shared.name, key, table.settings().expire, &columns);
        true
    }

    /// Tells what has changed, as much as there is room for.
    pub(crate) fn news(&mut self) {
        for at in 0..self.tables.len() {
            let table = self.tables[at].table.clone();
            for part in 0..table.parts() {
                loop {
                    let Some(progress) = self.progress.get_mut(at) else { return };
                    let Some(mut cursor) = progress.sent.get(part as usize).copied() else { break };
                    if !table.has_news(part, cursor) {
                        break;
                    }
                    if self.is_full() {
                        return;
                    }
                    let mut first = self.name(at);
                    let Told { progress, sent, out, now, group, .. } = self;
                    let Some(progress) = progress.get_mut(at) else { return };
                    let update = &mut progress.update;
                    table.news(part, &mut cursor, *now, STRETCH, |row| {
                        if !group.has(row) {
                            return;
                        }
                        *update = update.wrapping_add(1);
                        let numbered = std::mem::take(&mut first).then_some(*update);
                        entry(out, row, table.layout(), Form { numbered, timed: false }, sent);
                    });
                    progress.took_off(part, cursor);
                }
            }
        }
    }

    /// Tells of everything, as much as there is room for; whether that was all.
    pub(crate) fn everything(&mut self, teaching: &mut Teaching, up_to_date: bool) -> bool {
        let Teaching::On { table, turns, since } = teaching else { return true };
        let mut stretch = Vec::with_capacity(STRETCH);
        while let Some(shared) = self.tables.get(*table) {
            if self.is_full() {
                return false;
            }
            let Some(part) = turns.next(&shared.table, &mut stretch) else {
                // A table without entries is named all the same.
                self.name(*table);
                (*table, *turns) = (*table + 1, Turns::default());
                continue;
            };
            let mut first = self.name(*table);
            let Told { progress, sent, out, now, group, .. } = self;
            let Some(progress) = progress.get_mut(*table) else { return true };
            let update = &mut progress.update;
            let layout = shared.table.layout();
            shared.table.at_places(part, &stretch, *now, |row| {
                if !group.has(row) {
                    return;
                }
                *update = update.wrapping_add(1);
                let numbered = std::mem::take(&mut first).then_some(*update);
                entry(out, row, layout, Form { numbered, timed: true }, sent);
            });
        }
        let since = std::mem::take(since);
        *teaching = Teaching::Told { since };
        let end = if up_to_date { control::FINISHED } else { control::PARTIAL };
        write::short(self.out, wire::peers::class::CONTROL, end);
        true
    }
}

/// Writes an entry.
fn entry(out: &mut Vec<u8>, row: &Row<'_>, layout: &stick::Layout, form: Form, sent: &mut Sent) {
    let kind = match (form.numbered, form.timed) {
        (Some(_), false) => table::UPDATE,
        (None, false) => table::NEXT,
        (Some(_), true) => table::TIMED,
        (None, true) => table::TIMED_NEXT,
    };
    write::message(out, kind, |out| {
        if let Some(number) = form.numbered {
            out.extend_from_slice(&number.to_be_bytes());
        }
        if form.timed {
            let left = u32::try_from(row.expires_in()).unwrap_or(u32::MAX);
            out.extend_from_slice(&left.to_be_bytes());
        }
        let key = row.key();
        if row.is_text() {
            write::number(out, key.len() as u64);
        }
        out.extend_from_slice(key);
        for column in layout.columns() {
            for index in 0..column.count {
                match column.data.shape() {
                    Shape::Count | Shape::Long => {
                        write::number(out, row.get(column.data, index).unwrap_or(0));
                    }
                    Shape::Rate => {
                        let rate = row.rate(column.data, index).unwrap_or_default();
                        write::rate(out, rate.age, rate.current, rate.before);
                    }
                    Shape::Text => match row.server() {
                        None => write::text(out, 0, None),
                        Some(name) => {
                            let (number, new) = sent.number(name);
                            write::text(out, number, new.then_some(&**name));
                        }
                    },
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use stick::{KeyKind, Layout, Settings, SrvKey, Table};

    const ENTRIES: u64 = 20_000;

    /// Who learns puts each entry where its age belongs: it is told all of them once, and none is much older
    /// than what was told before.
    #[test]
    fn entries_are_told_about_in_order_of_age() {
        let settings = Settings {
            name: "t".into(),
            kind: KeyKind::Text(32),
            size: 100_000,
            expire: 3_600_000,
            nopurge: false,
            recv_only: false,
            write_to: None,
            srvkey: SrvKey::Name,
            brates_factor: 1,
            peers: Some("p".into()),
            layout: Layout::default(),
        };
        let table = Table::new(settings, 7);
        for at in 0..ENTRIES {
            drop(table.learned(format!("k{at}").as_bytes(), at));
        }
        let (mut turns, mut stretch) = (Turns::default(), Vec::new());
        let (mut told, mut latest, mut behind) = (0, 0, 0);
        while let Some(part) = turns.next(&table, &mut stretch) {
            table.at_places(part, &stretch, ENTRIES, |row| {
                let touched = ENTRIES - row.idle();
                behind = behind.max(latest - touched.min(latest));
                latest = latest.max(touched);
                told += 1;
            });
        }
        assert_eq!(told, ENTRIES);
        // Shard by shard it would be nearly all.
        assert!(behind < ENTRIES / 3, "{behind}");
    }
}
