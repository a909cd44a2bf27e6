//! Which server of the backend gets the request, as far as that can be told without traffic.

use lang::logfmt::Use;
use program::proxy::{Balance, Proxy, UseServerTo};

use crate::walk::{Walk, row};

impl Walk<'_> {
    /// The server, or those among which the load decides.
    pub(crate) fn server(&mut self, proxy: &Proxy) -> String {
        for rule in &proxy.use_server {
            let (applies, seen) = self.condition(rule.condition.as_ref());
            let name = match &rule.to {
                UseServerTo::Server(i) => proxy.servers.get(*i as usize).map(|s| s.name.to_string()),
                UseServerTo::Format(format) => {
                    let mut name = Vec::new();
                    self.look(|env| format.append(env, Use::Value, &mut name));
                    Some(String::from_utf8_lossy(&name).into_owned())
                }
            };
            let name = name.unwrap_or_default();
            let place = self.place(rule.number);
            let text = format!("use-server {name}");
            self.rows.push(row(place, text, rule.condition.as_ref(), applies, seen));
            if applies && proxy.servers.iter().any(|s| *s.name == *name) {
                return format!("goes to server {}/{name}", proxy.name);
            }
        }
        if let Some(server) = self.cookie(proxy) {
            return format!("goes to server {}/{server}, which its cookie names", proxy.name);
        }
        let servers: Vec<_> =
            proxy.servers.iter().filter(|s| !s.backup).map(|s| s.name.to_string()).collect();
        match servers.as_slice() {
            [] if proxy.dispatch.is_some() => "goes to the dispatch address".into(),
            [] => format!("backend {} has no server: answers 503", proxy.name),
            [one] => format!("goes to server {}/{one}", proxy.name),
            many => {
                let (how, count) = (balance(&proxy.balance), many.len());
                let shown = many.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if count > 8 { ", ..." } else { "" };
                format!("goes to backend {}: {how} chooses among {count} servers ({shown}{more})", proxy.name)
            }
        }
    }

    /// The server that a persistence cookie names.
    fn cookie(&mut self, proxy: &Proxy) -> Option<String> {
        let name = &proxy.cookie.as_ref()?.name;
        let value = self.txn.req.cookie(name)?;
        let server = proxy.servers.iter().find(|s| s.cookie.as_deref().is_some_and(|c| *c == *value))?;
        let text = format!("cookie {}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        self.rows.push(row(None, text, None, true, Vec::new()));
        Some(server.name.to_string())
    }
}

fn balance(balance: &Balance) -> String {
    match balance {
        Balance::RoundRobin => "roundrobin".into(),
        Balance::StaticRr => "static-rr".into(),
        Balance::LeastConn => "leastconn".into(),
        Balance::First => "first".into(),
        Balance::Random(n) => format!("random({n})"),
        Balance::Source => "a hash of the source address".into(),
        Balance::Uri(_) => "a hash of the URI".into(),
        Balance::UrlParam(name) => {
            format!("a hash of URL parameter {}", String::from_utf8_lossy(name))
        }
        Balance::Header { name, .. } => format!("a hash of header {}", String::from_utf8_lossy(name)),
        Balance::RdpCookie(_) => "a hash of the RDP cookie".into(),
        Balance::Hash(expr) => format!("a hash of {}", expr.text),
        Balance::Sticky => "the first server that is up, until it is down".into(),
        Balance::LogHash(expr) => format!("a hash of {} of the line", expr.text),
    }
}
