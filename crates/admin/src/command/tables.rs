//! `show table`, `set table`, `clear table`: the entries of stick tables.
//!
//! The lines are HAProxy's to the letter, for tools read them; only the order of entries is ours, since
//! theirs is that of a hash. A table is walked over while the answer is sent, so nothing grows with its size.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use base::foreign;
use engine::Shared;
use stick::data::Shape;
use stick::{Data, KeyKind, Row, Table, Walk};

use crate::cli::call::{Call, Lines, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["clear", "table"],
        "<table> [<filter>]*",
        "remove entries of a stick table",
        Level::User,
        clear,
    ),
    Command::now(
        &["set", "table"],
        "<table> key <k> [data.* <v>]*",
        "enter or change an entry of a stick table",
        Level::User,
        set,
    ),
    Command::now(
        &["show", "table"],
        "[<table> [<filter>]*]",
        "stick tables, or the entries of one",
        Level::User,
        show,
    ),
];

/// What a command does, for the words of its messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Show,
    Set,
    Clear,
}

/// Which entries are meant.
#[derive(Debug)]
enum Chosen {
    All,
    /// The number of one, if it is there.
    One(Option<u64>),
    Matching(Vec<Filter>),
}

/// `data.<type> <operator> <value>`.
#[derive(Debug)]
struct Filter {
    data: Data,
    index: usize,
    test: Test,
    value: i64,
}

/// Whether a figure compares with a value as an operator says.
type Test = fn(i64, i64) -> bool;

/// The most filters of a command.
const MOST_FILTERS: usize = 4;

fn now() -> u64 {
    rt::now().as_millis()
}

/// `show table`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let tables = &call.shared().program.tables;
    let mut out = String::new();
    if call.arg(0).is_empty() {
        // The one declared last comes first.
        tables.iter().rev().for_each(|t| head(t, &mut out));
        return Ok(Reply::Dump(out));
    }
    let table = find(call)?;
    match choose(call, table, Verb::Show)? {
        Chosen::One(id) => {
            if id.is_some() {
                head(table, &mut out);
            }
            if let Some(row) = id.and_then(|id| table.by_id(id, now())) {
                line(table, groups(call.shared(), table), &row, &mut out);
            }
        }
        chosen => {
            let groups = groups(call.shared(), table);
            return Ok(Reply::Lines(Box::new(Shown { head: false, walk: table.walk(), groups, chosen })));
        }
    }
    Ok(Reply::Dump(out))
}

/// `show table` on its way.
#[derive(Debug)]
struct Shown {
    /// The line about the table is out.
    head: bool,
    walk: Walk,
    groups: u32,
    chosen: Chosen,
}

/// Among how many groups of peers the keys of a table are divided.
fn groups(shared: &Shared, table: &Table) -> u32 {
    let is_in = |s: &&program::peers::Section| s.tables.iter().any(|t| std::ptr::eq(&*t.table, table));
    shared.program.peers.iter().find(is_in).map_or(0, |section| section.groups)
}

/// Entries that are looked at in one go, shown or not.
const STRETCH: usize = 16;

impl Lines for Shown {
    fn append(&mut self, out: &mut String) -> bool {
        let table = self.walk.table().clone();
        if !std::mem::replace(&mut self.head, true) {
            head(&table, out);
        }
        for _ in 0..STRETCH {
            let Some(row) = self.walk.advance(now()) else { return false };
            if self.chosen.has(&table, &row) {
                line(&table, self.groups, &row, out);
            }
        }
        true
    }
}

/// Whether the client may change entries: HAProxy tells anybody which tables there are not.
fn permitted(call: &Call<'_>) -> Result<(), Refusal> {
    match call.client.level < Level::Operator {
        true => Err("Permission denied".into()),
        false => Ok(()),
    }
}

/// `clear table`.
pub fn clear(call: &mut Call<'_>) -> Outcome {
    if call.arg(0).is_empty() {
        return Err(Verb::Clear.expects().into());
    }
    let table = find(call)?;
    permitted(call)?;
    match choose(call, table, Verb::Clear)? {
        Chosen::One(id) => {
            let row = id.and_then(|id| table.by_id(id, now()));
            if row.is_some_and(|row| !row.remove()) {
                return Err("Entry currently in use, cannot remove".into());
            }
        }
        chosen => {
            let mut walk = table.walk();
            while let Some(row) = walk.advance(now()) {
                if chosen.has(table, &row) {
                    row.remove();
                }
            }
        }
    }
    Ok(Reply::Done)
}

/// `set table`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    if call.arg(0).is_empty() {
        return Err(Verb::Set.expects().into());
    }
    let table = find(call)?;
    permitted(call)?;
    let now = now();
    let entered;
    let mut row = match call.arg(1) {
        "" => return Ok(Reply::Done),
        "key" => {
            let key = key(call, table, Verb::Set)?;
            entered = table.enter(&key, now).ok_or("Unable to allocate a new entry")?;
            entered.row(now)
        }
        "ptr" => by_pointer(call, table)?,
        word if word.starts_with("data.") => {
            return Err(
                "content-based lookup is only supported with the \"show\" and \"clear\" actions".into()
            );
        }
        _ => return Err(Verb::Set.expects().into()),
    };
    row.touch();
    let mut words = call.args().iter().skip(3);
    while let Some(word) = words.next() {
        let name = word.strip_prefix("data.").ok_or("\"data.<type>\" followed by a value expected")?;
        let (data, index) = data(name).ok_or("Unknown data type")?;
        if !table.layout().has(data) {
            return Err("Data type not stored in this table".into());
        }
        let value = words.next().and_then(|w| w.parse::<i64>().ok());
        let value = value.ok_or("Require a valid integer value to store")?;
        let factor = if is_bytes_rate(data) { i64::from(table.settings().brates_factor) } else { 1 };
        if !row.set(data, index, (value / factor) as u64) {
            return Err("index out of range in this data array".into());
        }
    }
    Ok(Reply::Done)
}

impl Verb {
    fn expects(self) -> &'static str {
        match self {
            Verb::Show => {
                "Optional argument only supports \"data.<store_data_type>\" <operator> <value> or key <key> or ptr <ptr>"
            }
            Verb::Set => {
                "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or <table> ptr <ptr> [data.<store_data_type> <value>]*"
            }
            Verb::Clear => {
                "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or <table> key <key> or <table> ptr <ptr>"
            }
        }
    }

    fn no_such_keys(self) -> String {
        let doing = match self {
            Verb::Show => "Showing keys from",
            Verb::Set => "Inserting keys into",
            Verb::Clear => "Removing keys from",
        };
        format!("{doing} tables of type other than ip, ipv6, string and integer is not supported")
    }
}

impl Chosen {
    fn has(&self, table: &Table, row: &Row<'_>) -> bool {
        match self {
            Chosen::Matching(filters) => filters.iter().all(|f| f.holds(table, row)),
            _ => true,
        }
    }
}

impl Filter {
    fn holds(&self, table: &Table, row: &Row<'_>) -> bool {
        value(table, row, self.data, self.index)
            .is_some_and(|v| (self.test)(i64::try_from(v).unwrap_or(i64::MAX), self.value))
    }
}

fn find<'c>(call: &'c Call<'_>) -> Result<&'c Arc<Table>, Refusal> {
    let name = call.arg(0);
    let tables = &call.shared().program.tables;
    tables.iter().find(|t| *t.settings().name == *name).ok_or("No such table".into())
}

fn choose(call: &Call<'_>, table: &Arc<Table>, verb: Verb) -> Result<Chosen, Refusal> {
    match call.arg(1) {
        "" => Ok(Chosen::All),
        "key" => {
            let key = key(call, table, verb)?;
            Ok(Chosen::One(table.peek(&key, now()).map(|row| row.id())))
        }
        "ptr" => Ok(Chosen::One(Some(by_pointer(call, table)?.id()))),
        word if word.starts_with("data.") => Ok(Chosen::Matching(filters(call, table)?)),
        _ => Err(verb.expects().into()),
    }
}

/// The key that argument 2 names.
fn key(call: &Call<'_>, table: &Table, verb: Verb) -> Result<Vec<u8>, Refusal> {
    let word = call.arg(2);
    if word.is_empty() {
        return Err("Key value expected".into());
    }
    match table.kind() {
        KeyKind::Ip => match address(word)? {
            IpAddr::V4(a) => Ok(a.octets().into()),
            IpAddr::V6(a) => Ok(pattern::embedded_v4(a).ok_or("Invalid key")?.to_be_bytes().into()),
        },
        KeyKind::Ipv6 => match address(word)? {
            IpAddr::V4(a) => Ok(a.to_ipv6_mapped().octets().into()),
            IpAddr::V6(a) => Ok(a.octets().into()),
        },
        KeyKind::Integer => Ok((number(word) as u32).to_be_bytes().into()),
        KeyKind::Text(len) => Ok(foreign::bytes(word).iter().take(len).copied().collect()),
        KeyKind::Binary(_) => Err(verb.no_such_keys().into()),
    }
}

/// An address; the length of a network behind it is not looked at.
fn address(word: &str) -> Result<IpAddr, Refusal> {
    word.split('/').next().and_then(|a| a.parse().ok()).ok_or("Invalid key".into())
}

/// A number as far as it goes; what is none is 0.
fn number(word: &str) -> i64 {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |rest| (-1, rest));
    let digits = digits.bytes().take_while(u8::is_ascii_digit);
    sign * digits.fold(0i64, |n, d| n.wrapping_mul(10).wrapping_add(i64::from(d - b'0')))
}

/// What stands for the address of an entry: the number of a cache line, none of the first.
fn pointer(row: &Row<'_>) -> u64 {
    (row.id() + FIRST_LINE) * LINE
}

const LINE: u64 = 64;
const FIRST_LINE: u64 = 64;

fn by_pointer<'t>(call: &Call<'_>, table: &'t Table) -> Result<Row<'t>, Refusal> {
    let hex = call.arg(2).strip_prefix("0x").ok_or("Pointer expected (0xffff notation)")?;
    let wanted = u64::from_str_radix(hex, 16).map_err(|_| "Malformed ptr.")?;
    let line = Some(wanted / LINE).filter(|line| line * LINE == wanted);
    let id = line.and_then(|line| line.checked_sub(FIRST_LINE));
    let row = id.and_then(|id| table.by_id(id, now()));
    row.ok_or("No entry can be found matching ptr.".into())
}

/// The type and the element that `gpc0` or `gpc[1]` names.
fn data(name: &str) -> Option<(Data, usize)> {
    match name.split_once('[') {
        None => Some((Data::from_name(name)?, 0)),
        Some((name, index)) => {
            let data = Data::from_name(name).filter(|d| d.is_array())?;
            Some((data, index.strip_suffix(']')?.parse().ok()?))
        }
    }
}

const OPERATORS: [(&str, Test); 6] = [
    ("eq", |a, b| a == b),
    ("ne", |a, b| a != b),
    ("le", |a, b| a <= b),
    ("ge", |a, b| a >= b),
    ("lt", |a, b| a < b),
    ("gt", |a, b| a > b),
];

fn filters(call: &Call<'_>, table: &Table) -> Result<Vec<Filter>, Refusal> {
    let mut out = Vec::new();
    let words = call.args().get(1..).unwrap_or(&[]);
    for chunk in words.chunks(3) {
        let [name, rest @ ..] = chunk else { break };
        if out.len() == MOST_FILTERS {
            let at = call.named + 2 + 3 * MOST_FILTERS;
            let before = words.get(3 * MOST_FILTERS - 1).map_or("", String::as_str);
            return Err(
                format!("Detected extra data in filter, {at}th word of input, after '{before}'").into()
            );
        }
        let wrong = |what: &str| Refusal(format!("Filter entry #{}: {what}", out.len() + 1).into());
        let named = name.strip_prefix("data.").and_then(data);
        let (data, index) = named.ok_or_else(|| wrong("Unknown data type"))?;
        if !table.layout().has(data) {
            return Err(wrong("Data type not stored in this table"));
        }
        let operator = rest.first().map_or("", String::as_str);
        let (_, test) = OPERATORS.iter().find(|(word, _)| *word == operator).ok_or_else(|| {
            wrong("Require and operator among \"eq\", \"ne\", \"le\", \"ge\", \"lt\", \"gt\"")
        })?;
        let value = rest.get(1).and_then(|w| w.parse().ok());
        let value = value.ok_or_else(|| wrong("Require a valid integer value to compare against"))?;
        out.push(Filter { data, index, test: *test, value });
    }
    Ok(out)
}

/// The line about a table.
fn head(table: &Table, out: &mut String) {
    let s = table.settings();
    let _ = writeln!(
        out,
        "# table: {}, type: {}, size:{}, used:{}",
        s.name,
        s.kind.word(),
        s.size,
        table.used(now())
    );
}

fn is_bytes_rate(data: Data) -> bool {
    matches!(data, Data::BytesInRate | Data::BytesOutRate)
}

/// A figure as it is shown; texts compare as zero.
fn value(table: &Table, row: &Row<'_>, data: Data, index: usize) -> Option<u64> {
    if data.shape() == Shape::Text {
        return Some(0);
    }
    let factor = if is_bytes_rate(data) { u64::from(table.settings().brates_factor) } else { 1 };
    row.get(data, index).map(|n| n * factor)
}

/// The line about an entry.
fn line(table: &Table, groups: u32, row: &Row<'_>, out: &mut String) {
    let _ = write!(out, "{:#x}: key=", pointer(row));
    table.kind().print(row.key(), out);
    let _ = write!(out, " use={} exp={} shard={}", row.uses(), row.expires_in(), row.group(groups));
    for column in table.layout().columns() {
        for index in 0..column.count {
            cell(table, row, column, index, out);
        }
    }
    out.push('\n');
}

fn cell(table: &Table, row: &Row<'_>, column: &stick::Column, index: usize, out: &mut String) {
    let name = column.data.name();
    out.push(' ');
    let _ = match (column.data.is_array(), name.strip_suffix("_rate")) {
        (true, Some(base)) => write!(out, "{base}{index}_rate"),
        (true, None) => write!(out, "{name}{index}"),
        (false, _) => write!(out, "{name}"),
    };
    if column.data.shape() == Shape::Rate {
        let _ = write!(out, "({})", column.period);
    }
    let _ = match column.data.shape() {
        Shape::Text => write!(out, "={}", row.server().map_or("-", |s| s)),
        _ => write!(out, "={}", value(table, row, column.data, index).unwrap_or(0)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_arrays_are_named_by_index() {
        assert_eq!(data("gpc0"), Some((Data::Gpc0, 0)));
        assert_eq!(data("gpc[3]"), Some((Data::Gpc, 3)));
        assert_eq!(data("gpc0[1]"), None);
        assert_eq!(data("gpc[x]"), None);
        assert_eq!(data("nothing"), None);
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!((number("12x"), number("-1"), number("x"), number("0x10")), (12, -1, 0, 0));
        assert_eq!(number("99999999999") as u32, 1_215_752_191);
    }
}
