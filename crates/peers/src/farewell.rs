//! What a process that stops tells the one that takes its place: everything.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::hub::Hub;
use crate::{door, session};

/// How often the other process is looked for.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// Keeps the process from ending before it has taught. It is held from the start, as by other listeners, for
/// nobody may find the process without work between its last connection and the teaching.
pub(crate) struct Stay(Rc<Hub>);

impl Stay {
    pub(crate) fn begin(hub: &Rc<Hub>) -> Stay {
        hub.program.world.process.accepting.fetch_add(1, Relaxed);
        Stay(hub.clone())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.0.program.world.process.accepting.fetch_sub(1, Relaxed);
    }
}

/// Connects to where this process listened, and teaches whoever listens there now.
pub(crate) async fn teach(hub: Rc<Hub>) {
    let section = hub.section();
    let own = hub.own.borrow().clone();
    let Some(addr) = own else { return };
    let at = hub.slots.len() - 1;
    for _ in 0..TRIES {
        if let Ok((transport, input)) = door::visit(&hub, at, &addr, &section.own_way).await {
            return session::run(&hub, at, transport, input).await;
        }
        rt::sleep(PAUSE).await;
    }
}
