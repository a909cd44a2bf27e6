use super::*;

/// A response of the kind that responders give, signed by nobody.
fn response(status: &[u8], next: bool) -> Vec<u8> {
    let serial = der(INTEGER, &[0, 0xff]);
    let algorithm = der(SEQUENCE, &[der(OID, SHA1), der(NULL, &[])].concat());
    let id = der(SEQUENCE, &[algorithm, der(OCTETS, &[1; 20]), der(OCTETS, &[2; 20]), serial].concat());
    let mut single = vec![id, status.to_vec(), der(TIME, b"20210610085504Z")];
    if next {
        single.push(der(0xa0, &der(TIME, b"20350217085504Z")));
    }
    let responder = der(0xa2, &der(OCTETS, &[3; 20]));
    let list = der(SEQUENCE, &der(SEQUENCE, &single.concat()));
    let data = der(SEQUENCE, &[responder, der(TIME, b"20210610085504Z"), list].concat());
    let rsa = der(SEQUENCE, &der(OID, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]));
    let basic = der(SEQUENCE, &[data, rsa, der(BITS, &[0, 7, 8])].concat());
    let bytes = der(SEQUENCE, &[der(OID, BASIC), der(OCTETS, &basic)].concat());
    der(SEQUENCE, &[der(ENUMERATED, &[0]), der(0xa0, &bytes)].concat())
}

#[test]
fn a_response_is_told_in_words() {
    let text = text(&response(&[0x80, 0], true)).unwrap();
    for line in [
        "Cert Status: good\n",
        "This Update: Jun 10 08:55:04 2021 GMT\n",
        "Next Update: Feb 17 08:55:04 2035 GMT\n",
        "Issuer Name Hash: 0101",
        "Serial Number: FF\n",
        "Signature Algorithm: sha256WithRSAEncryption\n",
        "        07:08\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert!(text.lines().all(|l| !l.is_empty()), "no line ends the answer early");
}

#[test]
fn revocation_tells_when_and_why() {
    let why = der(0xa0, &der(ENUMERATED, &[1]));
    let status = der(0xa1, &[der(TIME, b"20210601000000Z"), why].concat());
    let bytes = response(&status, true);
    assert_eq!(Response::parse(&bytes).unwrap().status, Status::Revoked(b"20210601000000Z", Some(1)));
    assert!(text(&bytes).unwrap().contains("Revocation Reason: keyCompromise (0x1)"));
}

#[test]
fn validity_has_a_begin_and_an_end() {
    let bytes = response(&[0x80, 0], true);
    let r = Response::parse(&bytes).unwrap();
    let begin = seconds(b"20210610085504Z").unwrap();
    assert_eq!(r.valid_until(begin + 1), Ok(seconds(b"20350217085504Z").unwrap()));
    assert_eq!(r.valid_until(begin - 1000), Err(Refused::TooEarly));
    assert_eq!(r.valid_until(i64::MAX - 1000), Err(Refused::TooLate));
    let endless = response(&[0x80, 0], false);
    assert_eq!(Response::parse(&endless).unwrap().valid_until(begin + 1), Err(Refused::TooLate));
}

#[test]
fn what_is_cut_or_changed_is_no_response() {
    let whole = response(&[0x80, 0], true);
    for len in 0..whole.len() {
        assert!(Response::parse(&whole[..len]).is_err());
    }
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 0x55;
        // It may still be read; it must not panic.
        let _ = text(&other);
    }
    assert_eq!(Response::parse(&der(SEQUENCE, &der(ENUMERATED, &[6]))).unwrap_err(), Refused::Unsuccessful);
}

#[test]
fn an_id_is_that_of_openssl() {
    use rcgen::{CertificateParams, Issuer, KeyPair, SerialNumber};
    let ca_key = KeyPair::generate().unwrap();
    let ca = CertificateParams::new(vec!["ca".into()]).unwrap();
    let ca_cert = ca.self_signed(&ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec!["leaf".into()]).unwrap();
    leaf.serial_number = Some(SerialNumber::from(0x100fu64));
    let leaf = leaf.signed_by(&key, &Issuer::new(ca, &ca_key)).unwrap();
    let id = id(leaf.der(), ca_cert.der()).unwrap();
    assert!(hex(&id).starts_with("303B300906052B0E03021A05000414"));
    assert!(hex(&id).ends_with("0202100F"));
    let text = id_text(&id, "", true).unwrap();
    assert!(text.contains("Hash Algorithm: sha1\n") && text.contains("Serial Number: 100F\n"));
    let asked = request(&id);
    assert!(hex(&asked).ends_with(&hex(&id)) && asked.len() == id.len() + 8);
}

#[test]
fn what_a_response_carries_is_told_as_openssl_tells_it() {
    let told = [
        (&include_bytes!("fixtures/authority.der")[..], include_str!("fixtures/authority.txt")),
        (include_bytes!("fixtures/delegated.der"), include_str!("fixtures/delegated.txt")),
    ];
    for (response, wanted) in told {
        let ours = text(response).unwrap();
        for (ours, wanted) in ours.lines().zip(wanted.lines()) {
            assert_eq!(ours, wanted);
        }
        assert_eq!(ours.lines().count(), wanted.lines().count());
    }
}

#[test]
fn broken_certificates_are_told_as_far_as_they_can_be_read() {
    let response = include_bytes!("fixtures/delegated.der");
    for at in 0..response.len() {
        let mut broken = response.to_vec();
        broken[at] ^= 0x55;
        if let Ok(told) = text(&broken) {
            assert!(told.lines().all(|line| !line.is_empty()));
        }
    }
}
