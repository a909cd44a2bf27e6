//! From words to rules: what reads the language of chapters 7 and 8.2.6 of the manual.
//!
//! The grammar nests: a rule holds conditions and formats, these hold expressions, expressions hold
//! arguments. Each of the files here reads one of them. Faults are worded as HAProxy words them, since
//! people (and tests) search for these words; what HAProxy does not say stands in the fault's `help`.
//!
//! A text is read twice at most: once by the configuration's own tokenizer, which resolves the outer
//! quotes, and once here, where quotes that are left protect commas and parentheses of arguments
//! (section 2.2, "second level of quoting").

mod acl;
mod arguments;
mod condition;
mod expression;
mod format;
mod rule;
mod text;

pub use acl::{AclLine, predefined, predefined_lines, predefined_names};
pub use arguments::variable;
pub(crate) use arguments::{size, tolerant};

/// The word of `candidates` that `word` was probably meant to be, as a sentence.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    syntax::nearest(word, candidates).map(|near| format!("did you mean '{near}' ?"))
}
