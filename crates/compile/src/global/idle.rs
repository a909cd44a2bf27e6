//! The arguments of global keywords that change nothing here: they are read all the same, so that a slip is
//! found by whichever of the two programs reads the file first.

use syntax::Word;

use super::draft::GlobalDraft;
use crate::statement::{Statement, Step};
use crate::units;

/// What stands behind a keyword.
enum Form {
    /// Nothing.
    Bare,
    /// One of these words.
    One(&'static [&'static str]),
    /// Some of these words, divided by commas.
    Some(&'static [&'static str]),
    /// Leading digits of a number in these bounds, whatever follows them.
    Leading(i64, i64),
    /// A number in these bounds, nothing behind it.
    Whole(i64, i64),
    /// Anything that begins as a number.
    Begun,
    /// Leading digits of a positive number, and what is said of one beyond the greatest.
    Positive(i64, &'static str),
    /// A time.
    Time,
    /// A size that is not zero.
    Bytes,
    /// A size in these bounds, and what is said of one beyond them.
    Window(u64, u64, &'static str),
    /// One of these words, and one of its own that may follow: said of others, with `%` for the first word.
    Paired(&'static [(&'static str, &'static [&'static str])]),
    /// A size.
    Size,
    /// Any word.
    Word,
    /// A file with parameters of a Diffie-Hellman exchange.
    DhParams,
}

/// Keywords of one form: whether the argument may be missing, and what is said of a wrong one, with `$` for
/// the keyword and `@` for the word.
struct Idle(&'static [&'static str], Form, Missing, &'static str);

/// Whether the argument may be missing.
#[derive(PartialEq, Eq)]
enum Missing {
    /// It may.
    Fine,
    /// It may not.
    Wrong,
    /// It may not, and this is said.
    Said(&'static str),
}

const SWITCH: &[&str] = &["on", "off"];

#[rustfmt::skip]
const IDLE: &[Idle] = &[
    Idle(&["tune.ssl.force-private-cache", "limited-quic", "pp2-never-send-local", "expose-deprecated-directives",
        "noevports", "nokqueue", "nopoll", "quick-exit", "quiet"], Form::Bare, Missing::Fine, ""),
    Idle(&["ssl-dh-param-file"], Form::DhParams, Missing::Said("'$' expects a file path as an argument."),
        "'$': unable to load DH parameters from file <@>."),
    Idle(&["ssl-propquery"], Form::Word, Missing::Said("global statement '$' expects a property string as an argument."), ""),
    Idle(&["ssl-provider"], Form::Word,
        Missing::Said("global statement '$' expects a valid engine provider name as an argument."), ""),
    Idle(&["ssl-provider-path"], Form::Word, Missing::Said("global statement '$' expects a directory path as an argument."), ""),
    Idle(&["ssl-security-level"], Form::Whole(0, 5), Missing::Said("'$' : missing value"),
        "'$' : expects a value between 0 and 5"),
    Idle(&["tune.ssl.default-dh-param"], Form::Leading(1024, i64::MAX), Missing::Said("'$' expects an integer argument."),
        "'$' expects a value >= 1024."),
    Idle(&["harden.reject-privileged-ports.quic"], Form::One(SWITCH), Missing::Wrong,
        "'$' expects either 'on' or 'off'."),
    Idle(&["tune.quic.be.cc.cubic-min-losses", "tune.quic.be.cc.max-frame-loss", "tune.quic.be.cc.reorder-ratio",
        "tune.quic.be.sec.glitches-threshold", "tune.quic.be.stream.max-concurrent", "tune.quic.fe.cc.cubic-min-losses",
        "tune.quic.fe.cc.max-frame-loss", "tune.quic.fe.cc.reorder-ratio", "tune.quic.fe.sec.glitches-threshold",
        "tune.quic.fe.sec.retry-threshold", "tune.quic.fe.stream.max-concurrent", "tune.quic.fe.stream.max-total"],
        Form::Positive(i64::MAX, ""), Missing::Wrong, "'$' expects a positive integer."),
    Idle(&["tune.quic.be.cc.hystart", "tune.quic.be.tx.pacing", "tune.quic.be.tx.udp-gso", "tune.quic.fe.cc.hystart",
        "tune.quic.fe.tx.pacing", "tune.quic.fe.tx.udp-gso", "tune.quic.listen", "tune.quic.zero-copy-fwd-send",
        "tune.applet.zero-copy-forwarding", "tune.h1.zero-copy-fwd-recv", "tune.h1.zero-copy-fwd-send",
        "tune.pt.zero-copy-forwarding"], Form::One(SWITCH), Missing::Wrong, "'$' expects 'on' or 'off'."),
    Idle(&["tune.quic.be.stream.data-ratio", "tune.quic.fe.stream.data-ratio"],
        Form::Positive(100, "'$' expects an integer argument between 1 and 100."), Missing::Wrong,
        "'$' expects a positive integer."),
    Idle(&["tune.quic.fe.sock-per-conn"], Form::One(&["default-on", "force-off"]), Missing::Wrong,
        "'$' expects either 'default-on' or 'force-off' but got '@'."),
    Idle(&["tune.lua.bool-sample-conversion"], Form::One(&["normal", "pre-3.1-bug"]), Missing::Wrong,
        "'$' expects either 'normal' or 'pre-3.1-bug' but got '@'."),
    Idle(&["tune.lua.log.loggers", "tune.sched.low-latency"], Form::One(SWITCH),
        Missing::Wrong, "'$' expects either 'on' or 'off' but got '@'."),
    Idle(&["tune.lua.log.stderr"], Form::One(&["on", "auto", "off"]), Missing::Wrong,
        "'$' expects either 'on', 'auto', or 'off' but got '@'."),
    Idle(&["maxcompcpuusage"], Form::Leading(0, 100), Missing::Wrong, "'$' expects an integer argument between 0 and 100."),
    Idle(&["maxcomprate"], Form::Leading(i64::MIN, i64::MAX), Missing::Wrong, "'$' expects an integer argument in kb/s."),
    Idle(&["maxzlibmem"], Form::Leading(i64::MIN, i64::MAX), Missing::Wrong, "'$' expects an integer argument."),
    Idle(&["tune.comp.maxlevel"], Form::Leading(1, 9), Missing::Wrong, "'$' expects a numeric value between 1 and 9\n"),
    Idle(&["tune.zlib.memlevel"], Form::Leading(1, 9), Missing::Wrong, "'$' expects a numeric value between 1 and 9."),
    Idle(&["tune.zlib.windowsize"], Form::Leading(8, 15), Missing::Wrong, "'$' expects a numeric value between 8 and 15."),
    Idle(&["tune.peers.max-updates-at-once"], Form::Leading(1, i64::MAX), Missing::Wrong,
        "'$' expects an integer argument greater than 0."),
    Idle(&["tune.quic.be.cc.max-win-size", "tune.quic.fe.cc.max-win-size"],
        Form::Window(10 << 10, 4 << 30, "'$' : should be between 10k and 4g."), Missing::Wrong, "'$' expects a positive integer."),
    Idle(&["tune.quic.be.stream.rxbuf", "tune.quic.fe.stream.rxbuf", "tune.quic.mem.tx-max"], Form::Bytes, Missing::Wrong,
        "'$' expects a positive integer."),
    Idle(&["tune.quic.be.max-idle-timeout", "tune.quic.fe.max-idle-timeout"], Form::Time,
        Missing::Said("unexpected character '"), "unexpected character '@' in '$'"),
    Idle(&["tune.lua.forced-yield"], Form::Begun, Missing::Fine, "$: invalid number"),
    Idle(&["tune.lua.maxmem"], Form::Begun, Missing::Said("'$' expects an integer argument (Lua memory size in MB)."),
        "$: invalid number @ (error at '@')"),
    Idle(&["tune.lua.burst-timeout", "tune.lua.service-timeout", "tune.lua.session-timeout", "tune.lua.task-timeout"],
        Form::Begun, Missing::Wrong, "$: invalid timeout"),
    Idle(&["cpu-policy"], Form::One(&["none", "performance", "group-by-ccx", "group-by-2-ccx", "group-by-3-ccx",
        "group-by-4-ccx", "group-by-cluster", "group-by-2-clusters", "group-by-3-clusters", "group-by-4-clusters",
        "efficiency", "resource", "first-usable-node"]), Missing::Wrong,
        "'$' passed an unknown CPU policy '@'. Supported values are: and 'none' (use all available CPUs), 'performance' (make one thread group per perf. core cluster), 'group-by-ccx' (make one thread group per CCX), 'group-by-2-ccx' (make one thread group per 2 CCX), 'group-by-3-ccx' (make one thread group per 3 CCX), 'group-by-4-ccx' (make one thread group per 4 CCX), 'group-by-cluster' (make one thread group per core cluster), 'group-by-2-clusters' (make one thread group per 2 core clusters), 'group-by-3-clusters' (make one thread group per 3 core clusters), 'group-by-4-clusters' (make one thread group per 4 core clusters), 'efficiency' (make one thread group per eff. core cluster), 'resource' (make one thread group from the smallest cluster), and 'first-usable-node' (use only first usable node if nbthreads not set).\n"),
    Idle(&["setcap"], Form::Some(&["cap_net_raw", "cap_net_admin", "cap_net_bind_service", "cap_sys_admin"]),
        Missing::Said("'$' : missing capability name(s).  Supported ones are: cap_net_raw, cap_net_admin, cap_net_bind_service and cap_sys_admin."),
        "'$' : unsupported capability '@'.  Supported ones are: cap_net_raw, cap_net_admin, cap_net_bind_service and cap_sys_admin."),
    Idle(&["tune.takeover-other-tg-connections"], Form::One(&["none", "restricted", "full"]),
        Missing::Said("'$' expects 'none', 'restricted', or 'full'"), "'$' expects 'none', 'restricted', or 'full', got '@'"),
    Idle(&["cluster-secret"], Form::Word, Missing::Wrong, "expects an ASCII string argument."),
    Idle(&["dns-accept-family"], Form::Some(&["ipv4", "ipv6", "auto"]), Missing::Wrong,
        "'$' expects a comma-delimited list of 'ipv4' and 'ipv6' but got '@'."),
    Idle(&["cpu-affinity"], Form::Paired(&[("per-core", &[]), ("per-group", &["loose", "auto"]), ("per-thread", &[]),
        ("per-ccx", &[]), ("auto", &[])]), Missing::Wrong,
        "'$' parsed an unknown directive '@'. Known values are : per-core per-group per-thread per-ccx auto"),
    Idle(&["max-threads-per-group"], Form::Whole(0, 64), Missing::Wrong,
        "'$' value must be an integer between 1 and 64,  got '@'"),
    Idle(&["stress-level"], Form::Whole(0, 9), Missing::Said("'$' expects a level as an argument."),
        "'$' level must be between 0 and 9 inclusive."),
    Idle(&["tune.buffers.limit", "tune.buffers.reserve"], Form::Leading(0, i64::MAX), Missing::Fine,
        "'$' expects a non-negative number but got '@'."),
    Idle(&["tune.recv_enough"], Form::Size,
        Missing::Said("'$' expects an integer argument."), "unexpected '@' after size passed to '$'"),
    Idle(&["tune.epoll.mask-events"], Form::Some(&["err", "hup", "rdhup"]), Missing::Fine,
        "'$' expects a comma-delimited list of 'err', 'hup' and 'rdhup' but got '@'."),
    Idle(&["tune.events.max-events-at-once"], Form::Leading(1, 10_000), Missing::Wrong,
        "'$' expects an integer argument between 1 and 10000."),
    Idle(&["tune.fail-alloc"], Form::Leading(0, 100), Missing::Fine, "'$' expects a numeric value between 0 and 100."),
    Idle(&["tune.memory.hot-size"], Form::Leading(1, i64::MAX), Missing::Wrong,
        "'$' expects a strictly positive value."),
    Idle(&["tune.renice.runtime", "tune.renice.startup"], Form::Whole(-20, 19), Missing::Fine,
        "'$' only supports values between -20 and 19 inclusive (was given @)"),
    Idle(&["tune.ring.queues"], Form::Leading(0, 16), Missing::Fine, "'$' expects a number between 0 and 16 but got '@'."),
];

/// Keywords that HAProxy takes only where experiments are allowed.
const EXPERIMENTS: &[&str] = &["force-cfg-parser-pause", "tune.fd.edge-triggered", "tune.fd.tables"];

/// Keywords whose further words HAProxy does not look at.
const OPEN: &[&str] = &[
    "harden.reject-privileged-ports.quic",
    "ssl-security-level",
    "setcap",
    "ssl-propquery",
    "cpu-affinity",
    "cpu-policy",
];

/// Reads the arguments of a keyword that changes nothing. Keywords without a form take anything.
pub(super) fn arguments(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let keyword = s.keyword();
    if EXPERIMENTS.contains(&keyword) && !g.experimental {
        let text = format!(
            "'{keyword}' directive is experimental, must be allowed via a global 'expose-experimental-directives'"
        );
        return Err(s.fail(text));
    }
    let Some(Idle(_, form, missing, wrong)) = IDLE.iter().find(|idle| idle.0.contains(&keyword)) else {
        return Ok(());
    };
    if matches!(form, Form::Bare) {
        return s.end();
    }
    let word = s.next();
    if !OPEN.contains(&keyword) {
        s.end()?;
    }
    let shown = word.map_or("", Word::text);
    let said = |text: &str, odd: &str| s.fail(text.replace('$', keyword).replace('@', odd));
    match (word, missing) {
        (None, Missing::Fine) => return Ok(()),
        (None, Missing::Said(text)) => return Err(said(text, "")),
        (None, Missing::Wrong) => return Err(said(wrong, "")),
        (Some(_), _) => {}
    }
    // Where the form has words of its own.
    match form {
        Form::Positive(most, beyond) if units::lenient(shown) > *most => return Err(said(beyond, shown)),
        Form::Bytes => {
            if let Err(rest) = units::size(shown) {
                let odd = rest.chars().next().map(String::from).unwrap_or_default();
                return Err(
                    s.fail(format!("'{keyword}': unexpected character '{odd}' in size argument '{shown}'."))
                );
            }
        }
        Form::Window(low, high, beyond) => {
            let digits = shown.bytes().take_while(u8::is_ascii_digit).count();
            let given = base::units::size(shown, u64::MAX)
                .or_else(|_| base::units::size(shown.get(..digits).unwrap_or_default(), u64::MAX));
            if given.is_ok_and(|n| n > 0 && !(*low..=*high).contains(&n)) {
                return Err(said(beyond, shown));
            }
        }
        Form::Whole(..) if keyword == "ssl-security-level" && units::strict(shown).is_none() => {
            return Err(s.fail(format!("'{keyword}' : expects an integer argument, found '{shown}'")));
        }
        Form::Paired(pairs) => {
            let second = s.peek();
            let known = pairs.iter().find(|(name, _)| *name == shown);
            if let Some((_, more)) = known.filter(|(_, more)| !second.is_empty() && !more.contains(&second)) {
                let list = if more.is_empty() {
                    String::new()
                } else {
                    format!(".  Known values are : {}", more.join(" "))
                };
                return Err(
                    s.fail(format!("'{shown}' provided with unknown optional argument '{second}'{list}"))
                );
            }
        }
        Form::Time => {
            if let Ok((_, Some(found))) = units::tolerant(shown) {
                s.trailing(word.unwrap_or(s.line.keyword()), found);
                return Ok(());
            }
        }
        _ => {}
    }
    let said = |text: &str, odd: &str| s.fail(text.replace('$', keyword).replace('@', odd));
    fits(form, shown).map_err(|odd| said(wrong, odd))
}

/// Whether a word has a form; else what of it is at fault.
fn fits<'w>(form: &Form, word: &'w str) -> Result<(), &'w str> {
    let leading = |low, high| (low..=high).contains(&units::lenient(word));
    let good = match form {
        Form::Bare | Form::Word => true,
        Form::DhParams => {
            std::fs::read_to_string(word).is_ok_and(|t| t.contains("-----BEGIN DH PARAMETERS-----"))
        }
        Form::One(words) => words.contains(&word),
        Form::Some(words) => word.split(',').all(|part| words.contains(&part)),
        Form::Leading(low, high) => leading(*low, *high),
        Form::Whole(low, high) => {
            units::strict(word).is_some_and(|n| (*low..=*high).contains(&i64::from(n as i32)))
        }
        Form::Positive(..) => units::lenient(word) != 0,
        Form::Bytes | Form::Window(..) => units::size(word) != Ok(0),
        Form::Paired(pairs) => pairs.iter().any(|(name, _)| *name == word),
        Form::Time => {
            let odd = word.trim_start_matches(|c: char| c.is_ascii_digit());
            return match units::tolerant(word) {
                Ok(_) => Ok(()),
                Err(_) => Err(odd.get(..odd.chars().next().map_or(0, char::len_utf8)).unwrap_or_default()),
            };
        }
        Form::Begun => word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()),
        Form::Size => return units::size(word).map(drop),
    };
    if good { Ok(()) } else { Err(word) }
}
