//! The lists of `-dK` (management guide): every entry in one line, as HAProxy prints it.

use crate::registry::Registry;

/// Class `smp`.
pub fn fetches(reg: &Registry) -> Vec<String> {
    let mut lines = vec!["# List of registered sample fetch functions:".to_owned()];
    lines.extend(crate::places::legend());
    for def in reg.all_fetches() {
        lines.push(format!(
            "{} {}{}: {}",
            def.places.dump(),
            def.name,
            parenthesised(def.args),
            def.out.word()
        ));
    }
    lines
}

/// Class `cnv`.
pub fn converters(reg: &Registry) -> Vec<String> {
    let mut lines = vec!["# List of registered sample converter functions:".to_owned()];
    for def in reg.all_converters() {
        // What passes its input on says so.
        let out = if def.name == "debug" { "same" } else { def.out.word() };
        lines.push(format!("{}{}: {out} => {}", def.name, parenthesised(def.args), def.from.word()));
    }
    lines
}

/// Class `acl`.
pub fn acls(reg: &Registry) -> Vec<String> {
    let mut lines = vec!["# List of registered ACL keywords:".to_owned()];
    lines.extend(reg.all_acls().iter().map(|d| format!("{} = {} -m {}", d.name, d.fetch, d.kind.name())));
    lines
}

fn parenthesised(args: &str) -> String {
    if args.is_empty() { String::new() } else { format!("({args})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_as_haproxy_prints_them() {
        let reg = Registry::standard();
        let has = |lines: Vec<String>, line: &str| assert!(lines.iter().any(|l| l == line), "{line}");
        has(fetches(&reg), "[ . . Y Y Y Y Y Y Y Y Y . . . . . . . . . . . ] req.hdr([string,integer]): str");
        has(fetches(&reg), "[ Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y . Y ] nbsrv(backend): sint");
        has(converters(&reg), "field(integer,string[,integer]): str => str");
        has(converters(&reg), "ipmask(IPv4 mask[,IPv6 mask]): addr => addr");
        has(acls(&reg), "path_beg = path -m beg");
    }
}
