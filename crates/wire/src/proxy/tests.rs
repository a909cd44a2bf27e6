use super::*;

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn complete(input: &[u8]) -> (Header, usize) {
    match parse(input) {
        Ok(Parsed::Complete(h, n)) => (h, n),
        other => panic!("{other:?} for {:?}", String::from_utf8_lossy(input)),
    }
}

#[test]
fn version_1_of_both_families_and_of_none() {
    let (h, n) = complete(b"PROXY TCP4 192.0.2.1 198.51.100.2 1234 80\r\nGET /");
    assert_eq!(h.addresses, Some((addr("192.0.2.1:1234"), addr("198.51.100.2:80"))));
    assert_eq!(n, 43);
    let (h, _) = complete(b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n");
    assert_eq!(h.addresses, Some((addr("[2001:db8::1]:1"), addr("[::1]:2"))));
    let (h, _) = complete(b"PROXY UNKNOWN\r\n");
    assert!(h.local && h.addresses.is_none());
    let (h, _) = complete(b"PROXY TCP4 192.000.02.1 198.51.100.010 01234 080\r\n");
    assert_eq!(h.addresses, Some((addr("192.0.2.1:1234"), addr("198.51.100.10:80"))));
    let (h, _) = complete(b"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 1 2\r\n");
    assert_eq!(h.addresses, Some((addr("[::ffff:192.0.2.1]:1"), addr("[::ffff:198.51.100.2]:2"))));
}

#[test]
fn version_1_that_is_not() {
    for bad in [
        &b"PROXY TCP4 192.0.2.1 198.51.100.2 1234 80\n"[..],
        b"PROXY TCP4 192.0.2.1 ::1 1234 80\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.2 1234 65536\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.2 +1 80\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.2 1234\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n",
        b"PROXY TCP4 192.0.2 198.51.100.2 1 2\r\n",
        b"PROXY TCP4 192.0.2.1  198.51.100.2 1 2\r\n",
    ] {
        assert_eq!(parse(bad), Err(Error::Malformed), "{:?}", String::from_utf8_lossy(bad));
    }
    for other in [&b"PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n"[..], b"PROXY UNKNOWN ", b"PROXY tcp4 "] {
        assert_eq!(parse(other), Err(Error::Unhandled), "{:?}", String::from_utf8_lossy(other));
    }
    assert_eq!(parse(b"GET / HTTP/1.1\r\n"), Err(Error::NotProxy));
    assert_eq!(parse(&[&b"PROXY TCP4 "[..], &[b'1'; 120]].concat()), Err(Error::TooLong));
}

#[test]
fn what_is_built_is_read_back_however_it_is_cut() {
    let pair = (addr("[2001:db8::1]:4000"), addr("[2001:db8::2]:443"));
    let tlvs = [(tlv::AUTHORITY, b"example.com".to_vec()), (tlv::UNIQUE_ID, b"id-1".to_vec())];
    let mut out = Vec::new();
    v2(Some(pair), &V2Options { tlvs: &tlvs, checksum: Some(tlvs.len()) }, &mut out);
    for cut in 0..out.len() {
        assert_eq!(parse(&out[..cut]), Ok(Parsed::Partial), "cut at {cut}");
    }
    let (h, n) = complete(&out);
    assert_eq!((h.addresses, n), (Some(pair), out.len()));
    let found: Vec<_> = tlv::Tlvs(&h.tlvs).map(|(k, v)| (k, v.to_vec())).collect();
    assert_eq!(found[..2], tlvs);
    for at in 16..out.len() {
        let mut wrong = out.clone();
        wrong[at] ^= 1;
        assert!(parse(&wrong) != parse(&out), "a flipped bit at {at} goes unnoticed");
    }
}

#[test]
fn addresses_of_two_families_become_one() {
    let mut out = Vec::new();
    v1(Some((addr("192.0.2.1:1"), addr("[::1]:2"))), &mut out);
    assert_eq!(out, b"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n");
}

#[test]
fn version_2_local_and_too_short() {
    let mut out = Vec::new();
    v2(None, &V2Options::default(), &mut out);
    let (h, n) = complete(&out);
    assert!(h.local && n == 16);
    let mut short = V2_SIGNATURE.to_vec();
    short.extend_from_slice(&[0x21, 0x11, 0, 4, 1, 2, 3, 4]);
    assert_eq!(parse(&short), Err(Error::Malformed));
}

#[test]
fn version_2_that_is_not() {
    let made = |command: u8, family: u8, body: &[u8]| {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        parse(&[&V2_SIGNATURE[..], &[command, family], &length, body].concat())
    };
    let v4 = [1, 2, 3, 4, 5, 6, 7, 8, 0, 80, 0, 81];
    let with = |kind: u8, length: usize| {
        let mut body = v4.to_vec();
        tlv::append(kind, &vec![b'x'; length], &mut body);
        made(0x21, 0x11, &body)
    };
    // UDP, Unix, unspecified, unknown; commands that do not exist; LOCAL with what is no record.
    for family in [0x12, 0x22, 0x31, 0x32, 0, 0x10, 0x01, 0x41] {
        assert_eq!(made(0x21, family, &[0; 216]), Err(Error::Malformed), "{family:x}");
    }
    assert_eq!(made(0x22, 0x11, &v4), Err(Error::Malformed));
    assert_eq!(made(0x31, 0x11, &v4), Err(Error::NotProxy));
    assert_eq!(made(0x20, 0x11, &v4), Err(Error::Malformed));
    for (kind, most) in [(tlv::AUTHORITY, 255), (tlv::UNIQUE_ID, 128), (0xe0, 1024)] {
        assert!(with(kind, most).is_ok());
        assert_eq!(with(kind, most + 1), Err(Error::Malformed), "{kind}");
    }
    let mut records = Vec::new();
    tlv::append(tlv::AUTHORITY, b"h", &mut records);
    let Ok(Parsed::Complete(local, _)) = made(0x20, 0, &records) else { panic!() };
    assert!(local.local && local.tlvs == records);
}

#[test]
fn a_netscaler_header() {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2];
    packet.extend_from_slice(&[0x10, 0, 0, 80]);
    packet.resize(40, 0);
    let mut legacy = vec![0, 0, 0, 9, 0, 0, 0, 40];
    legacy.extend_from_slice(&packet);
    let Ok(Parsed::Complete(h, n)) = parse_cip(&legacy, 9) else { panic!() };
    assert_eq!((h.addresses, n), (Some((addr("192.0.2.1:4096"), addr("198.51.100.2:80"))), 48));
    assert_eq!(parse_cip(&legacy, 8), Err(Error::NotProxy));
    assert_eq!(parse_cip(&legacy[..30], 9), Ok(Parsed::Partial));
    // What is shorter than either form is not judged; HAProxy calls it cut off.
    assert_eq!(parse_cip(b"hello world", 9), Ok(Parsed::Partial));
    // Of the standard form the length of the packet headers counts, whatever that of all says.
    for all in [52, 0, 60, 100_000_u32] {
        let mut standard = [&[0, 0, 0, 9], &all.to_be_bytes()[..], &[0, 1, 0, 40], &packet].concat();
        standard.extend_from_slice(b"GET");
        let Ok(Parsed::Complete(h, n)) = parse_cip(&standard, 9) else { panic!("{all}") };
        assert_eq!((h.addresses, n), (Some((addr("192.0.2.1:4096"), addr("198.51.100.2:80"))), 52));
    }
}
