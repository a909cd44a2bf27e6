"""The cases of sequences.py: a configuration, servers with their manners, and a script.

A line of a configuration may name its backend (@b@), its frontend (@f@) and addresses of servers (@s1@, @s1:port@). A step of a script is
`a GET /` (client a asks and awaits the answer), `a> GET /` (asks only), `a< [SECONDS]` (awaits), `a~ TEXT` (bytes, and what comes in 0.15 s),
`a close`, `a reset`, `a shut`, `a end`, `a more N` (bytes of a body), `wait N`, `! COMMAND`, `s1 is MANNERS` or `s1 close|reset` (of its connections).
`! look` shows what `show stat` says of each server's checks. `from N` at the end of a client's first step is its address, 127.0.N.1.
"""
import balance, checks, persist, reuse

CASES = {}


def add(name, script, servers=None, front=(), back=(), mode="http", **more):
    assert name not in CASES, name
    servers = servers or {"s1": {}, "s2": {}, "s3": {}}
    full = {}
    for one, spec in servers.items():
        if isinstance(spec, str):
            spec = {"words": spec}
        full[one] = {"words": "", "manners": ["ok"], **spec}
        if full[one]["words"] is None:
            del full[one]["words"]
        if mode == "tcp" and "options" not in full[one]:
            full[one]["options"] = ("tcp",)
    back = list(back)
    if sum(one["words"] is not None for one in full.values() if "words" in one) > 1 and "balance" not in str(back):
        # Without a word for it a server is chosen by chance.
        back.insert(0, "balance roundrobin")
    CASES[name] = {"mode": mode, "front": list(front), "back": back, "servers": full, "script": list(script), **more}


for part in (balance, reuse, persist, checks):
    part.make(add)
