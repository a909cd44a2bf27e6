//! What HAProxy's own HTTP client would make of the settings of all servers.
//!
//! HAProxy makes that client at every start, also where nobody uses it, and refuses the configuration when
//! OpenSSL refuses one of its settings. A slip in an `ssl-default-server-*` line shows there first, so it has
//! to show here as well. What is certainly wrong is told; OpenSSL's lists are longer than ours.

use program::global::Ocsp;
use syntax::{Diagnostics, Span};

use crate::global::draft::TlsGlobal;
use crate::notes::{refusal, remark};

/// The server that the messages are about.
const WHOSE: &str = "'server <OCSP-UPDATE>/<HTTPSCLIENT>'";

/// Looks at the settings and says what is wrong with the first. Where anything else was refused HAProxy does
/// not come so far.
pub(crate) fn check(tls: &TlsGlobal, resolvers: &[Box<str>], notes: &mut Diagnostics) {
    // HAProxy makes the client when all else fits together.
    let unopened = |note: &syntax::Diagnostic| note.text.starts_with("Couldn't open the ca-file");
    if notes.stops_settling() || notes.iter().any(unopened) {
        return;
    }
    let policy = &tls.server.policy;
    for client in ["OCSP-UPDATE", "HTTPCLIENT"] {
        let mut warn = |text| notes.push(remark(Span::default(), text));
        if policy.excludes_in_vain() {
            warn(format!(
                "'server <{client}>/<HTTPSCLIENT>' : no-sslv3/no-tlsv1x are ignored for this server. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix."
            ));
        }
        if let Some(version) = policy.hole() {
            warn(format!(
                "'server <{client}>/<HTTPSCLIENT>' : proxy '<{client}>': SSL/TLS versions range not contiguous for server '<HTTPSCLIENT>'. Hole find for {version}. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix."
            ));
        }
    }
    let proxy = "Proxy '<OCSP-UPDATE>': unable to set SSL";
    let end = "for server '<HTTPSCLIENT>'";
    let text = if tls.property_query.as_deref().is_some_and(odd_query) {
        format!("{WHOSE} : unable to allocate ssl context.")
    } else if let Some(list) = policy.ciphers.as_deref().filter(|l| no_cipher(l)) {
        format!("{WHOSE} : unable to set SSL cipher list to '{list}'.")
    } else if let Some(list) = policy.ciphersuites.as_deref().filter(|l| !l.contains("TLS_")) {
        format!("{WHOSE} : unable to set TLS 1.3 cipher suites to '{list}'.")
    } else if let Some(list) = policy.client_sigalgs.as_deref().filter(|l| odd_scheme(l)) {
        format!("{WHOSE} : {proxy} Client Signature Algorithm list to '{list}' {end}.")
    } else if let Some(list) = policy.sigalgs.as_deref().filter(|l| odd_scheme(l)) {
        format!("{WHOSE} : {proxy} Signature Algorithm list to '{list}' {end}.")
    } else if let Some(list) = policy.curves.as_deref().filter(|l| odd_curve(l)) {
        format!("{WHOSE} : {proxy} curves list to '{list}' {end}.")
    } else if let Some(name) = tls.client_resolvers.as_deref().filter(|n| {
        !tls.client_unresolved && *n != "default" && !resolvers.iter().any(|known| **known == **n)
    }) {
        format!("Proxy '<OCSP-UPDATE>': Can't find resolvers section '{name}' for do-resolve action.")
    } else {
        return;
    };
    notes.push(refusal(Span::default(), text));
}

/// The settings, with the section that the client looks names up by. Where `default` is not there, it looks
/// none up.
pub(crate) fn settings(tls: &TlsGlobal, known: &[Box<str>]) -> Ocsp {
    let name = tls.client_resolvers.as_deref().unwrap_or("default");
    let at = known.iter().position(|section| **section == *name).filter(|_| !tls.client_unresolved);
    Ocsp { resolvers: at.and_then(|at| u32::try_from(at).ok()), ..tls.ocsp }
}

/// Whether no word can be the name of ciphers: all of those have capitals.
fn no_cipher(list: &str) -> bool {
    !list.is_empty() && !list.chars().any(|c| c.is_ascii_uppercase())
}

/// Whether a word is the name of no scheme.
fn odd_scheme(list: &str) -> bool {
    let policy = tls::suites::Policy { sigalgs: Some(list.into()), ..Default::default() };
    policy.resolve().is_err_and(|why| why.starts_with("unable to set"))
}

/// Whether a word is too short for the name of a curve, has no number in it, or is one.
fn odd_curve(list: &str) -> bool {
    let plain = list.split(':').map(|w| w.trim_start_matches(['?', '*', '-']));
    plain.filter(|w| !w.is_empty()).any(|w| {
        w.len() < 4 || !w.chars().any(|c| c.is_ascii_digit()) || w.chars().all(|c| c.is_ascii_digit())
    })
}

/// Whether a query asks for a property that the default provider does not have.
fn odd_query(query: &str) -> bool {
    let met = |part: &str| {
        part.starts_with(['?', '-']) || matches!(part, "provider=default" | "fips=no") || part.contains("!=")
    };
    !query.split(',').map(str::trim).all(met)
}
