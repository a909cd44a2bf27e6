//! What the workers are doing: `show activity`, `show threads`, `show pools`, `show startup-logs`.
//!
//! The shapes are those that tools know as far as there is something to say; figures of HAProxy's inner parts
//! that have no counterpart here are left out.

use std::fmt::Write;
use std::pin::Pin;

use rt::{BufStats, WorkerStats};

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use crate::gather::gather;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::later(&["show", "activity"], "[<thread>]", "what the workers did", Level::Operator, activity),
    Command::later(
        &["show", "pools"],
        "[by*] [match <pfx>] [detailed] [<n>]",
        "memory of buffers",
        Level::User,
        pools,
    ),
    Command::now(
        &["show", "startup-logs"],
        "",
        "what was said while the process started",
        Level::Operator,
        startup_logs,
    ),
    Command::later(&["show", "tasks"], "", "tasks that wait for their turn", Level::User, tasks),
    Command::later(&["show", "threads"], "", "what the threads hold", Level::User, threads),
];

/// One line of `show activity`.
type Figure = (&'static str, fn(&WorkerStats) -> u64);

const FIGURES: &[Figure] = &[
    ("ctxsw", |s| s.polls),
    ("tasksw", |s| s.polls),
    ("loops", |s| s.turns),
    ("tasks", |s| s.tasks as u64),
    ("timers", |s| s.timers as u64),
    ("fds", |s| s.sources as u64),
];

/// `show activity [thread]`: sums, and in brackets the figures by thread.
pub fn activity<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let workers = gather(|_| rt::worker_stats()).await;
        // -1: sums and all threads; 0: sums alone; from 1: one thread.
        let asked = call.arg(0).parse::<i64>().unwrap_or(-1);
        if asked < -1 || usize::try_from(asked).is_ok_and(|n| n > workers.len()) {
            return Err("Thread ID number must be between -1 and nbthread".into());
        }
        let one = usize::try_from(asked).ok().and_then(|n| n.checked_sub(1));
        let here = call.worker.index + 1;
        let (wall, up) = (rt::wall(), rt::now().since(call.shared().started));
        let mut out = format!(
            "thread_id: {here} (1..{})\ndate_now: {}.{:06}\nuptime_now: {}.{:06}\n",
            call.shared().program.world.workers,
            wall.as_secs(),
            wall.subsec_micros(),
            up.as_secs(),
            up.subsec_micros()
        );
        for (name, read) in FIGURES {
            let figures: Vec<u64> =
                workers.iter().filter(|(i, _)| one.is_none_or(|n| n == *i)).map(|(_, s)| read(s)).collect();
            let sum: u64 = figures.iter().sum();
            let _ = write!(out, "{name}: {sum}");
            if asked == -1 && figures.len() > 1 {
                let each: String = figures.iter().map(|n| format!("{n} ")).collect();
                let _ = write!(out, " [ {each}]");
            }
            out.push('\n');
        }
        Ok(Reply::Dump(out))
    })
}

/// `show tasks`: tasks that wait for their turn. All are of one kind, for a task has no name here.
pub fn tasks<'a>(_: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let workers = gather(|_| rt::worker_stats().queued).await;
        let waiting: usize = workers.iter().map(|(_, queued)| queued).sum();
        let mut out = format!("Running tasks: {waiting} ({} threads)\n", workers.len());
        out.push_str(
            "  function                     places     %    lat_tot   lat_avg  calls_tot  calls_avg calls%\n",
        );
        if waiting > 0 {
            let _ = writeln!(
                out,
                "  {:<27} {waiting:>7} 100.0          -         -          -          -      -",
                "task"
            );
        }
        Ok(Reply::Dump(out))
    })
}

/// `show threads`.
pub fn threads<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let workers = gather(|_| rt::worker_stats()).await;
        let mut out = String::new();
        for (index, s) in workers {
            let mark = if index == call.worker.index { '*' } else { ' ' };
            let (number, stuck) = (index + 1, 0);
            let _ = writeln!(
                out,
                "{mark} Thread {number} : tasks={} timers={} fds={}\n      1/{number}    loops={} ctxsw={} stuck={stuck}",
                s.tasks, s.timers, s.sources, s.turns, s.polls
            );
        }
        Ok(Reply::Dump(out))
    })
}

/// `show pools`: buffers are the one pool there is.
pub fn pools<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let mut words = call.args().iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "byname" | "bysize" | "byusage" | "detailed" => {}
                "match" if words.next().is_some() => {}
                number if number.parse::<u32>().is_ok() => {}
                _ => {
                    return Err("Expects either 'byname', 'bysize', 'byusage', 'match <pfx>', 'detailed', or a max number of output lines.".into());
                }
            }
        }
        let all = gather(|_| rt::buf_stats()).await;
        let sum = all.iter().fold(BufStats::default(), |sum, (_, b)| BufStats {
            used: sum.used + b.used,
            idle: sum.idle + b.idle,
            allocated: sum.allocated + b.allocated,
        });
        let (size, there) = (rt::bufsize(), sum.used + sum.idle);
        Ok(Reply::Dump(format!(
            "Dumping pools usage.\n  - Pool buffer ({size} bytes) : {there} allocated ({} bytes), {} used, \
{} allocations\nTotal: 1 pools, {} bytes allocated, {} used.\n",
            there * size,
            sum.used,
            sum.allocated,
            there * size,
            sum.used * size
        )))
    })
}

/// `show startup-logs`.
pub fn startup_logs(_: &mut Call<'_>) -> Outcome {
    Ok(Reply::Dump(crate::product::startup_logs()))
}
