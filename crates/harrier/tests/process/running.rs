//! Starting the program, and talking to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_harrier");

/// Timeouts and mode that every configuration here has.
pub const DEFAULTS: &str = "\
defaults
    mode http
    timeout connect 10s
    timeout client 20s
    timeout server 20s
";

/// A folder of one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("harrier-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path as configurations have it.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file.
    pub fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.text(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program while it serves.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    pub folder: Folder,
}

impl Running {
    /// Starts it on a configuration in which `DIR` stands for the test's folder, and waits until it serves.
    pub fn start(folder: Folder, config: &str, arguments: &[&str]) -> Running {
        Running::launch(Command::new(PROGRAM), folder, config, arguments)
    }

    /// The same with a command that becomes the program.
    pub fn launch(mut command: Command, folder: Folder, config: &str, arguments: &[&str]) -> Running {
        let config = config.replace("DIR", folder.0.to_str().unwrap());
        let file = folder.file("test.cfg", &config);
        let notify = UnixDatagram::bind(folder.path("notify")).unwrap();
        notify.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut child = command
            .args(["-f", &file])
            .args(arguments)
            .env("NOTIFY_SOCKET", folder.path("notify"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        // Its lines end with its outputs.
        drop(sender);
        let mut word = [0; 64];
        let told = loop {
            match notify.recv(&mut word) {
                // With a time limit a process that was stopped and goes on is told so, too.
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                told => break told,
            }
        };
        if let Err(e) = told {
            let _ = child.kill();
            panic!("it did not start: {e}; {:?}", lines.iter().collect::<Vec<_>>());
        }
        assert!(word.starts_with(b"READY=1"));
        Running { child, lines, folder }
    }

    /// Waits for a line of its output that holds `text`.
    pub fn line_with(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {text:?} among {seen:#?}");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end: the exit code, or minus the signal that ended it.
    pub fn wait(&mut self) -> i32 {
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
    }

    /// What the runtime API answers on the socket `cli` of the folder.
    pub fn command(&self, words: &str) -> String {
        command(&self.folder.path("cli"), words)
    }

    /// The response to a request on the Unix socket of this name.
    pub fn get(&self, socket: &str) -> String {
        let mut stream = UnixStream::connect(self.folder.path(socket)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        exchange(&mut stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and reads the response to its end.
pub fn exchange(stream: &mut (impl Read + Write)) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// What the runtime API answers on a socket.
pub fn command(socket: &Path, words: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{words}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Whether the tests run as root; says so where they do not.
pub fn is_root(test: &str) -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    let root = stdout(&id).trim() == "0";
    if !root {
        eprintln!("skipped: {test} needs root");
    }
    root
}

/// A port that nobody has now, at an address of this process: connections of others that begin at 127.0.0.1
/// never take it.
pub fn free_address() -> std::net::SocketAddr {
    let [_, _, a, b] = std::process::id().to_be_bytes();
    std::net::TcpListener::bind(std::net::SocketAddr::from(([127, 9, a, b], 0)))
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Looks again and again until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::yield_now();
    }
}
