//! What it costs to pick a server and to give it back: CPU nanoseconds per pick and release, by algorithm,
//! number of servers and number of threads.
//!
//! CPU time and not wall time, so that threads beyond the number of cores, and whatever else the machine
//! does, hardly count; a lock that convoys would show as wall time per operation far above CPU time over
//! cores, which is why the last column tells the share of the cores that was used. Run with `cargo run
//! --release -p balance --example pick`; an argument sets the milliseconds per figure (default 200).

use balance::{Algorithm, Balancer, HashType, ServerView, Settings};
use base::rand::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SERVERS: [u32; 3] = [10, 100, 1000];
const THREADS: [usize; 4] = [1, 2, 8, 32];
const HELD: usize = 8; // requests that each thread keeps open
const BATCH: usize = 256;

fn main() {
    let millis = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(200);
    let algorithms = [
        ("roundrobin", Algorithm::RoundRobin),
        ("leastconn", Algorithm::LeastConn),
        ("random(2)", Algorithm::Random { draws: 2 }),
        ("consistent", Algorithm::Hash(HashType::CONSISTENT)),
    ];
    println!("CPU ns per pick and release ({} cores)", cores());
    println!("{:12} {:>8} {}", "algorithm", "servers", THREADS.map(|t| format!("{t:>7} thr")).join(" "));
    for (name, algorithm) in algorithms {
        for servers in SERVERS {
            let figures = THREADS.map(|threads| measure(algorithm, servers, threads, millis));
            let shown = figures.map(|(ns, busy)| format!("{ns:5.0} ({busy:3.0}%)")).join(" ");
            println!("{name:12} {servers:>8} {shown}");
        }
    }
}

// CPU nanoseconds per operation, and the percentage of the cores in use.
fn measure(algorithm: Algorithm, servers: u32, threads: usize, millis: u64) -> (f64, f64) {
    let balancer = Balancer::new(Settings::new(algorithm));
    balancer.rebuild(&(1..=servers).map(ServerView::new).collect::<Vec<_>>());
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (balancer, done, stop) = (&balancer, &done, &stop);
            scope.spawn(move || {
                base::worker::set_number(thread);
                done.fetch_add(work(balancer, thread as u64, stop), Ordering::Relaxed)
            });
        }
        std::thread::sleep(Duration::from_millis(millis));
        stop.store(true, Ordering::Relaxed);
    });
    let (cpu, wall) = (cpu_seconds() - cpu, wall.elapsed().as_secs_f64());
    let operations = done.into_inner() as f64;
    (cpu * 1e9 / operations, 100.0 * cpu / wall / cores().min(threads) as f64)
}

fn work(balancer: &Balancer, seed: u64, stop: &AtomicBool) -> u64 {
    let mut rng = Rng::new(seed);
    let mut take = || balancer.take(Some(rng.next_u32()), |_| false).expect("a server");
    let mut held: [usize; HELD] = std::array::from_fn(|_| take());
    let mut operations = 0;
    while !stop.load(Ordering::Relaxed) {
        for turn in 0..BATCH {
            balancer.release(std::mem::replace(&mut held[turn % HELD], take()));
        }
        operations += BATCH as u64;
    }
    held.into_iter().for_each(|server| balancer.release(server));
    operations
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

// User and system time of all threads so far, from fields 14 and 15 of /proc/self/stat, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
