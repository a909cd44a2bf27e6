//! OCSP responders: asking for responses in time, and when somebody says so (manual, `ocsp-update`;
//! management manual, `update ssl ocsp-response`).
//!
//! One worker looks once a second at what is due, and asks for one response after the other. [`place`] reads
//! where to ask and writes the request, [`ask`] carries it there, again if need be, and reads what comes
//! back, [`line`] tells the log.

mod ask;
mod line;
mod request;

use std::rc::Rc;
use std::time::Duration;

use tls::store::{Came, Question};

use crate::Worker;

/// How often the calendar is looked at.
const TICK: Duration = Duration::from_secs(1);

/// Keeps responses fresh from now on if any is to be kept so and no task does it yet: at the start, and after
/// each command that may have brought the first of them.
pub fn start(worker: &Rc<Worker>) {
    let program = &worker.shared.program;
    if !program.global.ocsp.disabled && program.tls.begin_asking() {
        worker.keep(run(worker.clone()));
    }
}

fn now() -> i64 {
    i64::try_from(rt::wall().as_secs()).unwrap_or(0)
}

async fn run(worker: Rc<Worker>) {
    let program = worker.shared.program.clone();
    let stopping = || program.world.process.stopping.load(std::sync::atomic::Ordering::Relaxed);
    while !stopping() && !program.tls.may_end_asking() {
        for (name, question) in program.tls.due(program.global.ocsp.pace, now()) {
            update(&worker, &name, &question).await;
        }
        rt::sleep(TICK).await;
    }
}

/// Asks for the response of a certificate and takes it; what came of it.
pub async fn update(worker: &Rc<Worker>, name: &str, question: &Question) -> Came {
    let program = &worker.shared.program;
    let asked = match crate::inner::place::Place::parse(&question.uri) {
        Some(place) => Some(ask::ask(worker, &place, &question.id).await),
        None => None,
    };
    let came = match asked.as_ref().and_then(|a| a.answer.as_ref()) {
        Some(answer) if answer.status != 200 => Came::HttpError,
        Some(answer) if !answer.is_response => Came::NoResponse,
        Some(answer) => program.tls.set_response(&answer.body, now(), true).into(),
        None => Came::HttpError,
    };
    let update = program.tls.asked(name, &question.id, came, program.global.ocsp.pace, now());
    let (number, words) = came.words();
    let (failures, successes) = (update.failures, update.successes);
    let text = format!("<OCSP-UPDATE> {name} {number} \"{words}\" {failures} {successes}");
    crate::lines::global_line(worker, program::log::level::NOTICE, &text);
    if let Some(asked) = asked.filter(|a| a.story.is_worth_telling()) {
        crate::lines::global_line(worker, program::log::level::INFO, &asked.story.line());
    }
    came
}
