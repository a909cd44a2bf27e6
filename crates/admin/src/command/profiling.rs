//! `set profiling`, `show profiling`, `debug counters`: what is measured of the work itself.
//!
//! There are no functions to tell apart as in HAProxy: what is measured are the calls of streams, so they are
//! the one line of the table. Memory is not profiled, and there are no counters of rare events; both say so
//! as HAProxy does when it was built without.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;

use engine::profile::Profile;
use model::world::profiling;

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use crate::gather::{gather, tell_all};
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["debug", "counters"],
        "[?|all|bug|cnt|chk|glt]*",
        "list or reset counters of rare events",
        Level::Operator,
        counters,
    ),
    Command::now(
        &["set", "profiling"],
        "<what> {auto|on|off}",
        "measure what calls of streams take",
        Level::Admin,
        set,
    ),
    Command::later(
        &["show", "profiling"],
        "[<what>|<#lines>|<opts>]*",
        "what is measured, and the figures",
        Level::Admin,
        show,
    ),
];

const SETTINGS: &str =
    "Expects a combination of either 'on', 'auto', 'off', 'lock', 'no-lock', 'memory' or 'no-memory'.";

/// `set profiling tasks|memory ...`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "memory" => return Err("Memory profiling not compiled in.".into()),
        "tasks" => {}
        _ => return Err("Expects either 'tasks' or 'memory'.".into()),
    }
    let words = call.args().get(1..).unwrap_or(&[]);
    if words.is_empty() {
        return Err(SETTINGS.into());
    }
    let mut wanted = None;
    for word in words {
        match word.as_str() {
            "on" => wanted = Some(profiling::ON),
            "auto" => wanted = Some(profiling::AUTO),
            "off" => wanted = Some(profiling::OFF),
            // No stream waits for a lock or for memory.
            "lock" | "no-lock" | "memory" | "no-memory" => {}
            _ => return Err(SETTINGS.into()),
        }
    }
    if let Some(wanted) = wanted {
        call.shared().program.world.process.profiling.store(wanted, Relaxed);
        tell_all(move |w| w.profile(wanted == profiling::ON));
    }
    Ok(Reply::Done)
}

/// What `show profiling` is asked for.
struct Asked {
    status: bool,
    tasks: bool,
}

fn asked(call: &Call<'_>) -> Result<Asked, Refusal> {
    let mut asked = Asked { status: true, tasks: true };
    for word in call.args() {
        match word.as_str() {
            "all" => asked = Asked { status: true, tasks: true },
            "status" => asked = Asked { status: true, tasks: false },
            "tasks" => asked = Asked { status: false, tasks: true },
            "memory" => asked = Asked { status: false, tasks: false },
            "byaddr" | "bytime" | "byctx" | "aggr" => {}
            word if word.parse::<u32>().is_ok() => {}
            _ => {
                let text = "Expects either 'all', 'status', 'tasks', 'memory', 'byaddr', 'bytime', 'byctx', 'aggr' or a max number of output lines.";
                return Err(text.into());
            }
        }
    }
    Ok(asked)
}

/// `show profiling [all|status|tasks|memory] ...`.
pub fn show<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let asked = asked(call)?;
        let mut out = String::new();
        if asked.status {
            let state = match call.shared().program.world.process.profiling.load(Relaxed) {
                profiling::ON => "on",
                profiling::OFF => "off",
                _ => "auto-off",
            };
            out.push_str(&format!(
                "Per-task CPU profiling              : {state:<14}# set profiling tasks {{on|auto|off}}\n\
Memory usage profiling              : off           # set profiling memory {{on|off}}\n"
            ));
        }
        if asked.tasks {
            let all = gather(|w| w.profiled.get()).await;
            let sum = all.iter().fold(Profile::default(), |sum, (_, p)| sum.and(*p));
            table(&sum, &mut out);
        }
        Ok(Reply::Dump(out))
    })
}

fn table(sum: &Profile, out: &mut String) {
    let now = rt::now();
    let secs = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let since = sum.since.map_or(0, |s| now.millis_since(s));
    let until = sum.until.map_or(0, |u| now.millis_since(u));
    out.push_str(&format!(
        "Tasks activity over {} sec till {} sec ago:\n  function                      calls   cpu_tot   \
cpu_avg   lkw_avg   lkd_avg   mem_avg   lat_avg\n",
        secs(since.saturating_sub(until)),
        secs(until)
    ));
    if sum.calls > 0 {
        let (calls, cpu, lat) = (sum.calls, sum.cpu_ns, sum.lat_ns);
        out.push_str(&format!(
            "  {:<25}{calls:>10}{:>10}{:>10}{:>7}{:>10}{:>10}{:>13}\n",
            "stream",
            time(cpu),
            time(cpu / calls),
            "-",
            "-",
            "-",
            time(lat / calls)
        ));
    }
}

/// A time with four digits that count.
fn time(ns: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];
    let (unit, name) = UNITS.into_iter().rev().find(|(unit, _)| ns >= *unit).unwrap_or(UNITS[0]);
    let value = ns as f64 / unit as f64;
    let digits = match value {
        _ if unit == 1 => 0,
        v if v < 10.0 => 3,
        v if v < 100.0 => 2,
        v if v < 1000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{name}")
}

/// `debug counters`: there are none of the kinds that it lists.
pub fn counters(call: &mut Call<'_>) -> Outcome {
    const WORDS: &[&str] = &["reset", "show", "on", "off", "all", "bug", "chk", "cnt", "glt"];
    if call.args().iter().all(|w| WORDS.contains(&w.as_str())) {
        return Ok(Reply::Dump(String::new()));
    }
    let text = "Expects an optional action ('reset','show','on','off'), optional types ('bug','chk','cnt','glt') and optionally 'all' to even dump null counters.";
    Err(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1294, "1.294us"),
            (48_890, "48.89us"),
            (2_737_000, "2.737ms"),
            (123_456_000, "123.5ms"),
            (5_000_000_000, "5.000s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn columns_stand_under_their_names() {
        let mut out = String::new();
        let sum = Profile { calls: 7, cpu_ns: 48_890, lat_ns: 9_058, since: None, until: None };
        table(&sum, &mut out);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[2],
            "  stream                            7   48.89us   6.984us      -         -         -      1.294us"
        );
    }
}
