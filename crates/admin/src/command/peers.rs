//! `show peers`: with whom entries of stick tables are exchanged, and how far that is.
//!
//! The lines are those of HAProxy. Where it shows the address of something in its memory a number of ours
//! stands, which is 0 where there is no such thing; its flags are 0.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use model::peers::{Peer, Table};
use program::listener::Level;
use program::peers::Section;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["show", "peers"],
    "[dict|-] [section]",
    "dump some information about all the peers or this peers section",
    Level::User,
    show,
)];

/// `show peers [dict|-] [section]`.
fn show(call: &mut Call<'_>) -> Outcome {
    let first = call.arg(0);
    let with_texts = first == "dict";
    let wanted = if matches!(first, "dict" | "-") { call.arg(1) } else { first };
    let sections = &call.shared().program.peers;
    if !wanted.is_empty() && !sections.iter().any(|s| *s.name == *wanted) {
        return Err("No such peers\n".into());
    }
    let mut out = String::new();
    for (number, section) in (1u32..).zip(sections) {
        if wanted.is_empty() || *section.name == *wanted {
            head(section, number, &mut out);
            for (at, peer) in (0usize..).zip(&section.state.peers) {
                one(section, peer, at, with_texts, &mut out);
            }
        }
    }
    Ok(Reply::Dump(out))
}

fn now() -> u64 {
    rt::now().as_millis()
}

/// Time until a moment: 0 stands for no moment.
fn until(moment: u64) -> String {
    match moment.checked_sub(now()) {
        _ if moment == 0 => "<NEVER>".into(),
        None | Some(0) => "<PAST>".into(),
        Some(left) => span(left),
    }
}

/// A time as HAProxy shows it: seconds, from a minute on minutes and seconds, and so on.
fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

fn head(section: &Section, number: u32, out: &mut String) {
    let state = &section.state;
    let waiting = match state.learning_until.load(Relaxed) {
        0 => "<PAST>".to_owned(),
        moment => until(moment),
    };
    let _ = writeln!(
        out,
        "{number:#x}: [{}] id={} disabled=0 flags=0x0 resync_timeout={waiting} task_calls=0",
        crate::cli::date::plain(rt::wall()),
        section.name
    );
}

fn one(section: &Section, peer: &Peer, at: usize, with_texts: bool, out: &mut String) {
    let connected = peer.connected.load(Relaxed);
    let kind = if peer.local { "local" } else { "remote" };
    let activity = if connected { "active" } else { "inactive" };
    let state = if connected { "RUNNING" } else { "STOPPED" };
    let learning = if peer.learning.load(Relaxed) { "ASSIGNED" } else { "NOTASSIGNED" };
    let shaken = match peer.last_handshake.load(Relaxed) {
        0 => "<NEVER>".to_owned(),
        moment => span(now().saturating_sub(moment)),
    };
    let _ = writeln!(
        out,
        "  {:#x}: id={}({kind},{activity}) addr={} app_state={state} learn_state={learning} last_status={} last_hdshk={shaken}",
        at + 1,
        peer.name,
        peer.address,
        peer.last_status.lock(),
    );
    let _ = writeln!(
        out,
        "        reconnect={} heartbeat={} confirm=0 tx_hbt={} rx_hbt={} no_hbt={} new_conn={} proto_err={} coll={}",
        until(peer.reconnect.load(Relaxed)),
        if connected { "3s" } else { "<NEVER>" },
        peer.beats_sent.load(Relaxed),
        peer.beats_seen.load(Relaxed),
        peer.silences.load(Relaxed),
        peer.connections.load(Relaxed),
        peer.errors.load(Relaxed),
        peer.collisions.load(Relaxed),
    );
    let _ = writeln!(out, "        flags=0x0");
    if section.tables.is_empty() {
        return;
    }
    let _ = writeln!(out, "        shared tables:");
    for (id, table) in (1usize..).zip(&peer.tables) {
        let changes = section.tables.get(id - 1).map_or(0, |t| t.table.changes());
        shared(section, table, id, changes, out);
        if with_texts {
            texts(peer, out);
        } else {
            let _ = writeln!(out, "        Dictionary cache not dumped (use \"show peers dict\")");
        }
    }
}

fn shared(section: &Section, table: &Table, id: usize, changes: u64, out: &mut String) {
    // Peers say a table of their section by a slash alone before its name.
    let of_section = if table.name.starts_with('/') { &*section.name } else { "" };
    let pushed = table.pushed.load(Relaxed);
    let _ = writeln!(
        out,
        "          {id:#x} local_id={id} remote_id={} flags=0x0 remote_data={:#x}",
        table.remote_id.load(Relaxed),
        table.remote_data.load(Relaxed)
    );
    let _ = writeln!(
        out,
        "              last_acked={} last_pushed={pushed} last_get={} teaching_origin=0 update={pushed}",
        table.acked.load(Relaxed),
        table.seen.load(Relaxed)
    );
    let _ = writeln!(
        out,
        "              table:{id:#x} id={of_section}{} update={changes} localupdate={changes} refcnt=1",
        table.name
    );
}

/// Slots of a dictionary.
const TEXTS: usize = 128;

fn texts(peer: &Peer, out: &mut String) {
    let _ = writeln!(out, "        TX dictionary cache:");
    for (number, text) in (1usize..).zip(peer.sent_texts.lock().iter()) {
        let _ = writeln!(out, "          {number:>3} -> {text}");
    }
    let _ = writeln!(out, "        RX dictionary cache:");
    let seen = peer.seen_texts.lock();
    for row in 0..TEXTS / 4 {
        let _ = write!(out, "          ");
        for column in 0..4 {
            let at = row * 4 + column;
            let text = seen.get(at).and_then(Option::as_deref).unwrap_or("-");
            let _ = write!(out, "{at:>3} -> {text}  ");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
}
