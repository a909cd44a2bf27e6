//! `healthcheck` sections (manual, section 12.9): checks with a name of their own, which servers of any
//! backend use instead of what their backend says. A section is a backend's worth of check keywords, so it is
//! kept as one.

use syntax::{Diagnostic, Diagnostics, Section, Sources, Style, Word};

use crate::draft::{CheckKind, Draft, Kind};
use crate::proxy::check;
use crate::statement::{Statement, Step};

/// A section before its rules are parsed.
pub(crate) struct HealthDraft {
    /// Name, place, check and rules.
    pub draft: Draft,
    /// The word of its `type` line.
    kind: Option<Box<str>>,
    /// Families of rules that stand in it, each with the place of the first.
    rules: Vec<(&'static str, syntax::Span)>,
}

/// The types, and how messages name them.
const TYPES: &[(&str, &str)] = &[
    ("tcp-check", "TCP"),
    ("httpchk", "HTTP"),
    ("ssl-hello-chk", "SSL"),
    ("smtpchk", "SMTP"),
    ("pgsql-check", "PGSQL"),
    ("redis-check", "REDIS"),
    ("mysql-check", "MYSQL"),
    ("ldap-check", "LDAP"),
    ("spop-check", "SPOP"),
];

/// What the first line of a section says.
pub(crate) fn header(
    section: &Section,
    number: u32,
    known: &[HealthDraft],
    sources: &Sources,
    notes: &mut Diagnostics,
) -> Option<HealthDraft> {
    let span = section.header.span();
    if section.name().is_empty() {
        notes.alert(span, "missing name for healthcheck section.");
        return None;
    }
    if let Some(other) = known.iter().find(|h| *h.draft.name == *section.name()) {
        let at = format!("{}:{}", sources.name(other.draft.span.file), other.draft.span.line);
        let text = format!("healthcheck section '{}' already defined at {at}.", section.name());
        notes.alert(span, text);
        return None;
    }
    let mut draft = Draft::new(Kind::Backend);
    (draft.name, draft.span, draft.section) = (section.name().into(), section.span(), number);
    Some(HealthDraft { draft, kind: None, rules: Vec::new() })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, health: &mut HealthDraft) -> Step {
    match s.keyword() {
        "type" => kind(s, health),
        word @ ("http-check" | "tcp-check") => {
            let family = if word == "http-check" { "http-check" } else { "tcp-check" };
            health.rules.push((family, s.line.keyword().span()));
            if let Some(text) = stranger(health, family) {
                return Err(s.fail_at(s.line.keyword().span(), text));
            }
            let entry = crate::keyword::find(&[check::KEYWORDS], family);
            entry.map_or(Ok(()), |entry| (entry.set)(s, &mut health.draft))
        }
        other => Err(s.fail(format!("unknown keyword '{other}' in 'healthcheck' section"))),
    }
}

fn kind(s: &mut Statement<'_>, health: &mut HealthDraft) -> Step {
    if health.kind.is_some() {
        return Err(s.fail("healthcheck type already defined."));
    }
    let name = s.next().map_or("", Word::text);
    if name.is_empty() {
        return Err(s.fail("'type' expects a healthcheck type."));
    }
    if !TYPES.iter().any(|(known, _)| *known == name) {
        let list: Vec<String> = TYPES.iter().map(|(known, _)| format!("'{known}'")).collect();
        let text = format!("unknown healthcheck type '{name}' (expects {}).", list.join(", "));
        let near = syntax::nearest(name, TYPES.iter().map(|(known, _)| *known));
        return Err(s.fail(text).meant(near));
    }
    health.kind = Some(name.into());
    check::option(s, &mut health.draft, name)?;
    let families = ["http-check", "tcp-check"];
    for family in families.into_iter().filter(|f| health.rules.iter().any(|r| r.0 == *f)) {
        if let Some(text) = stranger(health, family) {
            return Err(s.fail(text));
        }
    }
    Ok(())
}

/// What is said of rules that don't belong to the type of their section.
fn stranger(health: &HealthDraft, family: &str) -> Option<String> {
    let kind = health.kind.as_deref()?;
    let wanted = match &health.draft.check {
        CheckKind::Http { .. } => "http-check",
        CheckKind::Tcp => "tcp-check",
        _ => "",
    };
    let (_, name) = TYPES.iter().find(|(known, _)| *known == kind)?;
    (wanted != family).then(|| format!("unable to configure '{family}' rule for '{name}' healthcheck"))
}

/// A server names a section that isn't there.
pub(crate) fn missing(name: &str, server: &str, at: &str, label: &str, span: syntax::Span) -> Diagnostic {
    let text = format!(
        "[{at}] : {label} : parsing [{at}]: healthcheck section '*healthcheck-{name}' not found for server '{server}'."
    );
    Diagnostic::alert(span, text).styled(Style::Bare)
}
