//! Rule sets: ordered lists of actions with conditions.

use std::sync::Arc;

use crate::action::{Action, Exec, Flow, Need};
use crate::cond::{Condition, Outcome};
use crate::dispatch::{Cursor, Dispatch};

/// One rule.
pub struct Rule {
    /// What it does.
    pub action: Box<dyn Action>,
    /// When; `None`: always.
    pub condition: Option<Condition>,
    /// Its number in the program: place in the configuration, for logs and `explain`.
    pub number: u32,
    /// Action and arguments as written, for `explain`.
    pub text: Box<str>,
}

/// Rules in order.
#[derive(Clone, Default)]
pub struct RuleSet {
    rules: Arc<[Rule]>,
    /// Where those begin that are not inherited.
    own: usize,
    /// Which of them can't apply.
    dispatch: Arc<Dispatch>,
}

/// Where a rule set stopped, so that it can go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(pub usize);

/// How a run of a rule set ended.
pub enum Run {
    /// All rules are done, or one accepted.
    Done,
    /// A rule decided; its number says which.
    Decided(Flow, u32),
    /// A rule or a condition waits: fulfil it, then run again from this position (the first, for a
    /// condition).
    Waits(Need, Position),
}

impl RuleSet {
    /// From rules in order.
    pub fn new(rules: Vec<Rule>) -> RuleSet {
        RuleSet::inheriting(rules, 0)
    }

    /// From rules in order, of which the first so many come from a `defaults` section.
    pub fn inheriting(rules: Vec<Rule>, inherited: usize) -> RuleSet {
        let dispatch = Dispatch::new(rules.iter().map(|r| r.condition.as_ref()));
        RuleSet { rules: rules.into(), own: inherited, dispatch: Arc::new(dispatch) }
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, for `explain` and checks.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The number of the rule at a position.
    pub fn number(&self, at: Position) -> Option<u32> {
        self.rules.get(at.0).map(|rule| rule.number)
    }

    /// Whether the rule behind a position goes on with the hint of the one there: it is one as well, and has
    /// no condition.
    pub fn hints_on(&self, at: Position) -> bool {
        self.rules.get(at.0 + 1).is_some_and(|rule| rule.condition.is_none() && rule.action.is_hint())
    }

    /// Runs from a position. After [`Run::Waits`], call again with the position and, for a need of an
    /// action, `exec.resumed` set.
    pub fn run(&self, exec: &mut Exec<'_>, from: Position) -> Run {
        if from == Position(0) && exec.resumed.is_none() {
            // `strict-mode off` is for the rules behind it in their own set; those of a `defaults` section
            // are one.
            exec.txn.decisions.lenient_rewrites = false;
        }
        let mut inherited = from.0 < self.own;
        let mut cursor = Cursor::default();
        let mut at = from.0;
        loop {
            if exec.resumed.is_none() {
                at = self.dispatch.next(at, &mut cursor, &exec.env());
            }
            if inherited && at >= self.own {
                inherited = false;
                exec.txn.decisions.lenient_rewrites = false;
            }
            let Some(rule) = self.rules.get(at) else { return Run::Done };
            // A resumed action has passed its condition already.
            if exec.resumed.is_none()
                && let Some(condition) = &rule.condition
            {
                match condition.holds(&exec.env()) {
                    Outcome::Yes => {}
                    Outcome::Later if !exec.last => {
                        // With more data all rules are asked anew, as HAProxy does: what those before this
                        // one looked at may have come, too.
                        return Run::Waits(Need::Data, Position(0));
                    }
                    Outcome::No | Outcome::Later => {
                        at += 1;
                        continue;
                    }
                }
            }
            let flow = rule.action.run(exec);
            exec.resumed = None;
            cursor.forget();
            match flow {
                Flow::Next => at += 1,
                Flow::Yield(need) => return Run::Waits(need, Position(at)),
                Flow::Accept => {
                    exec.txn.last_rule.set(Some(rule.number));
                    return Run::Done;
                }
                decided => {
                    exec.txn.last_rule.set(Some(rule.number));
                    return Run::Decided(decided, rule.number);
                }
            }
        }
    }
}
