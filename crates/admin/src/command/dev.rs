//! `debug dev`: what breaks a process on purpose, for those who test what watches over it.
//!
//! What would show or change the inside of HAProxy (memory, symbols, tasks, flags of streams) has nothing to
//! work on here: each of these says so in one line.

use std::fmt::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::Duration;

use program::listener::Level;

use super::fds;
use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    dev(&["debug", "dev", "abort"], "", "abort the process", crash),
    dev(&["debug", "dev", "bug"], "", "abort the process", crash),
    dev(&["debug", "dev", "check"], "", "write a warning to standard error", complain),
    dev(&["debug", "dev", "close"], "<fd> [hard]", "not here: a descriptor is its owner's", close),
    dev(&["debug", "dev", "deadlock"], "[nbtask]", "not here: tasks hold no locks", deadlock),
    dev(&["debug", "dev", "delay"], "[ms]", "hold this thread up, asleep", delay),
    dev(&["debug", "dev", "exit"], "[code]", "end the process at once", exit),
    dev(&["debug", "dev", "fd"], "", "descriptors that no table knows", unknown_fds),
    dev(&["debug", "dev", "hex"], "<addr> [len]", "not here: memory is not read by address", hex),
    dev(&["debug", "dev", "log"], "[msg] ...", "write a line to the global logs", log),
    dev(&["debug", "dev", "loop"], "<ms> [isolated|warn]", "hold this thread up, at work", busy),
    dev(&["debug", "dev", "panic"], "", "abort the process", crash),
    dev(&["debug", "dev", "sched"], "{task|tasklet} [k=v]*", "not here: tasks are not made by hand", sched),
    dev(&["debug", "dev", "stream"], "[k=v]*", "not here: streams have no flags", stream),
    dev(&["debug", "dev", "sym"], "<addr>", "not here: addresses mean nothing", sym),
    dev(&["debug", "dev", "task"], "<ptr> [wake|expire|kill]", "not here: tasks have no address", task),
    dev(&["debug", "dev", "tkill"], "[thr] [sig]", "not here: threads get no signals", tkill),
    dev(&["debug", "dev", "warn"], "", "write a warning to standard error", complain),
    dev(&["debug", "dev", "write"], "[size]", "answer with this many bytes", write),
];

const fn dev(
    words: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command::now(words, arguments, about, Level::Admin, run).expert()
}

/// `debug dev abort`, `bug`, `panic`: the end by SIGABRT, as that of a fault.
fn crash(call: &mut Call<'_>) -> Outcome {
    eprintln!("\nFATAL: aborted on purpose by the command '{}'.", call.words.join(" "));
    std::process::abort();
}

/// `debug dev check`, `warn`: a fault that does not stop the process is written there.
fn complain(call: &mut Call<'_>) -> Outcome {
    eprintln!("\nWARNING: on purpose, by the command '{}'.", call.words.join(" "));
    Ok(Reply::Done)
}

/// `debug dev exit [code]`.
fn exit(call: &mut Call<'_>) -> Outcome {
    std::process::exit(i32::try_from(number(call.arg(0))).unwrap_or(0));
}

/// `debug dev delay [ms]`: the worker serves nobody meanwhile.
fn delay(call: &mut Call<'_>) -> Outcome {
    let ms = if call.arg(0).is_empty() { 100 } else { number(call.arg(0)) };
    std::thread::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
    Ok(Reply::Done)
}

/// `debug dev loop <ms> [isolated|warn]`: the watchdog takes offence at a long one. Threads run on their own
/// here whatever one does, so there is nothing to isolate; `warn` asks for warnings, which it gives anyway.
fn busy(call: &mut Call<'_>) -> Outcome {
    let ms = u64::try_from(number(call.arg(0))).unwrap_or(0);
    let until = std::time::Instant::now() + Duration::from_millis(ms.min(u64::from(u32::MAX)));
    while std::time::Instant::now() < until {
        std::hint::spin_loop();
    }
    Ok(Reply::Done)
}

/// `debug dev log [msg]`: a line for the log targets of `global`, to see that they get one.
fn log(call: &mut Call<'_>) -> Outcome {
    let text = call.args().join(" ");
    engine::lines::global_line(&call.worker, program::log::level::INFO, &text);
    Ok(Reply::Done)
}

/// `debug dev write <size>`: rows of 64 dots.
fn write(call: &mut Call<'_>) -> Outcome {
    if call.arg(0).is_empty() {
        return Err("Missing output size.".into());
    }
    let size = usize::try_from(number(call.arg(0))).ok().filter(|n| *n < rt::bufsize());
    let size = size.ok_or("Output too large, must be <tune.bufsize.")?;
    let text: String = (0..size).map(|at| if at % 65 == 64 { '\n' } else { '.' }).collect();
    Ok(Reply::info(text))
}

/// `debug dev fd`: what is open and neither a listener nor a connection nor a pipe of ours.
fn unknown_fds(call: &mut Call<'_>) -> Outcome {
    let mut out = String::new();
    for (fd, target) in fds::unknown(&call.shared().program)? {
        let Ok(about) = std::fs::metadata(format!("/proc/self/fd/{fd}")) else { continue };
        let kind = match about.file_type() {
            t if t.is_char_device() => "chr.",
            t if t.is_fifo() => "pipe",
            t if t.is_file() => "file",
            t if t.is_socket() => "sock",
            t if t.is_dir() => "dir.",
            _ => "????",
        };
        let _ = writeln!(
            out,
            "{fd:5} type={kind} mod={:04o} dev={:#x} siz={:#x} uid={} gid={} ino={:#x} {target}",
            about.mode() & 0o7777,
            about.rdev(),
            about.size(),
            about.uid(),
            about.gid(),
            about.ino(),
        );
    }
    Ok(Reply::Dump(out))
}

fn close(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: a descriptor can only be closed by what owns it.".into())
}

fn deadlock(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: no task holds a lock while it waits. 'debug dev loop' stops a thread.".into())
}

fn hex(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: memory is not read by address.".into())
}

fn sched(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: there are no tasks to be made by hand.".into())
}

fn stream(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: streams have no flags to be shown or set. See 'show sess <id>'.".into())
}

fn sym(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: no answer of this program holds an address.".into())
}

fn task(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: tasks have no address. 'shutdown session' ends one of a client.".into())
}

fn tkill(_: &mut Call<'_>) -> Outcome {
    Err("Not supported: threads get no signals, the process does.".into())
}

/// A number as C reads it, in decimal, octal or hexadecimal; 0 for what is none.
fn number(text: &str) -> i64 {
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let n = digits.get(..end).and_then(|d| i64::from_str_radix(d, radix).ok()).unwrap_or(0);
    if minus { -n } else { n }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_read_as_c_does() {
        for (text, n) in [("12", 12), ("0x1f", 31), ("-3", -3), ("017", 15), ("x", 0), ("", 0), ("5ms", 5)] {
            assert_eq!(number(text), n, "{text:?}");
        }
    }
}
