use super::*;
use crate::files;
use crate::tests::Folder;

const PHRASE: &str = "open-sesame";
const PLAIN: &str = include_str!("fixtures/plain.pem");
const PLAIN8: &str = include_str!("fixtures/plain8.pem");
const LINES: [(&str, &str); 4] = [
    ("aes128", include_str!("fixtures/lines-aes128.pem")),
    ("aes192", include_str!("fixtures/lines-aes192.pem")),
    ("aes256", include_str!("fixtures/lines-aes256.pem")),
    ("des3", include_str!("fixtures/lines-des3.pem")),
];
const TOLD: [(&str, &str); 6] = [
    ("PKCS #12", include_str!("fixtures/told-older.pem")),
    ("aes128, SHA-1", include_str!("fixtures/told-aes128-sha1.pem")),
    ("aes192, SHA-512", include_str!("fixtures/told-aes192-sha512.pem")),
    ("aes256, SHA-256", include_str!("fixtures/told-aes256-sha256.pem")),
    ("des3, SHA-384", include_str!("fixtures/told-des3-sha384.pem")),
    ("aes256, scrypt", include_str!("fixtures/told-aes256-scrypt.pem")),
];
const RSA: &str = include_str!("fixtures/lines-rsa.pem");
const OLDER: &str = include_str!("fixtures/told-oldest.pem");

fn knowing(phrase: &str) -> Phrases {
    let phrases = Phrases::new(&[]);
    phrases.learn(phrase);
    phrases
}

/// Passphrases that `sh` tells: it is given the name of a key's file, and runs it.
fn asking() -> Phrases {
    Phrases::new(&["/bin/sh".into()])
}

/// A file that counts how often it is run, and prints a passphrase.
fn script(folder: &Folder, phrase: &str, then: &str) -> String {
    let calls = folder.0.join(format!("{phrase}.calls"));
    folder.write(phrase, &format!("echo >> '{}'; printf %s {phrase}; {then}", calls.display()))
}

fn calls(script: &str) -> usize {
    std::fs::read(format!("{script}.calls")).map_or(0, |text| text.len())
}

fn secret(text: &[u8]) -> Vec<u8> {
    let key = files::pem(text).unwrap().key.unwrap();
    key.secret_der().to_vec()
}

#[test]
fn each_form_and_cipher_is_opened() {
    for (plain, all) in [(PLAIN, &LINES[..]), (PLAIN8, &TOLD)] {
        for (name, text) in all {
            let opened = open(text.as_bytes(), "x", &knowing(PHRASE));
            assert_eq!(opened.closed, None, "{name}");
            assert_eq!(secret(&opened.text), secret(plain.as_bytes()), "{name}");
        }
    }
    let opened = open(RSA.as_bytes(), "x", &knowing(PHRASE));
    let key = files::pem(&opened.text).unwrap().key.unwrap();
    rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).unwrap();
}

#[test]
fn a_wrong_passphrase_opens_nothing_and_is_told() {
    let folder = Folder::new("locked-wrong");
    let path = script(&folder, "wrong", "");
    for (name, text) in LINES.iter().chain(&TOLD).chain(&[("rsa", RSA)]) {
        let phrases = asking();
        let opened = open(text.as_bytes(), &path, &phrases);
        assert_eq!(opened.closed, Some(Closed::Wrong), "{name}");
        assert!(files::pem(&opened.text).unwrap().key.is_none());
        assert!(phrases.complaints()[0].contains(&path));
        assert!(phrases.complaints().is_empty());
    }
}

#[test]
fn the_command_is_run_once_for_keys_of_one_passphrase_and_again_for_another() {
    let folder = Folder::new("locked-calls");
    let (path, other) = (script(&folder, PHRASE, ""), script(&folder, "other", ""));
    let phrases = asking();
    for (_, text) in &LINES {
        assert_eq!(open(text.as_bytes(), &path, &phrases).closed, None);
    }
    assert_eq!(calls(&path), 1);
    let unlike = include_str!("fixtures/lines-other.pem");
    assert_eq!(open(unlike.as_bytes(), &other, &phrases).closed, None);
    assert_eq!(open(LINES[0].1.as_bytes(), &other, &phrases).closed, None);
    assert_eq!((calls(&path), calls(&other)), (1, 1));
    phrases.forget();
    for _ in 0..2 {
        assert_eq!(open(LINES[0].1.as_bytes(), &path, &phrases).closed, None);
    }
    assert_eq!(calls(&path), 3);
}

#[test]
fn a_command_that_fails_gives_nothing() {
    let folder = Folder::new("locked-fails");
    let path = script(&folder, PHRASE, "exit 3");
    for phrases in [asking(), Phrases::new(&["/nowhere/at-all".into()]), Phrases::default()] {
        assert_eq!(open(RSA.as_bytes(), &path, &phrases).closed, Some(Closed::NoPhrase));
        assert_eq!(phrases.complaints().len(), 1);
    }
    assert_eq!(calls(&path), 1);
}

#[test]
fn nobody_is_asked_twice_for_a_key_that_stays_closed() {
    let folder = Folder::new("locked-vain");
    let path = script(&folder, "wrong", "");
    let phrases = asking();
    for _ in 0..3 {
        assert_eq!(open(RSA.as_bytes(), &path, &phrases).closed, Some(Closed::Wrong));
    }
    assert_eq!((calls(&path), phrases.complaints().len()), (1, 1));
    phrases.learn(PHRASE);
    assert_eq!(open(RSA.as_bytes(), &path, &phrases).closed, None);
}

#[test]
fn only_the_first_key_counts_and_the_rest_stays_as_it_is() {
    let phrases = Phrases::default();
    let plain_first = format!("x\n{PLAIN}y\n{}z\n", LINES[0].1);
    let opened = open(plain_first.as_bytes(), "x", &phrases);
    assert_eq!((opened.closed, &*opened.text), (None, format!("x\n{PLAIN}y\nz\n").as_bytes()));
    assert!(phrases.complaints().is_empty());
    let phrases = knowing(PHRASE);
    let locked_first = format!("{}{}", LINES[0].1, TOLD[0].1);
    assert_eq!(&*open(locked_first.as_bytes(), "x", &phrases).text, PLAIN.as_bytes());
    assert!(matches!(open(PLAIN.as_bytes(), "x", &phrases).text, Cow::Borrowed(_)));
    assert!(!is_locked(PLAIN.as_bytes()) && is_locked(RSA.as_bytes()) && is_locked(OLDER.as_bytes()));
}

#[test]
fn broken_text_is_refused_without_harm() {
    let phrases = knowing(PHRASE);
    // Not scrypt, which is slow by intent.
    for (_, text) in LINES.iter().chain(&TOLD[..5]) {
        for cut in 0..text.len() {
            let _ = open(&text.as_bytes()[..cut], "x", &phrases);
            if cut % 3 == 0 {
                let mut changed = text.as_bytes().to_vec();
                changed[cut] ^= 1;
                let _ = open(&changed, "x", &phrases);
            }
        }
    }
}

#[test]
fn what_is_not_known_is_told() {
    let phrases = knowing(PHRASE);
    assert_eq!(open(OLDER.as_bytes(), "x", &phrases).closed, Some(Closed::Unknown));
    assert!(phrases.complaints()[0].contains("not supported"));
    let strange = LINES[0].1.replace("AES-128-CBC", "CAMELLIA-128-CBC");
    assert_eq!(open(strange.as_bytes(), "x", &phrases).closed, Some(Closed::Unknown));
    assert_eq!(phrases.complaints().len(), 1);
}
