//! Floor 1: the indexes behind ACLs and maps.
//!
//! A [`Kind`] says how a value is compared with patterns, a [`PatternSet`] is patterns known
//! once and for all, a [`LiveSet`] one that the runtime API may change and that is looked up
//! through a [`View`]. A [`Value`] is what is looked up.
#![forbid(unsafe_code)]

mod catalog;
mod entries;
mod error;
mod index;
mod kind;
mod layers;
mod live;
mod load;
mod net;
mod number;
mod pcre;
mod regex;
mod segment;
mod set;
mod value;

pub use catalog::Catalog;
pub use error::{ChangeError, LoadError, PatternError};
pub use kind::{Flags, Kind};
pub use live::{Entry, Hit, Listing, LiveSet, Shape, Versions, View, Which};
pub use load::{Line, split_line};
pub use number::Compare;
pub use regex::{Groups, Regex};
pub use set::{MapSet, PatternId, PatternSet};
pub use value::Value;

#[cfg(test)]
mod tests;
