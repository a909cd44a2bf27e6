//! The words of `server` lines.

use std::net::IpAddr;
use std::time::Duration;

use balance::HashKey;
use program::server::{Observe, OnError, Ws};
use syntax::{Diagnostic, Level};

use super::{InitAddr, InitState, ServerDraft, source};
use crate::draft::{Deferred, Draft, Named};
use crate::statement::{Statement, Step, bracket, clamp, trailing_text};
use crate::tls::{Verify, words as tls_words};
use crate::units::{self, TimeFault};
use tls::suites::Version;

/// Sets one word of a server line.
pub(crate) type Set = fn(&mut ServerDraft, &mut Statement<'_>, &mut Draft) -> Step;

/// One word of a `server` line.
pub(crate) struct ServerKeyword {
    /// The word.
    pub name: &'static str,
    /// How many words follow, for the dump; -1 for as many as it likes.
    pub args: i8,
    /// What it does; `None`: not built yet.
    pub set: Option<Set>,
    /// It belongs to TLS and is harmless without `ssl`.
    pub tls: bool,
    /// `default-server` may have it.
    pub in_default: bool,
    /// One line of documentation.
    pub doc: &'static str,
}

const fn word(name: &'static str, args: i8, set: Set, doc: &'static str) -> ServerKeyword {
    ServerKeyword { name, args, set: Some(set), tls: false, in_default: true, doc }
}

const fn own(name: &'static str, args: i8, set: Set, doc: &'static str) -> ServerKeyword {
    ServerKeyword { name, args, set: Some(set), tls: false, in_default: false, doc }
}

const fn later(name: &'static str, args: i8) -> ServerKeyword {
    ServerKeyword { name, args, set: None, tls: false, in_default: true, doc: "Not built yet." }
}

const fn tls(name: &'static str, args: i8) -> ServerKeyword {
    ServerKeyword { name, args, set: None, tls: true, in_default: true, doc: "Part of TLS." }
}

/// All words, by name as the dump has them.
pub(crate) const KEYWORDS: &[ServerKeyword] = &[
    word("addr", 1, |v, s, _| ip(s, "addr").map(|a| v.check_addr = Some(a)), "Address for health checks."),
    word(
        "agent-addr",
        1,
        |v, s, _| ip(s, "agent-addr").map(|a| v.agent_addr = Some(a)),
        "Address of the agent.",
    ),
    word("agent-check", 0, |v, _, _| on(&mut v.agent), "Ask an agent for the state of the server."),
    word(
        "agent-inter",
        1,
        |v, s, _| delay(s, v, "agent-inter").map(|d| v.agent_inter = Some(d)),
        "Time between agent checks.",
    ),
    word(
        "agent-port",
        1,
        |v, s, _| {
            v.agent_port = u16::try_from(value(s, "agent-port", "expects a port number as argument.")?).ok();
            Ok(())
        },
        "Port of the agent.",
    ),
    word(
        "agent-send",
        1,
        |v, s, _| {
            v.agent_send = s.word("'agent-send' expects a string as argument.")?.bytes().into();
            Ok(())
        },
        "What is sent to the agent first.",
    ),
    tls("allow-0rtt", 0),
    word(
        "alpn",
        1,
        |v, s, _| {
            let w = s.word("'alpn' : missing the comma-delimited ALPN protocol suite")?;
            tls_words::alpn(&mut v.tls.words, w.text()).map_err(|e| s.fail(format!("'alpn' : {e}")))
        },
        "Protocols offered by ALPN.",
    ),
    word("backup", 0, |v, _, _| on(&mut v.backup), "Used only when all others are down."),
    word(
        "ca-file",
        1,
        |v, s, _| text(s, &mut v.tls.words.ca_file, "'ca-file' : missing value"),
        "Authorities of server certificates.",
    ),
    word(
        "cc",
        1,
        |v, s, _| text(s, &mut v.congestion, "'cc' : missing congestion control algorithm"),
        "TCP congestion control algorithm.",
    ),
    word("check", 0, |v, _, _| on(&mut v.check), "Check the server's health."),
    word(
        "check-alpn",
        1,
        |v, s, _| {
            let w = s.word("'check-alpn' : missing the comma-delimited ALPN protocol suite")?;
            let mut words = crate::tls::Words::default();
            tls_words::alpn(&mut words, w.text()).map_err(|e| s.fail(format!("'check-alpn' : {e}")))?;
            v.tls.check_alpn = words.alpn;
            Ok(())
        },
        "Protocols offered by checks.",
    ),
    word(
        "check-pool-conn-name",
        1,
        |v, s, _| text(s, &mut v.check_pool_conn_name, "'check-pool-conn-name' : missing value"),
        "Name of the idle connections that checks may use.",
    ),
    word(
        "check-proto",
        1,
        |v, s, _| proto(s, "check-proto").map(|h2| v.check_h2 = Some(h2)),
        "Protocol of checks.",
    ),
    word("check-reuse-pool", 0, |v, _, _| on(&mut v.check_reuse_pool), "Checks may use idle connections."),
    word("check-send-proxy", 0, |v, _, _| on(&mut v.check_send_proxy), "Checks begin with a PROXY header."),
    word(
        "check-sni",
        1,
        |v, s, _| text(s, &mut v.tls.check_sni, "'check-sni' : missing value"),
        "Server name sent by checks.",
    ),
    tls("check-sni-auto", 0),
    word("check-ssl", 0, |v, _, _| on(&mut v.tls.check), "Checks speak TLS."),
    word(
        "check-via-socks4",
        0,
        |v, _, _| on(&mut v.check_via_socks4),
        "Checks go through the SOCKS4 proxy, too.",
    ),
    word(
        "ciphers",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.ciphers, "'ciphers' : missing value"),
        "Ciphers of TLS 1.2.",
    ),
    word(
        "ciphersuites",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.ciphersuites, "'ciphersuites' : missing value"),
        "Cipher suites of TLS 1.3.",
    ),
    tls("client-sigalgs", 1),
    word(
        "cookie",
        1,
        |v, s, _| {
            v.cookie = Some(s.word("'cookie' expects <value> as argument.")?.bytes().into());
            Ok(())
        },
        "Value of the persistence cookie.",
    ),
    word(
        "crl-file",
        1,
        |v, s, _| text(s, &mut v.tls.words.crl_file, "'crl-file' : missing value"),
        "Revoked server certificates.",
    ),
    word(
        "crt",
        1,
        |v, s, _| text(s, &mut v.tls.crt, "'crt' : missing value"),
        "Certificate shown to the server.",
    ),
    word(
        "curves",
        1,
        |v, s, _| text(s, &mut v.tls.words.policy.curves, "'curves' : missing value"),
        "Curves of the key exchange.",
    ),
    word("disabled", 0, |v, _, _| on(&mut v.disabled), "Starts in maintenance."),
    word(
        "downinter",
        1,
        |v, s, _| delay(s, v, "downinter").map(|d| v.downinter = Some(d)),
        "Time between checks while down.",
    ),
    word("enabled", 0, |v, _, _| off(&mut v.disabled), "Does not start in maintenance."),
    word(
        "error-limit",
        1,
        |v, s, _| {
            let n = value(s, "error-limit", "expects an integer argument.")?;
            v.error_limit = strictly(s, n, "error-limit has to be > 0.")?;
            Ok(())
        },
        "Errors that 'observe' tolerates.",
    ),
    word(
        "fall",
        1,
        |v, s, _| {
            let n = value(s, "fall", "expects an integer argument.")?;
            v.fall = strictly(s, n, "'fall' has to be > 0.")?;
            Ok(())
        },
        "Failed checks before the server is down.",
    ),
    word(
        "fastinter",
        1,
        |v, s, _| delay(s, v, "fastinter").map(|d| v.fastinter = Some(d)),
        "Time between checks while changing.",
    ),
    word(
        "force-sslv3",
        0,
        |v, _, _| {
            tls_words::force(&mut v.tls.words, Version::Ssl3);
            Ok(())
        },
        "This version only.",
    ),
    word(
        "force-tlsv10",
        0,
        |v, _, _| {
            tls_words::force(&mut v.tls.words, Version::Tls10);
            Ok(())
        },
        "This version only.",
    ),
    word(
        "force-tlsv11",
        0,
        |v, _, _| {
            tls_words::force(&mut v.tls.words, Version::Tls11);
            Ok(())
        },
        "This version only.",
    ),
    word(
        "force-tlsv12",
        0,
        |v, _, _| {
            tls_words::force(&mut v.tls.words, Version::Tls12);
            Ok(())
        },
        "This version only.",
    ),
    word(
        "force-tlsv13",
        0,
        |v, _, _| {
            tls_words::force(&mut v.tls.words, Version::Tls13);
            Ok(())
        },
        "This version only.",
    ),
    own(
        "guid",
        1,
        |v, s, _| {
            let word = s.word("'guid' : expects a value")?;
            crate::proxy::basic::check_guid(s, word.text())?;
            v.guid = Some(word.text().into());
            Ok(())
        },
        "Unique name of the server.",
    ),
    word(
        "hash-key",
        1,
        |v, s, _| {
            v.hash_key = match s
                .word("'hash-key' expects 'id', 'id32', 'guid', 'addr', or 'addr-port' value")?
                .text()
            {
                "id" => HashKey::Id,
                "id32" => HashKey::Id32,
                "guid" => HashKey::Guid,
                "addr" => HashKey::Addr,
                "addr-port" => HashKey::AddrPort,
                _ => return Err(s.fail("'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'")),
            };
            Ok(())
        },
        "What places the server on the consistent ring.",
    ),
    word(
        "healthcheck",
        1,
        |v, s, _| {
            let word = s.word("'healthcheck' expects a healthcheck name as argument.")?;
            v.healthcheck = Some(word.text().into());
            Ok(())
        },
        "The check of a healthcheck section.",
    ),
    own(
        "id",
        1,
        |v, s, _| {
            let n = value(s, "id", "expects an integer argument.")?;
            v.id = Some(
                u32::try_from(n)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| s.fail("'id' : custom id has to be between 1 and 4294967295."))?,
            );
            Ok(())
        },
        "Number of the server.",
    ),
    word(
        "idle-ping",
        1,
        |v, s, _| delay(s, v, "idle-ping").map(drop),
        "Probes of idle HTTP/2 connections (no effect without).",
    ),
    word("init-addr", 1, init_addr, "How the address is found at start."),
    word(
        "init-state",
        1,
        |v, s, _| {
            let word =
                s.word("'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down'.")?;
            v.init_state = match word.text() {
            "none" => InitState::Up,
            "up" => InitState::Up,
            "fully-up" => InitState::FullyUp,
            "down" => InitState::Down,
            "fully-down" => InitState::FullyDown,
            _ => return Err(s.fail(format!("'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down' but got '{word}'"))),
        };
            Ok(())
        },
        "State before the first check.",
    ),
    word("inter", 1, |v, s, _| delay(s, v, "inter").map(|d| v.inter = d), "Time between checks."),
    tls("ktls", 1),
    later("log-bufsize", 1),
    later("log-proto", 1),
    word(
        "max-reuse",
        1,
        |v, s, _| {
            v.max_reuse = signed(value(s, "max-reuse", "expects <value> as argument")?);
            Ok(())
        },
        "How often a connection is reused, -1: no limit.",
    ),
    word(
        "maxconn",
        1,
        |v, s, _| {
            v.maxconn = clamp(value(s, "maxconn", "expects an integer argument.")?);
            Ok(())
        },
        "Most requests at a time.",
    ),
    word(
        "maxqueue",
        1,
        |v, s, _| {
            v.maxqueue = clamp(value(s, "maxqueue", "expects an integer argument.")?);
            Ok(())
        },
        "Most requests that wait for this server.",
    ),
    word(
        "minconn",
        1,
        |v, s, _| {
            v.minconn = clamp(value(s, "minconn", "expects an integer argument.")?);
            Ok(())
        },
        "Lower bound of a limit that follows the load.",
    ),
    word(
        "namespace",
        1,
        |v, s, _| {
            let word = s.word("'namespace' : missing namespace name")?;
            if !std::path::Path::new("/var/run/netns").join(word.text()).exists() {
                return Err(s.fail(format!("Cannot open namespace '{word}'")));
            }
            v.namespace = Some(word.text().into());
            Ok(())
        },
        "Network namespace.",
    ),
    word("no-agent-check", 0, |v, _, _| off(&mut v.agent), "No agent check."),
    word("no-backup", 0, |v, _, _| off(&mut v.backup), "Not a backup."),
    word("no-check", 0, |v, _, _| off(&mut v.check), "No health check."),
    word(
        "no-check-reuse-pool",
        0,
        |v, _, _| off(&mut v.check_reuse_pool),
        "Checks make their own connections.",
    ),
    word("no-check-send-proxy", 0, |v, _, _| off(&mut v.check_send_proxy), "No PROXY header on checks."),
    tls("no-check-sni-auto", 0),
    word("no-check-ssl", 0, |v, _, _| off(&mut v.tls.check), "Checks without TLS."),
    word("no-renegotiate", 0, |_, _, _| Ok(()), "Connections are never renegotiated."),
    word("no-send-proxy", 0, |v, _, _| no_proxy(v, 1), "No PROXY header version 1."),
    word("no-send-proxy-v2", 0, |v, _, _| no_proxy(v, 2), "No PROXY header version 2."),
    word("no-send-proxy-v2-ssl", 0, |v, _, _| no_proxy(v, 2), "No PROXY header with TLS facts."),
    word("no-send-proxy-v2-ssl-cn", 0, |v, _, _| no_proxy(v, 2), "No PROXY header with the client's name."),
    word("no-sni-auto", 0, |v, _, _| off(&mut v.tls.auto), "No server name but that of 'sni'."),
    word("no-ssl", 0, |v, _, _| off(&mut v.tls.on), "No TLS."),
    word("no-ssl-reuse", 0, |v, _, _| on(&mut v.tls.no_reuse), "Sessions are not resumed."),
    word(
        "no-sslv3",
        0,
        |v, _, _| {
            tls_words::without(&mut v.tls.words, Version::Ssl3);
            Ok(())
        },
        "Without this version.",
    ),
    word("no-tfo", 0, |v, _, _| off(&mut v.tfo), "No TCP Fast Open."),
    word(
        "no-tls-tickets",
        0,
        |v, _, _| {
            v.tls.words.no_tickets = Some(true);
            Ok(())
        },
        "No session tickets.",
    ),
    word(
        "no-tlsv10",
        0,
        |v, _, _| {
            tls_words::without(&mut v.tls.words, Version::Tls10);
            Ok(())
        },
        "Without this version.",
    ),
    word(
        "no-tlsv11",
        0,
        |v, _, _| {
            tls_words::without(&mut v.tls.words, Version::Tls11);
            Ok(())
        },
        "Without this version.",
    ),
    word(
        "no-tlsv12",
        0,
        |v, _, _| {
            tls_words::without(&mut v.tls.words, Version::Tls12);
            Ok(())
        },
        "Without this version.",
    ),
    word(
        "no-tlsv13",
        0,
        |v, _, _| {
            tls_words::without(&mut v.tls.words, Version::Tls13);
            Ok(())
        },
        "Without this version.",
    ),
    word("non-stick", 0, |v, _, _| on(&mut v.non_stick), "Never stored in a stick table."),
    tls("npn", 1),
    word("observe", 1, observe, "Learn the health from live traffic."),
    word("on-error", 1, on_error, "What happens when too many errors were observed."),
    word(
        "on-marked-down",
        1,
        |v, s, _| {
            v.down_kills = choice(s, "on-marked-down", "shutdown-sessions")?;
            Ok(())
        },
        "What happens to sessions when the server goes down.",
    ),
    word(
        "on-marked-up",
        1,
        |v, s, _| {
            v.up_kills_backups = choice(s, "on-marked-up", "shutdown-backup-sessions")?;
            Ok(())
        },
        "What happens to sessions on backups when the server comes up.",
    ),
    word(
        "pool-conn-name",
        1,
        |v, s, _| {
            let word = s.args.position();
            s.word("'pool-conn-name' expects <value> as argument")?;
            v.pool_conn_name = Some(Deferred { at: s.at, word });
            Ok(())
        },
        "Part of the identity of idle connections.",
    ),
    word(
        "pool-low-conn",
        1,
        |v, s, _| {
            v.pool_low_conn = clamp(value(s, "pool-low-conn", "expects <value> as argument")?);
            Ok(())
        },
        "Idle connections a thread keeps for itself.",
    ),
    word(
        "pool-max-conn",
        1,
        |v, s, _| {
            v.pool_max_conn = match signed(value(s, "pool-max-conn", "expects <value> as argument")?) {
                n if n < -1 => return Err(s.fail("'pool-max-conn' must be >= -1")),
                n => n,
            };
            Ok(())
        },
        "Most idle connections kept, -1: no limit.",
    ),
    word(
        "pool-purge-delay",
        1,
        |v, s, _| {
            let word = s.word("'pool-purge-delay' expects <value> as argument")?;
            let ms = s.millis(word, "pool-purge-delay", |c| {
                format!("unexpected character '{c}' in argument to <pool-purge-delay>.")
            })?;
            v.pool_purge_delay = Duration::from_millis(ms);
            Ok(())
        },
        "Time after which half of the idle connections go.",
    ),
    word(
        "port",
        1,
        |v, s, _| {
            v.check_port = u16::try_from(value(s, "port", "expects a port number as argument.")?).ok();
            Ok(())
        },
        "Port for health checks.",
    ),
    word(
        "proto",
        1,
        |v, s, _| {
            let at = s.args.position();
            v.h2 = proto(s, "proto")?;
            v.proto = s.line.words().get(at).map(|w| w.text().into());
            Ok(())
        },
        "Protocol spoken without negotiation.",
    ),
    word("proxy-v2-options", 1, proxy_options, "What the PROXY header carries besides addresses."),
    later("quic-cc-algo", 1),
    own(
        "redir",
        1,
        |v, s, _| {
            v.redir = Some(s.word("'redir' expects <prefix> as argument.")?.bytes().into());
            Ok(())
        },
        "Redirect GET and HEAD here instead of connecting.",
    ),
    word("renegotiate", 0, |_, _, _| Ok(()), "No effect: connections are never renegotiated."),
    later("resolve-net", 1),
    later("resolve-opts", 1),
    later("resolve-prefer", 1),
    later("resolvers", 1),
    word(
        "rise",
        1,
        |v, s, _| {
            let n = value(s, "rise", "expects an integer argument.")?;
            v.rise = strictly(s, n, "'rise' has to be > 0.")?;
            Ok(())
        },
        "Passed checks before the server is up.",
    ),
    word("send-proxy", 0, |v, _, _| send_proxy(v, 1), "Send a PROXY header version 1."),
    word("send-proxy-v2", 0, |v, _, _| send_proxy(v, 2), "Send a PROXY header version 2."),
    word(
        "send-proxy-v2-ssl",
        0,
        |v, _, _| {
            v.send_proxy.options.ssl = true;
            send_proxy(v, 2)
        },
        "Send a PROXY header with TLS facts.",
    ),
    word(
        "send-proxy-v2-ssl-cn",
        0,
        |v, _, _| {
            v.send_proxy.options.ssl = true;
            send_proxy(v, 2)
        },
        "Send a PROXY header with TLS facts and the client's name.",
    ),
    word("set-proxy-v2-tlv-fmt", 0, tlv, "A further field of the PROXY header."),
    word(
        "shard",
        1,
        |_, s, _| value(s, "shard", "expects an integer argument.").map(drop),
        "Shard of a peer (no effect on others).",
    ),
    tls("sigalgs", 1),
    word(
        "slowstart",
        1,
        |v, s, _| {
            let d = time(s, v, "slowstart", "'slowstart' expects a time in milliseconds as argument.")?;
            v.slowstart = (!d.is_zero()).then_some(d);
            Ok(())
        },
        "Time over which the weight grows after coming up.",
    ),
    word(
        "sni",
        1,
        |v, s, _| {
            let word = s.args.position();
            s.word("'sni' : missing sni expression")?;
            v.tls.sni = Some(Deferred { at: s.at, word });
            Ok(())
        },
        "Expression of the server name.",
    ),
    word("sni-auto", 0, |v, _, _| on(&mut v.tls.auto), "The host of the request is sent as server name."),
    word("socks4", 1, socks4, "SOCKS4 proxy that connections go through."),
    word(
        "source",
        -1,
        |v, s, _| {
            const EXPECTS: &str = "'source' expects <addr>[:<port>[-<port>]], and optionally 'usesrc' <addr>, and 'interface' <name> as argument.";
            v.source = Some(source::parse(s, EXPECTS, true)?);
            Ok(())
        },
        "Address that connections come from.",
    ),
    word("ssl", 0, |v, _, _| on(&mut v.tls.on), "Speak TLS to the server."),
    word(
        "ssl-max-ver",
        1,
        |v, s, _| {
            let w = s.word("'ssl-max-ver' : missing version")?;
            tls_words::version(&mut v.tls.words.policy.max, w.text()).map_err(|e| s.fail(e))
        },
        "Highest version.",
    ),
    word(
        "ssl-min-ver",
        1,
        |v, s, _| {
            let w = s.word("'ssl-min-ver' : missing version")?;
            tls_words::version(&mut v.tls.words.policy.min, w.text()).map_err(|e| s.fail(e))
        },
        "Lowest version.",
    ),
    word("ssl-reuse", 0, |v, _, _| off(&mut v.tls.no_reuse), "Sessions are resumed."),
    word("stick", 0, |v, _, _| off(&mut v.non_stick), "May be stored in stick tables."),
    word(
        "strict-maxconn",
        0,
        |v, _, _| on(&mut v.strict_maxconn),
        "Count connections, not requests, against maxconn.",
    ),
    word(
        "tcp-md5sig",
        1,
        |v, s, _| text(s, &mut v.md5sig, "'tcp-md5sig' : expects a password"),
        "TCP MD5 signature (RFC 2385).",
    ),
    word(
        "tcp-ut",
        1,
        |v, s, _| {
            let word = s.word("'tcp-ut' : missing TCP User Timeout value")?;
            let ms = units::millis(word.text())
                .map_err(|_| s.fail("'tcp-ut' : expects a positive delay in milliseconds"))?;
            v.tcp_ut = units::limit(ms);
            Ok(())
        },
        "TCP user timeout.",
    ),
    word("tfo", 0, |v, _, _| on(&mut v.tfo), "TCP Fast Open."),
    word(
        "tls-tickets",
        0,
        |v, _, _| {
            v.tls.words.no_tickets = Some(false);
            Ok(())
        },
        "Session tickets.",
    ),
    word(
        "track",
        1,
        |v, s, _| {
            let word = s.word("'track' expects [<proxy>/]<server> as argument.")?;
            if v.check {
                return Err(s.fail("unable to enable checks and tracking at the same time!"));
            }
            v.track = Some(Named { name: word.text().into(), span: word.span() });
            Ok(())
        },
        "Take the health of another server.",
    ),
    own(
        "usesrc",
        0,
        |_, s, _| Err(s.fail("'usesrc' only allowed after a 'source' statement.")),
        "Part of 'source'.",
    ),
    word("verify", 1, verify, "Whether the server's certificate is verified."),
    word(
        "verifyhost",
        1,
        |v, s, _| text(s, &mut v.tls.host, "'verifyhost' : missing value"),
        "Name that the server's certificate must be for.",
    ),
    word(
        "weight",
        1,
        |v, s, _| {
            let n = value(s, "weight", "expects an integer argument.")?;
            v.weight = u32::try_from(n).ok().filter(|n| *n <= 256).ok_or_else(|| {
                s.fail(format!("weight of server {} is not within 0 and 256 ({n}).", v.name))
            })?;
            Ok(())
        },
        "Share of the load, 0 to 256.",
    ),
    word(
        "ws",
        1,
        |v, s, _| {
            v.ws = match s.word("'ws' expects 'auto', 'h1' or 'h2' value")?.text() {
                "auto" => Ws::Auto,
                "h1" => Ws::H1,
                "h2" => Ws::H2,
                _ => return Err(s.fail("'ws' has to be 'auto', 'h1' or 'h2'")),
            };
            Ok(())
        },
        "How WebSockets reach the server.",
    ),
];

fn on(field: &mut bool) -> Step {
    *field = true;
    Ok(())
}

fn off(field: &mut bool) -> Step {
    *field = false;
    Ok(())
}

fn socks4(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'socks4' expects <addr>:<port> as argument.")?.text().to_owned();
    let fail = |why: String| s.fail(format!("'socks4 {word}' : {why}"));
    let Some((host, port)) = word.rsplit_once(':') else {
        return Err(fail(format!("missing port specification in '{word}'.")));
    };
    let port = port.parse::<u16>().ok().filter(|p| *p > 0);
    let port = port.ok_or_else(|| fail(format!("invalid port in '{word}'.")))?;
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
    let ip = ip.ok_or_else(|| fail(format!("invalid address: '{host}' in '{word}'")))?;
    v.socks4 = Some(std::net::SocketAddr::new(ip, port));
    Ok(())
}

fn text(s: &mut Statement<'_>, field: &mut Option<Box<str>>, missing: &str) -> Step {
    *field = Some(s.word(missing)?.text().into());
    Ok(())
}

/// A number as HAProxy reads it; a missing word counts as zero where HAProxy lets it, with a hint in `-dD`.
fn value(s: &mut Statement<'_>, name: &str, missing: &str) -> Step<i64> {
    let word = s.word(format!("'{name}' {missing}"))?;
    Ok(s.lenient(word))
}

fn strictly(s: &Statement<'_>, n: i64, text: &str) -> Step<u32> {
    u32::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| s.fail(text))
}

fn signed(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// A time in milliseconds. HAProxy says `agent-inter` for `inter` as well, and tools may look for that.
fn time(s: &mut Statement<'_>, v: &ServerDraft, name: &str, missing: &str) -> Step<Duration> {
    let word = s.word(missing)?;
    let shown = if name == "inter" { "agent-inter" } else { name };
    match units::tolerant(word.text()) {
        Ok((ms, trailing)) => {
            if let Some(found) = trailing {
                let text = trailing_text(found, word);
                s.notes
                    .push(bracket(Diagnostic::warning(word.span(), format!("'server {}' : {text}", v.name))));
            }
            Ok(Duration::from_millis(ms))
        }
        Err(TimeFault::Unexpected(c)) => {
            Err(s.fail(format!("unexpected character '{c}' in '{shown}' argument of server {}.", v.name)))
        }
        Err(fault) => Err(s.time_fault(fault, word, name, |_| String::new())),
    }
}

fn delay(s: &mut Statement<'_>, v: &ServerDraft, name: &str) -> Step<Duration> {
    let d = time(s, v, name, &format!("'{name}' expects a delay as argument."))?;
    if d.is_zero() {
        return Err(s.fail(format!(
            "invalid value {} for argument '{name}' of server {}.",
            d.as_millis(),
            v.name
        )));
    }
    Ok(d)
}

fn ip(s: &mut Statement<'_>, name: &str) -> Step<IpAddr> {
    let word = s.word(format!("'{name}' expects <addr> as argument."))?;
    let text = word.text();
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let found = bare.parse().ok().or_else(|| crate::resolve::host(bare));
    found.ok_or_else(|| s.fail(format!("'{name}' : invalid address: '{text}' in '{text}'")))
}

/// A protocol; whether it is HTTP/2.
fn proto(s: &mut Statement<'_>, name: &str) -> Step<bool> {
    let word = s.word(format!("'{name}' : missing value."))?;
    match word.text() {
        "h1" | "none" => Ok(false),
        "h2" => Ok(true),
        "fcgi" | "spop" | "quic" => {
            Err(s.fail(format!("'{name}' : '{word}' is not supported yet by Harrier (planned)")))
        }
        _ => Err(s.fail(format!("'{name}' :  unknown MUX protocol '{word}'"))),
    }
}

/// A word that has one possible value, or `none`.
fn choice(s: &mut Statement<'_>, name: &str, only: &str) -> Step<bool> {
    let word = s.word(format!("'{name}' expects '{only}' as argument."))?;
    match word.text() {
        "none" => Ok(false),
        w if w == only => Ok(true),
        _ => Err(s.fail(format!("'{name}' expects '{only}' but got '{word}'"))),
    }
}

fn send_proxy(v: &mut ServerDraft, version: u8) -> Step {
    v.send_proxy.version = version;
    Ok(())
}

fn no_proxy(v: &mut ServerDraft, version: u8) -> Step {
    if v.send_proxy.version == version {
        v.send_proxy.version = 0;
    }
    Ok(())
}

fn proxy_options(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'proxy-v2-options' : missing value")?;
    for option in word.text().split(',') {
        let options = &mut v.send_proxy.options;
        match option {
            "ssl" | "cert-cn" | "cert-key" | "cert-sig" | "ssl-cipher" => options.ssl = true,
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
    let number = name.split_once('(').map(|(_, n)| n.trim_end_matches(')'));
    let kind = number.and_then(|n| match n.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => n.parse().ok(),
    });
    let Some(kind) = kind else {
        return Err(
            s.fail(format!("'{name}' : expects the type of the TLV between parentheses, 0x00 to 0xff"))
        );
    };
    let word = s.args.position();
    // No format at all is a field without a value.
    s.args.next();
    v.send_proxy.tlvs.push((kind, Deferred { at: s.at, word }));
    Ok(())
}

fn init_addr(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'init-addr' : missing value")?;
    v.init_addr.clear();
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

fn observe(v: &mut ServerDraft, s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let word = s.word("'observe' expects <mode> as argument.")?;
    v.observe = match word.text() {
        "none" => None,
        "layer4" | "tcp" => Some(Observe::Layer4),
        "layer7" | "http" => {
            if p.mode != program::Mode::Http {
                let text =
                    format!("'server {}/{}' : '{word}' can only be used in http proxies..", p.name, v.name);
                let note = Diagnostic::new(Level::Alert, word.span(), text).tolerated();
                s.notes.push(crate::statement::bracket(note));
            }
            Some(Observe::Layer7)
        }
        _ => {
            return Err(
                s.fail(format!("'observe' expects one of 'none', 'layer4', 'layer7' but got '{word}'"))
            );
        }
    };
    Ok(())
}

fn on_error(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    const CHOICES: &str = "'fastinter', 'fail-check', 'sudden-death' or 'mark-down'";
    let word = s.word(format!("'on-error' expects one of {CHOICES}."))?;
    v.on_error = match word.text() {
        "fastinter" => OnError::FastInter,
        "fail-check" => OnError::FailCheck,
        "sudden-death" => OnError::SuddenDeath,
        "mark-down" => OnError::MarkDown,
        _ => return Err(s.fail(format!("'on-error' expects one of {CHOICES} but got '{word}'"))),
    };
    Ok(())
}

fn verify(v: &mut ServerDraft, s: &mut Statement<'_>, _: &mut Draft) -> Step {
    let word = s.word("'verify' : missing verify method")?;
    v.tls.words.verify = Some(match word.text() {
        "none" => Verify::None,
        "required" => Verify::Required,
        other => {
            let text = format!(
                "'verify' : unknown verify method '{other}', only 'none' and 'required' are supported"
            );
            return Err(s.fail(text));
        }
    });
    Ok(())
}
