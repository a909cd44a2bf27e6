//! Floor 1: text of a configuration to a spanned tree, and diagnostics.
//!
//! [`read`] takes the bytes of files and gives sections, lines and words. It knows quotes, variables,
//! conditional blocks and how sections inherit from `defaults`; it does not know what a keyword means, and
//! the list of section words is the caller's.
#![forbid(unsafe_code)]

pub mod addr;
mod condition;
mod diagnostics;
mod directive;
mod dump;
mod environment;
mod facts;
pub mod fuzzing;
mod inherit;
mod inputs;
mod predicates;
mod reader;
mod render;
mod settings;
mod source;
mod suggest;
mod tokenize;
mod tree;
mod version;
mod word;

pub use condition::{ConditionError, evaluate};
pub use diagnostics::{Diagnostic, Diagnostics, Level, Phase, Style};
pub use environment::Environment;
pub use facts::{Facts, PlainBuild};
pub use inherit::invalid_character;
pub use inputs::load;
pub use reader::{Grammar, Reading, dump, read};
pub use render::{Render, Verdict};
pub use settings::ENVIRONMENT_KEYWORDS;
pub use source::{FileId, Source, Sources, Span};
pub use suggest::nearest;
pub use tokenize::{Cut, Fault, FaultKind, MAX_WORDS, cut, unquote};
pub use tree::{Inherited, Role, SECTION_WORDS, Section, SectionWord, Tree};
pub use word::{Args, Line, Modifier, Word};
