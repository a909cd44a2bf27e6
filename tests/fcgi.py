#!/usr/bin/env python3
"""FastCGI servers in real use behind a program: php-fpm, fcgiwrap, Python's `flup`, Go's net/http/fcgi.

    fcgi.py --binary PROGRAM [--oracle HAPROXY] [--size MB] [--only WORD]

Pages, uploads and downloads (100 MB unless said), errors, aborted requests, clients of HTTP/1.0 and 1.1. With `--oracle`
HAProxy serves the same, and every difference in status, framing and body fails. A server that is not there is skipped
(Debian: php-fpm, fcgiwrap, golang-go; PyPI: flup6).
"""

import argparse
import glob
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import ports

passed = failed = skipped = 0

PHP = r"""<?php
$n = intval($_GET['n'] ?? 0);
switch ($_GET['p'] ?? '') {
case 'env': header('Content-Type: text/plain');
    ksort($_SERVER);
    foreach ($_SERVER as $k => $v)
        if (!preg_match('/^REQUEST_TIME|_PORT$/', $k)) echo "$k=" . str_replace($_SERVER['DOCUMENT_ROOT'], 'ROOT', $v) . "\n";
    break;
case 'count': $h = fopen('php://input', 'r'); $c = 0; while (!feof($h)) $c += strlen(fread($h, 65536)); echo "$c\n"; break;
case 'big': if (isset($_GET['len'])) header("Content-Length: $n");
    for ($x = str_repeat('0123456789', 1000); $n > 0; $n -= 10000) echo substr($x, 0, $n);
    break;
case 'status': http_response_code($n); header('X-A: b'); if ($n != 204 && $n != 304) echo "body\n"; break;
case 'redirect': header('Location: /x'); break;
case 'slow': echo "a\n"; ob_flush(); flush(); usleep(300000); echo "b\n"; break;
case 'wait': for ($i = 0; $i < 20; $i++) { echo "x"; ob_flush(); flush(); usleep(50000); } break;
default: echo "early\n";
}
"""

CGI = """#!/usr/bin/python3 -u
import os, sys, time
from urllib.parse import parse_qs
q = parse_qs(os.environ.get("QUERY_STRING", ""))
p, n = q["p"][0], int(q.get("n", ["0"])[0])
say = sys.stdout.write
if p == "status":
    say(f"Status: {n} Word\\nX-A: b\\n\\n" + ("" if n in (204, 304) else "body\\n"))
    sys.exit()
if p == "redirect":
    say("Status: 302 Found\\nLocation: /x\\n\\n")
    sys.exit()
say("Content-Type: text/plain\\n" + (f"Content-Length: {n}\\n" if "len" in q else "") + "\\n")
if p == "env":
    for name, value in sorted(os.environ.items()):
        if not name.endswith("_PORT"):
            say(f"{name}={value.replace(os.environ['DOCUMENT_ROOT'], 'ROOT')}\\n")
elif p == "count":
    got = 0
    while part := os.read(0, 65536):
        got += len(part)
    say(f"{got}\\n")
elif p == "big":
    sys.stdout.flush()
    for left in range(n, 0, -10000):
        os.write(1, b"0123456789" * (min(10000, left) // 10))
elif p in ("slow", "wait"):
    for part in (["a\\n", "b\\n"] if p == "slow" else ["x"] * 20):
        say(part)
        time.sleep(.3 if p == "slow" else .05)
else:
    sys.stdin.read()  # fcgiwrap answers 502 if its script leaves a body unread.
    say("early\\n")
"""

FLUP = """
import socket, sys, time
from urllib.parse import parse_qs
from flup.server.fcgi import WSGIServer

def app(env, start):
    q = parse_qs(env.get("QUERY_STRING", ""))
    p, n, text = q["p"][0], int(q.get("n", ["0"])[0]), [("Content-Type", "text/plain")]
    if p == "status":
        start(f"{n} Word", text + [("X-A", "b")])
        return [] if n in (204, 304) else [b"body\\n"]
    if p == "redirect":
        start("302 Found", [("Location", "/x")])
        return []
    start("200 OK", text + ([("Content-Length", str(n))] if "len" in q else []))
    if p == "env":
        names = "REQUEST_METHOD SCRIPT_NAME QUERY_STRING SERVER_PROTOCOL CONTENT_LENGTH HTTP_X_Y HTTPS".split()
        return ["".join(f"{name}={env[name]}\\n" for name in names if name in env).encode()]
    if p == "count":
        got = 0
        while part := env["wsgi.input"].read(65536):
            got += len(part)
        return [f"{got}\\n".encode()]
    if p == "big":
        return (b"0123456789" * (min(10000, left) // 10) for left in range(n, 0, -10000))
    if p in ("slow", "wait"):
        def parts():
            for part in ([b"a\\n", b"b\\n"] if p == "slow" else [b"x"] * 20):
                yield part
                time.sleep(.3 if p == "slow" else .05)
        return parts()
    return [b"early\\n"]

with socket.create_server(("127.0.0.1", 0)) as door:
    port = door.getsockname()[1]
print(port, flush=True)
WSGIServer(app, bindAddress=("127.0.0.1", port)).run()
"""

GO = """package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"strconv"
	"strings"
	"time"
)

func main() {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(door.Addr().(*net.TCPAddr).Port)
	panic(fcgi.Serve(door, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		n, _ := strconv.Atoi(q.Get("n"))
		flush := func() { w.(http.Flusher).Flush() }
		switch q.Get("p") {
		case "env":
			fmt.Fprintf(w, "%s %s %s %s %d %v\\n", r.Method, r.URL, r.Proto, r.Host, r.ContentLength, r.Header["X-Y"])
		case "count":
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprintln(w, n, err)
		case "big":
			if q.Get("len") != "" {
				w.Header().Set("Content-Length", q.Get("n"))
			}
			for text := strings.Repeat("0123456789", 1000); n > 0; n -= 10000 {
				if _, err := io.WriteString(w, text[:min(n, 10000)]); err != nil {
					return
				}
			}
		case "status":
			w.Header().Set("X-A", "b")
			w.WriteHeader(n)
			if n != 204 && n != 304 {
				io.WriteString(w, "body\\n")
			}
		case "redirect":
			w.Header().Set("Location", "/x")
			w.WriteHeader(302)
		case "slow":
			io.WriteString(w, "a\\n")
			flush()
			time.Sleep(300 * time.Millisecond)
			io.WriteString(w, "b\\n")
		case "wait":
			for i := 0; i < 20; i++ {
				io.WriteString(w, "x")
				flush()
				time.Sleep(50 * time.Millisecond)
			}
		default:
			io.WriteString(w, "early\\n")
		}
	})))
}
"""


def check(name, good, seen=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else f': {seen}'}", flush=True)


def printed(command):
    """A server that prints its port."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = process.stdout.readline()
    return (process, f"127.0.0.1:{int(line)}") if line.strip() else None


def once_there(process, path):
    """A server that makes its socket."""
    for _ in range(100):
        if os.path.exists(path):
            return process, path
        time.sleep(0.05)
    process.kill()
    return None


def php(folder):
    programs = sorted(glob.glob("/usr/sbin/php-fpm*"))
    if not programs:
        return None
    with open(f"{folder}/fpm.conf", "w") as file:
        file.write(f"[global]\nerror_log = {folder}/fpm.log\n[w]\nuser = nobody\ngroup = nogroup\nlisten = {folder}/fpm.sock\n"
                   "listen.mode = 0666\npm = static\npm.max_children = 4\nphp_admin_value[post_max_size] = 200M\n"
                   "php_admin_value[output_buffering] = 4096\nphp_admin_flag[enable_post_data_reading] = off\n")
    command = [programs[-1], "-F", "-R", "-y", f"{folder}/fpm.conf"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return once_there(process, f"{folder}/fpm.sock")


def fcgiwrap(folder):
    program = shutil.which("fcgiwrap", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not program:
        return None
    with open(f"{folder}/a.php", "w") as file:
        file.write(CGI)
    os.chmod(f"{folder}/a.php", 0o755)
    process = subprocess.Popen([program, "-c", "4", "-s", f"unix:{folder}/wrap.sock"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    return once_there(process, f"{folder}/wrap.sock")


def flup(folder):
    if subprocess.run([sys.executable, "-c", "import flup.server.fcgi"], stderr=subprocess.DEVNULL).returncode:
        return None
    with open(f"{folder}/app.py", "w") as file:
        file.write(FLUP)
    return printed([sys.executable, f"{folder}/app.py"])


def go(folder):
    if not shutil.which("go"):
        return None
    with open(f"{folder}/app.go", "w") as file:
        file.write(GO)
    built = subprocess.run(["go", "build", "-o", f"{folder}/app", f"{folder}/app.go"], capture_output=True)
    return None if built.returncode else printed([f"{folder}/app"])


class Proxy:
    """A program in front of a server."""

    def __init__(self, program, address, folder):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        with open(f"{folder}/cfg", "w") as file:
            file.write(f"""
global
    nbthread 1
    stats socket {folder}/cli level admin
fcgi-app app
    docroot {folder}
    index a.php
defaults
    mode http
    timeout connect 5s
    timeout client 15s
    timeout server 15s
frontend fe
    bind 127.0.0.1:{self.port}
    default_backend be
backend be
    use-fcgi-app app
    server s {address} proto fcgi
""")
        command = [program, "-db", "-f", f"{folder}/cfg"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ports.await_listener(self.port)

    def ask(self, head, body=b""):
        """All that comes until the connection ends: status, framing fields, the body's length and hash."""
        line = socket.create_connection(("127.0.0.1", self.port))
        line.settimeout(30)

        def send():
            try:
                line.sendall(head + body)
            except OSError:
                pass

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        got = bytearray()
        try:
            while part := line.recv(1 << 16):
                got += part
        except OSError as error:
            got += str(error).encode()
        sender.join(5)
        line.close()
        return shown(bytes(got))

    def running(self):
        """Streams at the server, by the runtime API."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(f"{self.folder}/cli")
            line.sendall(b"show stat\n")
            rows = b"".join(iter(lambda: line.recv(65536), b"")).decode().splitlines()
        return next(int(row.split(",")[4]) for row in rows if row.startswith("be,s,"))

    def end(self):
        self.process.terminate()
        self.process.wait()


def shown(got):
    head, _, body = got.partition(b"\r\n\r\n")
    lines = [line.decode("latin1") for line in head.split(b"\r\n")]
    fields = sorted(line for line in lines[1:] if not line.lower().startswith(("date:", "x-powered-by:", "server:")))
    if "transfer-encoding: chunked" in fields:
        body = unchunked(body)
    # Whether a body is whole when its head goes is a matter of time.
    fields = [f for f in fields if not f.startswith(("transfer-encoding", "content-length"))]
    body = re.sub(rb"(SERVER_SOFTWARE=\w+).*", rb"\1", body)
    text = body.decode("latin1") if len(body) < 500 else f"{len(body)} {hashlib.md5(body).hexdigest()}"
    return lines[0], fields, text


def unchunked(body):
    out, at = bytearray(), 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            return bytes(out) + b"<cut>"
        size = int(body[at:end], 16)
        if size == 0:
            return bytes(out)
        out += body[end + 2 : end + 2 + size]
        at = end + 4 + size


def request(method, query, version="1.1", body=b"", fields=""):
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    close = "Connection: close\r\n" if version == "1.1" else ""
    return f"{method} /a.php?{query} HTTP/{version}\r\nHost: h\r\n{close}{fields}{length}\r\n".encode(), body


def requests(size):
    for version in ("1.1", "1.0"):
        for query in ("p=early", "p=slow", "p=redirect", "p=env", *(f"p=status&n={n}" for n in (201, 204, 304, 404, 500))):
            yield f"{version} {query}", request("GET", query, version)
        yield f"{version} upload", request("POST", "p=count", version, b"x" * 100_000)
        yield f"{version} unread upload", request("POST", "p=early", version, b"x" * 1_000_000)
        yield f"{version} download", request("GET", f"p=big&n={size}", version)
        yield f"{version} download of known length", request("GET", f"p=big&len=1&n={size}", version)
    yield "fields", request("POST", "p=env", body=b"abc", fields="X-Y: z\r\nProxy: no\r\n")
    yield "large upload", request("POST", "p=count", body=b"x" * size)


def right(name, seen, size):
    """What every server must answer."""
    line, fields, body = seen
    version = name.split()[0] if name[0] == "1" else "1.1"
    good = line.startswith(f"HTTP/{version} ")
    status = next((n for n in ("201", "204", "304", "404", "500") if name.endswith(n)), "302" if "redirect" in name else "200")
    good &= line.split(" ")[1] == status
    if "download" in name:
        good &= body.startswith(f"{size} ")
    if name == "large upload":
        good &= body.startswith(str(size))
    return good and "<cut>" not in body


def aborts(proxy):
    """Clients that leave in the midst of an answer: nothing stays behind, and others are served."""
    for _ in range(8):
        line = socket.create_connection(("127.0.0.1", proxy.port))
        line.sendall(request("GET", "p=wait")[0])
        line.recv(1)
        line.close()
    for _ in range(60):
        if proxy.running() == 0:
            break
        time.sleep(0.1)
    return proxy.running() == 0 and proxy.ask(*request("GET", "p=early"))[2] == "early\n"


def play(program, start, size):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(f"{folder}/a.php", "w") as file:
            file.write(PHP)
        server = start(folder)
        if not server:
            return None
        process, address = server
        proxy = Proxy(program, address, folder)
        try:
            seen = {name: proxy.ask(*sent) for name, sent in requests(size)}
            seen["aborted"] = aborts(proxy)
        finally:
            proxy.end()
            if start is fcgiwrap:
                os.killpg(process.pid, signal.SIGTERM)  # Its children outlive it.
            else:
                process.send_signal(signal.SIGTERM if start is php else signal.SIGKILL)
            process.wait()
        return seen


def main():
    global skipped
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--size", type=int, default=100, help="megabytes")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    size = args.size * 1_000_000
    for name, start in (("php-fpm", php), ("fcgiwrap", fcgiwrap), ("flup", flup), ("go", go)):
        if args.only not in name:
            continue
        ours = play(os.path.abspath(args.binary), start, size)
        if ours is None:
            print(f"skip {name} is not here")
            skipped += 1
            continue
        wrong = [f"{what}: {seen}" for what, seen in ours.items() if what != "aborted" and not right(what, seen, size)]
        check(f"{name}: answers", not wrong, wrong)
        check(f"{name}: aborted requests", ours["aborted"])
        if args.oracle:
            hers = play(os.path.abspath(args.oracle), start, size)
            for what in ours:
                check(f"{name}: {what} as HAProxy", ours[what] == hers[what], f"{ours[what]} and {hers[what]}")
    print(f"outside: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


main()
