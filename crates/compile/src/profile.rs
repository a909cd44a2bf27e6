//! `log-profile` sections (manual, section 8.3.5): lines as one target wants them, by the moment they are
//! made at.

use model::Origin;
use syntax::{Diagnostics, Section, Sources, Span, Word};

use crate::draft::Deferred;
use crate::statement::{Statement, Step, tight};

/// A section before its formats are parsed.
pub(crate) struct ProfileDraft {
    pub name: Box<str>,
    pub span: Span,
    pub tag: Option<Box<str>>,
    /// In order; `None` stands for `any`.
    pub steps: Vec<(Option<Origin>, StepDraft)>,
}

/// What one `on` line says.
#[derive(Default)]
pub(crate) struct StepDraft {
    pub drop: bool,
    pub format: Option<Deferred>,
    pub structured: Option<Deferred>,
}

const STEPS: &str = "'on' expects a log step.\nexpected values are: 'accept', 'request', 'connect', 'response', 'close', 'error' or 'any'.\nOr one of the additional log steps: 'quic-init', 'http-req', 'http-res', 'http-after-res', 'tcp-req-conn', 'tcp-req-sess', 'tcp-req-cont', 'tcp-res-cont'.";

/// What the first line of a section says.
pub(crate) fn header(
    section: &Section,
    known: &[ProfileDraft],
    sources: &Sources,
    notes: &mut Diagnostics,
) -> Option<ProfileDraft> {
    let span = section.header.span();
    if section.name().is_empty() {
        notes.alert(span, "missing name for log-profile section.");
        return None;
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'log-profile' cannot handle unexpected argument '{extra}'."));
        return None;
    }
    if let Some(other) = known.iter().find(|p| *p.name == *section.name()) {
        let at = format!("{}:{}", sources.name(other.span.file), other.span.line);
        let text = format!(
            "log-profile section '{}' has the same name as another log-profile section declared at {at}.",
            section.name()
        );
        notes.push(syntax::Diagnostic::alert(span, text).styled(syntax::Style::Titled));
        return None;
    }
    Some(ProfileDraft { name: section.name().into(), span, tag: None, steps: Vec::new() })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, profile: &mut ProfileDraft) -> Step {
    match s.keyword() {
        "log-tag" => {
            let tag = s.word("'log-tag' expects a tag for use in syslog.")?;
            profile.tag = Some(tag.text().into());
            Ok(())
        }
        "on" => on(s, profile),
        other => Err(s.fail(format!("unknown keyword '{other}' in log-profile section."))),
    }
}

/// `on <step> [drop] [format <fmt>] [sd <fmt>]`.
fn on(s: &mut Statement<'_>, profile: &mut ProfileDraft) -> Step {
    let word = s.next().map_or("", Word::text);
    let origin = match (word, Origin::from_step(word)) {
        ("any", _) => None,
        (_, Some(origin)) => Some(origin),
        _ => return Err(tight(s.fail(STEPS))),
    };
    let mut step = StepDraft::default();
    let expects = format!("'on {word}' expects 'drop', 'format' or 'sd'.");
    if s.args.peek().is_none() {
        return Err(s.fail(expects));
    }
    while let Some(what) = s.next() {
        match what.text() {
            "drop" => step.drop = true,
            "format" => step.format = Some(text(s, word, "format")?),
            "sd" => step.structured = Some(text(s, word, "sd")?),
            _ => return Err(s.fail(expects)),
        }
    }
    profile.steps.push((origin, step));
    Ok(())
}

fn text(s: &mut Statement<'_>, step: &str, what: &str) -> Step<Deferred> {
    let word = s.args.position();
    match s.args.next() {
        Some(_) => Ok(Deferred { at: s.at, word }),
        None => Err(s.fail(format!("'on {step} {what}' expects a logformat string."))),
    }
}
