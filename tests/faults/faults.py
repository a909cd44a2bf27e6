"""Faults that Harrier once had (issue 12, part 2), each as an edit that puts it back.

A row: name, what went wrong, and edits: file under crates/, text that stands there once, text that takes its place. `FAULT`
stands for the switch: true when HARRIER_FAULT names the row. So one build holds all of them, and `run.py` turns them on one by one.
"""
import collections

Fault = collections.namedtuple("Fault", "name what edits")
ROWS = []


def behind(file, text, more):
    """Adds something behind a text."""
    return file, text, text + more


def ahead(file, text, more):
    """Adds something ahead of a text."""
    return file, text, more + text


def fault(name, what, *edits):
    ROWS.append(Fault(name, what, [(file, old, new.replace("FAULT", f'base::fault::on("{name}")')) for file, old, new in edits]))


# Bodies.
fault("h2-slot", "a stream's slot is given to the next stream while something waits for a slow taker",
      ("engine/src/h2/roster.rs", "        let place = self.vacant.pop().unwrap_or_else(|| {",
       "        let last = self.by_slot.get(stream.slot()).copied().filter(|at| FAULT && self.places.get(*at).is_some_and(Option::is_some));\n"
       "        let place = last.or_else(|| self.vacant.pop()).unwrap_or_else(|| {"),
      ("engine/src/h2/roster.rs", 'debug_assert!(empty.is_none(), ', 'debug_assert!(empty.is_none() || FAULT, '))
fault("h2-upload-cut", "an upload ends with the answer, though more of it came",
      ("engine/src/h2/line.rs", "let answered = self.up.is_empty() && ", "let answered = (FAULT || self.up.is_empty()) && "))
fault("h2-response-cut", "a stream to a server is over with its last frame, whatever its user has yet to take",
      ("engine/src/h2/route.rs", "(false, false) if !self.down.is_empty() =>", "(false, false) if !self.down.is_empty() && !FAULT =>"))
fault("h2-window", "the window of a stream opens as data come, not as they are consumed",
      behind("engine/src/h2/delivery.rs", "    pub fn push(\n        &mut self,\n        cx: &mut Context<'_>,\n        link: &Socket,\n        stream: Key,\n        connection: &mut Connection,\n        out: &mut Vec<u8>,\n    ) -> bool {\n", "        if FAULT {\n            connection.release(stream, std::mem::take(&mut self.owed), out);\n        }\n"))
fault("h2-head-get", "HEAD that became GET: the body is not read on",
      ("engine/src/h2/line.rs", " && self.method != Method::Head;", " && (FAULT || self.method != Method::Head);"))
fault("pipe-count", "bytes that went through pipes are not counted",
      ("engine/src/pump.rs", "                self.spliced += n;\n", "                self.spliced += if FAULT { 0 } else { n };\n"))
fault("pipe-chunks", "chunked bodies never go through pipes",
      ("engine/src/pump.rs", "Framing::Chunked(scanner) => scanner.chunk_left() >= WORTH_A_PIPE,", "Framing::Chunked(scanner) => scanner.chunk_left() >= WORTH_A_PIPE && !FAULT,"))

# Connections.
fault("idle-leak", "a connection that its server closed at rest stays in the count of idle ones",
      ("engine/src/pool/share.rs", "let gone = |note| state.conns.leave(is_safe(noted(note)));", "let gone = |note| if !FAULT { state.conns.leave(is_safe(noted(note))) };"))
fault("pause-shutdown", "each worker shuts a paused listener down",
      ("rt/src/listener.rs", "        let mut share = self.listener.share();\n        share.away += 1;\n        share.settle(&self.listener)\n",
       "        let mut share = self.listener.share();\n        share.away += 1;\n        if FAULT\n            && let Some(fd) = self.listener.internet()\n        {\n"
       "            share.given_up = true;\n            return Ok(rustix::net::shutdown(fd, rustix::net::Shutdown::Read)?);\n        }\n        share.settle(&self.listener)\n"))
fault("soft-stop", "a process that stops closes its sockets at once, with what waits in their queues",
      behind("engine/src/listener.rs", "    async fn drain(self) {\n", "        if FAULT {\n            return;\n        }\n"))
fault("proxy-reuse", "a server connection serves clients that its PROXY header does not tell of",
      ("engine/src/connect/target.rs", "        && header.is_none()\n", "        && (FAULT || header.is_none())\n"),
      ahead("engine/src/connect/target.rs", "    let shareable = stream.txn.has_req && proxy.reuse != Reuse::Never;\n", "    let header = header.filter(|_| !FAULT);\n"))
fault("low-conn", "pool-low-conn keeps no thread from taking connections of others, nor an idle one from being closed",
      ("engine/src/connect.rs", "|| idle < low {", "|| (idle < low && !FAULT) {"),
      ("model/src/server_conns.rs", "self.need().saturating_add(low)", "self.need().saturating_add(if FAULT { 0 } else { low })"))
fault("maxconn", "each worker compares before it counts, so that more come in than the limit says",
      ("engine/src/admission.rs", "            let more = |n: u32| (limit == 0 || n < limit).then_some(n + 1);",
       "            let more = |n: u32| (limit == 0 || n < limit + if FAULT { rt::worker_count().saturating_sub(1) as u32 } else { 0 }).then_some(n + 1);"))
fault("rate-limit", "sessions that are pending do not count, so that a burst doubles the rate",
      ("engine/src/admission.rs", "rate.read(now) + u64::from(pending) < u64::from(limit)", "rate.read(now) + if FAULT { 0 } else { u64::from(pending) } < u64::from(limit)"))
fault("affinity", "a hashed request does not wait for its server (section 4.2)",
      ("engine/src/choose.rs", "    if !proxy.balance.is_hash() || key.is_none() {", "    if !proxy.balance.is_hash() || key.is_none() || FAULT {"))

# Rules and facts.
fault("restrict-names", "option http-restrict-req-hdr-names does nothing",
      ("engine/src/h1/rules.rs", "    if restrict == RestrictNames::Preserve {", "    if restrict == RestrictNames::Preserve || FAULT {"))
fault("fc-src", "fc_src is what the PROXY header says",
      ("lang/src/fetch/client.rs", '|e, _| ip(e.conn.fc_src.get()), "Client address', '|e, _| ip(if FAULT { e.conn.src.get() } else { e.conn.fc_src.get() }), "Client address'),
      ("lang/src/fetch/client.rs", '|e, _| port(e.conn.fc_src.get()), "Client port', '|e, _| port(if FAULT { e.conn.src.get() } else { e.conn.fc_src.get() }), "Client port'))
fault("namespace", "bind ... namespace is taken and ignored",
      ahead("compile/src/bind/keywords.rs", "    match std::path::Path::new(\"/var/run/netns\")", "    if FAULT {\n        return Ok(());\n    }\n"))

# HTTP/2 messages.
fault("h2-pri", "method PRI is sent on",
      ("wire/src/h2/intake.rs", '|| text == b"PRI" {', '|| (text == b"PRI" && !FAULT) {'))
fault("h2-trim", "a value with blanks around resets its stream",
      ahead("wire/src/h2/intake.rs", "        // Blanks around a value are no part", '        if FAULT && form == ValueForm::Padded {\n            return self.malformed("blanks around a value");\n        }\n'))
fault("h2-trailer-length", "trailers of HTTP/2 may have a content-length",
      ("wire/src/h2/intake.rs", "Known::ContentLength | Known::Host | Known::Te if self.section == Section::Trailers => {",
       "Known::ContentLength | Known::Host | Known::Te if self.section == Section::Trailers && !FAULT => {"))

# Proxies, servers, checks.
fault("check-rules", "rules of a section are added to the inherited check, request line included",
      ("compile/src/assemble/health.rs", "Some(&mut first).filter(|_| section == p.check_section)", "Some(&mut first).filter(|_| FAULT || section == p.check_section)"))
fault("dynamic-proxy", "checks of dynamic servers inherit send-proxy",
      ("compile/src/dynamic.rs", "        check.send_proxy = checks_say_proxy;\n", "        check.send_proxy = checks_say_proxy || (FAULT && server.send_proxy.is_some());\n"))
fault("monitor-uri", "monitor-uri is compared with the whole target",
      ("program/src/proxy.rs", "            Some(b'/') => uri == wire", "            Some(b'/') if !FAULT => uri == wire"))
fault("unique-id-back", "a backend's unique-id-format may use nothing of the backend",
      ("compile/src/assemble/formats.rs", '"unique-id-format" if p.kind.is_back() =>', '"unique-id-format" if p.kind.is_back() && !FAULT =>'))
fault("check-addr", "addr HOST:PORT loses its port",
      ("compile/src/server/keywords/check.rs", "        Ports::One(port) => port,\n        _ => 0,\n    };\n    let ip = match &found.host {", "        Ports::One(port) if !FAULT => port,\n        _ => 0,\n    };\n    let ip = match &found.host {"))
fault("has-ctl", "a mask of has_ctl may be wider than there are control characters",
      behind("lang/src/conv/text.rs", "fn check_mask(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {\n", "    if FAULT {\n        args.clear();\n        return Ok(());\n    }\n"))
fault("json-query", "json_query turns false and true into text",
      ("lang/src/conv/json.rs", '        b"true" => Ok(Value::Bool(true)),', '        b"true" if !FAULT => Ok(Value::Bool(true)),'))
fault("publish", "publish of a disabled backend says nothing of it",
      ("admin/src/command/farm.rs", "    if proxy.disabled {\n        return Ok(Reply::info(\"No effect", "    if proxy.disabled && !FAULT {\n        return Ok(Reply::info(\"No effect"))
fault("proto", "proto need not fit the mode",
      ("compile/src/mux.rs", "            (Mode::Http, Mux::H1 | Mux::H2) | (Mode::Tcp, Mux::None) => Fit::Spoken,\n            (Mode::Http, Mux::Fcgi)",
       "            (Mode::Http, Mux::H1 | Mux::H2) | (Mode::Tcp, Mux::None) => Fit::Spoken,\n            (_, Mux::H1 | Mux::H2 | Mux::None) if FAULT => Fit::Spoken,\n            (Mode::Http, Mux::Fcgi)"))
fault("no-session-cookie", "insert without preserve leaves the server's own cookie",
      ("engine/src/persist.rs", "(CookieMode::Insert, _) if !cookie.preserve => {", "(CookieMode::Insert, _) if !cookie.preserve && !FAULT => {"))
fault("cookie-first", "of several cookies of the name the first one counts",
      ("engine/src/persist.rs", "            judged.letter = b'I';\n            continue;", "            judged.letter = b'I';\n            if FAULT {\n                break;\n            }\n            continue;"))
fault("cookie-comma", "a comma does not end a cookie",
      ("wire/src/head/cookies.rs", "            b';' | b',' if !quoted => return at,", "            b';' if !quoted => return at,\n            b',' if !quoted && !FAULT => return at,"))
fault("cookie-prefix", "prefix without ~ names no server",
      ahead("engine/src/persist.rs", "    let (name, rest) = value.split_at(at);\n", '    if FAULT && by == PREFIX && at == value.len() {\n        return (b"", b"");\n    }\n'))
fault("cookie-dates", "a dated value without maxidle gives a state of its own",
      ("engine/src/persist.rs", "        false => last.or(first).is_some(),", "        false => !FAULT && last.or(first).is_some(),"))

# Messages.
fault("host-authority", "set-header Host leaves the authority of an absolute target",
      ("lang/src/act/fields.rs", "if host && done.is_ok() {", "if host && !FAULT && done.is_ok() {"))
fault("set-uri-host", "set-uri with an authority leaves Host",
      ("lang/src/act/start_line.rs", "if part == Part::Target { uri::host_port(out) }", "if part == Part::Target && !FAULT { uri::host_port(out) }"))
fault("set-path-query", "set-path without a slash loses the query",
      ("lang/src/act/start_line.rs", "let whole = uri::form(target) == uri::Form::Authority;", "let whole = !FAULT && uri::form(target) == uri::Form::Authority;"))
fault("reply-crlf", "hdr of return and deny writes raw line ends",
      ("engine/src/h1/answer.rs", "value.append(env, Use::Header, &mut v);", "value.append(env, if FAULT { Use::Value } else { Use::Header }, &mut v);"))
fault("url-dec-nul", "url_dec gives up at %00",
      ("lang/src/conv/encoding.rs", "                digit()? << 4 | digit()?\n", "                let c = digit()? << 4 | digit()?;\n                if FAULT && c == 0 {\n                    return Err(Miss::None);\n                }\n                c\n"))
fault("redirect-cookie", "redirect set-cookie-fmt adds no path",
      ("lang/src/act/redirect.rs", '"set-cookie-fmt" => draft.cookie = Some((reading.format(&missing)?, "; path=/;")),', '"set-cookie-fmt" => draft.cookie = Some((reading.format(&missing)?, if FAULT { "" } else { "; path=/;" })),'))
fault("deny-599", "deny status 599 has a body",
      ("lang/src/act/reply.rs", "(None, None, Kind::Denial) if !HANDLED.contains(&status) => Payload::Empty,", "(None, None, Kind::Denial) if !HANDLED.contains(&status) && !FAULT => Payload::Empty,"))
fault("httpclose", "option httpclose of a backend closes both sides",
      ("engine/src/h1/headers.rs", "    let close = stream.frontend().options.connection == Connection::Close;", "    let close = stream.frontend().options.connection == Connection::Close\n        || (FAULT && stream.backend().options.connection == Connection::Close);"))
fault("realm", "statistics ask with another realm",
      ("admin/src/stats/page.rs", "page.realm.as_deref().unwrap_or(REALM)", 'page.realm.as_deref().unwrap_or(if FAULT { "Harrier Statistics" } else { REALM })'))
fault("null-without-server", "option dontlognull logs connections without data when no server is up",
      ("engine/src/tcp.rs", "stream.txn.null = !stream.client.has_input();\n        if matches!", "stream.txn.null = !FAULT && !stream.client.has_input();\n        if matches!"))
fault("chunk-size", "chunk sizes near the end of 64 bits are taken",
      ("wire/src/http1/chunk.rs", "if self.left > SIZE_MAX {", "if self.left > SIZE_MAX && !FAULT {"))
fault("connect-length", "a 2xx to CONNECT keeps its content-length",
      ("engine/src/h1/response.rs", "        stream.txn.res.remove_all(Known::ContentLength);", "        if !FAULT {\n            stream.txn.res.remove_all(Known::ContentLength);\n        }"))

# Logs.
fault("log-captures", "a declared response capture without a response shows nothing",
      ("engine/src/h1/captures.rs", "    stream.txn.res_captures.get_mut().resize(front.res_captures.len(), None);", "    if !FAULT {\n        stream.txn.res_captures.get_mut().resize(front.res_captures.len(), None);\n    }"))
fault("log-failed-connect", "%si and %sp are empty after a failed connect",
      ("engine/src/connect.rs", "    stream.txn.server_conn.dst = crate::net::peer(Some(aim.addr));\n    let h1 =", "    if !FAULT {\n        stream.txn.server_conn.dst = crate::net::peer(Some(aim.addr));\n    }\n    let h1 ="))
fault("log-hpo", "%HPO of * is *",
      ("lang/src/tag/tables.rs", "|l| path(l.target())), \"Path; nothing", "|l| if FAULT { l.target() } else { path(l.target()) }), \"Path; nothing"))

# PROXY.
fault("proxy-unknown", "text behind UNKNOWN is passed over",
      ahead("wire/src/proxy/parse.rs", "    let is_v6 = kind.starts_with(b\"TCP6 \");\n", "    if let (true, true, Some(end)) = (FAULT, kind.starts_with(b\"UNKNOWN \"), memchr::memchr(b'\\n', input)) {\n        return Ok(Parsed::Complete(header(None, true), end + 1));\n    }\n"))
fault("proxy-local", "LOCAL may have an address",
      ahead("wire/src/proxy/parse.rs", "        _ if local => 0,\n", "        0x11 if local && FAULT => 12,\n"))
fault("proxy-family", "an unknown family is taken as LOCAL",
      ahead("wire/src/proxy/parse.rs", "        _ => return Err(Error::Malformed),\n    };\n    let tlvs", "        _ if FAULT => body.len(),\n"))
fault("proxy-zeros", "leading zeros in a port are refused",
      ("wire/src/proxy/parse.rs", "if word.bytes().all(|b| b.is_ascii_digit()) {", "if word.bytes().all(|b| b.is_ascii_digit()) && !(FAULT && word.starts_with('0') && word.len() > 1) {"))
fault("proxy-tlv", "records may be of any length",
      ahead("wire/src/proxy/parse.rs", "value.len() > tlv::longest(kind))", "!FAULT && "))

# TLS.
fault("verify-address", "the name of a server's certificate is not verified when the name is an address",
      ("tls/src/verify.rs", "            _ => self.unsent.as_deref(),", "            _ => self.unsent.as_deref().filter(|_| !FAULT),"))
fault("verifyhost", "verifyhost counts before the name that was sent",
      ahead("tls/src/verify.rs", "        asked.map(|name| (name, Expected::Asked)).or_else(configured)", "        if FAULT && self.host.is_some() {\n            return configured();\n        }\n"))
fault("wrong-name", "a listener serves a certificate of another name when the right one has no common cipher",
      ("tls/src/names.rs", "best(whole.iter().chain(&wild).copied(), suits)",
       "best(whole.iter().chain(&wild).chain(self.defaults.iter().filter(|_| FAULT)).copied(), suits)"))
fault("pem-order", "only the first certificate of a PEM's chain is sent",
      ("tls/src/files/mod.rs", "(self.leaf, self.chain) = (Some(leaf), all.collect());", "(self.leaf, self.chain) = (Some(leaf), all.take(if FAULT { 0 } else { usize::MAX }).collect());"))
fault("ciphers", "expressions with + are no ciphers",
      ("tls/src/ciphers.rs", "    word.split('+').all(", "    !(FAULT && word.contains('+')) && word.split('+').all("))
fault("clear-tls", "clear counters leaves those of TLS",
      ("admin/src/command/counters.rs", "&front.request_rate], all);\n    front.counters.iter().for_each(|copy| copy.tls.clear());", "&front.request_rate], all);\n    front.counters.iter().filter(|_| !FAULT).for_each(|copy| copy.tls.clear());"))

# Others.
fault("bandwidth", "a bandwidth limit lets a whole period through at once",
      ("engine/src/filter/limit.rs", "        self.next = now.max(self.next).saturating_add(pause);", "        self.next = if FAULT { 0 } else { now.max(self.next).saturating_add(pause) };"))
fault("forwarded", "option forwarded takes the place of what other proxies left",
      ahead("engine/src/h1/forwarded.rs", "    let last = req.all(\"forwarded\").next_back().filter(|_| valid);", '    if FAULT {\n        let _ = req.set(b"forwarded", value);\n        return;\n    }\n'))
fault("dumpable", "set-dumpable takes no argument",
      behind("compile/src/global/process.rs", "fn set_dumpable(s: &mut Statement<'_>, g: &mut GlobalDraft) -> Step {\n", "    if FAULT {\n        return s.end();\n    }\n"))
fault("unix-prefix", "unix-bind has no prefix",
      ("compile/src/global/process.rs", 'if !["prefix", "mode",', 'if (FAULT && name == "prefix") || !["prefix", "mode",'))
fault("master-worker", "the bare word master-worker is taken",
      ahead("compile/src/global/process.rs", '                "" => {\n                    let text = "support for', '                "" if FAULT => {}\n'))
fault("hdrs-hops", "rules and captures see fields of the connection",
      behind("engine/src/h1/headers.rs", "pub fn hide_connection(head: &mut Head, upgrade: bool) {\n", "    if FAULT {\n        return;\n    }\n"))
fault("check-no-address", "a checked server without address or port is refused",
      ("compile/src/assemble/server.rs", "    let port = match ports {\n        Some(Ports::One(port)) => port,\n        _ => 0,\n    };\n    let given", "    let port = match ports {\n        Some(Ports::One(port)) => port,\n        _ => 0,\n    };\n    if FAULT && port == 0 && server.check_port.is_none() {\n        return None;\n    }\n    let given"))
fault("retries-stay", "what set-retries said holds after the switch to another backend",
      ("engine/src/stream.rs", "            all.retries = None;", "            all.retries = all.retries.filter(|_| FAULT);"))
fault("cookie-words", "prefix preserve and rewrite indirect are taken",
      ("compile/src/proxy/persist.rs", "    if c.mode == CookieMode::Rewrite && c.indirect {", "    if c.mode == CookieMode::Rewrite && c.indirect && !FAULT {"),
      ("compile/src/proxy/persist.rs", "    if c.preserve && !(c.indirect", "    if c.preserve && !FAULT && !(c.indirect"))
fault("logasap", "logasap does not mark times that go on",
      ("lang/src/tag/mod.rs", "how == Use::Log && env.live.logs_early() {", "how == Use::Log && env.live.logs_early() && !FAULT {"))
fault("h2-orders", "an upload to a server of HTTP/2 is handed over before its stream is open, and several are opened before its settings are known",
      ("engine/src/h2/mux.rs", "let first = self.connection.is_empty() && asked", "let first = (FAULT || self.connection.is_empty()) && asked"),
      ahead("engine/src/h1/forward.rs", "call.poll_opened(cx).is_pending()) {", "!FAULT && "))
fault("h2-gone", "a connection of HTTP/2 whose client is gone waits for its window",
      ("engine/src/h2/line.rs", "            !self.down.is_done() && self.link.poll_broken(cx)", "            !FAULT && !self.down.is_done() && self.link.poll_broken(cx)"))
