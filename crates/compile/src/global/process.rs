//! What the process is and does: identity, rights, start and stop, logs, the runtime sockets.

use std::path::PathBuf;
use std::time::Duration;

use model::world::profiling;
use program::global::StatusSet;
use syntax::Word;

use super::{GlobalDraft, entry};
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
    ),
    entry(
        "close-spread-time",
        |s, g| {
            if s.peek() == "infinite" {
                s.next();
                g.close_spread_time = Some(Duration::MAX);
                return s.end();
            }
            s.plain_time().map(|d| g.close_spread_time = Some(d))
        },
        "Time over which idle connections are closed on a soft stop.",
        "close-spread-time 5s",
    ),
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
            match s.peek() {
                "" => {}
                "preserve-env" => g.external_check_env = true,
                other => {
                    let text = format!(
                        "'external-check' only supports 'preserve-env' as an argument, found '{other}'."
                    );
                    return Err(s.fail_at(s.args.here(), text));
                }
            }
            g.external_check = true;
            Ok(())
        },
        "Allow health checks that run programs.",
        "external-check",
    ),
    entry("gid", |s, g| number_of(s, "group").map(|n| g.gid = n), "Group number to run as.", "gid 65534"),
    entry(
        "grace",
        |s, g| s.plain_time().map(|d| g.grace = Some(d)),
        "Time between the soft-stop signal and its effect.",
        "grace 10s",
    ),
    entry(
        "group",
        |s, g| {
            let word = s.word("'group' expects a group name as argument")?;
            g.gid = Some(
                resolve::group(word.text())
                    .ok_or_else(|| s.fail(format!("cannot find group id for '{word}' (0:Success)")))?,
            );
            s.end()
        },
        "Group name to run as.",
        "group root",
    ),
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
            let word = s.word("'h1-case-adjust-file' expects a file path as argument.")?;
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
        "hard-stop-after",
        |s, g| s.plain_time().map(|d| g.hard_stop_after = Some(d)),
        "Longest soft stop.",
        "hard-stop-after 30s",
    ),
    entry(
        "http-err-codes",
        |s, g| codes(s, |g: &mut GlobalDraft| &mut g.err_codes, g),
        "Statuses counted as errors.",
        "http-err-codes 400-499 -404",
    ),
    entry(
        "http-fail-codes",
        |s, g| codes(s, |g: &mut GlobalDraft| &mut g.fail_codes, g),
        "Statuses counted as failures.",
        "http-fail-codes 500-599",
    ),
    entry(
        "insecure-fork-wanted",
        |s, g| flag(s, |on| g.insecure_fork_wanted = on),
        "Allow running other programs.",
        "insecure-fork-wanted",
    ),
    entry(
        "localpeer",
        |s, g| {
            g.localpeer = Some(s.word("'localpeer' expects a name as an argument.\n")?.text().into());
            s.end()
        },
        "Name of this peer.",
        "localpeer one",
    ),
    entry("log", |s, g| log::line(s, &mut g.log, true), "A target of log lines.", "log 127.0.0.1:514 local0"),
    entry(
        "log-send-hostname",
        |s, g| {
            g.log_hostname = Some(match s.next() {
                Some(word) => word.text().into(),
                None => hostname(),
            });
            s.end()
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
    ),
    entry(
        "master-worker",
        |s, g| {
            match s.peek() {
                "" => {}
                "no-exit-on-failure" => drop(s.next()),
                _ => {
                    s.next();
                    return Err(s.fail("'master-worker' only supports 'no-exit-on-failure' option"));
                }
            }
            g.master_worker = true;
            s.end()
        },
        "A master process watches over the workers.",
        "master-worker",
    ),
    entry(
        "mworker-max-reloads",
        |s, _| s.integer("'mworker-max-reloads' expects an integer argument.").map(drop),
        "Reloads an old worker survives.",
        "mworker-max-reloads 5",
    ),
    entry(
        "node",
        |s, g| {
            const TEXT: &str = "'node' requires valid node name - non-empty string with digits(0-9), letters(A-Z, a-z), dot(.), hyphen(-) or underscode(_).";
            let valid = |w: &&Word| {
                w.bytes().iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
            };
            let word = s.next().filter(valid).ok_or_else(|| tight(s.fail(TEXT)))?;
            g.node = Some(word.text().into());
            s.end()
        },
        "Name of this machine.",
        "node one",
    ),
    entry(
        "pidfile",
        |s, g| {
            g.pidfile = Some(s.word("'pidfile' expects a file name as an argument.")?.text().into());
            s.end()
        },
        "File for the process number.",
        "pidfile /run/one.pid",
    ),
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
                Some(s.word("'server-state-base' expect one argument: a directory path.")?.text().into());
            s.end()
        },
        "Folder of server state files.",
        "server-state-base /var/lib",
    ),
    entry(
        "server-state-file",
        |s, g| {
            g.server_state_file =
                Some(s.word("'server-state-file' expect one argument: a file path.")?.text().into());
            s.end()
        },
        "File of the states of all servers.",
        "server-state-file one",
    ),
    entry("set-dumpable", |s, g| flag(s, |on| g.set_dumpable = on), "Allow core files.", "set-dumpable"),
    entry("set-var", variable, "A variable of the process from an expression.", "set-var proc.a str(x)"),
    entry("set-var-fmt", variable, "A variable of the process from a format.", "set-var-fmt proc.a x"),
    entry("stats", stats, "The runtime API's sockets and limits.", "stats timeout 30s"),
    entry(
        "strict-limits",
        |s, g| flag(s, |on| g.strict_limits = on),
        "Fail when limits can't be set.",
        "strict-limits",
    ),
    entry("uid", |s, g| number_of(s, "user").map(|n| g.uid = n), "User number to run as.", "uid 65534"),
    entry("unix-bind", unix_bind, "Rights of Unix sockets.", "unix-bind mode 600"),
    entry(
        "user",
        |s, g| {
            let word = s.word("'user' expects a user name as argument")?;
            g.uid = Some(
                resolve::user(word.text())
                    .ok_or_else(|| s.fail(format!("cannot find user id for '{word}' (0:Success)")))?,
            );
            s.end()
        },
        "User name to run as.",
        "user root",
    ),
    entry(
        "expose-experimental-directives",
        |s, g| flag(s, |on| g.experimental = on),
        "Lets experimental keywords be used.",
        "",
    ),
    entry(
        "profiling.tasks",
        |s, g| {
            g.tune.profiling = match s.next().map_or("", Word::text) {
                "on" => profiling::ON,
                "off" => profiling::OFF,
                "auto" => profiling::AUTO,
                _ => return Err(s.fail("'profiling.tasks' expects either 'on', 'auto', or 'off'.")),
            };
            s.end()
        },
        "Whether the time that tasks take is measured (fetches 'cpu_ns_*').",
        "profiling.tasks on",
    ),
    entry(
        "jwt.decrypt_alg_list",
        |s, g| {
            g.tune.jwt_algorithms = Some(allowed(s, lang::conv::jwe::ALGORITHMS)?);
            Ok(())
        },
        "How the keys of encrypted JSON web tokens may be had.",
        "jwt.decrypt_alg_list ALL:!dir",
    ),
    entry(
        "jwt.decrypt_enc_list",
        |s, g| {
            g.tune.jwt_encodings = Some(allowed(s, lang::conv::jwe::ENCODINGS)?);
            Ok(())
        },
        "How the contents of JSON web tokens may be encrypted.",
        "jwt.decrypt_enc_list A128GCM:A256GCM",
    ),
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
    let number = units::strict(word.text());
    if number.is_none() {
        s.warn(format!(
            " {keyword}: string '{word}' is not a number.\n   | You might want to use the '{what}' parameter to use a system {what} name.\n"
        ));
    }
    s.end()?;
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

/// `[+-]low[-high][,...]` in one or several words. A first range without sign replaces what was there.
fn codes(s: &mut Statement<'_>, field: fn(&mut GlobalDraft) -> &mut StatusSet, g: &mut GlobalDraft) -> Step {
    let keyword = s.keyword();
    let mut fresh = true;
    while let Some(word) = s.next() {
        for (at, range) in word.text().split(',').enumerate() {
            let (sign, digits) = match range.as_bytes().first() {
                Some(b'+') => (Some(true), &range[1..]),
                Some(b'-') => (Some(false), &range[1..]),
                _ => (None, range),
            };
            let (low, high) = digits.split_once('-').unwrap_or((digits, digits));
            let parsed = low.parse::<u16>().ok().zip(high.parse::<u16>().ok());
            let Some((low, high)) = parsed.filter(|(l, h)| (100..=599).contains(l) && l <= h && *h <= 599)
            else {
                return Err(s.fail(format!("Invalid status codes range '{range}' in '{keyword}' at position {at}. Ranges must be in the form [+-]{{low[-{{high}}]}}[,...].")));
            };
            if sign.is_none() && fresh {
                *field(g) = StatusSet::empty();
            }
            fresh = false;
            field(g).change(low, high, sign.unwrap_or(true));
        }
    }
    Ok(())
}

fn variable(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let keyword = s.keyword();
    let expects =
        format!("'{keyword}' requires a process-wide variable name ('proc.<name>') and a sample expression.");
    let name = s.word(&*expects)?;
    s.word(&*expects)?;
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
            let bind = bind::line(s, text)?;
            if bind.tls.on {
                return Err(s.fail(
                    "'stats socket' : TLS on runtime sockets is not supported yet by Harrier (planned)",
                ));
            }
            g.cli.push(bind);
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
            s.end()
        }
        "maxconn" => {
            s.next();
            match clamp(s.integer("'stats maxconn' expects a positive value")?) {
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

fn unix_bind(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    while let Some(word) = s.next() {
        const ONLY: &str =
            "'unix-bind' only supports the 'prefix', 'mode', 'uid', 'gid', 'user' and 'group' options.";
        let name = word.text();
        if !["prefix", "mode", "uid", "gid", "user", "group"].contains(&name) {
            return Err(s.fail(ONLY));
        }
        let value = s.word(format!("'unix-bind {name}' expects an argument"))?;
        let unknown = |kind: &str| s.fail(format!("'unix-bind' : '{value}' unknown {kind}."));
        match name {
            "prefix" => g.unix_prefix = value.bytes().into(),
            "mode" => {
                let mode = u32::from_str_radix(value.text(), 8);
                g.unix_bind.mode = Some(mode.map_err(|_| {
                    s.fail(format!("'unix-bind mode' expects an octal number, found '{value}'"))
                })?);
            }
            "uid" => g.unix_bind.uid = Some(clamp(units::lenient(value.text()))),
            "gid" => g.unix_bind.gid = Some(clamp(units::lenient(value.text()))),
            "user" => g.unix_bind.uid = Some(resolve::user(value.text()).ok_or_else(|| unknown("user"))?),
            "group" => g.unix_bind.gid = Some(resolve::group(value.text()).ok_or_else(|| unknown("group"))?),
            _ => {}
        }
    }
    Ok(())
}
