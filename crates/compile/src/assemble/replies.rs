//! `http-error`: an answer made of parts (manual, section 4.2).

use std::sync::Arc;

use lang::action::Payload;
use lang::places::Place;
use lang::{LogFormat, Names, Reply};
use program::proxy::ErrorAnswer;
use syntax::{Diagnostic, Diagnostics, Line, Word};

use super::Assembly;
use crate::draft::Draft;
use crate::names::Resolver;
use crate::proxy::errors;
use crate::statement::LineRef;

/// One line being read.
struct Reader<'g, 'r> {
    line: &'g Line,
    at: usize,
    registry: &'g lang::Registry,
    names: Resolver<'r>,
}

impl Assembly<'_> {
    /// The status and the answer of an `http-error` line.
    pub(super) fn http_error(
        &mut self,
        index: usize,
        p: &Draft,
        at: LineRef,
        notes: &mut Diagnostics,
    ) -> Option<(u16, ErrorAnswer)> {
        let line = self.ground.line(at)?;
        let registry = self.ground.registry;
        let mut reader = Reader { line, at: 1, registry, names: self.resolver(index, p, at) };
        reader.answer().map_err(|diagnostic| notes.push(diagnostic)).ok()
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

    fn value(&mut self, name: &str) -> Read<&'g Word> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.fail(format!("'{name}' expects an argument."))),
        }
    }

    fn format(&mut self, bytes: &[u8]) -> Read<LogFormat> {
        let parsed = LogFormat::parse(bytes, Place::FrontHttpRes, self.registry, &mut self.names);
        parsed.map_err(|f| self.fail(f.text))
    }

    fn file(&mut self, path: &str) -> Read<Vec<u8>> {
        self.names.read_file(path).map_err(|f| self.fail(f.text))
    }

    fn answer(&mut self) -> Read<(u16, ErrorAnswer)> {
        let mut reply = Reply::error(0);
        let mut headers = Vec::new();
        let mut typed = None;
        while let Some(word) = self.next() {
            match word.text() {
                "status" => reply.status = self.value("status")?.text().parse().unwrap_or(0),
                "content-type" => typed = Some(Arc::from(self.value("content-type")?.text())),
                "default-errorfiles" => reply.payload = Payload::ErrorFile,
                "errorfile" => {
                    let path = self.value("errorfile")?.text();
                    let message = errors::read(path).map_err(|why| self.fail(why))?;
                    return Ok((reply.status, ErrorAnswer::Message(message)));
                }
                "errorfiles" => {
                    let section = self.value("errorfiles")?.text();
                    let message = self.names.error_file(Some(section), reply.status);
                    let message = message.map_err(|f| self.fail(f.text))?;
                    return Ok((reply.status, ErrorAnswer::Message(message)));
                }
                "file" => {
                    let path = self.value("file")?.text();
                    reply.payload = Payload::Bytes(self.file(path)?.into());
                }
                "lf-file" => {
                    let path = self.value("lf-file")?.text();
                    let text = self.file(path)?;
                    reply.payload = Payload::Format(Arc::new(self.format(&text)?));
                }
                "string" => reply.payload = Payload::Bytes(self.value("string")?.bytes().into()),
                "lf-string" => {
                    let text = self.value("lf-string")?.bytes();
                    reply.payload = Payload::Format(Arc::new(self.format(text)?));
                }
                "hdr" => {
                    let name = self.value("hdr")?.bytes();
                    let value = self.value("hdr")?.bytes();
                    headers.push((name.into(), self.format(value)?));
                }
                other => return Err(self.fail(format!("unknown keyword '{other}'."))),
            }
        }
        reply.content_type = typed;
        reply.headers = headers.into();
        Ok((reply.status, ErrorAnswer::Reply(Arc::new(reply))))
    }
}
