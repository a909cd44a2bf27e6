#!/usr/bin/env python3
"""An SPOE agent that is killed and started again under load.

    spoe.py --binary PROGRAM [--seconds N] [--seed N]

Clients over real sockets, two threads, an agent of `tests/agents/spoa.py` that goes by SIGKILL and SIGSTOP and comes back.
Each request must be answered in time: with what the agent said, or with the error that `set-on-error` names. At rest
every gauge of the agents' backend is back at zero, and questions are answered again. Times are those that the program
writes to its log: on a busy machine the clients here wait for the processor longer than for their answers.
"""

import argparse
import collections
import csv
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import ports

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agents", "spoa.py")
CLIENTS = 12
# `timeout processing`, and what a request may take beside it on a busy machine.
PROCESSING, SLACK = 0.4, 3.0
# When an agent that came back must be asked again, and how soon a request that comes after that has its answer.
BACK, AGAIN = 0.5, 0.7
# A client that waits longer hangs.
HANGS = 30

passed = failed = 0


def check(name, good, seen=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else f': {seen}'}", flush=True)


def agent(folder):
    path = f"{folder}/a.sock"
    if os.path.exists(path):
        os.unlink(path)
    command = [sys.executable, AGENT, path, "--do", "delay=2 set=txn.v:str:said"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(path) and process.poll() is None:
        time.sleep(0.02)
    return process


def write(folder, goes_on):
    with open(f"{folder}/spoe", "w") as file:
        file.write(f"""[e]
spoe-agent ag
    messages m
    option var-prefix p
    option set-on-error err
    {'option continue-on-error' if goes_on else ''}
    timeout processing {int(PROCESSING * 1000)}ms
    use-backend agents
spoe-message m
    args a=method
    event on-frontend-http-request
""")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(f"{folder}/cfg", "w") as file:
        file.write(f"""
global
    nbthread 2
    stats socket {folder}/cli level admin
defaults
    mode http
    log stdout format raw local0
    timeout connect 300ms
    timeout client 10s
    timeout server 10s
frontend fe
    bind 127.0.0.1:{port}
    filter spoe engine e config {folder}/spoe
    log-format "%[date(0,ms)] %Ta %[var(txn.p.v),length] %ST"
    http-request return status 200 hdr x-v "%[var(txn.p.v)]" hdr x-err "%[var(txn.p.err)]"
backend agents
    mode spop
    timeout server 2s
    retries 1
    server a unix@{folder}/a.sock maxconn 8
""")
    return port


class Load:
    def __init__(self, port):
        self.port, self.counts, self.odd = port, collections.Counter(), []
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        line = None
        while not self.stop.is_set():
            try:
                line = line or socket.create_connection(("127.0.0.1", self.port))
                line.settimeout(HANGS)
                line.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                got = b""
                while b"\r\n\r\n" not in got:
                    part = line.recv(65536)
                    if not part:
                        raise OSError("closed")
                    got += part
                word = "said" if b"x-v: said" in got else "error" if b"x-err: " in got and b"x-err: \r" not in got else "odd"
            except OSError as error:
                word, line, got = "broken", None, str(error).encode()
            with self.lock:
                self.counts[word] += 1
                if word in ("odd", "broken"):
                    self.odd.append(got)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(HANGS + 1)
        return sum(thread.is_alive() for thread in self.threads)


def requests(folder):
    """What the program wrote of each: when it began, how long it took (s), whether the agent's word came."""
    with open(f"{folder}/log") as file:
        lines = [line.split() for line in file if line.endswith("\n")]
    lines = [line for line in lines if len(line) == 4]
    return [(int(date) / 1000 - int(took) / 1000, int(took) / 1000, length == "4") for date, took, length, _ in lines]


def answered_again(folder, back):
    """How long after the agent had to be asked again (and somebody came) a request began that it answered; None: none yet."""
    later = sorted(one for one in requests(folder) if one[0] >= back + BACK)
    said = [began for began, _, said in later if said]
    return said[0] - later[0][0] if said else None


def gauges(folder):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"{folder}/cli")
        line.sendall(b"show stat\n")
        text = b"".join(iter(lambda: line.recv(65536), b"")).decode()
    rows = [row for row in csv.DictReader(text[2:].splitlines()) if row["pxname"] == "agents"]
    names = ("qcur", "scur", "used_conn_cur")
    return {f"{row['svname']}.{name}": row[name] for row in rows for name in names if row[name] not in ("", "0")}


def play(program, goes_on, seconds, rng):
    name = "continue-on-error" if goes_on else "until an error"
    with tempfile.TemporaryDirectory() as folder:
        port = write(folder, goes_on)
        one = agent(folder)
        with open(f"{folder}/log", "w") as log:
            proxy = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], stdout=log, stderr=subprocess.DEVNULL)
        try:
            ports.await_listener(port)
            load, until = Load(port), time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(rng.uniform(0.1, 0.7))
                if rng.random() < 0.3:
                    one.send_signal(signal.SIGSTOP)
                    time.sleep(rng.uniform(0.1, 0.8))
                one.kill()
                one.wait()
                time.sleep(rng.uniform(0, 0.4))
                one = agent(folder)
            back, again = time.time(), None
            while again is None and time.time() < back + HANGS:
                time.sleep(0.1)
                again = answered_again(folder, back)
            hung = load.end()
            logged = requests(folder)
            slowest = max((took for _, took, _ in logged), default=HANGS)
            check(f"{name}: every request was answered", not hung and not load.odd, (hung, load.odd[:3]))
            check(f"{name}: in time", slowest < PROCESSING + SLACK, slowest)
            answers = load.counts["said"] + load.counts["error"]
            check(f"{name}: the log has them all", len(logged) >= answers, (len(logged), answers))
            check(f"{name}: both kinds of answers came", load.counts["said"] and load.counts["error"], load.counts)
            check(f"{name}: the agent is asked again", again is not None and again < AGAIN, again)
            left = gauges(folder)
            for _ in range(40):
                if not left:
                    break
                time.sleep(0.1)
                left = gauges(folder)
            check(f"{name}: gauges are back", not left, left)
            check(f"{name}: the program runs", proxy.poll() is None)
            print(f"     {dict(load.counts)}, slowest {slowest:.2f} s")
        finally:
            for process in (proxy, one):
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for goes_on in (True, False):
        play(os.path.abspath(args.binary), goes_on, args.seconds, rng)
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed != 0)


main()
