//! What scripts wait for, and how it comes.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use engine::Worker;
use mlua::{Lua, MultiValue, Value};

use crate::applet::{Ask, Io};
use crate::client;
use crate::run::Run;
use crate::sockets;

/// What a script waits for.
#[derive(Debug)]
pub enum Wait {
    /// Others have their turn.
    Yield,
    /// The same, in the midst of an instruction: it is resumed with nothing at all.
    Forced,
    /// Time passes.
    Sleep(Duration),
    /// It is woken, or that time has passed.
    Wake(Option<Duration>),
    /// A socket of its own.
    Socket(sockets::Ask),
    /// The answer to a request of its own.
    Http(Box<client::Request>),
    /// The client of its service.
    Applet(Ask),
    /// What can't be waited for: a fault of its own.
    Wrong(String),
}

/// What came of it: made into values of Lua's when the script is resumed.
pub enum Came {
    /// Nothing, not even that.
    Nothing,
    /// Nothing more than that it is over.
    Over,
    /// An error, raised where the script waited.
    Wrong(String),
    /// A string, or nil.
    Bytes(Option<Vec<u8>>),
    /// A number.
    Number(i64),
    /// nil, a message, and perhaps what came before that.
    Failed(&'static str, Option<Vec<u8>>),
    /// An answer to a request.
    Answer(Box<client::Answer>),
}

impl Came {
    /// The values that the script is resumed with: whether it went well, and the rest.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn values(self, lua: &Lua) -> mlua::Result<MultiValue> {
        use mlua::IntoLuaMulti;
        match self {
            Came::Nothing => Ok(MultiValue::new()),
            Came::Over => true.into_lua_multi(lua),
            Came::Wrong(text) => (false, text).into_lua_multi(lua),
            Came::Bytes(Some(bytes)) => (true, lua.create_string(bytes)?).into_lua_multi(lua),
            Came::Bytes(None) => (true, Value::Nil).into_lua_multi(lua),
            Came::Number(n) => (true, n).into_lua_multi(lua),
            Came::Failed(why, part) => {
                let part = part.map(|p| lua.create_string(p)).transpose()?;
                (true, Value::Nil, why, part).into_lua_multi(lua)
            }
            Came::Answer(answer) => (true, answer.table(lua)?).into_lua_multi(lua),
        }
    }
}

fn millis(value: Option<&Value>) -> Option<Duration> {
    let ms = match value? {
        Value::Integer(i) => u64::try_from(*i).unwrap_or(0),
        Value::Number(f) if *f > 0.0 => *f as u64,
        Value::Number(_) => 0,
        _ => return None,
    };
    // No timer needs more than a year.
    Some(Duration::from_millis(ms.min(31_536_000_000)))
}

impl Wait {
    /// Reads what the prelude said behind the tag.
    pub fn read(values: Vec<Value>) -> Wait {
        let word = |n: usize| values.get(n).and_then(Value::as_string).map(|s| s.to_string_lossy());
        let kind = word(0).unwrap_or_default();
        match kind.as_str() {
            "yield" => Wait::Yield,
            "sleep" => Wait::Sleep(millis(values.get(1)).unwrap_or_default()),
            "wake" => Wait::Wake(millis(values.get(1))),
            "socket" => match values.get(1).and_then(sockets::take) {
                Some(ask) => Wait::Socket(ask),
                None => Wait::Wrong("no socket".into()),
            },
            "http" => match values.get(1).and_then(client::take) {
                Some(request) => Wait::Http(Box::new(request)),
                None => Wait::Wrong("no request".into()),
            },
            "applet" => Wait::Applet(Ask::read(&word(1).unwrap_or_default(), &values)),
            _ => Wait::Yield,
        }
    }
}

/// Waits for what a script waits for.
pub async fn fulfil(wait: Wait, run: &Run, worker: &Rc<Worker>, io: Option<&mut Io>) -> Came {
    match wait {
        Wait::Yield => rt::yield_now().await,
        Wait::Forced => {
            rt::yield_now().await;
            return Came::Nothing;
        }
        Wait::Sleep(time) => rt::sleep(time).await,
        Wait::Wake(time) => {
            let mut timer = rt::Timer::new();
            timer.set_after(time);
            poll_fn(|cx| match run.wake.poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => timer.poll_expired(cx),
            })
            .await;
        }
        Wait::Socket(ask) => return sockets::fulfil(ask, worker).await,
        Wait::Http(request) => return Came::Answer(Box::new(client::send(worker, *request).await)),
        Wait::Applet(ask) => {
            return match io {
                Some(io) => io.fulfil(ask).await,
                None => Came::Wrong("an applet may be used by its own service only".into()),
            };
        }
        Wait::Wrong(text) => return Came::Wrong(text),
    }
    Came::Over
}
