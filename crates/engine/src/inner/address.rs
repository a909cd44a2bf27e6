//! Where a call goes.

use std::net::SocketAddr;
use std::time::Duration;

use rt::Addr;

use crate::{Worker, aside};

/// How long a name may take to be resolved by the system.
const RESOLVING: Duration = Duration::from_secs(10);

/// The address of a host: a name, which is looked up by the section that `httpclient.resolvers.id` names, or
/// an address, that of IPv6 in brackets or not. Nothing when there is none in time.
pub async fn find(worker: &Worker, host: &str, port: u16) -> Option<Addr> {
    let bare = bare(host);
    let ip = match bare.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let settings = &worker.shared.program.global.ocsp;
            farm::names::find(&worker.farm, settings.resolvers?, bare, settings.prefer_v4).await?
        }
    };
    Some(Addr::Inet(SocketAddr::new(ip, port)))
}

/// The same, a name being looked up by the system, on a thread made for it.
pub async fn find_by_system(host: &str, port: u16) -> Option<Addr> {
    let bare = bare(host);
    let ip = match bare.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let host = bare.to_owned();
            let found = aside::run("resolver", RESOLVING, move || rt::sys::resolve(&host)).await?.ok()?;
            *found.first()?
        }
    };
    Some(Addr::Inet(SocketAddr::new(ip, port)))
}

/// A host without the brackets of an address.
pub fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}
