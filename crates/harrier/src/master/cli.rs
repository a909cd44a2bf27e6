//! The master's socket (management guide, 9.4): commands for the master, and for its workers through it.
//!
//! A command for a worker is given to it over a connection of its own, with what the client may do in front
//! of it; its answer is passed on as it comes. Unlike a worker's socket this one stays open until the client
//! has said all it wants to say.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use admin::cli::call::{Client, Scope};
use admin::cli::line;
use admin::product;
use base::foreign;
use program::Bind;
use program::listener::Level;
use rt::{Listener, Socket, Timer};

use super::reader;
use super::show;
use super::watch::Hub;
use supervisor::machine::Event;
use supervisor::route::{self, Routed, Target};
use supervisor::said::{self, Gathered, Input, Own, Payload, Prompt};

/// Connections at a time, unless `maxconn` says otherwise.
const MAX_CLIENTS: u32 = 100;

/// How long a worker that takes no connections is waited for, and how often it is tried.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// How long accepting rests when the system has no descriptors left.
const REST: Duration = Duration::from_millis(100);

/// Takes connections until the master ends.
pub async fn serve(hub: Rc<Hub>, listener: Listener, bind: Bind) {
    let Ok(acceptor) = listener.attach() else { return };
    let clients = Rc::new(Cell::new(0u32));
    let most = if bind.maxconn == 0 { MAX_CLIENTS } else { bind.maxconn };
    loop {
        while clients.get() >= most {
            hub.freed.notified().await;
        }
        match acceptor.accept().await {
            Ok((socket, _)) => {
                clients.set(clients.get() + 1);
                let (hub, clients) = (hub.clone(), clients.clone());
                let mut client = Client::new(bind.level, bind.severity, None);
                client.scope = Scope::Master;
                let bind = bind.clone();
                rt::spawn(async move {
                    let tune = &hub.worker.shared.program.global.tune;
                    if let Some((socket, input)) = admin::cli::begin(socket, &bind, tune).await {
                        let secure = bind.tls.is_some();
                        let (hub, target) = (hub.clone(), Target::Master);
                        let input = Input::new(input);
                        let session = Session { hub, client, target, input, secure, severity: None };
                        session.converse(socket).await;
                    }
                    clients.set(clients.get().saturating_sub(1));
                    hub.freed.notify();
                });
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(_) => rt::sleep(REST).await,
        }
    }
}

/// One connection.
struct Session {
    hub: Rc<Hub>,
    client: Client,
    /// Where commands without a prefix go.
    target: Target,
    /// Bytes read and not yet looked at.
    input: Input,
    /// Its client speaks TLS, of which the next master will know nothing.
    secure: bool,
    /// `set severity-output`: how workers mark their answers to single commands. Those of this process are
    /// marked as the socket says, as in HAProxy.
    severity: Option<String>,
}

/// What `set severity-output` takes.
const SEVERITIES: [&str; 3] = ["none", "number", "string"];
const NO_SEVERITY: &[u8] = b"one of 'none', 'number', 'string' is a required argument\n";

/// What becomes of a connection after a command.
#[derive(PartialEq, Eq)]
enum Then {
    /// The next command is looked at.
    Next,
    /// The rest of the line is not looked at.
    SkipLine,
    /// It ends.
    Leave,
    /// It waits for the end of a reload.
    Reload(Event),
}

impl Session {
    async fn converse(mut self, socket: Socket) {
        let most = rt::bufsize().saturating_sub(2);
        while let Some(bytes) = self.next_line(&socket, |input| input.next(most)).await {
            if bytes.len() > most {
                part(&socket, b"The command line is too big for the buffer size.\n").await;
                break;
            }
            let text = foreign::text(&bytes).into_owned();
            match self.line(&socket, &text, most).await {
                Then::Next | Then::SkipLine => {}
                Then::Leave => break,
                Then::Reload(event @ Event::Reload(_)) if self.secure => {
                    part(&socket, NO_TALE).await;
                    self.hub.handle(event);
                    return;
                }
                Then::Reload(event) => {
                    if let Ok(client) = socket.detach().and_then(rt::Detached::into_fd) {
                        self.hub.wait_for_reload(client);
                    }
                    self.hub.handle(event);
                    return;
                }
            }
        }
        let _ = socket.shutdown_write();
    }

    /// Runs a line of commands.
    async fn line(&mut self, socket: &Socket, text: &str, most: usize) -> Then {
        let said::Line { commands, payload_end } = said::line(text);
        let payload = match payload_end {
            Some(end) => match self.payload(socket, &end, most).await {
                Some(payload) => Some((end, payload)),
                None => return Then::Leave,
            },
            None => None,
        };
        let last = commands.len().saturating_sub(1);
        for (i, command) in commands.into_iter().enumerate() {
            let payload = payload.as_ref().filter(|_| i == last);
            match self.command(socket, command, payload).await {
                Then::Next => {}
                then => {
                    if then == Then::SkipLine {
                        self.prompt(socket).await;
                    }
                    return then;
                }
            }
            self.prompt(socket).await;
        }
        Then::Next
    }

    async fn command(&mut self, socket: &Socket, text: &str, payload: Option<&(String, String)>) -> Then {
        if text.split_ascii_whitespace().any(|word| word == reader::CALL) {
            // That is for a master to say, not for its clients.
            let _ = socket.send_all(b"Permission denied\n\n").await;
            return Then::SkipLine;
        }
        // The machine is looked at, and let go before anything is waited for.
        let routed = route::route(text, &self.hub.machine.borrow());
        match routed {
            Routed::Plain(command) => {
                if let Some(then) = self.mode(socket, command).await {
                    return then;
                }
                match self.target {
                    Target::Master => self.own(socket, command, payload).await,
                    Target::Worker(pid) => self.pass(socket, pid, command, payload).await,
                }
            }
            Routed::To(Target::Master, command) | Routed::Through(Target::Master, command) => {
                self.own(socket, command, payload).await
            }
            Routed::To(Target::Worker(pid), command) => self.pass(socket, pid, command, payload).await,
            Routed::Through(Target::Worker(pid), commands) => {
                self.through(socket, pid, commands, payload).await
            }
            Routed::Switch(target) => {
                self.target = target;
                Then::Next
            }
            Routed::Nobody(prefix) => {
                let text = format!("Can't find the target PID matching the prefix '{prefix}'\n");
                let _ = socket.send_all(text.as_bytes()).await;
                Then::SkipLine
            }
        }
    }

    /// What changes this connection, wherever its commands go.
    async fn mode(&mut self, socket: &Socket, command: &str) -> Option<Then> {
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        let on = matches!(words.get(1), Some(&"on"));
        let needs_admin =
            matches!(words.first(), Some(&("expert-mode" | "experimental-mode" | "mcli-debug-mode")));
        // Nobody gets back what he gave away.
        let rises = matches!(words.first(), Some(&"operator")) && self.client.level < Level::Operator;
        if rises || needs_admin && self.client.level < Level::Admin {
            let _ = socket.send_all(b"Permission denied!\n").await;
            return Some(Then::SkipLine);
        }
        match *words.first()? {
            "expert-mode" => self.client.expert = on,
            "experimental-mode" => self.client.experimental = on,
            "mcli-debug-mode" => self.client.scope = if on { Scope::MasterDebug } else { Scope::Master },
            "operator" => self.client.level = self.client.level.min(Level::Operator),
            "user" => self.client.level = Level::User,
            "quit" => return Some(Then::Leave),
            "prompt" => return Some(self.prompt_mode(socket, command).await),
            "set" if words.get(1) == Some(&"severity-output") => {
                match words.get(2).filter(|word| SEVERITIES.contains(word)) {
                    Some(word) => self.severity = Some((*word).to_owned()),
                    None => {
                        let _ = socket.send_all(NO_SEVERITY).await;
                        return Some(Then::SkipLine);
                    }
                }
            }
            _ => return None,
        }
        Some(Then::Next)
    }

    /// `prompt`.
    async fn prompt_mode(&mut self, socket: &Socket, command: &str) -> Then {
        let mut prompt = Prompt { shown: self.client.prompt, timed: self.client.timed };
        let understood = prompt.change(command.split_ascii_whitespace().skip(1));
        (self.client.prompt, self.client.timed) = (prompt.shown, prompt.timed);
        if !understood {
            let _ = socket.send_all(PROMPT_HELP.as_bytes()).await;
        }
        Then::Next
    }

    /// A command that the master runs.
    async fn own(&mut self, socket: &Socket, command: &str, payload: Option<&(String, String)>) -> Then {
        let parsed = line::parse(&foreign::bytes(command));
        let words = parsed.commands.into_iter().next().unwrap_or_default();
        let asked = said::own(&words);
        let text = match asked {
            _ if asked.is_privileged() && self.client.level < Level::Operator => {
                "Permission denied\n\n".to_owned()
            }
            Own::Reload(event) => return Then::Reload(event),
            Own::InPlaceWords => "'reload in-place' takes nothing but 'check'.\n\n".to_owned(),
            Own::Processes { debug } => self.processes(debug),
            Own::ProcessWords => "'show proc' only supports 'debug' as argument\n\n".to_owned(),
            Own::StartupLogs => format!("{}\n", self.hub.logs.borrow()),
            Own::Other => {
                let payload = payload.map(|(_, text)| text.as_str());
                admin::cli::run(&self.hub.worker.clone(), &mut self.client, words, payload).await
            }
        };
        match socket.send_all(&foreign::bytes(&text)).await {
            Ok(()) => Then::Next,
            Err(_) => Then::Leave,
        }
    }

    fn processes(&self, debug: bool) -> String {
        show::processes(&self.hub.machine.borrow(), product::VERSION, rt::wall().as_secs(), debug)
    }

    /// What a worker has to know of the client before its command.
    fn preamble(&self) -> String {
        let mut text = String::new();
        if self.client.expert {
            text.push_str("expert-mode on -;");
        }
        if self.client.experimental {
            text.push_str("experimental-mode on -;");
        }
        match self.client.level {
            Level::Admin => {}
            Level::Operator => text.push_str("operator -;"),
            Level::User => text.push_str("user -;"),
        }
        text
    }

    /// A connection to a worker. One that is busy may have as many waiting as there is room for: it is
    /// given a
    /// while to take some, as long as the client is there.
    async fn reach(&self, socket: &Socket, pid: i32) -> Option<Socket> {
        let until = rt::now() + PATIENCE;
        loop {
            match self.hub.connect(pid) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && rt::now() < until => {}
                connected => return connected.ok(),
            }
            let mut timer = Timer::at(rt::now() + LOOK);
            let is_gone = poll_fn(|cx| match socket.poll_broken(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => timer.poll_expired(cx).map(|()| false),
            });
            if is_gone.await {
                return None;
            }
        }
    }

    /// Gives a command to a worker and passes its answer on.
    async fn pass(
        &mut self,
        socket: &Socket,
        pid: i32,
        command: &str,
        payload: Option<&(String, String)>,
    ) -> Then {
        let Some(worker) = self.reach(socket, pid).await else { return nobody(socket, pid).await };
        let severity = self.severity.as_ref().map(|word| format!("set severity-output {word} -;"));
        let mut text = self.preamble() + &severity.unwrap_or_default() + command + "\n";
        append_payload(&mut text, payload);
        if worker.send_all(&foreign::bytes(&text)).await.is_err() {
            return nobody(socket, pid).await;
        }
        // The end of the input ends what would go on for ever.
        let _ = worker.shutdown_write();
        let mut chunk = vec![0; 16384];
        loop {
            // A worker may take for ever; its client does not have to.
            let next = poll_fn(|cx| match worker.poll_recv(cx, &mut chunk) {
                Poll::Ready(n) => Poll::Ready(Some(n.unwrap_or(0))),
                Poll::Pending => socket.poll_broken(cx).map(|()| None),
            });
            match next.await {
                Some(0) => return Then::Next,
                Some(n) => {
                    if socket.send_all(chunk.get(..n).unwrap_or_default()).await.is_err() {
                        return Then::Leave;
                    }
                }
                None => return Then::Leave,
            }
        }
    }

    /// `@@`: connects the client with a worker until that one ends it.
    async fn through(
        &mut self,
        socket: &Socket,
        pid: i32,
        commands: &str,
        payload: Option<&(String, String)>,
    ) -> Then {
        let Some(worker) = self.reach(socket, pid).await else { return nobody(socket, pid).await };
        let mut text = self.preamble();
        if commands.is_empty() {
            let timed = if self.client.timed { "timed " } else { "" };
            let mode = if self.client.prompt { "p" } else { "i" };
            text.push_str(&format!("prompt {timed}{mode}\n"));
            text.push_str(&foreign::text(&self.input.rest()));
        } else {
            text.push_str(commands);
            text.push('\n');
        }
        append_payload(&mut text, payload);
        if worker.send_all(&foreign::bytes(&text)).await.is_err() {
            return nobody(socket, pid).await;
        }
        relay(socket, &worker).await
    }

    /// Shows where the next command goes, if the client wants that.
    async fn prompt(&self, socket: &Socket) {
        if !self.client.prompt {
            return;
        }
        let mut text = String::new();
        if self.client.timed {
            let s = rt::wall().as_secs().saturating_sub(self.hub.machine.borrow().started);
            let (days, rest) = (s / 86_400, s % 86_400);
            text.push_str(&format!("[{days}:{:02}:{:02}:{:02}] ", rest / 3600, rest / 60 % 60, rest % 60));
        }
        match self.target {
            Target::Master if self.hub.machine.borrow().failed => text.push_str("master[ReloadFailed]"),
            Target::Master => text.push_str("master"),
            Target::Worker(pid) => text.push_str(&pid.to_string()),
        }
        let debug = self.client.scope == Scope::MasterDebug;
        let flags = [(self.client.experimental, 'x'), (self.client.expert, 'e'), (debug, 'd')];
        let shown: String = flags.iter().filter(|(on, _)| *on).map(|(_, flag)| flag).collect();
        if !shown.is_empty() {
            text.push_str(&format!("({shown})"));
        }
        text.push_str("> ");
        let _ = socket.send_all(text.as_bytes()).await;
    }

    /// The next line; of one that is longer than `most`, so much that this can be seen.
    async fn next_line(
        &mut self,
        socket: &Socket,
        next: impl Fn(&mut Input) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = next(&mut self.input) {
                return Some(line);
            }
            let mut chunk = [0; 4096];
            let n = poll_fn(|cx| socket.poll_recv(cx, &mut chunk)).await.unwrap_or(0);
            if n == 0 {
                return None;
            }
            self.input.push(chunk.get(..n).unwrap_or_default());
        }
    }

    /// The lines of a payload up to the one that ends it.
    async fn payload(&mut self, socket: &Socket, end: &str, most: usize) -> Option<String> {
        let most = most.max(MAX_PAYLOAD);
        let mut payload = Payload::new(end, most);
        loop {
            if self.client.prompt {
                socket.send_all(b"+ ").await.ok()?;
            }
            let line = self.next_line(socket, |input| input.next_of_payload(most)).await?;
            match payload.take(&line) {
                Gathered::More => {}
                Gathered::Whole(text) => return Some(text),
                Gathered::TooBig => {
                    let _ = socket.send_all(b"The payload is too big.\n").await;
                    return None;
                }
            }
        }
    }
}

/// The most bytes of a payload on its way to a worker, which has a limit of its own.
const MAX_PAYLOAD: usize = 1 << 20;

const PROMPT_HELP: &str = "\
Usage: prompt [help | i | p | timed]*
Switches how this connection answers:
  help    show these lines
  i       no prompt
  p       with a prompt
  timed   show the uptime in the prompt, or no longer
Without argument, the prompt is switched on or off.
";

/// What a client over TLS hears of a reload, whose end it can't be told: this process becomes another one.
const NO_TALE: &[u8] = b"Reloading. How that ends can't be told over TLS, see 'show startup-logs'.\n";

/// Sends the last words to a client, and waits until they are gone: closing in front of what was not read
/// would reset the connection.
async fn part(socket: &Socket, word: &[u8]) {
    let _ = socket.send_all(word).await;
    let _ = socket.shutdown_write();
    let mut timer = Timer::at(rt::now() + Duration::from_secs(1));
    let mut rest = [0; 256];
    let mut heard = 1;
    while heard > 0 {
        let next = poll_fn(|cx| match socket.poll_recv(cx, &mut rest) {
            Poll::Ready(n) => Poll::Ready(n.unwrap_or(0)),
            Poll::Pending => timer.poll_expired(cx).map(|()| 0),
        });
        heard = next.await;
    }
}

async fn nobody(socket: &Socket, pid: i32) -> Then {
    let _ = socket.send_all(format!("Can't reach the process {pid}\n").as_bytes()).await;
    Then::SkipLine
}

/// Carries bytes both ways until the worker ends the connection. The end of what the client says is passed
/// on.
async fn relay(client: &Socket, worker: &Socket) -> Then {
    let (mut from_client, mut from_worker) = (vec![0; 16384], vec![0; 16384]);
    let mut listens = true;
    loop {
        let next = poll_fn(|cx| {
            if let Poll::Ready(n) = worker.poll_recv(cx, &mut from_worker) {
                return Poll::Ready(Some((true, n.unwrap_or(0))));
            }
            if !listens {
                return client.poll_broken(cx).map(|()| None);
            }
            client.poll_recv(cx, &mut from_client).map(|n| Some((false, n.unwrap_or(0))))
        });
        match next.await {
            None => return Then::Leave,
            Some((true, 0)) => return Then::Next,
            Some((true, n)) => {
                if client.send_all(from_worker.get(..n).unwrap_or_default()).await.is_err() {
                    return Then::Leave;
                }
            }
            Some((false, 0)) => {
                listens = false;
                let _ = worker.shutdown_write();
            }
            Some((false, n)) => {
                if worker.send_all(from_client.get(..n).unwrap_or_default()).await.is_err() {
                    return Then::Next;
                }
            }
        }
    }
}

/// Appends what follows a command line: its payload, and the line that ends it.
fn append_payload(text: &mut String, payload: Option<&(String, String)>) {
    if let Some((end, payload)) = payload {
        text.push_str(payload);
        text.push_str(end);
        text.push('\n');
    }
}
