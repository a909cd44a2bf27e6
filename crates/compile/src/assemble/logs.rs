//! Log targets, their sinks by number, and log profiles.

use std::sync::Arc;

use model::Origin;
use model::origin::COUNT;
use program::Mode;
use program::log::{Logging, Profile, Ring, RingServer, Sink, Step, Style as LogStyle, Target};
use syntax::{Diagnostic, Diagnostics, Style};

use super::Assembly;
use crate::draft::Draft;
use crate::draft::FormatDraft;
use crate::draft::{Deferred, LogDraft, LogLine, SinkDraft, TargetDraft};
use crate::logformats;
use crate::notes::refusal;
use crate::notes::remark;
use crate::profile::ProfileDraft;
use crate::ring;
use lang::LogFormat;
use lang::logfmt::Waits;
use lang::places::Place;

impl Assembly<'_> {
    /// What a proxy logs, where to and how.
    pub(super) fn logging(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Logging {
        let targets = self.log_targets(&p.log, &format!("proxy section '{}'", p.name), notes);
        let (style, mut format) = match &p.format {
            FormatDraft::None => (LogStyle::Default, None),
            // Backends write no lines.
            FormatDraft::Custom(_) if !p.kind.is_front() => (LogStyle::Custom, None),
            FormatDraft::Custom(deferred) => (LogStyle::Custom, self.log_format(index, deferred, p, notes)),
            FormatDraft::Known(style, span) => {
                // That it does not fit was said at the beginning.
                let style = fitting(*style, *span, p, self, &mut Diagnostics::new());
                let text = match style {
                    LogStyle::Tcp => logformats::TCP,
                    LogStyle::TcpClf => logformats::TCP_CLF,
                    LogStyle::Clf => logformats::HTTP_CLF,
                    LogStyle::Https => logformats::HTTPS,
                    _ => logformats::HTTP,
                };
                let at = crate::draft::LineRef { section: p.section, line: 0 };
                let parsed = self.log_text(index, text.as_bytes(), p, at, Place::Log, notes);
                let parsed = parsed.map_err(|fault| {
                    notes.push(refusal(
                        *span,
                        format!(
                            "Parsing [{}]: failed to parse log-format : {}",
                            self.ground.place(*span),
                            fault.text
                        ),
                    ))
                });
                (style, parsed.ok())
            }
        };
        if !p.kind.is_front() {
            format = None;
        }
        let formatted = style != LogStyle::Default || p.structured.is_some();
        if p.kind.is_front() && targets.is_empty() && formatted {
            notes.push(remark(
                p.span,
                format!("log format ignored for {} since it has no log address.", p.label()),
            ));
        }
        Logging {
            targets: targets.into(),
            format,
            structured: p
                .structured
                .as_ref()
                .filter(|_| p.kind.is_front())
                .and_then(|d| self.log_format(index, d, p, notes)),
            error_format: p
                .error_format
                .as_ref()
                .filter(|_| p.kind.is_front())
                .and_then(|d| self.log_format(index, d, p, notes)),
            style,
            steps: p.log_steps,
            own_steps: p.own_log_steps,
            waits: Waits::default(),
            looks_at_http: false,
            tag: p.log_tag.clone(),
        }
    }

    /// Finished targets of a section; `log global` is replaced by what `global` had above it. `whose` begins
    /// what is said of names that nobody has.
    pub(super) fn log_targets(
        &mut self,
        log: &LogDraft,
        whose: &str,
        notes: &mut Diagnostics,
    ) -> Vec<Target> {
        let mut out = Vec::new();
        for line in &log.lines {
            match line {
                LogLine::Global(above) => {
                    let above = self.global_log.get(above.from..above.to).unwrap_or_default();
                    out.extend(above.iter().map(|target| {
                        let sample = target.sample.as_deref().map(|sample| Arc::new(sample.anew()));
                        Target { sample, ..target.clone() }
                    }));
                }
                LogLine::Own(draft) => out.extend(self.log_target(draft, whose, notes)),
            }
        }
        out
    }

    fn log_target(&mut self, draft: &TargetDraft, whose: &str, notes: &mut Diagnostics) -> Option<Target> {
        let span = draft.span;
        let (file, line) = (self.ground.sources.name(span.file).to_owned(), span.line);
        let only_checked = self.ground.options.only_checked;
        // A check of a part of the files, without that which makes the ring, is right; a start is not.
        let mut refuse = |text: String| {
            notes.push(match only_checked {
                false => Diagnostic::alert(span, text).styled(Style::Bare),
                true => Diagnostic::notice(span, format!("{text} The process will not start so."))
                    .styled(Style::Bare),
            });
        };
        let place = match whose {
            "" => format!("global log directive declared in file {file} at line '{line}'"),
            section => format!("log directive declared in {section} in file '{file}' at line {line}"),
        };
        let sink = match &draft.sink {
            SinkDraft::Known(sink) => sink.clone(),
            SinkDraft::Ring(name) => match self.rings.iter().position(|r| r.name == name.name) {
                Some(index) => Sink::Ring(index),
                None => {
                    refuse(format!("{place} uses unknown ring named '{}'.", name.name));
                    return None;
                }
            },
            SinkDraft::Backend(name) => {
                let found = self.kinds.iter().position(|(known, back, _)| *back && *known == name.name);
                let fits = found.and_then(|at| self.kinds.get(at)).is_some_and(|kind| kind.2 == Mode::Log);
                match found.and_then(|at| u32::try_from(at).ok()) {
                    Some(index) if fits => Sink::Backend(index),
                    found => {
                        let how = if found.is_some() { "incompatible" } else { "unknown" };
                        refuse(format!("{place} uses {how} log backend '{}'.", name.name));
                        return None;
                    }
                }
            }
            SinkDraft::Stream(to) => self.stream_ring(draft, to.clone(), &file, line),
        };
        let profile = match &draft.profile {
            None => None,
            Some(name) => match self.memory.log_profiles.iter().position(|p| *p == name.name) {
                Some(index) => u32::try_from(index).ok(),
                None => {
                    refuse(format!("{place} unknown log-profile '{}'.", name.name));
                    return None;
                }
            },
        };
        Some(Target {
            sink: self.sink(sink),
            format: draft.format.unwrap_or(self.default_framing()),
            format_said: draft.format.is_some(),
            len: draft.len,
            facility: draft.facility,
            max_level: draft.max_level,
            min_level: draft.min_level,
            sample: draft.sample.as_deref().map(|sample| Arc::new(sample.anew())),
            profile,
        })
    }

    fn default_framing(&self) -> program::log::Format {
        if self.log_hostname { program::log::Format::Rfc3164 } else { program::log::Format::Local }
    }

    /// The number of a sink: targets that send to the same place share it.
    pub(super) fn sink(&mut self, sink: Sink) -> usize {
        match self.sinks.iter().position(|s| *s == sink) {
            Some(index) => index,
            None => {
                self.sinks.push(sink);
                self.sinks.len() - 1
            }
        }
    }

    /// A target over a stream has a ring of its own, whose only server it is.
    fn stream_ring(
        &mut self,
        draft: &TargetDraft,
        target: model::server::Target,
        file: &str,
        line: u32,
    ) -> Sink {
        let implicit = self.rings.iter().filter(|r| r.name.starts_with("ring#")).count();
        let name = format!("ring#{}", implicit + 1);
        let server = RingServer {
            name: "server".into(),
            target,
            octet_count: false,
            tls: None,
            plain: Default::default(),
            source: None,
            state: None,
        };
        let description =
            format!("created from log directive declared into '{file}' at line {line}").into_boxed_str();
        self.rings.push(Ring {
            description,
            format: draft.format.unwrap_or(self.default_framing()),
            maxlen: draft.len,
            servers: vec![server],
            ..ring::new(&name)
        });
        Sink::Ring(self.rings.len() - 1)
    }

    /// Log profiles with their formats.
    pub(super) fn log_profiles(&mut self, drafts: &[ProfileDraft], notes: &mut Diagnostics) -> Vec<Profile> {
        let mut out = Vec::new();
        for draft in drafts {
            let mut waits = Waits::default();
            let mut profile = Profile {
                name: draft.name.clone(),
                tag: draft.tag.clone(),
                steps: std::array::from_fn::<_, COUNT, _>(|_| None),
                any: None,
            };
            for (origin, step) in &draft.steps {
                let place = origin.map_or(Place::Log, place_of);
                let format = step.format.as_ref().and_then(|d| self.profile_format(d, place, notes));
                let structured = step.structured.as_ref().and_then(|d| self.profile_format(d, place, notes));
                let items = format.iter().chain(&structured).flat_map(|format| &format.items);
                items.for_each(|item| waits.add(item));
                let slot = match origin {
                    None => &mut profile.any,
                    Some(o) => &mut profile.steps[o.index()],
                };
                let known = slot.get_or_insert_default();
                known.drop |= step.drop;
                *known = Step {
                    drop: known.drop,
                    format: format.or_else(|| known.format.take()),
                    structured: structured.or_else(|| known.structured.take()),
                };
            }
            let Waits { request, response, end, .. } = waits;
            self.memory.profile_waits.push(Waits { request, response, end, ..Waits::default() });
            out.push(profile);
        }
        out
    }

    fn profile_format(
        &mut self,
        deferred: &Deferred,
        place: Place,
        notes: &mut Diagnostics,
    ) -> Option<LogFormat> {
        let word = self.ground.deferred(deferred)?;
        let registry = self.ground.registry;
        let mut names = self.names_of_global();
        match LogFormat::parse_log(word.bytes(), place, registry, &mut names) {
            Ok(format) => Some(format),
            Err(fault) => {
                let text = format!("failed to parse logformat: {}.", fault.text.trim_end_matches('.'));
                let diagnostic = Diagnostic::alert(word.span(), text).styled(Style::Titled);
                notes.push(Diagnostic { help: fault.help, ..diagnostic });
                None
            }
        }
    }
}

/// What exists when a line of `do-log` is made.
fn place_of(origin: Origin) -> Place {
    match origin {
        Origin::QuicInit | Origin::TcpReqConn => Place::FrontConn,
        Origin::TcpReqSess => Place::FrontSess,
        Origin::TcpReqCont => Place::FrontTcpContent,
        Origin::TcpResCont => Place::FrontTcpResponse,
        Origin::HttpReq => Place::FrontHttpReq,
        Origin::HttpRes | Origin::HttpAfterRes => Place::FrontHttpRes,
        _ => Place::Log,
    }
}

/// An HTTP line needs HTTP mode; otherwise the TCP one takes its place.
pub(super) fn fitting(
    style: LogStyle,
    span: syntax::Span,
    p: &Draft,
    assembly: &Assembly<'_>,
    notes: &mut Diagnostics,
) -> LogStyle {
    let inherited = p.kind == crate::draft::Kind::Backend && !said_here(p, assembly);
    let (name, fallback, instead) = match style {
        LogStyle::Http => ("httplog", "tcplog", LogStyle::Tcp),
        LogStyle::Https => ("httpslog", "tcplog", LogStyle::Tcp),
        LogStyle::Clf => ("httplog clf", "tcplog clf", LogStyle::TcpClf),
        _ => return style,
    };
    if p.mode == Mode::Http || inherited {
        return style;
    }
    let at = assembly.ground.place(span);
    let text = format!(
        "parsing [{at}] : 'option {name}' not usable with {} (needs 'mode http'). Falling back to 'option {fallback}'.",
        p.label()
    );
    notes.push(Diagnostic::warning(span, text).styled(Style::Bare));
    instead
}

/// Whether the line that names the format stands in this very section.
fn said_here(p: &Draft, assembly: &Assembly<'_>) -> bool {
    let lines = assembly.ground.tree.sections.get(p.section as usize).map(|s| &s.lines);
    lines.into_iter().flatten().any(|l| {
        l.keyword() == "log-format"
            || l.keyword() == "option"
                && l.args().first().is_some_and(|w| w == "httplog" || w == "httpslog" || w == "tcplog")
    })
}
