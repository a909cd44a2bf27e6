//! What scripts wait for.

use std::time::Duration;

use mlua::Value;

use crate::client;
use crate::io::Ask;
use crate::sockets;

/// What a script waits for.
#[derive(Debug)]
pub enum Wait {
    /// Others have their turn.
    Yield,
    /// The same, by `coroutine.yield` of the script's own, which gives it nothing at all.
    Own,
    /// Time passes.
    Sleep(Duration),
    /// It is woken, or that time has passed.
    Wake(Option<Duration>),
    /// More data of the direction at hand.
    Data,
    /// A socket of its own.
    Socket(sockets::Ask),
    /// The answer to a request of its own.
    Http(Box<client::Request>),
    /// The client of its service.
    Applet(Ask),
    /// What can't be waited for: a fault of its own.
    Wrong(String),
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
            "data" => Wait::Data,
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
