//! OpenSSL's names of ciphers, curves and versions, and what rustls has of them (manual, `ciphers`, `ciphersuites`,
//! `curves`, `ssl-min-ver`).

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{self, cipher_suite as suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::schemes;

/// Suites by OpenSSL's name, the IANA name, and the bits of their key.
const SUITES: &[(&str, &str, SupportedCipherSuite, u16)] = &[
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

/// Groups by the names that OpenSSL takes, in lower case.
const GROUPS: &[(&str, &dyn SupportedKxGroup)] = &[
    ("x25519", kx_group::X25519),
    ("p-256", kx_group::SECP256R1),
    ("prime256v1", kx_group::SECP256R1),
    ("secp256r1", kx_group::SECP256R1),
    ("p-384", kx_group::SECP384R1),
    ("secp384r1", kx_group::SECP384R1),
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
        let (min, max) = (self.min.unwrap_or(Version::Tls12), self.max.unwrap_or(Version::Tls13));
        let allows = |v| (min..=max).contains(&v) && !self.without.contains(&v);
        let mut versions = Vec::new();
        if allows(Version::Tls13) {
            versions.push(&version::TLS13);
        }
        if allows(Version::Tls12) {
            versions.push(&version::TLS12);
        }
        if versions.is_empty() {
            return Err("no version is left: TLS before 1.2 is not available".into());
        }
        let mut ignored = Vec::new();
        let mut suites = self.tls13(&mut ignored);
        suites.extend(self.tls12(&mut ignored));
        versions.retain(|v| suites.iter().any(|s| s.version() == *v));
        if versions.is_empty() {
            return Err(format!("no usable cipher is left of '{}'", self.words()));
        }
        suites.retain(|s| versions.contains(&s.version()));
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = suites;
        if let Some(curves) = &self.curves {
            provider.kx_groups = groups(curves, &mut ignored);
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

    fn words(&self) -> &str {
        self.ciphers.as_deref().or(self.ciphersuites.as_deref()).unwrap_or_default()
    }

    fn tls13(&self, ignored: &mut Vec<String>) -> Vec<SupportedCipherSuite> {
        let all = &SUITES[..OF_TLS13];
        let Some(list) = &self.ciphersuites else { return all.iter().map(|s| s.2).collect() };
        named(list, all, ignored)
    }

    fn tls12(&self, ignored: &mut Vec<String>) -> Vec<SupportedCipherSuite> {
        let all = &SUITES[OF_TLS13..];
        let Some(list) = &self.ciphers else { return all.iter().map(|s| s.2).collect() };
        let mut out: Vec<SupportedCipherSuite> = Vec::new();
        let mut gone: Vec<SupportedCipherSuite> = Vec::new();
        for word in list.split([':', ',', ' ']).filter(|w| !w.is_empty()) {
            if word.starts_with('@') {
                continue;
            }
            let (sign, name) = match word.split_at(1) {
                ("!" | "-" | "+", rest) => (word.as_bytes()[0], rest),
                _ => (b' ', word),
            };
            if sign == b' ' && matches!(name, "kRSA" | "RSA") {
                ignored.push(format!("{word} (ECDHE with RSA certificates takes its place)"));
            }
            let mut found = all.iter().filter(|s| matches_word(s.0, s.1, name)).map(|s| s.2).peekable();
            if found.peek().is_none() && sign == b' ' {
                ignored.push(word.to_owned());
            }
            for suite in found {
                match sign {
                    b' ' if !gone.contains(&suite) && !out.contains(&suite) => out.push(suite),
                    b' ' | b'+' => {}
                    b'!' => {
                        gone.push(suite);
                        out.retain(|s| *s != suite);
                    }
                    _ => out.retain(|s| *s != suite),
                }
            }
        }
        out
    }
}

/// Whether a suite is meant by a word of a cipher string: its name, or properties joined by `+`.
fn matches_word(name: &str, iana: &str, word: &str) -> bool {
    if word == name || word == iana {
        return true;
    }
    word.split('+').all(|property| {
        let property = property.to_ascii_uppercase();
        match property.as_str() {
            "ALL"
            | "DEFAULT"
            | "HIGH"
            | "ECDHE"
            | "EECDH"
            | "KECDHE"
            | "KEECDH"
            | "TLSV1.2"
            | "AEAD"
            | "FIPS"
            | "COMPLEMENTOFDEFAULT" => true,
            "ECDSA" | "AECDSA" => name.contains("ECDSA"),
            // Without a key exchange by RSA itself its words mean the suites whose certificates are RSA's.
            "RSA" | "ARSA" | "KRSA" => name.contains("-RSA-"),
            "AESGCM" | "AES" => name.contains("GCM"),
            "AES128" => name.contains("AES128"),
            "AES256" => name.contains("AES256"),
            "CHACHA20" => name.contains("CHACHA20"),
            "SHA256" => name.ends_with("SHA256"),
            "SHA384" => name.ends_with("SHA384"),
            _ => false,
        }
    })
}

fn named(
    list: &str,
    all: &[(&str, &str, SupportedCipherSuite, u16)],
    ignored: &mut Vec<String>,
) -> Vec<SupportedCipherSuite> {
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

fn groups(list: &str, ignored: &mut Vec<String>) -> Vec<&'static dyn SupportedKxGroup> {
    let mut out: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for word in list.split([':', ',', '/']).filter(|w| !w.is_empty()) {
        let plain = word.trim_start_matches(['*', '?', '-']).to_ascii_lowercase();
        match GROUPS.iter().find(|(name, _)| *name == plain) {
            Some((_, g)) if !out.iter().any(|o| o.name() == g.name()) => out.push(*g),
            Some(_) => {}
            None => ignored.push(word.to_owned()),
        }
    }
    out
}
