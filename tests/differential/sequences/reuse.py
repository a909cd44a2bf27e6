"""Which connection to a server a request gets, after an exchange that went well or did not."""

HOW = ["never", "safe", "aggressive", "always"]
# How the first exchange goes: the first server's manners, and what client a does.
ENDS = {
    "ok": (["ok"], ["a GET /1"]),
    "ok, client closes": (["ok"], ["a GET /1", "a close"]),
    "two, client closes": (["ok"], ["a GET /1", "a GET /2", "a close"]),
    "client says close": (["ok"], ["a GET /1 close"]),
    "HTTP/1.0": (["ok"], ["a GET /1 1.0"]),
    "HTTP/1.0 keep-alive": (["ok"], ["a GET /1 1.0 connection:keep-alive"]),
    "server says close": (["ok close", "ok"], ["a GET /1"]),
    "server closes": (["ok shut", "ok"], ["a GET /1", "wait 0.05"]),
    "server closes when idle": (["ok"], ["a GET /1", "s1 close", "wait 0.05"]),
    "server resets when idle": (["ok"], ["a GET /1", "s1 reset", "wait 0.05"]),
    "server HTTP/1.0": (["1.0", "ok"], ["a GET /1"]),
    "until the end": (["until", "ok"], ["a GET /1"]),
    "chunks": (["chunks"], ["a GET /1"]),
    "204": (["204"], ["a GET /1"]),
    "304": (["304"], ["a GET /1"]),
    "HEAD": (["ok"], ["a HEAD /1"]),
    "interim": (["interim"], ["a GET /1"]),
    "expects 100": (["ok"], ["a POST /1 5 expect:100-continue"]),
    "POST": (["ok"], ["a POST /1 5"]),
    "POST, client leaves in the body": (["ok"], ["a> POST /1 5/10", "a close"]),
    "POST, client resets in the body": (["ok"], ["a> POST /1 5/10", "a reset"]),
    "client leaves before the answer": (["slow", "ok"], ["a> GET /1", "a close", "wait 0.4"]),
    "client resets before the answer": (["slow", "ok"], ["a> GET /1", "a reset", "wait 0.4"]),
    "client shuts before the answer": (["slow", "ok"], ["a> GET /1", "a shut", "a<", "wait 0.1"]),
    "server breaks off in the body": (["half", "ok"], ["a GET /1"]),
    "server resets": (["reset", "ok"], ["a GET /1"]),
    "server closes without an answer": (["empty", "ok"], ["a GET /1"]),
    "early answer": (["early", "ok"], ["a> POST /1 5/10", "a<", "a more 5", "wait 0.05"]),
    "early answer, client leaves": (["early", "ok"], ["a> POST /1 5/10", "a<", "a close"]),
    "early answer, closes": (["early close", "ok"], ["a> POST /1 5/10", "a<", "wait 0.05"]),
    "server times out": (["silent", "ok"], ["a GET /1"]),
    "401 NTLM": (["401 www-authenticate:NTLM", "ok"], ["a GET /1"]),
    "401 Negotiate": (["401 www-authenticate:Negotiate", "ok"], ["a GET /1"]),
    "401 Basic": (["401 www-authenticate:Basic", "ok"], ["a GET /1"]),
    "407 NTLM": (["407 proxy-authenticate:NTLM", "ok"], ["a GET /1"]),
    "response refused": (["ok x-bad:1", "ok"], ["a GET /1"]),
    "returned instead": (["ok x-return:1", "ok"], ["a GET /1"]),
    "more than it said": (["raw:HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nhello", "ok"], ["a GET /1"]),
    "websocket": (["raw:HTTP/1.1 101 Switch\\r\\nconnection: upgrade\\r\\nupgrade: websocket\\r\\n\\r\\nbye", "ok"], ["a GET /1 connection:upgrade upgrade:websocket", "a end"]),
    "500": (["500", "ok"], ["a GET /1"]),
}
AFTER = {
    "then others": ["b GET /3", "a GET /4", "b GET /5", "c GET /6"],
    "then two at once": ["b> GET /3", "c> GET /4", "b<", "c<", "a GET /5"],
}
MODES = {
    "": [], "server-close": ["option http-server-close"], "httpclose": ["option httpclose"], "prefer-last": ["option prefer-last-server"],
    "always server-close": ["option http-server-close", "http-reuse always"],
}
WORDS = {
    "pool-max-conn 0": "pool-max-conn 0", "pool-max-conn 1": "pool-max-conn 1", "pool-max-conn 10": "pool-max-conn 10", "pool-low-conn 2": "pool-low-conn 2", "pool-purge-delay 100ms": "pool-purge-delay 100ms",
    "pool-purge-delay 0": "pool-purge-delay 0", "max-reuse 0": "max-reuse 0", "max-reuse 1": "max-reuse 1", "max-reuse 2": "max-reuse 2", "pool-max-conn -1": "pool-max-conn -1",
    "send-proxy": "send-proxy", "pool-max-conn 10 send-proxy": "pool-max-conn 10 send-proxy", "source": "source 127.0.9.9", "source client": "source 0.0.0.0 usesrc clientip", "maxconn 1": "maxconn 1", "maxconn 1 pool-max-conn 0": "maxconn 1 pool-max-conn 0",
    "pool-conn-name src": "pool-conn-name src", "pool-conn-name hdr": "pool-conn-name req.hdr(x-n)", "non-stick": "non-stick",
}


# Which of several at rest is taken: three were opened at once, and their exchanges ended in some order.
PILE = {
    "in order": ["slow", "slow", "slow", "ok"], "the first last": ["late", "slow", "slow", "ok"], "the last first": ["late", "slow", "ok", "ok"], "one breaks": ["slow", "empty", "slow", "ok"],
}
PILE_AFTER = {
    "one client": ["d GET /4", "d GET /5", "d GET /6"], "each of its own": ["d GET /4", "e GET /5", "f GET /6", "d GET /7"], "the same ones": ["a GET /4", "b GET /5", "c GET /6", "c GET /7", "a GET /8"],
    "others at once": ["d> GET /4", "e> GET /5", "d<", "e<", "f GET /6"], "they leave": ["a close", "b close", "c close", "d GET /4", "e GET /5", "e GET /6", "f GET /7"], "one closes": ["b close", "d GET /4", "a GET /5", "e GET /6"],
    "two rounds": ["a> GET /a2", "b> GET /b2", "a<", "b<", "d GET /4", "c GET /5", "e GET /6", "b GET /7"],
}


def servers(manners, words=""):
    return {"s1": {"words": f"pool-purge-delay 1h {words}", "manners": manners, **({"options": ("proxy",)} if "send-proxy" in words else {})}}


RULES = ["http-response deny if { res.hdr(x-bad) 1 }", "http-response return status 200 if { res.hdr(x-return) 1 }"]


def make(add):
    for how in HOW:
        for end, (manners, first) in ENDS.items():
            for after, steps in AFTER.items():
                add(f"reuse {how}; {end}; {after}", first + steps, servers(manners), back=[f"http-reuse {how}", "retries 1"] + RULES)
    for mode, lines in MODES.items():
        for end, (manners, first) in ENDS.items():
            if mode:
                add(f"{mode}; {end}", first + AFTER["then others"], {**servers(manners), "s2": "pool-purge-delay 1h"}, back=["balance roundrobin"] + lines + RULES)
                add(f"frontend {mode}; {end}", first + AFTER["then others"], {**servers(manners), "s2": "pool-purge-delay 1h"}, back=["balance roundrobin"] + RULES,
                    front=[line for line in lines if "reuse" not in line and "last" not in line])
    for how in HOW[1:]:
        for pile, manners in PILE.items():
            for after, steps in PILE_AFTER.items():
                add(f"pile {how}; {pile}; {after}", ["a> GET /a", "b> GET /b", "c> GET /c", "a<", "b<", "c<"] + steps, servers(manners), back=[f"http-reuse {how}"])
        for name, steps in {"safe, then unsafe": ["a GET /1", "a GET /2", "b> GET /3", "a> GET /4", "b<", "a<", "a GET /5", "b GET /6", "c GET /7", "d GET /8"], "mixed": ["a GET /1", "a GET /2", "b> GET /3", "c> GET /4", "b<", "c<", "c GET /5", "d GET /6", "e GET /7"]}.items():
            add(f"pile {how}; {name}", steps, servers(["ok", "ok", "slow", "slow", "ok"]), back=[f"http-reuse {how}"])
    for word, words in WORDS.items():
        if "usesrc" in words:
            continue
        for how in ("never", "safe", "always"):
            for end in ("ok", "ok, client closes", "two, client closes", "server closes when idle", "client leaves before the answer", "POST, client leaves in the body", "server resets", "401 NTLM"):
                manners, first = ENDS[end]
                add(f"server {word}; {how}; {end}", first + AFTER["then others"] + ["wait 0.25", "! show servers conn @b@", "c GET /9 x-n:7"], servers(manners, words), back=[f"http-reuse {how}"])
            add(f"server {word}; {how}; two clients", ["a> GET /1", "b> GET /2 x-n:1", "a<", "b<", "! show servers conn @b@", "a close", "b close", "! show servers conn @b@", "c GET /3", "d GET /4 x-n:1"], servers(["slow"], words), back=[f"http-reuse {how}"])
