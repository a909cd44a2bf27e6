#!/usr/bin/env python3
"""handover.py PROGRAM [OTHER]: listening sockets go from one process to the next with `-x` under load, PROGRAM to PROGRAM, and with OTHER
(real HAProxy) both ways. Ten hand-overs each; every request must be answered, and the entries of a stick table must come along, over
the local peer. Loopback only; prints a line for each way, exits 1 if a request failed or entries were lost."""
import os, signal, socket, subprocess, sys, tempfile, threading, time

COUNT = 10
ENTRIES = 200


def config(folder, n):
    return f"""global
    nbthread 2
    stats socket {folder}/s{n} level admin expose-fd listeners
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
peers ps
    bind abns@{os.path.basename(folder)}-peers
    server me
backend t
    stick-table type string len 32 size 1k expire 1h peers ps store gpc0
frontend f
    bind {folder}/u
    bind 127.0.0.1:{PORT}
    bind abns@{os.path.basename(folder)}
    http-request return status 200 content-type text/plain string ok
"""


def request(kind, address):
    with socket.socket(kind) as s:
        s.settimeout(5)
        s.connect(address)
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        got = b""
        while b := s.recv(4096):
            got += b
        return got.startswith(b"HTTP/1.1 200") and got.endswith(b"ok")


def load(kind, address, counts, stop):
    while not stop.is_set():
        try:
            good = request(kind, address)
        except OSError as e:
            good = False
            counts["why"] = repr(e)
        counts["good" if good else "bad"] += 1


def serves(path):
    for _ in range(500):
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                return True
        except OSError:
            time.sleep(0.01)
    return False


def command(path, text):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(path)
        s.sendall(text.encode() + b"\n")
        return b"".join(iter(lambda: s.recv(65536), b"")).decode()


def has_entries(path):
    """Whether the table is there, with what came along and what was set in between."""
    for _ in range(500):
        if f"used:{ENTRIES}\n" in command(path, "show table t"):
            return True
        time.sleep(0.01)
    return False


def way(first, second):
    """`first` and `second` follow one another."""
    with tempfile.TemporaryDirectory(prefix="handover") as folder:
        def start(program, n, *words):
            path = f"{folder}/{n}.cfg"
            with open(path, "w") as f:
                f.write(config(folder, n))
            p = subprocess.Popen([program, "-db", "-L", "me", "-f", path, *words], stdout=log, stderr=log)
            assert serves(f"{folder}/s{n}"), f"{program} does not start"
            return p

        log = open(f"{folder}/log", "w")
        old, stop = start(first, 0), threading.Event()
        counts = {"good": 0, "bad": 0, "why": ""}
        for n in range(ENTRIES):
            command(f"{folder}/s0", f"set table t key k{n} data.gpc0 {n}")
        places = [(socket.AF_UNIX, f"{folder}/u"), (socket.AF_UNIX, "\0" + os.path.basename(folder).ljust(107, "\0")),
                  (socket.AF_INET, ("127.0.0.1", PORT))]
        threads = [threading.Thread(target=load, args=(*place, counts, stop)) for place in places * 2]
        for t in threads:
            t.start()
        try:
            for n in range(1, COUNT + 1):
                time.sleep(0.1)
                program = second if n % 2 else first
                new = start(program, n, "-x", f"{folder}/s{n - 1}", "-sf", str(old.pid))
                old.wait(20)
                old = new
                if not has_entries(f"{folder}/s{n}"):
                    counts["bad"] += 1
                    counts["why"] = f"entries are lost at {n}"
        finally:
            stop.set()
            for t in threads:
                t.join()
            old.terminate()
            old.wait(20)
        name = f"{os.path.basename(first)} and {os.path.basename(second)}"
        print(f"{name}: {COUNT} hand-overs, {counts['good']} answered, {counts['bad']} not {counts['why']}")
        return counts["bad"]


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
programs = sys.argv[1:]
bad = way(programs[0], programs[0])
if len(programs) > 1:
    bad += way(programs[0], programs[1])
sys.exit(bad > 0)
