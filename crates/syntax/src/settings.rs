//! The few keywords that reading itself knows: those that change what `"$VAR"` means on the lines below, and
//! those that may stand behind `no` and `default`.

use crate::diagnostics::Diagnostics;
use crate::environment::Environment;
use crate::word::{Line, Modifier, Word};

/// The keywords that [`obey`] obeys.
pub const ENVIRONMENT_KEYWORDS: &[&str] = &["setenv", "presetenv", "unsetenv", "resetenv"];

/// The variable that `localpeer` sets.
const LOCALPEER: &str = "HAPROXY_LOCALPEER";

/// What HAProxy says of a keyword that may not stand behind `no` or `default`.
pub(crate) const NOT_MODIFIABLE: &str = "negation/default currently supported only for options, log, busy-polling, \
     set-dumpable, strict-limits, insecure-fork-wanted and numa-cpu-mapping.";

/// Whether a line has no modifier, or its keyword may have one.
pub(crate) fn may_be_modified(line: &Line) -> bool {
    let keyword = line.keyword().text();
    match line.modifier() {
        Modifier::Set => !matches!(keyword, "no" | "default"),
        Modifier::No | Modifier::Default => matches!(
            keyword,
            "option"
                | "log"
                | "busy-polling"
                | "set-dumpable"
                | "strict-limits"
                | "insecure-fork-wanted"
                | "numa-cpu-mapping"
        ),
    }
}

/// Does what an environment keyword asks; any other line does nothing here.
pub(crate) fn obey(line: &Line, environment: &mut Environment, diagnostics: &mut Diagnostics) {
    match line.keyword().bytes() {
        b"setenv" | b"presetenv" => set(line, environment, diagnostics),
        b"unsetenv" => unset(line, environment, diagnostics),
        b"resetenv" => environment.keep_only(line.args().iter().map(Word::bytes)),
        // The name of this peer is also a variable.
        b"localpeer" => line.args().iter().take(1).for_each(|name| environment.set(LOCALPEER, name.bytes())),
        _ => {}
    }
}

fn set(line: &Line, environment: &mut Environment, diagnostics: &mut Diagnostics) {
    let keyword = line.keyword();
    let [name, value, rest @ ..] = line.args() else {
        let text = match line.args() {
            [name] if !name.is_empty() => {
                format!("'{keyword}' expects environment variable value for '{name}'.")
            }
            _ => format!("'{keyword}' expects environment variable name."),
        };
        return diagnostics.alert(line.span(), text);
    };
    if let Some(extra) = rest.first() {
        let text = format!("'{keyword}' cannot handle unexpected argument '{extra}'.");
        return diagnostics.alert(extra.span(), text);
    }
    if name.is_empty() {
        return diagnostics.alert(name.span(), format!("'{keyword}' expects environment variable name."));
    }
    if value.is_empty() {
        let text = format!("'{keyword}' expects environment variable value for '{name}'.");
        return diagnostics.alert(value.span(), text);
    }
    if !is_name(name) {
        return refuse(keyword, name, diagnostics);
    }
    match keyword.bytes() {
        b"setenv" => environment.set(name.bytes(), value.bytes()),
        _ => environment.preset(name.bytes(), value.bytes()),
    }
}

fn unset(line: &Line, environment: &mut Environment, diagnostics: &mut Diagnostics) {
    let keyword = line.keyword();
    if line.args().first().is_none_or(Word::is_empty) {
        let text = format!("'{keyword}' expects at least one variable name.");
        return diagnostics.alert(line.span(), text);
    }
    for name in line.args() {
        if is_name(name) {
            environment.unset(name.bytes());
        } else {
            refuse(keyword, name, diagnostics);
        }
    }
}

fn refuse(keyword: &Word, name: &Word, diagnostics: &mut Diagnostics) {
    let text = format!("'{keyword}' failed on variable '{name}' : Invalid argument.");
    diagnostics.alert(name.span(), text);
}

/// Whether the C library would take it as the name of a variable.
fn is_name(name: &Word) -> bool {
    !name.is_empty() && !name.bytes().contains(&b'=')
}
