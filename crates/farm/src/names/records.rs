//! What is known of a name: addresses, or places of a service, each with the time when an answer named it
//! last. One that answers leave out is kept for `hold obsolete`, because an answer may not have room for all.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use program::naming::Naming;
use rt::Mono;
use wire::dns::{Answer, Service};

/// The most records that are kept of one name.
const MOST: usize = 4096;

/// A record and when it was seen last.
#[derive(Debug)]
pub(super) struct Held<T> {
    /// The record.
    pub what: T,
    seen: Mono,
}

/// A place of a service, with the address of its host if that came along.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Host, port and weight.
    pub service: Service,
    /// The host's address.
    pub ip: Option<IpAddr>,
}

/// All that is known of a name.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Its addresses.
    pub addresses: Vec<Held<IpAddr>>,
    /// The places of the service.
    pub places: Vec<Held<Place>>,
}

impl Records {
    /// Takes an answer in.
    pub fn update(&mut self, answer: Answer, now: Mono, obsolete: Duration) {
        merge(&mut self.addresses, answer.addresses, now, |ip| *ip);
        let mut hosts = HashMap::with_capacity(answer.hosts.len());
        for (host, ip) in answer.hosts {
            hosts.entry(host).or_insert(ip);
        }
        let places = answer.services.into_iter().map(|service| {
            let ip = hosts.get(&service.host).copied();
            Place { service, ip }
        });
        merge(&mut self.places, places, now, |place| (place.service.host.clone(), place.service.port));
        self.addresses.retain(|held| held.seen + obsolete >= now);
        self.places.retain(|held| held.seen + obsolete >= now);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Records::default();
    }

    /// The address for a server that is at `current`. `taken` are those of other servers of the same name.
    pub fn choose(
        &self,
        current: Option<IpAddr>,
        naming: &Naming,
        taken: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let free = || self.addresses.iter().map(|held| held.what).filter(|ip| !taken(*ip));
        let preferred = |ip: &IpAddr| naming.nets.iter().any(|net| contains(*net, *ip));
        let stays = |ip: &IpAddr| current == Some(*ip);
        // As HAProxy has it, the last one of the preferred networks.
        let near = free().filter(preferred).find(stays).or_else(|| free().filter(preferred).last());
        near.or_else(|| free().find(stays)).or_else(|| free().next())
    }
}

/// Takes records in, each once. A name server may tell of thousands, so they are not compared with each
/// other.
fn merge<T, K: Eq + Hash>(
    all: &mut Vec<Held<T>>,
    told: impl IntoIterator<Item = T>,
    now: Mono,
    key: impl Fn(&T) -> K,
) {
    let mut known: HashMap<K, usize> = all.iter().map(|held| key(&held.what)).zip(0..).collect();
    for what in told {
        let next = all.len();
        let at = *known.entry(key(&what)).or_insert(next);
        let held = Held { what, seen: now };
        match all.get_mut(at) {
            Some(place) => *place = held,
            None if next < MOST => all.push(held),
            None => {}
        }
    }
}

/// Whether an address is in a network.
fn contains((net, length): (IpAddr, u8), ip: IpAddr) -> bool {
    let length = u32::from(length);
    match (net, ip) {
        (IpAddr::V4(net), IpAddr::V4(ip)) => {
            let differ = u32::from(net) ^ u32::from(ip);
            differ.checked_shr(32 - length.min(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(net), IpAddr::V6(ip)) => {
            let differ = u128::from(net) ^ u128::from(ip);
            differ.checked_shr(128 - length.min(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono::from_nanos(ms * 1_000_000)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn answer(ips: &[&str]) -> Answer {
        Answer { addresses: ips.iter().map(|text| ip(text)).collect(), ..Answer::default() }
    }

    #[test]
    fn what_answers_leave_out_is_kept_for_a_while() {
        let mut records = Records::default();
        let hold = Duration::from_millis(100);
        let all = |r: &Records| r.addresses.iter().map(|held| held.what).collect::<Vec<_>>();
        records.update(answer(&["10.0.0.1", "10.0.0.2"]), at(0), hold);
        records.update(answer(&["10.0.0.3"]), at(100), hold);
        assert_eq!(all(&records), ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(ip));
        records.update(answer(&["10.0.0.2"]), at(150), hold);
        assert_eq!(all(&records), ["10.0.0.2", "10.0.0.3"].map(ip));
        records.update(answer(&["10.0.0.2"]), at(151), Duration::ZERO);
        assert_eq!(all(&records), ["10.0.0.2"].map(ip));
    }

    #[test]
    fn a_server_stays_where_it_is_unless_a_network_is_preferred() {
        let mut records = Records::default();
        records.update(answer(&["10.0.0.1", "127.0.0.5", "127.0.0.6"]), at(0), Duration::ZERO);
        let free = |_| false;
        let plain = Naming::default();
        let near = Naming { nets: vec![(ip("127.0.0.0"), 8)], ..Naming::default() };
        let far = Naming { nets: vec![(ip("192.0.2.0"), 24), (ip("::"), 0)], ..Naming::default() };
        assert_eq!(records.choose(None, &plain, free), Some(ip("10.0.0.1")));
        assert_eq!(records.choose(Some(ip("127.0.0.6")), &plain, free), Some(ip("127.0.0.6")));
        assert_eq!(records.choose(Some(ip("10.0.0.1")), &near, free), Some(ip("127.0.0.6")));
        assert_eq!(records.choose(Some(ip("127.0.0.5")), &near, free), Some(ip("127.0.0.5")));
        assert_eq!(records.choose(None, &far, free), Some(ip("10.0.0.1")));
        assert_eq!(records.choose(None, &plain, |other| other == ip("10.0.0.1")), Some(ip("127.0.0.5")));
        assert_eq!(records.choose(Some(ip("10.0.0.1")), &plain, |_| true), None);
    }
}
