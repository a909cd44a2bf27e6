//! The soak: real clients and real origins around a proxy, a ledger of every request between them.
//!
//!     harrier-soak BINARY [--seconds N] [--seed N] [--clients N] [--only WORD] [--keep]
//!
//! Every body carries its length and hash and is made from the request's id, so both ends check each byte.
//! Every request ends in exactly one way: answered, aborted by the client, aborted by the origin, or refused;
//! anything else is a failure, told with the seed, both sides' records and the proxy's log line. Run-time
//! commands go on beside the traffic. In the end, when nobody asks for anything any more, all gauges must be
//! what they were at the start. The memory of the last minute and that at rest must be within ten percent of
//! the first minute's: how much is under way differs from second to second, so a minute's memory is the
//! median of its seconds.

mod admin;
mod client;
mod content;
mod gauges;
mod http1;
mod http2;
mod ledger;
mod origin;
mod plan;
mod setup;
mod tls;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use client::Clients;
use content::Rng;
use ledger::Ledger;
use origin::{Origin, Speech};
use plan::Ground;
use setup::Process;

struct Options {
    binary: PathBuf,
    seconds: u64,
    seed: u64,
    clients: u64,
    keep: bool,
    /// Only frontends with this in their names.
    only: String,
}

fn options() -> Result<Options, String> {
    let mut words = std::env::args().skip(1);
    let mut options = Options {
        binary: PathBuf::new(),
        seconds: 120,
        seed: 0,
        clients: 48,
        keep: false,
        only: String::new(),
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    options.seed = now.as_secs() % 1_000_000;
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse().ok()).ok_or(format!("{word} needs a number"));
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--clients" => options.clients = number()?,
            "--only" => options.only = words.next().ok_or("--only needs a word")?,
            "--keep" => options.keep = true,
            _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => options.binary = PathBuf::from(word),
        }
    }
    if options.binary.as_os_str().is_empty() {
        return Err(
            "usage: harrier-soak BINARY [--seconds N] [--seed N] [--clients N] [--only WORD] [--keep]"
                .to_owned(),
        );
    }
    Ok(options)
}

fn main() {
    let options = options().unwrap_or_else(|why| {
        eprintln!("{why}");
        std::process::exit(2);
    });
    let folder = std::env::temp_dir().join(format!("harrier-soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the run");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let result = runtime.block_on(soak(&options, &folder));
    runtime.shutdown_timeout(Duration::from_secs(1));
    if options.keep || result.is_err() {
        println!("kept: {}", folder.display());
    } else {
        let _ = std::fs::remove_dir_all(&folder);
    }
    match result {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(e) => {
            eprintln!("soak: {e}");
            println!("soak: 0 passed, 1 failed, 0 skipped");
            std::process::exit(1);
        }
    }
}

/// Three origins of each kind.
fn origins(
    ledger: &Arc<Ledger>,
    certificates: &Arc<tls::Certificates>,
    rng: &mut Rng,
) -> std::io::Result<(HashMap<String, Vec<std::net::SocketAddr>>, Vec<tokio::task::JoinHandle<()>>)> {
    let (mut addresses, mut tasks) = (HashMap::new(), Vec::new());
    for (tls, h2) in [(false, false), (false, true), (true, false), (true, true)] {
        for ground in [Ground::Solid, Ground::Flaky] {
            let speech = Speech { tls, h2, ground };
            for _ in 0..3 {
                let (address, task) =
                    Origin::start(ledger.clone(), certificates.clone(), speech, rng.next())?;
                addresses.entry(format!("{speech:?}")).or_insert_with(Vec::new).push(address);
                tasks.push(task);
            }
        }
    }
    Ok((addresses, tasks))
}

async fn soak(options: &Options, folder: &Path) -> std::io::Result<u64> {
    let ledger = Arc::new(Ledger::new(options.seed));
    let mut rng = Rng::new(options.seed);
    let certificates = Arc::new(tls::Certificates::new());
    certificates.write(folder)?;
    let (addresses, origin_tasks) = origins(&ledger, &certificates, &mut rng)?;
    let (fronts, listeners) = setup::fronts()?;
    let log = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
    let text = setup::configuration(folder, &fronts, log.local_addr()?, |speech| {
        addresses[&format!("{speech:?}")].clone()
    });
    std::fs::write(folder.join("soak.cfg"), text)?;
    let mut process = Process::start(&options.binary, folder).await?;
    drop(listeners);
    let logger = tokio::spawn(read_log(log, ledger.clone()));
    let at_start = gauges::read(&process).await;

    let backs = setup::backs();
    let reachable =
        backs.iter().map(|b| (b.clone(), addresses[&format!("{:?}", b.speech)][0].to_string())).collect();
    let beside = tokio::spawn(admin::beside(
        process.socket.clone().into(),
        ledger.clone(),
        Arc::new(reachable),
        rng.next(),
    ));
    let fronts = fronts.into_iter().filter(|f| f.name.contains(&options.only)).collect();
    let clients = Arc::new(Clients {
        ledger: ledger.clone(),
        certificates,
        fronts,
        backs,
        connections: AtomicU64::new(0),
        numbers: AtomicU64::new(2),
    });
    let mut running: tokio::task::JoinSet<()> =
        (0..options.clients).map(|_| clients.clone().run(rng.next())).collect();
    let begun = Instant::now();
    let minutes = watch(options, &mut process, &ledger, begun).await;
    ledger.over.store(true, Relaxed);
    // The longest body of all at its slowest.
    let patience = Duration::from_secs(700);
    if tokio::time::timeout(patience, async { while running.join_next().await.is_some() {} }).await.is_err() {
        ledger.fail(&format!("{} clients do not come to an end", running.len()));
    }
    let took = begun.elapsed().as_secs_f64();
    let commands = beside.await.unwrap_or(0);
    let checks = at_rest(options, &mut process, &ledger, &at_start, minutes, origin_tasks).await;
    if process.child.try_wait()?.is_none() {
        process.child.kill().await?;
    }
    logger.abort();

    let [answered, by_client, by_origin, refused] = ledger.ends();
    let all = answered + by_client + by_origin + refused;
    println!(
        "{all} requests in {took:.0} s ({:.0}/s) over {} connections, {} MB, {commands} commands beside them",
        all as f64 / took,
        clients.connections.load(Relaxed),
        ledger.bytes.load(Relaxed) / 1_000_000,
    );
    println!(
        "answered {answered}, aborted by the client {by_client}, by the origin {by_origin}, refused {refused}"
    );
    let (flaky, broken) = (ledger.flaky.load(Relaxed), ledger.flaky_broken.load(Relaxed));
    println!("of {flaky} requests to servers that break off unasked {broken} were not answered");
    let failed = ledger.failed.load(Relaxed);
    println!("soak: {} passed, {failed} failed, 0 skipped", all + checks);
    Ok(failed)
}

/// The memory of the first minute and of the last one under load, in KiB: the medians of their seconds.
struct Minutes {
    first: u64,
    last: u64,
}

/// Follows the run to its time, or to the death of the process.
async fn watch(options: &Options, process: &mut Process, ledger: &Ledger, begun: Instant) -> Minutes {
    let terminal = std::io::stdout().is_terminal();
    let end = Duration::from_secs(options.seconds);
    let (mut seconds, mut told) = (Vec::new(), 0);
    while begun.elapsed() < end {
        tokio::time::sleep(Duration::from_secs(1).min(end)).await;
        if let Ok(Some(status)) = process.child.try_wait() {
            ledger.fail(&format!("the proxy ended: {status}"));
            break;
        }
        let (now, memory) = (begun.elapsed().as_secs(), gauges::memory(process.pid));
        seconds.push(memory);
        let line = format!(
            "{now} s: {} requests, {} failed, {} MB of memory",
            ledger.ends().iter().sum::<u64>(),
            ledger.failed.load(Relaxed),
            memory / 1024
        );
        if terminal {
            print!("\r\x1b[K{line}");
            let _ = std::io::Write::flush(&mut std::io::stdout());
        } else if now / 60 > told {
            told = now / 60;
            println!("{line}");
        }
    }
    if terminal {
        print!("\r\x1b[K");
    }
    let median = |seconds: &[u64]| {
        let mut sorted = seconds.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    let (first, last) = (seconds.len().min(60), seconds.len().saturating_sub(60));
    Minutes { first: median(&seconds[..first]), last: median(&seconds[last..]) }
}

/// Everything is over: the gauges must come down, the memory must be back, no request may be left. Gives back
/// how much was checked.
async fn at_rest(
    options: &Options,
    process: &mut Process,
    ledger: &Ledger,
    at_start: &std::collections::BTreeMap<String, u64>,
    minutes: Minutes,
    origins: Vec<tokio::task::JoinHandle<()>>,
) -> u64 {
    // Origins give each request up after a while; then their connections go.
    for _ in 0..1000 {
        if ledger.left().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for left in ledger.left().iter().take(10) {
        ledger.fail(&format!("no end: {left}"));
    }
    for origin in &origins {
        origin.abort();
    }
    let mut risen = Vec::new();
    // What a vanished client has left may stay until a timeout of the configuration.
    for _ in 0..150 {
        risen = gauges::risen(at_start, &gauges::read(process).await);
        if risen.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for gauge in &risen {
        ledger.fail(&format!("at rest: {gauge}"));
    }
    if !risen.is_empty() {
        // Who is still there says more than how many.
        println!("{}", admin::command(&process.socket, "show sess all").await.unwrap_or_default());
    }
    // A process that has nothing to do may let go of its memory bit by bit.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let memory = gauges::memory(process.pid);
    let Minutes { first, last } = minutes;
    println!("memory: {first} KiB in the first minute, {last} in the last one, {memory} at rest");
    // In a short run this is still that of a program that starts, while others use the cores. A leak shows in
    // an hour.
    let play = if options.seconds < 600 { 8 * 1024 } else { 0 };
    for (when, memory) in [("in the last minute", last), ("at rest", memory)] {
        if first > 0 && memory > first + first / 10 + play {
            ledger.fail(&format!("the memory rose from {first} to {memory} KiB {when}"));
        }
    }
    3
}

/// Keeps the proxy's log lines for whoever has to tell a failure.
async fn read_log(socket: tokio::net::UdpSocket, ledger: Arc<Ledger>) {
    let mut room = vec![0u8; 8192];
    while let Ok(n) = socket.recv(&mut room).await {
        ledger.logged(String::from_utf8_lossy(&room[..n]).trim().to_owned());
    }
}
