//! What becomes of live state when the program is adopted: told as a value, changed by nobody here.

use model::account::Limits;
use model::adoption::{Adoption, ProxyTerms, ServerTerms};
use model::vars::Scope;
use program::Proxy;

use super::Assembly;
use crate::draft::{Draft, ServerDraft};
use crate::names::Declared;

impl Assembly<'_> {
    /// Everything of it. `limits` are those of the memory of variables.
    pub(super) fn adoption(&mut self, finished: &[Proxy], drafts: &[Draft], limits: [usize; 6]) -> Adoption {
        let mut servers = Vec::new();
        let mut proxies = Vec::new();
        for ((declared, draft), proxy) in self.declared.iter_mut().zip(drafts).zip(finished) {
            let named = declared.named.take();
            let each = declared.servers.iter().zip(&draft.servers).enumerate();
            servers.extend(each.map(|(at, (state, draft))| server(state, draft, named.contains(&at))));
            proxies.push(terms(declared, draft, proxy));
        }
        Adoption {
            proxies,
            servers,
            tables: self.memory.tables.clone(),
            process: self.process.take(),
            variables: Limits::new(limits, self.memory.vars.of(Scope::Proc).len()),
        }
    }
}

fn terms(declared: &mut Declared, draft: &Draft, proxy: &Proxy) -> ProxyTerms {
    ProxyTerms {
        state: declared.state.clone(),
        servers: std::mem::take(&mut declared.fresh),
        listeners: proxy.binds.iter().map(|bind| bind.state.clone()).collect(),
        enabled: !draft.disabled,
        maxconn: proxy.maxconn,
        dynamic_cookies: proxy.cookie.as_ref().is_some_and(|cookie| cookie.dynamic_key.is_some()),
        cookie_key: draft.dynamic_key.clone().unwrap_or_default(),
        all_backups: proxy.options.allbackups,
        unpublished: draft.unpublished,
        referenced: declared.referenced.get(),
    }
}

fn server(state: &std::sync::Arc<model::Server>, draft: &ServerDraft, referenced: bool) -> ServerTerms {
    ServerTerms {
        state: state.clone(),
        plain: !draft.tls.on,
        refuses_tls: draft.tls.refused,
        backup: draft.backup,
        referenced,
    }
}
