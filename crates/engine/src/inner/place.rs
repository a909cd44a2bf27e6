//! Where a call goes, as a URL says it.

/// How it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port where none is named.
    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// The address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'u> {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// The name, an IPv6 address in brackets.
    pub host: &'u str,
    /// The port; that of the scheme unless it is named.
    pub port: u16,
    /// Host and port as they are written.
    pub authority: &'u str,
    /// Path and query.
    pub path: &'u str,
}

impl<'u> Place<'u> {
    /// Reads an address; `None`: it is none of HTTP.
    pub fn parse(uri: &'u str) -> Option<Place<'u>> {
        let (scheme, rest) = uri.split_once("://")?;
        let is = |known: &Scheme| scheme.eq_ignore_ascii_case(known.name());
        let scheme = [Scheme::Http, Scheme::Https].into_iter().find(is)?;
        if !rest.bytes().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let split = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match split {
            Some((host, "")) => (host, scheme.port()),
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, scheme.port()),
        };
        (!host.is_empty()).then_some(Place { scheme, host, port, authority, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (uri, host, port) in [
            ("http://ocsp.example", "ocsp.example", 80),
            ("HTTP://127.0.0.1:12345/a/b", "127.0.0.1", 12345),
            ("http://[::1]:81/", "[::1]", 81),
            ("http://[::1]", "[::1]", 80),
            ("http://user:word@x:/#part", "x", 80),
            ("https://x/a", "x", 443),
            ("HTTPS://x:/a", "x", 443),
            ("https://x:81", "x", 81),
        ] {
            let place = Place::parse(uri).unwrap();
            assert_eq!((place.host, place.port), (host, port), "{uri}");
        }
        for bad in ["http:///", "https://", "ldap://x", "http://x/a b", "http://x:99999/", "http://", "ü", ""]
        {
            assert_eq!(Place::parse(bad), None, "{bad}");
        }
    }
}
