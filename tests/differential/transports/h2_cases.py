"""HTTP/2 towards clients and towards servers, in clear and behind TLS."""
import struct
from borrowed import fates, frames
from peers import CERTS, answer

GET, POST, ANSWER, PAUSE, LATER = (getattr(fates.cases, name) for name in ("GET", "POST", "ANSWER", "PAUSE", "LATER"))
CASES = {}
headers, data, field, frame = (getattr(frames.cases, name) for name in ("headers", "data", "field", "frame"))
HELLO, SETTINGS = frames.cases.PREFACE + frames.cases.SETTINGS, frames.cases.SETTINGS
UPLOAD = frames.cases.POST + field("content-length", "10")
OPEN, STREAM_CLOSED, CANCEL, REFUSED, INTERNAL, PROTOCOL, NO_ERROR, HTTP11 = 4, 5, 8, 7, 2, 1, 0, 13


def reset(stream, code):
    return frame(3, 0, stream, struct.pack(">I", code))


def goaway(last, code):
    return frame(7, 0, 0, struct.pack(">II", last, code))


def clients():
    get, post = HELLO + headers(1), HELLO + headers(1, UPLOAD, OPEN)
    out = {
        "closes at once": [PAUSE, "close"], "shuts at once": ["shut", "end"], "resets at once": [PAUSE, "reset"], "says nothing": ["end"],
        "half a preface, closes": [HELLO[:10], PAUSE, "close"], "half a preface, waits": [HELLO[:10], "end"], "a preface, closes": [HELLO, PAUSE, "close"],
        "a preface, shuts": [HELLO, PAUSE, "shut", "end"], "a preface, resets": [HELLO, PAUSE, "reset"], "a preface, waits": [HELLO, "end"],
        "a preface, GOAWAY": [HELLO, PAUSE, goaway(0, 0), "end"], "half a head, closes": [get[:-4], PAUSE, "close"], "half a head, waits": [get[:-4], "end"],
        "half a head, shuts": [get[:-4], PAUSE, "shut", "end"], "a head without its end, waits": [HELLO + headers(1, flags=1), "end"],
        "HTTP/1": [GET, "end"],
        "GET": [get, "end"], "HEAD": [HELLO + headers(1, frames.cases.field(":method", "HEAD") + frames.cases.GET[1:]), "end"],
        "GET, shuts later": [get, PAUSE, "shut", "end"], "GET, closes later": [get, PAUSE, "close"], "GET, resets the connection later": [get, PAUSE, "reset"],
        "GET, closes within the answer": [get, ("frame", "HEADERS/1"), LATER, "close"],
        "GET, resets the stream within the answer": [get, ("frame", "HEADERS/1"), LATER, reset(1, CANCEL), "end"],
        "GET, late END_STREAM": [HELLO + headers(1, flags=OPEN), PAUSE, data(1, b""), "end"],
        "GET, no END_STREAM": [HELLO + headers(1, flags=OPEN), "end"],
        "GET, window of 0": [HELLO + frame(4, 0, 0, b"\0\4\0\0\0\0") + headers(1), "end"],
        "GET, window of 0, reset later": [HELLO + frame(4, 0, 0, b"\0\4\0\0\0\0") + headers(1), 0.8, reset(1, CANCEL), "end"],
        "GET, window of 0, closes later": [HELLO + frame(4, 0, 0, b"\0\4\0\0\0\0") + headers(1), 0.8, "close"],
        "two GETs": [get, ("frame", "HEADERS/1"), LATER, headers(3), "end"],
        "two GETs at once": [get + headers(3), "end"],
        "two GETs, one reset": [get + headers(3), PAUSE, reset(3, CANCEL), "end"],
        "two GETs, one broken": [get + headers(3, frames.cases.GET + field("X", "y")), "end"],
        "a GET and a POST that breaks": [get + headers(3, UPLOAD, OPEN), PAUSE, data(3, b"0" * 20), "end"],
        "GOAWAY, then more": [get, PAUSE, goaway(0, 0) + headers(3), "end"],
        "POST": [post + data(1, b"0123456789"), "end"], "POST, body later": [post, PAUSE, data(1, b"0123456789"), "end"],
        "POST, late END_STREAM": [post + data(1, b"0123456789", 0), PAUSE, data(1, b""), "end"],
        "POST, no END_STREAM": [post + data(1, b"0123456789", 0), "end"],
        "POST, half a body, waits": [post + data(1, b"01234", 0), "end"], "POST, half a body, ends": [post + data(1, b"01234"), "end"],
        "POST, half a body, ends later": [post + data(1, b"01234", 0), PAUSE, data(1, b""), "end"],
        "POST, too much": [post + data(1, b"0" * 11), "end"], "POST, too much later": [post + data(1, b"0" * 5, 0), PAUSE, data(1, b"0" * 11), "end"],
        "POST, half a body, closes": [post + data(1, b"01234", 0), PAUSE, "close"], "POST, half a body, shuts": [post + data(1, b"01234", 0), PAUSE, "shut", "end"],
        "POST, half a body, resets the connection": [post + data(1, b"01234", 0), PAUSE, "reset"],
        "POST without a length": [HELLO + headers(1, frames.cases.POST, OPEN) + data(1, b"01234"), "end"],
        "POST without a length, half": [HELLO + headers(1, frames.cases.POST, OPEN) + data(1, b"01234", 0), "end"],
        "POST with trailers": [post + data(1, b"0123456789", 0) + headers(1, field("x", "y")), "end"],
        "dirt later": [get, PAUSE, b"\0\0\x08\x06\0\0\0\0\1dirtdirt", "end"],
        "answer, then dirt": [get, ("frame", "HEADERS/1"), LATER, b"\0\0\x08\x06\0\0\0\0\1dirtdirt", "end"],
    }
    for name, code in (("CANCEL", CANCEL), ("NO_ERROR", NO_ERROR), ("INTERNAL_ERROR", INTERNAL), ("REFUSED_STREAM", REFUSED)):
        out[f"GET, {name} later"] = [get, PAUSE, reset(1, code), "end"]
        out[f"POST, half a body, {name}"] = [post + data(1, b"01234", 0), PAUSE, reset(1, code), "end"]
    out["GET, CANCEL later, closes"] = [get, PAUSE, reset(1, CANCEL), LATER, "close"]
    for name, last, code in (("GOAWAY", 1, 0), ("GOAWAY 0", 0, 0), ("GOAWAY of an error", 1, PROTOCOL)):
        out[f"GET, {name} later"] = [get, PAUSE, goaway(last, code), "end"]
        out[f"POST, half a body, {name}"] = [post + data(1, b"01234", 0), PAUSE, goaway(last, code), "end"]
    return out


OK = b"\x88" + field("content-length", "5")


def servers():
    """They wait for a whole request, and play the rest."""
    start, whole = [SETTINGS], [SETTINGS, "ended"]
    out = {
        "answers": [SETTINGS, "serve"], "closes at once": [0.25, "close"], "resets at once": [0.25, "reset"], "says nothing": ["end"],
        "only settings": [SETTINGS, "end"], "HTTP/1": [0.2, ANSWER, "end"], "settings, closes": [SETTINGS, 0.25, "close"], "dirt": [0.2, b"dirt" * 5, "end"],
        "GOAWAY at once": [SETTINGS, 0.2, goaway(0, 0), "end"], "GOAWAY at once, closes": [SETTINGS, 0.2, goaway(0, 0), "close"], "GOAWAY of an error at once": [SETTINGS, 0.2, goaway(0, 1), "end"],
        "reads, closes": whole + ["close"], "reads, resets": whole + ["reset"], "reads the head, closes": start + ["head", 0.2, "close"], "reads the head, resets": start + ["head", 0.2, "reset"],
        "reads, GOAWAY": whole + [goaway(1, 0), "end"], "reads, GOAWAY 0": whole + [goaway(0, 0), "end"], "reads, GOAWAY of an error": whole + [goaway(1, 1), "end"], "reads, GOAWAY 0, closes": whole + [goaway(0, 0), "close"],
        "GOAWAY, answers": whole + [goaway(1, 0), 0.1, answer(1), "end"], "answers, GOAWAY": whole + [answer(1) + goaway(1, 0), "end"], "answers, GOAWAY later": whole + [answer(1), 0.1, goaway(1, 0), "end"],
        "answers, closes": whole + [answer(1), "close"], "answers, GOAWAY, closes": whole + [answer(1) + goaway(1, 0), "close"],
        "answers slowly": whole + [0.8, answer(1), "end"], "head, waits": whole + [headers(1, OK, 4), "end"], "head, closes": whole + [headers(1, OK, 4), 0.8, "close"],
        "half a body, waits": whole + [headers(1, OK, 4) + data(1, b"hel", 0), "end"], "half a body, closes": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, "close"],
        "half a body, resets": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, "reset"], "half a body, ends": whole + [headers(1, OK, 4) + data(1, b"hel"), "end"],
        "half a body, ends later": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, data(1, b""), "end"],
        "half a body, GOAWAY": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, goaway(1, 0), "end"], "half a body, GOAWAY of an error": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, goaway(1, 1), "end"],
        "too much": whole + [headers(1, OK, 4) + data(1, b"hello!!"), "end"], "too much later": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, data(1, b"lo!!"), "end"],
        "no length": whole + [headers(1, b"\x88", 4) + data(1, b"hello"), "end"], "no length, closes": whole + [headers(1, b"\x88", 4) + data(1, b"hello", 0), 0.8, "close"],
        "no length, RST": whole + [headers(1, b"\x88", 4) + data(1, b"hello", 0), 0.8, reset(1, CANCEL), "end"], "no length, NO_ERROR": whole + [headers(1, b"\x88", 4) + data(1, b"hello", 0), 0.8, reset(1, 0), "end"],
        "trailers": whole + [headers(1, OK, 4) + data(1, b"hello", 0) + headers(1, field("x", "y")), "end"], "204": whole + [headers(1, b"\x89"), "end"], "bad head": whole + [headers(1, b"\x88" + field("X", "y")), "end"],
        "no status": whole + [headers(1, field("x", "y")), "end"], "answers early": start + ["head", answer(1), "end"], "answers early, NO_ERROR": start + ["head", answer(1) + reset(1, 0), "end"],
        "answers early, CANCEL": start + ["head", answer(1) + reset(1, CANCEL), "end"], "answers early, closes": start + ["head", answer(1), 0.1, "close"], "100 first": start + ["head", headers(1, field(":status", "100"), 4), "ended", answer(1), "end"],
        "100 and the end": whole + [headers(1, field(":status", "100")), "end"], "bad frame": whole + [b"\0\0\x08\x06\0\0\0\0\1dirtdirt", "end"], "bad frame within": whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, b"\0\0\x08\x06\0\0\0\0\1dirtdirt", "end"],
    }
    for name, code in (("CANCEL", CANCEL), ("NO_ERROR", NO_ERROR), ("INTERNAL_ERROR", INTERNAL), ("REFUSED_STREAM", REFUSED), ("HTTP_1_1_REQUIRED", HTTP11), ("PROTOCOL_ERROR", PROTOCOL)):
        out[f"reads, {name}"] = whole + [reset(1, code), "end"]
        out[f"reads the head, {name}"] = start + ["head", 0.1, reset(1, code), "end"]
        out[f"half a body, {name}"] = whole + [headers(1, OK, 4) + data(1, b"hel", 0), 0.8, reset(1, code), "end"]
    return out


FEW_HTTP = ["answers", "refuses", "closes at once", "resets at once", "says nothing", "half a body, closes", "half a body, waits",
            "answers and closes", "answers until it closes", "half of its chunks, closes", "answers early", "answers slowly", "broken head"]
OPTIONS = {
    "no abortonclose": ["fb: no option abortonclose"], "httpclose": ["fb: option httpclose"], "http-buffer-request": ["f: option http-buffer-request"], "logasap": ["f: option logasap"],
    "no retries": ["b: retries 0"], "retries of all": ["b: retries 2", "b: retry-on all-retryable-errors"], "timeouts": ["f: timeout http-request 600ms", "f: timeout http-keep-alive 500ms"],
    "redispatch": ["b: retries 2", "b: balance roundrobin", "b: option redispatch 1", "b: server t 127.0.0.1:1"], "nolinger": ["fb: option nolinger"], "dontlognull": ["f: option dontlognull"],
    "reuse": ["b: http-reuse always"],
}
SOME_CLIENTS = ["GET", "GET, CANCEL later", "two GETs", "POST, half a body, waits", "POST, half a body, CANCEL", "a preface, waits"]
SOME_SERVERS = ["answers", "refuses", "closes at once", "says nothing", "half a body, closes", "answers slowly"]
H1_CLIENTS = ["GET", "GET 1.0", "HEAD", "GET, shuts later", "GET, closes within the answer", "two GETs", "POST, body later", "POST, half a body, closes", "chunks"]
OUR_CLIENTS = ["GET", "GET, CANCEL later", "two GETs", "POST", "POST, half a body, CANCEL"]
FAR_CLIENTS, FAR_SERVERS = ["two GETs", "GET, closes later"], [
    "answers", "closes at once", "reads, closes", "reads, GOAWAY 0", "reads, REFUSED_STREAM", "reads, CANCEL", "half a body, closes", "half a body, CANCEL", "answers, GOAWAY", "answers early", "GOAWAY at once", "says nothing"]


def add(where, client, server, steps, script, h2, option="", bind="", far="", lines=()):
    name = f"{where}: client {client}; server {server}" + (f"; {option}" if option else "")
    CASES[name] = {"mode": "http", "client": steps, "server": script, "h2": h2, "lines": list(lines), "bind": bind, "far": far}


def fill():
    theirs, ours, plain, h1 = servers(), clients(), fates.cases.HTTP_SERVERS, fates.cases.HTTP_CLIENTS
    tls, bind = [("tls", {"alpn": ["h2"]})], f"ssl crt {CERTS}/www.pem alpn h2"
    for client, steps in ours.items():
        for server in FEW_HTTP:
            add("h2", client, server, steps, plain[server], "client", bind="proto h2")
        for server in ("answers", "says nothing", "half a body, closes"):
            add("h2 tls", client, server, tls + steps, plain[server], "client", bind=bind)
    for option, lines in OPTIONS.items():
        for client in SOME_CLIENTS:
            for server in SOME_SERVERS:
                add("h2", client, server, ours[client], plain[server], "client", option, "proto h2", lines=lines)
        for client in FAR_CLIENTS:
            for server in FAR_SERVERS:
                add("to h2", client, server, h1[client], theirs[server], "server", option, far="proto h2", lines=lines)
    for server, script in theirs.items():
        for client in H1_CLIENTS:
            add("to h2", client, server, h1[client], script, "server", far="proto h2")
        for client in OUR_CLIENTS:
            add("h2 to h2", client, server, ours[client], script, "both", bind="proto h2", far="proto h2")
        for client in ("GET", "two GETs", "POST, half a body, closes"):
            add("to h2 tls", client, server, h1[client], script if script == "refuse" else [("tls", {"alpn": ["h2", "http/1.1"]}), *script], "server", far="ssl verify none alpn h2,http/1.1")


fill()
