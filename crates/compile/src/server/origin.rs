//! `from` on server lines, and the names of `default-server` lines: where settings come from (manual, section
//! 5.2).
//!
//! What is copied must stand above: in the section at hand, or in one that is over.

use syntax::{Diagnostic, Word};

use crate::draft::{Draft, ServerDraft};
use crate::statement::{Statement, Step, bracket};

/// `name <name>` of a `default-server` line.
pub(super) fn name<'c>(s: &mut Statement<'c>, p: &Draft) -> Step<Option<&'c Word>> {
    if s.args.peek().is_none_or(|word| word != "name") {
        return Ok(None);
    }
    s.args.next();
    let Some(name) = s.args.next() else {
        return Err(bracket(s.fail("default-server name: missing value.")));
    };
    if let Some(server) = p.servers.iter().find(|server| name == &*server.name) {
        let line = server.span.line;
        let text = format!("default-server name '{name}' conflicts with server defined at line {line}.");
        return Err(bracket(s.fail_at(name.span(), text)));
    }
    Ok(Some(name))
}

/// `from <origin>`: the settings to begin with, if that is said. `label` names the server in messages.
pub(super) fn of(s: &mut Statement<'_>, p: &Draft, label: &str) -> Step<Option<ServerDraft>> {
    if s.args.peek().is_none_or(|word| word != "from") {
        return Ok(None);
    }
    s.args.next();
    let before = if label.is_empty() { String::new() } else { format!("{label} : ") };
    let Some(origin) = s.args.next() else {
        return Err(bracket(s.fail(format!("{before}from: missing value."))));
    };
    match find(s.around.earlier, p, origin.text()) {
        Ok(found) => Ok(Some(found)),
        Err(why) => Err(bracket(Diagnostic::alert(origin.span(), format!("{before}{why}")))),
    }
}

fn find(earlier: &[Draft], p: &Draft, origin: &str) -> Result<ServerDraft, String> {
    let backend = |name: &str| match name {
        "" => Some(p),
        name if name == &*p.name => Some(p),
        name => earlier.iter().find(|e| e.kind.is_back() && name == &*e.name),
    };
    if origin == "none" {
        return Ok(ServerDraft::default());
    }
    if let Some(name) = origin.strip_prefix("be:") {
        let found = backend(name).ok_or_else(|| format!("from: unknown backend instance '{name}'."))?;
        return Ok(found.default_server.clone());
    }
    let Some(path) = origin.strip_prefix("srv:") else {
        return Err(format!("invalid '{origin}' value for 'from' keyword."));
    };
    let (name, server) = path.split_once('/').unwrap_or(("", path));
    if server.is_empty() {
        return Err("from: require <backend>/<server>.".into());
    }
    let found = backend(name).ok_or_else(|| format!("from: unknown backend '{name}'."))?;
    let mut all = found.servers.iter().chain(&found.named_servers);
    let Some(model) = all.find(|known| *known.name == *server) else {
        return Err(format!("from: unknown server '{server}' in backend '{}'.", found.name));
    };
    // What makes it this one and no other is not copied.
    Ok(ServerDraft {
        id: None,
        forced_id: false,
        guid: None,
        template: None,
        is_copy: false,
        ..model.clone()
    })
}
