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
        ("add server b/d 127.0.0.1:81 weight", "'weight' expects an integer argument."),
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
        let balancer = &worker.shared.backends[1].balancer;
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
        ("show sess older 1x", "Invalid age, expects an integer."),
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
