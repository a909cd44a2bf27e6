//! `bind` lines, and `stats socket` lines, which take the same words (manual, section 5.1).

use std::net::SocketAddr;
use std::sync::Arc;

use model::Sharded;
use model::proxy::Listener;
use program::address::Listen;
use program::listener::Bind;
use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Environment, Span, Word};

use crate::mux::Mux;
use crate::resolve;
use crate::statement::{Statement, Step};
use crate::tls::TlsDraft;

pub(crate) mod keywords;
mod tls;

use keywords::BindKeyword;

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
    pub guid_prefix: Option<Box<str>>,
    pub span: Span,
    /// `thread` as written is checked once the number of threads is known.
    pub threads: Vec<(u32, u32)>,
    /// The groups of threads that `thread` names.
    pub groups: Vec<u32>,
    /// `shards` was given.
    pub shards: bool,
    /// `proto`, checked against the proxy's mode later.
    pub proto: Option<Mux>,
}

impl BindDraft {
    /// The unique name of its listener at this position.
    pub fn guid(&self, position: usize) -> Option<String> {
        self.guid_prefix.as_ref().map(|prefix| format!("{prefix}-{position}"))
    }
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
                let ip = resolve::ip(&address.host).ok_or_else(|| match &address.host {
                    Host::Name(name, _) => addr::unresolved(name, text),
                    _ => format!("invalid address in '{text}'"),
                })?;
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
pub(crate) fn listener(name: &str, id: u32, guid: Option<String>, workers: usize) -> Listener {
    Listener {
        name: name.into(),
        id,
        guid: guid.map(Into::into),
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
    let settings = Bind::new(Listen::Fd(-1), Arc::new(listener("", 0, None, 1)));
    let mut bind = BindDraft {
        text: word.text().into(),
        addresses,
        settings,
        tls: TlsDraft::default(),
        id: None,
        name: None,
        guid_prefix: None,
        span: word.span(),
        threads: Vec::new(),
        groups: Vec::new(),
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
        // What begins with a parenthesis is no part of the name, and nobody looks at it.
        let (name, _) = word.text().split_once('(').unwrap_or((word.text(), ""));
        let Some(entry) = keywords::all().find(|k| name == k.name) else {
            return Err(unknown(s, word, &label));
        };
        let version = |start: &&str| name.starts_with(*start);
        if word.text() != name && ["no-sslv3", "no-tlsv", "force-", "ssl-m"].iter().any(version) {
            return Err(s.fail_at(word.span(), format!("{label} : '{word}' : option not implemented")));
        }
        let value = match entry.args {
            0 => word,
            _ => match s.next() {
                Some(value) => value,
                None if entry.name == "ktls" => {
                    return Err(s.fail(format!("{label} : {}.", crate::tls::words::KTLS_VALUE)));
                }
                // A place for the threads that is not named means all of them, as in HAProxy.
                None if entry.name == "thread" => continue,
                None => return Err(s.fail(format!("{label} : {}", entry.missing()))),
            },
        };
        match entry.set {
            Some(set) => set(bind, value, s).map_err(|why| wrong(&label, entry, word, value, &why))?,
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
fn wrong(label: &str, entry: &BindKeyword, word: &Word, value: &Word, why: &str) -> Diagnostic {
    if why.starts_with("Cannot open namespace") {
        return Diagnostic::alert(value.span(), format!("{why}.")).styled(syntax::Style::Plain);
    }
    let name = format!("'{word}'");
    // Versions quote the value instead of the word.
    let whole = matches!(entry.name, "ssl-min-ver" | "ssl-max-ver" | "idle-ping" | "thread")
        || why.starts_with(&name)
        || why.starts_with("timer overflow");
    let why = if whole { why.to_owned() } else { format!("{name} : {why}") };
    let text = match label {
        "'stats socket'" => format!("{label} : '{why}'"),
        _ => format!("{label} : {why}"),
    };
    Diagnostic::alert(value.span(), text)
}

fn unknown(s: &Statement<'_>, word: &Word, label: &str) -> Diagnostic {
    let near = syntax::nearest(word.text(), keywords::all().map(|k| k.name));
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
