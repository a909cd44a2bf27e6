//! What the process was built of, where it runs and what it was allowed when it began, for `show dev`.
//!
//! It is gathered before the process changes its root, its user and its limits: behind a chroot nothing of it
//! can be read any more.

use std::fmt::Write;
use std::sync::OnceLock;

use rt::sys::Limit;

use crate::cli::anon::Anon;

static BOOT: OnceLock<Boot> = OnceLock::new();

/// What was found when the process began.
#[derive(Debug)]
struct Boot {
    build: String,
    /// Name, value, and whether the value tells whose machine it is.
    platform: Vec<(&'static str, String, bool)>,
    standing: Standing,
    /// What was mapped into the process, as the system tells it.
    maps: String,
}

/// What the process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// User.
    uid: u32,
    /// Group.
    gid: u32,
    /// Lines about capabilities.
    capabilities: Vec<String>,
    /// Limits: soft and hard ones of descriptors, then of memory.
    limits: [Option<u64>; 4],
}

impl Standing {
    /// That of now.
    pub fn now() -> Standing {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let is_set =
            |line: &&str| ["CapEff:", "CapPrm:", "CapInh:"].iter().any(|name| line.starts_with(name));
        let capability = |line: &str| line.split_once(':').map(|(n, v)| format!("{n}: 0x{}", v.trim()));
        let (fds, memory) = (Limit::Descriptors.get(), Limit::Memory.get());
        Standing {
            uid: rt::sys::effective_user(),
            gid: rt::sys::effective_group(),
            capabilities: status.lines().filter(is_set).filter_map(capability).collect(),
            limits: [fds.0, fds.1, memory.0, memory.1],
        }
    }
}

/// Gathers all that is known of the machine; `build` are lines about the program itself. Once, first thing.
pub fn remember(build: String) {
    BOOT.get_or_init(|| Boot { build, platform: platform(), standing: Standing::now(), maps: maps() });
}

fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// What is mapped into the process; behind a chroot what was when it began.
pub fn mappings() -> String {
    let now = maps();
    if now.is_empty() { BOOT.get().map(|boot| boot.maps.clone()).unwrap_or_default() } else { now }
}

/// The first line of a file.
fn line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("").trim().to_owned()
}

fn platform() -> Vec<(&'static str, String, bool)> {
    let cpu = Cpu::read();
    let exists = |path: &str| std::path::Path::new(path).exists();
    let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
    let container = exists("/.dockerenv") || exists("/run/.containerenv") || exists("/run/systemd/container");
    let all = [
        ("machine vendor", line("/sys/class/dmi/id/sys_vendor"), false),
        ("machine family", line("/sys/class/dmi/id/product_family"), false),
        ("soc vendor", cpu.vendor, false),
        ("soc model", cpu.name, false),
        ("cpu model", cpu.model, false),
        ("virtual machine", yes(cpu.virtual_machine), false),
        ("container", yes(container), false),
        ("OS name", line("/proc/sys/kernel/ostype"), false),
        ("OS release", line("/proc/sys/kernel/osrelease"), false),
        ("OS version", line("/proc/sys/kernel/version"), false),
        ("OS architecture", std::env::consts::ARCH.to_owned(), false),
        ("node name", rt::sys::hostname(), true),
        ("distro pretty name", distribution(), true),
    ];
    all.into_iter().filter(|(_, value, _)| !value.is_empty()).collect()
}

fn distribution() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

/// The first processor.
#[derive(Debug, Default)]
struct Cpu {
    vendor: String,
    name: String,
    model: String,
    virtual_machine: bool,
}

impl Cpu {
    fn read() -> Cpu {
        use std::io::Read;
        // One processor is enough: of machines with hundreds the file is long.
        let mut text = Vec::new();
        if let Ok(file) = std::fs::File::open("/proc/cpuinfo") {
            let _ = file.take(8192).read_to_end(&mut text);
        }
        Cpu::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Cpu {
        let first = text.split("\n\n").next().unwrap_or_default();
        let value = |name: &str| {
            let found = first.lines().filter_map(|l| l.split_once(':')).find(|(n, _)| n.trim() == name);
            found.map_or("", |(_, value)| value.trim())
        };
        let model = match (value("cpu family"), value("CPU implementer")) {
            ("", "") => String::new(),
            ("", maker) => format!(
                "Impl {maker} Arch {} Part {} r{}p{}",
                value("CPU architecture"),
                value("CPU part"),
                value("CPU variant"),
                value("CPU revision")
            ),
            (family, _) => format!("Fam {family} Model {} Step {}", value("model"), value("stepping")),
        };
        Cpu {
            vendor: value("vendor_id").into(),
            name: value("model name").into(),
            model,
            virtual_machine: value("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

/// The lines of `show dev` about the build and the machine.
pub fn about_machine(anon: Anon, out: &mut String) {
    let Some(boot) = BOOT.get() else { return };
    out.push_str(&boot.build);
    out.push_str("Platform info:\n");
    for (name, value, is_telling) in &boot.platform {
        let value = if *is_telling { anon.word(value) } else { value.into() };
        let _ = writeln!(out, "  {name}: {value}");
    }
}

/// The lines of `show dev` about what the process might do when it began, and may do now.
pub fn about_standing(out: &mut String) {
    let now = Standing::now();
    let boot = BOOT.get().map_or(&now, |boot| &boot.standing);
    for (when, standing) in [("boot", boot), ("runtime", &now)] {
        if !standing.capabilities.is_empty() {
            let _ = writeln!(out, "  {when} capabilities:");
        }
        for line in &standing.capabilities {
            let _ = writeln!(out, "  \t{line}");
        }
    }
    let mut row = |name: &str, boot: String, now: String| {
        let _ = writeln!(out, "  {name:<24}{boot:<13}{now}");
    };
    let shown = |limit: Option<u64>| limit.map_or("unlimited".into(), |n| n.to_string());
    row("identity:", "-boot-".into(), "-runtime-".into());
    row("    uid:", boot.uid.to_string(), now.uid.to_string());
    row("    gid:", boot.gid.to_string(), now.gid.to_string());
    row("limits:", "-boot-".into(), "-runtime-".into());
    const NAMES: [&str; 4] = ["fd limit (soft)", "fd limit (hard)", "ram limit (soft)", "ram limit (hard)"];
    for (name, (boot, now)) in NAMES.iter().zip(boot.limits.iter().zip(now.limits)) {
        row(&format!("    {name}:"), shown(*boot), shown(now));
    }
}

/// Processors as the kernel writes a set of them: `0-1,4`.
pub fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut().filter(|(_, to)| *to + 1 == cpu) {
            Some((_, to)) => *to = cpu,
            None => parts.push((cpu, cpu)),
        }
    }
    let part =
        |(from, to): &(usize, usize)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_and_written() {
        let text = "processor\t: 0\nvendor_id\t: V\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: N\n\
                    stepping\t: 2\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nvendor_id\t: W\n";
        let cpu = Cpu::parse(text);
        assert_eq!((&*cpu.vendor, &*cpu.name, &*cpu.model), ("V", "N", "Fam 6 Model 207 Step 2"));
        assert!(cpu.virtual_machine && !Cpu::parse("").virtual_machine);
        let arm = Cpu::parse(
            "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n",
        );
        assert_eq!(arm.model, "Impl 0x41 Arch 8 Part 0xd0c r0x3p1");
        assert_eq!((ranges(&[0, 1, 2, 4, 6, 7]), ranges(&[])), ("0-2,4,6-7".into(), String::new()));
    }
}
