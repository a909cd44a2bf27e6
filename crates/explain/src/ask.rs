//! The words behind `harrier explain`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A described request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Method.
    pub method: String,
    /// Target as it stands in the request line.
    pub target: String,
    /// `Host`, unless a field says otherwise.
    pub host: Option<String>,
    /// Fields, in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Where the client is.
    pub src: SocketAddr,
    /// Address and port that it connects to; `None`: any address, the port of the URL.
    pub dst: Option<SocketAddr>,
    /// Port of the URL.
    pub port: Option<u16>,
    /// `--frontend`.
    pub frontend: Option<String>,
    /// `--all`: show also what did not apply.
    pub all: bool,
    /// `--json`.
    pub json: bool,
    /// `-f` and the files of the configuration.
    pub files: Vec<String>,
}

/// What is wrong with the words; empty when only the usage is wanted.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

/// How the command is used.
pub const USAGE: &str = "\
Usage: harrier explain -f FILE... 'METHOD URL' [options]

Says what the configuration would do with a request and why, without sending anything.

  -f FILE             configuration file or folder, as for running; repeat for more
  'METHOD URL'        as in 'GET http://shop.example.com/cart?id=7'; GET may be left out
  -H 'Name: value'    a header field; repeat for more
  -d TEXT             a body; the method is then POST unless given
  --src IP[:PORT]     the client's address (127.0.0.1)
  --dst IP[:PORT]     the address it connects to (the URL's port on any address)
  --frontend NAME     the frontend, when address and port don't tell
  --all               show every rule, also in long runs of rules that don't apply
  --json              for programs

Example: harrier explain -f examples/api-gateway.cfg 'GET http://api.example.com/v1/users' --src 192.0.2.7
";

impl Ask {
    /// Reads the words behind `explain`.
    ///
    /// # Errors
    /// What can't be understood.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Ask, Wrong> {
        let mut ask = Ask {
            method: String::new(),
            target: String::new(),
            host: None,
            headers: Vec::new(),
            body: Vec::new(),
            src: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            dst: None,
            port: None,
            frontend: None,
            all: false,
            json: false,
            files: Vec::new(),
        };
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--all" | "-a" => ask.all = true,
                "--json" => ask.json = true,
                "-h" | "--help" => return Err(Wrong(String::new())),
                _ if word.starts_with('-') => {
                    let value = words.next().ok_or_else(|| Wrong(format!("'{word}' needs a value")))?;
                    ask.option(&word, value)?;
                }
                _ if ask.target.is_empty() => ask.request(&word)?,
                _ => return Err(Wrong(format!("'{word}' is one word too many: quote 'METHOD URL' as one"))),
            }
        }
        if ask.files.is_empty() {
            return Err(Wrong("no configuration: name it with '-f FILE'".into()));
        }
        if ask.target.is_empty() {
            return Err(Wrong("no request: describe it as 'GET http://host/path'".into()));
        }
        if ask.method.is_empty() {
            ask.method = if ask.body.is_empty() { "GET" } else { "POST" }.into();
        }
        Ok(ask)
    }

    fn option(&mut self, word: &str, value: String) -> Result<(), Wrong> {
        match word {
            "-f" => self.files.push(value),
            "-d" | "--data" => self.body = value.into_bytes(),
            "--src" => self.src = address(&value)?,
            "--dst" => self.dst = Some(address(&value)?),
            "--frontend" => self.frontend = Some(value),
            "-X" => self.method = value,
            "-H" => {
                let field = value.split_once(':').filter(|(name, _)| !name.is_empty());
                let (name, value) =
                    field.ok_or_else(|| Wrong(format!("'{value}' is not a field: write 'Name: value'")))?;
                self.headers.push((name.into(), value.trim().into()));
            }
            _ => return Err(Wrong(format!("unknown option '{word}'"))),
        }
        Ok(())
    }

    /// `METHOD URL`, `URL`, or a path.
    fn request(&mut self, text: &str) -> Result<(), Wrong> {
        let mut parts = text.split_whitespace();
        let (method, url) = match (parts.next(), parts.next(), parts.next()) {
            (Some(url), None, _) => ("", url),
            (Some(method), Some(url), rest) if rest.is_none_or(|v| v.starts_with("HTTP/")) => (method, url),
            _ => return Err(Wrong(format!("'{text}' is not 'METHOD URL'"))),
        };
        if !method.is_empty() {
            self.method = method.into();
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            self.target = url.into();
            return Ok(());
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        self.target = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        self.host = Some(authority.into());
        let port = authority.rsplit_once(':').filter(|(_, p)| !p.is_empty() && !p.contains(']'));
        self.port = match (port, scheme) {
            (Some((_, p)), _) => Some(p.parse().map_err(|_| Wrong(format!("'{p}' is not a port")))?),
            (None, "https") => Some(443),
            (None, _) => Some(80),
        };
        Ok(())
    }

    /// The request as a client would send it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        let mut field = |name: &str, value: &str| {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        };
        let says = |n: &str| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(n));
        if let Some(host) = self.host.as_ref().filter(|_| !says("host")) {
            field("Host", host);
        }
        for (name, value) in &self.headers {
            field(name, value);
        }
        if !self.body.is_empty() && !says("content-length") && !says("transfer-encoding") {
            field("Content-Length", &self.body.len().to_string());
        }
        out.extend_from_slice(b"\r\n");
        out
    }
}

fn address(text: &str) -> Result<SocketAddr, Wrong> {
    let ip = |t: &str| t.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    text.parse().ok().or_else(|| ip(text)).ok_or_else(|| Wrong(format!("'{text}' is not an address")))
}

#[cfg(test)]
mod tests {
    use super::{Ask, Wrong};

    fn of(words: &[&str]) -> Result<Ask, Wrong> {
        Ask::parse(words.iter().map(|w| (*w).to_owned()))
    }

    #[test]
    fn a_url_gives_target_host_and_port() {
        let ask = of(&["-f", "x", "GET https://a.example:8443/p?q=1", "-H", "X-A:  b "]).unwrap();
        assert_eq!((ask.method.as_str(), ask.target.as_str()), ("GET", "/p?q=1"));
        assert_eq!((ask.host.as_deref(), ask.port), (Some("a.example:8443"), Some(8443)));
        assert_eq!(ask.bytes(), b"GET /p?q=1 HTTP/1.1\r\nHost: a.example:8443\r\nX-A: b\r\n\r\n");
        let ask = of(&["http://[::1]?x", "-f", "x", "-d", "ab"]).unwrap();
        assert_eq!((ask.method.as_str(), ask.target.as_str(), ask.port), ("POST", "/?x", Some(80)));
        assert!(ask.bytes().ends_with(b"Host: [::1]\r\nContent-Length: 2\r\n\r\n"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let why = |words: &[&str]| of(words).unwrap_err().0;
        assert!(why(&["GET /"]).contains("-f FILE"));
        assert!(why(&["-f", "x"]).contains("no request"));
        assert!(why(&["-f", "x", "/", "--src", "nobody"]).contains("'nobody' is not an address"));
        assert!(why(&["-f", "x", "GET", "/"]).contains("one word too many"));
        assert!(why(&["-f", "x", "/", "-H", "novalue"]).contains("Name: value"));
    }
}
