//! Words about TLS towards a server.

use ::tls::suites::Version;

use super::{ServerKeyword, off, on, text, word};
use crate::draft::{Deferred, Draft, ServerDraft};
use crate::statement::{Statement, Step};
use crate::tls::words as tls_words;
use ::tls::words::{Verify, Words};

/// The words of this family.
pub(super) const KEYWORDS: &[ServerKeyword] = &[
    word(
        "allow-0rtt",
        0,
        |v, _, _| on(&mut v.tls.words.early_data),
        "Requests may go to the server as early data of TLS 1.3.",
    )
    .example("allow-0rtt"),
    word(
        "alpn",
        1,
        |v, s, _| {
            let w = s.word("'alpn' : missing the comma-delimited ALPN protocol suite")?;
            tls_words::alpn(&mut v.tls.words, w.text()).map_err(|e| s.fail(format!("'alpn' : {e}")))
        },
        "Protocols offered by ALPN.",
    )
    .example("alpn h2,http/1.1")
    .default("none"),
    word(
        "ca-file",
        1,
        |v, s, _| text(s, &mut v.tls.words.ca_file, "'ca-file' : missing CAfile path"),
        "Authorities of server certificates.",
    )
    .example("ca-file /etc/harrier/ca.pem"),
    word(
        "check-alpn",
        1,
        |v, s, _| {
            let w = s.word("'check-alpn' : missing the comma-delimited ALPN protocol suite")?;
            let mut words = Words::default();
            tls_words::alpn(&mut words, w.text()).map_err(|e| s.fail(format!("'check-alpn' : {e}")))?;
            v.tls.check_alpn = words.alpn;
            Ok(())
        },
        "Protocols offered by checks.",
    )
    .example("check-alpn http/1.1")
    .default("that of alpn"),
    word(
        "check-sni",
        1,
        |v, s, _| text(s, &mut v.tls.check_sni, "'check-sni' : missing SNI"),
        "Server name sent by checks.",
    )
    .example("check-sni www.example.org")
    .default("none"),
    word(
        "check-sni-auto",
        0,
        |v, _, _| on(&mut v.tls.check_auto),
        "Checks send the host that they ask for as server name.",
    )
    .example("check-sni-auto")
    .configured(),
    word("check-ssl", 0, |v, _, _| check(v, true), "Checks speak TLS.")
        .example("check-ssl verify none")
        .default("TLS if the server has it and the check no port or address of its own"),
    word(
        "ciphers",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.ciphers, "'ciphers' : missing cipher suite"),
        "Ciphers of TLS 1.2.",
    )
    .example("ciphers ECDHE+AESGCM")
    .default("ssl-default-server-ciphers"),
    word(
        "ciphersuites",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.ciphersuites, "'ciphersuites' : missing cipher suite"),
        "Cipher suites of TLS 1.3.",
    )
    .example("ciphersuites TLS_AES_128_GCM_SHA256")
    .default("ssl-default-server-ciphersuites"),
    word(
        "client-sigalgs",
        1,
        |v, s, _| {
            text(
                s,
                &mut v.tls.words.policy.client_sigalgs,
                "'client-sigalgs' : missing signature algorithm list",
            )
        },
        "Signature algorithms of our certificate.",
    )
    .example("client-sigalgs ecdsa_secp256r1_sha256")
    .default("ssl-default-server-client-sigalgs"),
    word(
        "crl-file",
        1,
        |v, s, _| text(s, &mut v.tls.words.crl_file, "'crl-file' : missing CRLfile path"),
        "Revoked server certificates.",
    ),
    word(
        "crt",
        1,
        |v, s, _| text(s, &mut v.tls.crt, "'crt' : missing certificate file path"),
        "Certificate shown to the server.",
    )
    .example("crt /etc/harrier/site.pem")
    .default("none"),
    word(
        "curves",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.curves, "'curves' : missing curves list"),
        "Curves of the key exchange.",
    )
    .example("curves X25519:P-256")
    .default("ssl-default-server-curves"),
    word("force-sslv3", 0, |v, _, _| only(v, Version::Ssl3), "This version only."),
    word("force-tlsv10", 0, |v, _, _| only(v, Version::Tls10), "This version only."),
    word("force-tlsv11", 0, |v, _, _| only(v, Version::Tls11), "This version only."),
    word("force-tlsv12", 0, |v, _, _| only(v, Version::Tls12), "This version only.").example("force-tlsv12"),
    word("force-tlsv13", 0, |v, _, _| only(v, Version::Tls13), "This version only.").example("force-tlsv13"),
    word(
        "ktls",
        1,
        |v, s, _| {
            let w = s.word(format!("{}.", tls_words::KTLS_VALUE))?;
            tls_words::ktls(&mut v.tls.words, w.text(), s.around.experimental).map_err(|e| s.fail(e))
        },
        "Whether the kernel makes the records, where it can (experimental).",
    ),
    word(
        "no-check-sni-auto",
        0,
        |v, _, _| off(&mut v.tls.check_auto),
        "Checks send no server name but that of 'check-sni'.",
    )
    .example("no-check-sni-auto"),
    word("no-check-ssl", 0, |v, _, _| check(v, false), "Checks without TLS.")
        .example("no-check-ssl")
        .configured(),
    word("no-renegotiate", 0, |_, _, _| Ok(()), "Connections are never renegotiated.")
        .example("no-renegotiate"),
    word("no-sni-auto", 0, |v, _, _| off(&mut v.tls.auto), "No server name but that of 'sni'.")
        .example("no-sni-auto"),
    word(
        "no-ssl",
        0,
        |v, _, _| {
            (v.tls.on, v.tls.refused) = (false, true);
            Ok(())
        },
        "No TLS.",
    )
    .example("no-ssl")
    .configured(),
    word("no-ssl-reuse", 0, |v, _, _| on(&mut v.tls.no_reuse), "Sessions are not resumed.")
        .example("no-ssl-reuse"),
    word("no-sslv3", 0, |v, _, _| without(v, Version::Ssl3), "Without this version.").example("no-sslv3"),
    word(
        "no-tls-tickets",
        0,
        |v, _, _| {
            v.tls.words.no_tickets = Some(true);
            Ok(())
        },
        "No session tickets.",
    )
    .example("no-tls-tickets"),
    word("no-tlsv10", 0, |v, _, _| without(v, Version::Tls10), "Without this version.").example("no-tlsv10"),
    word("no-tlsv11", 0, |v, _, _| without(v, Version::Tls11), "Without this version.").example("no-tlsv11"),
    word("no-tlsv12", 0, |v, _, _| without(v, Version::Tls12), "Without this version.").example("no-tlsv12"),
    word("no-tlsv13", 0, |v, _, _| without(v, Version::Tls13), "Without this version.").example("no-tlsv13"),
    ServerKeyword {
        idle: true,
        ..word(
            "npn",
            1,
            |v, s, _| {
                v.tls.npn = true;
                s.word("'npn' : missing the comma-delimited NPN protocol suite").map(drop)
            },
            "TLS has ALPN in its place.",
        )
    },
    ServerKeyword {
        idle: true,
        ..word("renegotiate", 0, |_, _, _| Ok(()), "Connections are never renegotiated.")
    },
    word(
        "sigalgs",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.sigalgs, "'sigalgs' : missing signature algorithm list"),
        "Signature algorithms of the handshake.",
    )
    .example("sigalgs ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256")
    .default("ssl-default-server-sigalgs"),
    word(
        "sni",
        1,
        |v, s, _| {
            let word = s.args.position();
            s.word("'sni' : missing sni expression")?;
            v.tls.sni = Some(Deferred { at: s.at, word });
            Ok(())
        },
        "Expression of the server name.",
    )
    .example("sni req.hdr(host)")
    .default("sni-auto where there is TLS in HTTP mode"),
    word("sni-auto", 0, |v, _, _| on(&mut v.tls.auto), "The host of the request is sent as server name.")
        .example("sni-auto")
        .configured(),
    word(
        "ssl",
        0,
        |v, _, _| {
            (v.tls.able, v.tls.on, v.tls.refused) = (true, true, false);
            Ok(())
        },
        "Speak TLS to the server.",
    )
    .example("ssl verify none"),
    word(
        "ssl-max-ver",
        1,
        |v, s, _| {
            let w = s.word("'ssl-max-ver' : missing the ssl/tls version")?;
            tls_words::version(&mut v.tls.words.policy.max, w.text()).map_err(|e| s.fail(e))
        },
        "Highest version.",
    )
    .example("ssl-max-ver TLSv1.3")
    .default("TLSv1.3"),
    word(
        "ssl-min-ver",
        1,
        |v, s, _| {
            let w = s.word("'ssl-min-ver' : missing the ssl/tls version")?;
            tls_words::version(&mut v.tls.words.policy.min, w.text()).map_err(|e| s.fail(e))
        },
        "Lowest version.",
    )
    .example("ssl-min-ver TLSv1.2")
    .default("TLSv1.2"),
    word("ssl-reuse", 0, |v, _, _| off(&mut v.tls.no_reuse), "Sessions are resumed.")
        .example("ssl-reuse")
        .configured(),
    word(
        "tls-tickets",
        0,
        |v, _, _| {
            v.tls.words.no_tickets = Some(false);
            Ok(())
        },
        "Session tickets.",
    )
    .example("tls-tickets"),
    word("verify", 1, verify, "Whether the server's certificate is verified.")
        .example("ssl verify required ca-file /etc/harrier/ca.pem")
        .default("required"),
    word(
        "verifyhost",
        1,
        |v, s, _| text(s, &mut v.tls.host, "'verifyhost' : missing hostname to verify against"),
        "Name that the server's certificate must be for.",
    )
    .example("verifyhost www.example.org"),
];

/// Whether checks speak TLS, whatever the service speaks.
fn check(v: &mut ServerDraft, tls: bool) -> Step {
    v.tls.check = Some(tls);
    Ok(())
}

/// `force-*`.
fn only(v: &mut ServerDraft, version: Version) -> Step {
    tls_words::force(&mut v.tls.words, version);
    Ok(())
}

/// `no-*`.
fn without(v: &mut ServerDraft, version: Version) -> Step {
    tls_words::without(&mut v.tls.words, version);
    Ok(())
}

fn verify(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'verify' : missing verify method")?;
    v.tls.words.verify = Some(match word.text() {
        "none" => Verify::None,
        "required" => Verify::Required,
        other => {
            let text = format!(
                "'verify' : unknown verify method '{other}', only 'none' and 'required' are supported"
            );
            return Err(s.fail(text));
        }
    });
    Ok(())
}
