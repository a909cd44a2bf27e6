//! Heads on their way: what is removed and added before a request goes to a server, and before a
//! response goes to a client.

use std::net::IpAddr;

use model::Peer;
use program::global::CaseMap;
use program::options::{AddressHeader, Connection};
use program::{Program, Proxy};
use rt::Buf;
use wire::head::{Head, Known};
use wire::method::Version;

use super::Next;
use crate::departure::is_sent_away;
use crate::stream::Stream;
use wire::http1::{self, Body};

/// The head does not fit a buffer, or can't be told in the server's terms.
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
    let proxy = &*program.proxy(stream.backend_index());
    crate::persist::name_header(stream, proxy);
    stream.txn.up.sent += without(stream.txn.req.counted_len(), stream.http.request_added);
    if let Some(call) = stream.upstream.as_ref().and_then(|up| up.call.as_ref()) {
        let mut head = Head::request();
        head.copy_from(&stream.txn.req);
        if stream.txn.server_conn.http_major < 2 {
            let params = super::cgi::params(stream).ok_or(TooLarge)?;
            call.submit_with(head, params);
            return Ok(());
        }
        let scheme = head.default_scheme();
        let passed = !proxy.options.drop_request_trailers;
        let part = stream.client.part.as_ref().filter(|_| passed);
        let trailers = part.and_then(|part| part.receipt.request_trailers.borrow().clone());
        call.submit(Some(head), scheme, trailers);
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
        let _ = req.append(b"sec-websocket-key", &mux::websocket::key());
    }
}

/// Bytes that a head counts for, but for those that Harrier added to it or, with a negative number, took from
/// it.
pub fn without(counted: usize, added: i64) -> u64 {
    u64::try_from(signed(counted) - added).unwrap_or(0)
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Bytes that a head counts for, but for what it says of keeping the connection.
pub fn counted(head: &Head) -> usize {
    let mut bytes = head.counted_len();
    if head.has(Known::Connection) {
        let says = |value: &[u8]| matches!(value, b"close" | b"keep-alive");
        let fields = head.fields().filter(|(_, name, value)| *name == b"connection" && says(value));
        bytes -= fields.map(|(_, name, value)| name.len() + value.len()).sum::<usize>();
    }
    bytes
}

/// Adds what options say of the client and the request. Rules do not see it, nor does what names a server;
/// stick tables, filters and what balances do.
pub fn add_own(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let front = program.configured(stream.client.front);
    let back = &*program.proxy(stream.backend_index());
    if front.unique_id_format.is_some() || back.forwarded.is_some() {
        super::forwarded::add(stream, front, back);
    }
    let (src, dst) = (stream.src(), stream.dst());
    let req = &mut stream.txn.req;
    address_header(req, front.forwardfor.as_ref(), back.forwardfor.as_ref(), src);
    address_header(req, front.originalto.as_ref(), back.originalto.as_ref(), dst);
    if is_framed(stream) && !stream.txn.req.has(Known::TransferEncoding) {
        // Filters see that there is a body.
        let _ = stream.txn.req.append(b"transfer-encoding", b"chunked");
    }
}

fn edit_request(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let program = &worker.shared.program;
    let front = program.configured(stream.client.front);
    let back = &*program.proxy(stream.backend_index());
    crate::persist::clean_request(stream, back);
    let upgrade = http1::upgrades(&stream.txn.req);
    // What HTTP/1.0 says of chunks is not to be trusted (RFC 9112 section 6.1), nor is a connection that it
    // was said on.
    let doubtful = stream.txn.req.version() < Version::HTTP_11 && stream.txn.req.has(Known::TransferEncoding);
    let keep_server = keeps_server(front, back) && !doubtful;
    if back.options.drop_request_trailers {
        stream.upload.drop_trailers();
    }
    let before = stream.txn.req.counted_len();
    // What the client said of it rules have not seen: this is theirs.
    stream.http.server_ends = ends(&stream.txn.req);
    if upgrade {
        websocket_key(&mut stream.txn.req);
    }
    hop_by_hop(&mut stream.txn.req, upgrade);
    let req = &mut stream.txn.req;
    if upgrade {
        // `Connection` says so already.
    } else if stream.http.server_ends || (!keep_server && !back.options.http_pretend_keepalive) {
        // HTTP/1.0 closes unless told otherwise.
        if req.version() >= Version::HTTP_11 {
            let _ = req.append(b"connection", b"close");
        }
    } else if req.version() < Version::HTTP_11 {
        let _ = req.append(b"connection", b"keep-alive");
    }
    stream.http.server_ends |= doubtful;
    // What is said for one connection only counts for nothing.
    stream.http.request_added += signed(req.counted_len()) - signed(before);
    if is_framed(stream) {
        // The framing that a stream of HTTP/2 gets stands behind everything that rules and options add.
        stream.txn.req.remove_all(Known::TransferEncoding);
        let _ = stream.txn.req.append(b"transfer-encoding", b"chunked");
    }
    if stream.client.conn().early.get() {
        super::early::tell(stream);
    }
}

/// Whether `Connection` says that the connection ends: after the rules, that they want it to.
pub fn ends(head: &Head) -> bool {
    head.has(Known::Connection) && head.has_token(Known::Connection, b"close")
}

/// Takes out what means nothing beyond one connection: `TE` but for trailers, and what [`hide_connection`]
/// hides.
fn hop_by_hop(head: &mut Head, upgrade: bool) {
    if head.has(Known::Te) {
        head.retain_values(Known::Te, |value| value == b"trailers");
    }
    hide_connection(head, upgrade);
}

/// Takes `close` and `keep-alive` out of `Connection`, and an `Upgrade` that the connection does not
/// announce. Whatever else the sender listed stays where it is. Rules, captures and logs see the message
/// without them, as with HAProxy.
pub fn hide_connection(head: &mut Head, upgrade: bool) {
    if head.has(Known::Upgrade) && !upgrade {
        head.remove_all(Known::Upgrade);
    }
    if head.has(Known::Connection) {
        let mut fields = head.all(Known::Connection);
        // What nearly every sender says, alone and in these letters.
        if let Some((at, b"keep-alive" | b"close")) = fields.next()
            && fields.next().is_none()
        {
            head.remove(at);
            return;
        }
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
    let _ = match ip {
        IpAddr::V4(ip) => req.append(&setting.name, base::text::ipv4(ip, &mut [0; base::text::IPV4_MAX])),
        IpAddr::V6(ip) => req.append(&setting.name, ip.to_string().as_bytes()),
    };
}

/// Whether the connection to the server may be kept after the response.
pub fn keeps_server(front: &Proxy, back: &Proxy) -> bool {
    front.options.connection != Connection::ServerClose && back.options.connection == Connection::KeepAlive
}

/// Whether the client's connection may be kept, as far as the request and the options say.
pub fn may_keep_client(stream: &Stream<'_>) -> bool {
    // A backend's `option httpclose` concerns its servers only.
    let close = stream.frontend().options.connection == Connection::Close;
    let stopping =
        is_sent_away(&stream.worker, &stream.client.session) || stream.client.is_frontend_stopped();
    // A client that has closed its side is told nothing of it: the connection ends where its next request
    // would begin.
    let odd = stream.client.part.is_none() && {
        let threshold = stream.worker.shared.program.global.tune.glitches.front;
        mux::glitches::part(stream.client.conn().glitches.get(), threshold)
    };
    stream.txn.has_req && stream.http.client_keeps && !close && !stopping && !odd
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
    count_response(stream);
    // What a server says of other protocols is passed on as it is; then the message says nothing of the
    // connection.
    hop_by_hop(&mut stream.txn.res, true);
    if !stream.txn.res.has_token(Known::Connection, b"upgrade") {
        client_connection(stream, next);
        tell_chunks_last(stream);
    }
    stage_response(stream)
}

/// Whether a stream of HTTP/2 gave its response the framing of HTTP/1.
pub fn response_is_framed(stream: &Stream<'_>) -> bool {
    let call = stream.upstream.as_ref().and_then(|up| up.call.as_ref());
    call.is_some_and(|call| !call.was_chunked()) && stream.http.response_body == Body::Chunked
}

/// Chunks that are made here for a server of HTTP/2 or a service are told behind all other fields, as HAProxy
/// does it.
fn tell_chunks_last(stream: &mut Stream<'_>) {
    let made = stream.service.is_some() || response_is_framed(stream);
    let res = &mut stream.txn.res;
    if made && res.has(Known::TransferEncoding) && res.has(Known::Connection) {
        res.remove_all(Known::TransferEncoding);
        let _ = res.append(b"transfer-encoding", b"chunked");
    }
}

/// Counts the head of a server's response on its way to the client.
fn count_response(stream: &mut Stream<'_>) {
    stream.txn.down.sent += without(stream.txn.res.counted_len(), stream.http.response_added);
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
    count_response(stream);
    hop_by_hop(&mut stream.txn.res, upgrade);
    stage_response(stream)
}

/// The names that the client gets in other case.
fn client_case<'p>(stream: &Stream<'_>, program: &'p Program) -> Option<&'p CaseMap> {
    let front = program.configured(stream.client.front);
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

/// Takes `close` and `keep-alive` out of `Connection` once they are known: they concern one connection only,
/// and rules never see them.
pub fn forget_persistence(head: &mut Head) {
    if head.has(Known::Connection) {
        let says = |value: &[u8], token: &[u8]| value.eq_ignore_ascii_case(token);
        head.retain_values(Known::Connection, |value| !says(value, b"close") && !says(value, b"keep-alive"));
    }
}

/// Notes what the request head says of framing and connection, before rules change it.
pub fn note_request(stream: &mut Stream<'_>) {
    let body = http1::request_body(&stream.txn.req);
    stream.http.client_keeps = http1::keeps_alive(&stream.txn.req);
    let upgrade = http1::upgrades(&stream.txn.req);
    hide_connection(&mut stream.txn.req, upgrade);
    forget_persistence(&mut stream.txn.req);
    stream.http.body_received = matches!(body, Body::None);
    stream.http.request_body = body;
    let maxrewrite = stream.worker.shared.program.global.tune.maxrewrite;
    let multiplexed = stream.client.part.is_some();
    stream.http.request_taken = crate::room::taken(&stream.txn.req, body, multiplexed, maxrewrite);
    let relax = stream.frontend().options.unsafe_request;
    stream.upload = link::pump::Half::new(link::pump::Framing::of(body, relax));
    stream.upload.multiplexed = multiplexed;
    let framed = is_framed(stream);
    stream.http.request_added = if framed { signed(b"transfer-encoding: chunked".len() - 2) } else { 0 };
    stream.txn.up.received += without(stream.txn.req.counted_len(), stream.http.request_added);
    if framed {
        // Rules see what the client sent.
        stream.txn.req.remove_all(Known::TransferEncoding);
    }
}

/// Whether a stream of HTTP/2 gives its request the framing of HTTP/1.
fn is_framed(stream: &Stream<'_>) -> bool {
    stream.upload.multiplexed && matches!(stream.http.request_body, Body::Chunked)
}
