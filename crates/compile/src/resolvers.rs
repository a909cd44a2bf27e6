//! `resolvers` sections (manual, section 5.3.2).
//!
//! One of them always exists: where the configuration has no section `default` one is made of the system's
//! name servers, without a word if it has none.

use base::outside;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use program::names::{Hold, NameServer, Resolvers};
use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Diagnostics, Section, Sources, Span, Style, Word};

use crate::draft::ServerDraft;
use crate::notes::remark;
use crate::server;
use crate::statement::{Statement, Step, bracket, tight};
use crate::units;

/// The system's list of name servers.
const SYSTEM: &str = "/etc/resolv.conf";

/// The name of the section that always exists.
const BUILT_IN: &str = "default";

/// A section while it is read.
pub(crate) struct ResolversDraft {
    resolvers: Resolvers,
    span: Span,
    /// Where its name servers stand.
    places: Vec<String>,
    /// What lines of TCP say beside the address.
    pub lines: Vec<Option<Box<ServerDraft>>>,
    place: String,
}

fn empty(name: &str) -> Resolvers {
    let second = Duration::from_secs(1);
    let hold = Hold::default();
    Resolvers {
        name: name.into(),
        servers: Vec::new(),
        payload: 512,
        tries: 3,
        resolve: second,
        retry: second,
        hold,
    }
}

/// What the first line of a section says.
pub(crate) fn header(
    section: &Section,
    known: &[ResolversDraft],
    sources: &Sources,
    notes: &mut Diagnostics,
) -> Option<ResolversDraft> {
    let (name, span) = (section.name(), section.header.span());
    if name.is_empty() {
        notes.alert(span, "missing name for resolvers section.");
        return None;
    }
    if let Some(other) = known.iter().find(|r| *r.resolvers.name == *name) {
        let text =
            format!("resolvers '{name}' has same name as another resolvers (declared at {}).", other.place);
        notes.push(Diagnostic::alert(span, text).styled(Style::Titled));
        return None;
    }
    let place = format!("{}:{}", sources.name(span.file), span.line);
    Some(ResolversDraft { resolvers: empty(name), span, places: Vec::new(), lines: Vec::new(), place })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    let step = match s.keyword() {
        "nameserver" => nameserver(s, draft),
        "parse-resolv-conf" => system(s, draft),
        "accepted_payload_size" => payload(s, draft),
        "hold" => hold(s, draft),
        "resolve_retries" => {
            let word = s.word("'resolve_retries' expects <nb> as argument.")?;
            draft.resolvers.tries = u32::try_from(s.lenient(word)).unwrap_or(0).max(1);
            Ok(())
        }
        "timeout" => timeout(s, draft),
        other => Err(s.fail(format!("unknown keyword '{other}' in 'resolvers' section"))),
    };
    // HAProxy looks at no more words than it needs.
    s.args.eat_rest();
    step
}

/// `nameserver <name> <address>[:port] [words]`.
fn nameserver(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    const EXPECTS: &str = "'nameserver' expects <name> and <addr>[:<port>] as arguments.";
    let name = s.word(EXPECTS)?;
    let word = s.word(EXPECTS)?;
    if let Some(odd) = syntax::invalid_character(name.text()) {
        return Err(
            s.fail_at(name.span(), format!("character '{odd}' is not permitted in server name '{name}'."))
        );
    }
    let span = s.line.keyword().span();
    let place = format!("{}:{}", s.around.sources.name(span.file), span.line);
    let same = draft.resolvers.servers.iter().position(|n| *n.name == *name.text());
    if let Some(declared) = same.and_then(|at| draft.places.get(at)) {
        let text =
            format!("nameserver '{name}' has same name as another nameserver (declared at {declared}).");
        return Err(s.fail_at(span, text).styled(Style::Titled));
    }
    let refuse = |why: String| Diagnostic::alert(word.span(), format!("'nameserver {name}' : {why}"));
    let accept = Accept { port_required: true, fd: false, ..Accept::LOG };
    let address = addr::parse(word.text(), accept, s.around.environment).map_err(refuse)?;
    let port = match address.ports {
        Ports::One(port) => port,
        _ => 0,
    };
    let ip = match &address.host {
        Host::Ip(ip) => *ip,
        Host::Name(host, _) => {
            crate::resolve::ip(&address.host).ok_or_else(|| refuse(addr::unresolved(host, word.text())))?
        }
        _ => return Err(refuse(format!("'{word}' is not supported yet by Harrier (planned)"))),
    };
    if address.transport == Transport::Quic {
        return Err(refuse("QUIC is not supported yet by Harrier (planned)".into()));
    }
    let stream = address.transport == Transport::Stream;
    let mut line = if stream { Some(words(s, name)?) } else { None };
    let maxconn = line.as_ref().map_or(0, |line| line.maxconn);
    let addr = SocketAddr::new(ip, port);
    if let Some(line) = &mut line {
        line.plain.mptcp = address.mptcp;
    }
    draft.resolvers.servers.push(NameServer { stream, maxconn, ..named(name.text(), addr) });
    draft.lines.push(line.map(Box::new));
    draft.places.push(place);
    Ok(())
}

/// The words of a server of TCP, which are those of `server` lines. Behind one of UDP nobody looks.
fn words(s: &mut Statement<'_>, name: &Word) -> Step<ServerDraft> {
    let line = server::nameserver(s, name.text())?;
    let given = [(line.send_proxy.version().is_some(), "send-proxy"), (line.proto.is_some(), "proto")];
    if let Some((_, what)) = given.iter().find(|(given, _)| *given) {
        let text = format!(
            "'server (null)/{name}' : '{what}' is not supported yet by Harrier for name servers (planned)."
        );
        return Err(bracket(s.fail_at(name.span(), text)));
    }
    Ok(line)
}

fn payload(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    let word = s.word("'accepted_payload_size' expects <nb> as argument.")?;
    match u16::try_from(units::lenient(word.text())).ok().filter(|n| *n >= 12) {
        Some(size) => draft.resolvers.payload = size,
        None => {
            let text =
                format!("'accepted_payload_size' must be between 12 and 65535 inclusive (was {word}).");
            return Err(s.fail(text));
        }
    }
    Ok(())
}

/// `hold <status> <period>`.
fn hold(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    let (Some(which), Some(word)) = (s.next(), s.next()) else {
        let first = s.fail("'hold' expects an <event> and a <time> as arguments.");
        s.notes.push(first);
        let text = "<event> can be either 'valid', 'nx', 'refused', 'timeout', or 'other'";
        return Err(s.fail(text).styled(Style::Plain));
    };
    let time = time(s, word, "hold", which.text())?;
    let hold = &mut draft.resolvers.hold;
    *match which.text() {
        "nx" => &mut hold.nx,
        "other" => &mut hold.other,
        "refused" => &mut hold.refused,
        "timeout" => &mut hold.timeout,
        "valid" => &mut hold.valid,
        "obsolete" => &mut hold.obsolete,
        _ => {
            return Err(s.fail(format!(
                "'hold' unknown <event>: '{which}', expects either 'nx', 'timeout', 'valid', 'obsolete' or 'other'."
            )));
        }
    } = time;
    Ok(())
}

/// `timeout <event> <time>`.
fn timeout(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    let which = s.word("'timeout' expects 'retry' or 'resolve' and <time> as arguments.")?;
    let name = which.text();
    if !matches!(name, "retry" | "resolve") {
        return Err(
            s.fail(format!("'timeout' expects 'retry' or 'resolve' and <time> as arguments got '{name}'."))
        );
    }
    let word = s.word(format!("'timeout {name}' expects <time> as argument."))?;
    let time = time(s, word, &format!("timeout {name}"), word.text())?;
    match name {
        "retry" => draft.resolvers.retry = time,
        _ => draft.resolvers.resolve = time,
    }
    Ok(())
}

/// A time; `of` names the setting in messages, `shown` the argument of one that is too long.
fn time(s: &Statement<'_>, word: &Word, of: &str, shown: &str) -> Step<Duration> {
    let ms = units::millis(word.text()).map_err(|fault| {
        tight(s.fail_at(
            word.span(),
            match fault {
                units::TimeFault::Unexpected(c) => format!("unexpected character '{c}' in argument to <{of}>."),
                units::TimeFault::Overflow => format!(
                    "timer overflow in argument <{shown}> to <{of}>, maximum value is 2147483647 ms (~24.8 days)."
                ),
            },
        ))
    })?;
    Ok(Duration::from_millis(ms))
}

/// `parse-resolv-conf`.
fn system(s: &mut Statement<'_>, draft: &mut ResolversDraft) -> Step {
    let text = match outside::read(SYSTEM) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) => {
            let why = crate::notes::os_text(&e);
            return Err(tight(s.fail(format!("failed to open {SYSTEM}: {why}."))));
        }
    };
    for (number, ip) in listed(&text) {
        let place = format!("{SYSTEM}:{number}");
        let Some(addr) = address(ip) else {
            let text = format!("Parsing [{place}] : nameserver '{ip}' is no address and will be excluded.");
            s.notes.push(tight(Diagnostic::warning(s.line.span(), text)));
            continue;
        };
        let same = draft.resolvers.servers.iter().position(|n| *n.name == *ip);
        if let Some(declared) = same.and_then(|at| draft.places.get(at)) {
            let text = format!(
                "Parsing [{place}] : generated name for {SYSTEM} nameserver '{ip}' conflicts with another nameserver (declared at {declared}), it appears to be a duplicate and will be excluded."
            );
            s.notes.push(tight(Diagnostic::warning(s.line.span(), text)));
            continue;
        }
        draft.resolvers.servers.push(named(ip, addr));
        draft.places.push(place);
    }
    if listed(&text).next().is_none() {
        let text = format!("no name servers found in {SYSTEM}.");
        s.notes.push(tight(Diagnostic::warning(s.line.span(), text)));
    }
    Ok(())
}

fn named(name: &str, addr: SocketAddr) -> NameServer {
    let (state, way) = (Default::default(), Default::default());
    NameServer { name: name.into(), addr, stream: false, maxconn: 0, way, state }
}

/// The addresses of a `resolv.conf`, each with the number of its line.
fn listed(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then_some(())?;
        words.next().map(|ip| (number, ip))
    })
}

/// The address of a name server. One that is local to a link has its interface behind it: `fe80::1%eth0`.
fn address(text: &str) -> Option<SocketAddr> {
    const PORT: u16 = 53;
    let Some((ip, interface)) = text.split_once('%') else {
        return text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT));
    };
    let known = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let number = interface.parse().ok().or_else(|| {
        let path = format!("/sys/class/net/{interface}/ifindex");
        let text = known(interface).then(|| outside::read_to_string(path).ok())??;
        text.trim().parse().ok()
    })?;
    Some(SocketAddr::V6(SocketAddrV6::new(ip.parse().ok()?, PORT, 0, number)))
}

/// The sections in order, and the one that is made where the configuration has none of its name.
pub(crate) fn finish(drafts: Vec<ResolversDraft>, notes: &mut Diagnostics) -> Vec<Resolvers> {
    for draft in drafts.iter().filter(|d| d.resolvers.servers.is_empty()) {
        let name = &draft.resolvers.name;
        let text = format!("resolvers '{name}' [{}] has no nameservers configured!", draft.place);
        notes.push(remark(draft.span, text));
    }
    let mut all: Vec<Resolvers> = drafts.into_iter().map(|d| d.resolvers).collect();
    if !all.iter().any(|r| *r.name == *BUILT_IN) {
        let text = outside::read_to_string(SYSTEM).unwrap_or_default();
        let mut own = empty(BUILT_IN);
        for (_, ip) in listed(&text) {
            let known = own.servers.iter().any(|n| *n.name == *ip);
            own.servers.extend(address(ip).filter(|_| !known).map(|addr| named(ip, addr)));
        }
        if !own.servers.is_empty() {
            all.push(own);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_list_is_read() {
        let text = "# x\nsearch a\nnameserver 127.0.0.53 # local\n  nameserver fe80::1%lo\nnameserver\n";
        let found: Vec<_> = listed(text).collect();
        assert_eq!(found, [(3, "127.0.0.53"), (4, "fe80::1%lo")]);
        assert_eq!(address("127.0.0.53"), "127.0.0.53:53".parse().ok());
        let Some(SocketAddr::V6(local)) = address("fe80::1%7") else { panic!("no address") };
        assert_eq!((local.scope_id(), local.port()), (7, 53));
        assert!(address("fe80::1%../x").is_none() && address("here").is_none());
    }
}
