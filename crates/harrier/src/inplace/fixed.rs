//! What can't change in a process that runs.

use std::fmt::Debug;

use program::Program;
use program::peers::{Section, Way};

/// The words that set something, and how it is.
type Setting = (&'static str, fn(&Program) -> String);

/// Settings that the process has for good, with the words that set them.
const SETTINGS: &[Setting] = &[
    ("'cpu-map'", |p| show(&p.global.affinity)),
    ("'chroot'", |p| show(&p.global.chroot)),
    ("'user'", |p| show(&p.global.uid)),
    ("'group'", |p| show(&p.global.gid)),
    ("'setcap'", |p| show(&p.global.capabilities)),
    ("'set-dumpable'", |p| show(&p.global.set_dumpable)),
    ("'insecure-setuid-wanted'", |p| show(&p.global.setuid_wanted)),
    ("'daemon'", |p| show(&p.global.daemon)),
    ("'pidfile'", |p| show(&p.global.pidfile)),
    ("'noreuseport'", |p| show(&p.global.disabled.reuseport)),
    ("'warn-blocked-traffic-after'", |p| show(&p.global.warn_blocked_after)),
    ("'tune.renice.runtime'", |p| show(&p.global.nice)),
    ("'tune.bufsize'", |p| show(&p.global.tune.bufsize)),
    ("'tune.bufsize.large'", |p| show(&p.global.tune.large_bufsize)),
    ("'tune.maxpollevents'", |p| show(&p.global.tune.maxpollevents)),
    ("'tune.stick-counters'", |p| show(&p.global.tune.stick_counters)),
    ("'mworker-max-reloads'", |p| show(&p.global.master.max_reloads)),
    ("'master-worker'", |p| show(&p.global.master.survives_failure)),
    ("'trace' of 'traces' sections", |p| show(&p.traces)),
    ("'stats-file'", |p| show(&p.global.figures.first)),
    ("'shm-stats-file'", |p| show(&p.global.figures.shared)),
    ("'shm-stats-file-max-objects'", |p| show(&p.global.figures.most_shared)),
    ("'reload'", |p| show(&p.global.master.in_place)),
];

fn show(value: &impl Debug) -> String {
    format!("{value:?}")
}

/// What of a program differs from the one that runs and can't be had without a new process.
pub fn differences(before: &Program, now: &Program) -> Vec<String> {
    let settings = SETTINGS.iter().filter(|(_, of)| of(before) != of(now));
    let mut found: Vec<String> = settings.map(|(words, _)| (*words).to_owned()).collect();
    if now.global.ulimit_n > before.global.ulimit_n && !raise(now.global.ulimit_n) {
        found.push(format!("The limit of descriptors, of which {} are needed,", now.global.ulimit_n));
    }
    let peers = |program: &Program| program.peers.iter().map(section).collect::<Vec<_>>();
    let tables = |program: &Program| -> Vec<usize> {
        let all = program.peers.iter().flat_map(|section| &section.tables);
        all.map(|shared| std::sync::Arc::as_ptr(&shared.table).addr()).collect()
    };
    if peers(before) != peers(now) || tables(before) != tables(now) {
        found.push("A 'peers' section, or a table in it,".to_owned());
    }
    if now.namespaces.iter().any(|namespace| rt::open_namespace(*namespace).is_err()) {
        found.push("A 'namespace' that this process can't open".to_owned());
    }
    found
}

/// A section as far as its sessions depend on it.
fn section(section: &Section) -> String {
    let others = section.others.iter().map(|o| {
        let source = o.source.as_ref().map(show);
        (&o.name, &o.target, way(&o.way), o.group, source, &o.md5sig)
    });
    let bind = &section.bind;
    let words = (section.groups, bind.maxconn, bind.nice, bind.accept_proxy, bind.accept_cip);
    let tables = section.tables.iter().map(|t| (&t.name, t.table.settings()));
    format!(
        "{} {} {:?} {words:?} {:?} {:?} {:?}",
        section.name,
        section.local,
        section.address,
        others.collect::<Vec<_>>(),
        way(&section.own_way),
        tables.collect::<Vec<_>>(),
    )
}

fn way(way: &Way) -> String {
    let sni = way.tls.as_ref().map(|tls| tls.sni.as_ref().map(|sni| sni.text().to_owned()));
    format!("{sni:?} {:?}", way.socks4)
}

fn raise(wanted: u64) -> bool {
    let limit = rt::sys::Limit::Descriptors;
    limit.get().0.is_none_or(|soft| soft >= wanted) || limit.set(Some(wanted)).is_ok()
}
