//! Whom TLS believes: the engine as client and as server of itself.

use worlds::{QUIET, explore, get};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures");

/// What a request gets through a server line and a `bind` line with these words (`DIR`: the folder of the
/// certificates).
fn through(server: &'static str, bind: &'static str, status: u16) {
    let config = format!(
        "  retries 0\nlisten p\n bind 127.0.0.1:80\n server q 127.0.0.1:443 ssl {server}\n\
         listen q\n bind 127.0.0.1:443 ssl {bind}\n server s 127.0.1.1:80"
    );
    explore(&config.replace("DIR", FIXTURES), QUIET, move |stage| async move {
        stage.origin("127.0.1.1:80");
        let mut client = stage.client("127.0.0.1:80").await;
        assert_eq!(client.ask(&get("/1/9")).await.status(), status, "{server}, {bind}");
    });
}

const NAMED: &str = "crt DIR/named.pem";

/// A chain goes out whole, so that its end is all that a client has to know.
#[test]
fn a_chain_leads_to_its_root() {
    through("verify required ca-file DIR/root.pem sni str(named.test)", NAMED, 200);
}

/// A certificate has to be for the name that was asked for, be that an address, and `verifyhost` is for
/// connections without a name.
#[test]
fn a_certificate_is_for_the_name_that_was_asked_for() {
    through("verify required ca-file DIR/root.pem sni str(other.test)", NAMED, 503);
    through("verify required ca-file DIR/root.pem sni str(127.0.0.9)", NAMED, 503);
    through("verify required ca-file DIR/root.pem verifyhost named.test sni str(other.test)", NAMED, 503);
    through("verify required ca-file DIR/root.pem no-sni-auto verifyhost named.test", NAMED, 200);
    through("verify required ca-file DIR/root.pem no-sni-auto verifyhost other.test", NAMED, 503);
}

/// Nobody is shown a certificate of another name because the right one is of a kind that it can't use.
#[test]
fn a_certificate_of_another_name_is_no_way_out() {
    const BOTH: &str = "crt DIR/named.pem crt DIR/rsa.pem";
    const OLD: &str = "verify none ssl-max-ver TLSv1.2 sni str(rsa.test)";
    through(OLD, BOTH, 200);
    through(
        "verify none ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES128-GCM-SHA256 sni str(named.test)",
        BOTH,
        200,
    );
    through(
        "verify none ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES128-GCM-SHA256 sni str(rsa.test)",
        BOTH,
        503,
    );
}

/// OpenSSL's expressions mean the suites that they name.
#[test]
fn an_expression_of_ciphers_means_something() {
    through("verify none ssl-max-ver TLSv1.2 ciphers ECDH+AESGCM:!aNULL", NAMED, 200);
    through("verify none ssl-max-ver TLSv1.2", "crt DIR/named.pem ciphers HIGH:!aNULL:-AES128", 200);
}
