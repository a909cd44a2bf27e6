//! Settings of a handshake as they were written, on `bind` and `server` lines and on lines of certificate
//! lists (manual, sections 5.1 and 5.2).
//!
//! They are kept beside what was made of them: when a file they name is replaced at run time, or a line is
//! added to a list, rules are made of them again.

use crate::suites::Policy;
use crate::verify::Ignored;

/// `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// `none`.
    None,
    /// `optional`.
    Optional,
    /// `required`.
    Required,
}

/// Settings of a handshake, where they were made.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Versions, ciphers, curves.
    pub policy: Policy,
    /// `Some` without protocols: `no-alpn`.
    pub alpn: Option<Vec<Vec<u8>>>,
    /// `verify`.
    pub verify: Option<Verify>,
    /// `ca-file`.
    pub ca_file: Option<Box<str>>,
    /// `ca-verify-file`.
    pub ca_verify_file: Option<Box<str>>,
    /// `crl-file`.
    pub crl_file: Option<Box<str>>,
    /// `crt-ignore-err`.
    pub crt_ignore: Option<Ignored>,
    /// `ca-ignore-err`.
    pub ca_ignore: Option<Ignored>,
    /// `no-ca-names`.
    pub no_ca_names: bool,
    /// `no-tls-tickets`, `tls-tickets`.
    pub no_tickets: Option<bool>,
    /// `prefer-client-ciphers`.
    pub client_order: bool,
    /// `allow-0rtt`.
    pub early_data: bool,
    /// `ktls`.
    pub ktls: Option<bool>,
    /// `strict-sni`, `no-strict-sni`.
    pub strict_sni: Option<bool>,
    /// Words that rustls has nothing for, with their reason.
    pub ignored: Vec<&'static str>,
}

impl Words {
    /// These settings where they were made, those of `other` elsewhere.
    pub fn or(&self, other: &Words) -> Words {
        let (a, b) = (&self.policy, &other.policy);
        // What is excluded anywhere stays excluded.
        let without = [&*a.without, &*b.without].concat();
        Words {
            policy: Policy {
                min: a.min.or(b.min),
                max: a.max.or(b.max),
                without,
                ciphers: a.ciphers.clone().or_else(|| b.ciphers.clone()),
                ciphersuites: a.ciphersuites.clone().or_else(|| b.ciphersuites.clone()),
                curves: a.curves.clone().or_else(|| b.curves.clone()),
                sigalgs: a.sigalgs.clone().or_else(|| b.sigalgs.clone()),
                client_sigalgs: a.client_sigalgs.clone().or_else(|| b.client_sigalgs.clone()),
            },
            alpn: self.alpn.clone().or_else(|| other.alpn.clone()),
            verify: self.verify.or(other.verify),
            ca_file: self.ca_file.clone().or_else(|| other.ca_file.clone()),
            ca_verify_file: self.ca_verify_file.clone().or_else(|| other.ca_verify_file.clone()),
            crl_file: self.crl_file.clone().or_else(|| other.crl_file.clone()),
            crt_ignore: self.crt_ignore.or(other.crt_ignore),
            ca_ignore: self.ca_ignore.or(other.ca_ignore),
            no_ca_names: self.no_ca_names || other.no_ca_names,
            no_tickets: self.no_tickets.or(other.no_tickets),
            client_order: self.client_order || other.client_order,
            early_data: self.early_data || other.early_data,
            ktls: self.ktls.or(other.ktls),
            strict_sni: self.strict_sni.or(other.strict_sni),
            ignored: self.ignored.clone(),
        }
    }
}
