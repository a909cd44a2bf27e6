//! Which certificate a server name gets (manual, section 5.1, `crt-list`).
//!
//! Whole names come first, then wildcards, whose line may exclude names, then the defaults. Among certificates of one
//! name the client's algorithms decide: ECDSA where it takes that.

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
    /// A certificate that the client can't verify is passed by as if its name had not matched, as long as another one
    /// does better; when none does, the handshake fails with the best of those that are left.
    pub fn choose(&self, hello: &Hello<'_>, kind: impl Fn(u32) -> Kind, strict: bool) -> Option<u32> {
        let name = asked(hello);
        let named = name.as_ref().and_then(|name| self.whole.get(&**name));
        let wild = name.as_ref().map(|name| self.wild_for(name)).unwrap_or_default();
        let lists =
            [named.map(Vec::as_slice).unwrap_or_default(), &wild, if strict { &[] } else { &self.defaults }];
        let wants = Wants { ecdsa: hello.takes_ecdsa(), rsa: hello.takes_rsa() };
        let best = lists.iter().find_map(|list| wants.pick(list, &kind));
        best.or_else(|| lists.iter().find_map(|list| list.first().copied()))
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

/// The kinds of certificates that a client takes.
struct Wants {
    ecdsa: bool,
    rsa: bool,
}

impl Wants {
    /// The entry of a list that suits the client best, if one does.
    fn pick(&self, list: &[u32], kind: impl Fn(u32) -> Kind) -> Option<u32> {
        let of = |wanted| list.iter().copied().find(|e| kind(*e) == wanted);
        let ecdsa = of(Kind::Ecdsa).filter(|_| self.ecdsa);
        ecdsa.or_else(|| of(Kind::Rsa).filter(|_| self.rsa)).or_else(|| of(Kind::Other))
    }
}
