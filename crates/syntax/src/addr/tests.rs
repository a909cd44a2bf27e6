use super::*;

fn bind(text: &str) -> Result<(Host, Ports), String> {
    parse(text, Accept::BIND, &Environment::new()).map(|address| (address.host, address.ports))
}

fn ip(text: &str) -> Host {
    Host::Ip(text.parse().expect("a literal"))
}

#[test]
fn bind_addresses_are_read() {
    let cases = [
        (":80", ip("0.0.0.0"), Ports::One(80)),
        ("*:80", ip("0.0.0.0"), Ports::One(80)),
        ("[::]:80", ip("::"), Ports::One(80)),
        (":::80", ip("::"), Ports::One(80)),
        ("::1:80", ip("::1"), Ports::One(80)),
        ("ipv6@:80", ip("::"), Ports::One(80)),
        ("ip@127.0.0.1:80", ip("127.0.0.1"), Ports::One(80)),
        ("127.0.0.1:80-85", ip("127.0.0.1"), Ports::Range(80, 85)),
        ("localhost:80", Host::Name("localhost".into(), Family::Any), Ports::One(80)),
        ("1.2.3:80", Host::Name("1.2.3".into(), Family::Any), Ports::One(80)),
        ("foo@:80", Host::Name("foo@".into(), Family::Any), Ports::One(80)),
        ("/tmp/s", Host::Unix("/tmp/s".into()), Ports::Missing),
        ("unix@tmp/s:80", Host::Unix("tmp/s:80".into()), Ports::Missing),
        ("stream+unix@/x", Host::Unix("/x".into()), Ports::Missing),
        ("stream+127.0.0.1:80", Host::Ip([127, 0, 0, 1].into()), Ports::One(80)),
        ("abns@x", Host::Abstract("x".into()), Ports::Missing),
        ("abnsz@x", Host::AbstractZero("x".into()), Ports::Missing),
        ("fd@3", Host::Fd(3), Ports::Missing),
        ("sockpair@4", Host::SockPair(4), Ports::Missing),
    ];
    for (text, host, ports) in cases {
        assert_eq!(bind(text), Ok((host, ports)), "{text}");
    }
}

#[test]
fn errors_are_the_oracles() {
    let cases = [
        ("80", "missing port specification in '80'"),
        ("127.0.0.1:", "missing port specification in '127.0.0.1:'"),
        ("127.0.0.1:0", "invalid port '0'"),
        (":65536", "invalid port '65536'"),
        ("127.0.0.1:80-", "invalid port ''"),
        ("127.0.0.1:81-80", "invalid port range '81-80'"),
        ("127.0.0.1:+80", "port offset not permitted here in '127.0.0.1:+80'"),
        ("127.0.0.1:80x", "invalid character 'x' in port number '80x' in '127.0.0.1:80x'"),
        ("fd@x", "file descriptor 'x' is not a valid integer in 'fd@x'"),
        ("fd@-1", "file descriptor '-1' is not a valid integer in 'fd@-1'"),
        ("ipv4@::1:80", "invalid address: '::1' in 'ipv4@::1:80'"),
        ("ipv6@127.0.0.1:80", "invalid address: '127.0.0.1' in 'ipv6@127.0.0.1:80'"),
        ("udp@:80", "dgram-type address not acceptable in 'udp@:80'"),
        ("uxdg@/tmp/x", "dgram-type address not acceptable in 'uxdg@/tmp/x'"),
        ("tcp@/tmp/x", "missing port specification in 'tcp@/tmp/x'"),
        ("*", "missing port specification in '*'"),
    ];
    for (text, message) in cases {
        assert_eq!(bind(text), Err(message.into()), "{text}");
    }
    let long = format!("/{}", "a".repeat(200));
    assert_eq!(bind(&long), Err(format!("socket path '{long}' too long (max 97)")));
}

#[test]
fn servers_need_no_port_and_may_have_a_relative_one() {
    let server = |text| parse(text, Accept::SERVER, &Environment::new()).map(|address| address.ports);
    assert_eq!(server("127.0.0.1"), Ok(Ports::Missing));
    assert_eq!(server("127.0.0.1:0"), Ok(Ports::One(0)));
    assert_eq!(server("127.0.0.1:+80"), Ok(Ports::Offset(80)));
    assert_eq!(server("127.0.0.1:-80"), Ok(Ports::Offset(-80)));
    assert_eq!(server("127.0.0.1:80-90"), Err("port range not permitted here in '127.0.0.1:80-90'".into()));
    assert_eq!(server("127.0.0.1:70000"), Err("invalid port '70000'".into()));
    assert_eq!(server("fd@3"), Err("a file descriptor is not acceptable here in 'fd@3'".into()));
}

#[test]
fn prefixes_choose_the_transport() {
    let of = |text| {
        parse(text, Accept::LOG, &Environment::new()).map(|address| (address.transport, address.mptcp))
    };
    assert_eq!(of("127.0.0.1:514"), Ok((Transport::Datagram, false)));
    assert_eq!(of("tcp@127.0.0.1:514"), Ok((Transport::Stream, false)));
    assert_eq!(of("mptcp6@[::1]:514"), Ok((Transport::Stream, true)));
    assert_eq!(of("quic+ipv4@127.0.0.1:514"), Ok((Transport::Quic, false)));
    assert_eq!(of("dgram+fd@3"), Ok((Transport::Datagram, false)));
}

#[test]
fn a_list_may_end_with_a_comma_but_not_begin_with_one() {
    let count = |text| parse_list(text, Accept::BIND, &Environment::new()).map(|list| list.len());
    assert_eq!(count(":80,:81"), Ok(2));
    assert_eq!(count(":80,"), Ok(1));
    assert_eq!(count(",:80"), Err("'' resolves to an empty address (environment variable missing?)".into()));
}

#[test]
fn variables_are_replaced_and_errors_show_the_text_as_written() {
    let mut environment = Environment::new();
    environment.set("PORT", "80");
    environment.set("NET", "10.0");
    let read = |text| parse(text, Accept::BIND, &environment).map(|a| (a.host, a.ports));
    assert_eq!(read("${NET}.0.1:$PORT").unwrap(), (ip("10.0.0.1"), Ports::One(80)));
    assert_eq!(read(":${PORT}81").unwrap().1, Ports::One(8081));
    assert_eq!(read("*:$NOPE").unwrap_err(), "missing port specification in '*:$NOPE'");
    assert_eq!(
        read("${NOPE").unwrap_err(),
        "'${NOPE' resolves to an empty address (environment variable missing?)"
    );
    assert_eq!(read(":\\$PORT").unwrap_err(), "invalid character '\\' in port number '\\80' in ':\\$PORT'");
    assert_eq!(expand("a$", &environment), "a");
}
