//! Choices that HAProxy 3.5-dev5 was observed to make, as a black box: the same servers and keys were given
//! to the program and the names of the servers that answered were written down (`tests/observed/`). Harrier
//! must choose alike, or clients would change servers when one replaces the other.
#![cfg(not(loom))]

use balance::key::{self, UriParams};
use balance::{Algorithm, Balancer, HashKey, HashType, Method, ServerView, Settings};
use base::hash::{self, Function};
use std::net::SocketAddr;

fn anyone(_: usize) -> bool {
    false
}

fn numbers(list: &str) -> Vec<u32> {
    list.split(',').filter_map(|n| n.parse().ok()).collect()
}

fn records(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

fn hash_type(method: &str, function: &str, avalanche: &str) -> HashType {
    let method = if method == "consistent" { Method::Consistent } else { Method::MapBased };
    HashType { method, function: Function::by_name(function).unwrap(), avalanche: avalanche == "avalanche" }
}

fn keys() -> Vec<String> {
    let named = (0..24).map(|i| format!("key-{i}"));
    let numeric = (0..12).map(|i| (i * 7919).to_string());
    let others = ["/img/a.png", "/", "session=abcdef0123456789", "a", "zz"].map(String::from);
    named.chain(numeric).chain(others).chain(["x".repeat(70)]).collect()
}

#[test]
fn hashed_keys_find_the_same_servers() {
    let mut checked = 0;
    for record in records(include_str!("observed/hash.txt")) {
        let [method, function, avalanche, weights, down, observed] = record[..] else { panic!("{record:?}") };
        let hash_type = hash_type(method, function, avalanche);
        let mut servers: Vec<ServerView> =
            numbers(weights).iter().zip(1..).map(|(&w, id)| ServerView::new(id).with_weight(w)).collect();
        numbers(down).into_iter().for_each(|server| servers[server as usize].usable = false);
        let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
        balancer.rebuild(&servers);
        let pick =
            |key: String| balancer.pick(Some(hash_type.hash(key.as_bytes())), anyone).unwrap().to_string();
        let picked: String = keys().into_iter().map(pick).collect();
        assert_eq!(picked, observed, "{method} {function} {avalanche} weights {weights} down {down}");
        checked += 1;
    }
    assert!(checked > 200, "only {checked} records");
}

fn even(count: u32) -> Vec<ServerView> {
    (1..=count).map(ServerView::new).collect()
}

fn uri_params(words: &str) -> UriParams {
    let mut params = UriParams::default();
    let mut words = words.split_whitespace();
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap();
    while let Some(word) = words.next() {
        match word {
            "len" => params.len = number(words.next()),
            "depth" => params.depth = number(words.next()),
            "whole" => params.whole = true,
            "path-only" => params.path_only = true,
            other => panic!("{other}"),
        }
    }
    params
}

#[test]
fn uris_find_the_same_servers() {
    let hash_type = hash_type("map-based", "wt6", "");
    let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
    balancer.rebuild(&even(97));
    for line in include_str!("observed/uri.txt").lines().skip(1) {
        let [params, target, observed] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let key = key::uri(target.as_bytes(), uri_params(params));
        let picked = balancer.pick(Some(hash_type.hash(key)), anyone).unwrap();
        assert_eq!(picked.to_string(), observed, "{line}");
    }
}

#[test]
fn sources_find_the_same_servers() {
    for line in include_str!("observed/source.txt").lines().skip(1) {
        let [words, weights, source, observed] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let mut words = words.split(' ');
        let method = words.next().unwrap();
        let hash_type = match words.next() {
            Some(function) => hash_type(method, function, words.next().unwrap_or_default()),
            None if method == "consistent" => HashType::CONSISTENT,
            None => HashType::default(),
        };
        let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
        let weights = numbers(weights).into_iter().zip(1..);
        balancer.rebuild(&weights.map(|(w, id)| ServerView::new(id).with_weight(w)).collect::<Vec<_>>());
        let picked =
            balancer.pick(Some(hash_type.mix(hash::address(source.parse().unwrap()))), anyone).unwrap();
        assert_eq!(picked.to_string(), observed, "{line}");
    }
}

#[test]
fn servers_keyed_by_id_address_or_guid_own_the_same_keys() {
    let text = include_str!("observed/hash_key.txt");
    let addresses: Vec<SocketAddr> = text
        .lines()
        .next()
        .and_then(|line| line.split_once("addresses "))
        .map(|(_, list)| list.split(' ').map(|address| address.parse().unwrap()).collect())
        .unwrap();
    let with_guid = [false, true, true, true, true, false, true];
    for record in records(text) {
        let [backend, kind, third_id, observed] = record[..] else { panic!("{record:?}") };
        let server = |(place, address): (usize, &SocketAddr)| {
            let id = match (place, third_id) {
                (2, id) => id.parse().unwrap(),
                (4.., "5") => place as u32 + 2, // the fifth found its number taken
                _ => place as u32 + 1,
            };
            let guid = format!("{backend}-{place}");
            let guid = with_guid[place].then_some(guid.as_bytes());
            let kind = HashKey::by_name(kind).unwrap();
            ServerView {
                seed: kind.seed(id, Some(address.ip()), address.port(), guid),
                ..ServerView::new(id)
            }
        };
        let servers: Vec<ServerView> = addresses.iter().enumerate().map(server).collect();
        let hash_type = HashType::CONSISTENT;
        let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
        balancer.rebuild(&servers);
        let pick =
            |i: u32| balancer.pick(Some(hash_type.hash(format!("key-{i}").as_bytes())), anyone).unwrap();
        let picked: String = (0..40).map(|i| pick(i).to_string()).collect();
        assert_eq!(picked, observed, "hash-key {kind}, third id {third_id}");
    }
}

#[test]
fn a_balance_factor_spreads_one_key_alike() {
    for record in records(include_str!("observed/factor.txt")) {
        let [factor, weights, key, observed] = record[..] else { panic!("{record:?}") };
        let hash_type = HashType::CONSISTENT;
        let settings =
            Settings { balance_factor: factor.parse().unwrap(), ..Settings::new(Algorithm::Hash(hash_type)) };
        let balancer = Balancer::new(settings);
        let weights = numbers(weights).into_iter().zip(1..);
        balancer.rebuild(&weights.map(|(w, id)| ServerView::new(id).with_weight(w)).collect::<Vec<_>>());
        let take = |_| balancer.take(Some(hash_type.hash(key.as_bytes())), anyone).unwrap().to_string();
        let taken: String = (0..24).map(take).collect();
        assert_eq!(taken, observed, "{record:?}");
    }
}

#[test]
fn round_robin_takes_the_same_turns() {
    for record in records(include_str!("observed/roundrobin.txt")) {
        let [weights, observed] = record[..] else { panic!("{record:?}") };
        let balancer = Balancer::new(Settings::new(Algorithm::RoundRobin));
        let views = numbers(weights).into_iter().zip(1..);
        balancer.rebuild(&views.map(|(w, id)| ServerView::new(id).with_weight(w)).collect::<Vec<_>>());
        let turns = observed.len();
        let taken: String = (0..turns).map(|_| balancer.pick(None, anyone).unwrap().to_string()).collect();
        let agree = taken.bytes().zip(observed.bytes()).take_while(|(a, b)| a == b).count();
        assert_eq!(agree, turns, "weights {weights}\nours     {taken}\nobserved {observed}");
    }
}

#[test]
fn a_dead_server_hands_its_keys_to_the_same_others() {
    // Five servers on a consistent ring; in each row the server of that number refuses connections.
    let rows = [
        "4111442122414121411123111411414412114412",
        "0430402322034023423023044403430402304440",
        "0110403103014011411113111411410400104410",
        "0110402122014021411124111411410402104410",
        "0110302122011021211123111211310002100010",
    ];
    let hash_type = HashType::CONSISTENT;
    let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
    balancer.rebuild(&even(5));
    for (dead, observed) in rows.into_iter().enumerate() {
        let pick = |i: u32| balancer.pick(Some(hash_type.hash(format!("key-{i}").as_bytes())), |s| s == dead);
        let picked: String = (0..40).map(|i| pick(i).unwrap().to_string()).collect();
        assert_eq!(picked, observed, "server {dead} dead");
    }
}

#[test]
fn saturated_servers_are_passed_over_in_the_same_order() {
    // Four servers of `maxconn 1` under `hash-preserve-affinity maxconn`.
    let hash_type = HashType::CONSISTENT;
    for (key, observed) in [("abc", [0, 3, 1, 2]), ("k7", [1, 0, 2, 3])] {
        let balancer = Balancer::new(Settings::new(Algorithm::Hash(hash_type)));
        balancer.rebuild(&even(4));
        let hash = hash_type.hash(key.as_bytes());
        let full = |server| balancer.load(server) > 0;
        let taken = [(); 4].map(|()| balancer.take(Some(hash), full).unwrap());
        assert_eq!(taken, observed, "{key}");
        assert_eq!(balancer.take(Some(hash), full), None);
    }
}
