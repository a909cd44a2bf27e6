//! The table of commands: the one place that says which words name a command, who may give it, how it is used, and
//! what runs it. `help`, the suggestions for unknown commands and the `-dKcli` dump are read from it.

use std::future::Future;
use std::pin::Pin;

use program::listener::Level;

use super::call::{Call, Outcome};
use crate::command as c;

/// A command that waits for something.
pub type Later = for<'a, 'c> fn(&'a mut Call<'c>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// At once.
    Now(fn(&mut Call<'_>) -> Outcome),
    /// It asks other workers, or waits.
    Later(Later),
}

/// One command.
pub struct Command {
    /// The words that name it.
    pub words: &'static [&'static str],
    /// Its arguments, for `help`.
    pub arguments: &'static str,
    /// What it does, for `help`; an empty one keeps it out of the list.
    pub about: &'static str,
    /// The lowest level that may give it. Some look closer at their arguments.
    pub level: Level,
    /// What runs it.
    pub run: Run,
    /// It wants `experimental-mode on`.
    pub experimental: bool,
}

const fn experimental(command: Command) -> Command {
    Command { experimental: true, ..command }
}

const fn now(
    words: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    level: Level,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { words, arguments, about, level, run: Run::Now(run), experimental: false }
}

const fn later(
    words: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
    level: Level,
    run: Later,
) -> Command {
    Command { words, arguments, about, level, run: Run::Later(run), experimental: false }
}

use Level::{Admin, Operator, User};

/// All commands but those of every connection ([`ALWAYS`]), sorted by their words.
pub const COMMANDS: &[Command] = &[
    now(
        &["abort", "ssl", "ca-file"],
        "<cafile>",
        "abort a transaction for a CA file",
        Admin,
        c::tls::files::abort,
    ),
    now(
        &["abort", "ssl", "cert"],
        "<certfile>",
        "abort a transaction for a certificate file",
        Admin,
        c::tls::certs::abort,
    ),
    now(
        &["abort", "ssl", "crl-file"],
        "<crlfile>",
        "abort a transaction for a CRL file",
        Admin,
        c::tls::files::abort,
    ),
    now(&["add", "acl"], "[@<ver>] <acl> <pattern>", "add an entry to an ACL", Admin, c::patterns::add_acl),
    now(
        &["add", "backend"],
        "<bk> from <defaults> [mode <mode>] [guid <guid>]",
        "add a backend, unpublished and without servers",
        Admin,
        c::farm::add_backend,
    ),
    now(
        &["add", "map"],
        "[@<ver>] <map> <key> <val>",
        "add an entry to a map, or those of a payload",
        Admin,
        c::patterns::add_map,
    ),
    now(&["add", "server"], "<bk>/<srv> <addr> [opts]*", "add a server to a backend", Admin, c::farm::add),
    now(
        &["add", "ssl", "ca-file"],
        "<cafile> <payload>",
        "add certificates to a CA file",
        Admin,
        c::tls::files::set,
    ),
    now(
        &["add", "ssl", "crt-list"],
        "<list> <cert> [opts]*",
        "add a certificate, or the line of a payload, to a certificate list",
        Admin,
        c::tls::lists::add,
    ),
    now(
        &["add", "ssl", "jwt"],
        "<certfile>",
        "let tokens be verified with a certificate",
        Admin,
        c::tls::certs::set_jwt,
    ),
    now(&["clear", "acl"], "[@<ver>] <acl>", "remove all entries of an ACL", Admin, c::patterns::clear),
    now(
        &["clear", "counters"],
        "[all|server <bk>/<srv> [force]]",
        "set maxima to zero, or all figures",
        Operator,
        c::counters::clear,
    ),
    now(&["clear", "map"], "[@<ver>] <map>", "remove all entries of a map", Admin, c::patterns::clear),
    now(
        &["clear", "table"],
        "<table> [<filter>]*",
        "remove entries of a stick table",
        Operator,
        c::tables::clear,
    ),
    now(
        &["commit", "acl"],
        "@<ver> <acl>",
        "let a version of an ACL take effect",
        Admin,
        c::patterns::commit,
    ),
    now(&["commit", "map"], "@<ver> <map>", "let a version of a map take effect", Admin, c::patterns::commit),
    now(
        &["commit", "ssl", "ca-file"],
        "<cafile>",
        "let a transaction for a CA file take effect",
        Admin,
        c::tls::files::commit,
    ),
    now(
        &["commit", "ssl", "cert"],
        "<certfile>",
        "let a transaction for a certificate file take effect",
        Admin,
        c::tls::certs::commit,
    ),
    now(
        &["commit", "ssl", "crl-file"],
        "<crlfile>",
        "let a transaction for a CRL file take effect",
        Admin,
        c::tls::files::commit,
    ),
    now(
        &["debug", "counters"],
        "[?|all|bug|cnt|chk|glt]*",
        "list or reset counters of rare events",
        Admin,
        c::profiling::counters,
    ),
    now(&["debug", "dev", "hash"], "[msg]", "a word as anonymised dumps show it", User, c::anon::hash),
    now(&["del", "acl"], "<acl> [<key>|#<ref>]", "remove an entry of an ACL", Admin, c::patterns::del),
    now(
        &["del", "backend"],
        "<bk>",
        "delete an unpublished backend without servers",
        Admin,
        c::farm::delete_backend,
    ),
    now(&["del", "map"], "<map> [<key>|#<ref>]", "remove an entry of a map", Admin, c::patterns::del),
    now(&["del", "server"], "<bk>/<srv>", "delete a server in maintenance", Admin, c::farm::delete),
    now(
        &["del", "ssl", "ca-file"],
        "<cafile>",
        "delete a CA file that nobody uses",
        Admin,
        c::tls::files::delete,
    ),
    now(
        &["del", "ssl", "cert"],
        "<certfile>",
        "delete a certificate that nobody uses",
        Admin,
        c::tls::certs::delete,
    ),
    now(
        &["del", "ssl", "crl-file"],
        "<crlfile>",
        "delete a CRL file that nobody uses",
        Admin,
        c::tls::files::delete,
    ),
    now(
        &["del", "ssl", "crt-list"],
        "<list> <cert[:line]>",
        "delete an entry of a certificate list",
        Admin,
        c::tls::lists::delete,
    ),
    now(
        &["del", "ssl", "jwt"],
        "<certfile>",
        "let no tokens be verified with a certificate",
        Admin,
        c::tls::certs::set_jwt,
    ),
    now(
        &["disable", "agent"],
        "<bk>/<srv>",
        "stop the agent check of a server",
        Admin,
        c::server::disable_agent,
    ),
    now(
        &["disable", "dynamic-cookie", "backend"],
        "<bk>",
        "compute no cookies for the servers of a backend",
        Operator,
        c::cookies::disable,
    ),
    now(
        &["disable", "frontend"],
        "<frontend>",
        "let a frontend accept no connections",
        Admin,
        c::frontend::disable,
    ),
    now(
        &["disable", "health"],
        "<bk>/<srv>",
        "stop the health check of a server",
        Admin,
        c::server::disable_health,
    ),
    now(&["disable", "server"], "<bk>/<srv>", "take a server into maintenance", Admin, c::server::disable),
    now(
        &["dump", "ssl", "cert"],
        "<certfile>",
        "a certificate with its key and its chain, as PEM",
        Admin,
        c::tls::certs::dump,
    ),
    now(&["dump", "stats-file"], "", "counters of all objects with a guid", Admin, c::inside::stats_file),
    now(&["echo"], "<text>", "repeat the text", User, c::basic::echo),
    now(
        &["enable", "agent"],
        "<bk>/<srv>",
        "run the agent check of a server again",
        Admin,
        c::server::enable_agent,
    ),
    now(
        &["enable", "dynamic-cookie", "backend"],
        "<bk>",
        "compute cookies for the servers of a backend",
        Operator,
        c::cookies::enable,
    ),
    now(
        &["enable", "frontend"],
        "<frontend>",
        "let a frontend accept connections again",
        Admin,
        c::frontend::enable,
    ),
    now(
        &["enable", "health"],
        "<bk>/<srv>",
        "run the health check of a server again",
        Admin,
        c::server::enable_health,
    ),
    now(&["enable", "server"], "<bk>/<srv>", "end the maintenance of a server", Admin, c::server::enable),
    now(&["experimental-mode"], "[on|off]", "", Admin, c::basic::experimental_mode),
    now(&["expert-mode"], "[on|off]", "", Admin, c::basic::expert_mode),
    now(&["get", "acl"], "<acl> <value>", "what a value finds in an ACL", Admin, c::patterns::get),
    now(&["get", "map"], "<map> <value>", "what a value finds in a map", Admin, c::patterns::get),
    now(&["get", "var"], "<name>", "value of a variable of the process", Operator, c::vars::get),
    now(&["get", "weight"], "<bk>/<srv>", "weight of a server, now and at the start", User, c::weight::get),
    now(
        &["new", "ssl", "ca-file"],
        "<cafile>",
        "create a CA file, to be used in certificate lists",
        Admin,
        c::tls::files::new,
    ),
    now(
        &["new", "ssl", "cert"],
        "<certfile>",
        "create a certificate file, to be used in certificate lists",
        Admin,
        c::tls::certs::new,
    ),
    now(
        &["new", "ssl", "crl-file"],
        "<crlfile>",
        "create a CRL file, to be used in certificate lists",
        Admin,
        c::tls::files::new,
    ),
    now(&["operator"], "", "give up the rights of an admin", Operator, c::basic::operator),
    now(&["prepare", "acl"], "<acl>", "begin a new version of an ACL", Admin, c::patterns::prepare),
    now(&["prepare", "map"], "<map>", "begin a new version of a map", Admin, c::patterns::prepare),
    now(
        &["publish", "backend"],
        "<backend>",
        "let content switching choose a backend again",
        Operator,
        c::farm::publish,
    ),
    now(
        &["set", "anon", "global-key"],
        "<value>",
        "change the key of anonymised dumps",
        Admin,
        c::anon::global_key,
    ),
    now(&["set", "anon", "off"], "", "show names and addresses", User, c::anon::off),
    now(&["set", "anon", "on"], "[value]", "hide names and addresses in dumps", User, c::anon::on),
    now(
        &["set", "dynamic-cookie-key", "backend"],
        "<bk> <key>",
        "change the secret that cookies are computed with",
        Operator,
        c::cookies::set_key,
    ),
    now(
        &["set", "map"],
        "<map> [<key>|#<ref>] <value>",
        "change values of a map",
        Admin,
        c::patterns::set_map,
    ),
    now(
        &["set", "maxconn", "frontend"],
        "<frontend> <value>",
        "change the limit of connections of a frontend",
        Admin,
        c::limits::frontend,
    ),
    now(
        &["set", "maxconn", "global"],
        "<value>",
        "change the limit of connections of the process",
        Admin,
        c::limits::global,
    ),
    now(
        &["set", "maxconn", "server"],
        "<bk>/<srv> <value>",
        "change the limit of requests of a server",
        Admin,
        c::weight::set_maxconn,
    ),
    now(
        &["set", "profiling"],
        "<what> {auto|on|off}",
        "measure what calls of streams take",
        Admin,
        c::profiling::set,
    ),
    now(&["set", "rate-limit"], "<setting> <value>", "change a limit of rates", Admin, c::limits::rate),
    now(
        &["set", "server"],
        "<bk>/<srv> [opts]",
        "change state, weight, address or health of a server",
        Admin,
        c::set_server::run,
    ),
    now(
        &["set", "severity-output"],
        "[none|number|string]",
        "mark answers with their severity",
        User,
        c::basic::severity_output,
    ),
    now(
        &["set", "ssl", "ca-file"],
        "<cafile> <payload>",
        "replace a CA file in a transaction",
        Admin,
        c::tls::files::set,
    ),
    later(
        &["set", "ssl", "cert"],
        "<certfile> <payload>",
        "replace a certificate file in a transaction",
        Admin,
        c::tls::certs::set,
    ),
    now(
        &["set", "ssl", "crl-file"],
        "<crlfile> <payload>",
        "replace a CRL file in a transaction",
        Admin,
        c::tls::files::set,
    ),
    now(
        &["set", "ssl", "ocsp-response"],
        "<resp|payload>",
        "take an OCSP response for the certificate that it is about",
        Admin,
        c::tls::responses::set,
    ),
    now(
        &["set", "ssl", "tls-key"],
        "[id|file] <key>",
        "add a key of TLS tickets, the oldest goes",
        Admin,
        c::ticket_keys::set,
    ),
    now(
        &["set", "table"],
        "<table> key <k> [data.* <v>]*",
        "enter or change an entry of a stick table",
        Operator,
        c::tables::set,
    ),
    now(
        &["set", "timeout"],
        "[cli] <delay>",
        "change the idle timeout of this connection",
        User,
        c::basic::set_timeout,
    ),
    experimental(now(
        &["set", "var"],
        "<name> [fmt|expr] {<format>|<expression>}",
        "set a variable of the process",
        Operator,
        c::vars::set,
    )),
    now(&["set", "weight"], "<bk>/<srv> <weight>", "change the weight of a server", Admin, c::weight::set),
    now(&["show", "acl"], "[@<ver>] <acl>", "list ACLs, or the entries of one", Admin, c::patterns::show),
    later(&["show", "activity"], "[<thread>]", "what the workers did", Operator, c::debug::activity),
    now(&["show", "anon"], "", "whether dumps are anonymised", User, c::anon::show),
    now(&["show", "backend"], "", "names of all backends", User, c::process::backends),
    now(&["show", "cli", "level"], "", "what this connection may do", User, c::basic::show_level),
    now(&["show", "cli", "sockets"], "", "where the runtime API listens", User, c::process::cli_sockets),
    now(
        &["show", "default-server"],
        "[<backend>]",
        "default-server lines that servers may be made from",
        User,
        c::inside::default_servers,
    ),
    now(&["show", "defaults"], "", "names of defaults sections", User, c::inside::defaults),
    now(&["show", "dev"], "", "facts about build, machine and process", Operator, c::inside::dev),
    now(&["show", "env"], "[var]", "environment variables, all or one", Operator, c::process::env),
    later(
        &["show", "errors"],
        "[<px>] [request|response]",
        "the last messages that could not be parsed",
        Operator,
        c::errors::show,
    ),
    now(&["show", "events"], "[<sink>] [-w] [-n] [-0]", "lines kept in a ring", Operator, c::events::show),
    now(&["show", "fd"], "[-!plcfbs]* [num]", "open file descriptors", Operator, c::fds::show),
    later(
        &["show", "info"],
        "[desc|json|typed|float]*",
        "facts and figures of the process",
        User,
        c::process::info,
    ),
    now(&["show", "libs"], "", "loaded object files", Operator, c::inside::libs),
    now(&["show", "map"], "[@<ver>] [map]", "list maps, or the entries of one", Admin, c::patterns::show),
    later(&["show", "pools"], "", "memory of buffers", User, c::debug::pools),
    later(
        &["show", "profiling"],
        "[<what>|<#lines>|<opts>]*",
        "what is measured, and the figures",
        User,
        c::profiling::show,
    ),
    now(&["show", "resolvers"], "[id]", "figures of name servers", User, c::process::resolvers),
    now(&["show", "schema", "json"], "", "JSON schema of the statistics", User, c::stat::schema),
    now(&["show", "servers", "conn"], "[<backend>]", "connections of servers", User, c::servers::conn),
    now(
        &["show", "servers", "state"],
        "[<backend>]",
        "state of servers, to be loaded by a later process",
        User,
        c::servers::state,
    ),
    later(&["show", "sess"], "[help|<id>|all] [opts...]", "client connections", Operator, c::sessions::show),
    now(
        &["show", "ssl", "ca-file"],
        "[<cafile>[:<index>]]",
        "CA files, or what is in one",
        Operator,
        c::tls::files::show,
    ),
    now(
        &["show", "ssl", "cert"],
        "[<certfile>]",
        "certificates, or what there is to know of one",
        Operator,
        c::tls::certs::show,
    ),
    now(
        &["show", "ssl", "crl-file"],
        "[<crlfile[:<index>>]]",
        "CRL files, or what is in one",
        Operator,
        c::tls::files::show,
    ),
    now(
        &["show", "ssl", "crt-list"],
        "[-n] [<list>]",
        "certificate lists, or the lines of one",
        Admin,
        c::tls::lists::show,
    ),
    now(
        &["show", "ssl", "jwt"],
        "",
        "certificates that tokens may be verified with",
        Operator,
        c::tls::certs::show_jwt,
    ),
    now(
        &["show", "ssl", "ocsp-response"],
        "[[text|base64] id]",
        "OCSP responses, or one of them",
        Admin,
        c::tls::responses::show,
    ),
    now(
        &["show", "ssl", "ocsp-updates"],
        "",
        "when OCSP responses are asked for, and what came of it",
        Admin,
        c::tls::responses::updates,
    ),
    now(&["show", "ssl", "providers"], "", "what the cryptography comes from", User, c::tls::providers),
    now(
        &["show", "ssl", "sni"],
        "[-f <frontend>] [-A] [-t <offset>]",
        "server names and the certificates that they get",
        User,
        c::tls::lists::sni,
    ),
    now(
        &["show", "startup-logs"],
        "",
        "what was said while the process started",
        Operator,
        c::debug::startup_logs,
    ),
    now(
        &["show", "stat"],
        "[desc|json|no-maint|typed|up]*",
        "statistics of proxies and servers",
        User,
        c::stat::show,
    ),
    now(
        &["show", "table"],
        "[<table> [<filter>]*]",
        "stick tables, or the entries of one",
        User,
        c::tables::show,
    ),
    later(&["show", "tasks"], "", "tasks that wait for their turn", User, c::debug::tasks),
    later(&["show", "threads"], "", "what the threads hold", User, c::debug::threads),
    now(&["show", "tls-keys"], "[id|*]", "keys of TLS tickets", Admin, c::ticket_keys::show),
    now(&["show", "version"], "", "version of the process", User, c::basic::version),
    now(&["shutdown", "frontend"], "<frontend>", "stop a frontend for good", Admin, c::frontend::shutdown),
    later(&["shutdown", "session"], "[id]", "end a client connection", Admin, c::sessions::shutdown),
    later(
        &["shutdown", "sessions", "server"],
        "<bk>/<srv>",
        "end the client connections of a server",
        Admin,
        c::sessions::shutdown_server,
    ),
    now(
        &["unpublish", "backend"],
        "<backend>",
        "let content switching pass a backend by",
        Operator,
        c::farm::unpublish,
    ),
    later(
        &["update", "ssl", "ocsp-response"],
        "<certfile>",
        "ask the responder of a certificate for its OCSP response",
        Admin,
        c::tls::responses::update,
    ),
    now(&["user"], "", "give up all rights to change things", User, c::basic::user),
    later(
        &["wait"],
        "{-h|<delay>} [condition]",
        "wait for a while, or for a condition",
        Admin,
        c::wait::wait,
    ),
];

/// Commands that every connection knows; they close each list of `help`.
pub const ALWAYS: &[Command] = &[
    now(&["help"], "[<command>]", "list commands, all or those that match", User, c::basic::help),
    now(
        &["prompt"],
        "[help | n | i | p | timed ]*",
        "switch the prompt and the interactive mode",
        User,
        c::basic::prompt,
    ),
    now(&["quit"], "", "close the connection", User, c::basic::quit),
];

/// The command that `words` begin with.
pub fn find(words: &[String]) -> Option<&'static Command> {
    let is_it = |c: &&Command| c.words.len() <= words.len() && c.words.iter().zip(words).all(|(a, b)| a == b);
    COMMANDS.iter().chain(ALWAYS).filter(is_it).max_by_key(|c| c.words.len())
}

/// The answer to words that name no command.
pub fn unknown(words: &[String]) -> String {
    let first = words.first().map_or("", String::as_str);
    format!(
        "Unknown command: '{first}', but maybe one of the following ones is a better match:\n{}",
        list(&near(words))
    )
}

/// The answer to `help` with `words` behind it.
pub fn help(words: &[String]) -> String {
    let listed: Vec<&Command> = if words.is_empty() { COMMANDS.iter().collect() } else { near(words) };
    format!("The following commands are valid at this level:\n{}", list(&listed))
}

fn list(commands: &[&Command]) -> String {
    let mut text = String::new();
    for c in commands.iter().copied().chain(ALWAYS).filter(|c| !c.about.is_empty()) {
        let mut usage = c.words.join(" ");
        if !c.arguments.is_empty() {
            usage.push(' ');
            usage.push_str(c.arguments);
        }
        text.push_str(&format!("  {usage:<39}{} {}\n", if usage.len() < 40 { " :" } else { ":" }, c.about));
    }
    text
}

/// Commands that come closest to what was typed: those that share the longest run of words, the last of which may
/// be unfinished; if there is none, those one of whose words is nearest to one that was typed.
fn near(words: &[String]) -> Vec<&'static Command> {
    let typed: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut best = 0;
    let shared = |c: &Command| {
        let whole = c.words.iter().zip(&typed).take_while(|(a, b)| a == b).count();
        let begun = match (c.words.get(whole), typed.get(whole)) {
            (Some(a), Some(b)) => !b.is_empty() && a.starts_with(b),
            _ => false,
        };
        whole * 2 + usize::from(begun)
    };
    let visible = || COMMANDS.iter().filter(|c| !c.about.is_empty());
    for c in visible() {
        best = best.max(shared(c));
    }
    if best > 0 {
        return visible().filter(|c| shared(c) == best).collect();
    }
    let distance = |c: &&Command| {
        let pairs = c.words.iter().flat_map(|a| typed.iter().map(move |b| edits(a, b)));
        pairs.min().unwrap_or(usize::MAX)
    };
    let mut nearest: Vec<&Command> = visible().collect();
    nearest.sort_by_key(distance);
    nearest.truncate(5);
    nearest.sort_by_key(|c| c.words);
    nearest
}

/// How many letters must change to make one word of the other. Words beyond 64 letters are cut.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_table_is_sorted_without_doubles() {
        for pair in COMMANDS.windows(2) {
            assert!(pair[0].words < pair[1].words, "{:?} {:?}", pair[0].words, pair[1].words);
        }
    }

    #[test]
    fn a_command_is_found_by_its_words_and_arguments_stay() {
        assert_eq!(
            find(&words("show servers state be1")).map(|c| c.words),
            Some(&["show", "servers", "state"][..])
        );
        assert!(find(&words("show servers")).is_none());
        assert!(find(&words("Show info")).is_none());
        assert!(find(&words("show inf")).is_none());
    }

    #[test]
    fn suggestions_follow_the_words_typed() {
        let text = unknown(&words("show servers foo"));
        assert!(text.starts_with(
            "Unknown command: 'show', but maybe one of the following ones is a better match:\n"
        ));
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.contains("  show servers conn [<backend>]           : "), "{text}");
        assert!(unknown(&words("shw stat")).contains("show stat"));
        assert!(unknown(&words("zzzz")).ends_with("close the connection\n"));
    }

    #[test]
    fn help_lists_everything_visible() {
        let text = help(&[]);
        assert!(text.contains("show info [desc|json|typed|float]*") && !text.contains("expert-mode"));
        assert_eq!(help(&words("set sev")).lines().count(), 5, "{}", help(&words("set sev")));
    }
}
