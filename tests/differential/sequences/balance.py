"""Which server a request gets: algorithms, weights, backup servers, queues, commands, retries."""

ALGORITHMS = {
    "roundrobin": ["balance roundrobin"], "static-rr": ["balance static-rr"], "leastconn": ["balance leastconn"], "first": ["balance first"],
    "source": ["balance source"], "source consistent": ["balance source", "hash-type consistent"],
    "uri": ["balance uri"], "uri consistent": ["balance uri", "hash-type consistent sdbm avalanche"], "uri len depth": ["balance uri len 4 depth 2"], "uri whole": ["balance uri whole", "hash-type map-based djb2"],
    "uri path-only": ["balance uri path-only", "hash-type consistent wt6"], "url_param": ["balance url_param k", "hash-type consistent crc32"], "url_param post": ["balance url_param k check_post"],
    "hdr": ["balance hdr(x-k)"], "hdr consistent": ["balance hdr(x-k)", "hash-type consistent djb2 avalanche"], "hdr use_domain_only": ["balance hdr(x-k) use_domain_only"],
    "hash": ["balance hash path", "hash-type consistent"], "hash map": ["balance hash path,lower", "hash-type map-based sdbm"], "hash none": ["balance hash url_param(k),add(1)", "hash-type consistent none"],
    "hash none map": ["balance hash url_param(k)", "hash-type map-based none"], "random": ["balance random(8)"], "sticky": ["balance sticky"],
    "factor": ["balance hash path", "hash-type consistent", "hash-balance-factor 110"],
    "affinity always": ["balance uri", "hash-type consistent", "hash-preserve-affinity always"], "affinity maxqueue": ["balance uri", "hash-type consistent", "hash-preserve-affinity maxqueue"],
}
# Whose choice is a matter of chance.
CHANCE = {"random", "leastconn"}
ASKED = ["a GET /a?k=1 x-k:one", "a GET /b?k=2 x-k:two", "a GET /a?k=1 x-k:one", "a GET /c/d/e?k=3 x-k:three.com", "a GET /f?q=3", "a POST /g 4", "a GET /c/d/g?k=7 x-k:seven"]
SERVERS = {
    "plain": {"s1": "", "s2": "", "s3": ""},
    "weights": {"s1": "weight 1", "s2": "weight 3", "s3": "weight 2"},
    "zero": {"s1": "weight 0", "s2": "", "s3": ""},
    "backup": {"s1": "disabled", "s2": "backup", "s3": "backup"},
    "disabled": {"s1": "", "s2": "disabled", "s3": ""},
    "ids": {"s1": "id 30", "s2": "id 7", "s3": "id 12"},
    "keys": {"s1": "hash-key addr", "s2": "hash-key addr-port", "s3": "guid g-@b@-3"},
}
# What is changed after the first requests.
CHANGES = {
    "disable": ["! disable server @b@/s2"], "drain": ["! set server @b@/s2 state drain"], "maint": ["! set server @b@/s2 state maint"],
    "maint and back": ["! set server @b@/s2 state maint", "a GET /m", "! set server @b@/s2 state ready"],
    "weight": ["! set server @b@/s2 weight 50%", "! set server @b@/s1 weight 0"], "set weight": ["! set weight @b@/s2 7", "! get weight @b@/s2"],
    "addr": ["! set server @b@/s2 addr @host@ port @s3:port@"], "drain all": ["! set server @b@/s1 state drain", "! set server @b@/s2 state drain", "! set server @b@/s3 state drain"],
    "maint all": ["! set server @b@/s1 state maint", "! set server @b@/s2 state maint", "! set server @b@/s3 state maint"],
    "maxconn": ["! set maxconn server @b@/s1 1", "! show servers conn @b@/s1"], "del": ["! set server @b@/s2 state maint", "! del server @b@/s2"],
    "unpublish": ["! unpublish backend @b@"], "add": ["! add server @b@/s4 @s3@ weight 2", "! enable server @b@/s4"],
}
LEFT_OUT = {"addr"}


def make(add):
    for name, lines in ALGORITHMS.items():
        if name in CHANCE:
            continue
        for kind, servers in SERVERS.items():
            if "keys" == kind and "consistent" not in str(lines):
                continue
            add(f"balance {name}; {kind}", ASKED, servers, back=lines)
        for change, steps in CHANGES.items():
            if change in LEFT_OUT and "consistent" in str(lines):
                continue
            add(f"balance {name}; then {change}", ASKED[:3] + steps + ASKED[:5], SERVERS["weights"], back=lines)
        add(f"balance {name}; two at once", ["a> GET /a?k=1 x-k:one", "b> GET /a?k=1 x-k:one", "c> GET /a?k=1 x-k:one", "a<", "b<", "c<", "a GET /b?k=2", "b GET /b?k=2"],
            {one: {"manners": ["slow"]} for one in ("s1", "s2", "s3")}, back=lines)
        add(f"balance {name}; full", ["a> GET /a?k=1 x-k:one", "b> GET /a?k=1 x-k:one", "c> GET /a?k=1 x-k:one", "d> GET /a?k=1 x-k:one", "a<", "b<", "c<", "d<"],
            {one: {"words": "maxconn 1", "manners": ["slow"]} for one in ("s1", "s2", "s3")}, back=lines)
        for which in ("refuse", "reset", "empty", "503"):
            add(f"balance {name}; one {which}", ASKED[:5], {"s1": "", "s2": {"manners": [which]}, "s3": ""}, back=lines + ["option redispatch 1", "retry-on all-retryable-errors"])
    for words in ("option allbackups", "no option allbackups"):
        for kind, servers in (("two backups", {"s1": "disabled", "s2": "backup weight 1", "s3": "backup weight 2"}), ("comes back", {"s1": "disabled", "s2": "backup", "s3": "backup"})):
            add(f"{words}; {kind}", ASKED[:4] + ["! enable server @b@/s1"] + ASKED[:2] + ["! disable server @b@/s1", "! disable server @b@/s2"] + ASKED[:2], servers, back=["balance roundrobin", words])
    queues(add)
    retries(add)


def queues(add):
    slow = {"s1": {"words": "maxconn 1", "manners": ["slow"]}}
    two = {"s1": {"words": "maxconn 1", "manners": ["slow"]}, "s2": {"words": "maxconn 1", "manners": ["slow"]}}
    three = ["a> GET /a", "b> GET /b", "c> GET /c", "a<", "b<", "c<"]
    add("queue of one", three, slow)
    add("queue of two servers", three + ["a GET /d", "b GET /e"], two)
    add("queue, timeout", three, {"s1": {"words": "maxconn 1", "manners": ["late"]}}, back=["timeout queue 400ms"])
    add("queue, client leaves", ["a> GET /a", "b> GET /b", "c> GET /c", "b close", "a<", "c<"], slow)
    add("queue, client leaves, no abortonclose", ["a> GET /a", "b> GET /b", "c> GET /c", "b close", "a<", "c<"], slow, back=["no option abortonclose"], front=["no option abortonclose"])
    add("queue, client resets", ["a> GET /a", "b> GET /b", "c> GET /c", "b reset", "a<", "c<"], slow)
    add("queue, the one served leaves", ["a> GET /a", "b> GET /b", "c> GET /c", "a close", "b<", "c<"], slow)
    for rule in ("set-priority-class int(-1)", "set-priority-offset int(-500)", "set-priority-class hdr(x-p)", "set-priority-offset hdr(x-p)"):
        condition = "" if "hdr" in rule else " if { path /c }"
        add(f"queue, {rule}", ["a> GET /a x-p:1", "b> GET /b x-p:3", "c> GET /c x-p:2", "a<", "c<", "b<"], slow, back=[f"http-request {rule}{condition}"])
    for most in (1, 2):
        add(f"queue, maxqueue {most}", ["a> GET /a", "b> GET /b", "c> GET /c", "d> GET /d", "a<", "b<", "c<", "d<"], {"s1": {"words": f"maxconn 1 maxqueue {most}", "manners": ["slow"]}}, back=["cookie S"])
        add(f"queue, maxqueue {most}, cookie", ["a> GET /a cookie:S=x", "b> GET /b cookie:S=x", "c> GET /c cookie:S=x", "d> GET /d cookie:S=x", "a<", "b<", "c<", "d<"],
            {"s1": {"words": f"maxconn 1 maxqueue {most} cookie x", "manners": ["slow"]}, "s2": {"words": "cookie y", "manners": ["ok"]}}, back=["cookie S"])
        add(f"queue, maxqueue {most}, cookie, redispatch", ["a> GET /a cookie:S=x", "b> GET /b cookie:S=x", "c> GET /c cookie:S=x", "d> GET /d cookie:S=x", "a<", "b<", "c<", "d<"],
            {"s1": {"words": f"maxconn 1 maxqueue {most} cookie x", "manners": ["slow"]}, "s2": {"words": "cookie y", "manners": ["ok"]}}, back=["cookie S", "option redispatch"])
    add("queue, minconn fullconn", three + ["a GET /d"], {"s1": {"words": "minconn 1 maxconn 3", "manners": ["slow"]}}, back=["fullconn 4"])
    add("queue, fullconn reached", ["a> GET /a", "b> GET /b", "c> GET /c", "d> GET /d", "a<", "b<", "c<", "d<"], {"s1": {"words": "minconn 1 maxconn 3", "manners": ["slow"]}}, back=["fullconn 2"])
    add("queue, then maxconn by command", ["a> GET /a", "b> GET /b", "c> GET /c", "! set maxconn server @b@/s1 3", "a<", "b<", "c<"], slow)
    add("queue, then disabled", ["a> GET /a", "b> GET /b", "c> GET /c", "! disable server @b@/s1", "a<", "b<", "c<"], two)
    add("queue, then drain", ["a> GET /a", "b> GET /b", "c> GET /c", "! set server @b@/s1 state drain", "a<", "b<", "c<"], two)
    add("queue, then the only one is disabled", ["a> GET /a", "b> GET /b", "! disable server @b@/s1", "wait 0.05", "a<", "b<"], slow)
    add("queue, then the only one is disabled and comes back", ["a> GET /a", "b> GET /b", "! disable server @b@/s1", "wait 0.05", "! enable server @b@/s1", "a<", "b<"], slow)
    for options in ([], ["option redispatch"], ["option persist"]):
        for what in ("health down", "state drain", "weight 0", "state maint"):
            add(f"queue, then {what} of the only one; {' '.join(options) or 'plain'}", ["a> GET /a", "b> GET /b", f"! set server @b@/s1 {what}", "wait 0.05", "a<", "b<"], slow, back=options)
            add(f"queue of cookie, then {what}; {' '.join(options) or 'plain'}", ["a> GET /a cookie:S=x", "b> GET /b cookie:S=x", f"! set server @b@/s1 {what}", "wait 0.05", "a<", "b<"],
                {"s1": {"words": "maxconn 1 cookie x", "manners": ["slow"]}, "s2": "cookie y"}, back=["cookie S"] + options)
    add("queue, shutdown sessions", ["a> GET /a", "b> GET /b", "! shutdown sessions server @b@/s1", "a<", "b<"], slow)
    add("queue, another server enabled", ["a> GET /a", "b> GET /b", "c> GET /c", "! enable server @b@/s2", "a<", "b<", "c<"], {"s1": {"words": "maxconn 1", "manners": ["slow"]}, "s2": "disabled"})
    add("queue, keep-alive", ["a GET /a", "b GET /b", "a GET /c", "b GET /d"], {"s1": {"words": "maxconn 1"}})
    add("queue, reuse never", ["a GET /a", "b GET /b", "a GET /c", "b GET /d"], {"s1": {"words": "maxconn 1"}}, back=["http-reuse never"])
    add("queue, server closes", ["a> GET /a", "b> GET /b", "a<", "b<", "a GET /c"], {"s1": {"words": "maxconn 1", "manners": ["slow close"]}})
    add("queue, tcp", ["a~ hello", "b~ there", "! show servers conn @b@", "a close", "b end", "b~ again"], {"s1": {"words": "maxconn 1", "manners": ["echo"]}}, mode="tcp")
    add("queue, tcp, timeout", ["a~ hello", "b~ there", "wait 0.4", "b end"], {"s1": {"words": "maxconn 1", "manners": ["echo"]}}, mode="tcp", back=["timeout queue 300ms"])
    add("backend full, frontend maxconn", ["a GET /a", "b> GET /b", "a close", "b<"], slow, front=["maxconn 1"])
    for many in (1, 2):
        add(f"slowstart, {many} of it", ["! disable server @b@/s1", "! enable server @b@/s1"] + ASKED[:4], {"s1": "slowstart 30s weight 20", "s2": "weight 20" + (" slowstart 30s" if many == 2 else "")}, back=["balance roundrobin"])


def retries(add):
    failures = {"refused": "refuse", "reset": "reset", "empty": "empty", "503": "503", "500": "500", "404": "404", "broken": "raw:hello\\r\\n\\r\\n", "half": "half", "silent": "silent", "429": "429 close"}
    options = {"nothing": [], "retries 0": ["retries 0"], "redispatch": ["option redispatch"], "redispatch 1": ["option redispatch 1"], "redispatch 2": ["retries 3", "option redispatch 2"],
               "redispatch -1": ["retries 3", "option redispatch -1"], "no redispatch": ["no option redispatch"],
               "all": ["retry-on all-retryable-errors"], "all redispatch 1": ["retry-on all-retryable-errors", "option redispatch 1"],
               "503 404": ["retry-on 503 404 429", "option redispatch 1"], "conn empty": ["retry-on conn-failure empty-response", "option redispatch 1"],
               "timeout": ["retry-on response-timeout", "timeout server 300ms"], "junk": ["retry-on junk-response", "option redispatch 1"], "none": ["retry-on none", "option redispatch 1"],
               "cookie": ["retry-on all-retryable-errors", "option redispatch", "cookie S insert"], "no-tries rule": ["retry-on all-retryable-errors", "http-request disable-l7-retry"],
               "set-retries": ["retry-on all-retryable-errors", "http-request set-retries 1"]}
    for failure, manner in failures.items():
        for option, lines in options.items():
            if failure == "silent" and "timeout" not in option:
                continue
            for algorithm in ("roundrobin", "first"):
                if option == "cookie" and algorithm == "first":
                    continue
                add(f"retry {failure}; {option}; {algorithm}", ["a GET /a cookie:S=x", "a GET /b", "a POST /c 5", "a GET /d"],
                    {"s1": {"words": "cookie x", "manners": [manner]}, "s2": "cookie y"}, back=[f"balance {algorithm}"] + lines)
        add(f"retry {failure}; on a connection that was there", ["a GET /a", "a GET /b", "a GET /c", "a GET /d"], {"s1": {"manners": ["ok", manner, "ok"] if manner != "refuse" else ["ok close", "ok"]}}, back=["http-reuse always"])
        add(f"retry {failure}; on a connection that was there, POST", ["a GET /a", "a POST /b 5", "a GET /c", "a GET /d"], {"s1": {"manners": ["ok", manner, "ok"] if manner != "refuse" else ["ok close", "ok"]}}, back=["http-reuse always"])
        add(f"retry {failure}; on another's connection", ["a GET /a", "b GET /b", "a GET /c", "b GET /d"], {"s1": {"manners": ["ok", manner, "ok"] if manner != "refuse" else ["ok close", "ok"]}}, back=["http-reuse always", "retry-on all-retryable-errors"])
