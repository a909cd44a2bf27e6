//! `log-forward` sections (manual, section 12.6).
//!
//! Its listeners and targets are those of a frontend, so a section is read into the draft of one that nobody
//! else ever sees.

use std::time::Duration;

use program::forward::HostRule;
use syntax::addr::{Accept, Transport};
use syntax::{Diagnostic, Diagnostics, Modifier, Section, Span, Style, Word};
use wire::syslog::Framing;

use crate::draft::{BindDraft, Draft, Kind};
use crate::statement::{Statement, Step, clamp};
use crate::{bind, log};

/// What `dgram-bind` accepts.
const DATAGRAMS: Accept =
    Accept { streams: false, datagrams: true, default: Transport::Datagram, ..Accept::BIND };

/// A section while it is read.
pub(crate) struct ForwardDraft {
    /// Its listeners, its targets and its timeout.
    pub proxy: Draft,
    /// `dgram-bind` lines.
    pub datagrams: Vec<BindDraft>,
    /// `option assume-rfc6587-ntf`.
    pub framing: Framing,
    /// `option dont-parse-log`.
    pub unread: bool,
    /// `option host`.
    pub host: HostRule,
}

/// Opens a section.
pub(crate) fn header(
    section: &Section,
    earlier: &[ForwardDraft],
    proxies: &[Draft],
    place: impl Fn(Span) -> String,
    notes: &mut Diagnostics,
) -> Option<ForwardDraft> {
    let (name, span) = (section.name(), section.header.span());
    if name.is_empty() {
        notes.alert(span, "missing name for log-forward section.");
        return None;
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'log-forward' cannot handle unexpected argument '{extra}'."));
    }
    let same = |p: &&Draft| *p.name == *name;
    let twice = earlier.iter().map(|f| &f.proxy).find(same).map(|p| {
        let at = place(p.span);
        format!(
            "log-forward section '{name}' has the same name as another log-forward section declared at {at}."
        )
    });
    let other = || {
        let p = proxies.iter().find(same)?;
        let (label, at) = (p.label(), place(p.span));
        Some(format!("log forward section '{name}' has the same name as {label} declared at {at}."))
    };
    if let Some(text) = twice.or_else(other) {
        notes.push(Diagnostic::alert(span, text).styled(Style::Titled));
        return None;
    }
    let mut proxy = Draft::new(Kind::Frontend);
    (proxy.name, proxy.span, proxy.maxconn) = (name.into(), span, Some(10));
    let (framing, host) = (Framing::default(), HostRule::default());
    Some(ForwardDraft { proxy, datagrams: Vec::new(), framing, unread: false, host })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, f: &mut ForwardDraft) -> Step {
    const ADDRESSES: &str = "expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.";
    if s.line.modifier() != Modifier::Set && !matches!(s.keyword(), "option" | "log") {
        return Err(s.fail_at(s.line.span(), crate::keyword::NO_NEGATION));
    }
    match s.keyword() {
        "bind" => f.proxy.binds.push(bind::line(s, &format!("'bind' {ADDRESSES}"))?),
        "dgram-bind" => f.datagrams.push(datagrams(s, &format!("'dgram-bind' {ADDRESSES}"))?),
        "log" => log::line(s, &mut f.proxy.log, false)?,
        "maxconn" => f.proxy.maxconn = Some(number(s)?).filter(|n| *n > 0),
        "backlog" => f.proxy.backlog = Some(number(s)?).filter(|n| *n > 0),
        "timeout" => f.proxy.timeouts.client = timeout(s)?,
        "option" => option(s, f)?,
        other => return Err(unknown(s, other)),
    }
    Ok(())
}

fn unknown(s: &Statement<'_>, what: &str) -> Diagnostic {
    s.fail(format!("unknown keyword '{what}' in log-forward section."))
}

fn number(s: &mut Statement<'_>) -> Step<u32> {
    let word = s.word(format!("'{}' expects an integer argument.", s.keyword()))?;
    s.end()?;
    let n = s.lenient(word);
    Ok(clamp(n))
}

/// `dgram-bind <addresses> [words]`; those about streams are read and mean nothing here.
fn datagrams(s: &mut Statement<'_>, missing: &str) -> Step<BindDraft> {
    let word = s.word(missing)?;
    let (addresses, _) = bind::addresses_of(word.text(), DATAGRAMS, s.around.environment)
        .map_err(|why| s.fail(format!("'dgram-bind {word}' : {why}")))?;
    let mut bind = BindDraft { text: word.text().into(), addresses, span: word.span(), ..bind::nowhere(s) };
    bind::words(s, &mut bind).map_err(|diagnostic| {
        let wrong = s.eaten().text();
        if diagnostic.text.contains("unknown keyword") {
            return s.fail(format!("unknown keyword '{wrong}' in 'log-forward' section."));
        }
        diagnostic
    })?;
    Ok(bind)
}

fn timeout(s: &mut Statement<'_>) -> Step<Option<Duration>> {
    let which = s.next().map_or("", Word::text);
    if which != "client" {
        return Err(unknown(s, &format!("timeout {which}")));
    }
    let word = s.word("missing timeout client value.")?;
    let ms = s.millis(word, "timeout client", |c| {
        format!("timeout : unexpected character '{c}' in 'timeout client'")
    })?;
    s.args.eat_rest();
    Ok(Some(Duration::from_millis(ms)).filter(|d| !d.is_zero()))
}

fn option(s: &mut Statement<'_>, f: &mut ForwardDraft) -> Step {
    let set = s.line.modifier() == Modifier::Set;
    let name = s.word("'option' expects an option name.")?.text();
    if name == "host" {
        f.host = match s.next().map_or("", Word::text) {
            "replace" => HostRule::Replace,
            "fill" => HostRule::Fill,
            "keep" => HostRule::Keep,
            "append" => HostRule::Append,
            _ => return Err(s.fail("option 'host' expects {replace|fill|keep|append}.")),
        };
        if !set {
            f.host = HostRule::default();
        }
        s.args.eat_rest();
        return Ok(());
    }
    if !matches!(name, "assume-rfc6587-ntf" | "dont-parse-log") {
        return Err(s.fail(format!("unknown option '{name}' in log-forward section.")));
    }
    if let Some(extra) = s.next() {
        return Err(s.fail(format!("'option {name}' cannot handle unexpected argument '{extra}'.")));
    }
    match name {
        "assume-rfc6587-ntf" if set => f.framing = Framing::LineFeed,
        "assume-rfc6587-ntf" => f.framing = Framing::Either,
        _ => f.unread = set,
    }
    Ok(())
}
