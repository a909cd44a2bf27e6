//! `bind` lines, and `stats socket` lines, which take the same words (manual, section 5.1).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Sharded;
use model::proxy::Listener;
use program::address::Listen;
use program::listener::{Bind, Level, Severity};
use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Environment, Span, Word};
use tls::suites::Version;

use crate::statement::{Statement, Step, clamp};
use crate::tls::{CertDraft, Source, TlsDraft, words as tls_words};
use crate::{resolve, units};

/// A `bind` line: its settings and all addresses it names.
#[derive(Clone)]
pub(crate) struct BindDraft {
    /// As written, for messages.
    pub text: Box<str>,
    pub addresses: Vec<Listen>,
    pub settings: Bind,
    /// TLS on it.
    pub tls: TlsDraft,
    pub id: Option<u32>,
    pub name: Option<Box<str>>,
    pub span: Span,
    /// `thread` as written is checked once the number of threads is known.
    pub threads: Vec<(u32, u32)>,
    /// `shards` was given.
    pub shards: bool,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Box<str>>,
}

/// Sets one word of a `bind` line; the error is what is wrong with its value.
type Set = fn(&mut BindDraft, &Word, &mut Statement<'_>) -> Result<(), String>;

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

const fn secure(name: &'static str, args: u8, set: Set, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: Some(set), tls: true, doc }
}

const fn tls(name: &'static str, args: u8) -> BindKeyword {
    BindKeyword { name, args, set: None, tls: true, doc: "Part of TLS." }
}

/// The words of `bind` in the order of the dump.
pub(crate) const KEYWORDS: &[BindKeyword] = &[
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
    word("guid-prefix", 1, |_, _, _| Ok(()), "Prefix of unique names of listeners."),
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
    secure(
        "allow-0rtt",
        0,
        |b, _, _| {
            b.tls.words.early_data = true;
            Ok(())
        },
        "Accept early data of TLS 1.3.",
    ),
    secure("alpn", 1, |b, w, _| tls_words::alpn(&mut b.tls.words, w.text()), "Protocols offered by ALPN."),
    secure("ca-file", 1, |b, w, _| text(&mut b.tls.words.ca_file, w), "Authorities of client certificates."),
    secure(
        "ca-ignore-err",
        1,
        |b, w, _| {
            b.tls.words.ca_ignore = Some(tls_words::ignored(w.text())?);
            Ok(())
        },
        "Errors above the client certificate that are no reason to refuse it.",
    ),
    tls("ca-sign-file", 1),
    tls("ca-sign-pass", 1),
    secure(
        "ca-verify-file",
        1,
        |b, w, _| text(&mut b.tls.words.ca_verify_file, w),
        "Authorities that clients are not told of.",
    ),
    secure("ciphers", 1, |b, w, _| text(&mut b.tls.words.policy.ciphers, w), "Ciphers of TLS 1.2."),
    secure(
        "ciphersuites",
        1,
        |b, w, _| text(&mut b.tls.words.policy.ciphersuites, w),
        "Cipher suites of TLS 1.3.",
    ),
    tls("client-sigalgs", 1),
    secure("crl-file", 1, |b, w, _| text(&mut b.tls.words.crl_file, w), "Revoked client certificates."),
    secure("crt", 1, |b, w, _| cert(b, w, Source::File), "Certificate and key: a file or a folder."),
    secure(
        "crt-ignore-err",
        1,
        |b, w, _| {
            b.tls.words.crt_ignore = Some(tls_words::ignored(w.text())?);
            Ok(())
        },
        "Errors of the client certificate that are no reason to refuse it.",
    ),
    secure(
        "crt-list",
        1,
        |b, w, _| cert(b, w, Source::List),
        "A list of certificates with their names and settings.",
    ),
    secure("curves", 1, |b, w, _| text(&mut b.tls.words.policy.curves, w), "Curves of the key exchange."),
    secure(
        "default-crt",
        1,
        |b, w, _| cert(b, w, Source::Default),
        "Certificate for whoever matches no other.",
    ),
    secure(
        "ecdhe",
        1,
        |b, w, _| {
            b.tls.words.policy.curves.get_or_insert_with(|| w.text().into());
            Ok(())
        },
        "Curve of the key exchange.",
    ),
    secure(
        "force-sslv3",
        0,
        |b, _, _| {
            tls_words::force(&mut b.tls.words, Version::Ssl3);
            Ok(())
        },
        "This version only.",
    ),
    secure(
        "force-tlsv10",
        0,
        |b, _, _| {
            tls_words::force(&mut b.tls.words, Version::Tls10);
            Ok(())
        },
        "This version only.",
    ),
    secure(
        "force-tlsv11",
        0,
        |b, _, _| {
            tls_words::force(&mut b.tls.words, Version::Tls11);
            Ok(())
        },
        "This version only.",
    ),
    secure(
        "force-tlsv12",
        0,
        |b, _, _| {
            tls_words::force(&mut b.tls.words, Version::Tls12);
            Ok(())
        },
        "This version only.",
    ),
    secure(
        "force-tlsv13",
        0,
        |b, _, _| {
            tls_words::force(&mut b.tls.words, Version::Tls13);
            Ok(())
        },
        "This version only.",
    ),
    tls("generate-certificates", 0),
    tls("ktls", 1),
    secure(
        "no-alpn",
        0,
        |b, _, _| {
            b.tls.words.alpn = Some(Vec::new());
            Ok(())
        },
        "ALPN is not offered.",
    ),
    secure(
        "no-ca-names",
        0,
        |b, _, _| {
            b.tls.words.no_ca_names = true;
            Ok(())
        },
        "Clients are not told whose certificates are accepted.",
    ),
    secure(
        "no-sslv3",
        0,
        |b, _, _| {
            tls_words::without(&mut b.tls.words, Version::Ssl3);
            Ok(())
        },
        "Without this version.",
    ),
    secure(
        "no-strict-sni",
        0,
        |b, _, _| {
            b.tls.words.strict_sni = Some(false);
            Ok(())
        },
        "Clients that match no certificate get the default.",
    ),
    secure(
        "no-tls-tickets",
        0,
        |b, _, _| {
            b.tls.words.no_tickets = Some(true);
            Ok(())
        },
        "No session tickets.",
    ),
    secure(
        "no-tlsv10",
        0,
        |b, _, _| {
            tls_words::without(&mut b.tls.words, Version::Tls10);
            Ok(())
        },
        "Without this version.",
    ),
    secure(
        "no-tlsv11",
        0,
        |b, _, _| {
            tls_words::without(&mut b.tls.words, Version::Tls11);
            Ok(())
        },
        "Without this version.",
    ),
    secure(
        "no-tlsv12",
        0,
        |b, _, _| {
            tls_words::without(&mut b.tls.words, Version::Tls12);
            Ok(())
        },
        "Without this version.",
    ),
    secure(
        "no-tlsv13",
        0,
        |b, _, _| {
            tls_words::without(&mut b.tls.words, Version::Tls13);
            Ok(())
        },
        "Without this version.",
    ),
    tls("npn", 1),
    secure(
        "prefer-client-ciphers",
        0,
        |b, _, _| {
            b.tls.words.client_order = true;
            Ok(())
        },
        "The client's order of ciphers counts.",
    ),
    tls("sigalgs", 1),
    secure(
        "ssl-max-ver",
        1,
        |b, w, _| tls_words::version(&mut b.tls.words.policy.max, w.text()),
        "Highest version.",
    ),
    secure(
        "ssl-min-ver",
        1,
        |b, w, _| tls_words::version(&mut b.tls.words.policy.min, w.text()),
        "Lowest version.",
    ),
    secure(
        "strict-sni",
        0,
        |b, _, _| {
            b.tls.words.strict_sni = Some(true);
            Ok(())
        },
        "Only clients that match a certificate.",
    ),
    tls("tls-ticket-keys", 1),
    secure(
        "tls-tickets",
        0,
        |b, _, _| {
            b.tls.words.no_tickets = Some(false);
            Ok(())
        },
        "Session tickets.",
    ),
    secure(
        "verify",
        1,
        |b, w, _| tls_words::verify(&mut b.tls.words, w.text()),
        "Whether clients show certificates.",
    ),
];

fn cert(bind: &mut BindDraft, word: &Word, source: Source) -> Result<(), String> {
    bind.tls.certs.push(CertDraft { source, path: word.text().into(), span: word.span() });
    Ok(())
}

fn flag(field: &mut bool) -> Result<(), String> {
    *field = true;
    Ok(())
}

fn text(field: &mut Option<Box<str>>, word: &Word) -> Result<(), String> {
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

/// The most addresses that one word may stand for.
const MOST: usize = 65_536;

/// Addresses of one word: a list between commas, each perhaps with a range of ports.
pub(crate) fn addresses(text: &str, environment: &Environment) -> Result<Vec<Listen>, String> {
    let mut out = Vec::new();
    for address in addr::parse_list(text, Accept::BIND, environment)? {
        if address.transport == Transport::Quic || address.mptcp {
            return Err(format!("QUIC and MPTCP are not supported yet by Harrier (planned) in '{text}'"));
        }
        match address.host {
            Host::Ip(_) | Host::Name(..) => {
                let ip = resolve::ip(&address.host).ok_or_else(|| format!("invalid address in '{text}'"))?;
                let (from, to) = match address.ports {
                    Ports::One(port) => (port, port),
                    Ports::Range(from, to) => (from, to),
                    Ports::Missing | Ports::Offset(_) => {
                        return Err(format!("missing port specification in '{text}'"));
                    }
                };
                out.extend((from..=to).map(|port| Listen::Tcp(SocketAddr::new(ip, port))));
            }
            Host::Unix(path) => out.push(Listen::Unix(path.into_bytes().into())),
            Host::Abstract(name) => out.push(Listen::Abns(name.into_bytes().into())),
            Host::AbstractZero(name) => out.push(Listen::Abnsz(name.into_bytes().into())),
            Host::Fd(fd) => out.push(Listen::Fd(fd)),
            Host::SockPair(fd) => out.push(Listen::SockPair(fd)),
            Host::Reverse(_) => return Err("reverse HTTP is not supported yet by Harrier (planned)".into()),
        }
        if out.len() > MOST {
            return Err(format!("too many addresses in '{text}'"));
        }
    }
    Ok(out)
}

/// A listener without a place in the world, for settings on the way.
pub(crate) fn listener(name: &str, id: u32, workers: usize) -> Listener {
    Listener {
        name: name.into(),
        id,
        current: Default::default(),
        current_max: Default::default(),
        counters: Sharded::new(workers),
    }
}

/// The line behind its addresses: `bind <addresses> [words]`.
pub(crate) fn line(s: &mut Statement<'_>, missing: &str) -> Step<BindDraft> {
    let word = s.word(missing)?;
    let keyword = s.keyword();
    let addresses =
        addresses(word.text(), s.around.environment).map_err(|why| s.fail(format!("'{keyword}' : {why}")))?;
    let settings = Bind::new(Listen::Fd(-1), Arc::new(listener("", 0, 1)));
    let mut bind = BindDraft {
        text: word.text().into(),
        addresses,
        settings,
        tls: TlsDraft::default(),
        id: None,
        name: None,
        span: word.span(),
        threads: Vec::new(),
        shards: false,
        proto: None,
    };
    let source = s.around.sources.name(word.span().file);
    bind.settings.place = (source.into(), word.span().line);
    words(s, &mut bind)?;
    Ok(bind)
}

/// The words behind the addresses.
pub(crate) fn words(s: &mut Statement<'_>, bind: &mut BindDraft) -> Step {
    while let Some(word) = s.args.next() {
        let label = match s.section {
            "global" => "'stats socket'".to_owned(),
            section => format!("'{} {}' in section '{section}'", s.keyword(), bind.text),
        };
        let Some(entry) = KEYWORDS.iter().find(|k| word == k.name) else {
            return Err(unknown(s, word, &label));
        };
        let value = match entry.args {
            0 => word,
            _ => match s.next() {
                Some(value) => value,
                None => return Err(s.fail(format!("{label} : '{}' : missing value", entry.name))),
            },
        };
        match entry.set {
            Some(set) => set(bind, value, s).map_err(|why| wrong(&label, entry, value, &why))?,
            None if entry.tls => {
                let text = format!("{label} : '{}' has no effect in Harrier.", entry.name);
                s.notes.warning(word.span(), text);
            }
            None => {
                let text = format!("{label} : '{}' is not supported yet by Harrier (planned)", entry.name);
                return Err(Diagnostic::alert(word.span(), text));
            }
        }
    }
    Ok(())
}

/// What is wrong with a word's value; runtime sockets quote it.
fn wrong(label: &str, entry: &BindKeyword, value: &Word, why: &str) -> Diagnostic {
    let name = format!("'{}'", entry.name);
    // Versions quote the value instead of the word.
    let whole = matches!(entry.name, "ssl-min-ver" | "ssl-max-ver") || why.starts_with(&name);
    let why = if whole { why.to_owned() } else { format!("{name} : {why}") };
    let text = match label {
        "'stats socket'" => format!("{label} : '{why}'"),
        _ => format!("{label} : {why}"),
    };
    Diagnostic::alert(value.span(), text)
}

fn unknown(s: &Statement<'_>, word: &Word, label: &str) -> Diagnostic {
    let near = syntax::nearest(word.text(), KEYWORDS.iter().map(|k| k.name));
    let text = match (label, near) {
        ("'stats socket'", None) => format!("{label} : unknown keyword '{word}'."),
        ("'stats socket'", Some(near)) => {
            format!("{label} : unknown keyword '{word}'. Did you mean '{near}' maybe ?")
        }
        (_, None) => format!("{label}: unknown keyword '{word}'."),
        (_, Some(near)) => format!("{label}: unknown keyword '{word}'; did you mean '{near}' maybe ?"),
    };
    s.fail_at(word.span(), text)
}

/// The workers of `thread` sets as a bit mask, 0 for all. Numbers beyond the threads that run wrap around.
pub(crate) fn mask(sets: &[(u32, u32)], workers: u32) -> u64 {
    let mut mask = 0u64;
    for n in sets.iter().flat_map(|(from, to)| *from..=(*to).min(4096)) {
        mask |= 1 << ((n - 1) % workers.clamp(1, 64));
    }
    let all = u64::MAX >> (64 - workers.clamp(1, 64));
    if mask & all == all { 0 } else { mask }
}
