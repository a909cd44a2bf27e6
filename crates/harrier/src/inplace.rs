//! Reload in place: the configuration is read again beside traffic and takes the place of the one that runs.
//!
//! A thread of its own, which gives way to the workers, does all that can fail: it reads and compiles, looks
//! for what can't change in a process that runs, and opens the new sockets. When one of these fails nothing
//! has changed. Then the program is adopted: live state becomes what it says, and each worker takes its share
//! of it in one step ([`engine::run::switch`]).

mod doors;
mod fixed;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use engine::sinks::Outlets;
use engine::worker::{self, Reloaded, Reloader};
use engine::{Shared, run};
use program::Program;
use rt::{Peers, sys};

use crate::args::Args;
use crate::config::{self, Renewed};
use crate::say;

/// How much the thread gives way to the workers.
const NICE: i8 = 10;

/// How long the configuration before is kept for those who are about to let go of it, so that it is this
/// thread that frees its memory.
const FAREWELL: Duration = Duration::from_secs(2);

/// Reads the configuration of a command line again.
pub struct Again {
    args: Args,
    under_way: AtomicBool,
}

impl Again {
    /// That of these words.
    pub fn new(args: &Args) -> Again {
        Again { args: args.clone(), under_way: AtomicBool::new(false) }
    }
}

/// A reload that is under way.
struct Turn(Arc<Again>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.under_way.store(false, Relaxed);
    }
}

/// [`Again`] where it is shared.
pub struct Shareable(pub Arc<Again>);

impl Reloader for Shareable {
    fn reload(&self, check: bool, done: Box<dyn FnOnce(Reloaded) + Send>) {
        let again = self.0.clone();
        let refuse = |text: &str| Reloaded { success: false, text: say::plain("[ALERT]", text) };
        if again.under_way.swap(true, Relaxed) {
            return done(refuse("A reload is under way already."));
        }
        let turn = Turn(again);
        let Some(shared) = worker::with_worker(|w| w.shared.clone()) else {
            return done(refuse("This is no worker."));
        };
        let peers = rt::peers();
        let thread = std::thread::Builder::new().name("reload".to_owned());
        // Dropped unused where there is no thread: whoever waits is told.
        let done = Arc::new(std::sync::Mutex::new(Some(done)));
        let theirs = done.clone();
        let begun = thread.spawn(move || {
            let mut finish = Finish { done: theirs, turn: Some(turn) };
            run_again(shared, &peers, check, &mut finish);
        });
        if begun.is_err()
            && let Some(done) = done.lock().ok().and_then(|mut done| done.take())
        {
            done(refuse("There is no thread to be had."));
        }
    }
}

type Waiting = Arc<std::sync::Mutex<Option<Box<dyn FnOnce(Reloaded) + Send>>>>;

/// Whom the outcome is told, once; also if the thread panics.
struct Finish {
    done: Waiting,
    turn: Option<Turn>,
}

impl Finish {
    fn say(&mut self, came: Reloaded) {
        admin::product::set_startup_logs(came.text.clone());
        self.turn = None;
        let done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(done) = done {
            done(came);
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let waits = self.done.lock().is_ok_and(|done| done.is_some());
        if waits {
            self.say(Reloaded { success: false, text: say::plain("[ALERT]", "The reload failed.") });
        }
    }
}

fn run_again(shared: Arc<Shared>, peers: &Peers, check: bool, finish: &mut Finish) {
    let _ = sys::set_priority(NICE);
    let _ = sys::own_folder();
    let args = finish.turn.as_ref().map(|turn| turn.0.args.clone()).unwrap_or_default();
    match prepare(&shared, &args) {
        Err(text) => finish.say(Reloaded { success: false, text }),
        Ok(ready) if check => finish.say(Reloaded { success: true, text: ready.text }),
        Ok(ready) => {
            let text = ready.text.clone();
            adopt(&shared, ready, peers);
            finish.say(Reloaded { success: true, text });
            part(shared);
        }
    }
}

/// All that can fail has been done.
struct Ready {
    program: Program,
    text: String,
    doors: doors::Doors,
    outlets: Outlets,
}

fn prepare(shared: &Shared, args: &Args) -> Result<Ready, String> {
    if shared.program.world.process.is_to_stop() {
        return Err(say::plain("[ALERT]", "The process stops."));
    }
    let Renewed { program, text } = config::again(args, &shared.program)?;
    let fixed = fixed::differences(&shared.program, &program);
    if !fixed.is_empty() {
        let lines = fixed
            .iter()
            .map(|what| say::plain("[ALERT]", &format!("{what} can't change in a process that runs.")));
        return Err(text + &lines.collect::<String>() + &config::advice());
    }
    let doors = doors::Doors::open(shared, &program).map_err(|complaints| {
        let lines = complaints.iter().map(|text| say::plain("[ALERT]", text));
        text.clone() + &lines.collect::<String>()
    })?;
    let outlets = Outlets::open(&program);
    Ok(Ready { program, text, doors, outlets })
}

/// From here on nothing fails.
fn adopt(before: &Arc<Shared>, ready: Ready, peers: &Peers) {
    let Ready { mut program, doors, outlets, .. } = ready;
    let now = rt::precise();
    program.adopt_at(now);
    apply(&program);
    let mut shared = Shared::succeed(before, Arc::new(program), outlets, now);
    shared.exposed = doors.exposed(before);
    shared.program.world.process.adoptions.fetch_add(1, Relaxed);
    let shared = Arc::new(shared);
    let doors::Doors { opened, cli, moves, .. } = doors;
    let (moves, (told, heard)) = (Arc::new(moves), mpsc::channel());
    let mut cli = Some(cli);
    for index in 0..peers.count() {
        let (shared, moves, told, opened) = (shared.clone(), moves.clone(), told.clone(), opened.clone());
        let cli = if index == 0 { cli.take().unwrap_or_default() } else { Vec::new() };
        let job = move || {
            if let Some(worker) = run::switch(shared, opened, moves) {
                for (index, listener) in cli {
                    rt::spawn(admin::cli::serve(worker.clone(), listener, index));
                }
            }
            let _ = told.send(());
        };
        peers.send_to(index, Box::new(job));
    }
    // Whoever does not answer has ended.
    drop((told, opened));
    while heard.recv().is_ok() {}
    shared.farm.catch_up(rt::precise());
}

/// Settings of the process that may change.
fn apply(program: &Program) {
    let global = &program.global;
    rt::set_sleepless(global.busy_polling);
    rt::set_pipe_size(global.tune.pipesize.unwrap_or(0));
    rt::set_pipe_limit(global.maxpipes as usize);
    rt::allow_kernel_tls(!global.disabled.ktls);
}

/// Waits until nobody else has the configuration before, and frees its memory here, where nobody waits for
/// it.
fn part(before: Arc<Shared>) {
    let mut before = Some(before);
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while waited < FAREWELL && before.as_ref().is_some_and(|shared| Arc::strong_count(shared) > 1) {
        std::thread::sleep(step);
        waited += step;
    }
    before.take();
}
