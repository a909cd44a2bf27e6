//! Parameters of a request (manual, section 10.2).

use lang::fcgi::App;
use model::Peer;
use model::txn::Params;
use wire::fcgi::put_pair;
use wire::head::{Head, Known};
use wire::http1::{Body, request_body};
use wire::uri;

/// What is known of a request beside its head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Who sent it.
    pub src: Peer,
    /// Where to.
    pub dst: Peer,
    /// It came over TLS.
    pub secure: bool,
}

/// All parameters of a request, encoded: its fields, what rules set, what the head and the connection imply
/// where rules said nothing. `None`: its path can't be that of a script, or nobody knows how long it is.
pub fn params(app: &App, head: &Head, facts: &Facts, set: &Params) -> Option<Vec<u8>> {
    let path = decoded(uri::path(head.written_target()), app.path_info.is_some())?;
    let mut list = List { out: Vec::with_capacity(1024), set };
    fields(&mut list, head);
    set.iter().for_each(|(name, value)| put_pair(&mut list.out, name, value));
    let (script, info) = split(app, &path);
    list.put(b"GATEWAY_INTERFACE", b"CGI/1.1");
    list.put(b"DOCUMENT_ROOT", &app.docroot);
    list.put(b"SCRIPT_NAME", &script);
    if let Some(info) = info {
        list.put(b"PATH_INFO", info);
    }
    list.put(b"REQUEST_URI", head.written_target());
    list.put(b"REQUEST_METHOD", head.method());
    if let Some(query) = uri::query(head.target()).filter(|query| !query.is_empty()) {
        list.put(b"QUERY_STRING", query);
    }
    ends(&mut list, head, facts);
    let docroot = list.said(b"DOCUMENT_ROOT").unwrap_or(&app.docroot);
    let name = list.said(b"SCRIPT_NAME").unwrap_or(&script);
    let (file, info) = ([docroot, name].concat(), list.said(b"PATH_INFO").or(info));
    let translated = info.map(|info| [docroot, info].concat());
    list.put(b"SCRIPT_FILENAME", &file);
    if let Some(translated) = translated {
        list.put(b"PATH_TRANSLATED", &translated);
    }
    if !head.has(Known::ContentLength) {
        if request_body(head) != Body::None && list.said(b"CONTENT_LENGTH").is_none() {
            return None;
        }
        list.put(b"CONTENT_LENGTH", b"0");
    }
    list.put(b"SERVER_SOFTWARE", base::product::SOFTWARE.as_bytes());
    if facts.secure {
        list.put(b"HTTPS", b"on");
    }
    Some(list.out)
}

/// Parameters while they are gathered.
struct List<'s> {
    out: Vec<u8>,
    set: &'s Params,
}

impl<'s> List<'s> {
    /// What rules said of a parameter.
    fn said(&self, name: &[u8]) -> Option<&'s [u8]> {
        self.set.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    /// Adds one, unless rules have set it.
    fn put(&mut self, name: &[u8], value: &[u8]) {
        if self.said(name).is_none() {
            put_pair(&mut self.out, name, value);
        }
    }
}

/// The fields of the head, each as a parameter of its own.
fn fields(list: &mut List<'_>, head: &Head) {
    let mut name = Vec::new();
    for (at, field, value) in head.fields() {
        name.clear();
        match head.known(at) {
            Known::ContentLength => name.extend_from_slice(b"CONTENT_LENGTH"),
            Known::ContentType => name.extend_from_slice(b"CONTENT_TYPE"),
            Known::TransferEncoding | Known::Expect => continue,
            // What is said of the connection to the server.
            Known::Connection if matches!(value, b"close" | b"keep-alive") => continue,
            // HTTP_PROXY is a setting of libraries for clients of HTTP: nobody from outside may set it
            // (httpoxy).
            _ if field.eq_ignore_ascii_case(b"proxy") => continue,
            _ => {
                name.extend_from_slice(b"HTTP_");
                let upper = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
                name.extend(field.iter().map(upper));
            }
        }
        put_pair(&mut list.out, &name, value);
    }
}

/// What is known of both ends of the connection.
fn ends(list: &mut List<'_>, head: &Head, facts: &Facts) {
    let port = |list: &mut List<'_>, name: &[u8], peer: Peer| match peer.port() {
        Some(port) => list.put(name, port.to_string().as_bytes()),
        None if peer == Peer::Unix => list.put(name, b"0"),
        None => {}
    };
    let address = |peer: Peer| match peer {
        Peer::Unix => Some("unix".to_owned()),
        _ => peer.ip().map(|ip| ip.to_string()),
    };
    match (head.first(Known::Host), address(facts.dst)) {
        (Some(host), _) => list.put(b"SERVER_NAME", host),
        (None, Some(address)) => list.put(b"SERVER_NAME", address.as_bytes()),
        (None, None) => {}
    }
    port(list, b"SERVER_PORT", facts.dst);
    list.put(b"SERVER_PROTOCOL", head.version().as_str().as_bytes());
    if let Some(address) = address(facts.src) {
        list.put(b"REMOTE_ADDR", address.as_bytes());
    }
    port(list, b"REMOTE_PORT", facts.src);
}

/// A path as scripts know it. `None`: it is none, is encoded wrongly, or holds what `path-info` can't look
/// behind.
fn decoded(path: &[u8], divided: bool) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::with_capacity(path.len()), path);
    if path.first() != Some(&b'/') {
        return None;
    }
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = match first {
            b'%' => {
                let (digits, behind) = behind.split_at_checked(2)?;
                let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
                (u8::from_str_radix(text, 16).ok()?, behind)
            }
            _ => (*first, behind),
        };
        if divided && matches!(byte, 0 | b'\n') {
            return None;
        }
        out.push(byte);
        rest = behind;
    }
    Some(out)
}

/// The name of the script and, as `path-info` divides the path, what is behind it.
fn split<'p>(app: &App, path: &'p [u8]) -> (Vec<u8>, Option<&'p [u8]>) {
    let mut groups = pattern::Groups::default();
    let matched = app.path_info.as_ref().is_some_and(|regex| regex.captures_at(path, 0, &mut groups));
    let group = |n: usize| groups.get(n).filter(|_| matched).and_then(|(from, to)| path.get(from..to));
    let mut script = group(1).unwrap_or(path).to_vec();
    if script.ends_with(b"/")
        && let Some(index) = &app.index
    {
        script.extend_from_slice(index);
    }
    (script, group(2).filter(|info| !info.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::fcgi::Pairs;
    use wire::http1::{Limits, parse_request};

    fn app() -> App {
        App {
            name: "a".into(),
            docroot: (*b"/www").into(),
            index: Some((*b"index.php").into()),
            path_info: Some(pattern::Regex::new(b"^(/.+\\.php)(/.*)?$", false).unwrap()),
            pass: Vec::new(),
            set: Vec::new(),
            get_values: false,
            keep_conn: true,
            mpxs_conns: false,
            most: 1,
        }
    }

    fn made(head: &str, set: &Params) -> Option<Vec<(String, String)>> {
        let mut request = Head::request();
        parse_request(format!("{head}\r\n\r\n").as_bytes(), &mut request, &Limits::default(), true).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let params = params(&app(), &request, &Facts::default(), set)?;
        Some(Pairs::new(&params).map(|(name, value)| (text(name), text(value))).collect())
    }

    fn value<'a>(all: &'a [(String, String)], name: &str) -> Option<&'a str> {
        all.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    #[test]
    fn a_path_is_divided_into_script_and_the_rest() {
        for (path, script, info) in [
            ("/a%20b/x.php/info%2fx?q=1", "/a b/x.php", Some("/info/x")),
            ("/x.php", "/x.php", None),
            ("/x.php/", "/x.php", Some("/")),
            ("/dir/", "/dir/index.php", None),
            ("/dir", "/dir", None),
        ] {
            let all = made(&format!("GET {path} HTTP/1.1\r\nHost: a"), &Params::new()).unwrap();
            assert_eq!(value(&all, "SCRIPT_NAME"), Some(script), "{path}");
            assert_eq!(value(&all, "PATH_INFO"), info, "{path}");
            assert_eq!(value(&all, "SCRIPT_FILENAME"), Some(&*format!("/www{script}")), "{path}");
            let translated = info.map(|info| format!("/www{info}"));
            assert_eq!(value(&all, "PATH_TRANSLATED"), translated.as_deref(), "{path}");
        }
        for path in ["/%0a.php", "/%00", "/%zz", "/%4", "/%+1"] {
            assert_eq!(made(&format!("GET {path} HTTP/1.1\r\nHost: a"), &Params::new()), None, "{path}");
        }
        assert_eq!(made("OPTIONS * HTTP/1.1\r\nHost: a", &Params::new()), None);
    }

    #[test]
    fn what_rules_set_stands_instead_of_what_the_head_implies() {
        let set = vec![
            ((*b"DOCUMENT_ROOT").into(), (*b"/other").into()),
            ((*b"SCRIPT_NAME").into(), (*b"/s").into()),
        ];
        let all = made("GET /x.php HTTP/1.1\r\nHost: a", &set).unwrap();
        assert_eq!(value(&all, "SCRIPT_FILENAME"), Some("/other/s"));
        assert_eq!(all.iter().filter(|(name, _)| name == "SCRIPT_NAME").count(), 1);
    }

    #[test]
    fn fields_become_parameters_but_for_those_that_have_names_of_their_own() {
        let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: t\r\nContent-Length: 3\r\nX-Y: 1\r\nX-Y: 2\r\nExpect: x";
        let all = made(head, &Params::new()).unwrap();
        let names: Vec<_> = all.iter().map(|(name, _)| &**name).take(5).collect();
        assert_eq!(names, ["HTTP_HOST", "CONTENT_TYPE", "CONTENT_LENGTH", "HTTP_X_Y", "HTTP_X_Y"]);
        assert_eq!(value(&all, "CONTENT_LENGTH"), Some("3"));
        let all = made("GET /x HTTP/1.1\r\nHost: a", &Params::new()).unwrap();
        assert_eq!(value(&all, "CONTENT_LENGTH"), Some("0"));
        // Nobody knows how long the body is.
        assert_eq!(made("PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", &Params::new()), None);
    }
}
