//! `fcgi-app` sections (manual, section 10.1.1).

use syntax::{Diagnostic, Diagnostics, Modifier, Section, Sources, Span, Style, Word};

use crate::draft::{Draft, Kind, LineRef, LogDraft};
use crate::notes::{refusal, remark};
use crate::statement::{Statement, Step};
use crate::{log, units};

/// A section while it is read.
pub(crate) struct FcgiDraft {
    /// Its name, its place, its ACLs and its rules, as those of a backend that nobody else ever sees.
    pub draft: Draft,
    pub docroot: Option<Box<str>>,
    pub index: Option<Box<str>>,
    pub path_info: Option<pattern::Regex>,
    pub errors: LogDraft,
    /// `pass-header` lines.
    pub pass: Vec<LineRef>,
    /// `set-param` lines.
    pub set: Vec<LineRef>,
    pub get_values: bool,
    pub keep_conn: bool,
    pub mpxs_conns: bool,
    pub max_reqs: Option<u32>,
}

/// Opens a section.
pub(crate) fn header(
    section: &Section,
    number: u32,
    known: &[FcgiDraft],
    sources: &Sources,
    notes: &mut Diagnostics,
) -> Option<FcgiDraft> {
    let (name, span) = (section.name(), section.header.span());
    if name.is_empty() {
        notes.alert(span, "'fcgi-app' expects <name> as argument.");
        return None;
    }
    if let Some(extra) = section.header.args().get(1) {
        notes.alert(extra.span(), format!("'fcgi-app' cannot handle unexpected argument '{extra}'."));
    }
    if let Some(other) = known.iter().find(|app| *app.draft.name == *name) {
        let at = format!("{}:{}", sources.name(other.draft.span.file), other.draft.span.line);
        let text = format!("fcgi-app section '{name}' has the same name as another one declared at {at}.");
        notes.push(Diagnostic::alert(span, text).styled(Style::Titled));
        return None;
    }
    let mut draft = Draft::new(Kind::Backend);
    (draft.name, draft.span, draft.section) = (name.into(), section.span(), number);
    draft.mode = program::Mode::Http;
    Some(FcgiDraft {
        draft,
        docroot: None,
        index: None,
        path_info: None,
        errors: LogDraft::default(),
        pass: Vec::new(),
        set: Vec::new(),
        get_values: false,
        keep_conn: true,
        mpxs_conns: false,
        max_reqs: None,
    })
}

/// One line of a section.
pub(crate) fn line(s: &mut Statement<'_>, app: &mut FcgiDraft) -> Step {
    if s.line.modifier() != Modifier::Set && s.keyword() != "option" {
        return Err(s.fail_at(s.line.span(), crate::keyword::NO_NEGATION));
    }
    match s.keyword() {
        "docroot" => app.docroot = Some(one(s, "path")?.text().into()),
        "index" => app.index = Some(one(s, "filename")?.text().into()),
        "path-info" => {
            let word = one(s, "regex")?.clone();
            let regex = pattern::Regex::new(word.bytes(), false);
            app.path_info = Some(regex.map_err(|why| s.fail(format!("'{word}' : {why}.")))?);
        }
        "log-stderr" => errors(s, &mut app.errors)?,
        "pass-header" => {
            s.word("'pass-header' expects <name> as arguments.")?;
            s.args.eat_rest();
            app.pass.push(s.at);
        }
        "set-param" => {
            s.word("'set-param' expects <name> and <value> as arguments.")?;
            s.word("'set-param' expects <name> and <value> as arguments.")?;
            s.args.eat_rest();
            app.set.push(s.at);
        }
        "acl" => {
            let name = s.next().map_or("", Word::text);
            if name == "or" {
                let text = "acl name 'or' will never match. 'or' is used to express a logical disjunction within a condition.";
                return Err(s.fail(text));
            }
            s.args.eat_rest();
            app.draft.acls.push(s.at);
        }
        "option" => option(s, app)?,
        other => return Err(s.fail(format!("unknown keyword '{other}' in 'fcgi-app' section"))),
    }
    Ok(())
}

/// The one word of a line.
fn one<'s>(s: &mut Statement<'s>, what: &str) -> Step<&'s Word> {
    let keyword = s.keyword();
    let word = s.word(format!("'{keyword}' expects <{what}> as argument."))?;
    match s.next() {
        Some(extra) => {
            Err(s.fail(format!("'{keyword} {word}' cannot handle unexpected argument '{extra}'.")))
        }
        None => Ok(word),
    }
}

/// `log-stderr`, which is a `log` line under another name.
fn errors(s: &mut Statement<'_>, errors: &mut LogDraft) -> Step {
    log::line(s, errors, false).map_err(|diagnostic| {
        let text = match diagnostic.text.strip_prefix("log : ") {
            Some(text) => format!("log-stderr : {text}"),
            None => diagnostic.text.clone(),
        };
        Diagnostic { text, ..diagnostic }
    })
}

fn option(s: &mut Statement<'_>, app: &mut FcgiDraft) -> Step {
    let set = s.line.modifier() == Modifier::Set;
    let name = s.word("'option' expects an option name.")?.text();
    let end = |s: &mut Statement<'_>| match s.next() {
        Some(extra) => Err(s.fail(format!("'option {name}' cannot handle unexpected argument '{extra}'."))),
        None => Ok(()),
    };
    // `default` stands for what holds unless something is said.
    let value = |usual: bool| if s.line.modifier() == Modifier::Default { usual } else { set };
    match name {
        "keep-conn" => app.keep_conn = value(true),
        "get-values" => app.get_values = value(false),
        "mpxs-conns" => app.mpxs_conns = value(false),
        "max-reqs" => {
            if !set {
                return Err(s.fail("negation/default is not supported for option 'max-reqs'."));
            }
            let word = s.word("option 'max-reqs' expects an integer argument.")?;
            let number = u32::try_from(units::lenient(word.text())).ok().filter(|n| *n > 0);
            let text = "option 'max-reqs' expects a strictly positive integer argument.";
            app.max_reqs = Some(number.ok_or_else(|| s.fail(text))?);
        }
        other => return Err(s.fail(format!("unknown option '{other}'."))),
    }
    end(s)
}

impl FcgiDraft {
    /// Requests that a connection carries at a time.
    pub fn most(&self) -> u32 {
        if self.mpxs_conns { self.max_reqs.unwrap_or(1) } else { 1 }
    }

    /// What the whole section shows.
    pub fn check(&self, notes: &mut Diagnostics) {
        let (name, span) = (&self.draft.name, self.draft.span);
        if self.docroot.is_none() {
            notes.push(refusal(span, format!("fcgi-app '{name}': no docroot configured.")));
        }
        if self.max_reqs.is_some_and(|most| most > 1) && !self.mpxs_conns && !self.get_values {
            let text =
                format!("fcgi-app '{name}': multiplexing not supported, ignore the option 'max-reqs'.");
            notes.push(remark(span, text));
        }
    }
}

/// What is said of a backend and its application: both have to be there, or neither.
pub(crate) fn check_proxy(p: &Draft, wanted: Option<(&str, Span)>, known: bool, notes: &mut Diagnostics) {
    let fcgi = |server: &&crate::draft::ServerDraft| server.proto == Some(crate::mux::Mux::Fcgi);
    let Some((name, span)) = wanted else {
        if let Some(server) = p.servers.iter().find(fcgi).filter(|_| p.mode == program::Mode::Http) {
            let text =
                format!("proxy '{}': FCGI server '{}' has no FCGI app configured.", p.name, server.name);
            notes.push(refusal(server.span, text));
        }
        return;
    };
    if !known {
        notes.push(refusal(span, format!("proxy '{}' : fcgi-app '{name}' not found.", p.name)));
    } else if p.mode != program::Mode::Http {
        let text = format!("proxy '{}': FCGI application cannot be used in non-HTTP mode.", p.name);
        notes.push(refusal(span, text));
    } else if !p.servers.iter().any(|server| fcgi(&server)) {
        let text = format!("proxy '{}': FCGI app configured but no FCGI server found.", p.name);
        notes.push(refusal(span, text));
    }
}
