//! Whether a certificate is for the host that was asked for (manual, `verify` and `verifyhost` of servers).

use x509::Certificate;

/// Whether a certificate is for a host: one of its DNS names is, or one of its common names.
pub(crate) fn is_named(cert: &Certificate<'_>, host: &[u8]) -> bool {
    cert.dns_names().chain(cert.common_names()).any(|name| is_name_for(name, host))
}

/// Whether a name, perhaps with one `*` in its first label, is the host's. The star stands for any bytes of
/// the host's first label, also for none.
fn is_name_for(name: &[u8], host: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let (Some((label, rest)), Some((first, others))) = (halves(name, b'.'), halves(host, b'.')) else {
        return false;
    };
    let Some((before, after)) = halves(label, b'*').filter(|(_, after)| !after.contains(&b'*')) else {
        return false;
    };
    let Some(inner) = first.len().checked_sub(after.len()).filter(|at| *at >= before.len()) else {
        return false;
    };
    let (begin, end) = first.split_at(inner);
    others.eq_ignore_ascii_case(rest)
        && end.eq_ignore_ascii_case(after)
        && begin.get(..before.len()).is_some_and(|b| b.eq_ignore_ascii_case(before))
}

/// What stands before and behind the first of these bytes.
fn halves(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|c| *c == at)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::is_name_for;

    #[test]
    fn a_star_stands_for_bytes_of_the_first_label() {
        let fits = |name: &str, host: &str| is_name_for(name.as_bytes(), host.as_bytes());
        for (name, host) in [
            ("a.example", "A.Example"),
            ("*.example", "a.example"),
            ("*.example", ".example"),
            ("f*.example", "f.example"),
            ("f*o.example", "FoO.example"),
            ("*f.example", "ff.example"),
            ("*", "*"),
        ] {
            assert!(fits(name, host), "{name} {host}");
        }
        for (name, host) in [
            ("*.example", "a.b.example"),
            ("*.example", "example"),
            ("*.example", "a.example."),
            ("f*f.example", "f.example"),
            ("**.example", "a.example"),
            ("*a*.example", "a.example"),
            ("a.*.example", "a.b.example"),
            ("*", "a"),
            ("*", "a.example"),
            (".example", "a.example"),
            ("192.0.2.*", "192.0.2.1"),
        ] {
            assert!(!fits(name, host), "{name} {host}");
        }
    }
}
