//! Cookie values that are computed from the addresses of servers: `enable dynamic-cookie backend`, `disable
//! dynamic-cookie backend`, `set dynamic-cookie-key backend`.

use std::sync::atomic::Ordering::Relaxed;

use base::fleet::Held;
use program::Proxy;

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["disable", "dynamic-cookie", "backend"],
        "<bk>",
        "compute no cookies for the servers of a backend",
        Level::Admin,
        disable,
    ),
    Command::now(
        &["enable", "dynamic-cookie", "backend"],
        "<bk>",
        "compute cookies for the servers of a backend",
        Level::Admin,
        enable,
    ),
    Command::now(
        &["set", "dynamic-cookie-key", "backend"],
        "<bk> <key>",
        "change the secret that cookies are computed with",
        Level::Admin,
        set_key,
    ),
];

fn backend<'c>(call: &'c Call<'_>) -> Result<(u32, Held<'c, Proxy>), Refusal> {
    if call.arg(0).is_empty() {
        return Err("A backend name is expected.".into());
    }
    call.find_backend(call.arg(0)).ok_or("No such backend.".into())
}

/// `enable dynamic-cookie backend`.
pub fn enable(call: &mut Call<'_>) -> Outcome {
    switch(call, true)
}

/// `disable dynamic-cookie backend`.
pub fn disable(call: &mut Call<'_>) -> Outcome {
    switch(call, false)
}

fn switch(call: &Call<'_>, on: bool) -> Outcome {
    let (at, proxy) = backend(call)?;
    proxy.state.back.dynamic_cookies.store(on, Relaxed);
    farm::cookies::warn(&call.worker.farm, at, farm::cookies::renew(&proxy, true));
    Ok(Reply::Done)
}

/// `set dynamic-cookie-key backend <backend> <key>`.
pub fn set_key(call: &mut Call<'_>) -> Outcome {
    let (at, proxy) = backend(call)?;
    if call.arg(1).is_empty() {
        return Err("String value expected.".into());
    }
    *proxy.state.back.cookie_key.lock() = call.arg(1).as_bytes().into();
    farm::cookies::warn(&call.worker.farm, at, farm::cookies::renew(&proxy, true));
    Ok(Reply::Done)
}
