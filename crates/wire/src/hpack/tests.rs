//! The examples of RFC 7541 appendix C, what a decoder has to refuse, and that what is encoded decodes.

use proptest::prelude::*;

use super::*;
use crate::head::Known;

type Lines = Vec<(String, String)>;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a digit") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Lines, Error> {
    let mut lines = Vec::new();
    decoder.decode(block, &mut |line| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        lines.push((text(line.name), text(line.value)));
    })?;
    Ok(lines)
}

fn lines(text: &str) -> Lines {
    let pairs = text.lines().map(str::trim).filter(|line| !line.is_empty());
    pairs
        .map(|line| {
            let at = line.char_indices().skip(1).find(|(_, letter)| *letter == ':').expect("a colon").0;
            (line[..at].to_string(), line[at + 1..].trim().to_string())
        })
        .collect()
}

fn check(table: u32, blocks: &[(&str, &str, usize)]) {
    let mut decoder = Decoder::new(4096);
    if table != 4096 {
        let mut update = Vec::new();
        int::write(&mut update, 32, 5, table as usize);
        assert_eq!(decode(&mut decoder, &update), Ok(vec![]));
    }
    for (block, expected, size) in blocks {
        assert_eq!(decode(&mut decoder, &hex(block)), Ok(lines(expected)), "{block}");
        assert_eq!(decoder.table().size(), *size, "{block}");
    }
}

#[test]
fn representations_of_appendix_c2() {
    check(
        4096,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            55,
        )],
    );
    check(4096, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0)]);
    check(4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0)]);
    check(4096, &[("82", ":method: GET", 0)]);
}

const REQUESTS: [&str; 3] = [
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
];

#[test]
fn requests_of_appendix_c3_and_c4() {
    let [first, second, third] = REQUESTS;
    check(
        4096,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first, 57),
            ("8286 84be 5808 6e6f 2d63 6163 6865", second, 110),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third, 164),
        ],
    );
    check(
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", second, 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third, 164),
        ],
    );
}

const RESPONSES: [&str; 3] = [
    ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com
     content-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

#[test]
fn responses_of_appendix_c5_and_c6_with_evictions() {
    let [first, second, third] = RESPONSES;
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                first,
                222,
            ),
            ("4803 3330 37c1 c0bf", second, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0
                 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
                 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                third,
                215,
            ),
        ],
    );
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                first,
                222,
            ),
            ("4883 640e ffc1 c0bf", second, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
                 4ee5 b106 3d50 07",
                third,
                215,
            ),
        ],
    );
}

#[test]
fn what_a_block_may_not_say() {
    for (block, error, why) in [
        ("80", Error::Index, "index zero"),
        ("be", Error::Index, "an entry that is not there"),
        ("7f 80 80 80 80 00", Error::Integer, "an endless integer"),
        ("ff", Error::Truncated, "an index cut off"),
        ("40 05 61", Error::Truncated, "a name cut off"),
        ("41 ff ff ff ff ff 07 61", Error::Integer, "a length beyond all measure"),
        ("41 7f ff ff 01 61", Error::Truncated, "a length beyond the block"),
        ("41 81 00", Error::Huffman, "bad padding"),
        ("82 3f e1 1f", Error::TableSize, "a size update behind a line"),
        ("3f e2 1f", Error::TableSize, "4097 bytes"),
        ("0f ff ff ff 7f", Error::Index, "an index beyond all measure"),
    ] {
        assert_eq!(decode(&mut Decoder::new(4096), &hex(block)), Err(error), "{why}");
    }
    assert_eq!(decode(&mut Decoder::new(4096), &hex("3f e1 1f 20")), Ok(vec![]), "4096, then 0");
}

#[test]
fn a_lowered_limit_has_to_be_answered() {
    let mut decoder = Decoder::new(100);
    assert!(decode(&mut decoder, &hex("82")).is_ok(), "not yet known to the peer");
    decoder.set_limit(100);
    assert_eq!(decode(&mut decoder, &hex("82")), Err(Error::TableSize));
    let mut decoder = Decoder::new(100);
    decoder.set_limit(100);
    assert!(decode(&mut decoder, &hex("3f 45 82")).is_ok(), "a hundred is told");
    assert!(decode(&mut decoder, &hex("82")).is_ok());
}

#[test]
fn a_bomb_costs_lookups_only() {
    let mut decoder = Decoder::new(4096);
    let mut block = vec![0x40, 1, b'x', 127, 0x80 | 0x21, 0x1e];
    block.extend_from_slice(&vec![b'y'; 127 + 0x21 + (0x1e << 7)]);
    block.extend(std::iter::repeat_n(0xbe, 100_000));
    let (mut count, mut bytes) = (0u64, 0u64);
    let each = &mut |line: Line<'_>| {
        count += 1;
        bytes += line.value.len() as u64;
    };
    decoder.decode(&block, each).unwrap();
    assert_eq!(count, 100_001);
    assert_eq!(bytes, 100_001 * 4000);
}

fn encode(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value) in fields {
        encoder.field(Known::of(name.as_bytes()), name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

#[test]
fn what_comes_again_becomes_short_and_what_does_not_stays_out() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
    let lengths: Vec<usize> = (0..4)
        .map(|round| {
            let etag = format!("\"{round}\"");
            let fields = [
                ("server", "origin"),
                ("x-kind", "page"),
                ("content-length", "100"),
                ("etag", etag.as_str()),
            ];
            let block = encode(&mut encoder, &fields);
            let back = decode(&mut decoder, &block).unwrap();
            let fields: Lines = fields.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            assert_eq!(back, fields);
            block.len()
        })
        .collect();
    assert!(lengths[0] >= lengths[1] && lengths[2] < lengths[1] - 15, "{lengths:?}");
    assert_eq!(lengths[2], lengths[3]);
    assert_eq!(decoder.table().inserted(), 2, "server and x-kind");
}

#[test]
fn secrets_are_marked_and_never_kept() {
    let mut encoder = Encoder::new(4096);
    for _ in 0..4 {
        let block = encode(&mut encoder, &[("authorization", "Basic x")]);
        assert_eq!(block[0] & 0xf0, 0x10);
        assert_eq!(encode(&mut encoder, &[("cookie", "a=b")])[0] & 0xf0, 0);
    }
}

#[test]
fn a_peer_without_a_table_gets_literals() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
    for _ in 0..3 {
        decode(&mut decoder, &encode(&mut encoder, &[("server", "origin")])).unwrap();
    }
    encoder.set_limit(0);
    encoder.set_limit(200);
    let block = encode(&mut encoder, &[("server", "origin")]);
    assert_eq!(&block[..4], &[0x20, 0x3f, 169 | 128, 1], "both sizes are told");
    decode(&mut decoder, &block).unwrap();
    assert_eq!(decoder.table().size(), 44, "what was evicted is inserted anew");
    encoder.set_limit(0);
    for _ in 0..3 {
        let block = encode(&mut encoder, &[("server", "origin")]);
        decode(&mut decoder, &block).unwrap();
        assert!(block.len() > 7);
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(
        blocks in proptest::collection::vec(
            proptest::collection::vec((0usize..8, 0usize..6, 0usize..300), 0..12), 1..30),
        sizes in proptest::collection::vec(0u32..5000, 30),
    ) {
        const NAMES: [&str; 8] =
            ["server", "x-a", "x-b", "date", "content-length", "cookie", "vary", "access-control-allow-origin"];
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
        let text = "0123456789".repeat(30);
        for (block, size) in blocks.iter().zip(&sizes) {
            if size % 3 == 0 {
                encoder.set_limit(*size);
            }
            let fields: Vec<(&str, &str)> = block
                .iter()
                .map(|(name, start, len)| (NAMES[*name], &text[*start..(*start + *len).min(text.len())]))
                .collect();
            let back = decode(&mut decoder, &encode(&mut encoder, &fields));
            let fields: Lines = fields.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
            prop_assert_eq!(back, Ok(fields));
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(block in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut decoder = Decoder::new(4096);
        let mut seen = 0;
        let _ = decoder.decode(&block, &mut |_| seen += 1);
        prop_assert!(seen <= block.len());
    }
}
