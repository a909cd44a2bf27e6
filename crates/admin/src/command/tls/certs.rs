//! `show|new|set|commit|abort|del|dump ssl cert`, and which certificates tokens may use.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use tls::locked;

use super::committed_but;
use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["abort", "ssl", "cert"],
        "<certfile>",
        "abort a transaction for a certificate file",
        Level::Admin,
        abort,
    ),
    Command::now(
        &["add", "ssl", "jwt"],
        "<certfile>",
        "let tokens be verified with a certificate",
        Level::Admin,
        set_jwt,
    ),
    Command::now(
        &["commit", "ssl", "cert"],
        "<certfile>",
        "let a transaction for a certificate file take effect",
        Level::Admin,
        commit,
    ),
    Command::now(
        &["del", "ssl", "cert"],
        "<certfile>",
        "delete a certificate that nobody uses",
        Level::Admin,
        delete,
    ),
    Command::now(
        &["del", "ssl", "jwt"],
        "<certfile>",
        "let no tokens be verified with a certificate",
        Level::Admin,
        set_jwt,
    ),
    Command::now(
        &["dump", "ssl", "cert"],
        "<certfile>",
        "a certificate with its key and its chain, as PEM",
        Level::Admin,
        dump,
    ),
    Command::now(
        &["new", "ssl", "cert"],
        "<certfile>",
        "create a certificate file, to be used in certificate lists",
        Level::Admin,
        new,
    ),
    Command::later(
        &["set", "ssl", "cert"],
        "<certfile> <payload>",
        "replace a certificate file in a transaction",
        Level::Admin,
        set,
    ),
    Command::now(
        &["show", "ssl", "cert"],
        "[<certfile>]",
        "certificates, or what there is to know of one",
        Level::Operator,
        show,
    ),
    Command::now(
        &["show", "ssl", "jwt"],
        "",
        "certificates that tokens may be verified with",
        Level::Operator,
        show_jwt,
    ),
];

const NO_CERT: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

/// `show ssl cert [<name>]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let store = &call.shared().program.tls;
    match call.arg(0) {
        "" => Ok(Reply::Dump(store.show_certs())),
        name => Ok(Reply::Dump(store.show_cert(name)?)),
    }
}

/// `dump ssl cert <name>`.
pub fn dump(call: &mut Call<'_>) -> Outcome {
    Ok(Reply::Dump(call.shared().program.tls.dump_cert(call.arg(0))?))
}

/// `new ssl cert <name>`.
pub fn new(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'new ssl cert' expects a filename".into()),
        name => Ok(Reply::info(call.shared().program.tls.new_cert(name)?)),
    }
}

/// How long the command of `ssl-passphrase-cmd` may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// `set ssl cert <name> <payload>`.
pub fn set<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        let (name, Some(payload)) = (call.arg(0), call.payload.filter(|_| !call.arg(0).is_empty())) else {
            return Err("'set ssl cert' expects a filename and a certificate as a payload".into());
        };
        let payload = opened(call, name, payload).await?;
        Ok(Reply::info(call.shared().program.tls.set_cert(name, &payload)?))
    })
}

/// A payload, its key opened if it is encrypted. The command that knows the passphrase runs on a thread of
/// its own.
async fn opened<'p>(call: &Call<'_>, typed: &str, payload: &'p str) -> Result<Cow<'p, str>, Refusal> {
    if !locked::is_locked(payload.as_bytes()) {
        return Ok(payload.into());
    }
    let store = &call.shared().program.tls;
    let stem = typed.strip_suffix(".key").filter(|n| store.has_cert(n));
    let name = stem.unwrap_or(typed).to_owned();
    let (phrases, text) = (store.phrases(), payload.to_owned());
    let work = move || {
        let opened = locked::open(text.as_bytes(), &name, &phrases);
        let text = String::from_utf8_lossy(&opened.text).into_owned();
        (text, opened.closed, phrases.complaints(), name)
    };
    let late = || format!("The passphrase of the key did not come in time.\nCan't update {typed}!");
    let done = engine::aside::run("passphrase", PATIENCE, work).await;
    let (text, closed, complaints, name) = done.ok_or_else(late)?;
    let Some(why) = closed else { return Ok(text.into()) };
    let why = why.words();
    let said: String = complaints.iter().map(|line| format!("{line}\n")).collect();
    Err(format!("{said}unable to load private key from file '{name}' ({why}).\nCan't load the payload\nCan't update {typed}!").into())
}

/// `commit ssl cert <name>`.
pub fn commit(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'commit ssl cert' expects a filename".into()),
        name => {
            let (dots, warning) = call.shared().program.tls.commit_cert(name)?;
            engine::responder::start(&call.worker);
            committed_but(name, dots, warning.as_deref())
        }
    }
}

/// `abort ssl cert <name>`.
pub fn abort(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'abort ssl cert' expects a filename".into()),
        name => Ok(Reply::info(call.shared().program.tls.abort_cert(name)?)),
    }
}

/// `del ssl cert <name>`.
pub fn delete(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'del ssl cert' expects a certificate name".into()),
        name => Ok(Reply::info(call.shared().program.tls.delete_cert(name)?)),
    }
}

/// `show ssl jwt`.
pub fn show_jwt(call: &mut Call<'_>) -> Outcome {
    // HAProxy writes the head of the list only if there are certificates to choose from.
    let Some(names) = call.shared().program.tls.jwt_names() else { return Ok(Reply::Dump(String::new())) };
    Ok(Reply::Dump(names.iter().fold(String::from("# filename\n"), |out, name| out + name + "\n")))
}

/// `add ssl jwt <name>`, `del ssl jwt <name>`.
pub fn set_jwt(call: &mut Call<'_>) -> Outcome {
    let adds = call.words.first().is_some_and(|w| w == "add");
    match call.arg(0) {
        "" if adds => Err("'add ssl cert' expects a filename".into()),
        "" => Err("'del ssl cert' expects a filename".into()),
        name if call.shared().program.tls.set_jwt(name, adds) => Ok(Reply::Done),
        _ => Err(NO_CERT.into()),
    }
}
