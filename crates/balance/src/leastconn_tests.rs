use super::*;

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

    // At rest: no node above the least key below it, and every leaf true.
    pub(super) fn check(tree: &Tree, loads: &Loads) {
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
