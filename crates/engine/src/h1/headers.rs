//! Heads on their way: what is removed and added before a request goes to a server, and before a
//! response goes to a client.

use std::io::Write;

use model::Peer;
use program::global::CaseMap;
use program::options::{AddressHeader, Connection};
use program::{Program, Proxy};
use rt::Buf;
use wire::head::{Head, Known};
use wire::method::Version;

use super::Next;
use crate::stream::Stream;
use wire::http1::{self, Body};

/// The head does not fit a buffer.
#[derive(Debug)]
pub struct TooLarge;

/// Prepares the request head for the server and stages its bytes.
///
/// # Errors
/// The head became too large.
pub fn send_request(stream: &mut Stream<'_>) -> Result<(), TooLarge> {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    if !stream.http.edited {
        stream.http.edited = true;
        edit_request(stream);
    }
    let proxy = program.proxy(stream.backend_index());
    crate::persist::name_header(stream, proxy);
    if let Some(call) = stream.upstream.as_ref().and_then(|up| up.call.as_ref()) {
        let mut head = Head::request();
        head.copy_from(&stream.txn.req);
        // The scheme that HAProxy takes where the client named none.
        call.submit(Some(head), b"https");
        return Ok(());
    }
    let adjust = proxy.options.case_adjust_server.then_some(&program.global.case_adjust);
    stage(&stream.txn.req, adjust, &mut stream.to_server)
}

/// Appends a head to what is to be sent, if it fits.
fn stage(head: &Head, adjust: Option<&CaseMap>, staged: &mut Option<Buf>) -> Result<(), TooLarge> {
    let buf = staged.get_or_insert_default();
    let length = head.wire_len();
    if buf.spare() < length {
        buf.compact();
    }
    if buf.spare() < length {
        return Err(TooLarge);
    }
    write(head, adjust, &mut |part| {
        buf.push(part);
    });
    Ok(())
}

/// A WebSocket handshake that was let pass without a key gets one: servers can't do without.
fn websocket_key(req: &mut Head) {
    if !req.has(Known::SecWebsocketKey) && req.has_token(Known::Upgrade, b"websocket") {
        let _ = req.append(b"sec-websocket-key", &crate::h2::websocket_key());
    }
}

fn edit_request(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let (front, back) = (program.proxy(stream.client.conn().frontend), program.proxy(stream.backend_index()));
    crate::persist::clean_request(stream, back);
    let upgrade = http1::upgrades(&stream.txn.req);
    let keep_server = keeps_server(front, back);
    if upgrade {
        websocket_key(&mut stream.txn.req);
    }
    let (src, dst) = (stream.src(), stream.dst());
    let req = &mut stream.txn.req;
    hop_by_hop(req, upgrade);
    address_header(req, front.forwardfor.as_ref(), back.forwardfor.as_ref(), src);
    address_header(req, front.originalto.as_ref(), back.originalto.as_ref(), dst);
    if upgrade {
        // `Connection` says so already.
    } else if !keep_server && !back.options.http_pretend_keepalive {
        // HTTP/1.0 closes unless told otherwise.
        if req.version() >= Version::HTTP_11 {
            let _ = req.append(b"connection", b"close");
        }
    } else if req.version() < Version::HTTP_11 && !req.has(Known::TransferEncoding) {
        let _ = req.append(b"connection", b"keep-alive");
    }
    if front.unique_id_header.is_some() || front.forwarded.is_some() || back.forwarded.is_some() {
        super::forwarded::add(stream, front, back);
    }
    if stream.client.conn().early.get() {
        super::early::tell(stream);
    }
}

/// Takes `close` and `keep-alive` out of `Connection`, an `Upgrade` that the connection does not announce, and what in
/// `TE` means nothing beyond one connection. Whatever else the sender listed stays where it is, as HAProxy leaves it.
fn hop_by_hop(head: &mut Head, upgrade: bool) {
    if head.has(Known::Upgrade) && !upgrade {
        head.remove_all(Known::Upgrade);
    }
    if head.has(Known::Te) {
        head.retain_values(Known::Te, |value| value == b"trailers");
    }
    if head.has(Known::Connection) {
        let is = |value: &[u8], token: &[u8]| value.eq_ignore_ascii_case(token);
        head.retain_values(Known::Connection, |value| {
            !is(value, b"close") && !is(value, b"keep-alive") && (upgrade || !is(value, b"upgrade"))
        });
    }
}

/// Adds a field that says where a request came from.
fn address_header(req: &mut Head, front: Option<&AddressHeader>, back: Option<&AddressHeader>, peer: Peer) {
    let Some(ip) = peer.ip() else { return };
    let Some(setting) = AddressHeader::that_applies(front, back, ip, |name| req.has(name)) else { return };
    let mut text = [0u8; 48];
    let mut rest = &mut text[..];
    let room = rest.len();
    if write!(rest, "{ip}").is_ok() {
        let n = room - rest.len();
        let _ = req.append(&setting.name, &text[..n]);
    }
}

/// Whether the connection to the server may be kept after the response.
pub fn keeps_server(front: &Proxy, back: &Proxy) -> bool {
    front.options.connection.max(back.options.connection) == Connection::KeepAlive
}

/// Whether the client's connection may be kept, as far as the request and the options say.
pub fn may_keep_client(stream: &Stream<'_>) -> bool {
    let front = stream.frontend();
    let close = front.options.connection.max(stream.backend().options.connection) == Connection::Close;
    let stopping =
        stream.worker.shared.program.world.process.stopping.load(std::sync::atomic::Ordering::Relaxed);
    stream.txn.has_req
        && stream.http.client_keeps
        && !close
        && !stopping
        && !stream.client.socket.is_hung_up()
}

/// Sets `Connection` of a response for what is to become of the client connection: said where the versions of
/// request and response do not imply it.
pub fn client_connection(stream: &mut Stream<'_>, next: Next) {
    let old_request = stream.txn.has_req && stream.txn.req.version() < Version::HTTP_11;
    let res = &mut stream.txn.res;
    let old_response = res.version() < Version::HTTP_11;
    match next {
        Next::Close if !old_response => {
            let _ = res.append(b"connection", b"close");
        }
        Next::KeepAlive if old_request || old_response => {
            let _ = res.append(b"connection", b"keep-alive");
        }
        Next::Close | Next::KeepAlive | Next::Http2 => {}
    }
}

/// Prepares a server's response head for the client and stages its bytes.
///
/// # Errors
/// The head became too large.
pub fn send_response(stream: &mut Stream<'_>, next: Next) -> Result<(), TooLarge> {
    let upgrade = http1::upgrades(&stream.txn.res);
    hop_by_hop(&mut stream.txn.res, upgrade);
    client_connection(stream, next);
    stage_response(stream)
}

fn stage_response(stream: &mut Stream<'_>) -> Result<(), TooLarge> {
    let worker = stream.worker.clone();
    let adjust = client_case(stream, &worker.shared.program);
    stage(&stream.txn.res, adjust, &mut stream.to_client)
}

/// Stages the head of a response that opens a tunnel.
///
/// # Errors
/// The head became too large.
pub fn send_tunnel(stream: &mut Stream<'_>, upgrade: bool) -> Result<(), TooLarge> {
    hop_by_hop(&mut stream.txn.res, upgrade);
    stage_response(stream)
}

/// The names that the client gets in other case.
fn client_case<'p>(stream: &Stream<'_>, program: &'p Program) -> Option<&'p CaseMap> {
    let front = program.proxy(stream.client.conn().frontend);
    front.options.case_adjust_client.then_some(&program.global.case_adjust)
}

/// Appends the response head as the client is to see it.
pub fn write_response(stream: &Stream<'_>, out: &mut Vec<u8>) {
    let adjust = client_case(stream, &stream.worker.shared.program);
    write(&stream.txn.res, adjust, &mut |part| out.extend_from_slice(part));
}

/// Writes a head in HTTP/1 form, names as `adjust` has them.
fn write(head: &Head, adjust: Option<&CaseMap>, put: &mut impl FnMut(&[u8])) {
    match adjust {
        None => http1::write_head(head, put),
        Some(map) => http1::write_head_as(head, |name| adjusted(map, name), put),
    }
}

fn adjusted<'a>(map: &'a CaseMap, name: &'a [u8]) -> &'a [u8] {
    map.iter().find(|(lower, _)| lower.eq_ignore_ascii_case(name)).map_or(name, |(_, to)| to)
}

/// Notes what the request head says of framing and connection, before rules change it.
pub fn note_request(stream: &mut Stream<'_>) {
    let body = http1::request_body(&stream.txn.req);
    stream.http.client_keeps = http1::keeps_alive(&stream.txn.req);
    stream.http.body_received = matches!(body, Body::None);
    stream.http.request_body = body;
    let relax = stream.frontend().options.unsafe_request;
    stream.upload = crate::pump::Half::new(crate::pump::Framing::of(body, relax));
}
