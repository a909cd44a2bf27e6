//! Reload in place: the configuration is read again beside traffic and takes the place of the one that runs.
//!
//! A thread of its own, which gives way to the workers, does all that can fail: it reads and compiles, looks
//! for what can't change in a process that runs, and opens the new sockets. When one of these fails nothing
//! has changed. Then the program is adopted: live state becomes what it says, and each worker takes its share
//! of it in one step ([`engine::run::switch`]).
//!
//! Under a master it is that one that reads the files and opens the sockets (`master::reader`), for it has
//! the rights that this process gave up.

mod doors;
mod fixed;
mod told;
mod way;

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use base::outside;
use engine::sinks::Outlets;
use engine::worker::{self, Reloaded, Reloader};
use engine::{Shared, run};
use model::proxy::FrontState;
use program::Program;
use rt::{Peers, sys};

use crate::args::Args;
use crate::config::{self, Renewed};
use crate::say;
use supervisor::line::{Word, WorkerEnd};
use way::Way;
pub use way::{Bound, forwarding, receiving};

/// How much whoever reads a configuration again gives way to the workers.
pub const NICE: i8 = 10;

/// How long the configuration before is kept for those who are about to let go of it, so that it is this
/// thread that frees its memory.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the reader of a master may take for a step, as names of hosts that nobody answers for.
const PATIENCE: Duration = Duration::from_secs(300);

/// The most bytes that are told of what is wrong with a configuration.
const MOST: u64 = 1 << 24;

/// Who waits for the outcome.
type Done = Box<dyn FnOnce(Reloaded) + Send>;

/// Reads the configuration of a command line again.
pub struct Again(Arc<Inner>);

struct Inner {
    args: Args,
    under_way: AtomicBool,
    /// The way to the master.
    line: Option<WorkerEnd>,
    /// Those who asked here for what the master does.
    waiting: Mutex<Vec<Done>>,
}

/// How a reload ended.
enum Outcome {
    Adopted(String),
    Fit(String),
    Refused(String),
    /// Only a new process can have it.
    Elsewhere(String),
}

impl Again {
    /// That of these words, in a process that may have a master.
    pub fn new(args: &Args, line: Option<WorkerEnd>) -> Again {
        let (under_way, waiting) = (AtomicBool::new(false), Mutex::default());
        Again(Arc::new(Inner { args: args.clone(), under_way, line, waiting }))
    }
}

impl Reloader for Again {
    fn told(&self, came: Reloaded) {
        for done in std::mem::take(&mut *locked(&self.0.waiting)) {
            done(came.clone());
        }
    }

    fn reload(&self, check: bool, done: Done) {
        if let Some(line) = &self.0.line {
            locked(&self.0.waiting).push(done);
            return line.say(&Word::Wanted { check });
        }
        let inner = self.0.clone();
        inner.begin(done, move |inner, shared, peers| {
            let mut way = Way::Near(Bound::default());
            let read = read(shared, &inner.args);
            let prepared = read.and_then(|read| prepare(shared, read, &inner.args, &mut way));
            finish(prepared, &mut way, shared, peers, check)
        });
    }

    fn adopt(&self, line: OwnedFd) {
        let Ok(stream) = UnixStream::from(line).blocking() else { return };
        let Ok(answer) = stream.try_clone() else { return };
        let inner = self.0.clone();
        let done = Box::new(|_| {});
        inner.begin(done, move |inner, shared, peers| {
            let outcome = far(inner, stream, shared, peers);
            let letter = match &outcome {
                Outcome::Adopted(_) => 'A',
                Outcome::Fit(_) => 'F',
                Outcome::Refused(_) => 'R',
                Outcome::Elsewhere(_) => 'X',
            };
            let told = format!("done {letter}\n{}", outcome.text());
            let _ = (&answer).write_all(told.as_bytes());
            outcome
        });
    }
}

/// A stream that blocks, but not for ever.
trait Blocking: Sized {
    fn blocking(self) -> io::Result<Self>;
}

impl Blocking for UnixStream {
    fn blocking(self) -> io::Result<UnixStream> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(PATIENCE))?;
        Ok(self)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(text: &str) -> Outcome {
    Outcome::Refused(say::plain("[ALERT]", text))
}

impl Outcome {
    fn text(&self) -> String {
        match self {
            Outcome::Adopted(text) | Outcome::Fit(text) | Outcome::Refused(text) => text.clone(),
            Outcome::Elsewhere(text) => text.clone(),
        }
    }

    fn told(self) -> Reloaded {
        let success = matches!(self, Outcome::Adopted(_) | Outcome::Fit(_));
        Reloaded { success, text: self.text() }
    }
}

impl Inner {
    /// Does it on a thread of its own; there is one at a time.
    fn begin(
        self: Arc<Self>,
        done: Done,
        work: impl FnOnce(&Inner, &Arc<Shared>, &Peers) -> Outcome + Send + 'static,
    ) {
        if self.under_way.swap(true, Relaxed) {
            return done(refused("A reload is under way already.").told());
        }
        let (shared, peers) = (worker::with_worker(|w| w.shared.clone()), rt::peers());
        let mut turn = Turn { inner: self, done: Some(done), came: None };
        let thread = std::thread::Builder::new().name("reload".to_owned());
        // The turn ends with what it holds, also if there is no thread.
        let _ = thread.spawn(move || {
            let _ = sys::set_priority(NICE);
            let _ = sys::own_folder();
            let Some(shared) = shared else { return };
            turn.came = Some(work(&turn.inner, &shared, &peers));
            drop(turn);
            part(shared);
        });
    }
}

/// A reload that is under way. Its end is told, however it comes.
struct Turn {
    inner: Arc<Inner>,
    done: Option<Done>,
    came: Option<Outcome>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let came = self.came.take().unwrap_or_else(|| refused("The reload failed.")).told();
        admin::product::set_startup_logs(came.text.clone());
        self.inner.under_way.store(false, Relaxed);
        if let Some(done) = self.done.take() {
            done(came);
        }
    }
}

/// A configuration that a master's child reads meanwhile. What is wrong with it is what that one says: it may
/// not have read all that this process would have asked for.
fn far(inner: &Inner, line: UnixStream, shared: &Arc<Shared>, peers: &Peers) -> Outcome {
    let silent = |e: &io::Error| refused(&format!("The master does not answer: {}.", say::reason(e)));
    match (&line).write_all(b"go\n").and_then(|()| line.try_clone()) {
        Ok(line) => outside::replay(outside::Record::arriving(line)),
        Err(e) => return silent(&e),
    }
    let read = read(shared, &inner.args);
    let check = match outside::live().and_then(|()| verdict(&line)) {
        Ok(Verdict::Fits { check }) => check,
        Ok(Verdict::Wrong(text)) => return Outcome::Refused(text),
        Err(e) => return silent(&e),
    };
    let mut way = Way::Far(line);
    let prepared = read.and_then(|read| prepare(shared, read, &inner.args, &mut way));
    finish(prepared, &mut way, shared, peers, check)
}

/// What the master's child found.
enum Verdict {
    /// It may be adopted, unless it is only to be checked.
    Fits { check: bool },
    /// Why it may not.
    Wrong(String),
}

fn verdict(mut line: &UnixStream) -> io::Result<Verdict> {
    let (mut mark, mut length) = ([0], [0; 8]);
    line.read_exact(&mut mark)?;
    if mark != [2] {
        return Ok(Verdict::Fits { check: mark == [1] });
    }
    line.read_exact(&mut length)?;
    let mut text = Vec::new();
    line.take(u64::from_le_bytes(length).min(MOST)).read_to_end(&mut text)?;
    Ok(Verdict::Wrong(String::from_utf8_lossy(&text).into_owned()))
}

/// All that can fail has been done.
struct Ready {
    program: Program,
    text: String,
    doors: doors::Doors,
    outlets: Outlets,
    scripts: Option<Arc<lua::Loaded>>,
}

fn read(shared: &Shared, args: &Args) -> Result<Renewed, Outcome> {
    if shared.program.world.process.is_to_stop() {
        return Err(refused("The process stops."));
    }
    config::again(args, Some(&shared.program)).map_err(Outcome::Refused)
}

fn prepare(shared: &Shared, read: Renewed, args: &Args, way: &mut Way) -> Result<Ready, Outcome> {
    let Renewed { mut program, mut text, workers, scripts } = read;
    let mut fixed = fixed::differences(&shared.program, &program);
    if workers != shared.program.world.workers {
        fixed.push("'nbthread'".to_owned());
    }
    if !fixed.is_empty() {
        let line =
            |what: &String| say::plain("[ALERT]", &format!("{what} can't change in a process that runs."));
        let lines: String = fixed.iter().map(line).collect();
        let advice = if args.master_worker { String::new() } else { config::advice() };
        return Err(Outcome::Elsewhere(text + &lines + &advice));
    }
    let lost = compile::dynamic::carry_over(&shared.program, &mut program);
    let lists = program.tls.repeat_changes(&shared.program.tls);
    for lost in lost.into_iter().chain(lists) {
        text.push_str(&say::plain(
            "[WARNING]",
            &format!("config : no more of what was added at run time: {lost}"),
        ));
    }
    let complain = |complaints: Vec<String>| {
        let lines: String = complaints.iter().map(|line| say::plain("[ALERT]", line)).collect();
        Outcome::Refused(text.clone() + &lines)
    };
    let doors = doors::Doors::open(shared, &program, way).map_err(complain)?;
    let mut silent = String::new();
    let log = |at: usize, path: &[u8]| {
        let found = way.log(at, path)?;
        if found.is_none() {
            // As at the start, this keeps nobody from serving.
            let path = String::from_utf8_lossy(path);
            silent += &say::plain("[WARNING]", &format!("Nobody listens for log lines on '{path}'."));
        }
        Ok(found)
    };
    let outlets = Outlets::after(&program, &shared.program, &shared.outlets, log);
    let outlets = outlets.map_err(|why| complain(vec![why]))?;
    text.push_str(&silent);
    text.push_str(&told::changes(&shared.program, &program, &doors.moves));
    Ok(Ready { program, text, doors, outlets, scripts })
}

fn finish(
    prepared: Result<Ready, Outcome>,
    way: &mut Way,
    shared: &Arc<Shared>,
    peers: &Peers,
    check: bool,
) -> Outcome {
    match prepared {
        Err(outcome) => outcome,
        Ok(ready) if check => Outcome::Fit(ready.text),
        Ok(ready) => match way.begin() {
            Ok(()) => Outcome::Adopted(adopt(shared, ready, peers)),
            Err(why) => Outcome::Refused(ready.text + &say::plain("[ALERT]", &why)),
        },
    }
}

/// From here on nothing fails. Gives what there is to say.
fn adopt(before: &Arc<Shared>, ready: Ready, peers: &Peers) -> String {
    let Ready { mut program, doors, outlets, mut text, scripts } = ready;
    let now = rt::precise();
    let gone = program.adopt_at(now);
    apply(&program);
    let mut shared = Shared::succeed(before, Arc::new(program), outlets, now);
    shared.exposed = doors.exposed(before);
    shared.services = config::services_with(scripts.as_deref());
    shared.commands = scripts.iter().flat_map(|scripts| scripts.commands()).collect();
    shared.program.world.process.adoptions.fetch_add(1, Relaxed);
    let shared = Arc::new(shared);
    let doors::Doors { opened, cli, forwards, moves, .. } = doors;
    let of_forwards = forwards.listeners.iter().map(|(section, ..)| *section);
    for section in of_forwards.chain(forwards.datagrams.iter().map(|(section, ..)| *section)) {
        let Some(forward) = shared.program.forwards.get(section) else { continue };
        if forward.state.front.state() == FrontState::Stopped {
            forward.state.front.set_state(FrontState::Open);
        }
    }
    for door in &opened {
        // One that an operator had shut down begins anew, like its socket.
        let front = &shared.program.configured(door.proxy).state.front;
        if front.state() == FrontState::Stopped {
            front.set_state(FrontState::Open);
        }
    }
    let (moves, (told, heard)) = (Arc::new(moves), mpsc::channel());
    let mut cli = Some(cli);
    for index in 0..peers.count() {
        let (shared, moves, told, opened) = (shared.clone(), moves.clone(), told.clone(), opened.clone());
        let (scripts, forwards) = (scripts.clone(), forwards.clone());
        let cli = if index == 0 { cli.take().unwrap_or_default() } else { Vec::new() };
        let job = move || {
            let mut failed = None;
            if let Some(worker) = run::switch(shared, opened, moves) {
                failed = lua::succeed(scripts.as_deref(), &worker).err();
                engine::forward::start(&worker, forwards);
                for (index, listener) in cli {
                    rt::spawn(admin::cli::serve(worker.clone(), listener, index));
                }
            }
            let _ = told.send(failed);
        };
        peers.send_to(index, Box::new(job));
    }
    // Whoever does not answer has ended.
    drop((told, opened, forwards));
    while let Ok(failed) = heard.recv() {
        // A function that runs at the start failed, but the configuration is adopted by now.
        failed.iter().for_each(|why| text += &say::plain("[ALERT]", why));
    }
    gone.iter().for_each(|proxy| proxy.front.set_state(FrontState::Stopped));
    shared.farm.catch_up(rt::precise());
    text
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
    let trims = !before.program.global.disabled.trimming;
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while waited < FAREWELL && Arc::strong_count(&before) > 1 {
        std::thread::sleep(step);
        waited += step;
    }
    drop(before);
    // What was read and the program before leave holes, which the allocator would keep.
    if trims {
        sys::trim_memory();
    }
}
