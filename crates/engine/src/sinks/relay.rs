//! Messages of others on their way through (`log-forward`, manual, section 12.6): each target has them in its
//! own format, with what the message says of itself where it says it.

use std::io::Write;

use program::forward::{Forward, HostRule};
use program::log::{Format, Sink, Target};
use wire::syslog::{Form, MONTHS, Message};

use super::frame::{self, Stamp};
use super::send::{Sinks, is_sampled};

/// A message and whom it came from.
#[derive(Clone, Copy)]
pub struct Relayed<'r> {
    /// The message.
    pub message: Message<'r>,
    /// The address of its sender, if that has one.
    pub sender: Option<&'r str>,
    /// Nobody has looked into it (`option dont-parse-log`).
    pub unread: bool,
}

impl Sinks {
    /// Sends a message to all targets of a section that take its level, by datagrams with [`Sinks::flush`].
    /// One without a text is none.
    pub fn relay(&self, forward: &Forward, relayed: &Relayed<'_>) {
        let message = &relayed.message;
        if message.text.is_empty() {
            return;
        }
        let level = (message.priority.unwrap_or(0) & 7) as u8;
        for target in forward.log.targets.iter().filter(|t| level <= t.max_level) {
            if !target.sample.as_deref().is_none_or(is_sampled) {
                continue;
            }
            self.gather(target.sink, message.text, |line| self.write(forward, target, relayed, level, line));
        }
    }

    fn write(&self, forward: &Forward, target: &Target, relayed: &Relayed<'_>, level: u8, out: &mut Vec<u8>) {
        let program = self.program();
        // Of a profile only its tag counts here, as in HAProxy: the message is another's.
        let profile = target.profile.and_then(|at| program.log_profiles.get(at as usize));
        let tag = profile.and_then(|p| p.tag.as_deref()).map_or(relayed.message.tag, str::as_bytes);
        let relayed = &Relayed { message: Message { tag, ..relayed.message }, ..*relayed };
        let ring = match program.sinks.get(target.sink) {
            Some(Sink::Ring(index)) => program.rings.get(*index),
            _ => None,
        };
        let message = &relayed.message;
        let format = match ring {
            Some(ring) => ring.format,
            None if target.format_said => target.format,
            None => relayed.natural(forward.host),
        };
        let facility = message.priority.map_or(u16::from(target.facility), |p| p >> 3);
        let line = Line { relayed, format, facility, level: level.max(target.min_level), rule: forward.host };
        let start = out.len();
        line.append(out);
        out.extend_from_slice(message.text);
        let most = ring.map_or(target.len.saturating_sub(1), |r| r.maxlen);
        out.truncate(start.saturating_add(most));
        out.push(b'\n');
    }
}

impl Relayed<'_> {
    /// The format that a message goes on in where none is asked for: the one it came in, or a lesser one
    /// where too little is known for that.
    fn natural(&self, rule: HostRule) -> Format {
        let message = &self.message;
        let named = !message.host.is_empty() || rule != HostRule::Keep && self.sender().is_some();
        match message.form {
            Form::Rfc5424 if named => Format::Rfc5424,
            _ if named => Format::Rfc3164,
            _ if !message.tag.is_empty() => Format::Local,
            _ if message.priority.is_some() => Format::Priority,
            _ => Format::Raw,
        }
    }

    /// Whom it came from, as far as that is of interest.
    fn sender(&self) -> Option<&str> {
        self.sender.filter(|_| !self.unread)
    }
}

/// A line for one target.
struct Line<'l> {
    relayed: &'l Relayed<'l>,
    format: Format,
    facility: u16,
    level: u8,
    rule: HostRule,
}

impl Line<'_> {
    /// Appends what stands before the text.
    fn append(&self, out: &mut Vec<u8>) {
        let message = &self.relayed.message;
        let priority = self.facility * 8 + u16::from(self.level);
        // Writing into a Vec can't fail.
        let _ = match self.format {
            Format::Raw | Format::Iso => Ok(()),
            Format::Short | Format::Timed => write!(out, "<{}>", self.level),
            _ => write!(out, "<{priority}>"),
        };
        match self.format {
            Format::Raw | Format::Short | Format::Priority => {}
            Format::Timed | Format::Iso => {
                self.iso(out);
                out.push(b' ');
            }
            Format::Rfc5424 => {
                out.extend_from_slice(b"1 ");
                // A date that the sender does not know stays unknown.
                if message.form == Form::Rfc5424 && message.date.is_empty() {
                    out.push(b'-');
                } else {
                    self.iso(out);
                }
                out.push(b' ');
                let start = out.len();
                self.host(out);
                if out.len() == start {
                    out.push(b'-');
                }
                for field in [message.tag, message.process, message.kind, message.structured] {
                    out.push(b' ');
                    out.extend_from_slice(if field.is_empty() { b"-" } else { field });
                }
                out.push(b' ');
            }
            Format::Rfc3164 | Format::Local => {
                self.short_date(out);
                out.push(b' ');
                if self.format == Format::Rfc3164 {
                    let start = out.len();
                    self.host(out);
                    if out.len() == start {
                        out.extend_from_slice(b"localhost");
                    }
                    out.push(b' ');
                }
                if !message.tag.is_empty() {
                    out.extend_from_slice(message.tag);
                    if !message.process.is_empty() {
                        out.push(b'[');
                        out.extend_from_slice(message.process);
                        out.push(b']');
                    }
                    out.extend_from_slice(b": ");
                }
            }
        }
    }

    /// The host as `option host` wants it; nothing where nobody is known.
    fn host(&self, out: &mut Vec<u8>) {
        let own = self.relayed.message.host;
        let sender = self.relayed.sender().unwrap_or_default().as_bytes();
        match self.rule {
            HostRule::Replace if !sender.is_empty() => out.extend_from_slice(sender),
            HostRule::Fill | HostRule::Append if own.is_empty() => out.extend_from_slice(sender),
            HostRule::Append if !sender.is_empty() => {
                out.extend_from_slice(own);
                out.push(b',');
                out.extend_from_slice(sender);
            }
            _ => out.extend_from_slice(own),
        }
    }

    /// `2003-10-11T22:14:15.003Z`. A date of RFC 3164 tells neither year nor zone.
    fn iso(&self, out: &mut Vec<u8>) {
        let message = &self.relayed.message;
        match (message.form, message.month()) {
            (Form::Rfc5424, _) if !message.date.is_empty() => out.extend_from_slice(message.date),
            (Form::Rfc3164, Some(month)) => {
                let (year, now) = frame::year_and_month(rt::wall());
                // One that is still to come this year is of the last one.
                let year = if month > now { year - 1 } else { year };
                let _ = write!(out, "{year:04}-{:02}-", month + 1);
                let day = message.date.get(4..6).unwrap_or_default();
                out.extend(day.iter().map(|digit| if *digit == b' ' { b'0' } else { *digit }));
                out.push(b'T');
                out.extend_from_slice(message.date.get(7..).unwrap_or_default());
                out.extend_from_slice(b"-00:00");
            }
            _ => frame::stamp(out, rt::wall(), Stamp::Iso),
        }
    }

    /// `Oct 11 22:14:15`, as the sender's clock says it.
    fn short_date(&self, out: &mut Vec<u8>) {
        let message = &self.relayed.message;
        let number = |range: std::ops::Range<usize>| {
            message.date.get(range).and_then(|d| std::str::from_utf8(d).ok()).unwrap_or_default()
        };
        let month = number(5..7).parse::<usize>().ok().and_then(|m| MONTHS.get(m.wrapping_sub(1)));
        match (message.form, month) {
            (Form::Rfc3164, _) => out.extend_from_slice(message.date),
            (Form::Rfc5424, Some(month)) => {
                out.extend_from_slice(*month);
                let day = number(8..10);
                let _ = write!(out, " {:>2} {}", day.strip_prefix('0').unwrap_or(day), number(11..19));
            }
            _ => frame::stamp(out, rt::wall(), Stamp::Rfc3164),
        }
    }
}
