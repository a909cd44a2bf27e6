//! `mailers` sections and `email-alert` (manual, section 12.3).
//!
//! HAProxy 3.5 sends no mail of its own: a Lua script reads these settings and does. Here the process does,
//! unless a script has said that it will (`core.use_native_mailers_config`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::mail::{Mail, Mailer};

use syntax::addr::{self, Accept, Host, Ports, Transport};
use syntax::{Diagnostic, Diagnostics, Section, Sources, Span, Style, Word};

use crate::draft::{Draft, Named};
use crate::keyword::{Keyword, Places, entry};
use crate::notes::{refusal, remark};
use crate::statement::{Statement, Step};

/// A section.
pub(crate) struct MailersDraft {
    pub name: Box<str>,
    span: Span,
    timeout: Duration,
    mailers: Vec<Mailer>,
}

/// `timeout mail` unless said.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the first line of a section says.
pub(crate) fn header(
    section: &Section,
    known: &[MailersDraft],
    sources: &Sources,
    notes: &mut Diagnostics,
) -> Option<MailersDraft> {
    let (name, span) = (section.name(), section.header.span());
    if name.is_empty() {
        notes.alert(span, "missing name for mailers section.");
        return None;
    }
    if let Some(other) = known.iter().find(|m| *m.name == *name) {
        let at = format!("{}:{}", sources.name(other.span.file), other.span.line);
        let text = format!(
            "mailers section '{name}' has the same name as another mailers section declared at {at}."
        );
        notes.push(Diagnostic::alert(span, text).styled(Style::Titled));
        return None;
    }
    Some(MailersDraft { name: name.into(), span: section.span(), timeout: TIMEOUT, mailers: Vec::new() })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, draft: &mut MailersDraft) -> Step {
    match s.keyword() {
        "mailer" => mailer(s, draft),
        "timeout" => timeout(s, draft),
        other => Err(s.fail(format!("unknown keyword '{other}' in 'mailers' section"))),
    }
}

/// `mailer <name> <address>:<port>`; what stands behind is not looked at.
fn mailer(s: &mut Statement<'_>, draft: &mut MailersDraft) -> Step {
    const EXPECTS: &str = "'mailer' expects <name> and <addr>[:<port>] as arguments.";
    let name = s.word(EXPECTS)?;
    let word = s.word(EXPECTS)?;
    s.args.eat_rest();
    let refuse = |why: String| Diagnostic::alert(word.span(), format!("'mailer {name}' : {why}"));
    let accept = Accept {
        port_required: true,
        ranges: false,
        offsets: false,
        fd: false,
        streams: true,
        datagrams: false,
        default: Transport::Stream,
    };
    let address = addr::parse(word.text(), accept, s.around.environment).map_err(refuse)?;
    match &address.host {
        Host::Unix(_) | Host::Abstract(_) | Host::AbstractZero(_) | Host::SockPair(_) | Host::Reverse(_) => {
            Err(refuse("TCP not supported for this address family.".into()))
        }
        Host::Name(host, _) if crate::resolve::ip(&address.host).is_none() => {
            Err(refuse(addr::unresolved(host, word.text())))
        }
        _ => {
            let port = match address.ports {
                Ports::One(port) => port,
                _ => 0,
            };
            // Names are looked up once, while the configuration is read.
            if let Some(ip) = crate::resolve::ip(&address.host) {
                let address = SocketAddr::new(ip, port);
                draft.mailers.push(Mailer { name: name.text().into(), address });
            }
            Ok(())
        }
    }
}

/// `timeout mail <time>`.
fn timeout(s: &mut Statement<'_>, draft: &mut MailersDraft) -> Step {
    let which = s.next().map_or("", Word::text);
    if which != "mail" {
        let got = if which.is_empty() { String::new() } else { format!(" got '{which}'") };
        return Err(s.fail(format!("'timeout' expects 'mail' and <time> as arguments{got}.")));
    }
    let word = s.word("'timeout mail' expects <time> as argument.")?;
    s.args.eat_rest();
    let unexpected = |c| format!("unexpected character '{c}' in argument to <timeout mail>.");
    draft.timeout = Duration::from_millis(s.millis(word, "timeout mail", unexpected)?);
    Ok(())
}

/// The keyword of proxies.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[entry(
    "email-alert",
    Places::ALL,
    alert,
    "Mail about servers that change their state.",
    "email-alert to admin@example.com",
)];

fn alert(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let what = s.word("missing argument after 'email-alert'.")?.text();
    let value = s.args.peek().cloned();
    s.args.eat_rest();
    let said = value.as_ref().map_or("", Word::text);
    match what {
        "from" => p.alert.from = Some(said.into()),
        "to" => p.alert.to = Some(said.into()),
        "myhostname" => p.alert.hostname = Some(said.into()),
        "mailers" => {
            let span = value.as_ref().map_or(s.line.span(), Word::span);
            p.alert.mailers = Some(Named { name: said.into(), span });
        }
        "level" => {
            let level = crate::log::LEVELS.iter().position(|name| *name == said);
            let level = level.and_then(|level| u8::try_from(level).ok());
            let unknown = || s.fail(format!("unknown log level 'level' after '{said}'"));
            p.alert.level = Some(level.ok_or_else(unknown)?);
        }
        other => return Err(s.fail(format!("email-alert: unknown argument '{other}'."))),
    }
    p.alert.any = true;
    Ok(())
}

/// What only all sections show: who is named must exist, and one setting needs the others.
pub(crate) fn check(known: &[MailersDraft], p: &Draft, notes: &mut Diagnostics) {
    if !p.alert.any || p.disabled {
        return;
    }
    match &p.alert.mailers {
        Some(wanted) if p.alert.from.is_some() && p.alert.to.is_some() => {
            if !known.iter().any(|m| m.name == wanted.name) {
                let text = format!("Proxy '{}': unable to find mailers '{}'.", p.name, wanted.name);
                notes.push(refusal(wanted.span, text));
            }
        }
        _ => notes.push(remark(p.span, lacking(p))),
    }
}

/// What a proxy says of mail, if it is complete. `by_script`: a script sends it.
pub(crate) fn mail(known: &[MailersDraft], p: &Draft, by_script: bool) -> Option<Arc<Mail>> {
    const ALERT: u8 = 1;
    let alert = &p.alert;
    let section =
        known.iter().find(|m| alert.mailers.as_ref().is_some_and(|wanted| m.name == wanted.name))?;
    Some(Arc::new(Mail {
        from: alert.from.clone()?,
        to: alert.to.clone()?,
        hostname: alert.hostname.clone().unwrap_or_else(crate::global::process::hostname),
        level: alert.level.unwrap_or(ALERT),
        timeout: section.timeout,
        mailers: section.mailers.clone(),
        by_script,
    }))
}

/// Sections that no proxy sends mail through.
pub(crate) fn idle(all: &[MailersDraft], proxies: &[Draft], notes: &mut Diagnostics) {
    for m in all.iter().filter(|m| !used(m, proxies)) {
        notes.push(remark(m.span, format!("Removing incomplete section 'mailers {}'.", m.name)).settling());
    }
}

fn lacking(p: &Draft) -> String {
    format!(
        "'email-alert' will be ignored for {} (the presence any of 'email-alert from', 'email-alert level' 'email-alert mailers', 'email-alert myhostname', or 'email-alert to' requires each of 'email-alert from', 'email-alert mailers' and 'email-alert to' to be present).",
        p.label()
    )
}

fn used(mailers: &MailersDraft, proxies: &[Draft]) -> bool {
    let wants = |p: &&Draft| p.alert.from.is_some() && p.alert.to.is_some() && !p.disabled;
    let names = |p: &Draft| p.alert.mailers.as_ref().is_some_and(|n| n.name == mailers.name);
    proxies.iter().filter(wants).any(names)
}
