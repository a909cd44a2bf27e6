//! `bind` lines, and `stats socket` lines, which take the same words (manual, section 5.1).

use std::net::SocketAddr;
use std::sync::Arc;

use base::threads::{ThreadGroups, ThreadSet};
use model::Sharded;
use model::proxy::Listener;
use program::address::Listen;
use program::listener::Bind;
use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Environment, Word};

use crate::draft::{BindDraft, ThreadRange, TlsDraft};
use crate::keyword;
use crate::resolve;
use crate::statement::{Statement, Step};

mod keywords;
mod tls;

use keywords::BindKeyword;

/// All words in the order of the dump: those of TLS come last.
pub(crate) fn all() -> impl Iterator<Item = &'static BindKeyword> {
    keywords::KEYWORDS.iter().chain(tls::KEYWORDS)
}

/// The most addresses that one word may stand for.
const MOST: usize = 65_536;

/// The addresses of a line: all, and those of them that ask for MPTCP.
pub(crate) type Addresses = (Vec<Listen>, Vec<Listen>);

/// Addresses of one word: a list between commas, each perhaps with a range of ports.
pub(crate) fn addresses(text: &str, environment: &Environment) -> Result<Addresses, String> {
    addresses_of(text, Accept::BIND, environment)
}

/// The same of a line that accepts others.
pub(crate) fn addresses_of(
    text: &str,
    accept: Accept,
    environment: &Environment,
) -> Result<Addresses, String> {
    let (mut out, mut mptcp) = (Vec::new(), Vec::new());
    for address in addr::parse_list(text, accept, environment)? {
        if address.transport == Transport::Quic {
            return Err(format!("QUIC is not supported yet by Harrier (planned) in '{text}'"));
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
                let all = (from..=to).map(|port| Listen::Tcp(SocketAddr::new(ip, port)));
                if address.mptcp {
                    mptcp.extend(all.clone());
                }
                out.extend(all);
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
    Ok((out, mptcp))
}

/// A listener without a place in the world, for settings on the way.
pub(crate) fn listener(name: &str, id: u32, guid: Option<String>, workers: usize) -> Listener {
    Listener {
        name: name.into(),
        id,
        guid: guid.map(Into::into),
        current: Default::default(),
        current_max: Default::default(),
        socket: (-1).into(),
        waits: Default::default(),
        counters: Sharded::new(workers),
    }
}

/// The line behind its addresses: `bind <addresses> [words]`.
pub(crate) fn line(s: &mut Statement<'_>, missing: &str) -> Step<BindDraft> {
    line_from(s, missing, None)
}

/// A line without addresses, with nothing said yet.
pub(crate) fn nowhere(s: &Statement<'_>) -> BindDraft {
    let span = s.line.span();
    let mut settings = Bind::new(Listen::Fd(-1), Arc::new(listener("", 0, None, 1)));
    settings.place = (s.around.sources.name(span.file).into(), span.line);
    BindDraft {
        text: "".into(),
        addresses: Vec::new(),
        mptcp: Vec::new(),
        settings,
        tls: TlsDraft::default(),
        id: None,
        name: None,
        guid_prefix: None,
        span,
        threads: Vec::new(),
        groups: Vec::new(),
        shards: None,
        shares: Vec::new(),
        proto: None,
    }
}

/// The same, with what was said before for all lines.
pub(crate) fn line_from(s: &mut Statement<'_>, missing: &str, base: Option<&BindDraft>) -> Step<BindDraft> {
    let word = s.word(missing)?;
    let span = word.span();
    let name = match s.section {
        // HAProxy says the place twice.
        "global" => format!("parsing [{}:{}] : 'stats socket'", s.around.sources.name(span.file), span.line),
        _ => format!("'{}'", s.keyword()),
    };
    let (addresses, mptcp) =
        addresses(word.text(), s.around.environment).map_err(|why| s.fail(format!("{name} : {why}")))?;
    let base = base.cloned().unwrap_or_else(|| nowhere(s));
    let mut bind = BindDraft { text: word.text().into(), addresses, mptcp, span: word.span(), ..base };
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
        let Some(entry) = all().find(|k| name == k.name) else {
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
                None if entry.name == "process" => {
                    return Err(wrong(&label, entry, word, word, &keywords::no_process("")));
                }
                None => return Err(s.fail(format!("{label} : {}", entry.missing()))),
            },
        };
        match entry.set {
            Some(set) => {
                set(bind, value, s).map_err(|why| wrong(&label, entry, word, value, &why))?;
                if entry.idle {
                    let text = keyword::idle(entry.name, entry.doc);
                    s.notes.notice(word.span(), format!("{label} : {text}"));
                }
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
    let whole = matches!(entry.name, "ssl-min-ver" | "ssl-max-ver" | "idle-ping" | "thread" | "process")
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
    let near = syntax::nearest(word.text(), all().map(|k| k.name));
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

/// The workers of `thread` sets. Numbers of no group beyond the threads that run wrap around.
pub(crate) fn threads(sets: &[ThreadRange], workers: u32, groups: &ThreadGroups) -> ThreadSet {
    let mut set = ThreadSet::ALL;
    for range in sets {
        match range.group {
            None => (range.from..=range.to).for_each(|n| set.insert((n - 1) % workers.max(1))),
            Some(group) => {
                let members = groups.threads(group);
                let chosen = members.skip(range.from as usize - 1).take((range.to + 1 - range.from) as usize);
                chosen.for_each(|thread| set.insert(thread));
            }
        }
    }
    if (0..workers as usize).all(|thread| set.has(thread)) { ThreadSet::ALL } else { set }
}
