//! Run-time commands beside the traffic: servers change their state and weight, come and go, and somebody
//! looks at everything.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::content::Rng;
use crate::ledger::Ledger;
use crate::setup::{Back, words};

/// Sends one command and gives its answer back.
pub async fn command(socket: &Path, line: &str) -> io::Result<String> {
    let talk = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(Duration::from_secs(20), talk)
        .await
        .unwrap_or_else(|_| Err(io::Error::other("no answer in 20 s")))
}

/// Runs commands until the traffic is over, then leaves the servers as they were configured.
pub async fn beside(
    socket: Arc<Path>,
    ledger: Arc<Ledger>,
    backs: Arc<Vec<(Back, String)>>,
    seed: u64,
) -> u64 {
    let mut rng = Rng::new(seed);
    let mut count = 0;
    while !ledger.over.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(rng.between(20, 200))).await;
        let (back, address) = rng.pick(&backs).clone();
        count += 1;
        if rng.percent(15) {
            come_and_go(&socket, &ledger, &back, &address, count, &mut rng).await;
            continue;
        }
        // The first server of a backend is never touched, so there is always one to go to.
        let server = format!("{}/s{}", back.name, rng.between(2, 3));
        let line = match rng.below(16) {
            0 => format!("set weight {server} {}", rng.below(257)),
            1 => format!("set weight {server} {}%", rng.between(1, 100)),
            2 => format!("disable server {server}"),
            3 | 4 => format!("enable server {server}"),
            5 => format!("set server {server} state drain"),
            6 => format!("set server {server} state maint"),
            7 | 8 => format!("set server {server} state ready"),
            9 => "show stat".to_owned(),
            10 => "show info".to_owned(),
            11 => "show servers state".to_owned(),
            12 => "show sess all".to_owned(),
            13 => "show servers conn".to_owned(),
            // No `clear counters`: HAProxy clears gauges of open connections along with them.
            14 => "show pools".to_owned(),
            _ => "show activity".to_owned(),
        };
        run(&socket, &ledger, &line).await;
    }
    for (back, _) in backs.iter() {
        for server in ["s2", "s3"] {
            run(&socket, &ledger, &format!("set server {}/{server} state ready", back.name)).await;
        }
    }
    count
}

async fn run(socket: &Path, ledger: &Ledger, line: &str) {
    match command(socket, line).await {
        Ok(answer) if line.starts_with("show") && answer.trim().is_empty() => {
            ledger.fail(&format!("`{line}` shows nothing"))
        }
        Ok(answer) if !line.starts_with("show") && !answer.trim().is_empty() => {
            ledger.fail(&format!("`{line}`: {}", answer.trim()))
        }
        Ok(_) => {}
        Err(e) => ledger.fail(&format!("`{line}`: {e}")),
    }
}

/// A server is added, serves for a while, and is deleted.
async fn come_and_go(socket: &Path, ledger: &Ledger, back: &Back, address: &str, n: u64, rng: &mut Rng) {
    let name = format!("{}/new{n}", back.name);
    let added = command(socket, &format!("add server {name} {address}{}", words(back.speech))).await;
    if !added.as_ref().is_ok_and(|a| a.contains("New server registered")) {
        return ledger.fail(&format!("`add server {name}`: {added:?}"));
    }
    run(socket, ledger, &format!("enable server {name}")).await;
    tokio::time::sleep(Duration::from_millis(rng.between(10, 500))).await;
    run(socket, ledger, &format!("set server {name} state maint")).await;
    for _ in 0..300 {
        let answer = command(socket, &format!("del server {name}")).await.unwrap_or_else(|e| e.to_string());
        if answer.contains("Server deleted") {
            return;
        }
        if !answer.contains("connections attached") {
            return ledger.fail(&format!("`del server {name}`: {}", answer.trim()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ledger.fail(&format!("`del server {name}`: still in use after 30 s"));
}
