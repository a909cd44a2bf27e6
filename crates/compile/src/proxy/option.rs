//! `option` (manual, section 4.2, all `option ...` keywords).

mod table;

use std::net::IpAddr;
use wire::head::FieldName;

use program::log::Style;
use program::options::{AddressHeader, Connection, RestrictNames};
use syntax::{Diagnostic, Modifier, Word};

use super::check;
use crate::draft::{Draft, FormatDraft, ForwardedDraft, Kind};
use crate::keyword::{self, Keyword, Places, entry, placed};
use crate::statement::{Statement, Step, tight};
use crate::units;
use table::Switch;
pub(crate) use table::{OTHERS, SWITCHES};

/// The keyword of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] =
    &[entry("option", Places::ALL, option, "Switches of a proxy.", "option dontlognull")];

fn option(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let Some(word) = s.next() else { return Err(tight(s.fail("'option' expects an option name."))) };
    let name = word.text();
    if let Some(found) = SWITCHES.iter().find(|o| o.name == name) {
        s.end_of_option()?;
        // HAProxy looks for it among the options of other places, and ends with an error.
        return match placed(s, p, name, found.places)? {
            true => plain(s, p, found),
            false => Err(not_negated(s, name).unwrap_or_else(|| unknown(s, name))),
        };
    }
    if let Some(mode) = connection(name) {
        s.end_of_option()?;
        match s.off() {
            false => p.connection = Some(mode),
            true if p.connection == Some(mode) => p.connection = None,
            true => {}
        }
        return Ok(());
    }
    if name == "redispatch" {
        return if placed(s, p, name, Places::BACK)? { redispatch(s, p) } else { Ok(()) };
    }
    if name == "use-small-buffers" {
        return small_buffers(s, p);
    }
    if let Some(result) = removed(s, p, name) {
        return result;
    }
    match not_negated(s, name).filter(|_| name != "forwarded") {
        Some(refusal) => Err(refusal),
        None => with_arguments(s, p, name),
    }
}

/// What is said of `no` or `default` in front of an option that is no switch, at least not here.
fn not_negated(s: &Statement<'_>, name: &str) -> Option<Diagnostic> {
    let text = || format!("negation/default is not supported for option '{name}'.");
    (s.line.modifier() != Modifier::Set).then(|| tight(s.fail(text())))
}

fn with_arguments(s: &mut Statement<'_>, p: &mut Draft, name: &str) -> Step {
    match name {
        "forwardfor" => address_header(s, "forwardfor", b"X-Forwarded-For").map(|h| p.forwardfor = Some(h)),
        "originalto" => address_header(s, "originalto", b"X-Original-To").map(|h| p.originalto = Some(h)),
        "forwarded" if p.kind == Kind::Frontend => {
            s.warn(format!("'option forwarded' ignored because {} has no backend capability.", p.label()));
            Ok(())
        }
        "forwarded" => {
            forwarded_words(s)?;
            p.forwarded = (!s.off()).then_some(ForwardedDraft { at: s.at });
            Ok(())
        }
        "httplog" => log_format(s, p, name, Style::Http, Style::Clf),
        "tcplog" => log_format(s, p, name, Style::Tcp, Style::TcpClf),
        "httpslog" => {
            let span = s.eaten().span();
            if p.kind == Kind::Backend {
                let text = format!("{} : 'option httpslog' directive is ignored in backends.", p.label());
                s.notes.warning(span, text);
            }
            super::logging::choose(s, p, FormatDraft::Known(Style::Https, span));
            Ok(())
        }
        "http-restrict-req-hdr-names" => restrict(s, p),
        "tcpka" => {
            s.end_of_option()?;
            if p.kind != Kind::Backend {
                p.keepalive.0 = true;
            }
            if p.kind != Kind::Frontend {
                p.keepalive.1 = true;
            }
            Ok(())
        }
        _ if check::OPTIONS.contains(&name) => {
            // A frontend checks nothing, but what is wrong with its checks is told.
            if name != "external-check" {
                placed(s, p, name, Places::BACK)?;
            }
            check::option(s, p, name)
        }
        _ => Err(unknown(s, name)),
    }
}

fn unknown(s: &Statement<'_>, name: &str) -> Diagnostic {
    let names = SWITCHES.iter().map(|o| o.name).chain(OTHERS.iter().map(|o| o.name));
    let near = syntax::nearest(name, names);
    let hint = near.map(|n| format!("; did you mean '{n}' maybe ?")).unwrap_or_default();
    s.fail(format!("unknown option '{name}'{}.", hint.trim_end())).map_hint(near.is_some())
}

fn plain(s: &mut Statement<'_>, p: &mut Draft, switch: &Switch) -> Step {
    let on = !s.off();
    match switch.name {
        "abortonclose" => p.abortonclose = (s.line.modifier() != Modifier::Default).then_some(on),
        "clitcpka" => p.keepalive.0 = on,
        "srvtcpka" => p.keepalive.1 = on,
        _ => {}
    }
    if let Some(flag) = switch.flag {
        *flag(&mut p.options) = on;
    }
    Ok(())
}

fn connection(name: &str) -> Option<Connection> {
    Some(match name {
        "http-keep-alive" => Connection::KeepAlive,
        "http-server-close" => Connection::ServerClose,
        "httpclose" => Connection::Close,
        _ => return None,
    })
}

fn redispatch(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if s.off() {
        p.options.redispatch = 0;
        return s.end_of_option();
    }
    // Without an interval the last retry goes elsewhere.
    p.options.redispatch = match s.next() {
        None => -1,
        Some(word) => i32::try_from(units::lenient(word.text())).unwrap_or(-1),
    };
    Ok(())
}

/// Smaller buffers in these situations.
fn small_buffers(s: &mut Statement<'_>, p: &Draft) -> Step {
    if !placed(s, p, "use-small-buffers", Places::BACK)? {
        return Ok(());
    }
    while let Some(word) = s.next() {
        if !matches!(word.text(), "queue" | "l7-retries" | "check") {
            return Err(s.fail(format!(
                "invalid parameter '{word}'. option 'use-small-buffers' expects 'queue', 'l7-retries' or 'check' value."
            )));
        }
    }
    if let Some(option) = OTHERS.iter().find(|option| option.idle) {
        s.notes.notice(s.line.span(), keyword::idle(&format!("option {}", option.name), option.doc));
    }
    Ok(())
}

fn log_format(s: &mut Statement<'_>, p: &mut Draft, name: &str, style: Style, clf: Style) -> Step {
    let span = s.eaten().span();
    let style = match s.next().map_or("", Word::text) {
        "" => style,
        "clf" => clf,
        _ => return Err(s.fail(format!("keyword '{name}' only supports option 'clf'."))),
    };
    if p.kind == Kind::Backend {
        s.notes.warning(span, format!("{} : 'option {name}' directive is ignored in backends.", p.label()));
    }
    super::logging::choose(s, p, FormatDraft::Known(style, span));
    Ok(())
}

fn restrict(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    p.options.restrict_names = match s.next().map_or("", Word::text) {
        "preserve" => RestrictNames::Preserve,
        "delete" => RestrictNames::Delete,
        "reject" => RestrictNames::Reject,
        "" => {
            return Err(s.fail("missing parameter. option 'http-restrict-req-hdr-names' expects 'preserve', 'reject' or 'delete' option."));
        }
        other => {
            let text = format!(
                "invalid parameter '{other}'. option 'http-restrict-req-hdr-names' expects 'preserve', 'reject' or 'delete' option."
            );
            return Err(s.fail(text));
        }
    };
    p.restricted = true;
    s.end_of_option()
}

/// The words of `option forwarded`; expressions are parsed once all names are known.
fn forwarded_words(s: &mut Statement<'_>) -> Step {
    let mut given = Vec::new();
    while let Some(word) = s.next() {
        let name = word.text();
        given.push(name.strip_suffix("-expr").unwrap_or(name));
        match name {
            "proto" | "host" | "by" | "by_port" | "for" | "for_port" => {}
            name @ ("host-expr" | "by-expr" | "by_port-expr" | "for-expr" | "for_port-expr") => {
                s.word(format!("'option forwarded {name}' expects an expression as argument."))?;
            }
            _ => {
                return Err(s.fail("'option forwarded' only supports optional values: 'proto', 'host', 'host-expr', 'by', 'by-expr', 'by_port', 'by_port-expr', 'for', 'for-expr', 'for_port' and 'for_port-expr'."));
            }
        }
    }
    for node in ["by", "for"] {
        let port = format!("{node}_port");
        if given.contains(&&*port) && !given.contains(&node) {
            s.warn(format!(
                "'option forwarded' : '{port}-expr' will be ignored because both '{node}' and '{node}-expr' are unset"
            ));
        }
    }
    Ok(())
}

/// `option forwardfor` and `option originalto`.
fn address_header(s: &mut Statement<'_>, name: &str, default: &[u8]) -> Step<AddressHeader> {
    let mut header = AddressHeader { name: FieldName::new(default), except: None, if_none: false };
    while let Some(word) = s.next() {
        match word.text() {
            "except" => {
                let expects = format!("'option {name} except' expects <address>[/mask] as argument.");
                let net = s.word(&*expects)?;
                header.except = Some(network(net.text()).ok_or_else(|| s.fail(expects))?);
            }
            "header" => {
                let expects = format!("'option {name} header' expects <header_name> as argument.");
                header.name = FieldName::new(s.word(expects)?.bytes());
            }
            "if-none" if name == "forwardfor" => header.if_none = true,
            _ => {
                let choices = if name == "forwardfor" {
                    "'except', 'header' and 'if-none'"
                } else {
                    "'except' and 'header'"
                };
                return Err(s.fail(format!("'option {name}' only supports optional values: {choices}.")));
            }
        }
    }
    Ok(header)
}

/// An address and a prefix length or dotted mask.
pub(crate) fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (addr, mask) = text.split_once('/').map_or((text, None), |(a, m)| (a, Some(m)));
    let ip: IpAddr = addr.parse().ok()?;
    let full = if ip.is_ipv4() { 32 } else { 128 };
    let len = match mask {
        None => full,
        Some(m) if m.contains('.') => {
            let mask = u32::from(m.parse::<std::net::Ipv4Addr>().ok()?);
            if mask.leading_ones() + mask.trailing_zeros() < 32 {
                return None;
            }
            u8::try_from(mask.leading_ones()).ok()?
        }
        Some(m) => m.parse().ok().filter(|n| *n <= full)?,
    };
    Some((ip, len))
}

/// Options that are gone, or stand under another name.
fn removed(s: &mut Statement<'_>, p: &mut Draft, name: &str) -> Option<Step> {
    let text = match name {
        "transparent" => "support for option 'transparent' was removed in version 3.5.".to_owned(),
        "forceclose" => "option 'forceclose' is not supported any more since HAProxy 2.0, please just remove it, or use 'option httpclose' if absolutely needed.".to_owned(),
        "http-tunnel" => "option 'http-tunnel' is not supported any more since HAProxy 2.1, please just remove it, it shouldn't be needed.".to_owned(),
        "http_proxy" => "option 'http_proxy' is not supported any more since HAProxy 2.5. This option stopped working in HAProxy 1.9 and usually had nasty side effects. It can be more reliably implemented with combinations of 'http-request set-dst' and 'http-request set-uri', and even 'http-request do-resolve' if DNS resolution is desired.".to_owned(),
        "accept-invalid-http-request" | "accept-invalid-http-response" => {
            if let Err(extra) = s.end_of_option() {
                return Some(Err(extra));
            }
            let places = if name.ends_with("request") { Places::FRONT } else { Places::BACK };
            match placed(s, p, name, places) {
                Ok(true) => {}
                Ok(false) => return Some(Ok(())),
                Err(refusal) => return Some(Err(refusal)),
            }
            let new = name.replace("invalid-http", "unsafe-violations-in-http");
            let text = format!("option '{name}' is deprecated. please use 'option {new}' if absolutely needed.");
            s.notes.push(tight(syntax::Diagnostic::warning(s.line.span(), text)));
            let on = !s.off();
            match name.ends_with("request") {
                true => p.options.unsafe_request = on,
                false => p.options.unsafe_response = on,
            }
            return Some(Ok(()));
        }
        _ => return None,
    };
    Some(Err(tight(s.fail(text))))
}

impl Statement<'_> {
    /// No argument may follow the option's name.
    fn end_of_option(&mut self) -> Step {
        let name = self.line.args().first().map_or("", Word::text).to_owned();
        match self.next() {
            None => Ok(()),
            Some(extra) => {
                Err(self.fail(format!("'option {name}' cannot handle unexpected argument '{extra}'.")))
            }
        }
    }
}

/// A message that ends in a suggestion ends in its question mark.
trait Hint {
    fn map_hint(self, hinted: bool) -> Self;
}

impl Hint for syntax::Diagnostic {
    fn map_hint(self, hinted: bool) -> Self {
        match hinted {
            true => syntax::Diagnostic { text: self.text.trim_end_matches('.').to_owned(), ..self },
            false => self,
        }
    }
}
