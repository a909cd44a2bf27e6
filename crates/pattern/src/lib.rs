//! Floor 1: the indexes behind ACLs and maps.
//!
//! A [`Kind`] says how a value is compared with patterns, a [`LiveSet`] is a list of patterns that the runtime API may
//! change and that is looked up through a [`View`]. A [`Value`] is what is looked up.
#![forbid(unsafe_code)]

mod catalog;
mod changed;
mod dead;
mod draft;
mod entries;
mod error;
mod hosts;
mod index;
mod kind;
mod layers;
mod live;
mod load;
mod merge;
mod net;
mod number;
mod pcre;
mod regex;
mod segment;
mod value;

pub use catalog::Catalog;
pub use error::{ChangeError, LoadError, PatternError};
pub use kind::{Flags, Kind};
pub use live::{Entry, Hit, Listing, LiveSet, Shape, Versions, View, Which};
pub use load::{Line, split_line};
pub use merge::merge_in_background;
pub use net::parse_value as parse_address;
pub use number::Compare;
pub use regex::{Groups, Regex};
pub use value::Value;

#[cfg(test)]
mod tests;
