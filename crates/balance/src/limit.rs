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
    /// `fullconn` bring all servers to their `maxconn`. `ramp` is how long ago the server came back and how long
    /// `slowstart` takes, in the same unit; none when it is over. 0 means no limit.
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

    /// Whether the server's queue, of this length, takes one request more.
    pub fn queue_has_room(&self, queued: usize) -> bool {
        self.maxqueue == 0 || queued < self.maxqueue as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
