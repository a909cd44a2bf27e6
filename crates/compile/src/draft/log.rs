//! `log` lines while they are read.

use std::sync::Arc;

use program::log::{Format, Sampling, Sink};
use syntax::Span;

use super::place::Named;

/// Where a target sends; rings are found by name once all sections are read.
#[derive(Clone, Debug)]
pub(crate) enum SinkDraft {
    Known(Sink),
    Ring(Named),
    /// A backend of logs.
    Backend(Named),
    /// A syslog server over a stream.
    Stream(model::server::Target),
}

/// A `log` line with a target.
#[derive(Clone, Debug)]
pub(crate) struct TargetDraft {
    pub sink: SinkDraft,
    /// `None`: whatever `log-send-hostname` makes the default.
    pub format: Option<Format>,
    pub len: usize,
    pub facility: u8,
    pub max_level: u8,
    pub min_level: u8,
    pub sample: Option<Arc<Sampling>>,
    pub profile: Option<Named>,
    /// Where the line stands.
    pub span: Span,
}

/// Which of the lines of `global` stand above a line: `log global` means those and no later one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Above {
    pub from: usize,
    pub to: usize,
}

/// A `log` line.
#[derive(Clone, Debug)]
pub(crate) enum LogLine {
    Global(Above),
    Own(TargetDraft),
}

/// The `log` lines of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogDraft {
    /// In order.
    pub lines: Vec<LogLine>,
    /// Where those of `global` begin that `no log` has not taken back: who took the others over keeps them.
    from: usize,
}

impl LogDraft {
    /// What `log global` means from here on, of the lines of `global`.
    pub fn above(&self) -> Above {
        Above { from: self.from, to: self.lines.len() }
    }

    /// `no log` in `global`.
    pub fn take_back(&mut self) {
        self.from = self.lines.len();
    }

    /// `log global`, which counts once however often it is said.
    pub fn inherit(&mut self, above: Above) {
        let said = self.lines.iter_mut().find_map(|line| match line {
            LogLine::Global(said) => Some(said),
            LogLine::Own(_) => None,
        });
        match said {
            Some(said) => said.to = above.to,
            None => self.lines.push(LogLine::Global(above)),
        }
    }
}
