//! How many requests a server may take now.
//!
//! Pure arithmetic over what the configuration says and how busy the backend is (configuration manual, server
//! keywords `maxconn`, `minconn`, `maxqueue`, `slowstart`, and `fullconn`).

/// The limits of one server as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limits {
    /// `maxconn`: the most requests at once; 0 for no limit.
    pub maxconn: u32,
    /// `minconn`: the limit of an idle backend; 0 for the same as `maxconn`.
    pub minconn: u32,
    /// `maxqueue`: the most requests in the server's queue; 0 for no limit.
    pub maxqueue: u32,
}

impl Limits {
    /// The most requests that the server may serve while its backend has `backend_load` requests, of which
    /// `fullconn` bring all servers to their `maxconn`. `ramp` is how long ago the server came back and how
    /// long `slowstart` takes, in the same unit; none when it is over. 0 means no limit.
    pub fn now(&self, backend_load: u32, fullconn: u32, ramp: Option<(u64, u64)>) -> u32 {
        let limit = self.on_ramp(backend_load, fullconn);
        match ramp {
            Some((elapsed, whole)) if limit > 0 && elapsed < whole => {
                (u64::from(limit) * elapsed / whole).max(1) as u32
            }
            _ => limit,
        }
    }

    fn on_ramp(&self, backend_load: u32, fullconn: u32) -> u32 {
        if self.minconn == 0 || self.minconn >= self.maxconn || backend_load >= fullconn {
            return self.maxconn;
        }
        let part = u64::from(self.maxconn) * u64::from(backend_load) / u64::from(fullconn);
        (part as u32).max(self.minconn)
    }

    /// Whether the server, whose limit is `limit` now, may be chosen for one request more without waiting.
    pub fn has_room(&self, limit: u32, served: u32) -> bool {
        limit == 0 || served < limit
    }

    /// Whether leastconn may choose the server: it also fills queues that `maxqueue` bounds, and so smooths
    /// the load of servers with small limits.
    pub fn has_room_or_queue(&self, limit: u32, served: u32, queued: u32) -> bool {
        let taken = u64::from(served) + u64::from(queued);
        limit == 0 || taken < u64::from(limit) + u64::from(self.maxqueue)
    }

    /// Whether the server's queue, of this length, takes one request more.
    pub fn queue_has_room(&self, queued: usize) -> bool {
        self.maxqueue == 0 || queued < self.maxqueue as usize
    }
}

/// What hashing does about a server that can't serve at once (configuration manual,
/// `hash-preserve-affinity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Affinity {
    /// The key stays with its server, which queues it.
    #[default]
    Always,
    /// A server at its `maxconn` is passed over; when all are, [`crate::Balancer::last_resort`] queues it.
    MaxConn,
    /// A server whose queue is at its `maxqueue` is passed over.
    MaxQueue,
}

impl Affinity {
    /// The kind with this name in a configuration, if there is one.
    pub fn by_name(name: &str) -> Option<Affinity> {
        match name {
            "always" => Some(Affinity::Always),
            "maxconn" => Some(Affinity::MaxConn),
            "maxqueue" => Some(Affinity::MaxQueue),
            _ => None,
        }
    }

    /// Whether a server is passed over that serves `served` requests of `limit` and queues `queued`.
    pub fn passes_over(self, limits: &Limits, limit: u32, served: u32, queued: usize) -> bool {
        match self {
            Affinity::Always => false,
            Affinity::MaxConn => limits.maxconn > 0 && !limits.has_room(limit, served),
            Affinity::MaxQueue => limits.maxconn > 0 && !limits.queue_has_room(queued),
        }
    }
}

/// Whether retry number `retry` (from 1) of `retries` goes to another server (configuration manual, `option
/// redispatch`): with a positive interval every so many retries, with a negative one only the so-manieth
/// before the end, -1 being the last; never with 0.
pub fn redispatches(interval: i32, retry: u32, retries: u32) -> bool {
    match interval {
        0 => false,
        1.. => retry > 0 && retry.is_multiple_of(interval.unsigned_abs()),
        _ => u64::from(retry) + u64::from(interval.unsigned_abs()) == u64::from(retries) + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redispatch_interval_counts_from_the_front_or_the_back() {
        let retries =
            |interval| (1..=4).filter(|&retry| redispatches(interval, retry, 4)).collect::<Vec<_>>();
        assert_eq!(retries(-1), [4]);
        assert_eq!(retries(-3), [2]);
        assert_eq!(retries(1), [1, 2, 3, 4]);
        assert_eq!(retries(3), [3]);
        assert!(retries(0).is_empty() && retries(-9).is_empty());
    }

    #[test]
    fn affinity_passes_over_what_it_says() {
        let bounded = Limits { maxconn: 1, minconn: 0, maxqueue: 1 };
        let over = |kind: &str, served, queued| {
            Affinity::by_name(kind).unwrap().passes_over(&bounded, 1, served, queued)
        };
        assert_eq!(
            [over("always", 1, 1), over("maxconn", 0, 0), over("maxconn", 1, 0)],
            [false, false, true]
        );
        assert_eq!([over("maxqueue", 1, 0), over("maxqueue", 1, 1)], [false, true]);
        assert!(!Affinity::MaxConn.passes_over(&Limits::default(), 0, 1000, 0));
    }

    #[test]
    fn leastconn_fills_bounded_queues_only() {
        let bounded = Limits { maxqueue: 2, ..BOTH };
        assert!(bounded.has_room_or_queue(10, 10, 1) && !bounded.has_room_or_queue(10, 10, 2));
        assert!(!BOTH.has_room_or_queue(10, 10, 0) && BOTH.has_room_or_queue(0, 999, 999));
    }

    const BOTH: Limits = Limits { maxconn: 100, minconn: 10, maxqueue: 0 };

    #[test]
    fn the_limit_follows_the_load_of_the_backend() {
        let limits: Vec<u32> =
            [0, 50, 100, 500, 999, 1000, 5000].map(|load| BOTH.now(load, 1000, None)).into();
        assert_eq!(limits, [10, 10, 10, 50, 99, 100, 100]);
    }

    #[test]
    fn without_minconn_the_limit_stands() {
        let only = Limits { minconn: 0, ..BOTH };
        assert_eq!(only.now(0, 1000, None), 100);
        assert_eq!(Limits::default().now(0, 1000, Some((0, 10))), 0);
    }

    #[test]
    fn slow_start_opens_the_server_from_one() {
        let ramp = |elapsed| Limits { minconn: 0, ..BOTH }.now(0, 0, Some((elapsed, 10_000)));
        assert_eq!([ramp(0), ramp(100), ramp(5000), ramp(10_000)], [1, 1, 50, 100]);
    }

    #[test]
    fn a_bounded_queue_fills_up() {
        let bounded = Limits { maxqueue: 2, ..BOTH };
        assert!(bounded.queue_has_room(1) && !bounded.queue_has_room(2));
        assert!(BOTH.queue_has_room(1_000_000));
    }
}
