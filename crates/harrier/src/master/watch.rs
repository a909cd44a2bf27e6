//! A master at work: what happens goes to the [`Machine`], and what that decides is done here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use engine::{Shared, Worker, run};
use program::Bind;
use rt::sys::{self, Ended, Fork};
use rt::{Listener, Notify, Socket, Timer};
use wire::handover::TOLD;

use super::again::{self, Kept, Open};
use super::reader;
use crate::args::Args;
use crate::background::Background;
use crate::ready::Ready;
use crate::say;
use supervisor::line::{Word, Words};
use supervisor::machine::{Effect, Event, Machine, Verdict, Weight};

/// How long a client that waits for the end of a reload may take to read of it.
const TELLING: Duration = Duration::from_secs(5);

/// Clients that may wait for the end of a reload. Those beyond are not told of it.
const MOST_WAITING: usize = 128;

/// The most text that is kept of what was said during a start.
const MOST_LOGS: usize = 1 << 20;

/// What a master begins with.
pub struct Parts {
    /// What it has of the program before.
    pub kept: Kept,
    /// How starting the worker went.
    pub began: Event,
    /// Where its commands are taken.
    pub listener: Option<(Listener, Bind)>,
    /// Who waits for the start.
    pub background: Option<Background>,
    /// Its own program.
    pub shared: Shared,
    /// The service manager is told.
    pub notify: bool,
    /// `-p`.
    pub pidfile: Option<PathBuf>,
    /// The folder that the command line was given in.
    pub home: Option<PathBuf>,
    /// Nobody hears it any more.
    pub in_background: bool,
    /// The words of the command line.
    pub args: Args,
}

/// A master at work.
pub struct Hub {
    /// Its state.
    pub machine: RefCell<Machine>,
    /// What runs the commands that it knows itself.
    pub worker: Rc<Worker>,
    /// What was said since the last start.
    pub logs: RefCell<String>,
    /// The ways to the workers.
    lines: RefCell<BTreeMap<i32, OwnedFd>>,
    /// What workers said that is no word yet.
    heard: RefCell<BTreeMap<i32, Heard>>,
    /// Clients that wait for the end of the reload that is under way.
    waiting: RefCell<Vec<OwnedFd>>,
    /// Clients that wait for the end of the one that is to follow.
    later: RefCell<Vec<OwnedFd>>,
    listener: Option<Listener>,
    background: RefCell<Option<Background>>,
    notify: Option<Ready>,
    pidfile: RefCell<Option<PathBuf>>,
    path: PathBuf,
    home: Option<PathBuf>,
    code: Arc<AtomicU8>,
    /// A client of the socket has left.
    pub freed: Notify,
    args: Args,
    /// What the program's file was like when it was started.
    binary: Option<Identity>,
    me: Weak<Hub>,
}

struct Heard {
    stream: UnixStream,
    words: Words,
}

impl Hub {
    /// A master that begins, and whose end is told by `code`.
    pub fn new(parts: Parts, code: Arc<AtomicU8>) -> (Rc<Hub>, Event, Option<(Listener, Bind)>) {
        let Parts { kept, began, listener, background, shared, notify, pidfile, .. } = parts;
        let (home, in_background, args) = (parts.home, parts.in_background, parts.args);
        if in_background {
            let _ = sys::silence_standard_streams();
        }
        let Kept { machine, lines, waiting, .. } = kept;
        let path = again::own_path();
        let hub = Rc::new_cyclic(|me| Hub {
            args,
            binary: identity(&path),
            me: me.clone(),
            machine: RefCell::new(machine),
            worker: run::start_worker(0, Arc::new(shared), Vec::new()),
            logs: RefCell::default(),
            lines: RefCell::new(lines),
            heard: RefCell::default(),
            waiting: RefCell::new(waiting),
            later: RefCell::default(),
            listener: listener.as_ref().map(|(listener, _)| listener.clone()),
            background: RefCell::new(background),
            notify: notify.then(Ready::open).flatten(),
            pidfile: RefCell::new(pidfile),
            path,
            home,
            code,
            freed: Notify::new(),
        });
        (hub, began, listener)
    }

    /// The machine takes an event, and what it decides is done.
    pub fn handle(&self, event: Event) {
        let mut out = Vec::new();
        self.machine.borrow_mut().handle(event, &mut out);
        for effect in out {
            self.perform(effect);
        }
    }

    fn perform(&self, effect: Effect) {
        match effect {
            Effect::Say(weight, text) => self.say(weight, &text),
            Effect::Kill(pid, signal) => drop(sys::kill(pid, signal.number())),
            Effect::Notify(notice) => {
                if let Some(manager) = &self.notify {
                    manager.notify(notice);
                }
            }
            Effect::Loaded(good) => self.loaded(good),
            Effect::Replace => self.replace(),
            Effect::Adopt(pid, check) => self.adopt(pid, check),
            Effect::Exit(code) => self.finish(code),
        }
    }

    fn say(&self, weight: Weight, text: &str) {
        let level = match weight {
            Weight::Notice => "[NOTICE]",
            Weight::Warning => "[WARNING]",
            Weight::Alert => "[ALERT]",
        };
        match weight {
            Weight::Notice => say::notice(text),
            Weight::Warning => say::warning(text),
            Weight::Alert => say::alert(text),
        }
        self.note(&say::plain(level, text));
    }

    fn note(&self, text: &str) {
        let mut logs = self.logs.borrow_mut();
        if logs.len() + text.len() <= MOST_LOGS {
            logs.push_str(text);
        }
    }

    /// A start went well or not: whoever waits for it is told.
    fn loaded(&self, good: bool) {
        let mut text = format!("Success={}\n--\n", u8::from(good));
        text.push_str(&self.logs.borrow());
        text.push('\n');
        let text: Rc<str> = text.into();
        let mut clients = self.waiting.take();
        if self.machine.borrow().is_leaving() {
            // No other reload follows.
            clients.append(&mut self.later.borrow_mut());
        }
        for client in clients {
            tell(client.into(), text.clone());
        }
        if good && let Some(background) = self.background.take() {
            let _ = sys::silence_standard_streams();
            background.started();
        }
    }

    /// Ends the process with this code.
    pub fn finish(&self, code: u8) {
        self.code.store(code, Relaxed);
        rt::stop_worker();
    }

    fn replace(&self) {
        let socket = self.listener.as_ref().and_then(|l| l.fd().ok()?.try_clone_to_owned().ok());
        self.waiting.borrow_mut().append(&mut self.later.borrow_mut());
        let error = {
            let (machine, lines) = (self.machine.borrow(), self.lines.borrow());
            let waiting = self.waiting.borrow();
            let open = Open { lines: &lines, socket, waiting: &waiting };
            again::replace(&self.path, self.home.as_deref(), &machine, &open)
        };
        self.logs.borrow_mut().clear();
        self.handle(Event::NotReplaced(say::reason(&error)));
    }

    /// A process that has the rights of this one reads the configuration for a worker.
    fn adopt(&self, pid: i32, check: bool) {
        self.logs.borrow_mut().clear();
        self.waiting.borrow_mut().append(&mut self.later.borrow_mut());
        let elsewhere = |why: &str| Event::Adopted(Verdict::Elsewhere(why.to_owned()));
        if self.binary.is_none() || identity(&self.path) != self.binary {
            return self.handle(elsewhere("The program on disk is another one"));
        }
        let line = self.lines.borrow().get(&pid).and_then(|line| line.try_clone().ok());
        let (Some(line), Ok((ours, theirs)), Some(hub)) = (line, sys::socket_pair(), self.me.upgrade())
        else {
            return self.handle(elsewhere("The worker can't be reached"));
        };
        match sys::fork() {
            Ok(Fork::Child) => {
                drop(ours);
                reader::run(&self.args, &line, &theirs, check)
            }
            Ok(Fork::Parent(_)) => {
                drop(theirs);
                rt::spawn(hear_reader(hub, ours));
            }
            Err(e) => self.handle(elsewhere(&format!("Cannot fork ({})", say::reason(&e)))),
        }
    }

    /// A client asks for a reload, and waits for its end.
    pub fn wait_for_reload(&self, client: OwnedFd) {
        let mut queue = match self.machine.borrow().is_busy() {
            true => self.later.borrow_mut(),
            false => self.waiting.borrow_mut(),
        };
        if queue.len() < MOST_WAITING {
            queue.push(client);
        }
    }

    /// A connection to the runtime API of a worker.
    ///
    /// # Errors
    /// `WouldBlock`: as many wait already as its line holds. Others: there is no such worker any more.
    pub fn connect(&self, pid: i32) -> std::io::Result<Socket> {
        let lines = self.lines.borrow();
        let line = lines.get(&pid).ok_or(std::io::ErrorKind::NotConnected)?;
        Socket::connect_sockpair(line.as_fd())
    }

    /// Looks after all children that have ended.
    pub fn reap(&self) {
        while let Ok(Some((pid, how))) = sys::reap() {
            self.ended(pid, how);
        }
    }

    fn ended(&self, pid: i32, how: Ended) {
        // Its last words came before its end.
        self.drain(pid);
        self.heard.borrow_mut().remove(&pid);
        self.handle(Event::Ended(pid, how));
        self.lines.borrow_mut().remove(&pid);
    }

    /// Listens to the workers: to the one that is being started, and to those before it, of which one may
    /// have to go on.
    pub fn hear(self: &Rc<Self>) {
        let lines = self.lines.borrow();
        for (pid, line) in &*lines {
            let (Ok(stream), Ok(bell)) = (line.try_clone(), line.try_clone()) else { continue };
            let stream = UnixStream::from(stream);
            let _ = stream.set_nonblocking(true);
            self.heard.borrow_mut().insert(*pid, Heard { stream, words: Words::default() });
            rt::spawn(listen(self.clone(), *pid, bell));
        }
    }

    /// Takes all that a worker has said so far. `false` when there is nobody to listen to any more.
    fn drain(&self, pid: i32) -> bool {
        let mut chunk = [0; 4096];
        loop {
            let got = match self.heard.borrow_mut().get_mut(&pid) {
                Some(heard) => heard.stream.read(&mut chunk),
                None => return false,
            };
            match got {
                Ok(0) => return false,
                Ok(n) => self.take(pid, chunk.get(..n).unwrap_or_default()),
                Err(e) => return e.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }

    fn take(&self, pid: i32, bytes: &[u8]) {
        if let Some(heard) = self.heard.borrow_mut().get_mut(&pid) {
            heard.words.push(bytes);
        }
        loop {
            let word = self.heard.borrow_mut().get_mut(&pid).and_then(|heard| heard.words.take());
            let is_first = self.machine.borrow().first().is_some_and(|first| first.pid == pid);
            match word {
                None => return,
                Some(Word::Logs(text)) if is_first => self.note(&text),
                Some(Word::Settings(settings, pidfile)) if is_first => {
                    self.handle(Event::Told(pid, settings));
                    self.write_pid(pidfile);
                }
                Some(Word::Ready) => self.handle(Event::Ready(pid)),
                Some(Word::Wanted { check }) => self.wanted(pid, check, is_first),
                Some(Word::Logs(_) | Word::Settings(..)) => {}
            }
        }
    }

    /// Somebody asked a worker for a reload in place. The worker is told how it ended like any client that
    /// waits, over a connection that is open until then.
    fn wanted(&self, pid: i32, check: bool, serves: bool) {
        let Some(client) = self.call(pid) else { return };
        if serves {
            self.wait_for_reload(client);
            self.handle(Event::InPlace { check });
        } else {
            let text = say::plain("[ALERT]", "Another worker has taken the place of this one.");
            tell(client.into(), format!("Success=0\n--\n{text}\n").into());
        }
    }

    /// A connection to a worker on which it hears how a reload ended.
    fn call(&self, pid: i32) -> Option<OwnedFd> {
        let (ours, theirs) = sys::socket_pair().ok()?;
        sys::send_fds(self.lines.borrow().get(&pid)?.as_fd(), &[0], &[theirs.as_fd()]).ok()?;
        let mut stream = UnixStream::from(ours);
        stream.write_all(TOLD).ok()?;
        Some(stream.into())
    }

    /// The pid file is written at the first start; the process stays the same.
    fn write_pid(&self, configured: Option<String>) {
        if self.machine.borrow().reloads > 0 {
            return;
        }
        let Some(path) = self.pidfile.take().or(configured.map(PathBuf::from)) else { return };
        if let Err(e) = sys::write_pidfile(&path) {
            let text = format!("Cannot create pidfile {}: {}", path.display(), say::reason(&e));
            self.say(Weight::Alert, &text);
        }
    }
}

/// What tells a file from another one under its name.
type Identity = (u64, u64, u64, i64, i64);

fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

/// Waits for what became of a configuration that was read for a worker: a letter, then what there is to say.
async fn hear_reader(hub: Rc<Hub>, line: OwnedFd) {
    let mut said = Vec::new();
    if let Ok(socket) = Socket::from_fd(line) {
        let mut chunk = vec![0; 4096];
        while let Ok(n @ 1..) = poll_fn(|cx| socket.poll_recv(cx, &mut chunk)).await {
            said.extend_from_slice(chunk.get(..n).unwrap_or_default());
            said.truncate(MOST_LOGS);
        }
    }
    let (letter, text) =
        said.split_first().unwrap_or((&b'R', b"The reader of the configuration has died.\n"));
    let text = String::from_utf8_lossy(text);
    say::error(&text);
    hub.note(&text);
    let verdict = match letter {
        b'A' => Verdict::Adopted,
        b'F' => Verdict::Fit,
        b'X' => Verdict::Elsewhere("This can't be had in a process that runs".to_owned()),
        _ => Verdict::Refused,
    };
    hub.handle(Event::Adopted(verdict));
}

/// Tells a client how the reload went. What it does not read at once must not hold the master up.
fn tell(client: UnixStream, text: Rc<str>) {
    let _ = client.set_nonblocking(true);
    let mut sent = 0;
    while let Ok(n @ 1..) = (&client).write(text.as_bytes().get(sent..).unwrap_or_default()) {
        sent += n;
    }
    if sent == text.len() {
        return;
    }
    rt::spawn(async move {
        let Ok(socket) = Socket::from_fd(client.into()) else { return };
        let mut timer = Timer::at(rt::now() + TELLING);
        while let Some(rest) = text.as_bytes().get(sent..).filter(|rest| !rest.is_empty()) {
            let next = poll_fn(|cx| match socket.poll_send(cx, rest, false) {
                Poll::Ready(n) => Poll::Ready(n.ok()),
                Poll::Pending => timer.poll_expired(cx).map(|()| None),
            });
            match next.await {
                Some(n) => sent += n,
                None => return,
            }
        }
    });
}

/// Has the words of a worker taken as they come.
async fn listen(hub: Rc<Hub>, pid: i32, bell: OwnedFd) {
    let Ok(bell) = Socket::from_fd(bell) else { return };
    let mut chunk = [0; 1];
    let lives = || hub.heard.borrow().contains_key(&pid);
    while lives() {
        // A byte is read where one can be waited for, the others at once.
        match poll_fn(|cx| bell.poll_recv(cx, &mut chunk)).await {
            Ok(n @ 1..) if lives() => hub.take(pid, chunk.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
        if !hub.drain(pid) {
            return;
        }
    }
}
