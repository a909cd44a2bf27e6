//! Conditions of `.if`, `.elif` and `-cc` (manual, section 2.4).
//!
//! A condition is parsed to its end even when its value is known earlier, so that a slip in a branch that is
//! never taken is found today and not on the machine where it is taken. Only predicates whose value decides
//! are evaluated. Nesting is bounded, chains are loops.

use crate::environment::Environment;
use crate::facts::Facts;
use crate::predicates::{self, Predicate};

/// How deep parentheses may nest.
const DEEPEST: usize = 64;

/// Why a condition can't be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// What is wrong, in HAProxy's words.
    pub text: String,
    /// The byte of the condition to point at, starting at zero.
    pub at: usize,
}

/// The value of a condition. An empty one is false.
pub fn evaluate(text: &str, environment: &Environment, facts: &dyn Facts) -> Result<bool, ConditionError> {
    let mut parser = Parser { text, at: 0, environment, facts };
    parser.skip_spaces();
    if parser.is_at_end() {
        return Ok(false);
    }
    let value = parser.any(true, 0)?;
    parser.skip_spaces();
    match parser.rest().chars().next() {
        None => Ok(value),
        Some(c) => {
            parser.fail(format!("unexpected character '{c}' at the end of conditional expression '{text}'"))
        }
    }
}

struct Parser<'p> {
    text: &'p str,
    at: usize,
    environment: &'p Environment,
    facts: &'p dyn Facts,
}

type Value = Result<bool, ConditionError>;

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    fn fail<T>(&self, text: String) -> Result<T, ConditionError> {
        Err(ConditionError { text, at: self.at })
    }

    fn unparsable<T>(&mut self, from: usize, at: usize) -> Result<T, ConditionError> {
        self.at = at;
        let rest = self.text.get(from..).unwrap_or_default();
        self.fail(format!("unparsable conditional expression '{rest}'"))
    }

    /// `a || b || c`; `live` says whether the value matters.
    fn any(&mut self, live: bool, depth: usize) -> Value {
        let start = self.at;
        let mut value = self.all(live, depth)?;
        loop {
            self.skip_spaces();
            let operator = self.at;
            if !self.eat("||") {
                return Ok(value);
            }
            self.skip_spaces();
            if self.is_at_end() {
                return self.unparsable(start, operator);
            }
            value |= self.all(live && !value, depth)?;
        }
    }

    /// `a && b && c`
    fn all(&mut self, live: bool, depth: usize) -> Value {
        let mut value = self.one(live, depth)?;
        loop {
            self.skip_spaces();
            let operator = self.at;
            if !self.eat("&&") {
                return Ok(value);
            }
            self.skip_spaces();
            if self.is_at_end() {
                return self.unparsable(operator, operator);
            }
            value &= self.one(live && value, depth)?;
        }
    }

    fn one(&mut self, live: bool, depth: usize) -> Value {
        self.skip_spaces();
        let start = self.at;
        let mut negated = false;
        while self.eat("!") {
            negated = !negated;
            self.skip_spaces();
        }
        if self.is_at_end() {
            return self.unparsable(start, start);
        }
        let value = self.positive(live, depth)?;
        Ok(value != negated)
    }

    fn positive(&mut self, live: bool, depth: usize) -> Value {
        let start = self.at;
        if self.eat("(") {
            return self.parenthesis(start, live, depth);
        }
        if let Some((length, value)) = number(self.rest()) {
            self.at += length;
            return Ok(value);
        }
        match predicates::find(self.rest()) {
            Some(predicate) => self.predicate(predicate, live),
            None => self.unparsable(start, start),
        }
    }

    fn parenthesis(&mut self, start: usize, live: bool, depth: usize) -> Value {
        if depth >= DEEPEST {
            return self.fail(format!("more than {DEEPEST} nested parentheses in conditional expression"));
        }
        let value = self.any(live, depth + 1)?;
        self.skip_spaces();
        if self.eat(")") {
            return Ok(value);
        }
        self.at = start;
        let rest = self.rest();
        self.fail(format!("expected ')' after conditional expression '{rest}'"))
    }

    fn predicate(&mut self, predicate: &Predicate, live: bool) -> Value {
        self.at += predicate.name.len();
        let mut args = Vec::new();
        if self.eat("(") {
            args = self.arguments(predicate)?;
        }
        let missing = predicate.args > 1 && args.len() < predicate.args;
        if missing {
            self.at = self.at.saturating_sub(1);
            let (got, want) = (args.len(), predicate.args);
            return self
                .misuse(predicate, &format!("missing arguments (got {got}/{want}), type 'string' expected"));
        }
        if !live {
            return Ok(false);
        }
        match (predicate.test)(&args, self.environment, self.facts) {
            Some(value) => Ok(value),
            None => {
                let (name, arg) = (predicate.name, args.first().map_or("", String::as_str));
                self.fail(format!("invalid argument to conditional expression predicate '{name}': '{arg}'"))
            }
        }
    }

    /// The arguments up to and with the closing parenthesis.
    fn arguments(&mut self, predicate: &Predicate) -> Result<Vec<String>, ConditionError> {
        let mut args = Vec::new();
        while args.len() < predicate.args {
            let (arg, length) = argument(self.rest());
            self.at += length;
            args.push(arg);
            if args.len() == predicate.args || !self.eat(",") {
                break;
            }
        }
        if self.eat(")") {
            return Ok(args);
        }
        let rest = self.rest();
        let before = if rest.is_empty() { String::new() } else { format!(" before '{rest}'") };
        self.misuse(predicate, &format!("expected ')'{before}"))
    }

    fn misuse<T>(&self, predicate: &Predicate, what: &str) -> Result<T, ConditionError> {
        let (number, name) = (predicate.args.min(1), predicate.name);
        self.fail(format!("{what} in argument {number} of predicate '{name}' used in conditional expression"))
    }
}

/// A leading integer as C would read it: its length and whether it isn't zero.
fn number(text: &str) -> Option<(usize, bool)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let hex = unsigned.strip_prefix("0x").filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let digits = hex.unwrap_or(unsigned);
    let is_digit = |b: &u8| if hex.is_some() { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
    let length = digits.bytes().take_while(|b| is_digit(b)).count();
    let value = digits.bytes().take(length).any(|b| b != b'0');
    (length > 0).then_some((text.len() - digits.len() + length, value))
}

/// One argument with its quotes and escapes resolved, and how many bytes it took. An unclosed quote takes
/// everything.
fn argument(text: &str) -> (String, usize) {
    let mut value = String::new();
    let mut quote = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            (',' | ')', None) => return (value, at),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => match chars.peek().and_then(|(_, next)| escaped(*next)) {
                Some(byte) => {
                    value.push(byte);
                    chars.next();
                }
                None => value.push('\\'),
            },
            (c, _) => value.push(c),
        }
    }
    (value, text.len())
}

/// What a character stands for behind a backslash.
fn escaped(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '\\' | '"' | '\'' | ' ' => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
