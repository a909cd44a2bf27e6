//! Actions that wait for something, or hand over (section 4.3).

use std::sync::Arc;
use std::time::Duration;

use base::units::TimeError;
use model::Origin;
use wire::head::Known;

use super::{Parsed, Reading, def, ending, step, with_format};
use crate::action::{Action, Exec, Flow, Need};
use crate::env::Side;
use crate::logfmt::{LogFormat, Use};
use crate::names::{Missing, Names, PLACE};
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

const SERVED: Sets = Sets::HTTP_REQ.and(Sets::HTTP_RES);

pub(super) const ACTIONS: &[ActionDef] = &[
    def("do-log", Sets::ALL, do_log, "Emits a log line now.", "do-log"),
    def(
        "early-hint",
        Sets::HTTP_REQ,
        early_hint,
        "Sends a 103 response with a header field.",
        "early-hint link </s.css>;rel=preload",
    ),
    def(
        "expect-netscaler-cip",
        Sets::TCP_CONN,
        |w, a, _, n| expect(w, a, n, "expect-netscaler-cip", || Need::CipHeader),
        "Waits for a NetScaler header.",
        "expect-netscaler-cip layer4",
    ),
    def(
        "expect-proxy",
        Sets::TCP_CONN,
        |w, a, _, n| expect(w, a, n, "expect-proxy", || Need::ProxyHeader),
        "Waits for a PROXY header.",
        "expect-proxy layer4",
    ),
    def("pause", SERVED, pause, "Lets time pass.", "pause 100ms"),
    def(
        "use-service",
        Sets::TCP_REQ.and(Sets::HTTP_REQ),
        use_service,
        "Lets a service answer.",
        "use-service prometheus-exporter",
    ),
    def("wait-for-body", SERVED, wait_for_body, "Waits for the body.", "wait-for-body time 1s at-least 1k"),
    def(
        "wait-for-handshake",
        Sets::HTTP_REQ,
        |_, _, _, _| step(wait_for_handshake),
        "Waits until TLS is set up, should the request be early data.",
        "wait-for-handshake",
    ),
];

/// Asks for something once, and goes on when it is there.
fn once(exec: &mut Exec<'_>, need: impl FnOnce() -> Need) -> Flow {
    match exec.resumed.take() {
        Some(_) => Flow::Next,
        None => Flow::Yield(need()),
    }
}

/// `wait-for-handshake`: where the connection is secure already, or not encrypted, there is nothing to wait
/// for.
fn wait_for_handshake(exec: &mut Exec<'_>) -> Flow {
    match exec.resumed.take() {
        None if exec.conn.early.get() => Flow::Yield(Need::Handshake),
        _ => Flow::Next,
    }
}

/// `do-log [profile NAME]`: a line through the sinks, which take it at once or drop it.
fn do_log(words: &mut Words<'_>, at: &ActionPlace, _: &Registry, names: &mut dyn Names) -> Parsed {
    let origin = origin_of(at.set);
    let mut profile = None;
    if words.peek() == Some(b"profile") {
        words.take();
        let name = words.expect("action 'do-log': 'profile' expects argument.")?;
        match names.log_profile(name) {
            Ok(number) => profile = Some(number),
            Err(fault) => names.miss(Missing::Rule(fault.text)),
        }
    }
    step(move |exec| {
        exec.live.log(&exec.env(), origin, profile);
        Flow::Next
    })
}

fn origin_of(set: Sets) -> Origin {
    match set {
        Sets::QUIC => Origin::QuicInit,
        Sets::TCP_CONN => Origin::TcpReqConn,
        Sets::TCP_SESS => Origin::TcpReqSess,
        Sets::TCP_REQ => Origin::TcpReqCont,
        Sets::TCP_RES => Origin::TcpResCont,
        Sets::HTTP_REQ => Origin::HttpReq,
        Sets::HTTP_RES => Origin::HttpRes,
        Sets::HTTP_AFTER => Origin::HttpAfterRes,
        _ => Origin::Unspecified,
    }
}

fn early_hint(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let missing = "expects exactly 2 arguments";
    let name = reading.word(missing)?;
    if reading.words.is_empty() {
        return Err(Fault::new(missing));
    }
    super::fields::warn_of_name(&name, &mut reading);
    let name = name.to_ascii_lowercase();
    let value = reading.format(missing)?;
    Ok(Box::new(EarlyHint { name: name.into_bytes().into(), value }))
}

/// A field of a 103 response.
struct EarlyHint {
    name: Box<[u8]>,
    value: LogFormat,
}

impl Action for EarlyHint {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        if exec.resumed.take().is_some() {
            return Flow::Next;
        }
        with_format(exec, &self.value, Use::Header, |_, bytes| {
            Flow::Yield(Need::Interim([&self.name, &b": "[..], bytes, b"\r\n"].concat().into()))
        })
    }

    fn is_hint(&self) -> bool {
        true
    }
}

fn expect(
    words: &mut Words<'_>,
    at: &ActionPlace,
    names: &mut dyn Names,
    word: &'static str,
    need: fn() -> Need,
) -> Parsed {
    let got = words.peek_str().unwrap_or_default();
    if got != "layer4" {
        let text =
            format!("'{} {word}' only supports 'layer4' in {} (got '{got}')", at.set.words(), names.owner());
        return Err(Fault::new(text).at(words.position()));
    }
    words.take();
    step(move |exec| once(exec, need))
}

fn pause(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let time = super::settings::delay(&mut Reading { words, at, reg, names }, "pause")?;
    step(move |exec| {
        if exec.resumed.take().is_some() {
            return Flow::Next;
        }
        let wait = time.value(exec).and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        wait.map_or(Flow::Next, |wait| Flow::Yield(Need::Delay(wait)))
    })
}

fn use_service(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let name = words.expect("'use-service' expects a service name.")?;
    if let Some(owned) = reg.service(name) {
        if !owned.sets.has(at.set) {
            return Err(Fault::new(&*owned.elsewhere).at(words.position() - 1));
        }
        let service: Arc<str> = name.into();
        return ending(move |_| Flow::Service(service.clone()));
    }
    if !names.service(name) {
        return Err(Fault::new(format!("'{name}' unknown service name.")).at(words.position() - 1));
    }
    // The one there is answers requests of HTTP.
    if at.set != Sets::HTTP_REQ {
        let text = "Prometheus exporter service only available on 'http-request' rulesets";
        return Err(Fault::new(text).at(words.position() - 1));
    }
    let service: Arc<str> = name.into();
    ending(move |_| Flow::Service(service.clone()))
}

fn wait_for_body(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let (mut limit, mut at_least, mut large) = (None, None, false);
    while !reading.is_over() {
        let word = reading.word("")?;
        let missing = format!("missing argument for '{word}'");
        match word.as_str() {
            "time" => limit = Some(time(&reading.word(&missing)?, reading.names)?),
            "at-least" => at_least = Some(size(&reading.word(&missing)?)?),
            "use-large-buffer" => {
                large = true;
                if !reading.names.large_buffers() {
                    let text = format!(
                        "unable to use large buffers at {PLACE}, 'tune.bufsize.large' global parameter must be set"
                    );
                    reading.names.miss(Missing::Rule(text));
                }
            }
            _ => {
                reading.words.seek(reading.words.position() - 1);
                break;
            }
        }
    }
    let time = limit.ok_or_else(|| Fault::new("expects time <time> [ at-least <bytes> ]"))?;
    let at_least = at_least.filter(|n| *n > 0);
    step(move |exec| {
        let payload = exec.live.payload(exec.side);
        let enough = at_least.is_some_and(|n| payload.data.len() as u64 >= n);
        // A full buffer looks complete, too, until there is a larger one.
        let there = (payload.complete && !large) || enough;
        // A client that asked leave to send its body is answered all the same.
        let asks = exec.side == Side::Request && exec.txn.req.has(Known::Expect);
        if there && !asks {
            return Flow::Next;
        }
        once(exec, || Need::Body { time: Duration::from_millis(time), at_least, large })
    })
}

fn size(word: &str) -> Result<u64, Fault> {
    crate::parse::size(word).ok_or_else(|| unexpected(word.chars().find(|c| !c.is_ascii_digit())))
}

fn time(word: &str, names: &mut dyn Names) -> Result<u64, Fault> {
    crate::parse::tolerant(word, names).map_err(|fault| match fault {
        TimeError::Overflow => Fault::new("time overflow (maximum value is 2147483647 ms or ~24.8 days)"),
        TimeError::Unexpected(found) => unexpected(Some(found)),
        _ => unexpected(None),
    })
}

fn unexpected(found: Option<char>) -> Fault {
    Fault::new(format!("unexpected character '{}'", found.map(String::from).unwrap_or_default()))
}
