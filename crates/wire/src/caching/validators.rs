//! Whether a client that has a copy needs another (RFC 9110 section 13).

use std::time::UNIX_EPOCH;

use base::date::WEEKDAYS;

use crate::head::Head;

/// A date in any of the forms of RFC 9110 section 5.6.7, in seconds since 1970. Its day of the week may be
/// another than it was, and the usual form may be followed by something.
pub(super) fn date(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let of = |text: &str| httpdate::parse_http_date(text).ok();
    let other_day = |text: &str| {
        let day = text.find([',', ' '])?;
        let rest = text.get(day..)?;
        let known = WEEKDAYS
            .iter()
            .position(|name| text.get(..day) == Some(*name) || text.get(..day) == name.get(..3));
        known.and_then(|_| {
            WEEKDAYS.iter().find_map(|name| of(&format!("{}{rest}", name.get(..day.min(name.len()))?)))
        })
    };
    let any = |text: &str| of(text).or_else(|| other_day(text));
    let date = any(text).or_else(|| any(text.get(..29)?))?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// When what a response brings was changed last: by `Last-Modified`, else by `Date`, else when it came.
pub fn modified(res: &Head, came: u64) -> u64 {
    let of = |name: &str| res.first(name).and_then(date);
    of("last-modified").or_else(|| of("date")).unwrap_or(came)
}

/// Whether what the client has is what a cache has: one of its tags is `etag`, or nothing was changed since
/// its date. Dates count only where it names no tags.
pub fn is_unchanged(req: &Head, etag: Option<&[u8]>, modified: u64) -> bool {
    if req.has("if-none-match") {
        return req.values("if-none-match").any(|tag| {
            let tag = tag.trim_ascii();
            tag == b"*" || etag.is_some_and(|etag| strong(etag) == strong(tag) && is_tag(strong(tag)))
        });
    }
    req.first("if-modified-since").and_then(date).is_some_and(|since| modified <= since)
}

/// A tag without the mark that it is weak, which does not count here.
fn strong(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn is_tag(tag: &[u8]) -> bool {
    matches!(tag, [b'"', .., b'"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &[u8] = b"Thu, 15 Oct 2020 22:23:24 GMT";

    fn unchanged(fields: &[(&str, &str)], etag: Option<&[u8]>) -> bool {
        let mut head = Head::request();
        for (name, value) in fields {
            head.append(name.as_bytes(), value.as_bytes()).unwrap();
        }
        is_unchanged(&head, etag, date(DATE).unwrap())
    }

    #[test]
    fn tags_count_before_dates() {
        let tag = Some(&b"\"a\""[..]);
        assert!(unchanged(&[("if-none-match", "\"a\"")], tag));
        assert!(unchanged(&[("if-none-match", "\"b\", W/\"a\"")], tag));
        assert!(unchanged(&[("if-none-match", "\"a\"")], Some(b"W/\"a\"")));
        assert!(unchanged(&[("if-none-match", "*")], None));
        assert!(!unchanged(&[("if-none-match", "\"b\"")], tag));
        assert!(!unchanged(&[("if-none-match", "a")], Some(b"a")));
        assert!(!unchanged(
            &[("if-none-match", "\"x\""), ("if-modified-since", "Thu, 15 Oct 2020 22:23:25 GMT")],
            None
        ));
    }

    #[test]
    fn dates_come_in_three_forms() {
        for (since, same) in [
            ("Thu, 15 Oct 2020 22:23:24 GMT", true),
            ("Thursday, 15-Oct-20 22:23:24 GMT", true),
            ("Thu Oct 15 22:23:24 2020", true),
            ("Thu, 15 Oct 2020 22:23:23 GMT", false),
            ("garbage", false),
        ] {
            assert_eq!(unchanged(&[("if-modified-since", since)], None), same, "{since}");
        }
    }
}
