//! Entries for fuzzers. [`fields`]: any bytes are what an expression brings into the heads that rules edit.
//!
//! However a rule takes them there, a head has as many lines as fields, and no byte but those ends is a
//! control character.

use model::cached::Asks;
use wire::head::Head;
use wire::http1::{Parsed, parse_request, parse_response};

use crate::act::cache;
use crate::action::{Exec, Flow, Need, Reply};
use crate::env::Side;
use crate::logfmt::Use;
use crate::registry::Sets;
use crate::testing::Stage;

/// Rules that write what `txn.bad` and `txn.raw` hold, a text and bytes, into a request's head.
const REQUEST: &[&str] = &[
    "set-header x-set %[var(txn.bad)]",
    "add-header x-set a%[var(txn.raw)]b%[var(txn.bad)]",
    "add-header x-quoted %{+Q,+E}[var(txn.bad)]",
    "replace-header x-list .* %[var(txn.bad)]",
    "replace-value x-list (.*) \\1%[var(txn.bad)]",
    "set-header x-sub %[str(abc),regsub(b,%[var(txn.bad)])]",
    "replace-path (.*) \\1%[var(txn.bad)]",
    "replace-pathq (.*) \\1%[var(txn.bad)]",
    "replace-uri (.*) \\1%[var(txn.bad)]",
    "set-path /%[var(txn.bad)]",
    "set-query %[var(txn.bad)]",
    "set-uri /%[var(txn.bad)]",
    "set-method M%[var(txn.bad)]",
];

/// Rules that make answers.
const ANSWERS: &[&str] = &[
    "return status 200 hdr x %[var(txn.bad)]",
    "deny status 403 hdr x %[var(txn.bad)]",
    "redirect location /%[var(txn.bad)] set-cookie-fmt k=%[var(txn.bad)]",
    "redirect prefix /%[var(txn.bad)]",
    "redirect scheme s%[var(txn.bad)]",
];

/// Has something act on a request, with these bytes as its body, and on its answer; what it leaves may be
/// sent.
pub fn on_stage<R>(body: &[u8], act: impl FnOnce(&mut Exec<'_>) -> R) -> R {
    let mut stage = Stage::new();
    stage.outside.body = body.to_vec();
    let arena = bumpalo::Bump::new();
    let acted = act(&mut Exec {
        conn: &stage.conn,
        txn: &mut stage.txn,
        live: &stage.outside,
        arena: &arena,
        side: Side::Request,
        last: true,
        resumed: None,
    });
    check(&stage.txn.req, "a request");
    check(&stage.txn.res, "a response");
    acted
}

/// Takes the bytes through all of them.
pub fn fields(data: &[u8]) {
    let mut stage = Stage::new();
    stage.outside.body = data.to_vec();
    stage.pass(Sets::HTTP_REQ, "set-var(txn.raw) req.body");
    stage.pass(Sets::HTTP_REQ, "set-var(txn.bad) req.body,concat(x)");
    for rule in REQUEST {
        stage.pass(Sets::HTTP_REQ, rule);
        check(&stage.txn.req, rule);
    }
    for rule in ["set-header x-res %[var(txn.bad)]", "replace-header server .* %[var(txn.bad)]"] {
        stage.pass(Sets::HTTP_RES, rule);
        check(&stage.txn.res, rule);
    }
    for rule in ANSWERS {
        match stage.decide(Sets::HTTP_REQ, rule) {
            Flow::Reply(reply) | Flow::Deny(reply) => answer(&stage, reply, rule),
            _ => panic!("{rule}: no answer"),
        }
    }
    let Flow::Yield(Need::Interim(hint)) = stage.decide(Sets::HTTP_REQ, "early-hint link %[var(txn.bad)]")
    else {
        panic!("no early hint");
    };
    lines(&hint, 1, "early-hint");
}

/// Two requests and a response to the first: they have one key in caches only if host and target are the
/// same, whatever form that has, and the second is answered with the response only if it says the same where
/// that depends on it.
pub fn cache_keys(data: &[u8]) {
    let limits = wire::http1::Limits::default();
    for relax in [false, true] {
        let (mut one, mut two, mut res) = (Head::request(), Head::request(), Head::response());
        let Ok(Parsed::Complete { consumed }) = parse_request(data, &mut one, &limits, relax) else {
            continue;
        };
        let rest = data.get(consumed..).unwrap_or_default();
        let Ok(Parsed::Complete { consumed }) = parse_request(rest, &mut two, &limits, relax) else {
            continue;
        };
        let rest = rest.get(consumed..).unwrap_or_default();
        if !matches!(parse_response(rest, &mut res, &limits, relax), Ok(Parsed::Complete { .. })) {
            res = Head::response();
        }
        let (mut asks, mut others) = (Asks::default(), Asks::default());
        let keyed = (cache::make_key(&one, &mut asks.key), cache::make_key(&two, &mut others.key));
        let place = |req: &Head| {
            let host = req.first("host").unwrap_or_else(|| wire::uri::authority(req.target())).to_vec();
            let before =
                if req.target().starts_with(b"/") { [b"https://", &*host].concat() } else { Vec::new() };
            (host, [&before, req.target()].concat())
        };
        if keyed == (true, true) {
            assert_eq!(asks.key == others.key, place(&one) == place(&two), "keys");
        }
        asks.accept(&one);
        others.accept(&two);
        let Some(audience) = cache::audience(true, &asks, &res) else { continue };
        if audience.has(&others) {
            let same = |name: &str| one.first(name) == two.first(name);
            assert!(!audience.varies.referer || same("referer"), "referer");
            assert!(!audience.varies.origin || same("origin"), "origin");
        }
    }
}

fn answer(stage: &Stage, reply: Reply, rule: &str) {
    let mut head = Head::response();
    for (name, value) in &reply.computed {
        lines(value, 0, rule);
        head.append(name.as_bytes(), value).unwrap();
    }
    for (name, format) in reply.headers.iter() {
        let mut value = Vec::new();
        stage.with_env(|env| format.append(env, Use::Header, &mut value));
        lines(&value, 0, rule);
        head.append(&**name, &value).unwrap();
    }
    check(&head, rule);
}

/// Writes a head and looks at its lines.
fn check(head: &Head, rule: &str) {
    let mut written = Vec::new();
    wire::http1::write_head(head, &mut |part| written.extend_from_slice(part));
    lines(&written, head.len() + 2, rule);
}

fn lines(written: &[u8], wanted: usize, rule: &str) {
    let control = |c: &&u8| (**c < b' ' && **c != b'\t') || **c == 0x7f;
    let found = written.iter().filter(control).count();
    let ends = written.windows(2).filter(|pair| pair == b"\r\n").count();
    assert_eq!((ends, found), (wanted, 2 * wanted), "{rule}: {:?}", String::from_utf8_lossy(written));
}

#[cfg(test)]
mod tests {
    #[test]
    fn caches_tell_requests_apart() {
        let request = |host: &str, target: &str, more: &str| {
            format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{more}\r\n")
        };
        let answer = "HTTP/1.1 200 OK\r\nvary: referer, origin\r\n\r\n";
        for two in [
            request("a", "/b", "origin: o\r\n"),
            request("a", "/c", ""),
            request("b", "/b", "referer: r\r\n"),
        ] {
            super::cache_keys((request("a", "/b", "origin: o\r\n") + &two + answer).as_bytes());
        }
    }

    #[test]
    fn no_bytes_of_a_sample_end_a_line() {
        for data in
            [&b"a\r\nb: c"[..], b"\0\x01\x7f\t", b"\\x0d\\x0ab\\", b"\\1\\n\\x00", b"\xff\"]%0d%0a", b""]
        {
            super::fields(data);
        }
        // Short texts of what matters, from a fixed seed.
        let bytes = b"\r\n\0\t\\x0da1\"%[]:\x7f\xff ";
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200 {
            let text: Vec<u8> = (0..12)
                .map(|_| {
                    seed = seed.wrapping_mul(0xd129_42f0_2f0c_7a4d).wrapping_add(1);
                    bytes[(seed >> 33) as usize % bytes.len()]
                })
                .collect();
            super::fields(&text);
        }
    }
}
