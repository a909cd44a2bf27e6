"""TLS towards clients and towards servers."""
import re
from borrowed import fates
from peers import CERTS

GET, POST, ANSWER, PAUSE, LATER = (getattr(fates.cases, name) for name in ("GET", "POST", "ANSWER", "PAUSE", "LATER"))
CASES = {}
# A ClientHello of a version that nobody speaks, records that are none, alerts.
SSL3 = b"\x16\x03\x00\0\x2d\x01\0\0\x29\x03\0" + b"r" * 32 + b"\0\0\x02\0\x05\x01\0"
GARBAGE = b"\x16\x03\x01\0\x20" + b"\xff" * 32
CLOSE_NOTIFY, FATAL, BAD_CERTIFICATE = b"\x15\x03\x03\0\2\1\0", b"\x15\x03\x03\0\2\2\x28", b"\x15\x03\x03\0\2\2\x2a"
GREASE = b"\x17\x03\x03\0\x20" + b"x" * 32

# How a client begins and breaks off its handshake.
BROKEN = {
    "closes at once": [PAUSE, "close"],
    "resets at once": [PAUSE, "reset"],
    "shuts at once": [PAUSE, "shut", "end"],
    "says nothing": ["end"],
    "GET in clear": [GET, "end"],
    "dirt": [b"\x01\x02\x03\x04\x05\x06\x07\x08\r\n\r\n", "end"],
    "one byte, closes": [b"\x16", PAUSE, "close"],
    "PROXY line": [b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n", "end"],
    "garbage in a record": [GARBAGE, "end"],
    "SSL 3": [SSL3, "end"],
    "alert at once": [FATAL, "end"],
    "close_notify at once": [CLOSE_NOTIFY, "end"],
    "TLS 1.1": [("hello", {"version": "1.1", "ciphers": "ALL:@SECLEVEL=0"}, None), "end"],
    "wrong ALPN": [("tls", {"alpn": ["x"]}), GET, "end"],
    "half a hello, closes": [("hello", {}, 60), PAUSE, "close"],
    "half a hello, resets": [("hello", {}, 60), PAUSE, "reset"],
    "half a hello, shuts": [("hello", {}, 60), PAUSE, "shut", "end"],
    "half a hello, waits": [("hello", {}, 60), "end"],
    "a hello, closes": [("hello", {}, None), PAUSE, "close"],
    "a hello, resets": [("hello", {}, None), PAUSE, "reset"],
    "a hello, shuts": [("hello", {}, None), PAUSE, "shut", "end"],
    "a hello, waits": [("hello", {}, None), "end"],
    "a hello, GET in clear": [("hello", {}, None), PAUSE, ("raw", GET), "end"],
    "a hello, alert": [("hello", {}, None), PAUSE, ("raw", BAD_CERTIFICATE), "end"],
    "a hello, close_notify": [("hello", {}, None), PAUSE, ("raw", CLOSE_NOTIFY), "end"],
    "a hello, dirt in a record": [("hello", {}, None), PAUSE, ("raw", GREASE), "end"],
    "half a flight, closes": [("hello", {}, None), PAUSE, ("flight", 20), LATER, "close"],
    "half a flight, waits": [("hello", {}, None), PAUSE, ("flight", 20), "end"],
    "a hello of 1.2, closes": [("hello", {"version": "1.2"}, None), PAUSE, "close"],
    "a hello of 1.2, resets": [("hello", {"version": "1.2"}, None), PAUSE, "reset"],
    "a hello of 1.2, waits": [("hello", {"version": "1.2"}, None), "end"],
    "a hello of 1.2, alert": [("hello", {"version": "1.2"}, None), PAUSE, ("raw", BAD_CERTIFICATE), "end"],
    "a hello of 1.2, GET in clear": [("hello", {"version": "1.2"}, None), PAUSE, ("raw", GET), "end"],
    "half a flight of 1.2, closes": [("hello", {"version": "1.2"}, None), PAUSE, ("flight", 30), LATER, "close"],
    "no common cipher": [("hello", {"version": "1.2", "ciphers": "AES128-SHA256"}, None), "end"],
}
FULL = ("tls", {})
RESUMED = ("tls", {"resume": True})


def ended(options=None):
    """How an encrypted connection goes on and ends in HTTP."""
    tls = ("tls", options or {})
    return {
        "nothing, closes": [tls, PAUSE, "close"],
        "nothing, notifies and closes": [tls, PAUSE, "notify", "close"],
        "nothing, notifies": [tls, PAUSE, "notify", "end"],
        "nothing, shuts": [tls, PAUSE, "shut", "end"],
        "nothing, resets": [tls, PAUSE, "reset"],
        "nothing, alert": [tls, PAUSE, ("raw", FATAL), "end"],
        "nothing, dirt in a record": [tls, PAUSE, ("raw", GREASE), "end"],
        "nothing, clear bytes": [tls, PAUSE, ("raw", GET), "end"],
        "nothing, waits": [tls, "end"],
        "half a head, closes": [tls, GET[:20], PAUSE, "close"],
        "half a head, notifies": [tls, GET[:20], PAUSE, "notify", "end"],
        "half a head, shuts": [tls, GET[:20], PAUSE, "shut", "end"],
        "half a head, resets": [tls, GET[:20], PAUSE, "reset"],
        "half a head, dirt": [tls, GET[:20], PAUSE, ("raw", GREASE), "end"],
        "half a head, waits": [tls, GET[:20], "end"],
        "GET": [tls, GET, "end"],
        "GET, notifies later": [tls, GET, PAUSE, "notify", "end"],
        "GET and notifies": [tls, ("last", GET), "end"],
        "GET, shuts later": [tls, GET, PAUSE, "shut", "end"],
        "GET, notifies and closes": [tls, GET, PAUSE, "notify", "close"],
        "GET, closes later": [tls, GET, PAUSE, "close"],
        "GET, resets later": [tls, GET, PAUSE, "reset"],
        "GET, dirt later": [tls, GET, PAUSE, ("raw", GREASE), "end"],
        "GET, closes within the answer": [tls, GET, ("got", 1), LATER, "close"],
        "two GETs": [tls, GET, ("got", 43), LATER, GET, "end"],
        "POST": [tls, POST + b"0123456789", "end"],
        "POST, body later": [tls, POST, PAUSE, b"0123456789", "end"],
        "POST, half a body, waits": [tls, POST + b"01234", "end"],
        "POST, half a body, closes": [tls, POST + b"01234", PAUSE, "close"],
        "POST, half a body, notifies": [tls, POST + b"01234", PAUSE, "notify", "end"],
        "POST, half a body, dirt": [tls, POST + b"01234", PAUSE, ("raw", GREASE), "end"],
        "POST, half a body, resets": [tls, POST + b"01234", PAUSE, "reset"],
    }


def resumed():
    """Two connections or more, the sessions of one offered on the next."""
    out, done = {}, [("got", 43), LATER, "notify", "close"]
    for version in ("1.2", "1.3"):
        first, again = ("tls", {"version": version}), ("tls", {"version": version, "resume": True})
        out[f"resumes {version}"] = [first, GET, *done, LATER, "again", again, GET, "end"]
        out[f"resumes {version} twice"] = [first, GET, *done, LATER, "again", again, GET, *done, LATER, "again", again, GET, "end"]
        out[f"resumes {version} after no close_notify"] = [first, GET, ("got", 43), LATER, "close", LATER, "again", again, GET, "end"]
        out[f"resumes {version} after a reset"] = [first, GET, ("got", 43), LATER, "reset", LATER, "again", again, GET, "end"]
        out[f"resumes {version} after nothing"] = [first, PAUSE, "close", LATER, "again", again, GET, "end"]
        out[f"resumes {version}, breaks off"] = [first, GET, *done, LATER, "again", ("hello", again[1], None), PAUSE, "close"]
        out[f"does not resume {version}"] = [first, GET, *done, LATER, "again", first, GET, "end"]
        out[f"resumes {version} with nothing"] = [first, GET, *done, LATER, "again", again, PAUSE, "close"]
    out["resumes 1.2 without tickets"] = [("tls", {"version": "1.2", "no tickets": True}), GET, *done, LATER, "again", ("tls", {"version": "1.2", "no tickets": True, "resume": True}), GET, "end"]
    out["resumes 1.3 with another name"] = [("tls", {"version": "1.3", "sni": "a.test"}), GET, *done, LATER, "again", ("tls", {"version": "1.3", "sni": "b.test", "resume": True}), GET, "end"]
    return out


TCP_ENDED = {
    "closes at once": [FULL, PAUSE, "close"], "notifies at once": [FULL, PAUSE, "notify", "end"], "shuts at once": [FULL, PAUSE, "shut", "end"],
    "resets at once": [FULL, PAUSE, "reset"], "notifies and closes": [FULL, PAUSE, "notify", "close"], "says nothing": [FULL, "end"],
    "dirt": [FULL, PAUSE, ("raw", GREASE), "end"], "alert": [FULL, PAUSE, ("raw", FATAL), "end"],
    "talks, waits": [FULL, b"hello", "end"], "talks, notifies": [FULL, b"hello", PAUSE, "notify", "end"], "talks, shuts": [FULL, b"hello", PAUSE, "shut", "end"],
    "talks, closes": [FULL, b"hello", PAUSE, "close"], "talks, notifies and closes": [FULL, b"hello", PAUSE, "notify", "close"],
    "talks, resets": [FULL, b"hello", PAUSE, "reset"], "talks and notifies": [FULL, ("last", b"hello"), "end"], "talks, dirt": [FULL, b"hello", PAUSE, ("raw", GREASE), "end"],
    "listens, closes": [FULL, ("got", 1), LATER, "close"], "listens, notifies": [FULL, ("got", 1), LATER, "notify", "end"],
    "talks on": [FULL, b"a", 0.8, b"b", 0.8, b"c", 0.8, b"d", 0.8, "end"],
}
BIND = f"ssl crt {CERTS}/www.pem"
FEW_HTTP = ["answers", "refuses", "closes at once", "says nothing", "half a head, closes", "half a body, closes", "half a body, waits", "answers until it closes", "answers slowly"]
BIND_OPTIONS = {
    "ciphers": ("ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES128-GCM-SHA256", []), "alpn": ("alpn h2,http/1.1", []), "alpn http/1.0": ("alpn http/1.0", []),
    "no tickets": ("no-tls-tickets", []), "verify required": (f"ca-file {CERTS}/ca.crt verify required", []), "verify optional": (f"ca-file {CERTS}/ca.crt verify optional", []),
    "strict-sni": ("strict-sni", []), "dontlognull": ("", ["f: option dontlognull"]), "timeouts": ("", ["f: timeout http-request 600ms"]),
    "short handshake": ("", ["f: timeout client-hs 600ms"]), "tcplog": ("", ["f: option logasap"]), "nolinger": ("", ["f: option nolinger"]),
    "session rule": ("", ["f: tcp-request session accept if { ssl_fc }"]), "session reject": ("", ["f: tcp-request session reject"]),
    "content rule": ("", ["f: tcp-request inspect-delay 600ms", "f: tcp-request content accept if { req.len gt 3 }"]),
}


def add(where, mode, client, server, steps, script, option="", bind="", far="", lines=(), alone=False):
    name = f"{where} {mode}: client {client}; server {server}" + (f"; {option}" if option else "")
    CASES[name] = {"mode": mode, "client": steps, "server": script, "lines": list(lines), "bind": bind, "far": far, "alone": alone}


def towards_clients():
    servers, tcp = fates.cases.HTTP_SERVERS, fates.cases.TCP_SERVERS
    certificate = ("tls", {"cert": "client.pem"})
    for client, steps in BROKEN.items():
        add("tls", "http", client, "answers", steps, servers["answers"], bind=BIND, alone=True)
        for server in ("greets, waits", "refuses"):
            add("tls", "tcp", client, server, steps, tcp[server], bind=BIND)
        for option, (words, lines) in BIND_OPTIONS.items():
            add("tls", "http", client, "answers", steps, servers["answers"], option, f"{BIND} {words}", lines=lines)
            if option in ("dontlognull", "short handshake", "verify required"):
                add("tls", "tcp", client, "greets, waits", steps, tcp["greets, waits"], option, f"{BIND} {words}", lines=lines)
    for client, steps in ended().items():
        for server in FEW_HTTP:
            add("tls", "http", client, server, steps, servers[server], bind=BIND)
        for option, (words, lines) in BIND_OPTIONS.items():
            add("tls", "http", client, "answers", steps, servers["answers"], option, f"{BIND} {words}", lines=lines)
    for client, steps in ended({"version": "1.2"}).items():
        for server in ("answers", "closes at once", "half a body, waits"):
            add("tls", "http", f"of 1.2, {client}", server, steps, servers[server], bind=BIND)
    for client, steps in resumed().items():
        for option, words in (("", ""), ("no tickets", "no-tls-tickets"), ("verify optional", f"ca-file {CERTS}/ca.crt verify optional"), ("alpn", "alpn http/1.1"), ("0rtt", "allow-0rtt")):
            add("tls", "http", client, "answers", steps, servers["answers"], option, f"{BIND} {words}", alone=True)
    for client, steps in (("with a certificate", [certificate, GET, "end"]), ("with a foreign certificate", [("tls", {"cert": "wild.pem"}), GET, "end"])):
        for option in ("verify required", "verify optional"):
            add("tls", "http", client, "answers", steps, servers["answers"], option, f"{BIND} {BIND_OPTIONS[option][0]}", alone=True)
    for client, steps in TCP_ENDED.items():
        for server, script in tcp.items():
            add("tls", "tcp", client, server, steps, script, bind=BIND)


towards_clients()

# What a server does with TLS, or without.
def handshakes(options=None):
    tls, hello = ("tls", options or {}), ("hello", options or {})
    return {
        "answers": [tls, "serve"],
        "answers, notifies and closes": [tls, "whole", ANSWER, "notify", "close"],
        "answers and closes": [tls, "whole", ANSWER, "close"],
        "answers until it notifies": [tls, "whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "notify", "end"],
        "answers until it notifies and closes": [tls, "whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "notify", "close"],
        "answers until it closes": [tls, "whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "close"],
        "answers until it resets": [tls, "whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "reset"],
        "half a body, notifies": [tls, "whole", ANSWER[:-2], 0.8, "notify", "end"],
        "half a body, closes": [tls, "whole", ANSWER[:-2], 0.8, "close"],
        "half a body, resets": [tls, "whole", ANSWER[:-2], 0.8, "reset"],
        "half a body, dirt": [tls, "whole", ANSWER[:-2], 0.8, ("raw", GREASE), "end"],
        "half a body, alert": [tls, "whole", ANSWER[:-2], 0.8, ("raw", FATAL), "end"],
        "half a body, waits": [tls, "whole", ANSWER[:-2], "end"],
        "half a head, notifies": [tls, "whole", ANSWER[:20], 0.8, "notify", "end"],
        "half a head, closes": [tls, "whole", ANSWER[:20], 0.8, "close"],
        "reads, notifies": [tls, "whole", "notify", "end"],
        "reads, closes": [tls, "whole", "close"],
        "reads, resets": [tls, "whole", "reset"],
        "says nothing": [tls, "end"],
        "notifies at once": [tls, 0.05, "notify", "end"],
        "closes behind the handshake": [tls, 0.25, "close"],
        "answers slowly": [tls, "whole", 0.8, ANSWER, "end"],
        "refuses": "refuse",
        "closes at once": [0.25, "close"],
        "resets at once": [0.25, "reset"],
        "says nothing at all": ["end"],
        "in clear": [0.2, ANSWER, "end"],
        "in clear, closes": [0.2, ANSWER, "close"],
        "dirt in a record": [0.2, ("raw", GARBAGE), "end"],
        "alert at once": [0.2, ("raw", FATAL), "end"],
        "alert at once, closes": [0.2, ("raw", FATAL), "close"],
        "close_notify at once": [0.2, ("raw", CLOSE_NOTIFY), "end"],
        "half a flight, closes": [("got", 100), hello + (100,), 0.25, "close"],
        "half a flight, resets": [("got", 100), hello + (100,), 0.25, "reset"],
        "half a flight, waits": [("got", 100), hello + (100,), "end"],
        "a flight, closes": [("got", 100), hello + (None,), 0.25, "close"],
        "a flight, waits": [("got", 100), hello + (None,), "end"],
        "a flight, dirt": [("got", 100), hello + (None,), 0.25, ("raw", GARBAGE), "end"],
        "shuts in the handshake": [("got", 100), 0.25, "shut", "end"],
    }


SERVER_OPTIONS = {
    "": ("verify none", []), "verified": (f"verify required ca-file {CERTS}/ca.crt sni str(origin.test)", []), "wrong name": (f"verify required ca-file {CERTS}/ca.crt sni str(other.test)", []),
    "wrong verifyhost": (f"verify required ca-file {CERTS}/ca.crt no-sni-auto verifyhost other.test", []),
    "wrong authority": ("verify required ca-file @system-ca", []), "no retries": ("verify none", ["b: retries 0"]),
    "retries of all": ("verify none", ["b: retries 2", "b: retry-on all-retryable-errors"]),
    "redispatch": ("verify none", ["b: retries 2", "b: balance roundrobin", "b: option redispatch 1", "b: server t 127.0.0.1:1"]),
    "http/1.1": ("verify none alpn http/1.1", []), "h2 or http/1.1": ("verify none alpn h2,http/1.1", []), "no reuse": ("verify none no-ssl-reuse", []),
    "only 1.3": ("verify none ssl-min-ver TLSv1.3", []), "only 1.2": ("verify none ssl-max-ver TLSv1.2", []), "sni": ("verify none sni str(origin.test)", []),
    "short connect": ("verify none", ["b: timeout connect 600ms"]), "connection kept": ("verify none", ["b: http-reuse never"]),
}
CLEAR_HTTP = ["GET", "GET, shuts later", "GET, closes later", "two GETs", "POST", "POST, body later", "POST, half a body, closes", "POST, half a body, waits", "closes at once"]
OPTIONAL_HTTP = ["GET", "GET, closes later"]
# Those that options are tried with.
SOME_SERVERS = re.compile("answers( and closes| until it notifies)?|half a body, (alert|closes|notifies)|reads, notifies|closes behind the handshake|refuses|closes at once|says nothing at all|in clear|alert at once|"
                          "half a flight, (closes|waits)|a flight, closes")


def towards_servers():
    clients, tcp = fates.cases.HTTP_CLIENTS, fates.cases.TCP_CLIENTS
    for server, script in handshakes().items():
        for client in CLEAR_HTTP:
            add("ssl", "http", client, server, clients[client], script, far="ssl verify none")
        for option, (far, lines) in SERVER_OPTIONS.items():
            for client in OPTIONAL_HTTP if option and SOME_SERVERS.fullmatch(server) else []:
                add("ssl", "http", client, server, clients[client], script, option, far=f"ssl {far}", lines=lines)
    for server, script in handshakes({"version": "1.2"}).items():
        for client in OPTIONAL_HTTP:
            add("ssl", "http", client, f"of 1.2, {server}", clients[client], script, far="ssl verify none")
    for server, options in (("ALPN http/1.1", {"alpn": ["http/1.1"]}), ("ALPN x", {"alpn": ["x"]}), ("TLS 1.2", {"version": "1.2"}), ("without tickets", {"no tickets": True}),
                            ("TLS 1.2 without tickets", {"version": "1.2", "no tickets": True}), ("wants a certificate", {"ca": "ca.crt"})):
        for option, (far, lines) in SERVER_OPTIONS.items():
            for client in ("GET", "two GETs"):
                add("ssl", "http", client, server, clients[client], [("tls", options), "serve"], option, far=f"ssl {far}", lines=lines, alone=True)
                add("ssl", "http", client, f"{server}, closes", clients[client], [("tls", options), "whole", ANSWER, "notify", "close"], option, far=f"ssl {far}", lines=lines, alone=True)
    tls = ("tls", {})
    scripts = {name: script if script == "refuse" else [tls, *script] for name, script in fates.cases.TCP_SERVERS.items()}
    scripts.update({"notifies at once": [tls, 0.2, "notify", "end"], "greets, notifies": [tls, 0.2, b"welcome", 0.8, "notify", "end"], "answers, notifies": [tls, ("got", 1), b"bye", 0.1, "notify", "end"]})
    for name, script in scripts.items():
        for client, steps in tcp.items():
            add("ssl", "tcp", client, name, steps, script, far="ssl verify none")
    for name in ("closes at once", "resets at once", "says nothing at all", "in clear", "alert at once", "half a flight, closes", "a flight, closes", "dirt in a record"):
        for client, steps in tcp.items():
            add("ssl", "tcp", client, f"in its handshake {name}", steps, handshakes()[name], far="ssl verify none")


towards_servers()
