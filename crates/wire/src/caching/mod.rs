//! What caches on the way may keep, for how long, and for whom (RFC 9111; manual, section 6).

mod freshness;
mod hints;
mod range;
pub mod standard;
mod validators;
mod vary;

pub use freshness::{Asked, Freshness, age, asked, may_be_stale};
pub use hints::hints;
pub use range::{Wanted, wanted};
pub use validators::{is_unchanged, modified};
pub use vary::{Accepted, Codings, Varies, varies};

use crate::head::Head;
use crate::method::Method;

/// Whether a cache may keep a response to this method: its status and method allow it (RFC 9110 section
/// 15.1), and its fields say how long it is good, or how to ask for it again.
pub fn is_cacheable(method: Method, res: &Head) -> bool {
    let asked = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    let status = matches!(res.status(), 200 | 203 | 204 | 206 | 300 | 301 | 404 | 405 | 410 | 414 | 501);
    let mut may_be_kept = asked && status;
    let mut fresh = ["expires", "etag", "last-modified"].iter().any(|name| res.first(*name).is_some());
    let mut forbidden = res.has_token("pragma", b"no-cache");
    // Of the two ages that for shared caches counts.
    let (mut age, mut shared_age) = (None, None);
    for value in res.values("cache-control") {
        let value = value.to_ascii_lowercase();
        let text = value.as_slice();
        let starts = |word: &[u8]| text.starts_with(word);
        if text == b"public" {
            may_be_kept = true;
        } else if matches!(text, b"private" | b"no-cache" | b"no-store") || starts(b"no-cache=") {
            forbidden = true;
        } else if let Some(seconds) = text.strip_prefix(b"s-maxage=") {
            shared_age = Some(shared_age.unwrap_or(true) && seconds != b"0");
        } else if let Some(seconds) = text.strip_prefix(b"max-age=") {
            age = Some(age.unwrap_or(true) && seconds != b"0");
        }
    }
    match shared_age.or(age) {
        Some(true) => fresh = true,
        Some(false) => forbidden = true,
        None => {}
    }
    may_be_kept && fresh && !forbidden
}
