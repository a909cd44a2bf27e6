//! Captures: samples kept for the log line (section 4.3, `capture`).

use super::{Parsed, Reading, def, step, with_bytes};
use crate::action::Flow;
use crate::env::Side;
use crate::expr::Expr;
use crate::names::{CaptureSlot, Missing, Names};
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

const EXPECTS: &str = "expects <expression> [ 'len' <length> | id <idx> ]";

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "capture",
    Sets::TCP_REQ.and(Sets::HTTP),
    parse,
    "Keeps a sample for the log line, in a slot of its own or a declared one.",
    "capture src len 15",
)];

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let response = at.set == Sets::HTTP_RES || at.set == Sets::HTTP_AFTER;
    let mut reading = Reading { words, at, reg, names };
    if at.set == Sets::TCP_REQ && reading.names.lacks(Side::Request) {
        return Err(lacks(reading.names));
    }
    if at.set == Sets::TCP_REQ && reading.words.is_empty() {
        return Err(Fault::new("missing fetch method"));
    }
    let expects = if response { "expects <expression> id <idx>" } else { EXPECTS };
    if reading.words.rest().len() < 3 {
        let text = match at.set == Sets::TCP_REQ {
            true if reading.words.rest().get(1).is_some_and(|w| *w == b"len") => "length must be > 0",
            true => "a positive 'len' argument is mandatory",
            false => expects,
        };
        return Err(Fault::new(text));
    }
    let expr = reading.expr()?;
    let (word, value) = (reading.word(EXPECTS)?, reading.word(EXPECTS)?);
    let mut asked = 0;
    let (slot, limit) = match word.as_str() {
        "if" | "unless" if response => return Err(Fault::new(expects)),
        other if response && other != "id" => {
            return Err(Fault::new(format!("expects 'id', found '{other}'")));
        }
        "len" if reading.names.lacks(Side::Request) => return Err(lacks(reading.names)),
        "len" => {
            // Leading digits count, and wrap around at 32 bits.
            let length = crate::sample::parse_int(value.as_bytes())
                .and_then(|n| u32::try_from(n as i32).ok())
                .filter(|n| *n > 0);
            let length = length.ok_or_else(|| Fault::new("length must be > 0"))?;
            (CaptureSlot::Length(length), length as usize)
        }
        _ if at.set == Sets::TCP_REQ => return Err(Fault::new("a positive 'len' argument is mandatory")),
        "id" => {
            let id: i64 = value.parse().map_err(|_| Fault::new(format!("cannot parse id '{value}'")))?;
            // It wraps around at 32 bits.
            asked = id as i32;
            let id = u16::try_from(asked).unwrap_or(u16::MAX);
            (CaptureSlot::Id(id), reading.names.capture_length(response, id).unwrap_or(usize::MAX))
        }
        other => return Err(Fault::new(format!("expects 'len' or 'id', found '{other}'"))),
    };
    let declared = matches!(slot, CaptureSlot::Id(_));
    let slot = match reading.names.capture(response, slot) {
        Ok(slot) => usize::from(slot),
        Err(_) if declared => {
            let text =
                format!("unable to find capture id '{asked}' referenced by {} capture rule", at.set.words());
            reading.names.miss(Missing::Rule(text));
            return step(|_| Flow::Next);
        }
        Err(fault) => return Err(fault),
    };
    keep(expr, slot, limit, response)
}

/// Keeps the first `limit` bytes of a sample in a slot.
fn keep(expr: Expr, slot: usize, limit: usize, response: bool) -> Parsed {
    let side = if response { Side::Response } else { Side::Request };
    step(move |exec| {
        // A backend's rules may name slots that the frontend at hand has not got.
        let Some(declared) = exec.live.capture_length(side, slot) else { return Flow::Next };
        with_bytes(|bytes| {
            if expr.append_text(&exec.env(), bytes).is_none() {
                return;
            }
            // A capture is text: a NUL ends it, as in HAProxy.
            let text = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            bytes.truncate(limit.min(declared).min(text));
            let list = if response { &mut exec.txn.res_captures } else { &mut exec.txn.req_captures };
            let list = list.get_mut();
            if list.len() <= slot {
                list.resize_with(slot + 1, || None);
            }
            if let Some(place) = list.get_mut(slot) {
                *place = Some(bytes.as_slice().into());
            }
        });
        Flow::Next
    })
}

fn lacks(names: &dyn Names) -> Fault {
    let owner = names.owner();
    let name = owner.split('\'').nth(1).unwrap_or_default();
    Fault::new(format!("proxy '{name}' has no frontend capability"))
}
