//! The anonymised mode of a connection (`set anon`; management guide, 9.3): names and addresses in dumps give
//! way to 24 bits of XXH32 seeded with a key, the same that `-dC` prints, so what is alike stays alike and
//! nothing can be read back.

use std::borrow::Cow;
use std::net::IpAddr;

use base::hash::xxh32;
use model::Peer;

/// The key of a connection; 0 hides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anon(pub u32);

impl Anon {
    /// A word as it is shown.
    pub fn word<'w>(self, word: &'w str) -> Cow<'w, str> {
        match self.0 {
            0 => word.into(),
            key => format!("{:06x}", xxh32(word.as_bytes(), key) & 0x00ff_ffff).into(),
        }
    }

    /// The address of a server: those that say nothing about the network stay.
    pub fn server<'w>(self, address: &'w str) -> Cow<'w, str> {
        match address.parse::<IpAddr>() {
            _ if self.0 == 0 => address.into(),
            Ok(ip) if ip.is_loopback() || ip.is_unspecified() => address.into(),
            Ok(ip) => {
                format!("{}({})", if ip.is_ipv4() { "IPV4" } else { "IPV6" }, self.word(address)).into()
            }
            Err(_) => self.word(address),
        }
    }

    /// The address of a client, whose port stays.
    pub fn peer(self, peer: Peer) -> String {
        match peer {
            Peer::Inet(a) if self.0 != 0 => format!("{}:{}", self.word(&a.ip().to_string()), a.port()),
            peer => peer.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Anon;

    #[test]
    fn hashes_are_those_of_the_oracle() {
        let anon = Anon(5);
        assert_eq!(anon.word("foo"), "d95d2f");
        assert_eq!(anon.word("-"), "2a05f4");
        assert_eq!(anon.server("10.1.2.3"), "IPV4(ee3025)");
        assert_eq!(anon.server("2001:db8::1"), "IPV6(c4347b)");
        assert_eq!(anon.server("127.0.0.1"), "127.0.0.1");
        let peer = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(anon.peer(model::Peer::Inet(peer)), "50b561:80");
        assert_eq!((anon.word("foo") == Anon(6).word("foo"), Anon(0).word("foo")), (false, "foo".into()));
    }
}
