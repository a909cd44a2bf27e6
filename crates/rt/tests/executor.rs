//! Tasks and wakers: who is woken, how often, and who no longer.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use rt::TaskId;
use rt::sim::{Options, World};

/// Runs `main` in a quiet world.
fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    let report = World::new(1, Options::default()).run(main).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.lost, Default::default());
    report.value
}

type LeftWaker = Rc<RefCell<Option<Waker>>>;

/// A task that counts its polls and leaves its waker.
fn counting() -> (TaskId, Rc<Cell<u32>>, LeftWaker) {
    let (polls, waker): (Rc<Cell<u32>>, LeftWaker) = Default::default();
    let (p, w) = (polls.clone(), waker.clone());
    let task = rt::spawn(poll_fn(move |cx| {
        p.set(p.get() + 1);
        *w.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }));
    (task, polls, waker)
}

#[test]
fn a_task_woken_many_times_is_polled_once() {
    run(async {
        let (task, polls, waker) = counting();
        rt::yield_now().await;
        assert_eq!(polls.get(), 1);
        let waker = waker.take().unwrap();
        for _ in 0..10 {
            waker.wake_by_ref();
            task.wake();
        }
        rt::yield_now().await;
        assert_eq!(polls.get(), 2);
    });
}

#[test]
fn a_waker_that_outlives_its_task_wakes_nobody() {
    run(async {
        let (task, polls, waker) = counting();
        rt::yield_now().await;
        assert!(rt::cancel(task));
        assert!(!rt::cancel(task), "it is gone");
        // The next task takes the slot of the one that is gone.
        let (next, next_polls, _) = counting();
        rt::yield_now().await;
        waker.take().unwrap().wake();
        rt::yield_now().await;
        assert_eq!((polls.get(), next_polls.get()), (1, 1));
        assert!(rt::is_alive(next) && !rt::is_alive(task));
    });
}

#[test]
fn a_task_cancelled_while_queued_is_not_polled() {
    run(async {
        let (task, polls, _) = counting();
        rt::cancel(task);
        let (_, next_polls, _) = counting();
        rt::yield_now().await;
        assert_eq!((polls.get(), next_polls.get()), (0, 1));
    });
}

struct OnDrop(Rc<Cell<u32>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_task_may_cancel_itself_and_is_dropped_once() {
    run(async {
        let drops = Rc::new(Cell::new(0));
        let guard = OnDrop(drops.clone());
        rt::spawn(async move {
            let _guard = guard;
            assert!(rt::cancel(rt::current_task()));
            rt::yield_now().await;
            unreachable!("polled after it was cancelled");
        });
        rt::yield_now().await;
        rt::yield_now().await;
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn a_waker_of_a_world_that_ended_wakes_nobody_in_the_next() {
    let waker = run(async { poll_fn(|cx| Poll::Ready(cx.waker().clone())).await });
    run(async move {
        let (_, polls, _) = counting();
        rt::yield_now().await;
        waker.wake();
        rt::sleep(Duration::from_secs(1)).await;
        assert_eq!(polls.get(), 1);
    });
}

#[test]
fn a_notification_is_remembered_once() {
    run(async {
        let notify = rt::Notify::new();
        notify.notify();
        notify.notify();
        notify.notified().await;
        let late = poll_fn(|cx| Poll::Ready(notify.poll_notified(cx).is_ready())).await;
        assert!(!late);
    });
}

#[test]
fn a_oneshot_brings_its_value_or_the_news_that_there_is_none() {
    run(async {
        let (sender, receiver) = rt::oneshot();
        rt::spawn(async move {
            rt::sleep(Duration::from_secs(1)).await;
            sender.send(5).unwrap();
        });
        assert_eq!(receiver.recv().await, Some(5));
        let (sender, receiver) = rt::oneshot::<u8>();
        rt::spawn(async move {
            rt::sleep(Duration::from_secs(1)).await;
            drop(sender);
        });
        assert_eq!(receiver.recv().await, None);
        let (sender, receiver) = rt::oneshot();
        drop(receiver);
        assert_eq!(sender.send(6), Err(6));
    });
}

#[test]
fn a_timer_extended_again_and_again_expires_after_the_last() {
    let start_to_end = run(async {
        let start = rt::now();
        let timer = Rc::new(RefCell::new(rt::Timer::at(start + Duration::from_secs(1))));
        let extended = timer.clone();
        rt::spawn(async move {
            for _ in 0..50 {
                rt::sleep(Duration::from_millis(900)).await;
                extended.borrow_mut().set(Some(rt::now() + Duration::from_secs(1)));
            }
        });
        poll_fn(|cx| timer.borrow_mut().poll_expired(cx)).await;
        rt::now().since(start)
    });
    assert_eq!(start_to_end.as_millis(), 50 * 900 + 1000);
}

/// Ten tasks that note their number when they are polled, woken in order; the nice value of number `n` is
/// `nice(n)`.
async fn turns(nice: fn(usize) -> i16) -> Vec<usize> {
    let order: Rc<RefCell<Vec<usize>>> = Rc::default();
    let tasks: Vec<TaskId> = (0..10)
        .map(|n| {
            let order = order.clone();
            rt::spawn(poll_fn(move |_| {
                order.borrow_mut().push(n);
                Poll::Pending
            }))
        })
        .collect();
    rt::yield_now().await;
    order.borrow_mut().clear();
    for (n, task) in tasks.iter().enumerate() {
        rt::set_nice(*task, nice(n));
        task.wake();
    }
    for _ in 0..20 {
        rt::yield_now().await;
    }
    tasks.into_iter().for_each(|t| assert!(rt::cancel(t)));
    order.take()
}

#[test]
fn urgent_tasks_go_first_and_patient_ones_last() {
    run(async {
        assert_eq!(turns(|_| 0).await, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(turns(|n| [0, -1024][usize::from(n == 7)]).await, [7, 0, 1, 2, 3, 4, 5, 6, 8, 9]);
        // Six plain tasks wait when it is woken, so it lets that many behind them pass, too.
        assert_eq!(turns(|n| [0, 1024][usize::from(n == 3)]).await, [0, 1, 2, 4, 5, 6, 3, 7, 8, 9]);
        assert_eq!(turns(|_| -1024).await, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(turns(|n| if n < 2 { -500 } else { 0 }).await.len(), 10);
    });
}

#[test]
fn an_urgent_task_that_never_rests_starves_nobody() {
    run(async {
        let busy = rt::spawn(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        rt::set_nice(busy, -1024);
        assert_eq!(turns(|n| [0, 1024][usize::from(n == 0)]).await.len(), 10);
        assert!(rt::cancel(busy));
    });
}
