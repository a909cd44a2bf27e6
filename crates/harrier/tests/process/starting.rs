//! Opening sockets, limits, background and pid file.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use crate::running::{
    DEFAULTS, Folder, PATIENCE, PROGRAM, Running, command, free_address, run, signal, stderr, until,
};

#[test]
fn a_port_that_is_taken_keeps_it_from_starting() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let unix = folder.text("front");
    let text = format!("{DEFAULTS}frontend f\n    bind unix@{unix}\n    bind 127.0.0.1:{port}\n");
    let file = folder.file("busy.cfg", &text);
    let pid = folder.text("pid");
    let output = run(&["-D", "-p", &pid, "-f", &file]);
    assert_eq!(output.status.code(), Some(1));
    let errors = stderr(&output);
    let expected = format!(
        "busy.cfg:8] for frontend f: protocol tcpv4: cannot bind socket (Address already in use) for [127.0.0.1:{port}]."
    );
    assert!(errors.contains(&expected), "{errors}");
    assert!(errors.contains(&format!("'ss -ltnp sport = :{port}' names it")), "{errors}");
    assert!(errors.ends_with("Some protocols failed to start their listeners! Exiting.\n"), "{errors}");
    assert!(!folder.path("pid").exists());
}

#[test]
fn limits_of_the_command_line_go_before_the_file() {
    let config = format!(
        "global\n    maxconn 500\n    stats socket DIR/cli level admin\n{DEFAULTS}frontend f\n    bind unix@DIR/f\n"
    );
    let program = Running::start(Folder::new(), &config, &["-db", "-n", "70", "-N", "30", "-m", "900"]);
    let info = program.command("show info");
    for line in ["\nMaxconn: 70\n", "\nMemmax_MB: 900\n"] {
        assert!(info.contains(line), "{line:?} in {info}");
    }
    let stat = program.command("show stat f 1 -1");
    assert_eq!(stat.lines().nth(1).and_then(|l| l.split(',').nth(6)), Some("30"), "{stat}");
}

/// The soft limit on its descriptors, of a program that a shell starts which may have 100 itself.
fn descriptors(section: &str) -> u64 {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -Sn 100; exec \"$0\" \"$@\"", PROGRAM]);
    let config = format!(
        "global\n    nbthread 1\n    maxconn 200\n{section}{DEFAULTS}frontend f\n    bind unix@DIR/f\n"
    );
    let program = Running::launch(shell, Folder::new(), &config, &["-db"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", program.pid())).unwrap();
    let line = limits.lines().find(|l| l.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn pipes_have_room_beside_the_connections_unless_somebody_counts_descriptors() {
    // A pipe of two ends for each fourth connection.
    assert_eq!(descriptors("") - descriptors("    maxpipes 1\n"), 200 / 4 * 2 - 2);
    assert_eq!(descriptors("    ulimit-n 600\n"), 600);
}

#[test]
fn in_the_foreground_nobody_needs_a_pid_file_but_of_a_master() {
    let config = format!("{DEFAULTS}frontend f\n    bind unix@DIR/f\n");
    for arguments in [&["-Ws", "-db"][..], &["-Ws"]] {
        let folder = Folder::new();
        let pid = folder.text("pid");
        let program = Running::start(folder, &config, &[arguments, &["-p", &pid]].concat());
        let written = std::fs::read_to_string(program.folder.path("pid")).unwrap();
        assert_eq!(written, format!("{}\n", program.pid()));
    }
    let folder = Folder::new();
    let file = folder.file("f.cfg", &config.replace("DIR", &folder.text("")));
    let mut plain = Command::new(PROGRAM).args(["-f", &file, "-p", &folder.text("pid")]).spawn().unwrap();
    until("listening", || std::os::unix::net::UnixStream::connect(folder.path("f")).is_ok());
    assert!(!folder.path("pid").exists());
    plain.kill().unwrap();
    plain.wait().unwrap();
}

/// A daemon on the sockets `cli` and `f` of a folder; its pid.
fn daemon(folder: &Folder, extra: &[&str]) -> u32 {
    let config = format!(
        "global\n    stats socket {0}/cli level admin\n{DEFAULTS}frontend f\n    bind unix@{0}/f\n    http-request return status 200\n",
        folder.text("")
    );
    let file = folder.file("daemon.cfg", &config);
    let _ = std::fs::remove_file(folder.path("notify"));
    let notify = UnixDatagram::bind(folder.path("notify")).unwrap();
    notify.set_read_timeout(Some(PATIENCE)).unwrap();
    let status = Command::new(PROGRAM)
        .args(["-D", "-q", "-f", &file, "-p", &folder.text("pid")])
        .args(extra)
        .env("NOTIFY_SOCKET", folder.path("notify"))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let mut word = [0; 64];
    notify.recv(&mut word).unwrap();
    std::fs::read_to_string(folder.path("pid")).unwrap().trim().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))
}

#[test]
fn a_daemon_answers_and_gives_way_to_the_next() {
    let folder = Folder::new();
    let first = daemon(&folder, &[]);
    let said = |pid: u32| command(&folder.path("cli"), "show info").contains(&format!("\nPid: {pid}\n"));
    assert!(said(first));
    // It left its terminal for a session of its own.
    let stat = std::fs::read_to_string(format!("/proc/{first}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!((fields[3], fields[4]), (&*first.to_string(), "0"), "{stat}");
    let second = daemon(&folder, &["-sf", &first.to_string()]);
    assert!(second != first && said(second));
    until("the end of the old process", || !lives(first));
    signal(second, "TERM");
    until("the end of the new process", || !lives(second));
}

#[test]
fn frontends_give_up_their_ports_and_take_them_back() {
    let address = free_address();
    let config = format!("{DEFAULTS}frontend f\n    bind {address}\n    http-request return status 200\n");
    let program = Running::start(Folder::new(), &config, &["-db"]);
    let answers = || TcpStream::connect(address).is_ok();
    assert!(answers());
    program.signal("TTOU");
    program.line_with("Paused frontend f.");
    until("the end of listening", || !answers());
    // The port is free for others meanwhile, even for those that do not share.
    drop(TcpListener::bind(address).unwrap());
    program.signal("TTIN");
    program.line_with("Resumed frontend f.");
    until("listening again", answers);
}

#[test]
fn who_is_told_that_a_frontend_is_off_may_have_its_port() {
    let address = free_address();
    let config = format!(
        "global\n    nbthread 4\n    stats socket unix@DIR/cli level admin\n{DEFAULTS}frontend f\n    bind {address}\n    \
         http-request return status 200\n"
    );
    let program = Running::start(Folder::new(), &config, &["-db"]);
    for _ in 0..100 {
        assert_eq!(program.command("disable frontend f"), "\n");
        drop(TcpListener::bind(address).unwrap());
        // A child that another test forks just now holds a copy of the listener until its program starts.
        until("taking the port back", || program.command("enable frontend f") == "\n");
        drop(TcpStream::connect(address).unwrap());
    }
    assert_eq!(program.command("shutdown frontend f"), "\n");
    drop(TcpListener::bind(address).unwrap());
}

#[test]
fn a_daemon_that_cannot_start_is_no_success() {
    let folder = Folder::new();
    let text = format!(
        "global\n    chroot {}\n{DEFAULTS}frontend f\n    bind unix@{}\n",
        folder.text("nowhere"),
        folder.text("f")
    );
    let file = folder.file("jail.cfg", &text);
    for mode in ["-D", "-db"] {
        let output = run(&[mode, "-f", &file]);
        assert_eq!(output.status.code(), Some(1), "{mode}");
        assert!(stderr(&output).contains("Cannot chroot("), "{mode}: {}", stderr(&output));
    }
}

/// What reading the configuration took is given back, unless the configuration says otherwise.
#[test]
fn memory_of_the_start_is_given_back_or_kept() {
    let rules: String = (0..4000)
        .map(|n| format!("    http-request deny if {{ hdr(host) -i h{n}.example }} {{ path /{n} }}\n"))
        .collect();
    let resident = |word: &str| {
        let config = format!("global\n    {word}\n{DEFAULTS}frontend f\n    bind unix@DIR/f\n{rules}");
        let program = Running::start(Folder::new(), &config, &["-db"]);
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let (given, kept) = (resident("nbthread 1"), resident("nbthread 1\n    no-memory-trimming"));
    assert!(kept > given + 2000, "{kept} kB kept, {given} kB with the rest given back");
}
