//! The words of one `http-check` or `tcp-check` line, and the step they describe (manual, section 4.2).

use std::sync::Arc;

use lang::places::Place;
use lang::{Expr, LogFormat, Names, Words};
use model::check::CheckStatus;
use model::vars::VarRef;
use program::Mode;
use program::check::{Expect, HeaderPattern, Pattern, PortFrom, Step};
use syntax::{Diagnostic, Line, Word};

use super::{HEALTHY, text};
use crate::mux::{Fit, Mux};
use crate::names::Resolver;

/// Reads one `http-check` or `tcp-check` line.
pub(super) struct Reader<'g, 'r> {
    pub line: &'g Line,
    /// Index of the next word.
    pub at: usize,
    pub registry: &'g lang::Registry,
    pub names: Resolver<'r>,
}

pub(super) type Read<T> = Result<T, Diagnostic>;

impl<'g> Reader<'g, '_> {
    fn next(&mut self) -> Option<&'g Word> {
        let word = self.line.words().get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn label(&self) -> String {
        let second = self.line.words().get(1).map_or("", |w| w.text());
        format!("'{} {second}'", self.line.keyword())
    }

    pub fn fail(&self, text: impl std::fmt::Display) -> Diagnostic {
        let word = self.line.words().get(self.at.saturating_sub(1)).unwrap_or(self.line.keyword());
        Diagnostic::alert(word.span(), format!("{} : {text}.", self.label()))
    }

    fn value(&mut self, name: &str, what: &str) -> Read<&'g Word> {
        match self.next() {
            Some(word) => Ok(word),
            None => {
                let s = if what.contains(" and ") { "s" } else { "" };
                Err(self.fail(format!("'{name}' expects {what} as argument{s}")))
            }
        }
    }

    fn format(&mut self, word: &Word) -> Read<Arc<LogFormat>> {
        let parsed = LogFormat::parse(word.bytes(), Place::Check, self.registry, &mut self.names);
        parsed.map(Arc::new).map_err(|f| self.fail(f.text))
    }

    fn regex(&self, word: &Word) -> Read<pattern::Regex> {
        pattern::Regex::new(word.bytes(), false).map_err(|e| self.fail(e))
    }

    pub fn step(&mut self) -> Read<Option<Step>> {
        let name = self.next().map_or("", |w| w.text());
        let http = self.line.keyword() == "http-check";
        let (name, arg) = name.split_once('(').map_or((name, ""), |(n, a)| (n, a.trim_end_matches(')')));
        Ok(Some(match name {
            "connect" => self.connect()?,
            "send" if http => self.send_http()?,
            "send" | "send-lf" | "send-binary" | "send-binary-lf" => self.send(name)?,
            "expect" => Step::Expect(self.expect(http)?),
            "set-var" => self.set_var(arg)?,
            "unset-var" => Step::UnsetVar(self.variable(arg)?),
            "set-var-fmt" => {
                let var = self.variable(arg)?;
                let word = self.value("set-var-fmt", "a format")?;
                Step::SetVarFormat(var, self.format(word)?)
            }
            "comment" => match self.next() {
                Some(word) => Step::Comment(word.text().into()),
                None => return Err(self.fail("expects a string as argument")),
            },
            _ => return Ok(None),
        }))
    }

    fn variable(&mut self, name: &str) -> Read<VarRef> {
        self.names.variable(name).map_err(|f| self.fail(f.text))
    }

    fn set_var(&mut self, name: &str) -> Read<Step> {
        let var = self.variable(name)?;
        let list: Vec<&[u8]> = self.line.words().iter().skip(self.at).map(Word::bytes).collect();
        let expr = Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
        Ok(Step::SetVar(var, expr.map_err(|f| self.fail(f.text))?))
    }

    fn comment(&mut self) -> Read<Box<str>> {
        Ok(self.value("comment", "a string")?.text().into())
    }

    fn connect(&mut self) -> Read<Step> {
        let (mut port, mut addr, mut comment) = (None, None, None);
        let (mut send_proxy, mut linger, mut default, mut via_socks4) = (false, false, false, false);
        let (mut ssl, mut sni, mut alpn, mut proto) = (false, None, None, None);
        while let Some(word) = self.next() {
            match word.text() {
                "default" => default = true,
                "port" => port = Some(self.port()?),
                "addr" => {
                    let word = self.value("addr", "an address")?;
                    let accept = syntax::addr::Accept::SERVER;
                    let found = syntax::addr::parse(word.text(), accept, &self.names.memory.environment)
                        .map_err(|why| self.fail(why))?;
                    let ip = crate::resolve::ip(&found.host).ok_or_else(|| self.fail("invalid address"))?;
                    let own = match found.ports {
                        syntax::addr::Ports::One(port) => port,
                        _ => 0,
                    };
                    addr = Some(std::net::SocketAddr::new(ip, own));
                }
                "send-proxy" => send_proxy = true,
                "linger" => linger = true,
                "comment" => comment = Some(self.comment()?),
                "proto" => proto = Some(self.proto()?.unasked()),
                "ssl" => ssl = true,
                "sni" => sni = Some(self.value("sni", "a SNI")?.text().into()),
                "alpn" => {
                    let word = self.value("alpn", "a comma-delimited list of protocols")?;
                    alpn = Some(word.text().split(',').map(|p| p.as_bytes().to_vec()).collect());
                }
                "via-socks4" => via_socks4 = true,
                other => {
                    return Err(self.fail(format!("expects 'comment', 'port', 'addr', 'send-proxy', 'ssl', 'sni', 'alpn' or 'via-socks4', 'linger', 'default' but got '{other}' as argument.")));
                }
            }
        }
        Ok(Step::Connect {
            port,
            addr,
            send_proxy,
            default,
            ssl,
            sni,
            alpn,
            proto,
            via_socks4,
            linger,
            comment,
        })
    }

    /// A protocol that fits the kind of check.
    fn proto(&mut self) -> Read<Mux> {
        let word = self.value("proto", "a MUX protocol")?;
        let mux = Mux::of(word.text())
            .ok_or_else(|| self.fail(format!("'proto' : unknown MUX protocol '{word}'.")))?;
        let http = self.line.keyword() == "http-check";
        match mux.towards_servers(if http { Mode::Http } else { Mode::Tcp }) {
            Fit::Spoken => Ok(mux),
            Fit::Unusable => {
                let keyword = self.line.keyword();
                Err(self.fail(format!("'proto' : invalid MUX protocol '{word}' for {keyword}")))
            }
        }
    }

    /// A number, or an expression that gives one.
    fn port(&mut self) -> Read<PortFrom> {
        let word = self.value("port", "a port number")?;
        let digits = word.bytes().iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == word.bytes().len() {
            let port = word.text().parse().ok().filter(|p| *p > 0);
            return port.map(PortFrom::Fixed).ok_or_else(|| {
                self.fail(format!(
                    "expects a valid TCP port (from range 1 to 65535) or a sample expression, got {word}."
                ))
            });
        }
        let list = [word.bytes()];
        let expr = Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
        expr.map(PortFrom::Expr)
            .map_err(|f| self.fail(format!("error detected while parsing port expression : {}", f.text)))
    }

    fn send(&mut self, name: &str) -> Read<Step> {
        let (format, hex) = (name.ends_with("-lf"), name.contains("binary"));
        let word = match self.next() {
            Some(word) => word,
            None => {
                let what = if name == "send-binary" { "binary string" } else { "string" };
                return Err(self.fail(format!("'{what}' expects a {name} as argument")));
            }
        };
        let data = match (format, hex) {
            (true, _) => self.format(word)?,
            (false, false) => Arc::new(text(word.bytes())),
            (false, true) => Arc::new(text(&self.digits(word)?)),
        };
        let mut comment = None;
        while let Some(word) = self.next() {
            match word.text() {
                "comment" => comment = Some(self.comment()?),
                other => return Err(self.fail(format!("expects 'comment' but got '{other}' as argument"))),
            }
        }
        // Plain hexadecimal digits have become bytes already.
        Ok(Step::Send { data, hex: hex && format, comment })
    }

    fn digits(&self, word: &Word) -> Read<Vec<u8>> {
        let text = word.bytes();
        let odd = || {
            self.fail(format!("'{word}' invalid binary string (an even number of hex digit is expected).\n"))
        };
        if !text.len().is_multiple_of(2) {
            return Err(odd());
        }
        let pairs = text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        pairs.collect::<Option<Vec<u8>>>().ok_or_else(odd)
    }

    fn send_http(&mut self) -> Read<Step> {
        let (mut method, mut version): (Box<[u8]>, Box<[u8]>) = (Box::default(), Box::default());
        let (mut uri, mut body, mut comment) = (Arc::new(text(b"")), None, None);
        let (mut headers, mut host) = (Vec::new(), None);
        while let Some(word) = self.next() {
            match word.text() {
                "meth" => method = self.value("meth", "a string")?.bytes().into(),
                "uri" => uri = Arc::new(text(self.value("uri", "a string")?.bytes())),
                "uri-lf" => {
                    let word = self.value("uri-lf", "a string")?;
                    uri = self.format(word)?;
                }
                "ver" => version = self.value("ver", "a string")?.bytes().into(),
                "hdr" => {
                    let name = self.value("hdr", "<name> and <value>")?.bytes();
                    let value = self.value("hdr", "<name> and <value>")?;
                    if name.eq_ignore_ascii_case(b"host")
                        && let Some(first) = host.replace(value)
                    {
                        return Err(
                            self.fail(format!("'host' header already defined (previous value is '{first}')"))
                        );
                    }
                    let value = LogFormat::parse(value.bytes(), Place::Check, self.registry, &mut self.names);
                    let value = value.map_err(|f| self.fail(f.text))?;
                    if !name.eq_ignore_ascii_case(b"content-length")
                        && !name.eq_ignore_ascii_case(b"transfer-encoding")
                    {
                        headers.push((name.into(), value));
                    }
                }
                "body" => body = Some(Arc::new(text(self.value("body", "a string")?.bytes()))),
                "body-lf" => {
                    let word = self.value("body-lf", "a string")?;
                    body = Some(self.format(word)?);
                }
                "comment" => comment = Some(self.comment()?),
                other => {
                    return Err(self.fail(format!("expects 'comment', 'meth', 'uri', 'uri-lf', 'ver', 'hdr', 'body' or 'body-lf' but got '{other}' as argument.")));
                }
            }
        }
        Ok(Step::SendHttp { method, uri, version, headers, body, comment })
    }

    fn expect(&mut self, http: bool) -> Read<Expect> {
        if self.line.words().get(self.at).is_none() {
            return Err(self.fail("expects at least a matching pattern as arguments"));
        }
        let mut out = Expect::of(Pattern::Status(vec![HEALTHY]));
        let mut found = false;
        while let Some(word) = self.next() {
            match word.text() {
                "min-recv" => {
                    let n = self.value("min-recv", "an integer")?;
                    let n: i32 =
                        n.text().parse().ok().filter(|n| *n >= -1).ok_or_else(|| {
                            self.fail("'min-recv' expects -1 or an integer from 0 to INT_MAX")
                        })?;
                    out.min_recv = u32::try_from(n).ok();
                }
                "comment" => out.comment = Some(self.comment()?),
                "ok-status" => out.ok_status = Some(self.status("ok-status")?),
                "error-status" => out.error_status = Some(self.status("error-status")?),
                "tout-status" => out.timeout_status = Some(self.status("tout-status")?),
                "on-success" => {
                    let word = self.value("on-success", "a string")?;
                    out.on_success = Some(self.format(word)?);
                }
                "on-error" => {
                    let word = self.value("on-error", "a string")?;
                    out.on_error = Some(self.format(word)?);
                }
                "status-code" => {
                    let word = self.value("status-code", "an expression")?;
                    let list = [word.bytes()];
                    let expr =
                        Expr::parse(&mut Words::new(&list), Place::Check, self.registry, &mut self.names);
                    let expr = expr.map_err(|f| {
                        self.fail(format!("error detected while parsing status-code expression : {}", f.text))
                    });
                    out.status_code = Some(expr?);
                }
                "!" => out.negated = true,
                name if !found => {
                    let (negated, name) = name.strip_prefix('!').map_or((false, name), |n| (true, n));
                    out.negated |= negated;
                    out.what = self.pattern(name, http)?;
                    found = true;
                }
                _ => return Err(self.fail("only one pattern expected")),
            }
        }
        if !found {
            return Err(self.fail("expects at least a matching pattern as arguments"));
        }
        if out.negated && matches!(out.what, Pattern::Anything) {
            return Err(self.fail("[!] not supported with 'custom'"));
        }
        Ok(out)
    }

    fn status(&mut self, name: &str) -> Read<CheckStatus> {
        use CheckStatus::*;
        let word = self.value(name, "a string")?;
        let (known, list): (&[CheckStatus], _) = match name {
            "ok-status" => (&[L4Ok, L6Ok, L7Ok, L7OkCond], "'L4OK', 'L6OK', 'L7OK' or 'L7OKC'"),
            "error-status" => {
                (&[L7OkCond, L4Con, L6Rsp, L7Rsp, L7Sts], "'L4CON', 'L6RSP', 'L7RSP' or 'L7STS'")
            }
            _ => (&[L4Timeout, L6Timeout, L7Timeout], "'L4TOUT', 'L6TOUT' or 'L7TOUT'"),
        };
        let found = known.iter().copied().find(|s| s.code() == word.text());
        found.ok_or_else(|| self.fail(format!("'{name}' only supports {list} status (got '{word}').")))
    }

    fn pattern(&mut self, name: &str, http: bool) -> Read<Pattern> {
        let pattern = |r: &mut Self| r.value(name, "a <pattern>");
        Ok(match name {
            "status" if http => {
                let word = pattern(self)?;
                Pattern::Status(self.codes(word)?)
            }
            "rstatus" if http => {
                let word = pattern(self)?;
                Pattern::StatusRegex(self.regex(word)?)
            }
            "string" => Pattern::Text(pattern(self)?.bytes().into()),
            "rstring" => {
                let word = pattern(self)?;
                Pattern::Regex(self.regex(word)?)
            }
            "string-lf" => {
                let word = pattern(self)?;
                Pattern::Format(self.format(word)?)
            }
            "binary" if !http => {
                let word = pattern(self)?;
                Pattern::Binary(self.digits(word)?.into())
            }
            "rbinary" if !http => {
                let word = pattern(self)?;
                Pattern::BinaryRegex(self.regex(word)?)
            }
            "binary-lf" if !http => {
                let word = pattern(self)?;
                Pattern::BinaryFormat(self.format(word)?)
            }
            "custom" if !http => Pattern::Anything,
            "hdr" | "fhdr" if http => self.header(name == "fhdr")?,
            other if http => {
                return Err(self.fail(format!("'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', [!]hdr, [!]fhdr or comment but got '{other}' as argument.")));
            }
            other => {
                return Err(self.fail(format!("'only supports min-recv, '[!]binary', '[!]string', '[!]rstring', '[!]string-lf''[!]rbinary', '[!]binary-lf' or comment but got '{other}' as argument.")));
            }
        })
    }

    fn codes(&self, word: &Word) -> Read<Vec<(u16, u16)>> {
        let list = word.text();
        if let Some(odd) = list.chars().find(|c| !c.is_ascii_digit() && !matches!(c, ',' | '-')) {
            return Err(self.fail(format!("invalid character '{odd}' in the list of status codes")));
        }
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some((low.parse().ok()?, high.parse().ok()?)).filter(|(l, h): &(u16, u16)| l <= h)
        };
        let all = list.split(',').map(range).collect::<Option<Vec<_>>>();
        all.ok_or_else(|| self.fail(format!("invalid range of status codes '{list}'")))
    }

    /// `hdr name|name-lf [-m how] pattern [value|value-lf [-m how] pattern]`.
    fn header(&mut self, full: bool) -> Read<Pattern> {
        let word = self.next().map_or("", Word::text);
        if !matches!(word, "name" | "name-lf") {
            let text = "'hdr' expects at the name keyword as first argument followed by a pattern";
            return Err(self.fail(text));
        }
        let name = self.header_pattern(word == "name-lf", true)?;
        let next = self.line.words().get(self.at).map_or("", Word::text);
        let value = match next {
            "value" | "value-lf" => {
                self.next();
                Some(self.header_pattern(next == "value-lf", false)?)
            }
            _ => None,
        };
        Ok(Pattern::Header { name, value, full })
    }

    /// `name`: names of fields are compared without regard to case.
    fn header_pattern(&mut self, format: bool, name: bool) -> Read<HeaderPattern> {
        let mut word = self.value("hdr", "a pattern")?;
        let mut how = "str";
        if word == "-m" {
            how = self.value("-m", "a matching method")?.text();
            word = self.value("hdr", "a pattern")?;
        }
        if how == "reg" {
            let regex = pattern::Regex::new(word.bytes(), name);
            return regex.map(HeaderPattern::Reg).map_err(|e| self.fail(e));
        }
        let text = if format { self.format(word)? } else { Arc::new(text(word.bytes())) };
        Ok(match how {
            "str" => HeaderPattern::Str(text),
            "beg" => HeaderPattern::Beg(text),
            "end" => HeaderPattern::End(text),
            "sub" => HeaderPattern::Sub(text),
            other => {
                return Err(self.fail(format!(
                    "'hdr' : '-m' only supports 'str', 'beg', 'end', 'sub' or 'reg' (got '{other}')"
                )));
            }
        })
    }
}
