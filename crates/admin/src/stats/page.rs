//! The statistics page: an HTTP service (configuration manual, `stats enable` and its kin).

use engine::Worker;
use engine::live::View;
use engine::worker::service::{Answer, Request, Service};
use lang::Env;
use lang::action::Reply;
use lang::cond::Outcome;
use lang::env::Side;
use model::Txn;
use program::stats::Page;
use wire::head::Head;
use wire::method::Method;

use super::options::{Form, Options, Result};
use super::row::Filter;
use super::{html, post, schema, show};

/// The service called `stats`.
#[derive(Debug, Default)]
pub struct Stats;

impl Service for Stats {
    fn wants_body(&self, request: &Request<'_>) -> bool {
        let proxy = request.worker.shared.program.proxies.get(request.proxy as usize);
        let page = proxy.and_then(|p| p.stats.clone());
        // Who may not change anything is told so at once.
        request.txn.first_method() == Method::Post
            && page.is_some_and(|page| is_known(&page, request.txn) && may_change(&page, request))
    }

    fn answer(&self, request: &Request<'_>) -> Answer {
        let program = request.worker.shared.program.clone();
        let Some(page) = program.proxies.get(request.proxy as usize).and_then(|p| p.stats.clone()) else {
            return Answer { status: 503, ..Answer::default() };
        };
        if !is_known(&page, request.txn) {
            return ask_for_password(&page);
        }
        let target = wire::uri::path_and_query(request.txn.req.target());
        let target = String::from_utf8_lossy(target).into_owned();
        let options = Options::parse(target.strip_prefix(&*page.uri).unwrap_or(""));
        let admin = may_change(&page, request);
        match request.txn.first_method() {
            Method::Post => {
                let result = if admin { act(request, &page) } else { Result::Deny };
                redirect(&page, Options { result: Some(result), ..options })
            }
            _ => show_page(request, &page, &options, admin),
        }
    }
}

/// Whether the request names one of the page's users, if it has any.
fn is_known(page: &Page, txn: &Txn) -> bool {
    if page.users.is_empty() {
        return true;
    }
    let name = if txn.for_proxy { "proxy-authorization" } else { "authorization" };
    let Some(field) = txn.req.first(name) else { return false };
    let Some((scheme, coded)) = field.split_at_checked(6) else { return false };
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return false;
    }
    let Some(pair) = base64(coded.trim_ascii()) else { return false };
    page.users.iter().any(|(user, password)| {
        let wanted = [user.as_bytes(), b":", password.as_bytes()].concat();
        same(&wanted, &pair)
    })
}

/// Compares in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// Base64 with or without padding (RFC 4648, section 4).
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut have) = (0u32, 0);
    for b in text {
        let digit = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have & 0xff) as u8);
        }
    }
    Some(out)
}

fn ask_for_password(page: &Page) -> Answer {
    let realm = page.realm.as_deref().unwrap_or(Reply::STATISTICS).replace('"', "\\\"");
    Answer { challenge: Some(realm), ..Answer::default() }
}

/// Whether one of the `stats admin` lines holds, and it is no other site that has the browser ask.
fn may_change(page: &Page, request: &Request<'_>) -> bool {
    let posted = request.txn.first_method() == Method::Post;
    (!posted || is_own_page(&request.txn.req))
        && page.admin.iter().any(|condition| match &**condition {
            None => true,
            Some(condition) => holds(condition, request.worker, request),
        })
}

/// Whether a form was sent by the page itself, as far as the browser tells: its `origin`, or else its
/// `referer`, names the host of the request (manual, `stats admin`).
fn is_own_page(req: &Head) -> bool {
    let Some(from) = req.first("origin").or_else(|| req.first("referer")) else { return true };
    let rest = [&b"http://"[..], b"https://"].iter().find_map(|scheme| from.strip_prefix(*scheme));
    let host = rest.map(|rest| rest.split(|b| *b == b'/').next().unwrap_or_default());
    host.zip(req.first("host")).is_some_and(|(from, host)| from.eq_ignore_ascii_case(host))
}

fn holds(condition: &lang::Condition, worker: &Worker, request: &Request<'_>) -> bool {
    let view = View::of_txn(worker, request.conn, request.txn);
    worker.with_arena(|arena| {
        let (conn, txn) = (request.conn, request.txn);
        let env = Env { conn, txn, live: &view, arena, side: Side::Request, last: true };
        condition.holds(&env) == Outcome::Yes
    })
}

fn act(request: &Request<'_>, page: &Page) -> Result {
    if !request.whole {
        return Result::Excd;
    }
    engine::worker::with_worker(|w| post::run(w, &page.scope, request.body)).unwrap_or(Result::Unkn)
}

fn redirect(page: &Page, options: Options) -> Answer {
    let location = format!("{}{}", page.uri, options.link());
    Answer {
        status: 303,
        headers: vec![
            ("cache-control", b"no-cache".to_vec()),
            ("content-type", b"text/plain".to_vec()),
            ("content-length", b"0".to_vec()),
            ("location", location.into_bytes()),
        ],
        ..Answer::default()
    }
}

fn show_page(request: &Request<'_>, page: &Page, options: &Options, admin: bool) -> Answer {
    let shared = &request.worker.shared;
    crate::shm::refresh(shared);
    let filter = Filter {
        scope: page.scope.clone(),
        search: options.scope.clone(),
        no_maint: options.no_maint,
        up: options.up,
        legends: page.legends,
        ..Filter::default()
    };
    let (kind, body) = match options.form {
        Form::Html => ("text/html", html::render(shared, page, options, &filter, admin)),
        Form::Csv => ("text/plain", show::csv(shared, &filter)),
        Form::Typed => ("text/plain", show::typed(shared, &filter, false)),
        Form::Json => ("application/json", show::json(shared, &filter)),
        Form::Schema => ("application/json", schema::text()),
    };
    let mut headers =
        vec![("cache-control", b"no-cache".to_vec()), ("content-type", kind.as_bytes().to_vec())];
    if let Some(refresh) = page.refresh.filter(|r| !r.is_zero() && !options.no_refresh) {
        headers.push(("refresh", refresh.as_secs().to_string().into_bytes()));
    }
    Answer { status: 200, headers, body: body.into_bytes(), ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_decoded_strictly() {
        assert_eq!(base64(b"YWRtaW46cHc=").as_deref(), Some(&b"admin:pw"[..]));
        assert_eq!(base64(b"YWRtaW46cHc").as_deref(), Some(&b"admin:pw"[..]));
        assert_eq!(base64(b"YWR*"), None);
        assert_eq!(base64(b"").as_deref(), Some(&b""[..]));
        assert!(same(b"a", b"a") && !same(b"a", b"b") && !same(b"a", b"ab"));
    }
}
