//! `set anon`, `show anon`, `debug dev hash`: what an anonymised dump hides, and with which key.

use std::sync::atomic::Ordering::Relaxed;

use program::listener::Level;

use crate::cli::anon::Anon;
use crate::cli::call::{Call, Outcome, Reply};
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["debug", "dev", "hash"], "[msg]", "a word as anonymised dumps show it", Level::User, hash),
    Command::now(
        &["set", "anon", "global-key"],
        "<value>",
        "change the key of anonymised dumps",
        Level::Admin,
        global_key,
    ),
    Command::now(&["set", "anon", "off"], "", "show names and addresses", Level::User, off),
    Command::now(&["set", "anon", "on"], "[value]", "hide names and addresses in dumps", Level::User, on),
    Command::now(&["show", "anon"], "", "whether dumps are anonymised", Level::User, show),
];

/// `set anon on [<key>]`. Without a key it is the global one, or one that is made up.
pub fn on(call: &mut Call<'_>) -> Outcome {
    let key = match call.arg(0) {
        "" => match call.shared().program.world.process.anon_key.load(Relaxed) {
            0 => (rt::random() as u32).max(1),
            key => key,
        },
        word => {
            let key = word.parse::<u32>().ok().filter(|key| *key > 0);
            key.ok_or("Value out of range (1 to 4294967295 expected).")?
        }
    };
    call.client.anon = Anon(key);
    Ok(Reply::Done)
}

/// `set anon off`.
pub fn off(call: &mut Call<'_>) -> Outcome {
    call.client.anon = Anon(0);
    Ok(Reply::Done)
}

/// `set anon global-key <key>`; what is no number counts as 0, which stands for none.
pub fn global_key(call: &mut Call<'_>) -> Outcome {
    let key = call.arg(0).parse().unwrap_or(0);
    call.shared().program.world.process.anon_key.store(key, Relaxed);
    Ok(Reply::Done)
}

/// `show anon`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let Anon(key) = call.client.anon;
    Ok(Reply::Dump(match (key, call.client.level) {
        (0, _) => "Anonymized mode disabled\n".into(),
        (_, Level::User) => "Anonymized mode enabled\n".into(),
        (key, _) => format!("Anonymized mode enabled\nKey : {key}\n"),
    }))
}

/// `debug dev hash <word>`: the word as a dump shows it.
pub fn hash(call: &mut Call<'_>) -> Outcome {
    let word = call.arg(0);
    Ok(if word.is_empty() { Reply::Done } else { Reply::Dump(format!("{}\n", call.client.anon.word(word))) })
}
