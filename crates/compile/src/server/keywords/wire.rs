//! Words about how a server is reached: address, source, PROXY header, options of TCP, protocol.

use program::server::{ServerNamespace, Ws};
use syntax::addr::{self, Accept, Ports};

use super::check::unresolved;
use super::{QUIC, ServerKeyword, naming, off, on, own, proto, text, time, vain, word};
use crate::draft::{Deferred, Draft, InitAddr, ServerDraft};
use crate::server::source;
use crate::statement::{Statement, Step};
use crate::units;

/// The words of this family.
pub(super) const KEYWORDS: &[ServerKeyword] = &[
    word(
        "cc",
        1,
        |v, s, _| text(s, &mut v.congestion, "'cc' : missing TCP congestion control algorithm"),
        "TCP congestion control algorithm.",
    ).example("cc reno").default("the system's")
    .configured(),
    word(
        "idle-ping",
        1,
        |v, s, p| {
            let d = time(s, v, p, "idle-ping", "'idle-ping' expects an argument.")?;
            v.idle_ping = (!d.is_zero()).then_some(d);
            Ok(())
        },
        "Time after which an idle HTTP/2 connection is probed.",
    ).example("idle-ping 30s").default("never"),
    word("init-addr", 1, init_addr, "How the address is found at start.").example("init-addr last,libc,none").default("last,libc").configured(),
    word("log-bufsize", 1, log_bufsize, "Memory for lines that wait for a server of logs.")
        .example("log-bufsize 100000")
        .default("tune.bufsize")
        .configured(),
    word("log-proto", 1, log_proto, "How lines are told apart on the way to a server of logs.")
        .example("log-proto octet-count")
        .default("legacy")
        .configured(),
    word(
        "namespace",
        1,
        |v, s, _| {
            let word = s.word("'namespace' : expects <name> as argument")?;
            v.namespace = match word.text() {
                "*" => ServerNamespace::Client,
                _ => ServerNamespace::Named(crate::namespaces::open(word).map_err(|why| s.fail(why))?),
            };
            Ok(())
        },
        "The network namespace of connections; * is that of the client.",
    )
    .example("namespace *")
    .default("that of the process")
    .configured(),
    word("no-send-proxy", 0, |v, _, _| off(&mut v.send_proxy.v1), "No PROXY header version 1.").example("no-send-proxy"),
    word("no-send-proxy-v2", 0, |v, _, _| off(&mut v.send_proxy.v2), "No PROXY header version 2.").example("no-send-proxy-v2"),
    word("no-send-proxy-v2-ssl", 0, no_proxy_ssl, "No PROXY header with TLS facts.").example("no-send-proxy-v2-ssl").configured(),
    word(
        "no-send-proxy-v2-ssl-cn",
        0,
        |v, s, d| {
            v.send_proxy.options.cert_cn = false;
            no_proxy_ssl(v, s, d)
        },
        "No PROXY header with the client's name.",
    ).example("no-send-proxy-v2-ssl-cn")
    .configured(),
    word("no-tfo", 0, |v, _, _| off(&mut v.tfo), "No TCP Fast Open.").example("no-tfo"),
    word(
        "proto",
        1,
        |v, s, _| proto(s, "proto").map(|mux| v.proto = Some(mux)),
        "Protocol spoken without negotiation.",
    ).example("proto h2").default("HTTP/1, or what ALPN agrees on"),
    word("proxy-v2-options", 1, proxy_options, "What the PROXY header carries besides addresses.").example("proxy-v2-options authority,crc32c").default("none"),
    vain("quic-cc-algo", QUIC).configured(),
    word("resolve-net", 1, naming::net, "Networks whose addresses are taken first.")
        .example("resolve-net 10.0.0.0/8").default("none").configured(),
    word("resolve-opts", 1, naming::options, "Whether servers of a name may share an address, and take weights from SRV records.")
        .example("resolve-opts allow-dup-ip").default("no address twice, weights of the records").configured(),
    word("resolve-prefer", 1, naming::prefer, "Which addresses are asked for first.")
        .example("resolve-prefer ipv4").default("ipv6").configured(),
    word("resolvers", 1, naming::resolvers, "The section that keeps the address of its name fresh.").default("none").configured(),
    word("send-proxy", 0, |v, _, _| on(&mut v.send_proxy.v1), "Send a PROXY header version 1.").example("send-proxy"),
    word("send-proxy-v2", 0, |v, _, _| on(&mut v.send_proxy.v2), "Send a PROXY header version 2.").example("send-proxy-v2"),
    word("send-proxy-v2-ssl", 0, send_proxy_ssl, "Send a PROXY header with TLS facts.").example("send-proxy-v2-ssl"),
    word(
        "send-proxy-v2-ssl-cn",
        0,
        |v, s, d| {
            v.send_proxy.options.cert_cn = true;
            send_proxy_ssl(v, s, d)
        },
        "Send a PROXY header with TLS facts and the client's name.",
    ).example("send-proxy-v2-ssl-cn"),
    word("set-proxy-v2-tlv-fmt", 0, tlv, "A further field of the PROXY header.").example("send-proxy-v2 set-proxy-v2-tlv-fmt(0xE1) %ci"),
    word("socks4", 1, socks4, "SOCKS4 proxy that connections go through.").example("socks4 127.0.0.1:1080").default("none").configured(),
    word(
        "source",
        -1,
        |v, s, _| {
            const EXPECTS: &str = "'source' expects <addr>[:<port>[-<port>]], and optionally 'usesrc' <addr>, and 'interface' <name> as argument.";
            v.source = Some(source::parse(s, EXPECTS, true)?);
            Ok(())
        },
        "Address that connections come from.",
    ).example("source 127.0.0.1").default("that of the backend"),
    word(
        "tcp-md5sig",
        1,
        |v, s, _| text(s, &mut v.md5sig, "'tcp-md5sig' : missing TCP MD5 signature password"),
        "TCP MD5 signature (RFC 2385).",
    )
    .configured(),
    word(
        "tcp-ut",
        1,
        |v, s, _| {
            let word = s.word("'tcp-ut' : missing TCP User Timeout value")?;
            let ms = units::millis(word.text()).map_err(|fault| match fault {
                units::TimeFault::Overflow => s.time_fault(fault, word, "tcp-ut", |_| String::new()),
                _ => s.fail("'tcp-ut' : expects a positive delay in milliseconds"),
            })?;
            v.tcp_ut = units::limit(ms);
            Ok(())
        },
        "TCP user timeout.",
    ).example("tcp-ut 30s").default("the system's")
    .configured(),
    word("tfo", 0, |v, _, _| on(&mut v.tfo), "TCP Fast Open.").example("tfo"),
    own(
        "usesrc",
        0,
        |_, s, _| Err(s.fail("'usesrc' only allowed after a 'source' statement.")),
        "Part of 'source'.",
    ),
    word(
        "ws",
        1,
        |v, s, _| {
            v.ws = match s.word("'ws' has to be 'auto', 'h1' or 'h2'")?.text() {
                "auto" => Ws::Auto,
                "h1" => Ws::H1,
                "h2" => Ws::H2,
                _ => return Err(s.fail("'ws' has to be 'auto', 'h1' or 'h2'")),
            };
            Ok(())
        },
        "How WebSockets reach the server.",
    ).example("ws h1").default("auto"),
];

fn socks4(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'socks4' expects <addr>:<port> as argument.")?.text().to_owned();
    let fail = |why: String| s.fail(format!("'socks4 {word}' : {why}"));
    let accept = Accept { port_required: true, offsets: false, datagrams: false, ..Accept::SERVER };
    let found = addr::parse(&word, accept, s.around.environment).map_err(fail)?;
    let Ports::One(port) = found.ports else {
        return Err(fail(format!("missing port specification in '{word}'.")));
    };
    let ip = crate::resolve::ip(&found.host).ok_or_else(|| fail(unresolved(&found.host, &word)))?;
    v.socks4 = Some(std::net::SocketAddr::new(ip, port));
    Ok(())
}

/// What goes into the header is told by the facts at hand, so both words mean the same.
fn send_proxy_ssl(v: &mut ServerDraft, _: &mut Statement<'_>, _: &mut Draft) -> Step {
    v.send_proxy.options.ssl = true;
    on(&mut v.send_proxy.v2)
}

fn no_proxy_ssl(v: &mut ServerDraft, _: &mut Statement<'_>, _: &mut Draft) -> Step {
    v.send_proxy.options.ssl = false;
    off(&mut v.send_proxy.v2)
}

fn proxy_options(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'' : proxy v2 option not implemented")?;
    for option in word.text().split(',') {
        let options = &mut v.send_proxy.options;
        options.ssl |= matches!(option, "ssl" | "cert-cn" | "cert-key" | "cert-sig" | "ssl-cipher");
        match option {
            "ssl" => {}
            "cert-cn" => options.cert_cn = true,
            "cert-key" => options.cert_key = true,
            "cert-sig" => options.cert_sig = true,
            "ssl-cipher" => options.cipher = true,
            "authority" => options.authority = true,
            "crc32c" => options.crc32c = true,
            "unique-id" => options.unique_id = true,
            _ => return Err(s.fail(format!("'{option}' : proxy v2 option not implemented"))),
        }
    }
    Ok(())
}

/// `set-proxy-v2-tlv-fmt(type) <format>`.
fn tlv(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let name = s.eaten().text();
    let kind = name.split_once('(').map_or(Ok(0), |(_, number)| tlv_type(number));
    let kind = kind.map_err(|why| s.fail(format!("'{name}' : {why}")))?;
    let word = s.args.position();
    // No format at all is a field without a value.
    s.args.next();
    v.send_proxy.tlvs.push((kind, Deferred { at: s.at, word }));
    Ok(())
}

/// A type before its closing parenthesis, in the notations of C: decimal, 0x20, 040.
fn tlv_type(text: &str) -> Result<u8, &'static str> {
    const EXPECTS: &str = "expects set-proxy-v2-tlv(<TLV ID>)";
    const RANGE: &str = "the maximum allowed TLV ID is 255";
    let (number, _) = text.split_once(')').ok_or(EXPECTS)?;
    let number = number.trim_start();
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if number.is_empty() {
        return Err("could not convert TLV ID");
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(EXPECTS);
    }
    match u8::from_str_radix(digits, radix) {
        Ok(kind) if kind == 0 || !negative => Ok(kind),
        _ => Err(RANGE),
    }
}

fn init_addr(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    v.init_addr.clear();
    // HAProxy takes it without a word for no method at all.
    let Some(word) = s.next() else { return Ok(()) };
    for method in word.text().split(',') {
        v.init_addr.push(match method {
            "last" => InitAddr::Last,
            "libc" => InitAddr::Libc,
            "none" => InitAddr::None,
            other => InitAddr::Ip(other.parse().map_err(|_| {
                s.fail(format!(
                    "'init-addr' : unknown init-addr method '{other}', supported methods are 'libc', 'last', 'none'."
                ))
            })?),
        });
    }
    Ok(())
}

fn log_bufsize(server: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'log-bufsize' expects an integer argument.")?;
    let size = usize::try_from(units::lenient(word.text())).ok().filter(|n| *n > 0);
    server.log_bufsize = Some(size.ok_or_else(|| s.fail("log-bufsize has to be > 0."))?);
    Ok(())
}

fn log_proto(server: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    server.octet_count = match s.next().map_or("", syntax::Word::text) {
        "octet-count" => true,
        "legacy" => false,
        other => {
            return Err(
                s.fail(format!("'log-proto' expects one of 'legacy' or 'octet-count' but got '{other}'"))
            );
        }
    };
    Ok(())
}
