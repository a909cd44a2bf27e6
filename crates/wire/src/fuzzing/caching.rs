//! What caches make of heads.

use crate::caching::{self, Accepted, Codings, Freshness, Wanted, standard};
use crate::head::Head;
use crate::http1::{Limits, Parsed, parse_request, parse_response};

/// A response, and behind its head a request: nothing is kept that forbids it, parts lie within the whole,
/// and links are fields that may be sent.
pub fn caching(data: &[u8]) {
    let (mut res, mut req) = (Head::response(), Head::request());
    let Ok(Parsed::Complete { consumed }) = parse_response(data, &mut res, &Limits::default(), false) else {
        return;
    };
    let rest = data.get(consumed..).unwrap_or_default();
    if !matches!(parse_request(rest, &mut req, &Limits::default(), false), Ok(Parsed::Complete { .. })) {
        req = Head::request();
    }
    let freshness = Freshness::of(&res, 1_000_000_000);
    if res.has_token("cache-control", b"no-store") || caching::age(&res).is_none() {
        assert_eq!(freshness, Freshness::Never);
    }
    let _ = (caching::asked(&req), caching::may_be_stale(&res), caching::modified(&res, 0));
    let unchanged = caching::is_unchanged(&req, res.first("etag"), 0);
    assert!(!unchanged || req.has("if-none-match") || req.has("if-modified-since"));
    by_the_standard(&req, &res);
    let codings = Codings::of_response(&res).unwrap_or_default();
    // What takes something takes its parts.
    assert!(Accepted::of(&req).codings.take(Codings::default()) && codings.take(codings));
    let _ = caching::varies(&res);
    for length in [0, 1, 10, usize::MAX] {
        if let Wanted::Part(part) = caching::wanted(&req, &res, length) {
            assert!(part.start < part.end && part.end <= length);
        }
    }
    let mut hints = Vec::new();
    let any = caching::hints(&res, &mut hints);
    assert_eq!(any, !hints.is_empty());
    let copy = res.compact();
    assert_eq!(copy.wire_len(), res.wire_len());
    assert!(copy.fields().map(|(_, n, v)| (n, v)).eq(res.fields().map(|(_, n, v)| (n, v))));
    for line in hints.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(line.starts_with(b"link: <") && line.ends_with(b"\r"));
        assert_eq!(line.iter().filter(|byte| **byte == b'\r').count(), 1);
    }
}

/// The same of what RFC 9111 allows: questions can be taken back, a 304 changes no body, and what was changed
/// elsewhere is of this host.
fn by_the_standard(req: &Head, res: &Head) {
    let request = standard::Request::of(req);
    assert!(!request.ask || !request.takes(0, u64::MAX));
    let allowed = standard::allowed(res, 1_000_000_000, req.has("authorization"));
    if res.has_token("cache-control", b"no-store") {
        assert_eq!(allowed, None);
    }
    let mut kept = res.compact();
    kept.set_limit(usize::MAX);
    standard::update(&mut kept, res);
    assert_eq!(kept.len(), res.len());
    for name in standard::unkept_fields(res) {
        kept.remove_all(name.as_slice());
    }
    let mut asks = req.compact();
    if !standard::is_conditional(req) && standard::ask(&mut asks, res) {
        standard::unask(&mut asks);
        assert_eq!(asks.len(), req.len());
    }
    for name in standard::varies(res).unwrap_or_default() {
        assert!(standard::says(req, &name, &standard::said_in(req, &name)));
    }
    for target in standard::changed(res, b"h", req.target()) {
        assert!(!target.contains(&b'#'));
    }
}
