//! Filters of scripts: what `core.register_filter` registers, at work on a stream.
//!
//! Callbacks about a head run where the stream is at hand. Those about data run while the engine moves them,
//! where it is not: they see a copy of the transaction as it was when the head had got its final form, and
//! variables that they set reach the transaction at the next moment of the stream.

mod data;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use engine::Worker;
use engine::connect::copied;
use engine::sessions::Session;
use engine::worker::service::Changes;
use lang::Words;
use lang::action::{Exec, Flow};
use lang::env::Side;
use lang::filter::{Data, Filter, Maker, Moment, Moments};
use lang::registry::FilterPlace;
use lang::words::Fault;
use mlua::{Function, MultiValue, Table, Value};
use model::Txn;

use crate::action::again;
use crate::failure::{Failure, failure};
use crate::here::with_worker;
use crate::host::{Acting, Host, Nothing, within};
use crate::run::{Run, Step};
use crate::scripts::Scripts;
use crate::shown::{Length, Wishes, index, of};
use crate::state::State;
use crate::told;
use wire::head::Known;

/// `filter.FLT_CFG_FL_HTX`: it may stand where HTTP is spoken.
const HTTP: i64 = 1;

/// What a callback said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Go on.
    Continue,
    /// Wait for more, or for a time.
    Wait,
    /// An error.
    Error,
    /// It failed itself.
    Failed,
}

/// Reads the words behind a filter's name: the script's own function makes of them what each stream gets one
/// of.
pub fn parse(
    scripts: &Arc<Scripts>,
    classes: &[(usize, (Table, Function))],
    name: &Arc<str>,
    words: &mut Words<'_>,
    place: &FilterPlace<'_>,
) -> Result<Arc<dyn Maker>, Fault> {
    let mut given = Vec::new();
    while let Some(word) = words.take() {
        given.push(word.to_vec());
    }
    let mut made = Vec::new();
    for (number, (class, function)) in classes {
        let Some(state) = scripts.states.get(number) else { continue };
        if let Some(object) = make(state, class, function, name, &given)? {
            // As in HAProxy, one that says nothing of HTTP sees none of it.
            let flags: i64 = object.get("flags").unwrap_or(0);
            if place.http && flags & HTTP == 0 {
                continue;
            }
            made.push((*number, object));
        }
    }
    Ok(Arc::new(Line { scripts: scripts.clone(), name: name.clone(), made }))
}

/// Runs the function that makes an object of a line; `None`: the line is to be ignored.
fn make(
    state: &Arc<State>,
    class: &Table,
    function: &Function,
    name: &str,
    words: &[Vec<u8>],
) -> Result<Option<Table>, Fault> {
    let wrong = |failure: Failure| Fault::new(failure.told(&format!("Lua filter '{name}'"), state.number));
    let lua = &state.lua;
    let values = || {
        let object = lua.create_table()?;
        let meta = lua.create_table()?;
        meta.raw_set("__index", class.clone())?;
        object.set_metatable(Some(meta))?;
        let list = lua.create_sequence_from(
            words.iter().map(|w| lua.create_string(w)).collect::<Result<Vec<_>, _>>()?,
        )?;
        Ok(MultiValue::from_iter([Value::Table(object), Value::Table(list)]))
    };
    let values = values().map_err(|e: mlua::Error| wrong(failure(&e)))?;
    let mut run = Run::free(state, function.clone()).map_err(wrong)?;
    match run.resume(&Nothing, values) {
        Step::Failed(failure) => Err(wrong(failure)),
        Step::Waits(_) => Err(wrong(Failure::Yield)),
        Step::Done(values) => match values.front() {
            Some(Value::Table(object)) => Ok(Some(object.clone())),
            _ => Ok(None),
        },
    }
}

/// A line, compiled.
struct Line {
    scripts: Arc<Scripts>,
    name: Arc<str>,
    /// What streams get one of, by state.
    made: Vec<(usize, Table)>,
}

impl Maker for Line {
    fn begin(&self, exec: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        let worker = exec.live.worker();
        let (number, object) = self.made.iter().find(|(number, _)| *number == 0 || *number == worker + 1)?;
        let state = self.scripts.states.get(number)?.clone();
        let shared = Shared {
            name: self.name.clone(),
            state,
            object: object.clone(),
            wishes: Wishes::default(),
            facts: RefCell::default(),
            changes: Changes::default(),
        };
        let acting = Acting::new(crate::state::host_id(false), exec, false);
        let made = shared.call(&Attending { acting, shared: &shared }, "new", |_, _| Ok(None));
        let Ok(Some(Value::Table(own))) = made else { return None };
        Some(Box::new(LuaFilter {
            shared: Rc::new(Shared { object: own, ..shared }),
            stage: [Stage::Idle; 2],
        }))
    }
}

/// A filter of a stream, as its callbacks and those who move its data see it.
pub struct Shared {
    name: Arc<str>,
    state: Arc<State>,
    object: Table,
    wishes: Wishes,
    facts: RefCell<Option<Facts>>,
    changes: Changes,
}

/// What callbacks about data see of the stream.
struct Facts {
    worker: Rc<Worker>,
    session: Rc<Session>,
    txn: Option<Box<Txn>>,
}

impl Drop for Facts {
    fn drop(&mut self) {
        if let Some(txn) = self.txn.take() {
            self.worker.give_txn(txn);
        }
    }
}

impl Shared {
    fn what(&self) -> String {
        format!("Lua filter '{}'", self.name)
    }

    /// Calls one of its functions with itself and `args`; `None`: it has no such function.
    fn call(
        &self,
        host: &dyn Host,
        name: &str,
        args: impl FnOnce(&State, u64) -> mlua::Result<Option<[Value; 2]>>,
    ) -> Result<Option<Value>, Failure> {
        let wrong = |e: mlua::Error| failure(&e);
        let function: Value = self.object.get(name).map_err(wrong)?;
        let Value::Function(function) = function else { return Ok(None) };
        let mut run = Run::new(&self.state, function, self.state.settings.session, false)?;
        let mut values = MultiValue::from_iter([Value::Table(self.object.clone())]);
        values.extend(args(&self.state, host.id()).map_err(wrong)?.into_iter().flatten());
        run.id = host.id();
        crate::changes::enter(run.id, self.changes.clone());
        let step = run.resume(host, values);
        crate::changes::leave(run.id);
        match step {
            Step::Done(values) => Ok(Some(values.front().cloned().unwrap_or(Value::Nil))),
            Step::Failed(failure) => Err(failure),
            Step::Waits(_) => Err(Failure::Yield),
        }
    }

    /// The same of a callback, with what it says. What is wrong is told.
    fn callback(
        &self,
        host: &dyn Host,
        name: &str,
        args: impl FnOnce(&State, u64) -> mlua::Result<Option<[Value; 2]>>,
    ) -> Said {
        match self.call(host, name, args) {
            Ok(Some(Value::Integer(0))) => Said::Wait,
            Ok(Some(Value::Integer(-1))) => Said::Error,
            Ok(_) => Said::Continue,
            Err(failure) => {
                let (text, said) = match failure {
                    Failure::Yield => (
                        format!(
                            "{}: yield functions like core.tcp() or core.sleep() are not allowed from '{name}' callback.",
                            self.what()
                        ),
                        Said::Continue,
                    ),
                    other => (other.told(&format!("{} ", self.what()), self.state.number), Said::Failed),
                };
                within(host, || told::failed(&self.state.settings, &text));
                said
            }
        }
    }

    /// How many bytes there are to be behind it, where that is known.
    fn due(&self, side: Side) -> Option<u64> {
        if let Length::Known(n) = self.wishes.length(side) {
            return Some(n);
        }
        let facts = self.facts.borrow();
        let txn = facts.as_ref()?.txn.as_deref()?;
        let head = if side == Side::Request { &txn.req } else { &txn.res };
        if self.wishes.length(side) == Length::Open || head.has(Known::TransferEncoding) {
            return None;
        }
        std::str::from_utf8(head.first(Known::ContentLength)?).ok()?.trim().parse().ok()
    }
}

/// The transaction and the channel of a direction.
fn channel(state: &State, id: u64, side: Side) -> mlua::Result<Option<[Value; 2]>> {
    let channel = state.make("channel", (id, side == Side::Response))?;
    Ok(Some([state.make("txn", id)?, channel]))
}

/// The transaction and the message of a direction.
fn message(state: &State, id: u64, side: Side) -> mlua::Result<Option<[Value; 2]>> {
    let message = state.make("msg", (id, side == Side::Response))?;
    Ok(Some([state.make("txn", id)?, message]))
}

/// A callback while the stream is at hand.
struct Attending<'a, 'x, 's> {
    acting: Acting<'a, 'x>,
    shared: &'s Shared,
}

impl Host for Attending<'_, '_, '_> {
    fn id(&self) -> u64 {
        self.acting.id
    }

    fn env(&self, look: &mut dyn FnMut(&lang::env::Env<'_>)) -> bool {
        self.acting.env(look)
    }

    fn exec(&self, change: &mut dyn FnMut(&mut Exec<'_>)) -> bool {
        self.acting.exec(change)
    }

    fn wishes(&self) -> Option<&Wishes> {
        Some(&self.shared.wishes)
    }
}

/// How far a direction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not begun.
    Idle,
    /// Its head is awaited, or its data are on their way.
    Begun,
    /// Its head was shown.
    Shown,
    /// Its data are shown, too.
    Flows,
}

/// A filter at work.
struct LuaFilter {
    shared: Rc<Shared>,
    stage: [Stage; 2],
}

impl LuaFilter {
    fn stage(&self, side: Side) -> Stage {
        of(self.stage, side)
    }

    fn advance(&mut self, side: Side, stage: Stage) {
        if let Some(place) = self.stage.get_mut(index(side)) {
            *place = stage;
        }
    }

    fn attend(
        &self,
        exec: &mut Exec<'_>,
        name: &str,
        args: impl FnOnce(&State, u64) -> mlua::Result<Option<[Value; 2]>>,
    ) -> Said {
        let acting = Acting::new(crate::state::host_id(false), exec, false);
        self.shared.callback(&Attending { acting, shared: &self.shared }, name, args)
    }

    /// The direction begins: it is told of the channel.
    fn start(&mut self, side: Side, exec: &mut Exec<'_>) {
        if self.stage(side) == Stage::Idle {
            self.advance(side, Stage::Begun);
            self.attend(exec, "start_analyze", |state, id| channel(state, id, side));
        }
    }

    /// The head has its final form.
    fn head(&mut self, side: Side, exec: &mut Exec<'_>) -> Flow {
        if self.stage(side) != Stage::Begun {
            return Flow::Next;
        }
        match self.attend(exec, "http_headers", |state, id| message(state, id, side)) {
            Said::Continue => self.advance(side, Stage::Shown),
            Said::Wait => return again(),
            Said::Error | Said::Failed => return Flow::Reject,
        }
        Flow::Next
    }

    /// The message went by without data: those who want them are told so.
    fn close(&mut self, side: Side, exec: &mut Exec<'_>) {
        if self.stage(side) == Stage::Shown && self.shared.wishes.wants(side) {
            self.advance(side, Stage::Flows);
            self.keep(exec);
            data::empty(&self.shared, side);
        }
    }

    /// Keeps what callbacks about data see of the stream.
    fn keep(&self, exec: &Exec<'_>) {
        let session = exec.live.session().and_then(|session| session.downcast::<Session>().ok());
        let (Some(session), Some(worker)) = (session, with_worker(Rc::clone)) else { return };
        let txn = Some(copied(&worker, exec.txn));
        *self.shared.facts.borrow_mut() = Some(Facts { worker, session, txn });
    }

    /// Gives variables that callbacks about data set to the transaction.
    fn settle(&self, exec: &Exec<'_>) {
        for (var, value) in std::mem::take(&mut *self.shared.changes.borrow_mut()) {
            lang::variables::write(&exec.env(), var, value);
        }
    }
}

impl Filter for LuaFilter {
    fn moments(&self) -> Moments {
        let requests = Moments::NONE.with(Moment::Rules).with(Moment::RequestHead);
        requests.with(Moment::Response).with(Moment::ResponseHead)
    }

    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        self.settle(exec);
        let side = moment.side();
        let flow = match moment {
            Moment::Rules => {
                self.start(Side::Request, exec);
                Flow::Next
            }
            Moment::Response => {
                self.close(Side::Request, exec);
                self.start(Side::Response, exec);
                Flow::Next
            }
            Moment::RequestHead | Moment::ResponseHead => self.head(side, exec),
            _ => Flow::Next,
        };
        self.settle(exec);
        // Data that are shown flow when the head has got its final form; in TCP, from here on.
        let wishes = &self.shared.wishes;
        let shown = match moment {
            Moment::RequestHead | Moment::ResponseHead => wishes.wants(side),
            _ => !exec.txn.has_req && wishes.any(),
        };
        if shown && matches!(flow, Flow::Next) {
            self.keep(exec);
        }
        flow
    }

    fn data(&mut self, side: Side) -> Option<Data> {
        let framed = self.shared.wishes.length(side) != Length::Kept;
        if !self.shared.wishes.wants(side) && !framed {
            return None;
        }
        let http = self.stage(side) == Stage::Shown || self.stage(side) == Stage::Flows;
        self.advance(side, Stage::Flows);
        Some(Data::Rewriter(Box::new(data::LuaData::new(self.shared.clone(), side, http))))
    }

    fn over(&mut self, exec: &mut Exec<'_>) {
        self.close(Side::Request, exec);
        self.close(Side::Response, exec);
        self.settle(exec);
        for side in [Side::Request, Side::Response] {
            if self.stage(side) != Stage::Idle {
                self.attend(exec, "end_analyze", |state, id| channel(state, id, side));
            }
        }
        self.settle(exec);
        *self.shared.facts.borrow_mut() = None;
    }
}
