//! What may be asked of an entry: a type of data and what is done with it, as one number that generic
//! functions take.

use ::stick::{Data, Row, Table, data};

/// What is done with the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Read it.
    Read,
    /// Count one more, the rate with it, and read it.
    Inc,
    /// Read it and set it to zero.
    Clear,
    /// Read bytes in units of 1024.
    Kilo,
    /// Read a rate that is stored in units of the table's factor.
    Blocks,
}

const OPS: [Op; 5] = [Op::Read, Op::Inc, Op::Clear, Op::Kilo, Op::Blocks];

/// A figure as a number.
pub(crate) const fn code(op: Op, data: Data) -> u16 {
    (op as u16) << 8 | data as u16
}

pub(crate) const fn op(code: u16) -> Op {
    OPS[(code >> 8) as usize]
}

pub(crate) const fn data(code: u16) -> Data {
    data::TYPES[(code & 0xff) as usize].data
}

/// Whether asking for it changes the entry.
pub(crate) const fn changes(code: u16) -> bool {
    matches!(op(code), Op::Inc | Op::Clear)
}

/// The rate that grows with a general purpose counter.
pub(crate) fn rate_of(counter: Data) -> Option<Data> {
    match counter {
        Data::Gpc0 => Some(Data::Gpc0Rate),
        Data::Gpc1 => Some(Data::Gpc1Rate),
        Data::Gpc => Some(Data::GpcRate),
        _ => None,
    }
}

/// Counts `n` more of a general purpose counter, with its rate: the counter's new value, else the rate's.
pub(crate) fn count(row: &mut Row<'_>, counter: Data, index: usize, n: u64) -> Option<u64> {
    let rate = rate_of(counter).and_then(|rate| row.add(rate, index, n));
    row.add(counter, index, n).or(rate)
}

/// Does it; none where the table does not store the data.
pub(crate) fn run(code: u16, table: &Table, row: &mut Row<'_>, index: usize) -> Option<u64> {
    let data = data(code);
    match op(code) {
        Op::Read => row.get(data, index),
        Op::Kilo => row.get(data, index).map(|bytes| bytes >> 10),
        Op::Blocks => row.get(data, index).map(|n| n * u64::from(table.settings().brates_factor)),
        Op::Inc => count(row, data, index, 1),
        Op::Clear => {
            let before = row.get(data, index)?;
            row.set(data, index, 0);
            Some(before)
        }
    }
}
