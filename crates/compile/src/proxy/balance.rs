//! `balance`, `hash-type` and what tunes them (manual, section 4.2).

use balance::key::UriParams;
use balance::{HashType, Method};
use base::hash::Function;
use program::proxy::Affinity;
use syntax::Word;

use crate::draft::{BalanceDraft, Deferred, Draft};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, clamp};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry("balance", Places::BACK, algorithm, "How a server is chosen.", "balance roundrobin")
        .default("roundrobin"),
    entry(
        "hash-type",
        Places::BACK,
        hash_type,
        "How hashes find servers.",
        "hash-type consistent sdbm avalanche",
    )
    .default("map-based"),
    entry(
        "hash-balance-factor",
        Places::ALL,
        |s, p| {
            let word = s.word("'hash-balance-factor' expects an integer argument.")?;
            let n = s.lenient(word);
            if n != 0 && n <= 100 {
                return Err(s.fail("'hash-balance-factor' must be 0 or greater than 100."));
            }
            p.hash_balance_factor = clamp(n);
            Ok(())
        },
        "Most load of one server, percent of the average.",
        "hash-balance-factor 150",
    )
    .default("0: none"),
    entry(
        "hash-preserve-affinity",
        Places::BACK,
        |s, p| {
            p.preserve_affinity = match s.next().map_or("", Word::text) {
                "always" => Affinity::Always,
                "maxconn" => Affinity::MaxConn,
                "maxqueue" => Affinity::MaxQueue,
                "" => {
                    return Err(s.fail(
                        "'hash-preserve-affinity' needs a keyword to specify when to preserve hash affinity",
                    ));
                }
                other => return Err(s.fail(format!("'hash-preserve-affinity': unknown keyword '{other}'"))),
            };
            Ok(())
        },
        "Whether a full server keeps its hashes.",
        "hash-preserve-affinity maxconn",
    )
    .default("always"),
];

const ONLY: &str = "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', 'hdr(name)', 'rdp-cookie(name)', 'log-hash' and 'sticky' options.";

fn algorithm(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let Some(word) = s.next() else {
        p.balance = BalanceDraft::default();
        return Ok(());
    };
    let (name, args) = match word.text().split_once('(') {
        Some((name, args)) => (name, Some(args.strip_suffix(')').unwrap_or(args))),
        None => (word.text(), None),
    };
    p.balance = match (name, args) {
        _ if name.starts_with("random") => BalanceDraft::Random(draws(s, word.text())?),
        _ if name.starts_with("rdp-cookie") => rdp_cookie(s, word.text())?,
        ("roundrobin", None) => BalanceDraft::RoundRobin,
        ("static-rr", None) => BalanceDraft::StaticRr,
        ("first", None) => BalanceDraft::First,
        ("leastconn", None) => BalanceDraft::LeastConn,
        ("sticky", None) => BalanceDraft::Sticky,
        ("source", None) => BalanceDraft::Source,
        ("uri", None) => BalanceDraft::Uri(uri(s)?),
        ("url_param", None) => url_param(s)?,
        ("hash", None) => {
            let word = s.args.position();
            s.word("balance hash requires a sample expression.")?;
            if let Some(extra) = s.next() {
                return Err(s.fail(format!("balance hash takes no other argument (got '{extra}').")));
            }
            BalanceDraft::Hash(Deferred { at: s.at, word })
        }
        ("hdr", Some(name)) => header(s, word.text().contains(')').then_some(name))?,
        ("log-hash", _) => {
            let word = s.args.position();
            s.word("balance log-hash requires a converter list.")?;
            BalanceDraft::LogHash(Deferred { at: s.at, word })
        }
        _ => {
            let near = syntax::nearest(
                name,
                [
                    "roundrobin",
                    "static-rr",
                    "leastconn",
                    "source",
                    "uri",
                    "url_param",
                    "hash",
                    "random",
                    "first",
                    "sticky",
                ],
            );
            return Err(s.fail(ONLY).meant(near));
        }
    };
    Ok(())
}

/// What stands between parentheses, whatever stands around them; `None` without any. A pair that is left open
/// is an error.
fn between<'w>(s: &Statement<'_>, word: &'w str, open: &str) -> Step<Option<&'w str>> {
    let Some((_, rest)) = word.split_once('(') else { return Ok(None) };
    rest.split_once(')').map(|(inner, _)| Some(inner)).ok_or_else(|| s.fail(open))
}

/// `random`, perhaps with the number of draws.
fn draws(s: &Statement<'_>, word: &str) -> Step<u32> {
    let args = between(s, word, "balance random : missing closing parenthesis.");
    // The number is looked at before the end.
    let inner = word.split_once('(').map_or("", |(_, rest)| rest);
    let number = inner.split(')').next().unwrap_or_default();
    let digits = number.strip_prefix('-').unwrap_or(number);
    if let Some(odd) = digits.chars().find(|c| !c.is_ascii_digit()) {
        return Err(s.fail(format!("balance random : unexpected character '{odd}' after argument.")));
    }
    match args?.filter(|a| !a.is_empty()).map_or(2, units::lenient) {
        n if n < 1 => Err(s.fail("balance random : number of draws must be at least 1.")),
        n => Ok(clamp(n)),
    }
}

fn uri(s: &mut Statement<'_>) -> Step<UriParams> {
    let mut params = UriParams::default();
    while let Some(word) = s.next() {
        let name = word.text();
        match name {
            "len" | "depth" => {
                let value = s.peek();
                let n = Some(units::lenient(value)).filter(|n| *n > 0).ok_or_else(|| {
                    s.fail_at(
                        s.args.here(),
                        format!("balance uri : '{name}' expects a positive integer (got '{value}')."),
                    )
                })?;
                s.next();
                let field = if name == "len" { &mut params.len } else { &mut params.depth };
                *field = usize::try_from(n).unwrap_or(usize::MAX);
            }
            "whole" => params.whole = true,
            "path-only" => params.path_only = true,
            _ => {
                let text = format!(
                    "balance uri only accepts parameters 'len', 'depth', 'path-only', and 'whole' (got '{name}')."
                );
                return Err(s.fail(text));
            }
        }
    }
    Ok(params)
}

fn url_param(s: &mut Statement<'_>) -> Step<BalanceDraft> {
    let word = s.word("balance url_param requires an URL parameter name.")?;
    let name = word.bytes().into();
    match s.next().map(Word::text) {
        // Bodies are looked into with it and without.
        None => {}
        Some("check_post") => {
            if let Some(wait) = s.next() {
                s.warn(format!("balance url_param check_post : '{wait}' has no effect any more."));
            }
        }
        Some(other) => {
            let text = format!("balance url_param only accepts 'check_post' modifier (got '{other}').");
            return Err(s.fail(text));
        }
    }
    Ok(BalanceDraft::UrlParam(name))
}

fn header(s: &mut Statement<'_>, name: Option<&str>) -> Step<BalanceDraft> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(s.fail("balance hdr requires an http header field name."));
    };
    let domain_only = match s.next().map(Word::text) {
        None => false,
        Some("use_domain_only") => true,
        Some(other) => {
            let text =
                format!("balance hdr({name}) only accepts 'use_domain_only' modifier (got '{other}').");
            return Err(s.fail(text));
        }
    };
    Ok(BalanceDraft::Header { name: name.as_bytes().into(), domain_only })
}

/// `rdp-cookie`, perhaps with the name of another cookie than mstshash.
fn rdp_cookie(s: &Statement<'_>, word: &str) -> Step<BalanceDraft> {
    const MISSING: &str = "balance rdp-cookie : missing cookie name.";
    let name = match between(s, word, MISSING)? {
        None if word == "rdp-cookie" => "mstshash",
        None | Some("") => return Err(s.fail(MISSING)),
        Some(name) => name,
    };
    Ok(BalanceDraft::RdpCookie(name.as_bytes().into()))
}

fn hash_type(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let method = match s.next().map_or("", Word::text) {
        "consistent" => Method::Consistent,
        "map-based" => Method::MapBased,
        "avalanche" => {
            return Err(s.fail("experimental feature 'hash-type avalanche' is not supported anymore, please use 'hash-type map-based sdbm avalanche' instead."));
        }
        _ => return Err(s.fail("'hash-type' only supports 'consistent' and 'map-based'.")),
    };
    let Some(function) = s.next() else {
        p.hash = HashType { method, function: Function::Sdbm, avalanche: method == Method::Consistent };
        return Ok(());
    };
    let function = match function.text() {
        "sdbm" => Function::Sdbm,
        "djb2" => Function::Djb2,
        "wt6" => Function::Wt6,
        "crc32" => Function::Crc32,
        "none" => Function::None,
        _ => {
            return Err(s.fail("'hash-type' only supports 'sdbm', 'djb2', 'crc32', or 'wt6' hash functions."));
        }
    };
    let avalanche = match s.next().map_or("", Word::text) {
        "" => false,
        "avalanche" => true,
        _ => return Err(s.fail("'hash-type' only supports 'avalanche' as a modifier for hash functions.")),
    };
    p.hash = HashType { method, function, avalanche };
    Ok(())
}
