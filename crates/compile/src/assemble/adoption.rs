//! What becomes of live state when the program is adopted: told as a value, changed by nobody here.

use std::collections::HashSet;
use std::sync::Arc;

use model::account::Limits;
use model::adoption::{Adoption, ProxyTerms, ServerTerms};
use model::proxy::Configured;
use model::vars::Scope;
use program::{Program, Proxy};

use super::Assembly;
use crate::draft::Draft;
use crate::names::Declared;

impl Assembly<'_> {
    /// Everything of it. `limits` are those of the memory of variables.
    pub(super) fn adoption(&mut self, finished: &[Proxy], drafts: &[Draft], limits: [usize; 6]) -> Adoption {
        let mut servers = Vec::new();
        let mut proxies = Vec::new();
        for ((declared, draft), proxy) in self.declared.iter_mut().zip(drafts).zip(finished) {
            let named = declared.named.take();
            let said = std::mem::take(&mut declared.configured);
            for (at, ((state, draft), configured)) in
                declared.servers.iter().zip(&draft.servers).zip(said).enumerate()
            {
                let referenced = named.contains(&at);
                servers.push(ServerTerms {
                    state: state.clone(),
                    backup: draft.backup,
                    configured,
                    referenced,
                });
            }
            proxies.push(terms(declared, draft, proxy));
        }
        let gone = self.ground.before.map(|before| gone(before, &proxies)).unwrap_or_default();
        Adoption {
            gone,
            proxies,
            servers,
            limits: std::mem::take(&mut self.forward_limits),
            tables: self.memory.tables.clone(),
            caches: self.memory.caches.clone(),
            process: self.process.take(),
            variables: Limits::new(limits, self.memory.vars.of(Scope::Proc).len()),
        }
    }
}

fn terms(declared: &mut Declared, draft: &Draft, proxy: &Proxy) -> ProxyTerms {
    ProxyTerms {
        state: declared.state.clone(),
        servers: declared.servers.clone(),
        listeners: proxy.binds.iter().map(|bind| bind.state.clone()).collect(),
        configured: Configured {
            enabled: !draft.disabled,
            maxconn: proxy.maxconn,
            dynamic_cookies: proxy.cookie.as_ref().is_some_and(|cookie| cookie.dynamic_key.is_some()),
            cookie_key: draft.dynamic_key.clone().unwrap_or_default(),
            unpublished: draft.unpublished,
        },
        all_backups: proxy.options.allbackups,
        referenced: declared.referenced.get(),
        mirror: declared.mirror.get(),
    }
}

/// The proxies of a configuration that are not among the new ones.
fn gone(before: &Program, now: &[ProxyTerms]) -> Vec<Arc<model::Proxy>> {
    let here: HashSet<*const model::Proxy> = now.iter().map(|terms| Arc::as_ptr(&terms.state)).collect();
    before.proxies.iter().map(|p| p.state.clone()).filter(|p| !here.contains(&Arc::as_ptr(p))).collect()
}
