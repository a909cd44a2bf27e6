//! `tune.bufsize` and its kin, which have to fit each other.

use syntax::{Diagnostic, Diagnostics, Level, Style};

/// The sizes of buffers as they were said.
pub(crate) struct Buffers {
    pub usual: u64,
    pub small: u64,
    pub large: Option<u64>,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { usual: 16384, small: 1024, large: None }
    }
}

impl Buffers {
    /// Says which are not in order.
    pub(crate) fn check(&self, notes: &mut Diagnostics) {
        let usual = self.usual;
        let mut say = |text| notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare));
        if let Some(large) = self.large.filter(|large| *large < usual) {
            say(format!(
                "tune.bufsize.large ({large}) is lower than tune.bufsize ({usual}). large buffers support is disabled. Please fix either value to remove this warning."
            ));
        }
        if self.small > usual {
            let small = self.small;
            say(format!(
                "invalid small buffer size {small} bytes which is greater than default bufsize {usual} bytes."
            ));
        }
    }
}
