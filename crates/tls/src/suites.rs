//! OpenSSL's names of ciphers, curves and versions, and what rustls has of them (manual, `ciphers`,
//! `ciphersuites`, `curves`, `ssl-min-ver`).

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{self, cipher_suite as suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::p521::P521;
use crate::schemes;

/// A suite by OpenSSL's name and the IANA name, with the bits of its key.
pub(crate) type Row = (&'static str, &'static str, SupportedCipherSuite, u16);

/// The suites of either version in OpenSSL's order.
const SUITES: &[Row] = &[
    ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384, 256),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        suite::TLS13_CHACHA20_POLY1305_SHA256,
        256,
    ),
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256, 128),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        256,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        256,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        128,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        128,
    ),
];

/// How many suites of [`SUITES`] are TLS 1.3's.
const OF_TLS13: usize = 3;

/// The suites of TLS 1.2.
#[cfg(test)]
pub(crate) const TLS12: &[Row] = SUITES.split_at(OF_TLS13).1;

/// Groups by the names that OpenSSL takes, in lower case.
const GROUPS: &[(&str, &dyn SupportedKxGroup)] = &[
    ("x25519", kx_group::X25519),
    ("p-256", kx_group::SECP256R1),
    ("prime256v1", kx_group::SECP256R1),
    ("secp256r1", kx_group::SECP256R1),
    ("p-384", kx_group::SECP384R1),
    ("secp384r1", kx_group::SECP384R1),
    ("p-521", P521),
    ("secp521r1", P521),
    ("x25519mlkem768", kx_group::X25519MLKEM768),
    ("secp256r1mlkem768", kx_group::SECP256R1MLKEM768),
    ("mlkem768", kx_group::MLKEM768),
    ("mlkem1024", kx_group::MLKEM1024),
];

/// OpenSSL's name of a suite, and the bits of its key.
pub fn describe(suite: SupportedCipherSuite) -> (&'static str, u16) {
    let found = SUITES.iter().find(|(_, _, s, _)| s.suite() == suite.suite());
    found.map_or(("", 0), |(name, _, _, bits)| (name, *bits))
}

/// Protocol versions in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Refused by rustls.
    Ssl3,
    /// Refused by rustls.
    Tls10,
    /// Refused by rustls.
    Tls11,
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// By the word of `ssl-min-ver`.
    pub fn named(word: &str) -> Option<Version> {
        Some(match word {
            "SSLv3" => Version::Ssl3,
            "TLSv1.0" => Version::Tls10,
            "TLSv1.1" => Version::Tls11,
            "TLSv1.2" => Version::Tls12,
            "TLSv1.3" => Version::Tls13,
            _ => return None,
        })
    }
}

/// What a side of a connection may negotiate.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// `ssl-min-ver`.
    pub min: Option<Version>,
    /// `ssl-max-ver`.
    pub max: Option<Version>,
    /// `no-tlsv12` and the like.
    pub without: Vec<Version>,
    /// `ciphers`.
    pub ciphers: Option<Box<str>>,
    /// `ciphersuites`.
    pub ciphersuites: Option<Box<str>>,
    /// `curves`, or `ecdhe`.
    pub curves: Option<Box<str>>,
    /// `sigalgs`.
    pub sigalgs: Option<Box<str>>,
    /// `client-sigalgs`.
    pub client_sigalgs: Option<Box<str>>,
}

/// Whether an error is a whole statement in HAProxy's words, to which only the place is to be added.
pub fn is_whole(error: &str) -> bool {
    error.starts_with("unable to set") || error.starts_with("all SSL/TLS")
}

/// What rustls makes of a policy.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// Its algorithms.
    pub provider: Arc<CryptoProvider>,
    /// Its versions.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Schemes of the server's signatures; `None`: all.
    pub server_schemes: Option<Arc<[SignatureScheme]>>,
    /// The same of the client's.
    pub client_schemes: Option<Arc<[SignatureScheme]>>,
    /// Words that have no effect here.
    pub ignored: Vec<String>,
}

impl Policy {
    /// What rustls has of it.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn resolve(&self) -> Result<Agreed, String> {
        let allows = |v| self.allows(v);
        let mut versions = Vec::new();
        if allows(Version::Tls13) {
            versions.push(&version::TLS13);
        }
        if allows(Version::Tls12) {
            versions.push(&version::TLS12);
        }
        if versions.is_empty() {
            return Err(match [Version::Tls10, Version::Tls11].into_iter().any(allows) {
                true => "no version is left: TLS before 1.2 is not available".into(),
                false => "all SSL/TLS versions are disabled".into(),
            });
        }
        let mut ignored = Vec::new();
        // A list of ciphers is found wrong before one of suites.
        let older = self.tls12(&mut ignored)?;
        let mut suites = self.tls13(&mut ignored)?;
        suites.extend(older);
        versions.retain(|v| suites.iter().any(|s| s.version() == *v));
        if versions.is_empty() {
            return Err(format!("no usable cipher is left of '{}'", self.words()));
        }
        suites.retain(|s| versions.contains(&s.version()));
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = suites;
        // The last choice, for those who have nothing else.
        provider.kx_groups.push(P521);
        if let Some(curves) = &self.curves {
            provider.kx_groups = groups(curves, &mut ignored)?;
            if provider.kx_groups.is_empty() {
                return Err(format!("no usable curve is left of '{curves}'"));
            }
        }
        let mut schemes = |list: &Option<Box<str>>| {
            list.as_deref().map(|list| schemes::named(list, &mut ignored)).transpose()
        };
        let server_schemes = schemes(&self.sigalgs)?;
        let client_schemes = schemes(&self.client_sigalgs)?.or_else(|| server_schemes.clone());
        Ok(Agreed { provider: Arc::new(provider), versions, server_schemes, client_schemes, ignored })
    }

    /// What rustls has of it, for a connection to a server, where wrong signatures are told before wrong
    /// curves.
    ///
    /// # Errors
    /// As with [`Policy::resolve`].
    pub fn resolve_for_server(&self) -> Result<Agreed, String> {
        let wrong = |list: &Option<Box<str>>| {
            let why = list.as_deref().and_then(|list| schemes::named(list, &mut Vec::new()).err());
            why.filter(|why| is_whole(why))
        };
        self.resolve().map_err(|why| match why.contains("curves list") || why.contains("Algorithm list") {
            true => wrong(&self.sigalgs)
                .or_else(|| wrong(&self.client_sigalgs).map(|why| why.replacen("SSL", "SSL Client", 1)))
                .unwrap_or(why),
            false => why,
        })
    }

    /// Whether a version may be spoken. `no-tlsv12` and its like count only without bounds.
    fn allows(&self, version: Version) -> bool {
        match (self.min, self.max) {
            (None, None) => version >= Version::Tls12 && !self.without.contains(&version),
            (min, max) => {
                let max = max.unwrap_or(Version::Tls13);
                // A highest version below the usual lowest one is the only one.
                (min.unwrap_or(Version::Tls12.min(max))..=max).contains(&version)
            }
        }
    }

    /// The last version that is excluded between others that are not. Towards servers the oldest is TLS 1.0.
    pub fn hole(&self) -> Option<&'static str> {
        const OLDEST_FIRST: [(Version, &str); 4] = [
            (Version::Tls10, "TLSv1.0"),
            (Version::Tls11, "TLSv1.1"),
            (Version::Tls12, "TLSv1.2"),
            (Version::Tls13, "TLSv1.3"),
        ];
        let said = |at: usize| OLDEST_FIRST.get(at).is_some_and(|(v, _)| !self.without.contains(v));
        let bounded = self.min.is_some() || self.max.is_some();
        let first = (0..4).find(|at| said(*at)).filter(|_| !bounded)?;
        let last = (0..4).rev().find(|at| said(*at))?;
        (first..last).rev().find(|at| !said(*at)).and_then(|at| OLDEST_FIRST.get(at)).map(|(_, name)| *name)
    }

    /// Whether those versions that Harrier has are excluded one by one, and older ones are not: HAProxy
    /// speaks these to servers.
    pub fn leaves_old_versions(&self) -> bool {
        let excluded = |version| self.without.contains(&version);
        let bounded = self.min.is_some() || self.max.is_some();
        let new = excluded(Version::Tls12) && excluded(Version::Tls13);
        !bounded && new && !(excluded(Version::Tls10) && excluded(Version::Tls11))
    }

    /// Whether versions are excluded one by one beside bounds, where that has no effect.
    pub fn excludes_in_vain(&self) -> bool {
        (self.min.is_some() || self.max.is_some()) && !self.without.is_empty()
    }

    fn words(&self) -> &str {
        self.ciphers.as_deref().or(self.ciphersuites.as_deref()).unwrap_or_default()
    }

    fn tls13(&self, ignored: &mut Vec<String>) -> Result<Vec<SupportedCipherSuite>, String> {
        let all = &SUITES[..OF_TLS13];
        let Some(list) = &self.ciphersuites else { return Ok(all.iter().map(|s| s.2).collect()) };
        let before = ignored.len();
        let found = named(list, all, ignored);
        // OpenSSL has two more, which end in CCM and CCM_8.
        let elsewhere = ignored.iter().skip(before).any(|word| word.contains("_CCM"));
        match found.is_empty() && !elsewhere && !list.is_empty() {
            true => Err(format!("unable to set TLS 1.3 cipher suites to '{list}'")),
            false => Ok(found),
        }
    }

    fn tls12(&self, ignored: &mut Vec<String>) -> Result<Vec<SupportedCipherSuite>, String> {
        let all = &SUITES[OF_TLS13..];
        let Some(list) = &self.ciphers else { return Ok(all.iter().map(|s| s.2).collect()) };
        let chosen = crate::ciphers::choose(list, all);
        if chosen.suites.is_empty() && !chosen.left_out.iter().any(|word| crate::ciphers::is_foreign(word)) {
            return Err(format!("unable to set SSL cipher list to '{list}'"));
        }
        ignored.extend(chosen.left_out);
        Ok(chosen.suites.iter().map(|s| s.2).collect())
    }
}

fn named(list: &str, all: &[Row], ignored: &mut Vec<String>) -> Vec<SupportedCipherSuite> {
    let mut out = Vec::new();
    for word in list.split([':', ',', ' ']).filter(|w| !w.is_empty()) {
        match all.iter().find(|s| s.0 == word || s.1 == word) {
            Some(s) if !out.contains(&s.2) => out.push(s.2),
            Some(_) => {}
            None => ignored.push(word.to_owned()),
        }
    }
    out
}

/// Groups by the names that OpenSSL or its later versions take and rustls has nothing for, in lower case.
const FOREIGN_GROUPS: &[&str] = &[
    "p-192",
    "p-224",
    "prime192v1",
    "prime239v1",
    "x448",
    "mlkem512",
    "x448mlkem1024",
    "secp384r1mlkem1024",
    "curvesm2",
    "curvesm2mlkem768",
];
/// How the names of whole families of them begin.
const FOREIGN_FAMILIES: &[&str] = &["secp", "sect", "brainpoolp", "ffdhe", "k-", "b-"];

/// The groups of a list in its order; the words of which rustls has none are added to `ignored`.
fn groups(list: &str, ignored: &mut Vec<String>) -> Result<Vec<&'static dyn SupportedKxGroup>, String> {
    let mut out: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for word in list.split([':', '/']).filter(|w| !w.is_empty()) {
        let plain = word.trim_start_matches(['*', '?', '-']).to_ascii_lowercase();
        let foreign =
            || FOREIGN_GROUPS.contains(&&*plain) || FOREIGN_FAMILIES.iter().any(|f| plain.starts_with(f));
        match GROUPS.iter().find(|(name, _)| *name == plain) {
            Some((_, g)) if !out.iter().any(|o| o.name() == g.name()) => out.push(*g),
            Some(_) => {}
            None if word.starts_with('?') || foreign() => ignored.push(word.to_owned()),
            None => return Err(format!("unable to set SSL curves list to '{list}'")),
        }
    }
    Ok(out)
}
