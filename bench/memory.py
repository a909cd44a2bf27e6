#!/usr/bin/env python3
"""What an entry of a stick table and a rule take, in resident memory of a running process.

    memory.py --ours target/release/harrier [--peer haproxy] [--entries 1000000] [--rules 10000]

Entries: a table of `gpc0,http_req_rate(10s),conn_cnt,bytes_out_cnt` with IPv6 keys is filled over one
connection; what the process grew by, through the number of entries. Rules: RSS of a process that was started
with so many rules, in two shapes, and has answered one request. All traffic stays on 127.0.0.1.
"""
import argparse, os, re, signal, socket, subprocess, tempfile, time

PORT = 18400

HEAD = """
global
    nbthread 1
    maxconn 2000
defaults
    mode http
    timeout client 60s
    timeout server 60s
    timeout connect 5s
"""

TABLE = """
frontend f
    bind 127.0.0.1:{port}
    stick-table type ipv6 size 2m expire 1h store gpc0,http_req_rate(10s),conn_cnt,bytes_out_cnt
    http-request track-sc0 hdr(k)
    http-request sc-inc-gpc0(0)
    http-request return status 200
"""


def backends(n):
    """A backend of its own for each host."""
    rules = "".join(f"    use_backend b{i} if {{ hdr(host) -i h{i}.example }}\n" for i in range(n))
    ends = "".join(f"backend b{i}\n    server s 127.0.0.1:{PORT + 1}\n" for i in range(n))
    return f"frontend f\n    bind 127.0.0.1:{PORT}\n{rules}    default_backend b0\n{ends}"


def acls(n):
    """A named ACL and a rule for each host, one backend."""
    rule = "    acl h{0} hdr(host) -i site{0}.example.com\n    use_backend b if h{0}\n"
    rules = "".join(rule.format(i) for i in range(n))
    return f"frontend f\n    bind 127.0.0.1:{PORT}\n{rules}    default_backend b\nbackend b\n    server s 127.0.0.1:{PORT + 1}\n"


def headers(n):
    """Headers set under a condition."""
    rule = "    http-request set-header x-{0} %[src]-{0} if {{ path_beg /p{0}/ }}\n"
    rules = "".join(rule.format(i) for i in range(n))
    return f"frontend f\n    bind 127.0.0.1:{PORT}\n{rules}    http-request return status 200\n"


def rss(pid):
    """Resident bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


class Running:
    """A program with a configuration, stopped at the end."""

    def __init__(self, program, body):
        self.cfg = tempfile.NamedTemporaryFile("w", suffix=".cfg")
        self.cfg.write(HEAD + body)
        self.cfg.flush()
        self.process = subprocess.Popen([program, "-f", self.cfg.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        end = time.time() + 60
        while time.time() < end and self.process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", PORT)) == 0:
                    return self
            time.sleep(0.05)
        self.__exit__()
        raise SystemExit("it did not start")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def ask(sock, keys):
    """Requests in one go, and all their responses."""
    sock.sendall(b"".join(b"GET / HTTP/1.1\r\nhost: x\r\nk: %s\r\n\r\n" % k for k in keys))
    got = b""
    left = len(keys)
    while left:
        data = sock.recv(1 << 18)
        if not data:
            raise SystemExit("the connection was closed")
        got = got[-8:] + data
        left -= got.count(b"HTTP/1.1 ") - got[:8].count(b"HTTP/1.1 ")


def entry(program, n):
    """Bytes for each entry."""
    with Running(program, TABLE.format(port=PORT)) as it:
        with socket.create_connection(("127.0.0.1", PORT)) as sock:
            ask(sock, [b"::1"] * 200)
            before = rss(it.process.pid)
            for start in range(0, n, 200):
                ask(sock, [b"2001:db8:%x:%x::1" % (i >> 16, i & 0xFFFF) for i in range(start, start + 200)])
            return (rss(it.process.pid) - before) / n


def rules(program, body):
    """Resident bytes of a process with these rules."""
    with Running(program, body) as it:
        with socket.create_connection(("127.0.0.1", PORT)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nhost: h1.example\r\n\r\n")
            sock.recv(1000)
        time.sleep(1.5)
        return rss(it.process.pid)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ours", required=True)
    ap.add_argument("--peer")
    ap.add_argument("--entries", type=int, default=1_000_000)
    ap.add_argument("--rules", type=int, default=10_000)
    a = ap.parse_args()
    who = {"ours": a.ours} | ({"peer": a.peer} if a.peer else {})
    for name, program in who.items():
        if a.entries:
            print(f"{name}: {entry(program, a.entries):.1f} bytes an entry, {a.entries} entries", flush=True)
        for shape in (backends, acls, headers):
            if a.rules:
                print(f"{name}: {a.rules} {shape.__name__}: {rules(program, shape(a.rules)) / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
