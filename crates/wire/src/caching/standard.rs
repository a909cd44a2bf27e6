//! What RFC 9111 allows a shared cache, where HAProxy keeps less or reads it otherwise (`rfc9111` of a
//! `cache` section, docs/differences.md).

use super::freshness::{directive, is};
use super::validators::date;
use crate::head::{Head, Known};

/// What a response allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Seconds for which it is good from now on; 0 where its server is to be asked first.
    pub fresh: u32,
    /// It may be given when it is no longer good, to whoever takes that (section 4.2.4).
    pub stale: bool,
    /// `stale-while-revalidate`, in seconds (RFC 5861 section 3).
    pub meanwhile: u32,
    /// `stale-if-error`, in seconds (RFC 5861 section 4).
    pub on_error: u32,
}

/// The directives of a response that count here.
#[derive(Default)]
struct Said {
    own: Option<u32>,
    shared: Option<u32>,
    /// It may be for others though its request named a user (section 3.5).
    public: bool,
    /// It may be kept whatever its status.
    kept: bool,
    ask: bool,
    strict: bool,
    understand: bool,
    meanwhile: u32,
    on_error: u32,
}

/// What a response allows that came at `now`, in seconds since 1970, and whose request named a user if
/// `authorized`. `None`: it is not to be kept, for it says so, or neither it nor its status says anything, or
/// it is of no use without asking and has nothing to ask with.
pub fn allowed(res: &Head, now: u64, authorized: bool) -> Option<Allowed> {
    let said = said(res)?;
    let status = res.status();
    // Parts and answers to conditions are none of their own.
    if status < 200 || matches!(status, 206 | 304) {
        return None;
    }
    if said.understand && !is_known(status) {
        return None;
    }
    // Section 3.5.
    if authorized && !said.public {
        return None;
    }
    let made = res.first("date").and_then(date).unwrap_or(now);
    let total = match said.shared.or(said.own) {
        Some(seconds) => u64::from(seconds),
        None => match expiry(res) {
            // One that can't be read has passed (section 5.3).
            Some(at) => at.unwrap_or(0).saturating_sub(made),
            None if said.kept || by_itself(status) => guess(res, made)?,
            None => return None,
        },
    };
    let fresh = match age(res) {
        Some(age) => total.saturating_sub(u64::from(age).max(now.saturating_sub(made))),
        None => 0,
    };
    let fresh = if said.ask { 0 } else { u32::try_from(fresh).unwrap_or(u32::MAX) };
    let stale = !said.strict && !said.ask;
    let (meanwhile, on_error) = if stale { (said.meanwhile, said.on_error) } else { (0, 0) };
    let useful = fresh > 0 || meanwhile > 0 || on_error > 0 || has_validator(res);
    useful.then_some(Allowed { fresh, stale, meanwhile, on_error })
}

/// `None`: it is for one user, or for nobody.
fn said(res: &Head) -> Option<Said> {
    let mut said = Said::default();
    for value in res.values(Known::CacheControl) {
        let (name, text) = directive(value);
        // What is said of some fields is no word about the rest (sections 5.2.2.4 and 5.2.2.7).
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => return None,
            b"private" if text.is_none() => return None,
            b"no-cache" if text.is_none() => said.ask = true,
            b"public" => (said.public, said.kept) = (true, true),
            b"must-revalidate" => (said.public, said.strict) = (true, true),
            b"proxy-revalidate" => said.strict = true,
            b"must-understand" => said.understand = true,
            b"s-maxage" => {
                (said.public, said.strict) = (true, true);
                said.shared = said.shared.or(Some(seconds(text)));
            }
            // Of two the first counts (section 4.2.1).
            b"max-age" => said.own = said.own.or(Some(seconds(text))),
            b"stale-while-revalidate" => said.meanwhile = seconds(text),
            b"stale-if-error" => said.on_error = seconds(text),
            _ => {}
        }
    }
    // Caches of old know this one alone (section 5.4).
    if !res.has(Known::CacheControl) && res.has_token("pragma", b"no-cache") {
        said.ask = true;
    }
    Some(said)
}

/// Seconds; what can't be read is none (section 4.2.1), what does not fit as much as fits.
fn seconds(text: Option<&[u8]>) -> u32 {
    let text = text.unwrap_or_default();
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    number(text).unwrap_or(0)
}

/// A number; what does not fit is as much as fits. `None`: it is none.
fn number(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
    Some(text.parse().unwrap_or(u32::MAX))
}

/// When it says that it expires; `Some(None)` if that can't be read, or is said twice.
fn expiry(res: &Head) -> Option<Option<u64>> {
    let mut all = res.all("expires");
    let (_, text) = all.next()?;
    Some(date(text).filter(|_| all.next().is_none()))
}

/// Statuses that may be kept though nothing says how long (RFC 9110 section 15.1).
fn by_itself(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Statuses whose meaning for caches is plain (RFC 9110 section 15).
fn is_known(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// A tenth of the time that it had not changed before it was made (section 4.2.2). `None`: nothing tells.
fn guess(res: &Head, made: u64) -> Option<u64> {
    match res.first("last-modified").and_then(date) {
        Some(changed) => Some(made.saturating_sub(changed) / 10),
        None => res.has("etag").then_some(0),
    }
}

/// Its age in seconds; `None` if it can't be read, or is said twice: then it is too old.
pub fn age(res: &Head) -> Option<u32> {
    let mut all = res.all("age");
    let Some((_, text)) = all.next() else { return Some(0) };
    number(text.trim_ascii()).filter(|_| all.next().is_none())
}

/// Whether its server can be asked whether it has changed.
pub fn has_validator(res: &Head) -> bool {
    res.has("etag") || res.has("last-modified")
}

/// Fields of a response that are not kept: `no-cache="..."` and `private="..."` name them.
pub fn unkept_fields(res: &Head) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    for value in res.values(Known::CacheControl) {
        let (name, text) = directive(value);
        if let Some(text) = text.filter(|_| is(name, b"no-cache") || is(name, b"private")) {
            let list = text.split(|byte| matches!(byte, b',' | b'"'));
            names.extend(list.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()).map(<[u8]>::to_vec));
        }
    }
    names
}

/// What a request asks of a cache (section 5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The server is to be asked whatever is kept.
    pub ask: bool,
    /// Nothing older, in seconds.
    pub max_age: Option<u32>,
    /// Good for so many seconds more.
    pub min_fresh: u32,
    /// Past its time by so many seconds at most.
    pub max_stale: u32,
    /// The server is not to be asked.
    pub only_if_cached: bool,
    /// The response is not to be kept.
    pub no_store: bool,
}

impl Request {
    /// What its fields say.
    pub fn of(req: &Head) -> Request {
        let mut asked = Request::default();
        for value in req.values(Known::CacheControl) {
            let (name, text) = directive(value);
            match name.to_ascii_lowercase().as_slice() {
                b"no-cache" => asked.ask = true,
                b"max-age" => asked.max_age = Some(seconds(text)),
                b"min-fresh" => asked.min_fresh = seconds(text),
                b"max-stale" => asked.max_stale = text.map_or(u32::MAX, |_| seconds(text)),
                b"only-if-cached" => asked.only_if_cached = true,
                b"no-store" => asked.no_store = true,
                _ => {}
            }
        }
        asked.ask |= !req.has(Known::CacheControl) && req.has_token("pragma", b"no-cache");
        asked
    }

    /// Whether it takes what is `age` seconds old and good for `left` more.
    pub fn takes(&self, age: u64, left: u64) -> bool {
        let old = self.max_age.is_some_and(|most| age > u64::from(most));
        !self.ask && !old && left >= u64::from(self.min_fresh)
    }

    /// Whether it takes what is `age` seconds old and `late` past its time, if that may be given at all.
    pub fn takes_late(&self, age: u64, late: u64) -> bool {
        self.max_stale > 0 && late <= u64::from(self.max_stale) && self.takes(age, u64::MAX)
    }
}

/// Conditions that a client makes itself, and ranges: its server answers those.
pub fn is_conditional(req: &Head) -> bool {
    let names = ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"];
    names.iter().any(|name| req.has(*name)) || req.has(Known::Range)
}

/// Makes a request ask whether what a cache has is still good. False if there is no room.
#[must_use]
pub fn ask(req: &mut Head, kept: &Head) -> bool {
    [("etag", "if-none-match"), ("last-modified", "if-modified-since")]
        .into_iter()
        .all(|(from, to)| kept.first(from).is_none_or(|value| req.set(to, value).is_ok()))
}

/// Takes the question back.
pub fn unask(req: &mut Head) {
    req.remove_all("if-none-match");
    req.remove_all("if-modified-since");
}

/// Brings what is kept up to date with a 304 (section 3.2). What tells of the body, of the message or of the
/// connection stays as it was.
pub fn update(kept: &mut Head, with: &Head) {
    const OTHERS: [&str; 12] = [
        "connection",
        "content-encoding",
        "content-length",
        "content-md5",
        "content-range",
        "etag",
        "keep-alive",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let meant = |name: &[u8]| !OTHERS.iter().any(|other| is(name, other.as_bytes()));
    let fields = || with.fields().filter(|(_, name, _)| meant(name));
    for (_, name, _) in fields() {
        kept.remove_all(name);
    }
    for (_, name, value) in fields() {
        // A head that is full keeps what it has.
        let _ = kept.append(name, value);
    }
}

/// Where what a request changed is to be had, too: `Location` and `Content-Location` of its response, if they
/// are of its host (section 4.4). Given `host` and `target` of the request, says the targets.
pub fn changed(res: &Head, host: &[u8], target: &[u8]) -> Vec<Vec<u8>> {
    let of = |name: &'static str| res.first(name).and_then(|text| resolve(text, host, target));
    ["location", "content-location"].into_iter().filter_map(of).collect()
}

/// The target of a reference (RFC 3986 section 5.2) without dot segments in it, if it leads to the host.
fn resolve(reference: &[u8], host: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.split(|byte| *byte == b'#').next()?.trim_ascii();
    let schemes: [&[u8]; 3] = [b"http://", b"https://", b"//"];
    let scheme = schemes
        .iter()
        .find(|scheme| reference.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    if let Some(scheme) = scheme {
        let rest = reference.get(scheme.len()..)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let path = if path.first() == Some(&b'/') { path.to_vec() } else { [b"/", path].concat() };
        return authority.eq_ignore_ascii_case(host).then_some(path);
    }
    if reference.first() == Some(&b'/') {
        return Some(reference.to_vec());
    }
    let path = target.split(|byte| *byte == b'?').next()?;
    let folder = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let plain = !reference.is_empty() && !reference.contains(&b':') && reference.first() != Some(&b'.');
    plain.then(|| [path.get(..folder).unwrap_or_default(), reference].concat())
}

/// The fields that a response depends on, in small letters and in order; `None` if on something else (`*`).
pub fn varies(res: &Head) -> Option<Vec<Vec<u8>>> {
    let mut names: Vec<Vec<u8>> =
        res.values("vary").map(|name| name.trim_ascii().to_ascii_lowercase()).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    (!names.iter().any(|name| name == b"*")).then_some(names)
}

/// What a request says in a field that a response depends on: its values without blanks around them.
pub fn said_in(req: &Head, name: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for part in parts(req, name) {
        text.extend_from_slice(part);
        text.push(b',');
    }
    text
}

/// Whether a request says this in a field, as [`said_in`] has it.
pub fn says(req: &Head, name: &[u8], mut text: &[u8]) -> bool {
    for part in parts(req, name) {
        match text.strip_prefix(part).and_then(|rest| rest.strip_prefix(b",")) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    text.is_empty()
}

fn parts<'h>(req: &'h Head, name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    let fields = req.all(name).map(|(_, field)| field);
    fields.flat_map(|field| field.split(|byte| *byte == b',').map(<[u8]>::trim_ascii))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000;
    const DATE: &str = "Sun, 09 Sep 2001 01:46:40 GMT";

    fn response(status: u16, fields: &[(&str, &str)]) -> Head {
        let mut head = Head::response();
        head.set_status(status, None).unwrap();
        for (name, value) in fields {
            head.append(*name, value.as_bytes()).unwrap();
        }
        head
    }

    fn fresh(status: u16, fields: &[(&str, &str)]) -> Option<u32> {
        allowed(&response(status, fields), NOW, false).map(|life| life.fresh)
    }

    #[test]
    fn a_response_is_good_for_as_long_as_the_rfc_says() {
        let control = |text| fresh(200, &[("cache-control", text), ("etag", "\"a\"")]);
        for (text, seconds) in [
            ("max-age=10", Some(10)),
            ("max-age=1, max-age=10", Some(1)),
            ("s-maxage=5, max-age=10", Some(5)),
            ("max-age=abc", Some(0)),
            ("max-age=10, no-cache", Some(0)),
            ("max-age=10, no-cache=\"set-cookie\"", Some(10)),
            ("max-age=99999999999", Some(u32::MAX)),
            ("private", None),
            ("no-store, max-age=10", None),
        ] {
            assert_eq!(control(text), seconds, "{text}");
        }
        assert_eq!(fresh(200, &[("cache-control", "no-cache")]), None, "nothing to ask with");
        assert_eq!(fresh(200, &[("cache-control", "max-age=10"), ("age", "4")]), Some(6));
        assert_eq!(fresh(200, &[("cache-control", "max-age=10"), ("age", "4"), ("age", "0")]), None);
        let (old, later) = ("Sun, 09 Sep 2001 01:46:30 GMT", "Sun, 09 Sep 2001 01:47:00 GMT");
        assert_eq!(fresh(200, &[("cache-control", "max-age=30"), ("date", old)]), Some(20));
        assert_eq!(fresh(200, &[("expires", later), ("date", DATE)]), Some(20));
        assert_eq!(fresh(200, &[("expires", "0"), ("etag", "x")]), Some(0));
        let changed = ("last-modified", "Sun, 09 Sep 2001 01:30:00 GMT");
        assert_eq!(fresh(404, &[changed]), Some(100));
        assert_eq!(fresh(403, &[changed]), None);
        assert_eq!(fresh(403, &[changed, ("cache-control", "public")]), Some(100));
        assert_eq!(fresh(599, &[("cache-control", "max-age=10")]), Some(10));
        assert_eq!(fresh(599, &[("cache-control", "max-age=10, must-understand")]), None);
        assert_eq!(fresh(206, &[("cache-control", "max-age=10")]), None);
    }

    #[test]
    fn what_names_a_user_is_kept_if_it_says_so() {
        for (text, kept) in [
            ("max-age=9", false),
            ("public, max-age=9", true),
            ("s-maxage=9", true),
            ("must-revalidate, max-age=9", true),
            ("proxy-revalidate, max-age=9", false),
        ] {
            let life = allowed(&response(200, &[("cache-control", text)]), NOW, true);
            assert_eq!(life.is_some(), kept, "{text}");
        }
    }

    #[test]
    fn variants_are_told_by_values_without_blanks() {
        let request = |fields: &[&str]| {
            let mut head = Head::request();
            for value in fields {
                head.append("x", value.as_bytes()).unwrap();
            }
            head
        };
        let said = said_in(&request(&["a, b", "c"]), b"x");
        for (fields, same) in [
            (&["a,b ,  c"][..], true),
            (&["a", "b", "c"], true),
            (&["a, b"], false),
            (&["a, b, c, d"], false),
            (&["ab, c"], false),
            (&[], false),
        ] {
            assert_eq!(says(&request(fields), b"x", &said), same, "{fields:?}");
        }
        assert!(says(&request(&[]), b"x", b"") && !says(&request(&[""]), b"x", b""));
    }

    #[test]
    fn a_304_tells_of_all_but_the_body() {
        let mut kept = response(200, &[("a", "1"), ("content-length", "5"), ("etag", "\"x\""), ("b", "1")]);
        update(
            &mut kept,
            &response(304, &[("A", "2"), ("a", "3"), ("content-length", "0"), ("etag", "\"y\"")]),
        );
        let fields: Vec<(&[u8], &[u8])> = kept.fields().map(|(_, name, value)| (name, value)).collect();
        let expected: [(&[u8], &[u8]); 5] =
            [(b"content-length", b"5"), (b"etag", b"\"x\""), (b"b", b"1"), (b"a", b"2"), (b"a", b"3")];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_change_is_one_of_its_host() {
        for (location, target) in [
            ("/a?b#c", Some("/a?b")),
            ("http://H/a", Some("/a")),
            ("https://h?a", Some("/?a")),
            ("//h", Some("/")),
            ("c", Some("/a/c")),
            ("http://other/a", None),
            ("../c", None),
            ("mailto:x", None),
            ("", None),
        ] {
            let found = changed(&response(201, &[("location", location)]), b"h", b"/a/b?/c");
            let expected: Vec<&[u8]> = target.iter().map(|text| text.as_bytes()).collect();
            assert_eq!(found, expected, "{location}");
        }
    }
}
