//! `harrier reload`: has the process behind a socket adopt its configuration in place.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use crate::say;

const USAGE: &str = "\
Usage: harrier reload -S <socket> [check]
Has the process behind <socket>, the socket of a master ('-S') or one of its workers ('stats socket'), read its
configuration again and adopt it without another process. With 'check' it only says whether it could.
<socket> is a path, or an address with its port. Exit code 0: it runs, or could run.
";

/// Asks for it. Exit code 1: it was refused, and why is told.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (socket, check) = match words.as_slice() {
        ["-S", socket] => (*socket, false),
        ["-S", socket, "check"] | ["check", "-S", socket] => (*socket, true),
        [] | ["help" | "-h" | "--help"] => {
            say::output(USAGE);
            return ExitCode::from(u8::from(words.is_empty()));
        }
        _ => {
            say::error(USAGE);
            return ExitCode::from(1);
        }
    };
    match ask(socket, if check { "reload in-place check\n" } else { "reload in-place\n" }) {
        Ok(answer) => {
            let good = answer.starts_with("Success=1");
            let text = answer.split_once("--\n").map_or(&*answer, |(_, text)| text);
            let text = format!("{}\n", text.trim_end());
            if text.trim().is_empty() {
                return ExitCode::from(u8::from(!good));
            }
            if good {
                say::output(&text)
            } else {
                say::error(&text)
            }
            ExitCode::from(u8::from(!good))
        }
        Err(e) => {
            say::error(&format!("harrier reload: '{socket}' does not answer: {}.\n", say::reason(&e)));
            ExitCode::from(1)
        }
    }
}

fn ask(socket: &str, command: &str) -> std::io::Result<String> {
    let mut answer = Vec::new();
    let path = socket.strip_prefix("unix@").unwrap_or(socket);
    if !path.contains('/') && path.contains(':') {
        let mut stream = TcpStream::connect(path)?;
        stream.write_all(command.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut answer)?;
    } else {
        let mut stream = UnixStream::connect(path)?;
        stream.write_all(command.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut answer)?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
