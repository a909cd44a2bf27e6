//! An entry for fuzzers: any bytes are what an expression brings into the heads that rules edit and make.
//!
//! However a rule takes them there, a head has as many lines as fields, and no byte but those ends is a
//! control character.

use wire::head::Head;

use crate::action::{Flow, Need, Reply};
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
