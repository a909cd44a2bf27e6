use balance::*;
use std::time::Instant;
fn t(name: &str, mut f: impl FnMut()) {
    let n = 5_000_000;
    let s = Instant::now();
    for _ in 0..n {
        f()
    }
    println!("{name} {:.1}", s.elapsed().as_nanos() as f64 / n as f64);
}
fn main() {
    let b = Balancer::new(Settings::new(Algorithm::RoundRobin));
    b.rebuild(&(1..=100).map(ServerView::new).collect::<Vec<_>>());
    let l = Balancer::new(Settings::new(Algorithm::LeastConn));
    l.rebuild(&(1..=100).map(ServerView::new).collect::<Vec<_>>());
    let c = Balancer::new(Settings::new(Algorithm::Hash(HashType::CONSISTENT)));
    c.rebuild(&(1..=100).map(ServerView::new).collect::<Vec<_>>());
    t("usable (arc load)", || {
        std::hint::black_box(b.usable());
    });
    t("rr pick", || {
        std::hint::black_box(b.pick(None, |_| false));
    });
    t("rr acq+rel", || {
        b.acquire(3);
        b.release(3)
    });
    t("lc pick", || {
        std::hint::black_box(l.pick(None, |_| false));
    });
    t("lc acq+rel", || {
        l.acquire(3);
        l.release(3)
    });
    t("lc take+rel", || {
        let s = l.take(None, |_| false).unwrap();
        l.release(s)
    });
    let mut r = base::rand::Rng::new(1);
    t("rng", || {
        std::hint::black_box(r.next_u32());
    });
    t("cons pick", || {
        std::hint::black_box(c.pick(Some(r.next_u32()), |_| false));
    });
    let a = std::sync::atomic::AtomicU64::new(0);
    t("fetch_add", || {
        a.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    let m = std::sync::Mutex::new(0);
    t("mutex", || {
        *m.lock().unwrap() += 1;
    });
}
