//! Log targets that are slow, gone, or reached over streams.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

use crate::running::{DEFAULTS, Folder, PATIENCE, Running, until};

/// A frontend that answers by itself and logs as `targets` says.
fn config(head: &str, targets: &str) -> String {
    format!(
        "global\n    stats socket DIR/cli level admin\n{head}{DEFAULTS}frontend f\n    bind unix@DIR/f\n{targets}    log-format \"status %ST\"\n    http-request return status 200\n"
    )
}

fn dropped(program: &Running) -> u32 {
    let info = program.command("show info");
    let line = info.lines().find_map(|l| l.strip_prefix("DroppedLogs: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn a_target_that_takes_nothing_costs_lines_and_no_time() {
    let folder = Folder::new();
    let full = UnixDatagram::bind(folder.path("log")).unwrap();
    let program = Running::start(folder, &config("", "    log DIR/log local0\n"), &["-db"]);
    // The system keeps a few lines for a reader that does not come; then they are dropped.
    until("dropping", || {
        assert!(program.get("f").starts_with("HTTP/1.1 200"));
        dropped(&program) > 2
    });
    // The reader comes: the next lines arrive.
    full.set_nonblocking(true).unwrap();
    let mut line = [0; 512];
    while full.recv(&mut line).is_ok() {}
    full.set_nonblocking(false).unwrap();
    full.set_read_timeout(Some(PATIENCE)).unwrap();
    program.get("f");
    let n = full.recv(&mut line).unwrap();
    assert!(line[..n].ends_with(b"]: status 200\n"), "{}", String::from_utf8_lossy(&line[..n]));
}

#[test]
fn a_target_that_vanishes_is_found_again() {
    let folder = Folder::new();
    let first = UnixDatagram::bind(folder.path("log")).unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let program = Running::start(folder, &config("", "    log DIR/log local0\n"), &["-db"]);
    program.get("f");
    let mut line = [0; 512];
    assert!(first.recv(&mut line).unwrap() > 0);
    drop(first);
    std::fs::remove_file(program.folder.path("log")).unwrap();
    until("dropping", || {
        assert!(program.get("f").starts_with("HTTP/1.1 200"));
        dropped(&program) > 0
    });
    let second = UnixDatagram::bind(program.folder.path("log")).unwrap();
    second.set_nonblocking(true).unwrap();
    until("a line on the new socket", || {
        program.get("f");
        second.recv(&mut line).is_ok()
    });
}

#[test]
fn rings_reach_servers_over_streams() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, second) = (server.local_addr().unwrap().port(), other.local_addr().unwrap().port());
    let ring =
        format!("ring r\n    format raw\n    size 8k\n    server s 127.0.0.1:{port} log-proto octet-count\n");
    let targets = format!("    log ring@r local0\n    log tcp@127.0.0.1:{second} format priority local0\n");
    let program = Running::start(Folder::new(), &config(&ring, &targets), &["-db"]);
    let (mut counted, _) = server.accept().unwrap();
    let (mut lines, _) = other.accept().unwrap();
    for stream in [&counted, &lines] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    for _ in 0..2 {
        program.get("f");
    }
    let mut bytes = [0; 26];
    counted.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], b"10 status 20010 status 200");
    let mut bytes = [0; 32];
    lines.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], b"<134>status 200\n<134>status 200\n");
    // The connection breaks: the next one gets what comes then.
    drop(counted);
    let (mut again, _) = server.accept().unwrap();
    again.set_read_timeout(Some(PATIENCE)).unwrap();
    program.get("f");
    let mut bytes = [0; 13];
    again.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes[..], b"10 status 200");
    assert_eq!(dropped(&program), 0);
}

#[test]
fn events_are_followed_until_a_word_comes() {
    use std::io::{BufRead, BufReader, Write};
    let config = config("ring r\n    size 4k\n", "    log ring@r local0\n");
    let program = Running::start(Folder::new(), &config, &["-db"]);
    program.get("f");
    let mut follower = std::os::unix::net::UnixStream::connect(program.folder.path("cli")).unwrap();
    follower.set_read_timeout(Some(PATIENCE)).unwrap();
    follower.write_all(b"show events r -w\n").unwrap();
    let mut lines = BufReader::new(follower.try_clone().unwrap()).lines();
    for _ in 0..2 {
        assert_eq!(lines.next().unwrap().unwrap(), "status 200");
        program.get("f");
    }
    assert_eq!(lines.next().unwrap().unwrap(), "status 200");
    follower.write_all(b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "");
    assert!(lines.next().is_none());
}

#[test]
fn a_server_that_gets_the_cookie_of_another_is_told_of_at_run_time() {
    let config = format!(
        "global\n    stats socket DIR/cli level admin\n{DEFAULTS}listen p\n    bind unix@DIR/f\n    cookie C insert dynamic\n    \
         dynamic-cookie-key k\n    server one 127.0.0.2:80\n    server two 127.0.0.3:80\n    server three 127.0.0.2:80 disabled\n"
    );
    let said = "[WARNING]  (PID) : We generated two equal cookies for two different servers.";
    for words in
        ["set server p/two addr 127.0.0.2", "set dynamic-cookie-key backend p other", "enable server p/three"]
    {
        let program = Running::start(Folder::new(), &config, &["-db"]);
        if words.starts_with("set dynamic") {
            program.command("set server p/two addr 127.0.0.2");
            program.line_with("We generated");
        }
        program.command(words);
        let line = program.line_with("We generated");
        assert_eq!(line, said.replace("PID", &program.pid().to_string()), "{words}");
        assert_eq!(program.line_with("Please"), "Please change the secret key for 'p'.");
    }
}
