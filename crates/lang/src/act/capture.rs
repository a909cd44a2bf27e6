//! Captures: samples kept for the log line (section 4.3, `capture`).

use super::{Parsed, Reading, def, step, with_bytes};
use crate::action::Flow;
use crate::env::Side;
use crate::names::{CaptureSlot, Names};
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
    if reading.words.rest().len() < 3 {
        return Err(Fault::new(EXPECTS));
    }
    let expr = reading.expr()?;
    let (word, value) = (reading.word(EXPECTS)?, reading.word(EXPECTS)?);
    let (slot, limit) = match word.as_str() {
        "len" if response => return Err(Fault::new("expects 'id', found 'len'")),
        "len" => {
            let length = value.parse::<u32>().ok().filter(|n| *n > 0);
            let length = length.ok_or_else(|| Fault::new("length must be > 0"))?;
            (CaptureSlot::Length(length), length as usize)
        }
        "id" => {
            let id = value.parse().map_err(|_| Fault::new(format!("cannot parse id '{value}'")))?;
            (CaptureSlot::Id(id), reading.names.capture_length(response, id).unwrap_or(usize::MAX))
        }
        _ => return Err(Fault::new(EXPECTS)),
    };
    let slot = usize::from(reading.names.capture(response, slot)?);
    let side = if response { Side::Response } else { Side::Request };
    step(move |exec| {
        // A backend's rules may name slots that the frontend at hand has not got.
        let Some(declared) = exec.live.capture_length(side, slot) else { return Flow::Next };
        with_bytes(|bytes| {
            if expr.append_text(&exec.env(), bytes).is_none() {
                return;
            }
            bytes.truncate(limit.min(declared));
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
