//! The curve P-521 for key exchanges, which the library has no group for and its arithmetic has.

use aws_lc_rs::agreement::{self, ECDH_P521, EphemeralPrivateKey, UnparsedPublicKey};
use aws_lc_rs::rand::SystemRandom;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// The group (RFC 8446 section 4.2.7, `secp521r1`).
pub(crate) static P521: &dyn SupportedKxGroup = &Group;

/// How the bytes of a point begin that both sides tell in full (RFC 8446 section 4.2.8.2).
const UNCOMPRESSED: u8 = 4;

#[derive(Debug)]
struct Group;

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let private =
            EphemeralPrivateKey::generate(&ECDH_P521, &SystemRandom::new()).map_err(|_| GetRandomFailed)?;
        let public = private.compute_public_key().map_err(|_| GetRandomFailed)?;
        Ok(Box::new(Exchange { private, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

/// An exchange whose peer has not answered yet.
struct Exchange {
    private: EphemeralPrivateKey,
    public: agreement::PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let wrong = || Error::from(PeerMisbehaved::InvalidKeyShare);
        if peer.first() != Some(&UNCOMPRESSED) {
            return Err(wrong());
        }
        let peer = UnparsedPublicKey::new(&ECDH_P521, peer);
        agreement::agree_ephemeral(self.private, peer, wrong(), |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_come_to_the_same_secret_and_odd_points_to_none() {
        let (one, other) = (P521.start().unwrap(), P521.start().unwrap());
        let (mine, yours) = (one.pub_key().to_vec(), other.pub_key().to_vec());
        assert_eq!(mine.len(), 133);
        let secrets = [one.complete(&yours).unwrap(), other.complete(&mine).unwrap()];
        assert_eq!(secrets[0].secret_bytes(), secrets[1].secret_bytes());
        for odd in [&b""[..], b"\x04", &[4; 133], &yours[1..]] {
            assert!(P521.start().unwrap().complete(odd).is_err());
        }
    }
}
