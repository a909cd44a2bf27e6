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
        "svc" => Some(services()),
        class => compile::dump::keywords(class, registry),
    };
    wanted.filter_map(list).collect()
}

/// The services that rules may name.
fn services() -> String {
    let all = crate::services::all();
    // The page of statistics is there without being named.
    let named = all.iter().map(|(name, _)| name).filter(|name| &***name != "stats");
    named.fold("# List of registered service names:\n".to_owned(), |list, name| list + name + "\n")
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
        "svc: service names",
    ];
    lines.iter().map(|l| format!("{l}\n")).collect()
}

/// The classes that have a list, in the order of the dump.
const CLASSES: &[&str] = &["acl", "cfg", "cli", "cnv", "flt", "smp", "svc"];
