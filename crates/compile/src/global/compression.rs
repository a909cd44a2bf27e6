//! Global settings of compression (manual, section 3.2).

use super::draft::{GlobalDraft, entry};
use crate::global::idle;
use crate::keyword::Keyword;
use crate::statement::{Statement, Step};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "maxcomprate",
        |s, g| number(s, g, |g, n| g.compression.rate = n.saturating_mul(1024)),
        "Most bytes a second that are compressed, in kB; 0: no limit.",
        "maxcomprate 1000",
    )
    .default("0"),
    entry(
        "maxcompcpuusage",
        |s, g| number(s, g, |g, n| g.compression.cpu = n),
        "Nothing more is compressed while more percent of the processor are in use.",
        "maxcompcpuusage 80",
    )
    .default("100"),
    entry(
        "maxzlibmem",
        |s, g| number(s, g, |g, n| g.compression.memory = n),
        "Most memory of packers of gzip and deflate, in MB; 0: no limit.",
        "maxzlibmem 100",
    )
    .default("0"),
    entry(
        "tune.comp.maxlevel",
        |s, g| number(s, g, |g, n| g.compression.level = n),
        "The level of gzip and deflate.",
        "tune.comp.maxlevel 6",
    )
    .default("1"),
    entry(
        "tune.comp.brotli.level",
        |s, g| {
            const RANGE: &str = "'tune.comp.brotli.level' expects a numeric value between 0 and 9";
            g.compression.brotli = own_level(s, RANGE, 0, 9)?;
            Ok(())
        },
        "The level of brotli (not in HAProxy).",
        "tune.comp.brotli.level 5",
    )
    .default("4"),
    entry(
        "tune.comp.zstd.level",
        |s, g| {
            const RANGE: &str = "'tune.comp.zstd.level' expects a numeric value between 1 and 19";
            g.compression.zstd = own_level(s, RANGE, 1, 19)?;
            Ok(())
        },
        "The level of zstd (not in HAProxy).",
        "tune.comp.zstd.level 6",
    )
    .default("3"),
    entry(
        "tune.zlib.memlevel",
        |s, g| number(s, g, |g, n| g.compression.memory_level = n),
        "How much memory zlib takes for its tables.",
        "tune.zlib.memlevel 9",
    )
    .default("8"),
    entry(
        "tune.zlib.windowsize",
        |s, g| number(s, g, |g, n| g.compression.window = n),
        "The window of zlib, in bits.",
        "tune.zlib.windowsize 13",
    )
    .default("15"),
];

/// A number that is checked by the table of simple arguments.
fn number(s: &mut Statement<'_>, g: &mut GlobalDraft, set: impl FnOnce(&mut GlobalDraft, u32)) -> Step {
    idle::arguments(s, g)?;
    let n = s.line.args().first().map_or(0, |word| units::lenient(word.text()));
    set(g, u32::try_from(n.max(0)).unwrap_or(u32::MAX));
    Ok(())
}

/// A level of what HAProxy does not have.
fn own_level(s: &mut Statement<'_>, range: &str, least: i64, most: i64) -> Step<u32> {
    let n = s.integer(range)?;
    u32::try_from(n).ok().filter(|_| (least..=most).contains(&n)).ok_or_else(|| s.fail(range))
}
