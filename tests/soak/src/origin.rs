//! Origins: servers that read their part in `x-plan`, keep to it, and judge each request they read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::content::{Content, Rng, Way, label};
use crate::http1::{self, Broken, Gentle, Giving, Head, Link, Reader, Taking};
use crate::ledger::{Attempt, Ledger};
use crate::plan::{Framing, Ground, OriginEnd, PATIENCE, Plan, padding};
use crate::tls::Certificates;

/// Requests that were answered on a connection, with the numbers of their attempts.
type Answered = Arc<std::sync::Mutex<Vec<(u64, usize)>>>;

/// What a port speaks.
#[derive(Clone, Copy, Debug)]
pub struct Speech {
    pub tls: bool,
    pub h2: bool,
    pub ground: Ground,
}

pub struct Origin {
    ledger: Arc<Ledger>,
    certificates: Arc<Certificates>,
    speech: Speech,
    seed: AtomicU64,
}

impl Origin {
    /// Opens a port and serves on it; the task ends only by being aborted, and its connections with it.
    pub fn start(
        ledger: Arc<Ledger>,
        certificates: Arc<Certificates>,
        speech: Speech,
        seed: u64,
    ) -> io::Result<(SocketAddr, tokio::task::JoinHandle<()>)> {
        let socket = TcpSocket::new_v4()?;
        socket.bind("127.0.0.1:0".parse().expect("an address"))?;
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let origin = Arc::new(Origin { ledger, certificates, speech, seed: AtomicU64::new(seed) });
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => { connections.spawn(origin.clone().connection(stream)); }
                        Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok((address, task))
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut rng = Rng::new(self.seed.fetch_add(1, Relaxed));
        let link = if self.speech.tls {
            let acceptor = self.certificates.acceptor(self.speech.h2);
            match tokio::time::timeout(Duration::from_secs(20), acceptor.accept(stream)).await {
                Ok(Ok(tls)) => Link::Server(Box::new(tls)),
                _ => return,
            }
        } else {
            Link::Plain(stream)
        };
        if self.speech.h2 {
            self.streams(link, rng).await;
        } else {
            self.requests(link, &mut rng).await;
        }
    }

    /// One connection of HTTP/1.
    async fn requests(&self, mut link: Link, rng: &mut Rng) {
        let mut unused = None;
        loop {
            let mut reader = Reader::resume(&mut link, unused.take());
            // A flaky server closes at rest.
            let rest = if self.speech.ground == Ground::Flaky && rng.percent(30) {
                rng.between(1, 300)
            } else {
                300_000
            };
            match tokio::time::timeout(Duration::from_millis(rest), reader.wait()).await {
                Ok(Ok(true)) => {}
                _ => break,
            }
            let head = match tokio::time::timeout(PATIENCE, reader.head()).await {
                Ok(Ok(head)) => head,
                Ok(Err(Broken::Wrong(why))) => {
                    return self.ledger.fail(&format!("an origin read a malformed head: {why}"));
                }
                Ok(Err(_)) => return,
                Err(_) => return self.ledger.fail("an origin waited in vain for the rest of a head"),
            };
            let left = reader.into_unused();
            match self.request(&mut link, left, &head, rng).await {
                Some(left) => unused = Some(left),
                None => return,
            }
        }
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut link).await;
    }

    /// The plan that a head brings; complaints about the head go to the ledger.
    fn plan(&self, get: impl Fn(&str) -> Option<String>) -> Option<Plan> {
        let plan = Plan::decode(&get("x-id")?, &get("x-plan")?);
        let Some(plan) = plan else {
            self.ledger.fail(&format!("an origin can't read the plan {:?}", get("x-plan")));
            return None;
        };
        if get("x-pad").unwrap_or_default() != padding(plan.id, plan.pad) {
            self.ledger.failure(plan.id, "the field x-pad of the request is wrong at the origin");
        }
        if get("x-body") != Some(label(plan.id, Way::Up, plan.up)) {
            self.ledger.failure(plan.id, "the field x-body of the request is wrong at the origin");
        }
        Some(plan)
    }

    /// Judges the body of a request as the origin read it.
    fn judge(&self, plan: &Plan, content: &Content, read: &Result<Option<String>, Broken>) {
        match read {
            Ok(tail) => {
                if content.at() != plan.up {
                    let why = format!(
                        "the origin got a request body of {} bytes instead of {} as whole",
                        content.at(),
                        plan.up
                    );
                    self.ledger.failure(plan.id, &why);
                } else if label(plan.id, Way::Up, plan.up) != format!("{}:{:016x}", plan.up, content.hash()) {
                    self.ledger.failure(plan.id, "the hash of the request body is wrong");
                }
                if tail.as_ref().is_some_and(|t| *t != plan.id.to_string()) {
                    self.ledger.failure(plan.id, "the trailer of the request is wrong");
                }
            }
            Err(Broken::Wrong(why)) => self.ledger.failure(plan.id, &format!("at the origin: {why}")),
            Err(_) => {}
        }
        self.ledger.bytes.fetch_add(content.at(), Relaxed);
    }

    /// Serves one request of HTTP/1. What it gives back is what was read beyond it, or nothing where the
    /// connection is over.
    async fn request(
        &self,
        link: &mut Link,
        left: bytes::BytesMut,
        head: &Head,
        rng: &mut Rng,
    ) -> Option<bytes::BytesMut> {
        let Some(mut plan) = self.plan(|name| head.get(name).map(str::to_owned)) else {
            let ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(link, ok.as_bytes()).await.ok()?;
            return Some(left);
        };
        let id = plan.id;
        let framing = match head.framing() {
            Ok((framing, n)) => (framing.unwrap_or(Framing::Length), n),
            Err(why) => {
                self.ledger.failure(id, &format!("the origin read a request with {why}"));
                return None;
            }
        };
        if !head.first.starts_with(&format!("{} /{id}", plan.method)) {
            self.ledger.failure(id, &format!("the origin read the request line {:?}", head.first));
        }
        if self.speech.ground == Ground::Flaky && plan.down_framing != Framing::Close && rng.percent(1) {
            plan.origin = if plan.down > 0 && plan.answers_with_body() {
                OriginEnd::Cut(rng.below(plan.down))
            } else {
                OriginEnd::NoAnswer
            };
        }
        let attempt = self.ledger.arrived(&plan);
        match tokio::time::timeout(plan.deadline(), self.exchange(link, left, &plan, framing, rng)).await {
            Ok((how, left)) => {
                self.ledger.departed(id, attempt, how);
                left
            }
            Err(_) => {
                self.ledger.failure(id, "it stands still at the origin");
                self.ledger.departed(id, attempt, Attempt::Left);
                None
            }
        }
    }

    async fn exchange(
        &self,
        link: &mut Link,
        left: bytes::BytesMut,
        plan: &Plan,
        framing: (Framing, u64),
        rng: &mut Rng,
    ) -> (Attempt, Option<bytes::BytesMut>) {
        let mut up = Content::new(plan.id, Way::Up);
        let (from, mut to) = tokio::io::split(&mut *link);
        let mut reader = Reader::resume(from, Some(left));
        let taking = Taking { content: &mut up, pace: plan.origin_take, until: None };
        if plan.origin == OriginEnd::NoAnswer {
            drop((reader, to));
            if rng.percent(50) {
                let _ = link.socket().set_zero_linger();
            }
            return (Attempt::BrokenOff, None);
        }
        let mut answer = Box::pin(self.answer(&mut to, plan, rng));
        let (read, written) = if plan.origin == OriginEnd::Early {
            tokio::join!(reader.body(framing, taking), &mut answer)
        } else {
            match reader.body(framing, taking).await {
                Ok(body) => (Ok(body), answer.as_mut().await),
                Err(e) => (Err(e), Ok(())),
            }
        };
        drop(answer);
        let read = read
            .map(|b| b.trailers.into_iter().find(|(n, _)| n.eq_ignore_ascii_case("x-tail")).map(|(_, v)| v));
        self.judge(plan, &up, &read);
        let left = reader.into_unused();
        if !left.is_empty() && read.is_ok() && plan.origin != OriginEnd::Early {
            // The proxy never sends a request before it has the response to the one before.
            self.ledger.failure(plan.id, "bytes stand behind the request at the origin");
        }
        drop(to);
        match (plan.origin, read.is_ok(), written.is_ok()) {
            (OriginEnd::Cut(_), true, _) if plan.answers_with_body() => {
                if rng.percent(50) {
                    let _ = link.socket().set_zero_linger();
                } else {
                    let _ = tokio::io::AsyncWriteExt::shutdown(link).await;
                }
                (Attempt::BrokenOff, None)
            }
            (OriginEnd::Announced, true, true) => {
                let _ = tokio::io::AsyncWriteExt::shutdown(link).await;
                (Attempt::Answered, None)
            }
            (OriginEnd::Silent, true, true) => (Attempt::Answered, None),
            (_, true, true) => (Attempt::Answered, Some(left)),
            (OriginEnd::Early, false, true) => (Attempt::Answered, None),
            _ => (Attempt::Left, None),
        }
    }

    async fn answer<W: tokio::io::AsyncWrite + Unpin>(
        &self,
        to: &mut W,
        plan: &Plan,
        rng: &mut Rng,
    ) -> io::Result<()> {
        let mut head = String::new();
        if plan.interim {
            head.push_str("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
        }
        head.push_str(&format!(
            "HTTP/1.1 {} Planned\r\nx-id: {}\r\nx-pad: {}\r\nx-body: {}\r\n",
            plan.status,
            plan.id,
            padding(plan.id ^ 1, plan.pad),
            label(plan.id, Way::Down, plan.down)
        ));
        let body = plan.answers_with_body();
        if plan.origin == OriginEnd::Announced {
            head.push_str("connection: close\r\n");
        }
        match plan.down_framing {
            Framing::Length if plan.status != 204 && (plan.status != 304 || plan.down > 0) => {
                head.push_str(&format!("content-length: {}\r\n", plan.down))
            }
            Framing::Chunked if body => head.push_str("transfer-encoding: chunked\r\n"),
            _ => {}
        }
        head.push_str("\r\n");
        let giving = Giving {
            content: &mut Content::new(plan.id, Way::Down),
            len: if body { plan.down } else { 0 },
            pace: plan.origin_send,
            framing: if body { plan.down_framing } else { Framing::Length },
            trailer: plan.trailers.then(|| plan.id.to_string()),
            until: match plan.origin {
                OriginEnd::Cut(at) if body => Some(at),
                _ => None,
            },
        };
        http1::write(to, &head, giving, rng).await
    }

    /// One connection of HTTP/2.
    async fn streams(self: Arc<Self>, link: Link, mut rng: Rng) {
        let mut builder = h2::server::Builder::new();
        // No smaller windows than a client may assume at the start: h2 gives nothing back for what came
        // before its own was known.
        builder
            .initial_window_size(*rng.pick(&[65_535, 65_535, 65_535, 65_535, 1_048_576]))
            .initial_connection_window_size(*rng.pick(&[65_535, 65_535, 200_000, 4_194_304]))
            .max_frame_size(*rng.pick(&[16_384, 16_384, 32_768, 1_048_576]))
            .max_concurrent_streams(*rng.pick(&[4, 20, 100, 100]))
            .data_frame_budget(crate::http2::SMALL_FRAMES);
        let link = Gentle::new(link);
        let killed = link.cut.clone();
        let Ok(mut connection) = builder.handshake::<_, bytes::Bytes>(link).await else { return };
        let leave = Arc::new(tokio::sync::Notify::new());
        let flaky = self.speech.ground == Ground::Flaky;
        let mortal = flaky && rng.percent(30);
        let life = if mortal { rng.between(5, 2_000) } else { 7_200_000 };
        let end = tokio::time::sleep(Duration::from_millis(life));
        tokio::pin!(end);
        let mut tasks = JoinSet::new();
        let answered = Answered::default();
        loop {
            tokio::select! {
                () = &mut end => {
                    killed.store(true, Relaxed);
                    // Their last frames may still have been in the queue.
                    for (id, attempt) in answered.lock().unwrap().drain(..) {
                        self.ledger.departed(id, Some(attempt), Attempt::BrokenOff);
                    }
                    break;
                }
                () = leave.notified() => connection.graceful_shutdown(),
                Some(_) = tasks.join_next() => {}
                accepted = connection.accept() => match accepted {
                    Some(Ok((request, respond))) => {
                        let seed = rng.next();
                        let (me, killed, leave) = (self.clone(), killed.clone(), leave.clone());
                        let answered = answered.clone();
                        tasks.spawn(async move {
                            let done = me.stream(request, respond, &killed, &leave, Rng::new(seed)).await;
                            answered.lock().unwrap().extend(done.filter(|_| mortal));
                        });
                    }
                    Some(Err(_)) | None => break,
                }
            }
        }
        drop(connection);
        while tasks.join_next().await.is_some() {}
    }

    /// One request; what is given back is the attempt, if it was answered.
    async fn stream(
        &self,
        request: http::Request<h2::RecvStream>,
        mut respond: h2::server::SendResponse<bytes::Bytes>,
        killed: &AtomicBool,
        leave: &tokio::sync::Notify,
        mut rng: Rng,
    ) -> Option<(u64, usize)> {
        let (head, mut body) = request.into_parts();
        let get = |name: &str| head.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let Some(plan) = self.plan(get) else {
            let _ = respond.send_response(http::Response::new(()), true);
            return None;
        };
        if head.method.as_str() != plan.method || head.uri.path() != format!("/{}", plan.id) {
            self.ledger.failure(plan.id, &format!("the origin read {} {}", head.method, head.uri));
        }
        let attempt = self.ledger.arrived(&plan);
        let served = tokio::time::timeout(
            plan.deadline(),
            self.serve(&plan, &mut body, &mut respond, leave, &mut rng),
        );
        let how = match served.await {
            Ok(how) if how == Attempt::Left && killed.load(Relaxed) => Attempt::BrokenOff,
            Ok(how) => how,
            Err(_) => {
                self.ledger.failure(plan.id, "it stands still at the origin");
                Attempt::Left
            }
        };
        // What was queued when the connection was killed did not arrive.
        let how = if killed.load(Relaxed) { Attempt::BrokenOff } else { how };
        self.ledger.departed(plan.id, attempt, how);
        attempt.filter(|_| how == Attempt::Answered).map(|attempt| (plan.id, attempt))
    }

    async fn serve(
        &self,
        plan: &Plan,
        body: &mut h2::RecvStream,
        respond: &mut h2::server::SendResponse<bytes::Bytes>,
        leave: &tokio::sync::Notify,
        rng: &mut Rng,
    ) -> Attempt {
        if plan.origin == OriginEnd::NoAnswer {
            respond.send_reset(*rng.pick(&[h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL]));
            return Attempt::BrokenOff;
        }
        let mut up = Content::new(plan.id, Way::Up);
        let taking = Taking { content: &mut up, pace: plan.origin_take, until: None };
        let (read, how) = if plan.origin == OriginEnd::Early {
            tokio::join!(crate::http2::take(body, taking), self.respond(plan, respond, rng))
        } else {
            match crate::http2::take(body, taking).await {
                Ok(tail) => (Ok(tail), self.respond(plan, respond, rng).await),
                Err(e) => {
                    self.ledger.remark(plan.id, format!("its body broke off: {e:?}"));
                    (Err(e), Attempt::Left)
                }
            }
        };
        self.judge(plan, &up, &read);
        if matches!(plan.origin, OriginEnd::Announced | OriginEnd::Silent) {
            leave.notify_one();
        }
        how
    }

    async fn respond(
        &self,
        plan: &Plan,
        respond: &mut h2::server::SendResponse<bytes::Bytes>,
        rng: &mut Rng,
    ) -> Attempt {
        let mut head = http::Response::builder()
            .status(plan.status)
            .header("x-id", plan.id.to_string())
            .header("x-pad", padding(plan.id ^ 1, plan.pad))
            .header("x-body", label(plan.id, Way::Down, plan.down));
        let body = plan.answers_with_body();
        if plan.down_framing == Framing::Length && plan.status != 204 && (plan.status != 304 || plan.down > 0)
        {
            head = head.header("content-length", plan.down.to_string());
        }
        let head = head.body(()).expect("a head");
        if !body {
            return respond.send_response(head, true).map_or(Attempt::Left, |_| Attempt::Answered);
        }
        let Ok(mut stream) = respond.send_response(head, false) else { return Attempt::Left };
        let giving = Giving {
            content: &mut Content::new(plan.id, Way::Down),
            len: plan.down,
            pace: plan.origin_send,
            framing: Framing::Length,
            trailer: plan.trailers.then(|| plan.id.to_string()),
            until: match plan.origin {
                OriginEnd::Cut(at) => Some(at),
                _ => None,
            },
        };
        match crate::http2::give(&mut stream, giving, rng).await {
            Ok(()) if matches!(plan.origin, OriginEnd::Cut(_)) => {
                stream.send_reset(*rng.pick(&[h2::Reason::INTERNAL_ERROR, h2::Reason::CANCEL]));
                Attempt::BrokenOff
            }
            Ok(()) => Attempt::Answered,
            Err(_) => Attempt::Left,
        }
    }
}
