"""Rules of requests, responses and connections: a table of actions for each place where they stand."""
import values as v
from values import chance, condition, expression, format_text, pick, quoted

REGEX = ["^/a(.*) /b\\1", "(.*)/x/(.*) \\1/\\2", "/+ /", "^/static/ /s/", "([a-z]+)$ <\\1>", "([0-9]) \\1\\1"]


def name(g):
    return pick(g.rng, ["x-a", "x-new", "x-list", "X-Case", "user-agent", "via", "x-b", "cache-control"])


def fmt(g, side):
    return format_text(g, side)


def var(g):
    return pick(g.rng, ["txn.a", "req.b", "txn.c", "sess.d", "proc.e"])


def deny(g, side):
    out = ""
    if chance(g.rng, 0.6):
        out += " deny_status " + pick(g.rng, ["200", "400", "401", "403", "404", "410", "429", "500", "503", "418", "599"])
    kind = g.rng.randrange(6)
    if kind == 0:
        out += " content-type text/plain string 'denied it'"
    elif kind == 1:
        out += " content-type text/html lf-string " + fmt(g, side) + " hdr x-deny " + fmt(g, side)
    elif kind == 2:
        out += " errorfile 503.http"
    elif kind == 3:
        out += " content-type image/png file small.txt"
    return out


def answer(g, side):
    out = " status " + pick(g.rng, ["200", "200", "201", "204", "301", "403", "404", "500", "503"])
    kind = g.rng.randrange(6)
    if kind == 0:
        out += " content-type text/plain string 'made here'"
    elif kind == 1:
        out += " content-type text/plain lf-string " + fmt(g, side)
    elif kind == 2:
        out += " content-type application/octet-stream file small.txt"
    elif kind == 3:
        out += " content-type text/plain lf-file lf.txt"
    elif kind == 4:
        out += " errorfile 503.http"
    if kind in (0, 1, 2, 3):
        for _ in range(g.rng.randrange(3)):
            out += f" hdr {pick(g.rng, ['x-r', 'Location', 'set-cookie'])} {fmt(g, side)}"
    return out


def redirect(g, side):
    kind = pick(g.rng, ["location", "prefix", "scheme"])
    target = {"location": pick(g.rng, ["/there", "'http://x/%[path]'", "http://example.test/"]),
              "prefix": pick(g.rng, ["/", "http://m.example.test", "/pre"]), "scheme": pick(g.rng, ["https", "http"])}[kind]
    if side == "res" and kind == "location":
        target = pick(g.rng, ["/there", "http://example.test/"])
    out = f" {kind} {target}"
    if chance(g.rng, 0.6):
        out += " code " + pick(g.rng, ["301", "302", "303", "307", "308"])
    for option in ("drop-query", "append-slash", "ignore-empty", "set-cookie SEEN=1", "clear-cookie USERID=", "set-cookie-fmt 'F=%[src]'",
                   "keep-query"):
        if chance(g.rng, 0.12):
            out += " " + option
    return out


def map_file(g):
    return pick(g.rng, ["str.map", "beg.map"])


def track(g, side):
    g.need("st1")
    key = pick(g.rng, ["src", "path", "req.hdr(x-a)", "base32", "req.hdr(host),lower"]) if side == "req" else \
        pick(g.rng, ["src", "res.hdr(x-origin)"] if side == "res" else ["src"])
    key = pick(g.rng, ["str(one)", "path", "req.hdr(x-a)", "url_param(a)"]) if side == "req" else "str(one)"
    return f" {key} table st1"


HTTP_REQUEST = [
    (6, "add-header", lambda g: f" {name(g)} {fmt(g, 'req')}"),
    (8, "set-header", lambda g: f" {name(g)} {fmt(g, 'req')}"),
    (4, "del-header", lambda g: f" {name(g)}" + pick(g.rng, ["", "", " -m beg", " -m sub", " -m reg", " -m end", " -m str"])),
    (3, "replace-header", lambda g: f" {name(g)} " + pick(g.rng, ["a b", "(.*)b(.*) \\2-\\1", "^$ empty", "[0-9]+ <\\0>"])),
    (3, "replace-value", lambda g: f" {pick(g.rng, ['x-list', 'accept', 'cookie', 'x-ip'])} " + pick(g.rng, ["a b", "^(.)(.*)$ \\2\\1", "[0-9.]+ N"])),
    (2, "replace-path", lambda g: " " + pick(g.rng, REGEX)),
    (2, "replace-pathq", lambda g: " " + pick(g.rng, REGEX)),
    (2, "replace-uri", lambda g: " " + pick(g.rng, REGEX)),
    (2, "set-path", lambda g: " " + pick(g.rng, ["/p%[path]", "'%[path,lower]'", "/fixed", "'/%[url_param(a)]'"])),
    (2, "set-pathq", lambda g: " " + pick(g.rng, ["/pq?x=1", "'%[pathq]&more=1'", "/q"])),
    (2, "set-query", lambda g: " " + pick(g.rng, ["a=9", "'%[query,regsub(a,b,g)]'", "'%[query]&z=%[path,url_enc]'"])),
    (1, "set-uri", lambda g: " " + pick(g.rng, ["/u?y=2", "'http://other.test%[pathq]'", "'%[path]'"])),
    (2, "set-method", lambda g: " " + pick(g.rng, ["POST", "GET", "PUT", "XYZ"])),
    (6, "set-var", lambda g: f"({var(g)}) {expression(g)}"),
    (3, "set-var-fmt", lambda g: f"({var(g)}) {fmt(g, 'req')}"),
    (2, "unset-var", lambda g: f"({var(g)})"),
    (3, "deny", lambda g: deny(g, "req")),
    (2, "return", lambda g: answer(g, "req")),
    (2, "redirect", lambda g: redirect(g, "req")),
    (1, "tarpit", lambda g: deny(g, "req")),
    (1, "reject", lambda g: ""),
    (1, "silent-drop", lambda g: ""),
    (2, "allow", lambda g: ""),
    (2, "auth", lambda g: g.need("users") or pick(g.rng, ["", " realm Zone", " realm 'A\\ B'"])),
    (3, "capture", lambda g: f" {expression(g)} " + (f"id {g.declare('request')}" if chance(g.rng, 0.3) else f"len {pick(g.rng, [1, 8, 40])}")),
    (2, "set-map", lambda g: f"({map_file(g)}) {fmt(g, 'req')} {fmt(g, 'req')}"),
    (1, "del-map", lambda g: f"({map_file(g)}) {fmt(g, 'req')}"),
    (1, "add-acl", lambda g: f"(list.acl) {fmt(g, 'req')}"),
    (1, "del-acl", lambda g: f"(list.acl) {fmt(g, 'req')}"),
    (3, "track-sc0", lambda g: track(g, "req")),
    (2, "track-sc1", lambda g: track(g, "req")),
    (1, "track-sc2", lambda g: track(g, "req")),
    (2, "sc-inc-gpc0", lambda g: "(0)"),
    (2, "sc-inc-gpc1", lambda g: "(1)"),
    (1, "sc-inc-gpc", lambda g: f"({pick(g.rng, ['0', '1', '2'])},0)"),
    (1, "sc-add-gpc", lambda g: f"(1,0) " + pick(g.rng, ["7", "req.hdr_cnt"])),
    (1, "sc-set-gpt0", lambda g: "(0) " + pick(g.rng, ["5", "path_len", "{ req.hdr_cnt }"])),
    (1, "sc-set-gpt", lambda g: "(0,1) " + pick(g.rng, ["5", "req.hdr_cnt"])),
    (2, "normalize-uri", lambda g: " " + pick(g.rng, ["fragment-strip", "fragment-encode", "path-merge-slashes", "path-strip-dot",
        "path-strip-dotdot", "path-strip-dotdot full", "percent-decode-unreserved", "percent-decode-unreserved strict",
        "percent-to-uppercase", "percent-to-uppercase strict", "query-sort-by-name"])),
    (2, "set-log-level", lambda g: " " + pick(g.rng, ["silent", "emerg", "alert", "warning", "notice", "debug"])),
    (1, "set-nice", lambda g: " " + pick(g.rng, ["-5", "100", "1024"])),
    (1, "set-tos", lambda g: " " + pick(g.rng, ["0x10", "4"])),
    (1, "set-fc-tos", lambda g: " " + pick(g.rng, ["0x10", "int(8)"])),
    (1, "set-bc-tos", lambda g: " " + pick(g.rng, ["0x10", "int(8)"])),
    (1, "set-mark", lambda g: " 0x1"),
    (1, "set-fc-mark", lambda g: " 7"),
    (1, "set-bc-mark", lambda g: " 7"),
    (1, "set-src", lambda g: " " + pick(g.rng, ["req.hdr(x-ip)", "ipv4(10.9.8.7)", "src,ipmask(24)", "hdr_ip(x-ip,-1)"])),
    (1, "set-src-port", lambda g: " " + pick(g.rng, ["int(4000)", "req.hdr_val(x-num)"])),
    (1, "set-dst", lambda g: " " + pick(g.rng, ["ipv4(10.1.1.1)", "dst", "req.hdr_ip(x-ip)"])),
    (1, "set-dst-port", lambda g: " int(4000)"),
    (1, "set-priority-class", lambda g: " " + pick(g.rng, ["int(3)", "req.hdr_val(x-num)"])),
    (1, "set-priority-offset", lambda g: " int(-20)"),
    (1, "set-retries", lambda g: " " + pick(g.rng, ["1", "2", "int(0)", "req.hdr_val(x-num)"])),
    (2, "set-timeout", lambda g: " " + pick(g.rng, ["server 600ms", "tunnel 700ms", "client 600ms", "server int(500)", "server 4s", "queue 300ms", "connect 200ms", "tarpit 10"])),
    (2, "strict-mode", lambda g: " " + pick(g.rng, ["on", "off"])),
    (2, "wait-for-body", lambda g: " time 300ms" + pick(g.rng, ["", "", " at-least 10", " at-least 1k"])),
    (1, "wait-for-handshake", lambda g: ""),
    (1, "disable-l7-retry", lambda g: ""),
    (2, "early-hint", lambda g: " Link " + fmt(g, "req")),
    (0, "cache-use", lambda g: g.need("cache") or " store1"),
    (1, "do-log", lambda g: pick(g.rng, ["", ""]) if not g.have.get("profile") else " profile lp"),
    (1, "pause", lambda g: " " + pick(g.rng, ["5ms", "int(3)"])),
    (1, "use-service", lambda g: " prometheus-exporter"),
    (1, "set-headers-bin", lambda g: " req.hdrs_bin prefix x-bin-"),
    (1, "add-headers-bin", lambda g: " req.hdrs_bin prefix z-"),
    (1, "del-headers-bin", lambda g: " str(x) -m beg"),
    (1, "set-bandwidth-limit", lambda g: g.need("bwlim") or " " + pick(g.rng, ["bw-in", "bw-in limit 1000000 period 1s"])),
]
HTTP_REQUEST = [row for row in HTTP_REQUEST if row[1] not in ("use-service",)]

HTTP_RESPONSE = [
    (6, "add-header", lambda g: f" {name(g)} {fmt(g, 'res')}"),
    (8, "set-header", lambda g: f" {name(g)} {fmt(g, 'res')}"),
    (4, "del-header", lambda g: f" {pick(g.rng, v.RES_HEADERS)}" + pick(g.rng, ["", "", " -m beg", " -m sub", " -m reg", " -m end"])),
    (3, "replace-header", lambda g: f" {pick(g.rng, v.RES_HEADERS)} " + pick(g.rng, ["o b", "(.*)b(.*) \\2-\\1", "^(.*)$ <\\1>"])),
    (3, "replace-value", lambda g: f" {pick(g.rng, v.RES_HEADERS)} " + pick(g.rng, ["a b", "^(.)(.*)$ \\2\\1", "[0-9]+ N"])),
    (4, "set-status", lambda g: " " + pick(g.rng, ["200", "204", "404", "503 reason 'Slow Down'", "299 reason Odd", "500"])),
    (4, "set-var", lambda g: f"({pick(g.rng, ['txn.a', 'res.b', 'sess.d'])}) {expression(g, 'res')}"),
    (2, "set-var-fmt", lambda g: f"(txn.a) {fmt(g, 'res')}"),
    (1, "unset-var", lambda g: "(txn.a)"),
    (2, "deny", lambda g: deny(g, "res")),
    (2, "return", lambda g: answer(g, "res")),
    (2, "redirect", lambda g: redirect(g, "res")),
    (2, "allow", lambda g: ""),
    (2, "capture", lambda g: f" {expression(g, 'res')} id {g.declare('response')}"),
    (1, "set-map", lambda g: f"({map_file(g)}) {fmt(g, 'res')} {fmt(g, 'res')}"),
    (1, "del-map", lambda g: f"({map_file(g)}) {fmt(g, 'res')}"),
    (1, "add-acl", lambda g: f"(list.acl) {fmt(g, 'res')}"),
    (1, "del-acl", lambda g: f"(list.acl) {fmt(g, 'res')}"),
    (2, "track-sc1", lambda g: track(g, "res")),
    (1, "sc-inc-gpc0", lambda g: "(1)"),
    (1, "sc-inc-gpc1", lambda g: "(1)"),
    (1, "sc-set-gpt0", lambda g: "(1) 9"),
    (1, "set-log-level", lambda g: " " + pick(g.rng, ["silent", "err", "info"])),
    (1, "set-nice", lambda g: " 10"),
    (1, "set-tos", lambda g: " 8"),
    (1, "set-fc-tos", lambda g: " 8"),
    (1, "set-mark", lambda g: " 3"),
    (1, "set-fc-mark", lambda g: " 3"),
    (1, "set-timeout", lambda g: " " + pick(g.rng, ["server 600ms", "client 4s", "client 600ms", "tunnel 700ms"])),
    (1, "strict-mode", lambda g: " " + pick(g.rng, ["on", "off"])),
    (1, "wait-for-body", lambda g: " time 300ms" + pick(g.rng, ["", " at-least 5"])),
    (0, "cache-store", lambda g: g.need("cache") or " store1"),
    (1, "pause", lambda g: " 4ms"),
    (1, "silent-drop", lambda g: ""),
    (1, "set-headers-bin", lambda g: " res.hdrs_bin prefix x-bin-"),
    (1, "set-bandwidth-limit", lambda g: g.need("bwlim") or " bw-out"),
    (1, "do-log", lambda g: ""),
]
HTTP_RESPONSE = [row for row in HTTP_RESPONSE if row[1] not in ("set-headers-bin",)]

AFTER = ("add-header", "set-header", "del-header", "replace-header", "replace-value", "set-status", "set-var", "set-var-fmt", "unset-var",
         "allow", "capture", "set-map", "del-map", "sc-inc-gpc0", "sc-inc-gpc1", "set-log-level", "strict-mode", "do-log")
HTTP_AFTER = [row for row in HTTP_RESPONSE if row[1] in AFTER]

TCP_CONNECTION = [
    (4, "accept", lambda g: ""), (1, "reject", lambda g: ""), (3, "track-sc0", lambda g: g.need("st1") or " str(two) table st1"),
    (1, "set-src", lambda g: " ipv4(10.5.5.5)"), (1, "set-dst", lambda g: " ipv4(10.6.6.6)"), (1, "set-src-port", lambda g: " int(777)"),
    (1, "set-dst-port", lambda g: " int(778)"), (2, "set-var", lambda g: f"(sess.d) {expression(g, 'conn')}"),
    (1, "set-var-fmt", lambda g: "(sess.d) '%[src]-%[fe_name]'"), (1, "unset-var", lambda g: "(sess.d)"), (1, "sc-inc-gpc0", lambda g: "(0)"),
    (1, "sc-inc-gpc1", lambda g: "(0)"), (1, "sc-set-gpt0", lambda g: "(0) 3"), (1, "sc-inc-gpc", lambda g: "(0,0)"), (1, "sc-add-gpc", lambda g: "(0,0) 5"),
    (1, "set-fc-mark", lambda g: " 1"), (1, "set-fc-tos", lambda g: " 16"), (1, "set-mark", lambda g: " 1"), (1, "set-tos", lambda g: " 16"),
    (1, "silent-drop", lambda g: ""), (1, "do-log", lambda g: ""), (1, "sc-set-gpt", lambda g: "(0,0) int(4)"),
]
TCP_CONTENT = TCP_CONNECTION + [
    (1, "capture", lambda g: " src len 20"), (2, "set-log-level", lambda g: " notice"), (1, "set-nice", lambda g: " 3"),
    (1, "set-priority-class", lambda g: " int(2)"), (1, "set-bc-tos", lambda g: " 4"), (1, "set-bc-mark", lambda g: " 4"),
    (1, "set-retries", lambda g: " 1"), (1, "switch-mode", lambda g: " http"), (1, "set-priority-offset", lambda g: " int(5)"),
]
TCP_RESPONSE = [
    (4, "accept", lambda g: ""), (1, "reject", lambda g: ""), (1, "close", lambda g: ""), (1, "set-var", lambda g: f"(res.b) {expression(g, 'conn')}"),
    (1, "unset-var", lambda g: "(txn.a)"), (1, "set-log-level", lambda g: " warning"), (1, "set-nice", lambda g: " 3"),
    (1, "sc-inc-gpc0", lambda g: "(0)"), (1, "set-fc-tos", lambda g: " 8"), (1, "set-fc-mark", lambda g: " 8"), (1, "do-log", lambda g: ""),
    (1, "silent-drop", lambda g: ""), (1, "set-tos", lambda g: " 8"), (1, "set-mark", lambda g: " 8"), (1, "set-var-fmt", lambda g: "(txn.a) x%[src]"),
]

FINAL = {"deny", "return", "redirect", "reject", "silent-drop", "allow", "auth", "tarpit", "close", "accept"}


def weighted(rng, table):
    total = sum(row[0] for row in table)
    at = rng.randrange(total)
    for row in table:
        at -= row[0]
        if at < 0:
            return row


def some(g, keyword, table, side, most):
    """Up to `most` rules. One that ends the matter mostly has a condition."""
    lines = []
    for _ in range(g.rng.randrange(most + 1)):
        _, action, arguments = weighted(g.rng, table)
        tail = condition(g, side, 0.97 if action in FINAL else 0.4)
        if action in FINAL and not tail and chance(g.rng, 0.8):
            continue
        lines.append(f"{keyword} {action}{arguments(g)}{tail}")
    return lines
