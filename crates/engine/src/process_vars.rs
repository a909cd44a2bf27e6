//! `set-var` and `set-var-fmt` of `global` (manual, section 3.1): variables of the process, set once before
//! any traffic.
//!
//! Their expressions stand outside of any proxy and see the process only: its environment, the date, random
//! numbers, constants and variables set by earlier lines. So they are evaluated when a program is made ready
//! to run, on the one thread that exists then, and every worker finds the same values.

use std::cell::OnceCell;

use bumpalo::Bump;
use lang::env::{Payload, Side, TcpInfo};
use lang::logfmt::Use;
use lang::{Env, Expr, Live};
use model::proxy::{Listener, Proxy};
use model::vars::Owned;
use model::{Conn, Server, Txn, World};
use program::Program;
use program::global::SetVar;
use rt::{Mono, Wall};

/// Evaluates the lines in order.
pub fn set(program: &Program) {
    if program.global.set_vars.is_empty() {
        return;
    }
    let outside = Outside::new(program);
    let conn = Conn::new(0, 0, 0, rt::now(), rt::wall());
    let txn = Txn::default();
    let mut arena = Bump::new();
    for (var, value) in &program.global.set_vars {
        let env =
            Env { conn: &conn, txn: &txn, live: &outside, arena: &arena, side: Side::Request, last: true };
        let value = match value {
            SetVar::Expr(expr) => expr.eval_owned(&env),
            SetVar::Format(format) => {
                let mut text = Vec::new();
                format.append(&env, Use::Value, &mut text);
                Some(Owned::Str(text.into()))
            }
        };
        // What rules or an operator made of it since stays, unless the configuration says something else now.
        let mut said = program.world.set_vars.lock();
        let was = match &value {
            Some(value) => said.insert(var.slot, value.clone()),
            None => said.remove(&var.slot),
        };
        if was != value || value.is_none() {
            program.world.vars.set(var.slot, value);
        }
        arena.reset();
    }
}

/// What an expression makes without a client and without a stream: the name that is sent to a server (`sni`).
pub fn constant(program: &Program, sni: &Expr) -> Option<Box<[u8]>> {
    let conn = Conn::new(0, 0, 0, rt::now(), rt::wall());
    let (txn, arena, outside) = (Txn::default(), Bump::new(), Outside::new(program));
    let env = Env { conn: &conn, txn: &txn, live: &outside, arena: &arena, side: Side::Request, last: true };
    Some(sni.eval(&env).ok()?.binary(&arena).into())
}

/// A world without connections.
pub(crate) struct Outside<'p> {
    program: &'p Program,
    nobody: OnceCell<Proxy>,
}

impl<'p> Outside<'p> {
    /// Of a program.
    pub fn new(program: &'p Program) -> Outside<'p> {
        Outside { program, nobody: OnceCell::new() }
    }
}

impl Live for Outside<'_> {
    fn now(&self) -> Mono {
        rt::now()
    }

    fn date(&self) -> Wall {
        rt::wall()
    }

    fn local_offset(&self, secs: i64) -> i32 {
        rt::sys::local_offset(secs)
    }

    fn random(&self) -> u64 {
        rt::random()
    }

    fn worker(&self) -> usize {
        0
    }

    fn world(&self) -> &World {
        &self.program.world
    }

    fn frontend(&self) -> &Proxy {
        self.nobody.get_or_init(|| Proxy::new("", 0, None, 1))
    }

    fn backend(&self) -> Option<&Proxy> {
        None
    }

    fn server(&self) -> Option<&Server> {
        None
    }

    fn listener(&self) -> Option<&Listener> {
        None
    }

    fn default_backend(&self) -> Option<&str> {
        None
    }

    fn payload(&self, _: Side) -> Payload<'_> {
        Payload::default()
    }

    fn tcp_info(&self, _: Side) -> Option<TcpInfo> {
        None
    }

    fn rule_place(&self, _: u32) -> Option<(&str, u32)> {
        None
    }

    fn node(&self) -> (&str, u32) {
        (&self.program.global.node, std::process::id())
    }
}
