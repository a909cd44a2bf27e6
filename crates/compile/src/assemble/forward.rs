//! `log-forward` sections, finished.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use program::Bind;
use program::forward::{Dgram, Forward};
use program::log::Logging;
use syntax::Diagnostics;

use super::{Assembly, checks, shards};
use crate::bind;
use crate::forward::ForwardDraft;
use crate::mux::Fit;
use crate::notes::refusal;

impl Assembly<'_> {
    /// All of them.
    pub(super) fn forwards(&mut self, drafts: &[ForwardDraft], notes: &mut Diagnostics) -> Vec<Forward> {
        drafts.iter().map(|draft| self.forward(draft, notes)).collect()
    }

    fn forward(&mut self, draft: &ForwardDraft, notes: &mut Diagnostics) -> Forward {
        let p = &draft.proxy;
        if draft.datagrams.is_empty() {
            checks::unbound(p, notes);
        }
        // Sections and their listeners are known by their names, and go on with what they counted.
        let known = self.ground.before.and_then(|before| before.forwards.iter().find(|f| f.name == p.name));
        let alive = known.map_or(&[][..], |forward| &forward.binds);
        let binds = self.forward_binds(draft, alive, notes);
        let whose = format!("log-forward section '{}'", p.name);
        let targets = self.log_targets(&p.log, &whose, notes).into();
        let maxconn = p.maxconn.unwrap_or(u32::MAX);
        let state = match known {
            Some(known) => {
                if known.maxconn != maxconn {
                    self.forward_limits.push((known.state.clone(), maxconn));
                }
                known.state.clone()
            }
            None => {
                let state = model::Proxy::new(&p.name, 0, None, self.ground.world.workers);
                state.front.maxconn.store(maxconn, Relaxed);
                Arc::new(state)
            }
        };
        Forward {
            name: p.name.clone(),
            state,
            binds,
            datagrams: self.datagrams(draft),
            log: Logging { targets, ..Logging::default() },
            maxconn,
            backlog: p.backlog,
            timeout: p.timeouts.client,
            framing: draft.framing,
            unread: draft.unread,
            host: draft.host,
        }
    }

    fn forward_binds(&mut self, draft: &ForwardDraft, alive: &[Bind], notes: &mut Diagnostics) -> Vec<Bind> {
        let (threads, workers) = (self.threads(), self.ground.world.workers);
        let mut out = Vec::new();
        for bind in &draft.proxy.binds {
            let tls = self.acceptor(bind, &draft.proxy, None, notes);
            if let Some(mux) = bind.proto.filter(|mux| mux.towards_clients(draft.proxy.mode) != Fit::Spoken) {
                let (label, place) = (draft.proxy.label(), self.ground.place(bind.span));
                let text = format!(
                    "{label} : MUX protocol '{}' is not usable for 'bind {}' at [{place}].",
                    mux.name(),
                    bind.text
                );
                notes.push(refusal(bind.span, text));
            }
            for (position, address) in bind.addresses.iter().enumerate() {
                let id = u32::try_from(out.len() + 1).unwrap_or(u32::MAX);
                let name = bind.name.clone().unwrap_or_else(|| format!("sock-{id}").into());
                let guid = bind.guid(position);
                let same = |was: &&Bind| {
                    let state = &was.state;
                    (&state.name, state.id) == (&name, id) && state.guid.as_deref() == guid.as_deref()
                };
                let known = alive.iter().find(same).map(|was| was.state.clone());
                let state = known.unwrap_or_else(|| Arc::new(bind::listener(&name, id, guid, workers)));
                let threads = shards::share(bind, position, threads, &self.thread_groups);
                let mptcp = bind.mptcp.contains(address);
                let settings = Bind { threads, mptcp, tls: tls.clone(), state, ..bind.settings.clone() };
                out.push(self.sockets.apply(address, settings));
            }
        }
        out
    }

    fn datagrams(&self, draft: &ForwardDraft) -> Vec<Dgram> {
        let threads = self.threads();
        let each =
            draft.datagrams.iter().flat_map(|bind| bind.addresses.iter().enumerate().map(move |a| (bind, a)));
        each.map(|(bind, (position, address))| Dgram {
            address: address.clone(),
            interface: bind.settings.interface.clone(),
            namespace: bind.settings.namespace,
            transparent: bind.settings.transparent,
            v6only: bind.settings.v6only,
            threads: shards::share(bind, position, threads, &self.thread_groups),
            place: bind.settings.place.clone(),
        })
        .collect()
    }
}
