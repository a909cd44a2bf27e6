//! Persistence: finding the server that a request belongs to, and telling the client about it.

use program::Proxy;

use crate::stream::Stream;

/// The server that the request's cookie names.
pub fn wanted(stream: &mut Stream<'_>, proxy: &Proxy) -> Option<u32> {
    let _ = (stream, proxy);
    None
}

/// Removes the cookie from a request that the server must not see it in.
pub fn clean_request(stream: &mut Stream<'_>, proxy: &Proxy) {
    let _ = (stream, proxy);
}

/// Sets or rewrites the cookie of a response.
pub fn response(stream: &mut Stream<'_>, proxy: &Proxy) {
    let _ = (stream, proxy);
}

/// `http-send-name-header`.
pub fn name_header(stream: &mut Stream<'_>, proxy: &Proxy) {
    let Some(name) = &proxy.send_name_header else { return };
    let Some(place) = &stream.place else { return };
    let server = place.config().name.clone();
    let _ = stream.txn.req.set(name, server.as_bytes());
}

/// The value of an RDP cookie at the start of a stream.
pub fn rdp_cookie<'b>(bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let _ = (bytes, name);
    None
}
