//! Events of servers and certificates, told to scripts.

use crate::value::Bound;
use crate::value::{Args, Outcome};

/// Functions about events.
pub const BOUND: &[Bound] = &[("core.event_sub", 0, event_sub)];

fn event_sub(args: &mut Args<'_>) -> Outcome {
    args.table(1)?;
    args.function(2)?;
    Err("'event_sub': events are not supported yet by Harrier".into())
}
