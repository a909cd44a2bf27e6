//! What a condition looked at while it was evaluated.

use bumpalo::Bump;
use lang::cond::{Outcome, Term, Test, Watch};
use lang::sample::Value;

/// Values of one sample that are shown.
const SHOWN: usize = 8;

/// One factor of a condition.
#[derive(Debug)]
pub struct Seen {
    /// The ACL, `!` before it if it is negated.
    pub acl: String,
    /// Whether the factor holds, its negation applied.
    pub holds: bool,
    /// The samples it was decided by.
    pub samples: Vec<Sample>,
}

/// One line of an ACL.
#[derive(Debug)]
pub struct Sample {
    /// Expression as written.
    pub expression: String,
    /// How it is compared: `str`, `beg`...
    pub method: &'static str,
    /// Values; empty: there is none.
    pub values: Vec<String>,
    /// Whether one of them matches.
    pub matches: bool,
}

/// Writes down what is seen.
#[derive(Default)]
pub struct Recorder {
    /// Factors that were evaluated, in order.
    pub seen: Vec<Seen>,
    samples: Vec<Sample>,
    values: Vec<String>,
}

impl Watch for Recorder {
    fn value(&mut self, _: &Test, value: Value<'_>) {
        match self.values.len() {
            n if n < SHOWN => self.values.push(printable(value)),
            SHOWN => self.values.push("...".into()),
            _ => {}
        }
    }

    fn test(&mut self, test: &Test, outcome: Outcome) {
        self.samples.push(Sample {
            expression: test.expr.text.to_string(),
            method: test.kind.name(),
            values: std::mem::take(&mut self.values),
            matches: outcome == Outcome::Yes,
        });
    }

    fn term(&mut self, term: &Term, outcome: Outcome) {
        let negation = if term.negated { "!" } else { "" };
        self.seen.push(Seen {
            acl: format!("{negation}{}", term.acl.name),
            holds: outcome == Outcome::Yes,
            samples: std::mem::take(&mut self.samples),
        });
    }
}

/// A value as text; what is no text as hexadecimal digits.
pub fn printable(value: Value<'_>) -> String {
    let arena = Bump::new();
    match value {
        Value::Bin(b) if b.iter().any(|c| !c.is_ascii_graphic() && *c != b' ') => {
            b.iter().take(64).map(|c| format!("{c:02x}")).collect()
        }
        Value::Bool(b) => b.to_string(),
        other => String::from_utf8_lossy(other.text(&arena)).into_owned(),
    }
}
