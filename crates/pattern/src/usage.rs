//! How a configuration uses a set: what `get map` shows one line each of, and what values must be.

use crate::kind::{Flags, Kind};
use crate::net;

/// What the values of a map are read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Text, or nothing: any value will do.
    #[default]
    Text,
    /// Decimal integers (`map_*_int`).
    Int,
    /// Addresses (`map_*_ip`).
    Ip,
}

/// One way in which the configuration looks a set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// How patterns are compared.
    pub kind: Kind,
    /// The flags patterns are read with.
    pub flags: Flags,
    /// What values are read as.
    pub output: Output,
    /// Whether values may name groups of the expression (`map_regm`).
    pub groups: bool,
    /// Whether an ACL looks, which takes no value.
    pub acl: bool,
}

impl Output {
    /// Whether a value can be read so.
    pub fn reads(self, value: &[u8]) -> bool {
        match self {
            Output::Text => true,
            Output::Int => {
                let digits = value.strip_prefix(b"-").or(value.strip_prefix(b"+")).unwrap_or(value);
                !value.is_empty() && digits.iter().all(u8::is_ascii_digit)
            }
            Output::Ip => net::parse_value(value).is_some(),
        }
    }
}

impl Face {
    /// That of an ACL.
    pub fn of_acl(kind: Kind, flags: Flags) -> Face {
        Face { kind, flags, output: Output::Text, groups: false, acl: true }
    }

    /// That of a converter.
    pub fn of_map(kind: Kind, output: Output) -> Face {
        Face { kind, flags: Flags::default(), output, groups: false, acl: false }
    }

    /// The word of `get map` for the way of comparing.
    pub fn method(&self) -> &'static str {
        if self.groups { "regm" } else { self.kind.name() }
    }
}
