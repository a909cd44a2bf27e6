//! `http-error`: an answer made of parts (manual, section 4.2).

use std::sync::Arc;

use lang::action::Payload;
use lang::places::Place;
use lang::{LogFormat, Names, Reply};
use program::proxy::ErrorAnswer;
use syntax::{Diagnostic, Diagnostics, Line, Word};

use super::Assembly;
use crate::draft::ErrorDraft;
use crate::draft::Named;
use crate::draft::{Draft, LineRef};
use crate::names::Resolver;
use crate::notes::{refusal, remark};
use crate::proxy::errors;
use program::proxy::Errors;
use std::collections::BTreeMap;

/// One line being read.
struct Reader<'g, 'r> {
    line: &'g Line,
    at: usize,
    registry: &'g lang::Registry,
    names: Resolver<'r>,
    /// What is to be said when all lines are read.
    late: Vec<Diagnostic>,
}

impl Assembly<'_> {
    /// What a proxy answers instead of the built-in messages.
    pub(super) fn errors(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Errors {
        let mut by_status = BTreeMap::new();
        for error in &p.errors {
            match error {
                ErrorDraft::Message(status, message) => {
                    by_status.insert(*status, ErrorAnswer::Message(message.clone()));
                }
                ErrorDraft::Section(name, statuses) => {
                    self.error_section(p, name, statuses, &mut by_status, notes)
                }
                ErrorDraft::Reply(at) => match self.http_error(index, p, *at, notes) {
                    Some((status, Some(answer))) => drop(by_status.insert(status, answer)),
                    Some((status, None)) => drop(by_status.remove(&status)),
                    None => {}
                },
            }
        }
        Errors { by_status }
    }

    pub(super) fn error_section(
        &self,
        p: &Draft,
        name: &Named,
        statuses: &[u16],
        out: &mut BTreeMap<u16, ErrorAnswer>,
        notes: &mut Diagnostics,
    ) {
        let Some(section) = self.memory.http_errors.get(&name.name) else {
            let at = self.ground.place(name.span);
            let text = format!("proxy '{}': unknown http-errors section '{}' (at {at}).", p.name, name.name);
            return notes.push(refusal(name.span, text));
        };
        for (status, message) in section {
            if statuses.is_empty() || statuses.contains(status) {
                out.insert(*status, ErrorAnswer::Message(message.clone()));
            }
        }
        for status in statuses.iter().filter(|s| !section.contains_key(s)) {
            let at = self.ground.place(name.span);
            let text = format!(
                "config: proxy '{}' : status '{status}' not declared in http-errors section '{}' (at {at}).",
                p.name, name.name
            );
            notes.push(remark(name.span, text));
        }
    }

    /// The status and the answer of an `http-error` line; none: what was set before is forgotten.
    pub(super) fn http_error(
        &mut self,
        index: usize,
        p: &Draft,
        at: LineRef,
        notes: &mut Diagnostics,
    ) -> Option<(u16, Option<ErrorAnswer>)> {
        let line = self.ground.line(at).filter(|_| !self.is_told(p, at))?;
        let registry = self.ground.registry;
        let place = self.ground.place(line.span());
        let names = self.resolver(index, p, at);
        let mut reader = Reader { line, at: 1, registry, names, late: Vec::new() };
        let mut asides = Vec::new();
        let answer = reader.answer(&mut asides, &p.name, &place);
        if at.section == p.section {
            reader.late.into_iter().for_each(|diagnostic| notes.push(diagnostic));
        }
        // What an inherited line deserves was said where it stands.
        if at.section == p.section {
            asides.into_iter().for_each(|text| notes.push(super::aside(text, line)));
        }
        if answer.is_err() && p.kind.is_defaults() {
            self.memory.told.insert(at);
        }
        answer.map_err(|diagnostic| notes.push(diagnostic)).ok()
    }
}

type Read<T> = Result<T, Diagnostic>;

impl<'g> Reader<'g, '_> {
    fn next(&mut self) -> Option<&'g Word> {
        let word = self.line.words().get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn fail(&self, text: impl std::fmt::Display) -> Diagnostic {
        let word = self.line.words().get(self.at.saturating_sub(1)).unwrap_or(self.line.keyword());
        Diagnostic::alert(word.span(), format!("http-error : {text}"))
    }

    fn value(&mut self, name: &str, what: &str) -> Read<&'g Word> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.fail(format!("'{name}' expects {what} as argument"))),
        }
    }

    fn format(&mut self, bytes: &[u8]) -> Read<LogFormat> {
        let parsed = LogFormat::parse(bytes, Place::ErrorPage, self.registry, &mut self.names);
        parsed.map_err(|f| self.fail(f.text))
    }

    fn file(&mut self, path: &str) -> Read<Vec<u8>> {
        self.names.read_file(path).map_err(|f| self.fail(f.text))
    }

    /// The message that an `http-errors` section has for a status. That there is none is told when all lines
    /// are read.
    fn section_message(&mut self, section: &str, status: u16, proxy: &str, place: &str) -> Option<Arc<[u8]>> {
        let span = self.line.span();
        self.late.push(match self.names.error_file(section, status) {
            Ok(Some(message)) => return Some(message),
            Ok(None) => remark(
                span,
                format!("config: proxy '{proxy}' : status '{status}' not declared in http-errors section '{section}' (at {place})."),
            ),
            Err(fault) => refusal(span, format!("proxy '{proxy}': {} (at {place}).", fault.text)),
        });
        None
    }

    fn answer(
        &mut self,
        asides: &mut Vec<String>,
        proxy: &str,
        place: &str,
    ) -> Read<(u16, Option<ErrorAnswer>)> {
        // Without a payload the body is empty.
        let mut reply = Reply { payload: Payload::Empty, ..Reply::error(0) };
        let mut headers = Vec::new();
        let mut typed = None;
        let mut message = None;
        while let Some(word) = self.next() {
            match word.text() {
                "status" => {
                    let code = crate::units::lenient(self.value("status", "<status_code>")?.text());
                    reply.status = u16::try_from(code).unwrap_or(0);
                }
                "content-type" => typed = Some(Arc::from(self.value("content-type", "<ctype>")?.text())),
                "default-errorfiles" => reply.payload = Payload::ErrorFile,
                "errorfile" => {
                    let path = self.value("errorfile", "<fmt>")?.text();
                    message = Some(errors::read(path).map_err(|why| self.fail(why))?);
                    reply.payload = Payload::ErrorFile;
                }
                "errorfiles" => {
                    let section = self.value("errorfiles", "<name>")?.text();
                    message = self.section_message(section, reply.status, proxy, place);
                    reply.payload = Payload::ErrorFile;
                }
                "file" => {
                    let path = self.value("file", "<file>")?.text();
                    reply.payload = Payload::Bytes(self.file(path)?.into());
                }
                "lf-file" => {
                    let path = self.value("lf-file", "<file>")?.text();
                    let text = self.file(path)?;
                    reply.payload = Payload::Format(Arc::new(self.format(&text)?));
                }
                "string" => reply.payload = Payload::Bytes(self.value("string", "<str>")?.bytes().into()),
                "lf-string" => {
                    let text = self.value("lf-string", "<fmt>")?.bytes();
                    reply.payload = Payload::Format(Arc::new(self.format(text)?));
                }
                "hdr" => {
                    let missing = |r: &Self| r.fail("'hdr' expects <name> and <value> as arguments");
                    let name = self.next().ok_or_else(|| missing(self))?.bytes();
                    let value = self.next().ok_or_else(|| missing(self))?.bytes();
                    headers.push((name.into(), self.format(value)?));
                }
                other => return Err(self.fail(format!("unknown keyword '{other}'."))),
            }
        }
        let own = match &reply.payload {
            Payload::Bytes(bytes) => !bytes.is_empty(),
            Payload::Format(format) => format.constant() != Some(b""),
            _ => false,
        };
        match &typed {
            None if own => {
                return Err(self.fail("a content type must be defined when non-empty payload is configured"));
            }
            Some(ctype) if matches!(reply.payload, Payload::ErrorFile) => asides.push(format!(
                "content-type '{ctype}' ignored by the http reply when used with an errorfile."
            )),
            Some(ctype) if !own => asides.push(format!(
                "content-type '{ctype}' ignored by the http reply because neither errorfile nor payload defined."
            )),
            _ => {}
        }
        if matches!(reply.payload, Payload::ErrorFile) {
            if !headers.is_empty() {
                asides.push("hdr parameters ignored by the http reply when used with an errorfile.".into());
            }
            return Ok((reply.status, message.map(ErrorAnswer::Message)));
        }
        reply.content_type = typed.filter(|_| own);
        reply.headers = headers.into();
        Ok((reply.status, Some(ErrorAnswer::Reply(Arc::new(reply)))))
    }
}
