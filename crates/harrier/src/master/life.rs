//! The life of a master, from its start or its return to its end: signals, children, and its socket.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rt::WorkerSpec;
use rt::sys::{self, Signal, Signals};

use super::cli;
use super::watch::{Hub, Parts};
use crate::say;
use supervisor::machine::Event;

/// Runs until the last worker has ended.
pub fn run(parts: Parts) -> ExitCode {
    let _ = sys::block_signals();
    let code = Arc::new(AtomicU8::new(1));
    let told = code.clone();
    let parts = Mutex::new(Some(parts));
    let spec = WorkerSpec { name: "master".to_owned(), affinity: None };
    let ended = rt::run(vec![spec], move |_| {
        let parts = parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(parts) = parts {
            begin(parts, told.clone());
        }
    });
    if let Err(e) = ended {
        say::alert(&format!("Cannot run the master: {}.", say::reason(&e)));
        return ExitCode::FAILURE;
    }
    ExitCode::from(code.load(Relaxed))
}

fn begin(parts: Parts, code: Arc<AtomicU8>) {
    let (hub, began, listener) = Hub::new(parts, code);
    hub.handle(began);
    hub.hear();
    rt::spawn(signals(hub.clone()));
    if let Some((listener, bind)) = listener {
        rt::spawn(cli::serve(hub, listener, bind));
    }
}

/// Obeys signals, and looks after children.
async fn signals(hub: Rc<Hub>) {
    let Ok(mut signals) = Signals::open() else { return hub.finish(1) };
    // Some may have ended while the program was replaced.
    hub.reap();
    loop {
        match signals.next().await {
            Signal::Chld => hub.reap(),
            signal => hub.handle(Event::Signal(signal)),
        }
    }
}
