//! `show|add|del ssl crt-list`, `show ssl sni`.

use tls::store::{Lookup, SniFilter};

use crate::cli::call::{Call, Outcome, Reply, find_proxy};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["add", "ssl", "crt-list"],
        "<list> <cert> [opts]*",
        "add a certificate, or the line of a payload, to a certificate list",
        Level::Admin,
        add,
    ),
    Command::now(
        &["del", "ssl", "crt-list"],
        "<list> <cert[:line]>",
        "delete an entry of a certificate list",
        Level::Admin,
        delete,
    ),
    Command::now(
        &["show", "ssl", "crt-list"],
        "[-n] [<list>]",
        "certificate lists, or the lines of one",
        Level::Admin,
        show,
    ),
    Command::now(
        &["show", "ssl", "sni"],
        "[-f <frontend>] [-A] [-t <offset>]",
        "server names and the certificates that they get",
        Level::User,
        sni,
    ),
];

/// `show ssl crt-list [-n] [<list>]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let store = &call.shared().program.tls;
    let numbers = call.arg(0) == "-n";
    match call.arg(usize::from(numbers)) {
        "" if numbers => Err("'show ssl crt-list -n' expects a filename or a directory".into()),
        "" => Ok(Reply::Dump(store.show_lists())),
        name => Ok(Reply::Dump(store.show_list(Lookup(name), numbers)?)),
    }
}

/// `add ssl crt-list <list> <certificate>`, or with a line as payload.
pub fn add(call: &mut Call<'_>) -> Outcome {
    let (list, cert) = (call.arg(0), call.arg(1));
    let payload = call.payload.map(|p| p.trim_end_matches('\n'));
    let Some(text) = payload
        .filter(|p| !p.is_empty())
        .or(Some(cert).filter(|c| !c.is_empty()))
        .filter(|_| !list.is_empty())
    else {
        return Err("'add ssl crtlist' expects a filename and a certificate name".into());
    };
    if text.contains('\n') {
        return Err("Can't edit the crt-list: only one line of payload is supported!".into());
    }
    let store = &call.shared().program.tls;
    let line =
        compile::dynamic::list_line(store, text).map_err(|e| format!("Can't edit the crt-list: {e}"))?;
    let name = list.trim_end_matches('/');
    let begun = |cert: &str| format!("Inserting certificate '{cert}' in crt-list '{name}'");
    match store.add_to_list(Lookup(list), &line) {
        Ok((cert, dots)) => {
            engine::responder::start(&call.worker);
            Ok(Reply::info(format!("{}{}\nSuccess!", begun(&cert), ".".repeat(dots))))
        }
        Err((Some(cert), why)) => Err(format!("{}.\n{why}\nFailed!", begun(&cert)).into()),
        Err((None, why)) => Err(why.into()),
    }
}

/// `del ssl crt-list <list> <certificate[:line]>`.
pub fn delete(call: &mut Call<'_>) -> Outcome {
    let (list, cert) = (call.arg(0), call.arg(1));
    if list.is_empty() || cert.is_empty() {
        return Err("'del ssl crtlist' expects a filename and a certificate name".into());
    }
    Ok(Reply::info(call.shared().program.tls.remove_from_list(Lookup(list), cert)?))
}

const ONLY: &str = "Invalid parameters, 'show ssl sni' only supports '-f', '-A' or '-t' options!";

/// `show ssl sni [-f <frontend>] [-A] [-t <offset>]`.
pub fn sni(call: &mut Call<'_>) -> Outcome {
    let mut filter = SniFilter::default();
    let (mut expired, mut offset) = (false, 0);
    let mut words = call.args().iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-A" => expired = true,
            "-f" => {
                let name = words.next().ok_or("'-f' requires a frontend name!")?;
                find_proxy(call.shared(), name, |p| p.is_frontend)
                    .ok_or("Couldn't find the specified frontend!")?;
                filter.frontend = Some(name);
            }
            "-t" => {
                let text = words.next().ok_or("'-t' requires an offset argument!")?;
                offset = seconds(text).map_err(|odd| match odd {
                    Some(odd) => format!("'-t {text}' : unexpected character '{odd}'"),
                    None => format!("'-t {text}' : invalid value"),
                })?;
            }
            _ => return Err(ONLY.into()),
        }
    }
    let now = i64::try_from(rt::wall().as_secs()).unwrap_or(i64::MAX);
    filter.expired_at = expired.then(|| now.saturating_add(offset));
    Ok(Reply::Dump(call.shared().program.tls.show_sni(filter)))
}

/// A time in seconds unless its unit says otherwise.
///
/// # Errors
/// The character that is no unit; none if the number itself is at fault.
fn seconds(text: &str) -> Result<i64, Option<char>> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(unit.chars().next()),
    };
    digits.parse::<i64>().ok().and_then(|n| n.checked_mul(scale)).ok_or(None)
}
