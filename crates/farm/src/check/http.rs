//! The HTTP of a check: the request it sends, the answer as far as it has come.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use model::server::{Op, Target};
use wire::head::Head;
use wire::http1::{Body, Scanner, response_body};
use wire::method::Method;

use crate::At;
use crate::FarmWorker;
use crate::state::limits;

/// A request, all formats evaluated.
#[derive(Debug, Default)]
pub struct Request<'r> {
    /// Method.
    pub method: &'r [u8],
    /// Target.
    pub uri: Vec<u8>,
    /// Version, `HTTP/1.0` and the like.
    pub version: &'r [u8],
    /// Fields.
    pub headers: Vec<(&'r [u8], Vec<u8>)>,
    /// Body.
    pub body: Option<Vec<u8>>,
    /// `http-check send-state`.
    pub state: Option<String>,
    /// `http-send-name-header`: the field and the server's name.
    pub server: Option<(&'r [u8], &'r [u8])>,
    /// `option http-pretend-keepalive`.
    pub pretends: bool,
}

impl Request<'_> {
    /// The target, whose authority is the host that a field names.
    fn target(&self) -> Vec<u8> {
        if self.uri.is_empty() {
            return b"/".to_vec();
        }
        let host = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        let old = wire::uri::host_port(&self.uri);
        let start = wire::uri::host_offset(&self.uri);
        match (host, self.uri.get(..start), self.uri.get(start + old.len()..)) {
            (Some((_, host)), Some(before), Some(behind)) if !old.is_empty() => {
                [before, host, behind].concat()
            }
            _ => self.uri.clone(),
        }
    }

    /// Appends the request. Fields that frame it are ours alone.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut line = |parts: &[&[u8]]| {
            parts.iter().for_each(|p| out.extend_from_slice(p));
            out.extend_from_slice(b"\r\n");
        };
        let old = self.version.eq_ignore_ascii_case(b"HTTP/1.0");
        line(&[self.method, b" ", &self.target(), b" ", if old { b"HTTP/1.0" } else { b"HTTP/1.1" }]);
        let close: &[u8] = b"close";
        let kept: &[u8] = b"keep-alive";
        let mut connection = match self.pretends {
            true => old.then_some(kept),
            false => (!old).then_some(close),
        };
        // What the version means anyway goes without saying.
        let usual: &[u8] = if old { close } else { kept };
        for (name, value) in &self.headers {
            let is = |n: &str| name.eq_ignore_ascii_case(n.as_bytes());
            let replaced = self.server.is_some_and(|(own, _)| own.eq_ignore_ascii_case(name));
            if is("content-length") || is("transfer-encoding") || replaced || value.is_empty() {
                continue;
            }
            if is("connection") {
                let own = value.eq_ignore_ascii_case(usual);
                connection = Some(value.as_slice()).filter(|_| !own).or(connection.filter(|c| *c != close));
                continue;
            }
            line(&[&name.to_ascii_lowercase(), b": ", value]);
        }
        if let Some(state) = &self.state {
            line(&[b"x-haproxy-server-state: ", state.as_bytes()]);
        }
        let bodiless = matches!(self.method, b"GET" | b"HEAD" | b"OPTIONS" | b"DELETE");
        let length = self.body.as_ref().map(Vec::len).or((!bodiless).then_some(0));
        if let Some(length) = length {
            line(&[b"content-length: ", length.to_string().as_bytes()]);
        }
        if let Some(how) = connection {
            line(&[b"connection: ", how]);
        }
        if let Some((name, value)) = self.server {
            line(&[&name.to_ascii_lowercase(), b": ", value]);
        }
        line(&[]);
        out.extend_from_slice(self.body.as_deref().unwrap_or_default());
    }
}

/// How the proxy sees a server: the value of `X-Haproxy-Server-State`.
pub fn state(worker: &FarmWorker, at: At) -> String {
    let proxy = &*worker.farm.program.proxy(at.proxy);
    let server = &*proxy.server(at.server);
    let state = &server.state;
    let word = match state.op() {
        Op::Stopped => "DOWN",
        Op::Stopping => "NOLB",
        Op::Starting | Op::Running => "UP",
    };
    let mut out = String::from(word);
    // A server that counts as up without having earned it is below zero.
    let (limits, value) = (limits(server), state.health.load(Relaxed));
    let (up, down) = (state.op() != Op::Stopped, value > 0 && value < limits.rise);
    if up && value < limits.top() {
        let _ = write!(out, " {}/{}", value - limits.rise + 1, limits.fall);
    } else if !up && down {
        let _ = write!(out, " {value}/{}", limits.rise);
    }
    let (address, port) = match &**state.target.load() {
        Target::Inet(a) => (a.ip().to_string(), a.port().to_string()),
        Target::Unix { .. } => ("unix".to_owned(), String::new()),
        Target::None => Default::default(),
    };
    let usable = proxy.servers.iter().filter(|s| s.state.is_usable());
    let total: u32 = usable.map(|s| s.state.weight.load(Relaxed)).sum();
    let served: u32 = proxy.servers.iter().map(|s| s.state.served.load(Relaxed)).sum();
    let _ = write!(
        out,
        "; address={address}; port={port}; name={}/{}; node={}; weight={}/{total}; scur={}/{served}; qcur={}",
        proxy.name,
        server.name,
        worker.farm.program.global.node,
        state.weight.load(Relaxed),
        state.served.load(Relaxed),
        state.queued.load(Relaxed),
    );
    out
}

/// The body of an answer as far as it came, and whether that is all of it. `over`: no more can come.
pub fn body<'b>(head: &Head, method: Method, raw: &'b [u8], over: bool) -> (Cow<'b, [u8]>, bool) {
    match response_body(head, method) {
        Body::None => (Cow::Borrowed(&[]), true),
        Body::Length(n) => {
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            let have = raw.get(..n.min(raw.len())).unwrap_or_default();
            (Cow::Borrowed(have), over || have.len() == n)
        }
        Body::Chunked => {
            let (body, whole) = dechunk(raw);
            (Cow::Owned(body), over || whole)
        }
        Body::UntilClose => (Cow::Borrowed(raw), over),
    }
}

/// Takes chunks apart (RFC 9112 section 7.1) as far as they came; whether the last one was among them. What
/// is no chunk ends the body.
fn dechunk(raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let end = Scanner::default().data(raw, |piece| body.extend_from_slice(piece));
    (body, end.unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: &Request<'_>) -> String {
        let mut out = Vec::new();
        request.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn requests_look_as_haproxy_sends_them() {
        let plain = Request { method: b"OPTIONS", version: b"HTTP/1.0", ..Request::default() };
        assert_eq!(written(&plain), "OPTIONS / HTTP/1.0\r\n\r\n");
        let full = Request {
            method: b"POST",
            uri: b"/a?b=c".to_vec(),
            version: b"HTTP/1.1",
            headers: vec![(b"Host", b"foo".to_vec()), (b"Content-Length", b"5".to_vec())],
            body: Some(b"hello body".to_vec()),
            state: Some("UP".into()),
            ..Request::default()
        };
        assert_eq!(
            written(&full),
            "POST /a?b=c HTTP/1.1\r\nhost: foo\r\nx-haproxy-server-state: UP\r\ncontent-length: 10\r\n\
             connection: close\r\n\r\nhello body"
        );
        let named = Request {
            method: b"GET",
            version: b"HTTP/1.1",
            headers: vec![(b"X-Srv", b"mine".to_vec())],
            server: Some((b"X-Srv", b"s1")),
            ..Request::default()
        };
        assert_eq!(written(&named), "GET / HTTP/1.1\r\nconnection: close\r\nx-srv: s1\r\n\r\n");
        let pretending = Request { version: b"HTTP/1.0", pretends: true, ..named };
        assert_eq!(written(&pretending), "GET / HTTP/1.0\r\nconnection: keep-alive\r\nx-srv: s1\r\n\r\n");
        let kept = Request {
            method: b"GET",
            version: b"HTTP/1.1",
            headers: vec![(b"Connection", b"keep-alive".to_vec())],
            ..Request::default()
        };
        assert_eq!(written(&kept), "GET / HTTP/1.1\r\n\r\n");
        let bare = Request { method: b"PUT", version: b"HTTP/2.0", ..Request::default() };
        assert_eq!(written(&bare), "PUT / HTTP/1.1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }

    #[test]
    fn chunks_are_taken_apart_however_far_they_came() {
        let all = b"3\r\nwor\r\n2;x=y\r\nld\r\n0\r\n\r\n";
        assert_eq!(dechunk(all), (b"world".to_vec(), true));
        assert_eq!(dechunk(&all[..6]), (b"wor".to_vec(), false));
        assert_eq!(dechunk(&all[..1]), (Vec::new(), false));
        for n in 0..all.len() {
            assert!(b"world".starts_with(&dechunk(&all[..n]).0), "{n}");
        }
        assert_eq!(dechunk(b"ffffffffffffffff\r\nab"), (Vec::new(), true));
        assert_eq!(dechunk(b"zz\r\nab"), (Vec::new(), true));
    }
}
