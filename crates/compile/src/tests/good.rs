//! Configurations that compile, checked field by field.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::server::Target;
use program::address::Listen;
use program::proxy::Balance;
use program::{Mode, Program};

use super::{complaints, run};

/// The head of the benchmark's configurations.
const HEAD: &str = "global\n nbthread 1\n maxconn 6000\n stats socket /tmp/none.sock level admin\ndefaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 5s\n";

fn program(text: &str) -> Program {
    let outcome = run(text);
    assert_eq!(complaints(&outcome), Vec::<String>::new(), "{text}");
    outcome.program.expect("no complaint, so a program")
}

#[test]
fn the_first_proxy_of_the_benchmark() {
    let p = program(&format!("{HEAD}listen p\n bind 127.0.0.1:18000\n server s1 127.0.0.1:19000\n"));
    assert_eq!((p.global.threads, p.global.maxconn, p.global.cli.len()), (1, 6000, 1));
    assert_eq!(p.global.cli[0].level, program::listener::Level::Admin);
    let l = &p.proxies[0];
    assert_eq!((l.mode, l.is_frontend, l.is_backend, l.default_backend), (Mode::Http, true, true, Some(0)));
    assert_eq!(l.timeouts.client, Some(Duration::from_secs(60)));
    assert_eq!(l.binds[0].address, Listen::Tcp("127.0.0.1:18000".parse().unwrap()));
    assert_eq!(**l.servers[0].state.target.load(), Target::Inet("127.0.0.1:19000".parse().unwrap()));
    assert_eq!((l.maxconn, l.fullconn), (6000, 600));
}

#[test]
fn a_hundred_servers_keep_their_weights() {
    let servers: String =
        (0..100).map(|i| format!(" server s{i} 127.0.0.1:19000 weight {}\n", 1 + i % 7)).collect();
    let p = program(&format!("{HEAD}listen p\n bind 127.0.0.1:18000\n balance leastconn\n{servers}"));
    let l = &p.proxies[0];
    assert!(matches!(l.balance, Balance::LeastConn));
    assert_eq!(l.servers.len(), 100);
    assert_eq!(l.servers[99].state.weight.load(Relaxed), 2);
    assert_eq!(l.servers[99].state.id, 100);
}
