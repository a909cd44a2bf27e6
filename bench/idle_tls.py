#!/usr/bin/env python3
"""What an idle TLS connection of a client costs: resident memory per connection, after one request, of two programs.

    bench/idle_tls.py --ours target/release/harrier --peer /usr/sbin/haproxy [--count 5000]

Both programs run the same configuration, one after the other, on the loopback. For each version of TLS some connections are
opened and closed to warm up, then --count are opened, each asks once and stays. The figure is the growth of VmRSS divided
by their number, once it has settled. Exits 1 if ours is more than --bound (0.5) of the peer's.
"""

import argparse
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time

CONFIG = """
global
    nbthread 1
    maxconn {maxconn}
defaults
    mode http
    timeout client 10m
    timeout http-keep-alive 10m
frontend f
    bind 127.0.0.1:{port} ssl crt {pem}
    http-request return status 200 content-type text/plain string ok
"""

REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


def certificate(work):
    pem = os.path.join(work, "pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        command.split() + ["-keyout", pem + ".key", "-out", pem + ".crt"],
        check=True,
        stderr=subprocess.DEVNULL,
        timeout=30,
    )
    with open(pem, "w") as f:
        f.write(open(pem + ".crt").read() + open(pem + ".key").read())
    return pem


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def connect(context, port):
    raw = socket.create_connection(("127.0.0.1", port), 20)
    tls = context.wrap_socket(raw, server_hostname="localhost")
    tls.sendall(REQUEST)
    got = b""
    while not got.endswith(b"\r\n\r\nok"):
        piece = tls.recv(4096)
        if not piece:
            raise ConnectionError("closed")
        got += piece
    return tls


def settled(pid):
    """The memory once it no longer changes."""
    last = resident(pid)
    for _ in range(20):
        time.sleep(0.5)
        now = resident(pid)
        if now == last:
            break
        last = now
    return last


def measure(binary, version, count, work, pem):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    path = os.path.join(work, "idle.cfg")
    with open(path, "w") as f:
        f.write(CONFIG.format(port=port, pem=pem, maxconn=count + 1000))
    process = subprocess.Popen([binary, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        for _ in range(100):
            connect(context, port).close()
        before = settled(process.pid)
        kept = []
        for n in range(count):
            try:
                kept.append(connect(context, port))
            except OSError as error:
                sys.exit(f"connection {n}: {error}")
        after = settled(process.pid)
        # All of them still stand.
        for tls in kept[:: max(1, count // 50)]:
            tls.sendall(REQUEST)
            assert tls.recv(4096), "a connection that should be idle is gone"
        for tls in kept:
            tls.close()
        return (after - before) / count
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--bound", type=float, default=0.5)
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * args.count + 4000), hard))
    good = True
    with tempfile.TemporaryDirectory() as work:
        pem = certificate(work)
        for name, version in (("TLS 1.3", ssl.TLSVersion.TLSv1_3), ("TLS 1.2", ssl.TLSVersion.TLSv1_2)):
            ours = measure(args.ours, version, args.count, work, pem)
            line = f"{name}: ours {ours:.2f} KiB a connection"
            if args.peer:
                peer = measure(args.peer, version, args.count, work, pem)
                good &= ours <= args.bound * peer
                line += f", peer {peer:.2f}, ratio {ours / peer:.2f}"
            print(line, flush=True)
    return not good


if __name__ == "__main__":
    sys.exit(main())
