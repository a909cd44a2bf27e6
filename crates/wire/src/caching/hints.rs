//! Links that a client may follow before the response is there (RFC 8297; manual, `early-hints` of `cache`).

use crate::head::{Head, comma};

/// Relations that are worth a hint.
const WORTH: [&[u8]; 5] = [b"preload", b"preconnect", b"dns-prefetch", b"modulepreload", b"prefetch"];

/// Writes a `link` field for each such field of a response that has links worth a hint, with these alone.
/// Whether there are any.
pub fn hints(res: &Head, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    for (_, field) in res.all("link") {
        let start = out.len();
        for link in links(field).filter(|link| is_hint(link)) {
            out.extend_from_slice(if out.len() == start { b"link: " } else { b", " });
            out.extend_from_slice(link);
        }
        if out.len() > start {
            out.extend_from_slice(b"\r\n");
        }
    }
    out.len() > before
}

/// The links of a field. As in HAProxy all commas outside of quotes part them, those between angle brackets
/// too.
fn links(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(field);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = comma(text);
        rest = text.get(end + 1..);
        Some(text.get(..end).unwrap_or(text).trim_ascii())
    })
}

/// Where `text` is cut by the first `mark` that stands neither in quotes nor in angle brackets.
fn end_of(text: &[u8], mark: u8) -> usize {
    let (mut quoted, mut angled, mut escaped) = (false, false, false);
    for (at, &c) in text.iter().enumerate() {
        match c {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' if !angled => quoted = !quoted,
            b'<' if !quoted => angled = true,
            b'>' if !quoted => angled = false,
            c if c == mark && !quoted && !angled => return at,
            _ => {}
        }
    }
    text.len()
}

/// Whether a link begins as one, and its first `rel` says one of those relations.
fn is_hint(link: &[u8]) -> bool {
    if !link.starts_with(b"<") {
        return false;
    }
    let mut rest = link.get(end_of(link, b';') + 1..);
    while let Some(text) = rest {
        let end = end_of(text, b';');
        let parameter = text.get(..end).unwrap_or(text);
        rest = text.get(end + 1..);
        let at = parameter.iter().position(|c| *c == b'=');
        let (name, value) = match at {
            Some(at) => (parameter[..at].trim_ascii(), Some(parameter[at + 1..].trim_ascii())),
            None => (parameter.trim_ascii(), None),
        };
        if name.eq_ignore_ascii_case(b"rel") {
            return value.is_some_and(is_worth);
        }
    }
    false
}

/// Of several relations in quotes one suffices; without quotes there may be one only.
fn is_worth(value: &[u8]) -> bool {
    let worth = |word: &[u8]| WORTH.iter().any(|known| known.eq_ignore_ascii_case(word));
    match value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")) {
        Some(list) => list.split(u8::is_ascii_whitespace).any(worth),
        None => worth(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(links: &[&str]) -> String {
        let mut res = Head::response();
        for link in links {
            res.append(b"link", link.as_bytes()).unwrap();
        }
        let mut out = Vec::new();
        assert_eq!(hints(&res, &mut out), !out.is_empty());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn links_worth_a_hint_are_found() {
        for (link, hint) in [
            ("<a.css>; rel=\"preload prefetch\"", "<a.css>; rel=\"preload prefetch\""),
            ("<a.css>; crossorigin; rel=preload", "<a.css>; crossorigin; rel=preload"),
            ("<a.css>; rel = preload", "<a.css>; rel = preload"),
            ("<a.css>; rel=stylesheet, , <b.js>; rel=preload", "<b.js>; rel=preload"),
            ("<a.css>; rel=preload prefetch", ""),
            ("<a.css>; rel=stylesheet", ""),
            ("<a.css>; rel=preload; rel=stylesheet", "<a.css>; rel=preload; rel=stylesheet"),
            ("<a.css>; rel=stylesheet; rel=preload", ""),
            (
                "<a.css>; title=\"foo \\\"bar\\\"\"; rel=preload",
                "<a.css>; title=\"foo \\\"bar\\\"\"; rel=preload",
            ),
            ("</a>; title=\"x\\\"; rel=preload; y=\\\"z\"", ""),
            ("</a,b.css>; REL=PRELOAD, </c>; REL=PRELOAD", "</c>; REL=PRELOAD"),
            ("a; rel=preload", ""),
            ("<a>;rel=preload,<b>;rel=dns-prefetch;b=\",\"", "<a>;rel=preload, <b>;rel=dns-prefetch;b=\",\""),
        ] {
            let expected = if hint.is_empty() { String::new() } else { format!("link: {hint}\r\n") };
            assert_eq!(of(&[link]), expected, "{link}");
        }
        assert_eq!(
            of(&["<a>; rel=preload", "<b>; rel=next", "<c>; rel=prefetch"]),
            "link: <a>; rel=preload\r\nlink: <c>; rel=prefetch\r\n"
        );
    }
}
