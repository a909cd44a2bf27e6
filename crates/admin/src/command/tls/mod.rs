//! Commands on TLS files (management manual, `ssl`). What they do is the store's ([`tls::Store`]); here are
//! their words and the shape of their answers, which are HAProxy's to the letter.

pub mod certs;
pub mod files;
pub mod lists;
pub mod responses;

use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::now(
    &["show", "ssl", "providers"],
    "",
    "what the cryptography comes from",
    Level::User,
    providers,
)];

/// `show ssl providers`: what the cryptography comes from.
pub fn providers(_: &mut Call<'_>) -> Outcome {
    let name = tls::LIBRARY.split_once(' ').map_or(tls::LIBRARY, |(name, _)| name);
    Ok(Reply::Dump(format!("Loaded providers : \n\t- {name}\n")))
}

/// The answer to a commit: a dot for each thing that was built anew.
fn committed(name: &str, dots: usize) -> Outcome {
    committed_but(name, dots, None)
}

/// The same where a part of what was committed can't be used.
fn committed_but(name: &str, dots: usize, warning: Option<&str>) -> Outcome {
    let warning = warning.map(|text| format!("\n{text}")).unwrap_or_default();
    Ok(Reply::info(format!("Committing {name}{}{warning}\nSuccess!", ".".repeat(dots))))
}
