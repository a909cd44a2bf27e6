//! Hostile requests of HTTP/2, as frames, and what of them may reach an origin: see `requests`.

use crate::frames::{CONTINUATION, DATA, END, END_HEADERS, HEADERS, RESET, block, data, frame, headers};
use crate::requests::Case;

type Lines<'l> = Vec<(&'l [u8], &'l [u8])>;

const GET: [(&[u8], &[u8]); 4] =
    [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"w"), (b":path", b"/a")];
const POST: [(&[u8], &[u8]); 4] =
    [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"w"), (b":path", b"/a")];

fn with<'l>(head: [(&'l [u8], &'l [u8]); 4], more: &[(&'l [u8], &'l [u8])]) -> Lines<'l> {
    head.iter().chain(more).copied().collect()
}

/// A request without body whose pseudo-header `at` says something else.
fn but(at: usize, value: &[u8]) -> Vec<u8> {
    let mut lines = GET;
    lines[at].1 = value;
    headers(1, &lines, true)
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |bytes: Vec<u8>, want: &str| cases.push((bytes, want.to_owned()));
    pseudo(&mut add);
    targets(&mut add);
    fields(&mut add);
    bodies(&mut add);
    frames(&mut add);
    tunnels(&mut add);
    bytes(&mut add);
    cases
}

type Add<'a> = &'a mut dyn FnMut(Vec<u8>, &str);

fn pseudo(add: Add<'_>) {
    for left_out in [0, 1, 3] {
        let lines: Lines<'_> =
            GET.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, l)| *l).collect();
        add(headers(1, &lines, true), "");
    }
    add(headers(1, &[GET[0], GET[1], GET[3]], true), "GET /a  ");
    add(headers(1, &[GET[0], GET[1], GET[3], (b"host", b"w")], true), "GET /a w ");
    for (i, line) in GET.iter().enumerate() {
        add(headers(1, &with(GET, &[*line]), true), "");
        let mut late: Lines<'_> = GET.to_vec();
        let moved = late.remove(i);
        late.push((b"x", b"y"));
        late.push(moved);
        add(headers(1, &late, true), "");
    }
    for odd in [":status", ":foo", ":", ":Method", ":path ", ": method", ":protocol"] {
        let mut lines = GET.to_vec();
        lines.insert(1, (odd.as_bytes(), b"200"));
        add(headers(1, &lines, true), "");
    }
    for method in
        ["", "GE T", "GET ", " GET", "GET /smuggled HTTP/1.1\r\nX:", "G\0T", "GET\t", "(GET)", "G\u{e9}T"]
    {
        add(but(0, method.as_bytes()), "");
    }
    for scheme in ["", "http ", "http://evil/", "ht tp", "1http", "http\r\n", "http:"] {
        add(but(1, scheme.as_bytes()), "");
    }
}

fn targets(add: Add<'_>) {
    for path in [
        "",
        "a",
        "/a b",
        "/a HTTP/1.1\r\nX: y",
        "/a\r\n",
        "/a\n",
        "/a\0",
        "/a\t",
        " /a",
        "/a ",
        "http://evil/a",
        "//\r",
        "/a#b",
        "/a\u{7f}",
        "?a",
        "@evil",
        "/a HTTP/1.0\r\n\r\nGET /smuggled HTTP/1.1",
    ] {
        add(but(3, path.as_bytes()), "");
    }
    // HAProxy passes these on, other than in HTTP/1.
    add(but(3, "/\u{e9}".as_bytes()), "GET /\u{e9} w ");
    // HAProxy makes "/" of it for any method but OPTIONS.
    add(but(3, b"*"), "GET / w ");
    add(but(3, b"//evil/a"), "GET //evil/a w ");
    add(but(3, b"/a?b=%0d%0a"), "GET /a?b=%0d%0a w ");
    for authority in [
        "w evil",
        "w\r\nX: y",
        "w/evil",
        "w?evil",
        "w#evil",
        "u@w",
        "w,evil",
        "w\\evil",
        "w\0",
        "w\t",
        "[::1",
        "::1]x",
        "w\u{e9}",
        " w",
        "w ",
        "w\n",
        "w[1]",
    ] {
        add(but(2, authority.as_bytes()), "");
    }
    add(headers(1, &with(GET, &[(b"host", b"w")]), true), "GET /a w ");
    add(headers(1, &with(GET, &[(b"host", b"evil")]), true), "GET /a w ");
    add(headers(1, &with(GET, &[(b"host", b"w"), (b"host", b"evil")]), true), "GET /a w ");
    let bare: Lines<'_> = vec![GET[0], GET[1], GET[3]];
    let hosts = |hosts: &[&'static [u8]]| -> Lines<'static> {
        bare.iter().copied().chain(hosts.iter().map(|h| (&b"host"[..], *h))).collect()
    };
    add(headers(1, &hosts(&[b"w", b"evil"]), true), "");
    add(headers(1, &hosts(&[b"w", b"w"]), true), "GET /a w ");
    add(headers(1, &hosts(&[b"w evil"]), true), "");
    add(headers(1, &hosts(&[b"w/evil"]), true), "");
    add(but(2, b""), "GET /a  ");
}

fn fields(add: Add<'_>) {
    for (name, value) in [
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", ""),
        ("connection", "close"),
        ("connection", "content-length"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "h2c"),
        ("te", "chunked"),
        ("te", "trailers, chunked"),
        ("te", "gzip"),
        ("X-A", "upper"),
        ("transfer-Encoding", "chunked"),
        ("", "empty"),
        ("x a", "blank"),
        ("x:a", "colon"),
        ("x\ra", "return"),
        ("x\na", "feed"),
        ("x\0a", "nul"),
        ("x\r\ntransfer-encoding: chunked\r\ny", "whole"),
        ("transfer-encoding ", "chunked"),
        (" transfer-encoding", "chunked"),
        ("transfer-encoding:", "chunked"),
        ("x\u{e9}", "latin"),
        ("x", "a\r\nTransfer-Encoding: chunked"),
        ("x", "a\nTransfer-Encoding: chunked"),
        ("x", "a\rTransfer-Encoding: chunked"),
        ("x", "a\0b"),
        ("x", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: w\r\n\r\n"),
        ("cookie", "a=b\r\nx: y"),
        ("content-length", "+0"),
        ("content-length", "0, 1"),
        ("content-length", "-1"),
        ("content-length", "0x0"),
        ("content-length", ""),
        ("content-length", "5"),
        ("content-length", "18446744073709551616"),
        ("http2-settings", "\r\n"),
    ] {
        add(headers(1, &with(GET, &[(name.as_bytes(), value.as_bytes())]), true), "");
    }
    // Blanks around a value are no part of it, as with HTTP/1.
    for value in [" a", "a ", "\ta", " a\t "] {
        add(headers(1, &with(GET, &[(b"x", value.as_bytes())]), true), "GET /a w ");
    }
    add(headers(1, &with(GET, &[(b"te", b"trailers")]), true), "GET /a w ");
    add(headers(1, &with(GET, &[(b"x-mark", b"forged"), (b"x-mark", b"twice")]), true), "GET /a w ");
    add(
        headers(1, &with(GET, &[(b"cookie", b"a=b"), (b"cookie", b"c=d"), (b"cookie", b"")]), true),
        "GET /a w ",
    );
    add(headers(1, &with(GET, &[(b"content-length", b"0")]), true), "GET /a w ");
    add(headers(1, &with(GET, &[(b"content-length", b"0"), (b"content-length", b"0")]), true), "GET /a w ");
    add(
        headers(1, &with(GET, &[(b"content_length", b"40"), (b"transfer_encoding", b"chunked")]), true),
        "GET /a w ",
    );
    add(headers(1, &with(GET, &[(b"http2-settings", b"AAMAAABk")]), true), "GET /a w ");
    add(headers(1, &with(GET, &[(b"expect", b"100-continue")]), true), "GET /a w ");
}

fn bodies(add: Add<'_>) {
    let post = |length: &'static [u8], parts: &[&[u8]]| {
        let mut out = headers(1, &with(POST, &[(b"content-length", length)]), false);
        for (i, part) in parts.iter().enumerate() {
            out.extend(data(1, part, i + 1 == parts.len()));
        }
        out
    };
    const NEXT: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: w\r\n\r\n";
    add(post(b"5", &[b"hello"]), "POST /a w hello");
    add(post(b"5", &[b"hel", b"", b"lo"]), "POST /a w hello");
    add(post(b"0", &[NEXT]), "POST /a w  :: ");
    add(post(b"4", &[b"hello"]), "");
    add(post(b"6", &[b"hello"]), "");
    add(post(b"5", &[b"hello", NEXT]), "POST /a w hello :: ");
    add(post(b"5, 5", &[b"hello"]), "POST /a w hello");
    add(post(b"5, 6", &[b"hello!"]), "");
    add(post(b"05", &[b"hello"]), "POST /a w hello");
    add(post(b"5 ", &[b"hello"]), "POST /a w hello");
    add(post(b"0x5", &[b"hello"]), "");
    add(post(b"5\r\nX: y", &[b"hello"]), "");
    add(post(b"18446744073709551621", &[b"hello"]), "");
    add(post(b"99999999999999999999", &[b"hello"]), "");
    let twice = |a: &'static [u8], b: &'static [u8]| {
        let lines = with(POST, &[(b"content-length", a), (b"content-length", b)]);
        [headers(1, &lines, false), data(1, b"hello", true)].concat()
    };
    add(twice(b"5", b"5"), "POST /a w hello");
    add(twice(b"5", b"6"), "");
    add(twice(b"0", b"5"), "");
    let open = || headers(1, &POST, false);
    add(
        [open(), data(1, b"0\r\n\r\n", false), data(1, NEXT, true)].concat(),
        "POST /a w 0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: w\r\n\r\n",
    );
    add([open(), data(1, b"", true)].concat(), "POST /a w ");
    add([open(), data(1, b"5\r\nhello\r\n0\r\n\r\n", true)].concat(), "POST /a w 5\r\nhello\r\n0\r\n\r\n");
    add(
        [headers(1, &GET, false), data(1, NEXT, true)].concat(),
        "GET /a w GET /smuggled HTTP/1.1\r\nHost: w\r\n\r\n",
    );
    let trailing = |line: (&'static [u8], &'static [u8])| {
        [open(), data(1, b"hello", false), headers(1, &[line], true)].concat()
    };
    add(trailing((b"x-end", b"y")), "POST /a w hello");
    add(trailing((b"content-length", b"50")), "");
    add(trailing((b"host", b"evil")), "");
    add(trailing((b"x-mark", b"forged")), "POST /a w hello");
    add(trailing((b"transfer-encoding", b"chunked")), "");
    add(trailing((b"connection", b"close")), "");
    add(trailing((b":path", b"/smuggled")), "");
    add(trailing((b":status", b"200")), "");
    add(trailing((b"X-End", b"y")), "");
    add(trailing((b"x-end", b"y\r\n\r\nGET /smuggled HTTP/1.1")), "");
    add(trailing((b"x-end\r\n\r\nGET", b"y")), "");
    add(trailing((b"x-end:", b"y")), "");
    add(trailing((b"", b"y")), "");
    add(trailing((b"x-end", b"y\0")), "");
    add([open(), data(1, b"hello", false), headers(1, &[(b"x", b"y")], false)].concat(), "");
    add(
        [
            headers(1, &with(POST, &[(b"content-length", b"9")]), false),
            data(1, b"hello", false),
            headers(1, &[(b"x", b"y")], true),
        ]
        .concat(),
        "",
    );
    add(
        [headers(1, &with(POST, &[(b"content-length", b"3")]), false), headers(1, &[(b"x", b"y")], true)]
            .concat(),
        "",
    );
}

fn frames(add: Add<'_>) {
    let whole = headers(1, &GET, true);
    let next = |stream| {
        let mut lines = GET;
        lines[3].1 = b"/b";
        headers(stream, &lines, true)
    };
    add([whole.clone(), next(3)].concat(), "GET /a w  | GET /b w ");
    add([whole.clone(), data(1, b"GET /smuggled HTTP/1.1\r\n\r\n", true)].concat(), "GET /a w  :: ");
    add([whole.clone(), headers(1, &[(b"x", b"y")], true)].concat(), "GET /a w  :: ");
    add([whole.clone(), headers(1, &GET, true)].concat(), "GET /a w  :: ");
    add([data(1, b"hello", true), whole.clone()].concat(), "");
    add([frame(CONTINUATION, END_HEADERS, 1, &block(&GET)), whole.clone()].concat(), "");
    let block = block(&GET);
    let (first, second) = block.split_at(20);
    let cut = |kind_between: Option<Vec<u8>>| {
        let between = kind_between.unwrap_or_default();
        [frame(HEADERS, END, 1, first), between, frame(CONTINUATION, END_HEADERS, 1, second)].concat()
    };
    add(cut(None), "GET /a w ");
    add(cut(Some(data(1, b"x", false))), "");
    add(cut(Some(next(3))), "");
    add(cut(Some(frame(6, 0, 0, b"12345678"))), "");
    add([frame(HEADERS, END, 1, first), frame(CONTINUATION, END_HEADERS, 3, second)].concat(), "");
    add(frame(HEADERS, END | END_HEADERS, 2, &block), "");
    add(frame(HEADERS, END | END_HEADERS, 0, &block), "");
    add([next(3), frame(HEADERS, END | END_HEADERS, 1, &block)].concat(), "GET /b w  :: ");
    // Padding that is more than there is, and padding that is well.
    add(frame(HEADERS, END | END_HEADERS | 8, 1, &[&[255], &block[..]].concat()), "");
    add(frame(HEADERS, END | END_HEADERS | 8, 1, &[&[3], &block[..], b"GET"].concat()), "GET /a w ");
    let open = headers(1, &POST, false);
    add([open.clone(), frame(DATA, END | 8, 1, b"\x05hi")].concat(), "");
    add([open.clone(), frame(DATA, END | 8, 1, b"\x05helloGET /")].concat(), "POST /a w hello");
    add([open.clone(), data(1, b"hello", false), frame(RESET, 0, 1, &[0, 0, 0, 8])].concat(), "");
    add([open.clone(), frame(RESET, 0, 1, &[0, 0, 0, 8]), next(3)].concat(), "GET /b w ");
    add([open, data(3, b"hello", true)].concat(), "");
    add([frame(5, 4, 1, &[&[0, 0, 0, 2][..], &block].concat())].concat(), "");
    // Blocks that are none.
    add(frame(HEADERS, END | END_HEADERS, 1, &[0x80]), "");
    add(frame(HEADERS, END | END_HEADERS, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), "");
    add(frame(HEADERS, END | END_HEADERS, 1, &[&block[..], &[0xbe]].concat()), "");
    add(frame(HEADERS, END | END_HEADERS, 1, &block[..block.len() - 1]), "");
    add(frame(HEADERS, END | END_HEADERS, 1, &[]), "");
    add(frame(HEADERS, END | END_HEADERS, 1, &[&block[..], &[0x3f, 0xff, 0xff, 0xff, 0x7f]].concat()), "");
    let many: Lines<'_> = with(GET, &[(&b"x"[..], &b"y"[..]); 300]);
    add(headers(1, &many, true), "");
    let long = vec![b'a'; 15_500];
    add(headers(1, &with(GET, &[(b"x", &long)]), true), "");
}

fn tunnels(add: Add<'_>) {
    let connect: [(&[u8], &[u8]); 2] = [(b":method", b"CONNECT"), (b":authority", b"w:443")];
    const NEXT: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: w\r\n\r\n";
    add(headers(1, &connect, true), "CONNECT w:443 w:443 ");
    add([headers(1, &connect, false), data(1, NEXT, true)].concat(), "CONNECT w:443 w:443  :: ");
    add(headers(1, &[connect[0], connect[1], (b":path", b"/")], true), "");
    add(headers(1, &[connect[0], connect[1], (b":scheme", b"http")], true), "");
    add(headers(1, &[connect[0]], true), "");
    for authority in
        ["w", "w:", "w:x", "w:443/a", "w:443 HTTP/1.1\r\nX: y", "http://w:443", "u@w:443@x", "", "w:443:1"]
    {
        add(headers(1, &[connect[0], (b":authority", authority.as_bytes())], true), "");
    }
    let extended = |protocol: &'static [u8], more: &[(&'static [u8], &'static [u8])]| {
        let head = [(&b":method"[..], &b"CONNECT"[..]), GET[1], GET[2], GET[3], (b":protocol", protocol)];
        let lines: Lines<'_> = head.iter().chain(more).copied().collect();
        [headers(1, &lines, false), data(1, NEXT, false)].concat()
    };
    add(extended(b"h2c", &[]), "");
    add(extended(b"", &[]), "");
    add(extended(b"web socket", &[]), "");
    add(extended(b"websocket\r\nX: y", &[]), "");
    add(extended(b"websocket", &[(b"upgrade", b"foo")]), "");
    add(extended(b"websocket", &[(b"connection", b"upgrade")]), "");
    add(extended(b"websocket", &[(b"transfer-encoding", b"chunked")]), "");
    let get: Lines<'_> = with(GET, &[]).into_iter().chain([(&b":protocol"[..], &b"websocket"[..])]).collect();
    add([headers(1, &get, false), data(1, NEXT, true)].concat(), "");
}

/// Every control character in every place.
fn bytes(add: Add<'_>) {
    for byte in (0..32u8).chain([127]) {
        let odd = [b'a', byte, b'b'];
        let path = [b'/', byte, b'b'];
        let harmless = !matches!(byte, 0 | b'\r' | b'\n');
        add(headers(1, &with(GET, &[(&odd, b"v")]), true), "");
        add(headers(1, &with(GET, &[(b"x", &odd)]), true), if harmless { "GET /a w " } else { "" });
        add(but(0, &odd), "");
        add(but(2, &odd), "");
        add(but(3, &path), "");
    }
}
