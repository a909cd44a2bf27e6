//! What name servers say.

use crate::dns::{Answer, Kind, Question, answer, is_name, number, query};

/// The names that are asked for, so that inputs can be answers to one.
const NAMES: [&str; 3] = ["a.test", "_w._tcp.s.test", "x"];

/// Reads an answer to each question that it may belong to. What is taken for one has something of the kind
/// that was asked for, and names in it can be asked for themselves.
pub fn dns(data: &[u8]) {
    let id = number(data).unwrap_or_default();
    for name in NAMES {
        for kind in [Kind::A, Kind::Aaaa, Kind::Srv] {
            let question = Question { id, name: name.into(), kind };
            let asked = query(&question, 512).expect("a name");
            assert!(answer(&asked, &question).is_err(), "a question is no answer");
            if let Ok(found) = answer(data, &question) {
                check(&found, kind);
            }
            // Whoever does not know the number is not believed.
            let other = Question { id: id.wrapping_add(1), ..question };
            assert!(answer(data, &other).is_err());
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let question = Question { id, name: text.into(), kind: Kind::A };
        assert_eq!(query(&question, 512).is_some(), is_name(text), "{text:?}");
    }
}

fn check(found: &Answer, kind: Kind) {
    let Answer { addresses, services, hosts } = found;
    match kind {
        Kind::A => assert!(!addresses.is_empty() && addresses.iter().all(|ip| ip.is_ipv4())),
        Kind::Aaaa => assert!(!addresses.is_empty() && addresses.iter().all(|ip| ip.is_ipv6())),
        Kind::Srv => assert!(!services.is_empty() && addresses.is_empty()),
    }
    assert!(kind == Kind::Srv || services.is_empty());
    for name in services.iter().map(|s| &s.host) {
        assert!(is_name(name) && !name.ends_with('.'), "{name:?}");
        assert!(!name.bytes().any(|b| b.is_ascii_uppercase()), "{name:?}");
    }
    assert!(hosts.iter().all(|(name, _)| !name.ends_with('.')));
}
