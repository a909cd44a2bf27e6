//! Certificate lists: `crt-list` files (manual, section 5.1).
//!
//! Each line is a certificate, settings between brackets, and the names for which it is shown.

use super::words::{self, Words};
use tls::files::Sources;

/// One line.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListLine {
    /// Number in the file, from 1.
    pub number: usize,
    pub words: Words,
    pub sources: Sources,
    pub filters: Vec<Box<str>>,
}

/// The lines of a list.
///
/// # Errors
/// Number of the line and what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Vec<ListLine>, (usize, String)> {
    let mut out = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        out.push(one(number, line).map_err(|why| (number, why))?);
    }
    Ok(out)
}

fn one(number: usize, line: &str) -> Result<ListLine, String> {
    let (head, settings, tail) = match line.split_once('[') {
        None => (line, "", ""),
        Some((head, rest)) => {
            let (settings, tail) = rest.split_once(']').ok_or("expects ']' at the end of the settings")?;
            (head, settings, tail)
        }
    };
    let mut head = head.split_ascii_whitespace();
    let path = head.next().ok_or("expects a certificate")?;
    let mut out = ListLine { number, ..ListLine::default() };
    out.sources.certificate = path.into();
    out.filters = head.chain(tail.split_ascii_whitespace()).map(Into::into).collect();
    let mut settings = settings.split_ascii_whitespace();
    while let Some(name) = settings.next() {
        set(&mut out, name, &mut settings)?;
    }
    Ok(out)
}

fn set<'t>(out: &mut ListLine, name: &str, rest: &mut impl Iterator<Item = &'t str>) -> Result<(), String> {
    let mut value = || rest.next().ok_or_else(|| format!("'{name}' : missing value"));
    let w = &mut out.words;
    match name {
        "alpn" => words::alpn(w, value()?)?,
        "no-alpn" => w.alpn = Some(Vec::new()),
        "npn" => return Err("'npn' is not supported: TLS has ALPN".into()),
        "allow-0rtt" => w.early_data = true,
        "ca-file" => w.ca_file = Some(value()?.into()),
        "ca-verify-file" => w.ca_verify_file = Some(value()?.into()),
        "crl-file" => w.crl_file = Some(value()?.into()),
        "ciphers" => w.policy.ciphers = Some(value()?.into()),
        "ciphersuites" => w.policy.ciphersuites = Some(value()?.into()),
        "curves" | "ecdhe" => w.policy.curves = Some(value()?.into()),
        "client-sigalgs" => w.policy.client_sigalgs = Some(value()?.into()),
        "sigalgs" => w.policy.sigalgs = Some(value()?.into()),
        "no-ca-names" => w.no_ca_names = true,
        "ssl-min-ver" => words::version(&mut w.policy.min, value()?)?,
        "ssl-max-ver" => words::version(&mut w.policy.max, value()?)?,
        "verify" => words::verify(w, value()?)?,
        "crt" => out.sources.certificate = value()?.into(),
        "key" => out.sources.key = Some(value()?.into()),
        "issuer" => out.sources.issuer = Some(value()?.into()),
        "ocsp" => out.sources.ocsp = Some(value()?.into()),
        "sctl" | "ocsp-update" => {
            value()?;
        }
        _ => return Err(format!("unknown keyword '{name}' in the settings of a certificate")),
    }
    Ok(())
}
