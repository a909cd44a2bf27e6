//! Single TLS settings, the same on `bind` lines, `server` lines and lines of certificate lists (manual,
//! sections 5.1 and 5.2). The error of a setter is what is wrong with its value.

use tls::suites::Version;
use tls::verify::Ignored;
pub(crate) use tls::words::{Verify, Words};

/// `alpn`.
pub(crate) fn alpn(words: &mut Words, text: &str) -> Result<(), String> {
    let list: Vec<Vec<u8>> = text.split(',').map(|p| p.as_bytes().to_vec()).collect();
    if list.iter().any(|p| p.is_empty() || p.len() > 255) {
        return Err(format!("invalid ALPN protocol name in '{text}'"));
    }
    words.alpn = Some(list);
    Ok(())
}

/// Whether HTTP/3 is offered, which over TCP is an experiment of HAProxy's.
pub(crate) fn offers_h3(words: &Words) -> bool {
    words.alpn.iter().flatten().any(|name| name == b"h3")
}

/// `ssl-min-ver`, `ssl-max-ver`.
pub(crate) fn version(place: &mut Option<Version>, text: &str) -> Result<(), String> {
    *place = Some(Version::named(text).ok_or_else(|| format!("'{text}' : unknown ssl/tls version"))?);
    Ok(())
}

/// `no-sslv3`, `no-tlsv10` and so on.
pub(crate) fn without(words: &mut Words, version: Version) {
    words.policy.without.push(version);
}

/// `force-tlsv12` and so on.
pub(crate) fn force(words: &mut Words, version: Version) {
    (words.policy.min, words.policy.max) = (Some(version), Some(version));
}

/// `verify`.
pub(crate) fn verify(words: &mut Words, text: &str) -> Result<(), String> {
    words.verify = Some(match text {
        "none" => Verify::None,
        "optional" => Verify::Optional,
        "required" => Verify::Required,
        _ => {
            return Err(format!(
                "unknown verify method '{text}', only 'none', 'optional', and 'required' are supported"
            ));
        }
    });
    Ok(())
}

/// What `ktls` says without a value.
pub(crate) const KTLS_VALUE: &str = "'ktls' expects \"on\" or \"off\" as an argument";

/// `ktls`, which has to be allowed.
pub(crate) fn ktls(words: &mut Words, text: &str, experimental: bool) -> Result<(), String> {
    if !experimental {
        let why =
            "'ktls' directive is experimental, must be allowed via a global 'expose-experimental-directives'";
        return Err(why.into());
    }
    words.ktls = Some(match text {
        _ if text.eq_ignore_ascii_case("on") => true,
        _ if text.eq_ignore_ascii_case("off") => false,
        _ => return Err(format!("{KTLS_VALUE}, got '{text}'.")),
    });
    Ok(())
}

/// `crt-ignore-err`, `ca-ignore-err`.
pub(crate) fn ignored(text: &str) -> Result<Ignored, String> {
    if text == "all" {
        return Ok(Ignored::ALL);
    }
    let mut out = Ignored::default();
    for one in text.split(',') {
        let number = match one.parse::<u8>() {
            Ok(number) => Some(number),
            Err(_) => lang::certificate_error(one),
        };
        match number {
            Some(number) if number < 127 => out.add(number),
            _ if one.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(format!("ID '{one}' out of range (1..94) in error IDs list '{text}'"));
            }
            _ => return Err(format!("error constant '{one}' unknown in error IDs list '{text}'")),
        }
    }
    Ok(out)
}

/// One word of `ssl-default-bind-options` or `ssl-default-server-options`; `None`: there is no such option.
/// Returns whether the word took `value`.
pub(crate) fn option(words: &mut Words, name: &str, value: Option<&str>) -> Option<Result<bool, String>> {
    let versions = [
        ("sslv3", Version::Ssl3),
        ("tlsv10", Version::Tls10),
        ("tlsv11", Version::Tls11),
        ("tlsv12", Version::Tls12),
        ("tlsv13", Version::Tls13),
    ];
    let of = |rest: &str| versions.iter().find(|(n, _)| *n == rest).map(|(_, v)| *v);
    match name {
        "ssl-min-ver" | "ssl-max-ver" => {
            let Some(value) = value else {
                return Some(Err(format!("'{name}' : missing the ssl/tls version")));
            };
            let place = if name == "ssl-min-ver" { &mut words.policy.min } else { &mut words.policy.max };
            return Some(version(place, value).map(|()| true));
        }
        "no-tls-tickets" => words.no_tickets = Some(true),
        "tls-tickets" => words.no_tickets = Some(false),
        "prefer-client-ciphers" => words.client_order = true,
        "strict-sni" => words.strict_sni = Some(true),
        "no-strict-sni" => words.strict_sni = Some(false),
        _ => match (name.strip_prefix("no-").and_then(of), name.strip_prefix("force-").and_then(of)) {
            (Some(v), _) => without(words, v),
            (_, Some(v)) => force(words, v),
            _ => return None,
        },
    }
    Some(Ok(false))
}
