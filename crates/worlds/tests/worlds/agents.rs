//! Agents, commands and states at the start.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use farm::state::{self, Forced, Wanted};
use model::server::Op;
use worlds::{ALL, CALM, QUIET};

use super::checks::{AGENT, FIRST, S, after, checked, told};

const AGENT_CONFIG: &str = "listen p\n bind 127.0.0.1:80\n balance leastconn\n \
     server s 127.0.1.1:80 weight 100 check inter 1s agent-check agent-addr 127.0.1.9 agent-port 99 agent-inter 1s";

#[test]
fn an_agent_is_obeyed_however_its_words_arrive() {
    checked(AGENT_CONFIG, CALM, |stage| async move {
        stage.serve(S, |_, _| async {});
        let word: Rc<Cell<&str>> = Rc::new(Cell::new("up\n"));
        let now = word.clone();
        stage.serve(AGENT, move |peer, _| {
            let word = now.get();
            async move {
                let _ = peer.send_slowly(word.as_bytes(), 3, Duration::from_millis(5)).await;
            }
        });
        let server = stage.server("p/s");
        let weight = || server.weight.load(Relaxed);
        after(800).await;
        let table: [(&str, Op, bool, u32); 11] = [
            ("down #too hot\n", Op::Stopped, false, 100),
            ("up\n", Op::Running, true, 100),
            ("drain 50%\n", Op::Running, false, 50),
            ("ready weight:30 maxconn:7\n", Op::Running, true, 30),
            ("stopped ready", Op::Running, true, 30),
            ("maint\r\nup\n", Op::Stopped, false, 30),
            ("ready up, 100%\n", Op::Running, true, 100),
            ("nonsense down\n", Op::Stopped, false, 100),
            ("nonsense up\n", Op::Running, true, 100),
            ("0%\n", Op::Running, false, 0),
            ("100% fail\n", Op::Stopped, false, 100),
        ];
        for (text, op, usable, wanted) in table {
            word.set(text);
            after(3000).await;
            assert_eq!((server.op(), server.is_usable(), weight()), (op, usable, wanted), "{text:?}");
        }
        assert_eq!(server.maxconn.load(Relaxed), 7);
        assert_eq!(server.status.lock().agent.detail, "via agent : fail");
    });
}

#[test]
fn a_static_schedule_takes_no_weight_of_an_agent_but_none_and_the_first() {
    checked(&AGENT_CONFIG.replace("leastconn", "static-rr"), CALM, |stage| async move {
        stage.serve(S, |_, _| async {});
        let word: Rc<Cell<&str>> = Rc::new(Cell::new("up\n"));
        let now = word.clone();
        stage.serve(AGENT, move |peer, _| {
            let word = now.get();
            async move {
                let _ = peer.send_slowly(word.as_bytes(), 3, Duration::from_millis(5)).await;
            }
        });
        let server = stage.server("p/s");
        for (text, wanted) in [("50%\n", 100), ("0%\n", 0), ("30%\n", 0), ("weight:7\n", 0), ("100%\n", 100)]
        {
            word.set(text);
            after(3000).await;
            assert_eq!(server.weight.load(Relaxed), wanted, "{text:?}");
        }
    });
}

#[test]
fn an_agent_that_is_gone_changes_nothing() {
    checked(AGENT_CONFIG, ALL, |stage| async move {
        // Whatever the health check makes of it, no line may speak of the agent's failures as a change.
        let mut open = stage.serve(AGENT, |peer, _| async move { drop(peer.send(b"down\n").await) });
        after(9000).await;
        rt::cancel(open);
        let server = stage.server("p/s");
        let before = server.agent_health.load(Relaxed);
        after(5000).await;
        assert_eq!(server.agent_health.load(Relaxed), before);
        open = stage.serve(AGENT, |_, _| async { after(5000).await });
        after(5000).await;
        assert_eq!(server.agent_health.load(Relaxed), before);
        rt::cancel(open);
    });
}

#[test]
fn commands_change_health_and_maintenance_stops_checks() {
    let config = "listen p\n bind 127.0.0.1:80\n server s 127.0.1.1:80 check inter 1s rise 2 fall 2";
    checked(config, QUIET, |stage| async move {
        let asked = Rc::new(Cell::new(0));
        let count = asked.clone();
        stage.serve(S, move |_, _| {
            count.set(count.get() + 1);
            async {}
        });
        let server = stage.server("p/s");
        after(500).await;
        state::force_health(&stage.worker.farm, FIRST, Forced::Down);
        assert_eq!(server.op(), Op::Stopped);
        after(1000).await;
        assert_eq!(server.op(), Op::Stopped, "one success of two");
        after(1000).await;
        assert_eq!(server.op(), Op::Running);
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Maint);
        let before = asked.get();
        after(5000).await;
        assert_eq!(asked.get(), before, "nobody asks a server in maintenance");
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Drain);
        assert!(server.is_up() && !server.is_usable());
        state::set_admin(&stage.worker.farm, FIRST, Wanted::Ready);
        assert!(server.is_usable());
        after(1500).await;
        assert!(asked.get() > before);
        let lost = "0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.";
        assert_eq!(
            told(&stage),
            [
                format!("Server p/s is DOWN, changed from CLI. {lost}"),
                "proxy p has no server available!".into(),
                "Server p/s is UP, reason: Layer4 check passed, check duration: 0ms. 1 active and 0 backup servers \
                 online. 0 sessions requeued, 0 total in queue."
                    .into(),
                format!("Server p/s is going DOWN for maintenance. {lost}"),
                "proxy p has no server available!".into(),
                "Server p/s is UP/DRAIN (leaving forced maintenance).".into(),
                "Server p/s remains in forced drain mode.".into(),
                "Server p/s is UP (leaving forced drain).".into(),
            ]
        );
    });
}

#[test]
fn init_state_counts_at_the_start_and_after_maintenance() {
    let config = "listen p\n bind 127.0.0.1:80\n \
                  server s 127.0.1.1:80 check inter 1s rise 3 fall 2 init-state fully-down\n \
                  server t 127.0.1.1:80 check inter 1s rise 3 fall 2 init-state down\n \
                  server u 127.0.1.2:80 check inter 1s rise 3 fall 2 init-state fully-up";
    checked(config, QUIET, |stage| async move {
        let all = ["p/s", "p/t", "p/u"].map(|n| stage.server(n));
        let up = || all.each_ref().map(|s| s.is_up());
        assert_eq!(up(), [false, false, true]);
        stage.serve(S, |_, _| async {});
        for after_start in [true, false] {
            after(900).await;
            assert_eq!(up(), [false, true, true], "{after_start}");
            after(1000).await;
            assert_eq!(up(), [false, true, false], "{after_start}");
            after(1000).await;
            assert_eq!(up(), [true, true, false], "{after_start}");
            for server in 0..3 {
                state::set_admin(&stage.worker.farm, farm::At { proxy: 0, server }, Wanted::Maint);
            }
            after(50).await;
            for server in 0..3 {
                state::set_admin(&stage.worker.farm, farm::At { proxy: 0, server }, Wanted::Ready);
            }
            assert_eq!(up(), [false, false, true]);
        }
    });
}
