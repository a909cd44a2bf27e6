//! What the threads are doing: `show activity`, `show tasks`, `show threads`.
//!
//! Figures that mean the same in HAProxy have its names; those of its inner parts that have no counterpart
//! here are left out, and what only this program counts stands below them under names of its own.

use std::cell::Cell;
use std::fmt::Write;
use std::pin::Pin;
use std::rc::Rc;

use engine::Worker;
use parking_lot::Mutex;
use rt::{Heartbeat, WorkerStats};

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use crate::gather::{gather, tell_all};
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::later(
        &["show", "activity"],
        "[-1|0|thread_num]",
        "what each thread did",
        Level::Operator,
        activity,
    ),
    Command::later(&["show", "tasks"], "", "tasks that wait for their turn", Level::User, tasks),
    Command::later(&["show", "threads"], "", "what the threads hold", Level::User, threads),
];

/// What a thread tells of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    worker: WorkerStats,
    buffers: rt::BufStats,
    /// Percent of the last half second or more.
    cpu: u32,
    accepted: u64,
    requests: u64,
    open_streams: u64,
    bytes_out: u64,
    spliced: u64,
    dropped_logs: u64,
    sessions: usize,
    applets: usize,
}

thread_local! {
    /// What this thread had counted when the counters were cleared.
    static BEFORE: Cell<Share> = Cell::new(Share::default());
}

/// `clear counters all`: the figures of threads begin anew.
pub fn forget() {
    tell_all(|worker| BEFORE.set(share(worker)));
}

fn share(worker: &Rc<Worker>) -> Share {
    let counters = worker.shared.program.world.process.counters.of(worker.index);
    Share {
        worker: rt::worker_stats(),
        buffers: rt::buf_stats(),
        cpu: rt::sys::cpu_usage(),
        accepted: counters.connections.get(),
        requests: counters.requests.get(),
        open_streams: counters.open_streams.get(),
        bytes_out: counters.bytes_out.get(),
        spliced: counters.spliced_bytes_out.get(),
        dropped_logs: counters.dropped_logs.get(),
        sessions: worker.sessions.len(),
        applets: worker.applets.all().len(),
    }
}

impl Share {
    fn busy_us(&self) -> u64 {
        u64::try_from(self.worker.busy.as_micros()).unwrap_or(u64::MAX)
    }

    /// What was counted since the counters were cleared; gauges stay.
    fn since(mut self, before: &Share) -> Share {
        let rest = |now: &mut u64, before: u64| *now = now.saturating_sub(before);
        let (w, b) = (&mut self.worker, &before.worker);
        rest(&mut w.polls, b.polls);
        rest(&mut w.turns, b.turns);
        rest(&mut w.empty_turns, b.empty_turns);
        rest(&mut w.full_turns, b.full_turns);
        rest(&mut w.awake_turns, b.awake_turns);
        rest(&mut w.event_turns, b.event_turns);
        rest(&mut w.events, b.events);
        rest(&mut w.expired, b.expired);
        rest(&mut w.messages, b.messages);
        w.busy = w.busy.saturating_sub(b.busy);
        rest(&mut self.accepted, before.accepted);
        rest(&mut self.requests, before.requests);
        rest(&mut self.bytes_out, before.bytes_out);
        rest(&mut self.spliced, before.spliced);
        rest(&mut self.dropped_logs, before.dropped_logs);
        self
    }
}

/// How the figures of threads become the first one of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Sum,
    Mean,
}

/// One line of `show activity`.
type Figure = (&'static str, Whole, fn(&Share) -> u64);

const FIGURES: &[Figure] = &[
    ("ctxsw", Whole::Sum, |s| s.worker.polls),
    ("empty_rq", Whole::Sum, |s| s.worker.empty_turns),
    ("long_rq", Whole::Sum, |s| s.worker.full_turns),
    ("curr_rq", Whole::Sum, |s| s.worker.queued as u64),
    ("loops", Whole::Sum, |s| s.worker.turns),
    ("wake_tasks", Whole::Sum, |s| s.worker.awake_turns),
    ("poll_io", Whole::Sum, |s| s.worker.event_turns),
    ("avg_cpu_pct", Whole::Mean, |s| u64::from(s.cpu)),
    ("avg_loop_us", Whole::Mean, |s| s.busy_us() / s.worker.turns.max(1)),
    ("accepted", Whole::Sum, |s| s.accepted),
    // Of this program alone.
    ("fd_events", Whole::Sum, |s| s.worker.events),
    ("timers_expired", Whole::Sum, |s| s.worker.expired),
    ("thread_msgs", Whole::Sum, |s| s.worker.messages),
    ("cpu_ms", Whole::Sum, |s| s.busy_us() / 1000),
    ("requests", Whole::Sum, |s| s.requests),
    ("bytes_out", Whole::Sum, |s| s.bytes_out),
    ("spliced_out", Whole::Sum, |s| s.spliced),
    ("dropped_logs", Whole::Sum, |s| s.dropped_logs),
    ("curr_conn", Whole::Sum, |s| s.sessions as u64),
    ("curr_strm", Whole::Sum, |s| s.open_streams),
    ("curr_applets", Whole::Sum, |s| s.applets as u64),
    ("curr_tasks", Whole::Sum, |s| s.worker.tasks as u64),
    ("curr_timers", Whole::Sum, |s| s.worker.timers as u64),
    ("curr_fds", Whole::Sum, |s| s.worker.sources as u64),
    ("curr_bufs", Whole::Sum, |s| s.buffers.used as u64),
    ("idle_bufs", Whole::Sum, |s| s.buffers.idle as u64),
];

/// `show activity [thread]`: sums or means, and in brackets the figures by thread.
pub fn activity<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let shares = gather(|w| share(w).since(&BEFORE.get())).await;
        // -1: sums and all threads; 0: sums alone; from 1: one thread.
        let asked = call.arg(0).parse::<i64>().unwrap_or(-1);
        if asked < -1 || usize::try_from(asked).is_ok_and(|n| n > rt::worker_count()) {
            return Err("Thread ID number must be between -1 and nbthread".into());
        }
        let one = usize::try_from(asked).ok().and_then(|n| n.checked_sub(1));
        let here = one.unwrap_or(call.worker.index) + 1;
        let (wall, up) = (rt::wall(), rt::now().since(call.shared().started));
        let mut out = format!(
            "thread_id: {here} (1..{})\ndate_now: {}.{:06}\nuptime_now: {}.{:06}\n",
            rt::worker_count(),
            wall.as_secs(),
            wall.subsec_micros(),
            up.as_secs(),
            up.subsec_micros()
        );
        let chosen: Vec<&Share> =
            shares.iter().filter(|(i, _)| one.is_none_or(|n| n == *i)).map(|(_, s)| s).collect();
        for (name, whole, read) in FIGURES {
            line(&mut out, name, *whole, &chosen.iter().map(|s| read(s)).collect::<Vec<_>>(), asked == -1);
        }
        Ok(Reply::Dump(out))
    })
}

fn line(out: &mut String, name: &str, whole: Whole, figures: &[u64], each: bool) {
    let sum: u64 = figures.iter().sum();
    let count = figures.len().max(1) as u64;
    let first = if whole == Whole::Mean { (sum + count / 2) / count } else { sum };
    let _ = write!(out, "{name}: {first}");
    if each && figures.len() > 1 {
        let each: String = figures.iter().map(|n| format!("{n} ")).collect();
        let _ = write!(out, " [ {each}]");
    }
    out.push('\n');
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

/// `show threads`: also of those that answer nothing, since a thread that hangs is what one looks for.
pub fn threads<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    /// The turns of each thread when they were shown last.
    static SHOWN: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    Box::pin(async move {
        let peers = rt::peers();
        let answers = gather(share).await;
        let beats: Vec<Option<Heartbeat>> = (0..peers.count()).map(|i| peers.heartbeat(i)).collect();
        let turns = beats.iter().map(|beat| beat.map_or(0, |b| b.turns)).collect();
        let shown = std::mem::replace(&mut *SHOWN.lock(), turns);
        let mut out = String::new();
        for (index, beat) in beats.iter().enumerate() {
            let Some(beat) = beat else { continue };
            let share = answers.iter().find(|(i, _)| *i == index).map(|(_, share)| share);
            let mark = match (index == call.worker.index, share) {
                (true, _) => '*',
                (_, None) if shown.get(index) == Some(&beat.turns) => '>',
                _ => ' ',
            };
            block(&mut out, (mark, index), beat, share);
        }
        Ok(Reply::Dump(out))
    })
}

fn block(out: &mut String, (mark, index): (char, usize), beat: &Heartbeat, share: Option<&Share>) {
    let number = index + 1;
    let _ = write!(out, "{mark} Thread {number} : id={} act={}", beat.thread, u8::from(!beat.polling));
    match share {
        Some(s) => {
            let (rq, wq) = (s.worker.queued, s.worker.timers);
            let _ = writeln!(out, " wq={wq} rq={rq} tasks={} fds={}", s.worker.tasks, s.worker.sources);
        }
        None => out.push_str(" no answer within 2 s\n"),
    }
    let (switches, stuck) = (share.map_or(0, |s| s.worker.polls), u8::from(share.is_none() && !beat.polling));
    let _ = writeln!(
        out,
        "      1/{number}    loops={} ctxsw={switches} stuck={stuck} harmless={}",
        beat.turns,
        u8::from(beat.polling)
    );
    let _ = writeln!(out, "             cpu_ns: now={}", beat.busy.as_nanos());
    if let Some(s) = share {
        let _ = writeln!(
            out,
            "             conns={} streams={} applets={} bufs={}",
            s.sessions, s.open_streams, s.applets, s.buffers.used
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_sums_stand_before_the_figures_of_threads() {
        let mut out = String::new();
        line(&mut out, "loops", Whole::Sum, &[3, 4], true);
        line(&mut out, "avg", Whole::Mean, &[3, 4], true);
        line(&mut out, "one", Whole::Sum, &[3], true);
        line(&mut out, "sum", Whole::Sum, &[3, 4], false);
        assert_eq!(out, "loops: 7 [ 3 4 ]\navg: 4 [ 3 4 ]\none: 3\nsum: 7\n");
    }

    #[test]
    fn a_thread_that_does_not_answer_is_shown() {
        let mut out = String::new();
        let beat =
            Heartbeat { turns: 9, polling: false, busy: std::time::Duration::from_nanos(5), thread: 77 };
        block(&mut out, ('>', 1), &beat, None);
        assert!(
            out.starts_with("> Thread 2 : id=77 act=1 no answer within 2 s\n      1/2    loops=9 "),
            "{out}"
        );
        assert!(out.contains(" stuck=1 "), "{out}");
    }
}
