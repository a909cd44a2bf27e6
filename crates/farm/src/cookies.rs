//! Persistence cookies that servers get by their address (`cookie ... dynamic`).

use std::sync::atomic::Ordering::Relaxed;

use model::server::Target;
use program::Proxy;

/// Computes the cookie values of servers that have none of their own (`cookie ... dynamic`), after a change
/// of addresses or of the key: XXH64 of the key, the address and the port in 32 bits, as HAProxy has it.
pub fn renew(proxy: &Proxy) {
    if proxy.cookie.is_none() {
        return;
    }
    let key = proxy.state.back.cookie_key.lock().clone();
    let wanted = proxy.state.back.dynamic_cookies.load(Relaxed) && !key.is_empty();
    for server in &proxy.servers {
        let value = match &**server.state.target.load() {
            Target::Inet(a) if wanted && server.cookie.is_none() => {
                let mut bytes = key.to_vec();
                match a.ip() {
                    std::net::IpAddr::V4(ip) => bytes.extend(ip.octets()),
                    std::net::IpAddr::V6(ip) => bytes.extend(ip.octets()),
                }
                bytes.extend(u32::from(a.port()).to_be_bytes());
                Some(format!("{:016x}", base::hash::xxh64(&bytes, 0)).into_bytes())
            }
            _ => None,
        };
        server.state.dynamic_cookie.store(value.map(std::sync::Arc::new));
    }
}
