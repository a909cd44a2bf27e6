//! `set-bandwidth-limit` and the filters that it turns on (sections 4.3 and 9.7).
//!
//! A filter limits nothing until a rule says so. The rule puts its settings, resolved for this stream, into
//! the transaction; the engine applies them where bytes are passed on.

use ::stick::Data;
use model::bandwidth::{Bandwidth, Share};

use super::{Parsed, Reading, def, step};
use crate::action::{Exec, Flow};
use crate::bandwidth::{Bwlim, Scope};
use crate::expr::Expr;
use crate::names::{Missing, Names};
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[def(
    "set-bandwidth-limit",
    Sets::TCP_REQ.and(Sets::TCP_RES).and(Sets::HTTP_REQ).and(Sets::HTTP_RES),
    parse,
    "Turns a bandwidth limit on for the stream.",
    "set-bandwidth-limit per-stream limit 1m period 10s",
)];

impl Bwlim {
    /// One beside it that limits nothing.
    pub fn nowhere(&self) -> Bwlim {
        let (name, upload, min_size) = (self.name.clone(), self.upload, self.min_size);
        Bwlim { name, order: None, upload, min_size, limit: self.limit, scope: Scope::Stream(1000) }
    }

    /// The rate that its table must keep.
    pub fn data(upload: bool) -> Data {
        if upload { Data::BytesInRate } else { Data::BytesOutRate }
    }

    /// Where its settings for this stream come from; none when the key can't be had.
    fn share(&self, exec: &Exec<'_>, period: Option<u32>) -> Option<Share> {
        match &self.scope {
            Scope::Stream(default) => Some(Share::Alone { period: period.unwrap_or(*default) }),
            Scope::Key(expr, table) => {
                let value = expr.eval(&exec.env()).ok()?;
                let key = crate::stick::key::of(table.kind(), value, exec.arena)?;
                table.enter(key, crate::stick::now(&exec.env())).map(Share::Entry)
            }
        }
    }
}

/// A figure that stands in the rule, or is computed.
enum Figure {
    Constant(u64),
    Computed(Expr),
}

impl Figure {
    fn parse(
        reading: &mut Reading<'_, '_>,
        unit: fn(&str, &mut dyn Names) -> Option<u64>,
        name: &str,
        what: &str,
    ) -> Result<Figure, Fault> {
        let word = reading.words.peek_str().unwrap_or_default().to_owned();
        if let Some(n) = unit(&word, reading.names) {
            reading.words.take();
            return Ok(Figure::Constant(n));
        }
        let text = || format!("'{name}': invalid {what} value or unknown fetch method '{word}'");
        if word.is_empty() {
            return Err(Fault::new(text()));
        }
        reading.expr().map(Figure::Computed).map_err(|f| Fault { text: text(), ..f })
    }

    fn value(&self, exec: &Exec<'_>) -> Option<u64> {
        let n = match self {
            Figure::Constant(n) => Some(*n),
            Figure::Computed(expr) => {
                expr.eval(&exec.env()).ok().and_then(|v| v.int()).and_then(|n| u64::try_from(n).ok())
            }
        };
        n.filter(|n| *n > 0)
    }
}

fn parse(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let name = reading.word("missing bwlim filter name")?;
    let (mut limit, mut period) = (None, None);
    loop {
        if reading.words.take_if("limit") {
            limit = Some(Figure::parse(&mut reading, |w, _| crate::parse::size(w), "limit", "size")?);
        } else if reading.words.take_if("period") {
            period = Some(Figure::parse(
                &mut reading,
                |w, n| crate::parse::tolerant(w, n).ok(),
                "period",
                "time",
            )?);
        } else {
            break;
        }
    }
    let filter = match reading.names.bandwidth(&name) {
        Ok(filter) => filter,
        Err(fault) => {
            reading.names.miss(Missing::Rule(fault.text));
            return step(|_| Flow::Next);
        }
    };
    if matches!(filter.scope, Scope::Key(..)) && (limit.is_some() || period.is_some()) {
        let what = if limit.is_some() { "limit" } else { "period" };
        let text = format!("set-bandwidth-limit rule cannot define a {what} for a shared bwlim filter");
        reading.names.miss(Missing::Rule(text));
    }
    step(move |exec| {
        let Some(order) = filter.order else { return Flow::Next };
        let limit = limit.as_ref().and_then(|l| l.value(exec)).unwrap_or(filter.limit);
        let period = period.as_ref().and_then(|p| p.value(exec)).and_then(|p| u32::try_from(p).ok());
        let share = filter.share(exec, period);
        let all = &mut exec.txn.bandwidth;
        // The last rule about a filter counts.
        all.retain(|b| b.order != order || b.upload != filter.upload);
        if let Some(share) = share {
            let (upload, min_size) = (filter.upload, filter.min_size);
            all.push(Bandwidth { order, upload, min_size, limit, share });
        }
        Flow::Next
    })
}
