//! Floor 9: peers, processes that tell each other of the entries of their stick tables (manual, section
//! 11.2).
//!
//! Everything of a `peers` section happens on one worker: a [`hub`] knows its peers and from whom is learned,
//! a task for each of the others connects where nobody has ([`door`] does both that and the handshake), and a
//! [`session`] is the task of a connection. What it says comes from [`teach`]; what it hears goes to
//! [`learn`]. Requests never wait for any of this: a change of an entry leaves a record in the log of its
//! table (`stick::updates`), which sessions read at their own pace.
#![forbid(unsafe_code)]

mod dict;
mod door;
mod farewell;
mod hub;
mod learn;
mod progress;
mod session;
mod teach;

use std::rc::Rc;

use engine::Worker;
use rt::Listener;

use hub::Hub;

/// Starts the sections that this worker looks after. `listener` gives that of a section, once; `takes_over`
/// says that an old process leaves, which teaches this one.
pub fn start(worker: &Rc<Worker>, listener: impl Fn(usize) -> Option<Listener>, takes_over: bool) {
    let program = &worker.shared.program;
    let workers = program.world.workers.max(1);
    for (index, _) in program.peers.iter().enumerate() {
        if index % workers == worker.index
            && let Some(listener) = listener(index)
        {
            let hub = Hub::new(worker.clone(), index, takes_over);
            hub.start(&listener);
            for slot in hub.slots.iter().filter(|s| !s.is_local()) {
                rt::spawn(door::knock(hub.clone(), slot.at));
            }
            rt::spawn(serve(hub, listener));
        }
    }
}

/// Accepts peers until the process stops; then the process that takes its place is taught.
async fn serve(hub: Rc<Hub>, listener: Listener) {
    let _stay = farewell::Stay::begin(&hub);
    door::open(hub.clone(), listener).await;
    farewell::teach(hub).await;
}
