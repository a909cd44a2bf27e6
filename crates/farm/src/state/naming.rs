//! What becomes of a server when resolvers learn something about its name.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

use model::server::{Target, admin};
use program::log::level;

use super::{Changes, Why};
use crate::At;

impl Changes<'_> {
    /// The name of a server's host as it was written.
    pub(super) fn shown_name(&self, at: At) -> String {
        self.server(at).state.fqdn.lock().clone().unwrap_or_default()
    }

    /// Moves a server to the address that `by` found; whether it was elsewhere before.
    pub fn moved(&self, at: At, ip: IpAddr, by: &str) -> bool {
        let port = u16::try_from(self.server(at).state.port.load(Relaxed)).unwrap_or(0);
        self.placed(at, SocketAddr::new(ip, port), by)
    }

    /// The same where the port was found, too.
    pub fn placed(&self, at: At, to: SocketAddr, by: &str) -> bool {
        let state = &self.server(at).state;
        let old = match &**state.target.load() {
            Target::Inet(addr) => Some(addr.ip()),
            _ => None,
        };
        let old_port = state.port.swap(to.port().into(), Relaxed);
        if old == Some(to.ip()) && old_port == u32::from(to.port()) {
            return false;
        }
        state.set_target(Target::Inet(to));
        self.flush(at);
        self.refresh(at);
        let mut changes = Vec::new();
        if old != Some(to.ip()) {
            let old = old.map_or_else(|| "(none)".to_owned(), |ip| ip.to_string());
            changes.push(format!("IP changed from '{old}' to '{}'", to.ip()));
        }
        if old_port != u32::from(to.port()) {
            // A service whose servers were given no port has the words of one that is added to the client's.
            let sign = if old_port == 0 && state.admin() & admin::RENAMED == 0 { "+" } else { "" };
            changes.push(format!("port changed from '{sign}{old_port}' to '{}'", to.port()));
        }
        let (who, changes) = (self.full_name(at), changes.join(", "));
        self.say(at, &format!("{who}: {changes} by '{by}'."));
        true
    }

    /// Its name leads somewhere: a maintenance for that reason ends.
    pub fn resolves(&self, at: At) {
        let server = self.server(at);
        if server.state.admin() & admin::RMAINT == 0 {
            return;
        }
        self.admin(at, 0, admin::RMAINT, Why::Found);
        let who = self.full_name(at);
        self.say(at, &format!("Server {who} administratively READY thanks to valid DNS answer."));
    }

    /// Its name leads nowhere, for the reason `what`: it goes to maintenance, and has no address.
    pub fn lost(&self, at: At, what: &str) {
        let server = self.server(at);
        if server.state.admin() & admin::RMAINT == 0 {
            self.admin(at, admin::RMAINT, 0, Why::Lost(what));
        }
        if !matches!(**server.state.target.load(), Target::None | Target::Unix { .. }) {
            server.state.set_target(Target::None);
            self.flush(at);
            self.refresh(at);
        }
    }

    /// Gives a server the host and port of a record that tells where a service is.
    pub fn attach(&self, at: At, host: &str, port: u16) {
        let state = &self.server(at).state;
        let old = state.fqdn.lock().replace(host.to_owned());
        state.port.store(port.into(), Relaxed);
        state.change_admin(admin::RENAMED, 0, self.now);
        let (old, who) = (old.as_deref().unwrap_or("(null)"), self.full_name(at));
        let text = format!("{who} changed its FQDN from {old} to {host} by 'SRV record'");
        self.worker.above.line(at.proxy, level::NOTICE, &text);
    }

    /// Its record is gone: it is free for another one.
    pub fn detach(&self, at: At) {
        self.lost(at, "entry removed from SRV record");
        let state = &self.server(at).state;
        *state.fqdn.lock() = None;
        state.port.store(0, Relaxed);
    }

    /// Another name for a server, by a command; the name before.
    pub fn rename(&self, at: At, name: &str) -> Option<String> {
        let state = &self.server(at).state;
        state.change_admin(admin::RENAMED, 0, self.now);
        state.fqdn.lock().replace(name.to_owned())
    }

    fn full_name(&self, at: At) -> String {
        format!("{}/{}", self.worker.farm.program.proxy(at.proxy).name, self.server(at).name)
    }

    fn say(&self, at: At, text: &str) {
        self.worker.above.console("WARNING", text);
        self.worker.above.line(at.proxy, level::NOTICE, text);
    }
}
