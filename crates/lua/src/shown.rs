//! What a filter of a script is shown, and what it wishes.

use std::cell::Cell;

use lang::env::Side;

/// The data of one direction at a filter.
pub struct Flowing {
    /// The direction.
    pub side: Side,
    /// What came in and has not gone on.
    pub held: Vec<u8>,
    /// What goes on.
    pub out: Vec<u8>,
    /// How much there may be of both.
    pub most: usize,
    /// No more will come.
    pub over: bool,
    /// The message is over behind what is held, as the script is told.
    pub eom: bool,
    /// They are the body of a message of HTTP.
    pub http: bool,
    /// More may be waited for: an action looks at them.
    pub waits: bool,
    /// They are not what they were.
    pub changed: bool,
}

impl Flowing {
    /// Whether there is room for more.
    pub fn has_room(&self, more: usize) -> bool {
        self.held.len().saturating_add(self.out.len()).saturating_add(more) <= self.most
    }

    /// Whether more of them may come if it is waited for, up to so many from a place on.
    pub fn lacks(&self, wanted: usize) -> bool {
        self.waits && !self.over && self.has_room(1) && self.held.len() < wanted
    }

    /// Moves from what came in to what goes on.
    pub fn forward(&mut self, n: usize) -> usize {
        let n = n.min(self.held.len());
        self.out.extend(self.held.drain(..n));
        n
    }
}

/// How long the message is behind a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// As before it.
    #[default]
    Kept,
    /// Not known.
    Open,
    /// So many bytes.
    Known(u64),
}

/// What a filter wishes of each direction.
#[derive(Default)]
pub struct Wishes {
    wants: Cell<[bool; 2]>,
    length: Cell<[Length; 2]>,
}

/// The place of a direction.
pub fn index(side: Side) -> usize {
    usize::from(side == Side::Response)
}

/// What there is of a direction.
pub fn of<T: Copy>(both: [T; 2], side: Side) -> T {
    let [request, response] = both;
    if side == Side::Request { request } else { response }
}

fn put<T: Copy>(both: &Cell<[T; 2]>, side: Side, value: T) {
    let mut all = both.get();
    if let Some(place) = all.get_mut(index(side)) {
        *place = value;
    }
    both.set(all);
}

impl Wishes {
    /// Whether it is shown the data of a direction.
    pub fn wants(&self, side: Side) -> bool {
        of(self.wants.get(), side)
    }

    /// Whether it is shown any data.
    pub fn any(&self) -> bool {
        self.wants.get() != [false; 2]
    }

    /// Shows it the data of a direction, or not.
    pub fn listen(&self, side: Side, on: bool) {
        put(&self.wants, side, on);
    }

    /// How long the message of a direction is behind it.
    pub fn length(&self, side: Side) -> Length {
        of(self.length.get(), side)
    }

    /// Says how long it is.
    pub fn frame(&self, side: Side, length: Length) {
        put(&self.length, side, length);
    }
}
