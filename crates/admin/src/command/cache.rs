//! `show cache` (management manual, 9.3), and `clear cache`, which is ours: what the caches keep. The lines are HAProxy's, for tools read them;
//! where it shows addresses stand numbers that tell caches and entries apart. A cache is walked over shard by
//! shard while the answer is sent.

use std::fmt::Write;
use std::sync::Arc;

use cache::Row;
use model::cached::{Audience, Cache};

use crate::cli::call::{Call, Lines, Outcome, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["clear", "cache"],
        "<cache> [<host><target>[*]]",
        "forget what a cache keeps, all or that of a target",
        Level::Operator,
        clear,
    ),
    Command::now(&["show", "cache"], "", "show cache status", Level::User, show),
];

/// `clear cache`. A target that ends in `*` means all that begin like it.
fn clear(call: &mut Call<'_>) -> Outcome {
    let name = call.arg(0).to_owned();
    if name.is_empty() {
        return Err("'clear cache' expects the name of a cache.".into());
    }
    let caches = &call.shared().program.caches;
    let Some(cache) = caches.iter().find(|cache| *cache.settings().name == *name).cloned() else {
        return Err(format!("No such cache '{name}'.").into());
    };
    let wanted = call.arg(1).as_bytes().to_vec();
    let gone = cache.clear(|key| is_meant(key, &wanted));
    Ok(Reply::info(format!("{gone} entries removed.")))
}

/// Whether a key, which is a host, a blank and a target, is the one that is `wanted`. Targets of HTTP/2 name
/// the host once more.
fn is_meant(key: &[u8], wanted: &[u8]) -> bool {
    let at = key.iter().position(|byte| *byte == b' ').unwrap_or(key.len());
    let (host, target) = (key.get(..at).unwrap_or_default(), key.get(at + 1..).unwrap_or_default());
    let target = wire::uri::path_and_query(target);
    match (wanted, wanted.strip_suffix(b"*")) {
        ([], _) => true,
        (_, Some(start)) => [host, target].concat().starts_with(start),
        (_, None) => [host, target].concat() == wanted,
    }
}

/// `show cache`.
fn show(call: &mut Call<'_>) -> Outcome {
    let caches = call.shared().program.caches.clone();
    Ok(Reply::Lines(Box::new(Shown { caches, cache: 0, shard: None })))
}

/// `show cache` on its way.
#[derive(Debug)]
struct Shown {
    caches: Vec<Arc<Cache>>,
    cache: usize,
    /// The next part of it; `None`: nothing of it was shown yet.
    shard: Option<usize>,
}

/// What stands for an address.
fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of).addr()
}

impl Lines for Shown {
    fn append(&mut self, out: &mut String) -> bool {
        let Some(cache) = self.caches.get(self.cache) else { return false };
        let Some(shard) = self.shard else {
            let (at, name, free) = (address(cache), &cache.settings().name, cache.available());
            let _ = writeln!(out, "{at:#x}: {name} (shctx:{at:#x}, available blocks:{free})");
            self.shard = Some(0);
            return true;
        };
        let now = rt::wall().as_secs();
        match cache.rows_of(shard, |kept| kept.audience.clone()) {
            Some(rows) => {
                let good = |row: &&Row<Audience>| row.expires > now;
                rows.iter().filter(good).for_each(|row| line(row, now, out));
                self.shard = Some(shard + 1);
            }
            None => (self.cache, self.shard) = (self.cache + 1, None),
        }
        true
    }
}

fn line(row: &Row<Audience>, now: u64, out: &mut String) {
    let kind = if row.told.is_some() { "full" } else { "hints" };
    let (hash, size, blocks, users) = (row.hash, row.size, row.blocks, row.users);
    let _ = write!(out, "{:#x} hash:{} vary:0x", row.number, hash >> 32);
    variant(row.told.as_ref(), out);
    let left = row.expires.saturating_sub(now);
    let _ = writeln!(out, " type:{kind} size:{size} ({blocks} blocks), refcount:{users}, expire:{left}");
}

/// What an entry depends on, in 40 digits: the codings, then a number for each of the two fields.
fn variant(audience: Option<&Audience>, out: &mut String) {
    let number = |field: Option<&[u8]>| field.map_or(0, base::hash::crc32c);
    let (codings, referer, origin) = audience.map_or((0, None, None), |a| {
        let codings = if a.varies.codings { a.codings.bits() } else { 0 };
        (codings, a.referer.as_deref(), a.origin.as_deref())
    });
    let _ = write!(out, "{codings:04x}0000{:016x}{:016x}", number(referer), number(origin));
}
