//! Running a program and waiting for it, without standing in a worker's way: a thread of its own starts it,
//! waits for its end or the deadline, and wakes the task.

use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::RemoteNotify;

/// A program to run.
#[derive(Clone, Debug, Default)]
pub struct ProgramSpec {
    /// Path, or a name to look for in the `PATH` of its environment.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment.
    pub env: Vec<(String, String)>,
    /// It gets the environment of this process, too.
    pub inherit_env: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this status.
    Exited(i32),
    /// By a signal.
    Killed,
    /// It could not be started.
    NotStarted,
    /// It took too long and was killed.
    TimedOut,
}

#[derive(Default)]
struct Slot {
    end: Mutex<Option<ProgramEnd>>,
    called: RemoteNotify,
}

/// Runs a program; it is killed when the time is over. Dropping the future does not stop it before that.
pub fn run_program(spec: ProgramSpec, limit: Duration) -> impl Future<Output = ProgramEnd> {
    let slot = Arc::new(Slot::default());
    let theirs = slot.clone();
    let thread = std::thread::Builder::new().name("program".to_owned()).spawn(move || {
        let end = run(&spec, limit);
        *theirs.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        theirs.called.notify();
    });
    async move {
        if thread.is_err() {
            return ProgramEnd::NotStarted;
        }
        loop {
            if let Some(end) = *slot.end.lock().unwrap_or_else(PoisonError::into_inner) {
                return end;
            }
            slot.called.notified().await;
        }
    }
}

fn run(spec: &ProgramSpec, limit: Duration) -> ProgramEnd {
    let mut command = Command::new(&spec.program);
    if !spec.inherit_env {
        command.env_clear();
    }
    command.args(&spec.args).envs(spec.env.iter().map(|(n, v)| (n, v))).stdin(Stdio::null());
    let Ok(mut child) = command.spawn() else { return ProgramEnd::NotStarted };
    if !ends_within(&child, limit) {
        // It may have ended just now; either way it is waited for.
        let _ = child.kill();
        let _ = child.wait();
        return ProgramEnd::TimedOut;
    }
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ProgramEnd::Exited(code),
            _ => ProgramEnd::Killed,
        },
        Err(_) => ProgramEnd::NotStarted,
    }
}

/// Whether a child ends in time. Where the system has no descriptors for processes, its end is waited for
/// without one.
fn ends_within(child: &Child, limit: Duration) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(fd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return true };
    let deadline = std::time::Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return true };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, limit: Duration) -> ProgramEnd {
        let spec = ProgramSpec {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), text.to_owned()],
            env: vec![("PATH".to_owned(), "/bin:/usr/bin".to_owned()), ("WORD".to_owned(), "yes".to_owned())],
            inherit_env: false,
        };
        run(&spec, limit)
    }

    #[test]
    fn the_end_of_a_program_is_told() {
        let long = Duration::from_secs(20);
        assert_eq!(shell("exit 3", long), ProgramEnd::Exited(3));
        assert_eq!(shell("kill -9 $$", long), ProgramEnd::Killed);
        assert_eq!(shell("test \"$WORD\" = yes && test -z \"$HOME\"", long), ProgramEnd::Exited(0));
        assert_eq!(shell("sleep 20", Duration::from_millis(20)), ProgramEnd::TimedOut);
        let spec = ProgramSpec { program: "/nonexistent/program".to_owned(), ..ProgramSpec::default() };
        assert_eq!(run(&spec, long), ProgramEnd::NotStarted);
    }
}
