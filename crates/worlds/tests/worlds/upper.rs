//! The example of CONTRIBUTING.md: a filter that writes bodies in capital letters, `filter upper`. In a
//! program it would be a file like this in a crate above the engine, and its table a line of
//! `harrier::extensions`.

use std::sync::Arc;
use std::task::{Context, Poll};

use lang::action::Exec;
use lang::env::Side;
use lang::filter::{Broken, Data, Filter, Maker, Moved, Rewriter};
use lang::registry::FilterDef;

pub const FILTERS: &[FilterDef] = &[FilterDef {
    name: "upper",
    tag: "UPPER",
    parse: |_, _, _, _| Ok(Arc::new(Upper)),
    doc: "Writes the bodies of both directions in capital letters.",
    example: "upper",
}];

/// The line, the filter of a stream and what data pass through: it remembers nothing, so one type does.
struct Upper;

impl Maker for Upper {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        Some(Box::new(Upper))
    }
}

impl Filter for Upper {
    fn data(&mut self, _: Side) -> Option<Data> {
        Some(Data::Rewriter(Box::new(Upper)))
    }
}

impl Rewriter for Upper {
    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
        room: &mut [u8],
    ) -> Poll<Result<Moved, Broken>> {
        let n = payload.len().min(room.len());
        for (to, from) in room.iter_mut().zip(payload) {
            *to = from.to_ascii_uppercase();
        }
        Poll::Ready(Ok(Moved { taken: n, made: n }))
    }

    fn keeps_length(&self) -> bool {
        true
    }
}
