//! Commands about the connection itself, and the simplest ones.

use std::time::Duration;

use program::listener::{Level, Severity};

use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table;
use crate::cli::table::Command;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["echo"], "<text>", "repeat the text", Level::User, echo),
    Command::now(&["experimental-mode"], "[on|off]", "", Level::Admin, experimental_mode),
    Command::now(&["expert-mode"], "[on|off]", "", Level::Admin, expert_mode),
    Command::now(&["operator"], "", "give up the rights of an admin", Level::Operator, operator),
    Command::now(
        &["set", "severity-output"],
        "[none|number|string]",
        "mark answers with their severity",
        Level::User,
        severity_output,
    ),
    Command::now(
        &["set", "timeout"],
        "[cli] <delay>",
        "change the idle timeout of this connection",
        Level::User,
        set_timeout,
    ),
    Command::now(&["show", "cli", "level"], "", "what this connection may do", Level::User, show_level),
    Command::now(&["show", "version"], "", "version of the process", Level::User, version),
    Command::now(&["user"], "", "give up all rights to change things", Level::User, user),
];

/// `help`.
pub fn help(call: &mut Call<'_>) -> Outcome {
    Ok(Reply::info(table::help(call.args(), call.client.viewer(), &call.shared().commands)))
}

const PROMPT_HELP: &str = "\
Usage: prompt [help | n | i | p | timed]*
Switches how this connection answers:
  help    show these lines
  n       one line of commands, then the connection is closed
  i       interactive: many lines, no prompt
  p       interactive, with a prompt
  timed   show the uptime in the prompt, or no longer
Without argument, a prompt is switched on, or all of it off.
";

/// `prompt`.
pub fn prompt(call: &mut Call<'_>) -> Outcome {
    let given = call.args().len();
    if given == 0 {
        let on = !call.client.prompt;
        set_mode(call, on, on);
    }
    for i in 0..given {
        match call.arg(i) {
            "n" => set_mode(call, false, false),
            "i" => set_mode(call, true, false),
            "p" => set_mode(call, true, true),
            "timed" => {
                call.client.timed = !call.client.timed;
                set_mode(call, true, true);
            }
            _ => return Ok(Reply::info(PROMPT_HELP)),
        }
    }
    Ok(Reply::Done)
}

fn set_mode(call: &mut Call<'_>, interactive: bool, prompt: bool) {
    call.client.interactive = interactive;
    call.client.prompt = prompt;
}

/// `quit`.
pub fn quit(call: &mut Call<'_>) -> Outcome {
    call.client.quit = true;
    Ok(Reply::Done)
}

/// `echo`.
pub fn echo(call: &mut Call<'_>) -> Outcome {
    Ok(Reply::info(call.args().join(" ") + "\n"))
}

/// `show version`.
pub fn version(_: &mut Call<'_>) -> Outcome {
    Ok(Reply::info(crate::product::VERSION))
}

/// `show cli level`.
pub fn show_level(call: &mut Call<'_>) -> Outcome {
    Ok(Reply::info(level_name(call.client.level)))
}

/// The name of a level.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::User => "user",
        Level::Operator => "operator",
        Level::Admin => "admin",
    }
}

/// `operator`.
pub fn operator(call: &mut Call<'_>) -> Outcome {
    lower(call, Level::Operator);
    Ok(done(call.arg(0)))
}

/// `user`.
pub fn user(call: &mut Call<'_>) -> Outcome {
    lower(call, Level::User);
    Ok(done(call.arg(0)))
}

/// The modes of an admin go with its level.
fn lower(call: &mut Call<'_>, level: Level) {
    call.client.level = level;
    (call.client.expert, call.client.experimental) = (false, false);
}

/// A change of the connection is answered with the empty line, or not at all where `-` stands behind it: so a
/// master sets its mode in front of a command.
fn done(last: &str) -> Reply {
    if last == "-" { Reply::Silent } else { Reply::Done }
}

/// `set severity-output`.
pub fn severity_output(call: &mut Call<'_>) -> Outcome {
    call.client.severity = match call.arg(0) {
        "none" => Severity::None,
        "number" => Severity::Number,
        "string" => Severity::String,
        _ => return Err("one of 'none', 'number', 'string' is a required argument".into()),
    };
    Ok(done(call.arg(1)))
}

/// `set timeout cli`: seconds unless a unit is given.
pub fn set_timeout(call: &mut Call<'_>) -> Outcome {
    if call.arg(0) != "cli" {
        return Err("'set timeout' only supports 'cli'.".into());
    }
    if call.arg(1).is_empty() {
        return Err("Expects an integer value.".into());
    }
    let timeout = duration(call.arg(1), Duration::from_secs(1)).filter(|d| !d.is_zero());
    call.client.timeout = Some(timeout.ok_or(Refusal::from("Invalid timeout value."))?);
    Ok(Reply::Done)
}

/// A duration: digits and perhaps a unit. Nothing for anything else, or for more than 24 days.
pub fn duration(text: &str, unit: Duration) -> Option<Duration> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at_checked(end)?;
    let unit = match suffix {
        "" => unit,
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        "d" => Duration::from_secs(86_400),
        _ => return None,
    };
    let longest = Duration::from_millis(i32::MAX as u64);
    unit.checked_mul(digits.parse().ok()?).filter(|d| *d <= longest)
}

/// `expert-mode`.
pub fn expert_mode(call: &mut Call<'_>) -> Outcome {
    let (on, last) = (call.arg(0).to_owned(), call.arg(1).to_owned());
    switch(&on, &last, "expert-mode", &mut call.client.expert)
}

/// `experimental-mode`.
pub fn experimental_mode(call: &mut Call<'_>) -> Outcome {
    let (on, last) = (call.arg(0).to_owned(), call.arg(1).to_owned());
    switch(&on, &last, "experimental-mode", &mut call.client.experimental)
}

fn switch(word: &str, last: &str, name: &str, flag: &mut bool) -> Outcome {
    if word.is_empty() {
        return Ok(Reply::info(format!("{name} is {}", if *flag { "ON" } else { "OFF" })));
    }
    *flag = word == "on";
    Ok(done(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_limits() {
        let s = Duration::from_secs(1);
        for (text, wanted) in [
            ("10", Some(10_000)),
            ("10ms", Some(10)),
            ("2m", Some(120_000)),
            ("24d", Some(24 * 86_400_000)),
            ("25d", None),
            ("", None),
            ("x", None),
            ("5x", None),
            ("99999999999999999999", None),
            ("-1", None),
        ] {
            assert_eq!(duration(text, s).map(|d| d.as_millis()), wanted, "{text:?}");
        }
    }
}
