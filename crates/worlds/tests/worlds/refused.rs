//! A configuration that is refused changes nothing alive in a process that runs another.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use worlds::{QUIET, Stage, explore, get, judge};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worlds/fixtures");

/// What runs: a table with entries, a map, certificates, a server that an operator changed, variables.
const RUNNING: &str = "  retries 0
frontend p
 bind 127.0.0.1:80
 bind 127.0.0.1:443 ssl crt DIR/named.pem
 stick-table type ip size 100 expire 1h store http_req_cnt
 http-request track-sc0 src
 http-request set-var(proc.seen) int(1)
 http-request set-header X-Map %[path,map_beg(virt@m,none)]
 default_backend b
backend b
 cookie SRV insert indirect nocache
 server s 127.0.1.1:80 weight 10 cookie a
 server t 127.0.1.2:80 weight 10 cookie b backup";

/// The same names with other settings, and more beside them. What is wrong with it shows last of all.
const WRONG: &str = "global
 maxconnrate 7
 maxsslconn 3
 anonkey 99
 profiling.tasks on
 tune.vars.proc-max-size 1024
 set-var proc.other int(7)
frontend p
 disabled
 maxconn 5
 bind 127.0.0.1:80 name other
 bind 127.0.0.1:81 ssl crt DIR/rsa.pem
 stick-table type ip size 7 expire 1s store http_req_cnt,conn_cnt
 http-request track-sc0 src
 http-request deny if { srv_is_up(b/s) } { nbsrv(b) gt 3 }
 http-request set-header X-Map %[path,map_beg(virt@m,other)]
 default_backend b
backend b
 dynamic-cookie-key secret
 be-unpublished
 option allbackups
 cookie SRV insert indirect nocache dynamic
 stick-table type string size 10
 server s 127.0.9.1:80 weight 99 disabled backup ssl verify none
 server u 127.0.9.2:80 track c/nobody
backend c
 server s 127.0.9.3:80";

/// Everything alive, as text.
fn alive(stage: &Stage) -> String {
    let program = &stage.shared.program;
    let mut entries = Vec::new();
    for table in &program.tables {
        let mut walk = table.walk();
        while let Some(entry) = walk.advance(rt::now().as_millis()) {
            entries.push(format!("{entry:?}"));
        }
    }
    let sets = program
        .patterns
        .iter()
        .map(|(id, listed)| format!("{id} {} {:?}", listed.about, listed.set.versions()));
    let sets: Vec<_> = sets.collect();
    let certificates = program.tls.show_certs() + &program.tls.show_sni(Default::default());
    format!("{:?} {entries:?} {sets:?} {certificates}", program.world)
}

#[test]
fn a_refused_configuration_changes_nothing_alive() {
    explore(&RUNNING.replace("DIR", FIXTURES), QUIET, |stage| async move {
        let wrong = WRONG.replace("DIR", FIXTURES);
        stage.origin("127.0.1.1:80");
        let mut client = stage.client("127.0.0.1:80").await;
        assert_eq!(client.ask(&get("/1/9")).await.status(), 200);
        drop(client);
        stage.quiet().await;
        stage.server("b/s").weight.store(77, Relaxed);
        let world = stage.shared.program.world.clone();
        let before = alive(&stage);
        let why = judge(&wrong, &world).err().expect("it is wrong");
        assert!(why.contains("unable to find required server 'nobody' for tracking"), "{why}");
        assert_eq!(alive(&stage), before);
        assert!(world.find_proxy("c").is_none());
    });
}

/// What is adopted keeps what has the same name and has its own settings.
#[test]
fn an_adopted_configuration_keeps_what_is_alive() {
    explore(&RUNNING.replace("DIR", FIXTURES), QUIET, |stage| async move {
        let right = WRONG.replace("DIR", FIXTURES).replace(" track c/nobody", "");
        let server = stage.server("b/s");
        server.weight.store(77, Relaxed);
        let world = stage.shared.program.world.clone();
        let mut next = judge(&right, &world).unwrap_or_else(|why| panic!("{why}"));
        let maxconnrate = || world.process.conn_rate_limit.load(Relaxed);
        assert_eq!((stage.proxy("b").back.servers.read().len(), maxconnrate()), (2, 0));
        next.adopt();
        assert_eq!((stage.proxy("b").back.servers.read().len(), maxconnrate()), (2, 7));
        assert!(Arc::ptr_eq(&stage.server("b/s"), &server) && server.backup.load(Relaxed));
        // What an operator set stays until the configuration says something else than before.
        assert_eq!(server.weight.load(Relaxed), 99);
        assert!(stage.proxy("b").back.referenced.load(Relaxed) && server.referenced.load(Relaxed));
        // The scene ends as it began.
        stage.proxy("p").enabled.store(true, Relaxed);
    });
}
