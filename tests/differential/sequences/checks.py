"""Health checks: what servers answer, when, and what becomes of their state, of those who use them, and of the log.

The checks go to `c1`, a server of its own, so that traffic and checks do not meet. Nothing is looked at within 0.1 s of a check's answer.
"""

# Every 400 ms, from the beginning on: the first look is after the first check.
FAST = "check inter 400ms fastinter 400ms downinter 400ms rise 2 fall 2"
KINDS = {
    "connect": ([], {"right": "silent", "closes": "empty", "reset": "reset", "refused": "refuse"}, ("tcp", "quiet")),
    "httpchk": (["option httpchk"], {"right": "ok", "500": "500", "404": "404", "302": "302", "closes": "empty", "reset": "reset", "silent": "silent", "broken": "raw:hello\\r\\n\\r\\n", "half": "raw:HTTP/1.1 2", "slow": "ok slow", "refused": "refuse", "1.0": "1.0"}, ("quiet",)),
    "httpchk expect": (["option httpchk GET /check", "http-check expect status 404"], {"right": "404", "wrong": "200", "closes": "empty"}, ("quiet",)),
    "httpchk string": (["option httpchk", "http-check expect string hello"], {"right": "200 close", "wrong": "raw:HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nno"}, ("quiet",)),
    "httpchk rstring": (["option httpchk", "http-check expect ! rstring h.l"], {"wrong": "200 close", "right": "raw:HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nno"}, ("quiet",)),
    "httpchk hdr": (["option httpchk", "http-check expect hdr name x-a value 1"], {"right": "ok x-a:1", "wrong": "ok x-a:2", "none": "ok"}, ("quiet",)),
    "httpchk words": (["option httpchk", "http-check expect status 200 error-status L7RSP on-error \"was %[res.hdr(x-by)]\" on-success fine"], {"right": "ok", "wrong": "500"}, ("quiet",)),
    "disable-on-404": (["option httpchk", "http-check disable-on-404"], {"right": "ok", "404": "404", "500": "500"}, ("quiet",)),
    "send-state": (["option httpchk", "http-check send-state"], {"right": "ok"}, ()),
    "tcp-check": (["option tcp-check", "tcp-check send PING\\r\\n", "tcp-check expect string PONG"], {"right": "raw:+PONG\\r\\n", "wrong": "raw:-NO\\r\\n", "closes": "empty", "silent": "silent", "reset": "reset", "refused": "refuse"}, ("tcp", "quiet")),
    "tcp-check connect": (["option tcp-check", "tcp-check connect comment first", "tcp-check expect string hi comment second"], {"right": "greet:hi\\r\\n", "wrong": "greet:no\\r\\n"}, ("tcp", "quiet")),
    "tcp-check rules": (["option tcp-check", "tcp-check send-lf %[be_name]\\r\\n", "tcp-check expect rstring ^b"], {"right": "echo", "closes": "empty"}, ("tcp", "quiet")),
    "redis": (["option redis-check"], {"right": "raw:+PONG\\r\\n", "wrong": "raw:-ERR\\r\\n", "closes": "empty"}, ("tcp", "quiet")),
    "smtp": (["option smtpchk HELO a"], {"wrong": "greet:500 no\\r\\n", "half": "greet:220 hi\\r\\n", "silent": "silent", "broken": "greet:hi\\r\\n"}, ("tcp", "quiet")),
    "mysql": (["option mysql-check"], {"right": "greet:\\x0a\\0\\0\\0\\x0a5.5.0\\0abcd", "wrong": "greet:\\x0a\\0\\0\\0\\xff\\x15\\x04denied!", "silent": "silent", "closes": "empty", "short": "greet:\\x01\\0"}, ("tcp", "quiet")),
    "pgsql": (["option pgsql-check user a"], {"right": "raw:R\\0\\0\\0\\x08\\0\\0\\0\\0", "wrong": "raw:E\\0\\0\\0\\x08no", "closes": "empty", "odd": "raw:X\\0\\0\\0\\x08\\0\\0\\0\\0"}, ("tcp", "quiet")),
    "ldap": (["option ldap-check"], {"right": "raw:0\\x0c\\x02\\x01\\x01a\\x07\\x0a\\x01\\0\\x04\\0\\x04\\0", "wrong": "raw:0\\x0c\\x02\\x01\\x01a\\x07\\x0a\\x01\\x05\\x04\\0\\x04\\0", "odd": "raw:hello hello hello", "closes": "empty"}, ("tcp", "quiet")),
    "ssl-hello": (["option ssl-hello-chk"], {"right": "raw:\\x16\\x03\\0\\0\\x04\\x02\\0\\0\\0", "wrong": "raw:\\x15\\x03\\0\\0\\x02\\x02\\x28", "closes": "empty"}, ("tcp", "quiet")),
}
LOOK = "! look"
STATE = "! show servers state @b@"
# What an agent says, after the server was asked.
AGENT = ["up", "down", "ready", "drain", "maint", "50%", "maxconn:7", "up 50% ready", "stopped#why", "fail", "down#all\\x20broken", "nonsense", "", "200%", "up,maxconn:3", "ready up"]
ON_ERROR = ["fastinter", "fail-check", "sudden-death", "mark-down"]


def make(add_any):
    def add(*words, **more):
        add_any(*words, **more, alone=True)
    verdicts(add)
    changes(add)
    agents(add)
    commands(add)
    observers(add)


def checked(words="", manner="ok", options=("quiet",), kind=FAST):
    return {"s1": {"words": f"{kind} port @c1:port@ {words}", "options": ()}, "s2": {"words": "", "options": ()}, "c1": {"words": None, "manners": [manner], "options": options}}


def verdicts(add):
    for kind, (lines, manners, options) in KINDS.items():
        for what, manner in manners.items():
            for log in ("", "option log-health-checks"):
                # Two checks, and the third is on the way.
                add(f"check {kind}; {what}{'; ' + log if log else ''}", ["wait 1.0", LOOK, "a GET /", "a GET /"], checked("", manner, options), back=["balance roundrobin", "timeout check 250ms"] + lines + ([log] if log else []))
    for how, words in {"init-state down": "init-state down", "init-state up": "init-state up", "init-state fully-up": "init-state fully-up", "init-state fully-down": "init-state fully-down", "rise 1 fall 1": "rise 1 fall 1", "rise 3": "rise 3", "fall 3": "fall 3"}.items():
        for what, manner in {"right": "ok", "500": "500"}.items():
            add(f"check httpchk; {what}; {how}", ["a GET /", "b GET /", "wait 0.6", LOOK, "a GET /", "b GET /", "wait 0.45", LOOK], checked(words, manner), back=["option httpchk", "option log-health-checks"])


    # Each check another answer than the one before.
    for how, answers in {"flaps": "500 / ok / 500 / ok", "rises": "500 / ok / ok", "rises late": "500 / ok / 500 / ok / ok", "falls": "ok / 500 / ok / 500 / 500", "404 and back": "ok / 404 / ok", "404 when down": "500 / 404 / 404 / ok / ok", "404, 500": "404 / 500 / 404 / ok / ok"}.items():
        for limits in ("rise 2 fall 2", "rise 1 fall 3", "rise 3 fall 1"):
            for state in ("", "init-state down", "init-state fully-up"):
                servers = checked(state, "ok")
                servers["s1"]["words"] = servers["s1"]["words"].replace("rise 2 fall 2", limits)
                servers["c1"]["manners"] = answers.split(" / ")
                add(f"check {how}; {limits}; {state or 'plain'}", ["wait 0.2", LOOK] + ["wait 0.4", LOOK] * 4 + ["a GET /1", "a GET /2"], servers, back=["balance roundrobin", "option httpchk", "http-check disable-on-404", "option log-health-checks"])


def changes(add):
    """A server that is well, then is not, then is."""
    sick = ["wait 0.6", "c1 is 500", "wait 1.0", LOOK]
    well = ["c1 is ok", "wait 1.0", LOOK]
    for name, words in {"plain": "", "shutdown-sessions": "on-marked-down shutdown-sessions", "backup": "backup", "weight": "weight 20", "slowstart": "slowstart 20s weight 20", "cookie": "cookie one", "tracked": ""}.items():
        servers = checked(words)
        if name == "tracked":
            servers["s2"]["words"] = "track @b@/s1"
        add(f"down and up; {name}", ["a GET /1", "a GET /2"] + sick + ["a GET /3", "a GET /4"] + well + ["a GET /5", "a GET /6"], servers, back=["option httpchk", "balance roundrobin"])
        add(f"down while served; {name}", ["a GET /1", "wait 0.25", "c1 is 500", "wait 0.3", "a> GET /late", "b> GET /late", "wait 0.8", "a<", "b<", LOOK], {**servers, "s1": {**servers["s1"], "manners": ["ok", "late"]}, "s2": {**servers["s2"], "manners": ["late"]}}, back=["option httpchk", "balance roundrobin"])
    for options in ([], ["option redispatch"], ["option persist"], ["option redispatch", "option persist"]):
        for limit in ("maxconn 1", ""):
            servers = checked(f"cookie one {limit}")
            servers["s1"]["manners"] = ["late"]
            add(f"down while waited for; {limit or 'no limit'}; {' '.join(options) or 'plain'}", ["wait 0.2", "c1 is 500", "wait 0.35", "a> GET /1 cookie:S=one", "b> GET /2 cookie:S=one", "wait 0.8", "a<", "b<", "a GET /3 cookie:S=one"], servers, back=["option httpchk", "balance roundrobin", "cookie S"] + options)
            alone = checked(limit)
            alone["s1"]["manners"] = ["late"]
            del alone["s2"]
            add(f"the last one goes down; {limit or 'no limit'}; {' '.join(options) or 'plain'}", ["wait 0.2", "c1 is 500", "wait 0.35", "a> GET /1", "b> GET /2", "wait 0.8", "a<", "b<", "a GET /3"], alone, back=["option httpchk", "timeout queue 1200ms"] + options)
    add("on-marked-up", ["b> GET /1", "wait 0.3", "c1 is ok", "wait 0.8", "b<", "b GET /2", LOOK], {"s1": {"words": f"{FAST} port @c1:port@ init-state down on-marked-up shutdown-backup-sessions", "options": ()}, "s2": {"words": "backup", "manners": ["late"], "options": ()}, "c1": {"words": None, "manners": ["500"], "options": ("quiet",)}}, back=["option httpchk"])
    for what in ("down", "up", "drain", "maint"):
        servers = checked()
        servers["s2"]["words"] = "track @b@/s1"
        servers["s3"] = {"words": "track @b@/s2", "options": ()}
        command = {"down": "health down", "up": "health up", "drain": "state drain", "maint": "state maint"}[what]
        add(f"track; {what}", [f"! set server @b@/s1 {command}", STATE, "a GET /1", "a GET /2", "! set server @b@/s1 state ready", "! set server @b@/s1 health up", STATE, "! set server @b@/s2 state maint", "! set server @b@/s2 health down", STATE, "a GET /3"],
            {**servers, "s1": {"words": "check inter 1h port @c1:port@"}}, back=["balance roundrobin"])


def agents(add):
    for said in AGENT:
        for checks in ("", " " + FAST + " port @c1:port@"):
            text = said.replace("\\x20", " ") + "\\r\\n"
            add(f"agent '{said}'{' and check' if checks else ''}", ["wait 0.65", LOOK, STATE, "a GET /", "a GET /", "wait 0.01"], {"s1": {"words": f"agent-check agent-inter 400ms agent-port @a1:port@ weight 20{checks}", "options": ()}, "s2": {"words": "weight 20", "options": ()},
                "a1": {"words": None, "manners": ["greet:" + text], "options": ("tcp", "quiet")}, "c1": {"words": None, "manners": ["ok"], "options": ("quiet",)}}, back=["balance roundrobin"] + (["option httpchk"] if checks else []))
    for first, then in (("down", "up"), ("drain", "ready"), ("maint", "ready"), ("maint", "up"), ("50%", "100%"), ("stopped", "up"), ("drain", "up")):
        add(f"agent '{first}', then '{then}'", ["wait 0.65", LOOK, f"a1 is greet:{then}\\r\\n", "wait 0.4", LOOK, "a GET /", "a GET /"], {"s1": {"words": "agent-check agent-inter 400ms agent-port @a1:port@ weight 20", "options": ()}, "s2": {"words": "weight 20", "options": ()}, "a1": {"words": None, "manners": [f"greet:{first}\\r\\n"], "options": ("tcp", "quiet")}}, back=["balance roundrobin", "option log-health-checks"])
    add("agent-send", ["wait 0.65", LOOK], {"s1": {"words": "agent-check agent-inter 400ms agent-port @a1:port@ agent-send hello\\n", "options": ()}, "a1": {"words": None, "manners": ["raw:down\\r\\n"], "options": ("tcp",)}})


def commands(add):
    slow = "check inter 1h rise 2 fall 3 port @c1:port@"
    for words in ("health up", "health down", "health stopping", "health dead", "agent up", "agent down", "check-port 1", "check-addr 127.0.0.2", "agent-send x", "agent-addr 127.0.0.1 port 3", "state ready", "state drain", "state maint", "state off", "fqdn x", "weight 3", "weight 0", "weight 50%", "weight 200%", "weight 257", "ssl on", "addr 127.0.0.1"):
        for kind, check in (("check", slow), ("no check", ""), ("agent", "agent-check agent-inter 1h agent-port @c1:port@")):
            add(f"set server {words}; {kind}", ["wait 0.15", f"! set server @b@/s1 {words}", STATE, "a GET /", "a GET /", "! set server @b@/s1 state ready", "! set server @b@/s1 health up", STATE, LOOK, "a GET /", "a GET /"], {"s1": {"words": f"{check} weight 10", "options": ()}, "s2": {"words": "weight 10", "options": ()}, "c1": {"words": None, "manners": ["greet:\\r\\n" if kind == "agent" else "silent"], "options": ("tcp", "quiet")}}, back=["balance roundrobin"])
    for words in ("disable health @b@/s1", "enable health @b@/s1", "disable agent @b@/s1", "enable agent @b@/s1", "disable server @b@/s1", "enable server @b@/s1"):
        for state in ("", "disabled"):
            add(f"{words.replace('@b@/', '')}; {state or 'enabled'}", ["wait 0.2", f"! {words}", STATE, "wait 0.8", STATE, LOOK, f"! {words.replace('disable', 'xable').replace('enable', 'disable').replace('xable', 'enable')}", "wait 0.8", STATE, LOOK], checked(state, "500"), back=["option httpchk"])


def observers(add):
    for layer in ("layer4", "layer7"):
        for error in ON_ERROR:
            for manner in ("500", "404", "reset", "empty", "half", "refuse", "raw:hello\\r\\n\\r\\n", "silent", "503"):
                servers = {"s1": {"words": f"check inter 1h fastinter 1h downinter 1h port @c1:port@ observe {layer} error-limit 2 on-error {error} rise 2 fall 3", "manners": [manner], "options": ()}, "s2": {"words": "backup", "options": ()}, "c1": {"words": None, "manners": ["silent"], "options": ("tcp", "quiet")}}
                add(f"observe {layer} {error}; {manner.split(':')[0]}", ["wait 0.2", "a GET /1", "b GET /2", STATE, "c GET /3", "d GET /4", LOOK, STATE], servers, back=["retries 0", "timeout server 300ms", "option log-health-checks"])
