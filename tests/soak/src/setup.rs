//! The configuration under test and the process that runs it.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::origin::Speech;
use crate::plan::Ground;

/// A frontend.
#[derive(Clone, Debug)]
pub struct Front {
    pub name: &'static str,
    pub address: SocketAddr,
    /// Its listening socket, which the proxy inherits.
    pub descriptor: RawFd,
    pub tls: bool,
    pub h2: bool,
    /// Where a TCP frontend leads.
    pub tcp: Option<&'static str>,
}

/// A backend: how its servers are spoken to and how their connections are shared.
#[derive(Clone, Debug)]
pub struct Back {
    pub name: &'static str,
    pub speech: Speech,
    pub retried: bool,
    /// With `;` between them.
    lines: &'static str,
    server: &'static str,
}

use Ground::{Flaky, Solid};

/// Each `http-reuse` with each protocol towards servers, and other ways beside them: name, lines, words of
/// the servers. The name begins with the protocol (`s` is TLS), and says whether the servers fail at times
/// and whether that is tried again.
const BACKS: [(&str, &str, &str); 24] = [
    ("h1-never", "http-reuse never", ""),
    ("h1-safe", "http-reuse safe", "check inter 300ms"),
    ("h1-aggressive", "http-reuse aggressive;balance leastconn", "pool-max-conn 3"),
    ("h1-always", "http-reuse always;balance random", "maxconn 6"),
    ("h1-close", "option http-server-close", ""),
    ("h1-buffer", "option http-buffer-request;option splice-auto", "maxconn 4"),
    ("h2-never", "http-reuse never", ""),
    ("h2-safe", "http-reuse safe", ""),
    ("h2-aggressive", "http-reuse aggressive;balance leastconn", "check inter 500ms"),
    ("h2-always", "http-reuse always", "maxconn 20 max-reuse 50"),
    ("s1-never", "http-reuse never", ""),
    ("s1-safe", "http-reuse safe", "check inter 1s"),
    ("s1-aggressive", "http-reuse aggressive", ""),
    ("s1-always", "http-reuse always;balance hash path;hash-type consistent", "maxconn 10"),
    ("s2-never", "http-reuse never", ""),
    ("s2-safe", "http-reuse safe", ""),
    ("s2-aggressive", "http-reuse aggressive;balance random", ""),
    ("s2-always", "http-reuse always", "pool-purge-delay 1s"),
    ("h1-flaky", "http-reuse always", ""),
    ("h2-flaky", "http-reuse always", ""),
    ("s1-flaky", "http-reuse aggressive;option redispatch", ""),
    ("s2-flaky", "http-reuse safe", ""),
    ("h1-again", "http-reuse always;retry-on all-retryable-errors;retries 3", "maxconn 8"),
    ("h2-again", "http-reuse always;retry-on all-retryable-errors;retries 3", ""),
];

/// The backends.
pub fn backs() -> Vec<Back> {
    let back = |(name, lines, server): (&'static str, &'static str, &'static str)| {
        let retried = name.ends_with("again");
        let ground = if retried || name.ends_with("flaky") { Flaky } else { Solid };
        let speech = Speech { tls: name.starts_with('s'), h2: name[1..].starts_with('2'), ground };
        Back { name, speech, retried, lines, server }
    };
    BACKS.map(back).into()
}

/// The frontends and their listening sockets, in order. The proxy inherits the sockets: no port is ever free
/// for another process between its choice and its use, so two runs at a time never meet.
pub fn fronts() -> io::Result<(Vec<Front>, Vec<TcpListener>)> {
    let mut listeners = Vec::new();
    let mut front = |name, tls, h2, tcp| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        socket2::SockRef::from(&listener).set_cloexec(false)?;
        let (address, descriptor) = (listener.local_addr()?, listener.as_raw_fd());
        listeners.push(listener);
        Ok::<_, io::Error>(Front { name, address, descriptor, tls, h2, tcp })
    };
    let fronts = vec![
        front("clear", false, false, None)?,
        front("clear-h2", false, true, None)?,
        front("secure", true, false, None)?,
        front("secure-h2", true, true, None)?,
        front("splice", false, false, None)?,
        front("bytes", false, false, Some("bytes-clear"))?,
        front("bytes-splice", false, false, Some("bytes-clear"))?,
        front("bytes-tls", true, false, Some("bytes-secure"))?,
    ];
    Ok((fronts, listeners))
}

/// How a server line of `speech` speaks.
pub fn words(speech: Speech) -> &'static str {
    match (speech.tls, speech.h2) {
        (false, false) => "",
        (false, true) => " proto h2",
        (true, false) => {
            " ssl verify required ca-file authority.pem sni str(localhost) verifyhost localhost alpn http/1.1"
        }
        (true, true) => " ssl verify none alpn h2",
    }
}

/// Writes the configuration. `origins` gives the addresses of the servers of one kind.
pub fn configuration(
    folder: &Path,
    fronts: &[Front],
    log: SocketAddr,
    origins: impl Fn(Speech) -> Vec<SocketAddr>,
) -> String {
    let mut out = String::new();
    let path = folder.display();
    let _ = write!(
        out,
        "global
    nbthread 2
    maxconn 4000
    stats socket {path}/stats.sock level admin
    log {log} format raw local0
    tune.h2.fe.max-concurrent-streams 20
    ca-base {path}
defaults
    mode http
    log global
    no option abortonclose
    timeout client 60s
    timeout server 60s
    timeout connect 20s
    timeout queue 60s
    timeout http-request 60s
    timeout http-keep-alive 120s
    timeout client-fin 60s
"
    );
    for front in fronts {
        let _ = write!(out, "frontend {}\n    bind fd@{}", front.name, front.descriptor);
        if front.tls {
            let _ = write!(out, " ssl crt {path}/pair.pem alpn {}", if front.h2 { "h2" } else { "http/1.1" });
        } else if front.h2 {
            out.push_str(" proto h2");
        }
        out.push('\n');
        if let Some(to) = front.tcp {
            let _ = writeln!(
                out,
                "    mode tcp\n    log-format \"tcp %ci:%cp %ft %b/%s %ts %B\"\n    default_backend {to}"
            );
        } else {
            out.push_str("    http-request capture req.hdr(x-id) len 20\n");
            out.push_str("    log-format \"id=%[capture.req.hdr(0)] %ci:%cp %ft %b/%s %ST %ts %B %U %TR/%Tw/%Tc/%Tr/%Ta %rc\"\n");
            out.push_str("    use_backend %[req.hdr(x-backend)]\n");
        }
        if front.name.contains("splice") {
            out.push_str("    option splice-auto\n");
        }
    }
    let server = |out: &mut String, speech: Speech, more: &str| {
        for (i, address) in origins(speech).iter().enumerate() {
            let _ = writeln!(out, "    server s{} {address}{} {more}", i + 1, words(speech));
        }
    };
    for back in backs() {
        let _ = writeln!(out, "backend {}", back.name);
        for line in back.lines.split(';') {
            let _ = writeln!(out, "    {line}");
        }
        server(&mut out, back.speech, back.server);
    }
    out.push_str("backend bytes-clear\n    mode tcp\n    option splice-auto\n");
    server(&mut out, Speech { tls: false, h2: false, ground: Solid }, "");
    out.push_str("backend bytes-secure\n    mode tcp\n");
    server(&mut out, Speech { tls: true, h2: false, ground: Solid }, "");
    out
}

/// The process under test.
pub struct Process {
    pub child: tokio::process::Child,
    pub pid: u32,
    pub socket: PathBuf,
}

impl Process {
    pub async fn start(binary: &Path, folder: &Path) -> io::Result<Process> {
        let log = std::fs::File::create(folder.join("proxy.log"))?;
        let child = tokio::process::Command::new(binary)
            .arg("-db")
            .arg("-f")
            .arg(folder.join("soak.cfg"))
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().unwrap_or(0);
        let mut process = Process { child, pid, socket: folder.join("stats.sock") };
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Some(status) = process.child.try_wait()? {
                let said = std::fs::read_to_string(folder.join("proxy.log")).unwrap_or_default();
                return Err(io::Error::other(format!("it ended at the start with {status}:\n{said}")));
            }
            if crate::admin::command(&process.socket, "show info")
                .await
                .is_ok_and(|a| a.contains("CurrConns"))
            {
                return Ok(process);
            }
        }
        Err(io::Error::other("it does not answer at its stats socket"))
    }
}
