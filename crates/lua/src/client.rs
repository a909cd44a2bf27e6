//! The class `HTTPClient`: requests of scripts.

use std::rc::Rc;
use std::time::Duration;

use engine::Worker;
use engine::inner::address;
use engine::inner::http::Exchange;
use engine::inner::line::{Line, Patience, Tls, To};
use engine::inner::place::{Place, Scheme};
use mlua::{Lua, Table, Value};
use rt::{Addr, ConnectOptions};
use wire::method::Method;

use crate::message::field;
use crate::value::{Args, Outcome, give, inner};

/// Bodies longer than this are cut.
const LONGEST: usize = 64 << 20;
/// How long a server may be silent where the request says nothing of it.
const SILENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    method: &'static str,
    url: String,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    dst: Option<String>,
    timeout: Option<Duration>,
}

impl mlua::UserData for Request {}

/// The request that a prepared call holds.
pub fn take(value: &Value) -> Option<Request> {
    value.as_userdata()?.borrow::<Request>().ok().map(|request| request.clone())
}

/// Reads the table of a request: method, object, table.
pub fn request(args: &mut Args<'_>) -> Outcome {
    let method = args.text(1)?;
    let methods = ["GET", "HEAD", "PUT", "POST", "DELETE"];
    let method = methods.into_iter().find(|m| m.eq_ignore_ascii_case(&method)).unwrap_or("GET");
    let told = method.to_ascii_lowercase();
    if !args.get(2).is_table() {
        return Err(format!("calling '{told}' on bad self"));
    }
    let Value::Table(table) = args.get(3) else {
        return Err(format!("'{told}' needs a table as argument"));
    };
    let url: Option<String> = inner(table.get("url"))?;
    let url = url.ok_or_else(|| format!("'{told}' need 'url' argument"))?;
    let body: Option<mlua::String> = inner(table.get("body"))?;
    let dst: Option<String> = inner(table.get("dst"))?;
    let timeout: Option<i64> = inner(table.get("timeout"))?;
    let mut headers = Vec::new();
    let all: Option<Table> = inner(table.get("headers"))?;
    for pair in all.iter().flat_map(Table::pairs::<mlua::String, Value>) {
        let (name, values) = inner(pair)?;
        let values: Vec<mlua::String> = match values {
            Value::Table(list) => inner(list.sequence_values().collect())?,
            Value::String(one) => vec![one],
            _ => return Err("'headers' must be a table of lists of strings".into()),
        };
        headers.extend(values.iter().map(|v| (name.as_bytes().to_vec(), v.as_bytes().to_vec())));
    }
    let body = body.map(|b| b.as_bytes().to_vec()).unwrap_or_default();
    let timeout = timeout.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let made = Request { method, url, headers, body, dst, timeout };
    give(args.lua(), inner(args.lua().create_userdata(made))?)
}

/// What came of a request; a status of 0 says that nothing came.
#[derive(Debug, Default)]
pub struct Answer {
    status: u16,
    reason: String,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

impl Answer {
    /// As scripts get it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.raw_set("status", self.status)?;
        table.raw_set("reason", lua.create_string(&self.reason)?)?;
        let headers = crate::http::fields(lua, self.fields.iter().map(|(n, v)| (&**n, &**v)))?;
        table.raw_set("headers", headers)?;
        table.raw_set("body", lua.create_string(&self.body)?)?;
        Ok(table)
    }
}

/// Sends a request and waits for the answer.
pub async fn send(worker: &Rc<Worker>, request: Request) -> Answer {
    exchange(worker, &request).await.unwrap_or_default()
}

async fn exchange(worker: &Rc<Worker>, request: &Request) -> Option<Answer> {
    let place = Place::parse(&request.url)?;
    let program = &worker.shared.program;
    let connector = match place.scheme {
        Scheme::Http => None,
        Scheme::Https => Some(program.tls.client(&program.global.client_tls)?),
    };
    let addr: Addr = match request.dst.as_deref() {
        None => address::find(worker, place.host, place.port).await?,
        Some(dst) => match dst.strip_prefix("unix@").or(dst.starts_with('/').then_some(dst)) {
            Some(path) => Addr::Unix(path.as_bytes().to_vec()),
            None => {
                let dst = dst.strip_prefix("ipv4@").or(dst.strip_prefix("ipv6@")).unwrap_or(dst);
                let (host, port) = dst.rsplit_once(':')?;
                address::find_by_system(host, port.parse().ok()?).await?
            }
        },
    };
    let host = address::bare(place.host).as_bytes();
    let tls = connector.as_deref().map(|connector| Tls { connector, name: host, alpn: None });
    let to = To { addr: &addr, options: ConnectOptions::default(), tls };
    let silence = request.timeout.unwrap_or(SILENCE);
    let line = Line::open(worker, &to, Patience { connect: silence, silence, whole: None }).await.ok()?;
    let head = head(request, &place);
    let method = Method::from_bytes(request.method.as_bytes());
    let mut exchange = Exchange::begin(worker, line, method, &head).await.ok()?;
    if !request.body.is_empty() {
        exchange.send(&request.body).await.ok()?;
    }
    let head = exchange.answer().await.ok()?;
    let mut answer = Answer {
        status: head.status(),
        reason: String::from_utf8_lossy(head.reason()).into_owned(),
        fields: head.fields().map(|(_, name, value)| (name.to_vec(), value.to_vec())).collect(),
        body: Vec::new(),
    };
    while let Some(piece) = exchange.body().await.ok()? {
        if answer.body.len().saturating_add(piece.len()) > LONGEST {
            return None;
        }
        answer.body.extend_from_slice(piece);
    }
    Some(answer)
}

/// The head of a request, with what each must have unless the script said it.
fn head(request: &Request, place: &Place<'_>) -> Vec<u8> {
    let slash = if place.path.starts_with('/') { "" } else { "/" };
    let target: String =
        format!("{slash}{}", place.path).chars().filter(|c| !c.is_ascii_control() && *c != ' ').collect();
    let mut out = format!("{} {target} HTTP/1.1\r\n", request.method).into_bytes();
    let said = |name: &[u8]| request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !said(b"host") {
        field(&mut out, b"host", place.authority.as_bytes());
    }
    if !said(b"accept") {
        field(&mut out, b"accept", b"*/*");
    }
    if !said(b"user-agent") {
        field(&mut out, b"user-agent", b"Harrier");
    }
    for (name, value) in &request.headers {
        if !name.eq_ignore_ascii_case(b"content-length") && !name.eq_ignore_ascii_case(b"transfer-encoding") {
            field(&mut out, name, value);
        }
    }
    if !request.body.is_empty() || matches!(request.method, "PUT" | "POST") {
        field(&mut out, b"content-length", request.body.len().to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}
