use super::*;

fn balancer(algorithm: Algorithm, weights: &[u32]) -> Balancer {
    let balancer = Balancer::new(Settings::new(algorithm));
    balancer.rebuild(&views(weights));
    balancer
}

fn views(weights: &[u32]) -> Vec<ServerView> {
    weights.iter().zip(1..).map(|(&weight, id)| ServerView::new(id).with_weight(weight)).collect()
}

const ALL: [Algorithm; 8] = [
    Algorithm::RoundRobin,
    Algorithm::StaticRr,
    Algorithm::LeastConn,
    Algorithm::First,
    Algorithm::Random { draws: 2 },
    Algorithm::Hash(HashType { method: Method::MapBased, function: Function::Sdbm, avalanche: false }),
    Algorithm::Hash(HashType::CONSISTENT),
    Algorithm::Sticky,
];

fn anyone(_: usize) -> bool {
    false
}

#[test]
fn without_servers_nobody_is_picked() {
    for algorithm in ALL {
        let empty = Balancer::new(Settings::new(algorithm));
        assert_eq!(empty.take(Some(7), anyone), None, "{algorithm:?}");
        empty.rebuild(&[]);
        assert_eq!(empty.pick(None, anyone), None, "{algorithm:?}");
        assert_eq!(balancer(algorithm, &[0, 0]).pick(Some(1), anyone), None, "{algorithm:?}");
    }
}

#[test]
fn nothing_unusable_or_refused_is_picked() {
    for algorithm in ALL {
        let balancer = Balancer::new(Settings::new(algorithm));
        let mut servers = views(&[1, 2, 0, 4, 5]);
        servers[1].usable = false;
        servers[4].backup = true;
        balancer.rebuild(&servers);
        for key in 0..1000_u32 {
            let picked = balancer.take(Some(avalanche(key)), |server| server == 0).unwrap();
            assert_eq!(picked, 3, "{algorithm:?}");
            balancer.release(picked);
            assert_eq!(balancer.pick(Some(avalanche(key)), |_| true), None, "{algorithm:?}");
        }
        assert_eq!((balancer.usable(), balancer.takes_part(3), balancer.takes_part(4)), (2, true, false));
    }
}

#[test]
fn servers_can_be_added_while_requests_are_counted() {
    for algorithm in ALL {
        let balancer = balancer(algorithm, &[1]);
        let first = balancer.take(Some(1), anyone).unwrap();
        balancer.rebuild(&views(&[1; 200]));
        assert_eq!(balancer.load(first), 1, "{algorithm:?}");
        balancer.release(first);
        assert_eq!(balancer.load(first), 0, "{algorithm:?}");
        assert_eq!(balancer.usable(), 200);
    }
}

#[test]
fn random_without_a_number_still_spreads() {
    let balancer = balancer(Algorithm::Random { draws: 2 }, &[1; 4]);
    let mut seen = [0_u32; 4];
    (0..4000).for_each(|_| seen[balancer.pick(None, anyone).unwrap()] += 1);
    assert!(seen.iter().all(|n| n.abs_diff(1000) < 100), "{seen:?}");
}

#[test]
fn fewer_servers_than_before_are_all_found() {
    for algorithm in ALL {
        let balancer = balancer(algorithm, &[1; 40]);
        (0..39).for_each(|_| assert!(balancer.pick(Some(5), anyone).is_some()));
        balancer.rebuild(&views(&[1, 1]));
        assert!(balancer.pick(Some(5), anyone).is_some_and(|server| server < 2), "{algorithm:?}");
    }
}

#[test]
fn first_fills_by_identifier() {
    let balancer = Balancer::new(Settings::new(Algorithm::First));
    balancer.rebuild(&[30, 10, 20].map(ServerView::new));
    let full = |server| balancer.load(server) >= 2;
    let picks: Vec<_> = (0..7).map(|_| balancer.take(None, full)).collect();
    assert_eq!(picks, [Some(1), Some(1), Some(2), Some(2), Some(0), Some(0), None]);
}

#[test]
fn sticky_stays_until_its_server_goes_and_returns_last() {
    let balancer = balancer(Algorithm::Sticky, &[1, 1, 1]);
    let mut servers = views(&[1, 1, 1]);
    let mut set = |server: usize, up: bool| {
        servers[server].usable = up;
        balancer.rebuild(&servers);
        balancer.pick(None, anyone).unwrap()
    };
    assert_eq!([set(0, false), set(0, true), set(1, false), set(2, false), set(1, true)], [1, 1, 2, 0, 0]);
}

#[test]
fn a_request_without_a_key_takes_its_turn() {
    // In a map that of the next slot, on a ring that of the next point.
    for (hash_type, turns) in
        [(HashType::default(), [0, 1, 2, 0, 1, 2]), (HashType::CONSISTENT, [2, 2, 1, 0, 2, 0])]
    {
        let balancer = balancer(Algorithm::Hash(hash_type), &[1, 1, 1]);
        let picks: Vec<_> = (0..6).filter_map(|_| balancer.pick(None, anyone)).collect();
        assert_eq!(picks, turns);
    }
}

#[test]
fn the_balance_factor_caps_what_one_key_can_load() {
    let settings = Settings { balance_factor: 150, ..Settings::new(Algorithm::Hash(HashType::CONSISTENT)) };
    let balancer = Balancer::new(settings);
    balancer.rebuild(&views(&[1; 10]));
    let taken: Vec<_> = (0..100).map(|_| balancer.take(Some(12345), anyone).unwrap()).collect();
    let most = (0..10).map(|server| balancer.load(server)).max().unwrap();
    assert_eq!(most, 15);
    taken.into_iter().for_each(|server| balancer.release(server));
    assert!((0..10).all(|server| balancer.load(server) == 0));
}

#[test]
fn shares_add_up_to_the_slots() {
    let shares = Shares::new(4, &[(0, 3), (2, 5), (3, 9)]);
    for requests in 0..500 {
        let slots = shares.slots(requests, 125);
        let each = [0, 2, 3].map(|server| u64::from(shares.of(server, slots)));
        assert!(each.iter().sum::<u64>() >= slots);
        if slots >= 17 {
            assert_eq!(each.iter().sum::<u64>(), slots);
        }
    }
}

#[test]
fn threads_take_and_release_while_servers_come_and_go() {
    for algorithm in ALL {
        let balancer = balancer(algorithm, &[1; 40]);
        std::thread::scope(|scope| {
            for thread in 0..3_u32 {
                let balancer = &balancer;
                scope.spawn(move || {
                    for round in 0..1_000_u32 {
                        let key = avalanche(round ^ thread << 20);
                        let held: Vec<_> =
                            (0..3).filter_map(|i| balancer.take(Some(key + i), anyone)).collect();
                        assert_eq!(held.len(), 3, "{algorithm:?}");
                        held.into_iter().for_each(|server| balancer.release(server));
                    }
                });
            }
            for round in 0..50 {
                let mut servers = views(&[1; 40]);
                servers[round % 40].usable = false;
                balancer.rebuild(&servers);
            }
        });
        balancer.rebuild(&views(&[1; 40]));
        assert!((0..40).all(|server| balancer.load(server) == 0), "{algorithm:?}");
        if algorithm == Algorithm::LeastConn {
            (0..80).for_each(|_| assert!(balancer.take(None, anyone).is_some()));
            assert!((0..40).all(|server| balancer.load(server) == 2));
        }
    }
}
