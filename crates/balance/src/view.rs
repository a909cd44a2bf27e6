//! What the algorithms know of a server, and which servers take part.
//!
//! Weights come in two kinds because the algorithms do: the static ones (`static-rr`, map-based hashing)
//! follow the weight as configured, the others the effective weight, which slow start and agents move. The
//! effective weight counts sixteenths, so that a server of weight 1 can still grow in sixteen steps.

use base::hash;
use std::net::IpAddr;

/// Effective weights count units of 1/16 of a configured weight.
pub const WEIGHT_SCALE: u32 = 16;

/// The highest weight of a server (configuration manual, server keyword `weight`).
pub const WEIGHT_MAX: u32 = 256;

/// One server as the algorithms see it; its index is its place in the slice given to `rebuild`, in order of
/// declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerView {
    /// The numeric identifier: server keyword `id`, else its position, from 1.
    pub id: u32,
    /// The configured weight, 0 to 256, which the static algorithms follow.
    pub weight: u32,
    /// The weight now, in units of 1/16 (see [`effective_weight`]), which the other algorithms follow.
    pub eweight: u32,
    /// Whether it may get requests that nothing binds to it: up, not in maintenance, not draining.
    pub usable: bool,
    /// Whether it serves only when no other server does (server keyword `backup`).
    pub backup: bool,
    /// Where its points on the consistent ring start; see [`HashKey::seed`].
    pub seed: u32,
}

impl ServerView {
    /// A usable server of weight 1 that is no backup, with the default seed.
    pub fn new(id: u32) -> ServerView {
        ServerView {
            id,
            weight: 1,
            eweight: WEIGHT_SCALE,
            usable: true,
            backup: false,
            seed: HashKey::Id.seed(id, None, 0, None),
        }
    }

    /// The same server with another configured weight, in full effect.
    pub fn with_weight(self, weight: u32) -> ServerView {
        ServerView { weight, eweight: weight * WEIGHT_SCALE, ..self }
    }
}

/// The effective weight, in 1/16: the configured weight, scaled by how far slow start has come. `ramp` is the
/// time since the server came back and the whole time of `slowstart`, in milliseconds; none when it is over.
///
/// As in HAProxy whole seconds count, and sixteenths of the weight, of which the first is there at once.
pub fn effective_weight(weight: u32, ramp: Option<(u64, u64)>) -> u32 {
    let sixteenth = |(elapsed, whole): (u64, u64)| {
        let scale = u64::from(WEIGHT_SCALE);
        (scale * (elapsed / 1000) / whole.div_ceil(1000).max(1) + 1).min(scale) as u32
    };
    weight.min(WEIGHT_MAX) * ramp.map_or(WEIGHT_SCALE, sixteenth)
}

/// What the ring points of a server are derived from (configuration manual, server keyword `hash-key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HashKey {
    /// The lowest 28 bits of the identifier.
    #[default]
    Id,
    /// All 32 bits of the identifier.
    Id32,
    /// The address.
    Addr,
    /// The address and the port.
    AddrPort,
    /// The `guid` of the server.
    Guid,
}

impl HashKey {
    /// The kind with this name in a configuration, if there is one.
    pub fn by_name(name: &str) -> Option<HashKey> {
        match name {
            "id" => Some(HashKey::Id),
            "id32" => Some(HashKey::Id32),
            "addr" => Some(HashKey::Addr),
            "addr-port" => Some(HashKey::AddrPort),
            "guid" => Some(HashKey::Guid),
            _ => None,
        }
    }

    /// The seed of a server's points. What isn't known (a Unix socket has no address) falls back to the
    /// identifier.
    pub fn seed(self, id: u32, addr: Option<IpAddr>, port: u16, guid: Option<&[u8]>) -> u32 {
        match (self, addr, guid) {
            (HashKey::Id32, ..) => hash::avalanche(id.swap_bytes()),
            (HashKey::Addr, Some(addr), _) => address_seed(addr, 0),
            (HashKey::AddrPort, Some(addr), _) => address_seed(addr, hash::avalanche(u32::from(port))),
            (HashKey::Guid, _, Some(guid)) => hash::xxh32(guid, 0),
            _ => id.wrapping_mul(4096),
        }
    }
}

fn address_seed(addr: IpAddr, port: u32) -> u32 {
    match addr {
        IpAddr::V4(v4) => hash::avalanche(u32::from_le_bytes(v4.octets()).wrapping_add(port)),
        IpAddr::V6(v6) => hash::xxh32(&v6.octets(), port),
    }
}

/// The indices of the servers that take part: every usable server that is no backup; without any, the first
/// usable backup, or all of them with `option allbackups`. Servers of weight 0 take no part.
pub fn farm(servers: &[ServerView], allbackups: bool) -> Vec<u32> {
    let usable = |backup: bool| {
        let fit = move |s: &ServerView| s.usable && s.backup == backup && s.weight > 0 && s.eweight > 0;
        servers.iter().enumerate().filter(move |(_, s)| fit(s)).map(|(i, _)| i as u32)
    };
    let active: Vec<u32> = usable(false).collect();
    if !active.is_empty() {
        return active;
    }
    usable(true).take(if allbackups { usize::MAX } else { 1 }).collect()
}

/// The greatest common divisor of all weights that aren't 0; 1 without any.
pub fn common_divisor(weights: impl Iterator<Item = u32>) -> u32 {
    fn gcd(a: u32, b: u32) -> u32 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    weights.fold(0, gcd).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_serve_only_when_nobody_else_does() {
        let mut servers = [1, 2, 3, 4].map(ServerView::new);
        servers[0].backup = true;
        servers[3].backup = true;
        assert_eq!(farm(&servers, true), [1, 2]);
        servers[1].usable = false;
        servers[2] = servers[2].with_weight(0);
        assert_eq!(farm(&servers, false), [0]);
        assert_eq!(farm(&servers, true), [0, 3]);
        servers[0].usable = false;
        assert_eq!(farm(&servers, false), [3]);
    }

    #[test]
    fn slow_start_grows_by_sixteenths_as_observed_on_haproxy() {
        assert_eq!(effective_weight(10, None), 160);
        let sixteenths = |whole, at: &[u64]| -> Vec<u32> {
            at.iter().map(|second| effective_weight(1, Some((second * 1000 + 30, whole)))).collect()
        };
        assert_eq!(sixteenths(6_000, &[0, 1, 2, 3, 4, 5, 6]), [1, 3, 6, 9, 11, 14, 16]);
        assert_eq!(sixteenths(40_000, &[0, 2, 3, 4, 5, 7, 8, 10, 13]), [1, 1, 2, 2, 3, 3, 4, 5, 6]);
        assert_eq!(sixteenths(60_000, &[3, 4, 7, 8, 11, 12]), [1, 2, 2, 3, 3, 4]);
        assert_eq!(sixteenths(1_500, &[0, 1, 2]), [1, 9, 16]);
        assert_eq!(effective_weight(0, Some((0, 1000))), 0);
    }

    #[test]
    fn the_divisor_ignores_zero() {
        assert_eq!(common_divisor([0, 6, 9].into_iter()), 3);
        assert_eq!(common_divisor([0].into_iter()), 1);
    }
}
