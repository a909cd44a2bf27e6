//! What the farm tells: lines go to the logs, and sessions end.

use std::sync::Arc;

use farm::{Above, Seen};
use lang::Env;
use lang::env::Side;
use model::mail::Letter;
use model::term::Cause;

use crate::lines;
use crate::live::{View, Waiting};
use crate::sessions::Session;
use crate::worker::with_worker;

/// Those above the farm are reached through the worker of the thread.
pub struct ToWorker;

impl Above for ToWorker {
    fn line(&self, proxy: u32, level: u8, text: &str) {
        with_worker(|w| lines::proxy_line(w, proxy, level, text));
    }

    fn console(&self, word: &str, text: &str) {
        with_worker(|w| lines::console(w, word, text));
    }

    fn mail(&self, letter: Letter) {
        with_worker(|w| crate::mail::post(w, letter));
    }

    fn end_sessions(&self, cause: Cause, proxy: u32, of: &dyn Fn(u32) -> bool) {
        with_worker(|w| {
            let there = |s: &Session| {
                let (backend, server) = s.place_in(&w.shared.program);
                backend == Some(proxy) && server.is_some_and(of)
            };
            w.sessions.kill(cause, there)
        });
    }

    fn let_go(&self, server: &Arc<model::Server>) {
        with_worker(|w| {
            for session in w.sessions.all() {
                if let Some(own) = session.own.borrow_mut().as_mut() {
                    own.let_go(server);
                }
            }
        });
    }

    fn constant(&self, expr: &lang::Expr) -> Option<Box<[u8]>> {
        with_worker(|w| crate::process_vars::constant(&w.shared.program, expr)).flatten()
    }

    fn evaluate(&self, seen: Seen<'_>, f: &mut dyn FnMut(&Env<'_>)) {
        let Seen { conn, txn, answer, socket } = seen;
        with_worker(|w| {
            w.with_arena(|arena| {
                let response = Waiting { data: answer, over: true, ..Waiting::default() };
                let view = View { response, upstream: socket, ..View::of_txn(w, conn, txn) };
                f(&Env { conn, txn, live: &view, arena, side: Side::Response, last: true });
            });
        });
    }
}
