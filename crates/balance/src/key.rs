//! From the bytes of a request to the key that is hashed.
//!
//! Pure functions over bytes: the engine has the URI, the query, the header value at hand and asks here which part
//! of it counts. They follow configuration manual, `balance`; what the manual leaves open follows what HAProxy
//! was observed to do. A key that isn't there is `None`, and the request goes to whoever's turn it is.

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

/// The request target from its path on: what follows the authority of an absolute URI.
fn path(uri: &[u8]) -> &[u8] {
    if uri.first() == Some(&b'/') {
        return uri;
    }
    let Some(colon) = uri.windows(3).position(|w| w == b"://") else { return uri };
    let authority = colon + 3;
    let slash = uri[authority..].iter().position(|&c| c == b'/');
    slash.map_or(&[], |at| &uri[authority + at..])
}

/// The key of `balance url_param`: the value of the parameter `name` in the query of `uri`.
pub fn url_param<'a>(uri: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let question = uri.iter().position(|&c| c == b'?')?;
    form_param(&uri[question + 1..], name)
}

/// The value of the parameter `name` in a query or in the body of a POST (`check_post`); none when it is missing
/// or has no `=`.
pub fn form_param<'a>(form: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = |pair: &'a [u8]| pair.strip_prefix(name)?.strip_prefix(b"=");
    form.split(|&c| c == b'&').find_map(value)
}

/// The key of `balance hdr(<name>)`: the value, without the white space around it; none when nothing is left.
pub fn header(value: &[u8]) -> Option<&[u8]> {
    let value = value.trim_ascii();
    (!value.is_empty()).then_some(value)
}

/// The key of `balance hdr(<name>) use_domain_only`: of `haproxy.1wt.eu` only `1wt`.
pub fn main_domain(value: &[u8]) -> &[u8] {
    let host = value.split(|&c| c == b':').next().unwrap_or(value);
    let Some(last) = host.iter().rposition(|&c| c == b'.') else { return host };
    let before = &host[..last];
    before.iter().rposition(|&c| c == b'.').map_or(before, |dot| &before[dot + 1..])
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
    }

    #[test]
    fn a_parameter_needs_its_whole_name_and_an_equal_sign() {
        assert_eq!(url_param(b"/p?userid=5&id=7", b"id"), Some(&b"7"[..]));
        assert_eq!(url_param(b"/p?id", b"id"), None);
        assert_eq!(url_param(b"/id=3", b"id"), None);
        assert_eq!(form_param(b"a=1&id=2", b"id"), Some(&b"2"[..]));
    }

    #[test]
    fn a_blank_header_is_no_key() {
        assert_eq!(header(b"  x y "), Some(&b"x y"[..]));
        assert_eq!(header(b"  "), None);
    }

    #[test]
    fn the_main_domain_stands_before_the_last_dot() {
        for (host, domain) in [("haproxy.1wt.eu", "1wt"), ("1wt.eu:80", "1wt"), ("localhost", "localhost")] {
            assert_eq!(main_domain(host.as_bytes()), domain.as_bytes());
        }
    }
}
