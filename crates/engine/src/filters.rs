//! The filters at work on a stream, in their order for each direction.

use lang::action::{Exec, Flow, Need};
use lang::env::Side;
use lang::filter::{Data, Filter, Moment, Moments};

/// Filters of a stream.
#[derive(Default)]
pub struct Filters {
    list: Vec<Attached>,
    /// Indices of those that take part in each direction, in order.
    by_side: [Vec<usize>; 2],
    /// The moments at which any of them wants to be asked.
    moments: Moments,
}

/// A filter and where it stands.
struct Attached {
    /// Its place in each direction.
    order: [Option<u32>; 2],
    /// It is the backend's.
    back: bool,
    /// When it wants to be asked.
    moments: Moments,
    filter: Box<dyn Filter>,
}

/// Whose filters are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The frontend's.
    Front,
    /// Those of the backend, where that is another proxy.
    Back,
    /// All.
    All,
}

/// How asking filters ended.
pub enum Met {
    /// All were asked.
    Done,
    /// The one at this place waits for something.
    Waits(Need, usize),
    /// One ends the stream.
    Ends(Flow),
}

fn index(side: Side) -> usize {
    usize::from(side == Side::Response)
}

impl Filters {
    /// Puts one to the others.
    pub fn attach(&mut self, order: [Option<u32>; 2], back: bool, filter: Box<dyn Filter>) {
        let at = self.list.len();
        let moments = filter.moments();
        self.moments = self.moments.and(moments);
        self.list.push(Attached { order, back, moments, filter });
        for (side, by) in self.by_side.iter_mut().enumerate() {
            if order.get(side).copied().flatten().is_some() {
                by.push(at);
                by.sort_by_key(|i| self.list.get(*i).and_then(|a| a.order.get(side).copied().flatten()));
            }
        }
    }

    /// Whether any of them wants to be asked at a moment.
    pub fn want(&self, moment: Moment) -> bool {
        self.moments.has(moment)
    }

    /// Asks them at a moment, from the one at place `from` on.
    pub fn meet(&mut self, moment: Moment, whose: Whose, from: usize, exec: &mut Exec<'_>) -> Met {
        let Some(by) = self.by_side.get(index(moment.side())) else { return Met::Done };
        for (place, at) in by.iter().enumerate().skip(from) {
            let Some(attached) = self.list.get_mut(*at) else { continue };
            if !attached.moments.has(moment) {
                continue;
            }
            if whose == Whose::Front && attached.back || whose == Whose::Back && !attached.back {
                continue;
            }
            match attached.filter.meet(moment, exec) {
                Flow::Next => {}
                Flow::Yield(need) => return Met::Waits(need, place),
                flow => return Met::Ends(flow),
            }
            exec.resumed = None;
        }
        Met::Done
    }

    /// What the data of a direction shall pass through, with the places of the filters.
    pub fn data(&mut self, side: Side) -> impl Iterator<Item = (u32, Data)> {
        let at = index(side);
        self.list.iter_mut().filter_map(move |a| Some((a.order.get(at).copied()??, a.filter.data(side)?)))
    }

    /// The stream is over.
    pub fn over(&mut self, exec: &mut Exec<'_>) {
        self.list.iter_mut().for_each(|attached| attached.filter.over(exec));
    }
}
