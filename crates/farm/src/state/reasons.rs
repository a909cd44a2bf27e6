//! Several reasons for a maintenance or a drain: what is said when one goes and another stays.

use model::server::admin;
use program::log::level;

use super::Changes;
use crate::At;

impl Changes<'_> {
    /// One of several reasons for a maintenance is gone.
    pub(super) fn remain_in_maintenance(&self, at: At, gone: u32) {
        let left = self.server(at).state.admin();
        if gone & admin::FMAINT != 0 {
            let via = if left & admin::IMAINT != 0 { self.via_tracked(at) } else { String::new() };
            let what = format!("is leaving forced maintenance but remains in maintenance{via}.");
            self.line(at, level::NOTICE, &what);
        }
        if gone & admin::IMAINT != 0 && left & admin::FMAINT != 0 {
            self.line(at, level::NOTICE, "remains in forced maintenance.");
        }
        if gone & admin::RMAINT != 0 {
            let name = self.shown_name(at);
            self.line(at, level::NOTICE, &format!("('{name}') resolves again but remains in maintenance."));
        }
    }

    /// It is drained still, for another reason than before or in another state.
    pub(super) fn remain_in_drain(&self, at: At) {
        let what = match self.server(at).state.admin() & admin::FDRAIN != 0 {
            true => "remains in forced drain mode.".to_owned(),
            false => format!("remains in drain mode{}.", self.via_tracked(at)),
        };
        self.line(at, level::NOTICE, &what);
    }

    /// Through whom it is in its state, where it tracks a server.
    pub(super) fn via_tracked(&self, at: At) -> String {
        let track = self.server(at).track;
        track.map(|(proxy, server)| self.via(At { proxy, server })).unwrap_or_default()
    }
}
