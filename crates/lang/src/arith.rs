//! Integer arithmetic (section 7.3.1), the converters that come in chains.
//!
//! `int(1),add(txn.a),add(txn.b)` is one step of an expression: a list of operations on one number that never
//! leaves its register, instead of a call, a cast and a boxed argument list for each of them.

use model::vars::{Owned, Scope, VarRef};

use crate::arg::Arg;
use crate::env::Env;
use crate::sample::Value;

/// An operation. Sums and products saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arith {
    /// `add`.
    Add,
    /// `and`: bitwise.
    And,
    /// `cpl`: bitwise complement; takes no operand.
    Complement,
    /// `div`; by zero gives the greatest integer.
    Divide,
    /// `mod`; by zero gives zero.
    Modulo,
    /// `mul`.
    Multiply,
    /// `neg`; takes no operand.
    Negate,
    /// `or`: bitwise.
    Or,
    /// `sub`.
    Subtract,
    /// `xor`: bitwise.
    Xor,
}

/// What the number is combined with.
#[derive(Clone, Copy, Debug)]
enum Operand {
    /// Nothing; one that is needed and not there leaves no sample.
    None,
    /// A constant of the chain.
    Const,
    /// A variable of this scope.
    Var(Scope),
}

/// One operation: four bytes, since chains of a thousand rules are read for each request and should stay in
/// the cache.
#[derive(Clone, Copy, Debug)]
struct Sum {
    op: Arith,
    by: Operand,
    /// The index of the constant, or the slot of the variable.
    at: u16,
}

/// Operations on one number.
#[derive(Debug, Default)]
pub struct Chain {
    sums: Vec<Sum>,
    constants: Vec<i64>,
}

impl Chain {
    /// Appends an operation with the checked arguments of its converter; false if the chain has no room for
    /// it.
    pub fn push(&mut self, op: Arith, args: &[Arg]) -> bool {
        let (by, at) = match args.first() {
            Some(Arg::Int(n)) => {
                let Ok(at) = u16::try_from(self.constants.len()) else { return false };
                self.constants.push(*n);
                (Operand::Const, at)
            }
            Some(Arg::Var(v)) => (Operand::Var(v.scope), v.slot),
            _ => (Operand::None, 0),
        };
        self.sums.push(Sum { op, by, at });
        true
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Nothing will be appended: room for more is given back.
    pub fn closed(mut self) -> Chain {
        self.sums.shrink_to_fit();
        self.constants.shrink_to_fit();
        self
    }
}

impl Arith {
    fn apply(self, x: i64, y: i64) -> i64 {
        match self {
            Arith::Add => x.saturating_add(y),
            Arith::And => x & y,
            Arith::Complement => !x,
            Arith::Divide => match y {
                0 => i64::MAX,
                -1 => x.saturating_neg(),
                _ => x / y,
            },
            Arith::Modulo => x.checked_rem(y).unwrap_or(0),
            Arith::Multiply => x.saturating_mul(y),
            Arith::Negate => x.saturating_neg(),
            Arith::Or => x | y,
            Arith::Subtract => x.saturating_sub(y),
            Arith::Xor => x ^ y,
        }
    }

    fn takes_operand(self) -> bool {
        !matches!(self, Arith::Complement | Arith::Negate)
    }
}

/// Runs a chain; nothing if a variable does not exist or holds no number.
pub fn run(env: &Env<'_>, start: i64, chain: &Chain) -> Option<i64> {
    // One look at the variables for the whole chain: what is read most are integers of the transaction, and
    // counting readers in and out for each would take longer than the sum.
    let of_txn = env.txn.txn_vars.borrow();
    let mut x = start;
    for sum in &chain.sums {
        let y = match sum.by {
            Operand::Const => *chain.constants.get(usize::from(sum.at))?,
            Operand::Var(scope) => match of_txn.get(sum.at) {
                Some(Owned::Int(n)) if scope == Scope::Txn => *n,
                _ => crate::variables::read(env, VarRef { scope, slot: sum.at }).and_then(Value::int)?,
            },
            Operand::None if sum.op.takes_operand() => return None,
            Operand::None => 0,
        };
        x = sum.op.apply(x, y);
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::{Arith, Sum};

    #[test]
    fn an_operation_is_four_bytes() {
        assert_eq!(size_of::<Sum>(), 4);
    }

    #[test]
    fn results_saturate_and_division_by_zero_has_one() {
        assert_eq!(Arith::Add.apply(i64::MAX, 1), i64::MAX);
        assert_eq!(Arith::Subtract.apply(i64::MIN, 1), i64::MIN);
        assert_eq!(Arith::Multiply.apply(i64::MAX, -2), i64::MIN);
        assert_eq!(Arith::Divide.apply(7, 0), i64::MAX);
        assert_eq!(Arith::Divide.apply(i64::MIN, -1), i64::MAX);
        assert_eq!(Arith::Modulo.apply(7, 0), 0);
        assert_eq!(Arith::Modulo.apply(i64::MIN, -1), 0);
        assert_eq!(Arith::Negate.apply(i64::MIN, 0), i64::MAX);
    }
}
