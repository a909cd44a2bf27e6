//! `crt-store` sections (manual, section 12.7) and `ssl-f-use`.

use syntax::{Diagnostic, Diagnostics, Section, Span, Style};
use tls::files::Sources;
use tls::store::{ListLine, Store};

use super::list::{Fault, NO_ACME, Settings, integer, on_off};
use super::words;
use crate::draft::Draft;
use crate::statement::{Statement, Step};

/// A `crt-store` section.
#[derive(Default)]
pub(crate) struct StoreDraft {
    pub name: Box<str>,
    /// `crt-base`, `key-base`.
    pub bases: [Option<Box<str>>; 2],
    pub loads: Vec<(Sources, Span)>,
}

/// What the first line of a section says.
pub(crate) fn header(section: &Section, notes: &mut Diagnostics) -> Option<StoreDraft> {
    if section.header.args().len() > 1 {
        let text = "'crt-store' section only supports a <name> argument.";
        notes.alert(section.header.span(), text);
        return None;
    }
    Some(StoreDraft { name: section.name().into(), ..StoreDraft::default() })
}

/// A complaint that names its place twice, as HAProxy's do here.
fn twice(s: &Statement<'_>, text: String) -> Diagnostic {
    let span = s.line.span();
    let place = format!("{}:{}", s.around.sources.name(span.file), span.line);
    s.fail_at(span, format!("parsing [{place}] : {text}"))
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, out: &mut StoreDraft) -> Step {
    match s.keyword() {
        "load" => load(s, out),
        "crt-base" => base(s, out, 0),
        "key-base" => base(s, out, 1),
        other => Err(s.fail(format!("unknown keyword '{other}' in 'crt-store' section"))),
    }
}

fn base(s: &mut Statement<'_>, out: &mut StoreDraft, which: usize) -> Step {
    let keyword = s.keyword();
    if !out.loads.is_empty() {
        let text =
            format!("'{keyword}' can't be used after a load line, use it at the beginning of the section.");
        return Err(twice(s, text));
    }
    let Some(word) = s.next() else {
        return Err(twice(s, format!("'{keyword}' requires a <path> argument.")));
    };
    out.bases[which] = Some(word.text().into());
    s.args.eat_rest();
    Ok(())
}

/// `load crt FILE ...`.
fn load(s: &mut Statement<'_>, out: &mut StoreDraft) -> Step {
    let mut sources = Sources::default();
    while let Some(word) = s.next() {
        let name = word.text();
        let value = s.next().map(|w| w.text());
        let text = || value.map(Into::into);
        match name {
            "crt" => sources.certificate = value.unwrap_or_default().into(),
            "alias" => sources.alias = text(),
            "key" => sources.key = text(),
            "ocsp" => sources.ocsp = text(),
            "issuer" => sources.issuer = text(),
            "sctl" => sources.sctl = text(),
            "ocsp-update" | "jwt" => {
                let on = on_off(name, value.unwrap_or_default()).map_err(|e| twice(s, format!("{e}\n")))?;
                let place = if name == "jwt" { &mut sources.jwt } else { &mut sources.ocsp_update };
                *place = Some(on);
            }
            "generate-dummy" => {
                let on = on_off(name, value.unwrap_or_default()).map_err(|e| twice(s, format!("{e}\n")))?;
                sources.dummy.on = on;
            }
            "keytype" => sources.dummy.kind = Some(value.unwrap_or_default().into()),
            "curves" => sources.dummy.curves = text(),
            "bits" => {
                let bits =
                    integer(name, value.unwrap_or_default()).map_err(|e| twice(s, format!("{e}\n")))?;
                sources.dummy.bits = Some(bits);
            }
            "acme" => return Err(twice(s, NO_ACME.into())),
            // They concern ACME alone.
            "domains" | "ips" => {}
            other => {
                let text = format!("'load {other}' in section 'crt-store': unknown keyword '{other}'.");
                return Err(twice(s, text));
            }
        }
    }
    if sources.certificate.is_empty() {
        let text = "'load' in section 'crt-store': mandatory 'crt' parameter not found.";
        return Err(twice(s, text.into()));
    }
    out.loads.push((sources, s.line.span()));
    Ok(())
}

/// Loads what the sections name, in order.
pub(crate) fn declare(
    stores: &[StoreDraft],
    into: &Store,
    place: impl Fn(Span) -> String,
    notes: &mut Diagnostics,
) {
    for draft in stores {
        let bases = [draft.bases[0].as_deref(), draft.bases[1].as_deref()];
        for (sources, span) in &draft.loads {
            let declared = into.declare(&draft.name, bases, sources);
            super::say_closed(into, *span, notes);
            if let Err(why) = declared {
                let text = match why.ends_with("already defined.") {
                    true => format!("parsing [{}] : 'load' in section 'crt-store': {why}", place(*span)),
                    false => why,
                };
                notes.push(Diagnostic::alert(*span, text));
            }
        }
    }
}

/// `ssl-f-use crt FILE ...`.
pub(crate) fn frontend_uses(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let words: Vec<&str> = std::iter::from_fn(|| s.next().map(|w| w.text())).collect();
    let span = s.line.span();
    p.certificates.push((words.into_iter().map(Into::into).collect(), span));
    Ok(())
}

/// The list that the `ssl-f-use` lines of a frontend make. The last one comes first, as in HAProxy. Of others
/// (not `front`) only the words are read.
pub(crate) fn list_of(
    store: &Store,
    lines: &[(Vec<Box<str>>, Span)],
    front: bool,
    notes: &mut Diagnostics,
) -> Option<Vec<ListLine>> {
    let mut out = Vec::new();
    for (line, span) in lines.iter().rev() {
        let mut settings = Settings::default();
        let mut rest = line.iter().map(|w| &**w);
        let mut empty = false;
        while let Some(name) = rest.next() {
            let mut missing = false;
            let next = || {
                let value = rest.next();
                missing = value.is_none();
                value.or((name == "crt").then_some(""))
            };
            let set = settings.set(store, name, next);
            empty |= missing && name == "crt";
            if let Err(fault) = set {
                let text = match fault {
                    _ if missing && matches!(name, "ssl-min-ver" | "ssl-max-ver") => {
                        notes.alert(*span, format!("'{name}' : missing the ssl/tls version"));
                        return None;
                    }
                    Fault::Line(_) if name == "ktls" => format!("{}.", words::KTLS_VALUE),
                    Fault::Line(t) if t.starts_with("unknown") => format!("unknown crt keyword '{name}'"),
                    Fault::Line(t) | Fault::Value(t) | Fault::Parsed(t) => t,
                };
                // Of this word HAProxy speaks as on other lines.
                notes.push(match name {
                    _ if text.starts_with("unknown crt") => Diagnostic::alert(*span, text),
                    "ktls" => Diagnostic::alert(*span, text),
                    _ => Diagnostic::alert(*span, format!("'ssl-f-use' : {text}")).styled(Style::Reading),
                });
                return None;
            }
        }
        let mut line = ListLine::default();
        settings.finish(&mut line);
        if !front {
            continue;
        }
        if empty {
            notes.alert(*span, "unable to stat SSL certificate from file '' : No such file or directory.");
            return None;
        }
        if line.sources.certificate.is_empty() {
            notes.alert(*span, "Trying to load a certificate but no 'crt' keyword specified.");
            return None;
        }
        out.push(line);
    }
    Some(out)
}
