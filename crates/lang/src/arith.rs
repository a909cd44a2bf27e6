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
    /// A constant.
    Const(i64),
    /// A variable.
    Var(VarRef),
}

/// One operation with its operand.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    op: Arith,
    by: Operand,
}

impl Sum {
    /// From a converter's checked arguments.
    pub fn new(op: Arith, args: &[Arg]) -> Sum {
        let by = match args.first() {
            Some(Arg::Int(n)) => Operand::Const(*n),
            Some(Arg::Var(v)) => Operand::Var(*v),
            _ => Operand::None,
        };
        Sum { op, by }
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
pub fn run(env: &Env<'_>, start: i64, chain: &[Sum]) -> Option<i64> {
    // One look at the variables for the whole chain: what is read most are integers of the transaction, and counting
    // readers in and out for each would take longer than the sum.
    let of_txn = env.txn.txn_vars.borrow();
    let mut x = start;
    for sum in chain {
        let y = match sum.by {
            Operand::Const(n) => n,
            Operand::Var(var) => match of_txn.get(var.slot) {
                Some(Owned::Int(n)) if var.scope == Scope::Txn => *n,
                _ => crate::variables::read(env, var).and_then(Value::int)?,
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
    use super::Arith;

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
