//! Settings of the connection and the transaction: addresses, marks, priorities, log level, timeouts (section
//! 4.3).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base::units::TimeError;
use model::Peer;

use super::{Parsed, Reading, def, step};
use crate::action::{Exec, Flow};
use crate::env::Side;
use crate::expr::Expr;
use crate::names::Names;
use crate::places::Place;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::sample::parse_int;
use crate::words::{Fault, Words};

const CLIENT: Sets = Sets::TCP_CONN.and(Sets::TCP_SESS).and(Sets::TCP_REQ).and(Sets::HTTP_REQ);
const BOTH_WAYS: Sets = Sets::TCP.and(Sets::HTTP_REQ).and(Sets::HTTP_RES);
const CONTENT: Sets = Sets::TCP_REQ.and(Sets::HTTP_REQ);
const NICE: Sets = Sets::TCP_REQ.and(Sets::TCP_RES).and(Sets::HTTP_REQ).and(Sets::HTTP_RES);
const LATER: Sets = Sets::TCP_REQ.and(Sets::TCP_RES).and(Sets::HTTP);

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "disable-l7-retry",
        Sets::HTTP_REQ,
        no_retry,
        "Does not retry this request when the server fails.",
        "disable-l7-retry",
    ),
    def(
        "set-bc-mark",
        CONTENT,
        |w, a, r, n| number(w, a, r, n, Setting::BackMark),
        "Marks packets to the server.",
        "set-bc-mark 123",
    ),
    def(
        "set-bc-tos",
        CONTENT,
        |w, a, r, n| number(w, a, r, n, Setting::BackTos),
        "Sets the TOS of packets to the server.",
        "set-bc-tos 0x10",
    ),
    def(
        "set-dst",
        CLIENT,
        |w, a, r, n| address(w, a, r, n, Field::DstIp),
        "Replaces the destination address.",
        "set-dst hdr_ip(x-dst)",
    ),
    def(
        "set-dst-port",
        CLIENT,
        |w, a, r, n| address(w, a, r, n, Field::DstPort),
        "Replaces the destination port.",
        "set-dst-port int(4000)",
    ),
    def(
        "set-fc-mark",
        BOTH_WAYS,
        |w, a, r, n| number(w, a, r, n, Setting::FrontMark),
        "Marks packets to the client.",
        "set-fc-mark 123",
    ),
    def(
        "set-fc-tos",
        BOTH_WAYS,
        |w, a, r, n| number(w, a, r, n, Setting::FrontTos),
        "Sets the TOS of packets to the client.",
        "set-fc-tos 0x10",
    ),
    def("set-log-level", LATER, log_level, "Changes the level of the log line.", "set-log-level silent"),
    def(
        "set-mark",
        BOTH_WAYS,
        |w, a, r, n| number(w, a, r, n, Setting::FrontMark),
        "Marks packets to the client (old name).",
        "set-mark 123",
    ),
    def("set-nice", NICE, nice, "Changes the weight of the stream among tasks.", "set-nice 10"),
    def(
        "set-priority-class",
        CONTENT,
        |w, a, r, n| number(w, a, r, n, Setting::PriorityClass),
        "Sets the class in queues; lower goes first.",
        "set-priority-class int(-10)",
    ),
    def(
        "set-priority-offset",
        CONTENT,
        |w, a, r, n| number(w, a, r, n, Setting::PriorityOffset),
        "Moves the request in queues, in milliseconds.",
        "set-priority-offset int(100)",
    ),
    def("set-retries", CONTENT, retries, "Changes the number of connection retries.", "set-retries 3"),
    def(
        "set-src",
        CLIENT,
        |w, a, r, n| address(w, a, r, n, Field::SrcIp),
        "Replaces the client's address.",
        "set-src hdr_ip(x-forwarded-for)",
    ),
    def(
        "set-src-port",
        CLIENT,
        |w, a, r, n| address(w, a, r, n, Field::SrcPort),
        "Replaces the client's port.",
        "set-src-port int(4000)",
    ),
    def(
        "set-timeout",
        Sets::HTTP_REQ.and(Sets::HTTP_RES),
        timeout,
        "Changes a timeout.",
        "set-timeout tunnel 1h",
    ),
    def(
        "set-tos",
        BOTH_WAYS,
        |w, a, r, n| number(w, a, r, n, Setting::FrontTos),
        "Sets the TOS of packets to the client (old name).",
        "set-tos 0x10",
    ),
    def(
        "strict-mode",
        Sets::HTTP,
        strict_mode,
        "Whether a rewrite that finds no room is an error.",
        "strict-mode off",
    ),
];

fn no_retry(_: &mut Words<'_>, _: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    step(|exec| {
        exec.txn.decisions.no_l7_retry = true;
        Flow::Next
    })
}

/// Numbers that an expression, and for some a constant, may give.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    BackMark,
    BackTos,
    FrontMark,
    FrontTos,
    PriorityClass,
    PriorityOffset,
}

impl Setting {
    fn is_priority(self) -> bool {
        matches!(self, Setting::PriorityClass | Setting::PriorityOffset)
    }

    fn apply(self, exec: &mut Exec<'_>, n: i64) {
        let decisions = &mut exec.txn.decisions;
        match self {
            Setting::BackMark => decisions.bc_mark = Some(n as u32),
            Setting::BackTos => decisions.bc_tos = Some(n as u8),
            Setting::FrontMark => decisions.fc_mark = Some(n as u32),
            Setting::FrontTos => decisions.fc_tos = Some(n as u8),
            Setting::PriorityClass => decisions.priority_class = n.clamp(-2047, 2047) as i16,
            Setting::PriorityOffset => decisions.priority_offset = n.clamp(-524_287, 524_287) as i32,
        }
    }
}

/// A constant or an expression.
pub(super) enum Number {
    Constant(i64),
    Computed(Expr),
}

impl Number {
    pub(super) fn value(&self, exec: &Exec<'_>) -> Option<i64> {
        match self {
            Number::Constant(n) => Some(*n),
            Number::Computed(expr) => expr.eval(&exec.env()).ok()?.int(),
        }
    }
}

/// A decimal, octal or hexadecimal number.
fn constant(word: &str) -> Option<i64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None if word.len() > 1 && word.starts_with('0') => i64::from_str_radix(word, 8).ok(),
        None => word.parse().ok(),
    }
}

fn number(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    setting: Setting,
) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let first = reading.words.peek_str();
    if first.is_none() && !setting.is_priority() {
        return Err(Fault::new("expects an argument"));
    }
    let number = match first.and_then(constant).filter(|_| !setting.is_priority()) {
        Some(n) => {
            reading.words.take();
            Number::Constant(n)
        }
        None => Number::Computed(reading.expr()?),
    };
    step(move |exec| {
        if let Some(n) = number.value(exec) {
            setting.apply(exec, n);
        }
        Flow::Next
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    SrcIp,
    SrcPort,
    DstIp,
    DstPort,
}

fn address(
    words: &mut Words<'_>,
    at: &ActionPlace,
    reg: &Registry,
    names: &mut dyn Names,
    field: Field,
) -> Parsed {
    let level = match at.set {
        Sets::TCP_CONN => Level::Connection,
        Sets::TCP_SESS => Level::Session,
        _ => Level::Stream,
    };
    // HAProxy lets rules on connections name what only requests have; it finds nothing there.
    let place =
        if at.set == Sets::TCP_CONN || at.set == Sets::TCP_SESS { Place::FrontTcpContent } else { at.place };
    let expr = Reading { words, at: &ActionPlace { place, ..*at }, reg, names }.expr()?;
    step(move |exec| {
        change(exec, &expr, field, level);
        Flow::Next
    })
}

/// What a rule changes: the connection itself (`fc_src`), what all of its requests see, what one sees.
#[derive(Clone, Copy)]
enum Level {
    Connection,
    Session,
    Stream,
}

fn change(exec: &mut Exec<'_>, expr: &Expr, field: Field, level: Level) {
    let source = matches!(field, Field::SrcIp | Field::SrcPort);
    let (old, new) = {
        let env = exec.env();
        let old = if source { env.src() } else { env.dst() };
        let Ok(value) = expr.eval(&env) else { return };
        let new = match field {
            Field::SrcIp | Field::DstIp => value.addr().map(|ip| with_ip(old, ip)),
            Field::SrcPort | Field::DstPort => value.int().map(|port| with_port(old, port as u16)),
        };
        (old, new.unwrap_or(old))
    };
    if new == old {
        return;
    }
    let conn = exec.conn;
    let (shown, own, decided) = match source {
        true => (&conn.src, &conn.fc_src, &mut exec.txn.decisions.src),
        false => (&conn.dst, &conn.fc_dst, &mut exec.txn.decisions.dst),
    };
    match level {
        Level::Connection => {
            shown.set(new);
            own.set(new);
        }
        Level::Session => shown.set(new),
        Level::Stream => *decided = Some(new),
    }
}

fn with_ip(old: Peer, ip: IpAddr) -> Peer {
    Peer::Inet(SocketAddr::new(ip, old.port().unwrap_or(0)))
}

fn with_port(old: Peer, port: u16) -> Peer {
    match old.ip() {
        Some(ip) => Peer::Inet(SocketAddr::new(ip, port)),
        None => Peer::Inet(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port)),
    }
}

const LEVELS: [&str; 9] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "silent"];

fn log_level(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let expects = "expects exactly 1 argument (log level name or 'silent')";
    let word = words.expect(expects)?;
    let level = LEVELS.iter().position(|l| *l == word).ok_or_else(|| Fault::new(expects))?;
    step(move |exec| {
        exec.txn.decisions.log_level = Some(level as u8);
        Flow::Next
    })
}

fn nice(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let word = words.expect("expects exactly 1 argument (integer value)")?;
    let nice = parse_int(word.as_bytes()).unwrap_or(0).clamp(-1024, 1024) as i16;
    step(move |exec| {
        exec.txn.decisions.nice = Some(nice);
        Flow::Next
    })
}

fn retries(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    if names.in_defaults() {
        return Err(Fault::new("'set-retries' is not allowed in 'defaults' sections"));
    }
    let mut reading = Reading { words, at, reg, names };
    let expects = "expects exactly 1 argument (an expression or an integer between 1 and 100)";
    let word = reading.words.peek_str().ok_or_else(|| Fault::new(expects))?;
    if reading.names.lacks(Side::Response) {
        let name = if Sets::TCP.has(at.set) { "tcp-request" } else { "set-retries" };
        return Err(Fault::new(format!("'{name}' only available in backend or listen section")));
    }
    let number = match constant(word) {
        Some(n @ 1..=100) => {
            reading.words.take();
            Number::Constant(n)
        }
        Some(_) => return Err(Fault::new(expects)),
        None => Number::Computed(reading.expr()?),
    };
    step(move |exec| {
        // An expression may say that nothing is tried again; only a number written in the rule has to be more
        // than 0.
        if let Some(n @ 0..=100) = number.value(exec) {
            exec.txn.overrides.retries = Some(n as u32);
        }
        Flow::Next
    })
}

/// A time that stands in the rule, or is computed in milliseconds.
pub(super) fn delay(reading: &mut Reading<'_, '_>, rule: &str) -> Result<Number, Fault> {
    let word = reading.words.peek_str().unwrap_or_default().to_owned();
    let fault = match crate::parse::tolerant(&word, reading.names) {
        Ok(0) => return Err(Fault::new(format!("null value is not valid for a '{rule}' rule"))),
        Ok(ms) => {
            reading.words.take();
            return Ok(Number::Constant(i64::try_from(ms).unwrap_or(i64::MAX)));
        }
        Err(fault) => fault,
    };
    let text = match fault {
        // Where nothing stands HAProxy's message ends with the character that is not there.
        TimeError::Empty => "unexpected character '".to_owned(),
        TimeError::Unexpected(found) => format!("unexpected character '{found}' in rule '{rule}'"),
        _ => fault.text(&word, rule).replace(&format!("to '{rule}'"), &format!("to rule '{rule}'")),
    };
    reading.expr().map(Number::Computed).map_err(|f| Fault { text, ..f })
}

const TIMEOUTS: [&str; 6] = ["client", "connect", "queue", "server", "tarpit", "tunnel"];

fn timeout(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let expects = "expects exactly 2 arguments";
    let name = reading.word(expects)?;
    if reading.words.is_empty() {
        return Err(Fault::new(expects));
    }
    let Some(which) = TIMEOUTS.iter().position(|t| *t == name) else {
        let text = format!(
            "'set-timeout' rule supports 'client'/'connect'/'queue'/'server'/'tarpit'/'tunnel' (got '{name}')"
        );
        return Err(Fault::new(text));
    };
    let (side, kind) = match name.as_str() {
        "client" => (Some(Side::Request), "frontend"),
        "tarpit" => (None, ""),
        _ => (Some(Side::Response), "backend"),
    };
    if side.is_some_and(|s| reading.names.lacks(s)) {
        let owner = reading.names.owner();
        let name = owner.split('\'').nth(1).unwrap_or_default();
        return Err(Fault::new(format!("'{name}' has no {kind} capability")));
    }
    let number = delay(&mut reading, &format!("set-timeout {name}"))?;
    step(move |exec| {
        if let Some(ms) = number.value(exec).and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0) {
            let time = Some(Duration::from_millis(ms));
            let all = &mut exec.txn.overrides;
            match which {
                0 => all.client = time,
                1 => all.connect = time,
                2 => all.queue = time,
                3 => all.server = time,
                4 => all.tarpit = time,
                _ => all.tunnel = time,
            }
        }
        Flow::Next
    })
}

fn strict_mode(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let lenient = match words.expect("expects exactly 1 arguments")? {
        word if word.eq_ignore_ascii_case("on") => false,
        word if word.eq_ignore_ascii_case("off") => true,
        other => {
            return Err(Fault::new(format!("Unexpected value '{other}'. Only 'on' and 'off' are supported")));
        }
    };
    step(move |exec| {
        exec.txn.decisions.lenient_rewrites = lenient;
        Flow::Next
    })
}
