//! Heads into header lists of HTTP/2: the way back of `intake`. Whatever HTTP/1 says about its connection
//! stays behind (RFC 9113 section 8.2.2).

use crate::head::{Head, Known, trim};
use crate::hpack::{Encoder, Pseudo};
use crate::uri;

/// What a request is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline<'o> {
    /// The scheme where the target does not name one.
    pub scheme: &'o [u8],
    /// The protocol of an extended CONNECT (RFC 8441), where an upgrade is asked for and the peer takes it.
    pub protocol: Option<&'o [u8]>,
}

/// Writes the list of a request.
pub fn request(head: &Head, outline: Outline<'_>, encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.begin(out);
    let target = head.target();
    let websocket = outline.protocol.is_some();
    let connect = head.method_id() == crate::method::Method::Connect;
    // Rules may leave a path that begins with no slash: it is still no authority. Nothing is the root.
    let bare = !connect && !target.is_empty() && uri::form(target) == uri::Form::Authority;
    // RFC 9113 section 8.3.1: without the name of a user. Whoever named the host in a field only keeps that
    // field.
    let authority = match uri::host_port(target) {
        _ if bare && !websocket => b"",
        // So is the path that a rule gave a CONNECT, which has an authority in any case (section 8.5).
        b"" if websocket || connect => head.first(Known::Host).unwrap_or_default(),
        authority => authority,
    };
    let method = if outline.protocol.is_some() { b"CONNECT" } else { head.method() };
    encoder.pseudo(Pseudo::Method, method, out);
    if let Some(protocol) = outline.protocol {
        encoder.pseudo(Pseudo::Protocol, protocol, out);
    }
    if !connect {
        encoder.pseudo(Pseudo::Scheme, uri::scheme(target).unwrap_or(outline.scheme), out);
        match uri::path_and_query(target) {
            _ if bare => encoder.pseudo(Pseudo::Path, target, out),
            path @ ([b'/', ..] | b"*") => encoder.pseudo(Pseudo::Path, path, out),
            b"" if head.method_id() == crate::method::Method::Options => {
                encoder.pseudo(Pseudo::Path, b"*", out)
            }
            // A query behind the authority: RFC 9113 section 8.3.1 wants a path, and an empty one is the
            // root.
            query => encoder.pseudo(Pseudo::Path, &[b"/", query].concat(), out),
        }
    }
    if !authority.is_empty() {
        encoder.pseudo(Pseudo::Authority, authority, out);
    }
    fields(head, encoder, out, |known| {
        (known == Known::Host && !authority.is_empty()) || (websocket && known == Known::SecWebsocketKey)
    });
}

/// Writes the list of a response with this status.
pub fn response(head: &Head, status: u16, encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.begin(out);
    encoder.status(status, out);
    let tunnel = status != head.status();
    fields(head, encoder, out, |known| tunnel && known == Known::SecWebsocketAccept);
}

/// Writes a trailer section; the start line of `head` means nothing.
pub fn trailers(head: &Head, encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.begin(out);
    fields(head, encoder, out, |known| matches!(known, Known::Host | Known::ContentLength));
}

const BOUND: u64 = Known::Connection.bit()
    | Known::KeepAlive.bit()
    | Known::ProxyConnection.bit()
    | Known::TransferEncoding.bit()
    | Known::Upgrade.bit()
    | Known::Http2Settings.bit()
    | Known::Te.bit();

/// What only `connection` names goes along: otherwise a client could take away fields that were added here,
/// or Host.
fn fields(head: &Head, encoder: &mut Encoder, out: &mut Vec<u8>, skip: impl Fn(Known) -> bool) {
    for field in head.fields.iter().filter(|field| !field.removed) {
        let known = field.known;
        let (name, value) = (field.name.of(&head.bytes), field.value.of(&head.bytes));
        if known.bit() & BOUND != 0 {
            if known == Known::Te && head.has_token(Known::Te, b"trailers") {
                encoder.field(known, name, b"trailers", out);
            }
            continue;
        }
        if skip(known) {
            continue;
        }
        // Values that rules made may begin or end with what none may here (RFC 9113 section 8.2.1).
        encoder.field(known, name, trim(value), out);
    }
}
