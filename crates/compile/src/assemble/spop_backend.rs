//! Backends of SPOE agents (`mode spop`): what has no meaning where filters ask and no client does.

use program::Mode;
use syntax::{Diagnostic, Diagnostics, Style};

use super::{Assembly, checks, log_backend, rules};
use crate::draft::Draft;
use crate::notes::{refusal, remark};

impl Assembly<'_> {
    /// Says what has no effect in the mode of a proxy.
    pub(super) fn idle(&self, p: &Draft, parsed: &rules::Parsed, notes: &mut Diagnostics) {
        checks::server_cookies(p, notes);
        log_backend::idle(p, parsed.rules.tells_tcp(), notes);
        self.agents_backend(p, notes);
    }

    /// Says what of a backend of agents has no effect, and refuses clients.
    fn agents_backend(&self, p: &Draft, notes: &mut Diagnostics) {
        if p.mode != Mode::Spop || p.kind.is_defaults() {
            return;
        }
        let label = p.label();
        if !p.binds.is_empty() || !p.kind.is_back() {
            let text = format!("{label} uses 'mode spop', which takes no connections of clients.");
            notes.push(refusal(p.span, text));
        }
        for draft in p.servers.iter().filter(|s| s.send_proxy.version().is_some()) {
            let at = self.ground.place(draft.span);
            let text = format!("[{at}] : 'send-proxy*' server option is unsupported there, ignoring it");
            notes.push(Diagnostic::warning(draft.span, text).styled(Style::Bare));
        }
        if !p.filters.is_empty() {
            let text = format!(
                "filters of {label} have no effect in Harrier: what is asked there passes none ('mode spop')."
            );
            notes.push(remark(p.span, text));
        }
    }
}
