//! The words of `bind` lines but those of TLS.

use std::time::Duration;

use program::listener::{Level, Severity};
use syntax::Word;

use crate::draft::{BindDraft, Shards, ThreadRange};
use crate::mux::Mux;
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
    /// Read, checked, and without effect here; `doc` says why, and so does a notice where it is used.
    pub idle: bool,
    /// One line of documentation.
    pub doc: &'static str,
    /// Words that compile behind an address; empty: they need something that a test has not.
    pub example: &'static str,
    /// What holds where the word does not stand; empty: nothing to say.
    pub default: &'static str,
}

impl BindKeyword {
    /// The same keyword with an example.
    pub(super) const fn example(self, example: &'static str) -> BindKeyword {
        BindKeyword { example, ..self }
    }

    /// The same keyword, with what holds where it does not stand.
    pub(super) const fn default(self, default: &'static str) -> BindKeyword {
        BindKeyword { default, ..self }
    }

    /// The same word, which has no effect.
    pub(super) const fn idle(mut self) -> BindKeyword {
        self.idle = true;
        self
    }

    /// What is wrong with the word when its value is missing.
    pub(super) fn missing(&self) -> String {
        let name = self.name;
        let what = match name {
            "alpn" => "missing the comma-delimited ALPN protocol suite",
            "ca-file" | "ca-sign-file" | "ca-verify-file" => "missing CAfile path",
            "ca-ignore-err" | "crt-ignore-err" => "missing error IDs list",
            "ca-sign-pass" => "missing CAkey password",
            "cc" => "missing TCP congestion control algorithm",
            "ciphers" | "ciphersuites" => "missing cipher suite",
            "client-sigalgs" | "sigalgs" => "missing signature algorithm list",
            "crl-file" => "missing CRLfile path",
            "crt" | "crt-list" | "default-crt" => "missing certificate location",
            "curves" => "missing curve suite",
            "ecdhe" => "missing named curve",
            "group" => "missing group name",
            "guid-prefix" => "expects an argument",
            "id" => "expects an integer argument",
            "idle-ping" => return format!("'{name}' expects an argument."),
            "interface" => "missing interface name",
            "label" => "missing label",
            "level" => "missing level",
            "mode" => "missing or invalid mode '' (octal integer expected)",
            "mss" => "missing MSS value",
            "name" => "missing name",
            "namespace" => "missing namespace id",
            "npn" => "missing the comma-delimited NPN protocol suite",
            "quic-cc-algo" => "missing control congestion algorithm",
            "severity-output" => "missing severity format",
            "ssl-min-ver" | "ssl-max-ver" => "missing the ssl/tls version",
            "tcp-ut" => "missing TCP User Timeout value",
            "tls-ticket-keys" => "missing TLS ticket keys file path",
            "tcp-md5sig" => "missing TCP MD5 signature password",
            "tcp-ss" => SAVE_SYN,
            "user" => "missing user name",
            "verify" => "missing verify method",
            _ => "missing value",
        };
        format!("'{name}' : {what}")
    }
}

const fn word(name: &'static str, args: u8, set: Set, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: Some(set), tls: false, idle: false, doc, example: "", default: "" }
}

const fn later(name: &'static str, args: u8, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: None, tls: false, idle: false, doc, example: "", default: "" }
}

/// A word without effect, and why it has none.
const fn vain(name: &'static str, args: u8, why: &'static str) -> BindKeyword {
    word(name, args, |_, _, _| Ok(()), why).idle()
}

/// What files of HAProxy 1.x and 2.x are told, as they are there.
pub(super) fn no_process(value: &str) -> String {
    format!("'process {value}' on 'bind' lines is not supported anymore, please use 'thread' instead.")
}

const QUIC: &str = "It is about QUIC, which is not built yet.";

/// The words of this family.
pub(super) const KEYWORDS: &[BindKeyword] = &[
    word(
        "accept-netscaler-cip",
        1,
        |b, w, _| {
            // The number is one of 32 bits, whatever it looks like.
            let n = units::lenient(w.text()) as u32;
            if n == 0 {
                return Err("invalid value 0, must be >= 0".into());
            }
            b.settings.accept_cip = Some(n);
            Ok(())
        },
        "Connections begin with a NetScaler Client IP header with this magic number.",
    ).example("accept-netscaler-cip 5"),
    word(
        "accept-proxy",
        0,
        |b, _, _| flag(&mut b.settings.accept_proxy),
        "Connections begin with a PROXY header.",
    ).example("accept-proxy"),
    word(
        "backlog",
        1,
        |b, w, _| {
            b.settings.backlog = Some(counted(w, "> 0")?).filter(|n| *n > 0);
            Ok(())
        },
        "Length of the queue of connections that the system has accepted.",
    ).example("backlog 1000").default("that of the proxy"),
    word("cc", 1, |b, w, _| text(&mut b.settings.congestion, w), "TCP congestion control algorithm.").example("cc reno").default("the system's"),
    word(
        "defer-accept",
        0,
        |b, _, _| flag(&mut b.settings.defer_accept),
        "Accept only when the client has spoken.",
    ).example("defer-accept"),
    word(
        "expose-fd",
        1,
        |b, w, _| match w.text() {
            "listeners" => flag(&mut b.settings.expose_sockets),
            other => Err(format!("'expose-fd' only supports 'listeners' (got '{other}')")),
        },
        "Hand the listening sockets to a process that asks for them here ('-x').",
    )
    .example("expose-fd listeners"),
    word(
        "gid",
        1,
        |b, w, _| {
            b.settings.unix.gid = Some(clamp(units::lenient(w.text())));
            Ok(())
        },
        "Group number of a Unix socket.",
    ).example("gid 65534"),
    word(
        "group",
        1,
        |b, w, _| {
            b.settings.unix.gid =
                Some(resolve::group(w.text()).ok_or_else(|| format!("unknown group name '{w}'"))?);
            Ok(())
        },
        "Group name of a Unix socket.",
    ).example("group root"),
    word("guid-prefix", 1, |b, w, _| text(&mut b.guid_prefix, w), "Prefix of unique names of listeners.").example("guid-prefix edge"),
    word("id", 1, id, "Number of the listener.").example("id 7"),
    word(
        "idle-ping",
        1,
        |b, w, s| {
            let d = delay(s, w, |fault| match fault {
                units::TimeFault::Unexpected(c) => {
                    format!("unexpected character '{c}' in 'idle-ping' argument on bind line.")
                }
                units::TimeFault::Overflow => format!(
                    "timer overflow in argument <{w}> to <idle-ping> on bind line, maximum value is 2147483647 ms (~24.8 days)."
                ),
            })?;
            b.settings.idle_ping = (!d.is_zero()).then_some(d);
            Ok(())
        },
        "Time after which an idle HTTP/2 connection is probed.",
    ).example("idle-ping 30s").default("never"),
    word("interface", 1, |b, w, _| text(&mut b.settings.interface, w), "Only from this network interface.").example("interface lo").default("all"),
    vain("label", 1, "Nothing here groups sockets by it."),
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
    ).example("level admin").default("operator"),
    word(
        "maxconn",
        1,
        |b, w, _| {
            b.settings.maxconn = counted(w, ">= 0")?;
            Ok(())
        },
        "Most connections at a time.",
    ).example("maxconn 1000").default("that of the proxy"),
    word(
        "mode",
        1,
        |b, w, _| {
            b.settings.unix.mode = Some(
                u32::from_str_radix(w.text(), 8)
                    .map_err(|_| format!("missing or invalid mode '{w}' (octal integer expected)"))?,
            );
            Ok(())
        },
        "Octal permissions of a Unix socket.",
    ).example("mode 660").default("the process's umask"),
    word(
        "mss",
        1,
        |b, w, _| match units::lenient(w.text()) {
            n if n != 0 && n.abs() <= 65535 => {
                b.settings.mss = i32::try_from(n).ok();
                Ok(())
            }
            _ => Err("expects an MSS with and absolute value between 1 and 65535".into()),
        },
        "Greatest TCP segment to advertise.",
    ).example("mss 1400").default("the system's"),
    word("name", 1, |b, w, _| text(&mut b.name, w), "Name of the listener.").example("name edge"),
    word("namespace", 1, |b, w, _| namespace(b, w), "The network namespace of the socket.")
        .example("namespace tenant1")
        .default("that of the process"),
    later("nbconn", 1, "Not built yet: reverse HTTP connections."),
    word(
        "nice",
        1,
        |b, w, _| {
            let n = units::lenient(w.text());
            let fit = i16::try_from(n).ok().filter(|n| (-1024..=1024).contains(n));
            b.settings.nice =
                fit.ok_or_else(|| format!("invalid value {n}, allowed range is -1024..1024"))?;
            Ok(())
        },
        "Priority of the connections, -1024 to 1024.",
    ).example("nice 10").default("0"),
    word("process", 1, |_, w, _| Err(no_process(w.text())), "Removed: use 'thread'."),
    word(
        "proto",
        1,
        |b, w, _| {
            let mux = Mux::of(w.text()).ok_or_else(|| format!(" unknown MUX protocol '{w}'"))?;
            b.settings.raw = mux == Mux::None;
            b.settings.h2 = mux == Mux::H2;
            b.settings.h1 = mux == Mux::H1;
            let only: Option<&[u8]> = match mux {
                Mux::H1 => Some(b"http/1.1"),
                Mux::H2 => Some(b"h2"),
                _ => None,
            };
            if let Some(name) = only {
                b.tls.words.alpn.get_or_insert_with(|| vec![name.to_vec()]);
            }
            b.proto = Some(mux);
            Ok(())
        },
        "Protocol spoken without negotiation.",
    ).example("proto h2").default("by ALPN and by the first bytes"),
    vain("quic-cc-algo", 1, QUIC),
    vain("quic-force-retry", 0, QUIC),
    vain("quic-socket", 1, QUIC),
    word(
        "severity-output",
        1,
        |b, w, _| {
            b.settings.severity = match w.text() {
                "none" => Severity::None,
                "number" => Severity::Number,
                "string" => Severity::String,
                _ => {
                    return Err(format!(
                        "'severity-output' only supports 'none', 'number', and 'string' (got '{w}')"
                    ));
                }
            };
            Ok(())
        },
        "How runtime answers show their severity.",
    ).example("severity-output number").default("none"),
    word(
        "shards",
        1,
        |b, w, _| {
            b.shards = Some(match (w.text(), units::lenient(w.text())) {
                ("by-thread", _) => Shards::ByThread,
                ("by-group", _) => Shards::ByGroup,
                (_, n @ 1..=1024) => Shards::Count(clamp(n)),
                (_, n) => return Err(format!("invalid value {n}, allowed range is 1..1024 or 'by-thread'")),
            });
            Ok(())
        },
        "How many sockets the threads of the line share.",
    )
    .example("shards by-thread")
    .default("tune.listener.default-shards"),
    word(
        "ssl",
        0,
        |b, _, _| {
            b.tls.on = true;
            Ok(())
        },
        "Speak TLS.",
    ).example("ssl crt /etc/harrier/site.pem"),
    word("tcp-md5sig", 1, |b, w, _| text(&mut b.settings.md5sig, w), "TCP MD5 signature (RFC 2385)."),
    word(
        "tcp-ss",
        1,
        |b, w, _| {
            let digit = w.text().starts_with(|c: char| c.is_ascii_digit());
            let mode = u8::try_from(units::lenient(w.text())).ok().filter(|mode| digit && *mode <= 2);
            b.settings.save_syn = mode.ok_or(SAVE_SYN)?;
            Ok(())
        },
        "Keep the SYN of connections for fc_saved_syn: 1 from the IP header on, 2 with the link's, 0 not.",
    ).example("tcp-ss 1").default("0"),
    word(
        "tcp-ut",
        1,
        |b, w, s| {
            b.settings.tcp_ut = Some(delay(s, w, |fault| match fault {
                units::TimeFault::Unexpected(_) => {
                    "'tcp-ut' : expects a positive delay in milliseconds".into()
                }
                units::TimeFault::Overflow => format!(
                    "timer overflow in argument '{w}' to 'tcp-ut' (maximum value is 2147483647 ms or ~24.8 days)"
                ),
            })?);
            Ok(())
        },
        "TCP user timeout.",
    ).example("tcp-ut 30s").default("the system's"),
    word("tfo", 0, |b, _, _| flag(&mut b.settings.tfo), "TCP Fast Open.").example("tfo"),
    word("thread", 1, thread, "Threads that accept here.").example("thread 1/1-2").default("all"),
    word("transparent", 0, |b, _, _| flag(&mut b.settings.transparent), "Bind even to foreign addresses.").example("transparent"),
    word(
        "uid",
        1,
        |b, w, _| {
            b.settings.unix.uid = Some(clamp(units::lenient(w.text())));
            Ok(())
        },
        "User number of a Unix socket.",
    ).example("uid 65534"),
    word(
        "user",
        1,
        |b, w, _| {
            b.settings.unix.uid =
                Some(resolve::user(w.text()).ok_or_else(|| format!("unknown user name '{w}'"))?);
            Ok(())
        },
        "User name of a Unix socket.",
    ).example("user root"),
    word(
        "v4v6",
        0,
        |b, _, _| {
            b.settings.v6only = Some(false);
            Ok(())
        },
        "Accept IPv4 on an IPv6 socket.",
    ).example("v4v6").default("the system's"),
    word(
        "v6only",
        0,
        |b, _, _| {
            b.settings.v6only = Some(true);
            Ok(())
        },
        "IPv6 only.",
    ).example("v6only").default("the system's"),
];

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

/// A number that is not negative; 0, which HAProxy takes whatever its message says, and what is no number set
/// no limit.
fn counted(word: &Word, must: &str) -> Result<u32, String> {
    match units::lenient(word.text()) {
        n if n >= 0 => Ok(clamp(n)),
        n => Err(format!("invalid value {n}, must be {must}")),
    }
}

fn delay(
    s: &mut Statement<'_>,
    word: &Word,
    wrong: impl Fn(units::TimeFault) -> String,
) -> Result<Duration, String> {
    let (ms, trailing) = units::tolerant(word.text()).map_err(wrong)?;
    if let Some(found) = trailing {
        s.trailing(word, found);
    }
    Ok(Duration::from_millis(ms))
}

fn id(bind: &mut BindDraft, word: &Word, _: &mut Statement<'_>) -> Result<(), String> {
    if bind.addresses.len() > 1 {
        return Err("'id' can only be used with a single socket".into());
    }
    // Numbers of more than 32 bits wrap around, as in HAProxy.
    match number(word)? as i32 {
        n if n > 0 => bind.id = Some(n.unsigned_abs()),
        _ => return Err("custom id has to be > 0".into()),
    }
    Ok(())
}

fn namespace(bind: &mut BindDraft, word: &Word) -> Result<(), String> {
    bind.settings.namespace = Some(crate::namespaces::open(word)?);
    Ok(())
}

/// `thread [group/]set[,set]`: `all`, `odd`, `even`, a number or a range.
fn thread(bind: &mut BindDraft, word: &Word, _: &mut Statement<'_>) -> Result<(), String> {
    for part in word.text().split(',') {
        let (group, set, most) = group_of(part)?;
        match (group, bind.groups.is_empty(), bind.threads.is_empty()) {
            (Some(_), true, false) => {
                return Err(format!(
                    "group-relative thread specification '{part}' is not permitted after a absolute thread range."
                ));
            }
            (None, false, _) => {
                return Err(format!(
                    "absolute thread specification '{part}' is not permitted after a group-relative thread range."
                ));
            }
            _ => bind.groups.extend(group),
        }
        let odd = |which: &str, text: &str, more: &str| {
            format!("invalid {which} thread number '{text}', permitted range is 1..{most}{more}.")
        };
        match set {
            "" | "all" | "odd" | "even" => {
                let (first, step) =
                    (u32::from(set == "even") + 1, if matches!(set, "odd" | "even") { 2 } else { 1 });
                let each = |n| ThreadRange { group, from: n, to: n };
                bind.threads.extend((first..=most).step_by(step).map(each));
            }
            _ => {
                let bound = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=most).contains(n));
                let (first, last) = set.split_once('-').unwrap_or((set, set));
                let from = if first.is_empty() { Some(1) } else { bound(first) };
                let from = from.ok_or_else(|| odd("first", set, ", or 'all', 'odd', 'even'"))?;
                let to = if last.is_empty() { Some(most) } else { bound(last) };
                let to = to.ok_or_else(|| odd("last", last, ""))?;
                bind.threads.push(ThreadRange { group, from: from.min(to), to: from.max(to) });
            }
        }
    }
    Ok(())
}

/// The group in front of a set of threads, the set, and the most that may stand in it.
fn group_of(part: &str) -> Result<(Option<u32>, &str, u32), String> {
    let Some((group, set)) = part.split_once('/').filter(|(g, _)| g.bytes().all(|b| b.is_ascii_digit()))
    else {
        return Ok((None, part, 1024));
    };
    if group.is_empty() {
        return Err(format!("thread group number expected before '{part}'"));
    }
    match group.parse::<u32>() {
        Ok(n @ 1..=32) => Ok((Some(n), set, 64)),
        _ => Err(format!("invalid thread group number '{group}', permitted range is 1..32 in '{part}'.")),
    }
}

const SAVE_SYN: &str = "TCP Save SYN option expects an integer argument from 0 to 2";
