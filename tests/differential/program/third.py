"""What programs of the third generation have besides: two to four of the features that the first two do not reach, with traffic of
their own. Seeds from 70001 on.

The draws are its own, so that nothing of what the other generations make of a seed changes.
"""
import random, re

import rules, traffic
from values import chance, pick

FIRST = 70001
LATER, LONG_AGO = "Sun, 06 Nov 2044 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"

LUA = r"""
core.register_action("act", { "http-req" }, function(txn, name, value)
  txn.http:req_set_header(name, value .. "-" .. tostring(txn.f:path()) .. "-" .. txn.sc:upper(txn.f:method()))
  txn:set_var("txn.lua", value)
end, 2)
core.register_action("later", { "http-req", "http-res" }, function(txn)
  core.sleep(0)
  txn:set_var("txn.later", "yes")
end)
core.register_action("res", { "http-res" }, function(txn)
  local names = {}
  for name, values in pairs(txn.http:res_get_headers()) do names[#names + 1] = name .. "=" .. #values end
  table.sort(names)
  txn.http:res_add_header("x-lua-names", table.concat(names, ","))
  if txn:get_var("txn.lua") then txn.http:res_set_status(203, "By Lua") end
end)
core.register_action("stop", { "http-req" }, function(txn)
  local reply = txn:reply{ status = 418, reason = "Teapot", headers = { ["x-lua"] = { "a", "b" } }, body = "short and stout" }
  txn:done(reply)
end)
core.register_action("fail", { "http-req", "http-res" }, function(txn) error("it fails") end)
core.register_action("tcp", { "tcp-req" }, function(txn) txn:set_var("sess.lua", "tcp:" .. tostring(txn.f:always_true())) end)
core.register_fetches("told", function(txn, a, b) return (a or "none") .. "/" .. (b or "none") .. "/" .. txn.f:method() end)
core.register_fetches("number", function(txn) return 42 end)
core.register_fetches("nothing", function(txn) return nil end)
core.register_converters("turn", function(text, a) return string.reverse(text) .. (a or "") end)
core.register_service("page", "http", function(applet)
  local body = applet:receive() or ""
  local said = applet.method .. " " .. applet.path .. " " .. tostring(applet.qs) .. " " .. applet.version .. " " .. #body
  applet:set_status(200)
  applet:add_header("content-type", "text/plain")
  applet:add_header("x-lua", tostring(applet.f:path()))
  if applet.method ~= "HEAD" then applet:add_header("content-length", #said) end
  applet:start_response()
  applet:send(said)
end)
core.register_service("chunks", "http", function(applet)
  applet:set_status(201, "In Parts")
  applet:start_response()
  for n = 1, 3 do applet:send("part " .. n .. ";") end
end)
core.register_service("talk", "tcp", function(applet)
  local line = applet:getline()
  applet:send("lua heard " .. tostring(line))
end)
core.register_cli({ "lua", "count" }, "counts words", function(applet, ...) applet:send("words " .. select("#", ...) .. "\n") end)
local Upper = {}
Upper.id, Upper.flags, Upper.__index = "upper", filter.FLT_CFG_FL_HTX, Upper
function Upper:new() return setmetatable({}, Upper) end
function Upper:start_analyze(txn, channel) end
function Upper:http_headers(txn, message)
  if message.channel:is_resp() then message:add_header("x-filtered", "by lua") end
end
core.register_filter("upper", Upper, function(Upper, args) return Upper end)
"""

SPOE = """[eng]
spoe-agent ag
    messages onreq onback
    groups grp
    option var-prefix spoe
    option set-on-error err
    %s
    timeout processing 700ms
    use-backend spoeb
    log global
spoe-message onreq
    args do=req.hdr(x-do) path m=method src=src port=int(80) flag=ssl_fc
    event on-frontend-http-request%s
spoe-message onback
    args be=be_name q=query
    event on-backend-http-request
spoe-message asked
    args a=req.hdr(x-a) b=str(bin),base64
spoe-message onres
    args st=status ct=res.hdr(content-type)
    event on-http-response
spoe-group grp
    messages asked
"""


class Third:
    """A program that is being added to. A section is its head and its lines."""

    def __init__(self, case, g):
        self.rng = g.rng = random.Random(case["seed"] * 15485863 + 5)
        self.g, self.case, self.files = g, case, dict(case["files"])
        self.config, self.steps, self.final, self.syslog = [], list(case["steps"]), list(case["final"]), []
        for line in case["config"]:
            self.config.append([line]) if not line.startswith(" ") else self.config[-1].append(line.strip())
        self.fronts = [feed for feed in g.feeds if feed.mode == "http"]

    # -- the configuration

    def add(self, section, *lines):
        """Lines at the head of a section, behind its `bind` or `balance`."""
        section[2:2] = lines

    def section(self, *lines):
        self.config.append(list(lines))

    def front(self, feed):
        return next(s for s in self.config if any(f":{feed.name}%%" in line for line in s))

    def back(self):
        """A backend of HTTP, or a frontend."""
        found = [s for s in self.config if s[0].startswith("backend b") and " from d" in s[0] and "mode http" in self.defaults(s)]
        return pick(self.rng, found) if found else None

    def defaults(self, section):
        name = section[0].rpartition(" ")[2]
        return next(s for s in self.config if s[0].split()[:2] == ["defaults", name])

    def place(self, feed):
        """The frontend, or a backend that it may use."""
        return chance(self.rng, 0.6) and self.front(feed) or self.back() or self.front(feed)

    def route(self, feed, backend, condition):
        section = self.front(feed)
        at = next(n for n, line in enumerate(section) if line.startswith(("use_backend", "default_backend")))
        section.insert(at, f"use_backend {backend} if {condition}")

    def set_global(self, *lines):
        for line in lines:
            if not any(have.split()[:1] == line.split()[:1] for have in self.config[0]) or line.startswith("lua-load"):
                self.config[0].append(line)

    # -- traffic

    def ask(self, feed, requests):
        """One step for each request (method, target, fields, body, script), over one connection or several."""
        g, conn, number, made = self.g, None, 1, []
        for method, target, fields, body, script in requests:
            ops = []
            if conn is None or chance(self.rng, 0.2):
                conn, number = f"c{g.count()}", 1
                setting = feed.opening(g)
                ops.append(["open", conn, feed.name, {**setting, "h2": []} if feed.h2 else setting])
            if script:
                ops.append(["origin", [script]])
            host = [("Host", "www.example.test")]
            if feed.h2:
                pairs = [[":method", method], [":scheme", "http"], [":path", target], [":authority", host[0][1]]] + [[n.lower(), x] for n, x in fields]
                ops += [["stream", conn, number, pairs, body, "end"], ["streams", conn, [number]]]
                number += 2
            else:
                length = [("Content-Length", str(len(body)))] if body else []
                ops += [["send", conn, traffic.head(method, target, "HTTP/1.1", host + fields + length) + body, method], ["resp", conn, method]]
            made.append(ops)
        at = self.rng.randrange(1, len(self.steps) + 1) if self.steps else 0
        self.steps[at:at] = made

    def requests(self, count, path, fields=(), scripts=None):
        """Plain requests below a path."""
        for _ in range(count):
            method = pick(self.rng, ["GET", "GET", "GET", "HEAD", "POST"])
            body = pick(self.rng, ["", "a=1", "x" * 3000]) if method == "POST" else ""
            some = [pick(self.rng, fields)] if fields and chance(self.rng, 0.7) else []
            yield method, pick(self.rng, [path, path + "/a", path + "/b?q=1"]), some, body, scripts() if scripts and chance(self.rng, 0.7) else None


def reply(status, fields, body):
    """A script for origins of all kinds."""
    reason = traffic.REASONS.get(status, "Odd")
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    length = "" if status in (204, 304) else f"Content-Length: {len(body)}\r\n"
    return [["full"], ["send", f"HTTP/1.1 {status} {reason}\r\n{lines}{length}\r\n{body}"],
            ["h2", [[":status", str(status)]] + [[n.lower(), x] for n, x in fields], body, "end"]]


# -- features

def cache(t):
    feed, name = pick(t.rng, t.fronts), "third"
    t.section(f"cache {name}", "total-max-size 4", "max-age " + pick(t.rng, ["60", "3600"]), "max-object-size " + pick(t.rng, ["1000", "50000"]),
              *(["process-vary " + pick(t.rng, ["on", "on", "off"])] if chance(t.rng, 0.7) else []), *(["max-secondary-entries 2"] if chance(t.rng, 0.2) else []))
    section = t.place(feed)
    condition = pick(t.rng, ["", "", "", " if { path_beg /c }"])
    lines = [f"http-request cache-use {name}{condition}", f"http-response cache-store {name}"]
    if chance(t.rng, 0.3):
        lines.insert(0, f"filter cache {name}")
    if chance(t.rng, 0.7):
        lines.append("http-response set-header x-cache '%[res.cache_hit] %[res.cache_name]'")
    t.add(section, *lines)
    good = ["max-age=60", "public", "s-maxage=50", "max-age=100, must-revalidate", "max-age=60"]
    odd = ["no-store", "private", "no-cache", "max-age=0", "no-cache=\"x\", max-age=9", "max-age=\"30\"", "s-maxage=0, max-age=60"]

    def script():
        fields = [("Cache-Control", pick(t.rng, good + good + odd))] if chance(t.rng, 0.85) else []
        for _ in range(t.rng.randrange(3)):
            fields.append(pick(t.rng, [("ETag", "\"e1\""), ("ETag", "W/\"e1\""), ("Last-Modified", LONG_AGO), ("Expires", LATER), ("Expires", LONG_AGO), ("Vary", "Accept-Encoding"),
                                       ("Vary", "Referer, Origin"), ("Vary", "X-A"), ("Vary", "*"), ("Age", "100"), ("Age", "10"), ("Set-Cookie", "a=b"), ("Content-Type", "text/plain"),
                                       ("Date", LONG_AGO), ("Pragma", "no-cache"), ("Content-Encoding", "br")]))
        return reply(pick(t.rng, [200] * 8 + [301, 404, 410, 206, 302, 500, 204]), fields, pick(t.rng, ["", "kept", "k" * 500, "k" * 20000]))

    wants = [[], [], [], [("If-None-Match", "\"e1\"")], [("If-None-Match", "\"e2\", W/\"e1\"")], [("If-None-Match", "*")], [("If-Modified-Since", LONG_AGO)], [("If-Modified-Since", LATER)],
             [("Authorization", "Basic dTpw")], [("Cache-Control", "no-cache")], [("Cache-Control", "max-age=0")], [("Cache-Control", "only-if-cached")], [("Pragma", "no-cache")],
             [("Accept-Encoding", "gzip")], [("Accept-Encoding", "br, gzip;q=0.5")], [("Referer", "http://r.test/")], [("Origin", "http://o.test")], [("Range", "bytes=0-3")], [("Cookie", "sid=1")]]
    made = [(pick(t.rng, ["GET"] * 8 + ["HEAD", "HEAD", "POST", "PUT", "DELETE"]), pick(t.rng, ["/c/1", "/c/1", "/c/1", "/c/2", "/c/1?a=1"]), pick(t.rng, wants), "", script()) for _ in range(t.rng.randrange(6, 11))]
    t.ask(feed, made)
    t.final.append("show cache")


def compression(t):
    feed = pick(t.rng, t.fronts)
    section, lines = t.place(feed), ["compression algo " + pick(t.rng, ["gzip", "deflate gzip", "gzip deflate", "raw-deflate", "identity"])]
    lines += [line for line, odds in ((f"compression type {pick(t.rng, ['text/plain text/html', 'text/ application/json', 'text/css'])}", 0.6), ("compression offload", 0.3),
                                      (f"compression direction {pick(t.rng, ['request', 'response', 'both'])}", 0.4), ("compression algo-req gzip", 0.3), ("compression type-req text/plain", 0.3),
                                      (f"compression minsize-res {pick(t.rng, ['20', '1k'])}", 0.3), ("compression minsize-req 100", 0.3)) if chance(t.rng, odds)]
    lines = pick(t.rng, [[], [], ["filter compression"], ["filter comp-res"], ["filter comp-req", "filter comp-res"]]) + lines
    t.add(section, *lines)
    t.set_global(*(["tune.comp.maxlevel " + pick(t.rng, ["1", "9"])] if chance(t.rng, 0.2) else []))

    def script():
        fields = [("Content-Type", pick(t.rng, ["text/plain", "text/html; charset=utf-8", "application/json", "image/png", "text/css", "multipart/byteranges; boundary=x"]))]
        for _ in range(t.rng.randrange(3)):
            fields.append(pick(t.rng, [("ETag", "\"e1\""), ("ETag", "W/\"e1\""), ("Vary", "Origin"), ("Vary", "Accept-Encoding"), ("Cache-Control", "no-transform"), ("Content-Encoding", "identity"),
                                       ("Content-Encoding", "br"), ("Transfer-Encoding", "chunked")]))
        body = pick(t.rng, ["", "tiny", "<p>text</p>\n" * 60, "{\"key\": \"value\"},\n" * 600, "z" * 40000])
        if ("Transfer-Encoding", "chunked") not in fields:
            return reply(pick(t.rng, [200] * 9 + [206, 404, 500]), fields, body)
        plain = [pair for pair in fields if pair[0] != "Transfer-Encoding"]
        return reply(200, plain, body) if chance(t.rng, 0.1) else [["full"], ["send", traffic.head("HTTP/1.1", "200", "OK", plain + [("Transfer-Encoding", "chunked")])], ["send", "".join(
            f"{len(part):x}\r\n{part}\r\n" for part in (body[:100], body[100:]) if part) + "0\r\n\r\n"], ["h2", [[":status", "200"]] + [[n.lower(), x] for n, x in plain], body, "end"]]

    codings = ["gzip", "deflate", "gzip, deflate", "br, gzip;q=0.1", "gzip;q=0", "*", "identity", "x-gzip", "", "GZIP", "gzip;q=1.000, identity;q=0"]
    made = []
    for _ in range(t.rng.randrange(4, 8)):
        method = pick(t.rng, ["GET", "GET", "GET", "HEAD", "POST"])
        fields = [("Accept-Encoding", pick(t.rng, codings))] if chance(t.rng, 0.9) else []
        fields += [("User-Agent", "Mozilla/4.0")] if chance(t.rng, 0.1) else []
        fields += [("Content-Type", pick(t.rng, ["text/plain", "image/png"]))] if method == "POST" else []
        made.append((method, pick(t.rng, ["/", "/a", "/z"]), fields, pick(t.rng, ["up", "load " * 300]) if method == "POST" else "", script()))
    t.ask(feed, made)
    t.case["packs"] = True


def filters(t):
    """Filters that only look or slow down, and their order."""
    feed = pick(t.rng, t.fronts) if t.fronts and chance(t.rng, 0.7) else None
    section = t.place(feed) if feed else pick(t.rng, [s for s in t.config if s[0].startswith(("frontend", "backend b"))])
    lines = pick(t.rng, [["filter trace name one quiet"], ["filter trace name one quiet", "filter trace name two hexdump"], ["filter bwlim-out third default-limit 100m default-period 1s", "filter trace quiet"],
                         ["filter bwlim-in third default-limit 50m default-period 1s min-size 100"], ["filter bwlim-out third limit 100m key src table bwthird"]])
    if "table bwthird" in lines[0]:
        t.section("backend bwthird from d0", "stick-table type ip size 1k expire 10m store bytes_out_rate(1s)")
    if any("bwlim" in line for line in lines) and feed:
        lines = lines + ["http-response set-bandwidth-limit third" if "bwlim-out" in lines[0] else "http-request set-bandwidth-limit third"]
    if chance(t.rng, 0.4):
        lines = lines + ["filter-sequence " + pick(t.rng, ["request", "response"]) + " " + lines[0].split()[1]]
    t.add(section, *lines)
    if feed:
        t.ask(feed, list(t.requests(3, "/a", scripts=lambda: reply(200, [("X-Body", "long")], "f" * 30000))))


def fastcgi(t):
    feed, kind = pick(t.rng, t.fronts), pick(t.rng, ["tcp", "unix"])
    t.g.origins["php"] = {"kind": "fcgi", "at": kind}
    app = ["fcgi-app php", "docroot " + pick(t.rng, ["/srv/www", "/var/www/%[req.hdr(host)]"][:1])]
    app += [line for line, odds in (("index index.php", 0.6), ("path-info ^(/.+\\.php)(/.*)?$", 0.5), ("set-param X_THIRD '%[method]-%[path]'", 0.5), ("set-param HTTP_X_A over if { path_beg /php/a }", 0.3),
                                    ("pass-header authorization", 0.3), ("pass-header x-a if { method GET }", 0.2), ("option keep-conn", 0.4), ("no option keep-conn", 0.3),
                                    ("log-stderr global", 0.5), ("option get-values", 0.2), ("option max-reqs 1", 0.2)) if chance(t.rng, odds)]
    t.section(*app)
    address = "127.0.0.1:%%port:php%%" if kind == "tcp" else "unix@./php.sock"
    t.section(f"backend bfcgi from {t.defaults(t.front(feed))[0].split()[1]}", "balance roundrobin", "use-fcgi-app php",
              *rules.some(t.g, "http-request", [row for row in rules.HTTP_REQUEST if "header" in row[1] or "path" in row[1]], "req", 2), f"server php1 {address} proto fcgi" + pick(t.rng, ["", "", " maxconn 5", " weight 5"]))
    t.route(feed, "bfcgi", "{ path_beg /php }")
    t.g.mode = "http"

    def script():
        out = pick(t.rng, ["Content-Type: text/html\r\n\r\n<p>page</p>", "Status: 404 Not Here\r\nContent-Type: text/plain\r\n\r\nnone", "Location: /php/next\r\n\r\n", "Status: 201\r\nContent-Length: 4\r\n\r\nmade",
                           "Location: http://x.test/\r\nStatus: 307\r\n\r\n", "Content-Type: text/plain\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n" + "long " * 5000, "Content-Type: text/plain\n\nby lines", "Status: 204\r\n\r\n",
                           "no head at all\r\n\r\nx", "Status: 299\r\n\r\nx", "Content-Length: 9\r\n\r\nshort", "", "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"])
        return [["fcgi", out, pick(t.rng, ["", "", "PHP Warning: something\n", "one\ntwo\n"]), pick(t.rng, ["end"] * 7 + ["close"])]]

    made = []
    for _ in range(t.rng.randrange(4, 8)):
        method = pick(t.rng, ["GET", "GET", "HEAD", "POST", "PUT"])
        fields = [pair for pair in [("X-A", "alpha"), ("Authorization", "Basic dTpw"), ("Content-Type", "text/plain"), ("Cookie", "a=b"), ("Proxy", "bad"), ("X_Under", "1"), ("Accept", "*/*"), ("X-A", "two")] if chance(t.rng, 0.25)]
        made.append((method, pick(t.rng, ["/php", "/php/", "/php/a.php", "/php/a.php/info/x?q=1&r=%20", "/php/b%20c.php", "/php/x?y"]), fields,
                     pick(t.rng, ["", "a=1&b=2", "y" * 9000]) if method in ("POST", "PUT") else "", script() if chance(t.rng, 0.8) else None))
    t.ask(feed, made)


def lua(t):
    feed = pick(t.rng, t.fronts)
    t.files["third.lua"] = LUA
    t.set_global(pick(t.rng, ["lua-load third.lua", "lua-load third.lua", "lua-load-per-thread third.lua"]))
    section, table = t.front(feed), [
        "http-request lua.act x-lua %s" % pick(t.rng, ["word", "two"]), "http-request lua.later", "http-response lua.later", "http-response lua.res", "http-request lua.stop if { path_end /a }", "http-request lua.fail if { path_end /b }",
        "http-request set-header x-told '%[lua.told(a,b)] %[lua.told] %[lua.number,add(1)]'", "http-request set-header x-turn %[path,lua.turn(!)]", "http-request set-header x-none '<%[lua.nothing]>'",
        "http-request use-service lua.page if { path_beg /lua/page }", "http-request use-service lua.chunks if { path_beg /lua/chunks }", "filter lua.upper", "http-response set-header x-seen %[var(txn.later)]",
        "tcp-request content lua.tcp", "http-request set-header x-tcp %[var(sess.lua)]", "http-request deny if { lua.number 42 } { path_end /deny }", "http-response lua.fail if { status 404 }"]
    t.add(section, *[line for line in table if chance(t.rng, 0.4)])
    paths = ["/lua", "/lua/page", "/lua/page/x?q=1", "/lua/chunks", "/lua/a", "/lua/b", "/lua/deny"]
    t.ask(feed, [(*one[:1], pick(t.rng, paths), *one[2:]) for one in t.requests(t.rng.randrange(4, 8), "/lua", [("X-A", "a"), ("X-Lua", "own")], lambda: reply(pick(t.rng, [200, 404]), [("X-Two", "1"), ("X-Two", "2")], "body"))])
    t.steps.insert(t.rng.randrange(1, len(t.steps) + 1), [["cli", pick(t.rng, ["lua count", "lua count a b c", "help lua"])]])


def spoe(t):
    feed = pick(t.rng, t.fronts)
    t.g.origins["agent"] = {"kind": "spop"}
    t.files["spoe.cfg"] = SPOE % (pick(t.rng, ["option continue-on-error", "option force-set-var", "option set-process-time ptime"]), pick(t.rng, ["", " if { path_beg /s }", " unless { method HEAD }"])) if chance(t.rng, 0.8) else (
        SPOE.replace("messages onreq onback", "messages onreq onres") % ("option continue-on-error", ""))
    t.section("defaults dspop", "mode spop", "timeout connect 200ms", "timeout server 1s", "log global")
    t.section("backend spoeb from dspop", "balance roundrobin", "server a1 127.0.0.1:%%port:agent%%" + pick(t.rng, ["", "", " maxconn 3"]))
    variables = ["spoe.onreq_path", "spoe.onreq_src", "spoe.onreq_port", "spoe.onreq_flag", "spoe.asked_a", "spoe.err", "spoe.onreq_do", "spoe.told", "spoe.onback_be", "spoe.asked_b"]
    lines = ["filter spoe engine eng config spoe.cfg"] + [line for line in ("http-request send-spoe-group eng grp", "http-request deny deny_status 429 if { var(txn.spoe.onreq_do) -m str deny }") if chance(t.rng, 0.5)]
    lines += [f"http-request set-header x-s{n} '<%[var(txn.{name})]>'" for n, name in enumerate(variables) if chance(t.rng, 0.4)]
    lines += [f"http-response set-header x-r{n} '<%[var(txn.{name})]>'" for n, name in enumerate(["spoe.err", "spoe.onres_st", "spoe.onback_q", "spoe.onres_ct"]) if chance(t.rng, 0.4)]
    t.add(t.front(feed), *lines)
    t.ask(feed, list(t.requests(t.rng.randrange(4, 8), "/s", [("X-Do", deed) for deed in ("nothing", "unset", "close", "bye", "nothing", "deny", "set", "set")] + [("X-A", "alpha"), ("X-A", "x" * 300)])))


def pages(t):
    """Error pages of `http-errors` sections."""
    feed = pick(t.rng, t.fronts)
    t.section("http-errors third", "errorfile 503 503.http", "errorfile 404 503.http", "errorfile 500 503.http")
    t.add(t.place(feed), *[line for line in ("errorfiles third 404 503", "http-request deny deny_status 503 errorfiles third if { path_beg /e/1 }", "http-request return status 404 errorfiles third if { path_beg /e/2 }",
                                             "http-error status 404 content-type text/plain lf-string 'none at %[path]' hdr x-e %[method]", "http-response return status 500 errorfiles third if { status 500 }",
                                             "http-request return status 404 default-errorfiles if { path_beg /e/3 }", "http-error status 503 errorfiles third") if chance(t.rng, 0.5)])
    t.ask(feed, [(*one[:1], pick(t.rng, ["/e/1", "/e/2", "/e/3", "/e"]), *one[2:]) for one in t.requests(4, "/e", (), lambda: reply(500, [], "broken"))])


def logs(t):
    """Rings, log servers, backends of logs."""
    section = pick(t.rng, [s for s in t.config if s[0].startswith(("frontend", "backend b"))])
    lines = []
    if chance(t.rng, 0.7):
        t.section("ring third", "description 'the third'", f"format {pick(t.rng, ['rfc3164', 'rfc5424', 'short', 'raw', 'priority'])}", "maxlen " + pick(t.rng, ["1200", "300"]), "size 32764")
        lines.append("log ring@third local" + pick(t.rng, ["0", "3 notice", "1 info err"]))
        t.final += ["show events third", "show events"]
    if chance(t.rng, 0.7):
        t.syslog += ["l1", "l2"]
        t.section("defaults dlog", "mode log", "timeout server 1s", "timeout connect 100ms")
        t.section("backend blog from dlog", "balance " + pick(t.rng, ["roundrobin", "sticky", "log-hash lower"]), "server l1 udp@127.0.0.1:%%port:l1%%",
                  "server l2 udp@127.0.0.1:%%port:l2%%" + pick(t.rng, ["", " weight 3", " backup", " disabled"]))
        lines.append("log backend@blog local2" + pick(t.rng, [" sample 1:2", "", ""])[:0])
    t.add(section, *lines, *(["log-tag 'third'"] if chance(t.rng, 0.3) else []))


def forward(t):
    t.listen("lf1", "tcp")
    t.section("log-forward lfthird", "bind fd@%%fd:lf1%%", "log unix@log.sock len 4096 local" + pick(t.rng, ["1", "7 info"]), *(["option " + pick(t.rng, ["dont-parse-log", "assume-rfc6587-ntf"])] if chance(t.rng, 0.3) else []))
    lines = ["<13>Oct 11 22:14:15 host app[77]: one line", "<165>1 2003-10-11T22:14:15.003Z host app 77 ID47 [a@1 b=\"c\"] two", "no priority", "<999>Oct 11 22:14:15 h a: bad", "<14>no date at all", "<13>Oct 11 22:14:15 host tag three"]
    for _ in range(2):
        conn, ops = f"c{t.g.count()}", []
        for line in (pick(t.rng, lines) for _ in range(3)):
            ops += [["send", conn, line + "\n" if chance(t.rng, 0.6) else f"{len(line)} {line}"], ["rest"]]
        t.steps.insert(t.rng.randrange(1, len(t.steps) + 1), [["open", conn, "lf1", {}], *ops, ["close", conn]])


def peers(t):
    t.set_global("localpeer me")
    me = next(line.split()[1] for line in t.config[0] if line.startswith("localpeer"))
    t.listen("px", "hold")
    t.section("peers px", pick(t.rng, [f"peer {me} 127.0.0.1:%%port:px%%", f"bind 127.0.0.1:%%port:px%%\n    server {me}"]), "table tp type string len 20 size 1k store http_req_cnt,gpc0,gpt0")
    if t.fronts:
        feed = pick(t.rng, t.fronts)
        t.add(t.front(feed), "http-request track-sc2 path table px/tp", "http-request sc-inc-gpc0(2) if { path_beg /p }", "http-request set-header x-count %[sc_http_req_cnt(2,px/tp)]")
        t.ask(feed, list(t.requests(4, "/p")))
    t.final += ["show table px/tp", "show peers px"]


def names(t):
    """Name servers that nobody reaches."""
    feed = pick(t.rng, t.fronts)
    t.section("resolvers third", "nameserver n1 127.0.0.1:1", *(["nameserver n2 127.0.0.1:2"] if chance(t.rng, 0.3) else []), "resolve_retries 1", "timeout resolve 1s", "timeout retry 50ms", *(["hold nx 10s"] if chance(t.rng, 0.3) else []))
    if chance(t.rng, 0.6):
        section = t.back()
        if section:
            section.append("server named host.third.test:80 resolvers third init-addr none" + pick(t.rng, ["", " backup", " disabled"]))
    t.add(t.front(feed), "http-request do-resolve(txn.ip,third,ipv4) str(x.third.test) if { path_beg /n }", "http-request set-header x-ip '<%[var(txn.ip)]>'")
    t.ask(feed, list(t.requests(3, "/n")))


def mails(t):
    section = pick(t.rng, [s for s in t.config if s[0].startswith("backend b")])
    t.section("mailers third", "mailer m1 127.0.0.1:1", *(["timeout mail 2s"] if chance(t.rng, 0.5) else []))
    t.add(section, "email-alert mailers third", "email-alert from a@x.test", "email-alert to b@x.test", *(["email-alert level " + pick(t.rng, ["notice", "alert"])] if chance(t.rng, 0.5) else []))


def users(t):
    feed = pick(t.rng, t.fronts)
    t.section("userlist third", "group staff users ann", "group all users ann,bob", "user ann insecure-password pw1", "user bob password $5$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1", "user eve insecure-password '' groups staff"[:38] + "x groups staff")
    t.add(t.place(feed), pick(t.rng, ["http-request auth realm Third unless { http_auth(third) } || { path_beg /open }", "http-request deny unless { http_auth_group(third) staff }", "http-request auth if { path_beg /u } !{ http_auth_group(third) all }"]),
          "http-request set-header x-user '%[http_auth_user] %[http_auth_pass,length] %[http_auth_type]'")
    tokens = ["Basic YW5uOnB3MQ==", "Basic Ym9iOnB3Mg==", "Basic ZXZlOng=", "Basic YW5uOmJhZA==", "basic YW5uOnB3MQ==", "Bearer x", "Basic", "Basic YW5u"]
    t.ask(feed, list(t.requests(5, "/u", [("Authorization", token) for token in tokens])))


# Weight, whether a frontend of HTTP is needed, the feature.
FEATURES = [(5, True, cache), (5, True, compression), (2, False, filters), (4, True, fastcgi), (4, True, lua), (4, True, spoe), (2, True, pages), (3, False, logs), (2, False, forward), (2, False, peers), (2, True, names),
            (1, False, mails), (2, True, users)]


def enrich(case, g):
    """The same program with two to four features more."""
    t = Third(dict(case), g)
    t.listen = lambda name, kind: case["listen"].__setitem__(name, kind)
    table = [row for row in FEATURES if t.fronts or not row[1]]
    for _ in range(pick(t.rng, [2, 2, 3, 4])):
        row = rules.weighted(t.rng, table)
        table.remove(row)
        row[2](t)
        if not table:
            break
    config = [line if n == 0 else "    " + line.rstrip() for section in t.config for n, line in enumerate("\n".join(section).split("\n"))]
    config = [re.sub(r"^\s{5,}", "    ", line) for line in config]
    return dict(t.case, config=config, files=t.files, steps=t.steps, final=t.final, syslog=t.syslog, unpack=True)
