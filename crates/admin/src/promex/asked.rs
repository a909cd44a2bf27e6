//! What a scrape asks for in its query: `scope`, `metrics`, `no-maint`, `desc-labels`, `extra-counters`.

use std::collections::HashMap;

/// A group of metrics that can be asked for, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Scope {
    Global,
    Frontend,
    Listener,
    Backend,
    Server,
    StickTable,
    Resolver,
}

/// Scopes by the word that asks for them.
const SCOPES: [(&[u8], Scope); 7] = [
    (b"global", Scope::Global),
    (b"frontend", Scope::Frontend),
    (b"listener", Scope::Listener),
    (b"backend", Scope::Backend),
    (b"server", Scope::Server),
    (b"sticktable", Scope::StickTable),
    (b"resolver", Scope::Resolver),
];

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// A bit for each scope.
    scopes: u8,
    /// Whether names are wanted or not, as far as `metrics` says so.
    names: HashMap<Vec<u8>, bool>,
    /// Some name is wanted, and so no others are.
    only: bool,
    /// Without servers in maintenance.
    pub(super) no_maint: bool,
    /// With descriptions of sections.
    pub(super) descriptions: bool,
    /// With the figures of protocols.
    pub(super) extra: bool,
}

impl Asked {
    /// Reads a target. `None`: it asks for what there is not.
    pub(super) fn parse(target: &[u8]) -> Option<Asked> {
        let mut asked = Asked {
            scopes: u8::MAX,
            names: HashMap::new(),
            only: false,
            no_maint: false,
            descriptions: false,
            extra: false,
        };
        let mut split = target.splitn(2, |b| *b == b'?');
        let query = split.nth(1).unwrap_or_default();
        let query = query.split(|b| *b == b'#').next().unwrap_or_default();
        let mut narrowed = false;
        for word in query.split(|b| *b == b'&').filter(|word| !word.is_empty()) {
            let mut halves = word.splitn(2, |b| *b == b'=');
            let name = decode(halves.next().unwrap_or_default())?;
            let value = match halves.next() {
                Some(value) => Some(decode(value)?),
                None => None,
            };
            match &*name {
                b"scope" => asked.scope(&value?, &mut narrowed)?,
                b"metrics" => asked.metrics(&value?),
                b"no-maint" => asked.no_maint = true,
                b"desc-labels" => asked.descriptions = true,
                b"extra-counters" => asked.extra = true,
                _ => {}
            }
        }
        Some(asked)
    }

    /// Scopes count in their order: the first one leaves only itself of all, an empty one takes all away.
    fn scope(&mut self, word: &[u8], narrowed: &mut bool) -> Option<()> {
        if !std::mem::replace(narrowed, true) {
            self.scopes = 0;
        }
        self.scopes = match word {
            b"" => 0,
            b"*" => u8::MAX,
            _ => {
                let (_, scope) = SCOPES.iter().find(|(name, _)| *name == word)?;
                self.scopes | 1 << *scope as u8
            }
        };
        Some(())
    }

    fn metrics(&mut self, list: &[u8]) {
        for name in list.split(|b| *b == b',').filter(|name| !name.is_empty()) {
            match name.strip_prefix(b"-") {
                Some(name) => self.names.insert(name.to_vec(), false),
                None => {
                    self.only = true;
                    self.names.insert(name.to_vec(), true)
                }
            };
        }
    }

    pub(super) fn wants_scope(&self, scope: Scope) -> bool {
        self.scopes & 1 << scope as u8 != 0
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.names.get(name.as_bytes()).copied().unwrap_or(!self.only)
    }
}

/// Takes `%XX` out of a word; `None` where no such follows the percent sign.
fn decode(word: &[u8]) -> Option<Vec<u8>> {
    let digit =
        |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut out = Vec::with_capacity(word.len());
    let mut bytes = word.iter();
    while let Some(b) = bytes.next() {
        out.push(match b {
            b'%' => digit(bytes.next())? << 4 | digit(bytes.next())?,
            b => *b,
        });
    }
    Some(out)
}
