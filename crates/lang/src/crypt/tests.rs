//! Every method against texts that libxcrypt made of the same passwords.

use super::{Hashed, matches};

const PASSWORDS: [&[u8]; 4] = [b"secret", b"p\xc3\xa4ss\xff", b"", &[b'x'; 80]];

/// What libxcrypt makes of [`PASSWORDS`] under a setting.
const MADE: &[(&str, [&str; 4])] = &[
    (
        "$1$abcdefgh$",
        [
            "cHJi5PXp/ki/ktXzqlk6I1",
            "KugZ3wVDSVzEWHvod6nb31",
            "M55TzYaaccxVGbptZWaxX/",
            "06aFAnVfqM7H4kDMwscRI1",
        ],
    ),
    (
        "$1$a$",
        [
            "41c8gzdxX5iFFuqkeAdoe0",
            "jde0BZsfKjuIjePF248ry1",
            "8CfZSfErbeskipdhZHtvu.",
            "2wvDtAxTbmSEXlp..So/j.",
        ],
    ),
    (
        "$1$$",
        [
            "ysVNzQc4CTMkp5daOdZ.3/",
            "mqLnhM4l7MUNLg6KNYNtt/",
            "qRPK7m23GJusamGpoGLby/",
            "kQ30pQw.3mVZLBWdUx6gU0",
        ],
    ),
    (
        "$2a$04$abcdefghijklmnopqrstuu",
        [
            "2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
            "CDFPJD1hekfRShscUtEn/eIDrkmoPLu",
            "byCG3zY1GIXMyxfivm.ClDiInHzxjiq",
            "bzadhGtS2zEF.gu0yd0opP6cVzb.e0i",
        ],
    ),
    (
        "$2b$05$abcdefghijklmnopqrstuu",
        [
            "OQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
            "A4q3dyYGqL/ev7ZzCtjdfIc8lHmlQhy",
            "0oImNDIy4flhldV9YqunRgBAePKmw7m",
            "jf8SX2ahXLwp9w/B.Y5XdysS6yR576q",
        ],
    ),
    (
        "$2y$04$./ABCDEFGHIJKLMNOPQRSu",
        [
            "BjHRiA1nNkzQNpEXppOjYe.KmcoI9VK",
            "sYByokeJmlaoEF36iwPoBpoMDobbp5m",
            "SePX9.jLQXXOMtJM8qB7PR8c3F8jHg6",
            "P0UCKXFIaCTXbFc8GlWeakOGJZAidDG",
        ],
    ),
    (
        "$5$rounds=1000$saltstring$",
        [
            "AH5PD0i.riCRu4BNDy9v7OPV7u3dfLBApcXI6khquVA",
            "i5dDPVE4nTPdGYcQ3qtt13HlRw///GjuGaiYhiRc3P1",
            "TzAJABAaJwl111nyuH1uQy8kjHahyMHq1D7Y09hLQV1",
            "dw7S.31PS52vzj0Ieb5Sq0M2UTE1A7Sf9FLw1hYZNXD",
        ],
    ),
    (
        "$5$saltstring$",
        [
            "C3o4O1TC6aRHF4FI.QSZMXtHbaj2gSXr4sUc/3NcUi.",
            "SD.24vM.gQHKM5c886Ko28KSSfkd.q7auRzp6j64Gt5",
            "FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7",
            "jZdy2gGq0OUSP01AhBb7yOgBitgAZa7g8axx/wgsXj5",
        ],
    ),
    (
        "$6$saltstringsaltst$",
        [
            "UXuBvBuPfQU4z1.hi3CoNXH4C7ulNXpsepRT322IE4RHFhcT/ge6WV1Wz4Ryq8EGyu0hllpHMecmXcc/Pudmo.",
            "0sAwi84EyTYC24/5pIarQK.IYR92kenhOcMX0CjN5aX8XmBeW6gHVd1CqBuxOdpLhcAVJ3jvydliLo2eWB4B/1",
            "mF.lV5IMswQVU8GZ/VfE3B4FofDTMTejz7bcl0fJ8pWP1XGeFTkx.SaUuOeq7PK3tr8wJN.pIG6v6Dl3jM1ag0",
            "iTWYkgj49qYxmN43BK05.gHq53E6oG4sjUyo7lHWDLotwO.VcjpgVTeFBUAHCAXVdIki7jEmmSyRjHJDR59OJ.",
        ],
    ),
    (
        "$6$rounds=1001$a$",
        [
            "BNMH5zj/dR7pSKA3/pmtnZqvpMLCxHCNt8MFe8svxnpRrodmDIM9WJh/aGRnbk2frAKHEQqBcgQRf4AvLV0X4/",
            "71Kd5N0cLP/lzJL/M4T7LNKzfZ4stDPF4vtMnjE4LpNblqI7DyBB8HNw7EbdHE/Vvfkjp.9jL1JIe..Aev99P1",
            "1LgZTwgZLXxTQ4YhBC7mzpSbPbXwOMjOQhAP6D6HlIk5CPMWt9eaLdwj70vgjAd4wtjWJERgdMX27ED5phxhe/",
            "Qvfuw2wu1oFX6M72IGlUIGL7DQeU3S92hDYNpT6CPZvDfweOhFapVrvNZKaxAyh4cQSbJjkS0CXiY4iDJXBvJ/",
        ],
    ),
    (
        "$7$26..../....SodiumChloride$",
        [
            "CstoubCEyFDPrFUoZlDV6Xf//cxZPYLvD2s9HQFaYID",
            "sKmdSRqe4LDoSmVnxxIPS3sJvIePJ/jVkCKsj9vE1w5",
            "urYfwSyPTqJK.GR6OCEbXfH3TYFoLiPHgF3VZFUhRF/",
            "c4okts0zVoOb1fiX0K6ggRmoYTcjzxr3qxTSP3/Ywq4",
        ],
    ),
    (
        "$7$36..../....$",
        [
            "bHW2J8W50qXaNtNLp/SP1YEMeLcQZRKRaI0xE9WvJ43",
            "ZRQiajYsmFoVA55.pnl0AcCaRSMUIKnUgkBsaUuveuA",
            "EZb0VlzhaMt4QZ.BmkKXRcC6.Iq5.zbKmiqFVlnetS0",
            "CW0h3GdKlFY.TEm9jQz2zlYSkz2d54.nteNwXjwcIB6",
        ],
    ),
    (
        "$y$j75$abcd$",
        [
            "4kXmLgaKDvIX6kdRHPMTHEFMzZbz3KU11lQ0dx6AKZ3",
            "Owc.spDgr/FGyKi0/XANFxLAahU9iRrDYRiNF0osP5D",
            "eCNABnCYh9Yg4ibb.2WZzfD1Qm8EmjGIsb4F81qkaL2",
            "P5tNBTfSo.4tnhg6Pw9pIZeWbJWEoNDZT.CxjZZnJ.2",
        ],
    ),
    (
        "$y$.75$abcde/$",
        [
            "iJsYmG3tgNyeZx9V/IGRM3.1uczv7ffpcG1jnq5my6C",
            "Mlnp.w/p1YkbK5BSGH.31Err83rCFF0Bj.Cfidpv/Q9",
            "KIVkEGr6SGxfzYvYhoPLdQTSM56sEoaBGD3/RP/yMF2",
            "fZVAOQaQC3BxlQr3O.23UuIRCVA0IOrFrzMBqt4EzW2",
        ],
    ),
    (
        "$y$j/5$$",
        [
            "yadu8/WFVynU5IrbXI4ZXtUc4En54uNPRvZ.7lUgdn6",
            "zLh5rOkLr1PhPTJwTIT1uwekHudRdODVawqeSU4UyF9",
            "eCPxJCDogoEv4VFC72ssXLZHybb29FjxdlJqDvlmavC",
            "x.V4dSrXMsvUgUzUYfseDKbNHpoJu92mFVeuR/tfOz7",
        ],
    ),
    (
        "$y$j85$abcdefghijklmnopqrst$",
        [
            "IdovEmsU8KG7B2wWGsxAD/K6POU00PUZdj.ksTnzwq0",
            "bmSWRJQmBNk3DRghFSryCqb6YyQJR6SJ.wcQExLw622",
            "jBN.d8az.OqhxIjbSPp96Zt8QVIybL91t5FoyLMrJTB",
            "Pe6lfbMvPti4VMJxgeqqCKTDeOn8vJm2FUxbI.N5Qi1",
        ],
    ),
];

#[test]
fn hashes_of_libxcrypt_match_their_password_and_no_other() {
    for (setting, hashes) in MADE {
        for (i, hash) in hashes.iter().enumerate() {
            let text = format!("{setting}{hash}");
            for (j, password) in PASSWORDS.iter().enumerate() {
                assert_eq!(matches(&text, password), i == j, "{text} {password:?}");
            }
        }
    }
}

#[test]
fn what_is_no_hash_matches_nothing() {
    let odd = [
        "",
        "$",
        "$1",
        "$1$",
        "$2b$05$",
        "$2b$3$abcdefghijklmnopqrstuu",
        "$2b$99$abcdefghijklmnopqrstuu",
        "$5$",
        "$6$rounds=10$salt$",
        "$6$rounds=x$salt$",
        "$7$",
        "$7$zzzzzzzzzzz$",
        "$7$............",
        "$y$",
        "$y$j9T",
        "$y$j9T$a$",
        "$y$zzz$abcd$",
        "$y$jzzzz$$",
        "$y$jUT$abcd$",
        "abNANd1rDfiNc",
        "$9$x$y",
        "*0",
        "ä$5$",
    ];
    for hash in odd {
        assert!(!matches(hash, b"secret") && !matches(hash, b""), "{hash}");
    }
    let right = format!("{}{}", MADE[0].0, MADE[0].1[0]);
    assert!(matches(&right, b"secret") && !matches(&right, b"secret\0") && !matches(&right, &[b's'; 512]));
}

#[test]
fn only_the_right_password_is_remembered() {
    let hashed = Hashed::new("a hash");
    assert!(!hashed.checked(b"wrong", |_, _| false));
    assert!(hashed.checked(b"wrong", |_, _| true), "a wrong password was remembered");
    assert!(hashed.checked(b"wrong", |_, _| false), "a right one was computed again");
    assert!(!hashed.checked(b"other", |_, _| false));
    assert!(!hashed.clone().checked(b"wrong", |_, _| false));
}
