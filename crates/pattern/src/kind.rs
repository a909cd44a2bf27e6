//! The ways of comparing a value with a pattern (manual 7.1, `-m`).

/// A matching method, the word after `-m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The sample exists; patterns are ignored.
    Found,
    /// The sample is true or not zero; patterns are ignored.
    Bool,
    /// Integers and ranges of them.
    Int,
    /// Two integers with a dot between them and ranges of those, as `req.ssl_ver` has.
    /// It has no `-m` name: the fetch implies it.
    Version,
    /// IPv4 and IPv6 addresses and networks.
    Ip,
    /// Bytes written as hexadecimal digits.
    Bin,
    /// The length of the sample against integers and ranges.
    Len,
    /// The whole string.
    Str,
    /// A prefix.
    Beg,
    /// A substring.
    Sub,
    /// A part between slashes.
    Dir,
    /// A part between the delimiters of a URL.
    Dom,
    /// A suffix.
    End,
    /// A regular expression.
    Reg,
}

/// Every kind with its `-m` name, in the order of HAProxy's own lists.
const NAMES: [(Kind, &str); 13] = [
    (Kind::Found, "found"),
    (Kind::Bool, "bool"),
    (Kind::Int, "int"),
    (Kind::Ip, "ip"),
    (Kind::Bin, "bin"),
    (Kind::Len, "len"),
    (Kind::Str, "str"),
    (Kind::Beg, "beg"),
    (Kind::Sub, "sub"),
    (Kind::Dir, "dir"),
    (Kind::Dom, "dom"),
    (Kind::End, "end"),
    (Kind::Reg, "reg"),
];

impl Kind {
    /// The kind of a `-m` word.
    pub fn from_name(name: &str) -> Option<Kind> {
        NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind)
    }

    /// The `-m` word; `int` for [`Kind::Version`], which has none of its own.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("int", |(_, n)| *n)
    }

    /// Whether patterns mean anything to this kind.
    pub fn takes_patterns(self) -> bool {
        !matches!(self, Kind::Found | Kind::Bool)
    }

    /// Whether the value is compared as text.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Str | Kind::Beg | Kind::Sub | Kind::Dir | Kind::Dom | Kind::End | Kind::Reg)
    }
}

/// The flags that change how patterns are read or compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// `-i`: letters of ASCII compare without case.
    pub ignore_case: bool,
    /// `-n`: addresses must not be host names. It matters only while a file is read.
    pub no_names: bool,
}

impl Flags {
    /// The flags of `-i`.
    pub const IGNORE_CASE: Flags = Flags { ignore_case: true, no_names: false };
}
