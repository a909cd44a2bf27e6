//! Runs of rules that compare one sample with exact strings, decided by one look-up.
//!
//! `use_backend b1 if { hdr(host) -i a }`, a thousand times, is a table in disguise. Where at least [`WORTH`]
//! rules in a row can only apply if one and the same expression has one of a few constant values, the values
//! of that expression are taken once and looked up; the rules that remain are candidates, tried in order as
//! if there were no table. So the table need not know all of a condition: it only has to be right about which
//! rules can't apply.
//!
//! A rule that ran may have changed the sample (`set-header host x`): the look-up is then repeated. A pattern
//! that is added at run time makes the table stale; it is not used any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pattern::Kind;

use crate::cond::{Acl, Condition, Term, Test};
use crate::env::Env;
use crate::expr::Expr;
use crate::sample::{Miss, Type, Value};

/// Fewer rules than this are as quick one by one.
const WORTH: usize = 3;
/// Values of one sample that are looked up; a message with more of them is compared rule by rule.
const MOST_VALUES: usize = 8;
/// Values up to this length are looked up.
const LONGEST: usize = 256;

/// The tables of a list of rules.
#[derive(Default)]
pub struct Dispatch {
    runs: Box<[Run]>,
    stale: Arc<AtomicBool>,
}

/// Rules `start..end`, all of which need one of their own values of one expression.
struct Run {
    start: usize,
    end: usize,
    sample: Source,
    /// By value in small letters: the rules that it may make apply, in order.
    rules: HashMap<Box<[u8]>, Box<[u32]>>,
}

/// Where the expression is kept: in a test of an ACL that one of the rules holds.
struct Source {
    acl: Arc<Acl>,
    test: usize,
}

/// What one evaluation of the rules knows about the run it is in.
#[derive(Default)]
pub struct Cursor<'d> {
    run: usize,
    state: State<'d>,
}

#[derive(Default)]
enum State<'d> {
    /// Nothing looked up yet.
    #[default]
    Unknown,
    /// No table helps here.
    Every,
    /// Only rules of these lists.
    Only([&'d [u32]; MOST_VALUES]),
}

impl Dispatch {
    /// Builds the tables for rules with these conditions.
    pub fn new<'c>(conditions: impl Iterator<Item = Option<&'c Condition>>) -> Dispatch {
        let stale = Arc::new(AtomicBool::new(false));
        let keys: Vec<Option<Key<'c>>> = conditions.map(|c| c.and_then(Key::of)).collect();
        let mut runs = Vec::new();
        let mut start = 0;
        while start < keys.len() {
            let Some(first) = keys.get(start).and_then(Option::as_ref) else {
                start += 1;
                continue;
            };
            let same = |k: &&Option<Key<'_>>| k.as_ref().is_some_and(|k| first.same_sample(k));
            let end = start + keys[start..].iter().take_while(same).count();
            if end - start >= WORTH {
                runs.push(Run::new(start, &keys[start..end], &stale));
            }
            start = end;
        }
        Dispatch { runs: runs.into(), stale }
    }

    /// The first rule from `at` on that may apply.
    #[inline]
    pub fn next<'d>(&'d self, at: usize, cursor: &mut Cursor<'d>, env: &Env<'_>) -> usize {
        if self.runs.is_empty() { at } else { self.look(at, cursor, env) }
    }

    fn look<'d>(&'d self, mut at: usize, cursor: &mut Cursor<'d>, env: &Env<'_>) -> usize {
        while let Some(run) = self.runs.get(cursor.run) {
            if at >= run.end {
                *cursor = Cursor { run: cursor.run + 1, state: State::Unknown };
                continue;
            }
            if at < run.start || self.stale.load(Relaxed) {
                return at;
            }
            if matches!(cursor.state, State::Unknown) {
                cursor.state = run.look_up(env);
            }
            match &cursor.state {
                State::Only(lists) => {
                    let next = lists.iter().filter_map(|l| first_from(l, at)).min();
                    match next {
                        Some(rule) => return rule,
                        None => at = run.end,
                    }
                }
                _ => return at,
            }
        }
        at
    }
}

impl Cursor<'_> {
    /// A rule ran: the sample may be another now.
    pub fn forget(&mut self) {
        self.state = State::Unknown;
    }
}

fn first_from(list: &[u32], at: usize) -> Option<usize> {
    let i = list.partition_point(|r| (*r as usize) < at);
    list.get(i).map(|r| *r as usize)
}

impl Run {
    fn new(start: usize, keys: &[Option<Key<'_>>], stale: &Arc<AtomicBool>) -> Run {
        let mut rules: HashMap<Box<[u8]>, Vec<u32>> = HashMap::default();
        let mut sample = None;
        for (i, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let number = u32::try_from(start + i).unwrap_or(u32::MAX);
            sample.get_or_insert_with(|| Source { acl: key.acl.clone(), test: 0 });
            for test in &key.tests {
                for view in &test.patterns {
                    view.set().watch(stale.clone());
                    let mut listing = view.set().entries(None);
                    while let Some(entry) = listing.advance() {
                        let list = rules.entry(entry.pattern.to_ascii_lowercase().into()).or_default();
                        if list.last() != Some(&number) {
                            list.push(number);
                        }
                    }
                }
            }
        }
        let sample = sample.unwrap_or_else(|| Source {
            acl: Arc::new(Acl { name: "".into(), tests: Box::new([]) }),
            test: 0,
        });
        let rules = rules.into_iter().map(|(k, v)| (k, v.into())).collect();
        Run { start, end: start + keys.len(), sample, rules }
    }

    /// Takes the values of the sample and the rules for each of them.
    fn look_up<'d>(&'d self, env: &Env<'_>) -> State<'d> {
        let Some(test) = self.sample.acl.tests.get(self.sample.test) else { return State::Every };
        let mut lists: [&[u32]; MOST_VALUES] = [&[]; MOST_VALUES];
        let (mut count, mut fits) = (0, true);
        let end = test.expr.any(env, |value| {
            let Value::Str(text) = value else {
                fits = false;
                return true;
            };
            let mut folded = [0; LONGEST];
            let (Some(folded), Some(list)) = (folded.get_mut(..text.len()), lists.get_mut(count)) else {
                fits = false;
                return true;
            };
            folded.copy_from_slice(text);
            folded.make_ascii_lowercase();
            if let Some(rules) = self.rules.get(&*folded) {
                *list = rules;
                count += 1;
            }
            false
        });
        match end {
            _ if !fits => State::Every,
            Err(Miss::Later) => State::Every,
            _ => State::Only(lists),
        }
    }
}

/// What a condition needs of one sample: every alternative has a factor that compares it with constants.
struct Key<'c> {
    acl: &'c Arc<Acl>,
    tests: Vec<&'c Test>,
}

impl<'c> Key<'c> {
    fn of(condition: &'c Condition) -> Option<Key<'c>> {
        if condition.unless {
            return None;
        }
        let (first, rest) = condition.any.split_first()?;
        // Any factor of the first alternative may be the one that the others share.
        factors(first).find_map(|acl| {
            let mut key = Key { acl, tests: acl.tests.iter().collect() };
            for alternative in rest {
                let like = factors(alternative).find(|a| same(&acl.tests[0].expr, &a.tests[0].expr))?;
                key.tests.extend(like.tests.iter());
            }
            Some(key)
        })
    }

    fn same_sample(&self, other: &Key<'_>) -> bool {
        same(&self.acl.tests[0].expr, &other.acl.tests[0].expr)
    }
}

/// The factors that compare with constants, up to the first that has effects of its own and can't be left
/// out.
fn factors(terms: &[Term]) -> impl Iterator<Item = &Arc<Acl>> {
    let quiet = |t: &&Term| t.acl.tests.iter().all(|t| !t.expr.is_volatile());
    terms.iter().take_while(quiet).filter(|t| !t.negated && is_exact(&t.acl)).map(|t| &t.acl)
}

fn is_exact(acl: &Acl) -> bool {
    let Some(first) = acl.tests.first() else { return false };
    acl.tests.iter().all(|t| {
        t.kind == Kind::Str
            && t.expr.out() == Type::Str
            && same(&t.expr, &first.expr)
            && t.patterns.iter().all(|p| p.set().name().is_empty())
    })
}

fn same(a: &Expr, b: &Expr) -> bool {
    std::ptr::eq(a.fetch.def, b.fetch.def) && a.text == b.text
}

#[cfg(test)]
mod tests {
    use base::rand::Rng;

    use super::{Cursor, Dispatch};
    use crate::cond::{Condition, Outcome};
    use crate::registry::Sets;
    use crate::rules::{Position, Rule, RuleSet, Run};
    use crate::testing::Stage;

    /// The rules that apply when each is asked, and how many were asked.
    fn applying(stage: &Stage, rules: &[Condition], dispatch: &Dispatch) -> (Vec<usize>, usize) {
        stage.with_env(|env| {
            let (mut cursor, mut at, mut out, mut asked) = (Cursor::default(), 0, Vec::new(), 0);
            loop {
                at = dispatch.next(at, &mut cursor, env);
                let Some(rule) = rules.get(at) else { return (out, asked) };
                asked += 1;
                if rule.holds(env) == Outcome::Yes {
                    out.push(at);
                }
                at += 1;
            }
        })
    }

    fn table(rules: &[Condition]) -> Dispatch {
        Dispatch::new(rules.iter().map(Some))
    }

    #[test]
    fn of_a_thousand_rules_only_the_ones_for_the_value_are_asked() {
        let mut stage = Stage::new();
        let rules: Vec<_> =
            (0..1000).map(|i| stage.condition(&format!("if {{ hdr(x-n) -i n{} }}", i % 500))).collect();
        stage.txn.req.set(b"x-n", b"N7").unwrap();
        assert_eq!(applying(&stage, &rules, &table(&rules)), (vec![7, 507], 2));
    }

    #[test]
    fn whatever_the_rules_are_the_same_ones_apply_with_a_table() {
        let parts = [
            "{ hdr(x-list) a }",
            "{ hdr(x-list) -i B z }",
            "{ hdr(x-list) B }",
            "{ hdr(x-list) c } { path_beg /a }",
            "{ path_beg /q } { hdr(x-list) c }",
            "{ hdr(x-list) q } or { hdr(x-list) -i C }",
            "{ hdr(x-list) q } or { path /a/b }",
            "!{ hdr(x-list) a }",
            "{ hdr(x-none) a }",
            "{ hdr(x-n) 42 }",
            "TRUE",
        ];
        let mut rng = Rng::new(7);
        for _ in 0..300 {
            let mut stage = Stage::new();
            let rules: Vec<_> = (0..12)
                .map(|_| {
                    let word = if rng.below(8) == 0 { "unless" } else { "if" };
                    // Mostly of one kind, so that there are runs.
                    let kind = if rng.below(4) == 0 { parts.len() as u64 } else { 6 };
                    let part = parts[rng.below(kind) as usize];
                    stage.condition(&format!("{word} {part}"))
                })
                .collect();
            let plain = applying(&stage, &rules, &Dispatch::default()).0;
            assert_eq!(applying(&stage, &rules, &table(&rules)).0, plain);
        }
    }

    #[test]
    fn a_pattern_added_later_counts() {
        let mut stage = Stage::new();
        let rules: Vec<_> = (0..4).map(|i| stage.condition(&format!("if {{ hdr(x-n) n{i} }}"))).collect();
        let dispatch = table(&rules);
        assert_eq!(applying(&stage, &rules, &dispatch).0, []);
        rules[2].any[0][0].acl.tests[0].patterns[0].set().add(None, b"42", None).unwrap();
        assert_eq!(applying(&stage, &rules, &dispatch).0, [2]);
    }

    #[test]
    fn a_rule_that_changes_the_sample_changes_which_rules_follow() {
        let mut stage = Stage::new();
        let rules: Vec<Rule> = (0..5)
            .map(|i| {
                let text = format!("set-header x-n {} if {{ req.hdr(x-n) {} }}", 41 - i, 42 - i);
                stage.rule(Sets::HTTP_REQ, &text.split(' ').collect::<Vec<_>>()).unwrap()
            })
            .collect();
        let run = stage.run_all(&RuleSet::new(rules), Position(0));
        assert!(matches!(run, Run::Done));
        assert_eq!(stage.value("req.hdr(x-n)"), stage.value("str(37)"));
    }
}
