//! One connection to the runtime API, from its first line to its end.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use base::foreign;
use engine::Worker;
use engine::worker::service::Talk;
use model::trace::{self, Point, Whom, level};
use program::listener::Severity;
use rt::{Socket, Timer};

use super::call::{Call, Client, Outcome, Refusal, Reply, severity};
use engine::worker::Reloaded;

use super::follow;
use super::handover;
use super::line::{self, Line, MAX_WORDS};
use super::table::{self, Run};

/// How much of what nobody wants to know is read, so that the answer is not lost with the connection.
const MAX_LEFT: usize = 128 * 1024;

/// The answer to a line that does not fit.
const TOO_LONG: &str = "The command line is too big for the buffer size. Please change 'tune.bufsize' in the configuration to use a bigger command.\n";

/// The answer to a payload that does not fit.
const TOO_BIG: &str = "The payload is too big. Please change 'tune.cli.max-payload-size' in the configuration to use a bigger payload.\n";

/// Why there is no payload.
enum NoPayload {
    Gone,
    TooBig,
}

/// Bytes read and not yet looked at.
struct Input {
    bytes: Vec<u8>,
    at: usize,
}

/// The most text that a master tells of a reload.
const MOST_TOLD: usize = 2 << 20;

/// All that comes until the end of a connection.
async fn to_the_end(socket: &Socket, mut text: Vec<u8>) -> String {
    let mut chunk = vec![0; 4096];
    while let Ok(n @ 1..) = std::future::poll_fn(|cx| socket.poll_recv(cx, &mut chunk)).await {
        text.extend_from_slice(chunk.get(..n).unwrap_or_default());
        if text.len() > MOST_TOLD {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// What a master tells its clients, as a value. If it says nothing it can't.
fn reloaded(text: &str) -> Reloaded {
    let (first, rest) = text.split_once("\n--\n").unwrap_or(("", "The master does not answer.\n"));
    Reloaded { success: first.trim() == "Success=1", text: rest.to_owned() }
}

/// Answers lines until the client leaves, is idle for too long, or had its one line. `input` has come
/// already.
pub async fn converse(mut worker: Rc<Worker>, mut socket: Socket, mut client: Client, input: Vec<u8>) {
    let mut input = Input { bytes: input, at: 0 };
    applet(&client, trace::applet::NEW, level::STATE, "runtime API: new client");
    let mut out = String::new();
    let most = rt::bufsize().saturating_sub(2);
    while let Some(bytes) = next_line(&socket, &mut input, &client, most, false).await {
        worker = worker.current();
        if bytes.len() > most {
            return refuse(&socket, &mut input, &client, TOO_LONG).await;
        }
        if bytes.as_slice() == wire::handover::REQUEST.trim_ascii_end() {
            handover::answer(&worker, &socket, &client).await;
            break;
        }
        if bytes == wire::handover::ADOPT.trim_ascii_end() && client.is_master {
            let reloader = worker.shared.reloader.clone();
            if let (Some(reloader), Ok(line)) = (reloader, socket.detach().and_then(rt::Detached::into_fd)) {
                reloader.adopt(line);
            }
            return;
        }
        if bytes == wire::handover::TOLD.trim_ascii_end() && client.is_master {
            let text = to_the_end(&socket, input.bytes.split_off(input.at.min(input.bytes.len()))).await;
            if let Some(reloader) = &worker.shared.reloader {
                reloader.told(reloaded(&text));
            }
            return;
        }
        applet(&client, trace::applet::RECEIVE, level::DATA, "runtime API was asked");
        let line = line::parse(&bytes);
        if let Some((talk, words)) = extension(&worker, &line) {
            let input = Input { bytes: input.bytes.split_off(input.at.min(input.bytes.len())), at: 0 };
            socket = talk.talk(worker.clone(), words, socket, input.bytes).await;
            if !client.interactive || socket.is_broken() {
                break;
            }
            continue;
        }
        let payload = match &line.payload_end {
            Some(end) => {
                // A command that fits a buffer together with its payload is read as a whole.
                let beside = most.saturating_sub(bytes.len());
                let most = worker.shared.program.global.tune.cli_payload.saturating_sub(1).max(beside);
                match payload(&socket, &mut input, &mut client, end, most).await {
                    // One without lines is none.
                    Ok(text) => Some(text).filter(|text| !text.is_empty()),
                    Err(NoPayload::TooBig) => return refuse(&socket, &mut input, &client, TOO_BIG).await,
                    Err(NoPayload::Gone) => break,
                }
            }
            None => None,
        };
        out.clear();
        answer_line(&worker, Some(&socket), &mut client, &line, payload.as_deref(), &mut out).await;
        worker = worker.current();
        if !client.quit && client.prompt {
            prompt(&worker, &client, &mut out);
        }
        applet(&client, trace::applet::SEND, level::DATA, "runtime API answers");
        if socket.send_all(&foreign::bytes(&out)).await.is_err() || client.quit || !client.interactive {
            break;
        }
    }
    let _ = socket.shutdown_write();
    applet(&client, trace::applet::FREE, level::STATE, "runtime API: client left");
}

/// The command of an extension that a line names, if that is all of it, with the words of the line.
fn extension(worker: &Worker, line: &Line) -> Option<(Arc<dyn Talk>, Vec<String>)> {
    let [words] = line.commands.as_slice() else { return None };
    // As in HAProxy any level may give it; of two with the same words it is the last one.
    let named = worker.shared.commands.iter().rev().find(|command| words.starts_with(command.words()))?;
    Some((named.clone(), words.clone()))
}

/// Tells of a service, if anybody looks.
#[track_caller]
fn applet(client: &Client, events: u32, level: u8, text: &str) {
    if trace::APPLET.on() {
        let own = Some(std::ptr::from_ref(client).addr() as u64);
        let point = Point { events, level, text, whom: Whom { own, ..Whom::default() } };
        trace::APPLET.tell(point, &mut |_, out| out.push_str(&format!(" [<CLI>] level={:?}", client.level)));
    }
}

/// Tells what is wrong with what came, and ends the connection.
async fn refuse(socket: &Socket, input: &mut Input, client: &Client, text: &str) {
    let _ = socket.send_all(text.as_bytes()).await;
    let _ = socket.shutdown_write();
    // Closing in front of what is not read yet would reset the connection, and the answer with it.
    let mut left = MAX_LEFT;
    while left > 0 && receive(socket, input, client).await {
        left = left.saturating_sub(input.bytes.len());
        input.bytes.clear();
    }
}

/// Where the first line ends. In a payload backslashes mean nothing.
fn line_end(bytes: &[u8], payload: bool) -> Option<usize> {
    if payload { bytes.iter().position(|b| *b == b'\n') } else { line::end(bytes) }
}

/// The next line; of one that is longer than `most`, so much that this can be seen.
async fn next_line(
    socket: &Socket,
    input: &mut Input,
    client: &Client,
    most: usize,
    payload: bool,
) -> Option<Vec<u8>> {
    loop {
        let rest = input.bytes.get(input.at..).unwrap_or_default();
        if let Some(end) = line_end(rest, payload) {
            let line = rest.get(..end).unwrap_or_default().to_vec();
            input.at += end + 1;
            if input.at == input.bytes.len() {
                (input.bytes, input.at) = (Vec::new(), 0);
            }
            return Some(line);
        }
        if rest.len() > most {
            return Some(rest.to_vec());
        }
        if !receive(socket, input, client).await {
            return None;
        }
    }
}

async fn receive(socket: &Socket, input: &mut Input, client: &Client) -> bool {
    let mut chunk = [0; 4096];
    let mut timer = Timer::new();
    timer.set_after(client.timeout);
    let got = poll_fn(|cx| match socket.poll_recv(cx, &mut chunk) {
        Poll::Ready(n) => Poll::Ready(n.unwrap_or(0)),
        Poll::Pending => timer.poll_expired(cx).map(|()| 0),
    });
    let n = got.await;
    input.bytes.drain(..input.at);
    input.at = 0;
    input.bytes.extend_from_slice(chunk.get(..n).unwrap_or_default());
    n > 0
}

/// Reads lines up to the one that ends the payload, `most` bytes at most.
async fn payload(
    socket: &Socket,
    input: &mut Input,
    client: &mut Client,
    end: &str,
    most: usize,
) -> Result<String, NoPayload> {
    let mut text = Vec::new();
    loop {
        // Who has sent it already is not asked for it.
        if client.prompt && !input.bytes.get(input.at..).unwrap_or_default().contains(&b'\n') {
            socket.send_all(b"+ ").await.map_err(|_| NoPayload::Gone)?;
        }
        let line = next_line(socket, input, client, most, true).await.ok_or(NoPayload::Gone)?;
        if text.len() + line.len() >= most {
            return Err(NoPayload::TooBig);
        }
        if line == *foreign::bytes(end) {
            return Ok(foreign::text(&text).into_owned());
        }
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
}

/// Runs the commands of a line and appends their answers. When the client behind `socket` is gone, so is
/// whatever a command waits for.
pub async fn answer_line(
    worker: &Rc<Worker>,
    socket: Option<&Socket>,
    client: &mut Client,
    line: &Line,
    payload: Option<&str>,
    out: &mut String,
) {
    let last = line.commands.len() - 1;
    for (i, words) in line.commands.iter().enumerate() {
        let payload = payload.filter(|_| i == last);
        let worker = &worker.current();
        let Some(outcome) = told(command(worker, socket, client, words, payload), socket, out).await else {
            return;
        };
        if client.quit {
            return;
        }
        if let Ok(Reply::Events { ring, position, wait, nul }) = outcome {
            let Some(ring) = worker.shared.rings.get(ring) else { continue };
            follow::events(ring, position, nul, socket.filter(|_| wait), out).await;
            out.push('\n');
            continue;
        }
        if let Ok(Reply::Lines(lines)) = outcome {
            if !follow::lines(lines, socket, out).await {
                return;
            }
            out.push('\n');
            continue;
        }
        write(client, outcome, out);
    }
}

/// Awaits a command. If it has to wait itself, the answers before it are on their way meanwhile.
/// `None`: the client is gone.
async fn told(
    command: impl Future<Output = Outcome>,
    socket: Option<&Socket>,
    out: &mut String,
) -> Option<Outcome> {
    let mut command = pin!(command);
    if let Poll::Ready(outcome) = poll_fn(|cx| Poll::Ready(command.as_mut().poll(cx))).await {
        return Some(outcome);
    }
    if let Some(socket) = socket.filter(|_| !out.is_empty()) {
        socket.send_all(&foreign::bytes(out)).await.ok()?;
        out.clear();
    }
    Some(command.await)
}

/// Runs one command.
async fn command(
    worker: &Rc<Worker>,
    socket: Option<&Socket>,
    client: &mut Client,
    words: &[String],
    payload: Option<&str>,
) -> Outcome {
    if words.is_empty() {
        return Ok(Reply::Done);
    }
    if words.len() > MAX_WORDS {
        let text = format!("Too many arguments. Commands must have at most {MAX_WORDS} arguments.");
        return Err(text.into());
    }
    let Some(command) = table::find(words, client.scope) else {
        return Ok(Reply::Message(
            severity::INFO,
            table::unknown(words, client.viewer(), &worker.shared.commands).into(),
        ));
    };
    if command.expert && !client.expert {
        return Err("This command is restricted to expert mode only.".into());
    }
    if command.experimental && !client.experimental {
        return Err("This command is restricted to experimental mode only.".into());
    }
    if client.level < command.level {
        return Err("Permission denied".into());
    }
    let mut call = Call { worker: worker.clone(), client, words, named: command.words.len(), payload };
    match command.run {
        Run::Now(run) => run(&mut call),
        Run::Later(run) => {
            let mut waiting = run(&mut call);
            poll_fn(|cx| match (waiting.as_mut().poll(cx), socket) {
                (Poll::Pending, Some(s)) => s.poll_broken(cx).map(|()| Err("Interrupted.".into())),
                (outcome, _) => outcome,
            })
            .await
        }
    }
}

/// Appends an answer with its mark of severity and the empty line that ends it.
fn write(client: &Client, outcome: Outcome, out: &mut String) {
    let (level, text) = match outcome {
        Ok(Reply::Silent) => return,
        Ok(Reply::Done | Reply::Events { .. } | Reply::Lines(_)) => return out.push('\n'),
        Ok(Reply::Dump(text)) => {
            out.push_str(&text);
            return out.push('\n');
        }
        Ok(Reply::Message(level, text)) => (level, text),
        Err(Refusal(text)) => (severity::ERR, text),
    };
    match client.severity {
        Severity::None => {}
        Severity::Number => out.push_str(&format!("[{level}]: ")),
        Severity::String => {
            const NAMES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
            out.push_str(&format!("[{}]: ", NAMES[usize::from(level & 7)]));
        }
    }
    out.push_str(&text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push('\n');
}

fn prompt(worker: &Worker, client: &Client, out: &mut String) {
    if client.timed {
        let s = rt::now().since(worker.shared.started).as_secs();
        let (days, rest) = (s / 86_400, s % 86_400);
        out.push_str(&format!("[{days}:{:02}:{:02}:{:02}]", rest / 3600, rest / 60 % 60, rest % 60));
    }
    out.push_str("> ");
}
