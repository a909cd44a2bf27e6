//! Starting and stopping the workers of a process, and talking to them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::Context;
use std::thread::{Builder, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use crate::inbox::{Inbox, Job, Message};
use crate::source::Watched;
use crate::waker::TaskId;
use crate::worker::{self, Entered, Pulse, Shared, Worker};

/// What is asked of a worker's thread.
#[derive(Clone, Debug, Default)]
pub struct WorkerSpec {
    /// The thread's name (the kernel keeps 15 bytes of it).
    pub name: String,
    /// The processors it may run on; `None` leaves that as it is.
    pub affinity: Option<Vec<usize>>,
}

/// The running workers.
pub struct Runtime {
    peers: Peers,
    threads: Vec<JoinHandle<()>>,
}

/// A way to reach the workers of a runtime from any thread.
#[derive(Clone)]
pub struct Peers(Arc<Shared>);

/// A sign of life of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Turns of the worker's loop so far.
    pub turns: u64,
    /// Whether it waits for events. If not, and `turns` stands still while it runs, it hangs in a task.
    pub polling: bool,
    /// The time that its thread has had a processor so far; zero where the kernel does not say.
    pub busy: std::time::Duration,
    /// Its thread, as the kernel numbers it; 0 before it runs.
    pub thread: i32,
}

/// Starts a thread for each worker; each calls `init` with its index (which spawns the first tasks) and runs
/// until [`stop_worker`] is called on it.
///
/// # Errors
/// What the kernel says when it has no more descriptors or threads.
pub fn start(workers: Vec<WorkerSpec>, init: impl Fn(usize) + Send + Sync + 'static) -> io::Result<Runtime> {
    let shared = shared(workers.len())?;
    let init: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(init);
    let mut threads = Vec::with_capacity(workers.len());
    for (index, spec) in workers.into_iter().enumerate() {
        threads.push(spawn_thread(index, spec, &shared, &init)?);
    }
    Ok(Runtime { peers: Peers(shared), threads })
}

/// As [`start`], but the first worker runs on the calling thread; returns when all have ended.
///
/// # Errors
/// As [`start`].
pub fn run(workers: Vec<WorkerSpec>, init: impl Fn(usize) + Send + Sync + 'static) -> io::Result<()> {
    let shared = shared(workers.len())?;
    let init: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(init);
    let mut specs = workers.into_iter().enumerate();
    let Some((_, first)) = specs.next() else { return Ok(()) };
    let mut threads = Vec::new();
    for (index, spec) in specs {
        threads.push(spawn_thread(index, spec, &shared, &init)?);
    }
    if let Some(cpus) = &first.affinity {
        crate::sys::set_affinity(cpus);
    }
    run_worker(0, shared.clone(), &*init)?;
    Runtime { peers: Peers(shared), threads }.join();
    Ok(())
}

fn shared(count: usize) -> io::Result<Arc<Shared>> {
    let inbox = |_| {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Inbox::new(Some(bell))))
    };
    let inboxes = (0..count).map(inbox).collect::<io::Result<Vec<_>>>()?;
    let pulses = (0..count).map(|_| Pulse::default()).collect();
    Ok(Arc::new(Shared { inboxes, pulses }))
}

fn spawn_thread(
    index: usize,
    spec: WorkerSpec,
    shared: &Arc<Shared>,
    init: &Arc<dyn Fn(usize) + Send + Sync>,
) -> io::Result<JoinHandle<()>> {
    let (shared, init) = (shared.clone(), init.clone());
    let (said, outcome) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        if let Some(cpus) = &spec.affinity {
            crate::sys::set_affinity(cpus);
        }
        let worker = Worker::on_kernel(index, shared);
        let started = worker.as_ref().map(|_| ()).map_err(|e| io::Error::from(e.kind()));
        let _ = said.send(started);
        if let Ok(worker) = worker {
            live(worker, index, &*init);
        }
    };
    let thread = Builder::new().name(spec.name).spawn(body)?;
    outcome.recv().map_err(|_| io::Error::from(io::ErrorKind::Other))??;
    Ok(thread)
}

fn run_worker(index: usize, shared: Arc<Shared>, init: &dyn Fn(usize)) -> io::Result<()> {
    live(Worker::on_kernel(index, shared)?, index, init);
    Ok(())
}

fn live(worker: std::rc::Rc<Worker>, index: usize, init: &dyn Fn(usize)) {
    let _entered = Entered::new(worker.clone());
    base::worker::set_number(index);
    init(index);
    worker.run();
}

impl Runtime {
    /// Waits for all workers to end. A worker that panicked makes this panic too.
    pub fn join(self) {
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// A way to reach the workers.
    pub fn peers(&self) -> Peers {
        self.peers.clone()
    }
}

impl Peers {
    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.0.inboxes.len()
    }

    /// Runs `job` on a worker, soon. False if there is no worker of that index; a job for a worker that has
    /// ended is dropped with its runtime.
    pub fn send_to(&self, worker: usize, job: Job) -> bool {
        let inbox = self.0.inboxes.get(worker);
        if let Some(inbox) = inbox {
            inbox.post(Message::Run(job));
        }
        inbox.is_some()
    }

    /// Has every worker stop after its present turn.
    pub fn stop_all(&self) {
        for worker in 0..self.count() {
            self.send_to(worker, Box::new(stop_worker));
        }
    }

    /// A worker's sign of life, for a watchdog.
    pub fn heartbeat(&self, worker: usize) -> Option<Heartbeat> {
        let pulse = self.0.pulses.get(worker)?;
        let busy = crate::sys::thread_time(pulse.thread()).unwrap_or_default();
        let (thread, pulse) = (pulse.thread(), pulse.read());
        Some(Heartbeat { turns: pulse / 2, polling: pulse % 2 == 1, busy, thread })
    }
}

/// Starts a task on this worker. It is polled first in this turn or the next.
pub fn spawn(future: impl Future<Output = ()> + 'static) -> TaskId {
    worker::with(|w| w.spawn(future))
}

/// How many tasks of this worker wait to be polled.
pub fn queued() -> usize {
    worker::try_with(|w| w.executor.queued()).unwrap_or(0)
}

/// Drops a task of this worker, at once (if it is cancelling itself: when its poll returns). True if it was
/// alive.
pub fn cancel(task: TaskId) -> bool {
    worker::try_with(|w| task.tag() == w.tag && w.executor.cancel(task)).unwrap_or(false)
}

/// Whether a task of this worker is alive.
pub fn is_alive(task: TaskId) -> bool {
    worker::try_with(|w| task.tag() == w.tag && w.executor.is_alive(task)).unwrap_or(false)
}

/// Gives a task of this worker a nice value: from -1024 (urgent) over 0 (plain) to 1024 (patient), relative
/// to how many tasks wait for their turn. It holds from the next wake-up on (manual, `nice` of a `bind`
/// line).
pub fn set_nice(task: TaskId, nice: i16) {
    worker::try_with(|w| w.executor.set_nice(task, nice));
}

/// [`set_nice`] for the task that is being polled; nothing outside of one.
pub fn renice(nice: i16) {
    worker::try_with(|w| w.executor.set_nice(w.executor.current(), nice));
}

/// The nice value of a task of this worker; 0 for one that is gone.
pub fn nice(task: TaskId) -> i16 {
    worker::try_with(|w| w.executor.nice(task)).unwrap_or(0)
}

/// The task that is being polled. Panics outside of one.
pub fn current_task() -> TaskId {
    let task = worker::with(|w| w.executor.current());
    assert!(task != TaskId::NONE, "outside of a task");
    task
}

/// Ends this worker after the present turn; its tasks are dropped.
pub fn stop_worker() {
    worker::with(|w| w.stop());
}

/// Runs `job` on the worker of that index in this runtime. False if there is none.
pub fn send_to(worker: usize, job: Job) -> bool {
    worker::with(|w| w.post(worker, job))
}

/// The index of this worker; `None` outside of a worker.
pub fn worker_index() -> Option<usize> {
    worker::try_with(|w| w.index)
}

/// How many workers this runtime has; 0 outside of one.
pub fn worker_count() -> usize {
    worker::try_with(|w| w.shared.inboxes.len()).unwrap_or(0)
}

/// A way to reach the workers of this runtime from other threads.
pub fn peers() -> Peers {
    worker::with(|w| Peers(w.shared.clone()))
}

/// What a worker holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Tasks alive.
    pub tasks: usize,
    /// Tasks that wait for their turn.
    pub queued: usize,
    /// Timers that exist.
    pub timers: usize,
    /// Descriptors registered.
    pub sources: usize,
    /// Polls of tasks so far.
    pub polls: u64,
    /// Turns of the loop so far.
    pub turns: u64,
    /// Turns in which no task ran.
    pub empty_turns: u64,
    /// Turns that were over before all tasks that were due had run.
    pub full_turns: u64,
    /// Turns that began at once, since there was work.
    pub awake_turns: u64,
    /// Turns in which descriptors had changed.
    pub event_turns: u64,
    /// Changes of descriptors so far.
    pub events: u64,
    /// Timers that were over so far.
    pub expired: u64,
    /// Words from other threads so far.
    pub messages: u64,
    /// The time that the thread has had a processor so far.
    pub busy: std::time::Duration,
    /// The thread, as the kernel numbers it.
    pub thread: i32,
}

/// What this worker holds.
pub fn worker_stats() -> WorkerStats {
    worker::with(|w| WorkerStats {
        tasks: w.executor.len(),
        queued: w.executor.queued(),
        timers: w.timers.borrow().len(),
        sources: w.sources.borrow().len(),
        polls: w.executor.polls(),
        turns: w.turns(),
        empty_turns: w.tally.empty.get(),
        full_turns: w.tally.full.get(),
        awake_turns: w.tally.awake.get(),
        event_turns: w.tally.reported.get(),
        events: w.tally.reports.get(),
        expired: w.tally.expired.get(),
        messages: w.tally.messages.get(),
        busy: crate::sys::thread_time(w.thread()).unwrap_or_default(),
        thread: w.thread(),
    })
}

/// The descriptors that this worker watches.
pub fn watched() -> Vec<Watched> {
    worker::with(|w| w.sources.borrow().watched())
}

/// From now on this worker notes when tasks are woken, or no more: see [`take_wait`].
pub fn measure_waits(on: bool) {
    worker::with(|w| w.executor.measure_waits(on));
}

/// How long the task at hand waited for its turn since it was woken. Zero when that is not measured, and when
/// it was told since.
pub fn take_wait() -> std::time::Duration {
    worker::with(|w| w.executor.take_woken()).map_or(std::time::Duration::ZERO, |woken| woken.elapsed())
}

/// The task gives way: it is polled again in the worker's next turn, after those whose events have come until
/// then. For who has more to do, but has had its share.
pub fn give_way(cx: &Context<'_>) {
    let task = worker::task_of(cx);
    worker::with(|w| w.executor.defer(task));
}

/// Lets the other tasks that are due go first: [`give_way`], to await.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        give_way(cx);
        std::task::Poll::Pending
    })
    .await;
}
