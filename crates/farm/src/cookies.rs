//! Persistence cookies that servers get by their address (`cookie ... dynamic`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::server::{ComputedCookie, Target, admin};
use program::{Proxy, Server};

use crate::FarmWorker;

/// Computes the cookie values of servers that have none of their own (`cookie ... dynamic`), after a change
/// of addresses, of the key, or of who is in maintenance. How often one that changed, or any where `all` are
/// asked for, was found to be that of another server; those in maintenance are left out.
pub fn renew(proxy: &Proxy, all: bool) -> usize {
    if proxy.cookie.is_none() {
        return 0;
    }
    let key = proxy.state.back.cookie_key.lock().clone();
    let wanted = proxy.state.back.dynamic_cookies.load(Relaxed) && !key.is_empty();
    let in_use = |cookie: &Arc<ComputedCookie>| !cookie.in_maintenance;
    // How many servers have each value, and whose changes.
    let mut held: HashMap<Arc<ComputedCookie>, usize> = HashMap::new();
    let mut changes = Vec::new();
    for server in &proxy.servers {
        let now = wanted.then(|| compute(&server, &key)).flatten().map(Arc::new);
        let was = server.state.dynamic_cookie.swap(now.clone());
        let changed = all || was != now;
        let was = was.filter(in_use);
        if let Some(was) = &was {
            *held.entry(was.clone()).or_default() += 1;
        }
        if changed {
            changes.push((was, now.filter(in_use)));
        }
    }
    // One after the other, as HAProxy does it, so that those behind still have their value of before.
    let mut equal = 0;
    for (was, now) in changes {
        if let Some(others) = was.and_then(|was| held.get_mut(&was)) {
            *others -= 1;
        }
        if let Some(now) = now {
            let others = held.entry(now).or_default();
            equal += *others;
            *others += 1;
        }
    }
    equal
}

/// XXH64 of the key, the address and the port in 32 bits, as HAProxy has it.
fn compute(server: &Server, key: &[u8]) -> Option<ComputedCookie> {
    let Target::Inet(a) = &**server.state.target.load() else { return None };
    if server.cookie.is_some() {
        return None;
    }
    let mut bytes = key.to_vec();
    match a.ip() {
        std::net::IpAddr::V4(ip) => bytes.extend(ip.octets()),
        std::net::IpAddr::V6(ip) => bytes.extend(ip.octets()),
    }
    bytes.extend(u32::from(a.port()).to_be_bytes());
    let value = format!("{:016x}", base::hash::xxh64(&bytes, 0)).into_bytes();
    Some(ComputedCookie { value, in_maintenance: server.state.admin() & admin::MAINT != 0 })
}

/// Says on standard error that servers have got the cookie of another one, each time that it was found.
pub fn warn(worker: &FarmWorker, proxy: u32, found: usize) {
    if found == 0 {
        return;
    }
    let text = format!(
        "We generated two equal cookies for two different servers.\nPlease change the secret key for '{}'.",
        worker.farm.program.proxy(proxy).name
    );
    (0..found).for_each(|_| worker.above.console("WARNING", &text));
}
