//! Limits of the process, its threads and its processors.

use std::time::Duration;

use super::draft::{CpuMapLine, GlobalDraft, entry};
use super::process::flag;
use crate::global::once;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp, tight};
use crate::units;

/// The most workers that one process may have here.
pub(crate) const MAX_THREADS: u32 = base::threads::MOST;
/// The most threads of a group.
const MAX_IN_GROUP: u32 = 64;

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
    )
    .once(once::NUMBER),
    entry(
        "max-spread-checks",
        |s, g| {
            let word = s
                .word("'max-spread-checks' expects an integer argument (0..50).")
                .map_err(crate::statement::tight)?;
            s.end()?;
            if units::tolerant(word.text()) == Err(units::TimeFault::Overflow) {
                return Err(tight(s.fail(format!(
                    "timer overflow in argument <{word}> to <max-spread-checks>, maximum value is 2147483647 ms (~24.8 days)."
                ))));
            }
            let ms = s
                .millis(word, "max-spread-checks", |c| {
                    format!("unsupported character '{c}' in 'max-spread-checks' (wants an integer delay).")
                })
                .map_err(crate::statement::tight)?;
            g.max_spread_checks = units::limit(ms);
            Ok(())
        },
        "Longest time between health checks of one round.",
        "max-spread-checks 5s",
    ).default("no limit"),
    entry(
        "maxconn",
        |s, g| {
            let word = s.word("'maxconn' expects an integer argument.")?;
            s.end()?;
            let n = units::strict(word.text());
            let n = n.ok_or_else(|| {
                s.fail(format!("cannot parse 'maxconn' value '{word}', an integer is expected."))
            })?;
            g.maxconn = Some(clamp(n)).filter(|n| *n > 0);
            Ok(())
        },
        "Most connections of the process.",
        "maxconn 2000",
    ).default("as many as the limit of descriptors allows")
    .once(once::NUMBER),
    entry(
        "maxconnrate",
        |s, g| s.count("'maxconnrate' expects an integer argument.").map(|n| g.maxconnrate = n),
        "Most connections a second.",
        "maxconnrate 100",
    ).default("no limit")
    .once(once::NUMBER),
    entry(
        "maxpipes",
        |s, g| s.count("'maxpipes' expects an integer argument.").map(|n| g.maxpipes = n),
        "Most pipes for splicing.",
        "maxpipes 100",
    ).default("a quarter of maxconn")
    .once(once::NUMBER),
    entry(
        "maxsslconn",
        |s, g| {
            const EXPECTS: &str = "'maxsslconn' expects a positive numeric value";
            s.positive("'maxsslconn' expects an integer argument.", EXPECTS).map(|n| g.tls.most = n)
        },
        "Most TLS connections at once, on both sides.",
        "maxsslconn 10000",
    ).default("no limit"),
    entry(
        "maxsslrate",
        |s, g| s.count("'maxsslrate' expects an integer argument.").map(|n| g.tls.most_rate = n),
        "Most TLS connections of clients a second.",
        "maxsslrate 100",
    ).default("no limit")
    .once(once::NUMBER),
    entry(
        "maxsessrate",
        |s, g| s.count("'maxsessrate' expects an integer argument.").map(|n| g.maxsessrate = n),
        "Most sessions a second.",
        "maxsessrate 100",
    ).default("no limit")
    .once(once::NUMBER),
    entry(
        "nbthread",
        |s, g| {
            let word = s.word("'nbthread' passed a missing or unparsable integer value in ''")?;
            s.end()?;
            let n = units::strict(word.text());
            let n = n.ok_or_else(|| {
                s.fail(format!("'nbthread' passed a missing or unparsable integer value in '{word}'"))
            })?;
            if !(1..=1024).contains(&n) {
                return Err(s.fail(format!("'nbthread' value must be between 1 and 1024 (was {n})")));
            }
            g.threads = Some(clamp(n));
            Ok(())
        },
        "Number of threads.",
        "nbthread 2",
    ).default("a thread for each processor that the process may use"),
    entry("noepoll", |s, _| s.end(), "epoll is the only poller.", "").idle(),
    entry("nogetaddrinfo", |s, _| flag(s, |_| ()), "Names are always resolved with getaddrinfo.", "").idle(),
    entry(
        "no-memory-trimming",
        |s, g| flag(s, |on| g.disabled.trimming = on),
        "Memory that was only needed to start is kept.",
        "no-memory-trimming",
    ),
    entry("noktls", |s, g| flag(s, |on| g.disabled.ktls = on), "No TLS in the kernel.", "noktls"),
    entry("noreuseport", |s, g| flag(s, |on| g.disabled.reuseport = on), "No SO_REUSEPORT.", "noreuseport"),
    entry("nosplice", |s, g| flag(s, |on| g.disabled.splice = on), "No splicing.", "nosplice"),
    entry(
        "spread-checks",
        |s, g| {
            const RANGE: &str = "'spread-checks' needs a positive value in range 0..50.";
            let word = s.word("'spread-checks' expects an integer argument (0..50).").map_err(tight)?;
            s.end()?;
            g.spread_checks = match s.lenient(word) {
                n @ 0..=50 => clamp(n),
                _ => return Err(tight(s.fail(RANGE))),
            };
            Ok(())
        },
        "Randomness of health checks, percent.",
        "spread-checks 5",
    ).default("0")
    .once(once::SPREAD),
    entry(
        "ulimit-n",
        |s, g| {
            g.ulimit_n = Some(s.count("'ulimit-n' expects an integer argument.")?.into()).filter(|n| *n > 0);
            Ok(())
        },
        "Most file descriptors.",
        "",
    )
    .once(once::NUMBER),
    entry(
        "warn-blocked-traffic-after",
        |s, g| {
            let word =
                s.word("'warn-blocked-traffic-after' expects <time> as argument between 1 and 1000 ms.")?;
            if units::tolerant(word.text()) == Err(units::TimeFault::Overflow) {
                return Err(s.fail(format!("timer overflow in argument '{word}' to 'warn-blocked-traffic-after' (maximum value is 1000 ms)")));
            }
            let ms = s.millis(word, "warn-blocked-traffic-after", |c| {
                format!("unexpected character '{c}' in argument to <warn-blocked-traffic-after>.")
            })?;
            if !(1..=1000).contains(&ms) {
                return Err(s.fail(format!("timer out of range in argument '{word}' to 'warn-blocked-traffic-after' (value must be between 1 and 1000 ms)")));
            }
            g.warn_blocked_after = Duration::from_millis(ms);
            Ok(())
        },
        "Longest turn of the loop without a warning.",
        "warn-blocked-traffic-after 50ms",
    ),
];

/// The highest number of a processor that HAProxy knows.
pub(crate) const LAST_CPU: u32 = 1023;

/// `cpu-map [auto:]threads cpus`.
fn cpu_map(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    const EXPECTS: &str = "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to 64 or a range),  followed by a list of CPU ranges with numbers from 0 to 63.";
    let word = s.word(EXPECTS)?;
    let (auto, spec) = match word.text().strip_prefix("auto:") {
        Some(rest) => (true, rest),
        None => (false, word.text()),
    };
    // Without a slash the word names thread groups, all threads of them.
    let (group, threads) =
        spec.split_once('/').map_or((spec, None), |(group, threads)| (group, Some(threads)));
    let set = |text: &str| {
        numbers(text, 1, MAX_IN_GROUP).ok_or_else(|| {
            let number = text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
            let range = if number { " It supports numbers from 1 to 64." } else { "" };
            s.fail(format!("cpu-map : '{text}' is not a valid number/range.{range}"))
        })
    };
    if s.args.peek().is_none() {
        return Err(s.fail(EXPECTS));
    }
    let group = set(group)?;
    let threads = threads.map_or(Ok((1..=MAX_IN_GROUP).collect()), set)?;
    let mut cpus = Vec::new();
    while let Some(word) = s.next() {
        for part in word.text().split(',') {
            let part =
                cpu_range(part).ok_or_else(|| s.fail(format!("cpu-map : '{part}' is not a CPU range.")))?;
            if *part.end() > LAST_CPU {
                return Err(s.fail(format!("cpu-map : supports CPU numbers from 0 to {LAST_CPU}.")));
            }
            cpus.extend(part.map(|n| n as usize));
        }
    }
    if cpus.is_empty() {
        return Err(s.fail(EXPECTS));
    }
    cpus.sort_unstable();
    cpus.dedup();
    // One for each thread, or for each group.
    if auto && ![threads.len(), group.len()].contains(&cpus.len()) {
        return Err(s.fail(
            "cpu-map : TGROUP/THREAD range and CPU sets must have the same size to be automatically bound",
        ));
    }
    let line = |groups: &[u32], threads: &[u32], cpus: &[usize]| CpuMapLine {
        groups: groups.to_vec(),
        threads: threads.to_vec(),
        cpus: cpus.to_vec(),
    };
    match auto {
        false => g.cpu_map.push(line(&group, &threads, &cpus)),
        true if threads.len() == cpus.len() => {
            g.cpu_map.extend(threads.iter().zip(&cpus).map(|(t, c)| line(&group, &[*t], &[*c])));
        }
        true => g.cpu_map.extend(group.iter().zip(&cpus).map(|(t, c)| line(&[*t], &threads, &[*c]))),
    }
    Ok(())
}

/// A processor or a range of them; what is no number behind the dash counts as nothing, as in HAProxy.
pub(crate) fn cpu_range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (from, to) = text.split_once('-').map_or((text, None), |(from, to)| (from, Some(to)));
    let from: u32 = from.parse().ok()?;
    let to = to.map_or(from, |to| clamp(units::lenient(to)).min(4095));
    Some(from.min(to)..=from.max(to))
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
