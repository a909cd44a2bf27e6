//! What the process is made of, for those who look for the cause of a problem: `show libs`, `show dev`, `show
//! defaults`, and its counters as a file: `dump stats-file`.

use std::fmt::Write;
use std::pin::Pin;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use crate::gather::gather;
use crate::machine;
use crate::product;
use crate::stats::kept::{BACK, FRONT};
use crate::stats::row::{Filter, each};
use crate::stats::table::COLUMNS;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["dump", "stats-file"], "", "counters of all objects with a guid", Level::User, stats_file),
    Command::now(
        &["show", "default-server"],
        "[<backend>]",
        "default-server lines that servers may be made from",
        Level::User,
        default_servers,
    ),
    Command::now(&["show", "defaults"], "", "names of defaults sections", Level::User, defaults),
    Command::later(&["show", "dev"], "", "facts about build, machine and process", Level::User, dev),
    Command::now(&["show", "libs"], "", "loaded object files", Level::Operator, libs),
];

/// `show defaults`: the named ones.
pub fn defaults(call: &mut Call<'_>) -> Outcome {
    let names = &call.shared().program.defaults;
    Ok(Reply::Dump(names.iter().map(|d| format!("{}\n", d.name)).collect()))
}

/// `show default-server [<backend>]`: those that servers may be made from.
pub fn default_servers(call: &mut Call<'_>) -> Outcome {
    let program = &call.shared().program;
    let only = match call.arg(0) {
        "" => None,
        name => Some(call.find_backend(name).ok_or("Can't find backend.")?.0),
    };
    let mut out = String::new();
    for (index, proxy) in program.proxies.numbered() {
        if proxy.is_removed() || only.is_some_and(|o| o != index) {
            continue;
        }
        for (at, (name, _)) in proxy.default_servers.iter().enumerate() {
            let mark = if at == 0 { '*' } else { ' ' };
            let name = name.as_deref().map_or(String::new(), |n| format!("/{n}"));
            let _ = writeln!(out, "{mark} {}{name}", proxy.name);
        }
    }
    Ok(Reply::Dump(out))
}

/// `show libs`: each object file that is mapped into the process, with its range of addresses and its length.
pub fn libs(_: &mut Call<'_>) -> Outcome {
    let maps = machine::mappings();
    let mut objects: Vec<(u64, u64, &str)> = Vec::new();
    for line in maps.lines() {
        let Some((range, path)) = mapped(line) else { continue };
        match objects.last_mut().filter(|(.., known)| *known == path) {
            Some(object) => object.1 = range.1,
            None => objects.push((range.0, range.1, path)),
        }
    }
    let lines = objects.iter().map(|(from, to, path)| {
        format!("0x{from:012x}-0x{:012x} (0x{:07x}) {path}\n", to.saturating_sub(1), to - from)
    });
    Ok(Reply::Dump(lines.collect()))
}

/// The addresses and the file of a line of `/proc/self/maps`; `None` if there is no file behind it.
fn mapped(line: &str) -> Option<((u64, u64), &str)> {
    let path = line.get(line.find(" /")? + 1..)?;
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let range = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
    (range.1 > range.0).then_some((range, path))
}

/// `show dev`: the build, the machine, the process and the processors of its threads.
pub fn dev<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        if !call.arg(0).is_empty() {
            return Err("This command takes no argument.".into());
        }
        let bound = gather(|_| rt::sys::allowed_cpus().unwrap_or_default()).await;
        let mut out = format!("{} version {}\n", product::NAME, product::VERSION);
        machine::about_machine(call.client.anon, &mut out);
        let arguments: Vec<String> = std::env::args().collect();
        let (pid, arguments) = (std::process::id(), arguments.join(" "));
        let _ = writeln!(out, "Process info:\n  pid: {pid}\n  cmdline: {arguments}");
        machine::about_standing(&mut out);
        let global = &call.shared().program.global;
        let _ = writeln!(out, "  nbthread: {}\n  maxconn: {}", global.threads, global.maxconn);
        out.push_str("Thread CPU Bindings:\n  Tgrp/Thr  Tid        CPU set\n");
        bindings(&bound, &mut out);
        Ok(Reply::Dump(out))
    })
}

/// Threads in a row that run on the same processors share a line.
fn bindings(bound: &[(usize, Vec<usize>)], out: &mut String) {
    for same in bound.chunk_by(|a, b| a.1 == b.1) {
        let (Some((first, cpus)), Some((last, _))) = (same.first(), same.last()) else { continue };
        let threads = machine::ranges(&(first + 1..=last + 1).collect::<Vec<_>>());
        let (group, set) = (format!("1/{threads}"), machine::ranges(cpus));
        let _ = writeln!(out, "  {group:<9} {threads:<10} {}: {set}", cpus.len());
    }
}

/// `dump stats-file` (management manual, 9.5): the counters of all objects that have a guid.
pub fn stats_file(call: &mut Call<'_>) -> Outcome {
    let mut parts = [("#fe", FRONT, String::new()), ("#be", BACK, String::new())];
    for (heading, columns, text) in &mut parts {
        let _ = writeln!(text, "{heading} guid,{},", columns.join(","));
    }
    let filter = Filter::default();
    crate::shm::refresh(call.shared());
    each(call.shared(), &filter, |row| {
        let Some(guid) = row.guid() else { return };
        let front = row.is_front() || row.is_listener();
        let (_, columns, text) = &mut parts[usize::from(!front)];
        let _ = write!(text, "{guid},");
        for name in columns.iter() {
            let value = COLUMNS.iter().find(|c| c.name == *name).map(|c| (c.read)(&row).to_text());
            let value = value.filter(|v| v.bytes().all(|b| b.is_ascii_digit()) && !v.is_empty());
            let _ = write!(text, "{},", value.as_deref().unwrap_or("0"));
        }
        text.push('\n');
    });
    let [(.., front), (.., back)] = parts;
    Ok(Reply::Dump(format!("{front}\n{back}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_among_mappings() {
        let line = "7f00-7fff r-xp 00000000 fe:00 123   /lib/x86 64/libc.so.6";
        assert_eq!(mapped(line), Some(((0x7f00, 0x7fff), "/lib/x86 64/libc.so.6")));
        assert_eq!(mapped("7f00-7fff rw-p 00000000 00:00 0 "), None);
        assert_eq!(mapped("7f00-7fff rw-p 00000000 00:00 0 [heap]"), None);
    }

    #[test]
    fn columns_of_stats_files_exist() {
        for name in FRONT.iter().chain(BACK) {
            assert!(COLUMNS.iter().any(|c| c.name == *name), "{name}");
        }
    }
}
