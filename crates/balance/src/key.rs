//! From the bytes of a request to the key that is hashed.
//!
//! Pure functions over bytes: the engine has the URI, the query, the header value at hand and asks here which
//! part of it counts. They follow configuration manual, `balance`; what the manual leaves open follows what
//! HAProxy was observed to do. A key that isn't there is `None`, and the request goes to whoever's turn it
//! is.

/// The arguments of `balance uri`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UriParams {
    /// `len`: at most this many bytes; 0 for no limit.
    pub len: usize,
    /// `depth`: stop before the slash that would begin one directory level more; 0 for no limit.
    pub depth: usize,
    /// `whole`: the query belongs to the key.
    pub whole: bool,
    /// `path-only`: the key starts with the path, not with the scheme and authority of an absolute URI.
    pub path_only: bool,
}

/// The key of `balance uri`: the left part of the request target.
pub fn uri(uri: &[u8], params: UriParams) -> &[u8] {
    let uri = if params.path_only { path(uri) } else { uri };
    let uri = if params.len > 0 { uri.get(..params.len).unwrap_or(uri) } else { uri };
    let mut slashes = 0;
    let mut ends = |&byte: &u8| {
        slashes += usize::from(byte == b'/');
        let deep = byte == b'/' && params.depth > 0 && slashes > params.depth;
        deep || (byte == b'?' && !params.whole)
    };
    let end = uri.iter().position(&mut ends).unwrap_or(uri.len());
    &uri[..end]
}

/// The request target from its path on: what follows the authority of an absolute URI; empty for `*`.
fn path(uri: &[u8]) -> &[u8] {
    if uri.first() == Some(&b'/') {
        return uri;
    }
    let Some(colon) = uri.windows(3).position(|w| w == b"://") else { return &[] };
    let rest = &uri[colon + 3..];
    rest.iter().position(|&c| c == b'/' || c == b'?').map_or(&[], |end| &rest[end..])
}

/// The key of `balance url_param`: the value of the parameter `name` in the query of `uri`.
pub fn url_param<'a>(uri: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let question = uri.iter().position(|&c| c == b'?')?;
    form_param(&uri[question + 1..], name)
}

/// The key of `balance url_param` in the body of a POST. White space ends a value, and one with characters
/// that would have to be encoded is none.
pub fn posted_param<'a>(form: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let is_token = |c: &u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(c);
    let value = value_of(form, name)?.split(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n' | 0)).next()?;
    value.iter().all(is_token).then_some(value)
}

/// The value of the parameter `name` in a query; none when it is missing or has no `=`. White space and
/// control characters end a value.
fn form_param<'a>(form: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    value_of(form, name)?.split(|&c| c <= b' ' || c == 0x7f).next()
}

fn value_of<'a>(form: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    form.split(|&c| c == b'&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// The key of `balance hdr(<name>)`: of the first field line, the first value (commas inside quotes separate
/// nothing), without the white space around it; none when nothing is left.
pub fn header(line: &[u8]) -> Option<&[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let separates = |&byte: &u8| {
        let literal = escaped;
        escaped = quoted && !literal && byte == b'\\';
        quoted ^= byte == b'"' && !literal;
        byte == b',' && !quoted
    };
    let end = line.iter().position(separates).unwrap_or(line.len());
    let value = line[..end].trim_ascii();
    (!value.is_empty()).then_some(value)
}

/// The key of `balance hdr(<name>) use_domain_only`: of `haproxy.1wt.eu` only `1wt`, what stands between the
/// last dot and the one before it. A dot at the very start, and one right before the last, separate nothing.
pub fn main_domain(value: &[u8]) -> &[u8] {
    let Some(last) = value.iter().rposition(|&c| c == b'.').filter(|&at| at > 0) else { return value };
    let start = value[..last - 1].iter().rposition(|&c| c == b'.');
    &value[start.map_or(0, |dot| dot + 1)..last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_part_of_a_uri() {
        let all = UriParams::default();
        assert_eq!(uri(b"/a/b?c=/d", all), b"/a/b");
        assert_eq!(uri(b"/a/b?c=/d", UriParams { whole: true, ..all }), b"/a/b?c=/d");
        assert_eq!(uri(b"/a/b?c=/d", UriParams { len: 3, ..all }), b"/a/");
        assert_eq!(uri(b"/a/b/c", UriParams { depth: 2, ..all }), b"/a/b");
        assert_eq!(uri(b"http://h:8/a?b", UriParams { path_only: true, ..all }), b"/a");
        assert_eq!(uri(b"http://h:8/a?b", all), b"http://h:8/a");
        assert_eq!(uri(b"", all), b"");
        let path = UriParams { path_only: true, ..all };
        assert_eq!([uri(b"*", path), uri(b"http://h?x", path)], [b"", b""]);
        assert_eq!(uri(b"http://h?x", UriParams { whole: true, ..path }), b"?x");
    }

    #[test]
    fn a_parameter_needs_its_whole_name_and_an_equal_sign() {
        assert_eq!(url_param(b"/p?userid=5&id=7", b"id"), Some(&b"7"[..]));
        assert_eq!(url_param(b"/p?id", b"id"), None);
        assert_eq!(url_param(b"/id=3", b"id"), None);
        assert_eq!(posted_param(b"a=1&id=2", b"id"), Some(&b"2"[..]));
    }

    #[test]
    fn a_value_in_a_body_ends_at_white_space() {
        for body in ["id=77\r\n", "a b&id=77 x", "id=77\0&id=1"] {
            assert_eq!(posted_param(body.as_bytes(), b"id"), Some(&b"77"[..]), "{body:?}");
        }
        for none in ["a\r\nid=77", "id=7;8", "id=a/b", "id=\u{e9}", "id=a=b"] {
            assert_eq!(posted_param(none.as_bytes(), b"id"), None, "{none:?}");
        }
    }

    #[test]
    fn the_first_value_of_a_header_counts() {
        for (line, key) in [(" a b , c", "a b"), ("\"a,b\",c", "\"a,b\""), ("\"a\\\",b\",c", "\"a\\\",b\"")] {
            assert_eq!(header(line.as_bytes()), Some(key.as_bytes()), "{line}");
        }
        for nothing in ["", "  ", ",b"] {
            assert_eq!(header(nothing.as_bytes()), None);
        }
    }

    #[test]
    fn the_main_domain_stands_before_the_last_dot() {
        let observed = [
            ("haproxy.1wt.eu", "1wt"),
            ("1wt.eu:80", "1wt"),
            ("www.haproxy.1wt.eu:8080", "1wt"),
            ("localhost", "localhost"),
            ("10.1.2.3", "2"),
            (".eu", ".eu"),
            ("a.", "a"),
            ("x.y.", "y"),
            ("...", "."),
            ("a..b", "a."),
            ("a.b:c.d", "b:c"),
            ("foo.com/a.b", "com/a"),
            ("[::1]:80", "[::1]:80"),
            ("", ""),
        ];
        for (host, domain) in observed {
            assert_eq!(main_domain(host.as_bytes()), domain.as_bytes(), "{host}");
        }
    }
}
