//! Thousands of random histories, and those that were seen of the oracle.

use super::*;

/// The kernel of a history: which processes are alive, and what the master did.
struct World {
    seed: u64,
    machine: Machine,
    /// Children alive, each with whether it was told to end.
    alive: Vec<(i32, bool)>,
    next: i32,
    /// Reloads that were asked for on the socket and not answered yet.
    asked: u32,
    ready: u32,
    exit: Option<u8>,
    /// A reload in place is under way.
    adopting: bool,
    /// The code of the last worker that ended while it served, and whether a later one failed to load.
    fell: Option<u8>,
    unloaded: bool,
    said: Vec<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            machine: Machine::new(100, "3.5 one"),
            alive: Vec::new(),
            next: 1000,
            asked: 0,
            ready: 0,
            exit: None,
            adopting: false,
            fell: None,
            unloaded: false,
            said: Vec::new(),
        };
        world.start();
        world
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % below
    }

    fn start(&mut self) {
        if self.random(40) == 0 {
            return self.give(Event::NotStarted("no processes left".into()));
        }
        self.next += 1;
        self.alive.push((self.next, false));
        let child = Child {
            pid: self.next,
            stage: Stage::Loading,
            reloads: 0,
            started: 200,
            version: "3.5 two".into(),
            overdue: false,
            line: self.next,
        };
        self.give(Event::Started(child));
    }

    fn give(&mut self, event: Event) {
        let mut out = Vec::new();
        self.machine.handle(event, &mut out);
        for effect in out {
            assert!(self.exit.is_none(), "{effect:?} after the end");
            match effect {
                Effect::Kill(pid, signal) => {
                    let child = self.alive.iter_mut().find(|(p, _)| *p == pid);
                    let (_, told) = child.unwrap_or_else(|| panic!("{signal:?} to {pid}, which is gone"));
                    *told |= matches!(signal, Signal::Term | Signal::Int | Signal::Usr1);
                }
                Effect::Adopt(pid, _) => {
                    assert!(!self.adopting && self.alive.iter().any(|(p, _)| *p == pid));
                    self.adopting = true;
                }
                Effect::Replace => self.replace(),
                Effect::Loaded(good) => {
                    self.asked = 0;
                    self.ready += u32::from(good);
                }
                Effect::Exit(code) => self.exit = Some(code),
                Effect::Say(_, text) => self.said.push(text),
                Effect::Notify(_) => {}
            }
        }
        self.check();
    }

    fn replace(&mut self) {
        if self.random(20) == 0 {
            return self.give(Event::NotReplaced("no such file".into()));
        }
        let kept = self.machine.keep();
        let next = Machine::resume(&kept).expect("what was kept is understood");
        assert_eq!(next.children.len(), self.machine.children.len());
        for (old, new) in self.machine.children.iter().zip(&next.children) {
            assert_eq!((old.pid, old.reloads + 1, old.line), (new.pid, new.reloads, new.line));
        }
        self.machine = next;
        // The program that follows knows nothing of what ended before.
        (self.fell, self.unloaded) = (None, false);
        self.start();
    }

    fn check(&self) {
        let m = &self.machine;
        let fresh = m.children.iter().filter(|c| c.stage != Stage::Former).count();
        assert!(fresh <= 1, "{m:?}");
        assert_eq!(m.children.len(), self.alive.len(), "{m:?}");
        // Each child of the kernel is one of its, the oldest first; none loads beside one that serves.
        assert!(m.children.iter().map(|c| c.pid).eq(self.alive.iter().map(|(pid, _)| *pid)), "{m:?}");
        let young = m.children.iter().position(|c| c.stage != Stage::Former);
        assert!(young.is_none_or(|at| at + 1 == m.children.len()), "{m:?}");
        assert_eq!(self.exit.is_some(), m.over);
        assert!(self.exit.is_none() || self.alive.is_empty());
        if m.leaving {
            assert!(self.alive.iter().all(|(_, told)| *told), "somebody was not told to leave: {m:?}");
        }
    }

    /// A child ends.
    fn end(&mut self, index: usize, how: Ended) {
        let (pid, _) = self.alive.remove(index);
        let stage = self.machine.children.iter().find(|c| c.pid == pid).map(|c| c.stage);
        let code = shown(told(how).0);
        match stage {
            Some(Stage::Current) => self.fell = Some(code),
            Some(Stage::Loading) => self.unloaded = !self.machine.leaving,
            _ => {}
        }
        self.give(Event::Ended(pid, how));
        if let (Some(exit), Some(fell), false) = (self.exit, self.fell, self.unloaded) {
            assert_eq!(exit, fell, "the master ends as its last worker did that served: {:?}", self.machine);
        }
    }

    fn step(&mut self) {
        if self.adopting && self.random(3) == 0 {
            self.adopting = false;
            let verdict = match self.random(4) {
                0 => Verdict::Refused,
                1 => Verdict::Elsewhere("'nbthread'".into()),
                2 => Verdict::Fit,
                _ => Verdict::Adopted,
            };
            return self.give(Event::Adopted(verdict));
        }
        match self.random(13) {
            12 => {
                self.asked += 1;
                let check = self.random(2) == 0;
                self.give(Event::InPlace { check });
            }
            0 => self.give(Event::Ended(7, Ended::Exit(3))),
            1 => self.give(Event::Signal(Signal::Usr2)),
            2 => {
                self.asked += 1;
                let reload = if self.random(2) == 0 { Reload::Soft } else { Reload::Hard };
                self.give(Event::Reload(reload));
            }
            3 | 4 => {
                if let Some(pid) = self.loading() {
                    let settings = Settings {
                        max_reloads: self.random(4) as u32,
                        survives_failure: self.random(2) == 0,
                        in_place: self.random(2) == 0,
                    };
                    self.give(Event::Told(pid, settings));
                    self.give(Event::Ready(pid));
                }
            }
            5 => {
                if let Some(at) = self.loading().and_then(|p| self.alive.iter().position(|(a, _)| *a == p)) {
                    self.end(at, Ended::Exit(1));
                }
            }
            6 | 7 => {
                // Those who were told to leave do.
                if let Some(at) = self.alive.iter().position(|(_, told)| *told) {
                    self.end(at, Ended::Exit(0));
                }
            }
            8 if !self.alive.is_empty() && self.random(6) == 0 => {
                let at = self.random(self.alive.len() as u64) as usize;
                let number = [6, 9, 11, 15][self.random(4) as usize];
                self.end(at, Ended::Signal(number));
            }
            9 if self.random(10) == 0 => {
                let signal = [Signal::Term, Signal::Int, Signal::Usr1][self.random(3) as usize];
                self.give(Event::Signal(signal));
            }
            kind => {
                let at = self.random(2) as usize;
                let signals =
                    if kind == 10 { [Signal::Ttou, Signal::Ttin] } else { [Signal::Hup, Signal::Quit] };
                self.give(Event::Signal(signals[at]));
            }
        }
    }

    fn loading(&self) -> Option<i32> {
        self.machine.children.iter().find(|c| c.stage == Stage::Loading).map(|c| c.pid)
    }
}

#[test]
fn no_history_loses_a_worker_or_leaves_a_master_behind() {
    let (mut ended, mut ready) = (0, 0);
    let more = std::env::var("WORLDS_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 1..=more.unwrap_or(0).max(10_000) {
        let mut world = World::new(seed);
        for _ in 0..60 {
            if world.exit.is_some() {
                break;
            }
            world.step();
        }
        // Whatever went before: who asked gets an answer, and SIGTERM ends it.
        if world.exit.is_none() {
            world.give(Event::Signal(Signal::Term));
            while !world.alive.is_empty() {
                world.end(0, Ended::Signal(15));
            }
        }
        assert!(world.exit.is_some(), "seed {seed}: {:?}", world.machine);
        assert_eq!(world.asked, 0, "seed {seed}: a reload was not answered");
        ended += u32::from(world.exit == Some(0));
        ready += world.ready;
    }
    assert!(ended > 1000 && ready > 10_000, "{ended} {ready}");
}

/// A world whose first worker serves.
fn serving() -> World {
    let mut world = World::new(3);
    world.give(Event::Ready(world.machine.children[0].pid));
    assert_eq!(world.said, ["Initializing new worker (1001)", "Loading success."]);
    world.said.clear();
    world
}

#[test]
fn a_crash_ends_all_with_its_code() {
    for (number, code, name) in [(9, 137, "Killed"), (11, 139, "Segmentation fault"), (6, 134, "Aborted")] {
        let mut world = serving();
        world.end(0, Ended::Signal(number));
        assert_eq!(world.exit, Some(code));
        assert_eq!(world.said[0], format!("Current worker (1001) exited with code {code} ({name})"));
        assert_eq!(*world.said.last().unwrap(), format!("All workers exited. Exiting... ({code})"));
    }
}

#[test]
fn a_stop_ends_with_the_codes_of_the_oracle() {
    for (signal, how, code) in [
        (Signal::Term, Ended::Signal(15), 0),
        (Signal::Int, Ended::Signal(2), 130),
        (Signal::Usr1, Ended::Exit(0), 0),
    ] {
        let mut world = serving();
        world.give(Event::Signal(signal));
        world.end(0, how);
        assert_eq!(world.exit, Some(code), "{signal:?}");
    }
}

/// Whichever of the two ends first.
#[test]
fn a_stop_while_a_worker_starts_ends_with_the_code_of_the_one_that_serves() {
    for first in [0, 1] {
        let mut world = serving();
        world.give(Event::Reload(Reload::Soft));
        world.give(Event::Signal(Signal::Int));
        world.end(first, Ended::Signal(2));
        world.end(0, Ended::Signal(2));
        assert_eq!(world.exit, Some(130), "{first}");
    }
}

#[test]
fn a_failed_reload_keeps_the_worker_and_the_next_one_replaces_it() {
    let mut world = serving();
    world.give(Event::Reload(Reload::Soft));
    world.end(1, Ended::Exit(1));
    assert!(world.machine.failed && world.exit.is_none());
    assert_eq!(world.alive, [(1001, false)]);
    assert_eq!(world.said.last().unwrap(), "Failed to load worker (1002) exited with code 1 (Exit)");
    world.give(Event::Reload(Reload::Hard));
    world.give(Event::Ready(1003));
    assert_eq!(world.alive, [(1001, true), (1003, false)]);
    assert!(!world.machine.failed);
    world.end(0, Ended::Signal(15));
    assert_eq!(world.said.last().unwrap(), "Former worker (1001) exited with code 143 (Terminated)");
}

#[test]
fn a_worker_that_overstays_its_reloads_is_ended() {
    let mut world = serving();
    for pid in [1002, 1003] {
        world.give(Event::Signal(Signal::Usr2));
        world.give(Event::Told(pid, Settings { max_reloads: 1, survives_failure: false, in_place: false }));
        world.give(Event::Ready(pid));
    }
    assert_eq!(world.machine.children.iter().map(|c| c.overdue).collect::<Vec<_>>(), [true, false, false]);
    world.end(0, Ended::Signal(15));
    assert!(world.said.last().unwrap().ends_with("(Terminated), as it exceeds max reloads (1)"));
}

#[test]
fn what_was_not_kept_by_a_master_is_no_state() {
    for text in ["", "x", "master", "worker 1 1 1 1 1 v", "master 1 2 3 4 5", "master 1 2 3 4 x v"] {
        assert!(Machine::resume(text).is_none(), "{text:?}");
    }
    assert_eq!(
        Machine::resume("master 2 5 1 9 0 3.5 dev\n").map(|m| (m.reloads, m.version)),
        Some((2, "3.5 dev".into()))
    );
}

/// A machine whose configuration says `reload in-place`, with a worker that serves.
fn adopting() -> (Machine, Vec<Effect>) {
    let (mut machine, mut out) = (Machine::new(0, "v"), Vec::new());
    let child = Child {
        pid: 7,
        stage: Stage::Loading,
        reloads: 0,
        started: 0,
        version: "v".to_owned(),
        overdue: false,
        line: 3,
    };
    machine.handle(Event::Started(child), &mut out);
    let settings = Settings { max_reloads: 1, survives_failure: false, in_place: true };
    machine.handle(Event::Told(7, settings), &mut out);
    machine.handle(Event::Ready(7), &mut out);
    out.clear();
    (machine, out)
}

#[test]
fn a_worker_adopts_in_place_where_its_configuration_says_so() {
    let (mut machine, mut out) = adopting();
    machine.handle(Event::Signal(Signal::Usr2), &mut out);
    assert!(out.contains(&Effect::Adopt(7, false)) && !out.contains(&Effect::Replace));
    // What comes meanwhile waits for the end of it.
    out.clear();
    machine.handle(Event::Reload(Reload::Soft), &mut out);
    assert!(out.is_empty());
    machine.handle(Event::Adopted(Verdict::Adopted), &mut out);
    assert_eq!((machine.reloads, machine.failed, machine.children.len()), (1, false, 1));
    assert!(out.contains(&Effect::Loaded(true)) && out.contains(&Effect::Notify(Notice::Ready)));
    assert!(out.contains(&Effect::Adopt(7, false)), "the one that waited");
    machine.handle(Event::Adopted(Verdict::Refused), &mut out);
    assert_eq!((machine.reloads, machine.failed, machine.children.len()), (2, true, 1));
    assert!(out.contains(&Effect::Notify(Notice::ReloadFailed)));
    // It is remembered by the program that follows.
    let again = Machine::resume(&machine.keep()).expect("a machine");
    assert_eq!(again.settings, machine.settings);
}

#[test]
fn what_a_running_process_cant_have_is_given_to_a_new_one_unless_it_was_only_asked() {
    let (mut machine, mut out) = adopting();
    machine.handle(Event::InPlace { check: true }, &mut out);
    machine.handle(Event::Adopted(Verdict::Elsewhere("'nbthread'".to_owned())), &mut out);
    assert!(out.contains(&Effect::Adopt(7, true)) && out.contains(&Effect::Loaded(false)));
    assert!(!out.contains(&Effect::Replace) && machine.reloads == 0 && !machine.failed);
    machine.handle(Event::InPlace { check: false }, &mut out);
    machine.handle(Event::Adopted(Verdict::Elsewhere("'nbthread'".to_owned())), &mut out);
    assert!(out.contains(&Effect::Replace) && machine.reloads == 1);
    // A hard one never goes that way.
    let (mut machine, mut out) = adopting();
    machine.handle(Event::Reload(Reload::Hard), &mut out);
    assert!(out.contains(&Effect::Replace));
}

#[test]
fn a_look_stays_a_look_whatever_is_under_way() {
    let (mut machine, mut out) = adopting();
    machine.handle(Event::InPlace { check: false }, &mut out);
    machine.handle(Event::InPlace { check: true }, &mut out);
    out.clear();
    machine.handle(Event::Adopted(Verdict::Adopted), &mut out);
    assert!(out.contains(&Effect::Loaded(true)) && out.contains(&Effect::Adopt(7, true)));
    assert!(!out.contains(&Effect::Adopt(7, false)) && !out.contains(&Effect::Replace));
    // Beside a look, a reload that was asked for counts, and the hardest of them.
    for event in [Event::Reload(Reload::Hard), Event::InPlace { check: true }, Event::Reload(Reload::Soft)] {
        machine.handle(event, &mut out);
    }
    out.clear();
    machine.handle(Event::Adopted(Verdict::Fit), &mut out);
    assert_eq!((out.contains(&Effect::Replace), machine.reload), (true, Reload::Hard));
}

#[test]
fn a_worker_whose_successor_could_not_start_is_the_current_one_once_it_adopts() {
    let (machine, mut out) = adopting();
    let mut machine = Machine::resume(&machine.keep()).expect("a machine");
    machine.handle(Event::NotStarted("no processes left".to_owned()), &mut out);
    assert!(machine.failed && machine.children[0].stage == Stage::Former);
    machine.handle(Event::InPlace { check: false }, &mut out);
    machine.handle(Event::Adopted(Verdict::Adopted), &mut out);
    assert!(!machine.failed && machine.children[0].stage == Stage::Current);
}
