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

impl OneWay {
    /// What holds for a stream: what its backend says, and where that says nothing, what its frontend does.
    fn of_stream(front: &OneWay, back: &OneWay) -> OneWay {
        fn either<T: Clone>(back: &[T], front: &[T]) -> Vec<T> {
            if back.is_empty() { front.to_vec() } else { back.to_vec() }
        }
        OneWay {
            algorithms: either(&back.algorithms, &front.algorithms),
            types: either(&back.types, &front.types),
            least: if back.least == 0 { front.least } else { back.least },
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

impl Compression {
    /// What holds for a stream whose frontend and backend both have such lines: each setting is the backend's
    /// where it has one, `offload` holds if either has it. `direction` is a matter of each filter.
    pub fn of_stream(front: &Compression, back: &Compression) -> Compression {
        Compression {
            request: OneWay::of_stream(&front.request, &back.request),
            response: OneWay::of_stream(&front.response, &back.response),
            offload: front.offload || back.offload,
            direction: back.direction.or(front.direction),
        }
    }
}
