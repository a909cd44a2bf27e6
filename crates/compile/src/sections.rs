//! The first pass: sections in order, each line by the entry of its keyword.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lang::fetch::Userlist;
use program::log::{Format, Ring};
use syntax::{Diagnostics, Section, Sources, Tree, Word};

use crate::draft::{Draft, Kind};
use crate::global::{self, GlobalDraft};
use crate::proxy;
use crate::statement::{LineRef, Statement, Step, Surroundings};
use crate::users;

/// Everything that the first pass found.
pub(crate) struct Drafts {
    pub global: GlobalDraft,
    pub proxies: Vec<Draft>,
    pub http_errors: HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
    pub users: HashMap<Box<str>, Arc<Userlist>>,
    pub rings: Vec<Ring>,
}

/// Reads all sections.
pub(crate) fn read(tree: &Tree, sources: &Sources, notes: &mut Diagnostics) -> Drafts {
    let around = Surroundings { sources };
    let mut out = Drafts {
        global: GlobalDraft::default(),
        proxies: Vec::new(),
        http_errors: HashMap::new(),
        users: HashMap::new(),
        rings: Vec::new(),
    };
    let mut defaults: HashMap<usize, Draft> = HashMap::new();
    for (index, section) in tree.sections.iter().enumerate() {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        match section.word() {
            "global" => lines(section, number, &around, notes, |s| global::line(s, &mut out.global)),
            "defaults" => {
                let kind = Kind::Defaults { named: section.name.is_some() };
                let mut draft = start(kind, section, number, &defaults);
                lines(section, number, &around, notes, |s| proxy::line(s, &mut draft));
                defaults.insert(index, draft);
            }
            "frontend" | "backend" | "listen" => {
                let kind = match section.word() {
                    "frontend" => Kind::Frontend,
                    "backend" => Kind::Backend,
                    _ => Kind::Listen,
                };
                let mut draft = start(kind, section, number, &defaults);
                lines(section, number, &around, notes, |s| proxy::line(s, &mut draft));
                out.proxies.push(draft);
            }
            "userlist" => {
                let list = users::section(section, number, &around, notes);
                out.users.insert(section.name().into(), Arc::new(list));
            }
            "http-errors" => http_errors(section, number, &around, notes, &mut out.http_errors),
            "ring" => ring(section, number, &around, notes, &mut out.rings),
            "mailers" | "traces" => {
                notes.warning(
                    section.header.span(),
                    format!("'{}' sections have no effect in Harrier yet.", section.word()),
                );
            }
            other => {
                let text = format!("'{other}' sections are not supported yet by Harrier (planned)");
                notes.alert(section.header.span(), text);
            }
        }
    }
    out
}

fn start(kind: Kind, section: &Section, number: u32, defaults: &HashMap<usize, Draft>) -> Draft {
    let base = section.inherits.section().and_then(|i| defaults.get(&i));
    let mut draft = base.map_or_else(|| Draft::new(kind), |d| d.inherit(kind));
    (draft.name, draft.span, draft.section) = (section.name().into(), section.span(), number);
    draft
}

fn lines(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    mut each: impl FnMut(&mut Statement<'_>) -> Step,
) {
    for (index, line) in section.lines.iter().enumerate() {
        let at = LineRef { section: number, line: u32::try_from(index).unwrap_or(u32::MAX) };
        let args = line.cursor();
        let mut s = Statement { line, at, args, notes, around, section: section.word() };
        if let Err(diagnostic) = each(&mut s) {
            notes.push(diagnostic);
        }
    }
}

fn http_errors(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    all: &mut HashMap<Box<str>, BTreeMap<u16, Arc<[u8]>>>,
) {
    if section.name().is_empty() {
        return notes.alert(section.header.span(), "http-errors section requires a name.");
    }
    let mut messages = BTreeMap::new();
    lines(section, number, around, notes, |s| match s.keyword() {
        "errorfile" => {
            let (status, message) = proxy::errors::file(s)?;
            messages.insert(status, message);
            Ok(())
        }
        other => Err(s.fail(format!("unknown keyword '{other}' in 'http-errors' section"))),
    });
    if all.insert(section.name().into(), messages).is_some() {
        let text = format!("http-errors section '{}' already exists (declared before).", section.name());
        notes.alert(section.span(), text);
    }
}

fn ring(
    section: &Section,
    number: u32,
    around: &Surroundings<'_>,
    notes: &mut Diagnostics,
    rings: &mut Vec<Ring>,
) {
    if section.name().is_empty() {
        return notes.alert(section.header.span(), "missing ring name");
    }
    let mut ring = Ring {
        name: section.name().into(),
        description: "".into(),
        format: Format::Local,
        maxlen: 1024,
        size: 16384,
    };
    lines(section, number, around, notes, |s| ring_line(s, &mut ring));
    rings.push(ring);
}

fn ring_line(s: &mut Statement<'_>, ring: &mut Ring) -> Step {
    match s.keyword() {
        "description" => {
            ring.description = s.args.eat_rest().iter().map(Word::text).collect::<Vec<_>>().join(" ").into()
        }
        "format" => {
            let word = s.word("format: missing name")?;
            ring.format =
                crate::log::format(word.text()).ok_or_else(|| s.fail(format!("unknown format '{word}'.")))?;
        }
        "maxlen" => ring.maxlen = s.count("maxlen expects a positive integer")?.max(1) as usize,
        "size" => ring.size = usize::try_from(s.size("size")?).unwrap_or(usize::MAX).clamp(1, 1 << 30),
        "timeout" => drop(s.args.eat_rest()),
        other @ ("server" | "backing-file") => {
            return Err(s.fail(format!("'{other}' of a ring is not supported yet by Harrier (planned)")));
        }
        other => return Err(s.fail(format!("unknown keyword '{other}' in 'ring' section"))),
    }
    Ok(())
}
