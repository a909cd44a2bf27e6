//! Values of converters; nearly all were seen on HAProxy.

use crate::registry::Sets;
use crate::testing::Stage;

fn check(table: &[(&str, &str)]) {
    let mut stage = Stage::new();
    for (expr, expected) in table {
        assert_eq!(stage.value(expr), *expected, "{expr}");
    }
}

#[test]
fn casts_between_types() {
    check(&[
        ("str(a),add(1)", "1"),
        ("str(12ab),add(1)", "13"),
        ("str(),add(1)", "none"),
        ("str(-5x),add(1)", "-4"),
        ("str(+5),add(1)", "6"),
        ("bool(true),add(1)", "2"),
        ("ipv4(1.2.3.4),add(0)", "16909060"),
        ("meth(GET),lower", "get"),
        ("bin(3132),lower", "12"),
        ("bin(310032),lower", "1"),
        ("bool(true),hex", "0000000000000001"),
        ("src,hex", "C0000201"),
        ("src,lower", "192.0.2.1"),
        ("int(16909060),ipmask(32)", "1.2.3.4"),
    ]);
}

#[test]
fn arithmetic_saturates() {
    check(&[
        ("int(7),div(0)", "9223372036854775807"),
        ("int(7),mod(0)", "0"),
        ("int(-7),div(2)", "-3"),
        ("int(-7),mod(4)", "-3"),
        ("int(9223372036854775807),add(1)", "9223372036854775807"),
        ("int(9223372036854775807),mul(2)", "9223372036854775807"),
        ("int(5),neg", "-5"),
        ("int(5),cpl", "-6"),
        ("int(6),and(3)", "2"),
        ("int(6),or(3)", "7"),
        ("int(6),xor(3)", "5"),
        ("int(0),not", "1"),
        ("int(3),odd", "1"),
        ("int(3),even", "0"),
        ("int(3),bool", "1"),
        ("int(5),htonl,hex", "00000005"),
        ("int(1),sub(x)", "fault: invalid args in converter 'sub' : expects an integer or a variable name"),
    ]);
}

#[test]
fn parts_of_lists() {
    check(&[
        ("str(f1_f2_f3__f5),field(5,_)", "f5"),
        ("str(f1_f2_f3__f5),field(2,_,0)", "f2_f3__f5"),
        ("str(f1_f2_f3__f5),field(2,_,2)", "f2_f3"),
        ("str(f1_f2_f3__f5),field(-2,_,3)", "f2_f3_"),
        ("str(f1_f2_f3__f5),field(-3,_,0)", "f1_f2_f3"),
        ("str(f1_f2_f3__f5),field(4,_)", ""),
        ("str(f1_f2_f3__f5),field(9,_)", "none"),
        ("str(abc),field(0,_)", "fault: invalid args in converter 'field' : Unexpected value 0 for index"),
        ("str(f1_f2_f3__f5),word(4,_)", "f5"),
        ("str(f1_f2_f3__f5),word(2,_,0)", "f2_f3__f5"),
        ("str(f1_f2_f3__f5),word(3,_,2)", "f3__f5"),
        ("str(f1_f2_f3__f5),word(-2,_,3)", "f1_f2_f3"),
        ("str(f1_f2_f3__f5),word(-3,_,0)", "f1_f2"),
        ("str(/f1////f2/f3/f4),word(1,/,2)", "f1////f2"),
        ("str(a_b),word(9,_)", "none"),
        ("str(\"a=1&b=2\"),param(b)", "2"),
        ("str(\"a=1;b=2\"),param(b,;)", "2"),
        ("str(\"a&b\"),param(a)", ""),
        ("str(\"fr;q=0.5,en\"),language(de;en;fr,xx)", "en"),
        ("str(de),language(en,xx)", "xx"),
        ("str(*),language(en;fr)", "none"),
        ("str(\"fr-FR,en\"),language(en;fr)", "fr"),
        ("str(a),add_item(\",\",,x)", "a,x"),
        ("str(),add_item(\",\",,x)", "x"),
        ("str(abc),concat(<,txn.none,>)", "abc<>"),
    ]);
}

#[test]
fn text_is_changed_and_compared() {
    check(&[
        ("str(foobarfoo),regsub(foo,X)", "Xbarfoo"),
        ("str(foobarfoo),regsub(foo,X,g)", "XbarX"),
        ("str(FOObar),regsub(foo,X,i)", "Xbar"),
        ("str(abc),regsub(\"(b)\",\"<\\1>\")", "a<b>c"),
        ("str(aaa),regsub(a*,x,g)", "xx"),
        ("str(baac),regsub(a*,-,g)", "-b--c-"),
        ("str(///a//b),regsub(/+,/,g)", "/a/b"),
        ("str(abc),regsub(^,>,g)", ">abc"),
        ("str(a.b:80),host_only", "a.b"),
        ("str([::1]:90),host_only", "[::1]"),
        ("str([::1]:90),port_only", "90"),
        ("str(a.b),port_only", "0"),
        ("str(xxabcxx),rtrim(x)", "xxabc"),
        ("str(xxabcxx),ltrim(x)", "abcxx"),
        ("str(\"ab\\r\\n\"),cut_crlf", "ab"),
        ("str(abc),reverse", "cba"),
        ("str(a.b.c),reverse_dom", "c.b.a"),
        ("str(abc),upper,length", "3"),
        ("bool(true),iif(a,b)", "a"),
        ("str(true),iif(b,c)", "c"),
        ("bin(0141),has_ctl", "1"),
        ("str(abc),has_ctl", "0"),
        ("str(10.1.2.3),ipmask(255.255.0.0)", "10.1.0.0"),
        ("str(2001:db8::1),ipmask(24,32)", "2001:db8::"),
        // Mapped, compatible, 6to4: they hold an IPv4 address, which is masked in its place.
        ("ipv6(::ffff:1.2.3.4),ipmask(24,128)", "1.2.3.0"),
        ("ipv6(::1.2.3.4),ipmask(24,128)", "1.2.3.0"),
        ("ipv6(2002:102:304::),ipmask(24,128)", "1.2.3.0"),
        ("ipv6(::1:0:0:1),ipmask(24,128)", "::1:0:0:1"),
        ("str(2001:db8::1),ipmask(24)", "none"),
        ("ipv6(::ffff:1.2.3.4),ipmask(8)", "1.0.0.0"),
    ]);
}

#[test]
fn encodings() {
    check(&[
        ("str(\"a b+c%20d%zz\"),url_dec", "none"),
        ("str(a+b?c+d),url_dec", "a+b?c d"),
        ("str(a+b?c+d),url_dec(1)", "a b?c d"),
        ("str(\"a b/\u{e9}&?\"),url_enc", "a%20b%2F%C3%A9%26%3F"),
        ("str(0a0B),hex2i", "2571"),
        ("str(x),hex2i", "none"),
        ("bin(00000005),hex2i", "0"),
        ("str(\"a\\\"\\\\/\\nb\"),json(utf8)", "a\\\\\\\"\\\\\\\\\\\\/\\\\nb"),
        ("bin(c3a9ff41),json(utf8s)", "\\\\u00e9A"),
        ("bin(c3a9ff41),json(utf8)", "none"),
        ("bin(f09f9880),json(utf8)", "none"),
        ("bin(c3a9),json(ascii)", "\\\\u00c3\\\\u00a9"),
        ("str(abcdef),bytes(2)", "cdef"),
        ("str(abcdef),bytes(2,2)", "cd"),
        ("str(abcdef),bytes(9)", ""),
        ("str(abc),base64", "YWJj"),
        ("str(YWI=),b64dec", "ab"),
        ("str(YWI),b64dec", "none"),
        ("str(ab?>),ub64enc", "YWI_Pg"),
        ("str(YWI_Pg),ub64dec", "ab?>"),
        ("bin(0102030405060708),be2dec(:,2)", "258:772:1286:1800"),
        ("bin(0102030405),be2dec(-,2,1)", "258-772"),
        ("bin(0102030405),be2hex(\",\",2)", "0102,0304,05"),
        ("bin(0102030405),be2hex(\",\",2,1)", "0102,0304"),
        ("bin(0102030405),be2hex", "0102030405"),
        ("bin(0102),le2dec(:,2)", "513"),
    ]);
}

#[test]
fn hashes_and_digests() {
    check(&[
        ("str(abc),crc32", "891568578"),
        ("str(abc),crc32(1)", "930845320"),
        ("str(abc),crc32c", "910901175"),
        ("str(abc),djb2", "193485963"),
        ("str(abc),sdbm", "807794786"),
        ("str(abc),wt6", "2483038440"),
        ("str(abc),xxh32(5)", "1562728233"),
        ("str(abc),xxh64(5)", "-1753195980308443340"),
        ("str(abc),xxh3", "8696274497037089104"),
        ("str(abc),sha1,hex", "A9993E364706816ABA3E25717850C26C9CD0D89D"),
        ("str(abc),sha2,hex", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
        ("str(abc),digest(sha256),hex", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
        (
            "str(abc),hmac(sha256,a2V5),hex",
            "9C196E32DC0175F86F4B1CB89289D6619DE6BEE699E4C378E68309ED97A1A6AB",
        ),
    ]);
}

#[test]
fn dates() {
    check(&[
        ("int(1000000000),ltime(%Y-%m)", "2001-09"),
        ("int(1000000000),utime(%H:%M:%S)", "01:46:40"),
        ("int(1000000000),utime(%H,3600)", "02"),
        ("int(1000000000123),ms_utime(%S.%3N)", "40.123"),
        ("int(1000000000123456),us_utime(%S.%6N)", "40.123456"),
        ("int(1000000000),http_date", "Sun, 09 Sep 2001 01:46:40 GMT"),
        ("int(1000000000123),http_date(0,ms)", "Sun, 09 Sep 2001 01:46:40.123 GMT"),
        ("int(0),http_date(10)", "Thu, 01 Jan 1970 00:00:10 GMT"),
        ("str(\"Sun, 09 Sep 2001 01:46:40 GMT\"),date", "1000000000"),
        ("str(\"Sunday, 09-Sep-01 01:46:40 GMT\"),date", "1000000000"),
        ("str(\"Sun Sep  9 01:46:40 2001\"),date", "1000000000"),
        ("str(\"Tue, 29 Feb 2000 00:00:00 GMT\"),date", "951782400"),
        ("str(nonsense),date", "none"),
    ]);
}

#[test]
fn maps_and_variables() {
    check(&[
        ("path,map(map.txt)", "two words"),
        ("str(/A),map(map.txt)", "none"),
        ("str(zz),map(map.txt,def)", "def"),
        ("str(/a/b/c),map_beg(map.txt)", "two words"),
        ("str(/a/b/c),map_beg_key(map.txt)", "/a/b"),
        ("str(zz),map_str_int(map.txt,7)", "7"),
        ("int(5),map_int(numbers.txt)", "small"),
        ("src,map_ip(nets.txt)", "net"),
        ("path,map(nofile)", "fault: invalid args in converter 'map' : failed to open pattern file <nofile>"),
        ("int(5),set-var(txn.n)", "5"),
        ("int(7),add(txn.n)", "12"),
        ("str(x),concat(-,txn.n,-)", "x-5-"),
        ("str(abcdef),bytes(txn.n)", "f"),
        ("str(ABC),set-var(txn.q),lower", "abc"),
        ("str(ABD),strcmp(txn.q)", "1"),
        ("str(ABC),secure_memcmp(txn.q)", "1"),
        ("str(ABX),secure_memcmp(txn.q)", "0"),
        ("str(x),unset-var(txn.q)", "x"),
        ("var(txn.q)", "none"),
    ]);
}

#[test]
fn json_is_looked_into() {
    let mut stage = Stage::new();
    let text = r#"{"a":{"b":[1,"x",true,1.5],"c":1},"i":5,"f":false,"n":null,"s":"q\"\u00e9\ud83d\ude00","fl":1.5,"my.key":"v"}"#;
    stage.txn.req.append(b"j", text.as_bytes()).unwrap();
    for (path, expected) in [
        ("$.a.b[1]", "x"),
        ("$.a.b", "[1,\"x\",true,1.5]"),
        ("$.a", "none"),
        ("$.i", "5"),
        ("$.i,int", "5"),
        ("$.a.b[2]", "1"),
        ("$.f", "0"),
        ("$.n", "none"),
        ("$.s", "q\"\\xc3\\xa9\\xf0\\x9f\\x98\\x80"),
        ("$.fl", "1.5"),
        ("$.fl,int", "1"),
        ("$.zz", "none"),
        ("$.a.b[9]", "none"),
        ("'$.my\\.key'", "v"),
    ] {
        let value = stage.value(&format!("req.fhdr(j),json_query({path})"));
        assert_eq!(value.replace("\\\"", "\""), expected, "{path}");
    }
    stage.txn.req.set(b"j", "[".repeat(5000).as_bytes()).unwrap();
    assert_eq!(stage.value("req.fhdr(j),json_query($[0])"), "none");
}

#[test]
fn forwarded_values_are_taken_apart() {
    let mut stage = Stage::new();
    stage
        .txn
        .req
        .append(b"fw", br#"proto=https;host="haproxy.org:80";for="127.0.0.1:9999";by="_a:_b""#)
        .unwrap();
    for (expr, expected) in [
        ("req.fhdr(fw),rfc7239_is_valid", "1"),
        ("req.fhdr(fw),rfc7239_field(host)", "haproxy.org:80"),
        ("req.fhdr(fw),rfc7239_field(for),rfc7239_n2nn", "127.0.0.1"),
        ("req.fhdr(fw),rfc7239_field(for),rfc7239_n2np", "9999"),
        ("req.fhdr(fw),rfc7239_field(by),rfc7239_n2np", "_b"),
        ("str(\"[ab:cd:ff:ff:ff:ff:ff:ff]:9998\"),rfc7239_n2nn", "ab:cd:ff:ff:ff:ff:ff:ff"),
        ("str(127.0.0.1:99999),rfc7239_n2np", "none"),
        ("str(unknown),rfc7239_n2nn", "unknown"),
        ("str(\"proto=custom\"),rfc7239_is_valid", "0"),
        ("str(\"for=1.2.3.4, for=2.3.4.5\"),rfc7239_is_valid", "0"),
        ("str(\"for=1.2.3.4;for=1.1.1.1\"),rfc7239_is_valid", "0"),
        ("str(\"host=a.b:80\"),rfc7239_is_valid", "0"),
        ("str(),rfc7239_is_valid", "0"),
        ("src,rfc7239_nn", "192.0.2.1"),
        ("ipv6(::1),rfc7239_nn", "[::1]"),
        ("str(\"a=1&b=2\"),param(b,0x26)", "2"),
    ] {
        assert_eq!(stage.value(expr), expected, "{expr}");
    }
}

#[test]
fn tokens_ciphers_and_messages() {
    check(&[
        ("str(hello),aes_gcm_enc(128,MTIzNDU2Nzg5MDEy,MTIzNDU2Nzg5MDEyMzQ1Ng==,txn.tag),hex", "D91402C4B7"),
        (
            "str(hello),aes_cbc_enc(128,MTIzNDU2Nzg5MDEyMzQ1Ng==,MTIzNDU2Nzg5MDEyMzQ1Ng==),hex",
            "39B071B5BF699723EF33A644741BFA31",
        ),
        ("str(a.b.c),jwt_verify(HS256,secret)", "-3"),
        ("str(eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.x),jwt_header_query($.alg)", "HS256"),
        ("bin(089601),protobuf(1,int32)", "150"),
        ("bin(0000000003089601),ungrpc(1,int32)", "150"),
        ("bin(200200000000),mqtt_field_value(connack,reason_code)", "0"),
        ("bin(383d4649582e342e3201),fix_tag_value(BeginString)", "FIX.4.2"),
        ("bin(45b8003c00014000390600007f0000010a000009),ip.dst", "10.0.0.9"),
        ("int(10),x509_v_err_str", "X509_V_ERR_CERT_HAS_EXPIRED"),
        ("str(a),base2", "01100001"),
        ("str(fe),fe_exists", "1"),
        ("str(a),when(error)", "none"),
        ("str(a),when(!error)", "a"),
        ("str(example.com.),reverse_dom", "com.example"),
        ("str(1.2.3.4:80),ipmask(24)", "1.2.3.0"),
    ]);
}

#[test]
fn an_encrypted_token_gives_its_content() {
    // RFC 7516, appendix A.3: a key wrapped with AES, content in AES-CBC with HMAC.
    const TOKEN: &str = "eyJhbGciOiJBMTI4S1ciLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.\
        6KB707dM9YTIgHtLvtgWQ8mKwboJW3of9locizkDTHzBC2IlrT1oOQ.AxY8DCtDaGlsbGljb3RoZQ.\
        KDlTtXchhZTGufMYmOYGS4HffxPSUrfmqCHXaI9wOGY.U0m_YmjN04DJvceFICbCVQ";
    let mut stage = Stage::new();
    let by = |key: &str, token: &str| format!("str({token}),jwt_decrypt_secret({key})");
    assert_eq!(stage.value(&by("GawgguFyGrWKav7AX4VKUg==", TOKEN)), "Live long and prosper.");
    assert_eq!(stage.value(&by("AAAgguFyGrWKav7AX4VKUg==", TOKEN)), "none");
    assert_eq!(stage.value(&by("GawgguFyGrWKav7AX4VKUg==", &TOKEN.replace("KDlT", "KDlU"))), "none");
    stage.pass(Sets::HTTP_REQ, r#"set-var(txn.jwk) str('{"kty":"oct","k":"GawgguFyGrWKav7AX4VKUg"}')"#);
    assert_eq!(stage.value(&format!("str({TOKEN}),jwt_decrypt_jwk(txn.jwk)")), "Live long and prosper.");
}

#[test]
fn the_debug_converter_shows_its_sample_and_passes_it_on() {
    let mut stage = Stage::new();
    assert_eq!(stage.value("str(abc),debug(pre,stderr)"), "abc");
    assert_eq!(*stage.outside.traced.borrow(), b"stderr [debug] pre: type=str <abc>\n");
}
