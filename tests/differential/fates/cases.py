"""The cases of fates.py: clients and servers, each with a list of steps.

A step is bytes to send, a number of seconds to listen, "head" or "whole" (until a request's head, or all of it, has come), ("got", N)
(until so many bytes have), "shut" (no more will be said), "reset", "close", or "end" (until the other side ends), "serve" (answer each request).
"""
import re

# Nothing that is awaited may happen at the instant at which something else is done, or who comes first is a matter of luck. On their own
# clients do something 0, 0.4, 0.8, 1.6 and 2.4 s after their begin, servers 0.2, 1.0, 1.8 and 2.6 s (0.25, 0.5 and 0.75 s when tried again); what either does because of the other
# is followed by something else 0.2 s later at the soonest, as far as it matters which comes first; and timeouts end between all of them.
CLIENT, SERVER, TOGETHER = 1300, 2300, 48
CASES = {}
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n"
CHUNKS = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
PAUSE, LATER = 0.4, 0.2

HTTP_CLIENTS = {
    "closes at once": ["close"],
    "shuts at once": ["shut", "end"],
    "resets at once": [PAUSE, "reset"],
    "says nothing": ["end"],
    "half a head, closes": [GET[:20], PAUSE, "close"],
    "half a head, shuts": [GET[:20], PAUSE, "shut", "end"],
    "half a head, resets": [GET[:20], PAUSE, "reset"],
    "half a head, waits": [GET[:20], "end"],
    "GET": [GET, "end"],
    "GET, close": [GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), "end"],
    "GET 1.0": [GET.replace(b"1.1", b"1.0"), "end"],
    "HEAD": [GET.replace(b"GET", b"HEAD"), "end"],
    "GET, shuts later": [GET, PAUSE, "shut", "end"],
    "GET, closes later": [GET, PAUSE, "close"],
    "GET, resets later": [GET, PAUSE, "reset"],
    "GET, closes within the answer": [GET, ("got", 1), LATER, "close"],
    "GET, resets within the answer": [GET, ("got", 1), LATER, "reset"],
    "two GETs": [GET, ("got", 43), LATER, GET, "end"],
    "two GETs at once": [GET + GET, "end"],
    "GET and dirt": [GET + b"\x01\x02\r\n\r\n", "end"],
    "POST": [POST + b"0123456789", "end"],
    "POST, body later": [POST, PAUSE, b"0123456789", "end"],
    "POST, half a body, waits": [POST + b"01234", "end"],
    "POST, half a body, closes": [POST + b"01234", PAUSE, "close"],
    "POST, half a body, shuts": [POST + b"01234", PAUSE, "shut", "end"],
    "POST, half a body, resets": [POST + b"01234", PAUSE, "reset"],
    "chunks": [CHUNKS + b"5\r\nhello\r\n0\r\n\r\n", "end"],
    "half of the chunks, waits": [CHUNKS + b"5\r\nhello\r\n", "end"],
    "half of the chunks, closes": [CHUNKS + b"5\r\nhello\r\n", PAUSE, "close"],
    "broken chunks": [CHUNKS + b"5\r\nhello\r\nx\r\n", "end"],
    "expects 100": [POST.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"), PAUSE, b"0123456789", "end"],
}
HTTP_SERVERS = {
    "answers": ["serve"],
    "refuses": "refuse",
    "closes at once": [0.25, "close"],
    "resets at once": [0.25, "reset"],
    "says nothing": ["end"],
    "reads, closes": ["whole", "close"],
    "reads, resets": ["whole", "reset"],
    "reads the head, closes": ["head", "close"],
    "reads the head, resets": ["head", "reset"],
    "half a head, closes": ["whole", ANSWER[:20], 0.8, "close"],
    "half a head, resets": ["whole", ANSWER[:20], 0.8, "reset"],
    "half a head, waits": ["whole", ANSWER[:20], "end"],
    "half a body, closes": ["whole", ANSWER[:-2], 0.8, "close"],
    "half a body, resets": ["whole", ANSWER[:-2], 0.8, "reset"],
    "half a body, waits": ["whole", ANSWER[:-2], "end"],
    "answers and closes": ["whole", ANSWER, "close"],
    "answers 'close'": ["whole", ANSWER.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), "close"],
    "answers until it closes": ["whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "close"],
    "answers until it resets": ["whole", b"HTTP/1.1 200 OK\r\n\r\nhello", 0.8, "reset"],
    "answers in chunks": ["whole", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "end"],
    "half of its chunks, closes": ["whole", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", 0.8, "close"],
    "broken chunks": ["whole", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n", "end"],
    "broken head": ["whole", b"HTTP/1.1 200 OK\r\nx y\r\n\r\n", "end"],
    "answers early": ["head", ANSWER, "end"],
    "answers early, closes": ["head", ANSWER, 0.1, "close"],
    "answers slowly": ["whole", 0.8, ANSWER, "end"],
    "503": ["whole", b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", "end"],
    "204": ["whole", b"HTTP/1.1 204 No\r\n\r\n", "end"],
    "100 first": ["head", b"HTTP/1.1 100 Continue\r\n\r\n", "whole", ANSWER, "end"],
    "more than it said": ["whole", ANSWER + b"!!", "end"],
    "answers unasked": [ANSWER, "end"],
}

TCP_CLIENTS = {
    "closes at once": [PAUSE, "close"], "shuts at once": [PAUSE, "shut", "end"], "resets at once": [PAUSE, "reset"], "says nothing": ["end"],
    "talks, waits": [b"hello", "end"], "talks, shuts": [b"hello", PAUSE, "shut", "end"], "talks, closes": [b"hello", PAUSE, "close"],
    "talks, resets": [b"hello", PAUSE, "reset"], "talks and shuts": [b"hello", "shut", "end"], "listens, closes": [("got", 1), LATER, "close"],
    "listens, resets": [("got", 1), LATER, "reset"], "talks on": [b"a", 0.8, b"b", 0.8, b"c", 0.8, b"d", 0.8, "end"],
}
TCP_SERVERS = {
    "refuses": "refuse", "closes at once": [0.2, "close"], "resets at once": [0.2, "reset"], "says nothing": ["end"], "shuts at once": [0.2, "shut", "end"],
    "greets, waits": [0.2, b"welcome", "end"], "greets, shuts": [0.2, b"welcome", 0.8, "shut", "end"], "greets, closes": [0.2, b"welcome", 0.8, "close"],
    "greets, resets": [0.2, b"welcome", 0.8, "reset"], "reads, closes": [("got", 1), LATER, "close"], "reads, resets": [("got", 1), LATER, "reset"],
    "answers, closes": [("got", 1), b"bye", 0.1, "close"], "talks on": [0.2, b"a", 0.8, b"b", 0.8, b"c", 0.8, b"d", 0.8, "end"],
}
HTTP_OPTIONS = {
    "no abortonclose": ["fb: no option abortonclose"], "abortonclose": ["fb: option abortonclose"],
    "http-server-close": ["fb: option http-server-close"], "httpclose": ["fb: option httpclose"],
    "http-buffer-request": ["f: option http-buffer-request"], "logasap": ["f: option logasap"],
    "no retries": ["b: retries 0"], "retries of all": ["b: retries 2", "b: retry-on all-retryable-errors"],
    "redispatch": ["b: retries 2", "b: balance roundrobin", "b: option redispatch 1", "b: server t 127.0.0.1:1"],
    "timeouts": ["f: timeout http-request 600ms", "f: timeout http-keep-alive 500ms"], "nolinger": ["fb: option nolinger"],
    "dontlognull": ["f: option dontlognull"], "http-ignore-probes": ["f: option http-ignore-probes"],
    "content rules": ["f: tcp-request inspect-delay 600ms", "f: tcp-request content accept if HTTP"],
}
TCP_OPTIONS = {
    "abortonclose": ["fb: option abortonclose"], "fins": ["f: timeout client-fin 700ms", "b: timeout server-fin 700ms"],
    "nolinger": ["fb: option nolinger"], "tunnel": ["b: timeout tunnel 3s"], "logasap": ["f: option logasap"],
    "inspect": ["f: tcp-request inspect-delay 500ms", "f: tcp-request content accept if { req.len gt 3 }"],
    "no retries": ["b: retries 0"], "dontlognull": ["f: option dontlognull"], "independent": ["fb: option independent-streams"],
}
SOME_CLIENTS = ["says nothing", "half a head, shuts", "GET", "GET, shuts later", "GET, closes later", "GET, closes within the answer", "two GETs",
                "POST, half a body, waits", "POST, half a body, closes", "POST, body later", "closes at once", "GET 1.0"]
SOME_SERVERS = ["answers", "refuses", "closes at once", "resets at once", "says nothing", "reads, closes", "half a head, closes", "half a body, closes", "half a body, waits",
                "answers and closes", "answers until it closes", "answers early, closes", "503", "answers slowly"]

# What these are about is a race: HAProxy does one thing or the other.
RACES = re.compile("|".join((
    # Whether the first bytes are read before the connection is refused or with its second try.
    r"tcp: client talks.*; server refuses",
    # Whether the end is seen together with the answer that the line is written for.
    r"server answers and closes; logasap",
    # Whether the bytes are sent on before the end of their client becomes a reset, which takes them along.
    r"tcp: client talks and shuts; .*; nolinger",
    # Whether a pause is cut short when the client of a request that came whole leaves.
    r"client GET, (shuts|closes|resets) later; .*; pause",
    # Which side's end is seen first.
    r"client GET, (closes|shuts).*; server (answers until it closes|half a body, waits); no abortonclose")))


def add(mode, client, server, option="", lines=()):
    clients, servers = (HTTP_CLIENTS, HTTP_SERVERS) if mode == "http" else (TCP_CLIENTS, TCP_SERVERS)
    name = f"{mode}: client {client}; server {server}" + (f"; {option}" if option else "")
    if RACES.search(name):
        return
    CASES[name] = {"mode": mode, "client": clients[client], "server": servers[server], "lines": list(lines)}


for client in HTTP_CLIENTS:
    for server in HTTP_SERVERS:
        add("http", client, server)
for client in TCP_CLIENTS:
    for server in TCP_SERVERS:
        add("tcp", client, server)
for option, lines in HTTP_OPTIONS.items():
    for client in SOME_CLIENTS:
        for server in SOME_SERVERS:
            add("http", client, server, option, lines)
# Who leaves while a rule holds the request.
for client in [*SOME_CLIENTS, "GET, resets later", "POST, half a body, shuts", "POST, half a body, resets"]:
    for server in SOME_SERVERS:
        add("http", client, server, "pause", ["f: http-request pause 600ms"])
for option, lines in TCP_OPTIONS.items():
    for client in TCP_CLIENTS:
        for server in TCP_SERVERS:
            add("tcp", client, server, option, lines)
