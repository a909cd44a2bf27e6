//! Persistence by cookies (manual, `cookie`): finding the server that a request belongs to, hiding or rewriting
//! the cookie on its way, and telling the client which server it got.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use model::server::Target;
use program::Proxy;
use program::persist::{Cookie, CookieMode};
use wire::method::Method;

use crate::stream::Stream;

/// Separates the server's name from the rest of a value (`prefix`).
const PREFIX: u8 = b'~';
/// Separates the server's name from its dates (`maxidle`, `maxlife`).
const DATES: u8 = b'|';

/// The server that the request's cookie names; notes what the cookie was worth for the log. Where a rule has found the
/// server already (`ruled`) the cookie goes unused.
pub fn wanted(stream: &mut Stream<'_>, proxy: &Proxy, ruled: bool) -> Option<u32> {
    if ruled {
        stream.http.cookie.is_needless();
    }
    if let Some(name) = &proxy.rdp_cookie {
        return rdp_wanted(stream, proxy, name);
    }
    let cookie = proxy.cookie.as_ref()?;
    if !stream.txn.has_req {
        return None;
    }
    if cookie.mode != CookieMode::Passive && stream.txn.term.set_cookie == b'-' {
        stream.txn.term.set_cookie = b'N';
    }
    let Some(value) = stream.txn.req.cookie(&cookie.name) else {
        stream.txn.term.cookie = b'N';
        return None;
    };
    let (name, dates) = split(cookie, value);
    let mut parts = dates.unwrap_or_default().split(|b| *b == DATES).map(undate);
    let last = parts.next().flatten();
    let needless = ruled;
    stream.http.cookie = Known { named: Some(name.into()), first: parts.next().flatten(), last, needless };
    if ruled {
        stream.txn.term.cookie = b'U';
        return None;
    }
    if let Some(letter) = outdated(cookie, dates) {
        stream.txn.term.cookie = letter;
        return None;
    }
    let found = proxy.servers.iter().position(|s| is_called(s, name));
    let Some(index) = found else {
        stream.txn.term.cookie = b'I';
        return None;
    };
    let up = proxy.servers[index].state.is_up();
    let insists = stream.txn.decisions.force_persist || proxy.options.persist;
    stream.txn.term.cookie = if up { b'V' } else { b'D' };
    if stream.txn.decisions.ignore_persist || !(up || insists) {
        return None;
    }
    u32::try_from(index).ok()
}

/// Whether a server is the one of this name in the cookie.
fn is_called(server: &program::Server, name: &[u8]) -> bool {
    if server.state.is_removed() {
        return false;
    }
    match &server.cookie {
        Some(own) => **own == *name,
        None => server.state.dynamic_cookie.load().as_ref().is_some_and(|c| ***c == *name),
    }
}

/// Computes the cookie values of servers that have none of their own (`cookie ... dynamic`), after a change of
/// addresses or of the key: XXH64 of the key, the address and the port in 32 bits, as HAProxy has it.
pub fn renew(proxy: &Proxy) {
    if proxy.cookie.is_none() {
        return;
    }
    let key = proxy.state.back.cookie_key.lock().clone();
    let wanted = proxy.state.back.dynamic_cookies.load(Relaxed) && !key.is_empty();
    for server in &proxy.servers {
        let value = match &**server.state.target.load() {
            Target::Inet(a) if wanted && server.cookie.is_none() => {
                let mut bytes = key.to_vec();
                match a.ip() {
                    std::net::IpAddr::V4(ip) => bytes.extend(ip.octets()),
                    std::net::IpAddr::V6(ip) => bytes.extend(ip.octets()),
                }
                bytes.extend(u32::from(a.port()).to_be_bytes());
                Some(format!("{:016x}", base::hash::xxh64(&bytes, 0)).into_bytes())
            }
            _ => None,
        };
        server.state.dynamic_cookie.store(value.map(std::sync::Arc::new));
    }
}

/// The server that the cookie named could not be reached.
pub fn lost(stream: &mut Stream<'_>) {
    stream.http.cookie.needless = false;
    if stream.txn.term.cookie == b'V' {
        stream.txn.term.cookie = b'D';
    }
}

/// What the client's cookie said, kept because the cookie itself may be cut out of the request.
#[derive(Debug, Default)]
pub struct Known {
    /// The server's name in it.
    named: Option<Box<[u8]>>,
    /// When it was first given.
    first: Option<u64>,
    /// When it was last renewed.
    last: Option<u64>,
    /// A rule or a stick table leads to the server, so the client is given no cookie for it.
    needless: bool,
}

impl Known {
    /// The client will find its server again without a cookie.
    pub fn is_needless(&mut self) {
        self.needless = true;
    }
}

/// The name of the server in a cookie's value, and the dates behind it.
fn split<'v>(cookie: &Cookie, value: &'v [u8]) -> (&'v [u8], Option<&'v [u8]>) {
    let cut = |by: u8| value.iter().position(|b| *b == by);
    match cookie.mode {
        CookieMode::Prefix => (&value[..cut(PREFIX).unwrap_or(0)], None),
        _ => match cut(DATES) {
            Some(at) => (&value[..at], Some(&value[at + 1..])),
            None => (value, None),
        },
    }
}

/// The letter of a cookie that is too old (`maxidle`: E, `maxlife`: O).
fn outdated(cookie: &Cookie, dates: Option<&[u8]>) -> Option<u8> {
    if cookie.maxidle.is_none() && cookie.maxlife.is_none() {
        return None;
    }
    let dates = dates.unwrap_or_default();
    let mut parts = dates.split(|b| *b == DATES).map(undate);
    let (last, first) = (parts.next().flatten(), parts.next().flatten());
    let now = rt::wall().as_secs();
    // A date in the future by more than a day is a lie or a clock gone wrong.
    let age = |at: Option<u64>| {
        at.map_or(u64::MAX, |a| if a > now + 86_400 { u64::MAX } else { now.saturating_sub(a) })
    };
    if cookie.maxidle.is_some_and(|m| last.is_some() && age(last) > m.as_secs()) {
        return Some(b'E');
    }
    if cookie.maxlife.is_some_and(|m| first.is_some() && age(first) > m.as_secs()) {
        return Some(b'O');
    }
    None
}

/// Dates are 30 bits in five letters of a URL-safe base64: units of four seconds, begun ones counted.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn undate(text: &[u8]) -> Option<u64> {
    if text.len() != 5 {
        return None;
    }
    let low = text.iter().try_fold(0u64, |n, b| {
        let digit = LETTERS.iter().position(|l| l == b)?;
        Some(n << 6 | digit as u64)
    })?;
    Some(low << 2)
}

fn date(secs: u64, out: &mut Vec<u8>) {
    let units = secs.div_ceil(4);
    for shift in [24, 18, 12, 6, 0] {
        out.push(LETTERS[(units >> shift & 63) as usize]);
    }
}

/// Removes or shortens the cookie in a request that the server must not see it in.
pub fn clean_request(stream: &mut Stream<'_>, proxy: &Proxy) {
    let Some(cookie) = &proxy.cookie else { return };
    let strip = cookie.mode == CookieMode::Insert && cookie.indirect;
    if !(strip || cookie.mode == CookieMode::Prefix) {
        return;
    }
    loop {
        let req = &stream.txn.req;
        let Some(c) = req.cookies().find(|c| &*cookie.name == c.name && (strip || c.value.contains(&PREFIX)))
        else {
            return;
        };
        let (index, start, end) = (c.index, c.start, c.end);
        let line = req.field(index).map(|(_, v)| v).unwrap_or_default();
        let mut new = Vec::with_capacity(line.len());
        if strip {
            cut_pair(line, start, end, &mut new);
        } else {
            let value_at = line.len() - line[end - c.value.len()..].len();
            let from = c.value.iter().position(|b| *b == PREFIX).map_or(0, |p| p + 1);
            new.extend_from_slice(&line[..value_at]);
            new.extend_from_slice(&line[value_at + from..]);
        }
        if new.iter().all(|b| b.is_ascii_whitespace()) {
            stream.txn.req.remove(index);
        } else if stream.txn.req.replace_value(index, &new).is_err() {
            return;
        }
    }
}

/// Copies a cookie line without the pair between two offsets.
fn cut_pair(line: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    let before = &line[..start];
    let after = &line[end..];
    let head = before.trim_ascii_end();
    let head = head.strip_suffix(b";").unwrap_or(head).trim_ascii_end();
    let tail = after.trim_ascii_start();
    let tail = tail.strip_prefix(b";").unwrap_or(tail).trim_ascii();
    out.extend_from_slice(head);
    if !head.is_empty() && !tail.is_empty() {
        out.extend_from_slice(b"; ");
    }
    out.extend_from_slice(tail);
}

/// Sets, rewrites or removes the cookie in a response.
pub fn response(stream: &mut Stream<'_>, proxy: &Proxy) {
    let Some(cookie) = &proxy.cookie else { return };
    let Some(server) = stream.place.as_ref().map(|p| p.server) else { return };
    let config = &proxy.servers[server as usize];
    let computed = config.state.dynamic_cookie.load();
    let value = config.cookie.as_deref().or(computed.as_deref().map(Vec::as_slice));
    let own = server_cookies(stream, cookie, value);
    if cookie.mode != CookieMode::Insert || (own && cookie.preserve) {
        return;
    }
    if cookie.postonly && stream.txn.req.method_id() != Method::Post {
        return;
    }
    insert(stream, proxy, cookie, server, value);
}

/// Handles what the server set itself under the same name; whether it set anything that remains.
fn server_cookies(stream: &mut Stream<'_>, cookie: &Cookie, value: Option<&[u8]>) -> bool {
    let mut remains = false;
    let found: Vec<(usize, usize, usize)> = stream
        .txn
        .res
        .set_cookies()
        .filter(|c| c.name == &*cookie.name)
        .map(|c| (c.index, c.end - c.value.len(), c.end))
        .collect();
    for (index, start, end) in found {
        let res = &mut stream.txn.res;
        let line = res.field(index).map(|(_, v)| v.to_vec()).unwrap_or_default();
        match (cookie.mode, value) {
            (CookieMode::Rewrite, Some(v)) => {
                let new = [&line[..start], v, &line[end..]].concat();
                let _ = res.replace_value(index, &new);
                stream.txn.term.set_cookie = b'R';
                remains = true;
            }
            (CookieMode::Prefix, Some(v)) => {
                let new = [&line[..start], v, &[PREFIX], &line[start..]].concat();
                let _ = res.replace_value(index, &new);
                stream.txn.term.set_cookie = b'R';
                remains = true;
            }
            (CookieMode::Insert, _) if cookie.indirect && !cookie.preserve => {
                res.remove(index);
                stream.txn.term.set_cookie = b'D';
            }
            _ => {
                stream.txn.term.set_cookie = b'P';
                remains = true;
            }
        }
    }
    remains
}

/// Adds the cookie if the client's own does not already lead here.
fn insert(stream: &mut Stream<'_>, proxy: &Proxy, cookie: &Cookie, server: u32, value: Option<&[u8]>) {
    let term = stream.txn.term;
    let Known { named, first, last, needless } = std::mem::take(&mut stream.http.cookie);
    let now = rt::wall().as_secs();
    let leads_here = term.cookie == b'V' && named.as_deref() == value && value.is_some();
    // Dates are renewed at most once every minute or so.
    let stale = cookie.maxidle.is_some() && last.is_none_or(|l| now.saturating_sub(l) > 60)
        || cookie.maxlife.is_some() && first.is_none();
    let stays = leads_here || needless;
    if stays && !stale || stream.txn.decisions.ignore_persist {
        return;
    }
    let _ = (proxy, server);
    let mut line = cookie.name.to_vec();
    line.push(b'=');
    match value {
        Some(v) => {
            line.extend_from_slice(v);
            if cookie.maxidle.is_some() || cookie.maxlife.is_some() {
                line.push(DATES);
                if cookie.maxidle.is_some() {
                    date(now, &mut line);
                }
                if cookie.maxlife.is_some() {
                    line.push(DATES);
                    date(first.filter(|_| leads_here).unwrap_or(now), &mut line);
                }
            }
            line.extend_from_slice(b"; path=/");
        }
        // A server without a cookie: one that the client may have leads elsewhere and is taken back.
        None => line.extend_from_slice(b"; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/"),
    }
    for d in &cookie.domains {
        let _ = write!(line, "; domain={d}");
    }
    if cookie.httponly {
        line.extend_from_slice(b"; HttpOnly");
    }
    if cookie.secure {
        line.extend_from_slice(b"; Secure");
    }
    for a in &cookie.attrs {
        let _ = write!(line, "; {a}");
    }
    let kept = cookie.nocache && cacheable(stream);
    let res = &mut stream.txn.res;
    if res.append(b"set-cookie", &line).is_err() {
        return;
    }
    if kept {
        let _ = res.append(b"cache-control", b"private");
    }
    stream.txn.term.set_cookie = if stays { b'U' } else { b'I' };
}

/// Whether a cache on the way may keep the response: its status and method allow it (RFC 9110 section 15.1), and its
/// fields say how long it is good, or how to ask again.
fn cacheable(stream: &Stream<'_>) -> bool {
    let (req, res) = (&stream.txn.req, &stream.txn.res);
    let safe = matches!(req.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE");
    let kept = matches!(res.status(), 200 | 203 | 204 | 206 | 300 | 301 | 404 | 405 | 410 | 414 | 501);
    if !safe || !kept || res.values("pragma").any(|v| v.eq_ignore_ascii_case(b"no-cache")) {
        return false;
    }
    let mut known =
        ["etag", "last-modified", "expires"].iter().any(|name| res.values(*name).next().is_some());
    for word in res.values("cache-control") {
        let word = word.to_ascii_lowercase();
        match &*word {
            b"private" | b"no-store" | b"no-cache" | b"max-age=0" | b"s-maxage=0" => return false,
            w => known |= w.starts_with(b"max-age=") || w.starts_with(b"s-maxage="),
        }
    }
    known
}

/// `http-send-name-header`.
pub fn name_header(stream: &mut Stream<'_>, proxy: &Proxy) {
    let Some(name) = &proxy.send_name_header else { return };
    let Some(place) = &stream.place else { return };
    let server = place.config().name.clone();
    let _ = stream.txn.req.set(name, server.as_bytes());
}

/// The server that an RDP cookie names by its address and port (`persist rdp-cookie`).
fn rdp_wanted(stream: &Stream<'_>, proxy: &Proxy, name: &[u8]) -> Option<u32> {
    let data = stream.client.buf.as_ref()?.filled();
    let value = std::str::from_utf8(rdp_cookie(data, name)?).ok()?;
    let mut parts = value.split('.');
    // Address and port are written as decimal numbers in the byte order of a small-endian machine.
    let ip = parts.next()?.parse::<u32>().ok()?.swap_bytes();
    let port = parts.next()?.parse::<u16>().ok()?.swap_bytes();
    let insists = stream.txn.decisions.force_persist || proxy.options.persist;
    let at = proxy.servers.iter().position(|s| match &**s.state.target.load() {
        model::server::Target::Inet(std::net::SocketAddr::V4(a)) => {
            u32::from(*a.ip()) == ip && a.port() == port && !s.state.is_removed()
        }
        _ => false,
    })?;
    (proxy.servers[at].state.is_up() || insists).then_some(u32::try_from(at).ok()).flatten()
}

/// The value of a cookie at the start of an RDP connection: a TPKT header, an X.224 connection request, then
/// `Cookie: NAME=VALUE` and the end of the line.
pub fn rdp_cookie<'b>(bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let body = bytes.get(11..)?;
    if bytes[0] != 3 || bytes[5] & 0xf0 != 0xe0 {
        return None;
    }
    let rest = body.strip_prefix(b"Cookie:")?.trim_ascii_start();
    let (found, rest) = rest.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b"=").filter(|_| found.eq_ignore_ascii_case(name))?;
    let end = value.iter().position(|b| *b == b'\r' || *b == b'\n')?;
    Some(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_leaves_no_stray_separator() {
        let cut = |line: &str, pair: &str| {
            let start = line.find(pair).unwrap();
            let mut out = Vec::new();
            cut_pair(line.as_bytes(), start, start + pair.len(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(cut("a=1; S=x; b=2", "S=x"), "a=1; b=2");
        assert_eq!(cut("S=x; b=2", "S=x"), "b=2");
        assert_eq!(cut("a=1; S=x", "S=x"), "a=1");
        assert_eq!(cut("S=x", "S=x"), "");
    }

    #[test]
    fn the_cookie_of_an_rdp_connection_request() {
        let mut hello = vec![3, 0, 0, 40, 35, 0xe0, 0, 0, 0, 0, 0];
        hello.extend_from_slice(b"Cookie: msts=1.2.3\r\n");
        assert_eq!(rdp_cookie(&hello, b"msts"), Some(&b"1.2.3"[..]));
        assert_eq!(rdp_cookie(&hello, b"other"), None);
        assert_eq!(rdp_cookie(&hello[..8], b"msts"), None);
    }
}
