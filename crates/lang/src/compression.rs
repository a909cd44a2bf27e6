//! What `compression` lines say of a proxy (section 4.2), as the filters of section 9.2 read it.

/// An algorithm of `compression algo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Nothing is changed, but the body goes through the filter.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// deflate in the format of zlib (RFC 1950).
    Deflate,
    /// deflate as it is (RFC 1951).
    RawDeflate,
    /// Brotli (RFC 7932); not in HAProxy.
    Brotli,
    /// Zstandard (RFC 8878); not in HAProxy.
    Zstd,
}

impl Algorithm {
    /// All, by the names that configurations give them.
    pub const NAMES: &'static [(&'static str, Algorithm)] = &[
        ("identity", Algorithm::Identity),
        ("deflate", Algorithm::Deflate),
        ("raw-deflate", Algorithm::RawDeflate),
        ("gzip", Algorithm::Gzip),
        ("br", Algorithm::Brotli),
        ("zstd", Algorithm::Zstd),
    ];

    /// By its name in a configuration.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        Algorithm::NAMES.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }

    /// What `Accept-Encoding` and `Content-Encoding` call it.
    pub fn token(self) -> &'static str {
        match self {
            Algorithm::RawDeflate => "deflate",
            other => other.name(),
        }
    }
}

/// What shall be done in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneWay {
    /// `algo-req`, `algo-res`, `algo`: in order.
    pub algorithms: Vec<Algorithm>,
    /// `type-req`, `type-res`, `type`: what content types begin with; empty: all.
    pub types: Vec<Box<[u8]>>,
    /// `minsize-req`, `minsize-res`: shorter payloads of known length are left alone.
    pub least: u64,
}

/// What holds for a stream in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effective<'a> {
    /// In order.
    pub algorithms: &'a [Algorithm],
    /// What content types begin with; empty: all.
    pub types: &'a [Box<[u8]>],
    /// Shorter payloads of known length are left alone.
    pub least: u64,
}

impl<'a> Effective<'a> {
    /// What the backend says, and where it says nothing, what the frontend does.
    pub fn of(front: Option<&'a OneWay>, back: Option<&'a OneWay>) -> Effective<'a> {
        let sides = || back.into_iter().chain(front);
        Effective {
            algorithms: sides().map(|s| &*s.algorithms).find(|a| !a.is_empty()).unwrap_or_default(),
            types: sides().map(|s| &*s.types).find(|t| !t.is_empty()).unwrap_or_default(),
            least: sides().map(|s| s.least).find(|least| *least > 0).unwrap_or_default(),
        }
    }
}

/// The lines of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Of requests.
    pub request: OneWay,
    /// Of responses.
    pub response: OneWay,
    /// `offload`: servers are not told what the client accepts.
    pub offload: bool,
    /// `direction`, if there was such a line.
    pub direction: Option<Direction>,
}

/// What `direction` lets be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction {
    /// Requests.
    pub requests: bool,
    /// Responses.
    pub responses: bool,
}
