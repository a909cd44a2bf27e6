//! `stick-table`, and `table` in `peers` sections (manual, section 11.1).

use std::collections::HashSet;
use std::sync::Arc;

use stick::key::DEFAULT_LEN;
use stick::{Data, KeyKind, Layout, Settings, SrvKey, Table, data};
use syntax::{Diagnostic, Diagnostics};

use crate::draft::TableDraft;
use crate::statement::{Statement, Step, tight};
use crate::units::{self, TimeFault};

/// The most elements of an array.
const LARGEST_ARRAY: usize = 100;

/// Reads the words behind `stick-table`, or behind the name of a `table`.
pub(crate) fn read(s: &mut Statement<'_>, name: &str, owner: String, peers: bool) -> Step<TableDraft> {
    let mut settings = Settings {
        name: name.into(),
        kind: KeyKind::Ip,
        size: 0,
        expire: 0,
        nopurge: false,
        recv_only: false,
        write_to: None,
        srvkey: SrvKey::Name,
        brates_factor: 1,
        peers: None,
        layout: Layout::default(),
    };
    let mut kind = None;
    while let Some(word) = s.next() {
        match word.text() {
            "type" => kind = Some(key_kind(s)?),
            "size" => settings.size = size(s)?,
            "expire" => settings.expire = time(s)?,
            "nopurge" => settings.nopurge = true,
            "recv-only" => settings.recv_only = true,
            "peers" if peers => settings.peers = Some(argument(s, "peers")?.into()),
            "write-to" => {
                let table = s.word("stick-table : write-to requires table name.")?;
                settings.write_to = Some(table.text().into());
            }
            "srvkey" => settings.srvkey = srvkey(s)?,
            "brates-factor" => settings.brates_factor = brates(s)?,
            "store" => store(s, &mut settings.layout)?,
            other => return Err(s.fail(format!("stick-table: unknown argument '{other}'."))),
        }
    }
    if settings.size == 0 {
        return Err(s.fail("stick-table: missing size."));
    }
    settings.kind = kind.ok_or_else(|| s.fail("stick-table: missing type."))?;
    Ok(TableDraft { settings, span: s.line.span(), owner })
}

fn argument<'c>(s: &mut Statement<'c>, of: &str) -> Step<&'c str> {
    Ok(s.word(format!("stick-table: missing argument after '{of}'."))?.text())
}

fn key_kind(s: &mut Statement<'_>) -> Step<KeyKind> {
    let word = s.next().map_or("", syntax::Word::text);
    Ok(match word {
        "ip" | "ipv4" => KeyKind::Ip,
        "ipv6" => KeyKind::Ipv6,
        "integer" => KeyKind::Integer,
        "string" => KeyKind::Text(length(s)?),
        "binary" => KeyKind::Binary(length(s)?),
        other => return Err(s.fail(format!("stick-table: unknown type '{other}'."))),
    })
}

/// The longest keys: they have to fit a buffer.
const LONGEST: i64 = 1 << 14;

fn length(s: &mut Statement<'_>) -> Step<usize> {
    if s.peek() != "len" {
        return Ok(DEFAULT_LEN);
    }
    s.next();
    let expects = "'len' expects a positive integer argument.";
    let length = units::lenient(s.word(expects)?.text());
    if length == 0 {
        return Err(s.fail(expects));
    }
    // HAProxy takes a negative length for a very large one.
    let length = if length < 0 { LONGEST } else { length.min(LONGEST) };
    Ok(usize::try_from(length).unwrap_or(DEFAULT_LEN))
}

fn size(s: &mut Statement<'_>) -> Step<u32> {
    let word = argument(s, "size")?;
    match units::size(word) {
        Ok(size) if size <= LARGEST => Ok(u32::try_from(size).unwrap_or(u32::MAX)),
        // A number that is too large fails where it gets so: at its unit.
        Ok(_) => Err(unexpected(s, word.trim_start_matches(|c: char| c.is_ascii_digit()))),
        Err(rest) => Err(unexpected(s, rest)),
    }
}

/// The most entries of a table.
const LARGEST: u64 = i32::MAX as u64;

fn unexpected(s: &Statement<'_>, rest: &str) -> Diagnostic {
    let odd = rest.chars().next().unwrap_or(' ');
    s.fail(format!("stick-table: unexpected character '{odd}' in argument of 'size'."))
}

fn time(s: &mut Statement<'_>) -> Step<u64> {
    let word = s.word("stick-table: missing argument after 'expire'.")?;
    units::millis(word.text()).map_err(|fault| match fault {
        TimeFault::Unexpected(c) => {
            s.fail(format!("stick-table: unexpected character '{c}' in argument of 'expire'."))
        }
        TimeFault::Overflow => tight(s.fail(format!(
            "stick-table: timer overflow in argument <{word}> to <expire>, maximum value is 2147483647 ms (~24.8 days)."
        ))),
    })
}

fn srvkey(s: &mut Statement<'_>) -> Step<SrvKey> {
    match s.next().map_or("", syntax::Word::text) {
        "name" => Ok(SrvKey::Name),
        "addr" => Ok(SrvKey::Addr),
        other => Err(s.fail(format!("stick-table : unknown server key type '{other}'."))),
    }
}

fn brates(s: &mut Statement<'_>) -> Step<u32> {
    let factor = units::lenient(argument(s, "brates-factor")?);
    match u32::try_from(factor) {
        Ok(factor @ 1..=1024) => Ok(factor),
        _ => Err(s.fail(
            "stick-table: argument 'brates-factor' must be greater than 0 and lower or equal than 1024.",
        )),
    }
}

fn store(s: &mut Statement<'_>, layout: &mut Layout) -> Step {
    let mut rest = s.next().map_or("", syntax::Word::text);
    while !rest.is_empty() {
        let end = rest.find([',', '(']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let (arguments, behind) = match behind.strip_prefix('(') {
            None => (None, behind),
            Some(inside) => {
                let closed = inside.split_once(')').ok_or_else(|| {
                    s.fail(format!("stick-table: missing closing parenthesis after store option '{name}'."))
                })?;
                (Some(closed.0), closed.1)
            }
        };
        one(s, layout, name, arguments)?;
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
    Ok(())
}

fn one(s: &mut Statement<'_>, layout: &mut Layout, name: &str, arguments: Option<&str>) -> Step {
    let data = Data::from_name(name)
        .ok_or_else(|| s.fail(format!("stick-table: unknown store option '{name}'.")))?;
    let rate = data.shape() == data::Shape::Rate;
    let wanted = usize::from(data.is_array()) + usize::from(rate);
    let given: Vec<&str> = arguments.map(|a| a.split(',').map(str::trim).collect()).unwrap_or_default();
    if wanted == 0 && arguments.is_some() {
        return Err(s.fail(format!("stick-table: unexpected argument to store option '{name}'.")));
    }
    if given.len() < wanted {
        return Err(s.fail(format!("stick-table: missing argument to store option '{name}'.")));
    }
    let wrong = || s.fail(format!("stick-table: error when processing store option '{name}'."));
    if given.len() > wanted {
        return Err(wrong());
    }
    let mut given = given.into_iter();
    let count = match given.next().filter(|_| data.is_array()) {
        None => 1,
        Some(n) => usize::try_from(units::lenient(n)).unwrap_or(0),
    };
    if !(1..=LARGEST_ARRAY).contains(&count) {
        return Err(s.fail(format!(
            "stick-table: array size is out of allowed range (1-{LARGEST_ARRAY}) for store option '{name}'."
        )));
    }
    let period = match arguments.and_then(|a| a.rsplit(',').next()).filter(|_| rate) {
        None => 0,
        Some(time) => match units::millis(time.trim()) {
            Ok(ms) if ms > 0 && !time.trim().is_empty() => u32::try_from(ms).unwrap_or(u32::MAX),
            _ => return Err(wrong()),
        },
    };
    conflict(s, layout, data)?;
    if !layout.store(data, count, period) {
        let text = format!("stick-table: store option '{name}' already enabled, ignored.");
        s.notes.push(tight(Diagnostic::warning(s.line.span(), text)));
    }
    Ok(())
}

/// Arrays and the single counters that they stand for exclude each other.
fn conflict(s: &Statement<'_>, layout: &Layout, data: Data) -> Step {
    let groups: [(Data, &[Data], &str); 3] = [
        (Data::Gpc, &[Data::Gpc0, Data::Gpc1], "gpc[0/1]"),
        (Data::GpcRate, &[Data::Gpc0Rate, Data::Gpc1Rate], "gpc[0/1]_rate"),
        (Data::Gpt, &[Data::Gpt0], "gpt0"),
    ];
    for (array, singles, words) in groups {
        let other = data == array && singles.iter().any(|d| layout.has(*d))
            || singles.contains(&data) && layout.has(array);
        if other {
            let name = array.name();
            return Err(s.fail(format!(
                "stick-table: simultaneous usage of '{name}' and '{words}' in a same table is not permitted as \
                 '{name}' overrides '{words}'."
            )));
        }
    }
    Ok(())
}

/// Makes the tables. Those that `stick` rules use store servers, whether that was said or not.
pub(crate) fn make(
    drafts: Vec<TableDraft>,
    stuck: &HashSet<Box<str>>,
    peers: &[Box<str>],
    world: &model::World,
    notes: &mut Diagnostics,
    lost: &mut Vec<(Box<str>, Diagnostic)>,
) -> Vec<Arc<Table>> {
    let kinds: Vec<(Box<str>, KeyKind)> =
        drafts.iter().map(|d| (d.settings.name.clone(), d.settings.kind)).collect();
    let mut out = Vec::new();
    for mut draft in drafts {
        checks(&draft, &kinds, notes);
        if let Some(peers) = draft.settings.peers.as_ref().filter(|named| !peers.contains(named)) {
            let text = format!("{}: unable to find sync peers '{peers}'.", draft.owner);
            lost.push((draft.settings.name.clone(), crate::notes::refusal(draft.span, text)));
        }
        if stuck.contains(&draft.settings.name) {
            draft.settings.layout.store(Data::ServerId, 1, 0);
            draft.settings.layout.store(Data::ServerKey, 1, 0);
        }
        out.push(world.table(draft.settings));
    }
    out
}

fn checks(draft: &TableDraft, kinds: &[(Box<str>, KeyKind)], notes: &mut Diagnostics) {
    let (settings, owner) = (&draft.settings, &draft.owner);
    let mut refuse = |text: String| notes.push(crate::notes::refusal(draft.span, text));
    if let Some(to) = &settings.write_to {
        let failed = format!("{owner}: failed to initialize stick-table: write-to:");
        match kinds.iter().find(|(name, _)| name == to) {
            None => refuse(format!("{failed} table '{to}' doesn't exist.")),
            Some(_) if *to == settings.name => {}
            Some((_, kind)) if !kind.is_like(settings.kind) => refuse(format!(
                "{failed} cannot mix table types ('{to}' has '{}' type and '{}' has '{}' type).",
                kind.word(),
                settings.name,
                settings.kind.word()
            )),
            Some((_, kind)) if *kind != settings.kind => {
                refuse(format!("{failed} cannot mix key sizes of '{to}' and '{}'.", settings.name));
            }
            Some(_) => {}
        }
    }
}
