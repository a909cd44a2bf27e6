//! `show|new|set|add|commit|abort|del ssl ca-file`, and the same of `crl-file`.

use tls::store::Kind;

use super::committed;
use crate::cli::call::{Call, Outcome, Reply};

/// The kind that the third word of a command names.
fn kind(call: &Call<'_>) -> Kind {
    if call.words.get(2).is_some_and(|w| w == "crl-file") { Kind::Crl } else { Kind::Ca }
}

/// `show ssl ca-file [<name>[:<n>]]`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let store = &call.shared().program.tls;
    match call.arg(0) {
        "" => Ok(Reply::Dump(store.show_files(kind(call)))),
        name => Ok(Reply::Dump(store.show_file(kind(call), name)?)),
    }
}

/// `new ssl ca-file <name>`.
pub fn new(call: &mut Call<'_>) -> Outcome {
    match (call.arg(0), kind(call)) {
        ("", Kind::Ca) => Err("'new ssl ca-file' expects a filename".into()),
        ("", Kind::Crl) => Err("'new ssl crl-file' expects a filename".into()),
        (name, kind) => Ok(Reply::info(call.shared().program.tls.new_file(kind, name)?)),
    }
}

/// `set ssl ca-file <name> <payload>`, `add ssl ca-file <name> <payload>`.
pub fn set(call: &mut Call<'_>) -> Outcome {
    let more = call.words.first().is_some_and(|w| w == "add");
    match (call.arg(0), call.payload, kind(call)) {
        ("", _, Kind::Ca) | (_, None, Kind::Ca) => {
            Err("'set ssl ca-file' expects a filename and CAs as a payload".into())
        }
        ("", _, Kind::Crl) | (_, None, Kind::Crl) => {
            Err("'set ssl crl-file' expects a filename and CRLs as a payload".into())
        }
        (name, Some(payload), kind) => {
            Ok(Reply::info(call.shared().program.tls.set_file(kind, name, payload, more)?))
        }
    }
}

/// `commit ssl ca-file <name>`.
pub fn commit(call: &mut Call<'_>) -> Outcome {
    match call.arg(0) {
        // HAProxy names the wrong kind here, too.
        "" => Err("'commit ssl ca-file' expects a filename".into()),
        name => committed(name, call.shared().program.tls.commit_file(kind(call), name)?),
    }
}

/// `abort ssl ca-file <name>`.
pub fn abort(call: &mut Call<'_>) -> Outcome {
    match (call.arg(0), kind(call)) {
        ("", Kind::Ca) => Err("'abort ssl ca-file' expects a filename".into()),
        ("", Kind::Crl) => Err("'abort ssl crl-file' expects a filename".into()),
        (name, kind) => Ok(Reply::info(call.shared().program.tls.abort_file(kind, name)?)),
    }
}

/// `del ssl ca-file <name>`.
pub fn delete(call: &mut Call<'_>) -> Outcome {
    match (call.arg(0), kind(call)) {
        ("", Kind::Ca) => Err("'del ssl ca-file' expects a CA file name".into()),
        ("", Kind::Crl) => Err("'del ssl crl-file' expects a CRL file name".into()),
        (name, kind) => Ok(Reply::info(call.shared().program.tls.delete_file(kind, name)?)),
    }
}
