"""The cases of rules.py. A case is a rule in its place (SPECS), a request of a kind (traffic.py) and what the origin does with it.

In the lines of a rule @b@ is the name of its backend, @d@ the directory of the run, @m@ the file of its map, @a@ that of its list and
@p@ the port of the origin.
"""
import collections, re

Spec = collections.namedtuple("Spec", "front back inherit server kinds")
SPECS, CASES = {}, {}

# What every rule meets with the plain origin, and every origin with GET and POST.
EVERY = """get get10 head post chunked expect connect options websocket two pipelined late bad slow h2-get h2-head h2-post h2-late h2-connect
 h2-two""".split()
ORIGINS = "chunked close 204 304 103 500 silent refuse reset cut".split()
WHOLE = [(kind, "plain") for kind in EVERY] + [(kind, origin) for origin in ORIGINS for kind in ("get", "post")]
MOST = [(kind, "plain") for kind in ("get", "head", "post", "two", "late", "h2-post")] + [("get", "refuse"), ("get", "chunked")]
MORE = MOST + [(kind, "plain") for kind in ("get10", "chunked", "connect", "websocket", "pipelined", "bad", "slow", "h2-get", "h2-two")]
FEW = [("get", "plain"), ("post", "plain"), ("h2-get", "plain"), ("get", "refuse")]


def spec(name, front=(), back=(), inherit=("", ()), server="127.0.0.1:@p@", kinds=WHOLE):
    SPECS[name] = Spec(front, back, inherit, server, kinds)
    for kind, origin in kinds:
        # Whether a 103 is out, or a body in, before the client is dropped is a matter of time.
        if "silent-drop" not in name or origin != "103" and kind not in ("expect", "late", "h2-late"):
            CASES[f"{name} | {kind} | {origin}"] = (name, kind, origin)


TCP = "tcp-request connection", "tcp-request session", "tcp-request content", "tcp-response content"
HTTP = "http-request", "http-response", "http-after-response"
CN, SE, CT, RC, RQ, RS, AF = TCP + HTTP
# Where an action is allowed in frontends, in backends, in `defaults`.
FRONT, BACK = {CN, SE, CT, RQ, RS, AF}, {CT, RC, RQ, RS, AF}

BODY = ["content-type text/plain string hi", "content-type text/plain lf-string '%[src] %[method] %[var(txn.v)]'",
        "content-type text/plain file @d@/page", "content-type text/plain lf-file @d@/page.lf", "default-errorfiles", "errorfile @d@/e503",
        "errorfiles other"]
FINAL = {
    "": [""] + BODY,
    "status": ["status 404", "status 404 content-type text/x string gone", "status 429 errorfiles other", "status 503 default-errorfiles",
               "status 403 content-type text/plain string no hdr x-a 1 hdr x-b %[method]", "status 500 hdr retry-after 3"],
}
RETURN = [""] + BODY + FINAL["status"] + ["status 204", "status 304", "status 301 hdr location /x", "status 599",
          "status 200 content-type text/plain string hi hdr connection close", "status 205 content-type text/plain string hi",
          "hdr x-nothing %[var(txn.none)]"]
REDIRECT = ["location /x", "location /x code 301", "location http://h%[path]?x code 303", "prefix http://h code 307", "prefix /p code 308", "prefix /",
            "scheme https", "scheme https code 301", "location /x drop-query", "prefix http://h drop-query", "prefix http://h append-slash",
            "prefix /p drop-query append-slash", "location /x set-cookie S=1", "location /x set-cookie-fmt S=%[method]", "location /x clear-cookie S=",
            "location /x clear-cookie S", "prefix http://h keep-query", "location /x?y keep-query", "location /x ignore-empty",
            "location '%[var(txn.none)]' ignore-empty", "location '%[var(txn.none)]'", "location /x code 302 set-cookie A=b;path=/c"]
# Not among them: content-length and transfer-encoding, for what a message is like whose framing rules made up is nobody's promise.
FIELDS = ["{} x-new 1", "{} x-one '%[method] %[var(txn.v)]'", "{} x-two %[var(txn.none)]"]
REWRITES = {
    "add-header": FIELDS + ["{} connection close"],
    "set-header": FIELDS + ["{} content-type text/y", "{} connection close", "{} connection keep-alive"],
    "del-header": ["{} x-two", "{} x- -m beg", "{} two -m end", "{} -o -m sub", "{} ^x-.*o$ -m reg", "{} x-none", "{} connection", "{} set-cookie"],
    "replace-header": ["{} x-two (.*),(.*) \\2;\\1", "{} x-two none \\0", "{} x-two ^.* %[method]-\\0"],
    "replace-value": ["{} x-two (.)(.*) \\2\\1", "{} x-two b %[method]", "{} cache-control ^public$ private"],
    "add-headers-bin": ["{} var(txn.list) prefix x-", "{} var(txn.none)"],
    "set-headers-bin": ["{} var(txn.list) prefix x-", "{} var(txn.list)", "{} var(txn.none)"],
    "del-headers-bin": ["{} str(BXgtdHdvAA==),b64dec", "{} var(txn.none)"],
}
STEPS = {
    "do-log": ["{}", "{} profile mine"],
    "set-var": ["{}(sess.v) str(a)", "{}(sess.v) src", "{}(sess.v,ifnotexists) int(3)", "{}(sess.v,ifgt) int(3)", "{}(sess.v) var(sess.none)"],
    "set-var-fmt": ["{}(sess.v) %[src]-%[var(sess.w)]", "{}(sess.v,ifnotempty) '%[var(sess.none)]'"],
    "unset-var": ["{}(sess.v)"],
    "sc": ["sc-add-gpc(0,0) 3", "sc-add-gpc(1,0) int(4)", "sc-inc-gpc(0,0)", "sc-inc-gpc(2,0)", "sc-inc-gpc(9,0)", "sc-inc-gpc0(0)", "sc-inc-gpc1(0)", "sc-inc-gpc(0,1)",
           "sc-set-gpt(0,0) 7", "sc-set-gpt(1,0) int(8)", "sc-set-gpt0(0) 9"],
}
TXN = {"set-var": ["{}(txn.v) str(b)", "{}(req.v) str(b)", "{}(res.v) int(1)"], "set-var-fmt": ["{}(txn.v) %[method]"],
       "unset-var": ["{}(txn.v)"]}
TXN_CONTENT = {"set-var": ["{}(txn.v) str(b)"], "set-var-fmt": ["{}(txn.v) %[src]"], "unset-var": ["{}(txn.v)"]}
MARKS = ["set-fc-mark 1", "set-fc-tos 4", "set-fc-tos int(8)", "set-mark 1", "set-tos 4"]
ADDRESSES = ["set-src str(1.2.3.4)", "set-src str(2001:db8::1)", "set-src src,ipmask(24)", "set-src var(sess.none)", "set-src-port int(99)", "set-dst str(1.2.3.4)",
             "set-dst str(::1)", "set-dst dst,ipmask(8)", "set-dst-port int(99)"]
TRACK = ["track-sc0 src table @b@", "track-sc0 str(k) table @b@", "track-sc1 str(k) table @b@", "track-sc0 var(sess.none) table @b@"]
LISTS = ["add-acl(@a@) new", "add-acl(@a@) old", "del-acl(@a@) old", "set-map(@m@) new 1", "set-map(@m@) old 2", "del-map(@m@) old", "del-map(@m@) none"]


def over(table):
    return [line.replace("{}", action) for action, lines in table.items() for line in lines]


LEVELS = ["set-log-level err", "set-log-level silent", "set-log-level emerg"]
ACTIONS = {
    CN: ["accept", "reject", "silent-drop", "silent-drop rst-ttl 3", "expect-proxy layer4", "expect-netscaler-cip layer4", *MARKS, *ADDRESSES, *TRACK, *over(STEPS)],
    SE: ["accept", "reject", "silent-drop", "silent-drop rst-ttl 3", *MARKS, *ADDRESSES, *TRACK, *over(STEPS)],
    CT: ["accept", "reject", "silent-drop", "silent-drop rst-ttl 3", *MARKS, "set-bc-mark 1", "set-bc-tos 4", *ADDRESSES, *TRACK, *over(STEPS), *over(TXN_CONTENT), *LEVELS,
         "set-nice 5", "set-priority-class int(3)", "set-priority-offset int(3)", "capture src len 20", "capture req.hdr(x-one) len 2",
         "capture method len 9", "capture var(txn.none) len 3", "set-bandwidth-limit up", "set-bandwidth-limit down limit 10k period 1s"],
    RC: ["accept", "reject", "close", "silent-drop", "silent-drop rst-ttl 3", *MARKS, *over(STEPS), *over(TXN_CONTENT), *LEVELS, "set-nice 5",
         "set-bandwidth-limit down limit 10k period 1s"],
    RQ: ["allow", "reject", "silent-drop", "silent-drop rst-ttl 3", "auth", "auth realm r", "disable-l7-retry", *("deny " + words for words in FINAL[""] + FINAL["status"]),
         "deny deny_status 429", "deny deny_status 200", "deny status 401", "deny status 407", "deny status 599",
         *("tarpit " + words for words in FINAL[""][:3] + FINAL["status"][:2]), "tarpit deny_status 429", *("return " + words for words in RETURN),
         *("redirect " + words for words in REDIRECT), "early-hint link '</a>; rel=preload'", "early-hint x-h %[method]",
         "normalize-uri fragment-encode", "normalize-uri fragment-strip", "normalize-uri path-merge-slashes", "normalize-uri path-strip-dot",
         "normalize-uri path-strip-dotdot", "normalize-uri path-strip-dotdot full", "normalize-uri percent-decode-unreserved",
         "normalize-uri percent-decode-unreserved strict", "normalize-uri percent-to-uppercase", "normalize-uri percent-to-uppercase strict",
         "normalize-uri query-sort-by-name", "pause 20", "pause int(20)", "pause var(txn.none)",
         "replace-path (.*) /foo\\1", "replace-path ^/a /b", "replace-path none /x", "replace-pathq (.*)\\?(.*) \\1/foo?\\2",
         "replace-pathq .* x", "replace-uri (.*) /u\\1", "replace-uri .* http://other/u", "set-method PUT", "set-method HEAD", "set-method GET",
         "set-method CONNECT", "set-path /new", "set-path new", "set-path /%[path]?x=1", "set-pathq /new?q", "set-pathq /new",
         "set-query n=1", "set-uri /new?u", "set-uri http://other:81/x?y", "set-uri *", *over(REWRITES),
         "set-header host other", "add-header host other", "del-header host", "set-header cookie a=b", "add-header cookie z=y", "set-header upgrade h2c",
         "set-header expect 100-continue", "del-header expect", "del-header upgrade", "replace-header host .* new", "set-header te trailers",
         "set-bc-mark 1", "set-bc-tos 4", *MARKS, *ADDRESSES, *TRACK, *over(STEPS), *over(TXN), *LEVELS, *LISTS, "set-nice 5", "set-priority-class int(3)",
         "set-priority-offset int(3)", "capture src len 20", "capture req.hdr(x-one) len 2", "capture method len 9", "capture var(txn.none) len 3",
         "set-timeout client 50", "set-timeout tarpit 20", "set-timeout client int(50)", "strict-mode on", "strict-mode off", "wait-for-body time 15",
         "wait-for-body time 15 at-least 2", "wait-for-body time 500", "wait-for-handshake", "set-bandwidth-limit up", "set-bandwidth-limit down limit 10k period 1s"],
    RS: ["allow", "silent-drop", "silent-drop rst-ttl 3", *("deny " + words for words in FINAL[""] + FINAL["status"]), "deny deny_status 429",
         *("return " + words for words in RETURN), "redirect location /x", "redirect location /x code 301 set-cookie S=1", "redirect location %[res.hdr(x-one)]",
         "pause 20", "pause int(20)", *over(REWRITES), "set-status 418", "set-status 204", "set-status 304", "set-status 503 reason 'Slow Down'", "set-status 999",
         "set-header location /x", "replace-header set-cookie (.*) \\1;x", *MARKS, *TRACK, *over(STEPS), *over(TXN), *LEVELS, *LISTS, "set-nice 5",
         "capture res.hdr(x-one) id 0", "set-timeout tunnel 50", "strict-mode on", "strict-mode off", "wait-for-body time 15",
         "wait-for-body time 15 at-least 2", "wait-for-body time 500", "set-bandwidth-limit down limit 10k period 1s"],
    AF: ["allow", *over(REWRITES), "set-status 418", "set-status 204", "set-status 304", "set-status 503 reason 'Slow Down'", "set-status 999",
         "set-header location /x", *over(STEPS), *over(TXN), *LEVELS, "set-map(@m@) new 1", "del-map(@m@) old", "capture res.hdr(x-one) id 0", "strict-mode on", "strict-mode off"],
}
BACK_ONLY = ["set-retries 2", "set-retries int(0)", "set-timeout connect 30", "set-timeout server 30", "set-timeout tunnel 200", "set-timeout queue 30"]


def around(rules, action):
    """The lines that an action needs before it."""
    before = []
    if action.startswith("sc-"):
        before.append({RC: CT, RS: RQ, AF: RQ}.get(rules, rules) + " track-sc0 str(k) table @b@")
    if action.startswith("unset-var"):
        before.append(f"{rules} set-var({action[10:-1]}) str(a)")
    if "(txn.list)" in action:
        before.append(f"{rules} set-var(txn.list) {'req' if rules == RQ else 'res'}.hdrs_bin")
    if " id 0" in action:
        before.append("declare capture response len 10")
    if "bandwidth" in action:
        before += ["filter bwlim-out down default-limit 1m default-period 1s", "filter bwlim-in up limit 1m key src table @b@.up"]
    return before


def placed(rules, action, first):
    """A rule in all its places; what is not the first of its action meets less."""
    line, before = f"{rules} {action}", around(rules, action)
    # What belongs to the frontend alone stands there, whatever it is for.
    declared = tuple(text for text in before if text.startswith(("declare", "tcp-request conn", "tcp-request sess")))
    near = tuple(text for text in before if text not in declared)
    kinds = MOST if not first else MORE if rules in (CN, SE) else WHOLE
    fixed = "bandwidth" in action or action.startswith("capture")
    if rules in FRONT and "timeout tunnel" not in action:
        spec(line, front=(*before, line), kinds=kinds)
    if rules in BACK and (first or rules == RC) and not (rules in (CT, RQ) and fixed) and "timeout client" not in action:
        spec("backend: " + line, front=declared, back=(*near, line), kinds=kinds if rules == RC else FEW)
    if not first or "timeout" in action:
        return
    if rules in FRONT:
        for condition in ("if { always_true }", "unless { always_true }", "if { method POST }")[:2 if rules in (CN, SE) else 3]:
            spec(f"{line} {condition}", front=(*before, f"{line} {condition}"), kinds=[("get", "plain"), ("post", "plain")])
        if not fixed:
            spec("defaults: " + line, inherit=("front", (*before, line)), kinds=FEW)
    if rules in BACK and not fixed:
        spec("defaults of backend: " + line, inherit=("back", (*before, line)), kinds=FEW)


def singles():
    for rules, actions in ACTIONS.items():
        met = set()
        for action in actions:
            # Alike to all that comes behind them: what only writes to a table, or marks packets.
            word = re.sub("^(sc-|track-|set-.*(mark|tos)|set-(src|dst)|set-priority).*", r"\1", re.match("[a-z0-9-]+", action).group())
            placed(rules, action.strip(), word not in met)
            met.add(word)
    for rules in (CT, RQ):
        for action in BACK_ONLY:
            if rules == RQ or "retries" in action:
                spec(f"backend: {rules} {action}", back=(f"{rules} {action}",))
    for action in BACK_ONLY[3:5]:
        spec(f"backend: {RS} {action}", back=(f"{RS} {action}",))
    spec("set-dst reaches the origin", back=(f"{RQ} set-dst str(127.0.0.1)", f"{RQ} set-dst-port int(@p@)"), server="0.0.0.0:0")
    spec("set-dst-port alone", back=(f"{RQ} set-dst-port int(@p@)",), server="0.0.0.0:0", kinds=FEW)


def pairs():
    """A final rule of the frontend, and rules on what is answered in its place; rules behind one another."""
    finals = ["deny", "deny status 404", "return status 200 content-type text/plain string hi", "redirect location /x", "auth", "tarpit", "reject", "silent-drop",
              "return status 503 default-errorfiles", "allow", "wait-for-body time 20", "normalize-uri percent-to-uppercase strict"]
    after = ["set-header x-after %[status]", "set-status 418", "del-header content-type", "set-header connection close", "set-var(txn.v) status", "capture status id 0",
             "set-header location /y if { status 302 }", "allow"]
    kinds = [(kind, "plain") for kind in ("get", "head", "expect", "two", "slow", "h2-post", "late")] + [("get", "refuse"), ("post", "silent"), ("get", "cut")]
    for final in finals:
        for rule in after:
            slot = ("declare capture response len 10",) if " id 0" in rule else ()
            spec(f"{final}, after-response {rule}", front=(*slot, f"{RQ} {final}", f"{AF} {rule}"), kinds=kinds)
        for rule in ("set-header x-res 1", "deny", "return status 200 content-type text/plain string res", "set-status 418", "silent-drop"):
            spec(f"{final}, response {rule}", front=(f"{RQ} {final}", f"{RS} {rule}"), back=(f"{RS} set-header x-back 1",), kinds=kinds)
        spec(f"response deny, {final} in the backend", front=(f"{RS} deny",), back=(f"{RQ} {final}",), kinds=kinds)
    for rule in ("deny", "return status 200 content-type text/plain string res", "redirect location /x", "silent-drop", "deny status 404 content-type text/plain string no"):
        for early in ("early-hint link x", "pause 10", "set-method HEAD", "wait-for-body time 500", "set-log-level silent"):
            spec(f"{early}, response {rule}", front=(f"{RQ} {early}",), back=(f"{RS} {rule}",), kinds=kinds)
        spec(f"response {rule}, after-response in both", front=(f"{AF} set-header x-front %[status]",), back=(f"{RS} {rule}", f"{AF} set-header x-back %[status]"), kinds=kinds)
        spec(f"tcp-response inspect, response {rule}", back=("tcp-response inspect-delay 20ms", f"{RC} accept if WAIT_END", f"{RS} {rule}"), kinds=kinds)
    for rule in ("accept", "reject", "silent-drop"):
        spec(f"inspect, content {rule}", front=("tcp-request inspect-delay 50ms", f"{CT} {rule} if WAIT_END"), kinds=kinds)
        spec(f"inspect payload, content {rule}", front=("tcp-request inspect-delay 50ms", f"{CT} {rule} if {{ req.len gt 1000 }}"), kinds=kinds)
    for option in ("http-buffer-request", "httpclose", "http-server-close", "http-no-delay", "abortonclose", "dontlognull", "dontlog-normal", "logasap", "log-separate-errors",
                   "forwardfor", "http-ignore-probes", "http-use-proxy-header", "splice-auto", "originalto", "forwarded", "accept-unsafe-violations-in-http-request"):
        front = () if option == "forwarded" else (f"option {option}",)
        back = (f"option {option}",) if option in ("forwarded", "abortonclose", "http-buffer-request", "httpclose", "http-server-close", "forwardfor") else ()
        spec(f"option {option}", front=front, back=back, kinds=MOST + kinds)
        spec(f"option {option}, deny", front=(*front, f"{RQ} deny if {{ method POST }}", f"{RS} deny if {{ status 500 }}"), back=back, kinds=MOST + kinds)
    for status in (400, 403, 408, 500, 502, 503):
        for words in (f"http-error status {status} content-type text/plain string mine", f"http-error status {status} errorfile @d@/e503", f"errorfile {status} @d@/e404",
                      f"errorfile {status} /dev/null", f"http-error status {status} content-type text/plain lf-string '%[method] %[status]' hdr x-e %[src]",
                      f"errorloc302 {status} http://h/e", f"errorloc303 {status} /e"):
            spec(words, front=(f"{RQ} deny if {{ method HEAD }}", f"{RQ} deny status 500 if {{ method OPTIONS }}", words), kinds=kinds + [("options", "plain")])
            spec("backend: " + words, back=(f"{RQ} deny if {{ method HEAD }}", words), kinds=[("get", "refuse"), ("head", "plain"), ("get", "silent"), ("h2-get", "refuse")])


singles()
pairs()
