//! Diagnostics to the lines that people and tools read.
//!
//! The first line of each complaint is HAProxy's to the byte. Below it come the source line with a caret
//! under the words at fault, in the shape that HAProxy itself uses where it shows a line, and `help:` with
//! what to do. Those can be switched off, and colours are the caller's choice since only it knows whether a
//! terminal listens.

use crate::diagnostics::{Diagnostic, Diagnostics, Level, Style};
use crate::source::{Sources, Span};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most columns of a source line that are shown.
const WIDEST: usize = 118;

/// How to show diagnostics.
#[derive(Clone, Debug)]
pub struct Render<'r> {
    /// The number of the process, shown on every line.
    pub pid: u32,
    /// The version as in `-v`, shown before the first warning or error.
    pub version: &'r str,
    /// The path of the program, shown with the version.
    pub program: &'r str,
    /// Whether source lines, carets and help are shown.
    pub carets: bool,
    /// Whether to use colours.
    pub colours: bool,
    /// Diagnostic mode (`-dD`): show [`Level::Diag`] too.
    pub diag: bool,
    /// Show nothing (`-q`).
    pub quiet: bool,
    /// Say on success that the configuration is valid (`-V`).
    pub verbose: bool,
    /// Take warnings for errors (`-dW`, `zero-warning`).
    pub zero_warning: bool,
}

impl Default for Render<'_> {
    fn default() -> Self {
        Render {
            pid: std::process::id(),
            version: "",
            program: "",
            carets: true,
            colours: false,
            diag: false,
            quiet: false,
            verbose: false,
            zero_warning: false,
        }
    }
}

/// What checking a configuration ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// For the standard error output.
    pub errors: String,
    /// For the standard output.
    pub output: String,
    /// The exit status.
    pub status: i32,
}

impl Render<'_> {
    /// The complaints as text for the standard error output.
    pub fn text(&self, diagnostics: &Diagnostics, sources: &Sources) -> String {
        let mut out = String::new();
        if self.quiet {
            return out;
        }
        let mut greeted = false;
        for item in diagnostics.iter().filter(|item| self.diag || item.level > Level::Diag) {
            if item.level >= Level::Warning && !std::mem::replace(&mut greeted, true) {
                self.greet(&mut out);
            }
            self.one(item, sources, &mut out);
        }
        out
    }

    /// The complaints, the summary lines and the exit status, as `-c` gives them. `Error(s) found` is said
    /// once for each file with an error.
    pub fn verdict(&self, diagnostics: &Diagnostics, sources: &Sources) -> Verdict {
        let mut all = with_summaries(diagnostics, sources);
        if diagnostics.iter().any(Diagnostic::is_of_reading) {
            all.push(Diagnostic::plain(Level::Alert, "Fatal errors found in configuration."));
        } else if !diagnostics.has_errors() && diagnostics.has_common_warnings() && self.zero_warning {
            let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
            all.push(Diagnostic::plain(Level::Alert, text).styled(Style::Bare));
        }
        let failed = all.has_errors();
        let mut output = String::new();
        if !failed && !self.quiet {
            output.push_str(if diagnostics.has_warnings() { "Warnings were found.\n" } else { "" });
            output.push_str(if self.verbose { "Configuration file is valid\n" } else { "" });
        }
        Verdict { errors: self.text(&all, sources), output, status: i32::from(failed) }
    }

    fn greet(&self, out: &mut String) {
        if self.version.is_empty() {
            return;
        }
        let label = self.label(Level::Notice);
        let (pid, version, program) = (self.pid, self.version, self.program);
        let _ = writeln!(out, "{label}({pid}) : haproxy version is {version}");
        let _ = writeln!(out, "{label}({pid}) : path to executable is {program}");
    }

    fn label(&self, level: Level) -> String {
        let (text, colour) = match level {
            Level::Diag => ("[DIAG]", "36"),
            Level::Notice => ("[NOTICE]", "34"),
            Level::Warning => ("[WARNING]", "33"),
            Level::Alert => ("[ALERT]", "31"),
        };
        let padding = " ".repeat(11 - text.len());
        format!("{}{padding}", self.paint(text, colour))
    }

    fn paint(&self, text: &str, colour: &str) -> String {
        if self.colours { format!("\x1b[1;{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn one(&self, item: &Diagnostic, sources: &Sources, out: &mut String) {
        let span = item.span.unwrap_or_default();
        let place = format!("[{}:{}]", sources.name(span.file), span.line);
        let head = match item.style {
            Style::Parsing => format!("config : parsing {place} : "),
            Style::Reading => format!("config : parsing {place}: "),
            Style::Titled => format!("config : Parsing {place}: "),
            Style::Bracket => format!("config : {place} : "),
            Style::Plain => "config : ".to_owned(),
            Style::Bare => String::new(),
        };
        let _ = writeln!(out, "{}({}) : {head}{}", self.label(item.level), self.pid, item.text);
        if !self.carets {
            return;
        }
        if let Some(span) = item.span {
            self.source(sources.line(span), span, out);
        }
        if let Some(help) = &item.help {
            let _ = writeln!(out, "  {} {help}", self.paint("help:", "32"));
        }
    }

    /// The part of a source line around the span, and carets.
    fn source(&self, line: &[u8], span: Span, out: &mut String) {
        let start = (span.start as usize).min(line.len());
        let end = (span.end as usize).clamp(start, line.len());
        let indent = line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count().min(start);
        let first = if start - indent < WIDEST * 3 / 4 { indent } else { start - WIDEST / 2 };
        let ahead = printable(line.get(first..start).unwrap_or_default());
        let marked = printable(line.get(start..end.min(start + WIDEST)).unwrap_or_default());
        let behind = printable(line.get(end..line.len().min(end + WIDEST)).unwrap_or_default());
        let shown: String = format!("{ahead}{marked}{behind}").chars().take(WIDEST).collect();
        if shown.trim().is_empty() {
            return;
        }
        let room = WIDEST.saturating_sub(ahead.chars().count()).max(1);
        let carets = "^".repeat(marked.chars().count().clamp(1, room));
        let gap = " ".repeat(ahead.chars().count());
        let _ = writeln!(out, "  {}\n  {gap}{}", shown.trim_end(), self.paint(&carets, "32"));
    }
}

/// The complaints, with `Error(s) found` behind the last error of each file.
fn with_summaries(diagnostics: &Diagnostics, sources: &Sources) -> Diagnostics {
    let mut last = BTreeMap::new();
    for (at, item) in diagnostics.iter().enumerate().filter(|(_, item)| item.is_of_reading()) {
        if let Some(span) = item.span {
            last.insert(span.file, at);
        }
    }
    let mut all = Diagnostics::new();
    for (at, item) in diagnostics.iter().enumerate() {
        all.push(item.clone());
        if let Some(file) = item.span.map(|span| span.file).filter(|file| last.get(file) == Some(&at)) {
            let name = sources.name(file);
            let text = format!("Error(s) found in configuration file : {name}");
            all.push(Diagnostic::plain(Level::Alert, text));
        }
    }
    all
}

/// Text with one column for each character.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| {
            if c == '\t' || c == '\r' {
                ' '
            } else if c.is_control() {
                '?'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{FileId, Source};

    fn world() -> (Diagnostics, Sources) {
        let mut sources = Sources::default();
        sources.add(Source::new("t.cfg", b"listen a\n\tbalanxe \xc3\xa9 x\n".to_vec()));
        let span = Span { file: FileId(0), line: 2, start: 1, end: 8 };
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::alert(span, "unknown keyword 'balanxe'").help("try 'balance'"));
        diagnostics.push(Diagnostic::plain(Level::Diag, "odd"));
        (diagnostics, sources)
    }

    #[test]
    fn the_first_line_is_haproxys_and_ours_follow() {
        let (diagnostics, sources) = world();
        let render = Render { pid: 7, version: "3.5-dev5", program: "/bin/h", ..Render::default() };
        let verdict = render.verdict(&diagnostics, &sources);
        assert_eq!(
            verdict.errors,
            "[NOTICE]   (7) : haproxy version is 3.5-dev5\n\
             [NOTICE]   (7) : path to executable is /bin/h\n\
             [ALERT]    (7) : config : parsing [t.cfg:2] : unknown keyword 'balanxe'\n  \
               balanxe \u{e9} x\n  ^^^^^^^\n  help: try 'balance'\n\
             [ALERT]    (7) : config : Error(s) found in configuration file : t.cfg\n\
             [ALERT]    (7) : config : Fatal errors found in configuration.\n"
        );
        assert_eq!((verdict.status, verdict.output.as_str()), (1, ""));
        let bare = Render { carets: false, version: "", ..render }.text(&diagnostics, &sources);
        assert_eq!(bare, "[ALERT]    (7) : config : parsing [t.cfg:2] : unknown keyword 'balanxe'\n");
    }

    #[test]
    fn warnings_fail_only_when_asked_to() {
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::plain(Level::Warning, "hm").styled(Style::Bare));
        let sources = Sources::default();
        let render = Render { pid: 1, verbose: true, ..Render::default() };
        let verdict = render.verdict(&diagnostics, &sources);
        assert_eq!(verdict.output, "Warnings were found.\nConfiguration file is valid\n");
        assert_eq!((verdict.status, verdict.errors.as_str()), (0, "[WARNING]  (1) : hm\n"));
        let strict = Render { zero_warning: true, ..render.clone() }.verdict(&diagnostics, &sources);
        assert!(
            strict.errors.ends_with(
                "[ALERT]    (1) : Some warnings were found and 'zero-warning' is set. Aborting.\n"
            )
        );
        assert_eq!((strict.status, strict.output.as_str()), (1, ""));
        let quiet = Render { quiet: true, zero_warning: true, ..render }.verdict(&diagnostics, &sources);
        assert_eq!((quiet.status, quiet.errors.as_str(), quiet.output.as_str()), (1, "", ""));
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let mut sources = Sources::default();
        let line = format!("{} here {}\n", "a".repeat(5000), "b".repeat(5000));
        sources.add(Source::new("x", line.into_bytes()));
        let mut diagnostics = Diagnostics::new();
        diagnostics.alert(Span { file: FileId(0), line: 1, start: 5001, end: 5005 }, "odd");
        let text = Render::default().text(&diagnostics, &sources);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].len() <= WIDEST + 2, "{}", lines[1].len());
        let caret = lines[2].find('^').expect("a caret");
        assert_eq!(&lines[1][caret..caret + 4], "here");
    }
}
