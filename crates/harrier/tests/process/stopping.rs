//! Signals, and how the process ends (management guide, chapter 4).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::running::{DEFAULTS, Folder, PATIENCE, PROGRAM, Running, until};

/// A configuration whose frontend sends everything to an origin of the test.
fn config(origin: &TcpListener, global: &str) -> String {
    let port = origin.local_addr().unwrap().port();
    format!(
        "global\n    stats socket DIR/cli level admin\n{global}{DEFAULTS}frontend f\n    bind unix@DIR/f\n    default_backend b\nbackend b\n    server s 127.0.0.1:{port}\n"
    )
}

/// Sends a request, and takes it at the origin.
fn request(program: &Running, origin: &TcpListener) -> (UnixStream, std::net::TcpStream) {
    let mut client = UnixStream::connect(program.folder.path("f")).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").unwrap();
    let (mut server, _) = origin.accept().unwrap();
    let mut head = [0; 1024];
    assert!(server.read(&mut head).unwrap() > 0);
    (client, server)
}

#[test]
fn a_soft_stop_lets_requests_end() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = Running::start(Folder::new(), &config(&origin, ""), &["-db"]);
    let (mut client, mut server) = request(&program, &origin);
    program.signal("USR1");
    program.line_with("Proxy f stopped (cumulated conns: FE: 1, BE: 0).");
    program.line_with("Proxy b stopped (cumulated conns: FE: 0, BE: 1).");
    until("the end of listening", || UnixStream::connect(program.folder.path("f")).is_err());
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nafter").unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("after") && response.contains("connection: close"), "{response}");
    assert_eq!(program.wait(), 0);
}

#[test]
fn a_soft_stop_may_have_a_limit() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program =
        Running::start(Folder::new(), &config(&origin, "    hard-stop-after 100ms\n"), &["-db"]);
    let (mut client, _server) = request(&program, &origin);
    program.signal("USR1");
    assert_eq!(program.wait(), 0);
    let mut nothing = Vec::new();
    let _ = client.read_to_end(&mut nothing);
    assert!(nothing.is_empty());
}

#[test]
fn a_hard_stop_ends_by_its_signal() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let mut program = Running::start(Folder::new(), &config(&origin, ""), &["-db"]);
        let _held = request(&program, &origin);
        program.signal(name);
        assert_eq!(program.wait(), -number);
    }
}

/// A shell lets what runs behind it ignore SIGINT.
#[test]
fn an_inherited_deafness_changes_nothing() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" \"$@\"", PROGRAM]);
    let mut program = Running::launch(shell, Folder::new(), &config(&origin, ""), &["-db"]);
    program.signal("INT");
    assert_eq!(program.wait(), -2);
}

#[test]
fn grace_puts_the_end_off() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = Running::start(Folder::new(), &config(&origin, "    grace 100ms\n"), &["-db"]);
    let begun = std::time::Instant::now();
    program.signal("USR1");
    assert_eq!(program.wait(), 0);
    assert!(begun.elapsed().as_millis() >= 100);
    // Longer than this test takes on a busy machine.
    let mut program = Running::start(Folder::new(), &config(&origin, "    grace 1m\n"), &["-db"]);
    program.signal("USR1");
    // New connections are still served while the grace lasts.
    let (mut client, mut server) = request(&program, &origin);
    server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    let mut response = [0; 12];
    client.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"HTTP/1.1 204");
    program.signal("TERM");
    assert_eq!(program.wait(), -15);
}

#[test]
fn a_hangup_reports_all_servers() {
    let config = format!(
        "{DEFAULTS}listen f\n    bind unix@DIR/f\n    log stdout format priority local0\n    server a 127.0.0.1:1\n    server b 127.0.0.1:1 backup\n    server c 127.0.0.1:1 disabled\nbackend g\n    server a 127.0.0.1:1 disabled\n    server b 127.0.0.1:1 backup\nbackend h\n    server a 127.0.0.1:1 disabled\nbackend i\n"
    );
    let program = Running::start(Folder::new(), &config, &["-db", "-q"]);
    program.signal("HUP");
    for line in [
        "<133>SIGHUP received, dumping servers states for proxy f.",
        "<133>SIGHUP: Server f/a is UP. Conn: 0 act, 0 pend, 0 tot.",
        "<133>SIGHUP: Server f/b is UP. Conn: 0 act, 0 pend, 0 tot.",
        "<133>SIGHUP: Server f/c is DOWN. Conn: 0 act, 0 pend, 0 tot.",
        "<133>SIGHUP: Proxy f has 1 active servers and 1 backup servers available. Conn: act(FE+BE): 0+0, 0 pend (0 unass), tot(FE+BE): 0+0.",
    ] {
        assert_eq!(program.line_with("SIGHUP"), line);
    }
    drop(program);
    let program = Running::start(Folder::new(), &config, &["-db"]);
    program.signal("HUP");
    program.line_with("SIGHUP received, dumping servers states.");
    program.line_with("SIGHUP: Proxy g is running on backup servers ! Conn: ");
    program.line_with("SIGHUP: Proxy h has no server available ! Conn: ");
    program.line_with("SIGHUP: Proxy i has no servers. Conn: ");
}

#[test]
fn a_reload_that_does_not_happen_is_said() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = Running::start(Folder::new(), &config(&origin, ""), &["-db"]);
    program.signal("USR2");
    program.line_with("the configuration was not read again");
    let (_client, mut server) = request(&program, &origin);
    server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
}
