//! The environment that `"$VAR"` is looked up in.
//!
//! Lines of the global section change it for the lines behind them, and checking a configuration must not
//! change the checking process. So it is a value: filled from the process's environment, changed while
//! reading, and handed out at the end to whoever starts programs or answers `show env`.

use std::collections::HashMap;

/// Names and values, in the order in which names first appeared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    values: HashMap<Box<[u8]>, Entry>,
    born: u64,
}

/// When the name came up, and its value.
type Entry = (u64, Box<[u8]>);

impl Environment {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of the process's.
    pub fn of_process() -> Self {
        use std::os::unix::ffi::OsStrExt;
        let mut environment = Self::new();
        for (name, value) in std::env::vars_os() {
            environment.set(name.as_bytes(), value.as_bytes());
        }
        environment
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.values.get(name.as_ref()).map(|(_, value)| &**value)
    }

    /// Sets a variable, new or not.
    pub fn set(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let value = value.as_ref().into();
        if let Some(known) = self.values.get_mut(name.as_ref()) {
            known.1 = value;
            return;
        }
        self.born = self.born.saturating_add(1);
        self.values.insert(name.as_ref().into(), (self.born, value));
    }

    /// Sets a variable unless it is already there.
    pub fn preset(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        if self.get(&name).is_none() {
            self.set(name, value);
        }
    }

    /// Removes a variable; one that isn't there may be removed too.
    pub fn unset(&mut self, name: impl AsRef<[u8]>) {
        self.values.remove(name.as_ref());
    }

    /// Removes all variables but those named.
    pub fn keep_only<'n>(&mut self, names: impl IntoIterator<Item = &'n [u8]>) {
        let mut kept = HashMap::new();
        for name in names {
            if let Some((name, value)) = self.values.remove_entry(name) {
                kept.insert(name, value);
            }
        }
        self.values = kept;
    }

    /// All variables, oldest name first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut all: Vec<_> = self.values.iter().collect();
        all.sort_by_key(|(_, (born, _))| *born);
        all.into_iter().map(|(name, (_, value))| (&**name, &**value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preset_yields_set_replaces_and_reset_keeps_only_the_named() {
        let mut environment = Environment::new();
        environment.set("A", "1");
        environment.preset("A", "2");
        environment.preset("B", "3");
        environment.set("C", "4");
        environment.set("A", "5");
        let all: Vec<_> = environment.iter().map(|(name, value)| (name[0], value[0])).collect();
        assert_eq!(all, [(b'A', b'5'), (b'B', b'3'), (b'C', b'4')]);
        environment.unset("C");
        environment.unset("C");
        environment.keep_only([b"B".as_slice(), b"Z"]);
        assert_eq!(environment.iter().count(), 1);
        assert_eq!(environment.get("B"), Some(b"3".as_slice()));
    }
}
