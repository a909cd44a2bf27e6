//! `show mirror`, which is ours: what became of copies of requests (`http-request mirror`).

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use model::mirror::MirrorCounters;
use program::Program;
use program::listener::Level;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["show", "mirror"],
    "",
    "show what became of copies of requests, by backend",
    Level::User,
    show,
)];

/// What became of copies for a backend: names and sums.
pub fn sums(back: &model::proxy::Back) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<_> = MirrorCounters::default().all().map(|(name, _)| (name, 0)).into();
    for counters in back.counters.iter() {
        for (sum, (_, counter)) in sums.iter_mut().zip(counters.mirror.all()) {
            sum.1 += counter.get();
        }
    }
    sums
}

/// The backends that rules copy requests for: their names and states.
pub fn backends(program: &Program) -> Vec<(String, std::sync::Arc<model::Proxy>)> {
    let all = program.present().filter(|p| p.state.back.is_mirror.load(Relaxed));
    all.map(|p| (p.name.to_string(), p.state.clone())).collect()
}

/// `show mirror`.
fn show(call: &mut Call<'_>) -> Outcome {
    let mut out = "# backend current".to_owned();
    for (name, _) in MirrorCounters::default().all() {
        let _ = write!(out, " {name}");
    }
    out.push('\n');
    for (name, state) in backends(&call.shared().program) {
        let _ = write!(out, "{name} {}", state.back.mirrored.load(Relaxed));
        for (_, sum) in sums(&state.back) {
            let _ = write!(out, " {sum}");
        }
        out.push('\n');
    }
    Ok(Reply::Dump(out))
}
