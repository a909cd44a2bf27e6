use super::*;

// At rest: no node above the least key below it, and every leaf true.
fn check(tree: &Tree, loads: &Loads) {
    for (server, &weight) in tree.weights.iter().enumerate() {
        let leaf = key_of(tree.levels[0][server].load(Ordering::SeqCst));
        assert_eq!(leaf, key(loads.get(server), weight), "leaf {server}");
    }
    for number in 1..tree.levels.len() {
        for (index, node) in tree.levels[number].iter().enumerate() {
            if index * FAN < tree.levels[number - 1].len() {
                let least = tree.least_child(number, index, 0);
                assert!(key_of(node.load(Ordering::SeqCst)) <= least, "node {number}/{index}");
            }
        }
    }
}

#[cfg(not(loom))]
mod ordinary {
    use super::*;
    use proptest::prelude::*;

    fn tree(weights: &[u32]) -> (Tree, Loads) {
        let farm: Vec<_> = weights.iter().enumerate().map(|(i, &w)| (i as u32, w * 16)).collect();
        let loads = Loads::new();
        loads.grow(weights.len());
        (Tree::new(weights.len(), &farm, &loads), loads)
    }

    fn release(tree: &Tree, loads: &Loads, server: usize) {
        loads.sub(server);
        tree.refresh(server, loads);
    }

    fn anyone(_: usize) -> bool {
        false
    }

    #[test]
    fn idle_servers_take_turns() {
        let (tree, loads) = tree(&[1, 1, 1]);
        let picks: Vec<_> = (0..6)
            .map(|_| {
                let server = tree.take(&loads, anyone).unwrap();
                release(&tree, &loads, server);
                server
            })
            .collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_busy_server_does_not_give_its_turns_to_one_neighbour() {
        let (tree, loads) = tree(&[1, 1, 1]);
        assert_eq!(tree.take(&loads, anyone), Some(0));
        let mut seen = [0; 3];
        for _ in 0..100 {
            let server = tree.take(&loads, anyone).unwrap();
            release(&tree, &loads, server);
            seen[server] += 1;
        }
        assert_eq!(seen, [0, 50, 50]);
    }

    #[test]
    fn requests_that_stay_spread_by_weight() {
        let (tree, loads) = tree(&[1, 2, 5]);
        for _ in 0..800 {
            tree.take(&loads, anyone);
        }
        assert_eq!([loads.get(0), loads.get(1), loads.get(2)], [100, 200, 500]);
    }

    #[test]
    fn nobody_usable_is_nobody() {
        let (empty, loads) = tree(&[]);
        assert_eq!(empty.take(&loads, anyone), None);
        let (idle, loads) = tree(&[0, 0]);
        assert_eq!(idle.take(&loads, anyone), None);
    }

    #[test]
    fn the_refused_are_passed_over_for_the_next_least() {
        let (tree, loads) = tree(&[1, 1, 1]);
        loads.add(2);
        tree.refresh(2, &loads);
        assert_eq!(tree.take(&loads, |s| s < 2), Some(2));
        assert_eq!(tree.take(&loads, |_| true), None);
    }

    #[test]
    fn threads_balance_and_leave_nothing_behind() {
        let (tree, loads) = tree(&vec![1; 300]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = std::collections::VecDeque::new();
                    for _ in 0..5_000 {
                        held.push_back(tree.take(&loads, anyone).unwrap());
                        if held.len() > 150 {
                            release(&tree, &loads, held.pop_front().unwrap());
                        }
                    }
                    held.into_iter().for_each(|server| release(&tree, &loads, server));
                });
            }
        });
        check(&tree, &loads);
        assert!((0..300).all(|server| loads.get(server) == 0));
        for _ in 0..600 {
            tree.take(&loads, anyone);
        }
        assert!((0..300).all(|server| loads.get(server) == 2), "not even after the storm");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn always_the_least(
            weights in proptest::collection::vec(0..5_u32, 1..300),
            ops in proptest::collection::vec((any::<bool>(), any::<u16>()), 1..100),
        ) {
            let (tree, loads) = tree(&weights);
            let mut held = Vec::new();
            for (take, which) in ops {
                if take || held.is_empty() {
                    let keys = |s: usize| key(loads.get(s), weights[s] * 16);
                    let least = (0..weights.len()).map(keys).min().unwrap();
                    match tree.pick(&loads, anyone) {
                        Some((server, _)) => prop_assert_eq!(keys(server), least),
                        None => prop_assert_eq!(least, UNUSABLE),
                    }
                    held.extend(tree.take(&loads, anyone));
                } else {
                    release(&tree, &loads, held.swap_remove(usize::from(which) % held.len()));
                }
                check(&tree, &loads);
            }
            prop_assert_eq!(held.len() as u32, (0..weights.len()).map(|s| loads.get(s)).sum::<u32>());
        }
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p balance --lib interleavings`.
#[cfg(loom)]
mod interleavings {
    use super::*;
    use loom::sync::Arc;

    // Four servers in two nodes, of which `busy` have a request; two threads act; then all must be true
    // again.
    fn explore(busy: &'static [usize], acts: [fn(&Tree, &Loads); 2]) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let loads = Loads::new();
            loads.grow(4);
            busy.iter().for_each(|&server| drop(loads.add(server)));
            let tree = Tree::new(4, &[(0, 16), (1, 16), (2, 16), (3, 16)], &loads);
            let world = Arc::new((tree, loads));
            let other = world.clone();
            let thread = loom::thread::spawn(move || acts[1](&other.0, &other.1));
            acts[0](&world.0, &world.1);
            thread.join().unwrap();
            check(&world.0, &world.1);
        });
    }

    fn add(tree: &Tree, loads: &Loads, server: usize) {
        loads.add(server);
        tree.refresh(server, loads);
    }

    fn sub(tree: &Tree, loads: &Loads, server: usize) {
        loads.sub(server);
        tree.refresh(server, loads);
    }

    #[test]
    fn a_rise_does_not_hide_a_fall_beside_it() {
        explore(&[1], [|t, l| add(t, l, 0), |t, l| sub(t, l, 1)]);
    }

    #[test]
    fn one_server_rises_and_falls_at_once() {
        explore(&[0, 1], [|t, l| add(t, l, 0), |t, l| sub(t, l, 0)]);
    }

    #[test]
    fn two_rises_in_one_node() {
        explore(&[], [|t, l| add(t, l, 0), |t, l| add(t, l, 1)]);
    }

    #[test]
    fn a_visit_beside_a_fall() {
        explore(
            &[1, 2, 3],
            [
                |t, l| {
                    add(t, l, 0);
                    sub(t, l, 0);
                },
                |t, l| sub(t, l, 1),
            ],
        );
    }
}
