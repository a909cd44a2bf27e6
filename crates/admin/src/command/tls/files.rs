//! `show|new|set|add|commit|abort|del ssl ca-file`, and the same of `crl-file`.

use tls::store::Kind;

use super::committed;
use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(
        &["abort", "ssl", "ca-file"],
        "<cafile>",
        "abort a transaction for a CA file",
        Level::Admin,
        abort,
    ),
    Command::now(
        &["abort", "ssl", "crl-file"],
        "<crlfile>",
        "abort a transaction for a CRL file",
        Level::Admin,
        abort,
    ),
    Command::now(
        &["add", "ssl", "ca-file"],
        "<cafile> <payload>",
        "add certificates to a CA file",
        Level::Admin,
        set,
    ),
    Command::now(
        &["commit", "ssl", "ca-file"],
        "<cafile>",
        "let a transaction for a CA file take effect",
        Level::Admin,
        commit,
    ),
    Command::now(
        &["commit", "ssl", "crl-file"],
        "<crlfile>",
        "let a transaction for a CRL file take effect",
        Level::Admin,
        commit,
    ),
    Command::now(
        &["del", "ssl", "ca-file"],
        "<cafile>",
        "delete a CA file that nobody uses",
        Level::Admin,
        delete,
    ),
    Command::now(
        &["del", "ssl", "crl-file"],
        "<crlfile>",
        "delete a CRL file that nobody uses",
        Level::Admin,
        delete,
    ),
    Command::now(
        &["new", "ssl", "ca-file"],
        "<cafile>",
        "create a CA file, to be used in certificate lists",
        Level::Admin,
        new,
    ),
    Command::now(
        &["new", "ssl", "crl-file"],
        "<crlfile>",
        "create a CRL file, to be used in certificate lists",
        Level::Admin,
        new,
    ),
    Command::now(
        &["set", "ssl", "ca-file"],
        "<cafile> <payload>",
        "replace a CA file in a transaction",
        Level::Admin,
        set,
    ),
    Command::now(
        &["set", "ssl", "crl-file"],
        "<crlfile> <payload>",
        "replace a CRL file in a transaction",
        Level::Admin,
        set,
    ),
    Command::now(
        &["show", "ssl", "ca-file"],
        "[<cafile>[:<index>]]",
        "CA files, or what is in one",
        Level::Operator,
        show,
    ),
    Command::now(
        &["show", "ssl", "crl-file"],
        "[<crlfile[:<index>>]]",
        "CRL files, or what is in one",
        Level::Operator,
        show,
    ),
];

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
