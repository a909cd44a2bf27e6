//! What configurations are taken and refused, where that once was wrong, and what is made of servers at run
//! time.

use std::rc::Rc;
use std::time::Duration;

use farm::At;
use farm::state::{Wanted, set_admin};
use worlds::{Answer, QUIET, Setup, explore, response};

/// Configurations that have to be taken (true) or refused.
const VERDICTS: &[(&str, bool)] = &[
    ("listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80", true),
    ("listen p\n bind 127.0.0.1:80 namespace nowhere\n server s 127.0.1.1:80", false),
    ("listen p\n bind 127.0.0.1:80\n unique-id-format %[be_name]%[nbsrv]\n server s 127.0.1.1:80", true),
    ("backend b\n unique-id-format %[be_name]%[be_id]\n server s 127.0.1.1:80", true),
    (
        "listen p\n bind 127.0.0.1:80\n http-request deny if { path,has_ctl(0x3ffffffff) }\n server s 127.0.1.1:80",
        false,
    ),
    (
        "listen p\n bind 127.0.0.1:80\n http-request deny if { path,has_ctl(0x1ffffffff) }\n server s 127.0.1.1:80",
        true,
    ),
    ("listen p\n mode tcp\n bind 127.0.0.1:80\n server s 127.0.1.1:80 proto h2", false),
    ("backend b\n server s 127.0.1.1:443 ssl verify none ciphers ECDH+AESGCM", true),
    ("backend b\n server s 127.0.1.1:443 ssl verify none ciphers HIGH:!aNULL", true),
    ("global\n set-dumpable on", true),
    ("global\n unix-bind prefix /tmp/ mode 600", true),
    ("global\n master-worker", false),
    ("global\n master-worker no-exit-on-failure", true),
    ("backend b\n cookie SRV prefix preserve\n server s 127.0.1.1:80 cookie a", false),
    ("backend b\n cookie SRV rewrite indirect\n server s 127.0.1.1:80 cookie a", false),
    ("backend b\n server s 127.0.1.1 check", false),
    ("backend b\n server s 0.0.0.0 check", true),
];

#[test]
fn configurations_are_judged_as_they_should_be() {
    for (config, taken) in VERDICTS {
        let read = Setup::read(config);
        assert_eq!(read.is_ok(), *taken, "{config}: {:?}", read.err());
    }
}

/// The port of `addr` is where the check goes.
#[test]
fn a_check_goes_to_the_port_of_its_address() {
    const ELSEWHERE: &str = "  option httpchk GET /check\nlisten p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 check addr 127.0.1.1:81";
    explore(ELSEWHERE, QUIET, |stage| async move {
        let asked: Rc<std::cell::Cell<u32>> = Rc::default();
        let count = asked.clone();
        stage.answer("127.0.1.1:81", move |_, _| {
            count.set(count.get() + 1);
            Answer::Bytes(response(200, b""))
        });
        rt::sleep(Duration::from_secs(5)).await;
        assert!(asked.get() > 0, "checks came to the port of the service");
        assert!(stage.server("p/s").is_up());
    });
}

/// A check without anywhere to go fails.
#[test]
fn a_check_without_a_port_finds_nobody() {
    const NOWHERE: &str = "listen p\n bind 127.0.0.1:80\n server s 0.0.0.0 check inter 1s fall 1";
    explore(NOWHERE, QUIET, |stage| async move {
        rt::sleep(Duration::from_secs(5)).await;
        assert!(!stage.server("p/s").is_up());
    });
}

/// What checks of servers that are made at run time say of clients is only what their own words ask for.
#[test]
fn checks_of_dynamic_servers_send_no_header_unasked() {
    let setup = Setup::new("backend b\n default-server send-proxy\n server s 127.0.1.1:80");
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (line, sends) in
        [("127.0.1.1:80 check send-proxy", false), ("127.0.1.1:80 check check-send-proxy", true)]
    {
        let made = compile::dynamic::server(&setup.program, 0, "d", &words(line));
        let (server, _) = made.unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(server.check.map(|check| check.send_proxy), Some(sends), "{line}");
    }
}

/// A server that was deleted follows nobody any more.
#[test]
fn a_server_that_is_gone_does_not_come_back() {
    const FOLLOWS: &str =
        "listen p\n bind 127.0.0.1:80\n server a 127.0.1.1:80 check inter 1s\n server b 127.0.1.1:80 track a";
    explore(FOLLOWS, QUIET, |stage| async move {
        stage.origin("127.0.1.1:80");
        let (first, second) = (At { proxy: 0, server: 0 }, At { proxy: 0, server: 1 });
        let state = stage.server("p/b");
        set_admin(&stage.worker.farm, second, Wanted::Maint);
        assert!(farm::dynamic::remove(&stage.worker.farm, second).is_ok());
        let lines = stage.lines().len();
        set_admin(&stage.worker.farm, first, Wanted::Maint);
        set_admin(&stage.worker.farm, first, Wanted::Ready);
        rt::sleep(Duration::from_secs(3)).await;
        assert!(!state.is_usable());
        let said: Vec<_> =
            stage.lines().into_iter().skip(lines).filter(|line| line.text.contains("p/b")).collect();
        assert!(said.is_empty(), "{said:?}");
    });
}
