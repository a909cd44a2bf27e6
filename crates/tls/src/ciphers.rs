//! Cipher strings of OpenSSL (manual, `ciphers`; ciphers(1)), for the suites of TLS 1.2 that rustls has.
//!
//! A word adds suites at the end, `-` takes them out, `!` for good, `+` moves those at hand to the end. What
//! a word means of suites that are not here has no effect on those that are, so the result is OpenSSL's
//! without the former.

use crate::suites::Row;

/// What became of a string.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// In order of preference.
    pub suites: Vec<Row>,
    /// Words that ask for nothing that is here.
    pub left_out: Vec<String>,
}

/// Where a suite stands.
#[derive(Clone, Copy)]
struct Place {
    row: Row,
    chosen: bool,
}

/// What a word does with the suites that it means.
enum Deed {
    Add,
    Move,
    Remove,
    Forbid,
}

/// Strings of their own, which stand at the beginning and leave nothing else to say (RFC 6460).
const SUITE_B: &[(&str, &str)] = &[
    ("SUITEB128ONLY", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("SUITEB128C2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("SUITEB128", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("SUITEB192", "ECDHE-ECDSA-AES256-GCM-SHA384"),
];

/// Reads a string.
pub(crate) fn choose(text: &str, all: &[Row]) -> Chosen {
    let suite_b = SUITE_B.iter().find(|(name, _)| text.starts_with(name));
    let text = suite_b.map_or(text, |(_, list)| list);
    let mut places: Vec<Place> = all.iter().map(|row| Place { row: *row, chosen: false }).collect();
    let mut left_out = Vec::new();
    for (at, word) in words(text).enumerate() {
        let deed = match word.chars().next() {
            Some('@') => {
                if word == "@STRENGTH" {
                    places.sort_by_key(|p| (p.chosen, if p.chosen { u16::MAX - p.row.3 } else { 0 }));
                }
                continue;
            }
            Some('!') => Deed::Forbid,
            Some('-') => Deed::Remove,
            Some('+') => Deed::Move,
            _ => Deed::Add,
        };
        let name = word.trim_start_matches(['!', '-', '+']);
        let name = if name == "DEFAULT" && at == 0 { "ALL" } else { name };
        if matches!(deed, Deed::Add) {
            if matches!(name, "kRSA" | "RSA") {
                left_out.push(format!("{word} (ECDHE with RSA certificates takes its place)"));
                apply(&deed, &mut places, |row| means(row, "aRSA"));
                continue;
            }
            if !places.iter().any(|p| means(&p.row, name)) && !all.iter().any(|row| means(row, name)) {
                left_out.push(word.to_owned());
            }
        }
        apply(&deed, &mut places, |row| means(row, name));
    }
    Chosen { suites: places.iter().filter(|p| p.chosen).map(|p| p.row).collect(), left_out }
}

/// Whether a word that asks for nothing that is here may ask OpenSSL for something: its names are written in
/// capitals, but for the first letter of some classes (`kDHE`).
pub(crate) fn is_foreign(word: &str) -> bool {
    let name = word.split(' ').next().unwrap_or_default();
    let plain = name.trim_start_matches(['k', 'a', 'e']);
    !plain.is_empty()
        && plain.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b"-_+=.v".contains(&b))
}

/// The words of a string with their signs; a command (`@...`) needs no separator in front.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split([':', ',', ';', ' ']).filter(|w| !w.is_empty());
    pieces.flat_map(|piece| {
        let at = piece.find('@').unwrap_or(piece.len());
        let (word, command) = piece.split_at(at);
        [word, command].into_iter().filter(|w| !w.is_empty())
    })
}

fn apply(deed: &Deed, places: &mut Vec<Place>, means: impl Fn(&Row) -> bool) {
    let meant = |p: &Place| match deed {
        Deed::Add => !p.chosen && means(&p.row),
        Deed::Forbid => means(&p.row),
        Deed::Move | Deed::Remove => p.chosen && means(&p.row),
    };
    let (mut moved, rest): (Vec<Place>, Vec<Place>) = places.iter().partition(|p| meant(p));
    moved.iter_mut().for_each(|p| p.chosen = matches!(deed, Deed::Add | Deed::Move));
    *places = match deed {
        Deed::Forbid => rest,
        // What was taken out is added again in its order, in front of what was never there.
        Deed::Remove => [moved, rest].concat(),
        Deed::Add | Deed::Move => [rest, moved].concat(),
    };
}

/// Whether a suite is meant by a word: its name, or properties joined by `+`.
fn means(&(name, iana, _, bits): &Row, word: &str) -> bool {
    if word == name || word == iana {
        return true;
    }
    word.split('+').all(|property| match property {
        "ALL" | "HIGH" | "TLSv1.2" | "ECDHE" | "EECDH" | "kECDHE" | "kEECDH" | "ECDH" => true,
        "aECDSA" | "ECDSA" => name.contains("ECDSA"),
        "aRSA" => name.contains("-RSA-"),
        "FIPS" | "AES" | "AESGCM" => name.contains("GCM"),
        "AES128" => name.contains("GCM") && bits == 128,
        "AES256" => name.contains("GCM") && bits == 256,
        "CHACHA20" => name.contains("CHACHA20"),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
