//! `bind` lines of a proxy, finished.

use std::collections::HashSet;
use std::sync::Arc;

use program::{Bind, Mode};
use syntax::Diagnostics;

use super::{Assembly, shards};
use crate::bind;
use crate::draft::{BindDraft, Draft, ThreadRange};
use crate::mux::Fit;
use crate::notes::refusal;
use crate::tls::words::offers_h3;

impl Assembly<'_> {
    /// The listeners of a proxy, one for each address of its `bind` lines.
    pub(super) fn binds(&mut self, index: usize, p: &Draft, notes: &mut Diagnostics) -> Vec<Bind> {
        let threads = self.threads();
        let mut ids = Vec::new();
        for draft in &p.binds {
            // The number given is that of the first address of its line.
            let rest = draft.addresses.iter().skip(1).map(|_| None);
            ids.extend(draft.addresses.first().map(|_| draft.id).into_iter().chain(rest));
        }
        let alive = self.alive_binds(index);
        let known = self.keep_numbers(p, &alive, &mut ids);
        super::identity::fill(ids.iter_mut(), 1);
        let mut ids = ids.into_iter().zip(known);
        let listeners = self.declared.get(index).filter(|_| self.ground.before.is_none());
        let named =
            listeners.map(|declared| declared.state.front.listeners.read().clone()).unwrap_or_default();
        let mut out = Vec::new();
        let certificates = self.frontend_list(p, notes);
        for draft in &p.binds {
            let mut found = Diagnostics::new();
            let tls = self.acceptor(draft, p, certificates.as_deref(), &mut found);
            notes.extend(found.settling());
            self.bind_threads(draft, p, notes);
            self.frames_fit(draft, p, notes);
            self.no_h3_over_tcp(draft, p, notes);
            if let Some(mux) = draft.proto.filter(|mux| mux.towards_clients(p.mode) != Fit::Spoken) {
                let place = self.ground.place(draft.span);
                let text = format!(
                    "{} : MUX protocol '{}' is not usable for 'bind {}' at [{place}].",
                    p.label(),
                    mux.name(),
                    draft.text
                );
                notes.push(refusal(draft.span, text));
            }
            for (position, address) in draft.addresses.iter().enumerate() {
                let (id, known) = ids.next().unwrap_or_default();
                let id = id.unwrap_or(0);
                let name = draft.name.clone().unwrap_or_else(|| format!("sock-{id}").into());
                let guid = draft.guid(position);
                let same = |l: &Arc<model::proxy::Listener>| {
                    l.name == name && l.id == id && l.guid.as_deref() == guid.as_deref()
                };
                let state = known
                    .filter(same)
                    .or_else(|| named.iter().find(|l| same(l)).cloned())
                    .unwrap_or_else(|| Arc::new(bind::listener(&name, id, guid, self.ground.world.workers)));
                let settings = Bind {
                    threads: shards::share(draft, position, threads, &self.thread_groups),
                    mptcp: draft.mptcp.contains(address),
                    tls: tls.clone(),
                    ..draft.settings.clone()
                };
                out.push(self.sockets.apply(address, Bind { state, ..settings }));
            }
        }
        out
    }

    /// Refuses HTTP/3 where clients of TCP are offered it, unless experiments are allowed. Nothing speaks it
    /// there but HAProxy.
    fn no_h3_over_tcp(&self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let offered = draft.proto.is_none() && p.mode == Mode::Http && offers_h3(&draft.tls.words);
        if !offered || self.memory.experimental {
            return;
        }
        let place = self.ground.place(draft.span);
        let text = format!(
            "HTTP/3 on TCP listed via ALPN on {} at [{place}] relies on the experimental QMux protocol, must be allowed via a global 'expose-experimental-directives'.",
            p.label()
        );
        notes.push(refusal(draft.span, text));
    }

    /// The listeners of a proxy that is alive.
    fn alive_binds(&self, index: usize) -> Vec<Bind> {
        if self.declared.get(index).is_none_or(|declared| declared.state.front.listeners.read().is_empty()) {
            return Vec::new();
        }
        let state = self.declared.get(index).map(|declared| &declared.state);
        let Some((before, state)) = self.ground.before.zip(state) else { return Vec::new() };
        let found = before.proxies.beginning().iter().find(|p| Arc::ptr_eq(&p.state, state));
        found.map_or_else(Vec::new, |p| p.binds.clone())
    }

    /// Gives listeners that are alive, which are known by their addresses, the numbers that they have; their
    /// live state, in the order of the addresses.
    fn keep_numbers(
        &self,
        p: &Draft,
        alive: &[Bind],
        ids: &mut [Option<u32>],
    ) -> Vec<Option<Arc<model::proxy::Listener>>> {
        let mut left: Vec<&Bind> = alive.iter().collect();
        let mut given: HashSet<u32> = ids.iter().flatten().copied().collect();
        let mut known = Vec::with_capacity(ids.len());
        let addresses = p.binds.iter().flat_map(|draft| draft.addresses.iter().map(move |a| (draft, a)));
        for ((draft, address), id) in addresses.zip(ids) {
            let whole = self.sockets.apply(address, draft.settings.clone()).address;
            let found = left.iter().position(|bind| bind.address == whole).map(|at| left.swap_remove(at));
            let state = found.map(|bind| bind.state.clone());
            if let (None, Some(state)) = (&*id, &state)
                && given.insert(state.id)
            {
                *id = Some(state.id);
            }
            known.push(state);
        }
        known
    }

    /// HTTP/2 needs buffers that its frames fit in.
    fn frames_fit(&self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let Some(size) = self.memory.small_buffers.filter(|_| p.mode == Mode::Http) else { return };
        // A protocol that is not negotiated says so itself.
        let alpn = draft.tls.words.alpn.as_deref().filter(|alpn| draft.proto.is_none() || alpn.len() > 1);
        if alpn.into_iter().flatten().any(|name| name == b"h2") {
            let (name, place) = (&p.name, self.ground.place(draft.span));
            let text = format!(
                "HTTP frontend '{name}' enables HTTP/2 via ALPN at [{place}], so global.tune.bufsize must be at least 16384 bytes ({size} now)."
            );
            notes.push(refusal(draft.span, text));
        }
    }

    /// Threads and groups that a `thread` word names must be there.
    fn bind_threads(&self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let workers = self.ground.world.workers as u32;
        let lost = draft.groups.iter().find(|group| **group > self.thread_groups.count());
        let there = |range: &ThreadRange| match range.group {
            None => range.from <= workers,
            Some(group) => range.from as usize <= self.thread_groups.threads(group).len(),
        };
        let (verb, what) = match lost {
            Some(group) => ("", format!("non-existing thread group {group}")),
            None if draft.threads.is_empty() || draft.threads.iter().any(there) => {
                return;
            }
            None => match draft.groups.first() {
                Some(group) => ("only ", format!("threads not belonging to group {group}")),
                None => ("only ", "non-existing threads".to_owned()),
            },
        };
        let (label, place) = (p.label(), self.ground.place(draft.span));
        let text = format!(
            "{label}: 'thread' directive {verb}references {what} in 'bind {}' at [{place}].",
            draft.text
        );
        notes.push(refusal(draft.span, text));
    }
}
