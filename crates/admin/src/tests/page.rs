//! The statistics page as a service: what it shows, whom it lets in, what it changes.

use engine::worker::service::{Answer, Request, Service};
use model::Conn;

use super::*;
use crate::stats::page::Stats;

const CONFIG: &str = "\
global
    node mynode
    stats socket /tmp/x.sock
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 1s
frontend f
    bind 127.0.0.1:1
    stats uri /st
    stats admin if TRUE
    stats show-legends
    stats show-desc a<b>c
    stats refresh 7s
backend b
    server s1 127.0.0.1:80 cookie <x>
    server s2 127.0.0.1:81
listen l
    bind 127.0.0.1:2
    stats enable
    stats auth u:p
    stats realm A\\ realm
    stats show-version
    stats scope b
    server s3 127.0.0.1:82
";

fn answer(worker: &Rc<Worker>, proxy: u32, head: &str, body: &str) -> Answer {
    let mut txn = worker.take_txn();
    let parsed = wire::http1::parse_request(head.as_bytes(), &mut txn.req, &Default::default(), false);
    assert!(matches!(parsed, Ok(wire::http1::Parsed::Complete { .. })), "{head}");
    let conn = Conn::new(1, proxy, 0, rt::now(), rt::wall());
    let length = txn.req.first("content-length").and_then(|l| std::str::from_utf8(l).ok()?.parse().ok());
    let whole = length.is_none_or(|length: usize| length <= body.len());
    let request = Request { txn: &txn, conn: &conn, body: body.as_bytes(), whole, proxy, worker };
    Stats.answer(&request)
}

fn get(worker: &Rc<Worker>, proxy: u32, target: &str, field: &str) -> Answer {
    answer(worker, proxy, &format!("GET {target} HTTP/1.1\r\nHost: x\r\n{field}\r\n"), "")
}

fn post(worker: &Rc<Worker>, target: &str, body: &str) -> String {
    let head = format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    let a = answer(worker, 0, &head, body);
    assert_eq!(a.status, 303);
    header(&a, "location")
}

fn header(a: &Answer, name: &str) -> String {
    let found = a.headers.iter().find(|(n, _)| *n == name);
    found.map(|(_, v)| String::from_utf8_lossy(v).into_owned()).unwrap_or_default()
}

fn text(a: &Answer) -> String {
    String::from_utf8_lossy(&a.body).into_owned()
}

#[test]
fn the_page_shows_what_its_settings_say_and_escapes_it() {
    on_worker(CONFIG, |worker| async move {
        let a = get(&worker, 0, "/st", "");
        assert_eq!(
            (a.status, header(&a, "content-type").as_str(), header(&a, "refresh").as_str()),
            (200, "text/html", "7")
        );
        let page = text(&a);
        for part in [
            "a&lt;b&gt;c",
            "id: 1, rid: 0, cookie: &#39;&lt;x&gt;&#39;",
            "<td class=\"ac\"><i>no check</i></td>",
            "id=\"b/Backend\"",
            "cap: backend, mode: http, id: 3",
            "href=\"/st;csv;norefresh\"",
            "name=\"action\"",
            "id: 3",
            ">s2</a>",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(!page.contains(crate::product::VERSION), "only `stats show-version` shows it");
        assert!(!page.contains("<x>") && !page.contains("a<b>c"));
        assert_eq!(header(&get(&worker, 0, "/st;norefresh", ""), "refresh"), "");
        assert!(text(&get(&worker, 0, "/st;st=DENY", "")).contains("The action was denied."));
        assert!(!text(&get(&worker, 0, "/st?scope=%22%3E%3Cscript", "")).contains("<script"));
        assert!(!text(&get(&worker, 0, "/st?scope=zz", "")).contains(">s1</a>"));
    });
}

#[test]
fn other_forms_stand_behind_a_semicolon() {
    on_worker(CONFIG, |worker| async move {
        let csv = get(&worker, 0, "/st;csv", "");
        assert_eq!(header(&csv, "content-type"), "text/plain");
        assert!(text(&csv).starts_with("# pxname,svname,"));
        let scoped = text(&get(&worker, 0, "/st?;csv;scope=b", ""));
        assert_eq!(scoped.lines().count(), 4, "{scoped}");
        assert!(text(&get(&worker, 0, "/st;json", "")).starts_with("[[{"));
        assert_eq!(text(&get(&worker, 0, "/st;json-schema", "")), crate::stats::schema::text());
    });
}

#[test]
fn users_must_say_who_they_are() {
    on_worker(CONFIG, |worker| async move {
        let a = get(&worker, 2, "/haproxy?stats", "");
        assert_eq!(a.challenge.as_deref(), Some("A realm"));
        assert!(get(&worker, 2, "/haproxy?stats", "Authorization: Basic dTp4\r\n").challenge.is_some());
        assert!(get(&worker, 2, "/haproxy?stats", "Authorization: Bearer dTpw\r\n").challenge.is_some());
        let a = get(&worker, 2, "/haproxy?stats", "Authorization: Basic dTpw\r\n");
        assert_eq!(a.status, 200);
        let page = text(&a);
        assert!(
            page.contains(crate::product::VERSION) && !page.contains(">s3</a>") && page.contains(">s1</a>")
        );
        assert!(!page.contains("name=\"action\""), "no form without `stats admin`");
    });
}

#[test]
fn actions_change_servers() {
    on_worker(CONFIG, |worker| async move {
        let program = worker.shared.program.clone();
        let s1 = program.proxies[1].servers[0].state.clone();
        use model::server::admin;
        for (body, code, bits) in [
            ("s=s1&action=maint&b=b", "DONE", admin::FMAINT),
            ("s=s1&s=s2&action=drain&b=%233", "DONE", admin::FDRAIN),
            ("s=s1&s=zz&action=ready&b=b", "PART", 0),
            ("s=zz&action=maint&b=b", "ERRP", 0),
            ("s=s1&action=bad&b=b", "ERRP", 0),
            ("s=s1&action=maint&b=nope", "ERRP", 0),
            ("s=s1&action=dhlth&b=b", "NONE", 0),
            ("s=s1&action=&b=b", "ERRP", 0),
            ("s=s1&b=b", "NONE", 0),
            ("s=s1&action=ready", "NONE", 0),
            ("s&action=ready&b=b", "ERRP", 0),
            ("s=s1&action=disable&b=b", "DONE", admin::FMAINT),
            ("s=s1&action=enable&b=b", "DONE", 0),
            ("s=s1&action=stop&b=b", "DONE", admin::FDRAIN),
            ("s=s1&action=enable&b=b", "NONE", admin::FDRAIN),
            ("s=s1&action=start&b=b", "DONE", 0),
            ("", "NONE", 0),
        ] {
            assert_eq!(post(&worker, "/st", body), format!("/st;st={code}"), "{body}");
            assert_eq!(s1.admin(), bits, "{body}");
        }
        assert_eq!(post(&worker, "/st;up?scope=b", "s=s1&action=hdown&b=b"), "/st;st=DONE;up?scope=b");
        assert!(!s1.is_up());
    });
}
