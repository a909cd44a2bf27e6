//! Which certificate a server name gets (manual, section 5.1, `crt-list`).
//!
//! Among certificates of one name the client's algorithms decide: ECDSA where it takes that, be its
//! certificate's name a wildcard; else whole names come before wildcards, whose line may exclude names. The
//! defaults are for other names only.

use std::collections::HashMap;

use crate::files::Kind;
use crate::hello::Hello;

/// Entries by name, as indices.
#[derive(Debug, Default)]
pub struct Names {
    whole: HashMap<Box<str>, Vec<u32>>,
    /// By what follows the `*.`.
    wild: HashMap<Box<str>, Vec<u32>>,
    /// Names that an entry's wildcards leave out.
    without: HashMap<Box<str>, Vec<u32>>,
    defaults: Vec<u32>,
}

impl Names {
    /// A filter of a line: a name, `*.domain`, `!name` or `*`.
    pub fn add(&mut self, filter: &str, entry: u32) {
        let filter = filter.to_ascii_lowercase();
        let (map, name) = match filter.strip_prefix('!') {
            Some(name) if name.starts_with('*') => return,
            Some(name) => (&mut self.without, name),
            None if filter == "*" => return self.add_default(entry),
            None => match filter.strip_prefix("*.") {
                Some(rest) => (&mut self.wild, rest),
                None => (&mut self.whole, &*filter),
            },
        };
        let list = map.entry(name.into()).or_default();
        if !list.contains(&entry) {
            list.push(entry);
        }
    }

    /// A certificate for whoever matches nothing.
    pub fn add_default(&mut self, entry: u32) {
        if !self.defaults.contains(&entry) {
            self.defaults.push(entry);
        }
    }

    /// Whether there is one.
    pub fn has_default(&self) -> bool {
        !self.defaults.is_empty()
    }

    /// The entry for a client; `strict`: only one that its name matches.
    ///
    /// Whatever the client's name matches, whole or by a wildcard, is at choice, and nothing else: if none of
    /// it suits the client the handshake fails, rather than showing a certificate of another name.
    pub fn choose(
        &self,
        hello: &Hello<'_>,
        suits: impl Fn(u32) -> Option<Kind>,
        strict: bool,
    ) -> Option<u32> {
        let name = asked(hello);
        let whole = name.as_ref().and_then(|name| self.whole.get(&**name)).map(Vec::as_slice);
        let wild = name.as_ref().map(|name| self.wild_for(name)).unwrap_or_default();
        let whole = whole.unwrap_or_default();
        if whole.is_empty() && wild.is_empty() {
            return if strict { None } else { best(self.defaults.iter().copied(), suits) };
        }
        best(whole.iter().chain(&wild).copied(), suits)
    }

    /// Whether an entry is for the name that a client asks for.
    pub fn knows(&self, hello: &Hello<'_>) -> bool {
        asked(hello).is_some_and(|name| self.whole.contains_key(&*name) || !self.wild_for(&name).is_empty())
    }

    /// The entries whose wildcards match, without those that leave the name out.
    fn wild_for(&self, name: &str) -> Vec<u32> {
        let excluded = self.without.get(name).map(Vec::as_slice).unwrap_or_default();
        let wild = name.split_once('.').and_then(|(_, rest)| self.wild.get(rest));
        wild.into_iter().flatten().copied().filter(|e| !excluded.contains(e)).collect()
    }
}

/// The name that a client asks for, as entries have it.
fn asked(hello: &Hello<'_>) -> Option<String> {
    let name = std::str::from_utf8(hello.server_name()?).ok()?;
    Some(name.trim_end_matches('.').to_ascii_lowercase())
}

/// Of entries that suit a client the first with the best kind of key; the first of all if none does.
fn best(list: impl Iterator<Item = u32> + Clone, suits: impl Fn(u32) -> Option<Kind>) -> Option<u32> {
    let of = |kind| list.clone().find(|e| suits(*e) == Some(kind));
    of(Kind::Ecdsa).or_else(|| of(Kind::Rsa)).or_else(|| of(Kind::Other)).or_else(|| list.clone().next())
}
