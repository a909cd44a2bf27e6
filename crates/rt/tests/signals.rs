//! Signals reach the task that awaits them. Without the test harness: signals must be blocked before the
//! first thread is started.

use rt::sys::{self, Ended, Fork, Signal, Signals};

fn main() {
    children_are_reaped();
    sys::block_signals().unwrap();
    rt::run(vec![rt::WorkerSpec::default(); 2], |index| {
        if index == 0 {
            rt::spawn(async {
                signals_arrive().await;
                rt::peers().stop_all();
            });
        }
    })
    .unwrap();
}

fn children_are_reaped() {
    match sys::fork().unwrap() {
        Fork::Child => std::process::exit(7),
        Fork::Parent(pid) => assert_eq!(sys::wait(pid).unwrap(), Ended::Exit(7)),
    }
}

async fn signals_arrive() {
    let mut signals = Signals::open().unwrap();
    let me = std::process::id() as i32;
    rt::spawn(async move {
        rt::sleep(std::time::Duration::from_millis(2)).await;
        sys::kill(me, Signal::Usr1.number()).unwrap();
    });
    assert_eq!(signals.next().await, Signal::Usr1);
    sys::kill(me, Signal::Hup.number()).unwrap();
    sys::kill(me, Signal::Term.number()).unwrap();
    let mut both = [signals.next().await, signals.next().await];
    both.sort_by_key(|s| s.number());
    assert_eq!(both, [Signal::Hup, Signal::Term]);
}
