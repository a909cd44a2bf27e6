//! Changes of servers as events ([`model::events`]).

use model::events::{Checked, Detail, Event, kind};
use model::server::Op;

use super::{Changes, mail};
use crate::{At, FarmWorker};

/// Whether anybody wants to know of events of these kinds about a server, or mails are sent of them.
pub(crate) fn is_wanted(worker: &FarmWorker, at: At, kinds: u32) -> bool {
    let program = &worker.farm.program;
    program.world.events.wants(kinds) || mail::is_sent(&program.proxy(at.proxy), kinds)
}

/// Tells of a server, if anybody wants to know.
pub(crate) fn tell(worker: &FarmWorker, at: At, kind: u32, detail: impl FnOnce() -> Detail) {
    if !is_wanted(worker, at, kind) {
        return;
    }
    let program = &worker.farm.program;
    let proxy = program.proxy(at.proxy);
    let Some(server) = program.find_server(at.proxy, at.server) else { return };
    let state = &server.state;
    let revision = state.revision.load(std::sync::atomic::Ordering::Relaxed);
    let event = Event {
        kind,
        proxy: ((*proxy.name).into(), proxy.state.id),
        server: ((*server.name).into(), state.id, revision),
        when: rt::wall().as_secs(),
        detail: detail(),
    };
    program.world.events.tell(&event);
    mail::write(worker, at, &proxy, &event);
}

/// What led to a change of the operational state.
pub(super) enum By<'c> {
    /// An administrative change.
    Admin,
    /// A check, or something in words.
    Else(Option<Checked>, &'c str),
}

impl Changes<'_> {
    /// A check leads to the next change.
    pub(crate) fn led_by(&self, checked: Checked) {
        *self.checked.borrow_mut() = Some(checked);
    }

    /// The operational state is another.
    pub(super) fn tell_state(&self, at: At, was: Op, by: By<'_>) {
        let op = self.server(at).state.op();
        if was == op {
            return;
        }
        match (was, op) {
            (_, Op::Stopped) => tell(self.worker, at, kind::DOWN, || Detail::Nothing),
            (Op::Stopped, _) => tell(self.worker, at, kind::UP, || Detail::Nothing),
            _ => {}
        }
        tell(self.worker, at, kind::STATE, || {
            let (admin, check, cause) = match by {
                By::Admin => (true, None, String::new()),
                By::Else(check, cause) => (false, check, cause.trim_start_matches([',', ' ']).to_owned()),
            };
            Detail::State { admin, check, cause, change: (was, op), requeued: self.requeued.get() }
        });
    }

    /// The administrative state is another.
    pub(super) fn tell_admin(&self, at: At, change: (u32, u32), cause: &str) {
        let requeued = self.requeued.get();
        tell(self.worker, at, kind::ADMIN, || Detail::Admin { cause: cause.to_owned(), change, requeued });
    }
}
