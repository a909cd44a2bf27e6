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
        self.agents_backend(p, parsed, notes);
    }

    /// Says what of a backend of agents has no effect, and refuses clients.
    fn agents_backend(&self, p: &Draft, rules: &rules::Parsed, notes: &mut Diagnostics) {
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
        let sets = &rules.rules;
        let idle = [
            (!sets.tcp_content.is_empty(), "'tcp-request content' rules"),
            (!sets.tcp_response.is_empty(), "'tcp-response content' rules"),
            (!rules.use_server.is_empty(), "'use-server' rules"),
            (!rules.stick.is_empty(), "'stick' rules"),
        ];
        for (_, what) in idle.iter().filter(|(given, _)| *given) {
            let text = format!(
                "{what} of {label} have no effect in Harrier: what SPOE filters ask meets no rules ('mode spop')."
            );
            notes.push(remark(p.span, text));
        }
    }
}
