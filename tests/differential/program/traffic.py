"""Exchanges: what clients send and how origins answer. Each is one step of a case."""
import values as v
from values import chance, pick

REASONS = {200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified",
           400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 408: "Request Timeout", 425: "Too Early", 429: "Too Many", 500: "Internal Error",
           502: "Bad Gateway", 503: "Unavailable", 504: "Late"}


def target(g):
    rng = g.rng
    out = pick(rng, v.PATHS)
    if chance(rng, 0.45):
        out += "?" + "&".join(pick(rng, ["a=1", "b=two%20w", "n=42", "c=", "a=2", "n=7;b=3", "x", "z=%zz", "a=%41b"]) for _ in range(rng.randrange(1, 4)))
    if chance(rng, 0.04):
        out = pick(rng, ["*", "http://abs.test/q?a=1", "//x/y", "/" + "p" * 300, "/a#frag", "/\x80", "/a|b", "relative", "/%00x"])
    return out


def fields(g):
    rng = g.rng
    out = []
    if chance(rng, 0.95):
        out.append(("Host", pick(rng, v.HOSTS)))
    for _ in range(pick(rng, [0, 1, 2, 2, 3, 5])):
        kind = rng.randrange(12)
        if kind < 3:
            out.append((pick(rng, ["X-A", "x-b", "X-Case"]), pick(rng, v.WORDS)))
        elif kind == 3:
            out.append(("User-Agent", pick(rng, v.AGENTS)))
        elif kind == 4:
            out.append(("X-List", pick(rng, ["a, b,c", "one", "b;q=1 ,\"q,r\"", ""])))
        elif kind == 5:
            out.append(("X-Num", pick(rng, ["7", "49", "-2", "abc", "9999999999"])))
        elif kind == 6:
            out.append(("Cookie", pick(rng, ["sid=abc; lang=fr", "srv=c1; sid=a", "SERVERID=c2", "x=c1~y; sid=\"q\"", "sid", "lang=en;sid=a;n=4", "srv=o1"])))
        elif kind == 7:
            out.append(("X-Ip", pick(rng, ["10.0.0.9", "192.0.2.77, 10.1.1.1", "2001:db8::9", "bogus"])))
        elif kind == 8:
            out.append(("Accept-Encoding", pick(rng, ["gzip", "deflate, gzip", "identity", "br"])))
        elif kind == 9:
            out.append(("Authorization", pick(rng, ["Basic YWRtaW46cHc=", "Basic dTpw", "Basic am9lOnNlY3JldA==", "Bearer abc.def.ghi", "Basic !!"])))
        elif kind == 10:
            out.append(pick(rng, [("X-Forwarded-For", "1.2.3.4"), ("Accept", "text/html, */*;q=0.1"), ("Referer", "http://r.test/p?q"), ("Range", "bytes=0-3"),
                                  ("If-None-Match", "\"tag\""), ("Via", "1.0 old"), ("Max-Forwards", "3"), ("Forwarded", "for=9.9.9.9"), ("x_under", "1"), ("TE", "trailers")]))
        else:
            out.append(("Connection", pick(rng, ["close", "keep-alive", "x-a", "Keep-Alive, X-B", "close, te"])))
    return out


def head(method, where, version, pairs):
    return f"{method} {where} {version}\r\n" + "".join(f"{n}: {x}\r\n" for n, x in pairs) + "\r\n"


def request(g, method=None):
    """A valid request; returns it with its method."""
    rng = g.rng
    method = method or pick(rng, v.METHODS)
    pairs, body = fields(g), ""
    version = "HTTP/1.0" if chance(rng, 0.08) else "HTTP/1.1"
    if method in ("POST", "PUT", "PATCH", "FOO") or chance(rng, 0.03):
        size = pick(rng, [0, 1, 5, 10, 40, 300, 3000])
        text = ("a=1&n=5&x=" + "y" * size)[:size]
        if chance(rng, 0.4) and version == "HTTP/1.1":
            pairs.append(("Transfer-Encoding", pick(rng, ["chunked", "Chunked"])))
            cut = rng.randrange(size + 1)
            for part in (text[:cut], text[cut:]):
                if part:
                    body += f"{len(part):x}{pick(rng, ['', '', ';ext=1'])}\r\n{part}\r\n"
            body += "0\r\n" + pick(rng, ["", "", "X-Trail: t\r\n"]) + "\r\n"
        else:
            pairs.append(("Content-Length", str(size)))
            body = text
        if chance(rng, 0.5):
            pairs.append(("Content-Type", pick(rng, ["application/x-www-form-urlencoded", "text/plain", "application/json"])))
    rng.shuffle(pairs)
    return method, head(method, target(g), version, pairs), body


def response(g, odd=True):
    """A script for the origin."""
    rng = g.rng
    kind = rng.randrange(30 if odd else 12)
    status = pick(rng, [200, 200, 200, 200, 201, 204, 206, 301, 302, 304, 400, 401, 404, 404, 429, 500, 502, 503])
    size = pick(rng, [0, 1, 11, 60, 500, 4000])
    pairs = []
    for _ in range(rng.randrange(4)):
        pairs.append(pick(rng, [("X-Origin", "scripted"), ("Set-Cookie", "srv=raw; path=/"), ("Set-Cookie", "id=7; HttpOnly"), ("Cache-Control", "no-cache"), ("Cache-Control", "max-age=60"),
                                ("Content-Type", "text/plain"), ("Content-Type", "text/html; charset=utf-8"), ("X-List", "p, q"), ("X-List", "r"), ("Location", "/next"),
                                ("ETag", "\"e1\""), ("Server", "origin/1"), ("Vary", "Accept-Encoding"), ("WWW-Authenticate", "Basic realm=x"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                                ("x_under", "2"), ("Connection", "X-List")]))
    text = "b" * size
    def made(code, extra, body=""):
        return f"HTTP/1.1 {code} {REASONS.get(code, 'Odd')}\r\n" + "".join(f"{n}: {x}\r\n" for n, x in pairs + extra) + "\r\n" + body
    bodyless = status in (204, 304)
    if kind < 6 or bodyless and kind < 12:
        if bodyless:
            return [["full"], ["send", made(status, [])]]
        return [["full"], ["send", made(status, [("Content-Length", str(size))], text)]]
    if kind < 9:
        cut = rng.randrange(size + 1)
        body = "".join(f"{len(p):X}\r\n{p}\r\n" for p in (text[:cut], text[cut:]) if p) + "0\r\n" + pick(rng, ["", "", "X-Trail: r\r\n"]) + "\r\n"
        return [["full"], ["send", made(status, [("Transfer-Encoding", "chunked")])], ["send", body]]
    if kind < 10:
        return [["full"], ["send", made(status, [("Connection", "close")], text)], ["close"]]
    if kind < 11:
        return [["full"], ["send", made(status, [("Content-Length", str(size)), ("Connection", "close")], text)], ["close"]]
    if kind < 12:
        return [["full"], ["send", f"HTTP/1.0 {status} Old\r\nContent-Length: {size}\r\n{pick(rng, ['', 'Connection: keep-alive' + chr(13) + chr(10)])}\r\n{text}"]]
    table = {
        12: [["full"], ["close"]], 13: [["head"], ["rst"]], 14: [["full"], ["send", "HTTP/1.1 2"], ["close"]],
        15: [["full"], ["send", made(200, [("Content-Length", "50")], "short")], ["close"]],
        16: [["full"], ["send", made(200, [("Transfer-Encoding", "chunked")], "5\r\nhello\r\n")], ["close"]],
        17: [["full"], ["send", made(200, [("Transfer-Encoding", "chunked")], "5\r\nhello\r\nZZ\r\n")]],
        18: [["full"], ["send", "junk\r\n\r\n"], ["close"]],
        19: [["full"], ["send", "HTTP/1.1 100 Continue\r\n\r\n"], ["send", made(200, [("Content-Length", "2")], "ok")]],
        20: [["full"], ["send", "HTTP/1.1 103 Early Hints\r\nLink: </s>; rel=preload\r\n\r\n"], ["send", made(200, [("Content-Length", "2")], "ok")]],
        21: [["head"], ["send", made(status if not bodyless else 413, [("Content-Length", "5")], "early")]],
        22: [["full"], ["send", made(200, [("Content-Length", "3")], "abcEXTRA")]],
        23: [["full"], ["send", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"]],
        24: [["full"], ["send", "HTTP/1.1 200 OK\r\nBad Name: x\r\nContent-Length: 0\r\n\r\n"]],
        25: [["full"], ["send", made(200, [("Content-Length", "30000")])], ["fill", 30000]],
        26: [["full"], ["send", made(200, [("Content-Length", "300000")])], ["fill", 300000]],
        27: [["full"], ["send", f"HTTP/1.1 {pick(rng, [999, 600, 99, 299, 101])} Odd\r\nContent-Length: 0\r\n\r\n"]],
        28: [["full"], ["send", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]],
        29: [["accept"], ["close"]],
    }
    return table[kind]


ODD = ["GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "\r\n\r\nGET /lead HTTP/1.1\r\nHost: h\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n", "GET / HTTP/1.1\nHost: lf\n\n",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-A: \x00\r\n\r\n", "get / http/1.1\r\nHost: a\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
       "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-Fold: a\r\n b\r\n\r\n", "GET http://x.test/ HTTP/1.1\r\nHost: y.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
       "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x00\x05hello", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "GET /%2e%2e/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: " + "c" * 3000 + "\r\n\r\n",
       "GET / HTTP/1.1\r\nHost: a\r\n" + "".join(f"X-{i}: {i}\r\n" for i in range(120)) + "\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX-Big: " + "z" * 17000 + "\r\n\r\n"]


def exchange(g, feed, open_now):
    """One step over HTTP/1 on connection `open_now`, or a new one. Returns the step and the connection that is open after it."""
    rng, steps = g.rng, []
    conn = open_now
    if conn is None or chance(rng, 0.3):
        conn = f"c{g.count()}"
        steps.append(["open", conn, feed.name, feed.opening(g)])
    scripts = []
    if chance(rng, 0.5):
        scripts = [response(g, chance(rng, 0.6))]
        if chance(rng, 0.3):
            scripts.append(response(g, chance(rng, 0.5)))
    kind = rng.randrange(20)
    if kind < 11:
        method, first, body = request(g)
        if scripts:
            steps.append(["origin", scripts])
        if body and chance(rng, 0.15):
            first = first.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n")
        steps.append(["send", conn, first + body, method])
        steps.append(["resp", conn, method])
    elif kind < 13:
        if scripts:
            steps.append(["origin", scripts])
        one, two = request(g, "GET"), request(g, pick(rng, ["GET", "POST"]))
        steps.append(["send", conn, one[1] + one[2] + two[1] + two[2], "GET"])
        steps.append(["resp", conn, "GET", 2])
    elif kind < 14:
        steps.append(["origin", [[["head"], ["end"]]]])
        steps.append(["send", conn, request(g, "GET")[1], "GET"])
        steps.append(["rest"])
        steps.append([pick(rng, ["close", "rst"]), conn])
        return steps, None
    elif kind < 15:
        # The origin answers a client that has closed its sending side once it was told so.
        answered = response(g, False)
        steps.append(["origin", [[["full"], ["end"]] + answered[1:]]])
        method, first, body = request(g)
        steps += [["send", conn, first + body, method], ["rest"], ["fin", conn], ["eof", conn]]
        return steps, None
    elif kind < 16:
        if scripts:
            steps.append(["origin", scripts])
        method, first, body = request(g)
        whole = first + body
        cut = rng.randrange(1, max(2, len(whole)))
        steps += [["send", conn, whole[:cut], method], ["rest"], ["send", conn, whole[cut:]], ["resp", conn, method]]
    elif kind < 17:
        steps += [["send", conn, pick(rng, ODD), "GET"], ["rest"], ["fin", conn], ["eof", conn]]
        return steps, None
    elif kind < 18:
        size = pick(rng, [20000, 100000, 400000])
        if scripts:
            steps.append(["origin", scripts])
        steps += [["send", conn, head("POST", target(g), "HTTP/1.1", [("Host", "big"), ("Content-Length", str(size))]), "POST"], ["fill", conn, size], ["resp", conn, "POST"]]
    elif kind < 19:
        method, first, body = request(g, "POST")
        steps += [["send", conn, first[:-2] + "X-More: 1\r\n\r\n" if chance(rng, 0.5) else first, "POST"], ["rest"], [pick(rng, ["rst", "close", "fin"]), conn]]
        return steps, None
    else:
        steps += [["send", conn, pick(rng, ["", "GET", "GET / HTTP/1.1\r\nHost: part"])], ["rest"], [pick(rng, ["close", "fin", "rst"]), conn]]
        return steps, None
    return steps, conn


def h2_exchange(g, feed, open_now):
    rng, steps = g.rng, []
    conn = open_now
    if conn is None or chance(rng, 0.2) or g.streams > 20:
        conn = f"c{g.count()}"
        g.streams = 1
        setting = feed.opening(g)
        setting["h2"] = pick(rng, [[], [[3, 100]], [[1, 0]], [[4, 100]], [[5, 20000]]])
        steps.append(["open", conn, feed.name, setting])
    numbers = []
    if chance(rng, 0.5):
        steps.append(["origin", [response(g, chance(rng, 0.5))]])
    for _ in range(pick(rng, [1, 1, 1, 2])):
        method = pick(rng, v.METHODS)
        pairs = [[":method", method], [":scheme", pick(rng, ["http", "https"])], [":path", target(g).split("#")[0] or "/"]]
        if chance(rng, 0.9):
            pairs.append([":authority", pick(rng, v.HOSTS)])
        pairs += [[n.lower(), x] for n, x in fields(g) if n not in ("Connection", "Host", "TE")]
        if chance(rng, 0.05):
            pairs.insert(rng.randrange(len(pairs) + 1), pick(rng, [["Upper", "x"], ["connection", "close"], [":odd", "1"], ["te", "gzip"], ["host", "other"], [":path", "/two"], ["content-length", "9"], ["x-a", " lead"], ["transfer-encoding", "chunked"]]))
        body = pick(rng, ["", "a=1&b=2", "x" * 500, 20000]) if method in ("POST", "PUT", "PATCH") else ""
        end = pick(rng, ["end"] * 12 + (["trailers", "rst8"] if body else []))
        steps.append(["stream", conn, g.streams, pairs, body, end])
        numbers.append(g.streams)
        g.streams += 2
        if end == "rst8":
            numbers.pop()
        if len(numbers) == 1 and chance(rng, 0.7):
            break
    if numbers:
        # Streams that run at once reach the origin in any order: one after the other here.
        ordered = []
        for op in steps:
            ordered.append(op)
            if op[0] == "stream" and op[2] in numbers:
                ordered.append(["streams", conn, [op[2]]])
        steps = ordered
    if chance(rng, 0.04):
        steps.append(["frame", conn] + pick(rng, [[6, 0, 0, "12345678"], [4, 0, 0, ""], [8, 0, 0, "\0\0\0\x05"], [2, 0, 1, "\0\0\0\0\x05"], [6, 0, 0, "123"], [0, 0, 0, "x"], [9, 4, 1, "x"], [3, 0, 99, "\0\0\0\x08"], [99, 0, 0, "?"], [7, 0, 0, "\0\0\0\0\0\0\0\0"], [5, 4, 2, "\0\0\0\x02"]]))
        steps.append(["rest"])
        return steps, None
    if chance(rng, 0.1):
        steps.append([pick(rng, ["close", "rst", "fin"]), conn])
        return steps, None
    return steps, conn


def tcp_exchange(g, feed):
    rng = g.rng
    conn = f"c{g.count()}"
    steps = [["open", conn, feed.name, feed.opening(g)]]
    kind = rng.randrange(8)
    script = pick(rng, [[["bytes", 5], ["send", "answer"]], [["bytes", 5], ["send", "bye"], ["close"]], [["accept"], ["send", "banner\r\n"], ["bytes", 5], ["send", "more"]], [["end"], ["send", "late"], ["close"]], [["bytes", 5], ["rst"]], [["bytes", 5], ["fill", 50000], ["close"]], [["accept"], ["close"]]])
    if kind < 5:
        steps.append(["origin", [script]])
        steps.append(["send", conn, pick(rng, ["hello", "hello world", "GET / HTTP/1.0\r\n\r\n"])])
        if script[-1][0] in ("close", "rst") and script[0][0] != "end":
            steps += [["eof", conn], ["rest"], ["close", conn]]
        elif script[0][0] == "end":
            steps += [["rest"], ["fin", conn], ["eof", conn]]
        else:
            steps += [["got", conn, 6], ["rest"], [pick(rng, ["fin", "rst", "close"]), conn]]
    elif kind < 6:
        steps += [["send", conn, ""], ["rest"], ["close", conn]]
    elif kind < 7:
        steps += [["origin", [[["bytes", 60000], ["send", "all"]]]], ["fill", conn, 60000], ["got", conn, 3], ["close", conn]]
    else:
        steps += [["origin", [[["bytes", 2], ["send", "ok"]]]], ["send", conn, "hi"], ["got", conn, 2], ["send", conn, "there"], ["rest"], ["fin", conn], ["rest"], ["rst", conn]]
    return steps
