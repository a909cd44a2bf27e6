//! Where a call goes. Names are resolved on a thread made for it: nothing here waits for the system.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rt::Addr;

use crate::aside;

/// How long a name may take to be resolved.
const RESOLVING: Duration = Duration::from_secs(10);

/// The address of a host: a name, or an address, that of IPv6 in brackets or not. `v4` says which family is
/// preferred. Nothing when there is none in time.
pub async fn find(host: &str, port: u16, v4: Option<bool>) -> Option<Addr> {
    let bare = bare(host);
    let ip = match bare.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let host = bare.to_owned();
            let found = aside::run("resolver", RESOLVING, move || rt::sys::resolve(&host)).await?.ok()?;
            preferred(&found, v4)?
        }
    };
    Some(Addr::Inet(SocketAddr::new(ip, port)))
}

/// A host without the brackets of an address.
pub fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The first address of the wanted family, or else the first.
fn preferred(found: &[IpAddr], v4: Option<bool>) -> Option<IpAddr> {
    let wanted = found.iter().find(|ip| v4.is_none_or(|v4| ip.is_ipv4() == v4));
    wanted.or(found.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_preferred_family_comes_first() {
        let found = ["::1", "127.0.0.1"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(preferred(&found, None), Some(found[0]));
        assert_eq!(preferred(&found, Some(true)), Some(found[1]));
        assert_eq!(preferred(&found[1..], Some(false)), Some(found[1]));
        assert_eq!(preferred(&[], None), None);
    }
}
