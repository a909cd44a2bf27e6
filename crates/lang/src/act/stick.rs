//! `track-sc*` and what counts by hand: `sc-inc-gpc*`, `sc-add-gpc`, `sc-set-gpt*` (section 4.4).

use ::stick::{Data, Row, Trackers};

use super::{Parsed, Reading, def, step};
use crate::action::{Exec, Flow, Need};
use crate::expr::Expr;
use crate::names::{Missing, Names};
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::sample::{Miss, Type, Value};
use crate::stick::{figure, key, tracked};
use crate::words::{Fault, Words};

const TRACKING: Sets = Sets::ALL.but(Sets(Sets::TCP_RES.0 | Sets::HTTP_AFTER.0));

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "track-sc*",
        TRACKING,
        track,
        "Counts with the entry of a key until all is over.",
        "track-sc0 src table be",
    ),
    def(
        "sc-add-gpc*",
        Sets::ALL,
        |w, a, r, n| array(w, a, r, n, Change::Add),
        "Adds to a general purpose counter.",
        "sc-add-gpc(0,0) int(5)",
    ),
    def(
        "sc-inc-gpc0*",
        Sets::ALL,
        |w, a, r, n| single(w, a, r, n, Change::Inc, Data::Gpc0),
        "Counts with the first general purpose counter.",
        "sc-inc-gpc0(0)",
    ),
    def(
        "sc-inc-gpc1*",
        Sets::ALL,
        |w, a, r, n| single(w, a, r, n, Change::Inc, Data::Gpc1),
        "Counts with the second general purpose counter.",
        "sc-inc-gpc1(0)",
    ),
    def(
        "sc-inc-gpc*",
        Sets::ALL,
        |w, a, r, n| array(w, a, r, n, Change::Inc),
        "Counts with a general purpose counter.",
        "sc-inc-gpc(0,0)",
    ),
    def(
        "sc-set-gpt0*",
        Sets::ALL,
        |w, a, r, n| single(w, a, r, n, Change::Set, Data::Gpt0),
        "Sets the first general purpose tag.",
        "sc-set-gpt0(0) 1",
    ),
    def(
        "sc-set-gpt*",
        Sets::ALL,
        |w, a, r, n| array(w, a, r, n, Change::Set),
        "Sets a general purpose tag.",
        "sc-set-gpt(0,0) 1",
    ),
];

/// The word just taken: the name of the action with what stands in its parentheses.
fn own_word(words: &mut Words<'_>) -> Result<String, Fault> {
    words.seek(words.position() - 1);
    Ok(words.expect("")?.to_owned())
}

fn track(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let word = own_word(words)?;
    let number = word.strip_prefix("track-sc").unwrap_or_default();
    let digits = number.trim_start_matches(|c: char| c.is_ascii_digit());
    if !digits.is_empty() {
        return Err(Fault::new(format!("Wrong track-sc number '{number}'")));
    }
    let wrapped = crate::sample::parse_int(number.as_bytes()).unwrap_or(0) as i32;
    let counter = usize::try_from(wrapped).unwrap_or(usize::MAX);
    let limit = names.stick_counters();
    if counter >= limit {
        let most = i64::try_from(limit).unwrap_or(i64::MAX) - 1;
        return Err(Fault::new(format!(
            "{wrapped} track-sc number exceeding {most} (tune.stick-counters-1) value"
        )));
    }
    let mut reading = Reading { words, at, reg, names };
    let expr = reading.expr()?;
    let name = match reading.words.peek() {
        Some(b"table") => {
            reading.words.take();
            // Rules on bytes take a name that is missing for an empty one.
            match reading.words.is_empty() && Sets::TCP.has(at.set) {
                true => Some(String::new()),
                false => Some(reading.word("missing table name")?),
            }
        }
        _ => None,
    };
    let table = match crate::names::table(names, name.as_deref()) {
        Ok(table) => table,
        Err(fault) => {
            names.miss(Missing::Rule(format!("{} by {word}", fault.text)));
            return step(|_| Flow::Next);
        }
    };
    if !expr.out().casts_to(key::wants(table.kind())) {
        let text = format!(
            "stick-table '{}' uses a type incompatible with the '{word}' rule",
            table.settings().name
        );
        names.miss(Missing::Rule(text));
    }
    let set = at.set;
    step(move |exec| {
        let env = exec.env();
        if tracked(&env, counter, |_| ()).is_some() {
            return Flow::Next;
        }
        let value = match expr.eval(&env) {
            Ok(value) => value,
            Err(Miss::Later) if !exec.last && set == Sets::TCP_REQ => return Flow::Yield(Need::Data),
            Err(_) => return Flow::Next,
        };
        let now = crate::stick::now(&env);
        let Some(key) = key::of(table.kind(), value, env.arena) else { return Flow::Next };
        if let Some(held) = table.enter(key, now) {
            // Rules before this one may have given the response another status than it came with.
            let counts = env.live.counts_as(env.txn.res.status());
            // Rules on content of a backend come behind the request, those of a frontend before it.
            let behind = set == Sets::HTTP_REQ || set == Sets::HTTP_RES || env.txn.counted.get() > 0;
            place(&env, set).borrow_mut().start(counter, held, now, |row| {
                if behind {
                    row.add(Data::HttpReqCnt, 0, 1);
                    row.add(Data::HttpReqRate, 0, 1);
                }
                if set == Sets::HTTP_RES {
                    response_counts(row, counts);
                }
            });
        }
        Flow::Next
    })
}

/// Who tracks: the connection, where its own rules say so, else the stream.
fn place<'e>(env: &crate::Env<'e>, set: Sets) -> &'e std::cell::RefCell<Trackers> {
    if set == Sets::TCP_CONN || set == Sets::TCP_SESS { &env.conn.stick } else { &env.txn.stick }
}

/// What a response counted as before rules on it could be reached.
fn response_counts(row: &mut Row<'_>, counts: model::txn::ResponseCounts) {
    if counts.error {
        row.add(Data::HttpErrCnt, 0, 1);
        row.add(Data::HttpErrRate, 0, 1);
    }
    if counts.failure {
        row.add(Data::HttpFailCnt, 0, 1);
        row.add(Data::HttpFailRate, 0, 1);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Inc,
    Add,
    Set,
}

/// How much.
enum Amount {
    One,
    Fixed(u64),
    Computed(Expr),
}

impl Amount {
    /// As an unsigned number of 32 bits; negative ones are 0.
    fn of(&self, exec: &Exec<'_>) -> Option<u64> {
        match self {
            Amount::One => Some(1),
            Amount::Fixed(n) => Some(*n),
            Amount::Computed(expr) => {
                let env = exec.env();
                let value = expr.eval(&env).ok()?.cast(Type::Int, env.arena)?;
                let Value::Int(n) = value else { return None };
                Some(n as u32 as u64)
            }
        }
    }
}

fn amount(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    change: Change,
) -> Result<Amount, Fault> {
    if change == Change::Inc {
        return Ok(Amount::One);
    }
    let word = words.peek().map(<[u8]>::to_vec).unwrap_or_default();
    // Without an argument nothing is added or set but zero.
    if word.is_empty() || word == b"if" || word == b"unless" {
        return Ok(Amount::Fixed(0));
    }
    let digits = word.strip_prefix(b"-").unwrap_or(&word);
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        words.take();
        let n = crate::sample::parse_int(&word).unwrap_or(0);
        return Ok(Amount::Fixed(n as u32 as u64));
    }
    let expr = Reading { words, at, reg, names }.expr()?;
    if !expr.out().casts_to(Type::Int) {
        return Err(Fault::new(format!("the expression '{}' does not yield a number", expr.text)));
    }
    Ok(Amount::Computed(expr))
}

/// The numbers between the parentheses behind `prefix`.
fn numbers(word: &str) -> Option<Vec<usize>> {
    // What stands behind the parentheses is not looked at.
    let inside = word.split_once('(')?.1.split_once(')')?.0;
    inside.split(',').map(|n| n.trim().parse().ok()).collect()
}

fn single(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    change: Change,
    data: Data,
) -> Parsed {
    let word = own_word(words)?;
    let name = word.split('(').next().unwrap_or_default();
    let wrong = || {
        Fault::new(match change {
            Change::Set => format!("invalid stick table track ID '{word}'. Expects sc-set-gpt0(<Track ID>)"),
            _ => format!("invalid stick table track ID. Expects {word}(<Track ID>)"),
        })
    };
    if !matches!(name, "sc-inc-gpc0" | "sc-inc-gpc1" | "sc-set-gpt0") {
        return Err(wrong());
    }
    let counter = match word.split_once('(') {
        // Without a number it is the first.
        None => 0,
        Some((_, rest)) if rest.starts_with(')') => 0,
        Some(_) => match numbers(&word).as_deref() {
            Some([n]) => *n,
            _ => return Err(wrong()),
        },
    };
    let most = names.stick_counters();
    if counter >= most {
        let named = if change == Change::Set { format!(" '{word}'") } else { String::new() };
        let tune = if change == Change::Set { "" } else { " (tune.stick-counters)" };
        let text = format!(
            "invalid stick table track ID{named}. The max allowed ID is {}{tune}",
            most.saturating_sub(1)
        );
        return Err(Fault::new(text));
    }
    let amount = amount(words, at, reg, names, change)?;
    run(counter, data, 0, change, amount)
}

/// The numbers of `sc-inc-gpc(<index>,<counter>)` and its kin.
fn indices(word: &str, change: Change) -> Result<(usize, usize), String> {
    let (name, what) = match change {
        Change::Inc => ("sc-inc-gpc", "gpc"),
        Change::Add => ("sc-add-gpc", "gpc"),
        Change::Set => ("sc-set-gpt", "gpt"),
    };
    let expects = |name: &str| format!("Expects {name}(<{} ID>,<Track ID>)", what.to_uppercase());
    let Some(inside) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('(')) else {
        return Err(match change {
            Change::Add => format!("Missing or invalid arguments for '{word}'. {}", expects(name)),
            _ => format!("invalid {what} ID '{word}'. {}", expects(name)),
        });
    };
    // HAProxy says of one of them what it got in place of its name.
    let (whole, expects) = match change {
        Change::Add => (None, expects(word)),
        _ => (Some(word), expects(name)),
    };
    let missing = whole.map(|word| format!(" '{word}'")).unwrap_or_default();
    let (index, rest) = leading(inside);
    let rest = rest.strip_prefix(',').ok_or_else(|| format!("Missing {what} ID{missing}. {expects}"))?;
    let (counter, tail) = leading(rest);
    // What stands behind the parentheses is not looked at.
    if !tail.starts_with(')') {
        return Err(format!("invalid stick table track ID '{}'. {expects}", whole.unwrap_or(rest)));
    }
    Ok((index, counter))
}

/// The number that a text begins with, 0 without one, and what follows.
fn leading(text: &str) -> (usize, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    (if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX) }, rest)
}

fn array(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    change: Change,
) -> Parsed {
    let word = own_word(words)?;
    let data = if change == Change::Set { Data::Gpt } else { Data::Gpc };
    let (index, counter) = indices(&word, change).map_err(Fault::new)?;
    let most = names.stick_counters();
    if counter >= most {
        return Err(Fault::new(format!(
            "invalid stick table track ID '{word}'. The max allowed ID is {}{}",
            most.saturating_sub(1),
            if change == Change::Set { "" } else { " (tune.stick-counters)" }
        )));
    }
    let amount = amount(words, at, reg, names, change)?;
    run(counter, data, index, change, amount)
}

fn run(counter: usize, data: Data, index: usize, change: Change, amount: Amount) -> Parsed {
    step(move |exec| {
        if let Some(n) = amount.of(exec) {
            let env = exec.env();
            tracked(&env, counter, |held| {
                let mut row = held.touched_row(crate::stick::now(&env));
                match change {
                    Change::Set => drop(row.set(data, index, n)),
                    Change::Inc | Change::Add => drop(figure::count(&mut row, data, index, n)),
                }
            });
        }
        Flow::Next
    })
}
