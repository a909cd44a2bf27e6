//! The one driver of rules: it runs a set to its end, and has the place where the rules stand fulfil what
//! they wait for and carry out what they decide.

use lang::RuleSet;
use lang::action::{Flow, Fulfilled, Need};
use lang::filter::Moment;
use lang::rules::{Position, Run};

use crate::filters::{Met, Whose};

/// What came of a need.
pub enum Given {
    /// The rule that waited goes on with this.
    Back(Fulfilled),
    /// More data came, or no more will: then conditions take what is there for all there is.
    Data {
        /// No more will come.
        over: bool,
    },
}

/// Where rules stand: a connection that opens, a stream of TCP, a request, a response.
pub trait Bench {
    /// What a decision makes of the stream or the connection, if it does not just go on.
    type Verdict;

    /// Runs rules from a position. `last`: no more data will come.
    fn run(&mut self, rules: &RuleSet, from: Position, last: bool, given: Option<Fulfilled>) -> Run;

    /// Fulfils what the rule at `at` needs.
    ///
    /// # Errors
    /// It can't be, and that decides.
    async fn fulfil(&mut self, rules: &RuleSet, at: Position, need: Need) -> Result<Given, Self::Verdict>;

    /// Carries out what the rule of this number decided, or a filter, which has none; `None` if that is to go
    /// on.
    async fn decide(&mut self, flow: Flow, number: Option<u32>) -> Option<Self::Verdict>;

    /// Asks the filters of the stream, from one of them on.
    fn meet(&mut self, at: (Moment, Whose), from: usize, last: bool, given: Option<Fulfilled>) -> Met {
        let _ = (at, from, last, given);
        Met::Done
    }
}

/// Asks all filters of a stream at a moment. `None`: nothing was decided that ends anything.
pub async fn meet<B: Bench>(bench: &mut B, at: (Moment, Whose)) -> Option<B::Verdict> {
    let none = RuleSet::default();
    let (mut from, mut given, mut last) = (0, None, false);
    loop {
        match bench.meet(at, from, last, given.take()) {
            Met::Done => return None,
            Met::Ends(flow) => return bench.decide(flow, None).await,
            Met::Waits(need, place) => {
                from = place;
                match bench.fulfil(&none, Position(0), need).await {
                    Ok(Given::Back(fulfilled)) => given = Some(fulfilled),
                    Ok(Given::Data { over }) => {
                        last = over;
                        given = Some(if over { Fulfilled::Failed } else { Fulfilled::Done });
                    }
                    Err(verdict) => return Some(verdict),
                }
            }
        }
    }
}

/// Runs a set to its end. `last`: no data is waited for. `None`: nothing was decided that ends anything.
pub async fn run<B: Bench>(bench: &mut B, rules: &RuleSet, mut last: bool) -> Option<B::Verdict> {
    if rules.is_empty() {
        return None;
    }
    let (mut from, mut given) = (Position(0), None);
    loop {
        match bench.run(rules, from, last, given.take()) {
            Run::Done => return None,
            Run::Decided(flow, number) => return bench.decide(flow, Some(number)).await,
            Run::Waits(need, at) => {
                from = at;
                match bench.fulfil(rules, at, need).await {
                    Ok(Given::Back(fulfilled)) => given = Some(fulfilled),
                    Ok(Given::Data { over }) => last = over,
                    Err(verdict) => return Some(verdict),
                }
            }
        }
    }
}
