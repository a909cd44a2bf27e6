//! Certificate lists: `crt-list` files, `ssl-f-use`, and lines added at run time (manual, section 5.1).
//!
//! Each line is a certificate, settings between brackets, and the names for which it is shown. HAProxy keeps
//! comments behind them as names, and takes what follows a bracket that is never closed for names, too.

use tls::files::Sources;
use tls::store::{ListLine, Store};

use super::words::{self, Words};

/// The lines of a list, and how many lines the file has. Errors are complete but for the line that names the
/// list.
pub(crate) fn read(store: &Store, name: &str, text: &str) -> Result<(Vec<ListLine>, u32), String> {
    let (mut out, mut last) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        out.push(one(store, name, number, line)?);
    }
    Ok((out, last))
}

/// One line of a list.
pub(crate) fn one(store: &Store, list: &str, number: u32, line: &str) -> Result<ListLine, String> {
    let bad = |why: &str| format!("parsing [{list}:{number}]: {why}");
    if line.matches('[').count() > 1 {
        return Err(bad("too many '['"));
    }
    if line.matches(']').count() > 1 {
        return Err(bad("too many ']'"));
    }
    let (head, settings, tail) = match (line.find('['), line.find(']')) {
        (None, Some(_)) => return Err(bad("missing '['")),
        (Some(open), Some(close)) if open < close => {
            (&line[..open], Some(&line[open + 1..close]), &line[close + 1..])
        }
        (Some(open), _) => (&line[..open], None, &line[open + 1..]),
        (None, None) => (line, None, ""),
    };
    let mut head = head.split_ascii_whitespace();
    let Some(path) = head.next() else { return Err(bad("file must start with a cert")) };
    let mut out = ListLine { number, sources: Sources::plain(path), ..ListLine::default() };
    out.filters = head.chain(tail.split_ascii_whitespace()).map(Into::into).collect();
    let Some(settings) = settings.filter(|s| !s.trim().is_empty()) else { return Ok(out) };
    let mut settings = settings.split_ascii_whitespace();
    let mut line = Settings::default();
    while let Some(name) = settings.next() {
        line.set(store, name, || settings.next()).map_err(|fault| match fault {
            Fault::Line(why) => bad(&why),
            Fault::Value(why) => why,
            Fault::Parsed(why) => format!("parsing [{list}:{number}] : {why}"),
        })?;
    }
    line.finish(&mut out);
    Ok(out)
}

/// What is wrong with a setting.
pub(crate) enum Fault {
    /// The line.
    Line(String),
    /// The value.
    Value(String),
    /// The value, told with the place in another way.
    Parsed(String),
}

/// Settings of a line while it is read.
#[derive(Default)]
pub(crate) struct Settings {
    words: Words,
    sources: Sources,
    /// What is shown of them, by rank.
    shown: Vec<(usize, String)>,
    /// Any was given that concerns handshakes.
    any: bool,
}

/// The order in which settings are shown.
const RANKS: [&str; 15] = [
    "npn",
    "alpn",
    "verify",
    "no-ca-names",
    "allow-0rtt",
    "ca-file",
    "crl-file",
    "ciphers",
    "ciphersuites",
    "curves",
    "ecdhe",
    "client-sigalgs",
    "sigalgs",
    "ssl-min-ver",
    "ssl-max-ver",
];

impl Settings {
    /// One setting; `next` gives its value.
    pub(crate) fn set<'t>(
        &mut self,
        store: &Store,
        name: &str,
        mut next: impl FnMut() -> Option<&'t str>,
    ) -> Result<(), Fault> {
        let mut value = || next().ok_or_else(|| Fault::Line(format!("ssl args out of '[]' for {name}")));
        let w = &mut self.words;
        let of = |e: String| Fault::Value(e);
        let shown = match name {
            "alpn" => {
                let list = value()?;
                words::alpn(w, list).map_err(|e| of(format!("'alpn' : {e}")))?;
                Some(list)
            }
            "no-alpn" => {
                w.alpn = Some(Vec::new());
                None
            }
            "npn" => {
                w.alpn.get_or_insert_default();
                Some(value()?)
            }
            "allow-0rtt" => {
                w.early_data = true;
                None
            }
            "ktls" => {
                words::ktls(w, value()?, store.is_experimental()).map_err(of)?;
                None
            }
            "no-ca-names" => {
                w.no_ca_names = true;
                None
            }
            "ca-file" => Some(put(&mut w.ca_file, value()?)),
            "ca-verify-file" => Some(put(&mut w.ca_verify_file, value()?)),
            "crl-file" => Some(put(&mut w.crl_file, value()?)),
            "ciphers" => Some(put(&mut w.policy.ciphers, value()?)),
            "ciphersuites" => Some(put(&mut w.policy.ciphersuites, value()?)),
            "curves" | "ecdhe" => Some(put(&mut w.policy.curves, value()?)),
            "client-sigalgs" => Some(put(&mut w.policy.client_sigalgs, value()?)),
            "sigalgs" => Some(put(&mut w.policy.sigalgs, value()?)),
            "ssl-min-ver" => {
                let v = value()?;
                words::version(&mut w.policy.min, v).map_err(of)?;
                Some(v)
            }
            "ssl-max-ver" => {
                let v = value()?;
                words::version(&mut w.policy.max, v).map_err(of)?;
                Some(v)
            }
            "verify" => {
                let v = value()?;
                words::verify(w, v).map_err(|e| of(format!("'verify' : {e}")))?;
                Some(v)
            }
            _ => return self.source(name, value),
        };
        let shown = shown.map(|v| match name {
            "ca-file" | "crl-file" => store.under_ca_base(v).into_string(),
            _ => v.to_owned(),
        });
        self.show(name, shown.as_deref());
        Ok(())
    }

    /// What is said of the certificate's files.
    fn source<'t>(
        &mut self,
        name: &str,
        mut value: impl FnMut() -> Result<&'t str, Fault>,
    ) -> Result<(), Fault> {
        let s = &mut self.sources;
        let mut flag = || {
            let text = value().unwrap_or_default();
            on_off(name, text).map_err(Fault::Parsed)
        };
        match name {
            "ocsp-update" => s.ocsp_update = Some(flag()?),
            "jwt" => s.jwt = Some(flag()?),
            "crt" => s.certificate = value()?.into(),
            "key" => s.key = Some(value()?.into()),
            "issuer" => s.issuer = Some(value()?.into()),
            "ocsp" => s.ocsp = Some(value()?.into()),
            "sctl" => s.sctl = Some(value()?.into()),
            "alias" => s.alias = Some(value()?.into()),
            "acme" => return Err(Fault::Value(NO_ACME.into())),
            // In HAProxy, too, these words of `load` do nothing here.
            "generate-dummy" => drop(flag()?),
            "bits" => drop(integer(name, value()?).map_err(Fault::Parsed)?),
            "keytype" | "domains" | "ips" => drop(value()?),
            _ => return Err(Fault::Line(format!("unknown ssl keyword {name}"))),
        }
        Ok(())
    }

    /// The form in which the list is shown later.
    fn show(&mut self, name: &str, value: Option<&str>) {
        self.any = true;
        let kind = if name == "no-alpn" { "alpn" } else { name };
        let Some(rank) = RANKS.iter().position(|r| *r == kind) else { return };
        // HAProxy writes a NUL behind protocols, which is no part of the list.
        let text = value.map_or_else(|| name.to_owned(), |v| format!("{name} {v}"));
        self.shown.retain(|(r, _)| *r != rank);
        self.shown.push((rank, text));
    }

    /// Puts them into the line.
    pub(crate) fn finish(mut self, out: &mut ListLine) {
        let certificate = match out.sources.certificate.is_empty() {
            true => std::mem::take(&mut self.sources.certificate),
            false => std::mem::take(&mut out.sources.certificate),
        };
        out.sources = Sources { certificate, ..self.sources };
        self.shown.sort();
        let mut shown: Vec<String> = self.shown.into_iter().map(|(_, text)| text).collect();
        shown.extend(
            out.sources.ocsp_update.map(|on| format!("ocsp-update {}", if on { "on" } else { "off" })),
        );
        if self.any || out.sources.has_words() {
            out.shown = format!("[{}]", shown.join(" ")).into();
        }
        out.words = self.any.then_some(self.words);
    }
}

fn put<'t>(place: &mut Option<Box<str>>, value: &'t str) -> &'t str {
    *place = Some(value.into());
    value
}

/// Why certificates aren't fetched.
pub(crate) const NO_ACME: &str =
    "'acme' is not supported yet by Harrier (planned): name a certificate that somebody else renews.";

/// A number.
pub(crate) fn integer(name: &str, text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("cannot parse '{name}' value '{text}', an integer is expected."))
}

/// `on` or `off`.
pub(crate) fn on_off(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("cannot parse '{name}' value '{text}', 'on' or 'off' is expected.")),
    }
}
