//! What the store holds, in words (management manual, `show ssl cert` and its kin). Each answer ends with a
//! line feed.

use std::fmt::Write;

use rustls_pki_types::CertificateDer;

use super::binds::BindUse;
use super::certs::Cert;
use super::lists::Lookup;
use super::trust_changes::Kind;
use super::trusts::Authorities;
use super::{Inner, Store};
use crate::files::{Kind as KeyKind, Parts};
use crate::{ocsp, text};
use x509::Certificate;

const NO_CERT: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

/// A name as it was typed: `*` in front means the transaction, `\*` a star.
fn typed(name: &str) -> (bool, &str) {
    match name.strip_prefix('*') {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix('\\').unwrap_or(name)),
    }
}

/// Which names `show ssl sni` tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct SniFilter<'f> {
    /// Of this frontend only.
    pub frontend: Option<&'f str>,
    /// Of certificates that are past this time only, in seconds since 1970.
    pub expired_at: Option<i64>,
}

impl Store {
    /// `show ssl cert`.
    pub fn show_certs(&self) -> String {
        let inner = self.lock();
        let mut out = String::new();
        if let Some((name, _)) = &inner.changing_cert {
            let _ = writeln!(out, "# transaction\n*{name}");
        }
        if !inner.certs.is_empty() {
            out.push_str("# filename\n");
        }
        inner.certs.keys().for_each(|name| {
            let _ = writeln!(out, "{name}");
        });
        out
    }

    /// `show ssl cert NAME`.
    ///
    /// # Errors
    /// There is none.
    pub fn show_cert(&self, name: &str) -> Result<String, String> {
        if let Some(response) = name.strip_suffix(".ocsp").and_then(|stem| self.ocsp_response(stem)) {
            return ocsp::text(&response).map_err(|e| e.words().to_owned());
        }
        let inner = &*self.lock();
        if name.strip_suffix(".ocsp").is_some_and(|stem| inner.names(stem)) {
            return Ok(String::new());
        }
        let (changing, name) = typed(name);
        let cert = inner.certs.get(name);
        let (parts, completed) = match (&inner.changing_cert, cert) {
            (Some((other, parts)), _) if changing && **other == *name => (parts, None),
            (_, Some(cert)) if !changing => (&cert.parts, cert.completed.as_deref()),
            _ => return Err(NO_CERT.into()),
        };
        let mut out = format!("Filename: {}{name}\n", if changing { "*" } else { "" });
        if let Some(cert) = cert {
            inner.about(cert, &mut out);
        }
        let status = match cert {
            _ if changing => "Uncommitted",
            _ if parts.leaf.is_none() => "Empty",
            Some(c) if c.jwt => "Used for JWT verification",
            _ if inner.uses(name) > 0 => "Used",
            _ => "Unused",
        };
        let _ = writeln!(out, "Status: {status}");
        let key = cert.filter(|_| !changing).and_then(|cert| inner.id(cert));
        details(parts, completed, key.as_deref(), &mut out);
        Ok(out)
    }

    /// `dump ssl cert`: PEM of the key, the certificate and its chain.
    ///
    /// # Errors
    /// There is none.
    pub fn dump_cert(&self, name: &str) -> Result<String, String> {
        let inner = &*self.lock();
        let (changing, name) = typed(name);
        let parts = match (&inner.changing_cert, inner.certs.get(name)) {
            (Some((other, parts)), _) if changing && **other == *name => parts,
            (_, Some(cert)) if !changing => &cert.parts,
            _ => return Err(NO_CERT.into()),
        };
        let mut out = String::new();
        if let Some(key) = parts.key.as_deref().and_then(crate::files::pkcs8) {
            crate::pem::put(&mut out, "PRIVATE KEY", &key);
        }
        for certificate in parts.leaf.iter().chain(&parts.chain) {
            crate::pem::put(&mut out, "CERTIFICATE", certificate);
        }
        Ok(out)
    }

    /// `show ssl ca-file`, `show ssl crl-file`.
    pub fn show_files(&self, kind: Kind) -> String {
        let inner = self.lock();
        let is_crl = kind == Kind::Crl;
        let changing = if is_crl { &inner.changing_crl } else { &inner.changing_ca };
        let count = |holds: &Authorities| match is_crl {
            true => String::new(),
            false => format!(" - {} certificate(s)", holds.certificates.len()),
        };
        let mut out = String::new();
        if let Some((name, holds)) = changing {
            let _ = writeln!(out, "# transaction\n*{name}{}", count(holds));
        }
        // HAProxy keeps both kinds in one list, and has a line above it if there is anything at all.
        if !inner.files.is_empty() {
            out.push_str("# filename\n");
        }
        for (name, file) in inner.files.iter().filter(|(_, f)| f.is_crl == is_crl) {
            let _ = writeln!(out, "{name}{}", count(&file.holds));
        }
        out
    }

    /// `show ssl ca-file NAME[:N]`, `show ssl crl-file NAME[:N]`.
    ///
    /// # Errors
    /// There is none, or the number is none.
    pub fn show_file(&self, kind: Kind, asked: &str) -> Result<String, String> {
        let inner = &*self.lock();
        let is_crl = kind == Kind::Crl;
        let word = if is_crl { "CRL" } else { "CA" };
        let (name, index) = match asked.rsplit_once(':') {
            None => (asked, None),
            Some((name, digits)) => match digits.parse::<usize>() {
                Ok(n) if n > 0 => (name, Some(n)),
                _ => return Err(format!("wrong {word} index after colons in '{asked}'!")),
            },
        };
        let (changing, name) = typed(name);
        let begun = if is_crl { &inner.changing_crl } else { &inner.changing_ca };
        let holds = match (begun, inner.files.get(name)) {
            (Some((other, holds)), _) if changing && **other == *name => holds,
            (_, Some(file)) if !changing && file.is_crl == is_crl => &file.holds,
            _ => return Err(format!("Can't display the {word} file : Not found!")),
        };
        let count = if is_crl { holds.lists.len() } else { holds.certificates.len() };
        if !is_crl && (count == 0 || index.is_some_and(|n| n > count)) {
            return Ok(String::new());
        }
        let status = match () {
            () if changing => "Uncommitted",
            () if count == 0 => "Empty",
            () if inner.file_uses(name) > 0 => "Used",
            () => "Unused",
        };
        let mut out = format!("Filename: {}{name}\nStatus: {status}\n", if changing { "*" } else { "" });
        for n in (1..=count).filter(|n| index.is_none_or(|i| i == *n)) {
            if is_crl {
                let list = holds.lists.get(n - 1).and_then(|l| text::revocations(l)).unwrap_or_default();
                let _ = write!(out, " \nCertificate Revocation List #{n}:\n{list}");
            } else {
                let about = holds.certificates.get(n - 1).map(|c| text::certificate(c)).unwrap_or_default();
                let _ = write!(out, " \nCertificate #{n}:\n{about}");
            }
        }
        Ok(out)
    }

    /// `show ssl crt-list`.
    pub fn show_lists(&self) -> String {
        self.lock().lists.keys().fold(String::new(), |out, name| out + name + "\n")
    }

    /// `show ssl crt-list [-n] NAME`.
    ///
    /// # Errors
    /// There is none.
    pub fn show_list(&self, list: Lookup<'_>, numbers: bool) -> Result<String, String> {
        let inner = self.lock();
        let found = inner.lists.get_key_value(list.name());
        let (name, list) = found.ok_or("didn't find the specified filename")?;
        let mut out = format!("# {name}\n");
        for entry in &list.entries {
            out.push_str(&entry.cert);
            if numbers {
                let _ = write!(out, ":{}", entry.line);
            }
            if !entry.shown.is_empty() {
                let _ = write!(out, " {}", entry.shown);
            }
            entry.filters.iter().for_each(|f| {
                let _ = write!(out, " {f}");
            });
            out.push('\n');
        }
        Ok(out)
    }

    /// `show ssl sni`. Tells of binds in the order of the configuration.
    pub fn show_sni(&self, filter: SniFilter<'_>) -> String {
        let inner = self.lock();
        let mut out =
            String::from("# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n");
        for bind in &inner.binds {
            if filter.frontend.is_none_or(|f| *bind.spec.label.frontend == *f) {
                names(bind, filter.expired_at, &mut out);
            }
        }
        out
    }

    /// The OCSP response of a certificate, or of the transaction about it.
    pub fn ocsp_response(&self, name: &str) -> Option<Vec<u8>> {
        let inner = self.lock();
        let (changing, name) = typed(name);
        let parts = match (&inner.changing_cert, inner.certs.get(name)) {
            (Some((other, parts)), _) if changing && **other == *name => parts,
            (_, Some(cert)) if !changing => &cert.parts,
            _ => return None,
        };
        parts.ocsp.as_deref().map(<[u8]>::to_vec)
    }
}

impl Inner {
    /// Whether a typed name is that of a certificate, or of the one that is being changed.
    fn names(&self, name: &str) -> bool {
        match typed(name) {
            (true, name) => self.changing_cert.as_ref().is_some_and(|(other, _)| **other == *name),
            (false, name) => self.certs.contains_key(name),
        }
    }

    /// Where a certificate came from, and what else was said of it.
    fn about(&self, cert: &Cert, out: &mut String) {
        let changing = &cert.sources;
        let crt = Some(&changing.certificate).filter(|c| !c.is_empty());
        let lines = [
            ("Crt filename", crt),
            ("Key filename", changing.key.as_ref()),
            ("OCSP filename", changing.ocsp.as_ref()),
            ("OCSP Issuer filename", changing.issuer.as_ref()),
            ("SCTL filename", changing.sctl.as_ref()),
        ];
        for (word, path) in lines {
            if let Some(path) = path {
                let _ = writeln!(out, "{word}: {path}");
            }
        }
        let word = |on| if on { "on" } else { "off" };
        let update = word(cert.ocsp_update.unwrap_or(self.ground.ocsp_update));
        let _ = writeln!(out, "Option: ocsp-update {update}\nOption: jwt {}", word(cert.jwt));
    }
}

/// The lines about a certificate, its chain and its OCSP response.
fn details(parts: &Parts, completed: Option<&str>, key: Option<&[u8]>, out: &mut String) {
    if let Some(leaf) = &parts.leaf {
        out.push_str(&text::certificate(leaf));
        if let Some(path) = completed {
            let _ = writeln!(out, "Chain Filename: {path}");
        }
    }
    for cert in parts.chain.iter().filter_map(|c| Certificate::parse(c)) {
        let (subject, issuer) = (text::name(cert.subject), text::name(cert.issuer));
        let _ = writeln!(out, "Chain Subject: {subject}\nChain Issuer: {issuer}");
    }
    let key = key.map(text::hex).unwrap_or_default().to_ascii_lowercase();
    let _ = writeln!(out, "OCSP Response Key: {key}");
}

/// The issuer of a certificate, as far as it is at hand.
pub(super) fn issuer(parts: &Parts) -> Option<&CertificateDer<'static>> {
    let leaf = Certificate::parse(parts.leaf.as_ref()?)?;
    let all = parts.chain.iter().chain(&parts.issuer);
    all.into_iter().find(|c| Certificate::parse(c).is_some_and(|c| c.subject == leaf.issuer))
}

/// The names of a `bind` line: whole ones in order, then what stands for many, the defaults first.
fn names(bind: &BindUse, expired_at: Option<i64>, out: &mut String) {
    let (mut whole, mut wild) = (Vec::new(), Vec::new());
    for (index, row) in bind.rows.iter().enumerate() {
        let names = match row.filters.as_slice() {
            [] => row.entry.identity.names(),
            list => list.iter().map(|f| f.to_ascii_lowercase()).collect(),
        };
        for name in names.iter().filter(|n| !n.starts_with('!') && *n != "*") {
            match name.strip_prefix('*') {
                Some(rest) => wild.push((rest.to_owned(), index)),
                None => whole.push((name.clone(), index)),
            }
        }
        if bind.is_default(index) {
            wild.push((String::new(), index));
        }
    }
    whole.sort_by(|a, b| a.0.cmp(&b.0));
    wild.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, index) in whole {
        line(bind, &name, index, "-", expired_at, out);
    }
    for (name, index) in wild {
        let mut without: Vec<String> = bind.rows.get(index).map_or_else(Vec::new, |r| {
            let low = r.filters.iter().map(|f| f.to_ascii_lowercase());
            low.filter(|f| f.starts_with('!') && !f.starts_with("!*")).map(|f| f + " ").collect()
        });
        without.sort();
        let without = if without.is_empty() { "-".to_owned() } else { without.concat() };
        line(bind, &format!("*{name}"), index, &without, expired_at, out);
    }
}

fn line(bind: &BindUse, name: &str, index: usize, without: &str, expired_at: Option<i64>, out: &mut String) {
    let Some(row) = bind.rows.get(index) else { return };
    let identity = &row.entry.identity;
    let Some(cert) = Certificate::parse(&identity.leaf) else { return };
    if expired_at.is_some_and(|now| cert.times().is_none_or(|(_, to)| to > now)) {
        return;
    }
    let kind = match identity.kind {
        KeyKind::Rsa => "rsa",
        KeyKind::Ecdsa => "ecdsa",
        KeyKind::Other => "-",
    };
    let label = &bind.spec.label;
    let [from, to] = cert.validity;
    let _ = writeln!(
        out,
        "{}/{}\t{name}\t{without}\t{kind}\t{}\t{}\t{}",
        label.frontend,
        label.place,
        row.cert,
        text::date(to),
        text::date(from)
    );
}
