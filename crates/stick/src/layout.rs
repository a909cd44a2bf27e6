//! Which data a table stores, and where in a row each of them stands.

use crate::data::{self, Data, Shape};
use crate::freq;

/// One stored type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The type.
    pub data: Data,
    /// Elements: 1 but for arrays.
    pub count: usize,
    /// Period of rates, ms.
    pub period: u32,
    at: usize,
}

/// The row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<Column>,
    by_type: [u8; data::COUNT],
    bytes: usize,
}

const NONE: u8 = u8::MAX;

impl Default for Layout {
    fn default() -> Layout {
        Layout { columns: Vec::new(), by_type: [NONE; data::COUNT], bytes: 0 }
    }
}

/// Bytes that one element takes in the row.
fn width(data: Data) -> usize {
    match data.shape() {
        Shape::Count => 4,
        Shape::Long => 8,
        Shape::Rate => freq::BYTES,
        Shape::Text => 0,
    }
}

impl Layout {
    /// Adds a type; whether it was not there before.
    pub fn store(&mut self, data: Data, count: usize, period: u32) -> bool {
        if self.has(data) {
            return false;
        }
        let at = self.bytes;
        self.bytes += width(data) * count;
        self.columns.push(Column { data, count, period, at });
        self.columns.sort_by_key(|c| c.data as u8);
        for (i, column) in (0u8..).zip(&self.columns) {
            self.by_type[column.data as usize] = i;
        }
        true
    }

    /// Whether this very type is stored.
    pub fn has(&self, data: Data) -> bool {
        self.by_type[data as usize] != NONE
    }

    /// The column of this very type.
    pub fn column(&self, data: Data) -> Option<&Column> {
        self.columns.get(usize::from(self.by_type[data as usize]))
    }

    /// All columns in the order in which they are shown.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Bytes of a row.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether entries keep texts beside their rows.
    pub(crate) fn has_texts(&self) -> bool {
        self.columns.iter().any(|c| c.data.shape() == Shape::Text)
    }

    /// Where an element stands: its column, and the bytes it takes. What is stored as element of an array is
    /// found there.
    pub(crate) fn find(&self, data: Data, index: usize) -> Option<(&Column, std::ops::Range<usize>)> {
        let (column, index) = match self.column(data) {
            Some(column) => (column, index),
            None => {
                let (array, index) = data.in_array()?;
                (self.column(array)?, index)
            }
        };
        if index >= column.count {
            return None;
        }
        let width = width(column.data);
        let at = column.at + index * width;
        Some((column, at..at + width))
    }
}
