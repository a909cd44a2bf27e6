//! What a fuzzer may throw at this crate: heads of both sides, and payloads in any pieces.

use lang::compression::{Algorithm, Effective};
use wire::head::Head;

use crate::choice;
use crate::packer::{Packer, Recipe, Step};

/// Reads a head of lines `name: value` and decides on it.
pub fn choose(bytes: &[u8]) {
    let (mut req, mut res) = (Head::request(), Head::response());
    for line in bytes.split(|b| *b == b'\n') {
        let at = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(at);
        let value = value.get(1..).unwrap_or_default();
        let _ = (req.append(name, value), res.append(name, value));
    }
    let all: Vec<Algorithm> = Algorithm::NAMES.iter().map(|(_, a)| *a).collect();
    let types = [b"text/".as_slice().into()];
    let settings = Effective { algorithms: &all, types: &types, least: 1 };
    let _ = choice::for_response(&req, settings);
    let _ = choice::fits_response(&req, &res, false, settings);
    let _ = choice::fits_request(&req, settings);
}

/// Packs a payload with rooms and pieces of sizes that the first bytes say.
///
/// # Panics
/// A packer fails or gets nowhere.
pub fn pack(bytes: &[u8]) {
    let [which, room, piece, rest @ ..] = bytes else { return };
    let names = Algorithm::NAMES;
    let Some((_, algorithm)) = names.get(usize::from(*which) % names.len()) else { return };
    let recipe = Recipe { algorithm: *algorithm, level: 1, memory_level: 1, window: 9 };
    let Some(mut packer) = Packer::new(recipe) else { return };
    let mut room = vec![0; 64 + usize::from(*room) * 16];
    for part in rest.chunks(1 + usize::from(*piece)) {
        let (mut at, mut rounds) = (0, 0);
        while at < part.len() {
            let stepped = packer.step(part.get(at..).unwrap_or_default(), &mut room, Step::Take);
            at += stepped.expect("a packer takes everything").taken;
            rounds += 1;
            assert!(rounds < 100_000, "no progress");
        }
    }
    for _ in 0..100_000 {
        if packer.step(&[], &mut room, Step::End).expect("a packer ends").done {
            return;
        }
    }
    panic!("no end");
}
