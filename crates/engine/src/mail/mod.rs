//! Mails about servers (`email-alert`, `mailers` sections; manual, section 12.3), sent by SMTP.
//!
//! What is mailed is decided in the farm; here letters go out. Each mailer has its own queue of letters, and
//! one task sends them in their order, [`dialogue`] by dialogue, on the worker that left the first of them.
//! It is over when the queue is empty, so a process that mails nothing has no task for it. A mailer that
//! stalls holds up its own queue only, which has a limit. A letter outlives a reload in place: it holds what
//! it needs.

mod dialogue;

use std::net::SocketAddr;
use std::time::Duration;

use model::mail::Letter;
use program::log::level;

use crate::lines;
use crate::worker::{Worker, with_worker};

use dialogue::Trouble;

/// How long to wait before a letter is tried again, for each further try. A mailer that did not get one of
/// them gets the next ones once only, until it takes one: who waits behind them should not wait so long.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Sends a letter to each mailer that it names, in time.
pub fn post(worker: &Worker, letter: Letter) {
    let mails = &worker.shared.program.world.mails;
    for mailer in &letter.mail.mailers {
        if mails.post(mailer.address, letter.clone()) {
            rt::spawn(send_all(mailer.address));
        }
    }
}

/// Sends the letters for a mailer until there are no more.
async fn send_all(mailer: SocketAddr) {
    let mut is_dead = false;
    let next = || with_worker(|w| w.shared.program.world.mails.next(mailer)).flatten();
    while let Some((letter, missed)) = next() {
        if missed > 0 {
            warn(&letter, mailer, &format!("{missed} were dropped because it takes them too slowly"));
        }
        let pauses = if is_dead { &[][..] } else { &PAUSES[..] };
        is_dead = match send(mailer, &letter, pauses).await {
            Ok(()) => false,
            Err(trouble) => {
                warn(&letter, mailer, &trouble.words(letter.mail.timeout));
                // Who refuses a letter for good takes the next one perhaps.
                !trouble.is_final()
            }
        };
    }
}

/// Sends a letter, after pauses again if that may help.
async fn send(mailer: SocketAddr, letter: &Letter, mut pauses: &[Duration]) -> Result<(), Trouble> {
    loop {
        let trouble = match dialogue::send(mailer, letter).await {
            Ok(()) => return Ok(()),
            Err(trouble) => trouble,
        };
        match pauses.split_first() {
            Some((pause, rest)) if !trouble.is_final() => {
                pauses = rest;
                rt::sleep(*pause).await;
            }
            _ => return Err(trouble),
        }
    }
}

/// Says why a mail did not come where it should: whoever waits for mails looks into the log when none comes.
fn warn(letter: &Letter, mailer: SocketAddr, why: &str) {
    let named = letter.mail.mailers.iter().find(|m| m.address == mailer);
    let name = named.map_or("", |m| &m.name);
    let text = format!("Can't send email alert to {name}: {why}.");
    with_worker(|w| {
        lines::console(w, "WARNING", &text);
        lines::global_line(w, level::WARNING, &text);
    });
}
