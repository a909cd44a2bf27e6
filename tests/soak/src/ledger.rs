//! The ledger: what both ends saw of each request, and the judgement that it ended in exactly one way.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::plan::{ClientEnd, Ground, OriginEnd, Plan};

/// How the origin's part in one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Open,
    /// The response went out whole.
    Answered,
    /// The origin broke off on purpose, as planned or because it killed the connection.
    BrokenOff,
    /// The proxy broke off.
    Left,
}

/// What the client saw in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The planned response, whole, each byte right.
    Answered,
    /// A response that the origin did not send.
    Refused(u16),
    /// The client left, as planned.
    LeftByPlan,
    /// The response broke off, or never came, and the client was told so (a closed connection, a reset
    /// stream).
    Broken(String),
    /// What must never be.
    Wrong(String),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Answered = 0,
    ByClient = 1,
    ByOrigin = 2,
    Refused = 3,
}

/// One request at large.
struct Entry {
    plan: Plan,
    route: String,
    ground: Ground,
    /// L7 retries may send it more than once.
    retried: bool,
    attempts: Vec<Attempt>,
    /// What origins say about them.
    remarks: Vec<String>,
    client_done: bool,
}

const SHARDS: usize = 64;

pub struct Ledger {
    open: Vec<Mutex<HashMap<u64, Entry>>>,
    ends: [AtomicU64; 4],
    pub failed: AtomicU64,
    pub flaky: AtomicU64,
    pub flaky_broken: AtomicU64,
    pub bytes: AtomicU64,
    lines: Mutex<VecDeque<String>>,
    pub over: AtomicBool,
    seed: u64,
}

impl Ledger {
    pub fn new(seed: u64) -> Ledger {
        Ledger {
            open: (0..SHARDS).map(|_| Mutex::default()).collect(),
            ends: Default::default(),
            failed: AtomicU64::new(0),
            flaky: AtomicU64::new(0),
            flaky_broken: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lines: Mutex::default(),
            over: AtomicBool::new(false),
            seed,
        }
    }

    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Entry>> {
        &self.open[id as usize % SHARDS]
    }

    /// A client is about to send a request.
    pub fn begin(&self, plan: &Plan, route: String, ground: Ground, retried: bool) {
        let (plan_at_hand, attempts, remarks) = (plan.clone(), Vec::new(), Vec::new());
        let entry =
            Entry { plan: plan_at_hand, route, ground, retried, attempts, remarks, client_done: false };
        self.shard(plan.id).lock().unwrap().insert(plan.id, entry);
    }

    /// An origin has read the head of a request. What it gives back is the number of the attempt.
    pub fn arrived(&self, plan: &Plan) -> Option<usize> {
        let mut shard = self.shard(plan.id).lock().unwrap();
        let Some(entry) = shard.get_mut(&plan.id) else {
            drop(shard);
            if !plan.client_leaves() {
                self.report_unless_flaky(plan.id);
            }
            return None;
        };
        entry.attempts.push(Attempt::Open);
        Some(entry.attempts.len() - 1)
    }

    fn report_unless_flaky(&self, id: u64) {
        // The ground stands in the id, see `client::id`.
        if id & 1 == 0 {
            self.failure(id, "a request came to an origin after its client had its answer");
        }
    }

    /// What an origin has to say about a request, should it fail.
    pub fn remark(&self, id: u64, remark: String) {
        if let Some(entry) = self.shard(id).lock().unwrap().get_mut(&id) {
            entry.remarks.push(remark);
        }
    }

    /// An attempt is over at the origin.
    pub fn departed(&self, id: u64, attempt: Option<usize>, how: Attempt) {
        let Some(attempt) = attempt else { return };
        let mut shard = self.shard(id).lock().unwrap();
        let Some(entry) = shard.get_mut(&id) else { return };
        if let Some(slot) = entry.attempts.get_mut(attempt) {
            *slot = how;
        }
        if entry.client_done && !entry.attempts.contains(&Attempt::Open) {
            shard.remove(&id);
        }
    }

    /// The client is done with a request: judges it.
    pub fn end(&self, id: u64, seen: Seen) {
        let verdict = {
            let mut shard = self.shard(id).lock().unwrap();
            let Some(entry) = shard.get_mut(&id) else { return };
            entry.client_done = true;
            if entry.ground == Ground::Flaky {
                self.flaky.fetch_add(1, Relaxed);
                if matches!(seen, Seen::Broken(_) | Seen::Refused(_)) {
                    self.flaky_broken.fetch_add(1, Relaxed);
                }
            }
            judge(entry, &seen)
        };
        match verdict {
            Ok(end) => {
                self.ends[end as usize].fetch_add(1, Relaxed);
            }
            Err(why) => self.failure(id, &why),
        }
        let mut shard = self.shard(id).lock().unwrap();
        if shard.get(&id).is_some_and(|e| !e.attempts.contains(&Attempt::Open)) {
            shard.remove(&id);
        }
    }

    /// The client is done with a request, if it has not said so before.
    pub fn end_if_open(&self, id: u64, seen: Seen) {
        if self.shard(id).lock().unwrap().get(&id).is_some_and(|e| !e.client_done) {
            self.end(id, seen);
        }
    }

    /// Tells a failure with all that is known of the request.
    pub fn failure(&self, id: u64, why: &str) {
        let known = match self.shard(id).lock().unwrap().get(&id) {
            Some(e) => format!("over {}, {:?} {:?}, {:?}", e.route, e.attempts, e.remarks, e.plan),
            None => "no record".to_owned(),
        };
        self.fail(&format!("request {id}: {why}\n      {known}"));
        // The log line may come a little later than the client's end.
        let line = self.line_of(id);
        if let Some(line) = line {
            eprintln!("      log: {line}");
        }
    }

    /// Tells a failure of the run as a whole.
    pub fn fail(&self, why: &str) {
        let n = self.failed.fetch_add(1, Relaxed);
        if n < 40 {
            eprintln!("FAIL  (seed {}) {why}", self.seed);
        } else if n == 40 {
            eprintln!("FAIL  more failures are only counted");
        }
    }

    /// Keeps a log line of the proxy for a while.
    pub fn logged(&self, line: String) {
        let mut lines = self.lines.lock().unwrap();
        if lines.len() >= 20_000 {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn line_of(&self, id: u64) -> Option<String> {
        let word = format!("id={id} ");
        for _ in 0..2 {
            if let Some(line) = self.lines.lock().unwrap().iter().rev().find(|l| l.contains(&word)) {
                return Some(line.clone());
            }
            if self.failed.load(Relaxed) > 40 {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        None
    }

    /// Answered, aborted by the client, aborted by the origin, refused.
    pub fn ends(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|i| self.ends[i].load(Relaxed))
    }

    /// What has not ended.
    pub fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for shard in &self.open {
            for (id, e) in shard.lock().unwrap().iter() {
                left.push(format!(
                    "request {id} over {}: client {}, attempts {:?}, {:?}",
                    e.route,
                    if e.client_done { "done" } else { "waiting" },
                    e.attempts,
                    e.plan
                ));
            }
        }
        left
    }
}

/// Whether what the client saw may be so.
fn judge(entry: &Entry, seen: &Seen) -> Result<End, String> {
    let plan = &entry.plan;
    let flaky = entry.ground == Ground::Flaky;
    let broken_off = entry.attempts.contains(&Attempt::BrokenOff);
    // A connection that an origin kills may take requests along that the origin has not read yet. An answer
    // that calls for another attempt is not the last word.
    let goes_on = entry.retried && matches!(plan.status, 500 | 502..=504);
    let unread = flaky && (goes_on || !entry.attempts.contains(&Attempt::Answered));
    if !flaky && !entry.retried && entry.attempts.len() > 1 {
        return Err(format!("sent to {} origins, nothing allows that", entry.attempts.len()));
    }
    match seen {
        Seen::Wrong(why) => Err(why.clone()),
        Seen::LeftByPlan => Ok(End::ByClient),
        Seen::Answered if matches!(plan.origin, OriginEnd::NoAnswer) => {
            Err("answered, but no origin did".to_owned())
        }
        Seen::Answered if matches!(plan.origin, OriginEnd::Cut(_)) && plan.answers_with_body() => {
            Err("a response that the origin cut short was given as whole".to_owned())
        }
        Seen::Answered if entry.attempts.is_empty() => Err("answered, but no origin saw it".to_owned()),
        Seen::Answered => Ok(End::Answered),
        Seen::Refused(502 | 503 | 504) if matches!(plan.origin, OriginEnd::NoAnswer | OriginEnd::Cut(_)) => {
            Ok(End::ByOrigin)
        }
        Seen::Refused(502 | 503) if broken_off || unread => Ok(End::Refused),
        Seen::Refused(status) => Err(format!("refused with {status}")),
        Seen::Broken(_) if matches!(plan.origin, OriginEnd::NoAnswer | OriginEnd::Cut(_)) => {
            Ok(End::ByOrigin)
        }
        Seen::Broken(_) if broken_off || unread => Ok(End::ByOrigin),
        // Before it has a server, a proxy may take a client that ends its direction for one that left.
        Seen::Broken(_) if plan.client == ClientEnd::HalfClose && entry.attempts.is_empty() => {
            Ok(End::ByClient)
        }
        Seen::Broken(why) => Err(format!(
            "broke off: {why}{}",
            if matches!(plan.client, ClientEnd::Stay | ClientEnd::HalfClose) {
                ""
            } else {
                " (before the client left)"
            }
        )),
    }
}
