//! `server`, `default-server` and `server-template` lines (manual, section 5.2).
//!
//! A server starts as a copy of what `default-server` lines of its section (and of the `defaults` it inherits
//! from) have said so far. Errors on these lines have the form `config : [file:line] : 'server backend/name'
//! : text.`

pub(crate) mod keywords;
mod origin;
pub(crate) mod source;

use model::server::{Target, UnixKind};
use program::Mode;
use syntax::addr::{self, Accept, Host, Transport};
use syntax::{Diagnostic, Style};

use crate::draft::{Draft, InitState, ServerDraft, Where};
use crate::statement::{Statement, Step, bracket};
use crate::tls::words::offers_h3;

/// `server <name> <address> [words]`.
pub(crate) fn server(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    allowed(s, p)?;
    let expects = format!("'{}' expects <name> and <addr>[:<port>] as arguments.", s.keyword());
    let name = s.word(&*expects).map_err(bracket)?;
    if s.args.peek().is_none() {
        return Err(bracket(s.fail(expects)));
    }
    if let Some(odd) = name.text().chars().find(|c| !valid(*c)) {
        let text = format!("character '{odd}' is not permitted in server name '{name}'.");
        return Err(bracket(s.fail(text)));
    }
    let label = format!("'server {}/{name}'", p.name);
    let (place, sort) = place(s, p, &expects, &label)?;
    let mut server = origin::of(s, p, &label)?.unwrap_or_else(|| p.default_server.clone());
    (server.name, server.span, server.place) = (name.text().into(), name.span(), place);
    sort.of(&mut server);
    words(s, &mut server, p, &label, false)?;
    whole(s, &server, &label, name.text())?;
    no_h3_over_tcp(s, &server, p, &label)?;
    server.forced_id = server.id.is_some();
    let taken = if server.forced_id { p.servers.iter().find(|o| o.id == server.id) } else { None };
    if let Some(other) = taken {
        let at = format!("{}:{}", s.around.sources.name(other.span.file), other.span.line);
        let id = server.id.unwrap_or(0);
        let text = format!("{label} : 'id' : custom id {id} already used at {at} ('server {}').", other.name);
        return Err(bracket(s.fail_at(server.span, text)));
    }
    p.servers.push(server);
    Ok(())
}

/// What stands behind the name of a peer, which has an address or none.
pub(crate) fn peer(s: &mut Statement<'_>, p: &mut Draft, name: &str, addressed: bool) -> Step<ServerDraft> {
    let label = format!("'server {}/{name}'", p.name);
    let mut server = p.default_server.clone();
    (server.name, server.span) = (name.into(), s.line.span());
    if addressed {
        let (place, sort) = place(s, p, "", &label)?;
        server.place = place;
        sort.of(&mut server);
        if matches!(server.place, Where::Inet { .. }) && !server.place.has_port() {
            let text = format!("'{} {name}' : missing port specification.", s.keyword());
            return Err(s.fail(text));
        }
    }
    words(s, &mut server, p, &label, !addressed)?;
    Ok(server)
}

/// What stands behind the address of a name server. As in HAProxy it belongs to no proxy.
pub(crate) fn nameserver(s: &mut Statement<'_>, name: &str) -> Step<ServerDraft> {
    let mut p = nobody();
    let label = format!("'server {}/{name}'", p.name);
    let mut server = ServerDraft { name: name.into(), span: s.line.span(), ..p.default_server.clone() };
    words(s, &mut server, &mut p, &label, false)?;
    Ok(server)
}

/// The proxy of those that have none.
pub(crate) fn nobody() -> Draft {
    let mut p = Draft::new(crate::draft::Kind::Backend);
    (p.name, p.mode) = ("(null)".into(), program::Mode::Tcp);
    p
}

/// Refuses HTTP/3 where a server of TCP is asked for it, unless experiments are allowed.
fn no_h3_over_tcp(s: &Statement<'_>, server: &ServerDraft, p: &Draft, label: &str) -> Step {
    let asked = server.proto.is_none() && p.mode == Mode::Http && offers_h3(&server.tls.words);
    if !asked || s.around.experimental {
        return Ok(());
    }
    let text = format!(
        "{label} : HTTP/3 on TCP listed via ALPN requires the QMUX protocol which is experimental, must be allowed via a global 'expose-experimental-directives'."
    );
    Err(bracket(Diagnostic::alert(server.span, text)))
}

/// `default-server [words]`.
pub(crate) fn default_server(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if !p.kind.is_defaults() {
        allowed(s, p)?;
    }
    let name = origin::name(s, p)?;
    let known = match name {
        None => Some(&p.default_server),
        Some(name) => p.named_servers.iter().find(|d| name == &*d.name),
    };
    let known = known.cloned().unwrap_or_default();
    let mut server = origin::of(s, p, "")?.unwrap_or(known);
    words(s, &mut server, p, "", true)?;
    server.defaulted = true;
    let Some(name) = name else {
        p.default_server = server;
        return Ok(());
    };
    (server.name, server.span) = (name.text().into(), name.span());
    p.named_servers.retain(|d| name != &*d.name);
    p.named_servers.push(server);
    Ok(())
}

/// `server-template <prefix> <number or range> <address> [words]`.
pub(crate) fn template(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    allowed(s, p)?;
    let expects = "'server-template' expects <prefix> <nb | range> <addr>[:<port>] as arguments.";
    let prefix = s.word(expects).map_err(bracket)?;
    let count = s.word(expects).map_err(bracket)?;
    if s.args.peek().is_none() {
        return Err(bracket(s.fail(expects)));
    }
    let (from, to) = match count.text().split_once('-') {
        Some((from, to)) => (from.parse().ok(), to.parse().ok()),
        None => (Some(1u32), count.text().parse().ok()),
    };
    let (Some(from), Some(to)) = (from, to) else {
        return Err(bracket(
            s.fail_at(count.span(), format!("Wrong server-template number or range arg '{count}'.")),
        ));
    };
    if from > to || to - from >= 100_000 {
        return Err(bracket(
            s.fail_at(count.span(), format!("Wrong server-template number or range arg '{count}'.")),
        ));
    }
    let label = format!("'server-template {}/{prefix}'", p.name);
    let (place, sort) = place(s, p, expects, &label)?;
    let mut first = origin::of(s, p, &label)?.unwrap_or_else(|| p.default_server.clone());
    (first.place, first.span, first.template) = (place, prefix.span(), Some(prefix.text().into()));
    sort.of(&mut first);
    words(s, &mut first, p, &label, false)?;
    whole(s, &first, &label, prefix.text())?;
    no_h3_over_tcp(s, &first, p, &label)?;
    for number in from..=to {
        first.forced_id = first.id.is_some();
        // So is an id; the others have the one of their place.
        let id = first.id.filter(|_| number == from);
        let template = (number == from).then(|| prefix.text().into());
        let name = format!("{prefix}{number}").into();
        // A unique name is the first one's alone.
        let guid = first.guid.clone().filter(|_| number == from);
        // The others are copies, which counts as something said about their state.
        let defaulted = first.defaulted || number != from;
        let is_copy = number != from;
        p.servers.push(ServerDraft { name, id, template, is_copy, guid, defaulted, ..first.clone() });
    }
    Ok(())
}

/// What only all words of a server together show.
fn whole(s: &mut Statement<'_>, server: &ServerDraft, label: &str, name: &str) -> Step {
    if server.check && server.track.is_some() {
        let text = format!("{label} : unable to enable checks and tracking at the same time!");
        return Err(bracket(Diagnostic::alert(server.span, text)));
    }
    if server.track.is_some() && server.init_state != InitState::Unsaid {
        let text = format!("{label} : unable to set init-state and tracking at the same time!");
        return Err(bracket(Diagnostic::alert(server.span, text)));
    }
    if server.agent && server.agent_port.is_none_or(|port| port == 0) {
        let text =
            format!("{label} : server {name} does not have agent port. Agent check has been disabled.");
        s.notes.push(bracket(Diagnostic::alert(server.span, text)));
    }
    Ok(())
}

/// What is wrong with a word, with the server's name in front and a full stop behind, as HAProxy has it.
fn closed(d: Diagnostic, before: &str) -> Diagnostic {
    let stop = if d.text.ends_with('!') { "" } else { "." };
    Diagnostic { text: format!("{before}{}{stop}", d.text), ..d }
}

fn valid(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-')
}

fn allowed(s: &Statement<'_>, p: &Draft) -> Step {
    if p.kind.is_defaults() {
        let text = format!("'{}' not allowed in 'defaults' section.", s.keyword());
        return Err(bracket(s.fail(text)));
    }
    if !p.kind.is_back() {
        let span = s.line.keyword().span();
        let at = format!("{}:{}", s.around.sources.name(span.file), span.line);
        let label = p.label();
        let text = format!(
            "parsing [{at}] : '{}' not allowed because {label} has no backend capability.",
            s.keyword()
        );
        return Err(bracket(s.fail_at(span, text)));
    }
    Ok(())
}

/// What kind of socket an address asks for.
struct Sort {
    /// Datagrams are sent there, which only logs are.
    datagrams: bool,
    mptcp: bool,
}

impl Sort {
    fn of(self, server: &mut ServerDraft) {
        (server.datagrams, server.plain.mptcp) = (self.datagrams, self.mptcp);
    }
}

/// The address word, and the kind of socket that it asks for.
fn place(s: &mut Statement<'_>, p: &Draft, expects: &str, label: &str) -> Step<(Where, Sort)> {
    let word = s.word(expects).map_err(bracket)?;
    let refuse = |why: String| bracket(Diagnostic::alert(word.span(), format!("{label} : {why}")));
    let address = addr::parse(word.text(), Accept::SERVER, s.around.environment).map_err(refuse)?;
    let datagrams = address.transport == Transport::Datagram;
    if p.mode == Mode::Log && !matches!(address.host, Host::Ip(_) | Host::Name(..) | Host::Fd(_)) {
        return Err(placed(s, "log server address family not supported for log backend server."));
    }
    if datagrams && p.mode != Mode::Log {
        let mode = p.mode.word();
        return Err(placed(s, &format!("unsupported transport for server address in '{mode}' backend.")));
    }
    if address.transport == Transport::Quic {
        return Err(refuse("QUIC is not supported yet by Harrier (planned)".into()));
    }
    let sort = Sort { datagrams, mptcp: address.mptcp };
    let unix = |path: String, kind, sort| {
        Ok((Where::Unix(Target::Unix { path: path.into_bytes().into(), kind }), sort))
    };
    if let Host::Name(name, _) = &address.host
        && name.strip_suffix('.').unwrap_or(name).split('.').any(|label| label.is_empty() || label.len() > 63)
    {
        let server = label.trim_end_matches('\'').rsplit('/').next().unwrap_or_default();
        return Err(refuse(format!("Can't create DNS resolution for server '{server}'")));
    }
    match address.host {
        Host::Ip(_) | Host::Name(..) => Ok((Where::Inet { host: address.host, ports: address.ports }, sort)),
        Host::Unix(path) => unix(path, UnixKind::Path, sort),
        Host::Abstract(name) => unix(name, UnixKind::Abns, sort),
        Host::AbstractZero(name) => unix(name, UnixKind::Abnsz, sort),
        Host::Fd(_) | Host::SockPair(_) | Host::Reverse(_) => {
            Err(refuse(format!("'{word}' is not supported yet by Harrier (planned)")))
        }
    }
}

/// What is wrong with a line as a whole.
fn placed(s: &Statement<'_>, text: &str) -> Diagnostic {
    let span = s.line.keyword().span();
    let at = format!("{}:{}", s.around.sources.name(span.file), span.line);
    s.fail_at(span, format!("[{at}] : {text}")).styled(Style::Bare)
}

/// The words behind the address.
fn words(s: &mut Statement<'_>, server: &mut ServerDraft, p: &mut Draft, label: &str, default: bool) -> Step {
    let before = if label.is_empty() { String::new() } else { format!("{label} : ") };
    loop {
        let line = s.args.rest();
        let Some(word) = s.args.next() else { break };
        let (name, _) = word.text().split_once('(').unwrap_or((word.text(), ""));
        let entry = keywords::all().find(|k| k.name == name);
        let Some(entry) = entry else {
            let near = syntax::nearest(word.text(), keywords::all().map(|k| k.name));
            let hint = near.map_or_else(|| ".".to_owned(), |n| format!("; did you mean '{n}' maybe ?"));
            let tail = if default { " Hint: no address was expected for this server." } else { "" };
            return Err(bracket(
                s.fail_at(word.span(), format!("{before}unknown keyword '{word}'{hint}{tail}")),
            ));
        };
        if default && !entry.in_default {
            let text = format!("{before}'{}' option is not accepted in default-server sections", entry.name);
            // HAProxy says so and ignores the rest of the line, but goes on.
            s.notes.push(bracket(s.fail_at(word.span(), text)).tolerated());
            return Ok(());
        }
        let Some(set) = entry.set else {
            let text = format!("{before}'{}' is not supported yet by Harrier (planned).", entry.name);
            return Err(bracket(s.fail_at(word.span(), text)));
        };
        set(server, s, p).map_err(|d| bracket(closed(d, &before)))?;
        if entry.idle {
            let text = format!("{before}{}", crate::keyword::idle(entry.name, entry.doc));
            s.notes.push(bracket(Diagnostic::notice(word.span(), text)));
        }
        if entry.in_default {
            let eaten = line.len() - s.args.rest().len();
            server.words.extend(line.iter().take(eaten).map(|w| w.text().into()));
        }
    }
    Ok(())
}
