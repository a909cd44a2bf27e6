//! `show proc`: the master and its workers.

use std::fmt::Write;

use supervisor::machine::{Child, Machine, Stage};

/// What `show proc` answers, without the empty line that ends it. `now` is in seconds since 1970.
pub fn processes(machine: &Machine, version: &str, now: u64, debug: bool) -> String {
    let mut out = row("#<PID>", "<type>", "<reloads>", "<uptime>", "<version>");
    end(&mut out, debug.then_some(("<ipc_fd[0]>", "<ipc_fd[1]>")));
    let reloads = format!("{} [failed: {}]", machine.reloads, u8::from(machine.failed));
    let up = uptime(now.saturating_sub(machine.started));
    out.push_str(&row(&std::process::id().to_string(), "master", &reloads, &up, version));
    end(&mut out, debug.then_some(("-1", "-1")));
    out.push_str("# workers\n");
    let (former, present): (Vec<_>, Vec<_>) =
        machine.children.iter().rev().partition(|c| c.stage == Stage::Former);
    for child in present {
        worker(&mut out, child, now, debug);
    }
    if !former.is_empty() {
        out.push_str("# old workers\n");
    }
    for child in former {
        worker(&mut out, child, now, debug);
    }
    out.push('\n');
    out
}

fn worker(out: &mut String, child: &Child, now: u64, debug: bool) {
    let up = uptime(now.saturating_sub(child.started));
    out.push_str(&row(&child.pid.to_string(), "worker", &child.reloads.to_string(), &up, &child.version));
    end(out, debug.then_some((&child.line.to_string(), "-1")));
}

fn row(pid: &str, kind: &str, reloads: &str, uptime: &str, version: &str) -> String {
    format!("{pid:<15} {kind:<15} {reloads:<15} {uptime:<15} {version:<15}")
}

fn end(out: &mut String, lines: Option<(&str, &str)>) {
    if let Some((ours, theirs)) = lines {
        let _ = write!(out, "\t\t {ours:<15} {theirs:<15}");
    }
    out.push('\n');
}

/// `0d00h00m01s`.
fn uptime(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    format!("{days}d{:02}h{:02}m{:02}s", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_oracle() {
        let mut machine = Machine::new(1000, "v");
        machine.reloads = 1;
        for (pid, stage) in [(11, Stage::Former), (12, Stage::Current)] {
            let reloads = u32::from(stage == Stage::Former);
            let version = "3.5-dev5-50872d-2".to_owned();
            machine.children.push(Child {
                pid,
                stage,
                reloads,
                started: 1090,
                version,
                overdue: false,
                line: 4,
            });
        }
        let text = processes(&machine, "3.5-dev5-50872d-2", 1100, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "#<PID>          <type>          <reloads>       <uptime>        <version>      "
        );
        assert!(lines[1].ends_with(" master          1 [failed: 0]   0d00h01m40s     3.5-dev5-50872d-2"));
        assert_eq!(lines[2], "# workers");
        assert_eq!(
            lines[3],
            "12              worker          0               0d00h00m10s     3.5-dev5-50872d-2"
        );
        assert_eq!(lines[4], "# old workers");
        assert_eq!(lines.len(), 7);
        assert!(processes(&machine, "v", 1100, true).contains("\t\t 4               -1             \n"));
    }
}
