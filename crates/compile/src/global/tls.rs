//! TLS in the `global` section (manual, sections 3.1 and 3.2).

use base::outside;
use tls::files::{self, Extra};

use crate::tls::words;
use crate::tls::words::{Verify, Words};

use syntax::{Diagnostic, Style};

use super::draft::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};

/// What a keyword expects, in HAProxy's words.
fn missing_of(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "ca-base" | "crt-base" | "key-base" => "a directory path as an argument",
        _ if keyword.ends_with("-ciphers") || keyword.ends_with("-ciphersuites") => {
            "a cipher suite as an argument"
        }
        _ if keyword.ends_with("-client-sigalgs") => "signature algorithms as an arguments",
        _ if keyword.ends_with("-curves") || keyword.ends_with("-sigalgs") => {
            "a curves suite as an arguments"
        }
        _ => return None,
    })
}

/// Sets one text.
pub(super) fn text(s: &mut Statement<'_>) -> Step<Box<str>> {
    let missing = match missing_of(s.keyword()) {
        Some(what) => format!("global statement '{}' expects {what}.", s.keyword()),
        None => format!("'{}' expects an argument.", s.keyword()),
    };
    let word = s.word(missing)?.text().into();
    s.end()?;
    Ok(word)
}

fn folder(s: &mut Statement<'_>, place: &mut Option<Box<str>>) -> Step {
    if let Some(extra) = s.line.args().get(1) {
        let text = format!("'{}' cannot handle unexpected argument '{extra}'.", s.keyword());
        return Err(s.fail_at(extra.span(), text));
    }
    if place.is_some() {
        let keyword = s.keyword();
        return Err(s.fail(format!("'{keyword}' already specified.")));
    }
    *place = Some(text(s)?);
    Ok(())
}

/// `issuers-chain-path`: the chains of a folder, each with the issuer of certificates in front.
fn issuers(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let expects = format!("global statement '{}' expects a directory path as an argument.\n", s.keyword());
    let path = s.word(expects.clone())?.text();
    s.end()?;
    if outside::is_file(path) {
        return Err(s.fail(format!("global statement '{}': {path} is not a directory.\n", s.keyword())));
    }
    let mut names = outside::names(path).map_err(|_| s.fail(expects))?;
    names.sort();
    for name in names {
        let file = format!("{path}/{name}");
        match outside::kind(&file) {
            Ok(what) if what != outside::Kind::File => {}
            Ok(_) => {
                if let Err(text) = issuer(&file, g) {
                    s.notes.push(Diagnostic::warning(s.line.span(), text).styled(Style::Plain));
                }
            }
            Err(e) => {
                let text = format!("unable to stat certificate from file '{file}' : {}.", files::told(&e));
                s.notes.push(Diagnostic::warning(s.line.span(), text).styled(Style::Plain));
            }
        }
    }
    Ok(())
}

/// Adds the chain of a file of `issuers-chain-path`. The first file with the certificate of an issuer counts.
fn issuer(file: &str, g: &mut GlobalDraft) -> Result<(), String> {
    let pem = outside::read(file).ok().and_then(|text| files::pem(&text).ok());
    let chain = pem.map(|pem| pem.certificates).unwrap_or_default();
    let Some(first) = chain.first() else {
        return Err(format!("unable to load issuers-chain {file} : pem certificate not found."));
    };
    if let Some((other, _)) = g.tls.issuers.iter().find(|(_, known)| known.first() == Some(first)) {
        return Err(format!("duplicate issuers-chain {file}: {other} already in store"));
    }
    g.tls.issuers.push((file.into(), chain));
    Ok(())
}

/// `ssl-load-extra-files`.
fn extra(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    const EXPECTS: &str =
        "'ssl-load-extra-files' expects one or multiple arguments (none, all, bundle, sctl, ocsp, issuer).";
    let replaces = g.tls.extra.replaces;
    let none = Extra { bundle: false, sctl: false, ocsp: false, issuer: false, key: false, replaces };
    let mut chosen = none;
    let mut word = s.word(EXPECTS)?;
    let mut alone = false;
    let mut count = 0;
    loop {
        alone |= matches!(word.text(), "none" | "all");
        count += 1;
        if alone && count > 1 {
            return Err(s.fail("'ssl-load-extra-files' 'none' and 'all' can be only used alone"));
        }
        match word.text() {
            "none" => chosen = none,
            "all" => chosen = Extra { replaces, ..Extra::default() },
            "bundle" => chosen.bundle = true,
            "sctl" => chosen.sctl = true,
            "ocsp" => chosen.ocsp = true,
            "issuer" => chosen.issuer = true,
            "key" => chosen.key = true,
            _ => return Err(s.fail(EXPECTS)),
        }
        match s.next() {
            Some(next) => word = next,
            None => break,
        }
    }
    g.tls.extra = chosen;
    Ok(())
}

/// `none` or `required`.
pub(super) fn verify(s: &mut Statement<'_>, place: &mut Verify) -> Step {
    s.at_most_one()?;
    let expects = format!("'{}' expects 'none' or 'required' as argument.", s.keyword());
    // HAProxy has other words for a missing one.
    let missing = format!("'{}' expects an integer argument.", s.keyword());
    let missing = if s.keyword() == "ssl-server-verify" { missing } else { expects.clone() };
    *place = match s.word(missing)?.text() {
        "none" => Verify::None,
        "required" => Verify::Required,
        _ => return Err(s.fail(expects)),
    };
    s.end()
}

/// Options that say how clients are served.
const CLIENTS_ONLY: [&str; 3] = ["prefer-client-ciphers", "strict-sni", "no-strict-sni"];

fn options(s: &mut Statement<'_>, words: &mut Words) -> Step {
    if s.args.peek().is_none() {
        return Err(s.fail(format!("global statement '{}' expects an option as an argument.", s.keyword())));
    }
    let of_servers = s.keyword() == "ssl-default-server-options";
    while let Some(word) = s.next() {
        if of_servers && CLIENTS_ONLY.contains(&word.text()) {
            return Err(s.fail(format!("unknown option '{word}' on global statement '{}'.", s.keyword())));
        }
        match words::option(words, word.text(), s.args.peek().map(|w| w.text())) {
            Some(Ok(took)) => {
                if took {
                    s.next();
                }
            }
            Some(Err(why)) => {
                return Err(s.fail(format!("{why} on global statement '{}'.", s.keyword())));
            }
            None => {
                return Err(s.fail(format!("unknown option '{word}' on global statement '{}'.", s.keyword())));
            }
        }
    }
    Ok(())
}

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("ca-base", |s, g| folder(s, &mut g.tls.ca_base), "Folder of CA files.", "ca-base /etc/ssl/certs"),
    entry(
        "crt-base",
        |s, g| folder(s, &mut g.tls.crt_base),
        "Folder of certificates.",
        "crt-base /etc/ssl/private",
    ),
    entry(
        "ssl-load-extra-del-ext",
        |s, g| {
            g.tls.extra.replaces = true;
            s.args.eat_rest();
            Ok(())
        },
        "Files beside a certificate have its name without '.crt'.",
        "ssl-load-extra-del-ext",
    ),
    entry(
        "ssl-load-extra-files",
        extra,
        "What is looked for beside a certificate.",
        "ssl-load-extra-files bundle ocsp issuer key",
    )
    .default("all"),
    entry("key-base", |s, g| folder(s, &mut g.tls.key_base), "Folder of keys.", "key-base /etc/ssl/private"),
    entry("issuers-chain-path", issuers, "Folder of chains that complete certificates.", ""),
    entry(
        "ssl-default-bind-ciphers",
        |s, g| {
            g.tls.bind.policy.ciphers = Some(text(s)?);
            Ok(())
        },
        "Ciphers of TLS 1.2 on bind lines.",
        "ssl-default-bind-ciphers ECDHE+AESGCM",
    ),
    entry(
        "ssl-default-bind-ciphersuites",
        |s, g| {
            g.tls.bind.policy.ciphersuites = Some(text(s)?);
            Ok(())
        },
        "Cipher suites of TLS 1.3 on bind lines.",
        "ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256",
    ),
    entry(
        "ssl-default-bind-curves",
        |s, g| {
            g.tls.bind.policy.curves = Some(text(s)?);
            Ok(())
        },
        "Curves on bind lines.",
        "ssl-default-bind-curves X25519:P-256",
    ),
    entry(
        "ssl-default-bind-options",
        |s, g| options(s, &mut g.tls.bind),
        "Options of all bind lines.",
        "ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets",
    ),
    entry(
        "ssl-default-server-ciphers",
        |s, g| {
            g.tls.server.policy.ciphers = Some(text(s)?);
            Ok(())
        },
        "Ciphers of TLS 1.2 on server lines.",
        "ssl-default-server-ciphers ECDHE+AESGCM",
    ),
    entry(
        "ssl-default-server-ciphersuites",
        |s, g| {
            g.tls.server.policy.ciphersuites = Some(text(s)?);
            Ok(())
        },
        "Cipher suites of TLS 1.3 on server lines.",
        "ssl-default-server-ciphersuites TLS_AES_128_GCM_SHA256",
    ),
    entry(
        "ssl-default-server-curves",
        |s, g| {
            g.tls.server.policy.curves = Some(text(s)?);
            Ok(())
        },
        "Curves on server lines.",
        "ssl-default-server-curves X25519:P-256",
    ),
    entry(
        "ssl-default-server-options",
        |s, g| options(s, &mut g.tls.server),
        "Options of all server lines.",
        "ssl-default-server-options ssl-min-ver TLSv1.2",
    ),
    entry(
        "ssl-default-bind-client-sigalgs",
        |s, g| {
            g.tls.bind.policy.client_sigalgs = Some(text(s)?);
            Ok(())
        },
        "Signature algorithms of client certificates on bind lines.",
        "ssl-default-bind-client-sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256",
    ),
    entry(
        "ssl-default-bind-sigalgs",
        |s, g| {
            g.tls.bind.policy.sigalgs = Some(text(s)?);
            Ok(())
        },
        "Signature algorithms on bind lines.",
        "ssl-default-bind-sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256",
    ),
    entry(
        "ssl-default-server-client-sigalgs",
        |s, g| {
            g.tls.server.policy.client_sigalgs = Some(text(s)?);
            Ok(())
        },
        "Signature algorithms of client certificates on server lines.",
        "ssl-default-server-client-sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256",
    ),
    entry(
        "ssl-default-server-sigalgs",
        |s, g| {
            g.tls.server.policy.sigalgs = Some(text(s)?);
            Ok(())
        },
        "Signature algorithms on server lines.",
        "ssl-default-server-sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256",
    ),
    entry(
        "ssl-server-verify",
        |s, g| verify(s, &mut g.tls.server_verify),
        "Whether certificates of servers are verified unasked.",
        "ssl-server-verify none",
    )
    .default("required"),
    entry(
        "ssl-passphrase-cmd",
        |s, g| {
            let words: Vec<Box<str>> = std::iter::from_fn(|| s.next().map(|w| w.text().into())).collect();
            if words.is_empty() {
                s.warn("global statement 'ssl-passphrase-cmd' expects a command line to a passphrase-providing tool (script/binary...) and its arguments.");
            }
            g.tls.phrase_command = words;
            Ok(())
        },
        "Command that prints the passphrase of an encrypted key, whose path is its first argument.",
        "ssl-passphrase-cmd /usr/local/bin/passphrase",
    ),
    entry(
        "ssl-skip-self-issued-ca",
        |_, g| {
            g.tls.skip_root = true;
            Ok(())
        },
        "Roots at the end of a chain are not sent.",
        "ssl-skip-self-issued-ca",
    ),
    entry(
        "tune.ssl.cachesize",
        |s, g| amount(s, &mut g.tls.cache),
        "Sessions kept for clients that take no tickets.",
        "tune.ssl.cachesize 100000",
    ),
    entry(
        "tune.ssl.ssl-ctx-cache-size",
        |s, g| amount(s, &mut g.tls.forged),
        "Certificates kept of those that were made for clients.",
        "tune.ssl.ssl-ctx-cache-size 1000",
    ),
    entry(
        "tune.ssl.maxrecord",
        |s, g| {
            g.tune.ssl_maxrecord = records(s)?;
            Ok(())
        },
        "Most bytes in the first records after a pause.",
        "tune.ssl.maxrecord 1419",
    )
    .default("0: as large as they may be"),
    entry(
        "tune.ssl.hard-maxrecord",
        |s, g| {
            g.tune.ssl_hard_maxrecord = records(s)?;
            Ok(())
        },
        "Most bytes in any record.",
        "tune.ssl.hard-maxrecord 4096",
    ),
    entry(
        "tune.ssl.keyupdate-rate-limit",
        |s, g| {
            let missing = "'tune.ssl.keyupdate-rate-limit' expects a number (KeyUpdates/s, 0 to disable).";
            let wrong = "'tune.ssl.keyupdate-rate-limit' expects a positive number.";
            s.positive(missing, wrong).map(|n| g.tune.ssl_key_updates = n)
        },
        "New keys that a peer may have in a second.",
        "tune.ssl.keyupdate-rate-limit 100",
    ),
    entry(
        "tune.ssl.lifetime",
        |s, g| {
            s.at_most_one()?;
            g.tls.lifetime = s.seconds("expects ssl sessions <lifetime> in seconds as argument.")?;
            Ok(())
        },
        "How long sessions may be resumed.",
        "tune.ssl.lifetime 600",
    ),
    entry(
        "tune.ssl.capture-buffer-size",
        captures,
        "Bytes of each ClientHello kept.",
        "tune.ssl.capture-buffer-size 96",
    ),
    entry("tune.ssl.capture-cipherlist-size", old_captures, "The former name of the same.", ""),
    entry(
        "tune.ssl.keylog",
        |s, g| {
            let word = s.only()?;
            g.tls.keylog = match word {
                "on" => true,
                "off" => false,
                _ => {
                    return Err(
                        s.fail(format!("'tune.ssl.keylog' expects either 'on' or 'off' but got '{word}'."))
                    );
                }
            };
            s.end()
        },
        "Keys of sessions are kept for fetches.",
        "tune.ssl.keylog on",
    ),
];

/// Sets a number; what is less than nothing is nothing.
fn amount(s: &mut Statement<'_>, place: &mut usize) -> Step {
    let keyword = s.keyword();
    let n = s.integer(format!("'{keyword}' expects an integer argument."))?;
    if n < 0 {
        return Err(s.fail(format!("'{keyword}' expects a positive numeric value.")));
    }
    *place = usize::try_from(n).unwrap_or(0);
    Ok(())
}

fn old_captures(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let text = "'tune.ssl.capture-cipherlist-size' is deprecated and will be removed in version 2.7. Please use \
                'tune.ssl.capture-buffer-size' instead.";
    s.notes.push(crate::statement::tight(syntax::Diagnostic::warning(s.line.span(), text)));
    captures(s, g)
}

/// A number of bytes.
fn records(s: &mut Statement<'_>) -> Step<usize> {
    let name = s.keyword();
    let missing = format!("'{name}' expects an integer argument.");
    s.positive(&missing, &format!("'{name}' expects a positive numeric value.")).map(|n| n as usize)
}

fn captures(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let mut bytes = 0;
    amount(s, &mut bytes)?;
    if g.tls.captures.replace(bytes).is_some() {
        return Err(s.fail(format!("'{}' is already configured.", s.keyword())));
    }
    Ok(())
}
