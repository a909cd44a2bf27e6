//! Keys that a passphrase protects. The certificates and keys are those that the `tls` crate is tested with.

use super::{complaints, run};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/src/locked/fixtures");

/// What is said of an authority with an encrypted key.
fn with(global: &str, bind: &str) -> Vec<String> {
    complaints(&run(&format!(
        "global\n {global}\ndefaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\nfrontend f\n \
         bind 127.0.0.1:1 ssl crt {FOLDER}/whole.pem generate-certificates ca-sign-file {FOLDER}/authority.pem {bind}\n \
         http-request deny\n"
    )))
}

#[test]
fn the_passphrase_of_an_authority_stands_on_its_line() {
    assert_eq!(with("", "ca-sign-pass open-sesame"), Vec::<String>::new());
}

#[test]
fn a_key_without_its_passphrase_is_told_with_the_reason() {
    for bind in ["", "ca-sign-pass wrong"] {
        let said = with("", bind);
        assert!(said[0].contains("without an 'ssl-passphrase-cmd' defined"), "{said:?}");
        assert!(said[1].contains("No Private Key found"), "{said:?}");
    }
    let said = with("ssl-passphrase-cmd /bin/false", "");
    assert!(said[0].starts_with("'ssl-passphrase-cmd' : /bin/false gave no passphrase"), "{said:?}");
}

#[test]
fn a_command_without_words_is_none() {
    let said = with("ssl-passphrase-cmd", "ca-sign-pass open-sesame");
    assert!(matches!(&said[..], [one] if one.contains("expects a command line")), "{said:?}");
}
