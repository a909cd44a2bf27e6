//! `peers` sections (manual, section 11.2).
//!
//! Its lines are those of listeners and servers, so a section is read into the draft of a proxy that nobody
//! else ever sees; as in HAProxy, messages call that proxy by the name of the local peer.

use syntax::{Diagnostic, Diagnostics, Section, Span};

use crate::draft::{BindDraft, Draft, Kind, ServerDraft, TableDraft};
use crate::statement::{Statement, Step, bracket};
use crate::{bind, log, server, table};

const LOGS_NOTHING: &str = "The listener of peers logs nothing, as in HAProxy.";

/// A section while it is read.
pub(crate) struct PeersDraft {
    pub name: Box<str>,
    pub span: Span,
    pub disabled: bool,
    /// Its listener and its peers.
    pub proxy: Draft,
    /// Where the listener was declared: by `bind`, or by the line of the local peer.
    pub bind: Option<BindDraft>,
    /// A `bind` line stands in it.
    has_bind: bool,
    /// `peer` lines stand in it.
    has_peer: bool,
    /// `shards`; 0: keys are not divided.
    pub groups: u32,
    /// `default-bind`.
    default_bind: Option<BindDraft>,
    /// The local peer, once its line was seen.
    pub local: Option<ServerDraft>,
}

/// Opens a section.
pub(crate) fn header(
    section: &Section,
    earlier: &[PeersDraft],
    place: impl Fn(Span) -> String,
    local: &str,
    notes: &mut Diagnostics,
) -> Option<PeersDraft> {
    let name = section.name();
    if name.is_empty() {
        notes.alert(section.header.span(), "missing name for peers section.");
        return None;
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'peers' cannot handle unexpected argument '{extra}'."));
    }
    let span = section.header.span();
    if let Some(known) = earlier.iter().find(|p| *p.name == *name) {
        let at = place(known.span);
        let text =
            format!("peers section '{name}' has the same name as another peers section declared at {at}.");
        notes.alert(span, text);
        return None;
    }
    let mut proxy = Draft::new(Kind::Listen);
    (proxy.name, proxy.span, proxy.mode) = (local.into(), span, program::Mode::Tcp);
    Some(PeersDraft {
        name: name.into(),
        span,
        disabled: false,
        proxy,
        bind: None,
        has_bind: false,
        has_peer: false,
        groups: 0,
        default_bind: None,
        local: None,
    })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, p: &mut PeersDraft, tables: &mut Vec<TableDraft>) -> Step {
    match s.keyword() {
        "table" => {
            let name = s.word("'table' expects a name.")?.text();
            let name = format!("{}/{name}", p.name);
            if tables.iter().any(|t| *t.settings.name == *name) {
                return Err(s.fail(format!("stick-table name '{name}' is used twice.")));
            }
            let mut read = table::read(s, &name, format!("Peers section '{}'", p.name), false)?;
            read.settings.peers = Some(p.name.clone());
            tables.push(read);
            Ok(())
        }
        "peer" | "server" => peer(s, p),
        "bind" => listener(s, p),
        "default-bind" => {
            let mut base = p.default_bind.take().unwrap_or_else(|| bind::nowhere(s));
            bind::words(s, &mut base)?;
            p.default_bind = Some(base);
            Ok(())
        }
        "default-server" => server::default_server(s, &mut p.proxy),
        "disabled" => {
            p.disabled = true;
            Ok(())
        }
        "enabled" => {
            p.disabled = false;
            Ok(())
        }
        // HAProxy reads these lines, too, and logs nothing of peers.
        "log" => {
            log::line(s, &mut p.proxy.log, false)?;
            s.notes.notice(s.line.span(), crate::keyword::idle("log", LOGS_NOTHING));
            Ok(())
        }
        "shards" => shards(s, p),
        other => Err(s.fail(format!("unknown keyword '{other}' in 'peers' section"))),
    }
}

/// `shards <n>`.
fn shards(s: &mut Statement<'_>, p: &mut PeersDraft) -> Step {
    let word = s.word("'shards' : missing value")?;
    let text = word.text();
    let number: i64 = text
        .parse()
        .map_err(|_| s.fail(format!("'shards' : expects an integer argument, found '{text}'")))?;
    p.groups = u32::try_from(number)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| s.fail("'shards' : expects a strictly positive integer argument"))?;
    Ok(())
}

fn mixed(s: &Statement<'_>) -> Diagnostic {
    s.fail("mixing \"peer\" and \"bind\" line is forbidden")
}

fn listener(s: &mut Statement<'_>, p: &mut PeersDraft) -> Step {
    if p.has_peer {
        return Err(mixed(s));
    }
    p.has_bind = true;
    if let Some(known) = &p.bind {
        let at = format!("{}:{}", s.around.sources.name(known.span.file), known.span.line);
        return Err(s.fail(format!(
            "One listener per \"peers\" section is authorized but another is already configured at [{at}]."
        )));
    }
    let read = bind::line_from(s, "'bind' expects [addr1]:port1 as arguments.", p.default_bind.as_ref())?;
    if read.addresses.len() != 1 {
        return Err(s.fail(
            "Only one listener per \"peers\" section is authorized. Multiple listening addresses or port range are not supported.",
        ));
    }
    p.bind = Some(read);
    Ok(())
}

fn peer(s: &mut Statement<'_>, p: &mut PeersDraft) -> Step {
    let is_peer = s.keyword() == "peer";
    p.has_peer |= is_peer;
    if p.has_peer && p.has_bind {
        return Err(mixed(s));
    }
    let name = s.next().map_or("", syntax::Word::text).to_owned();
    let local = *p.proxy.name == *name;
    if let Some(known) = p.local.as_ref().filter(|_| local) {
        let at = format!("{}:{}", s.around.sources.name(known.span.file), known.span.line);
        let text = format!("'{} {name}' : local peer name already referenced at {at}. {name}", s.keyword());
        return Err(s.fail(text));
    }
    let addressless = local && !is_peer;
    if !addressless && s.args.peek().is_none() {
        let text =
            format!("'{} {name}' : ignoring invalid peer definition (missing address:port)", s.keyword());
        s.notes.push(Diagnostic::warning(s.line.span(), text));
        return Ok(());
    }
    let address = s.args.peek().filter(|_| !addressless).map(|w| w.text().to_owned());
    let mut read = server::peer(s, &mut p.proxy, &name, !addressless)?;
    if p.groups > 0 && read.shard > p.groups && !local {
        let text = format!(
            "'{} {name}' : {} peer shard greater value than {} shards value is ignored.",
            s.keyword(),
            read.shard,
            p.groups
        );
        s.notes.push(Diagnostic::warning(s.line.span(), text));
        read.shard = 0;
    }
    if read.check || read.agent || !read.init_addr.is_empty() || read.track.is_some() {
        let text = format!(
            "'{} {name}' : init_addr, resolvers, check and agent are ignored for peers.",
            s.keyword()
        );
        s.notes.push(Diagnostic::warning(s.line.span(), text));
    }
    if read.send_proxy.version().is_some() {
        let text = "'send-proxy*' server option is unsupported there, ignoring it";
        s.notes.push(bracket(Diagnostic::warning(s.line.span(), text)));
    }
    if !local {
        p.proxy.servers.push(read);
        return Ok(());
    }
    if let Some(address) = address {
        p.bind = Some(own_listener(s, p, &address)?);
    }
    p.local = Some(read);
    Ok(())
}

/// The listener that the line of the local peer stands for.
fn own_listener(s: &Statement<'_>, p: &PeersDraft, address: &str) -> Step<BindDraft> {
    let mut own = p.default_bind.clone().unwrap_or_else(|| bind::nowhere(s));
    (own.addresses, own.mptcp) = bind::addresses(address, s.around.environment)
        .map_err(|why| s.fail(format!("'{} {}' : {why}", s.keyword(), p.proxy.name)))?;
    own.addresses.truncate(1);
    (own.text, own.span) = (address.into(), s.line.span());
    own.settings.place = (s.around.sources.name(own.span.file).into(), own.span.line);
    Ok(own)
}

/// Where somebody listens, as an address to connect to.
pub(crate) fn reachable(listen: &program::address::Listen) -> model::server::Target {
    use model::server::{Target, UnixKind};
    use program::address::Listen;
    match listen {
        Listen::Tcp(at) => Target::Inet(*at),
        Listen::Unix(path) => Target::Unix { path: path.clone(), kind: UnixKind::Path },
        Listen::Abns(path) => Target::Unix { path: path.clone(), kind: UnixKind::Abns },
        Listen::Abnsz(path) => Target::Unix { path: path.clone(), kind: UnixKind::Abnsz },
        Listen::Fd(_) | Listen::SockPair(_) => Target::None,
    }
}
