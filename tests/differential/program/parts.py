"""Keywords of global, defaults, proxies, bind and server lines: each a row with its places and a maker of values."""
import values as v
from values import chance, condition, expression, format_text, pick, quoted

# Where a keyword may stand: d(efaults), f(rontend), l(isten), b(ackend); mode h(ttp), t(cp) or both.
F, B, A = "dfl", "dlb", "dflb"


def num(*items):
    return lambda g: " " + str(pick(g.rng, items))


def flag(g):
    return ""


def time(*items):
    return num(*items)


def cookie(g):
    out = " " + pick(g.rng, ["srv", "SERVERID", "x"]) + " " + pick(g.rng, ["insert", "insert", "rewrite", "prefix", ""])
    insert = "insert" in out
    for word in ("indirect", "nocache", "preserve", "httponly", "secure", "dynamic", "domain .example.test", "maxidle 30m", "maxlife 2h",
                 "attr SameSite=Lax", "postonly"):
        if chance(g.rng, 0.2) and (insert or word in ("httponly", "secure", "attr SameSite=Lax", "indirect", "postonly", "nocache")):
            if word == "dynamic":
                g.extra.append("dynamic-cookie-key secret1")
            out += " " + word
    if "maxidle" in out or "maxlife" in out:
        out = out.replace(" maxidle 30m", "").replace(" maxlife 2h", "")
    return out


def balance(g):
    choices = ["roundrobin"] * 4 + ["static-rr", "first"]
    if g.mode == "http":
        choices += ["uri", "uri depth 2", "uri len 5 whole", "uri path-only", "url_param a", "url_param n check_post", "hdr(x-a)", "hdr(host) use_domain_only",
                    "hash path", "hash req.hdr(x-a),lower", "rdp-cookie"]
    else:
        choices += ["source", "hash src", "rdp-cookie(mstshash)"]
    return " " + pick(g.rng, choices)


def stick_table(g):
    out = " type " + pick(g.rng, ["ip", "ipv6", "integer", "string", "string len 16", "binary len 8"]) + f" size {pick(g.rng, ['10', '1k', '100'])}"
    out += pick(g.rng, ["", " nopurge", ""]) + pick(g.rng, ["", " expire 1h", " expire 10m"])
    kinds = ["conn_cnt", "conn_cur", "conn_rate(1h)", "http_req_cnt", "http_req_rate(1h)", "http_err_cnt", "http_err_rate(1h)", "http_fail_cnt",
             "http_fail_rate(1h)", "bytes_in_cnt", "bytes_out_cnt", "bytes_in_rate(1h)", "bytes_out_rate(1h)", "sess_cnt", "sess_rate(1h)", "gpc0", "gpc1",
             "gpc0_rate(1h)", "gpc1_rate(1h)", "gpc(3)", "gpc_rate(3,1h)", "gpt(4)", "gpt0", "server_id", "glitch_cnt", "glitch_rate(1h)"]
    chosen = [k for k in kinds if chance(g.rng, 0.25)]
    if "gpc(3)" in chosen or "gpc_rate(3,1h)" in chosen:
        chosen = [k for k in chosen if k not in ("gpc0", "gpc1", "gpc0_rate(1h)", "gpc1_rate(1h)")]
    if "gpt(4)" in chosen:
        chosen = [k for k in chosen if k != "gpt0"]
    return out + (" store " + ",".join(chosen) if chosen else "")


def stick_key(g):
    return pick(g.rng, ["path", "req.hdr(x-a)", "req.cook(sid)", "url_param(a)", "str(k)"]) if g.mode == "http" else "str(k)"


def stick(g):
    g.need_own_table()
    return f" {stick_key(g)}" + condition(g, "req", 0.3)


def errorfiles(g):
    g.need("http-errors")
    return " errs" + pick(g.rng, ["", " 404", " 503 403"])


def http_error(g):
    code = pick(g.rng, ["400", "403", "404", "408", "429", "500", "502", "503", "504"])
    return f" status {code}" + pick(g.rng, [" errorfile 503.http", " content-type text/plain string 'own error'", " content-type text/plain lf-string 'e %[status]%[path]'",
                                           " default-errorfiles", " content-type text/html file small.txt hdr x-err 1",
                                           " content-type text/plain lf-file lf.txt"])


def compression(g):
    return " " + pick(g.rng, ["algo gzip", "algo deflate gzip", "algo identity", "type text/plain text/html", "offload", "direction both", "direction response",
                              "algo raw-deflate", "algo-res gzip", "algo-req gzip", "type-res text/plain", "type-req text/plain", "minsize-res 20", "minsize-req 5"])


def redirect_rule(g):
    import rules
    return rules.redirect(g, "req") + condition(g, "req", 0.97)


def log_steps(g):
    # What HAProxy says of a request at its accept is said before it was read, and again at its end.
    early = ["accept,close", "any", "accept"] if g.mode == "tcp" else []
    return " " + pick(g.rng, early + ["request", "response", "close", "connect"])


PROXY = [
    # weight, keyword, places, modes, maker
    (2, "backlog", F, "ht", num(10, 100, 4096)),
    (1, "clitcpka-cnt", F, "ht", num(3, 9)), (1, "clitcpka-idle", F, "ht", num("10s", 30)), (1, "clitcpka-intvl", F, "ht", num("5s", "1m")),
    (1, "srvtcpka-cnt", B, "ht", num(3, 9)), (1, "srvtcpka-idle", B, "ht", num("10s", 30)), (1, "srvtcpka-intvl", B, "ht", num("5s", "1m")),
    (0, "compression", A, "h", compression),
    (5, "cookie", B, "h", cookie),
    (2, "description", "flb", "ht", num("'some text'", "plain")),
    (2, "errorfile", A, "h", lambda g: " " + pick(g.rng, ["400 503.http", "404 503.http", "503 503.http", "403 503.http", "502 503.http", "429 /dev/null"])),
    (2, "errorfiles", A, "h", errorfiles),
    (2, "errorloc", A, "h", num("503 http://sorry.test/", "403 /sorry")), (2, "errorloc302", A, "h", num("502 /bad", "400 http://sorry.test/400")),
    (2, "errorloc303", A, "h", num("504 /late", "408 /slow", "403 /no")),
    (2, "error-log-format", F, "h", lambda g: " " + v.log_format(g)),
    (2, "filter", "flb", "h", lambda g: " " + pick(g.rng, ["trace name T", "trace random-forwarding", "bwlim-out bwo limit 100m key src table st1",
                                                        "bwlim-in bwi default-limit 100m default-period 1s"])),
    (2, "fullconn", B, "ht", num(10, 1000)),
    (1, "guid", "flb", "ht", lambda g: f" guid-{g.count()}"),
    (2, "hash-balance-factor", B, "ht", num(150, 0, 200)), (1, "hash-preserve-affinity", B, "ht", num("always", "maxconn", "maxqueue")),
    (4, "hash-type", B, "ht", num("consistent", "map-based", "consistent sdbm avalanche", "map-based djb2", "consistent crc32", "consistent wt6 avalanche", "map-based none", "map-based crc32 avalanche")),
    (2, "http-error", A, "h", http_error),
    (4, "http-reuse", B, "h", num("never", "safe", "aggressive", "always")),
    (3, "http-send-name-header", B, "h", num("x-server", "Host", "x-srv")),
    (1, "id", "flb", "ht", lambda g: f" {100 + g.count()}"),
    (3, "log-format", F, "ht", lambda g: " " + v.log_format(g)),
    (1, "log-format-sd", F, "ht", lambda g: " '[ex@1 a=\"%ci\" st=\"%ST\"]'"),
    (1, "log-tag", A, "ht", num("mytag", "other")),
    (2, "log-steps", F, "ht", log_steps),
    (1, "max-keep-alive-queue", B, "h", num(1, 10, 0)), (1, "max-session-srv-conns", F, "ht", num(1, 10)),
    (2, "maxconn", F, "ht", num(100, 1000)),
    (2, "monitor-uri", F, "h", num("/haproxy_test", "/a", "/")),
    (2, "monitor fail", "fl", "h", lambda g: condition(g, "req", 1).replace("unless", "if")),
    (2, "option abortonclose", A, "ht", flag), (2, "option allbackups", B, "ht", flag), (2, "option checkcache", B, "h", flag),
    (1, "option clitcpka", F, "ht", flag), (2, "option contstats", F, "ht", flag), (1, "option disable-h2-upgrade", F, "h", flag),
    (2, "option dontlog-normal", F, "ht", flag), (3, "option dontlognull", F, "ht", flag),
    (6, "option forwardfor", A, "h", lambda g: pick(g.rng, ["", "", " except 127.0.0.0/8", " header X-Client", " if-none", " except 10.0.0.0/8 header X-Real if-none"])),
    (3, "option forwarded", B, "h", lambda g: pick(g.rng, ["", " proto host for", " for-expr src by by_port", " host-expr req.hdr(host) for for_port-expr int(5)", " by-expr str(_x)"])),
    (2, "option originalto", A, "h", lambda g: pick(g.rng, ["", " header X-To", " except 127.0.0.1"])),
    (1, "option h1-case-adjust-bogus-client", F, "h", flag), (1, "option h1-case-adjust-bogus-server", B, "h", flag),
    (3, "option http-buffer-request", A, "h", flag), (1, "option http-drop-request-trailers", "db", "h", flag), (1, "option http-drop-response-trailers", "df", "h", flag),
    (2, "option http-ignore-probes", F, "h", flag), (2, "option http-keep-alive", A, "h", flag), (1, "option http-no-delay", A, "h", flag),
    (2, "option http-pretend-keepalive", B, "h", flag), (2, "option http-restrict-req-hdr-names", A, "h", num("delete", "reject", "preserve")),
    (4, "option http-server-close", A, "h", flag), (2, "option http-use-proxy-header", F, "h", flag), (3, "option httpclose", A, "h", flag),
    (2, "option idle-close-on-response", F, "h", flag), (1, "option independent-streams", A, "ht", flag),
    (2, "option log-separate-errors", F, "ht", flag), (2, "option logasap", F, "ht", flag), (1, "option nolinger", A, "ht", flag),
    (2, "option persist", B, "h", flag), (2, "option prefer-last-server", B, "ht", flag), (3, "option redispatch", B, "ht", num("", 1, -1, 2)),
    (2, "option socket-stats", F, "ht", flag), (1, "option splice-auto", A, "ht", flag), (1, "option splice-request", A, "ht", flag),
    (1, "option splice-response", A, "ht", flag), (1, "option srvtcpka", B, "ht", flag), (1, "option tcp-smart-accept", F, "ht", flag),
    (1, "option tcp-smart-connect", B, "ht", flag), (1, "option tcpka", A, "ht", flag), (1, "option use-small-buffers", B, "ht", flag),
    (2, "option accept-unsafe-violations-in-http-request", F, "h", flag), (2, "option accept-unsafe-violations-in-http-response", B, "h", flag),
    (1, "persist rdp-cookie", B, "t", lambda g: pick(g.rng, ["", "(mstshash)"])),
    (1, "rate-limit sessions", F, "ht", num(1000, 500)),
    (3, "redirect", "flb", "h", redirect_rule),
    (4, "retries", B, "ht", num(0, 1, 2, 5)),
    (3, "retry-on", B, "h", num("all-retryable-errors", "conn-failure empty-response", "503 500", "response-timeout junk-response", "none", "404 408 425 429 empty-response")),
    (1, "source", B, "ht", num("127.0.0.1", "0.0.0.0", "127.0.0.2")),
    (2, "stats auth", "flb", "h", num("admin:pw", "u:p")), (3, "stats enable", "flb", "h", flag), (1, "stats hide-version", "flb", "h", flag),
    (1, "stats realm", "flb", "h", num("Stats", "'My\\ Zone'")), (1, "stats refresh", "flb", "h", num("5s", 10)), (1, "stats scope", "flb", "h", num(".", "b1")),
    (1, "stats show-desc", "flb", "h", num("'a desc'")), (1, "stats show-legends", "flb", "h", flag), (1, "stats show-node", "flb", "h", num("n1")),
    (1, "stats show-modules", "flb", "h", flag), (1, "stats show-version", "flb", "h", flag), (3, "stats uri", "flb", "h", num("/stats", "/a/stats")),
    (1, "stats admin", "flb", "h", lambda g: condition(g, "req", 1)), (1, "stats http-request", "flb", "h", lambda g: " " + pick(g.rng, ["allow", "deny", "auth realm X"]) + condition(g, "req", 0.8)),
    (3, "stick on", "lb", "ht", stick), (2, "stick match", "lb", "ht", stick), (2, "stick store-request", "lb", "ht", stick),
    (1, "stick store-response", "lb", "h", lambda g: g.need_own_table() or " " + pick(g.rng, ["res.hdr(x-origin)", "res.cook(srv)", "status"])),
    (2, "tcp-request inspect-delay", A, "ht", num("20ms", "400ms")), (1, "tcp-response inspect-delay", B, "ht", num("20ms", "500ms")),
    (2, "timeout check", B, "ht", num("1s", "500ms")), (2, "timeout client-fin", F, "ht", num("400ms", "3s")), (1, "timeout client-hs", F, "ht", num("700ms")),
    (2, "timeout http-keep-alive", A, "h", num("700ms", "5s")), (3, "timeout http-request", A, "h", num("600ms", "3s")), (2, "timeout queue", B, "ht", num("300ms", "700ms")),
    (1, "timeout server-fin", B, "ht", num("400ms")), (2, "timeout tarpit", A, "h", num("10ms", "30ms")), (2, "timeout tunnel", B, "ht", num("700ms", "4s")),
    (3, "unique-id-format", "dfl", "ht", lambda g: g.have.update({"unique-id": 1}) or " " + pick(g.rng, ["%{+X}o\\ %ci:%fi_%rt", "'%[path]-%ci'", "id-%f", "%{+X}o%ci%fi"]).replace("_%rt", "")),
    (2, "unique-id-header", F, "ht", num("X-Unique-ID", "x-a")),
    (2, "dynamic-cookie-key", B, "h", num("key1", "k2")),
    (1, "email-alert level", A, "ht", num("info")), (1, "email-alert from", A, "ht", num("a@b.test")), (1, "email-alert to", A, "ht", num("c@d.test")),
    (1, "email-alert myhostname", A, "ht", num("me.test")),
    (2, "capture request header", "fl", "h", lambda g: g.captured() or f" {pick(g.rng, v.HEADERS)} len {pick(g.rng, [1, 10, 64])}"),
    (2, "capture response header", "fl", "h", lambda g: g.captured() or f" {pick(g.rng, v.RES_HEADERS)} len {pick(g.rng, [1, 10, 64])}"),
    (1, "capture cookie", "fl", "h", num("sid len 10", "srv= len 20", "lang len 3")),
    (1, "declare capture", "fl", "h", num("request len 10", "response len 20")),
    (1, "force-persist", "lb", "h", lambda g: condition(g, "req", 1)), (1, "ignore-persist", "lb", "h", lambda g: condition(g, "req", 1)),
    (1, "external-check command", B, "ht", num("/bin/true")), (1, "external-check path", B, "ht", num("/bin:/usr/bin")),
    (1, "load-server-state-from-file", B, "ht", num("none", "global", "local")), (1, "server-state-file-name", B, "ht", num("use-backend-name", "state.txt")),
    (1, "http-check send-state", B, "h", flag), (1, "http-check disable-on-404", B, "h", flag), (1, "option log-health-checks", B, "ht", flag),
    (1, "be-unpublished", "b", "ht", flag), (1, "force-be-switch", "fl", "ht", lambda g: condition(g, "req", 1)),
    (1, "filter-sequence", "flb", "h", num("request trace", "response trace")),
    (1, "email-alert mailers", A, "ht", lambda g: g.need("mailers") or " mls"),
    (1, "enabled", "dlb", "ht", flag),
    (1, "log", "dflb", "ht", num("global", "unix@log.sock local3", "unix@log.sock format rfc5424 local1 info", "unix@log.sock len 200 local2 notice err",
                                  "unix@log.sock format short daemon", "unix@log.sock format raw local0", "unix@log.sock sample 1:2 local0", "unix@log.sock format priority local4",
                                  "unix@log.sock format timed local5", "unix@log.sock format local local6")),
]

GLOBAL = [
    (1, "description", num("'the test'", "d1")), (1, "node", num("n7")), (2, "log-send-hostname", num("", "host7")), (2, "log-tag", num("gtag")),
    (1, "localpeer", num("me")), (1, "maxconn", num(1000, 500)), (1, "maxconnrate", num(1000)), (1, "maxsessrate", num(1000)), (1, "maxsslconn", num(200)),
    (1, "maxsslrate", num(500)), (1, "maxpipes", num(50)), (1, "maxcomprate", num(100000)), (1, "maxcompcpuusage", num(90)), (1, "maxzlibmem", num(64)),
    (1, "nbthread", num(1)), (1, "thread-groups", num(1)), (1, "max-threads-per-group", num(8)), (1, "thread-hard-limit", num(16)), (1, "noepoll", flag), (1, "nopoll", flag), (1, "noreuseport", flag), (1, "nosplice", flag), (1, "noktls", flag), (1, "nogetaddrinfo", flag),
    (1, "spread-checks", num(5, 50)), (1, "max-spread-checks", num("1s")), (1, "server-state-base", num("/tmp")), (1, "server-state-file", num("state.txt")),
    (2, "set-var", num("proc.e str(glob)", "proc.n int(5)")), (1, "set-var-fmt", num("proc.e 'g-%[int(3)]'")), (1, "setenv", num("HX value1")),
    (1, "presetenv", num("HY 2")), (1, "unsetenv", num("HX HOME")), (1, "resetenv", num("PATH")), (1, "hard-stop-after", num("2s")), (1, "grace", num("10ms")),
    (1, "close-spread-time", num("1s", "infinite")), (1, "quick-exit", flag), (1, "zero-warning", lambda g: None), (1, "quiet", flag),
    (1, "strict-limits", flag), (1, "insecure-fork-wanted", flag), (1, "insecure-setuid-wanted", flag), (1, "external-check", num("", "preserve-env")),
    (1, "h1-case-adjust", num("x-a X-A", "content-length Content-Length", "x-origin X-ORIGIN")), (1, "h1-case-adjust-file", num("case.txt")),
    (1, "h1-accept-payload-with-any-method", flag), (1, "h1-do-not-close-on-insecure-transfer-encoding", flag), (1, "h2-workaround-bogus-websocket-clients", flag),
    (2, "http-err-codes", num("400-499 -403", "+500-599", "404")), (2, "http-fail-codes", num("500-599", "+404", "-501")),
    (1, "dns-accept-family", num("ipv4", "ipv4,ipv6", "auto")), (1, "anonkey", num(123)), (1, "cluster-secret", num("sec")), (1, "default-path", num("current", "config")),
    (1, "expose-experimental-directives", flag), (1, "expose-deprecated-directives", flag), (1, "ca-base", num(".")), (1, "crt-base", num(".")), (1, "key-base", num(".")),
    (1, "fd-hard-limit", num(5000)), (1, "ulimit-n", num(4000)), (1, "busy-polling", lambda g: None), (1, "no-memory-trimming", flag), (1, "numa-cpu-mapping", flag),
    (1, "cpu-policy", num("none", "performance")), (1, "profiling.tasks", num("on", "off", "auto")), (1, "profiling.memory", num("off")), (1, "set-dumpable", num("on", "off")),
    (1, "pp2-never-send-local", flag), (1, "prealloc-fd", flag), (1, "stats timeout", num("10s", "5s")), (1, "stats maxconn", num(20)), (1, "stress-level", num(0)),
    (1, "warn-blocked-traffic-after", num("200ms")), (1, "unix-bind", num("mode 600", "prefix /tmp/")), (1, "debug.counters", num("on", "off")),
    (1, "harden.reject-privileged-ports.tcp", num("on", "off")), (1, "issuers-chain-path", lambda g: None), (1, "ssl-server-verify", num("none", "required")),
    (1, "ssl-default-bind-ciphers", num("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")), (1, "ssl-default-bind-ciphersuites", num("TLS_AES_128_GCM_SHA256")),
    (1, "ssl-default-bind-options", num("no-tls-tickets", "ssl-min-ver TLSv1.2", "ssl-max-ver TLSv1.2", "no-sslv3", "prefer-client-ciphers", "strict-sni")), (1, "ssl-default-bind-curves", num("X25519:P-256")),
    (1, "ssl-default-server-ciphers", num("ECDHE-ECDSA-AES128-GCM-SHA256")), (1, "ssl-default-server-ciphersuites", num("TLS_AES_128_GCM_SHA256")),
    (1, "ssl-default-server-options", num("no-tls-tickets", "ssl-min-ver TLSv1.2")), (1, "ssl-default-server-curves", num("P-256")), (1, "ssl-default-bind-sigalgs", num("ECDSA+SHA256:RSA-PSS+SHA256")),
    (1, "ssl-default-bind-client-sigalgs", num("ECDSA+SHA256")), (1, "ssl-default-server-sigalgs", num("ECDSA+SHA256")), (1, "ssl-default-server-client-sigalgs", num("ECDSA+SHA256")),
    (1, "ssl-load-extra-files", num("none", "key", "all")), (1, "ssl-load-extra-del-ext", flag), (1, "ssl-skip-self-issued-ca", flag), (1, "ssl-security-level", num(1, 2)),
    (1, "ssl-mode-async", lambda g: None), (1, "httpclient.retries", num(1)), (1, "httpclient.timeout.connect", num("1s")), (1, "httpclient.ssl.verify", num("none")),
    (1, "httpclient.resolvers.disabled", num("on")), (1, "httpclient.resolvers.prefer", num("ipv4")), (1, "stats-file", lambda g: None),
    (1, "tune.applet.zero-copy-forwarding", num("on", "off")), (1, "tune.buffers.limit", num(1000)), (1, "tune.buffers.reserve", num(4)),
    (2, "tune.bufsize", num(8192, 32768, 4096)), (1, "tune.bufsize.large", num(65536)), (1, "tune.bufsize.small", num(1024, 2048)), (1, "tune.cli.max-payload-size", num(65536)),
    (1, "tune.comp.maxlevel", num(5)), (1, "tune.disable-fast-forward", flag), (1, "tune.disable-zero-copy-forwarding", flag), (1, "tune.fail-alloc", lambda g: None),
    (1, "tune.epoll.mask-events", num("none", "rdhup")), (1, "tune.events.max-events-at-once", num(50)), (1, "tune.fd.edge-triggered", lambda g: None), (1, "tune.glitches.kill.cpu-usage", num(90)),
    (1, "tune.h1.be.glitches-threshold", num(100)), (1, "tune.h1.fe.glitches-threshold", num(100)), (1, "tune.h1.zero-copy-fwd-recv", num("on", "off")), (1, "tune.h1.zero-copy-fwd-send", num("on", "off")),
    (1, "tune.h2.be.glitches-threshold", num(100)), (1, "tune.h2.be.initial-window-size", num(100000)), (1, "tune.h2.be.max-concurrent-streams", num(20)), (1, "tune.h2.be.max-frames-at-once", num(50)),
    (1, "tune.h2.be.rxbuf", num("64k")), (1, "tune.h2.fe.glitches-threshold", num(100)), (1, "tune.h2.fe.initial-window-size", num(70000)), (1, "tune.h2.fe.max-concurrent-streams", num(20)),
    (1, "tune.h2.fe.max-frames-at-once", num(50)), (1, "tune.h2.fe.max-rst-at-once", num(10)), (1, "tune.h2.fe.max-total-streams", num(100)), (1, "tune.h2.fe.rxbuf", num("64k")),
    (1, "tune.h2.header-table-size", num(2048)), (1, "tune.h2.initial-window-size", num(65535, 70000)), (1, "tune.h2.log-errors", num("none", "stream", "connection")), (1, "tune.h2.max-concurrent-streams", num(50)),
    (1, "tune.h2.max-frame-size", num(16384, 32768)), (1, "tune.h2.zero-copy-fwd-send", num("on", "off")), (1, "tune.http.cookielen", num(20, 128)), (1, "tune.http.logurilen", num(20, 512)),
    (1, "tune.http.maxhdr", num(50, 20)), (1, "tune.idle-pool.shared", num("on", "off", "full")), (1, "tune.idletimer", num(0, 500)), (1, "tune.listener.default-shards", num("by-process")), (1, "tune.listener.multi-queue", num("on", "off")),
    (1, "tune.max-checks-per-thread", num(5)), (1, "tune.max-rules-at-once", num(2, 100)), (1, "tune.maxaccept", num(2, -1)), (1, "tune.maxpollevents", num(20)), (1, "tune.maxrewrite", num(512, 2000)), (1, "tune.memory.hot-size", num(100000)),
    (1, "tune.notsent-lowat.client", num(16000)), (1, "tune.notsent-lowat.server", num(16000)), (1, "tune.pattern.cache-size", num(0, 100)), (1, "tune.peers.max-updates-at-once", num(100)), (1, "tune.pipesize", num(32768)),
    (1, "tune.pool-high-fd-ratio", num(30)), (1, "tune.pool-low-fd-ratio", num(20)), (1, "tune.pt.zero-copy-forwarding", num("on", "off")), (1, "tune.rcvbuf.backend", num(65536)), (1, "tune.rcvbuf.client", num(65536)),
    (1, "tune.rcvbuf.frontend", num(65536)), (1, "tune.rcvbuf.server", num(65536)), (1, "tune.sndbuf.backend", num(65536)), (1, "tune.sndbuf.client", num(65536)), (1, "tune.sndbuf.frontend", num(65536)), (1, "tune.sndbuf.server", num(65536)),
    (1, "tune.recv_enough", num(5000)), (1, "tune.renice.runtime", num(1)), (1, "tune.renice.startup", num(1)), (1, "tune.ring.queues", num(2)), (1, "tune.runqueue-depth", num(50)), (1, "tune.sched.low-latency", num("on")),
    (1, "tune.ssl.cachesize", num(1000)), (1, "tune.ssl.capture-buffer-size", num(128)), (1, "tune.ssl.default-dh-param", num(2048)), (1, "tune.ssl.force-private-cache", flag), (1, "tune.ssl.hard-maxrecord", num(8000)), (1, "tune.ssl.keylog", num("on")),
    (1, "tune.ssl.lifetime", num(60)), (1, "tune.ssl.maxrecord", num(1400)), (1, "tune.ssl.ssl-ctx-cache-size", num(50)), (1, "tune.ssl.ocsp-update.maxdelay", num(1000)), (1, "tune.ssl.ocsp-update.mindelay", num(100)), (1, "tune.stick-counters", num(5, 12)), (1, "tune.streams-elasticity", num(100)), (1, "tune.takeover-other-tg-connections", num("none", "full")),
    (1, "tune.vars.global-max-size", num(100000)), (1, "tune.vars.proc-max-size", num(10000)), (1, "tune.vars.reqres-max-size", num(10000)), (1, "tune.vars.sess-max-size", num(10000)), (1, "tune.vars.txn-max-size", num(10000)), (1, "tune.zlib.memlevel", num(5)), (1, "tune.zlib.windowsize", num(12)),
    (1, "tune.defaults.purge", flag), (1, "tune.fd.tables", lambda g: None), (1, "ocsp-update.disable", num("on")), (1, "ocsp-update.mode", num("on", "off")), (1, "ocsp-update.maxdelay", num(1000)), (1, "ocsp-update.mindelay", num(100)),
    (1, "shm-stats-file", lambda g: None), (1, "limited-quic", flag), (1, "force-cfg-parser-pause", num(0)), (1, "server-state-file", num("state.txt")), (1, "cpu-set", lambda g: None), (1, "user", num("root")), (1, "group", num("root")), (1, "uid", num(0)), (1, "gid", num(0)), (1, "chroot", num("/")),
    (1, "pidfile", num("pid.txt")), (1, "daemon", lambda g: None), (1, "lua-prepend-path", num("/tmp/?.lua")), (1, "tune.lua.maxmem", num(100)), (1, "tune.lua.forced-yield", num(5000)), (1, "tune.lua.burst-timeout", num(500)), (1, "tune.lua.session-timeout", num("3s")), (1, "tune.lua.task-timeout", num("3s")), (1, "tune.lua.service-timeout", num("3s")), (1, "tune.lua.log.loggers", num("on")), (1, "tune.lua.log.stderr", num("auto")), (1, "tune.lua.bool-sample-conversion", num("normal")), (1, "tune.lua.openlibs", num("all")),
    (1, "setcap", lambda g: None), (1, "jwt.decrypt_alg_list", num("RSA-OAEP,dir")), (1, "jwt.decrypt_enc_list", num("A128GCM")), (1, "tune.ssl.certificate-compression", num("off", "auto")), (1, "tune.ssl.keyupdate-rate-limit", num(10)), (1, "acme.scheduler", num("off")),
]

BIND = [
    (1, "backlog", num(100)), (2, "id", lambda g: f" {g.count() + 10}"), (2, "name", lambda g: f" n{g.count()}"), (1, "nice", num(10, -20)), (1, "maxconn", num(50)),
    (1, "defer-accept", flag), (1, "guid-prefix", lambda g: f" gp{g.count()}"), (1, "level", num("admin", "user")), (1, "severity-output", num("number")), (1, "shards", num(1, "by-process")), (1, "thread", num(1, "all")),
    (1, "tfo", flag), (1, "tcp-ut", num("3s")), (1, "mss", num(1400)), (1, "transparent", lambda g: None), (1, "v6only", lambda g: None), (1, "mode", num(600)), (1, "user", num("root")), (1, "group", num("root")), (1, "uid", num(0)), (1, "gid", num(0)),
    (1, "label", lambda g: f" lb{g.count()}"), (1, "idle-ping", num("20s")), (1, "tcp-ss", lambda g: None), (1, "cc", num("cubic", "reno")), (1, "interface", num("lo")), (1, "v4v6", lambda g: None),
]
BIND_TLS = [
    (2, "alpn", num("h2,http/1.1", "http/1.1", "h2")), (1, "npn", num("http/1.1")), (1, "no-alpn", flag), (2, "ssl-min-ver", num("TLSv1.2", "TLSv1.3")), (2, "ssl-max-ver", num("TLSv1.2", "TLSv1.3")), (1, "ciphers", num("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384")),
    (1, "ciphersuites", num("TLS_AES_256_GCM_SHA384")), (1, "curves", num("P-256", "X25519:P-256")), (1, "ecdhe", num("prime256v1")), (1, "no-tls-tickets", flag), (1, "tls-tickets", flag), (2, "strict-sni", flag), (1, "no-strict-sni", flag), (3, "verify", num("none", "optional ca-file ca.crt", "required ca-file ca.crt")),
    (1, "no-tlsv10", flag), (1, "no-tlsv11", flag), (1, "no-tlsv12", flag), (1, "no-tlsv13", flag), (1, "no-sslv3", flag), (1, "force-tlsv12", flag), (1, "force-tlsv13", flag), (1, "prefer-client-ciphers", flag), (1, "sigalgs", num("ECDSA+SHA256:RSA-PSS+SHA256")), (1, "client-sigalgs", num("ECDSA+SHA256")),
    (1, "ca-ignore-err", num("all", "10")), (1, "crt-ignore-err", num("all", "10,20")), (1, "no-ca-names", flag), (1, "generate-certificates ca-sign-file", num("ca.pem")), (1, "allow-0rtt", flag), (1, "ca-verify-file", num("ca.crt")), (1, "default-crt", num("wild.pem")), (1, "crt", num("wild.pem", "www.pem")), (1, "crt-list", num("crt.list")), (1, "crl-file", lambda g: None), (1, "ktls", num("off")), (1, "force-tlsv10", lambda g: None),
]
SERVER = [
    (3, "weight", num(0, 1, 5, 100, 256)), (3, "cookie", lambda g: f" c{g.count()}" if g.mode == "http" else None), (2, "backup", flag), (1, "disabled", flag), (1, "enabled", flag), (1, "error-limit", num(2, 10)), (1, "fall", num(2)), (1, "rise", num(1)), (1, "guid", lambda g: f" sg{g.count()}"), (1, "hash-key", num("id", "addr", "addr-port", "id32")),
    (1, "id", lambda g: f" {g.count() + 50}"), (1, "init-addr", num("last,libc,none", "none")), (1, "init-state", num("up", "fully-up")), (2, "maxconn", num(1, 10, 100)), (1, "maxqueue", num(10)), (1, "max-reuse", num(0, 1, 3)), (1, "minconn", num(5)), (1, "no-backup", flag), (1, "no-check", flag), (1, "no-agent-check", flag),
    (1, "non-stick", flag), (1, "stick", flag), (1, "observe", num("layer4", "layer7")), (1, "on-error", num("fastinter", "mark-down", "fail-check", "sudden-death")), (1, "on-marked-down", num("shutdown-sessions")), (1, "on-marked-up", num("shutdown-backup-sessions")), (1, "pool-low-conn", num(1)), (2, "pool-max-conn", num(0, 1, 10)), (1, "pool-purge-delay", num("5s")),
    (1, "pool-conn-name", num("req.hdr(x-a)")), (1, "redir", lambda g: " http://elsewhere.test" if g.mode == "http" else None), (1, "slowstart", num("1s")), (1, "source", num("127.0.0.1", "127.0.0.3")), (1, "shard", num(1)), (1, "strict-maxconn", flag), (1, "tcp-ut", num("3s")), (1, "tfo", lambda g: None), (1, "no-tfo", flag), (1, "ws", num("auto", "h1", "h2")), (1, "cc", num("cubic")), (1, "log-bufsize", lambda g: None),
    (1, "send-proxy", lambda g: g.proxied("v1")), (1, "send-proxy-v2", lambda g: g.proxied("v2")), (1, "no-send-proxy", flag), (1, "no-send-proxy-v2", flag), (1, "no-send-proxy-v2-ssl", flag), (1, "no-send-proxy-v2-ssl-cn", flag), (1, "proxy-v2-options", num("unique-id", "crc32c", "ssl,cert-cn", "authority")), (1, "set-proxy-v2-tlv-fmt", num("(0xE1) %[fc_src]", "(0xE2) x")), (1, "send-proxy-v2-ssl", lambda g: g.proxied("v2")), (1, "send-proxy-v2-ssl-cn", lambda g: g.proxied("v2")),
    (1, "resolve-prefer", num("ipv4")), (1, "resolve-net", num("10.0.0.0/8")), (1, "resolve-opts", num("allow-dup-ip")), (1, "no-sni-auto", flag), (1, "no-check-sni-auto", flag), (1, "no-check-ssl", flag), (1, "no-ssl", flag), (1, "idle-ping", num("10s")), (1, "check-reuse-pool", flag), (1, "no-check-reuse-pool", flag), (1, "check-pool-conn-name", num("x")), (1, "healthcheck", lambda g: None), (1, "namespace", lambda g: None),
    (1, "inter", num("10s")), (1, "fastinter", num("5s")), (1, "downinter", num("5s")), (1, "agent-send", num("hi")), (1, "agent-inter", num("5s")), (1, "agent-addr", num("127.0.0.1")), (1, "agent-port", num(1)), (1, "addr", num("127.0.0.1")), (1, "port", num(1)), (1, "check-send-proxy", flag), (1, "check-sni", num("x")), (1, "check-alpn", num("http/1.1")), (1, "check-proto", num("h1", "h2")), (1, "check-via-socks4", flag), (1, "track", lambda g: None),
]
SERVER_TLS = [
    (3, "sni", num("str(origin.test)", "req.hdr(host)", "ssl_fc_sni")), (2, "alpn", num("http/1.1", "h2,http/1.1")), (1, "ca-file", num("ca.crt")), (2, "verify", num("none", "required")), (1, "verifyhost", num("origin.test", "other.test")), (1, "ssl-min-ver", num("TLSv1.2")), (1, "ssl-max-ver", num("TLSv1.2")), (1, "ciphers", num("ECDHE-ECDSA-AES128-GCM-SHA256")), (1, "ciphersuites", num("TLS_AES_128_GCM_SHA256")),
    (1, "curves", num("P-256")), (1, "crt", num("client.pem")), (1, "force-tlsv12", flag), (1, "force-tlsv13", flag), (1, "no-ssl-reuse", flag), (1, "ssl-reuse", flag), (1, "no-tls-tickets", flag), (1, "tls-tickets", flag), (1, "no-sslv3", flag), (1, "no-tlsv10", flag), (1, "no-tlsv11", flag), (1, "no-tlsv12", flag), (1, "no-tlsv13", flag), (1, "sigalgs", num("ECDSA+SHA256")), (1, "client-sigalgs", num("ECDSA+SHA256")), (1, "sni-auto", flag), (1, "no-sni-auto", flag), (1, "npn", num("http/1.1")), (1, "allow-0rtt", flag), (1, "renegotiate", flag), (1, "no-renegotiate", flag), (1, "ktls", num("off")), (1, "check-ssl", flag), (1, "check-sni-auto", flag),
]

# Keywords with something of their own to be said: what HAProxy refuses on this machine `run.py` takes out again.
PROXY += [
    (1, "disabled", "b", "ht", lambda g: "" if chance(g.rng, 0.15) else None),
    (1, "option httpslog", F, "h", flag), (1, "option accept-invalid-http-request", F, "h", flag), (1, "option accept-invalid-http-response", B, "h", flag),
    (1, "option external-check", B, "ht", flag), (1, "ssl-f-use", "f", "ht", num("crt www.pem", "crt wild.pem alpn h2")), (1, "crt", "f", "ht", num("www.pem")),
    (1, "compression", A, "h", compression),
]
GLOBAL += [
    (1, "busy-polling", flag), (1, "cpu-map", num("1 0", "1/1 0-1")), (1, "cpu-set", num("reset", "drop-cpu 99", "only-cluster 0")), (1, "daemon", flag), (1, "httpclient.resolvers.id", num("default")),
    (1, "httpclient.ssl.ca-file", num("ca.crt")), (1, "issuers-chain-path", num(".")), (1, "master-worker", num("no-exit-on-failure", "")), (1, "mworker-max-reloads", num(5)), (1, "noevports", flag), (1, "nokqueue", flag),
    (1, "noepoll", flag), (1, "nopoll", flag), (1, "ocsp-update.httpproxy", num("127.0.0.1:1")), (1, "setcap", num("cap_net_bind_service")), (1, "shm-stats-file", num("shm.file")), (1, "shm-stats-file-max-objects", num(100)),
    (1, "ssl-dh-param-file", num("dh.pem")), (1, "ssl-engine", num("rdrand")), (1, "ssl-mode-async", flag), (1, "ssl-passphrase-cmd", num("/bin/true")), (1, "ssl-propquery", num("provider=default")), (1, "ssl-provider", num("default")),
    (1, "ssl-provider-path", num("/tmp")), (1, "stats-file", num("stats.file")), (1, "thread-group", num("1 1")), (1, "thread-groups", num(1)), (1, "tune.fail-alloc", num(0)), (1, "tune.fd.edge-triggered", num("on", "off")), (1, "tune.fd.tables", num("strict")),
    (1, "tune.ssl.capture-cipherlist-size", num(100)), (1, "zero-warning", lambda g: "" if chance(g.rng, 0.5) else None), (1, "cpu-affinity", num("auto", "per-core")), (1, "max-threads-per-group", num(8)),
    (1, "ca-base", num("/tmp")), (1, "localpeer", num("me")), (1, "log-send-hostname", num("here")), (1, "log-tag", num("gtag")), (1, "node", num("n9")), (1, "setenv", num("HX here")),
]
BIND += [
    (1, "v6only", flag), (1, "v4v6", flag), (1, "transparent", flag), (1, "tcp-ss", num(1)), (1, "tcp-md5sig", lambda g: " secret" if chance(g.rng, 0.2) else None), (1, "namespace", num("none")), (1, "nbconn", num(1)), (1, "expose-fd", num("listeners")),
]
BIND_TLS += [
    (1, "crl-file", num("crl.pem")), (1, "tls-ticket-keys", num("tickets.keys")), (1, "ca-sign-pass", num("pw")), (1, "ech", num(".")), (1, "ca-sign-file", num("ca.pem")),
]
SERVER += [
    (1, "namespace", num("none")), (1, "log-bufsize", num(1000)), (1, "log-proto", num("octet-count", "legacy")), (1, "tcp-md5sig", lambda g: " secret" if chance(g.rng, 0.3) else None), (1, "tfo", flag), (1, "healthcheck", num("hc")), (1, "from", num("x")),
    (1, "socks4", lambda g: " 127.0.0.1:1" if chance(g.rng, 0.2) else None), (1, "agent-check", lambda g: g.agent()), (1, "no-verifyhost", flag),
]
SERVER_TLS += [
    (1, "crl-file", num("crl.pem")), (1, "no-verifyhost", flag),
]


def http_check(g):
    """What checks of HTTP do: always such that the origin's 200 is found good."""
    out = ["option httpchk" + pick(g.rng, ["", " /chk", " GET /chk", " OPTIONS /c HTTP/1.1", " HEAD /h HTTP/1.1\\r\\nHost:\\ c.test"])]
    if chance(g.rng, 0.5):
        out[0] = "option httpchk"
        if chance(g.rng, 0.3):
            out.append("http-check comment 'first'")
        if chance(g.rng, 0.4):
            out.append("http-check set-var" + pick(g.rng, ["(check.a) str(x)", "-fmt(check.a) 'v%[int(3)]'"]))
        if chance(g.rng, 0.3):
            out.append("http-check connect" + pick(g.rng, ["", " default", " linger"]))
        out.append("http-check send" + pick(g.rng, [" meth GET uri /s", " meth POST uri /p ver HTTP/1.1 hdr host c.test body abc", " uri-lf '/%[var(check.a)]'", " hdr x-c '%[be_name]'", " meth PUT body-lf 'b%[int(2)]'"]))
        if chance(g.rng, 0.2):
            out.append("http-check unset-var(check.a)")
    if chance(g.rng, 0.6):
        out.append("http-check expect" + pick(g.rng, [" status 200", " status 200-299", " rstatus ^2", " ! rstatus ^5", " min-recv 4 status 200", " comment 'is good' status 200", " hdr name x-k", " fhdr name x-k value yes", " ! string nothing", " ok-status L7OK status 200"]))
    return out


def tcp_check(g):
    """What checks of TCP do with an origin that only accepts."""
    out = ["option tcp-check"]
    if chance(g.rng, 0.3):
        out.append("tcp-check comment 'c1'")
    if chance(g.rng, 0.5):
        out.append("tcp-check connect" + pick(g.rng, ["", " default", " linger", " comment 'go'"]))
    if chance(g.rng, 0.4):
        out.append("tcp-check set-var" + pick(g.rng, ["(check.t) int(4)", "-fmt(check.t) 'f%[int(1)]'"]))
    for _ in range(pick(g.rng, [0, 1, 2])):
        out.append("tcp-check send" + pick(g.rng, [" 'PING\\r\\n'", "-binary 50494e47", "-lf 'x%[var(check.t)]'", "-binary-lf '%[str(414243)]'", " QUIT comment 'bye'"]))
    if chance(g.rng, 0.3):
        out.append("tcp-check unset-var(check.t)")
    if chance(g.rng, 0.3):
        out.append("tcp-check expect" + pick(g.rng, [" string +", " rstring ^.", " binary 2b", " string-lf '+'", " ! string never", " min-recv 1 string +"]))
    return out


# Checks of a protocol that the origin does not speak: the server goes down.
FOREIGN_CHECKS = ["option ldap-check", "option mysql-check", "option mysql-check user u", "option pgsql-check user u", "option redis-check", "option smtpchk", "option smtpchk EHLO me.test", "option ssl-hello-chk", "option spop-check"]
