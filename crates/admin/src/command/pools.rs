//! `show pools`: the memory that comes and goes with traffic.
//!
//! What has a size of its own is a pool here: the buffers and the recycled blocks of the workers, their
//! transactions and connections, the entries of stick tables, the blocks of caches. What a program allocates
//! otherwise is not counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::pin::Pin;
use std::rc::Rc;

use engine::Worker;
use engine::sessions::Session;
use rt::{BlockStats, BufStats};

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use crate::gather::gather;
use program::Program;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["show", "pools"],
    "[by*] [match <pfx>] [detailed] [<n>]",
    "memory that comes and goes with traffic",
    Level::User,
    show,
)];

const USAGE: &str = "Expects either 'byname', 'bysize', 'byusage', 'match <pfx>', 'detailed', or a max number of output lines.";

/// Objects of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pool {
    name: String,
    /// Bytes of one.
    size: usize,
    /// Objects in use.
    used: usize,
    /// Objects that wait for their next use.
    idle: usize,
    /// How often memory was asked of the system, where that is counted.
    allocations: Option<u64>,
    /// What they hold.
    about: &'static str,
}

impl Pool {
    fn allocated(&self) -> usize {
        (self.used + self.idle) * self.size
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    None,
    Name,
    Size,
    Usage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    order: Order,
    prefix: String,
    most: Option<usize>,
    detailed: bool,
}

fn wanted(words: &[String]) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "byname" => wanted.order = Order::Name,
            "bysize" => wanted.order = Order::Size,
            "byusage" => wanted.order = Order::Usage,
            "detailed" => wanted.detailed = true,
            "match" => wanted.prefix = words.next().ok_or(USAGE)?.to_owned(),
            number => wanted.most = Some(number.parse().map_err(|_| USAGE)?).filter(|n| *n > 0),
        }
    }
    Ok(wanted)
}

/// What a worker holds.
#[derive(Clone, Debug, Default)]
struct Share {
    buffers: BufStats,
    blocks: Vec<BlockStats>,
    sessions: usize,
    txns: usize,
    arena: usize,
}

fn share(worker: &Rc<Worker>) -> Share {
    let (txns, arena) = worker.spare();
    let sessions = worker.sessions.len();
    Share { buffers: rt::buf_stats(), blocks: rt::block_stats(), sessions, txns, arena }
}

/// `show pools`.
pub fn show<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let wanted = wanted(call.args())?;
        let shares: Vec<Share> = gather(share).await.into_iter().map(|(_, share)| share).collect();
        let mut pools = of_workers(&shares);
        pools.extend(of_program(&call.shared().program));
        Ok(Reply::Dump(dump(pools, &wanted)))
    })
}

fn of_workers(shares: &[Share]) -> Vec<Pool> {
    let sum = |read: fn(&Share) -> usize| shares.iter().map(read).sum();
    let session = size_of::<Session>();
    let mut pools = vec![
        Pool {
            name: "buffer".into(),
            size: rt::bufsize(),
            used: sum(|s| s.buffers.used),
            idle: sum(|s| s.buffers.idle),
            allocations: Some(shares.iter().map(|s| s.buffers.allocated).sum()),
            about: "data on their way",
        },
        Pool {
            name: "session".into(),
            size: session,
            used: sum(|s| s.sessions),
            about: "client connections",
            ..Pool::default()
        },
        Pool {
            name: "txn_spare".into(),
            size: size_of::<model::Txn>(),
            idle: sum(|s| s.txns),
            about: "transactions kept for the next requests",
            ..Pool::default()
        },
        Pool {
            name: "rule_arena".into(),
            size: 1,
            used: sum(|s| s.arena),
            about: "bytes in which rules compute",
            ..Pool::default()
        },
    ];
    let mut blocks: BTreeMap<usize, (i64, usize, u64)> = BTreeMap::new();
    for block in shares.iter().flat_map(|s| &s.blocks) {
        let (made, idle, allocations) = blocks.entry(block.size).or_default();
        *made += block.made;
        *idle += block.idle;
        *allocations += block.allocations;
    }
    pools.extend(blocks.into_iter().map(|(size, (made, idle, allocations))| Pool {
        name: format!("block_{size}"),
        size,
        used: usize::try_from(made).unwrap_or(0).saturating_sub(idle),
        idle,
        allocations: Some(allocations),
        about: "tasks and exchanges of up to this size",
    }));
    pools
}

fn of_program(program: &Program) -> Vec<Pool> {
    let now = rt::now().as_millis();
    let tables = program.tables.iter().map(|table| {
        let used = table.used(now) as usize;
        let (slots, size) = table.size();
        let (name, idle) = (format!("table_{}", table.settings().name), slots.saturating_sub(used));
        Pool { name, size, used, idle, about: "entries of a stick table", ..Pool::default() }
    });
    let caches = program.caches.iter().map(|cache| Pool {
        name: format!("cache_{}", cache.settings().name),
        size: cache::BLOCK,
        used: cache.used(),
        about: "blocks of a cache",
        ..Pool::default()
    });
    tables.chain(caches).collect()
}

fn dump(mut pools: Vec<Pool>, wanted: &Wanted) -> String {
    pools.retain(|p| p.name.starts_with(&wanted.prefix));
    match wanted.order {
        Order::None => {}
        Order::Name => pools.sort_by(|a, b| a.name.cmp(&b.name)),
        Order::Size => pools.sort_by_key(|p| std::cmp::Reverse(p.size)),
        Order::Usage => {
            pools.retain(|p| p.used > 0);
            pools.sort_by_key(|p| std::cmp::Reverse(p.allocated()));
        }
    }
    let limited = wanted.most.map(|n| format!(" (limited to the first {n} entries)")).unwrap_or_default();
    let mut out = format!("Dumping pools usage{limited}. Use SIGQUIT to flush them.\n");
    for pool in pools.iter().take(wanted.most.unwrap_or(usize::MAX)) {
        let there = pool.used + pool.idle;
        let _ = write!(
            out,
            "  - Pool {} ({} bytes) : {there} allocated ({} bytes), {} used, {} idle",
            pool.name,
            pool.size,
            pool.allocated(),
            pool.used,
            pool.idle,
        );
        if let Some(allocations) = pool.allocations {
            let _ = write!(out, ", {allocations} allocations");
        }
        out.push('\n');
        if wanted.detailed {
            let _ = writeln!(out, "      >  {:<12}: size={} {}", pool.name, pool.size, pool.about);
        }
    }
    let allocated: usize = pools.iter().map(Pool::allocated).sum();
    let used: usize = pools.iter().map(|p| p.used * p.size).sum();
    let _ = writeln!(out, "Total: {} pools, {allocated} bytes allocated, {used} used.", pools.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Wanted, Refusal> {
        wanted(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_those_of_the_oracle() {
        let all = Wanted { order: Order::Usage, prefix: "b".into(), most: Some(2), detailed: true };
        assert_eq!(of("match b byusage detailed 2"), Ok(all));
        for wrong in ["match", "nope", "-1"] {
            assert_eq!(of(wrong), Err(USAGE.into()), "{wrong}");
        }
    }

    #[test]
    fn pools_are_sorted_chosen_and_summed() {
        let pool =
            |name: &str, size, used, idle| Pool { name: name.into(), size, used, idle, ..Pool::default() };
        let pools = vec![pool("a", 10, 0, 1), pool("c", 20, 3, 0), pool("b", 30, 1, 1)];
        let text = dump(pools.clone(), &of("byusage").expect("words"));
        let names: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("  - Pool ")).collect();
        assert!(
            names.len() == 2 && names[0].starts_with("c (20 bytes) : 3 allocated (60 bytes), 3 used"),
            "{text}"
        );
        assert!(text.ends_with("Total: 2 pools, 120 bytes allocated, 90 used.\n"), "{text}");
        let text = dump(pools, &of("bysize 1").expect("words"));
        assert!(text.starts_with("Dumping pools usage (limited to the first 1 entries)."), "{text}");
        assert!(text.contains("Pool b ") && !text.contains("Pool c "), "{text}");
    }
}
