//! What a master does, as a state machine: signals and ends of children come in, effects go out. It knows no
//! process, clock or socket, so that any history can be played to it.
//!
//! A master begins by starting a worker (`Loading`). Once that one says that it serves it is the current one
//! and those before it are told to leave; if it ends before that, those before it go on. A reload replaces
//! the master's own program ([`Effect::Replace`]): the state goes along as text ([`Machine::keep`]), the new
//! program reads it and starts the next worker. The master ends when its last child has.

use std::fmt::Write;

use rt::sys::{Ended, Signal};

use crate::Notice;

#[cfg(test)]
mod tests;

/// Reloads that an old worker survives (`mworker-max-reloads`).
pub const MAX_RELOADS: u32 = 50;

/// What becomes of the workers before, once a new one serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// They finish their work.
    Soft,
    /// They end at once (`hard-reload`).
    Hard,
}

/// What was asked for while something else was under way. Of several the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    /// Whether a reload in place would work.
    Look,
    /// A reload in place.
    InPlace,
    /// A reload as the configuration says.
    Soft,
    /// A new worker, and those before end at once.
    Hard,
}

/// Where in its life a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It reads its configuration and opens its sockets.
    Loading,
    /// It serves.
    Current,
    /// There was a reload since it was started.
    Former,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its process.
    pub pid: i32,
    /// Where in its life it is.
    pub stage: Stage,
    /// Reloads since it was started.
    pub reloads: u32,
    /// When it was started, seconds since 1970.
    pub started: u64,
    /// The version of the program that it runs.
    pub version: String,
    /// It was told to end because there were too many reloads.
    pub overdue: bool,
    /// The number of the descriptor that leads to it.
    pub line: i32,
}

/// What a configuration says to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `mworker-max-reloads`.
    pub max_reloads: u32,
    /// `master-worker no-exit-on-failure`.
    pub survives_failure: bool,
    /// `reload in-place`.
    pub in_place: bool,
}

/// What happens to a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker was started.
    Started(Child),
    /// None could be.
    NotStarted(String),
    /// A worker says what its configuration says to the master.
    Told(i32, Settings),
    /// A worker serves.
    Ready(i32),
    /// A child ended; perhaps one that somebody else started.
    Ended(i32, Ended),
    /// A signal came.
    Signal(Signal),
    /// A reload was asked for on the master's socket.
    Reload(Reload),
    /// The program could not be replaced.
    NotReplaced(String),
    /// The worker that serves is to adopt its configuration in place, or only to be asked whether it could.
    InPlace {
        /// Whether it is only asked.
        check: bool,
    },
    /// What came of that.
    Adopted(Verdict),
}

/// What came of a reload in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The configuration runs.
    Adopted,
    /// It could run.
    Fit,
    /// It can't be used.
    Refused,
    /// Only a new process can have it: why.
    Elsewhere(String),
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Worth knowing.
    Notice,
    /// Something is not as it should be.
    Warning,
    /// Something failed.
    Alert,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A line for whoever reads.
    Say(Weight, String),
    /// A signal to a child.
    Kill(i32, Signal),
    /// A word to the service manager.
    Notify(Notice),
    /// Whoever waits for the end of a reload is told whether it went well.
    Loaded(bool),
    /// The program is replaced by the one on disk.
    Replace,
    /// A worker gets its configuration to adopt it in place, or to look at it.
    Adopt(i32, bool),
    /// The process ends with this code.
    Exit(u8),
}

/// The state of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its workers, the oldest first.
    pub children: Vec<Child>,
    /// Reloads so far.
    pub reloads: u32,
    /// The last of them failed.
    pub failed: bool,
    /// When the master was first started, seconds since 1970.
    pub started: u64,
    /// The version of the program that was first started.
    pub version: String,
    settings: Settings,
    /// What becomes of the workers before, when the one that loads serves.
    reload: Reload,
    /// A reload that was asked for while one was under way.
    pending: Option<Wish>,
    /// One in place is under way, or only a look whether it could be.
    adopting: Option<bool>,
    /// The process leaves.
    leaving: bool,
    /// The code it ends with, once the worker that served has ended.
    code: Option<u8>,
    /// Nothing is done any more.
    over: bool,
}

impl Machine {
    /// One that was just started.
    pub fn new(now: u64, version: &str) -> Machine {
        Machine {
            children: Vec::new(),
            reloads: 0,
            failed: false,
            started: now,
            version: version.to_owned(),
            settings: Settings { max_reloads: MAX_RELOADS, survives_failure: false, in_place: false },
            reload: Reload::Soft,
            pending: None,
            adopting: None,
            leaving: false,
            code: None,
            over: false,
        }
    }

    /// The worker that commands with its relative number go to: the current one, or the youngest where the
    /// last reload failed.
    pub fn first(&self) -> Option<&Child> {
        self.children.last()
    }

    /// Whether a worker is being started.
    pub fn is_loading(&self) -> bool {
        self.children.iter().any(|c| c.stage == Stage::Loading)
    }

    /// Whether the process leaves.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Takes an event and appends what is to be done.
    pub fn handle(&mut self, event: Event, out: &mut Vec<Effect>) {
        if self.over {
            return;
        }
        match event {
            Event::Started(child) => {
                out.push(say(Weight::Notice, format!("Initializing new worker ({})", child.pid)));
                self.children.push(child);
            }
            Event::NotStarted(why) => {
                out.push(say(Weight::Alert, format!("Cannot start a worker: {why}.")));
                self.not_loaded(1, out);
            }
            Event::Told(pid, settings) => {
                if self.children.iter().any(|c| c.pid == pid && c.stage == Stage::Loading) {
                    self.settings = settings;
                }
            }
            Event::Ready(pid) => self.ready(pid, out),
            Event::Ended(pid, how) => self.ended(pid, how, out),
            Event::Signal(signal) => self.signal(signal, out),
            Event::Reload(reload) => self.reload(reload, out),
            Event::InPlace { check } => self.in_place(check, out),
            Event::Adopted(verdict) => self.adopted(verdict, out),
            Event::NotReplaced(why) => {
                out.push(say(Weight::Alert, format!("Reload failed: {why}.")));
                self.reloads = self.reloads.saturating_sub(1);
                self.not_loaded(1, out);
            }
        }
    }

    fn ready(&mut self, pid: i32, out: &mut Vec<Effect>) {
        let Some(child) = self.children.iter_mut().find(|c| c.pid == pid && c.stage == Stage::Loading) else {
            return;
        };
        child.stage = Stage::Current;
        self.failed = false;
        out.push(say(Weight::Notice, "Loading success.".to_owned()));
        let most = self.settings.max_reloads;
        for old in self.children.iter_mut().filter(|c| c.stage == Stage::Former) {
            old.overdue |= old.reloads > most;
            let ends = old.overdue || self.reload == Reload::Hard;
            out.push(Effect::Kill(old.pid, if ends { Signal::Term } else { Signal::Usr1 }));
        }
        if !self.leaving {
            out.push(Effect::Notify(Notice::Ready));
        }
        out.push(Effect::Loaded(true));
        self.take_pending(out);
    }

    /// The worker that was to be the new one is none. Those before it go on.
    fn not_loaded(&mut self, code: u8, out: &mut Vec<Effect>) {
        self.failed = true;
        out.push(Effect::Loaded(false));
        if self.children.is_empty() {
            return self.exit(code, out);
        }
        out.push(Effect::Notify(Notice::ReloadFailed));
        self.take_pending(out);
    }

    fn take_pending(&mut self, out: &mut Vec<Effect>) {
        match self.pending.take() {
            None => {}
            Some(Wish::Look) => self.in_place(true, out),
            Some(Wish::InPlace) => self.in_place(false, out),
            Some(Wish::Soft) => self.reload(Reload::Soft, out),
            Some(Wish::Hard) => self.reload(Reload::Hard, out),
        }
    }

    /// Whether a worker is being started, or one adopts a configuration: what is asked for waits.
    pub fn is_busy(&self) -> bool {
        self.is_loading() || self.adopting.is_some()
    }

    /// It comes next.
    fn wish(&mut self, wish: Wish) {
        self.pending = self.pending.max(Some(wish));
    }

    fn refuse(&self, out: &mut Vec<Effect>) {
        out.push(say(Weight::Warning, "The process leaves: it does not reload.".to_owned()));
        out.push(Effect::Loaded(false));
    }

    fn reload(&mut self, reload: Reload, out: &mut Vec<Effect>) {
        if self.leaving {
            self.refuse(out);
        } else if self.is_busy() {
            self.wish(if reload == Reload::Hard { Wish::Hard } else { Wish::Soft });
        } else if reload == Reload::Soft && self.settings.in_place {
            self.in_place(false, out);
        } else {
            self.anew(reload, out);
        }
    }

    /// A new worker takes the place of the one that serves.
    fn anew(&mut self, reload: Reload, out: &mut Vec<Effect>) {
        let how = if reload == Reload::Hard { " (hard-reload)" } else { "" };
        out.push(say(Weight::Notice, format!("Reloading HAProxy{how}")));
        out.push(Effect::Notify(Notice::Reloading));
        self.reload = reload;
        self.reloads = self.reloads.saturating_add(1);
        out.push(Effect::Replace);
    }

    /// The worker that serves reads its configuration again.
    fn in_place(&mut self, check: bool, out: &mut Vec<Effect>) {
        if self.leaving {
            return self.refuse(out);
        }
        if self.is_busy() {
            return self.wish(if check { Wish::Look } else { Wish::InPlace });
        }
        let Some(pid) = self.first().map(|child| child.pid) else { return out.push(Effect::Loaded(false)) };
        if !check {
            out.push(say(Weight::Notice, "Reloading HAProxy in place".to_owned()));
            out.push(Effect::Notify(Notice::Reloading));
        }
        self.adopting = Some(check);
        out.push(Effect::Adopt(pid, check));
    }

    /// It was only looked at.
    fn looked(&mut self, good: bool, out: &mut Vec<Effect>) {
        out.push(Effect::Loaded(good));
        self.take_pending(out);
    }

    fn adopted(&mut self, verdict: Verdict, out: &mut Vec<Effect>) {
        let Some(check) = self.adopting.take() else { return };
        match verdict {
            Verdict::Adopted => {
                self.reloads = self.reloads.saturating_add(1);
                self.failed = false;
                // One whose successor could not start is the current one again.
                if let Some(child) = self.children.last_mut() {
                    child.stage = Stage::Current;
                }
                out.push(say(Weight::Notice, "Loading success.".to_owned()));
                if !self.leaving {
                    out.push(Effect::Notify(Notice::Ready));
                }
                out.push(Effect::Loaded(true));
                self.take_pending(out);
            }
            Verdict::Fit => {
                self.looked(true, out);
            }
            Verdict::Elsewhere(why) if !check && !self.leaving => {
                out.push(say(Weight::Notice, format!("{why}: a new worker is started instead.")));
                self.anew(Reload::Soft, out);
            }
            Verdict::Elsewhere(why) => {
                out.push(say(Weight::Warning, format!("{why}: a new worker would be started.")));
                self.looked(false, out);
            }
            Verdict::Refused if check => self.looked(false, out),
            Verdict::Refused => {
                self.reloads = self.reloads.saturating_add(1);
                out.push(say(Weight::Warning, "Reload in place failed: nothing has changed.".to_owned()));
                self.not_loaded(1, out);
            }
        }
    }

    fn signal(&mut self, signal: Signal, out: &mut Vec<Effect>) {
        match signal {
            Signal::Term | Signal::Int | Signal::Usr1 => {
                out.push(say(Weight::Warning, "Exiting Master process...".to_owned()));
                if !self.leaving {
                    out.push(Effect::Notify(Notice::Stopping));
                }
                self.leaving = true;
                if self.pending.take().is_some() {
                    out.push(Effect::Loaded(false));
                }
                self.kill_all(signal, out);
            }
            Signal::Ttou | Signal::Ttin => self.kill_all(signal, out),
            Signal::Hup | Signal::Usr2 => self.reload(Reload::Soft, out),
            Signal::Quit | Signal::Chld => {}
        }
    }

    fn kill_all(&self, signal: Signal, out: &mut Vec<Effect>) {
        out.extend(self.children.iter().map(|c| Effect::Kill(c.pid, signal)));
    }

    fn ended(&mut self, pid: i32, how: Ended, out: &mut Vec<Effect>) {
        let Some(at) = self.children.iter().position(|c| c.pid == pid) else { return };
        // The latest of those that are former serves as long as its successor is not there yet.
        let serves = !self.children.iter().any(|c| c.stage == Stage::Current)
            && self.children.iter().rposition(|c| c.stage == Stage::Former) == Some(at);
        let child = self.children.remove(at);
        let (code, why) = told(how);
        match child.stage {
            Stage::Loading => {
                let text = format!("Failed to load worker ({pid}) exited with code {code} ({why})");
                out.push(say(Weight::Warning, text));
                if !self.leaving {
                    return self.not_loaded(code.max(1), out);
                }
                self.failed = true;
                out.push(Effect::Loaded(false));
            }
            Stage::Current => {
                let weight = if code == 0 { Weight::Warning } else { Weight::Alert };
                let text = format!("Current worker ({pid}) exited with code {code} ({why})");
                out.push(say(weight, text));
                self.fell(code, out);
            }
            Stage::Former => {
                let late = match child.overdue {
                    true => format!(", as it exceeds max reloads ({})", self.settings.max_reloads),
                    false => String::new(),
                };
                let text = format!("Former worker ({pid}) exited with code {code} ({why}){late}");
                out.push(say(Weight::Warning, text));
                // The one that served has the word, though those before it may end later.
                if serves {
                    self.code.get_or_insert(shown(code));
                }
            }
        }
        if self.children.is_empty() {
            let code = self.code.unwrap_or(0);
            out.push(say(Weight::Warning, format!("All workers exited. Exiting... ({code})")));
            self.exit(code, out);
        }
    }

    /// The current worker has ended.
    fn fell(&mut self, code: u8, out: &mut Vec<Effect>) {
        self.code = Some(shown(code));
        if matches!(code, 0 | TERMINATED | INTERRUPTED) {
            return;
        }
        let text = "A worker ended without having been told to. Please report it with what stands above.";
        out.push(say(Weight::Warning, text.to_owned()));
        if self.settings.survives_failure {
            return;
        }
        let text = "exit-on-failure: killing every processes with SIGTERM";
        out.push(say(Weight::Alert, text.to_owned()));
        if !self.leaving {
            out.push(Effect::Notify(Notice::Stopping));
        }
        self.leaving = true;
        self.kill_all(Signal::Term, out);
    }

    fn exit(&mut self, code: u8, out: &mut Vec<Effect>) {
        if self.adopting.take().is_some() {
            out.push(Effect::Loaded(false));
        }
        self.over = true;
        out.push(Effect::Exit(code));
    }

    /// The state as text, for the program that follows this one.
    pub fn keep(&self) -> String {
        let hard = u8::from(self.reload == Reload::Hard);
        let Settings { max_reloads, survives_failure, in_place } = self.settings;
        let mut text = format!(
            "master {} {} {hard} {max_reloads} {} {}\n",
            self.reloads,
            self.started,
            u8::from(survives_failure) | u8::from(in_place) << 1,
            self.version
        );
        for c in &self.children {
            let _ = writeln!(
                text,
                "worker {} {} {} {} {} {}",
                c.pid,
                c.reloads,
                c.started,
                u8::from(c.overdue),
                c.line,
                c.version
            );
        }
        text
    }

    /// The state after a reload, from the text that the program before left. Whatever is no line of such a
    /// text is passed over.
    pub fn resume(text: &str) -> Option<Machine> {
        let mut machine: Option<Machine> = None;
        for line in text.lines() {
            let _ = resume_line(line, &mut machine);
        }
        machine
    }
}

/// One line of what the program before left; `None` when it is no such line.
fn resume_line(line: &str, machine: &mut Option<Machine>) -> Option<()> {
    let mut words = line.splitn(7, ' ');
    let kind = words.next()?;
    let mut number = || words.next()?.parse::<i64>().ok();
    let [a, b, c, d, e] = [number()?, number()?, number()?, number()?, number()?];
    let version = words.next()?.to_owned();
    match (kind, machine) {
        ("master", none @ None) => {
            *none = Some(Machine {
                reloads: u32::try_from(a).ok()?,
                reload: if c == 1 { Reload::Hard } else { Reload::Soft },
                settings: Settings {
                    max_reloads: u32::try_from(d).ok()?,
                    survives_failure: e & 1 != 0,
                    in_place: e & 2 != 0,
                },
                ..Machine::new(u64::try_from(b).ok()?, &version)
            });
        }
        ("worker", Some(machine)) => machine.children.push(Child {
            pid: i32::try_from(a).ok()?,
            stage: Stage::Former,
            reloads: u32::try_from(b).ok()?.saturating_add(1),
            started: u64::try_from(c).ok()?,
            overdue: d == 1,
            line: i32::try_from(e).ok()?,
            version,
        }),
        _ => {}
    }
    Some(())
}

fn say(weight: Weight, text: String) -> Effect {
    Effect::Say(weight, text)
}

/// What a shell shows of SIGTERM and SIGINT.
const TERMINATED: u8 = 143;
const INTERRUPTED: u8 = 130;

/// The master's code for that of its worker: to end by SIGTERM is to end well.
fn shown(code: u8) -> u8 {
    if code == TERMINATED { 0 } else { code }
}

/// The code that a shell would show of a process, and what ended it.
fn told(how: Ended) -> (u8, String) {
    match how {
        Ended::Exit(code) => (u8::try_from(code & 0xff).unwrap_or(1), "Exit".to_owned()),
        Ended::Signal(number) => {
            let name = NAMES.iter().find(|(n, _)| *n == number).map(|(_, name)| (*name).to_owned());
            let code = u8::try_from(number.saturating_add(128)).unwrap_or(255);
            (code, name.unwrap_or_else(|| format!("Signal {number}")))
        }
    }
}

const NAMES: [(i32, &str); 13] = [
    (1, "Hangup"),
    (2, "Interrupt"),
    (3, "Quit"),
    (4, "Illegal instruction"),
    (5, "Trace/breakpoint trap"),
    (6, "Aborted"),
    (7, "Bus error"),
    (8, "Floating point exception"),
    (9, "Killed"),
    (10, "User defined signal 1"),
    (11, "Segmentation fault"),
    (13, "Broken pipe"),
    (15, "Terminated"),
];
