//! The words of `bind` lines but those of TLS.

use std::time::Duration;

use program::listener::{Level, Severity};
use syntax::Word;

use super::{BindDraft, tls};
use crate::statement::{Statement, clamp};
use crate::{resolve, units};

/// Sets one word of a `bind` line; the error is what is wrong with its value.
pub(super) type Set = fn(&mut BindDraft, &Word, &mut Statement<'_>) -> Result<(), String>;

/// One word of a `bind` line.
pub(crate) struct BindKeyword {
    /// The word.
    pub name: &'static str,
    /// How many words follow, for the dump.
    pub args: u8,
    /// What it does; `None`: it belongs to something that is not built yet.
    pub set: Option<Set>,
    /// It needs `ssl` and is harmless without it.
    pub tls: bool,
    /// One line of documentation.
    pub doc: &'static str,
}

const fn word(name: &'static str, args: u8, set: Set, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: Some(set), tls: false, doc }
}

const fn later(name: &'static str, args: u8, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: None, tls: false, doc }
}

const TABLE: &[BindKeyword] = &[
    word(
        "accept-netscaler-cip",
        1,
        |b, w, _| {
            b.settings.accept_cip =
                Some(u32::try_from(number(w)?).map_err(|_| "magic number out of range".to_owned())?);
            Ok(())
        },
        "Connections begin with a NetScaler Client IP header with this magic number.",
    ),
    word(
        "accept-proxy",
        0,
        |b, _, _| flag(&mut b.settings.accept_proxy),
        "Connections begin with a PROXY header.",
    ),
    word(
        "backlog",
        1,
        |b, w, _| {
            b.settings.backlog = Some(clamp(positive(w)?));
            Ok(())
        },
        "Length of the queue of connections that the system has accepted.",
    ),
    word("cc", 1, |b, w, _| text(&mut b.settings.congestion, w), "TCP congestion control algorithm."),
    word(
        "defer-accept",
        0,
        |b, _, _| flag(&mut b.settings.defer_accept),
        "Accept only when the client has spoken.",
    ),
    word(
        "expose-fd",
        1,
        |b, w, _| match w.text() {
            "listeners" => flag(&mut b.settings.expose_fd),
            other => Err(format!("unknown value '{other}', only 'listeners' is supported")),
        },
        "Listening sockets may be asked for on this runtime socket.",
    ),
    word(
        "gid",
        1,
        |b, w, _| {
            b.settings.unix.gid = Some(clamp(units::lenient(w.text())));
            Ok(())
        },
        "Group number of a Unix socket.",
    ),
    word(
        "group",
        1,
        |b, w, _| {
            b.settings.unix.gid =
                Some(resolve::group(w.text()).ok_or_else(|| format!("unknown group name '{w}'"))?);
            Ok(())
        },
        "Group name of a Unix socket.",
    ),
    word("guid-prefix", 1, |b, w, _| text(&mut b.guid_prefix, w), "Prefix of unique names of listeners."),
    word("id", 1, id, "Number of the listener."),
    word(
        "idle-ping",
        1,
        |b, w, _| {
            b.settings.idle_ping = Some(delay(w, "idle-ping")?);
            Ok(())
        },
        "Probe idle HTTP/2 connections after this time.",
    ),
    word("interface", 1, |b, w, _| text(&mut b.settings.interface, w), "Only from this network interface."),
    word("label", 1, |b, w, _| text(&mut b.settings.label, w), "Optional label of the listener."),
    word(
        "level",
        1,
        |b, w, _| {
            b.settings.level = match w.text() {
                "user" => Level::User,
                "operator" => Level::Operator,
                "admin" => Level::Admin,
                _ => {
                    return Err(format!("'level' only supports 'user', 'operator', and 'admin' (got '{w}')"));
                }
            };
            Ok(())
        },
        "What the runtime API may do here.",
    ),
    word(
        "maxconn",
        1,
        |b, w, _| {
            b.settings.maxconn = clamp(positive(w)?);
            Ok(())
        },
        "Most connections at a time.",
    ),
    word(
        "mode",
        1,
        |b, w, _| {
            b.settings.unix.mode = Some(
                u32::from_str_radix(w.text(), 8)
                    .map_err(|_| format!("'mode' expects an octal number, found '{w}'"))?,
            );
            Ok(())
        },
        "Octal permissions of a Unix socket.",
    ),
    word(
        "mss",
        1,
        |b, w, _| match units::strict(w.text()) {
            Some(n) if n != 0 && n.abs() <= 65535 => {
                b.settings.mss = i32::try_from(n).ok();
                Ok(())
            }
            _ => Err("expects an MSS with and absolute value between 1 and 65535".into()),
        },
        "Greatest TCP segment to advertise.",
    ),
    word("name", 1, |b, w, _| text(&mut b.name, w), "Name of the listener."),
    word(
        "namespace",
        1,
        |b, w, _| namespace(w).and_then(|()| text(&mut b.settings.namespace, w)),
        "Network namespace.",
    ),
    later("nbconn", 1, "Number of reverse HTTP connections."),
    word(
        "nice",
        1,
        |b, w, _| {
            b.settings.nice = i16::try_from(units::lenient(w.text()).clamp(-1024, 1024)).unwrap_or(0);
            Ok(())
        },
        "Priority of the connections, -1024 to 1024.",
    ),
    later("process", 1, "Removed: use 'thread'."),
    word(
        "proto",
        1,
        |b, w, _| match w.text() {
            "h1" | "h2" | "none" => {
                b.settings.raw = w.text() == "none";
                b.settings.h2 = w.text() == "h2";
                b.settings.h1 = w.text() == "h1";
                if w.text() == "h1" {
                    b.tls.words.alpn.get_or_insert_with(|| vec![b"http/1.1".to_vec()]);
                }
                text(&mut b.proto, w)
            }
            "quic" | "spop" | "fcgi" => Err(format!("'{w}' is not supported yet by Harrier (planned)")),
            _ => Err(format!(" unknown MUX protocol '{w}'")),
        },
        "Protocol spoken without negotiation.",
    ),
    later("quic-cc-algo", 1, "QUIC congestion control."),
    later("quic-force-retry", 0, "QUIC retry packets."),
    later("quic-socket", 1, "QUIC sockets."),
    word(
        "severity-output",
        1,
        |b, w, _| {
            b.settings.severity = match w.text() {
                "none" => Severity::None,
                "number" => Severity::Number,
                "string" => Severity::String,
                _ => return Err("'severity-output' only supports 'none', 'number', and 'string'".into()),
            };
            Ok(())
        },
        "How runtime answers show their severity.",
    ),
    word(
        "shards",
        1,
        |b, w, _| {
            b.shards = true;
            b.settings.shards = match w.text() {
                "by-thread" => 0,
                "by-group" => 1,
                _ => u32::try_from(number(w)?)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or("'shards' expects a strictly positive value or 'by-thread' or 'by-group'")?,
            };
            Ok(())
        },
        "Number of sockets for the address.",
    ),
    word(
        "ssl",
        0,
        |b, _, _| {
            b.tls.on = true;
            Ok(())
        },
        "Speak TLS.",
    ),
    word("tcp-md5sig", 1, |b, w, _| text(&mut b.settings.md5sig, w), "TCP MD5 signature (RFC 2385)."),
    word("tcp-ss", 1, |_, w, _| number(w).map(drop), "Keep SYNs of this size (no effect)."),
    word(
        "tcp-ut",
        1,
        |b, w, _| {
            b.settings.tcp_ut = Some(delay(w, "tcp-ut")?);
            Ok(())
        },
        "TCP user timeout.",
    ),
    word("tfo", 0, |b, _, _| flag(&mut b.settings.tfo), "TCP Fast Open."),
    word("thread", 1, thread, "Threads that accept here."),
    word("transparent", 0, |b, _, _| flag(&mut b.settings.transparent), "Bind even to foreign addresses."),
    word(
        "uid",
        1,
        |b, w, _| {
            b.settings.unix.uid = Some(clamp(units::lenient(w.text())));
            Ok(())
        },
        "User number of a Unix socket.",
    ),
    word(
        "user",
        1,
        |b, w, _| {
            b.settings.unix.uid =
                Some(resolve::user(w.text()).ok_or_else(|| format!("unknown user name '{w}'"))?);
            Ok(())
        },
        "User name of a Unix socket.",
    ),
    word(
        "v4v6",
        0,
        |b, _, _| {
            b.settings.v6only = Some(false);
            Ok(())
        },
        "Accept IPv4 on an IPv6 socket.",
    ),
    word(
        "v6only",
        0,
        |b, _, _| {
            b.settings.v6only = Some(true);
            Ok(())
        },
        "IPv6 only.",
    ),
];

/// All words in the order of the dump: those of TLS come last.
pub(crate) fn all() -> impl Iterator<Item = &'static BindKeyword> {
    TABLE.iter().chain(tls::KEYWORDS)
}

fn flag(field: &mut bool) -> Result<(), String> {
    *field = true;
    Ok(())
}

pub(super) fn text(field: &mut Option<Box<str>>, word: &Word) -> Result<(), String> {
    *field = Some(word.text().into());
    Ok(())
}

fn number(word: &Word) -> Result<i64, String> {
    let text = word.text();
    let hex = text.strip_prefix("0x").map(|digits| i64::from_str_radix(digits, 16).ok());
    hex.unwrap_or_else(|| units::strict(text))
        .ok_or_else(|| format!("expects an integer argument, found '{word}'"))
}

fn positive(word: &Word) -> Result<i64, String> {
    match units::lenient(word.text()) {
        n if n > 0 => Ok(n),
        _ => Err(format!("invalid value '{}', must be > 0", units::lenient(word.text()))),
    }
}

fn delay(word: &Word, name: &str) -> Result<Duration, String> {
    match units::millis(word.text()) {
        Ok(ms) => Ok(Duration::from_millis(ms)),
        Err(_) => Err(format!("'{name}' : expects a positive delay in milliseconds")),
    }
}

fn id(bind: &mut BindDraft, word: &Word, _: &mut Statement<'_>) -> Result<(), String> {
    match number(word)? {
        n if n > 0 => bind.id = Some(clamp(n)),
        _ => return Err("custom id has to be > 0".into()),
    }
    Ok(())
}

/// A namespace exists as a file that `ip netns` made.
fn namespace(word: &Word) -> Result<(), String> {
    match std::path::Path::new("/var/run/netns").join(word.text()).exists() {
        true => Ok(()),
        false => Err(format!("Cannot open namespace '{word}'")),
    }
}

/// `thread [group/]set[,set]`: `all`, `odd`, `even`, a number or a range.
fn thread(bind: &mut BindDraft, word: &Word, _: &mut Statement<'_>) -> Result<(), String> {
    for set in word.text().split(',') {
        let set = set.split_once('/').map_or(set, |(_, threads)| threads);
        match set {
            "all" | "odd" | "even" => {
                let (first, step) = (u32::from(set == "even") + 1, if set == "all" { 1 } else { 2 });
                bind.threads.extend((first..=64).step_by(step).map(|n| (n, n)));
            }
            _ => {
                let (from, to) = set.split_once('-').unwrap_or((set, set));
                match (from.parse::<u32>(), to.parse::<u32>()) {
                    (Ok(from), Ok(to)) if from > 0 && from <= to => bind.threads.push((from, to)),
                    _ => return Err(format!("invalid thread set '{word}'")),
                }
            }
        }
    }
    Ok(())
}
