//! Entries of stick tables: held as long as somebody tracks them, gone when their time is over, whatever
//! happened.

use std::sync::Arc;
use std::time::Duration;

use stick::{Data, Table};
use worlds::{CALM, Stage, all, explore, get, spawn};

const FRONT: &str = "127.0.0.1:80";
const S: &str = "127.0.1.1:80";
const TRACKED: &str = "listen p
 bind 127.0.0.1:80
 stick-table type integer size 100 expire 30s store conn_cur,conn_cnt,http_req_cnt
 tcp-request connection track-sc0 int(1)
 http-request track-sc1 path table paths
 server s 127.0.1.1:80
backend paths
 stick-table type string size 200 expire 30s store conn_cur,conn_cnt,http_req_rate(10s)";

fn now() -> u64 {
    rt::now().as_millis()
}

fn table(stage: &Stage, name: &str) -> Arc<Table> {
    let tables = &stage.shared.program.tables;
    tables.iter().find(|t| *t.settings().name == *name).expect("it is configured").clone()
}

/// How many entries somebody holds, and the sums of one figure.
fn sums(table: &Arc<Table>, data: Data) -> (u32, u64) {
    let mut walk = table.walk();
    let (mut held, mut sum) = (0, 0);
    while let Some(row) = walk.advance(now()) {
        held += row.uses();
        sum += row.get(data, 0).unwrap_or(0);
    }
    (held, sum)
}

#[test]
fn clients_that_vanish_let_go_of_what_they_tracked() {
    explore(TRACKED, CALM, move |stage| async move {
        stage.origin(S);
        let jobs = (0..84usize).map(|n| {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                client.send(&get(&format!("/{n}/40"))).await.unwrap();
                client.take(n).await;
                if n.is_multiple_of(3) { client.reset() } else { drop(client) }
            })
        });
        all(jobs).await;
        stage.ended(84).await;
        let (connections, paths) = (table(&stage, "p"), table(&stage, "paths"));
        assert_eq!(sums(&connections, Data::ConnCur), (0, 0));
        assert_eq!(sums(&connections, Data::ConnCnt), (0, 84));
        assert_eq!(sums(&paths, Data::ConnCur), (0, 0));
        assert!(connections.used(now()) == 1 && paths.used(now()) > 0);
        rt::sleep(Duration::from_secs(30)).await;
        assert_eq!((connections.used(now()), paths.used(now())), (0, 0), "their time is over");
    });
}

#[test]
fn an_idle_connection_keeps_its_entry_beyond_its_time() {
    explore(TRACKED, CALM, move |stage| async move {
        stage.origin(S);
        let mut client = stage.client(FRONT).await;
        for n in 0..4 {
            client.send(&get(&format!("/{n}/40"))).await.unwrap();
            assert_eq!(client.response().await.status(), 200);
            rt::sleep(Duration::from_secs(15)).await;
        }
        let (connections, paths) = (table(&stage, "p"), table(&stage, "paths"));
        assert_eq!(sums(&connections, Data::HttpReqCnt), (1, 4));
        assert!((1..=2).contains(&paths.used(now())), "the older ones have expired");
        drop(client);
        stage.ended(4).await;
        assert_eq!(sums(&connections, Data::ConnCur), (0, 0));
    });
}
