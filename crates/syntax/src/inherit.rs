//! Section headers: names, and which `defaults` section a proxy starts from (manual, chapter 4).
//!
//! Names of proxies and of defaults sections share one space. A defaults section may have a successor of the
//! same name as long as nobody asked for it by name. Using one section both by name and because it happens to
//! be the last one is worth a warning each time.

use crate::diagnostics::{Diagnostic, Diagnostics, Level, Style};
use crate::source::{Sources, Span};
use crate::tree::{Inherited, Role, Section, Tree};
use crate::word::{Line, Word};
use std::collections::HashMap;

/// How a defaults section has been used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    by_name: bool,
    as_last: bool,
}

/// What is known of the sections so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    /// Proxies by name.
    proxies: HashMap<Box<str>, usize>,
    /// Defaults sections by name: the latest, and the one before it.
    defaults: HashMap<Box<str>, (usize, Option<usize>)>,
    used: HashMap<usize, Used>,
    last: Option<usize>,
}

impl Headers {
    /// Opens a section: checks its header, resolves what it inherits and adds it to the tree.
    pub(crate) fn open(
        &mut self,
        role: Role,
        header: Line,
        tree: &mut Tree,
        sources: &Sources,
        diagnostics: &mut Diagnostics,
    ) {
        let mut opening = Opening { headers: self, tree, sources, diagnostics, header: &header };
        let (name, inherits) = match role {
            Role::Global => (opening.global(), Inherited::Nothing),
            Role::Defaults => opening.defaults(),
            Role::Proxy => opening.proxy(),
            Role::Other => (header.args().first().cloned(), Inherited::Nothing),
        };
        tree.sections.push(Section { header, role, name, inherits, lines: Vec::new() });
    }
}

struct Opening<'o> {
    headers: &'o mut Headers,
    tree: &'o Tree,
    sources: &'o Sources,
    diagnostics: &'o mut Diagnostics,
    header: &'o Line,
}

impl Opening<'_> {
    fn global(&mut self) -> Option<Word> {
        if let Some(extra) = self.header.args().first() {
            // HAProxy looks at these before it reads the lines of any section.
            let text = format!("'global' cannot handle unexpected argument '{extra}'.");
            self.diagnostics.push(Diagnostic::alert(extra.span(), text).of_words());
        }
        None
    }

    fn defaults(&mut self) -> (Option<Word>, Inherited) {
        let args = self.header.args();
        let from_at = match args {
            [_, from, ..] if from == "from" => Some(1),
            [from, _, ..] if from == "from" => Some(0),
            _ => None,
        };
        let name = if from_at == Some(0) { None } else { args.first().cloned() };
        let inherits = match from_at {
            Some(at) => self.named(args.get(at + 1), at, "defaults", name.as_ref()),
            None => Inherited::Nothing,
        };
        let index = self.tree.sections.len();
        if let Some(name) = &name {
            self.check_defaults_name(name);
            let before = self.headers.defaults.get(name.text()).map(|(latest, _)| *latest);
            self.headers.defaults.insert(name.text().into(), (index, before));
        }
        self.headers.last = Some(index);
        (name, inherits)
    }

    fn proxy(&mut self) -> (Option<Word>, Inherited) {
        let word = self.header.keyword();
        let Some((name, rest)) = self.header.args().split_first() else {
            self.diagnostics.alert(word.span(), format!("'{word}' expects an <id> argument"));
            return (None, Inherited::Nothing);
        };
        let kind = if word == "listen" { "proxy" } else { word.text() };
        self.check_characters(name);
        // HAProxy gives a backend with other words behind its name up without a word, before it looks for
        // anybody else of that name.
        if word != "backend" || rest.first().is_none_or(|next| next == "from") {
            self.check_proxy_name(name, kind);
        }
        let inherits = match rest {
            [from, defaults, extra @ ..] if from == "from" => {
                if let Some(extra) = extra.first() {
                    let text = format!("'{word}' cannot handle unexpected argument '{extra}'.");
                    self.diagnostics.alert(extra.span(), text);
                }
                self.named(Some(defaults), 1, kind, Some(name))
            }
            [extra, ..] if word != "backend" => {
                let text = "please use the 'bind' keyword for listening addresses.";
                self.diagnostics.alert(extra.span(), text);
                self.unnamed()
            }
            [_, ..] => Inherited::Nothing,
            [] => self.unnamed(),
        };
        let index = self.tree.sections.len();
        self.headers.proxies.entry(name.text().into()).or_insert(index);
        (Some(name.clone()), inherits)
    }

    /// The last defaults section, for who names none.
    fn unnamed(&mut self) -> Inherited {
        let Some(index) = self.headers.last else { return Inherited::Nothing };
        self.use_as(index, |used| used.as_last = true);
        Inherited::Last(index)
    }

    /// The defaults section behind `from`.
    fn named(&mut self, from: Option<&Word>, at: usize, kind: &str, name: Option<&Word>) -> Inherited {
        let wanted = from.map_or("", Word::text);
        let name = name.map_or("", Word::text);
        let span = from.or(self.header.args().get(at)).unwrap_or(self.header.keyword()).span();
        let Some(&(index, before)) = self.headers.defaults.get(wanted) else {
            let text = format!("defaults section '{wanted}' not found for {kind} '{name}'.");
            let near = crate::nearest(wanted, self.headers.defaults.keys().map(|name| &**name));
            self.diagnostics.push(Diagnostic::alert(span, text).meant(near));
            return Inherited::Nothing;
        };
        if let Some(before) = before {
            let (latest, before) = (self.place(index), self.place(before));
            let text = format!(
                "ambiguous defaults section name '{wanted}' referenced by {kind} '{name}' exists at least at {latest} and {before}."
            );
            self.diagnostics.push(Diagnostic::alert(span, text).tolerated());
        }
        if let Some(c) = invalid_character(wanted) {
            let found = self.place(index);
            let text = format!(
                "character '{c}' is not permitted in defaults section name '{wanted}' when designated by its name (section found at {found})."
            );
            self.diagnostics.push(Diagnostic::alert(span, text).tolerated());
        }
        self.use_as(index, |used| used.by_name = true);
        Inherited::Named(index)
    }

    fn use_as(&mut self, index: usize, mark: impl FnOnce(&mut Used)) {
        let used = self.headers.used.entry(index).or_default();
        mark(used);
        if used.by_name && used.as_last {
            let name = self.tree.sections.get(index).map_or("", Section::name);
            let place = self.place(index);
            let text = format!(
                "defaults section '{name}' (declared at {place}) is explicitly referenced by another proxy and \
                 implicitly used here. To avoid any ambiguity don't mix both usage. Add a last defaults section not \
                 explicitly used or always use explicit references."
            );
            self.diagnostics.warning(self.header.span(), text);
        }
    }

    fn check_characters(&mut self, name: &Word) {
        if let Some(c) = invalid_character(name.text()) {
            let word = self.header.keyword();
            let text = format!("character '{c}' is not permitted in '{word}' name '{name}'.");
            self.diagnostics.push(Diagnostic::alert(name.span(), text).tolerated());
        }
    }

    fn check_proxy_name(&mut self, name: &Word, kind: &str) {
        let defaults = self.headers.defaults.get(name.text()).map(|(latest, _)| *latest);
        if let Some(other) = self.headers.proxies.get(name.text()).copied().or(defaults) {
            self.same_name(name, kind, other);
        }
    }

    fn check_defaults_name(&mut self, name: &Word) {
        if let Some(&other) = self.headers.proxies.get(name.text()) {
            return self.same_name(name, "defaults", other);
        }
        let Some(&(latest, _)) = self.headers.defaults.get(name.text()) else { return };
        if self.headers.used.get(&latest).is_some_and(|used| used.by_name) {
            let place = self.place(latest);
            let text = format!(
                "defaults '{name}' has the same name as another defaults section declared at {place} which was \
                 explicitly referenced hence cannot be replaced. Please remove or rename one of the offending \
                 defaults section."
            );
            self.diagnostics.push(Diagnostic::alert(name.span(), text).styled(Style::Titled));
        }
    }

    fn same_name(&mut self, name: &Word, kind: &str, other: usize) {
        let word = self.tree.sections.get(other).map_or("", Section::word);
        let other_kind = if word == "listen" { "proxy" } else { word };
        let place = self.place(other);
        let text = format!(
            "{kind} '{name}' has the same name as {other_kind} '{name}' declared at {place}. This is no longer \
             supported as of 3.3. Please rename one or the other."
        );
        self.diagnostics.push(Diagnostic::new(Level::Alert, name.span(), text).styled(Style::Titled));
    }

    /// `file:line` of a section.
    fn place(&self, index: usize) -> String {
        let span = self.tree.sections.get(index).map_or(Span::default(), Section::span);
        format!("{}:{}", self.sources.name(span.file), span.line)
    }
}

/// The first character that a name may not have. Letters, digits and `-_.:` are permitted.
pub fn invalid_character(name: &str) -> Option<char> {
    name.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_.:".contains(*c))
}
