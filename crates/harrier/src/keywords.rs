//! `-dK` and `help`: what the registries hold.

use lang::Registry;

/// The lists of `-dK<classes>`.
pub fn dump(classes: &str, registry: &Registry) -> String {
    if classes.split(',').any(|c| c == "help") {
        return help();
    }
    let all = classes.split(',').any(|c| c == "all");
    let wanted = CLASSES.iter().filter(|class| all || classes.split(',').any(|c| c == **class));
    let list = |class: &&str| match *class {
        "cli" => Some(admin::dump::commands()),
        class => compile::dump::keywords(class, registry),
    };
    wanted.filter_map(list).collect()
}

/// `-dKhelp`.
fn help() -> String {
    let lines = [
        "# List of supported keyword classes:",
        "all: list all keywords",
        "acl: ACL keywords",
        "cfg: configuration keywords",
        "cli: CLI keywords",
        "cnv: sample converter keywords",
        "flt: filter names",
        "smp: sample fetch functions",
    ];
    lines.iter().map(|l| format!("{l}\n")).collect()
}

/// The classes that have a list, in the order of the dump.
const CLASSES: &[&str] = &["acl", "cfg", "cli", "cnv", "flt", "smp"];
