//! `mirror`, which is ours: a copy of the request for another backend.
//!
//! The rule copies the head as it finds it and leaves it with the transaction. The engine adds the body when
//! that has passed, sends the copy and forgets the answer ([`model::mirror`]).

use model::mirror::Copied;
use wire::head::Head;
use wire::http1::upgrades;
use wire::method::Method;

use super::{Parsed, Reading, def, step};
use crate::action::{Exec, Flow};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "mirror",
    Sets::HTTP_REQ,
    parse,
    "Sends a copy of the request to a backend and forgets the answer (ours alone).",
    "mirror b percent 10 body 64k",
)];

/// Most bytes of body unless said.
const BODY: u64 = 16 << 10;
/// Most that may be said: all copies together may hold no more than twice that.
const MOST: u64 = 16 << 20;

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let place = reading.words.position();
    let name = if reading.is_over() { None } else { Some(reading.word("")?) };
    let Some(name) = name else {
        return Err(Fault::new("expects the name of a backend").at(place.saturating_sub(1)));
    };
    let (mut percent, mut most) = (100, BODY);
    loop {
        if reading.words.take_if("percent") {
            let word = value(&mut reading, "'percent' expects a number from 0 to 100")?;
            percent = word.0.parse().ok().filter(|n| *n <= 100).ok_or_else(|| {
                Fault::new(format!("'percent' expects a number from 0 to 100, not '{}'", word.0)).at(word.1)
            })?;
        } else if reading.words.take_if("body") {
            let word = value(&mut reading, "'body' expects a size")?;
            most = crate::parse::size(&word.0).filter(|n| *n <= MOST).ok_or_else(|| {
                Fault::new(format!("'body' expects a size of at most 16m, not '{}'", word.0)).at(word.1)
            })?;
        } else {
            break;
        }
    }
    let (state, backend) = reading.names.mirror(&name).map_err(|fault| fault.at(place))?;
    step(move |exec| {
        let drawn = percent == 100 || base::rand::scale(exec.live.random(), 100) < percent;
        // A copy is copied no further: two rules could go round in circles.
        if !drawn || exec.txn.mirror.is_copy {
            return Flow::Next;
        }
        let req = &exec.txn.req;
        if req.method_id() == Method::Connect || upgrades(req) {
            state.back.counters.of(exec.live.worker()).mirror.tunnel.inc();
            return Flow::Next;
        }
        copy(exec, backend, most);
        Flow::Next
    })
}

/// The word behind an option, and where it stands.
fn value(reading: &mut Reading<'_, '_>, missing: &str) -> Result<(String, usize), Fault> {
    let place = reading.words.position();
    if reading.is_over() {
        return Err(Fault::new(missing).at(place.saturating_sub(1)));
    }
    Ok((reading.word(missing)?, place))
}

fn copy(exec: &mut Exec<'_>, backend: u32, most: u64) {
    let mut head = Head::request();
    head.copy_from(&exec.txn.req);
    exec.txn.mirror.copies.push(Copied { backend, head, most });
}
