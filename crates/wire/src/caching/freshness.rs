//! How long a response is good, and what a request asks of a cache.

use crate::head::{Head, Known};

/// How long a response may be kept (RFC 9111 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Not at all: it says so, it is stale when it comes, or nothing tells how long, nor how to ask again.
    Never,
    /// For as long as the cache likes: there is a validator, or a word about it without a number.
    Unsaid,
    /// For so many seconds from now: HAProxy counts from when a response comes, whatever its age is.
    For(u32),
}

impl Freshness {
    /// That of a response that came at `now`, in seconds since 1970. HAProxy keeps nothing that is private or
    /// not to be had without asking, whatever of it that is said of, and nothing of the age 0.
    pub fn of(res: &Head, now: u64) -> Freshness {
        let lifetime = match lifetime(res, now) {
            // Nothing tells whether its age is too much.
            Freshness::Unsaid if res.has("age") => Freshness::Never,
            lifetime => lifetime,
        };
        match (lifetime, res.first("age").map(|text| number(text.trim_ascii()))) {
            (Freshness::For(seconds), Some(age)) if !age.is_some_and(|age| (1..=seconds).contains(&age)) => {
                Freshness::Never
            }
            (lifetime, _) => lifetime,
        }
    }
}

/// How long a response is good in all, whatever its age is.
fn lifetime(res: &Head, now: u64) -> Freshness {
    // Asked to be kept from caches of old.
    if res.has_token("pragma", b"no-cache") {
        return Freshness::Never;
    }
    let (mut shared, mut own) = (None, None);
    let (mut told, mut zero) = (false, false);
    for value in res.values(Known::CacheControl) {
        let (name, text) = directive(value);
        if is(name, b"no-store") || is(name, b"no-cache") || is(name, b"private") {
            return Freshness::Never;
        }
        let for_shared = is(name, b"s-maxage");
        if !for_shared && !is(name, b"max-age") {
            continue;
        }
        told = true;
        // An `s-maxage` behind a `max-age` of zero counts, not one before it.
        zero = text == Some(b"0") || zero && !for_shared;
        if zero && for_shared {
            return Freshness::Never;
        }
        match seconds(text) {
            Some(Some(seconds)) => *(if for_shared { &mut shared } else { &mut own }) = Some(seconds),
            Some(None) => {}
            None => return Freshness::Never,
        }
    }
    if zero {
        return Freshness::Never;
    }
    if let Some(seconds) = shared.or(own) {
        return Freshness::For(seconds);
    }
    if told {
        return Freshness::Unsaid;
    }
    match res.first("expires").map(super::validators::date) {
        Some(Some(date)) if date > now => Freshness::For(u32::try_from(date - now).unwrap_or(u32::MAX)),
        Some(_) => Freshness::Never,
        None if res.has("etag") || res.has("last-modified") => Freshness::Unsaid,
        None => Freshness::Never,
    }
}

/// Whether a response may be of use though it is no longer good (RFC 9111 section 4.2.4).
pub fn may_be_stale(res: &Head) -> bool {
    let words: [&[u8]; 3] = [b"must-revalidate", b"proxy-revalidate", b"s-maxage"];
    !res.values(Known::CacheControl).any(|value| words.iter().any(|word| is(directive(value).0, word)))
}

/// The age that a response has when it comes, in seconds; `None` if it can't be read.
pub fn age(res: &Head) -> Option<u32> {
    res.first("age").map_or(Some(0), |text| number(text.trim_ascii()))
}

/// What a request asks of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Nothing that is kept may answer it: it says how old that may be, whatever it says (`Cache-Control:
    /// no-cache`, `max-age`, `min-fresh`, `max-stale`, `Pragma: no-cache`). The response may be kept.
    pub anew: bool,
    /// The response is to be kept only if it says so itself (`no-store`).
    pub unkept: bool,
}

/// What the fields of a request ask.
pub fn asked(req: &Head) -> Asked {
    let (mut anew, mut controlled, mut unkept) = (false, false, false);
    for value in req.values(Known::CacheControl) {
        controlled = true;
        let (name, _) = directive(value);
        unkept |= is(name, b"no-store");
        anew |=
            [&b"no-cache"[..], b"max-age", b"min-fresh", b"max-stale"].iter().any(|known| is(name, known));
    }
    // RFC 9111 section 5.4: of both, the new field holds.
    Asked { anew: anew || !controlled && req.has_token("pragma", b"no-cache"), unkept }
}

/// A directive and what stands behind its `=`, if anything does.
pub(super) fn directive(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    match value.iter().position(|c| *c == b'=') {
        Some(at) => (value[..at].trim_ascii(), Some(value[at + 1..].trim_ascii())),
        None => (value.trim_ascii(), None),
    }
}

pub(super) fn is(name: &[u8], word: &[u8]) -> bool {
    name.eq_ignore_ascii_case(word)
}

/// A number of seconds as HAProxy reads it: what stands behind its digits does not count, what is more than
/// fits is as much as fits, and zero in other words than `0` is no number. `None`: it is none at all;
/// `Some(None)`: nothing is said.
fn seconds(text: Option<&[u8]>) -> Option<Option<u32>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Some(None) };
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    let add = |sum: u32, digit: &u8| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    let (any, seconds) = digits.fold((false, 0), |(_, sum), digit| (true, add(sum, digit)));
    any.then_some(Some(seconds).filter(|seconds| *seconds > 0))
}

/// A number that fits.
fn number(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Freshness {
        let mut head = Head::response();
        for (name, value) in fields {
            head.append(name.as_bytes(), value.as_bytes()).unwrap();
        }
        Freshness::of(&head, 1_000_000_000)
    }

    /// What HAProxy keeps and what not.
    #[test]
    fn a_response_says_how_long_it_is_good() {
        for (control, freshness) in [
            ("max-age=10", Freshness::For(10)),
            ("MAX-AGE=5", Freshness::For(5)),
            ("max-age=\"10\"", Freshness::For(10)),
            ("must-revalidate, max-age=5", Freshness::For(5)),
            ("max-age=1, s-maxage=10", Freshness::For(10)),
            ("max-age=99999999999", Freshness::For(u32::MAX)),
            ("max-age=1, max-age=10", Freshness::For(10)),
            ("max-age=10.5", Freshness::For(10)),
            ("max-age=+10x", Freshness::For(10)),
            ("max-age=", Freshness::Unsaid),
            ("s-maxage", Freshness::Unsaid),
            ("max-age=00", Freshness::Unsaid),
            ("max-age=0, s-maxage=10", Freshness::For(10)),
            ("s-maxage=10, max-age=0", Freshness::Never),
            ("s-maxage=0, s-maxage=10", Freshness::Never),
            ("max-age=0, max-age=10", Freshness::Never),
            ("max-age=abc, s-maxage=10", Freshness::Never),
            ("max-age=-1", Freshness::Never),
            ("public", Freshness::Unsaid),
            ("max-age=abc", Freshness::Never),
            ("max-age=0", Freshness::Never),
            ("s-maxage=0, max-age=10", Freshness::Never),
            ("max-age=10, no-cache=\"set-cookie\"", Freshness::Never),
            ("private=\"x\", max-age=5", Freshness::Never),
            ("no-store", Freshness::Never),
        ] {
            assert_eq!(of(&[("cache-control", control), ("etag", "\"a\"")]), freshness, "{control}");
        }
        assert_eq!(
            of(&[("cache-control", "max-age=1"), ("cache-control", "s-maxage=10")]),
            Freshness::For(10)
        );
        assert_eq!(of(&[("pragma", "no-cache"), ("cache-control", "max-age=1")]), Freshness::Never);
        assert_eq!(of(&[]), Freshness::Never);
        assert_eq!(of(&[("last-modified", "x")]), Freshness::Unsaid);
        let date = "Sun, 09 Sep 2001 01:46:50 GMT";
        assert_eq!(of(&[("expires", date)]), Freshness::For(10));
        assert_eq!(of(&[("expires", "0"), ("etag", "x")]), Freshness::Never);
    }

    #[test]
    fn its_age_can_be_read() {
        assert_eq!(of(&[("cache-control", "max-age=10"), ("age", "10")]), Freshness::For(10));
        assert_eq!(of(&[("cache-control", "max-age=10"), ("age", "5"), ("age", "x")]), Freshness::For(10));
        assert_eq!(of(&[("etag", "\"x\""), ("age", "1")]), Freshness::Never);
        for age in ["x", "", "-1", "4294967296", "0", "11"] {
            assert_eq!(of(&[("cache-control", "max-age=10"), ("age", age)]), Freshness::Never);
        }
    }

    #[test]
    fn a_request_may_want_nothing_that_was_kept() {
        for (name, value, anew) in [
            ("cache-control", "no-cache", true),
            ("cache-control", "max-age=0", true),
            ("cache-control", "Max-Age=100", true),
            ("cache-control", "min-fresh=1", true),
            ("cache-control", "max-stale", true),
            ("cache-control", "only-if-cached", false),
            ("cache-control", "no-store", false),
            ("pragma", "no-cache", true),
        ] {
            let mut head = Head::request();
            head.append(name.as_bytes(), value.as_bytes()).unwrap();
            assert_eq!(asked(&head).anew, anew, "{name}: {value}");
        }
    }
}
