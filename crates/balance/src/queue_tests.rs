use super::*;

#[cfg(not(loom))]
mod ordinary {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU32 as Count;

    fn push(queue: &Queue<&'static str>, class: i32, offset: i32, now: u64, name: &'static str) -> Place {
        queue.push(Priority { class, offset }, now, 0, name).unwrap()
    }

    #[test]
    fn class_then_time_then_arrival() {
        let queue = Queue::new();
        push(&queue, 0, 0, 100, "second of its time");
        push(&queue, 0, 0, 100, "third of its time");
        push(&queue, 0, -50, 120, "moved ahead");
        push(&queue, 1, -500_000, 0, "lower class");
        push(&queue, -1, 500_000, 900, "higher class");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            order,
            ["higher class", "moved ahead", "second of its time", "third of its time", "lower class"]
        );
    }

    #[test]
    fn priorities_are_cut_to_their_bounds() {
        let queue = Queue::new();
        push(&queue, -1_000_000, 0, 5, "later");
        push(&queue, -2047, i32::MIN, 5, "earlier");
        assert_eq!(queue.pop(), Some("earlier"));
    }

    #[test]
    fn who_leaves_is_not_served_and_who_was_served_cannot_leave() {
        let queue = Queue::new();
        let first = push(&queue, 0, 0, 1, "first");
        let second = push(&queue, 0, 0, 2, "second");
        assert_eq!(queue.taken(), 0);
        assert_eq!(queue.cancel(first), Some("first"));
        assert_eq!((queue.len(), queue.taken()), (1, 0));
        assert_eq!(queue.pop(), Some("second"));
        assert_eq!(queue.taken(), 1);
        assert_eq!(queue.cancel(second), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_gives_the_ticket_back() {
        let queue = Queue::new();
        assert!(queue.push(Priority::default(), 1, 1, "in").is_ok());
        assert_eq!(queue.push(Priority::default(), 1, 1, "out"), Err(Full("out")));
    }

    #[test]
    fn the_older_head_wins_and_the_servers_own_on_a_tie() {
        let (own, shared) = (Queue::new(), Queue::new());
        push(&own, 0, 0, 10, "own 10");
        push(&own, 0, 0, 30, "own 30");
        push(&shared, 0, 0, 10, "shared 10");
        push(&shared, 0, 0, 20, "shared 20");
        let order: Vec<_> = std::iter::from_fn(|| first_of(&own, Some(&shared))).collect();
        assert_eq!(order, ["own 10", "shared 10", "shared 20", "own 30"]);
        push(&shared, 0, 0, 20, "not for this server");
        assert_eq!(first_of(&own, None), None);
    }

    #[test]
    fn a_newcomer_does_not_overtake_the_waiting() {
        let (gate, own) = (Gate::new(), Queue::new());
        assert!(gate.enter(1, &own));
        assert!(!gate.enter(1, &own));
        push(&own, 0, 0, 1, "waits");
        assert_eq!(gate.next(1, &own, None), None);
        gate.leave();
        assert!(!gate.enter(1, &own));
        assert_eq!(gate.next(1, &own, None), Some("waits"));
        assert_eq!(gate.served(), 1);
    }

    #[test]
    fn no_turn_is_lost_and_no_limit_passed_among_threads() {
        let (gate, own, shared) = (Gate::new(), Queue::new(), Queue::new());
        let (served, inside) = (Count::new(0), Count::new(0));
        const LIMIT: u32 = 2;
        // Serving one request: inside, out, then whoever waits next.
        let serve = || {
            let mut busy = true;
            while busy {
                assert!(inside.fetch_add(1, Ordering::SeqCst) < LIMIT);
                served.fetch_add(1, Ordering::SeqCst);
                inside.fetch_sub(1, Ordering::SeqCst);
                gate.leave();
                busy = gate.next(LIMIT, &own, Some(&shared)).is_some();
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (gate, own, shared, serve) = (&gate, &own, &shared, &serve);
                scope.spawn(move || {
                    for now in 0..5_000 {
                        if gate.enter(LIMIT, own) {
                            serve();
                            continue;
                        }
                        let queue = if thread % 2 == 0 { own } else { shared };
                        queue.push(Priority::default(), now, 0, ()).unwrap();
                        if gate.next(LIMIT, own, Some(shared)).is_some() {
                            serve();
                        }
                    }
                });
            }
        });
        assert_eq!((served.into_inner(), own.len(), shared.len(), gate.served()), (20_000, 0, 0, 0));
    }

    proptest! {
        #[test]
        fn served_in_rank_order(requests in proptest::collection::vec((-3..3_i32, -20..20_i32, 0..50_u64), 1..60)) {
            let queue = Queue::new();
            let mut expected = Vec::new();
            for (arrival, (class, offset, now)) in requests.into_iter().enumerate() {
                queue.push(Priority { class, offset }, now, 0, arrival).unwrap();
                expected.push((class, now as i64 + i64::from(offset), arrival));
            }
            expected.sort_unstable();
            let served: Vec<usize> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(served, expected.into_iter().map(|e| e.2).collect::<Vec<_>>());
        }
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p balance --lib interleavings`.
#[cfg(loom)]
mod interleavings {
    use super::*;
    use loom::sync::Arc;

    // One place, two requests: whatever the order, both are served and nobody is left waiting.
    #[test]
    fn a_free_place_and_a_waiting_request_meet() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let world = Arc::new((Gate::new(), Queue::new(), AtomicUsize::new(0)));
            let visit = |world: &(Gate, Queue<()>, AtomicUsize)| {
                let (gate, queue, served) = world;
                let mut inside = gate.enter(1, queue);
                if !inside {
                    queue.push(Priority::default(), 0, 0, ()).unwrap();
                    inside = gate.next(1, queue, None).is_some();
                }
                while inside {
                    served.fetch_add(1, Ordering::SeqCst);
                    gate.leave();
                    inside = gate.next(1, queue, None).is_some();
                }
            };
            let other = world.clone();
            let thread = loom::thread::spawn(move || visit(&other));
            visit(&world);
            thread.join().unwrap();
            assert_eq!((world.2.load(Ordering::SeqCst), world.1.len(), world.0.served()), (2, 0, 0));
        });
    }
}
