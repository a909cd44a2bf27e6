//! Clients: each opens a connection, sends requests by plan, reads what comes back to the last byte, and
//! tells the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::content::{Content, Rng, Way, label};
use crate::http1::{self, Broken, Giving, Link, Reader, Taking};
use crate::ledger::{Ledger, Seen};
use crate::plan::{ClientEnd, Framing, Ground, OriginEnd, PATIENCE, Plan, Scope, padding};
use crate::setup::{Back, Front};
use crate::tls::Certificates;

pub struct Clients {
    pub ledger: Arc<Ledger>,
    pub certificates: Arc<Certificates>,
    pub fronts: Vec<Front>,
    pub backs: Vec<Back>,
    pub connections: AtomicU64,
    pub numbers: AtomicU64,
}

/// Whether the connection can serve another request.
enum Then {
    Keep(BytesMut),
    Over,
}

impl Clients {
    /// One client after the other until the time is over.
    pub async fn run(self: Arc<Self>, seed: u64) {
        let mut rng = Rng::new(seed);
        while !self.ledger.over.load(Relaxed) {
            let front = rng.pick(&self.fronts).clone();
            let link = match self.connect(&front, &mut rng).await {
                Ok(link) => link,
                Err(e) => {
                    self.ledger.fail(&format!("connecting to {}: {e}", front.name));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            self.connections.fetch_add(1, Relaxed);
            if front.h2 {
                self.clone().streams(link, &front, &mut rng).await;
            } else {
                self.requests(link, &front, &mut rng).await;
            }
        }
    }

    async fn connect(&self, front: &Front, rng: &mut Rng) -> std::io::Result<Link> {
        let socket = TcpSocket::new_v4()?;
        // A small receive buffer would measure the kernel only: segments of the loopback do not fit in, and
        // are sent again after long waits.
        if rng.percent(15) {
            socket.set_send_buffer_size(16_384)?;
        }
        let stream = tokio::time::timeout(Duration::from_secs(20), socket.connect(front.address)).await??;
        stream.set_nodelay(true)?;
        if !front.tls {
            return Ok(Link::Plain(stream));
        }
        let shaken = self.certificates.connect(stream, front.h2, rng.percent(30));
        Ok(Link::Client(Box::new(tokio::time::timeout(Duration::from_secs(20), shaken).await??)))
    }

    /// A plan for the next request over `front`, entered in the ledger, and the backend it goes to.
    fn plan(&self, front: &Front, rng: &mut Rng, leaves: bool) -> (Plan, &'static str) {
        let (name, ground, server_h2, retried) = match front.tcp {
            Some(name) => (name, Ground::Solid, false, false),
            None => {
                let back = rng.pick(&self.backs);
                (back.name, back.speech.ground, back.speech.h2, back.retried)
            }
        };
        // The lowest bit tells origins which ground a request stands on.
        let id = self.numbers.fetch_add(2, Relaxed) | (ground == Ground::Flaky) as u64;
        let scope = Scope { client_h2: front.h2, server_h2, tcp: front.tcp.is_some(), ground };
        let mut plan = Plan::random(rng, id, scope);
        if plan.client == ClientEnd::HalfClose && front.tls {
            plan.client = ClientEnd::Stay;
        }
        if leaves {
            plan.client = ClientEnd::LeaveReading(u64::MAX);
        }
        let route = format!("{} to {name}", front.name);
        self.ledger.begin(&plan, route, ground, retried);
        (plan, name)
    }

    /// One connection of HTTP/1.
    async fn requests(&self, mut link: Link, front: &Front, rng: &mut Rng) {
        let mut left = BytesMut::new();
        for _ in 0..*rng.pick(&[1, 1, 3, 10, 30]) {
            if self.ledger.over.load(Relaxed) {
                break;
            }
            let (plan, back) = self.plan(front, rng, false);
            let done =
                tokio::time::timeout(plan.deadline(), self.exchange(&mut link, left, &plan, back, rng)).await;
            let (seen, then) =
                done.unwrap_or_else(|_| (Seen::Wrong("stands still at the client".to_owned()), Then::Over));
            let abort = seen == Seen::LeftByPlan && rng.percent(50);
            self.ledger.end(plan.id, seen);
            match then {
                Then::Keep(rest) => left = rest,
                Then::Over => {
                    if abort {
                        let _ = link.socket().set_zero_linger();
                    }
                    return;
                }
            }
            if rng.percent(10) {
                tokio::time::sleep(Duration::from_millis(rng.below(50))).await;
            }
        }
        let _ = tokio::time::timeout(Duration::from_secs(5), link.shutdown()).await;
    }

    async fn exchange(
        &self,
        link: &mut Link,
        left: BytesMut,
        plan: &Plan,
        back: &str,
        rng: &mut Rng,
    ) -> (Seen, Then) {
        let (from, mut to) = tokio::io::split(link);
        let mut reader = Reader::resume(from, Some(left));
        let mut wait = rng.below(40);
        let mut sender_rng = Rng::new(rng.next());
        let sending = async {
            let sent = send(&mut to, plan, back, &mut sender_rng).await;
            if plan.client == ClientEnd::HalfClose && sent.is_ok() {
                let _ = to.shutdown().await;
            }
            sent
        };
        tokio::pin!(sending);
        let mut down = Content::new(plan.id, Way::Down);
        let (seen, keep) = {
            let receiving = receive(&mut reader, plan, &mut down);
            tokio::pin!(receiving);
            let mut sent = false;
            loop {
                tokio::select! {
                    result = &mut sending, if !sent => {
                        sent = true;
                        if matches!(plan.client, ClientEnd::LeaveSending(_)) && result.is_ok() {
                            break (Seen::LeftByPlan, false);
                        }
                        if plan.client != ClientEnd::LeaveReading(0) {
                            wait = u64::MAX;
                        }
                    }
                    () = tokio::time::sleep(Duration::from_millis(wait)), if plan.client == ClientEnd::LeaveReading(0) && sent => {
                        break (Seen::LeftByPlan, false);
                    }
                    (seen, keep) = &mut receiving => {
                        // The request may still be on its way if the answer came early.
                        let keep = if sent { keep } else {
                            keep && tokio::time::timeout(Duration::from_secs(10), &mut sending).await.is_ok_and(|s| s.is_ok())
                        };
                        break (seen, keep);
                    }
                }
            }
        };
        self.ledger.bytes.fetch_add(down.at(), Relaxed);
        let rest = reader.into_unused();
        if !rest.is_empty() && seen == Seen::Answered {
            return (Seen::Wrong("bytes stand behind the response".to_owned()), Then::Over);
        }
        (seen, if keep && plan.client == ClientEnd::Stay { Then::Keep(rest) } else { Then::Over })
    }

    /// One connection of HTTP/2.
    async fn streams(self: Arc<Self>, link: Link, front: &Front, rng: &mut Rng) {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(*rng.pick(&[65_535, 65_535, 1_000, 4_000, 16_384, 1_048_576]))
            .initial_connection_window_size(*rng.pick(&[65_535, 65_535, 100_000, 4_194_304]))
            .max_frame_size(*rng.pick(&[16_384, 16_384, 20_000, 1_048_576]))
            .header_table_size(*rng.pick(&[4_096, 4_096, 0, 200, 65_536]))
            .data_frame_budget(crate::http2::SMALL_FRAMES)
            .enable_push(false);
        let (mut sender, connection) = match builder.handshake::<_, Bytes>(link).await {
            Ok(both) => both,
            Err(e) => return self.ledger.fail(&format!("{}: no HTTP/2: {e}", front.name)),
        };
        let driver = tokio::spawn(connection);
        let count = *rng.pick(&[1, 4, 20, 60]);
        let at_once = rng.between(1, 12) as usize;
        // Some clients vanish with all that they asked for.
        let vanishes = rng.percent(4);
        let life =
            tokio::time::sleep(Duration::from_millis(if vanishes { rng.between(1, 200) } else { 7_200_000 }));
        tokio::pin!(life);
        let mut tasks = JoinSet::new();
        let mut asked = Vec::new();
        let all = async {
            for _ in 0..count {
                if self.ledger.over.load(Relaxed) {
                    break;
                }
                if tasks.len() >= at_once {
                    tasks.join_next().await;
                }
                match tokio::time::timeout(PATIENCE, sender.clone().ready()).await {
                    Ok(Ok(ready)) => sender = ready,
                    Ok(Err(e)) => {
                        self.ledger.fail(&format!("{}: the connection broke: {e}", front.name));
                        break;
                    }
                    Err(_) => {
                        self.ledger.fail(&format!("{}: no stream is to be had", front.name));
                        break;
                    }
                }
                let (plan, back) = self.plan(front, rng, vanishes);
                asked.push(plan.id);
                let (me, sender, seed, h2_name) = (self.clone(), sender.clone(), rng.next(), front.tls);
                tasks.spawn(async move {
                    let (id, deadline) = (plan.id, plan.deadline());
                    let asking = me.ask(sender, plan, back, h2_name, Rng::new(seed));
                    let seen = tokio::time::timeout(deadline, asking).await;
                    let seen = seen.unwrap_or_else(|_| Seen::Wrong("stands still at the client".to_owned()));
                    me.ledger.end_if_open(id, seen);
                });
            }
            while tasks.join_next().await.is_some() {}
        };
        tokio::select! {
            () = all => {}
            () = &mut life => {}
        }
        if vanishes {
            // Before the connection goes: its requests see that it breaks, and must not tell it as a failure.
            for id in asked {
                self.ledger.end_if_open(id, Seen::LeftByPlan);
            }
        }
        driver.abort();
        let _ = driver.await;
        tasks.shutdown().await;
    }

    async fn ask(
        &self,
        mut sender: h2::client::SendRequest<Bytes>,
        plan: Plan,
        back: &'static str,
        tls: bool,
        mut rng: Rng,
    ) -> Seen {
        let scheme = if tls { "https" } else { "http" };
        let mut request = http::Request::builder()
            .method(plan.method)
            .uri(format!("{scheme}://localhost/{}", plan.id))
            .version(http::Version::HTTP_2);
        for (name, value) in fields(&plan, back) {
            request = request.header(name, value);
        }
        let body = plan.up > 0;
        if body && plan.up_framing == Framing::Length {
            request = request.header("content-length", plan.up.to_string());
        }
        let request = request.body(()).expect("a request");
        let (response, mut stream) = match sender.send_request(request, !body) {
            Ok(both) => both,
            Err(e) => return Seen::Broken(format!("asking: {e}")),
        };
        let mut sender_rng = Rng::new(rng.next());
        let sending = async {
            if !body {
                return Ok(());
            }
            let giving = Giving {
                content: &mut Content::new(plan.id, Way::Up),
                len: plan.up,
                pace: plan.send,
                framing: Framing::Length,
                trailer: (plan.trailers && plan.up_framing == Framing::Chunked).then(|| plan.id.to_string()),
                until: match plan.client {
                    ClientEnd::LeaveSending(at) => Some(at),
                    _ => None,
                },
            };
            let given = crate::http2::give(&mut stream, giving, &mut sender_rng).await;
            if given.is_ok() && matches!(plan.client, ClientEnd::LeaveSending(_)) {
                stream.send_reset(crate::http2::reason(&mut sender_rng));
            }
            given
        };
        tokio::pin!(sending);
        let receiving = self.hear(response, &plan);
        tokio::pin!(receiving);
        let mut sent = false;
        let wait = rng.below(40);
        loop {
            tokio::select! {
                result = &mut sending, if !sent => {
                    sent = true;
                    if matches!(plan.client, ClientEnd::LeaveSending(_)) && result.is_ok() {
                        return Seen::LeftByPlan;
                    }
                }
                () = tokio::time::sleep(Duration::from_millis(wait)), if plan.client == ClientEnd::LeaveReading(0) && sent => {
                    return Seen::LeftByPlan;
                }
                seen = &mut receiving => return seen,
            }
        }
    }

    async fn hear(&self, response: h2::client::ResponseFuture, plan: &Plan) -> Seen {
        let (head, mut body) = match response.await {
            Ok(response) => response.into_parts(),
            Err(e) => return Seen::Broken(format!("waiting: {e}")),
        };
        let get = |name: &str| head.headers.get(name).and_then(|v| v.to_str().ok());
        if get("x-id").is_none() {
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
            }
            return Seen::Refused(head.status.as_u16());
        }
        if let Err(why) = check_head(plan, head.status.as_u16(), get) {
            return Seen::Wrong(why);
        }
        let mut down = Content::new(plan.id, Way::Down);
        let until = match plan.client {
            ClientEnd::LeaveReading(at) if at > 0 => Some(at),
            _ => None,
        };
        let taken =
            crate::http2::take(&mut body, Taking { content: &mut down, pace: plan.take, until }).await;
        self.ledger.bytes.fetch_add(down.at(), Relaxed);
        match taken {
            Ok(tail) => whole(plan, &down, tail.as_deref()),
            // An early answer may be followed by the wish that the client stops sending.
            Err(Broken::Cut(why))
                if plan.origin == OriginEnd::Early && why.contains("not a result of an error") =>
            {
                whole(plan, &down, None)
            }
            // What ends with its connection has no end that a proxy could trust: HAProxy sometimes tells it
            // by a reset, all bytes sent.
            Err(Broken::Cut(_)) if plan.down_framing == Framing::Close && down.at() == plan.down => {
                whole(plan, &down, None)
            }
            Err(Broken::Cut(why)) => Seen::Broken(why),
            Err(Broken::Wrong(why)) => Seen::Wrong(why),
            Err(Broken::Enough) => Seen::LeftByPlan,
        }
    }
}

/// The fields of a request that tell its plan.
fn fields(plan: &Plan, back: &str) -> [(&'static str, String); 5] {
    [
        ("x-id", plan.id.to_string()),
        ("x-backend", back.to_owned()),
        ("x-plan", plan.encode()),
        ("x-pad", padding(plan.id, plan.pad)),
        ("x-body", label(plan.id, Way::Up, plan.up)),
    ]
}

async fn send<W: tokio::io::AsyncWrite + Unpin>(
    to: &mut W,
    plan: &Plan,
    back: &str,
    rng: &mut Rng,
) -> std::io::Result<()> {
    let mut head = format!("{} /{} HTTP/1.1\r\nhost: localhost\r\n", plan.method, plan.id);
    for (name, value) in fields(plan, back) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if plan.up > 0 {
        match plan.up_framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            _ => head.push_str(&format!("content-length: {}\r\n", plan.up)),
        }
    }
    head.push_str("\r\n");
    let giving = Giving {
        content: &mut Content::new(plan.id, Way::Up),
        len: plan.up,
        pace: plan.send,
        framing: if plan.up > 0 { plan.up_framing } else { Framing::Length },
        trailer: plan.trailers.then(|| plan.id.to_string()),
        until: match plan.client {
            ClientEnd::LeaveSending(at) => Some(at),
            _ => None,
        },
    };
    http1::write(to, &head, giving, rng).await
}

/// Checks what the head of the origin's response brings.
fn check_head<'a>(plan: &Plan, status: u16, get: impl Fn(&str) -> Option<&'a str>) -> Result<(), String> {
    let id = get("x-id").unwrap_or_default();
    if id != plan.id.to_string() {
        return Err(format!("the response is that of request {id}"));
    }
    if status != plan.status {
        return Err(format!("the status is {status}"));
    }
    if get("x-pad").unwrap_or_default() != padding(plan.id ^ 1, plan.pad) {
        return Err("the field x-pad of the response is wrong".to_owned());
    }
    if get("x-body") != Some(&label(plan.id, Way::Down, plan.down)) {
        return Err("the field x-body of the response is wrong".to_owned());
    }
    match get("content-length") {
        Some(n) if n != plan.down.to_string() => Err(format!("content-length: {n}")),
        _ => Ok(()),
    }
}

/// Judges a body that ended as a whole one does.
fn whole(plan: &Plan, down: &Content, tail: Option<&str>) -> Seen {
    let len = if plan.answers_with_body() { plan.down } else { 0 };
    if down.at() != len {
        return Seen::Wrong(format!("a response body of {} bytes instead of {len} came as whole", down.at()));
    }
    if len > 0 && label(plan.id, Way::Down, len) != format!("{len}:{:016x}", down.hash()) {
        return Seen::Wrong("the hash of the response body is wrong".to_owned());
    }
    if tail.is_some_and(|t| t != plan.id.to_string()) {
        return Seen::Wrong("the trailer of the response is wrong".to_owned());
    }
    Seen::Answered
}

/// Reads the response of HTTP/1; tells whether the connection may go on.
async fn receive<R: tokio::io::AsyncRead + Unpin>(
    reader: &mut Reader<R>,
    plan: &Plan,
    down: &mut Content,
) -> (Seen, bool) {
    let head = loop {
        match reader.head().await {
            Ok(head) if head.first.starts_with("HTTP/1.1 1") => {}
            Ok(head) => break head,
            Err(Broken::Wrong(why)) => return (Seen::Wrong(why), false),
            Err(Broken::Cut(why)) => return (Seen::Broken(format!("before the response: {why}")), false),
            Err(Broken::Enough) => return (Seen::LeftByPlan, false),
        }
    };
    let status = head.first.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    if head.get("x-id").is_none() {
        return (Seen::Refused(status), false);
    }
    if let Err(why) = check_head(plan, status, |name| head.get(name)) {
        return (Seen::Wrong(why), false);
    }
    let mut keep = !head.get("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    let framing = match head.framing() {
        Err(why) => return (Seen::Wrong(why), false),
        Ok(_) if !plan.answers_with_body() => (Framing::Length, 0),
        Ok((Some(framing), n)) => (framing, n),
        Ok((None, _)) => {
            keep = false;
            (Framing::Close, 0)
        }
    };
    let until = match plan.client {
        ClientEnd::LeaveReading(at) if at > 0 => Some(at),
        _ => None,
    };
    match reader.body(framing, Taking { content: down, pace: plan.take, until }).await {
        Ok(body) => {
            let tail =
                body.trailers.iter().find(|(n, _)| n.eq_ignore_ascii_case("x-tail")).map(|(_, v)| v.as_str());
            (whole(plan, down, tail), keep)
        }
        Err(Broken::Cut(why)) => (Seen::Broken(why), false),
        Err(Broken::Wrong(why)) => (Seen::Wrong(why), false),
        Err(Broken::Enough) => (Seen::LeftByPlan, false),
    }
}
