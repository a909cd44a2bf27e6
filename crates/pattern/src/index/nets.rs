//! Addresses and networks.
//!
//! The longest prefix of the value's own family wins, then the longest of the other family, then the first
//! network whose mask has holes (found out on the oracle; the manual doesn't say).

use std::net::IpAddr;

use super::bounds::{Bounds, Span};
use super::scan::read_net;
use super::{Found, Query, Reading};
use crate::dead::Dead;
use crate::entries::Entries;
use crate::error::PatternError;
use crate::net::{self, Net, OTHER, OWN};

/// Networks by family.
#[derive(Debug)]
pub(crate) struct Nets {
    v4: Bounds<u32>,
    v6: Bounds<u128>,
    /// Address, mask and entry of those whose mask has holes.
    holes: Vec<(u32, u32, u32)>,
}

impl Nets {
    pub(crate) fn build(entries: &Entries, reading: Reading<'_>) -> Result<Nets, (u32, PatternError)> {
        let (mut v4, mut v6, mut holes) = (Vec::new(), Vec::new(), Vec::new());
        // Addresses without text are found among the entries themselves.
        for entry in entries.host_count()..entries.len() {
            let pattern = entries.text(entry).unwrap_or_default();
            match read_net(pattern, reading.names).map_err(|e| (entry, e))? {
                Net::V4(first, mask) if net::is_prefix(mask) => {
                    v4.push(Span { first, last: first | !mask, bits: mask.count_ones() as u8, entry });
                }
                Net::V4(address, mask) => holes.push((address, mask, entry)),
                Net::V6(first, bits) => {
                    v6.push(Span { first, last: first | !net::mask6(bits), bits, entry });
                }
            }
        }
        let v4 = Bounds::build(v4, |n: u32| n.checked_add(1));
        let v6 = Bounds::build(v6, |n: u128| n.checked_add(1));
        Ok(Nets { v4, v6, holes })
    }

    pub(crate) fn find(&self, query: Query<'_>) -> Option<Found> {
        let addr = query.value.as_addr()?;
        let (found, v4) = match addr {
            IpAddr::V4(a) => {
                let a = u32::from(a);
                let own = self.find_v4(query, a, OWN);
                (own.or_else(|| self.find_v6(query.dead, net::mapped(a), OTHER)), Some(a))
            }
            IpAddr::V6(a) => {
                let v4 = net::embedded_v4(a);
                let own = self.find_v6(query.dead, u128::from(a), OWN);
                (own.or_else(|| self.find_v4(query, v4?, OTHER)), v4)
            }
        };
        found.or_else(|| {
            let hole = |(net, mask, entry): &&(u32, u32, u32)| {
                v4.is_some_and(|a| a & mask == *net) && query.dead.spares(*entry)
            };
            self.holes.iter().find(hole).map(|h| Found { entry: h.2, weight: 0 })
        })
    }

    fn find_v4(&self, query: Query<'_>, a: u32, family: u32) -> Option<Found> {
        let host = query.entries.hosts().and_then(|h| h.find(a).find(|n| query.dead.spares(*n)));
        if let Some(entry) = host {
            return Some(Found { entry, weight: family + 32 });
        }
        let (entry, bits) = self.v4.find(a, query.dead)?;
        Some(Found { entry, weight: family + u32::from(bits) })
    }

    fn find_v6(&self, dead: &Dead, a: u128, family: u32) -> Option<Found> {
        let (entry, bits) = self.v6.find(a, dead)?;
        Some(Found { entry, weight: family + u32::from(bits) })
    }

    pub(crate) fn written(&self, entries: &Entries, text: &[u8], each: &mut dyn FnMut(u32)) {
        match net::parse(text, false) {
            Some(Net::V4(a, mask)) if net::is_prefix(mask) => {
                entries.hosts().into_iter().flat_map(|h| h.find(a)).for_each(&mut *each);
                self.v4.all(a).for_each(each);
            }
            Some(Net::V4(..)) => self.holes.iter().for_each(|h| each(h.2)),
            Some(Net::V6(a, _)) => self.v6.all(a).for_each(each),
            None => {}
        }
    }
}
