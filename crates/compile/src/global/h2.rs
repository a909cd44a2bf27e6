//! `tune.h2.*` and what else is said of HTTP/2 for the whole process (manual, section 3.2).

use program::global::{H2Log, H2Side};
use syntax::Word;

use super::draft::{GlobalDraft, entry};
use crate::keyword::Keyword;
use crate::statement::{Statement, Step, clamp};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<GlobalDraft>] = &[
    entry(
        "h2-workaround-bogus-websocket-clients",
        |s, g| {
            s.end()?;
            g.tune.h2.no_websocket = !s.off();
            Ok(())
        },
        "Do not offer WebSocket over HTTP/2 streams to clients.",
        "h2-workaround-bogus-websocket-clients",
    ),
    entry(
        "tune.h2.be.glitches-threshold",
        |s, g| positive(s).map(|n| g.tune.h2.back.glitches = n),
        "Glitches at which a server connection ends.",
        "tune.h2.be.glitches-threshold 1000",
    ),
    entry(
        "tune.h2.be.initial-window-size",
        |s, g| positive(s).map(|n| g.tune.h2.back.window = Some(n)),
        "Smallest window of a stream towards a server, in bytes.",
        "tune.h2.be.initial-window-size 65536",
    ),
    entry(
        "tune.h2.be.max-concurrent-streams",
        |s, g| positive(s).map(|n| g.tune.h2.back.streams = Some(n)),
        "Most streams at once on a server connection.",
        "tune.h2.be.max-concurrent-streams 20",
    ),
    entry(
        "tune.h2.be.max-frames-at-once",
        |s, g| any(s).map(|n| g.tune.h2.back.frames_at_once = n),
        "Most frames of a server connection in a turn.",
        "tune.h2.be.max-frames-at-once 100",
    ),
    entry(
        "tune.h2.be.rxbuf",
        |s, g| rxbuf(s, |g| &mut g.tune.h2.back, g),
        "Bytes that all streams of a server connection may have on their way.",
        "tune.h2.be.rxbuf 1600k",
    ),
    entry(
        "tune.h2.fe.glitches-threshold",
        |s, g| positive(s).map(|n| g.tune.h2.front.glitches = n),
        "Glitches at which a client connection ends.",
        "tune.h2.fe.glitches-threshold 1000",
    ),
    entry(
        "tune.h2.fe.initial-window-size",
        |s, g| positive(s).map(|n| g.tune.h2.front.window = Some(n)),
        "Smallest window of a stream of a client, in bytes.",
        "tune.h2.fe.initial-window-size 65536",
    ),
    entry(
        "tune.h2.fe.max-concurrent-streams",
        front_streams,
        "Most streams at once on a client connection.",
        "tune.h2.fe.max-concurrent-streams 100 rq-load auto min 15",
    ),
    entry(
        "tune.h2.fe.max-frames-at-once",
        |s, g| any(s).map(|n| g.tune.h2.front.frames_at_once = n),
        "Most frames of a client connection in a turn.",
        "tune.h2.fe.max-frames-at-once 100",
    ),
    entry(
        "tune.h2.fe.max-rst-at-once",
        |s, g| any(s).map(|n| g.tune.h2.resets_at_once = n),
        "Most resets of a client connection in a turn.",
        "tune.h2.fe.max-rst-at-once 1",
    ),
    entry(
        "tune.h2.fe.max-total-streams",
        |s, g| positive(s).map(|n| g.tune.h2.total_streams = n),
        "Streams after which a client connection is wound up.",
        "tune.h2.fe.max-total-streams 1000",
    ),
    entry(
        "tune.h2.fe.rxbuf",
        |s, g| rxbuf(s, |g| &mut g.tune.h2.front, g),
        "Bytes that all streams of a client connection may have on their way.",
        "tune.h2.fe.rxbuf 1600k",
    ),
    entry(
        "tune.h2.header-table-size",
        |s, g| within(s, 4096, 65536).map(|n| g.tune.h2.header_table = Some(n)),
        "Size of the table of header fields, in bytes.",
        "tune.h2.header-table-size 4096",
    )
    .default("4096"),
    entry(
        "tune.h2.initial-window-size",
        |s, g| positive(s).map(|n| g.tune.h2.both.window = Some(n)),
        "Smallest window of a stream on both sides, in bytes.",
        "tune.h2.initial-window-size 16384",
    ),
    entry(
        "tune.h2.log-errors",
        |s, g| {
            g.tune.h2.log_errors = match s.only()? {
                "none" => H2Log::None,
                "connection" => H2Log::Connection,
                "stream" => H2Log::Stream,
                _ => {
                    return Err(s.fail("'tune.h2.log-errors' expects 'none', 'connection', or 'stream'"));
                }
            };
            s.end()
        },
        "Which errors of HTTP/2 write a log line.",
        "tune.h2.log-errors connection",
    ),
    entry(
        "tune.h2.max-concurrent-streams",
        |s, g| positive(s).map(|n| g.tune.h2.both.streams = Some(n)),
        "Most streams at once on a connection, on both sides.",
        "tune.h2.max-concurrent-streams 100",
    ),
    entry(
        "tune.h2.max-frame-size",
        |s, g| within(s, 16384, (1 << 24) - 1).map(|n| g.tune.h2.frame = Some(n)),
        "Largest frame that peers may send, in bytes.",
        "tune.h2.max-frame-size 16384",
    )
    .default("16384"),
    entry(
        "tune.h2.zero-copy-fwd-send",
        |s, _| match s.only()? {
            // Data goes from buffer to frame in one copy either way.
            "on" | "off" => Ok(()),
            _ => Err(s.fail("'tune.h2.zero-copy-fwd-send' expects 'on' or 'off'.")),
        },
        super::removed::COPIES,
        "tune.h2.zero-copy-fwd-send off",
    )
    .idle(),
    entry(
        "tune.streams-elasticity",
        elasticity,
        "Streams of HTTP/2 that all clients together may be offered, percent of 'maxconn'; 0: any number.",
        "tune.streams-elasticity 500",
    ),
];

/// A number; a missing one is 0, as is what is none.
fn number(s: &mut Statement<'_>) -> i64 {
    s.next().map_or(0, |word: &Word| s.lenient(word))
}

fn any(s: &mut Statement<'_>) -> Step<u32> {
    let n = number(s);
    s.end()?;
    Ok(clamp(n))
}

fn positive(s: &mut Statement<'_>) -> Step<u32> {
    let n = first(s)?;
    s.end()?;
    Ok(n)
}

fn first(s: &mut Statement<'_>) -> Step<u32> {
    match number(s) {
        n @ 0.. => Ok(clamp(n)),
        _ => Err(s.fail(format!("'{}' expects a positive numeric value.", s.keyword()))),
    }
}

fn within(s: &mut Statement<'_>, low: u32, high: u32) -> Step<u32> {
    s.at_most_one()?;
    let n = clamp(number(s));
    if !(low..=high).contains(&n) {
        return Err(s.fail(format!("'{}' expects a numeric value between {low} and {high}.", s.keyword())));
    }
    s.end()?;
    Ok(n)
}

fn rxbuf(s: &mut Statement<'_>, side: fn(&mut GlobalDraft) -> &mut H2Side, g: &mut GlobalDraft) -> Step {
    let name = s.keyword();
    let text = s.only()?;
    match units::size(text) {
        Ok(size) if !text.is_empty() => {
            side(g).rxbuf = Some(u32::try_from(size).unwrap_or(u32::MAX));
            s.end()
        }
        _ => {
            let found = units::size(text).err().and_then(|rest| rest.chars().next());
            // Where nothing stands HAProxy's message ends with the character that is not there.
            let Some(found) = found else {
                return Err(s.fail(format!("'{name}': unexpected character '")));
            };
            Err(s.fail(format!("'{name}': unexpected character '{found}' in size argument '{text}'.")))
        }
    }
}

fn elasticity(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    let share = s.next().and_then(|word| units::strict(word.text())).filter(|n| *n == 0 || *n >= 100);
    s.end()?;
    let Some(share) = share else {
        return Err(s.fail(format!(
            "'{}' expects 0 or a positive percentage value of 100 or above",
            "tune.streams-elasticity"
        )));
    };
    g.tune.h2.elasticity = clamp(share);
    Ok(())
}

fn front_streams(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {
    const NAME: &str = "tune.h2.fe.max-concurrent-streams";
    let h2 = &mut g.tune.h2;
    h2.front.streams = Some(first(s)?);
    while let Some(word) = s.next() {
        match word.text() {
            "rq-load" => {
                h2.load = match s.next().map_or("", Word::text) {
                    "ignore" => 0,
                    // The queue's depth is looked up when it is known.
                    "auto" => u32::MAX,
                    text => match clamp(units::lenient(text)) {
                        0 => return Err(s.fail(format!(
                            "'{NAME}' expects a strictly positive run-queue length, or 'auto' or 'ignore'."
                        ))),
                        n => n,
                    },
                };
            }
            "min" => {
                h2.load_min = match clamp(units::lenient(s.next().map_or("", Word::text))) {
                    0 => {
                        return Err(s.fail(format!(
                            "'{NAME}' expects a strictly positive minimum number of streams'."
                        )));
                    }
                    n => n,
                };
            }
            other => {
                return Err(s.fail(format!(
                    "'{NAME}' only supports 'rq-load' or 'min' after the numeric value, but found '{other}'."
                )));
            }
        }
    }
    Ok(())
}
