//! Names of fields that a configuration fixes.

use super::{Known, Name};

/// A name that was read at start-up: looked up, and in the form that messages keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    known: Known,
    text: Box<[u8]>,
}

impl FieldName {
    /// Of a name in any case; what would end a line becomes a blank.
    pub fn new(text: &[u8]) -> FieldName {
        let mut text: Box<[u8]> = text.into();
        text.make_ascii_lowercase();
        text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
        FieldName { known: Known::of(&text), text }
    }

    /// The name in lower case.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl<'n> From<&'n FieldName> for Name<'n> {
    #[inline]
    fn from(name: &'n FieldName) -> Self {
        Name { known: name.known, text: &name.text, clean: true }
    }
}
