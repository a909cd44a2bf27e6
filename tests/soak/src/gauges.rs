//! What must be zero when nobody asks for anything any more.

use std::collections::BTreeMap;

use crate::admin::command;
use crate::setup::Process;

/// The resident memory in KiB.
pub fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Open descriptors by kind. Sockets of UDP are told apart because programs open those for logs when they
/// first need them.
fn descriptors(pid: u32) -> BTreeMap<&'static str, u64> {
    let datagrams = std::fs::read_to_string(format!("/proc/{pid}/net/udp")).unwrap_or_default();
    let datagrams: Vec<&str> = datagrams.lines().filter_map(|l| l.split_whitespace().nth(9)).collect();
    let mut kinds = BTreeMap::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy();
        let kind = match target.strip_prefix("socket:[").map(|t| t.trim_end_matches(']')) {
            Some(inode) if datagrams.contains(&inode) => continue,
            Some(_) => "sockets",
            None if target.starts_with("pipe:") => "pipes",
            None => "other descriptors",
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    kinds
}

/// All gauges that are not zero, by name.
pub async fn read(process: &Process) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut note = |name: String, value: u64| {
        if value > 0 {
            found.insert(name, value);
        }
    };
    let mut held = descriptors(process.pid);
    let ask = |line: &'static str| command(&process.socket, line);
    for line in ask("show info").await.unwrap_or_default().lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        // Pipes that wait to be used again have two ends each.
        if let ("PipesFree", Ok(free), Some(pipes)) = (name, value.parse::<u64>(), held.get_mut("pipes")) {
            *pipes = pipes.saturating_sub(2 * free);
        }
        if ["CurrConns", "CurrSslConns", "CurrStreams", "PipesUsed", "Tasks"].contains(&name) {
            note(name.to_owned(), value.parse().unwrap_or(u64::MAX));
        }
    }
    for (kind, n) in held {
        note(kind.to_owned(), n);
    }
    let stat = ask("show stat").await.unwrap_or_default();
    let mut lines = stat.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    for line in lines.filter(|l| !l.is_empty()) {
        let row: Vec<&str> = line.split(',').collect();
        for (name, value) in names.iter().zip(&row) {
            if name.contains("_open_")
                || ["scur", "qcur", "used_conn_cur", "idle_conn_cur", "safe_conn_cur", "srv_icur"]
                    .contains(name)
            {
                note(format!("{} of {}/{}", name, row[0], row[1]), value.parse().unwrap_or(0));
            }
        }
    }
    // HAProxy keeps buffers in caches of its threads and tells them as used.
    for line in ask("show pools").await.unwrap_or_default().lines() {
        if line.contains("Pool buffer ") && !line.contains("thread caches") {
            let used = line.split(", ").find_map(|w| w.strip_suffix(" used"));
            note("buffers".to_owned(), used.and_then(|n| n.parse().ok()).unwrap_or(0));
        }
    }
    found
}

/// What is more than it was at the start. A stream of the stats socket itself is not counted.
pub fn risen(start: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<String> {
    let mut risen = Vec::new();
    for (name, value) in now {
        let before = start.get(name).copied().unwrap_or(0);
        if *value > before {
            risen.push(format!("{name}: {value}, at the start {before}"));
        }
    }
    risen
}
