#!/usr/bin/env python3
"""Real clients against a real build: curl, h2load, Chromium, grpcio, and WebSockets over streams (RFC 8441).

    tests/clients/run.py --binary target/quick/harrier [--size MB] [--only WORD]

Each case is bounded in time. A tool that is missing makes its cases skipped; PYTHON_GRPC names a Python that has grpcio.
The last line counts: `outside: N passed, N failed, N skipped`.
"""

import argparse
import base64
import hashlib
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import origin

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import ports


class Skip(Exception):
    pass


CONFIG = """
global
    log {log} format raw local0
    tune.h2.fe.max-concurrent-streams {streams}
    stats socket {stats} level admin
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
    timeout tunnel 30s
    log global
    log-format "%HV %ST %ts %[bc_http_major] %HM %HPO"
frontend clear
    bind 127.0.0.1:{clear}
    use_backend two if {{ req.hdr(x-back) two }}
    default_backend one
frontend secure
    bind 127.0.0.1:{tls} ssl crt {pem} alpn h2,http/1.1
    use_backend two if {{ req.hdr(x-back) two }}
    default_backend one
frontend secure-two
    bind 127.0.0.1:{tls_two} ssl crt {pem} alpn h2,http/1.1
    default_backend two
backend one
    server s 127.0.0.1:{origin}
backend two
    server s 127.0.0.1:{middle} proto h2
listen middle
    bind 127.0.0.1:{middle} proto h2
    no log
    server s 127.0.0.1:{origin}
listen grpc
    bind 127.0.0.1:{grpc} proto h2
    server s 127.0.0.1:{grpc_server} proto h2
listen grpc-secure
    bind 127.0.0.1:{grpc_tls} ssl crt {pem} alpn h2
    server s 127.0.0.1:{grpc_server} proto h2
"""


class Proxy:
    """The program under test with a configuration."""

    def __init__(self, args, work, grpc_server, streams=100):
        names = ("clear", "tls", "tls_two", "middle", "grpc", "grpc_tls")
        self.ports = {name: ports.free() for name in names}
        self.pem = make_certificate(work)
        self.sink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sink.bind(os.path.join(work, f"log{streams}"))
        self.sink.settimeout(0.2)
        self.stats = os.path.join(work, f"stats{streams}")
        path = os.path.join(work, f"proxy{streams}.cfg")
        with open(path, "w") as f:
            f.write(
                CONFIG.format(
                    log=self.sink.getsockname(),
                    stats=self.stats,
                    streams=streams,
                    pem=self.pem,
                    origin=args.origin,
                    grpc_server=grpc_server,
                    **self.ports,
                )
            )
        self.process = subprocess.Popen([args.binary, "-db", "-f", path], stderr=subprocess.PIPE)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.ports["clear"]), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(self.process.stderr.read().decode())
                time.sleep(0.05)
        sys.exit("the program does not start")

    def lines(self):
        """The log lines since the last call."""
        lines = []
        while True:
            try:
                lines.append(self.sink.recv(65536).decode().strip())
            except OSError:
                return lines

    def url(self, kind, path):
        scheme, port = ("https", "tls") if kind == "h2-tls" else ("http", "clear")
        return f"{scheme}://localhost:{self.ports[port]}{path}"

    def stop(self):
        alive = self.process.poll() is None
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.sink.close()
        assert alive, "the program died"


def make_certificate(work):
    pem = os.path.join(work, "pem")
    if not os.path.exists(pem):
        run(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split()
            + ["-addext", "subjectAltName=DNS:localhost", "-keyout", pem + ".key", "-out", pem + ".crt"]
        )
        with open(pem, "w") as f:
            f.write(open(pem + ".crt").read() + open(pem + ".key").read())
    return pem


def run(command, limit=60, stdin=None):
    """Runs a command within a time; its output."""
    if shutil.which(command[0]) is None:
        raise Skip(f"{command[0]} is missing")
    done = subprocess.run(
        ["timeout", "-k", "5", str(limit), *command], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if done.returncode == 77:
        raise Skip("the tool says so")
    told = (done.stdout + done.stderr).decode(errors="replace")[-1500:]
    assert done.returncode == 0, f"{' '.join(command[:3])} ended with {done.returncode}: {told}"
    return done.stdout


CURL = {"h1": ["--http1.1"], "h2c": ["--http2-prior-knowledge"], "h2-tls": ["--http2", "-k"]}
VERSION = {"h1": "1.1", "h2c": "2", "h2-tls": "2"}


def curl(kind, back, *words):
    return ["curl", "-sS", "--fail", *CURL[kind], "-H", f"x-back: {back}", *words]


def page(proxy, args, kind, back):
    told = run(curl(kind, back, "-w", "%{http_version}", proxy.url(kind, "/")), 20).decode()
    assert told == f"hello\n{VERSION[kind]}", told
    (line,) = [l for l in proxy.lines() if "BADREQ" not in l]
    assert line.split()[3] == {"one": "1", "two": "2"}[back], line


def upload(proxy, args, kind, back):
    """A file with a length, and the same as a stream without."""
    for source in (["-T", args.file], ["-T", "-"]):
        with open(args.file, "rb") as stdin:
            answer = run(curl(kind, back, "-H", "expect:", *source, proxy.url(kind, "/up")), 120, stdin)
        assert answer.decode().split() == [args.sum, str(args.bytes)], answer


def download(proxy, args, kind, back):
    for path in (f"/bytes/{args.bytes}", f"/bytes/{args.bytes}/chunked"):
        got = os.path.join(args.work, "got")
        run(curl(kind, back, "-o", got, proxy.url(kind, path)), 120)
        assert sum_of(got) == args.pattern, path
        os.unlink(got)


def sum_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def nghttp(proxy, args, kind):
    told = run(["nghttp", "-ns", "-m", "20", proxy.url(kind, "/")], 30).decode()
    assert told.count(" 200 ") == 20, told


def many_streams(proxy, args, kind, back):
    """A thousand streams of one connection at once, or as many as are offered."""
    command = ["h2load", "-n3000", "-c1", "-m1000", "-t1", "-H", f"x-back: {back}", proxy.url(kind, "/bytes/2000")]
    told = run(command, 90).decode()
    assert "3000 succeeded, 0 failed, 0 errored, 0 timeout" in told, told
    assert "status codes: 3000 2xx" in told, told


def grpc(proxy, args, secure):
    if proxy.grpc is None:
        raise Skip("grpcio is missing")
    words = [str(proxy.ports["grpc_tls"]), proxy.pem + ".crt"] if secure else [str(proxy.ports["grpc"])]
    told = run([args.python, os.path.join(HERE, "grpc_case.py"), "call", *words], 60)
    assert told.strip() == b"ok", told
    for line in proxy.lines():
        version, _, state, back = line.split()[:4]
        assert (version, back) == ("HTTP/2.0", "2"), line
        assert state == "--" or line.endswith("/Down"), line


def masked(data, opcode=1):
    length = bytes([128 | len(data)]) if len(data) < 126 else bytes([254]) + struct.pack("!H", len(data))
    mask = b"\x01\x02\x03\x04"
    return bytes([128 | opcode]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def plain(data):
    length = bytes([len(data)]) if len(data) < 126 else bytes([126]) + struct.pack("!H", len(data))
    return b"\x81" + length + data


MESSAGES = [b"hello", b"x" * 30000, b"bye"]


def websocket_h1(proxy, args, back):
    """A WebSocket of HTTP/1 to a server of either version."""
    with socket.create_connection(("127.0.0.1", proxy.ports["clear"]), 10) as s:
        key = base64.b64encode(b"0123456789abcdef").decode()
        s.sendall(
            f"GET /ws HTTP/1.1\r\nhost: localhost\r\nx-back: {back}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n".encode()
        )
        stream = s.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.read(1)
            assert byte, head
            head += byte
        assert head.startswith(b"HTTP/1.1 101"), head
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        assert b"sec-websocket-accept: " + accept in head.lower() or accept in head, head
        for message in MESSAGES:
            s.sendall(masked(message))
            expected = plain(message)
            assert stream.read(len(expected)) == expected
        s.sendall(masked(b"\x03\xe8", 8))
        assert stream.read(4) == b"\x88\x02\x03\xe8"


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def websocket_h2(proxy, args, back):
    """A WebSocket over a stream (RFC 8441), frames written by hand."""
    with socket.create_connection(("127.0.0.1", proxy.ports["clear"]), 10) as s:
        fields = [
            (b":method", b"CONNECT"),
            (b":protocol", b"websocket"),
            (b":scheme", b"http"),
            (b":path", b"/ws"),
            (b":authority", b"localhost:%d" % proxy.ports["clear"]),
            (b"sec-websocket-version", b"13"),
            (b"x-back", back.encode()),
        ]
        block = b"".join(literal(*field) for field in fields)
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, block))
        stream, got, status, offered = s.makefile("rb"), b"", None, False
        sent = [masked(message) for message in MESSAGES]
        expected = b"".join(plain(message) for message in MESSAGES)
        while len(got) < len(expected):
            head = stream.read(9)
            assert len(head) == 9, f"ended after {got[:50]} of {status}"
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            payload = stream.read(length)
            if kind == 4 and not flags & 1:
                offered |= b"\0\x08\0\0\0\x01" in payload
                s.sendall(frame(4, 1, 0))
            elif kind == 1:
                # The index of ":status: 200" in the static table.
                status = payload[:1]
                assert status == b"\x88", payload
                for message in sent:
                    for at in range(0, len(message), 16384):
                        s.sendall(frame(0, 0, 1, message[at : at + 16384]))
            elif kind == 0:
                got += payload
                s.sendall(frame(8, 0, 0, struct.pack("!I", max(length, 1))) + frame(8, 0, 1, struct.pack("!I", max(length, 1))))
            assert kind not in (3, 7), (kind, payload)
        assert offered, "the settings offer extended CONNECT"
        assert got == expected


def browser(proxy, args, back):
    """Chromium loads a page over HTTP/2, and its WebSocket goes over the same connection."""
    port = proxy.ports["tls" if back == "one" else "tls_two"]
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
        "--disable-background-networking", "--no-first-run", f"--user-data-dir={args.work}/chromium", "--timeout=20000",
        "--dump-dom", f"https://localhost:{port}/page",
    ]  # fmt: skip
    proxy.lines()
    while origin.CLOSED.acquire(blocking=False):
        pass
    told = run(command, 60).decode()
    assert "echoed 3" in told, re.sub(r"<script>.*</script>", "", told, flags=re.S)[-500:]
    lines = proxy.lines()
    version = {line.split()[5]: line.split()[0] for line in lines}
    assert version.get("/page") == "HTTP/2.0" and version.get("/ws") == "HTTP/2.0", lines


def cases():
    for kind in ("h1", "h2c", "h2-tls"):
        for back in ("one", "two"):
            yield f"page {kind} to {back}", page, (kind, back)
            yield f"upload {kind} to {back}", upload, (kind, back)
            yield f"download {kind} to {back}", download, (kind, back)
    for kind in ("h2c", "h2-tls"):
        yield f"nghttp {kind}", nghttp, (kind,)
        for back in ("one", "two"):
            yield f"many-streams {kind} to {back}", many_streams, (kind, back)
    yield "grpc h2c", grpc, (False,)
    yield "grpc tls", grpc, (True,)
    for back in ("one", "two"):
        yield f"websocket h1 to {back}", websocket_h1, (back,)
        yield f"websocket h2 to {back}", websocket_h2, (back,)
        yield f"chromium to {back}", browser, (back,)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--size", type=int, default=100, help="of uploads and downloads, in MB")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    args.binary = os.path.abspath(args.binary)
    args.python = os.environ.get("PYTHON_GRPC", "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable)
    args.bytes = args.size * 1_000_000 + 7
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    with tempfile.TemporaryDirectory() as work:
        args.work, args.file = work, os.path.join(work, "up")
        with open(args.file, "wb") as f:
            f.writelines(origin.pattern(args.bytes))
        args.sum = args.pattern = sum_of(args.file)
        args.origin = origin.start()
        server = subprocess.Popen(
            [args.python, os.path.join(HERE, "grpc_case.py"), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        grpc_port = server.stdout.readline().strip()
        proxies = {n: Proxy(args, work, int(grpc_port or 9), n) for n in (100, 1000)}
        for name, case, words in cases():
            for streams, proxy in proxies.items():
                if args.only not in name or (streams != 100 and case is not many_streams):
                    continue
                proxy.grpc = grpc_port or None
                proxy.lines()
                label = f"{name}" if streams == 100 else f"{name}, {streams} offered"
                began, why = time.monotonic(), ""
                try:
                    case(proxy, args, *words)
                    state = "ok"
                except Skip as skip:
                    state, why = "skip", str(skip)
                except Exception as error:  # whatever it is, the other cases still run
                    state, why = "FAIL", f"{type(error).__name__} {error}"
                counts[state] += 1
                print(f"{state:4} clients/{label} ({time.monotonic() - began:.1f} s) {why}", flush=True)
        for proxy in proxies.values():
            try:
                proxy.stop()
            except AssertionError as error:
                counts["FAIL"] += 1
                print(f"FAIL clients: {error}")
        server.stdin.close()
        server.wait(10)
    print(f"outside: {counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return counts["FAIL"] != 0


if __name__ == "__main__":
    sys.exit(main())
