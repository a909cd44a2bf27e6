//! `clear counters`. Figures of protocols (TLS, HTTP/1, HTTP/2) go with the maxima, as HAProxy's modules do,
//! but for what is open.

use program::listener::Level;

use super::activity;
use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use crate::shm;
use crate::stats::clear::{clear_listener, clear_proxy, clear_server};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["clear", "counters"],
    "[all|server <bk>/<srv> [force]]",
    "set maxima to zero, or all figures",
    Level::Operator,
    clear,
)];

const SHARED: &str = "Server counters are stored in a shared-memory stats file; clearing them breaks monotonicity for monitoring tools and affects all attached processes. Append 'force' to clear anyway.";

/// `clear counters [all | server <backend>/<server> [force]]`. Only an admin may clear more than maxima.
pub fn clear(call: &mut Call<'_>) -> Outcome {
    let what = call.arg(0);
    let all = what == "all";
    if (all || what == "server") && call.client.level < Level::Admin {
        return Err("Permission denied".into());
    }
    if what == "server" {
        let at = call.server_called(call.arg(1))?;
        let server = &call.config(at).state;
        if shm::holds(server) && call.arg(2) != "force" {
            return Err(SHARED.into());
        }
        clear_server(server, true);
        shm::cleared(Some(server));
        return Ok(Reply::info("Server counters cleared."));
    }
    if all {
        activity::forget();
    }
    let program = &call.shared().program;
    for proxy in &program.proxies {
        clear_proxy(&proxy.state, all);
        for bind in &proxy.binds {
            clear_listener(&bind.state, all);
        }
        for server in proxy.present() {
            clear_server(&server.state, all);
        }
    }
    if all {
        shm::cleared(None);
    }
    for server in program.resolvers.iter().flat_map(|r| &r.servers).filter(|_| all) {
        server.state.clear();
    }
    let process = &program.world.process;
    let tls = [&process.ssl_rate, &process.ssl_front_keys, &process.ssl_back_keys];
    for rate in [&process.conn_rate, &process.sess_rate].into_iter().chain(tls) {
        rate.reset_peak();
    }
    Ok(Reply::Done)
}
