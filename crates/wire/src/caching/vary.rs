//! Responses that depend on fields of the request (RFC 9111 section 4.1). As HAProxy does, three fields are
//! looked at: what encodings a client takes, and where it comes from.

use crate::head::Head;

/// Codings of content, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u16);

/// Those of the registry (RFC 9110 section 16.6.1), the first being none at all.
const KNOWN: [&[u8]; 11] = [
    b"identity",
    b"gzip",
    b"x-gzip",
    b"deflate",
    b"compress",
    b"x-compress",
    b"br",
    b"zstd",
    b"exi",
    b"pack200-gzip",
    b"aes128gcm",
];

impl Codings {
    const IDENTITY: Codings = Codings(1);
    const ALL: Codings = Codings((1 << KNOWN.len()) - 1);

    fn of(name: &[u8]) -> Option<Codings> {
        KNOWN.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|at| Codings(1 << at))
    }

    /// Those of a response: what its content went through, identity where it went through nothing. `None` if
    /// one of them is not in the registry.
    pub fn of_response(res: &Head) -> Option<Codings> {
        let mut codings = Codings::default();
        for name in res.values("content-encoding") {
            codings.0 |= Codings::of(name.trim_ascii())?.0;
        }
        Some(if codings.0 == 0 { Codings::IDENTITY } else { codings })
    }

    /// A bit for each of them.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Whether a client that takes these can read what has all of `others`.
    pub fn take(self, others: Codings) -> bool {
        self.0 & others.0 == others.0
    }
}

/// What requests say that a response may depend on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted<'h> {
    /// The codings that the client takes.
    pub codings: Codings,
    /// `Referer`.
    pub referer: Option<&'h [u8]>,
    /// `Origin`.
    pub origin: Option<&'h [u8]>,
}

impl Accepted<'_> {
    /// What a request says.
    pub fn of(req: &Head) -> Accepted<'_> {
        Accepted { codings: accepted(req), referer: req.first("referer"), origin: req.first("origin") }
    }
}

/// The codings that a request takes (RFC 9110 section 12.5.3): all where it says nothing.
fn accepted(req: &Head) -> Codings {
    if !req.has("accept-encoding") {
        return Codings::ALL;
    }
    let (mut named, mut taken, mut rest) = (Codings::default(), Codings::default(), None);
    for value in req.values("accept-encoding") {
        let mut parts = value.split(|c| *c == b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let refused = parts.any(is_zero);
        if name == b"*" {
            rest = Some(!refused);
        } else if let Some(coding) = Codings::of(name) {
            named.0 |= coding.0;
            taken.0 |= if refused { 0 } else { coding.0 };
        }
    }
    let others = Codings::ALL.0 & !named.0;
    match rest {
        Some(true) => taken.0 |= others,
        Some(false) => {}
        // What is not encoded is welcome unless it is refused.
        None => taken.0 |= others & Codings::IDENTITY.0,
    }
    taken
}

/// Whether a parameter is a weight of nothing.
fn is_zero(parameter: &[u8]) -> bool {
    let Some(at) = parameter.iter().position(|c| *c == b'=') else { return false };
    let (name, value) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
    name.eq_ignore_ascii_case(b"q") && value.iter().all(|c| matches!(c, b'0' | b'.')) && !value.is_empty()
}

/// What a response depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Varies {
    /// On `Accept-Encoding`.
    pub codings: bool,
    /// On `Referer`.
    pub referer: bool,
    /// On `Origin`.
    pub origin: bool,
}

/// What `Vary` of a response names; `None` if anything else is there.
pub fn varies(res: &Head) -> Option<Varies> {
    let mut varies = Varies::default();
    for (_, field) in res.all("vary") {
        for name in field.split(|c| *c == b',') {
            let name = name.trim_ascii().to_ascii_lowercase();
            match name.as_slice() {
                b"accept-encoding" => varies.codings = true,
                b"referer" => varies.referer = true,
                b"origin" => varies.origin = true,
                _ => return None,
            }
        }
    }
    Some(varies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(accept: &[&str], encoding: &str) -> bool {
        let (mut req, mut res) = (Head::request(), Head::response());
        for value in accept {
            req.append(b"accept-encoding", value.as_bytes()).unwrap();
        }
        if !encoding.is_empty() {
            res.append(b"content-encoding", encoding.as_bytes()).unwrap();
        }
        accepted(&req).take(Codings::of_response(&res).unwrap())
    }

    /// As HAProxy decides.
    #[test]
    fn a_client_reads_what_it_takes() {
        for (accept, encoding, fits) in [
            (&[][..], "gzip", true),
            (&[], "", true),
            (&["gzip"], "gzip", true),
            (&["GZIP"], "gzip", true),
            (&["first, second", "gzip"], "gzip", true),
            (&["gzip  ; q=0.8"], "gzip", true),
            (&["deflate;q=0.8, gzip;q=0"], "gzip", false),
            (&["gzip"], "", true),
            (&[""], "", true),
            (&[""], "gzip", false),
            (&["deflate, identity;q=0"], "", false),
            (&["*"], "br", true),
            (&["gzip;q=0, deflate,*;q=0.1"], "br", true),
            (&["gzip;q=0, deflate,*;q=0"], "br", false),
            (&["gzip;q=0.8, deflate"], "deflate, gzip", true),
            (&["deflate"], "deflate, gzip", false),
        ] {
            assert_eq!(takes(accept, encoding), fits, "{accept:?} {encoding}");
        }
    }

    #[test]
    fn three_fields_are_known() {
        let of = |text: &str| {
            let mut res = Head::response();
            res.append(b"vary", text.as_bytes()).unwrap();
            varies(&res)
        };
        assert_eq!(of("referer, Origin"), Some(Varies { codings: false, referer: true, origin: true }));
        assert!(of("*").is_none() && of("origin, user-agent").is_none() && of("").is_none());
        assert_eq!(varies(&Head::response()), Some(Varies::default()));
    }
}
