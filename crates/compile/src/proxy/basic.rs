//! Keywords that say what a proxy is: mode, addresses, servers, limits, where requests go by default.

use crate::draft::{Draft, Kind, LoadState, Named};
use program::Mode;
use program::proxy::Reuse;
use syntax::Word;

use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step, clamp, tight, unique_name};
use crate::{bind, server, units};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry(
        "backlog",
        Places::FRONT,
        |s, p| {
            s.count("'backlog' expects an integer argument.").map(|n| p.backlog = Some(n).filter(|n| *n > 0))
        },
        "Connections that the system may hold for us.",
        "backlog 1000",
    )
    .default("maxconn"),
    entry(
        "be-unpublished",
        Places::BACK_ONLY,
        |_, p| {
            p.unpublished = true;
            Ok(())
        },
        "No rule of another proxy chooses it until it is published.",
        "be-unpublished",
    ),
    entry(
        "bind",
        Places::FRONT_ONLY,
        |s, p| {
            let bind = bind::line(
                s,
                "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.",
            )?;
            if let Some(other) = p.binds.iter().find(|o| o.id.is_some() && o.id == bind.id) {
                let id = bind.id.unwrap_or(0);
                let (file, line) = &other.settings.place;
                let text = format!(
                    "'bind {}' in section '{}' : 'id' : custom id {id} already used at {file}:{line} ('bind {}')",
                    bind.text, s.section, other.text
                );
                return Err(s.fail_at(bind.span, text));
            }
            p.binds.push(bind);
            Ok(())
        },
        "Addresses to listen on.",
        "bind 127.0.0.1:8080",
    ),
    entry(
        "clitcpka-cnt",
        Places::ALL,
        |s, p| keepalive(s, p).map(|n| p.figures.0.count = n),
        "TCP keep-alive probes to clients.",
        "clitcpka-cnt 3",
    ),
    entry(
        "clitcpka-idle",
        Places::ALL,
        |s, p| keepalive_time(s, p).map(|n| p.figures.0.idle = n),
        "Idle time before the first probe.",
        "clitcpka-idle 10s",
    ),
    entry(
        "clitcpka-intvl",
        Places::ALL,
        |s, p| keepalive_time(s, p).map(|n| p.figures.0.interval = n),
        "Time between probes.",
        "clitcpka-intvl 10s",
    ),
    entry(
        "srvtcpka-cnt",
        Places::ALL,
        |s, p| keepalive(s, p).map(|n| p.figures.1.count = n),
        "TCP keep-alive probes to servers.",
        "srvtcpka-cnt 3",
    ),
    entry(
        "srvtcpka-idle",
        Places::ALL,
        |s, p| keepalive_time(s, p).map(|n| p.figures.1.idle = n),
        "Idle time before the first probe.",
        "srvtcpka-idle 10s",
    ),
    entry(
        "srvtcpka-intvl",
        Places::ALL,
        |s, p| keepalive_time(s, p).map(|n| p.figures.1.interval = n),
        "Time between probes.",
        "srvtcpka-intvl 10s",
    ),
    entry(
        "default-server",
        Places::ALL,
        server::default_server,
        "What servers have in common.",
        "default-server inter 3s",
    ),
    entry(
        "default_backend",
        Places::FRONT,
        |s, p| {
            let word = s.word("'default_backend' expects a backend name.")?;
            p.default_backend = Some(Named { name: word.text().into(), span: word.span() });
            s.end()
        },
        "Where requests go that no rule sends elsewhere.",
        "",
    )
    .default("none"),
    entry(
        "description",
        Places::PROXIES,
        |s, p| {
            let words = s.args.eat_rest();
            if words.is_empty() {
                return Err(tight(s.fail("'description' expects a string argument.")));
            }
            p.description = Some(words.iter().map(Word::text).collect::<Vec<_>>().join(" ").into());
            Ok(())
        },
        "Text shown by the statistics.",
        "description what this is",
    ),
    entry("disabled", Places::ALL, |s, p| switch(s, p, true), "The proxy does not start.", "disabled"),
    entry("enabled", Places::ALL, |s, p| switch(s, p, false), "The proxy starts.", "enabled"),
    entry(
        "fullconn",
        Places::BACK,
        |s, p| {
            s.count("'fullconn' expects an integer argument.")
                .map(|n| p.fullconn = Some(n).filter(|n| *n > 0))
        },
        "Load at which servers take their whole maxconn.",
        "fullconn 1000",
    )
    .default("a tenth of the maxconn of all frontends that use it"),
    entry(
        "guid",
        Places::PROXIES,
        |s, p| {
            let word = s.word("'guid' : expects an argument")?;
            let guid = unique_name(word.text()).map_err(|why| s.fail(format!("'guid': {why}")))?;
            p.guid = Some(guid);
            p.guid_span = word.span();
            Ok(())
        },
        "Unique name.",
        "guid front:one",
    ),
    entry(
        "http-reuse",
        Places::BACK,
        |s, p| {
            p.reuse = Some(match s.next().map_or("", Word::text) {
                "never" => Reuse::Never,
                "safe" => Reuse::Safe,
                "aggressive" => Reuse::Aggressive,
                "always" => Reuse::Always,
                _ => {
                    return Err(s.fail("'http-reuse' only supports 'never', 'safe', 'aggressive', 'always'."));
                }
            });
            let mode = s.eaten().text();
            match s.next() {
                None => Ok(()),
                Some(extra) => {
                    Err(s.fail(format!("'http-reuse {mode}' cannot handle unexpected argument '{extra}'.")))
                }
            }
        },
        "When idle server connections are reused.",
        "http-reuse always",
    )
    .default("safe"),
    entry(
        "http-send-name-header",
        Places::BACK,
        |s, p| {
            let word = s.word("'http-send-name-header' requires a header string.")?;
            const NEVER: &[&str] = &["host", "content-length", "transfer-encoding", "connection"];
            if NEVER.iter().any(|n| word.text().eq_ignore_ascii_case(n)) {
                return Err(s.fail(format!(
                    "'{word}' cannot be used as header name for 'http-send-name-header' directive."
                )));
            }
            p.send_name_header = Some(wire::head::FieldName::new(word.bytes()));
            Ok(())
        },
        "Tell the server its name in this header.",
        "http-send-name-header X-Server",
    )
    .default("none"),
    entry(
        "id",
        Places::PROXIES,
        |s, p| {
            let word = s.word("'id' expects an integer argument.").map_err(tight)?;
            s.end()?;
            let n = u32::try_from(units::lenient(word.text())).ok().filter(|n| *n > 0);
            p.forced_id = true;
            p.id = Some(n.ok_or_else(|| tight(s.fail("custom id has to be > 0.")))?);
            Ok(())
        },
        "Number of the proxy.",
        "id 20",
    )
    .default("the next free number"),
    entry(
        "load-server-state-from-file",
        Places::BACK,
        |s, p| {
            p.load_state = Some(match s.next().map_or("", Word::text) {
                "global" => LoadState::Global,
                "local" => LoadState::Local,
                "none" => LoadState::None,
                other => {
                    return Err(s.fail(format!(
                        "'load-server-state-from-file' expects 'global', 'local' or 'none'. Got '{other}'"
                    )));
                }
            });
            s.end()
        },
        "Where the states of servers are read at start.",
        "load-server-state-from-file none",
    ),
    entry(
        "max-keep-alive-queue",
        Places::ALL,
        |s, p| {
            let word =
                s.word("'max-keep-alive-queue' expects expects an integer value (or -1 to disable)")?;
            let n = units::strict(word.text()).ok_or_else(|| {
                let odd = word.text().chars().find(|c| !c.is_ascii_digit()).unwrap_or('-');
                s.fail(format!(
                    "'max-keep-alive-queue' : unexpected character '{odd}' in integer value '{word}'"
                ))
            })?;
            if p.kind == Kind::Frontend {
                s.warn(format!(
                    "max-keep-alive-queue will be ignored because {} has no backend capability",
                    p.label()
                ));
            }
            p.max_keep_alive_queue = i32::try_from(n).unwrap_or(i32::MAX);
            Ok(())
        },
        "Queue length that breaks affinity to the last server.",
        "max-keep-alive-queue 10",
    )
    .default("-1: no limit"),
    entry(
        "max-session-srv-conns",
        Places::FRONT,
        |s, p| {
            let word = s.word("'max-session-srv-conns' expects a number. Got no argument")?;
            p.session_conns = u32::try_from(s.lenient(word)).unwrap_or(0);
            Ok(())
        },
        "Idle server connections of one client.",
        "max-session-srv-conns 5",
    )
    .default("5"),
    entry(
        "maxconn",
        Places::FRONT,
        |s, p| {
            s.count("'maxconn' expects an integer argument.").map(|n| p.maxconn = Some(n).filter(|n| *n > 0))
        },
        "Most connections at a time.",
        "maxconn 1000",
    )
    .default("that of global"),
    entry("mode", Places::ALL, mode, "Protocol of the proxy.", "mode http").default("tcp"),
    entry("rate-limit", Places::ALL, rate_limit, "Most new sessions a second.", "rate-limit sessions 100"),
    entry("server", Places::ALL, server::server, "A server.", "server s1 127.0.0.1:80"),
    entry(
        "server-state-file-name",
        Places::BACK,
        |s, p| {
            // Nothing stands for `use-backend-name`, and a backend without the line has that, too.
            p.state_file = match s.peek() {
                "" | "use-backend-name" => None,
                name => Some(name.into()),
            };
            let _ = s.word("");
            s.end()
        },
        "File of the states of this backend's servers.",
        "server-state-file-name one",
    ),
    entry(
        "server-template",
        Places::ALL,
        server::template,
        "Several servers that differ in their number.",
        "server-template s 3 127.0.0.1:80",
    ),
    entry(
        "source",
        Places::BACK,
        |s, p| {
            const EXPECTS: &str =
                "'source' expects <addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>.";
            p.source = Some(server::source::parse(s, EXPECTS, false)?);
            Ok(())
        },
        "Address that connections to servers come from.",
        "source 127.0.0.1",
    )
    .default("the system's choice"),
];

fn switch(s: &mut Statement<'_>, p: &mut Draft, off: bool) -> Step {
    s.end()?;
    p.disabled = off;
    Ok(())
}

fn mode(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let name = s.next().map_or("", Word::text);
    s.end()?;
    p.mode =
        match name {
            "http" => Mode::Http,
            "tcp" => Mode::Tcp,
            "log" if p.kind == Kind::Frontend => {
                return Err(s.fail("mode syslog is only applicable on proxies with backend capability."));
            }
            "log" => Mode::Log,
            "spop" if p.kind == Kind::Frontend => {
                return Err(s.fail("mode spop is only applicable on proxies with backend capability."));
            }
            "spop" => Mode::Spop,
            "haterm" => {
                return Err(s.fail(format!("'mode {name}' is not supported yet by Harrier (planned)")));
            }
            "health" => return Err(s.fail(
                "'mode health' doesn't exist anymore. Please use 'http-request return status 200' instead.",
            )),
            _ => return Err(s.fail(format!("unknown proxy mode '{name}'."))),
        };
    p.mode_said = true;
    Ok(())
}

fn rate_limit(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let what = s.peek();
    if what != "sessions" {
        return Err(s.fail_at(s.args.here(), format!("'rate-limit' only supports 'sessions' (got '{what}')")));
    }
    s.next();
    let word = s.word("'rate-limit sessions' expects expects an integer value (in sessions/second)")?;
    if let Some(odd) = word.text().chars().find(|c| !c.is_ascii_digit()) {
        return Err(s.fail(format!(
            "'rate-limit sessions' : unexpected character '{odd}' in integer value '{word}'"
        )));
    }
    if !p.kind.is_front() && !p.kind.is_defaults() {
        s.warn(format!(
            "rate-limit sessions will be ignored because {} has no frontend capability",
            p.label()
        ));
        return Ok(());
    }
    p.rate_limit = clamp(units::lenient(word.text()));
    Ok(())
}

/// `clitcpka-cnt`, `srvtcpka-cnt`; what stands behind the number is not looked at.
fn keepalive(s: &mut Statement<'_>, p: &Draft) -> Step<u32> {
    let name = s.keyword();
    let word = s.word(format!("'{name}' expects an integer value"))?;
    let digits = word.text().strip_prefix(['+', '-']).unwrap_or(word.text());
    if let Some(odd) = digits.chars().find(|c| !c.is_ascii_digit()) {
        // HAProxy shows the first character, where that is none of a number.
        let odd = word.text().chars().next().filter(|c| !c.is_ascii_digit()).unwrap_or(odd);
        return Err(s.fail(format!("'{name}' : unexpected character '{odd}' in integer value '{word}'")));
    }
    idle_keepalive(s, p);
    Ok(clamp(units::lenient(word.text())))
}

/// Says that a proxy has no connections of the kind that the keyword is about.
fn idle_keepalive(s: &mut Statement<'_>, p: &Draft) {
    let name = s.keyword();
    let (side, has) = match name.starts_with("cli") {
        true => ("frontend", p.kind.is_front()),
        false => ("backend", p.kind.is_back()),
    };
    if !has && !p.kind.is_defaults() {
        s.warn(format!("{name} will be ignored because {} has no {side} capability", p.label()));
    }
}

fn keepalive_time(s: &mut Statement<'_>, p: &Draft) -> Step<u32> {
    let name = s.keyword();
    let word = s.word(format!("'{name}' expects an integer value"))?;
    let n = match base::units::time(word.text(), base::units::Unit::Second) {
        Err(base::units::TimeError::Trailing { value, found }) => {
            s.trailing(word, found);
            value.into()
        }
        _ => units::seconds(word.text()).map_err(|fault| {
            s.time_fault(fault, word, name, |c| format!("unexpected character '{c}' in argument to <{name}>"))
        })?,
    };
    idle_keepalive(s, p);
    Ok(u32::try_from(n).unwrap_or(u32::MAX))
}
