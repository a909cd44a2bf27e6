//! Floor 9: bodies compressed on their way (manual, section 9.2).
//!
//! `choice` decides whether and how a message is compressed, `filter` is the filter that changes its head and
//! counts, `packer` the algorithms behind one interface, `pool` keeps packers that are at rest: their memory
//! is taken once and not for each message.
#![forbid(unsafe_code)]

mod choice;
mod filter;
pub mod fuzzing;
mod packer;
mod pool;

use lang::registry::FilterDef;

/// The filters of this crate.
pub const FILTERS: &[FilterDef] = &[
    FilterDef {
        name: "comp-req",
        tag: "COMP",
        parse: |words, place, _, _| filter::parse("comp-req", words, place),
        doc: "Compresses bodies of requests as `compression` lines say.",
        example: "comp-req",
    },
    FilterDef {
        name: "comp-res",
        tag: "COMP",
        parse: |words, place, _, _| filter::parse("comp-res", words, place),
        doc: "Compresses bodies of responses as `compression` lines say.",
        example: "comp-res",
    },
    FilterDef {
        name: "compression",
        tag: "COMP",
        parse: |words, place, _, _| filter::parse("compression", words, place),
        doc: "Both of them, for the directions that `compression direction` names.",
        example: "compression",
    },
];
