//! `reload in-place`: the configuration is read again and takes the place of the one that runs.

use std::pin::Pin;

use engine::worker::Reloaded;
use parking_lot::Mutex;
use program::listener::Level;
use rt::RemoteNotify;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// How long it may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["reload", "in-place"],
    "[check]",
    "read the configuration again and adopt it in this process",
    Level::Admin,
    in_place,
)];

/// `reload in-place [check]`.
pub fn in_place<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let check = match (call.arg(0), call.arg(1)) {
            ("", _) => false,
            ("check", "") => true,
            _ => return Err("'reload in-place' takes nothing but 'check'.".into()),
        };
        let Some(reloader) = call.shared().reloader.clone() else {
            return Err("This process has no configuration to read again.".into());
        };
        let answer: std::sync::Arc<(Mutex<Option<Reloaded>>, RemoteNotify)> = std::sync::Arc::default();
        let theirs = answer.clone();
        reloader.reload(
            check,
            Box::new(move |came| {
                *theirs.0.lock() = Some(came);
                theirs.1.notify();
            }),
        );
        let mut timer = rt::Timer::at(rt::now() + PATIENCE);
        std::future::poll_fn(|cx| match answer.1.poll_notified(cx) {
            std::task::Poll::Ready(()) => std::task::Poll::Ready(()),
            std::task::Poll::Pending => timer.poll_expired(cx),
        })
        .await;
        let came = answer.0.lock().take();
        let Some(Reloaded { success, text }) = came else { return Err("The master does not answer.".into()) };
        // As a master answers its own `reload`.
        Ok(Reply::Dump(format!("Success={}\n--\n{text}", u8::from(success))))
    })
}
