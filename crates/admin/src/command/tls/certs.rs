//! `show|new|set|commit|abort|del|dump ssl cert`, and which certificates tokens may use.

use super::{committed, decode, encode};
use crate::cli::call::{Call, Outcome, Reply};

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
    Ok(Reply::Dump(call.shared().program.tls.dump_cert(call.arg(0), encode)?))
}

/// `new ssl cert <name>`.
pub fn new(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'new ssl cert' expects a filename".into()),
        name => Ok(Reply::info(call.shared().program.tls.new_cert(name)?)),
    }
}

/// `set ssl cert <name> <payload>`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    match (call.arg(0), call.payload) {
        ("", _) | (_, None) => Err("'set ssl cert' expects a filename and a certificate as a payload".into()),
        (name, Some(payload)) => Ok(Reply::info(call.shared().program.tls.set_cert(name, payload, decode)?)),
    }
}

/// `commit ssl cert <name>`.
pub fn commit(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        "" => Err("'commit ssl cert' expects a filename".into()),
        name => committed(name, call.shared().program.tls.commit_cert(name)?),
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
    let names = call.shared().program.tls.jwt_names();
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
