//! Names of servers and of rules, and name servers that are silent, lie, or are flooded with questions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use model::server::{Target, admin};
use rt::sim::{self, Faults};
use rt::{Addr, Datagram};
use worlds::{ALL, CALM, Climate, QUIET, Stage, addr, explore, play, spawn};

const NS: &str = "127.0.0.53:53";
const FRONT: &str = "127.0.0.1:80";
const CONFIG: &str = "resolvers r
 nameserver d 127.0.0.53:53
 timeout resolve 1s
 timeout retry 1s
 resolve_retries 3
 hold nx 5s
 hold timeout 10s
 hold other 5s
 hold refused 5s
backend b
 server s srv.test:80 resolvers r resolve-prefer ipv4 init-addr none
frontend f
 bind 127.0.0.1:80
 http-request do-resolve(txn.ip,r,ipv4) req.hdr(x-name)
 http-request return status 200 if { var(txn.ip) -m found }
 http-request return status 404";

/// What a name server says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Say {
    /// These addresses.
    Ip(u8),
    /// A code other than success.
    Code(u8),
    /// An answer to another number.
    WrongNumber,
    /// An answer that was cut short.
    Cut,
    /// An answer to another name.
    WrongName,
    /// No answer at all.
    Nothing,
    /// Bytes that mean nothing.
    Junk,
    /// The right one, but late.
    Late(u8),
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 0, last)
}

/// The name and the type that is asked for.
fn asked(question: &[u8]) -> (String, u16) {
    let (mut at, mut name) = (12, String::new());
    while question[at] != 0 {
        let length = usize::from(question[at]);
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(std::str::from_utf8(&question[at + 1..=at + length]).unwrap());
        at += length + 1;
    }
    (name, u16::from_be_bytes([question[at + 1], question[at + 2]]))
}

/// The answer with these flags and addresses.
fn reply(question: &[u8], flags: u16, ips: &[Ipv4Addr]) -> Vec<u8> {
    // Without the additional record at its end.
    let mut out = question[..question.len() - 11].to_vec();
    out[2..4].copy_from_slice(&flags.to_be_bytes());
    out[6..8].copy_from_slice(&(ips.len() as u16).to_be_bytes());
    out[10..12].copy_from_slice(&[0, 0]);
    for ip in ips {
        out.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4]);
        out.extend(ip.octets());
    }
    out
}

/// A name server that does as `says` says with each name and type.
fn serve(says: impl Fn(&str, u16) -> Say + 'static) {
    spawn(async move {
        let socket = loop {
            // Descriptors may run out at any time.
            match Datagram::bind(&addr(NS)) {
                Ok(socket) => break Rc::new(socket),
                Err(_) => rt::sleep(Duration::from_millis(1)).await,
            }
        };
        let mut room = [0; 1024];
        loop {
            let Ok((n, Some(from))) = socket.recv(&mut room).await else { continue };
            let question = room[..n].to_vec();
            let (name, kind) = asked(&question);
            answer(&socket, &question, &from, says(&name, kind));
        }
    });
}

fn answer(socket: &Rc<Datagram>, question: &[u8], to: &Addr, say: Say) {
    let good = |last| reply(question, 0x8180, &[ip(last)]);
    let message = match say {
        Say::Ip(last) => good(last),
        Say::Code(code) => reply(question, 0x8180 | u16::from(code), &[]),
        Say::WrongNumber => {
            let mut message = good(66);
            message[0] ^= 0x80;
            message
        }
        Say::Cut => reply(question, 0x8380, &[ip(66)]),
        Say::WrongName => {
            let mut message = good(66);
            message[13] ^= 1;
            message
        }
        Say::Nothing => return,
        Say::Junk => {
            let mut message = good(66);
            let (from, many) = (2 + rt::random() as usize % 20, rt::random() as usize % 8);
            message[from..from + many].iter_mut().for_each(|b| *b = rt::random() as u8);
            // Nobody shall take it for an answer.
            message[2] &= 0x7f;
            message
        }
        Say::Late(last) => {
            let (socket, message, to) = (socket.clone(), good(last), to.clone());
            let late = Duration::from_millis(1 + rt::random() % 3000);
            spawn(async move {
                rt::sleep(late).await;
                let _ = socket.try_send_to(&message, &to);
            });
            return;
        }
    };
    let _ = socket.try_send_to(&message, to);
}

/// Where a server is, unless it waits for an address.
fn place(stage: &Stage, server: &str) -> Option<Ipv4Addr> {
    let state = stage.server(server);
    if state.admin() & admin::RMAINT != 0 {
        return None;
    }
    match &**state.target.load() {
        Target::Inet(std::net::SocketAddr::V4(at)) => Some(*at.ip()),
        _ => None,
    }
}

#[test]
fn a_silent_name_server_is_asked_again_and_believed_for_a_while() {
    explore(CONFIG, QUIET, |stage| async move {
        let (speaks, count) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
        let (says, counted) = (speaks.clone(), count.clone());
        serve(move |_, kind| {
            counted.set(counted.get() + 1);
            if !says.get() {
                return Say::Nothing;
            }
            if kind == 1 { Say::Ip(1) } else { Say::Code(0) }
        });
        rt::sleep(Duration::from_millis(1500)).await;
        assert_eq!(place(&stage, "b/s"), Some(ip(1)));
        speaks.set(false);
        rt::sleep(Duration::from_secs(1)).await;
        let before = count.get();
        rt::sleep(Duration::from_secs(4)).await;
        // Three questions a second apart, and a second until the next round.
        assert!((3..=5).contains(&(count.get() - before)), "{} questions", count.get() - before);
        assert_eq!(place(&stage, "b/s"), Some(ip(1)), "what is known holds for ten seconds");
        rt::sleep(Duration::from_secs(12)).await;
        assert_eq!(place(&stage, "b/s"), None, "nobody knows where it is");
        speaks.set(true);
        rt::sleep(Duration::from_secs(5)).await;
        assert_eq!(place(&stage, "b/s"), Some(ip(1)));
    });
}

#[test]
fn names_of_clients_keep_nobody_from_asking_for_those_of_servers() {
    play(0, Climate::Quiet, CONFIG, |stage| async move {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let seen = asked.clone();
        serve(move |name, _| {
            if name != "srv.test" {
                return Say::Nothing;
            }
            seen.borrow_mut().push(rt::now());
            Say::Ip(1)
        });
        for n in 0..300 {
            let stage = stage.clone();
            spawn(async move {
                let mut client = stage.client(FRONT).await;
                let request =
                    format!("GET / HTTP/1.1\r\nhost: h\r\nx-name: x{n}.test\r\nconnection: close\r\n\r\n");
                client.send(request.as_bytes()).await.unwrap();
                client.response().await;
            });
        }
        rt::sleep(Duration::from_secs(15)).await;
        let times = asked.borrow().clone();
        let longest = times.windows(2).map(|w| w[1].since(w[0])).max().unwrap();
        assert!(times.len() >= 10 && longest < Duration::from_secs(2), "{} times, {longest:?}", times.len());
        stage.quiet().await;
    });
}

#[test]
fn a_name_that_servers_share_does_not_count_among_those_of_rules() {
    let mut config = CONFIG.to_owned() + "\nbackend many\n";
    for n in 0..4200 {
        config.push_str(&format!(" server s{n} s{n}.test:80 resolvers r init-addr none\n"));
    }
    // One world: so many names take their time.
    play(0, Climate::Quiet, &config, |stage| async move {
        serve(move |name, kind| if name == "x.test" && kind == 1 { Say::Ip(9) } else { Say::Code(3) });
        rt::sleep(Duration::from_secs(1)).await;
        let mut client = stage.client(FRONT).await;
        let request = b"GET / HTTP/1.1\r\nhost: h\r\nx-name: x.test\r\n\r\n";
        client.send(request).await.unwrap();
        assert_eq!(client.response().await.status(), 200);
    });
}

#[test]
fn nothing_but_the_answer_moves_a_server() {
    explore(CONFIG, ALL, |stage| async move {
        let (wild, last) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(1)));
        let told: Rc<RefCell<BTreeMap<u8, ()>>> = Rc::default();
        let (says, now, seen) = (wild.clone(), last.clone(), told.clone());
        serve(move |name, kind| {
            assert_eq!(name, "srv.test");
            if kind != 1 {
                return if says.get() && rt::random().is_multiple_of(4) {
                    Say::Nothing
                } else {
                    Say::Code(0)
                };
            }
            let say = match if says.get() { rt::random() % 12 } else { 11 } {
                0 => Say::Code(3),
                1 => Say::Code(5),
                2 => Say::Code(2),
                3 => Say::WrongNumber,
                4 => Say::Cut,
                5 => Say::WrongName,
                6 => Say::Nothing,
                7 => Say::Junk,
                8 => Say::Late(now.get()),
                _ => Say::Ip(now.get()),
            };
            if let Say::Ip(ip) | Say::Late(ip) = say {
                seen.borrow_mut().insert(ip, ());
            }
            say
        });
        for n in 2..60 {
            rt::sleep(Duration::from_millis(rt::random() % 4000)).await;
            last.set(n);
            if let Some(at) = place(&stage, "b/s") {
                assert!(told.borrow().contains_key(&at.octets()[3]), "nobody said {at}");
            }
        }
        wild.set(false);
        sim::set_faults(None, Faults::default());
        rt::sleep(Duration::from_secs(15)).await;
        assert_eq!(place(&stage, "b/s"), Some(ip(last.get())));
    });
}

#[test]
fn what_does_not_exist_is_believed_later() {
    explore(CONFIG, CALM, |stage| async move {
        let exists = Rc::new(Cell::new(true));
        let says = exists.clone();
        serve(move |_, kind| match (says.get(), kind) {
            (true, 1) => Say::Ip(1),
            (true, _) => Say::Code(0),
            _ => Say::Code(3),
        });
        rt::sleep(Duration::from_secs(3)).await;
        assert_eq!(place(&stage, "b/s"), Some(ip(1)));
        exists.set(false);
        rt::sleep(Duration::from_secs(3)).await;
        assert_eq!(place(&stage, "b/s"), Some(ip(1)), "hold nx");
        rt::sleep(Duration::from_secs(12)).await;
        assert_eq!(place(&stage, "b/s"), None);
    });
}
