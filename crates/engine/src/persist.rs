//! Persistence by cookies (manual, `cookie`): finding the server that a request belongs to, hiding or
//! rewriting the cookie on its way, and telling the client which server it got.

use std::io::Write;

use program::Proxy;
use program::persist::{Cookie, CookieMode};
use wire::head::{Known as Field, Segment};
use wire::method::Method;

use crate::remembered::{Known, is_told};
use crate::stream::Stream;

/// Separates the server's name from the rest of a value (`prefix`).
const PREFIX: u8 = b'~';
/// Separates the server's name from its dates (`maxidle`, `maxlife`).
const DATES: u8 = b'|';

/// The server that the request's cookie names; notes what the cookie was worth for the log. Where a rule has
/// found the server already (`ruled`) the cookie goes unused.
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
    let judged = judge(stream, proxy, cookie, ruled);
    note(stream, cookie, &judged);
    stream.http.cookie = judged.known;
    judged.server
}

/// Whether the request's cookie names a server that may be used.
pub fn is_named(stream: &Stream<'_>, proxy: &Proxy) -> bool {
    proxy.cookie.as_ref().is_some_and(|cookie| judge(stream, proxy, cookie, false).server.is_some())
}

/// Looks at the cookie of a request that is refused, only to be logged.
pub fn look(stream: &mut Stream<'_>) {
    let worker = stream.worker.clone();
    let proxy = &*worker.shared.program.proxy(stream.backend_index());
    if let Some(cookie) = &proxy.cookie {
        let judged = judge(stream, proxy, cookie, false);
        note(stream, cookie, &judged);
    }
}

fn note(stream: &mut Stream<'_>, cookie: &Cookie, judged: &Judged) {
    if is_told(cookie) {
        let term = &mut stream.txn.term;
        term.cookie = judged.letter;
        if term.set_cookie == b'-' {
            term.set_cookie = b'N';
        }
    }
}

/// What became of the cookies of one name.
struct Judged {
    letter: u8,
    known: Known,
    server: Option<u32>,
}

/// Looks at the cookies of the name until one leads to a server that may be used.
fn judge(stream: &Stream<'_>, proxy: &Proxy, cookie: &Cookie, ruled: bool) -> Judged {
    let known = Known { needless: ruled, ..Known::default() };
    let mut judged = Judged { letter: b'N', known, server: None };
    let insists = stream.txn.decisions.force_persist || proxy.options.persist;
    for value in stream.txn.req.cookies().filter(|c| c.name == &*cookie.name).map(|c| c.value) {
        let (name, dates) = split(cookie, value);
        let (last, first) = dates_of(dates);
        judged.known = Known { named: Some(name.into()), first, last, needless: ruled };
        if ruled || stream.txn.decisions.ignore_persist {
            judged.letter = b'U';
            break;
        }
        if let Some(letter) = outdated(cookie, last, first) {
            judged.letter = letter;
            continue;
        }
        let Some((index, server)) = proxy.servers.numbered().find(|(_, s)| is_called(s, name)) else {
            judged.letter = b'I';
            continue;
        };
        let up = server.state.is_up();
        judged.letter = if up { b'V' } else { b'D' };
        if up || insists {
            judged.server = Some(index);
            break;
        }
    }
    judged
}

/// Whether a server is the one of this name in the cookie.
fn is_called(server: &program::Server, name: &[u8]) -> bool {
    if server.state.is_removed() {
        return false;
    }
    match &server.cookie {
        Some(own) => **own == *name,
        None => server.state.dynamic_cookie.load().as_ref().is_some_and(|c| *c.value == *name),
    }
}

/// The server that the cookie named could not be reached.
pub fn lost(stream: &mut Stream<'_>) {
    stream.http.cookie.needless = false;
    if stream.txn.term.cookie == b'V' {
        stream.txn.term.cookie = b'D';
    }
}

/// The name of the server in a cookie's value, and the dates behind it.
fn split<'v>(cookie: &Cookie, value: &'v [u8]) -> (&'v [u8], &'v [u8]) {
    let by = if cookie.mode == CookieMode::Prefix { PREFIX } else { DATES };
    let at = value.iter().position(|b| *b == by).unwrap_or(value.len());
    let (name, rest) = value.split_at(at);
    (name, if by == DATES { rest } else { b"" })
}

/// When a cookie was last renewed, and when it was first given: `|DATE|DATE`.
fn dates_of(dates: &[u8]) -> (Option<u64>, Option<u64>) {
    let mut parts = dates.split(|b| *b == DATES).skip(1).map(undate);
    (parts.next().flatten(), parts.next().flatten())
}

/// The letter of a cookie that is too old (`maxlife`: O, `maxidle`: E).
fn outdated(cookie: &Cookie, last: Option<u64>, first: Option<u64>) -> Option<u8> {
    let now = rt::wall().as_secs();
    // A date in the future by more than a day is a lie or a clock gone wrong.
    let age = |at: u64| if at > now + 86_400 { u64::MAX } else { now.saturating_sub(at) };
    let over = |limit: Option<std::time::Duration>, at: Option<u64>| {
        limit.zip(at).is_some_and(|(limit, at)| age(at) > limit.as_secs())
    };
    if over(cookie.maxlife, first) {
        return Some(b'O');
    }
    over(cookie.maxidle, last).then_some(b'E')
}

/// Dates are 30 bits in five letters of base64: units of four seconds, begun ones counted.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The date that a text begins with; zero is none.
fn undate(text: &[u8]) -> Option<u64> {
    let units = text.get(..5)?.iter().try_fold(0u64, |n, b| {
        let digit = LETTERS.iter().position(|l| l == b)?;
        Some(n << 6 | digit as u64)
    })?;
    Some(units << 2).filter(|date| *date != 0)
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
    let req = &mut stream.txn.req;
    let mut from = 0;
    while let Some((index, line)) = req.all(Field::Cookie).find(|(index, _)| *index >= from) {
        from = index + 1;
        if !concerns(line, cookie) {
            continue;
        }
        let mut new = Vec::with_capacity(line.len());
        if !clean(line, cookie, &mut new) {
            req.remove(index);
        } else if line != new {
            // It is shorter than the old one, so there is room.
            let _ = req.replace_value(index, &new);
        }
    }
}

/// Whether a line may have to be changed: it has the name in it, or blanks around an equals sign.
fn concerns(line: &[u8], cookie: &Cookie) -> bool {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let loose =
        || line.windows(2).any(|w| w[0] == b'=' && blank(w.get(1)) || w[1] == b'=' && blank(w.first()));
    let changes = strips(cookie) || cookie.mode == CookieMode::Prefix;
    changes && line.windows(cookie.name.len().max(1)).any(|w| w == &*cookie.name) || loose()
}

/// Whether the server sees nothing of the cookie: it was never its own.
fn strips(cookie: &Cookie) -> bool {
    cookie.indirect && cookie.mode == CookieMode::Insert
}

/// Copies a cookie line as the server is to see it; whether any cookie remains in it.
fn clean(line: &[u8], cookie: &Cookie, out: &mut Vec<u8>) -> bool {
    let strip = strips(cookie);
    let (mut rest, mut before) = (line, None);
    let (mut cut, mut cut_any, mut remains) = (false, false, false);
    let mut first = true;
    loop {
        let segment = wire::head::segment(rest);
        let own = segment.pair.is_some_and(|(name, _)| name == &*cookie.name);
        // What is said of a cookie goes with it.
        if !segment.is_attribute() {
            cut = strip && own;
        }
        cut_any |= cut;
        if !cut {
            out.extend(before.filter(|_| !first));
            let start = out.len();
            write_segment(&segment, own && cookie.mode == CookieMode::Prefix, out);
            if first {
                let blanks = out[start..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                out.drain(start..start + blanks);
            }
            remains |= out.len() > start && !segment.is_attribute();
            first = false;
        }
        if segment.separator == 0 {
            return remains || !cut_any;
        }
        before = Some(segment.separator);
        rest = rest.get(segment.text.len() + 1..).unwrap_or_default();
    }
}

/// Writes a segment without blanks around its equals sign, and without a server's prefix if it may have one.
fn write_segment(segment: &Segment<'_>, prefixed: bool, out: &mut Vec<u8>) {
    let Some((name, value)) = segment.pair else { return out.extend_from_slice(segment.text) };
    let from = value.iter().position(|b| prefixed && *b == PREFIX).map_or(0, |at| at + 1);
    let end = segment.text.len() - segment.tail;
    out.extend_from_slice(segment.text.get(..segment.lead + name.len()).unwrap_or_default());
    out.push(b'=');
    out.extend_from_slice(value.get(from..).unwrap_or_default());
    out.extend_from_slice(segment.text.get(end..).unwrap_or_default());
}

/// Sets, rewrites or removes the cookie in a response.
pub fn response(stream: &mut Stream<'_>, proxy: &Proxy) {
    let Some(cookie) = &proxy.cookie else { return };
    let Some(server) = stream.place.as_ref().map(|p| p.server) else { return };
    let config = &*proxy.server(server);
    let computed = config.state.dynamic_cookie.load();
    let value = config.cookie.as_deref().or(computed.as_deref().map(|c| &*c.value));
    let own = server_cookies(stream, cookie, value);
    if cookie.mode != CookieMode::Insert || (own && cookie.preserve) {
        return;
    }
    if cookie.postonly && stream.txn.first_method() != Method::Post {
        return;
    }
    insert(stream, proxy, cookie, server, value);
}

/// Handles what the server set itself under the same name; whether it set anything that remains.
fn server_cookies(stream: &mut Stream<'_>, cookie: &Cookie, value: Option<&[u8]>) -> bool {
    let mut remains = false;
    if !is_told(cookie) {
        return false;
    }
    // Whoever has a cookie that leads here needs no other one where cookies go no further than here.
    let unwanted = cookie.mode == CookieMode::Insert || cookie.indirect && leads_here(stream, value);
    let removes = unwanted && !cookie.preserve;
    let own = stream.txn.res.set_cookies().filter(|c| c.name == &*cookie.name);
    let found: Vec<(usize, usize, usize)> = own.map(|c| (c.index, c.value.len(), c.end)).collect();
    for (index, length, end) in found {
        let res = &mut stream.txn.res;
        let line = res.field(index).map(|(_, v)| v).unwrap_or_default();
        let tail = line.get(end - length..).unwrap_or_default();
        let line = [&cookie.name, b"=".as_slice(), tail].concat();
        let start = cookie.name.len() + 1;
        let end = start + length;
        match (cookie.mode, value) {
            _ if removes => {
                res.remove(index);
                stream.txn.term.set_cookie = b'D';
            }
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
            _ => {
                let _ = res.replace_value(index, &line);
                stream.txn.term.set_cookie = b'P';
                remains = true;
            }
        }
    }
    remains
}

/// Whether the client's own cookie names the server at work. One that is down may serve those who insist on
/// it: their cookie is right.
fn leads_here(stream: &Stream<'_>, value: Option<&[u8]>) -> bool {
    let named = stream.http.cookie.named.as_deref();
    matches!(stream.txn.term.cookie, b'V' | b'D') && named == value && value.is_some()
}

/// Adds the cookie if the client's own does not already lead here.
fn insert(stream: &mut Stream<'_>, proxy: &Proxy, cookie: &Cookie, server: u32, value: Option<&[u8]>) {
    let leads_here = leads_here(stream, value);
    let Known { first, last, needless, .. } = std::mem::take(&mut stream.http.cookie);
    let now = rt::wall().as_secs();
    // Dates are renewed with each response, in steps of four seconds. A cookie has those that are asked for.
    let dated = cookie.maxidle.is_some() || cookie.maxlife.is_some();
    let stale = match dated {
        true => last.is_none_or(|l| l < now) || first.is_some() != cookie.maxlife.is_some(),
        false => last.or(first).is_some(),
    };
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
            if dated {
                line.push(DATES);
                date(now, &mut line);
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
    let kept = cookie.nocache && wire::caching::is_cacheable(stream.txn.req.method_id(), &stream.txn.res);
    let res = &mut stream.txn.res;
    if res.append(b"set-cookie", &line).is_err() {
        return;
    }
    if kept {
        let _ = res.append(b"cache-control", b"private");
    }
    stream.txn.term.set_cookie = if stays { b'U' } else { b'I' };
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
    let at = proxy.position(|s| match &**s.state.target.load() {
        model::server::Target::Inet(std::net::SocketAddr::V4(a)) => {
            u32::from(*a.ip()) == ip && a.port() == port && !s.state.is_removed()
        }
        _ => false,
    })?;
    (proxy.servers.get(at as usize)?.state.is_up() || insists).then_some(at)
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

    fn cookie(mode: CookieMode, indirect: bool) -> Cookie {
        Cookie { indirect, ..Cookie::named(b"S", mode) }
    }

    #[test]
    fn what_remains_of_a_cookie_line() {
        let left = |mode, line: &str| {
            let (cookie, mut out) = (cookie(mode, mode == CookieMode::Insert), Vec::new());
            clean(line.as_bytes(), &cookie, &mut out).then(|| String::from_utf8(out).unwrap())
        };
        // What HAProxy makes of the same lines.
        for (line, want) in [
            ("a=1; S=x; b=2", Some("a=1; b=2")),
            ("S=x; b=2", Some("b=2")),
            ("a=1; S=x", Some("a=1")),
            ("a=1; S=B, x", Some("a=1, x")),
            ("a=1, S=B", Some("a=1")),
            ("S=x", None),
            (";S=B;", None),
            ("S=B, S=A; S=Z", None),
            ("T = 1 ; S = B", Some("T=1 ")),
            ("T=1;;S=B", Some("T=1;")),
            ("=B; S=B", Some("=B")),
            ("S=B; x", Some("x")),
            ("$Version=1; S=B; $Path=/; c=2", Some("$Version=1; c=2")),
            ("S=B;$Path=/;c=1", Some("c=1")),
            ("$Version=1; S=B", None),
            ("a=\"x,S=A;S=B\"; c=1", Some("a=\"x,S=A;S=B\"; c=1")),
            ("S=\"a\\\"b;c\"; d=1", Some("d=1")),
        ] {
            assert_eq!(left(CookieMode::Insert, line).as_deref(), want, "{line}");
        }
        for (line, want) in [
            ("S=B~a~b", "S=a~b"),
            ("S=Z~a; S=B~b", "S=a; S=b"),
            ("S=B", "S=B"),
            ("S=B~;T=2", "S=;T=2"),
            ("T=a~b; S = B~c", "T=a~b; S=c"),
        ] {
            assert_eq!(left(CookieMode::Prefix, line).as_deref(), Some(want), "{line}");
        }
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        let mut text = b"|".to_vec();
        date(1_795_237_061, &mut text);
        text.push(DATES);
        date(1_795_237_080, &mut text);
        assert_eq!(dates_of(&text), (Some(1_795_237_064), Some(1_795_237_080)));
        assert_eq!(dates_of(b"|AAAAA|awL7-"), (None, None));
        assert_eq!(dates_of(b"|awL7+x|awL7/"), (undate(b"awL7+"), undate(b"awL7/")));
        assert_eq!(dates_of(b""), (None, None));
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
