//! Weights and limits of servers: `set weight`, `get weight`, `set maxconn server`.

use std::sync::atomic::Ordering::Relaxed;

use farm::state as change;
use program::Server;

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["get", "weight"],
        "<bk>/<srv>",
        "weight of a server, now and at the start",
        Level::User,
        get,
    ),
    Command::now(
        &["set", "maxconn", "server"],
        "<bk>/<srv> <value>",
        "change the limit of requests of a server",
        Level::Admin,
        set_maxconn,
    ),
    Command::now(
        &["set", "weight"],
        "<bk>/<srv> <weight>",
        "change the weight of a server",
        Level::Admin,
        set,
    ),
];

/// `set weight <backend>/<server> <weight>[%]`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    set_to(call, call.arg(1))
}

/// Gives the server of argument 0 a weight.
pub fn set_to(call: &Call<'_>, text: &str) -> Outcome {
    let at = call.server_to_change()?;
    let weight = parse(text, &call.config(at))?;
    let proxy = &*call.shared().program.proxy(at.proxy);
    if proxy.has_static_weights()
        && weight != 0
        && weight != call.config(at).state.initial_weight.load(Relaxed)
    {
        let text = "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.";
        return Err(text.into());
    }
    change::set_weight(&call.worker.farm, at, weight);
    Ok(Reply::Done)
}

/// A weight from 0 to 256, or a share of the initial one.
fn parse(text: &str, server: &Server) -> Result<u32, Refusal> {
    if text.is_empty() {
        return Err("Require <weight> or <weight%>.".into());
    }
    let end = text.bytes().skip(1).position(|b| !b.is_ascii_digit()).map_or(text.len(), |n| n + 1);
    let (digits, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let n: i64 = match digits.parse() {
        Ok(n) => n,
        Err(_) if digits.bytes().all(|b| b.is_ascii_digit()) => i64::from(u32::MAX),
        Err(_) => return Err("Empty weight string empty or preceded by garbage".into()),
    };
    let initial = i64::from(server.state.initial_weight.load(Relaxed));
    let weight = match rest {
        "%" if n < 0 => return Err("Relative weight must be positive.".into()),
        "%" => (initial.saturating_mul(n) / 100).min(256),
        "" if !(0..=256).contains(&n) => {
            return Err("Absolute weight can only be between 0 and 256 inclusive.".into());
        }
        "" => n,
        _ => return Err("Trailing garbage in weight string".into()),
    };
    Ok(u32::try_from(weight).unwrap_or(0))
}

/// `get weight <backend>/<server>`.
pub fn get(call: &mut Call<'_>) -> Outcome {
    let state = &call.config(call.server()?).state;
    let (now, initial) = (state.weight.load(Relaxed), state.initial_weight.load(Relaxed));
    Ok(Reply::Dump(format!("{now} (initial {initial})\n")))
}

/// `set maxconn server <backend>/<server> <limit>`.
pub fn set_maxconn(call: &mut Call<'_>) -> Outcome {
    let at = call.server_to_change()?;
    let text = call.arg(1);
    if text.is_empty() {
        return Err("Require <maxconn>.".into());
    }
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    match text.split_at_checked(end) {
        Some(("", _)) | None => Err("maxconn string empty or preceded by garbage".into()),
        Some((digits, "")) => {
            change::set_maxconn(&call.worker.farm, at, digits.parse().unwrap_or(u32::MAX));
            Ok(Reply::Done)
        }
        Some(_) => Err("Trailing garbage in maxconn string".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_absolute_or_a_share_of_the_initial_one() {
        let server = crate::tests::server("s", 1);
        server.state.initial_weight.store(10, Relaxed);
        for (text, wanted) in [
            ("0", Ok(0)),
            ("256", Ok(256)),
            ("50%", Ok(5)),
            ("150%", Ok(15)),
            ("999999%", Ok(256)),
            ("99999999999999999999%", Ok(256)),
            ("", Err("Require <weight> or <weight%>.")),
            ("257", Err("Absolute weight can only be between 0 and 256 inclusive.")),
            ("-1", Err("Absolute weight can only be between 0 and 256 inclusive.")),
            ("-5%", Err("Relative weight must be positive.")),
            ("abc", Err("Empty weight string empty or preceded by garbage")),
            ("-", Err("Empty weight string empty or preceded by garbage")),
            ("5x", Err("Trailing garbage in weight string")),
            ("5%x", Err("Trailing garbage in weight string")),
            ("é", Err("Empty weight string empty or preceded by garbage")),
        ] {
            assert_eq!(parse(text, &server), wanted.map_err(Refusal::from), "{text:?}");
        }
    }
}
