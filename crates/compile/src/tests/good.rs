//! Configurations that compile, checked field by field.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::server::Target;
use program::address::Listen;
use program::proxy::Balance;
use program::{Mode, Program};

use super::{complaints, run};

/// The head of the benchmark's configurations.
const HEAD: &str = "global\n nbthread 1\n maxconn 6000\n stats socket /tmp/none.sock level admin\ndefaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 5s\n";

fn program(text: &str) -> Program {
    let outcome = run(text);
    assert_eq!(complaints(&outcome), Vec::<String>::new(), "{text}");
    outcome.program.expect("no complaint, so a program")
}

#[test]
fn the_first_proxy_of_the_benchmark() {
    let p = program(&format!("{HEAD}listen p\n bind 127.0.0.1:18000\n server s1 127.0.0.1:19000\n"));
    assert_eq!((p.global.threads, p.global.maxconn, p.global.cli.len()), (1, 6000, 1));
    assert_eq!(p.global.cli[0].level, program::listener::Level::Admin);
    let l = &p.proxies[0];
    assert_eq!((l.mode, l.is_frontend, l.is_backend, l.default_backend), (Mode::Http, true, true, Some(0)));
    assert_eq!(l.timeouts.client, Some(Duration::from_secs(60)));
    assert_eq!(l.binds[0].address, Listen::Tcp("127.0.0.1:18000".parse().unwrap()));
    assert_eq!(**l.servers[0].state.target.load(), Target::Inet("127.0.0.1:19000".parse().unwrap()));
    assert_eq!((l.maxconn, l.fullconn), (6000, 600));
}

#[test]
fn a_hundred_servers_keep_their_weights() {
    let servers: String =
        (0..100).map(|i| format!(" server s{i} 127.0.0.1:19000 weight {}\n", 1 + i % 7)).collect();
    let p = program(&format!("{HEAD}listen p\n bind 127.0.0.1:18000\n balance leastconn\n{servers}"));
    let l = &p.proxies[0];
    assert!(matches!(l.balance, Balance::LeastConn));
    assert_eq!(l.servers.len(), 100);
    assert_eq!(l.servers[99].state.weight.load(Relaxed), 2);
    assert_eq!(l.servers[99].state.id, 100);
}

/// The lines every proxy of these tests needs.
const FRONT: &str = " mode http\n timeout client 5s\n bind 127.0.0.1:1\n";
const BACK: &str = " mode http\n timeout server 5s\n timeout connect 5s\n";

#[test]
fn proxies_start_from_their_defaults() {
    let p = program(
        "defaults one\n mode http\n timeout client 1s\n timeout server 2s\n timeout connect 3s\n retries 5\n option httpclose\n default-server inter 7s weight 9\ndefaults two from one\n timeout connect 4s\n retries 6\nlisten a from one\n bind :1\n server s 127.0.0.1:1 check\nlisten b from two\n bind :2\n no option httpclose\n server s 127.0.0.1:1\n",
    );
    let (a, b) = (&p.proxies[0], &p.proxies[1]);
    assert_eq!((a.retries, b.retries), (5, 6));
    assert_eq!(b.timeouts.client, Some(Duration::from_secs(1)));
    assert_eq!(b.timeouts.connect, Some(Duration::from_secs(4)));
    assert_eq!(a.options.connection, program::options::Connection::Close);
    assert_eq!(b.options.connection, program::options::Connection::KeepAlive);
    let check = a.servers[0].check.as_ref().expect("it is checked");
    assert_eq!((check.inter, a.servers[0].state.weight.load(Relaxed)), (Duration::from_secs(7), 9));
}

#[test]
fn rules_of_named_defaults_come_first_with_acls_of_their_own() {
    let p = program(&format!(
        "defaults d\n{} acl local src 127.0.0.1\n http-request deny if local\nfrontend f from d\n timeout client 1s\n bind :1\n acl local src 127.0.0.2\n http-request allow if local\n",
        " mode http\n"
    ));
    let rules: Vec<_> =
        p.proxies[0].rules.http_request.iter().map(|r| p.rule_places[r.number as usize].1).collect();
    assert_eq!(rules, [4, 9]);
}

#[test]
fn all_forms_of_addresses_are_listened_on() {
    let p = program(&format!(
        "frontend f\n{FRONT} bind 127.0.0.1:80-81,[::1]:82 name x maxconn 5\n bind /tmp/s mode 600 accept-proxy\n bind abns@a\n bind fd@5 id 20\n bind :90 v4v6 interface lo thread 1/1\n"
    ));
    let b = &p.proxies[0].binds;
    assert_eq!(b.len(), 8);
    assert_eq!(b[3].address, Listen::Tcp("[::1]:82".parse().unwrap()));
    assert_eq!((&*b[1].state.name, b[1].maxconn), ("x", 5));
    assert_eq!(b[4].address, Listen::Unix((*b"/tmp/s").into()));
    assert_eq!((b[4].unix.mode, b[4].accept_proxy), (Some(0o600), true));
    assert_eq!((b[6].address.clone(), b[6].state.id, &*b[6].state.name), (Listen::Fd(5), 20, "sock-20"));
    assert_eq!((b[7].v6only, b[7].interface.as_deref()), (Some(false), Some("lo")));
    assert_eq!(b[7].threads, [0].into_iter().collect());
}

#[test]
fn a_server_has_what_its_line_says() {
    let p = program(&format!(
        "backend b\n{BACK} cookie SRV insert indirect nocache\n server a 127.0.0.1:80 weight 5 maxconn 10 minconn 2 maxqueue 3 cookie v backup slowstart 10s check inter 1s fall 4 rise 5 port 81 observe layer7 on-error mark-down error-limit 7 send-proxy-v2 proxy-v2-options unique-id,crc32c source 127.0.0.2:1000-1010 pool-max-conn 4\n server t 127.0.0.1:80 track a id 50 disabled\n server u *:80\n server r 127.0.0.1:+10\n server n 127.0.0.1\n"
    ));
    let s = &p.proxies[0].servers;
    let a = &s[0];
    assert_eq!((a.maxconn, a.minconn, a.maxqueue, a.backup), (10, 2, 3, true));
    assert_eq!(a.cookie.as_deref(), Some(b"v".as_slice()));
    let check = a.check.as_ref().expect("it is checked");
    assert_eq!((check.fall, check.rise, check.port), (4, 5, Some(81)));
    let proxy = a.send_proxy.as_ref().expect("a header is sent");
    assert_eq!((proxy.version, proxy.options.unique_id, proxy.options.crc32c), (2, true, true));
    assert_eq!(a.source.as_ref().and_then(|s| s.ports), Some((1000, 1010)));
    assert_eq!((a.error_limit, a.on_error, a.pool_max_conn), (7, program::server::OnError::MarkDown, 4));
    assert_eq!((s[1].track, s[1].state.id, s[1].forced_id), (Some((0, 0)), 50, true));
    assert_eq!(s[1].state.admin(), model::server::admin::CMAINT | model::server::admin::FMAINT);
    assert!(s[2].transparent);
    let mapped = |at: usize| {
        let state = &s[at].state;
        state.mapped.load(Relaxed).then(|| state.port.load(Relaxed))
    };
    assert_eq!((mapped(1), mapped(3), mapped(4)), (None, Some(10), Some(0)));
}

#[test]
fn a_template_makes_servers_that_differ_in_their_number() {
    let p = program(&format!("backend b\n{BACK} server-template web 2-4 127.0.0.1:80 weight 3\n"));
    let names: Vec<_> = p.proxies[0].servers.beginning().iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["web2", "web3", "web4"]);
}

#[test]
fn log_targets_take_the_place_of_log_global() {
    use program::log::{Format, Sink};
    let p = program(&format!(
        "global\n log 127.0.0.1 local0 notice err\n log stdout format raw daemon\nring r\n size 1k\nfrontend f\n{FRONT} log global\n log ring@r format rfc5424 len 200 sample 1,3-4:5 local1\n option httplog\n error-log-format \"%ci\"\n unique-id-format %[req.hdr(x)]\n"
    ));
    let log = &p.proxies[0].log;
    let first = &log.targets[0];
    assert_eq!(p.sinks[first.sink], Sink::Udp("127.0.0.1:514".parse().unwrap()));
    assert_eq!((first.facility, first.max_level, first.min_level, first.format), (16, 5, 3, Format::Local));
    assert_eq!((&p.sinks[log.targets[1].sink], log.targets[1].format), (&Sink::Fd(1), Format::Raw));
    let ring = &log.targets[2];
    assert_eq!((&p.sinks[ring.sink], ring.len, ring.format), (&Sink::Ring(1), 200, Format::Rfc5424));
    assert_eq!(ring.sample.as_ref().map(|s| (s.ranges.clone(), s.size)), Some((vec![(1, 1), (3, 4)], 5)));
    assert!(log.format.is_some() && log.error_format.is_some() && p.proxies[0].unique_id_format.is_some());
}

#[test]
fn an_http_check_is_completed_from_its_option() {
    use program::check::{Pattern, Step};
    let steps = |lines: &str| {
        let p = program(&format!("backend b\n{BACK}{lines} server s 127.0.0.1:80 check\n"));
        p.proxies[0].check.clone()
    };
    let plain = steps(" option httpchk GET /alive\n");
    let [Step::SendHttp { method, uri, version, .. }, Step::Expect(expect)] = plain.steps.as_slice() else {
        panic!("{:?}", plain.steps)
    };
    assert_eq!(
        (&**method, uri.constant(), &**version),
        (&b"GET"[..], Some(&b"/alive"[..]), &b"HTTP/1.0"[..])
    );
    assert!(matches!(&expect.what, Pattern::Status(codes) if codes == &[(200, 399)]));
    let own = steps(
        " option httpchk\n http-check send meth HEAD uri /x ver HTTP/1.1 hdr Host a\n http-check expect ! rstatus ^5\n",
    );
    let [Step::SendHttp { method, headers, .. }, Step::Expect(expect)] = own.steps.as_slice() else {
        panic!("{:?}", own.steps)
    };
    assert_eq!((&**method, headers.len(), expect.negated), (&b"HEAD"[..], 1, true));
    let tcp = steps(
        " option tcp-check\n tcp-check connect port 81\n tcp-check send-binary 50494e47\n tcp-check expect string PONG\n",
    );
    assert_eq!(format!("{:?}", tcp.steps), "[Connect, Send, Expect]");
}

#[test]
fn backends_are_chosen_by_name_and_by_format() {
    use program::proxy::SwitchTo;
    let p = program(&format!(
        "frontend f\n{FRONT} acl api path_beg /api\n use_backend one if api\n use_backend %[req.hdr(host)]\n default_backend two\nbackend one\n{BACK}backend two\n{BACK}"
    ));
    let f = &p.proxies[0];
    let switching: Vec<_> = f.switching.iter().collect();
    assert!(matches!(switching[0].to, SwitchTo::Backend(1)) && switching[0].condition.is_some());
    assert!(matches!(switching[1].to, SwitchTo::Format(_)) && switching[1].condition.is_none());
    assert_eq!(f.default_backend, Some(2));
}

#[test]
fn keep_alive_figures_alone_switch_nothing_on() {
    let p = program(&format!(
        "frontend f\n{FRONT} clitcpka-idle 10s\nfrontend g\n{FRONT} clitcpka-cnt 3\n option clitcpka\n"
    ));
    assert_eq!(p.proxies[0].options.client_keepalive, None);
    assert_eq!(p.proxies[1].options.client_keepalive.map(|k| k.count), Some(3));
}

#[test]
fn a_later_program_finds_the_state_of_an_earlier_one() {
    let text = format!("listen l\n{FRONT}{BACK} server s 127.0.0.1:1\n");
    let world = std::sync::Arc::new(model::World::new(2));
    let mut a = super::run_in(&text, world.clone()).program.expect("good");
    assert!(world.find_proxy("l").is_none(), "nothing is alive before it is adopted");
    a.adopt();
    let b = super::run_in(&text, world).program.expect("good");
    assert!(std::sync::Arc::ptr_eq(&a.proxies[0].state, &b.proxies[0].state));
    assert!(std::sync::Arc::ptr_eq(&a.proxies[0].servers[0].state, &b.proxies[0].servers[0].state));
    assert!(std::sync::Arc::ptr_eq(&a.proxies[0].binds[0].state, &b.proxies[0].binds[0].state));
}

#[test]
fn maxconn_follows_from_the_descriptors_when_nobody_says() {
    let p = program(&format!("frontend f\n{FRONT}"));
    // Seen on the oracle: 20,000 descriptors, two threads and nine listeners give 9982.
    assert_eq!((p.global.maxconn, p.proxies[0].maxconn), (9986, 9986));
}

#[test]
fn pipes_need_descriptors_too() {
    let limits = |lines: &str| {
        let p = program(&format!("global\n{lines}\nfrontend f\n{FRONT}"));
        (p.global.maxconn, p.global.ulimit_n)
    };
    // 20,000 descriptors, 27 of them for other things; HAProxy takes the same for pipes.
    assert_eq!(limits(" maxpipes 5000"), (4986, 19_999));
    assert_eq!(limits(" maxpipes 99999"), (9986, 219_997));
    assert_eq!(limits(" maxconn 5000\n maxpipes 5000"), (5000, 20_027));
}
