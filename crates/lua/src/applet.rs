//! Services of scripts: the classes `AppletHTTP` and `AppletTCP`.
//!
//! A service sits at the other end of a socket in memory, where a server would be: it is sent a request of
//! HTTP/1, or bytes, and says its answer the same way. The engine does with it what it does with servers'.

use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use engine::worker::service::{Answer, Guest, Request, Service, StreamKind};
use mlua::{MultiValue, Value};
use wire::head::Head;
use wire::http1::Body;

use crate::failure::Failure;
use crate::fulfil::fulfil;
use crate::host::{Nothing, Serving};
use crate::io::Io;
use crate::run::{Run, Step};
use crate::scripts::{Functions, Scripts};
use crate::told;

/// A service of a script.
pub struct LuaService {
    /// The scripts.
    pub scripts: Arc<Scripts>,
    /// What log lines call it.
    pub shown: &'static str,
    /// What it speaks.
    pub kind: StreamKind,
    /// Its functions, by number of the state.
    pub functions: Functions,
}

impl Service for LuaService {
    fn name(&self) -> &'static str {
        self.shown
    }

    fn answer(&self, _: &Request<'_>) -> Answer {
        Answer { status: 500, refused: true, ..Answer::default() }
    }

    fn streams(&self) -> Option<StreamKind> {
        Some(self.kind)
    }

    fn serve(&self, guest: Guest) {
        let (scripts, functions) = (self.scripts.clone(), self.functions.clone());
        let (kind, shown) = (self.kind, self.shown);
        rt::spawn(async move {
            serve(&scripts, &functions, kind, shown, guest).await;
        });
    }
}

async fn serve(scripts: &Arc<Scripts>, functions: &Functions, kind: StreamKind, shown: &str, guest: Guest) {
    let Guest { worker, session, txn, changes, socket } = guest;
    let mut io = Io::of_tcp(socket);
    let head = match kind {
        StreamKind::Http => match io.head().await {
            Some(head) => Some(head),
            None => return worker.give_txn(txn),
        },
        StreamKind::Tcp => None,
    };
    let protocol = if kind == StreamKind::Http { "http" } else { "tcp" };
    let what = format!("Lua applet {protocol} '{shown}'");
    let Some((state, function)) = scripts.function(functions, worker.index) else {
        return worker.give_txn(txn);
    };
    let settings = state.settings.clone();
    let failed = match Run::new(&state, function, settings.service, true) {
        Err(failure) => Some(failure),
        Ok(mut run) => {
            crate::changes::enter(run.id, changes);
            let object = match &head {
                Some(head) => http_object(&state, run.id, head, io.left),
                None => state.make("tcp", run.id),
            };
            let failed = match object {
                Ok(object) => {
                    let resume = |run: &mut Run, args| {
                        worker.with_arena(|arena| {
                            let (worker, session, txn) = (&*worker, &*session, &*txn);
                            run.resume(&Serving { id: run.id, worker, session, txn, arena }, args)
                        })
                    };
                    drive(&mut run, MultiValue::from_iter([object]), &worker, &mut io, resume).await
                }
                Err(e) => Some(crate::failure::failure(&e)),
            };
            crate::changes::leave(run.id);
            failed
        }
    };
    if let Some(failure) = &failed {
        let text = failure.told(&what, state.number);
        worker.with_arena(|arena| {
            let host = Serving { id: u64::MAX, worker: &worker, session: &session, txn: &txn, arena };
            crate::host::within(&host, || told::failed(&settings, &text));
        });
    }
    worker.give_txn(txn);
    io.end(failed.is_some()).await;
}

fn http_object(state: &crate::state::State, id: u64, head: &Head, body: Body) -> mlua::Result<Value> {
    let lua = &state.lua;
    let made = lua.create_table()?;
    made.raw_set("method", lua.create_string(head.method())?)?;
    made.raw_set("version", lua.create_string(head.version_read())?)?;
    made.raw_set("path", lua.create_string(wire::uri::path(head.target()))?)?;
    made.raw_set("qs", lua.create_string(wire::uri::query(head.target()).unwrap_or_default())?)?;
    let length = if let Body::Length(n) = body { i64::try_from(n).unwrap_or(i64::MAX) } else { 0 };
    made.raw_set("length", length)?;
    made.raw_set("headers", crate::http::fields(lua, crate::http::pairs(head))?)?;
    state.make("http", (id, made))
}

/// Lets a script run to its end, with a client; why it failed, if it did. `resume` lets it run until it
/// waits.
async fn drive(
    run: &mut Run,
    mut args: MultiValue,
    worker: &Rc<Worker>,
    io: &mut Io,
    resume: impl Fn(&mut Run, MultiValue) -> Step,
) -> Option<Failure> {
    loop {
        match resume(run, std::mem::take(&mut args)) {
            Step::Done(_) => return None,
            Step::Failed(failure) => return Some(failure),
            Step::Waits(wait) => {
                let came = fulfil(wait, run, worker, Some(&mut *io)).await;
                if io.broken || io.socket.is_broken() {
                    // Nobody is there to be served.
                    return None;
                }
                match came.values(&run.state.lua) {
                    Ok(values) => args = values,
                    Err(e) => return Some(crate::failure::failure(&e)),
                }
            }
        }
    }
}

/// Runs a function that is no service with a client: a command of the runtime API.
pub async fn command(
    state: &Arc<crate::state::State>,
    function: mlua::Function,
    what: &str,
    words: &[String],
    worker: &Rc<Worker>,
    io: &mut Io,
) {
    let settings = state.settings.clone();
    let failed = match Run::new(state, function, settings.service, true) {
        Err(failure) => Some(failure),
        Ok(mut run) => converse(&mut run, words, worker, io).await,
    };
    if let Some(failure) = failed {
        told::failed(&settings, &failure.told(what, state.number));
    }
}

async fn converse(run: &mut Run, words: &[String], worker: &Rc<Worker>, io: &mut Io) -> Option<Failure> {
    let lua = run.state.lua.clone();
    let mut args = MultiValue::new();
    match run.state.make("tcp", run.id) {
        Ok(object) => args.push_back(object),
        Err(e) => return Some(crate::failure::failure(&e)),
    }
    for word in words {
        match lua.create_string(word) {
            Ok(word) => args.push_back(Value::String(word)),
            Err(e) => return Some(crate::failure::failure(&e)),
        }
    }
    drive(run, args, worker, io, |run, args| run.resume(&Nothing, args)).await
}
