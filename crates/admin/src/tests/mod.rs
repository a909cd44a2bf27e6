//! Commands and statistics against a compiled configuration, in a world with one worker and virtual time. The
//! expected texts are what the oracle printed for the same configuration.

mod farm;
mod page;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use engine::{Shared, Worker};
use model::World;
use program::listener::{Level, Severity};
use program::{Program, Server};
use syntax::{Environment, Grammar, PlainBuild, SECTION_WORDS, Source};

use crate::cli::call::Client;
use crate::cli::speak;

/// Compiles a text.
pub(crate) fn program(text: &str) -> Arc<Program> {
    let grammar = Grammar { sections: SECTION_WORDS, facts: &PlainBuild };
    let source = Source::new("t.cfg", text.as_bytes().to_vec());
    let reading = syntax::read(vec![source], Environment::new(), grammar);
    let options = compile::Options { fd_limit: 20_000, processors: 1, ..Default::default() };
    let world = Arc::new(World::new(1));
    let outcome = compile::compile(reading, &lang::Registry::standard(), world, &options);
    let texts: Vec<_> = outcome.diagnostics.iter().map(|d| d.text.clone()).collect();
    let mut program = outcome.program.unwrap_or_else(|| panic!("{texts:?}"));
    program.adopt();
    Arc::new(program)
}

/// A server of its own.
pub(crate) fn server(name: &str, id: u32) -> Server {
    let text = format!("backend b\n server {name} 127.0.0.1:80 id {id}\n");
    program(&text).proxies[0].servers[0].clone()
}

pub(crate) const CONFIG: &str = "\
global
    stats socket /tmp/x.sock level admin
    node mynode
    maxconn 1000
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 1s
frontend fe1
    bind 127.0.0.1:18181
    option socket-stats
    default_backend be1
backend be1
    balance roundrobin
    cookie SRV insert
    server s1 127.0.0.1:18182 check cookie a1 weight 10 maxconn 5
    server s2 127.0.0.1:18183 backup
    server s3 127.0.0.1:18184 disabled
frontend tcp1
    mode tcp
    bind 127.0.0.1:18186
    default_backend be2
backend be2
    mode tcp
    server a 127.0.0.1:18187
";

/// Runs `f` on the worker of a world.
pub(crate) fn on_worker<T: 'static, F: Future<Output = T> + 'static>(
    text: &str,
    f: impl FnOnce(Rc<Worker>) -> F + 'static,
) -> T {
    let program = program(text);
    let world = rt::sim::World::new(1, rt::sim::Options::default());
    let report = world.run(async move {
        let shared = Arc::new(Shared::new(program, rt::now(), rt::wall()));
        let worker = engine::run::start_worker(0, shared, Vec::new());
        f(worker).await
    });
    match report {
        Ok(report) => report.value,
        Err(failure) => panic!("{failure:?}"),
    }
}

fn client(level: Level) -> Client {
    Client::new(level, Severity::None, None)
}

/// What a line of commands answers.
pub(crate) async fn ask(worker: &Rc<Worker>, client: &mut Client, line: &str) -> String {
    let mut out = String::new();
    let line = crate::cli::line::parse(line.as_bytes());
    speak::answer_line(worker, None, client, &line, None, &mut out).await;
    out
}

fn answers(level: Level, table: &'static [(&'static str, &'static str)]) {
    on_worker(CONFIG, move |worker| async move {
        let mut client = client(level);
        for (line, wanted) in table {
            assert_eq!(ask(&worker, &mut client, line).await, *wanted, "{line:?}");
        }
    });
}

#[test]
fn commands_answer_as_the_oracle() {
    answers(
        Level::Admin,
        &[
            ("", "\n"),
            ("show cli level", "admin\n\n"),
            ("show cli sockets", "# socket lvl processes\nunix@/tmp/x.sock admin all\n\n"),
            ("show backend", "# name\nbe1\nbe2\n\n"),
            ("echo a  b", "a b\n\n"),
            ("echo", "\n\n"),
            ("show env NO_SUCH_VARIABLE", "Variable not found\n\n"),
            ("show env A=B", "Variable not found\n\n"),
            ("expert-mode", "expert-mode is OFF\n\n"),
            ("expert-mode on;expert-mode", "\nexpert-mode is ON\n\n"),
            ("set timeout", "'set timeout' only supports 'cli'.\n\n"),
            ("set timeout cli", "Expects an integer value.\n\n"),
            ("set timeout cli x", "Invalid timeout value.\n\n"),
            ("wait", "Expects a duration in milliseconds.\n\n"),
            ("wait 10", "Done.\n\n"),
            ("wait x", "Invalid duration.\n\n"),
            ("wait 5 srv-removable be1/s1", "Failed. Only servers in maintenance mode can be deleted.\n\n"),
            ("wait 5 srv-removable be1/s3", "Done.\n\n"),
            ("wait 5 srv-removable be1/x", "Failed. No such server.\n\n"),
            ("get weight be1/s1", "10 (initial 10)\n\n"),
            ("get weight be1", "Require 'backend/server'.\n\n"),
            ("get weight be1/", "Require 'backend/server'.\n\n"),
            ("get weight x/s1", "No such backend.\n\n"),
            ("get weight be1/x", "No such server.\n\n"),
            ("get weight be1/#1", "10 (initial 10)\n\n"),
            ("set weight be1/s1 50%;get weight be1/s1", "\n5 (initial 10)\n\n"),
            ("set server be1/s1 weight 7;get weight be1/s1", "\n7 (initial 10)\n\n"),
            ("set server be1/s1 state", "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n\n"),
            (
                "set server be1/s1 health x",
                "'set server <srv> health' expects 'up', 'stopping', or 'down'.\n\n",
            ),
            ("set server be1/s1 agent up", "agent checks are not enabled on this server.\n\n"),
            ("set maxconn frontend", "A frontend name is expected.\n\n"),
            ("set maxconn frontend x 5", "No such frontend.\n\n"),
            ("set maxconn frontend fe1", "Integer value expected.\n\n"),
            ("set maxconn frontend fe1 -5", "Value out of range.\n\n"),
            ("set maxconn global 5000000", "Value out of range.\n\n"),
            ("set maxconn server be1/s1 5x", "Trailing garbage in maxconn string\n\n"),
            ("set rate-limit connections global", "Expects an integer value.\n\n"),
            ("disable frontend fe1", "\n"),
            ("disable frontend fe1", "All sockets are already disabled.\n\n"),
            ("enable frontend fe1;enable frontend fe1", "\nAll sockets are already enabled.\n\n"),
            ("shutdown frontend fe1;shutdown frontend fe1", "\nFrontend was already shut down.\n\n"),
            ("enable frontend fe1", "Frontend was previously shut down, cannot enable.\n\n"),
            ("enable health be1/s2", "Health check was not configured on this server, cannot enable.\n\n"),
            ("enable agent be1/s2", "Agent was not configured on this server, cannot enable.\n\n"),
            ("show sess", "\n"),
            ("show sess 0x1", "Session not found.\n\n"),
            ("show sess zz", "Unsupported option 'zz', try 'help' for more info.\n\n"),
            ("shutdown session", "Session pointer expected (use 'show sess').\n\n"),
            ("shutdown session 0x5", "No such session (use 'show sess').\n\n"),
            ("shutdown sessions server be1/s1", "\n"),
            ("show servers state x", "Can't find backend.\n\n"),
            ("show stat x -1 -1", "No such proxy.\n\n"),
            ("show stat domain x", "Invalid statistics domain.\n\n"),
            ("show errors x", "No such proxy.\n\n"),
            ("quit;echo x", ""),
        ],
    );
}

#[test]
fn levels_refuse() {
    const REFUSED: &str = "Permission denied\n\n";
    answers(
        Level::User,
        &[
            ("show env", REFUSED),
            ("show sess", REFUSED),
            ("clear counters", REFUSED),
            ("set server be1/s1 state maint", REFUSED),
            ("operator", REFUSED),
            ("wait 1", REFUSED),
            ("get weight be1/s1", "10 (initial 10)\n\n"),
            ("user;show cli level", "\nuser\n\n"),
        ],
    );
    answers(
        Level::Operator,
        &[
            ("clear counters", "\n"),
            ("clear counters all", REFUSED),
            ("clear counters server be1/s1", REFUSED),
            ("disable server be1/s1", REFUSED),
            ("operator;user;operator", "\n\nPermission denied\n\n"),
        ],
    );
}

#[test]
fn severities_mark_messages_but_not_dumps() {
    answers(
        Level::Operator,
        &[
            ("set severity-output number;echo x", "\n[6]: x\n\n"),
            ("set severity-output string;echo x;show backend", "\n[info]: x\n\n# name\nbe1\nbe2\n\n"),
            (
                "get weight be1/x;disable server be1/s1",
                "[err]: No such server.\n\n[err]: Permission denied\n\n",
            ),
            ("set severity-output x", "[err]: one of 'none', 'number', 'string' is a required argument\n\n"),
        ],
    );
}

#[test]
fn states_of_servers_follow_commands() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        let state = |text: String, name: &str| {
            let line = text.lines().find(|l| l.contains(&format!(" {name} "))).map(str::to_owned);
            let line = line.unwrap_or_default();
            let words: Vec<_> = line.split(' ').collect();
            (words[5].to_owned(), words[6].to_owned())
        };
        for (line, op, admin) in [
            ("set server be1/s2 state maint", "0", "1"),
            ("set server be1/s2 state ready", "2", "0"),
            ("set server be1/s2 state drain", "2", "8"),
            ("set server be1/s2 state ready", "2", "0"),
            ("disable server be1/s2", "0", "1"),
            ("enable server be1/s2", "2", "0"),
            ("set server be1/s2 health down", "0", "0"),
            ("set server be1/s2 health up", "2", "0"),
        ] {
            assert_eq!(ask(&worker, &mut client, line).await, "\n", "{line}");
            let text = ask(&worker, &mut client, "show servers state be1").await;
            assert_eq!(state(text, "s2"), (op.into(), admin.into()), "{line}");
        }
    });
}

/// A figure of a row of the CSV.
fn cell(csv: &str, row: &str, name: &str) -> String {
    let header: Vec<&str> = csv.lines().next().unwrap_or("").trim_start_matches("# ").split(',').collect();
    let at = header.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no column {name}"));
    let line = csv.lines().find(|l| l.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
    line.split(',').nth(at).unwrap_or("").to_owned()
}

#[test]
fn the_csv_header_names_the_columns_of_haproxy() {
    let header = crate::stats::show::header();
    let general: Vec<&str> =
        header.trim_start_matches("# ").split(",-,").next().unwrap_or("").split(',').collect();
    assert_eq!(general.len(), 119);
    for (at, name) in [
        (0, "pxname"),
        (33, "rate"),
        (73, "addr"),
        (89, "src_ilim"),
        (105, "h1sess"),
        (118, "cache_hint_hits"),
    ] {
        assert_eq!(general[at], name);
    }
    assert!(
        header.contains(",cache_hint_hits,-,h2_headers_rcvd,")
            && header.ends_with(",h1_spliced_bytes_out,\n")
    );
    let mut names: Vec<_> = header.split(',').collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|p| p[0] != p[1]), "a column stands there twice");
}

#[test]
fn figures_follow_events_and_commands() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        let program = worker.shared.program.clone();
        let fe = program.proxies[0].state.clone();
        let s1 = program.proxies[1].servers[0].state.clone();
        fe.front.counters.of(0).sessions.add(3);
        fe.front.counters.of(0).h1.connections.add(3);
        fe.front.counters.of(0).responses[1].add(2);
        s1.counters.of(0).bytes.response_in.add(77);
        s1.served_max.store(4, Relaxed);
        let csv = ask(&worker, &mut client, "show stat").await;
        for (row, name, value) in [
            ("fe1,FRONTEND", "stot", "3"),
            ("fe1,FRONTEND", "hrsp_2xx", "2"),
            ("fe1,FRONTEND", "status", "OPEN"),
            ("fe1,FRONTEND", "h1sess", "3"),
            ("fe1,FRONTEND", "act", ""),
            ("fe1,sock-1", "addr", "127.0.0.1:18181"),
            ("fe1,sock-1", "proto", "tcpv4"),
            ("fe1,sock-1", "h2_headers_rcvd", ""),
            ("be1,s1", "bout", "77"),
            ("be1,s1", "smax", "4"),
            ("be1,s1", "slim", "5"),
            ("be1,s1", "cookie", "a1"),
            ("be1,s2", "status", "no check"),
            ("be1,s2", "bck", "1"),
            ("be1,s2", "chkfail", ""),
            ("be1,s3", "status", "MAINT"),
            ("be1,BACKEND", "status", "UP"),
            ("be1,BACKEND", "algo", "roundrobin"),
            ("tcp1,FRONTEND", "hrsp_2xx", ""),
            ("tcp1,FRONTEND", "mode", "tcp"),
            ("tcp1,FRONTEND", "req_tot", "0"),
            ("be2,BACKEND", "req_tot", ""),
            ("be2,a", "lastsess", "-1"),
        ] {
            assert_eq!(cell(&csv, row, name), value, "{name} of {row}");
        }
        ask(&worker, &mut client, "clear counters").await;
        let csv = ask(&worker, &mut client, "show stat").await;
        assert_eq!(cell(&csv, "be1,s1", "smax"), "0");
        assert_eq!(cell(&csv, "be1,s1", "bout"), "77");
        ask(&worker, &mut client, "clear counters all;set server be1/s2 state drain").await;
        let csv = ask(&worker, &mut client, "show stat").await;
        assert_eq!(cell(&csv, "be1,s1", "bout"), "0");
        assert_eq!(cell(&csv, "fe1,FRONTEND", "stot"), "0");
        assert_eq!(cell(&csv, "be1,s2", "status"), "DRAIN");
    });
}

#[test]
fn statistics_are_filtered() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        for (line, rows) in [
            ("show stat be1 4 -1", &["be1,s1", "be1,s2", "be1,s3"][..]),
            ("show stat be1 4 2", &["be1,s2"]),
            ("show stat -1 8 -1", &["fe1,sock-1"]),
            ("show stat -1 1 -1", &["fe1,FRONTEND", "tcp1,FRONTEND"]),
            ("show stat be1 -1 -1 no-maint", &["be1,s1", "be1,s2", "be1,BACKEND"]),
            ("show stat domain proxy be2 2 -1", &["be2,BACKEND"]),
        ] {
            let csv = ask(&worker, &mut client, line).await;
            let got: Vec<String> = csv
                .lines()
                .skip(1)
                .filter(|l| !l.is_empty())
                .map(|l| l.splitn(3, ',').take(2).collect::<Vec<_>>().join(","))
                .collect();
            assert_eq!(got, rows, "{line}");
        }
        client.level = Level::User;
        let csv = ask(&worker, &mut client, "show stat").await;
        assert_eq!(cell(&csv, "be1,s1", "addr"), "");
        assert_eq!(cell(&csv, "be1,s1", "cookie"), "");
    });
}

#[test]
fn typed_lines_and_json_say_the_same_as_the_csv() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        let typed = ask(&worker, &mut client, "show stat typed").await;
        for line in [
            "F.2.0.0.pxname.1:KNSV:str:fe1",
            "F.2.0.32.type.1:CGSV:u32:0",
            "L.2.1.73.addr.1:CGSV:str:127.0.0.1:18181",
            "S.3.1.19.act.1:SGPV:u32:1",
            "B.3.0.19.act.1:MGPV:u32:1",
            "S.3.1.55.lastsess.1:MAPP:s32:-1",
        ] {
            assert!(typed.lines().any(|l| l == line), "{line} in\n{typed}");
        }
        let json = ask(&worker, &mut client, "show stat be2 4 -1 json").await;
        assert!(json.starts_with("[[{\"objType\":\"Server\",\"proxyId\":5,\"id\":1,\"field\":{\"pos\":0,\"name\":\"pxname\"},\"processNum\":1,\"tags\":{\"origin\":\"Key\",\"nature\":\"Name\",\"scope\":\"Service\"},\"value\":{\"type\":\"str\",\"value\":\"be2\"}},"), "{json}");
        assert!(json.ends_with("}}]]\n\n"));
        let info = ask(&worker, &mut client, "show info typed").await;
        assert!(info.contains("50.node.1:COSV:str:mynode\n"), "{info}");
        let info = ask(&worker, &mut client, "show info").await;
        assert!(info.starts_with("Name: HAProxy\nVersion: ") && info.contains("\nMaxconn: "), "{info}");
    });
}
