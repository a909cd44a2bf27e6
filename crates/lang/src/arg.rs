//! Arguments of fetches and converters.
//!
//! A table entry states its arguments in the form that HAProxy's `-dK` dump prints,
//! `string[,integer]`: it is at once the signature that is checked, the text that is dumped and the
//! documentation.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use model::vars::VarRef;
use model::{Proxy, Server};

/// An argument, checked and resolved.
#[derive(Clone)]
pub enum Arg {
    /// Left out.
    None,
    /// `integer`.
    Int(i64),
    /// `string`.
    Str(Box<[u8]>),
    /// `delay`: milliseconds.
    Time(u64),
    /// `size`: bytes.
    Size(u64),
    /// `ipv4`.
    Ipv4(Ipv4Addr),
    /// `ipv6`.
    Ipv6(Ipv6Addr),
    /// `mask4`.
    Mask4(Ipv4Addr),
    /// `mask6`.
    Mask6(Ipv6Addr),
    /// `frontend`.
    Frontend(Arc<Proxy>),
    /// `backend`.
    Backend(Arc<Proxy>),
    /// `server`: with its backend.
    Server(Arc<Proxy>, Arc<Server>),
    /// A variable.
    Var(VarRef),
    /// `regex`.
    Regex(Arc<pattern::Regex>),
    /// The name of a header field that has a number.
    Field(wire::head::Known),
    /// A map, its match kind already chosen.
    Map(Arc<pattern::View>),
    /// `table`.
    Table(Arc<::stick::Table>),
    /// Whatever an entry's `check` prepared for itself (user lists, tokens).
    Other(Arc<dyn std::any::Any + Send + Sync>),
}

impl Arg {
    /// The integer, or `default` when the argument was left out.
    pub fn int_or(&self, default: i64) -> i64 {
        match self {
            Arg::Int(i) => *i,
            Arg::Time(t) | Arg::Size(t) => i64::try_from(*t).unwrap_or(i64::MAX),
            _ => default,
        }
    }

    /// The bytes of a string argument, if given.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Arg::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Whether it was left out.
    pub fn is_none(&self) -> bool {
        matches!(self, Arg::None)
    }
}

/// The argument at `i`, [`Arg::None`] when fewer were given.
pub fn arg(args: &[Arg], i: usize) -> &Arg {
    args.get(i).unwrap_or(&Arg::None)
}

/// The kind of one argument, as signatures name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `integer`.
    Int,
    /// `string`.
    Str,
    /// `delay`.
    Time,
    /// `size`.
    Size,
    /// `IPv4 address`.
    Ipv4,
    /// `IPv6 address`.
    Ipv6,
    /// `IPv4 mask`.
    Mask4,
    /// `IPv6 mask`.
    Mask6,
    /// `frontend`.
    Frontend,
    /// `backend`.
    Backend,
    /// `server`.
    Server,
    /// `table`.
    Table,
    /// `user list`.
    Userlist,
    /// `regex`.
    Regex,
    /// `variable`.
    Var,
    /// `Protocol buffers field number`: numbers joined by dots.
    FieldNumber,
}

const KINDS: &[(&str, Kind)] = &[
    ("integer", Kind::Int),
    ("string", Kind::Str),
    ("delay", Kind::Time),
    ("size", Kind::Size),
    ("IPv4 address", Kind::Ipv4),
    ("IPv6 address", Kind::Ipv6),
    ("IPv4 mask", Kind::Mask4),
    ("IPv6 mask", Kind::Mask6),
    ("frontend", Kind::Frontend),
    ("backend", Kind::Backend),
    ("server", Kind::Server),
    ("table", Kind::Table),
    ("user list", Kind::Userlist),
    ("regex", Kind::Regex),
    ("variable", Kind::Var),
    ("Protocol buffers field number", Kind::FieldNumber),
];

/// A parsed signature: kinds, and how many of them must be given.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Signature {
    /// In order.
    pub kinds: Vec<Kind>,
    /// The first so many are mandatory.
    pub required: usize,
}

impl Signature {
    /// Reads the form of the dump, `string[,integer]`, `[integer]` or empty.
    ///
    /// # Errors
    /// The word that names no kind: a defect of the table, found by its test.
    pub fn parse(text: &str) -> Result<Signature, String> {
        let mut out = Signature::default();
        let mandatory = text.split('[').next().unwrap_or("");
        for word in text.split([',', '[', ']']).filter(|w| !w.is_empty()) {
            let kind = KINDS.iter().find(|(name, _)| *name == word).ok_or_else(|| word.to_owned())?.1;
            out.kinds.push(kind);
        }
        out.required = mandatory.split(',').filter(|w| !w.is_empty()).count();
        Ok(out)
    }
}

impl Kind {
    /// The word of the signature.
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(_, k)| *k == self).map_or("", |(w, _)| w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_mark_what_may_be_left_out() {
        let s = Signature::parse("string[,integer]").unwrap();
        assert_eq!((s.kinds, s.required), (vec![Kind::Str, Kind::Int], 1));
        let s = Signature::parse("[integer]").unwrap();
        assert_eq!((s.kinds, s.required), (vec![Kind::Int], 0));
        assert_eq!(Signature::parse("").unwrap(), Signature::default());
        assert!(Signature::parse("nonsense").is_err());
    }
}
