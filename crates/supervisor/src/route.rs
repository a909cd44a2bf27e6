//! The language of the master's socket: which process a command is for (management guide, 9.4.1).

use super::machine::Machine;

/// Where commands go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The master itself.
    Master,
    /// The worker of this process id.
    Worker(i32),
}

/// A command with what its prefix says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routed<'c> {
    /// No prefix: where commands go at present.
    Plain(&'c str),
    /// `@<n> command`: this one goes there.
    To(Target, &'c str),
    /// `@<n>`: from now on they go there.
    Switch(Target),
    /// `@@<n> commands`: the rest of the line goes there as a whole, and whatever follows; without commands
    /// it is a session there.
    Through(Target, &'c str),
    /// There is no such process; the prefix.
    Nobody(&'c str),
}

/// Cuts a line at each `;` that has no backslash in front of it.
pub fn commands(line: &str) -> Vec<&str> {
    let (mut out, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b';' => {
                out.extend(line.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    out.extend(line.get(start..));
    out
}

/// Whether a line begins with a prefix that takes it as a whole (`@@`).
pub fn takes_all(command: &str) -> bool {
    command.trim_start().starts_with("@@")
}

/// Reads the prefix of a command.
pub fn route<'c>(command: &'c str, machine: &Machine) -> Routed<'c> {
    let command = command.trim_matches([' ', '\t', '\r']);
    if !command.starts_with('@') {
        return Routed::Plain(command);
    }
    let (prefix, rest) = command.split_once([' ', '\t']).unwrap_or((command, ""));
    let rest = rest.trim_start();
    let (through, name) = match prefix.strip_prefix("@@") {
        Some(name) => (true, name),
        None => (false, prefix.strip_prefix('@').unwrap_or_default()),
    };
    let Some(target) = find(name, machine) else { return Routed::Nobody(prefix) };
    match (through, rest) {
        (true, rest) => Routed::Through(target, rest),
        (false, "") => Routed::Switch(target),
        (false, rest) => Routed::To(target, rest),
    }
}

/// The process that is called so behind an `@`.
fn find(name: &str, machine: &Machine) -> Option<Target> {
    if let Some(pid) = name.strip_prefix('!') {
        let pid: i32 = pid.parse().ok()?;
        let known = machine.children.iter().find(|c| c.pid == pid);
        return known.map(|c| Target::Worker(c.pid));
    }
    match name {
        "" | "0" | "master" => Some(Target::Master),
        "1" => machine.first().map(|c| Target::Worker(c.pid)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Child, Stage};

    fn machine() -> Machine {
        let mut machine = Machine::new(0, "v");
        for (pid, stage) in [(70, Stage::Former), (71, Stage::Current)] {
            let version = String::new();
            let child = Child { pid, stage, reloads: 0, started: 0, version, overdue: false, line: 3 };
            machine.children.push(child);
        }
        machine
    }

    #[test]
    fn lines_are_cut_where_no_backslash_stands() {
        assert_eq!(commands("@1 echo a\\;b;show version;"), ["@1 echo a\\;b", "show version", ""]);
        assert_eq!(commands(""), [""]);
        assert_eq!(commands("a\\"), ["a\\"]);
    }

    /// Lines of odd pieces: nothing of a line is lost when it is cut, and every prefix leads somewhere or
    /// to nobody.
    #[test]
    fn any_line_is_cut_and_led_somewhere() {
        const PIECES: [&str; 16] = [
            "@",
            "@@",
            "1",
            "!70",
            "!-1",
            " ",
            ";",
            "\\",
            "\t",
            "master",
            "show",
            "\r",
            "ä",
            "<<",
            "99999999999",
            "\0",
        ];
        let machine = machine();
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..20_000 {
            let mut line = String::new();
            for _ in 0..seed % 12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                line.push_str(PIECES[(seed >> 60) as usize]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let cut = commands(&line);
            assert_eq!(cut.join(";"), line);
            for command in cut.into_iter().chain([&*line]) {
                let rest = match route(command, &machine) {
                    Routed::Plain(rest) | Routed::To(_, rest) | Routed::Through(_, rest) => rest,
                    Routed::Nobody(prefix) => prefix,
                    Routed::Switch(_) => "",
                };
                assert!(command.contains(rest), "{command:?}: {rest:?}");
                assert_eq!(takes_all(command), command.trim_start().starts_with("@@"), "{command:?}");
            }
            let _ = admin::cli::line::parse(line.as_bytes());
        }
    }

    #[test]
    fn prefixes_name_processes_as_on_the_oracle() {
        use Routed::{Nobody, Plain, Switch, Through, To};
        let (machine, worker) = (machine(), Target::Worker(71));
        for (command, wanted) in [
            ("show proc", Plain("show proc")),
            ("  ", Plain("")),
            ("@1", Switch(worker)),
            ("@", Switch(Target::Master)),
            ("@1 show info ", To(worker, "show info")),
            (" @!70 show info", To(Target::Worker(70), "show info")),
            ("@0 show version", To(Target::Master, "show version")),
            ("@master show version", To(Target::Master, "show version")),
            ("@ show version", To(Target::Master, "show version")),
            ("@2 show info", Nobody("@2")),
            ("@!0 show info", Nobody("@!0")),
            ("@-1", Nobody("@-1")),
            ("@1show version", Nobody("@1show")),
            ("@99999999999", Nobody("@99999999999")),
            ("@@1", Through(worker, "")),
            ("@@1 show info", Through(worker, "show info")),
            ("@@2", Nobody("@@2")),
        ] {
            assert_eq!(route(command, &machine), wanted, "{command:?}");
        }
    }
}
