//! Limits of the process, its threads and its processors.

use std::time::Duration;

use super::process::flag;
use super::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp, tight};
use crate::units;

/// The most workers that one process may have here; the mask of `bind ... thread` is 64 bits wide.
pub(crate) const MAX_THREADS: u32 = 64;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry("cpu-map", cpu_map, "Which processors a thread runs on.", "cpu-map 1 0-63"),
    entry(
        "fd-hard-limit",
        |s, g| {
            g.fd_hard_limit = Some(s.count("'fd-hard-limit' expects an integer argument.")?.into());
            Ok(())
        },
        "Most file descriptors, whatever the system allows.",
        "fd-hard-limit 50000",
    ),
    entry(
        "max-spread-checks",
        |s, g| {
            let word = s.word("'max-spread-checks' expects an integer argument (0..50).")?;
            let ms = s.millis(word, "max-spread-checks", |c| {
                format!("unexpected character '{c}' in 'max-spread-checks'")
            })?;
            g.max_spread_checks = units::limit(ms);
            s.end()
        },
        "Longest time between health checks of one round.",
        "max-spread-checks 5s",
    ),
    entry(
        "maxconn",
        |s, g| {
            let word = s.word("'maxconn' expects an integer argument.")?;
            let n = units::strict(word.text());
            let n = n.ok_or_else(|| {
                s.fail(format!("cannot parse 'maxconn' value '{word}', an integer is expected."))
            })?;
            s.end()?;
            g.maxconn = Some(clamp(n)).filter(|n| *n > 0);
            Ok(())
        },
        "Most connections of the process.",
        "maxconn 2000",
    ),
    entry(
        "maxconnrate",
        |s, g| s.count("'maxconnrate' expects an integer argument.").map(|n| g.maxconnrate = n),
        "Most connections a second.",
        "maxconnrate 100",
    ),
    entry(
        "maxpipes",
        |s, g| s.count("'maxpipes' expects an integer argument.").map(|n| g.maxpipes = n),
        "Most pipes for splicing.",
        "maxpipes 100",
    ),
    entry(
        "maxsslconn",
        |s, g| s.count("'maxsslconn' expects an integer argument.").map(|n| g.tls.most = n),
        "Most TLS connections at once, on both sides.",
        "maxsslconn 10000",
    ),
    entry(
        "maxsslrate",
        |s, g| s.count("'maxsslrate' expects an integer argument.").map(|n| g.tls.most_rate = n),
        "Most TLS connections of clients a second.",
        "maxsslrate 100",
    ),
    entry(
        "maxsessrate",
        |s, g| s.count("'maxsessrate' expects an integer argument.").map(|n| g.maxsessrate = n),
        "Most sessions a second.",
        "maxsessrate 100",
    ),
    entry(
        "nbthread",
        |s, g| {
            let word = s.word("'nbthread' expects an integer argument.")?;
            let n = units::strict(word.text());
            let n = n.ok_or_else(|| {
                s.fail(format!("'nbthread' passed a missing or unparsable integer value in '{word}'"))
            })?;
            if !(1..=1024).contains(&n) {
                return Err(s.fail(format!("'nbthread' value must be between 1 and 1024 (was {n})")));
            }
            g.threads = Some(clamp(n));
            s.end()
        },
        "Number of threads.",
        "nbthread 2",
    ),
    entry(
        "noepoll",
        |s, g| {
            s.end()?;
            s.warn("'noepoll' has no effect: epoll is the only poller of Harrier.");
            g.disabled.epoll = false;
            Ok(())
        },
        "No other poller exists: no effect.",
        "",
    ),
    entry(
        "nogetaddrinfo",
        |s, g| flag(s, |on| g.disabled.getaddrinfo = on),
        "Resolve with an older call.",
        "nogetaddrinfo",
    ),
    entry("noktls", |s, g| flag(s, |on| g.disabled.ktls = on), "No TLS in the kernel.", "noktls"),
    entry("noreuseport", |s, g| flag(s, |on| g.disabled.reuseport = on), "No SO_REUSEPORT.", "noreuseport"),
    entry("nosplice", |s, g| flag(s, |on| g.disabled.splice = on), "No splicing.", "nosplice"),
    entry(
        "spread-checks",
        |s, g| {
            const RANGE: &str = "'spread-checks' needs a positive value in range 0..50.";
            g.spread_checks = match s.integer("'spread-checks' expects an integer argument (0..50).")? {
                n @ 0..=50 => clamp(n),
                _ => return Err(tight(s.fail(RANGE))),
            };
            Ok(())
        },
        "Randomness of health checks, percent.",
        "spread-checks 5",
    ),
    entry(
        "ulimit-n",
        |s, g| {
            g.ulimit_n = Some(s.count("'ulimit-n' expects an integer argument.")?.into()).filter(|n| *n > 0);
            Ok(())
        },
        "Most file descriptors.",
        "",
    ),
    entry(
        "warn-blocked-traffic-after",
        |s, g| {
            let word = s.word("'warn-blocked-traffic-after' expects <time> as argument.")?;
            let ms = s.millis(word, "warn-blocked-traffic-after", |c| {
                format!("unexpected character '{c}' in argument to <warn-blocked-traffic-after>.")
            })?;
            if !(1..=1000).contains(&ms) {
                return Err(s.fail(format!("timer out of range in argument '{word}' to 'warn-blocked-traffic-after' (value must be between 1 and 1000 ms)")));
            }
            g.warn_blocked_after = Duration::from_millis(ms);
            s.end()
        },
        "Longest turn of the loop without a warning.",
        "warn-blocked-traffic-after 50ms",
    ),
];

/// `cpu-map [auto:]threads cpus`.
fn cpu_map(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    const EXPECTS: &str = "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to 64 or a range),  followed by a list of CPU ranges with numbers from 0 to 63.";
    let word = s.word(EXPECTS)?;
    let (auto, spec) = match word.text().strip_prefix("auto:") {
        Some(rest) => (true, rest),
        None => (false, word.text()),
    };
    // Without a slash the word names a thread group; there is one group here, so a bare number means all of it.
    let threads = match spec.split_once('/') {
        Some((_, threads)) => numbers(threads, 1, MAX_THREADS),
        None => numbers(spec, 1, MAX_THREADS).map(|_| (1..=MAX_THREADS).collect()),
    };
    let invalid = |word: &str| format!("cpu-map : '{word}' is not a valid number/range.");
    let threads = threads
        .ok_or_else(|| s.fail(if s.args.peek().is_none() { EXPECTS.into() } else { invalid(spec) }))?;
    let mut cpus = Vec::new();
    while let Some(word) = s.next() {
        for part in word.text().split(',') {
            let part = numbers(part, 0, 4095).ok_or_else(|| s.fail(invalid(part)))?;
            cpus.extend(part.into_iter().map(|n| n as usize));
        }
    }
    if cpus.is_empty() {
        return Err(s.fail(EXPECTS));
    }
    if auto {
        g.cpu_map.extend(threads.iter().zip(cpus.iter().cycle()).map(|(t, c)| (vec![*t], vec![*c])));
    } else {
        g.cpu_map.push((threads, cpus));
    }
    Ok(())
}

fn numbers(text: &str, least: u32, most: u32) -> Option<Vec<u32>> {
    match text {
        "all" => return Some((least..=most).collect()),
        "odd" => return Some((least..=most).filter(|n| n % 2 == 1).collect()),
        "even" => return Some((least..=most).filter(|n| n % 2 == 0).collect()),
        _ => {}
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to): (u32, u32) = (from.parse().ok()?, if to.is_empty() { most } else { to.parse().ok()? });
    (from >= least && from <= to && to <= most).then(|| (from..=to).collect())
}
