//! TLS handshakes on connections: with clients right after the PROXY header, with servers right after
//! connecting. What came of one is given back: its facts, or a number and a text for logs and rules.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use model::secured::{Material, Secured};
use rt::{Socket, Timer};
use tls::stream::Sizes;
use tls::verify::Expected;
use tls::{Facts, Failure, Handshake, Step, faults};

/// What came of a handshake with a server.
pub type Shaken = Result<(Box<tls::Stream>, Arc<Secured>), Refused>;

/// Why there is no TLS with a server.
#[derive(Debug)]
pub enum Refused {
    /// The deadline passed.
    TimedOut,
    /// The handshake failed: number and text of the connection's error, and what was found so far.
    Failed(u8, String, Arc<Secured>),
}

impl Refused {
    /// There are as many connections with TLS as there may be.
    pub fn too_many() -> Refused {
        Refused::Failed(number::TOO_MANY, text(number::TOO_MANY, None), Arc::new(Secured::default()))
    }
}

/// Shakes hands with a server. `watch` ends it early.
pub async fn connect(
    sizes: Sizes,
    socket: &Socket,
    mut handshake: Handshake,
    timer: &mut Timer,
    mut watch: impl FnMut(&mut Context<'_>) -> bool,
) -> Shaken {
    let outcome = poll_fn(|cx| {
        loop {
            let wait = match handshake.step(socket) {
                Step::Done(stream, facts) => return Poll::Ready(Ok((stream, facts))),
                Step::Failed(why) => return Poll::Ready(Err(Some(why))),
                Step::Read => socket.poll_readable(cx),
                Step::Write => socket.poll_writable(cx),
            };
            if wait.is_pending() {
                if watch(cx) {
                    return Poll::Ready(Err(Some(Failure::Empty)));
                }
                return timer.poll_expired(cx).map(|()| Err(None));
            }
        }
    })
    .await;
    match outcome {
        Ok((mut stream, facts)) => {
            stream.set_sizes(sizes);
            Ok((stream, Arc::new(secured(*facts))))
        }
        Err(None) => Err(Refused::TimedOut),
        Err(Some(why)) => {
            let (number, fault) = describe_server(&why);
            let facts = Secured { fault: fault.map_or(0, |f| f.0), ..secured(handshake.so_far()) };
            let facts = if facts.cipher.is_empty() { Secured { cipher: "(NONE)", ..facts } } else { facts };
            // What the library made of it HAProxy tells of clients only.
            let text = text(number, None);
            // A server that closes without a word has failed the handshake; one that takes its leave has
            // left.
            let silent = number == number::EMPTY && !matches!(why, Failure::Farewell);
            Err(Refused::Failed(if silent { number::HANDSHAKE } else { number }, text, Arc::new(facts)))
        }
    }
}

/// Why there is no TLS with a client.
#[derive(Debug)]
pub struct Rejected {
    /// The number of the connection's error, as `fc_err` has it.
    pub number: u8,
    /// What is said of it.
    pub text: String,
    /// What was found before.
    pub facts: Secured,
}

impl Rejected {
    fn new(why: &Failure, heard: bool, answered: bool, facts: Facts) -> Rejected {
        let (number, fault) = describe(why, heard, answered);
        let fault = fault.map(|(code, text)| faults::of_version(code, facts.version).unwrap_or((code, text)));
        // A hello of which no version is spoken leaves OpenSSL with the one that it has for all of them.
        let old = fault.is_some_and(|(code, _)| code == faults::UNSUPPORTED);
        let facts = if old { Facts { version: "TLSv1.2", ..facts } } else { facts };
        // TLS 1.3 has a cipher before anybody is believed.
        let secured = match secured(facts) {
            early if early.version == "TLSv1.3" && !early.cipher.is_empty() => early,
            none => Secured { cipher: "(NONE)", bits: 0, ..none },
        };
        let facts = Secured { fault: fault.map_or(0, |f| f.0), ..secured };
        Rejected { number, text: text(number, fault), facts }
    }

    /// Whether the client let the time pass.
    pub fn is_late(&self) -> bool {
        self.number == number::TIMEOUT
    }

    /// Whether the client said nothing that was wrong, if anything.
    pub fn is_silent(&self) -> bool {
        matches!(self.number, number::EMPTY | number::TIMEOUT)
    }
}

/// Shakes hands with a client until the timer expires. `ends` says that nobody wants it any more.
///
/// # Errors
/// See [`Rejected`].
pub async fn accept(
    sizes: Sizes,
    socket: &Socket,
    mut handshake: Handshake,
    timer: &mut Timer,
    ends: impl Fn() -> bool,
) -> Result<(Box<tls::Stream>, Box<Facts>), Rejected> {
    // Whether the client was answered in an earlier turn than the one at hand.
    let mut answered = false;
    let outcome = poll_fn(|cx| {
        if ends() {
            return Poll::Ready(Err(Failure::Aborted(None)));
        }
        loop {
            let wait = match handshake.step(socket) {
                Step::Done(stream, facts) => return Poll::Ready(Ok((stream, facts))),
                Step::Failed(why) => return Poll::Ready(Err(why)),
                Step::Read => socket.poll_readable(cx),
                Step::Write => socket.poll_writable(cx),
            };
            if wait.is_pending() {
                answered = handshake.has_answered();
                return timer
                    .poll_expired(cx)
                    .map(|()| Err(Failure::Aborted(Some(io::ErrorKind::TimedOut.into()))));
            }
        }
    })
    .await;
    match outcome {
        Ok((mut stream, facts)) => {
            stream.set_sizes(sizes);
            Ok((stream, facts))
        }
        Err(why) => Err(Rejected::new(&why, handshake.has_heard(), answered, handshake.so_far())),
    }
}

/// The facts as the rest of the program knows them.
pub fn secured(facts: Facts) -> Secured {
    Secured {
        version: facts.version,
        cipher: facts.cipher.0,
        bits: facts.cipher.1,
        group: facts.group,
        alpn: facts.alpn,
        sni: facts.sni,
        resumed: facts.resumed,
        error: facts.findings.leaf,
        authority_error: facts.findings.authority,
        authority_depth: facts.findings.depth,
        verdict: facts.findings.verdict,
        peer: facts.peer,
        root: facts.root,
        own_name: facts.own.as_ref().map(|e| e.identity.name.clone()),
        own: facts.own.map(|e| e.identity.leaf.clone()),
        hello: facts.hello,
        early: facts.early,
        material: facts.material.map(|m| {
            let (client_random, server_random) = (m.client_random, m.server_random);
            let material =
                Material { client_random, server_random, session_id: m.session_id, secrets: m.secrets };
            Box::new(material)
        }),
        fault: 0,
    }
}

/// As [`describe`], of a server.
fn describe_server(why: &Failure) -> (u8, Option<(u32, &'static str)>) {
    match why {
        Failure::Untrusted(found) => {
            let number = match found.wrong_host {
                Some(Expected::Asked) => number::NAME,
                Some(Expected::Configured) => number::CONFIGURED_NAME,
                None => number::HANDSHAKE,
            };
            (number, Some((0x0A00_0086, "certificate verify failed")))
        }
        why => describe(why, true, false),
    }
}

/// Numbers of errors of handshakes, as `fc_err` and `bc_err` have them (manual, table of `fc_err_str`).
pub mod number {
    /// The peer closed before the handshake was over.
    pub const EMPTY: u8 = 24;
    /// The connection broke.
    pub const ABORT: u8 = 25;
    /// It took too long.
    pub const TIMEOUT: u8 = 26;
    /// There are as many as there may be.
    pub const TOO_MANY: u8 = 27;
    /// An authority of the peer's certificate is not trusted.
    pub const AUTHORITY: u8 = 30;
    /// The peer's certificate is not.
    pub const CERTIFICATE: u8 = 31;
    /// The server's certificate is for another name than `verifyhost` says.
    pub const CONFIGURED_NAME: u8 = 32;
    /// The server's certificate is for another name than it was asked for.
    pub const NAME: u8 = 33;
    /// Anything else.
    pub const HANDSHAKE: u8 = 34;
}

/// What is said of an error.
fn text(number: u8, fault: Option<(u32, &'static str)>) -> String {
    match number {
        number::EMPTY => "Connection closed during SSL handshake".to_owned(),
        number::ABORT => "Connection error during SSL handshake".to_owned(),
        number::TIMEOUT => "Timeout during SSL handshake".to_owned(),
        number::TOO_MANY => "Too many SSL connections".to_owned(),
        number::AUTHORITY => "SSL client CA chain cannot be verified".to_owned(),
        number::CERTIFICATE => "SSL client certificate not trusted".to_owned(),
        number::CONFIGURED_NAME => {
            "Server presented an SSL certificate different from the configured one".to_owned()
        }
        number::NAME => "Server presented an SSL certificate different from the expected one".to_owned(),
        _ => match fault {
            Some((code, text)) => format!("SSL handshake failure (error:{code:08X}:SSL routines::{text})"),
            None => "SSL handshake failure".to_owned(),
        },
    }
}

/// The number of the connection's error, and what OpenSSL would say. Who leaves with his hello still warm has
/// said nothing yet; one that was `answered` before and says nothing more has broken the handshake off.
fn describe(why: &Failure, heard: bool, answered: bool) -> (u8, Option<(u32, &'static str)>) {
    match why {
        Failure::Aborted(None) if answered => (number::HANDSHAKE, None),
        Failure::Empty | Failure::Farewell => (number::EMPTY, None),
        Failure::Aborted(Some(e)) if e.kind() == io::ErrorKind::TimedOut => (number::TIMEOUT, None),
        // OpenSSL tells a connection that was reset from one that was closed.
        Failure::Aborted(Some(e)) if e.kind() == io::ErrorKind::ConnectionReset => (number::HANDSHAKE, None),
        Failure::Aborted(Some(_)) if heard => (number::ABORT, None),
        Failure::Aborted(_) => (number::EMPTY, None),
        Failure::Http => (number::HANDSHAKE, Some((0x0A00_009C, "http request"))),
        Failure::Fallback => (number::HANDSHAKE, Some((0x0A00_0175, "inappropriate fallback"))),
        Failure::NoCertificate => (number::HANDSHAKE, Some((0x0A00_00EA, "callback failed"))),
        Failure::Untrusted(found) if found.verdict_depth != 0 => {
            (number::AUTHORITY, Some((0x0A00_0086, "certificate verify failed")))
        }
        Failure::Untrusted(_) => (number::CERTIFICATE, Some((0x0A00_0086, "certificate verify failed"))),
        Failure::Protocol(e) => (number::HANDSHAKE, Some(faults::openssl(e))),
    }
}
