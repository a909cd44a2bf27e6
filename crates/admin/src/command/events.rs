//! `show events`: what rings hold (management guide, section 9.3).

use std::fmt::Write;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use engine::sinks::traced::STREAMS;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["show", "events"],
    "[<sink>] [-w] [-n] [-0]",
    "lines kept in a ring",
    Level::User,
    show,
)];

/// `show events [<sink>] [-w] [-n] [-0]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let name = call.arg(0);
    if name.is_empty() {
        return Ok(Reply::info(list(call)));
    }
    if call.client.level < Level::Operator {
        return Err("Permission denied".into());
    }
    if STREAMS.iter().any(|(stream, _)| *stream == name) {
        return Err("Nothing to report for this sink".into());
    }
    let program = &call.shared().program;
    let ring = program.rings.iter().position(|r| *r.name == *name).ok_or("No such event sink")?;
    let (mut wait, mut new, mut nul) = (false, false, false);
    for word in call.args().iter().skip(1) {
        let letters = word.strip_prefix('-').filter(|l| !l.is_empty()).ok_or("unknown option")?;
        for letter in letters.chars() {
            match letter {
                'w' => wait = true,
                'n' => new = true,
                '0' => nul = true,
                _ => return Err("unknown option".into()),
            }
        }
    }
    let position = if new { call.shared().rings.get(ring).map_or(0, |r| r.end()) } else { 0 };
    Ok(Reply::Events { ring, position, wait, nul })
}

fn list(call: &Call<'_>) -> String {
    let mut out = String::from(
        "Supported events sinks are listed below. Add -0(zero), -w(wait), -n(new). Any key to stop.\n",
    );
    for (name, about) in STREAMS {
        let _ = writeln!(out, "    {name:<10} : type=fd, 0 dropped, {about}");
    }
    let shared = call.shared();
    for (settings, ring) in shared.program.rings.iter().zip(&shared.rings) {
        let (name, dropped) = (&settings.name, ring.dropped());
        let _ = writeln!(out, "    {name:<10} : type=buffer, {dropped} dropped, {}", settings.description);
    }
    out
}
