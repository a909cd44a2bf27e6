#!/usr/bin/env python3
"""Life-cycle changes under load: no request may fail.

usage: tests/soak/lifecycle.py BINARY [--seconds N] [--scene NAME]

BINARY is harrier or real HAProxy. Each scene runs it with two threads under four kinds of load at a time (HTTP/1 with
keep-alive, HTTP/1 with a connection for each request, HTTP/2, HTTP/2 over TLS) and does one thing again and again for N seconds:

  pause     `disable frontend` and `enable frontend`
  signals   SIGTTOU and SIGTTIN
  reload    a new process is started with -sf and the pid of the old one; both listen on the same port (SO_REUSEPORT)
  master    SIGUSR2 to a master
  in-place  `reload in-place` to a master's socket, with a changed configuration (Harrier alone)
  servers   `add server`, some requests to it, `del server`
  backends  `add backend` with a server, some requests to it, `del backend`
  idle      nothing, but servers close their connections at rest
  limits    more connections than `maxconn` of frontend and listener and `rate-limit sessions` admit, which have to hold

A request fails if a fresh connection is refused or ends without an answer, if the body is short or wrong, or if the status is
not 200. Not counted as failures, but retried: a request on a kept connection that was closed before it was answered (a
browser does the same), and in the scenes pause and signals whatever happened while nobody listened, if it succeeds within
three seconds. At the end of a scene, at rest, the gauges of `show info` and `show stat` have to be zero, `del server` has to
work, and memory must not have grown. Exits 1 if anything failed. Only the standard library, only loopback.
"""

import argparse
import multiprocessing
import os
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

CERTIFICATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../differential/program/certs/www.pem")

CONFIG = """
global
    nbthread 2
    {chroot}
    stats socket {cli} level admin
defaults base
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    retry-on conn-failure empty-response
    option redispatch
    retries 3
defaults dyn from base
    balance roundrobin
frontend most from base
    bind 127.0.0.1:{port3}
    maxconn 5
frontend bound from base
    bind 127.0.0.1:{port4} maxconn 3
frontend rated from base
    bind 127.0.0.1:{port5}
    rate-limit sessions 50
    default_backend b
frontend f from base
    bind 127.0.0.1:{port}
    bind 127.0.0.1:{port2} proto h2
    bind 127.0.0.1:{port6} ssl crt {certificate} alpn h2
    http-request set-var(txn.turn) int({turn})
    http-request set-var(txn.be) path,field(2,/)
    use_backend %[var(txn.be)] if {{ var(txn.be) -m beg dyn }}
    default_backend b
backend b from base
    balance roundrobin
    http-reuse always
    server s1 127.0.0.1:{s1} maxconn 100
    server s2 127.0.0.1:{s2}
"""

# ---------------------------------------------------------------------------------------------------- servers


def body_of(target):
    """What the server answers: so long and with such bytes that an answer to another request is noticed."""
    seed = re.sub(rb"[^0-9]", b"", target.rsplit(b"/", 1)[-1]) or b"0"
    length = int(seed) % 3000
    return (seed + b".") * (length // (len(seed) + 1) + 1)


def serve_connection(sock, closing):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buf = b""
    try:
        while True:
            while b"\r\n\r\n" not in buf:
                # At rest some are closed early.
                sock.settimeout(random.choice((0.02, 0.2, 3)) if closing else 30)
                more = sock.recv(65536)
                if not more:
                    return
                buf += more
            head, buf = buf.split(b"\r\n\r\n", 1)
            body = body_of(head.split(b" ", 2)[1])
            sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    except OSError:
        pass
    finally:
        sock.close()


def serve(listener, closing):
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_connection, args=(sock, closing), daemon=True).start()


def origin(closing):
    """A server in a process of its own; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.Process(target=serve, args=(listener, closing), daemon=True)
    process.start()
    port = listener.getsockname()[1]
    listener.close()
    return port


# ---------------------------------------------------------------------------------------------------- clients


class Lost(Exception):
    """The connection was refused, or ended before the answer began."""


class Wrong(Exception):
    """What came was no right answer."""


class H1:
    """An HTTP/1 connection."""

    kept = True

    def __init__(self, ports):
        self.used = False
        try:
            self.sock = socket.create_connection(("127.0.0.1", ports[0]), timeout=10)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except socket.timeout:
            raise Wrong("no connection in 10 s") from None
        except OSError as e:
            raise Lost(f"connect: {e}") from None

    def receive(self, begun):
        try:
            more = self.sock.recv(65536)
        except socket.timeout:
            raise Wrong("no answer in 10 s") from None
        except OSError as e:
            more, why = b"", str(e)
        else:
            why = "closed"
        if not more:
            raise (Wrong if begun else Lost)(f"{why}, request {'on a kept' if self.used else 'first of its'} connection")
        return more

    def ask(self, target):
        try:
            self.sock.sendall(b"GET %s HTTP/1.1\r\nhost: soak\r\n%s\r\n" % (target, b"" if self.kept else b"connection: close\r\n"))
        except OSError as e:
            raise Lost(f"send: {e}") from None
        buf = b""
        while b"\r\n\r\n" not in buf:
            buf += self.receive(bool(buf))
        head, body = buf.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not head.startswith(b"HTTP/1.1 200") or not length:
            raise Wrong(head.split(b"\r\n")[0].decode("latin1"))
        while len(body) < int(length[1]):
            body += self.receive(True)
        self.used = True
        return body, not re.search(rb"(?i)connection: *close", head)

    def close(self):
        self.sock.close()


class Close(H1):
    """An HTTP/1 connection for one request."""

    kept = False

    def ask(self, target):
        return super().ask(target)[0], False


class H2(H1):
    """An HTTP/2 connection, one stream after the other."""

    def __init__(self, ports):
        super().__init__(ports[1:])
        self.buf, self.stream, self.last = b"", -1, None
        self.prepare()
        try:
            self.sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        except OSError as e:
            raise Lost(f"send: {e}") from None

    def prepare(self):
        """What comes before the first byte of HTTP/2."""

    def next_frame(self, begun):
        while len(self.buf) < 9 or len(self.buf) < 9 + int.from_bytes(self.buf[:3], "big"):
            self.buf += self.receive(begun)
        length = int.from_bytes(self.buf[:3], "big")
        kind, flags, stream = struct.unpack("!BBI", self.buf[3:9])
        payload, self.buf = self.buf[9 : 9 + length], self.buf[9 + length :]
        return kind, flags, stream, payload

    def ask(self, target):
        self.stream += 2
        literal = lambda name, value: bytes([name, len(value)]) + value
        block = b"\x82\x86" + literal(0x04, target) + literal(0x01, b"soak")  # :method GET, :scheme http, :path, :authority
        try:
            self.sock.sendall(frame(1, 5, self.stream, block))
        except OSError as e:
            raise Lost(f"send: {e}") from None
        body, begun, over = b"", False, False
        while not over:
            kind, flags, stream, payload = self.next_frame(begun)
            if kind == 4 and not flags & 1:
                self.sock.sendall(frame(4, 1, 0, b""))
            elif kind == 7:
                self.last = int.from_bytes(payload[:4], "big")
                if self.last < self.stream:
                    # GOAWAY says that this one was not looked at.
                    self.used = True
                    raise Lost("GOAWAY")
            elif kind == 3 and stream == self.stream:
                raise Wrong(f"RST_STREAM {int.from_bytes(payload, 'big')}")
            elif kind == 1 and stream == self.stream:
                # Perhaps behind an update of the size of the table.
                if b"\x88" not in payload[:4]:
                    raise Wrong(f"HTTP/2 answer {payload[:40]!r}")
                begun, over = True, flags & 1
            elif kind == 0 and stream == self.stream:
                body += payload
                over = flags & 1
                if payload:
                    self.sock.sendall(frame(8, 0, 0, struct.pack("!I", len(payload))))
        self.used = True
        return body, self.last is None


class Tls(H2):
    """The same over TLS."""

    def __init__(self, ports):
        super().__init__([*ports[:1], ports[5]])

    def prepare(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        try:
            self.sock = context.wrap_socket(self.sock)
        except socket.timeout:
            raise Wrong("no handshake in 10 s") from None
        except OSError as e:
            raise Lost(f"handshake: {e}") from None


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + payload


LOADS = {"keep-alive": H1, "close": Close, "h2": H2, "h2-tls": Tls}


class Tally:
    """What happened to the requests of a load, readable from another process."""

    def __init__(self):
        self.asked, self.failed, self.stale, self.retried = (multiprocessing.Value("L", 0) for _ in range(4))
        self.whys = multiprocessing.SimpleQueue()

    def add(self, counter):
        with counter:
            counter.value += 1


def load(kind, ports, targets, tally, stop, patience):
    """Asks until it is told to stop."""
    connection = None
    while not stop.is_set():
        with_target = targets(random.randrange(10**6))
        began = time.monotonic()
        while True:
            try:
                connection = connection or LOADS[kind](ports)
                body, keep = connection.ask(with_target)
                if body != body_of(with_target):
                    raise Wrong(f"{len(body)} bytes of another body for {with_target}")
                tally.add(tally.asked)
                if not keep:
                    connection.close()
                    connection = None
                break
            except (Lost, Wrong) as e:
                kept = connection is not None and connection.used
                connection = connection and connection.close()
                if isinstance(e, Lost) and kept:
                    tally.add(tally.stale)
                elif isinstance(e, Lost) and time.monotonic() - began < patience:
                    tally.add(tally.retried)
                    time.sleep(0.01)
                else:
                    tally.add(tally.failed)
                    tally.whys.put(f"{time.monotonic():.3f} {kind}: {e}")
                    break


def clients(kind, ports, prefix, tally, stop, patience, count):
    targets = lambda n: b"%s/%d" % (prefix, n)
    threads = [threading.Thread(target=load, args=(kind, ports, targets, tally, stop, patience)) for _ in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]


# ---------------------------------------------------------------------------------------------------- the program


class Program:
    """The program under test, and those that were started after it."""

    def __init__(self, binary, folder, closing, mastered=False):
        self.binary, self.folder, self.number, self.mastered = binary, folder, 0, mastered
        self.reserved = [reserve() for _ in range(6)]
        self.ports = [s.getsockname()[1] for s in self.reserved]
        self.servers = [origin(closing) for _ in range(2)]
        self.process = None
        self.old = []
        self.start([])

    def write(self, turn=0):
        """The configuration, of which a number says how often it has changed."""
        ports = dict(zip(("port", "port2", "port3", "port4", "port5", "port6"), self.ports))
        # Where it may, the program lives in a chroot as it would in earnest.
        chroot = f"chroot {self.folder}" if os.geteuid() == 0 else ""
        places = dict(cli=self.cli, chroot=chroot, certificate=CERTIFICATE, turn=turn, s1=self.servers[0], s2=self.servers[1])
        with open(self.config, "w") as f:
            f.write(CONFIG.format(**places, **ports))

    def start(self, finish):
        self.number += 1
        self.cli = f"{self.folder}/cli{self.number}"
        self.config = f"{self.folder}/{self.number}.cfg"
        self.write()
        manner = ["-W", "-S", f"{self.folder}/master"] if self.mastered else ["-db"]
        command = [self.binary, *manner, "-f", self.config] + (["-sf", *map(str, finish)] if finish else [])
        log = open(f"{self.folder}/log", "ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        limit = time.monotonic() + 15
        while True:
            try:
                return self.say("show info")
            except OSError:
                if time.monotonic() > limit or self.process.poll() is not None:
                    raise SystemExit("the program does not start: " + open(f"{self.folder}/log", errors="replace").read())
                time.sleep(0.02)

    def reload(self):
        old = self.process
        self.start([old.pid])
        self.old.append(old)
        self.old = [p for p in self.old if p.poll() is None]

    def reloads(self):
        """How many reloads the master has counted; -1 while it can't say."""
        found = re.search(r"(?m)^\d+\s+master\s+(\d+)", self.say("show proc", f"{self.folder}/master"))
        return int(found[1]) if found else -1

    def say(self, command, whom=None):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(whom or self.cli)
            s.sendall(command.encode() + b"\n")
            # That of a master is told so that there is no more.
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while more := s.recv(65536):
                answer += more
        return answer.decode().strip()

    def memory(self):
        """Resident kilobytes."""
        pid = re.search(r"(?m)^Pid: (\d+)", self.say("show info"))[1]
        with open(f"/proc/{pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def rows(self):
        """The statistics, a dictionary for each line."""
        lines = [line.split(",") for line in self.say("show stat").splitlines() if line]
        return [dict(zip(lines[0], line)) for line in lines[1:]]

    def gauges(self, *more):
        """What is not zero though nothing goes on."""
        info = dict(line.split(": ", 1) for line in self.say("show info").splitlines() if ": " in line)
        wrong = [f"{k} {info[k]}" for k in ("CurrConns",) if info.get(k, "0") != "0"]
        for row in self.rows():
            for name in ("qcur", "scur", "used_conn_cur", *more):
                if row.get(name, "") not in ("", "0"):
                    wrong.append(f"{row['# pxname']}/{row['svname']} {name} {row[name]}")
        return wrong

    def end(self):
        for p in [self.process, *self.old]:
            if p.poll() is None:
                p.terminate()
        for p in [self.process, *self.old]:
            p.wait(10)


def reserve():
    """A port that nobody else gets."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("127.0.0.1", 0))
    return s


# ---------------------------------------------------------------------------------------------------- scenes


def expect(answer, *words):
    if answer and not any(w in answer for w in words):
        raise Wrong(f"the runtime API says {answer!r}")


def pause(program, turn):
    expect(program.say("disable frontend f"))
    time.sleep(random.uniform(0, 0.15))
    if turn % 10 == 9:
        # Somebody else has the port.
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", program.ports[1]))
            other.listen(5)
            if "port conflict" not in (answer := program.say("enable frontend f")):
                raise Wrong(f"enabled though the port is another's: {answer!r}")
    answer = program.say("enable frontend f")
    # From now on there is no excuse for whoever finds nobody there.
    for kind in LOADS.values():
        connection = kind(program.ports)
        connection.ask(b"/x/1")
        connection.close()
    expect(answer)
    time.sleep(random.uniform(0, 0.4))


def signals(program, _):
    program.process.send_signal(signal.SIGTTOU)
    time.sleep(random.uniform(0, 0.15))
    program.process.send_signal(signal.SIGTTIN)
    time.sleep(random.uniform(0, 0.4))


def reload(program, _):
    program.reload()
    time.sleep(random.uniform(0.1, 1))


def master(program, _):
    before, limit = program.reloads(), time.monotonic() + 10
    program.process.send_signal(signal.SIGUSR2)
    while True:
        try:
            if program.reloads() > before:
                break
        except OSError:
            # It executes itself anew.
            pass
        if time.monotonic() > limit:
            raise Wrong("the master counts no reload")
        time.sleep(0.02)
    time.sleep(random.uniform(0.05, 0.3))


def in_place(program, turn):
    program.write(turn)
    expect(program.say("reload in-place", f"{program.folder}/master"), "Success=1")
    time.sleep(random.uniform(0, 0.2))


def delete(program, command, good):
    """Deletes what may still be in use for a while."""
    limit = time.monotonic() + 15
    while good not in (answer := program.say(command)):
        if time.monotonic() > limit:
            raise Wrong(f"{command}: {answer}")
        time.sleep(0.01)


def servers(program, turn):
    name, port = f"b/dyn{turn % 3}", program.servers[turn % 2]
    expect(program.say(f"add server {name} 127.0.0.1:{port} maxconn 50"), "New server registered")
    expect(program.say(f"set server {name} state ready"))
    time.sleep(random.uniform(0, 0.05))
    expect(program.say(f"set server {name} state maint"))
    delete(program, f"del server {name}", "Server deleted")


def backends(program, turn):
    name, port = f"dyn{turn % 3}", program.servers[turn % 2]
    expect(program.say(f"experimental-mode on; add backend {name} from dyn mode http"), "New backend registered")
    expect(program.say(f"add server {name}/s 127.0.0.1:{port}"), "New server registered")
    expect(program.say(f"set server {name}/s state ready"))
    expect(program.say(f"publish backend {name}"), "Backend published", "published")
    for kind in LOADS.values():
        connection = kind(program.ports)
        target = b"/%s/%d" % (name.encode(), random.randrange(10**6))
        if connection.ask(target)[0] != body_of(target):
            raise Wrong("another body")
        connection.close()
    expect(program.say(f"unpublish backend {name}"), "Backend unpublished", "unpublished")
    expect(program.say(f"set server {name}/s state maint"))
    delete(program, f"del server {name}/s", "Server deleted")
    delete(program, f"experimental-mode on; del backend {name}", "Backend deleted")


def idle(_program, _turn):
    time.sleep(0.1)


def limits(program, _turn):
    """Opens connections that say nothing, and asks on some: never are more of them admitted than may be."""
    held = []
    for port in program.ports[2:4]:
        for _ in range(20):
            # Where the queue of the listener is full, connecting takes long.
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
            held.append(sock)
    time.sleep(0.05)
    rated = [H1(program.ports[4:]) for _ in range(30)]
    for connection in rated:
        connection.sock.settimeout(0.01)
        try:
            connection.ask(b"/x/1")
        except (Lost, Wrong):
            pass
    for row in program.rows():
        most = {"most": 5, "bound": 3}.get(row["# pxname"])
        if row["svname"] == "FRONTEND" and most and not int(row["scur"]) <= int(row["smax"]) <= most:
            raise Wrong(f"{row['# pxname']}: {row['smax']} connections at once")
        # HAProxy itself was seen at 53 with a limit of 50.
        if row["# pxname"] == "rated" and row["svname"] == "FRONTEND" and int(row["rate_max"]) > 55:
            raise Wrong(f"{row['rate_max']} sessions a second")
    for connection in held:
        connection.close()
    for connection in rated:
        connection.close()


SCENES = {"limits": limits, "pause": pause, "signals": signals, "reload": reload, "master": master, "in-place": in_place, "servers": servers, "backends": backends, "idle": idle}

# Those that a master lives through, and those that start processes, whose memory is no measure.
MASTERED = ("master", "in-place")
STARTING = ("reload", "master")

# Kilobytes that a scene may add between its first third and its end: what the allocator does is not exact.
GROWTH = 1500


def run(name, binary, seconds):
    folder = tempfile.mkdtemp(prefix="lifecycle-")
    program = Program(binary, folder, name == "idle", name in MASTERED)
    stop, wrong, turns, memory = multiprocessing.Event(), [], 0, 0
    patience = 3 if name in ("pause", "signals") else 0
    tallies = {kind: Tally() for kind in LOADS}
    loads = [
        multiprocessing.Process(target=clients, args=(kind, program.ports, b"/x", tallies[kind], stop, patience, 4), daemon=True)
        for kind in LOADS
    ]
    [p.start() for p in loads]
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            SCENES[name](program, turns)
            turns += 1
            if not memory and time.monotonic() - began > seconds / 3:
                memory = program.memory()
    except (Lost, Wrong, OSError) as e:
        wrong.append(f"turn {turns}: {type(e).__name__}: {e}")
    stop.set()
    [p.join(15) for p in loads]
    time.sleep(1)
    grown = 0
    try:
        limit = time.monotonic() + (30 if name in ("idle", "limits") else 2)
        # Connections to servers that were closed at rest are let go at the next sweep.
        more = ("idle_conn_cur",) if name == "idle" else ()
        while program.gauges(*more) and time.monotonic() < limit:
            time.sleep(0.5)
        wrong += program.gauges(*more)
        grown = program.memory() - memory if memory else 0
        if name not in STARTING and grown > GROWTH:
            wrong.append(f"memory grew by {grown} kB")
        expect(program.say("set server b/s1 state maint"))
        delete(program, "del server b/s1", "Server deleted")
    except (Wrong, OSError) as e:
        wrong.append(f"at rest: {e}")
    for kind, tally in tallies.items():
        counts = [c.value for c in (tally.asked, tally.failed, tally.stale, tally.retried)]
        print(f"{name:9} {kind:10} {counts[0]} answered, {counts[1]} failed, {counts[2]} on closed kept connections, {counts[3]} retried")
        while not tally.whys.empty():
            wrong.append(tally.whys.get())
        if not counts[0]:
            wrong.append(f"{kind}: nothing was answered")
    program.end()
    # Where nothing grows the figure is what the allocator does.
    print(f"{name:9} {turns} turns, memory {memory} kB, {'+' if grown >= 0 else ''}{grown} kB at the end; {'FAIL' if wrong else 'ok'}")
    for line in wrong[:20]:
        print(f"{name:9} FAIL {line}")
    shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--scene", choices=SCENES, action="append")
    args = parser.parse_args()
    results = [run(name, os.path.abspath(args.binary), args.seconds) for name in args.scene or SCENES]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
