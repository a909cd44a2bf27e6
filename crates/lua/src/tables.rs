//! The class `StickTable`, told by what the runtime API shows of a table.

use mlua::{Lua, Table, Value};
use stick::KeyKind;

use crate::here::with_worker;
use crate::objects::ask;
use crate::value::{Args, Bound, Outcome, give, inner};

/// Functions of the class.
pub const BOUND: &[Bound] = &[("table.info", 1, info), ("table.lookup", 1, lookup), ("table.dump", 1, dump)];

/// Conditions of a filter.
const MOST_CONDITIONS: usize = 4;

/// One line of `show table`: the key, and names with their figures.
struct Row<'l> {
    key: &'l str,
    figures: Vec<(&'l str, i64)>,
}

impl<'l> Row<'l> {
    fn read(line: &'l str) -> Option<Row<'l>> {
        let (_, rest) = line.strip_prefix("0x")?.split_once(": ")?;
        let mut words = rest.split(' ').filter_map(|word| word.split_once('='));
        let (_, key) = words.next().filter(|(name, _)| *name == "key")?;
        let figures = words.filter_map(|(name, value)| {
            let name = name.split('(').next().unwrap_or_default();
            Some((if name == "exp" { "expire" } else { name }, value.parse().ok()?))
        });
        Some(Row { key, figures: figures.filter(|(name, _)| *name != "shard").collect() })
    }

    fn table(&self, lua: &Lua, wanted: impl Fn(&str) -> bool) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        for (name, value) in self.figures.iter().filter(|(name, _)| wanted(name)) {
            table.raw_set(*name, *value)?;
        }
        Ok(table)
    }

    fn figure(&self, name: &str) -> Option<i64> {
        self.figures.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// `StickTable.info`.
fn info(args: &mut Args<'_>) -> Outcome {
    let name: String = args.own()?;
    let found = with_worker(|worker| {
        let table = worker.shared.program.tables.iter().find(|t| *t.settings().name == *name)?.clone();
        Some(table)
    });
    let table = found.flatten().ok_or_else(|| format!("table '{name}' is no more"))?;
    let head = ask(&["show", "table"]).unwrap_or_default();
    let mine = format!("# table: {name}, type: ");
    let line = head.lines().find_map(|line| line.strip_prefix(&*mine)).unwrap_or_default();
    let mut words = line.split(", ");
    let kind = words.next().unwrap_or_default();
    let used = words.find_map(|word| word.strip_prefix("used:")?.trim().parse::<i64>().ok());
    let settings = table.settings();
    let made = inner(args.lua().create_table())?;
    inner(made.raw_set("type", kind))?;
    inner(made.raw_set("size", settings.size))?;
    inner(made.raw_set("used", used.unwrap_or(0)))?;
    inner(made.raw_set("expire", settings.expire))?;
    inner(made.raw_set("nopurge", settings.nopurge))?;
    let length = match settings.kind {
        KeyKind::Ip | KeyKind::Integer => 4,
        KeyKind::Ipv6 => 16,
        KeyKind::Text(n) | KeyKind::Binary(n) => n,
    };
    inner(made.raw_set("length", length))?;
    let data = inner(args.lua().create_table())?;
    for column in settings.layout.columns() {
        let rate = column.period > 0;
        inner(data.raw_set(column.data.name(), if rate { i64::from(column.period) } else { -1 }))?;
    }
    inner(made.raw_set("data", data))?;
    give(args.lua(), made)
}

/// `StickTable.lookup`.
fn lookup(args: &mut Args<'_>) -> Outcome {
    let name: String = args.own()?;
    let Ok(key) = args.text(1) else { return give(args.lua(), Value::Nil) };
    let text = ask(&["show", "table", &name, "key", &key]).unwrap_or_default();
    match text.lines().find_map(Row::read) {
        Some(row) => give(args.lua(), inner(row.table(args.lua(), |_| true))?),
        None => give(args.lua(), Value::Nil),
    }
}

/// A condition of a filter: name, operator, figure.
type Condition = (String, String, i64);

/// The conditions of a filter; what is said of one that is wrong.
fn conditions(args: &Args<'_>, columns: &[String]) -> Result<Vec<Condition>, String> {
    let list = match args.get(1) {
        _ if args.len() == 0 => return Ok(Vec::new()),
        Value::Table(list) => list,
        _ => return Err("filter table expected".into()),
    };
    if list.raw_len() > MOST_CONDITIONS {
        return Err(format!("Filter table too large (len > {MOST_CONDITIONS})"));
    }
    let mut all: Vec<Condition> = Vec::new();
    for (n, entry) in list.sequence_values::<Value>().enumerate() {
        let told = |why: &str| format!("{why} (entry #{})", n + 1);
        let wrong = || told("Filter table entry must be a triplet: {\"data_col\", \"op\", val}");
        let entry = inner(entry)?;
        let entry = entry.as_table().filter(|entry| entry.raw_len() == 3).ok_or_else(wrong)?;
        let word = |n: i64| match entry.raw_get(n) {
            Ok(Value::String(word)) => Some(word.to_string_lossy()),
            _ => None,
        };
        let name = word(1).ok_or_else(|| told("Filter table data column must be string"))?;
        if !columns.contains(&name) {
            return Err(told("Filter table data column not present in stick table"));
        }
        let known = |word: &String| ["eq", "ne", "le", "lt", "ge", "gt"].contains(&word.as_str());
        let operator = word(2).filter(known).ok_or_else(|| told("Unknown operator in filter table"))?;
        all.push((name, operator, entry.raw_get::<i64>(3).unwrap_or(0)));
    }
    Ok(all)
}

/// `StickTable.dump`.
fn dump(args: &mut Args<'_>) -> Outcome {
    let name: String = args.own()?;
    let columns = with_worker(|worker| {
        let table = worker.shared.program.tables.iter().find(|t| *t.settings().name == *name)?.clone();
        Some(table.settings().layout.columns().iter().map(|c| c.data.name().to_string()).collect::<Vec<_>>())
    });
    let filter = match conditions(args, &columns.flatten().unwrap_or_default()) {
        Ok(filter) => filter,
        Err(why) => return give(args.lua(), (Value::Nil, why)),
    };
    let text = ask(&["show", "table", &name]).unwrap_or_default();
    let all = inner(args.lua().create_table())?;
    let passes = |row: &Row<'_>| {
        filter.iter().all(|(name, operator, value)| {
            row.figure(name).is_some_and(|figure| match operator.as_str() {
                "eq" => figure == *value,
                "ne" => figure != *value,
                "le" => figure <= *value,
                "lt" => figure < *value,
                "ge" => figure >= *value,
                _ => figure > *value,
            })
        })
    };
    for row in text.lines().filter_map(Row::read).filter(passes) {
        let figures = inner(row.table(args.lua(), |name| !matches!(name, "use" | "expire")))?;
        inner(all.raw_set(row.key, figures))?;
    }
    give(args.lua(), all)
}
