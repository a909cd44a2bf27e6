//! What a proxy logs, and how (manual, section 4.2 and chapter 8).

use model::Origin;

use crate::draft::{Deferred, Draft, FormatDraft};
use crate::keyword::{Keyword, Places, entry};
use crate::log;
use crate::statement::{Statement, Step, tight};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry("log", Places::ALL, |s, p| log::line(s, &mut p.log, false), "A target of log lines.", "log global"),
    entry(
        "log-format",
        Places::ALL,
        |s, p| {
            let custom = FormatDraft::Custom(format(s)?);
            choose(s, p, custom);
            idle_in_backends(s, p);
            Ok(())
        },
        "The line of a normal end.",
        "log-format \"%ci:%cp\"",
    )
    .default("none: what option httplog, tcplog or neither says"),
    entry(
        "log-format-sd",
        Places::ALL,
        |s, p| {
            p.structured = Some(format(s)?);
            idle_in_backends(s, p);
            Ok(())
        },
        "Structured data of RFC 5424 lines.",
        "log-format-sd \"%{+Q,+E}o\"",
    ),
    entry(
        "error-log-format",
        Places::ALL,
        |s, p| {
            if p.error_format.is_some() && p.kind.is_defaults() {
                overrides(s, "error-log-format", "error-log-format");
            }
            p.error_format = Some(format(s)?);
            idle_in_backends(s, p);
            Ok(())
        },
        "The line of a connection that failed early.",
        "error-log-format \"%ci\"",
    ),
    entry(
        "log-tag",
        Places::ALL,
        |s, p| {
            p.log_tag = Some(s.word("'log-tag' expects a tag for use in syslog.")?.text().into());
            Ok(())
        },
        "Program name in log lines.",
        "log-tag edge",
    )
    .default("that of global"),
    entry(
        "log-steps",
        Places::ALL,
        steps,
        "The moments at which lines are logged.",
        "log-steps accept,close",
    ),
    entry(
        "unique-id-format",
        Places::ALL,
        |s, p| format(s).map(|f| p.unique_id_format = Some(f)),
        "Form of unique request ids.",
        "unique-id-format %{+X}o%ci",
    )
    .default("none"),
    entry(
        "unique-id-header",
        Places::ALL,
        |s, p| {
            p.unique_id_header =
                Some(wire::head::FieldName::new(s.word("unique-id-header expects an argument.")?.bytes()));
            Ok(())
        },
        "Header that carries the unique id.",
        "unique-id-header X-Request-ID",
    )
    .default("none"),
];

/// Sets the line that a proxy logs with; in `defaults` a second one is worth a warning.
pub(super) fn choose(s: &mut Statement<'_>, p: &mut Draft, format: FormatDraft) {
    if p.kind.is_defaults()
        && let (Some(new), Some(old)) = (format.name(), p.format.name())
    {
        overrides(s, new, old);
    }
    p.format = format;
}

fn overrides(s: &mut Statement<'_>, new: &str, old: &str) {
    let text = format!("'{new}' overrides previous '{old}' in 'defaults' section.");
    s.notes.push(tight(syntax::Diagnostic::warning(s.line.span(), text)));
}

/// Backends write no logs.
fn idle_in_backends(s: &mut Statement<'_>, p: &Draft) {
    if p.kind == crate::draft::Kind::Backend {
        s.warn(format!("{} : '{}' directive is ignored in backends.", p.label(), s.keyword()));
    }
}

/// One word of log-format.
fn format(s: &mut Statement<'_>) -> Step<Deferred> {
    let name = s.keyword();
    let word = s.args.position();
    if s.args.next().is_none() {
        return Err(s.fail(format!("{name} expects an argument.")));
    }
    if s.next().is_some() {
        return Err(s.fail(format!("{name} expects only one argument, don't forget to escape spaces!")));
    }
    Ok(Deferred { at: s.at, word })
}

/// `log-steps all` or a list of moments.
fn steps(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let text = s.next().map_or("", |w| w.text());
    if p.kind == crate::draft::Kind::Backend {
        let name = p.name.clone();
        s.warn(format!("log-steps will be ignored because backend '{name}' has no frontend capability"));
        return Ok(());
    }
    let mut set = 0;
    for name in text.split(',').filter(|_| text != "all") {
        match Origin::from_step(name).filter(|o| *o != Origin::Error) {
            Some(origin) => set |= origin.bit(),
            None if text.is_empty() => {}
            None => {
                return Err(s.fail(format!(
                    "invalid log step name ({name}). Expected values are: accept, request, connect, response, close, quic-init, http-req, http-res, http-after-res, tcp-req-conn, tcp-req-sess, tcp-req-cont, tcp-res-cont"
                )));
            }
        }
    }
    // As in HAProxy those that are named add up, also to those of the `defaults` section; `all` names none.
    p.named_log_steps |= set;
    p.log_steps = Some(if p.named_log_steps == 0 && text == "all" { u16::MAX } else { p.named_log_steps });
    p.own_log_steps = true;
    Ok(())
}
