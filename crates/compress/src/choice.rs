//! Whether a message is compressed, and how.

use lang::compression::{Algorithm, Effective};
use wire::head::Head;
use wire::http1::{Body, request_body, response_body};
use wire::method::{Method, Version};

/// A weight, in thousandths.
type Weight = u16;

const WHOLE: Weight = 1000;

/// The weight that a member of `Accept-Encoding` has: what is no weight at all, or more than 1, counts as 1.
fn weight(parameters: &[u8]) -> Weight {
    let mut parts = parameters.split(|b| *b == b';').map(<[u8]>::trim_ascii);
    let value = parts.find_map(|p| p.strip_prefix(b"q=").or_else(|| p.strip_prefix(b"Q=")));
    let Some([first, rest @ ..]) = value else { return WHOLE };
    let digits = match (first, rest) {
        (b'0', []) => return 0,
        (b'0', [b'.', digits @ ..]) => digits,
        _ => return WHOLE,
    };
    let digit = |at: usize| match digits.get(at) {
        Some(b @ b'0'..=b'9') => Weight::from(b - b'0'),
        _ => 0,
    };
    digit(0) * 100 + digit(1) * 10 + digit(2)
}

/// The algorithm that a client and the list of a proxy agree on.
///
/// The greatest weight wins. Among equal ones it is the first in the client's words, as in HAProxy, unless
/// the list has one that HAProxy does not know: whoever lists `br` or `zstd` wants them before `gzip`, which
/// browsers name first, so the list decides then. `*` means the last of the list.
fn named(req: &Head, algorithms: &[Algorithm]) -> Option<Algorithm> {
    let own_order = algorithms.iter().any(|a| matches!(a, Algorithm::Brotli | Algorithm::Zstd));
    let mut best: Option<(Weight, usize, Algorithm)> = None;
    for (_, name, value) in req.fields() {
        if !name.eq_ignore_ascii_case(b"accept-encoding") {
            continue;
        }
        for member in value.split(|b| *b == b',') {
            let (coding, parameters) = match member.iter().position(|b| *b == b';') {
                Some(at) => member.split_at(at),
                None => (member, &b""[..]),
            };
            let coding = coding.trim_ascii();
            let is = |a: &Algorithm| coding.eq_ignore_ascii_case(a.token().as_bytes());
            let place = match coding {
                b"*" => algorithms.len().checked_sub(1),
                _ => algorithms.iter().rposition(is),
            };
            let Some((place, algorithm)) = place.and_then(|p| Some((p, *algorithms.get(p)?))) else {
                continue;
            };
            let weight = weight(parameters);
            let better = match best {
                None => weight > 0,
                Some((w, p, _)) => weight > w || own_order && weight == w && place < p,
            };
            if better {
                best = Some((weight, place, algorithm));
            }
        }
    }
    best.map(|(.., algorithm)| algorithm)
}

/// Browsers that say they can, and can't: Mozilla 4 but for MSIE 6 with XP SP2, and MSIE 7 to 9.
fn is_old(req: &Head) -> bool {
    let Some(agent) = req.first("user-agent").filter(|agent| agent.starts_with(b"Mozilla/4")) else {
        return false;
    };
    // "Mozilla/4.0 (compatible; " comes first.
    match agent.get(25..).and_then(|rest| rest.strip_prefix(b"MSIE ")) {
        Some([b'7'..=b'9', ..]) => false,
        Some([b'6', rest @ ..]) => !rest.windows(3).any(|w| w == b"SV1"),
        _ => true,
    }
}

/// What the client's side of an exchange allows for its response, and whether the client has named it: where
/// nothing is agreed on, that is `identity` if the list has it. To be asked while the request is as rules
/// have left it.
pub fn for_response(req: &Head, settings: Effective<'_>) -> Option<(Algorithm, bool)> {
    if is_old(req) {
        return None;
    }
    if let Some(algorithm) = named(req, settings.algorithms) {
        return Some((algorithm, true));
    }
    settings.algorithms.contains(&Algorithm::Identity).then_some((Algorithm::Identity, false))
}

/// Whether its content type is one of those listed, and if it is none whether that is right, too.
fn is_listed(head: &Head, types: &[Box<[u8]>]) -> bool {
    types.is_empty()
        || head.first("content-type").is_some_and(|given| {
            let starts = |wanted: &[u8]| {
                given.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
            };
            types.iter().any(|wanted| starts(wanted))
        })
}

/// Whether the entity tag, if there is one, can be made a weak one.
fn has_sound_tag(head: &Head) -> bool {
    let mut tags = head.fields().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"etag"));
    match (tags.next(), tags.next()) {
        (None, _) => true,
        (Some((_, _, tag)), None) => {
            let quoted = tag.strip_prefix(b"W/").unwrap_or(tag);
            matches!(quoted, [b'"', .., b'"'])
        }
        _ => false,
    }
}

/// Whether a payload is worth it: there is one, and it is not known to be too short.
fn is_worth_it(body: Body, least: u64) -> bool {
    match body {
        Body::None | Body::UntilClose => false,
        Body::Length(length) => length > 0 && length >= least,
        Body::Chunked => true,
    }
}

fn says_no_transform(head: &Head) -> bool {
    head.fields().filter(|(_, name, _)| name.eq_ignore_ascii_case(b"cache-control")).any(|(_, _, value)| {
        value.split(|b| *b == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
    })
}

/// Whether a response may be compressed, as it came; `framed`: its end is told beside its head.
pub fn fits_response(req: &Head, res: &Head, framed: bool, settings: Effective<'_>) -> bool {
    let body = if framed { Body::Chunked } else { response_body(res, req.method_id()) };
    let new = req.version() >= Version::HTTP_11 && res.version() >= Version::HTTP_11;
    let multipart = res
        .first("content-type")
        .and_then(|given| given.get(..9))
        .is_some_and(|start| start.eq_ignore_ascii_case(b"multipart"));
    new && matches!(res.status(), 200..=203)
        && req.method_id() != Method::Head
        && res.first("content-encoding").is_none()
        && !multipart
        && is_worth_it(body, settings.least)
        && is_listed(res, settings.types)
        && has_sound_tag(res)
        && !says_no_transform(res)
}

/// Whether a request may be compressed.
pub fn fits_request(req: &Head, settings: Effective<'_>) -> bool {
    req.version() >= Version::HTTP_11
        && req.first("content-encoding").is_none()
        && is_worth_it(request_body(req), settings.least)
        && is_listed(req, settings.types)
        && has_sound_tag(req)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(accepted: &[&str]) -> Head {
        let mut head = Head::request();
        for value in accepted {
            head.append(b"accept-encoding", value.as_bytes()).expect("room");
        }
        head
    }

    fn choice(accepted: &str, list: &[Algorithm]) -> Option<Algorithm> {
        agreed(&request(&[accepted]), list)
    }

    fn agreed(req: &Head, list: &[Algorithm]) -> Option<Algorithm> {
        for_response(req, Effective { algorithms: list, ..Effective::default() })
            .map(|(algorithm, _)| algorithm)
    }

    /// What HAProxy 3.5 answers.
    #[test]
    fn clients_and_lists_agree() {
        use Algorithm::{Deflate, Gzip, Identity, RawDeflate};
        let list = &[Gzip, Deflate];
        for (accepted, chosen) in [
            ("gzip", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0.5, deflate;q=0.8", Some(Deflate)),
            ("*", Some(Deflate)),
            ("*;q=0", None),
            ("*;q=0.1, gzip;q=0", Some(Deflate)),
            ("identity;q=1, gzip;q=0.5", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", None),
            ("gzip;q=0.001", Some(Gzip)),
            ("gzip;q=abc", Some(Gzip)),
            ("gzip ; q=1", Some(Gzip)),
            ("br", None),
            ("", None),
            ("deflate;q=0.9,gzip;q=0.9", Some(Deflate)),
            ("gzip;q=1.5", Some(Gzip)),
            (";;q=,,*;q", Some(Deflate)),
        ] {
            assert_eq!(choice(accepted, list), chosen, "{accepted}");
        }
        let list = &[RawDeflate, Identity, Gzip];
        assert_eq!(choice("deflate", list), Some(RawDeflate));
        assert_eq!(choice("*", list), Some(Gzip));
        assert_eq!(choice("br", list), Some(Identity));
        assert_eq!(agreed(&request(&["br", "gzip"]), list), Some(Gzip));
    }

    /// Ours alone.
    #[test]
    fn the_list_decides_where_it_has_what_haproxy_lacks() {
        use Algorithm::{Brotli, Gzip, Zstd};
        let list = &[Zstd, Brotli, Gzip];
        assert_eq!(choice("gzip, deflate, br, zstd", list), Some(Zstd));
        assert_eq!(choice("gzip, deflate, br", list), Some(Brotli));
        assert_eq!(choice("gzip, br;q=0.9", list), Some(Gzip));
        assert_eq!(choice("zstd;q=0, br;q=0, gzip", list), Some(Gzip));
    }
}
