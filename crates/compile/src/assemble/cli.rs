//! The sockets of the runtime API (`stats socket`), finished.

use program::{Bind, Mode};
use syntax::Diagnostics;

use super::Assembly;
use crate::draft::{BindDraft, Draft, Kind};
use crate::global::draft::GlobalDraft;
use crate::mux::Fit;
use crate::notes::{refusal, remark};

/// What the runtime API is called where a line has to belong to a proxy.
pub(super) const PROXY: &str = "GLOBAL";

impl Assembly<'_> {
    /// One listener for each address of the lines.
    pub(super) fn cli(&mut self, g: &GlobalDraft, notes: &mut Diagnostics) -> Vec<Bind> {
        let workers = self.ground.world.workers;
        let mut proxy = Draft::new(Kind::Frontend);
        (proxy.name, proxy.mode) = (PROXY.into(), Mode::Tcp);
        let mut out = Vec::new();
        for draft in &g.cli {
            let tls = self.acceptor(draft, &proxy, None, notes);
            self.speaks_itself(draft, &proxy, notes);
            if tls.is_some() && draft.settings.expose_sockets {
                let text = format!(
                    "Proxy '{PROXY}': no sockets are handed over TLS, 'expose-fd' has no effect for 'bind {}' at [{}].",
                    draft.text,
                    self.ground.place(draft.span)
                );
                notes.push(remark(draft.span, text));
            }
            for address in &draft.addresses {
                let id = u32::try_from(out.len() + 1).unwrap_or(u32::MAX);
                let name = draft.name.clone().unwrap_or_else(|| format!("sock-{id}").into());
                let state = crate::bind::listener(&name, draft.id.unwrap_or(id), draft.guid(0), workers);
                // `unix-bind` says nothing of these.
                let mptcp = draft.mptcp.contains(address);
                let (state, address) = (state.into(), address.clone());
                out.push(Bind { state, address, mptcp, tls: tls.clone(), ..draft.settings.clone() });
            }
        }
        out
    }

    /// Refuses protocols (`proto`) that the runtime API does not speak.
    fn speaks_itself(&self, draft: &BindDraft, proxy: &Draft, notes: &mut Diagnostics) {
        if let Some(mux) = draft.proto.filter(|mux| mux.towards_clients(proxy.mode) != Fit::Spoken) {
            let (label, place) = (proxy.label(), self.ground.place(draft.span));
            let text = format!(
                "{label} : MUX protocol '{}' is not usable for 'bind {}' at [{place}].",
                mux.name(),
                draft.text
            );
            notes.push(refusal(draft.span, text));
        }
    }
}
