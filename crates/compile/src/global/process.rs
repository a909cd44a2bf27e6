//! What the process is and does: identity, rights, start and stop, logs, the runtime sockets.

use std::path::PathBuf;
use std::time::Duration;

use model::world::profiling;
use program::global::StatusSet;
use syntax::Word;

use super::draft::{GlobalDraft, entry};
use super::unix_bind::unix_bind;
use crate::global::once;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp, tight};
use crate::{bind, log, resolve, units};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("busy-polling", |s, g| flag(s, |on| g.busy_polling = on), "Poll without sleeping.", "busy-polling"),
    entry(
        "chroot",
        |s, g| {
            let word = s.word("'chroot' expects a directory as an argument.\n")?;
            g.chroot = Some(word.text().into());
            s.end()
        },
        "Root directory after start.",
        "chroot /var/empty",
    )
    .once(once::CHROOT),
    entry(
        "close-spread-time",
        |s, g| {
            if s.peek() == "infinite" {
                g.close_spread_time = Some(Duration::MAX);
                return Ok(());
            }
            s.plain_time().map(|d| g.close_spread_time = Some(d))
        },
        "Time over which idle connections are closed on a soft stop.",
        "close-spread-time 5s",
    ).default("0"),
    entry("daemon", |s, g| flag(s, |on| g.daemon = on), "Go to the background.", "daemon"),
    entry(
        "description",
        |s, g| {
            let words = s.args.eat_rest();
            if words.is_empty() {
                return Err(tight(s.fail("'description' expects a string argument.")));
            }
            g.description = Some(join(words).into());
            Ok(())
        },
        "Text shown by the statistics.",
        "description edge of site one",
    ),
    entry(
        "external-check",
        |s, g| {
            let word = s.next().map_or("", Word::text);
            s.end()?;
            match word {
                "" => {}
                "preserve-env" => g.external_check_env = true,
                other => {
                    return Err(s.fail(format!(
                        "'external-check' only supports 'preserve-env' as an argument, found '{other}'."
                    )));
                }
            }
            g.external_check = true;
            Ok(())
        },
        "Allow health checks that run programs.",
        "external-check",
    ),
    entry("gid", |s, g| number_of(s, "group").map(|n| g.gid = n), "Group number to run as.", "gid 65534").default("the group of who starts the process")
        .once(once::GID),
    entry(
        "grace",
        |s, g| s.plain_time().map(|d| g.grace = Some(d)),
        "Time between the soft-stop signal and its effect.",
        "grace 10s",
    ).default("0"),
    entry(
        "group",
        |s, g| {
            let word = s.next().map_or("", Word::text);
            g.gid = Some(
                resolve::group(word)
                    .ok_or_else(|| s.fail(format!("cannot find group id for '{word}' (0:Success)")))?,
            );
            s.end()
        },
        "Group name to run as.",
        "group root",
    ).default("the group of who starts the process")
    .once(once::GROUP),
    entry(
        "h1-accept-payload-with-any-method",
        |s, g| flag(s, |on| g.h1_any_payload = on),
        "Accept a body on any method.",
        "h1-accept-payload-with-any-method",
    ),
    entry(
        "h1-case-adjust",
        case_adjust,
        "Case of a header name towards old applications.",
        "h1-case-adjust content-length Content-Length",
    ),
    entry(
        "h1-case-adjust-file",
        |s, g| {
            let word = s.word("'h1-case-adjust-file' expects <file> as argument.")?;
            g.case_adjust_file = Some((PathBuf::from(word.text()), word.span()));
            s.end()
        },
        "File of 'h1-case-adjust' pairs.",
        "",
    ),
    entry(
        "h1-do-not-close-on-insecure-transfer-encoding",
        |s, g| flag(s, |on| g.h1_keep_insecure_te = on),
        "Keep connections with an ambiguous length.",
        "h1-do-not-close-on-insecure-transfer-encoding",
    ),
    entry(
        "harden.reject-privileged-ports.tcp",
        |s, g| {
            g.reject_privileged_ports = match s.next().map_or("", Word::text) {
                "on" => true,
                "off" => false,
                _ => return Err(s.fail("'harden.reject-privileged-ports.tcp' expects either 'on' or 'off'.")),
            };
            Ok(())
        },
        "Connections of TCP clients from ports below 1024 are closed at once.",
        "harden.reject-privileged-ports.tcp on",
    ),
    entry(
        "hard-stop-after",
        |s, g| s.plain_time().map(|d| g.hard_stop_after = Some(d)),
        "Longest soft stop.",
        "hard-stop-after 30s",
    ).default("no limit"),
    entry(
        "http-err-codes",
        |s, g| codes(s, |g: &mut GlobalDraft| &mut g.err_codes, g),
        "Statuses counted as errors.",
        "http-err-codes 400-499 -404",
    ).default("400-499"),
    entry(
        "http-fail-codes",
        |s, g| codes(s, |g: &mut GlobalDraft| &mut g.fail_codes, g),
        "Statuses counted as failures.",
        "http-fail-codes 500-599",
    ).default("500-599"),
    entry(
        "insecure-fork-wanted",
        |s, g| flag(s, |on| g.insecure_fork_wanted = on),
        "Allow running other programs.",
        "insecure-fork-wanted",
    ),
    entry(
        "localpeer",
        |s, g| {
            if g.localpeer_given {
                return Err(s.fail("'localpeer' ignored since it is already set by using the '-L' command line argument.\n"));
            }
            g.localpeer = Some(s.word("'localpeer' expects a name as an argument.\n")?.text().into());
            s.end()
        },
        "Name of this peer.",
        "localpeer one",
    ).default("the machine's name"),
    entry("log", |s, g| log::line(s, &mut g.log, true), "A target of log lines.", "log 127.0.0.1:514 local0"),
    entry(
        "log-send-hostname",
        |s, g| {
            if g.log_hostname.is_some() {
                // An error by its name only.
                s.notes.push(s.fail("'log-send-hostname' already specified. Continuing.").tolerated());
                return Ok(());
            }
            g.log_hostname = Some(match s.next() {
                Some(word) => word.text().into(),
                None => hostname(),
            });
            Ok(())
        },
        "Host name in log lines.",
        "log-send-hostname one",
    ),
    entry(
        "log-tag",
        |s, g| {
            g.log_tag = Some(s.word("'log-tag' expects a tag for use in syslog.")?.text().into());
            s.end()
        },
        "Program name in log lines.",
        "log-tag edge",
    ).default("the name of the program"),
    entry(
        "master-worker",
        |s, g| {
            match s.peek() {
                "" => {
                    let text = "support for 'master-worker' was removed in version 3.5. Use -W or -Ws in the startup script instead.\n";
                    return Err(s.fail(text));
                }
                "no-exit-on-failure" => {
                    s.next();
                    g.master.survives_failure = true;
                }
                _ => {
                    s.next();
                    return Err(s.fail("'master-worker' only supports 'no-exit-on-failure' option"));
                }
            }
            s.end()
        },
        "What becomes of a master process when a worker fails.",
        "master-worker no-exit-on-failure",
    ),
    entry(
        "reload",
        |s, g| {
            let word = s.word("'reload' expects 'in-place'.")?;
            g.master.in_place = word.text() == "in-place";
            if g.master.in_place { s.end() } else { Err(s.fail("'reload' expects 'in-place'.")) }
        },
        "A reload has the running process adopt the configuration in place.",
        "reload in-place",
    ),
    entry(
        "mworker-max-reloads",
        |s, g| {
            let wrong = "'mworker-max-reloads' expects a positive value or zero.";
            g.master.max_reloads = Some(s.positive("'mworker-max-reloads' expects an integer argument.", wrong)?);
            Ok(())
        },
        "Reloads an old worker survives.",
        "mworker-max-reloads 5",
    ).default("50"),
    entry(
        "node",
        |s, g| {
            const TEXT: &str = "'node' requires valid node name - non-empty string with digits(0-9), letters(A-Z, a-z), dot(.), hyphen(-) or underscode(_).";
            s.at_most_one()?;
            let valid = |w: &&Word| {
                w.bytes().iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
            };
            let word = s.next().filter(valid).ok_or_else(|| tight(s.fail(TEXT)))?;
            g.node = Some(word.text().into());
            s.end()
        },
        "Name of this machine.",
        "node one",
    ).default("the machine's name"),
    entry(
        "pidfile",
        |s, g| {
            g.pidfile = Some(s.word("'pidfile' expects a file name as an argument.")?.text().into());
            s.end()
        },
        "File for the process number.",
        "pidfile /run/one.pid",
    )
    .once(once::PIDFILE),
    entry(
        "presetenv",
        |_, _| Ok(()),
        "Set a variable unless it is set; done while reading.",
        "presetenv A b",
    ),
    entry("resetenv", |_, _| Ok(()), "Keep only these variables; done while reading.", "resetenv PATH"),
    entry("setenv", |_, _| Ok(()), "Set a variable; done while reading.", "setenv A b"),
    entry("unsetenv", |_, _| Ok(()), "Remove a variable; done while reading.", "unsetenv A"),
    entry(
        "server-state-base",
        |s, g| {
            g.server_state_base =
                Some(s.word("'server-state-base' expects one argument: a directory path.")?.text().into());
            Ok(())
        },
        "Folder of server state files.",
        "server-state-base /var/lib",
    )
    .once(once::PATH),
    entry(
        "server-state-file",
        |s, g| {
            g.server_state_file =
                Some(s.word("'server-state-file' expect one argument: a file path.")?.text().into());
            Ok(())
        },
        "File of the states of all servers.",
        "server-state-file one",
    )
    .once(once::PATH),
    entry("set-dumpable", set_dumpable, "Allow core files.", "set-dumpable"),
    entry("set-var", variable, "A variable of the process from an expression.", "set-var proc.a str(x)"),
    entry("set-var-fmt", variable, "A variable of the process from a format.", "set-var-fmt proc.a x"),
    entry(
        "stats-file",
        |s, g| {
            g.figures.first = Some(s.word("'stats-file' expect one argument: a file path.")?.text().into());
            Ok(())
        },
        "File of the figures to begin with (`dump stats-file`).",
        "stats-file /var/lib/stats",
    )
    .once(once::PATH),
    entry("stats", stats, "The runtime API's sockets and limits.", "stats timeout 30s"),
    entry(
        "strict-limits",
        |s, g| flag(s, |on| g.strict_limits = on),
        "Fail when limits can't be set.",
        "strict-limits",
    ).default("on"),
    entry("uid", |s, g| number_of(s, "user").map(|n| g.uid = n), "User number to run as.", "uid 65534").default("who starts the process")
        .once(once::UID),
    entry("unix-bind", unix_bind, "Rights of Unix sockets.", "unix-bind mode 600"),
    entry(
        "user",
        |s, g| {
            let word = s.next().map_or("", Word::text);
            g.uid = Some(
                resolve::user(word)
                    .ok_or_else(|| s.fail(format!("cannot find user id for '{word}' (0:Success)")))?,
            );
            s.end()
        },
        "User name to run as.",
        "user root",
    ).default("who starts the process")
    .once(once::USER),
    entry(
        "expose-experimental-directives",
        |s, g| flag(s, |on| g.experimental = on),
        "Lets experimental keywords be used.",
        "",
    ),
    entry(
        "profiling.tasks",
        |s, g| {
            // Locks and memory are not measured.
            let mut word = s.next().map_or("", Word::text);
            loop {
                match word {
                    "on" => g.tune.profiling = profiling::ON,
                    "off" => g.tune.profiling = profiling::OFF,
                    "auto" => g.tune.profiling = profiling::AUTO,
                    "lock" | "no-lock" | "memory" | "no-memory" => {}
                    _ => return Err(s.fail(format!("'profiling.tasks' expects a combination of either 'on', 'auto', 'off', 'lock', 'no-lock', 'memory', or 'no-memory', but got '{word}'."))),
                }
                match s.next() {
                    Some(next) => word = next.text(),
                    None => return Ok(()),
                }
            }
        },
        "Whether the time that tasks take is measured (fetches 'cpu_ns_*').",
        "profiling.tasks on",
    ).default("auto"),
    entry(
        "jwt.decrypt_alg_list",
        |s, g| {
            g.tune.jwt_algorithms = Some(allowed(s, lang::conv::jwe::ALGORITHMS)?);
            Ok(())
        },
        "How the keys of encrypted JSON web tokens may be had.",
        "jwt.decrypt_alg_list ALL:!dir",
    ).default("ALL"),
    entry(
        "jwt.decrypt_enc_list",
        |s, g| {
            g.tune.jwt_encodings = Some(allowed(s, lang::conv::jwe::ENCODINGS)?);
            Ok(())
        },
        "How the contents of JSON web tokens may be encrypted.",
        "jwt.decrypt_enc_list A128GCM:A256GCM",
    ).default("ALL"),
    entry("zero-warning", |s, g| flag(s, |on| g.zero_warning = on), "Warnings are errors.", ""),
];

/// A list of names between colons: `ALL`, names, and names with a `!` in front that take theirs out again.
fn allowed(s: &mut Statement<'_>, known: &[&'static str]) -> Step<Vec<&'static str>> {
    let Some(word) = s.next() else { return Ok(Vec::new()) };
    let mut list: Vec<&'static str> = Vec::new();
    for name in word.text().split(':') {
        if name == "ALL" {
            list = known.to_vec();
            continue;
        }
        let bare = name.strip_prefix('!').unwrap_or(name);
        let Some(found) = known.iter().copied().find(|k| *k == bare) else {
            return Err(s.fail(format!("Unknown algorithm/encoding {bare}")));
        };
        list.retain(|n| *n != found);
        if bare == name {
            list.push(found);
        }
    }
    Ok(list)
}

/// A keyword without arguments; `no` in front switches off.
pub(super) fn flag(s: &mut Statement<'_>, set: impl FnOnce(bool)) -> Step {
    s.end()?;
    set(!s.negated());
    Ok(())
}

/// `set-dumpable [on|off|libs]`. No library is kept out of core files here, so `libs` is `on`.
fn set_dumpable(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let on = match s.only()? {
        "" | "on" | "libs" => true,
        "off" => false,
        other => {
            let text =
                format!("'set-dumpable' only supports 'on' and 'off' as an argument, found '{other}'.");
            return Err(s.fail(text));
        }
    };
    g.set_dumpable = on && !s.negated();
    Ok(())
}

fn join(words: &[Word]) -> String {
    words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
}

/// The machine's name.
pub(crate) fn hostname() -> Box<str> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().into()
}

/// `uid`, `gid`: what is no number is ignored with a warning.
fn number_of(s: &mut Statement<'_>, what: &str) -> Step<Option<u32>> {
    let keyword = s.keyword();
    let word = s.word(format!("'{keyword}' expects an integer argument."))?;
    s.end()?;
    let number = units::strict(word.text());
    if number.is_none() {
        s.warn(format!(
            " {keyword}: string '{word}' is not a number.\n   | You might want to use the '{what}' parameter to use a system {what} name.\n"
        ));
    }
    Ok(number.map(clamp))
}

fn case_adjust(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    const EXPECTS: &str = "'h1-case-adjust' expects <from> and <to> as argument.";
    let from = s.word(EXPECTS)?;
    let to = s.word(EXPECTS)?;
    if !from.bytes().eq_ignore_ascii_case(to.bytes()) {
        return Err(s.fail("<from> and <to> must not differ except the case"));
    }
    g.case_adjust.push((from.bytes().to_ascii_lowercase().into(), to.bytes().into()));
    s.end()
}

/// `[+-]low[-high][,...]` in one or several words: each sets what it says, or adds or removes all of it.
fn codes(s: &mut Statement<'_>, field: fn(&mut GlobalDraft) -> &mut StatusSet, g: &mut GlobalDraft) -> Step {
    let keyword = s.keyword();
    if s.peek().is_empty() {
        return Err(s.fail(format!("Missing status codes range for '{keyword}'.")));
    }
    while let Some(word) = s.next() {
        let text = word.text();
        let (sign, mut at) = match text.as_bytes().first() {
            Some(b'+') => (Some(true), 1),
            Some(b'-') => (Some(false), 1),
            _ => (None, 0),
        };
        if sign.is_none() {
            *field(g) = StatusSet::empty();
        }
        for range in text[at..].split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(low), Ok(high)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                // The place of the first character that does not fit.
                let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
                let fits = first.parse::<u32>().is_ok();
                let at = at + if fits { first.len() + 1 + digits(last) } else { digits(first) };
                return Err(s.fail(format!("Invalid status codes range '{text}' in '{keyword}' at position {at}. Ranges must be in the form [+-]{{low[-{{high}}]}}[,...].")));
            };
            let statuses = |code: u32| u16::try_from(code).ok().filter(|code| (100..600).contains(code));
            let Some((low, high)) = statuses(low).zip(statuses(high)).filter(|(low, high)| low <= high)
            else {
                return Err(s.fail(format!("Invalid status codes range '{text}' in '{keyword}'.")));
            };
            field(g).change(low, high, sign.unwrap_or(true));
            at += range.len() + 1;
        }
    }
    Ok(())
}

fn variable(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let keyword = s.keyword();
    let value = if keyword == "set-var" { "sample expression" } else { "format string" };
    let expects = format!("'{keyword}' requires a process-wide variable name ('proc.<name>') and a {value}.");
    let name = s.word(&*expects)?;
    s.word(&*expects)?;
    let scope =
        name.text().split_once('.').filter(|(_, rest)| !rest.is_empty()).map_or("", |(scope, _)| scope);
    if model::vars::Scope::from_prefix(scope).is_none() {
        return Err(s.fail(format!(
            "invalid variable name '{name}'. A variable name must start with its scope. The scope can be 'proc', \
             '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'"
        )));
    }
    if !name.text().starts_with("proc.") {
        let text = format!(
            "'{keyword}': cannot set variable '{name}', only scope 'proc' is permitted in the global section."
        );
        return Err(s.fail_at(name.span(), text));
    }
    g.vars.push(s.at);
    Ok(())
}

fn stats(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    match s.peek() {
        "socket" => {
            s.next();
            let text = "'stats socket' in global section expects an address or a path to a UNIX socket";
            g.cli.push(bind::line(s, text)?);
            Ok(())
        }
        "timeout" => {
            s.next();
            let word = s.word("'stats timeout' : unexpected character '\0'")?;
            let ms =
                s.millis(word, "stats timeout", |c| format!("'stats timeout' : unexpected character '{c}'"))?;
            if ms == 0 {
                return Err(s.fail("'stats timeout' expects a positive value"));
            }
            g.cli_timeout = units::limit(ms);
            Ok(())
        }
        "maxconn" => {
            s.next();
            let word = s.word("'stats maxconn' expects a positive value")?;
            match clamp(s.lenient(word)) {
                0 => Err(s.fail("'stats maxconn' expects a positive value")),
                n => {
                    g.cli_maxconn = n;
                    Ok(())
                }
            }
        }
        "calculate-max-counters" => {
            s.next();
            match s.next().map_or("", Word::text) {
                "on" | "off" => Ok(()),
                other => Err(
                    s.fail(format!("'stats calculate-max-counters' expects 'on' or 'off' (got '{other}')"))
                ),
            }
        }
        "bind-process" => Err(s.fail_at(s.args.here(), "'stats bind-process' is not supported anymore.")),
        other => {
            let text = format!(
                "'stats' only supports 'socket', 'maxconn', 'bind-process', 'calculate-max-counters'  and 'timeout' (got '{other}')"
            );
            Err(s.fail_at(s.args.here(), text))
        }
    }
}
