//! `bind` lines of a proxy, finished.

use std::sync::Arc;

use program::{Bind, Mode};
use syntax::Diagnostics;

use super::Assembly;
use crate::bind;
use crate::draft::{BindDraft, Draft};
use crate::mux::Fit;
use crate::notes::refusal;

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
        super::identity::fill(ids.iter_mut(), 1);
        let mut ids = ids.into_iter();
        let mut out = Vec::new();
        let known = self.declared[index].state.front.listeners.read().clone();
        let certificates = self.frontend_list(p, notes);
        for draft in &p.binds {
            let mut found = Diagnostics::new();
            let tls = self.acceptor(draft, p, certificates.as_deref(), &mut found);
            notes.extend(found.settling());
            self.bind_threads(draft, p, notes);
            self.frames_fit(draft, p, notes);
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
                let id = ids.next().flatten().unwrap_or(0);
                let name = draft.name.clone().unwrap_or_else(|| format!("sock-{id}").into());
                let guid = draft.guid(position);
                let same = |l: &&Arc<model::proxy::Listener>| {
                    l.name == name && l.id == id && l.guid.as_deref() == guid.as_deref()
                };
                let found = known.iter().find(same).cloned();
                let state = found
                    .unwrap_or_else(|| Arc::new(bind::listener(&name, id, guid, self.ground.world.workers)));
                let settings = Bind {
                    threads: bind::mask(&draft.threads, threads),
                    tls: tls.clone(),
                    ..draft.settings.clone()
                };
                out.push(self.sockets.apply(address, Bind { state, ..settings }));
            }
        }
        out
    }

    /// HTTP/2 needs buffers that its frames fit in.
    fn frames_fit(&self, draft: &BindDraft, p: &Draft, notes: &mut Diagnostics) {
        let Some(size) = self.memory.small_buffers.filter(|_| p.mode == Mode::Http) else { return };
        if draft.tls.words.alpn.iter().flatten().any(|name| name == b"h2") {
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
        let lost = draft.groups.iter().find(|group| **group > self.thread_groups);
        let (verb, what) = match lost {
            Some(group) => ("", format!("non-existing thread group {group}")),
            None if draft.threads.is_empty() || draft.threads.iter().any(|(from, _)| *from <= workers) => {
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
