//! Floor 1: the indexes behind ACLs and maps.
//!
//! A [`Kind`] says how a value is compared with patterns, a [`LiveSet`] is a list of patterns that the
//! runtime API may change and that is looked up through a [`View`]. A [`Value`] is what is looked up.
#![forbid(unsafe_code)]

mod catalog;
mod change;
mod changed;
mod dead;
mod draft;
mod entries;
mod error;
mod fault;
mod heard;
mod hosts;
mod index;
mod kind;
mod layers;
mod listing;
mod live;
mod load;
mod merge;
mod net;
mod number;
mod pcre;
mod regex;
mod segment;
mod upkeep;
mod usage;
mod value;
mod view;
mod writer;

pub use catalog::{Catalog, Listed, bare_name};
pub use change::Which;
pub use error::{ChangeError, LoadError, PatternError};
pub use heard::{Change, Told};
pub use kind::{Flags, Kind};
pub use listing::{Entry, Listing};
pub use live::{LiveSet, Shape, Versions};
pub use load::{Line, split_line};
pub use merge::merge_in_background;
pub use net::{Shown, embedded_v4, parse_value as parse_address};
pub use number::Compare;
pub use regex::{Groups, Regex};
pub use usage::{Face, Output};
pub use value::Value;
pub use view::{Hit, View};

#[cfg(test)]
mod tests;
