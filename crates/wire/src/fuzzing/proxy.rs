//! PROXY headers: the same however they arrive, and the same again when written and read. The inserted client
//! IP of NetScaler is looked at the same way, behind its magic number.

use crate::proxy::{self, Error, Header, Parsed};

type Read = Result<Parsed, Error>;

/// Any bytes as a PROXY header of either version, and as a NetScaler header.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn proxy(data: &[u8]) {
    in_pieces(data, proxy::parse);
    let magic = data.first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
    in_pieces(data, |input| proxy::parse_cip(input, magic));
    if let Ok(Parsed::Complete(header, used)) = proxy::parse(data) {
        assert!(used <= data.len() && used <= proxy::V2_MAX);
        if data.starts_with(proxy::V2_SIGNATURE) { v2_again(&header) } else { v1_again(&header) }
    }
}

/// A beginning is either incomplete or says what the whole says; nothing behind the header matters.
fn in_pieces(data: &[u8], parse: impl Fn(&[u8]) -> Read) {
    let whole = parse(data);
    for cut in super::cuts(data) {
        match parse(&data[..cut]) {
            Ok(Parsed::Partial) => {
                assert!(!matches!(&whole, Ok(Parsed::Complete(_, used)) if *used <= cut), "{cut}")
            }
            other => assert_eq!(other, whole, "{cut} of {}", data.len()),
        }
    }
    if let Ok(Parsed::Complete(_, used)) = whole {
        assert_eq!(parse(&data[..used]), whole);
        assert!(used == 0 || parse(&data[..used - 1]) == Ok(Parsed::Partial));
    }
}

fn v1_again(header: &Header) {
    assert!(header.tlvs.is_empty() && !header.unix);
    let mut out = Vec::new();
    proxy::v1(header.addresses, &mut out);
    assert!(out.len() <= proxy::V1_MAX);
    assert_eq!(proxy::parse(&out), Ok(Parsed::Complete(header.clone(), out.len())));
}

fn v2_again(header: &Header) {
    if header.unix {
        return;
    }
    let tlvs: Vec<(u8, Vec<u8>)> = proxy::tlv::Tlvs(&header.tlvs)
        .filter(|(kind, _)| *kind != proxy::tlv::CRC32C)
        .map(|(kind, value)| (kind, value.to_vec()))
        .collect();
    for checksum in [false, true] {
        let mut out = Vec::new();
        proxy::v2(
            header.addresses,
            &proxy::V2Options { tlvs: &tlvs, checksum: checksum.then_some(tlvs.len()) },
            &mut out,
        );
        // A checksum may be what makes it too long.
        if out.len() > proxy::V2_MAX {
            continue;
        }
        let Ok(Parsed::Complete(read, used)) = proxy::parse(&out) else { panic!("{}", out.escape_ascii()) };
        assert_eq!((used, read.addresses, read.local), (out.len(), header.addresses, header.local));
        let kept = proxy::tlv::Tlvs(&read.tlvs).filter(|(kind, _)| *kind != proxy::tlv::CRC32C);
        assert!(kept.eq(tlvs.iter().map(|(kind, value)| (*kind, &value[..]))));
    }
}
