"""Persistence and tables: cookies, sticking, what is counted where, and the commands that show it."""

TWO = {"s1": "cookie one", "s2": "cookie two"}
# How cookies are set, and what a client may bring.
COOKIES = {
    "plain": "cookie S", "insert": "cookie S insert", "insert indirect": "cookie S insert indirect", "insert nocache": "cookie S insert indirect nocache", "insert postonly": "cookie S insert postonly",
    "insert preserve": "cookie S insert preserve", "insert httponly secure": "cookie S insert httponly secure", "insert domain": "cookie S insert domain .a.com domain b.com", "insert attr": "cookie S insert attr SameSite=None attr X",
    "insert maxidle": "cookie S insert maxidle 1h", "insert maxlife": "cookie S insert maxlife 1h", "insert both": "cookie S insert indirect maxidle 1h maxlife 2h",
    "rewrite": "cookie S rewrite", "rewrite nocache": "cookie S rewrite nocache", "prefix": "cookie S prefix", "prefix nocache": "cookie S prefix nocache",
    "dynamic": "cookie S insert dynamic", "dynamic indirect": "cookie S insert indirect dynamic",
}
BROUGHT = ["", "cookie:S=one", "cookie:S=two", "cookie:S=none", "cookie:S=two~abc", "cookie:S=two|AAAA|AAAA", "cookie:S=", "cookie:A=1;_S=two;_B=2", "cookie:S=one;_S=two", "cookie:S=\"two\""]
SET = ["ok", "ok set-cookie:S=app", "ok set-cookie:S=app;_path=/ set-cookie:T=1", "ok set-cookie:s=app", "ok set-cookie:S=one~x"]
# What keeps a client at a server that is not to be used, or away from it.
FORCES = {
    "nothing": [], "option persist": ["option persist"], "force-persist": ["force-persist if { path_beg /f }"], "ignore-persist": ["ignore-persist if { path_beg /f }"], "redispatch": ["option redispatch"],
    "persist redispatch": ["option persist", "option redispatch"], "no redispatch": ["no option redispatch", "option persist"],
}
AWAY = {"down": ["! set server @b@/s1 health down"], "drain": ["! set server @b@/s1 state drain"], "maint": ["! set server @b@/s1 state maint"], "weight 0": ["! set weight @b@/s1 0"], "refuses": ["s1 is refuse"], "up": []}
STICKS = {
    "on": ["stick on hdr(x-k)"], "match": ["stick match hdr(x-k)"], "store-request": ["stick store-request hdr(x-k)"], "match store": ["stick match hdr(x-k)", "stick store-request hdr(x-k)"],
    "store-response": ["stick store-response res.hdr(x-k)", "stick match hdr(x-k)"], "on if": ["stick on hdr(x-k) if { path /a }"], "two": ["stick on hdr(x-k)", "stick on url_param(k)"],
    "on path": ["stick on path,lower"], "store-response cookie": ["stick store-response res.cook(S)", "stick match req.cook(S)"],
}
TYPES = {"string": "type string len 4", "long string": "type string len 32", "integer": "type integer", "ip": "type ip", "ipv6": "type ipv6", "binary": "type binary len 4"}
KEYS = {"string": "hdr(x-k)", "long string": "path", "integer": "url_param(k)", "ip": "src", "ipv6": "src", "binary": "hdr(x-k)"}
ASKED = ["a GET /a?k=1 x-k:one", "b GET /b?k=2 x-k:longer", "a GET /a?k=1 x-k:one", "b GET /a?k=2 x-k:longer", "c GET /a?k=3 x-k:long"]
COUNTERS = ("server_id,server_key,gpc0,gpc1,gpc(2),gpt0,gpt(2),conn_cnt,conn_cur,conn_rate(1h),sess_cnt,sess_rate(1h),http_req_cnt,http_req_rate(1h),http_err_cnt,http_err_rate(1h),http_fail_cnt,http_fail_rate(1h),"
            "bytes_in_cnt,bytes_out_cnt,gpc_rate(2,1h),glitch_cnt").replace("gpc0,gpc1,", "").replace("gpt0,", "")
OLD = "gpc0,gpc1,gpt0,gpc0_rate(1h),gpc1_rate(1h)"
TRACKS = {
    "connection": ("f", "tcp-request connection track-sc0 src table @b@"), "session": ("f", "tcp-request session track-sc0 src table @b@"), "content": ("f", "tcp-request content track-sc0 src table @b@"),
    "request": ("f", "http-request track-sc0 src table @b@"), "backend content": ("b", "tcp-request content track-sc0 src"), "backend request": ("b", "http-request track-sc0 src"),
    "by path": ("f", "http-request track-sc0 path table @b@"), "twice": ("f", "http-request track-sc0 src table @b@\nhttp-request track-sc0 path table @b@"), "two": ("f", "tcp-request session track-sc0 src table @b@\nhttp-request track-sc1 path table @b@"),
    "same key twice": ("f", "tcp-request session track-sc0 src table @b@\nhttp-request track-sc1 src table @b@"), "if": ("f", "http-request track-sc0 src table @b@ if { path /a }"),
    "in both": ("fb", "http-request track-sc0 path table @b@"),
}
REFUSALS = {
    "nothing": ("f", []), "connection reject": ("f", ["tcp-request connection reject if { sc0_conn_cnt gt 1 }"]), "session reject": ("f", ["tcp-request session reject if { sc0_conn_cnt gt 1 }"]),
    "content reject": ("f", ["tcp-request content reject if { path /b }"]), "deny": ("f", ["http-request deny if { path /b }"]), "deny 429": ("f", ["http-request deny deny_status 429 if { sc_http_req_cnt(0) gt 1 }"]),
    "tarpit": ("f", ["timeout tarpit 200ms", "http-request tarpit if { path /b }"]), "return": ("f", ["http-request return status 200 if { path /b }"]), "redirect": ("f", ["http-request redirect location /x if { path /b }"]),
    "backend deny": ("b", ["http-request deny if { path /b }"]), "backend reject": ("b", ["tcp-request content reject if { path /b }"]), "response deny": ("b", ["http-response deny if { res.hdr(x-by) -m sub .2 }"]),
    "response reject": ("b", ["tcp-response content reject"]), "response close": ("b", ["tcp-response content close"]), "http-request reject": ("f", ["http-request reject if { path /b }"]),
}
GPC = ["http-request sc-inc-gpc(1,0) if { path /b }", "http-request sc-set-gpt(0,0) int(7)", "http-request sc-add-gpc(0,0) 3", "http-response sc-inc-gpc(0,0) if { status 404 }"]
FETCHES = ("sc_bytes_in_rate(0) sc_bytes_out_rate(0) sc_clr_gpc(0,0) sc_conn_cnt(0) sc_conn_cur(0) sc_conn_rate(0) sc_get_gpc(0,0) sc_get_gpt(0,0) sc_gpc_rate(0,0) sc_http_err_cnt(0) sc_http_err_rate(0) "
           "sc_http_fail_cnt(0) sc_http_fail_rate(0) sc_http_req_cnt(0) sc_http_req_rate(0) sc_inc_gpc(0,0) sc_kbytes_in(0) sc_kbytes_out(0) sc_sess_cnt(0) sc_sess_rate(0) sc_tracked(0) sc_trackers(0) sc_glitch_cnt(0) sc_key(0) "
           "src_conn_cnt(@b@) src_conn_cur(@b@) src_get_gpc(0,@b@) src_inc_gpc(0,@b@) src_clr_gpc(1,@b@) src_http_req_cnt(@b@) src_updt_conn_cnt(@b@) src_sess_cnt(@b@) table_avl(@b@) table_cnt(@b@)").split()
CONVERTERS = ("in_table table_bytes_in_rate table_bytes_out_rate table_conn_cnt table_conn_cur table_conn_rate table_gpc(0,@b@) table_gpc_rate(0,@b@) table_gpt(0,@b@) table_http_err_cnt table_http_err_rate table_http_fail_cnt "
              "table_http_req_cnt table_http_req_rate table_kbytes_in table_kbytes_out table_server_id table_sess_cnt table_sess_rate table_trackers table_expire table_idle table_glitch_cnt").split()
COMMANDS = [
    "! show table @b@", "! show table @b@ key one", "! show table @b@ key none", "! show table @b@ data.conn_cnt gt 0", "! show table @b@ data.http_req_cnt eq 2", "! show table @b@ data.gpc0 ge 1 data.gpt0 lt 9", "! show table @b@ data.server_id ne 1",
    "! set table @b@ key one data.gpc0 5", "! set table @b@ key new data.gpc0 5 data.gpt0 6", "! set table @b@ key new data.conn_cnt 3", "! set table @b@ key one data.http_req_rate 7", "! set table @b@ key one data.server_id 2",
    "! set table @b@ key one data.nothing 2", "! set table @b@ key one", "! clear table @b@ key one", "! clear table @b@ key nobody", "! clear table @b@ data.gpc0 gt 4", "! clear table @b@ data.http_req_cnt le 1", "! clear table @b@",
    "! show table @b@ data.nothing gt 1", "! show table @b@ data.gpc0 xx 1", "! show table @b@ ptr 0x1234", "! clear table @b@ ptr 0x1", "! show table nobody", "! set table @b@ key averyveryverylongkeyindeed data.gpc0 1", "! set table @b@ key one data.gpc0 x",
    "! set table @b@ data.gpc0 4", "! show table @b@ data.gpc0", "! show table @b@ key",
]


def make(add):
    cookies(add)
    forces(add)
    sticks(add)
    tracks(add)
    commands(add)
    tcp(add)


def cookies(add):
    for name, line in COOKIES.items():
        for at, brought in enumerate(BROUGHT):
            dynamic = ["dynamic-cookie-key secret"] if "dynamic" in name else []
            servers = {one: ("" if dynamic else words) for one, words in TWO.items()}
            if dynamic:
                # The value is made of addresses, which are other ones in each run.
                continue
            steps = [f"a GET /1 {brought}".strip(), f"b GET /2 {brought}".strip(), f"b POST /3 3 {brought}".strip()]
            back = ["balance roundrobin", line] + dynamic
            add(f"cookie {name}; brought {brought or 'nothing'}", steps, servers, back=back)
        if "dynamic" not in name:
            for manner in SET:
                back = ["balance roundrobin", line]
                add(f"cookie {name}; server {manner}", ["a GET /1", "a GET /2 cookie:S=two", "a GET /3 cookie:S=two~x", "a GET /4 cookie:S=none"], {one: {"words": words, "manners": [manner]} for one, words in TWO.items()}, back=back)
    for kind in ("", "cookie S insert dynamic", "cookie S insert"):
        add(f"dynamic commands; {kind or 'none'}", ["! set dynamic-cookie-key backend @b@ other", "! enable dynamic-cookie backend @b@", "! disable dynamic-cookie backend @b@", "a GET /1"], TWO, back=[kind] if kind else [])


def forces(add):
    for away, steps in AWAY.items():
        for force, lines in FORCES.items():
            for kind in ("cookie S", "cookie S insert indirect"):
                add(f"persist {force}; server {away}; {kind}", ["a GET /1 cookie:S=one"] + steps + ["a GET /2 cookie:S=one", "a GET /f cookie:S=one", "b GET /f2 cookie:S=one", "b GET /3"], TWO, back=["balance roundrobin", kind] + lines)
            add(f"persist {force}; server {away}; stick", ["a GET /1 x-k:k"] + steps + ["a GET /2 x-k:k", "a GET /f x-k:k", "b GET /f2 x-k:k"], TWO, back=["balance roundrobin", "stick-table type string len 20 size 10 expire 1h", "stick on hdr(x-k)"] + lines)
            add(f"persist {force}; server {away}; use-server", ["a GET /1"] + steps + ["a GET /2", "a GET /f", "b GET /f2"], TWO, back=["balance roundrobin", "use-server s1 if TRUE"] + lines)
        add(f"force-be-switch; backend {away}", ["! unpublish backend @b@", "a GET /1", "a GET /f"] + steps + ["a GET /2", "! publish backend @b@", "a GET /3"], TWO, front=["force-be-switch if { path_beg /f }", "use_backend @b@"])
    for words in ("backup", "disabled", "weight 0"):
        for brought in ("cookie:S=one", "cookie:S=two", ""):
            add(f"persist server {words}; brought {brought or 'nothing'}", [f"a GET /1 {brought}".strip(), f"a GET /2 {brought}".strip(), "! set server @b@/s2 state maint", f"a GET /3 {brought}".strip()],
                {"s1": f"cookie one {words}", "s2": "cookie two"}, back=["balance roundrobin", "cookie S insert indirect"])


def sticks(add):
    for name, lines in STICKS.items():
        for words in ("", " nopurge", " srvkey addr", " expire 300ms"):
            table = f"stick-table type string len 32 size 2{words}" + (" expire 1h" if "expire" not in words else "")
            if "srvkey" in words:
                table = table.replace(" srvkey addr", "") + " srvkey name"
            manners = {one: {"manners": [f"ok x-k:{key}", "ok x-k:longer"]} for one, key in (("s1", "one"), ("s2", "two"), ("s3", "six"))}
            add(f"stick {name};{words}", ASKED + (["wait 0.5", "! show table @b@"] if "expire" in words else []) + ASKED[:2] + ["! show table @b@"], manners, back=["balance roundrobin", table] + lines)
        add(f"stick {name}; server goes", ASKED[:3] + ["! set server @b@/s1 state maint"] + ASKED[:4] + ["! set server @b@/s1 state ready"] + ASKED[:3], None, back=["balance roundrobin", "stick-table type string len 32 size 20 expire 1h"] + lines)
        add(f"stick {name}; server deleted", ASKED[:3] + ["! set server @b@/s1 state maint", "wait 0.1", "! del server @b@/s1", "! show table @b@"] + ASKED[:4], None, back=["balance roundrobin", "stick-table type string len 32 size 20 expire 1h"] + lines)
        add(f"stick {name}; aborted", ["a> GET /a?k=1 x-k:one", "a close", "wait 0.35", "b GET /a?k=1 x-k:one", "c GET /b?k=1 x-k:two"], {one: {"manners": ["slow", "ok"]} for one in ("s1", "s2")}, back=["balance roundrobin", "stick-table type string len 32 size 20 expire 1h"] + lines)
        for failure in ("refuse", "reset", "503", "half", "empty"):
            add(f"stick {name}; first {failure}", ASKED[:4] + ["! show table @b@"], {"s1": {"manners": [failure]}, "s2": {}}, back=["balance roundrobin", "option redispatch 1", "stick-table type string len 32 size 20 expire 1h"] + lines)
    for kind, words in TYPES.items():
        for size in (1, 2, 100):
            for purge in ("", " nopurge"):
                add(f"stick type {kind}; size {size}{purge}", [step + (f" from {at % 3 + 1}" if at in (0, 1, 4) else "") for at, step in enumerate(ASKED)] + ["! show table @b@"], None,
                    back=["balance roundrobin", f"stick-table {words} size {size} expire 1h{purge}", f"stick on {KEYS[kind]}"])
        add(f"stick type {kind}; with counters", ASKED + ["! show table @b@"], None, back=["balance roundrobin", f"stick-table {words} size 10 expire 1h store {COUNTERS}", f"stick on {KEYS[kind]}"], front=[f"http-request track-sc0 {KEYS[kind]} table @b@"])


def tracks(add):
    asked = ["a GET /a", "a GET /b", "! show table @b@", "b GET /a 1.0 from 2", "b close", "a> GET /slow", "! show table @b@", "a<", "c POST /b 5", "c GET /c"]
    for track, (where, line) in TRACKS.items():
        lines = line.split("\n")
        for refusal, (side, rules) in REFUSALS.items():
            if "sc0_conn" in str(rules) and track not in ("connection", "session"):
                continue
            front = (lines if "f" in where else []) + (rules if side == "f" else []) + [GPC[0]]
            back = [f"stick-table type string len 32 size 20 expire 1h store {COUNTERS}"] + (lines if "b" in where else []) + (rules if side == "b" else []) + GPC[1:]
            add(f"track {track}; {refusal}", asked, {"s1": {"manners": ["ok", "404", "slow", "500", "ok"]}}, front=["option http-keep-alive"] + front, back=back)
        for manner in ("404", "500", "503", "501", "502", "400", "reset", "empty", "half", "refuse", "silent", "broken", "401"):
            add(f"track {track}; server {manner}", ["a GET /a", "a POST /b 4", "! show table @b@"], {"s1": {"manners": [manner if manner != "broken" else "raw:hello\\r\\n\\r\\n"]}}, front=lines if "f" in where else [],
                back=[f"stick-table type string len 32 size 20 expire 1h store {COUNTERS}", "timeout server 300ms", "retries 0"] + (lines if "b" in where else []))
        for kind, steps in {"closes in the request": ["a~ GET\\x20/a\\x20HTTP/1.1\\r\\n", "a close"], "is silent": ["a~ ", "a close"], "sends dirt": ["a~ \\x01\\x02\\r\\n\\r\\n", "a end"], "closes in the body": ["a> POST /a 3/10", "a close"], "leaves": ["a> GET /a", "a close"],
                            "two requests at once": ["a~ GET\\x20/a\\x20HTTP/1.1\\r\\nhost:a\\r\\n\\r\\nGET\\x20/b\\x20HTTP/1.1\\r\\nhost:a\\r\\n\\r\\n", "a end"], "uses 9.9": ["a~ GET\\x20/a\\x20HTTP/9.9\\r\\n\\r\\n", "a end"],
                            "shuts": ["a> GET /a", "a shut", "a<"], "waits too long": ["a~ GET\\x20/a\\x20HTTP/1.1\\r\\n", "wait 0.4", "a end"]}.items():
            add(f"track {track}; client {kind}", steps + ["wait 0.35", "! show table @b@"], {"s1": {"manners": ["slow", "ok"]}}, front=["timeout http-request 300ms"] + (lines if "f" in where else []),
                back=[f"stick-table type string len 32 size 20 expire 1h store {COUNTERS}"] + (lines if "b" in where else []))
    for fetch in FETCHES:
        add(f"fetch {fetch}", ["a GET /a", "a GET /b", "b GET /c from 2", "b GET /d", "! show table @b@"], {"s1": {"manners": ["ok", "404", "500", "ok"]}}, front=["tcp-request connection track-sc0 src table @b@", f"http-request set-var(txn.v) {fetch}", f"http-response set-header x-v %[{fetch}]"],
            back=[f"stick-table type ip size 20 expire 1h store {COUNTERS}"])
    for converter in CONVERTERS:
        call = converter if "(" in converter else f"{converter}(@b@)"
        masked = ",div(10000)" if "idle" in converter or "expire" in converter else ""
        add(f"converter {converter}", ["a GET /a", "a GET /b", "b GET /c from 2", "b GET /d"], {"s1": {"manners": ["ok", "404", "500", "ok"]}, "s2": {}}, front=["tcp-request connection track-sc0 src table @b@", f"http-request set-var(txn.v) src,{call}{masked}", f"http-response set-header x-v %[src,{call}{masked}]"],
            back=[f"stick-table type ip size 20 expire 1h store {COUNTERS}", "stick on src"])
    for size in (1, 2):
        for purge in ("", " nopurge"):
            add(f"track, table of {size}{purge}", ["a GET /a", "a GET /b", "b> GET /c", "a GET /d", "! show table @b@", "b<", "a GET /e", "! show table @b@"], {"s1": {"manners": ["ok", "ok", "slow", "ok"]}}, front=["http-request track-sc0 path table @b@"],
                back=[f"stick-table type string len 20 size {size} expire 1h{purge} store http_req_cnt,conn_cur"])
    add("track, table expires", ["a GET /a", "a GET /b", "wait 0.5", "! show table @b@", "a> GET /c", "wait 0.2", "! show table @b@", "a<", "! show table @b@"], {"s1": {"manners": ["ok", "ok", "slow"]}}, front=["http-request track-sc0 path table @b@"], back=["stick-table type string len 20 size 9 expire 300ms store http_req_cnt,conn_cur"])


def commands(add):
    for at, words in enumerate(COMMANDS):
        for kind, store in (("plain", "server_id,conn_cnt,http_req_cnt,http_req_rate(1h)," + OLD), ("arrays", COUNTERS), ("nothing", "conn_cur")):
            add(f"table {kind}; {words[2:]}", ["a GET /a x-k:one", "a GET /b x-k:one", "b GET /c x-k:two", words, "! show table @b@", "a GET /d x-k:one", "! show table @b@"], TWO, front=["http-request track-sc0 hdr(x-k) table @b@", "http-request sc-inc-gpc0(0)" if kind == "plain" else "http-request set-var(txn.v) int(1)"],
                back=["balance roundrobin", f"stick-table type string len 12 size 20 expire 1h store {store}"])
            if "key" in words and "one" in words:
                add(f"table ip {kind}; {words[2:]}", ["a GET /a from 3", words.replace("one", "127.0.3.1"), "! show table @b@", words.replace("one", "::1"), words, "a GET /d", "! show table @b@"], TWO, front=["http-request track-sc0 src table @b@"], back=["balance roundrobin", f"stick-table type ip size 20 expire 1h store {store}"])
    for words in ("set table @b@ key one data.gpc[0] 4", "set table @b@ key one data.gpc[1] 4", "set table @b@ key one data.gpc[2] 4", "set table @b@ key one data.gpt[1] 9", "show table @b@ data.gpc[1] gt 0", "clear table @b@ data.gpt[0] eq 0", "set table @b@ key one data.gpc_rate[0] 3", "set table @b@ key one data.gpc 3"):
        add(f"table array; {words}", ["a GET /a x-k:one", "b GET /c x-k:two", "! " + words, "! show table @b@", "a GET /d x-k:one"], TWO, front=["http-request track-sc0 hdr(x-k) table @b@"], back=[f"stick-table type string len 12 size 20 expire 1h store {COUNTERS}"])


def tcp(add):
    for name, lines in {"src": ["stick on src"], "payload": ["tcp-request inspect-delay 300ms", "tcp-request content accept if { req.len gt 3 }", "stick on req.payload(0,4)"], "response payload": ["tcp-response inspect-delay 300ms", "stick store-response res.payload(0,4)", "tcp-request inspect-delay 100ms", "tcp-request content accept if { req.len gt 3 }", "stick match req.payload(0,4)"],
                        "rdp-cookie": ["persist rdp-cookie", "tcp-request inspect-delay 200ms", "tcp-request content accept if RDP_COOKIE"], "balance rdp-cookie": ["balance rdp-cookie(mstshash)", "tcp-request inspect-delay 200ms", "tcp-request content accept if RDP_COOKIE"], "nothing": []}.items():
        for end in ("close", "reset", "shut"):
            rdp = "\\x03\\0\\0\\x29\\x24\\xe0\\0\\0\\0\\0\\0Cookie:\\x20mstshash=abc\\r\\n\\x01\\0\\x08\\0\\0\\0\\0\\0"
            text = rdp if "rdp" in name else "hello"
            kind = "string len 8" if "payload" in name else "ip"
            add(f"tcp {name}; client {end}", [f"a~ {text} from 1", f"b~ {text} from 2", f"a {end}", f"a~ {text} from 1", f"b {end}", "wait 0.1", f"c~ {text} from 2", "! show table @b@"], {"s1": {"manners": ["echo"]}, "s2": {"manners": ["echo"]}}, mode="tcp",
                back=([] if "balance" in name else ["balance roundrobin"]) + lines + [f"stick-table type {kind} size 10 expire 1h store {COUNTERS}"] + ([] if "payload" in name or "rdp" in name else ["tcp-request content track-sc0 src"]))
    for end in ("empty", "reset", "silent", "raw:bye"):
        add(f"tcp track; server {end}", ["a~ hello", "a end", "b~ hello from 3", "b close", "! show table @b@"], {"s1": {"manners": [end]}, "s2": {"manners": ["echo"]}}, mode="tcp", front=["tcp-request connection track-sc0 src table @b@"], back=["balance roundrobin", f"stick-table type ip size 10 expire 1h store {COUNTERS}"])
