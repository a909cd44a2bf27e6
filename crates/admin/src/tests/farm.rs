//! Servers that come and go, and variables: what the commands answer and change.

use super::*;

const CONFIG: &str = "\
global
    set-var proc.known int(3)
    stats socket /tmp/x.sock level admin
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 1s
defaults named
    timeout client 5s
frontend f
    bind 127.0.0.1:1
    default_backend b
backend b
    balance roundrobin
    guid backend-b
    server s1 127.0.0.1:80
    server s2 127.0.0.1:80
    use-server s2 if FALSE
backend fixed
    balance static-rr
";

fn answers(table: &'static [(&'static str, &'static str)]) {
    on_worker(CONFIG, move |worker| async move {
        let mut client = client(Level::Admin);
        for (line, wanted) in table {
            assert_eq!(ask(&worker, &mut client, line).await.trim_end(), *wanted, "{line:?}");
        }
    });
}

#[test]
fn servers_come_and_go() {
    answers(&[
        ("add server b/s1 127.0.0.1:81", "Already exists a server with the same name in backend."),
        (
            "add server fixed/d 127.0.0.1:81",
            "Backend does not support dynamic servers : backend 'fixed' uses a non dynamic load balancing method.",
        ),
        ("add server b/d 127.0.0.1:81 id 2", "custom id 2 already used by server 's2'."),
        ("add server b/d 127.0.0.1:81 namespace x", "'namespace' option is not accepted for dynamic server"),
        (
            "add server b/d 127.0.0.1:81 track s1",
            "unable to use b/s1 for tracking as it does not have any check nor agent enabled.",
        ),
        ("add server b/d 127.0.0.1:81 weight 9 maxconn 5 source 127.0.0.1 check", "New server registered."),
        ("get weight b/d", "9 (initial 9)"),
        ("get weight b/#3", "9 (initial 9)"),
        ("add server b/e 127.0.0.1:82 track d", "unable to use b/d for tracking as it is a dynamic server."),
        ("enable server b/d", ""),
        ("del server b/d", "Only servers in maintenance mode can be deleted."),
        ("disable server b/s2", ""),
        (
            "del server b/s2",
            "This server cannot be removed at runtime due to other configuration elements pointing to it.",
        ),
        ("disable server b/d; wait 1s srv-removable b/d; del server b/d", "\nDone.\n\nServer deleted."),
        ("get weight b/d", "No such server."),
        ("add server b/d 127.0.0.1:83 guid g", "New server registered."),
        ("get weight b/#3", "1 (initial 1)"),
        ("add server b/e 127.0.0.1:83 guid g", "'guid': duplicate entry with server b/d."),
    ]);
}

#[test]
fn traffic_reaches_an_added_server_once_it_is_enabled() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        ask(&worker, &mut client, "add server b/d 127.0.0.1:81 weight 256").await;
        let balancer = &worker.shared.farm.backends[1].balancer;
        assert!((0..300).all(|_| balancer.pick(None, |_| false) != Some(2)));
        ask(&worker, &mut client, "enable server b/d").await;
        assert!((0..300).any(|_| balancer.pick(None, |_| false) == Some(2)));
        ask(&worker, &mut client, "disable server b/d; del server b/d").await;
        assert!((0..300).all(|_| balancer.pick(None, |_| false) != Some(2)));
        let state = ask(&worker, &mut client, "show servers state b").await;
        assert_eq!(state.lines().filter(|l| l.contains(" b ")).count(), 2, "{state}");
    });
}

#[test]
fn streams_that_are_about_to_end_are_waited_for() {
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        ask(&worker, &mut client, "add server b/d 127.0.0.1:81").await;
        let state = worker.shared.program.server(1, 2).state.clone();
        state.served.store(1, Relaxed);
        let busy = "Server still has connections attached to it, cannot remove it.\n\n";
        assert_eq!(ask(&worker, &mut client, "del server b/d").await, busy);
        rt::spawn(async move {
            rt::sleep(std::time::Duration::from_millis(10)).await;
            state.served.store(0, Relaxed);
        });
        assert_eq!(ask(&worker, &mut client, "del server b/d").await, "Server deleted.\n\n");
    });
}

#[test]
fn variables_of_the_process_are_read_and_set() {
    answers(&[
        ("get var proc.known", "proc.known: type=sint value=<3>"),
        ("set var proc.known int(4)", "This command is restricted to experimental mode only."),
        ("experimental-mode on", ""),
        ("set var proc.known var(proc.known),add(4)", ""),
        ("get var proc.known", "proc.known: type=sint value=<7>"),
        ("set var proc.fresh fmt <%[var(proc.known)]>", ""),
        ("get var proc.fresh", "proc.fresh: type=str value=<<7>>"),
        ("get var proc.other", "Variable not found."),
        (
            "set var txn.x int(1)",
            "'set var': cannot set variable 'txn.x', only scope 'proc' is permitted here.",
        ),
    ]);
}

#[test]
fn what_cannot_be_is_refused_in_the_words_of_the_oracle() {
    answers(&[
        ("set server b/s1 name", "set server <b>/<s> name requires a new name."),
        (
            "set server b/s1 name x",
            "Server must be in maintenance mode to be renamed (set server <b>/<s> state maint).",
        ),
        ("show activity 9", "Thread ID number must be between -1 and nbthread"),
        ("show fd x", "Invalid FD type"),
        ("show resolvers x", "Can't find that resolvers section"),
        ("clear counters server b/s1", "Server counters cleared."),
        ("show sess older 1x", "Invalid age."),
        ("show defaults", "named"),
        ("set dynamic-cookie-key backend b", "String value expected."),
    ]);
}

#[test]
fn a_stats_file_holds_what_has_a_guid() {
    on_worker(CONFIG, |worker| async move {
        let text = ask(&worker, &mut client(Level::Admin), "dump stats-file").await;
        assert!(text.starts_with("#fe guid,stot,bin,"), "{text}");
        let row = text.lines().find(|l| l.starts_with("backend-b,0,")).expect("the backend");
        let heading = text.lines().find(|l| l.starts_with("#be guid,")).expect("a heading");
        assert_eq!(row.split(',').count(), heading.split(',').count());
    });
}

const MANY: &str = "\
global
    stats socket /tmp/x.sock level admin
defaults base
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 1s
    timeout check 1s
defaults dyn from base
    balance leastconn
    option httpchk
frontend f from base
    bind 127.0.0.1:1
    default_backend b
backend b from base
    balance roundrobin
    server s1 127.0.0.1:80 check inter 1h
";

/// What servers of the kinds of a run are made with.
const KINDS: [&str; 4] = [
    "check inter 1h",
    "agent-check agent-port 9 agent-inter 1h check inter 1h slowstart 60s",
    "ssl verify none sni str(a.example) check check-ssl",
    "track b/s1",
];

#[test]
fn deleted_servers_and_backends_give_their_memory_back() {
    on_worker(MANY, |worker| async move {
        let mut client = client(Level::Admin);
        let program = worker.shared.program.clone();
        let (mut servers, mut backends) = (Vec::new(), Vec::new());
        for n in 0..300 {
            let (s, t) = (n % 3, KINDS[n % 4]);
            let new = ask(&worker, &mut client, &format!("add server b/d{s} 127.0.0.1:81 {t}")).await;
            assert!(new.contains("New server registered"), "{new}");
            ask(
                &worker,
                &mut client,
                &format!("enable server b/d{s}; enable health b/d{s}; enable agent b/d{s}"),
            )
            .await;
            rt::sleep(std::time::Duration::from_millis(1)).await;
            let back = program.proxy(1);
            let (at, _) = back.servers.numbered().last().unwrap();
            servers.push(Arc::downgrade(&back.server(at).state));
            ask(&worker, &mut client, &format!("disable server b/d{s}; wait 5s srv-removable b/d{s}")).await;
            let gone = ask(&worker, &mut client, &format!("del server b/d{s}")).await;
            assert!(gone.contains("Server deleted"), "{gone}");

            let on = "experimental-mode on";
            let line =
                format!("{on}; add backend x{s} from dyn mode http; add server x{s}/a 127.0.0.1:82 {t}");
            let new = ask(&worker, &mut client, &line).await;
            assert!(new.contains("New backend registered") && new.contains("New server registered"), "{new}");
            let (_, made) = program.proxies.numbered().last().unwrap();
            backends.push((
                Arc::downgrade(&made.state),
                Arc::downgrade(&made.servers.iter().next().unwrap().state),
            ));
            drop(made);
            let gone = ask(&worker, &mut client, &format!("{on}; del server x{s}/a; del backend x{s}")).await;
            assert!(gone.contains("Server deleted") && gone.contains("Backend deleted"), "{gone}");
        }
        assert_eq!(servers.iter().filter(|s| s.strong_count() > 0).count(), 0, "servers are kept");
        assert_eq!(
            backends.iter().filter(|(p, s)| p.strong_count() + s.strong_count() > 0).count(),
            0,
            "backends are kept"
        );
        let back = program.proxy(1);
        assert!(back.servers.bound() <= 3 && program.proxies.bound() <= 4, "indices go to others");
        assert_eq!(program.world.find_proxy("x1").map(|p| p.id), None);
    });
}

#[test]
fn servers_are_told_in_the_order_in_which_they_came() {
    answers(&[
        ("add server b/d 127.0.0.1:81", "New server registered."),
        ("add server b/e 127.0.0.1:82", "New server registered."),
        ("del server b/d", "Server deleted."),
        ("add server b/g 127.0.0.1:83", "New server registered."),
        ("add server b/d 127.0.0.1:84", "New server registered."),
        ("get weight b/g; get weight b/d; get weight b/e", "1 (initial 1)\n\n1 (initial 1)\n\n1 (initial 1)"),
    ]);
    on_worker(CONFIG, |worker| async move {
        let mut client = client(Level::Admin);
        for line in [
            "add server b/d 127.0.0.1:81",
            "add server b/e 127.0.0.1:82",
            "del server b/d",
            "add server b/g 127.0.0.1:83",
        ] {
            ask(&worker, &mut client, line).await;
        }
        let state = ask(&worker, &mut client, "show servers state b").await;
        let names: Vec<_> = state.lines().filter_map(|l| l.split(' ').nth(3)).skip(1).collect();
        assert_eq!(names, ["s1", "s2", "e", "g"], "{state}");
    });
}
