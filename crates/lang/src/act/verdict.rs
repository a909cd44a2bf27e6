//! Verdicts: rules that end their rule set (section 4.3).

use super::reply::{self, Kind};
use super::{Parsed, Reading, def, ending};
use crate::action::{Flow, Reply};
use crate::env::Side;
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Form, Registry, Sets};
use crate::words::{Fault, Words};

const CLOSING: Sets = Sets::TCP.and(Sets::HTTP_REQ);
const SERVED: Sets = Sets::HTTP_REQ.and(Sets::HTTP_RES);

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "accept",
        Sets::TCP,
        |_, _, _, _| ending(|_| Flow::Accept),
        "Ends the rule set: traffic goes on.",
        "accept",
    ),
    def(
        "allow",
        Sets::HTTP,
        |_, _, _, _| ending(|_| Flow::Accept),
        "Ends the rule set: the message goes on.",
        "allow",
    ),
    def("auth", Sets::HTTP_REQ, auth, "Asks the client for user and password.", "auth realm Private"),
    def(
        "close",
        Sets::TCP_RES,
        |_, _, _, _| ending(|_| Flow::CloseServer),
        "Closes the connection to the server.",
        "close",
    ),
    def("deny", SERVED, deny, "Refuses the message.", "deny deny_status 429"),
    def(
        "reject",
        CLOSING,
        |_, _, _, _| ending(|_| Flow::Reject),
        "Closes the connection without an answer.",
        "reject",
    ),
    def(
        "return",
        SERVED,
        answer,
        "Answers itself.",
        "return status 200 content-type text/plain string hello",
    ),
    def(
        "silent-drop",
        Sets::TCP.and(SERVED),
        silent_drop,
        "Forgets the connection without telling the client.",
        "silent-drop rst-ttl 3",
    ),
    def(
        "switch-mode",
        Sets::TCP_REQ,
        switch_mode,
        "Goes on as HTTP with a connection that began as TCP.",
        "switch-mode http",
    ),
    def(
        "tarpit",
        Sets::HTTP_REQ,
        tarpit,
        "Holds the request for 'timeout tarpit', then refuses it.",
        "tarpit deny_status 429",
    ),
];

fn deny(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let default = if at.set == Sets::HTTP_RES { 502 } else { 403 };
    let reply = reply::parse(&mut Reading { words, at, reg, names }, default, Kind::Denial)?;
    ending(move |_| Flow::Deny(reply.clone()))
}

fn tarpit(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let reply = reply::parse(&mut Reading { words, at, reg, names }, 500, Kind::Denial)?;
    ending(move |_| Flow::Tarpit(reply.clone()))
}

fn answer(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let reply = reply::parse(&mut Reading { words, at, reg, names }, 200, Kind::Answer)?;
    ending(move |_| Flow::Reply(reply.clone()))
}

fn silent_drop(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let mut rst_ttl = None;
    if words.take_if("rst-ttl") {
        let word = words.expect("missing rst-ttl value\n")?;
        let odd = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if !odd.is_empty() {
            return Err(Fault::new(format!(
                "invalid character starting at '{odd}' (value 1-255 expected)\n"
            )));
        }
        let ttl = word.parse::<u8>().ok().filter(|n| *n > 0);
        rst_ttl = Some(ttl.ok_or_else(|| Fault::new("valid rst-ttl values are [1-255]\n"))?);
    }
    ending(move |_| Flow::SilentDrop { rst_ttl })
}

/// `switch-mode http [proto NAME]`. Faults name the rule set as HAProxy does here, without its second word.
fn switch_mode(words: &mut Words<'_>, _: &ActionPlace, _: &Registry, names: &mut dyn Names) -> Parsed {
    let what = "'tcp-request switch-mode'";
    if names.lacks(Side::Request) {
        let owner = names.owner();
        let text = format!("{what} not allowed because {owner} has no frontend capability");
        return Err(Fault::new(text));
    }
    let mode = words.expect(&format!("{what} expects a mode as argument"))?;
    if mode != "http" {
        return Err(Fault::new(format!("{what} expects a valid mode (got '{mode}')")));
    }
    let mut h2 = None;
    if words.take_if("proto") {
        match words.expect(&format!("{what}: 'proto' expects a protocol as argument"))? {
            "h1" => h2 = Some(false),
            "h2" => h2 = Some(true),
            known @ ("none" | "fcgi" | "quic" | "spop") => {
                let text = format!("MUX protocol '{known}' is not compatible with the selected mode.");
                return Err(Fault::new(text));
            }
            other => {
                let text =
                    format!("{what}: 'proto' expects a valid MUX protocol, if specified (got '{other}')");
                return Err(Fault::new(text));
            }
        }
    }
    // What is HTTP already stays so.
    ending(move |exec| if exec.txn.has_req { Flow::Accept } else { Flow::SwitchToHttp { h2 } })
}

/// 401, or 407 to a client that takes us for its proxy.
fn auth(words: &mut Words<'_>, at: &ActionPlace, _: &Registry, _: &mut dyn Names) -> Parsed {
    let mut realm = (at.form == Form::Statistics).then(|| Reply::STATISTICS.to_owned());
    if words.take_if("realm") {
        realm = Some(words.expect("missing realm value.\n")?.to_owned());
    }
    ending(move |exec| {
        let proxy_name = exec.live.backend().unwrap_or(exec.live.frontend()).name.clone();
        let realm = realm.as_deref().unwrap_or(&proxy_name);
        Flow::Reply(Reply::challenge(realm, exec.txn.for_proxy))
    })
}
