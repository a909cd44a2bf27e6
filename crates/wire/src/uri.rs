//! The parts of a request target, as functions over its bytes (RFC 9112 section 3.2, RFC 3986 section 3).
//!
//! Nothing is decoded or checked here; each function answers with a slice of the target.

/// The form of a request target (RFC 9112 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/path?query`.
    Origin,
    /// `scheme://authority/path?query`.
    Absolute,
    /// `host:port`, what CONNECT has.
    Authority,
    /// `*`.
    Asterisk,
}

/// The form of `target`.
pub fn form(target: &[u8]) -> Form {
    match target {
        [b'/', ..] => Form::Origin,
        b"*" => Form::Asterisk,
        _ if scheme(target).is_some() => Form::Absolute,
        _ => Form::Authority,
    }
}

/// The scheme of an absolute target, without `://`.
pub fn scheme(target: &[u8]) -> Option<&[u8]> {
    let first = target.first().filter(|byte| byte.is_ascii_alphabetic())?;
    let _ = first;
    let end = target
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))?;
    let rest = target.get(end..)?;
    rest.starts_with(b"://").then(|| target.get(..end)).flatten()
}

/// The authority with its user information; empty when there is none. A target that is nothing else is its
/// own.
pub fn authority(target: &[u8]) -> &[u8] {
    let start = match form(target) {
        Form::Origin | Form::Asterisk => return &[],
        Form::Authority => 0,
        Form::Absolute => scheme(target).map_or(0, |scheme| scheme.len() + 3),
    };
    let rest = target.get(start..).unwrap_or_default();
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// The authority without user information: `host[:port]`.
pub fn host_port(target: &[u8]) -> &[u8] {
    let authority = authority(target);
    let start = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    authority.get(start..).unwrap_or_default()
}

/// Where [`host_port`] starts in `target`.
pub fn host_offset(target: &[u8]) -> usize {
    let start = match form(target) {
        Form::Absolute => scheme(target).map_or(0, |scheme| scheme.len() + 3),
        _ => 0,
    };
    start + authority(target).len() - host_port(target).len()
}

/// The host, brackets included.
pub fn host(target: &[u8]) -> &[u8] {
    split_port(host_port(target)).0
}

/// The port as written; `None` without a colon.
pub fn port(target: &[u8]) -> Option<&[u8]> {
    split_port(host_port(target)).1
}

/// Parts `host[:port]`; a colon within brackets is none.
pub fn split_port(authority: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memrchr2(b':', b']', authority) {
        Some(at) if authority.get(at) == Some(&b':') => {
            (authority.get(..at).unwrap_or_default(), authority.get(at + 1..))
        }
        _ => (authority, None),
    }
}

/// The path with the query (and a fragment let pass), from the first slash after the authority on. Empty when
/// there is none; `*` for the asterisk form.
pub fn path_and_query(target: &[u8]) -> &[u8] {
    match form(target) {
        Form::Origin | Form::Asterisk => target,
        Form::Authority => &[],
        Form::Absolute => {
            let start = scheme(target).map_or(0, |scheme| scheme.len() + 3) + authority(target).len();
            target.get(start..).unwrap_or_default()
        }
    }
}

/// The path, from the first slash to the question mark.
pub fn path(target: &[u8]) -> &[u8] {
    let path = path_and_query(target);
    let end = memchr::memchr(b'?', path).unwrap_or(path.len());
    path.get(..end).unwrap_or_default()
}

/// What follows the first question mark; `None` without one.
pub fn query(target: &[u8]) -> Option<&[u8]> {
    let mark = memchr::memchr(b'?', target)?;
    target.get(mark + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_absolute_target() {
        let target = b"http://me:pw@example.org:8080/a/b?c=d?e";
        assert_eq!(form(target), Form::Absolute);
        assert_eq!(scheme(target), Some(&b"http"[..]));
        assert_eq!(authority(target), b"me:pw@example.org:8080");
        assert_eq!(host_port(target), b"example.org:8080");
        assert_eq!(host(target), b"example.org");
        assert_eq!(port(target), Some(&b"8080"[..]));
        assert_eq!(path(target), b"/a/b");
        assert_eq!(query(target), Some(&b"c=d?e"[..]));
        assert_eq!(path_and_query(target), b"/a/b?c=d?e");
        assert_eq!(host_offset(target), 13);
    }

    #[test]
    fn the_other_forms() {
        assert_eq!((form(b"/x?y"), path(b"/x?y"), host(b"/x?y")), (Form::Origin, &b"/x"[..], &b""[..]));
        assert_eq!((form(b"*"), path(b"*")), (Form::Asterisk, &b"*"[..]));
        assert_eq!(
            (form(b"h:443"), host(b"h:443"), port(b"h:443")),
            (Form::Authority, &b"h"[..], Some(&b"443"[..]))
        );
        assert_eq!((path(b"http://h?q"), query(b"http://h?q")), (&b""[..], Some(&b"q"[..])));
        assert_eq!((host(b"http://[::1]:80/"), port(b"http://[::1]/")), (&b"[::1]"[..], None));
        assert_eq!(query(b"/x"), None);
        assert_eq!(query(b"/x?"), Some(&b""[..]));
    }
}
