//! The words of `bind` lines about TLS.

use ::tls::suites::Version;
use syntax::Word;

use super::keywords::{BindKeyword, Set, text};
use crate::draft::{BindDraft, CertDraft, Source};
use crate::tls::words as tls_words;

const fn secure(name: &'static str, args: u8, set: Set, doc: &'static str) -> BindKeyword {
    BindKeyword { name, args, set: Some(set), tls: true, idle: false, doc, example: "", default: "" }
}

/// The words of this family.
pub(super) const KEYWORDS: &[BindKeyword] = &[
    secure(
        "allow-0rtt",
        0,
        |b, _, _| {
            b.tls.words.early_data = true;
            Ok(())
        },
        "Accept early data of TLS 1.3.",
    )
    .example("allow-0rtt"),
    secure("alpn", 1, |b, w, _| tls_words::alpn(&mut b.tls.words, w.text()), "Protocols offered by ALPN.")
        .example("alpn h2,http/1.1")
        .default("h2,http/1.1 in HTTP mode"),
    secure("ca-file", 1, |b, w, _| text(&mut b.tls.words.ca_file, w), "Authorities of client certificates.")
        .example("ca-file /etc/harrier/ca.pem"),
    secure(
        "ca-ignore-err",
        1,
        |b, w, _| {
            b.tls.words.ca_ignore = Some(tls_words::ignored(w.text())?);
            Ok(())
        },
        "Errors above the client certificate that are no reason to refuse it.",
    )
    .example("ca-ignore-err all")
    .default("none"),
    secure(
        "ca-sign-file",
        1,
        |b, w, _| text(&mut b.tls.sign, w),
        "Authority that signs certificates made for clients, with its key.",
    )
    .example("ca-sign-file /etc/harrier/site.pem"),
    secure("ca-sign-pass", 1, |b, w, _| text(&mut b.tls.sign_pass, w), "Passphrase of that key.")
        .example("ca-sign-pass secret"),
    secure(
        "ca-verify-file",
        1,
        |b, w, _| text(&mut b.tls.words.ca_verify_file, w),
        "Authorities that clients are not told of.",
    )
    .example("ca-verify-file /etc/harrier/ca.pem")
    .default("that of ca-file"),
    secure("ciphers", 1, |b, w, _| text(&mut b.tls.words.policy.ciphers, w), "Ciphers of TLS 1.2.")
        .example("ciphers ECDHE+AESGCM")
        .default("ssl-default-bind-ciphers"),
    secure(
        "ciphersuites",
        1,
        |b, w, _| text(&mut b.tls.words.policy.ciphersuites, w),
        "Cipher suites of TLS 1.3.",
    )
    .example("ciphersuites TLS_AES_128_GCM_SHA256")
    .default("ssl-default-bind-ciphersuites"),
    secure(
        "client-sigalgs",
        1,
        |b, w, _| text(&mut b.tls.words.policy.client_sigalgs, w),
        "Signature algorithms of client certificates.",
    )
    .example("client-sigalgs ecdsa_secp256r1_sha256")
    .default("ssl-default-bind-client-sigalgs"),
    secure("crl-file", 1, |b, w, _| text(&mut b.tls.words.crl_file, w), "Revoked client certificates."),
    secure("crt", 1, |b, w, _| cert(b, w, Source::File), "Certificate and key: a file or a folder.")
        .example("crt /etc/harrier/site.pem"),
    secure(
        "crt-ignore-err",
        1,
        |b, w, _| {
            b.tls.words.crt_ignore = Some(tls_words::ignored(w.text())?);
            Ok(())
        },
        "Errors of the client certificate that are no reason to refuse it.",
    )
    .example("crt-ignore-err all")
    .default("none"),
    secure(
        "crt-list",
        1,
        |b, w, _| cert(b, w, Source::List),
        "A list of certificates with their names and settings.",
    )
    .example("crt-list /etc/harrier/list.txt"),
    secure("curves", 1, |b, w, _| text(&mut b.tls.words.policy.curves, w), "Curves of the key exchange.")
        .example("curves X25519:P-256")
        .default("ssl-default-bind-curves"),
    secure(
        "default-crt",
        1,
        |b, w, _| cert(b, w, Source::Default),
        "Certificate for whoever matches no other.",
    )
    .example("default-crt /etc/harrier/site.pem")
    .default("the first certificate"),
    secure(
        "ecdhe",
        1,
        |b, w, _| {
            b.tls.words.policy.curves.get_or_insert_with(|| w.text().into());
            Ok(())
        },
        "Curve of the key exchange.",
    )
    .example("ecdhe prime256v1"),
    secure("force-sslv3", 0, |b, _, _| only(b, Version::Ssl3), "This version only."),
    secure("force-tlsv10", 0, |b, _, _| only(b, Version::Tls10), "This version only."),
    secure("force-tlsv11", 0, |b, _, _| only(b, Version::Tls11), "This version only."),
    secure("force-tlsv12", 0, |b, _, _| only(b, Version::Tls12), "This version only.")
        .example("force-tlsv12"),
    secure("force-tlsv13", 0, |b, _, _| only(b, Version::Tls13), "This version only.")
        .example("force-tlsv13"),
    secure(
        "generate-certificates",
        0,
        |b, _, _| {
            b.tls.generate = true;
            Ok(())
        },
        "Names without a certificate get one that is made for them.",
    )
    .example("generate-certificates ca-sign-file /etc/harrier/site.pem"),
    secure(
        "ktls",
        1,
        |b, w, s| tls_words::ktls(&mut b.tls.words, w.text(), s.around.experimental),
        "Whether the kernel makes the records, where it can (experimental).",
    ),
    secure(
        "no-alpn",
        0,
        |b, _, _| {
            b.tls.words.alpn = Some(Vec::new());
            Ok(())
        },
        "ALPN is not offered.",
    )
    .example("no-alpn"),
    secure(
        "no-ca-names",
        0,
        |b, _, _| {
            b.tls.words.no_ca_names = true;
            Ok(())
        },
        "Clients are not told whose certificates are accepted.",
    )
    .example("no-ca-names"),
    secure("no-sslv3", 0, |b, _, _| without(b, Version::Ssl3), "Without this version.").example("no-sslv3"),
    secure(
        "no-strict-sni",
        0,
        |b, _, _| {
            b.tls.words.strict_sni = Some(false);
            Ok(())
        },
        "Clients that match no certificate get the default.",
    )
    .example("no-strict-sni"),
    secure(
        "no-tls-tickets",
        0,
        |b, _, _| {
            b.tls.words.no_tickets = Some(true);
            Ok(())
        },
        "No session tickets.",
    )
    .example("no-tls-tickets"),
    secure("no-tlsv10", 0, |b, _, _| without(b, Version::Tls10), "Without this version.")
        .example("no-tlsv10"),
    secure("no-tlsv11", 0, |b, _, _| without(b, Version::Tls11), "Without this version.")
        .example("no-tlsv11"),
    secure("no-tlsv12", 0, |b, _, _| without(b, Version::Tls12), "Without this version.")
        .example("no-tlsv12"),
    secure("no-tlsv13", 0, |b, _, _| without(b, Version::Tls13), "Without this version.")
        .example("no-tlsv13"),
    secure(
        "npn",
        1,
        |b, _, _| {
            // It is nothing that clients speak any more, but it keeps ALPN from offering HTTP unasked.
            b.tls.words.alpn.get_or_insert_default();
            Ok(())
        },
        "TLS has ALPN in its place, which offers nothing unasked beside it.",
    )
    .idle(),
    secure(
        "prefer-client-ciphers",
        0,
        |b, _, _| {
            b.tls.words.client_order = true;
            Ok(())
        },
        "The client's order of ciphers counts.",
    )
    .example("prefer-client-ciphers")
    .default("the server's order"),
    secure(
        "sigalgs",
        1,
        |b, w, _| text(&mut b.tls.words.policy.sigalgs, w),
        "Signature algorithms of the handshake.",
    )
    .example("sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256")
    .default("ssl-default-bind-sigalgs"),
    secure(
        "ssl-max-ver",
        1,
        |b, w, _| tls_words::version(&mut b.tls.words.policy.max, w.text()),
        "Highest version.",
    )
    .example("ssl-max-ver TLSv1.3")
    .default("TLSv1.3"),
    secure(
        "ssl-min-ver",
        1,
        |b, w, _| tls_words::version(&mut b.tls.words.policy.min, w.text()),
        "Lowest version.",
    )
    .example("ssl-min-ver TLSv1.3")
    .default("TLSv1.2"),
    secure(
        "strict-sni",
        0,
        |b, _, _| {
            b.tls.words.strict_sni = Some(true);
            Ok(())
        },
        "Only clients that match a certificate.",
    )
    .example("strict-sni"),
    secure(
        "tls-ticket-keys",
        1,
        |b, w, _| text(&mut b.tls.ticket_keys, w),
        "File with the keys of session tickets.",
    )
    .default("keys made at the start"),
    secure(
        "tls-tickets",
        0,
        |b, _, _| {
            b.tls.words.no_tickets = Some(false);
            Ok(())
        },
        "Session tickets.",
    )
    .example("tls-tickets"),
    secure(
        "verify",
        1,
        |b, w, _| tls_words::verify(&mut b.tls.words, w.text()),
        "Whether clients show certificates.",
    )
    .example("verify optional ca-file /etc/harrier/ca.pem")
    .default("none"),
];

/// `force-*`.
fn only(bind: &mut BindDraft, version: Version) -> Result<(), String> {
    tls_words::force(&mut bind.tls.words, version);
    Ok(())
}

/// `no-*`.
fn without(bind: &mut BindDraft, version: Version) -> Result<(), String> {
    tls_words::without(&mut bind.tls.words, version);
    Ok(())
}

fn cert(bind: &mut BindDraft, word: &Word, source: Source) -> Result<(), String> {
    bind.tls.certs.push(CertDraft { source, path: word.text().into(), span: word.span() });
    Ok(())
}
