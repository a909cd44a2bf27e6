//! Values of fetches, on the stage's request unless a test says otherwise.

use model::conn::ProxyHeader;

use crate::env::Side;
use crate::testing::Stage;

fn check(stage: &mut Stage, table: &[(&str, &str)]) {
    for (expr, expected) in table {
        assert_eq!(stage.value(expr), *expected, "{expr}");
    }
}

#[test]
fn constants_and_variables() {
    check(
        &mut Stage::new(),
        &[
            ("str(a)", "a"),
            ("str(\"a,b\")", "a,b"),
            ("str('a)b')", "a)b"),
            ("str(\"a\\)b\")", "a\\\\)b"),
            ("str()", ""),
            ("int(-5)", "-5"),
            ("bool(true)", "1"),
            ("bin(0041ff)", "\\x00A\\xff"),
            ("ipv4(192.0.2.9)", "192.0.2.9"),
            ("ipv6(2001:db8::1)", "2001:db8::1"),
            ("meth(GET)", "GET"),
            ("env(PATH)", "/bin"),
            ("env(NONE)", "none"),
            ("var(txn.unset)", "none"),
            ("var(txn.unset,dflt)", "dflt"),
            ("date", "1795237060"),
            ("date(-60)", "1795237000"),
            ("date(0,ms)", "1795237060123"),
            ("date(0,us)", "1795237060123456"),
            ("date_us", "123456"),
            ("rand(100)", "0"),
            ("uuid", "01234567-89ab-4def-8123-456789abcdef"),
            ("acl(TRUE,!FALSE)", "1"),
            ("acl(FALSE)", "0"),
            ("hostname", "node1"),
            ("pid", "4242"),
            ("unique-id", "id-1"),
        ],
    );
}

#[test]
fn a_uuid_of_version_7_begins_with_the_date() {
    let value = Stage::new().value("uuid(7)");
    let ms = u64::from_str_radix(&value.replace('-', "")[..12], 16).unwrap();
    assert_eq!((ms, &value[14..15], &value[19..20]), (1_795_237_060_123, "7", "8"));
}

#[test]
fn the_connection() {
    let mut stage = Stage::new();
    *stage.conn.proxy_header.borrow_mut() = Some(Box::new(ProxyHeader {
        tlvs: vec![(0xe1, b"x"[..].into())],
        authority: Some(b"a.example"[..].into()),
        ..ProxyHeader::default()
    }));
    check(
        &mut stage,
        &[
            ("src", "192.0.2.1"),
            ("src_port", "1234"),
            ("dst", "198.51.100.2"),
            ("dst_port", "80"),
            ("fc_src", "192.0.2.1"),
            ("fc_rcvd_proxy", "1"),
            ("fc_pp_tlv(0xe1)", "x"),
            ("fc_pp_tlv(225)", "x"),
            ("fc_pp_tlv(ALPN)", "none"),
            ("fc_pp_unique_id", "none"),
            ("fc_pp_authority", "a.example"),
            ("fc_err", "0"),
            ("fc_err_str", "Success"),
            ("fc_rtt", "1"),
            ("fc_rtt(us)", "1500"),
            ("fc_retrans", "2"),
            ("fe_name", "fe"),
            ("fe_id", "2"),
            ("fe_defbe", "be"),
            ("be_name", "be"),
            ("nbsrv(be)", "1"),
            ("nbsrv", "1"),
            ("srv_is_up(be/s1)", "1"),
            ("be_conn_free(be)", "-1"),
            ("http_first_req", "1"),
        ],
    );
}

#[test]
fn the_request() {
    check(
        &mut Stage::new(),
        &[
            ("method", "GET"),
            ("path", "/a/b"),
            ("pathq", "/a/b?c=d&e=f"),
            ("url", "/a/b?c=d&e=f"),
            ("query", "c=d&e=f"),
            ("query(with_qm)", "?c=d&e=f"),
            ("base", "www.example.com:80/a/b"),
            ("baseq", "www.example.com:80/a/b?c=d&e=f"),
            ("req.ver", "1.1"),
            ("urlp(c)", "d"),
            ("urlp(E)", "none"),
            ("urlp(E,,i)", "f"),
            ("urlp", "d"),
            ("capture.req.uri", "/a/b?c=d&e=f"),
            ("capture.req.ver", "HTTP/1.1"),
            ("req.proto_http", "1"),
        ],
    );
}

#[test]
fn header_fields_by_occurrence() {
    check(
        &mut Stage::new(),
        &[
            ("hdr(x-list)", "c"),
            ("hdr(X-LIST,1)", "a"),
            ("hdr(x-list,2)", "b"),
            ("hdr(x-list,-2)", "b"),
            ("hdr(x-list,-3)", "a"),
            ("hdr(x-list,-4)", "none"),
            ("hdr(x-list,4)", "none"),
            ("req.fhdr(x-list,1)", "a, b"),
            ("req.fhdr(x-list)", "c"),
            ("hdr_cnt(x-list)", "3"),
            ("req.fhdr_cnt(x-list)", "2"),
            ("req.fhdr_cnt", "5"),
            ("hdr_val(x-n)", "42"),
            ("hdr(none)", "none"),
            ("req.hdr_names", "host,x-list,x-list,cookie,x-n"),
            ("req.hdr_names(;)", "host;x-list;x-list;cookie;x-n"),
            ("hdr_ip(host)", "none"),
            (
                "req.hdr(x,-11)",
                "fault: invalid args in fetch method 'req.hdr' : header occurrence must be >= -10",
            ),
        ],
    );
}

#[test]
fn cookies_by_name() {
    check(
        &mut Stage::new(),
        &[
            ("req.cook(sid)", "2"),
            ("req.cook", "1"),
            ("cook(t)", "x"),
            ("req.cook(none)", "none"),
            ("req.cook_cnt(sid)", "2"),
            ("req.cook_cnt", "3"),
            ("req.cook_names", "sid,t,sid"),
            ("req.cook_val(sid)", "2"),
        ],
    );
}

#[test]
fn the_response() {
    let mut stage = Stage::new();
    stage.side = Side::Response;
    check(
        &mut stage,
        &[
            ("status", "200"),
            ("res.ver", "1.1"),
            ("res.cook(sid)", "9"),
            ("srv_name", "s1"),
            ("txn.status", "200"),
        ],
    );
}

#[test]
fn credentials_are_checked_against_the_list() {
    let with = |value: &str| {
        let mut stage = Stage::new();
        stage.txn.req.append(b"authorization", value.as_bytes()).unwrap();
        stage
    };
    // plain:secret, crypt:secret, plain:wrong
    for (value, found) in
        [("Basic cGxhaW46c2VjcmV0", "1"), ("Basic Y3J5cHQ6c2VjcmV0", "1"), ("Basic cGxhaW46d3Jvbmc=", "0")]
    {
        assert_eq!(with(value).value("http_auth(users)"), found, "{value}");
    }
    let mut stage = with("Basic cGxhaW46c2VjcmV0");
    check(
        &mut stage,
        &[("http_auth_user", "plain"), ("http_auth_pass", "secret"), ("http_auth_type", "Basic")],
    );
    assert_eq!(stage.holds("if { http_auth_group(users) staff }"), Ok(true.into()));
    assert_eq!(stage.holds("if { http_auth_group(users) admins }"), Ok(false.into()));
    assert_eq!(with("Bearer abc").value("http_auth_bearer"), "abc");
}

#[test]
fn payload_that_may_still_come_is_awaited() {
    let mut stage = Stage::new();
    stage.outside.body = b"\x00\x03abcdef".to_vec();
    check(&mut stage, &[("req.len", "119"), ("req.payload(2,3)", "none"), ("req.payload_lv(0,2)", "none")]);
    // Raw bytes are there in TCP only.
    stage.txn.has_req = false;
    check(
        &mut stage,
        &[
            ("req.len", "8"),
            ("req.payload(2,3)", "abc"),
            ("req.payload(2,0)", "abcdef"),
            ("req.payload(2,9)", "none"),
            ("req_len", "8"),
            ("payload_lv(0,2)", "abc"),
            ("req.payload_lv(0,2)", "abc"),
            ("req.payload_lv(0,2,+1)", "bcd"),
            ("req.payload_lv(0,2,4)", "cde"),
        ],
    );
    (stage.side, stage.txn.has_res) = (Side::Response, false);
    check(&mut stage, &[("res.payload_lv(0,2)", "abc"), ("payload_lv(0,2)", "abc")]);
    stage.side = Side::Request;
    (stage.outside.complete, stage.last) = (false, false);
    check(&mut stage, &[("req.payload(2,9)", "later"), ("wait_end", "later"), ("req.ssl_sni", "none")]);
}

/// A client hello with the server name `a.example` and the protocols `h2` and `http/1.1`.
fn hello() -> Vec<u8> {
    let sni = b"\x00\x00\x00\x0e\x00\x0c\x00\x00\x09a.example";
    let alpn = b"\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1";
    let extensions = [&sni[..], alpn].concat();
    let mut body = b"\x03\x03".to_vec();
    body.extend([7; 32]);
    body.extend(b"\x00\x00\x02\x13\x01\x01\x00");
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(&extensions);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut record = b"\x16\x03\x01".to_vec();
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    record
}

#[test]
fn a_tls_hello_is_read_and_awaited_byte_by_byte() {
    let mut stage = Stage::new();
    let whole = hello();
    stage.outside.body = whole.clone();
    check(
        &mut stage,
        &[
            ("req.ssl_hello_type", "1"),
            ("req.ssl_sni", "a.example"),
            ("req.ssl_alpn", "h2"),
            ("req_ssl_hello_type", "1"),
            ("req_ssl_sni", "a.example"),
            ("req_ssl_ver", "196611"),
            ("req.ssl_ver", "196611"),
        ],
    );
    assert_eq!(stage.holds("if { req.ssl_ver 3.3 }"), Ok(true.into()));
    assert_eq!(stage.holds("if { req.ssl_alpn http/1.1 }"), Ok(true.into()));
    (stage.outside.complete, stage.last) = (false, false);
    for n in 0..whole.len() {
        stage.outside.body = whole[..n].to_vec();
        assert_eq!(stage.value("req.ssl_sni"), "later", "{n} bytes");
    }
}

#[test]
fn an_rdp_cookie_is_found_in_the_connection_request() {
    let mut stage = Stage::new();
    let text = b"Cookie: mstshash=joe\r\n";
    let mut body = vec![3, 0, 0, (11 + text.len()) as u8, 0, 0xe0, 0, 0, 0, 0, 0];
    body.extend(text);
    stage.outside.body = body;
    check(
        &mut stage,
        &[
            ("rdp_cookie(MSTSHASH)", "joe"),
            ("rdp_cookie(msts)", "none"),
            ("req.rdp_cookie_cnt", "1"),
            ("req.rdp_cookie(mstshash)", "joe"),
            ("rdp_cookie_cnt", "1"),
        ],
    );
}

#[test]
fn a_server_hello_has_its_type() {
    let mut stage = Stage::new();
    stage.side = Side::Response;
    stage.outside.body = b"\x16\x03\x03\0\x2a\x02\0\0\x26\x03\x03".iter().copied().chain([0; 36]).collect();
    check(&mut stage, &[("res.ssl_hello_type", "2"), ("rep_ssl_hello_type", "2")]);
}

#[test]
fn both_sides_of_a_stream_describe_themselves() {
    let mut stage = Stage::new();
    assert!(stage.value("fs.debug_str(1)").contains("conn=7 "), "{}", stage.value("fs.debug_str(1)"));
    stage.side = Side::Response;
    stage.txn.times.connected = Some(base::time::Mono::from_nanos(1));
    assert!(stage.value("bs.debug_str").contains("conn=7 "), "{}", stage.value("bs.debug_str"));
}
