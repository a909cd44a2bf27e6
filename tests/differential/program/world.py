"""One program, one case: clients, origins, logs and commands in one thread, and the record of what was seen.

A case is plain data (JSON): `config` lines, `files`, `listen` (sockets the harness binds and hands over), `origins`, and
`steps`, each a list of operations that run one after the other and wait for events, never for time. The record is a list
of [step, channel, text].
"""
import os, re, select, shutil, signal, socket, ssl, subprocess, time

import agents, http1, http2, masks
from links import Link, Loop

HERE = os.path.dirname(os.path.abspath(__file__))
CERTS = os.path.join(HERE, "certs")
# Reading the authorities that the system trusts is most of the time that `-c` takes HAProxy: there it trusts two.
AUTHORITIES = os.path.join(os.path.dirname(HERE), "tls/files/cas")
FIRST_FD = 100
# How long something may take to come, if the case doesn't say: longer than its timeouts.
PATIENCE = 3.5
# How long at most a program may take to come to rest.
CALM = 2
BYTES = bytes(range(33, 127)) * 700


def fill(size):
    return (BYTES * (size // len(BYTES) + 1))[:size]


def text(data):
    """Bytes as text of one line each; what is long is told by its length and sum."""
    if len(data) > 3000:
        return f"{masks.escape(data[:60])}...({len(data)} bytes, {masks.digest(data)})"
    return masks.escape(data)


class OriginLink:
    def __init__(self, origin, link, number):
        self.origin, self.link, self.number = origin, link, number
        self.script, self.buffer, self.record, self.told_end = None, bytearray(), bytearray(), False
        self.slow_close, self.played = origin.kind == "tcp", False
        self.h2, self.begun = None, origin.kind == "tcp"
        if origin.kind == "h2":
            self.h2 = http2.Peer(link, False)
        self.speaker = agents.SPEAKERS[origin.kind](self, link) if origin.kind in agents.SPEAKERS else None
        self.name, self.text = origin.name, text
        link.wake = self.go

    def next_script(self):
        world = self.origin.world
        # A check comes when its time has come: it must not take the script of the request beside it.
        if world.scripts and not self.origin.quiet:
            return list(world.scripts.pop(0) if len(world.scripts) > 1 else world.scripts[0])
        return list(self.origin.default)

    def go(self, link=None):
        if self.h2:
            self.go_h2()
            return
        if self.speaker:
            self.origin.world.asked = True
            self.speaker.take(self.link.take())
            return self.leave()
        got = self.link.take()
        self.buffer += got
        self.record += got
        if got:
            self.origin.world.asked = True
        self.play()

    def past_header(self):
        """Whether what the connection begins with is there: the header of the PROXY protocol, where there is one in binary, is taken out."""
        if not self.begun:
            binary = self.buffer.startswith(masks.SIGNATURE)
            size = masks.size_of_header(self.buffer) if binary else 0
            self.begun = not masks.SIGNATURE.startswith(self.buffer) and len(self.buffer) >= size
            if self.begun:
                del self.buffer[:size]
        return self.begun

    def play(self):
        if self.buffer and not self.past_header():
            return self.leave()
        for _ in range(1000):
            if self.script is None:
                # How bytes of TCP are cut says nothing: one script for each connection.
                if not self.buffer or self.played:
                    return self.leave()
                self.script = self.next_script()
            if not self.script:
                self.script = None
                self.played = self.origin.kind == "tcp"
                if not self.buffer or self.played:
                    self.buffer.clear()
                    return self.leave()
                continue
            op = self.script[0]
            if not self.ready(op):
                return self.leave()
            self.script.pop(0)
            self.do(op)

    def leave(self):
        """Nothing is left to do for a peer that has closed: an origin closes, too, at once."""
        if self.link.end and not self.link.out:
            self.link.close()

    def ready(self, op):
        kind = op[0]
        if kind == "head" and self.origin.quiet:
            # What of a check is unread when the origin closes would take its answer along.
            end = http1.request_end(self.buffer)
            return http1.head_end(self.buffer) >= 0 and (end is None or end >= 0)
        if kind == "head":
            return http1.head_end(self.buffer) >= 0
        if kind == "full":
            end = http1.request_end(self.buffer)
            if end is None or end < 0:
                return False
            del self.buffer[:end]
            return True
        if kind == "bytes":
            if len(self.buffer) < op[1]:
                return False
            del self.buffer[:op[1]]
            return True
        if kind == "end":
            return bool(self.link.end)
        return True

    def do(self, op):
        kind, link = op[0], self.link
        if kind == "send":
            link.send(op[1].encode("latin-1"))
        elif kind == "fill":
            link.send(fill(op[1]))
        elif kind == "fin":
            link.fin()
        elif kind == "close":
            # Closed with what it had not read a socket would reset: what was sent would be lost now and then.
            link.fin()
            link.receive()
            if not link.out and not self.slow_close:
                link.close()
        elif kind == "rst":
            link.reset()
        elif kind == "forget":
            self.buffer.clear()

    def go_h2(self):
        touched = self.h2.take()
        if self.link.end:
            self.link.close()
        if touched:
            self.origin.world.asked = True
        for number in touched:
            stream = self.h2.streams[number]
            if stream.answered or not stream.blocks:
                continue
            script = self.next_script()
            if script and script[0][0] == "full" and not stream.over():
                world = self.origin.world
                if world.scripts and len(world.scripts) == 1:
                    continue
                if not world.scripts:
                    continue
                world.scripts.insert(0, script)
                continue
            stream.answered = True
            self.answer_h2(number, script)

    def answer_h2(self, number, script):
        sent = False
        for op in script:
            if op[0] == "h2":
                pairs, body, end = op[1], op[2], op[3]
                data = fill(body) if isinstance(body, int) else body.encode("latin-1")
                self.h2.head(number, pairs, end=end == "end" and not data)
                if data:
                    self.h2.body(number, data, end == "end")
                if end.startswith("rst"):
                    self.h2.reset(number, int(end[3:]))
                elif end == "goaway":
                    self.link.send(http2.frame(http2.GOAWAY, 0, 0, number.to_bytes(4, "big") + b"\0\0\0\0"))
                    self.h2.body(number, b"", True)
                elif end == "trailers":
                    self.h2.trailers(number, [("x-trailer", "t")])
                sent = True
            elif op[0] in ("fin", "close", "rst"):
                self.do(op)
                sent = True
        if not sent:
            body = f"{self.origin.name} h2".encode()
            asked = dict(self.h2.streams[number].blocks[0]).get(":method")
            self.h2.head(number, [(":status", "200"), ("content-length", str(len(body))), ("x-origin", self.origin.name)], end=asked == "HEAD")
            if asked != "HEAD":
                self.h2.body(number, body)

    def show(self):
        lines = []
        if self.h2:
            lines = self.h2.show(text, self.origin.world.case.get("unpack"))
        elif self.speaker:
            lines, self.speaker.lines = self.speaker.lines, []
        elif self.record:
            lines = masks.messages(bytes(self.record), self.origin.kind, text, (), self.origin.world.case.get("unpack"))
            self.record.clear()
        if self.link.fault and not getattr(self, "told_fault", False):
            self.told_fault = True
            if self.link.fault != "close_notify":
                lines.append("(" + self.link.fault + ")")
        if self.link.end and not self.told_end:
            self.told_end = True
            lines.append("(" + ("closed" if self.link.end == "fin" else "reset") + ")")
            self.link.close()
        return lines


PREFACE = "| PRI * HTTP/2.0"


class Origin:
    def __init__(self, world, name, setting, sock):
        self.world, self.name, self.sock, self.links = world, name, sock, []
        self.kind, self.tls, self.quiet = setting.get("kind", "h1"), setting.get("tls"), setting.get("quiet", False)
        body = name + " says hello"
        self.default = setting.get("default") or [["full"], ["send", f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
                                                             f"X-Origin: {name}\r\n\r\n{body}"]]
        if self.kind == "tcp" and not setting.get("default"):
            self.default = [["send", name + " echo\n"]]
        self.known = set()
        world.loop.add(sock, self.accept)

    def accept(self, mask):
        while True:
            try:
                got, peer = self.sock.accept()
            except OSError:
                return
            if got.family != socket.AF_UNIX:
                self.world.ports.setdefault(str(peer[1]), f"P({self.name})")
            link = Link(self.world.loop, got, self.world.server_tls(self.tls) if self.tls else None, True)
            one = OriginLink(self, link, len(self.links) + 1)
            self.links.append(one)
            scripts = self.world.scripts
            first = scripts[0] if scripts else self.default
            if first and first[0][0] == "accept" and not self.quiet:
                one.script = one.next_script()[1:]
                one.play()
            elif self.default and self.default[0][0] == "accept":
                one.script = list(self.default)[1:]
                one.play()

    def show(self):
        """Lines of each connection; a quiet origin (health checks) tells each kind of connection once."""
        for link in self.links:
            lines = link.show()
            if not lines:
                continue
            if self.kind == "spop":
                # Which of its connections an agent is asked on is a matter of time.
                lines = [line for line in lines if not line.startswith(("(", "hello"))]
                yield self.name, lines
            elif self.quiet:
                lines = tuple(line for line in lines if not line.startswith("("))
                # Who closes after the preface of HTTP/2 has read more of the rest in one run than in another.
                kind = tuple(line[:len(PREFACE)] if line.startswith(PREFACE) else line for line in lines)
                if kind in self.known or not kind:
                    continue
                self.known.add(kind)
                yield self.name, list(lines)
            else:
                yield f"{self.name}#{link.number}", lines


class Client:
    def __init__(self, world, name, link):
        self.world, self.name, self.link, self.methods, self.told = world, name, link, [], False
        self.h2, self.all = None, bytearray()

    def answered(self, method, count):
        """Whether `count` whole responses are there, or no more can come."""
        if self.link.end or self.link.fault:
            return True
        data, at = self.link.data, 0
        for _ in range(count):
            size = http1.response_end(data[at:] if at else data, method)
            if size is None or size < 0:
                return False
            at += size
        return True

    def show(self):
        lines = []
        if self.h2:
            self.h2.take()
            lines = self.h2.show(text, self.world.case.get("unpack"))
        else:
            got = self.link.take()
            if got:
                lines = masks.messages(got, "response", text, self.methods, self.world.case.get("unpack"))
        self.methods = []
        if (self.link.end or self.link.fault) and not self.told:
            self.told = True
            if self.link.fault and self.link.fault != "close_notify":
                lines.append("(" + self.link.fault + ")")
            elif self.link.end:
                lines.append("(" + ("closed" if self.link.end == "fin" else "reset") + ")")
        return lines


class World:
    def __init__(self, program, case, folder, check=True, before=(), environment=None):
        self.program, self.case, self.folder, self.with_check = program, case, folder, check
        self.before, self.environment = before, environment or {}
        self.loop, self.ports, self.names = Loop(), {}, {}
        self.clients, self.origins, self.record, self.scripts = {}, {}, [], []
        self.socks, self.logs, self.asked, self.step, self.sessions = [], [], False, 0, {}
        self.proc, self.slow, self.patience = None, 0, case.get("patience", PATIENCE)
        self.contexts = {}

    # -- setting up

    def server_tls(self, setting):
        key = "s" + repr(setting)
        if key not in self.contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(CERTS, "origin.pem"))
            setting = setting if isinstance(setting, dict) else {}
            if setting.get("alpn"):
                context.set_alpn_protocols(setting["alpn"])
            if setting.get("verify"):
                context.load_verify_locations(os.path.join(CERTS, "ca.crt"))
                context.verify_mode = ssl.CERT_OPTIONAL
            context.num_tickets = 0
            self.contexts[key] = context
        return self.contexts[key]

    def client_tls(self, setting):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_verify_locations(os.path.join(CERTS, "ca.crt"))
        if setting.get("alpn"):
            context.set_alpn_protocols(setting["alpn"])
        if setting.get("cert"):
            context.load_cert_chain(os.path.join(CERTS, setting["cert"]))
        if setting.get("max"):
            context.maximum_version = ssl.TLSVersion[setting["max"]]
        if setting.get("min"):
            context.minimum_version = ssl.TLSVersion[setting["min"]]
        if setting.get("ciphers"):
            context.set_ciphers(setting["ciphers"])
        return context

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for name, content in self.case.get("files", {}).items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="latin-1", newline="") as out:
                out.write(content)
        for name in os.listdir(CERTS):
            shutil.copy(os.path.join(CERTS, name), self.folder)
        number = FIRST_FD
        for name, kind in [("cli", "unix")] + sorted(self.case.get("listen", {}).items()):
            if kind == "hold":
                sock = self.socket("tcp", name)
                self.names[f"port:{name}"] = str(sock.getsockname()[1])
                self.ports[self.names[f"port:{name}"]] = f"P-{name}"
                continue
            sock = self.socket(kind, name)
            sock.listen(128)
            os.dup2(sock.fileno(), number, inheritable=True)
            self.names[f"fd:{name}"] = str(number)
            if kind != "unix":
                self.names[f"port:{name}"] = str(sock.getsockname()[1])
                self.ports[self.names[f"port:{name}"]] = f"P-{name}"
            number += 1
        self.fds = list(range(FIRST_FD, number))
        for name, setting in sorted(self.case.get("origins", {}).items()):
            sock = self.socket(setting.get("at", "tcp"), name)
            if not setting.get("dead"):
                sock.listen(128)
                sock.setblocking(False)
                self.origins[name] = Origin(self, name, setting, sock)
            if setting.get("at", "tcp") == "unix":
                self.names[f"port:{name}"] = "80"
            else:
                self.names[f"port:{name}"] = str(sock.getsockname()[1])
                self.ports[self.names[f"port:{name}"]] = f"P-{name}"
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        log.bind(os.path.join(self.folder, "log.sock"))
        log.setblocking(False)
        self.log = log
        self.socks.append(log)
        self.loop.add(log, self.log_event)
        # What comes for a log server of its own is one log with the other.
        for name in self.case.get("syslog", ()):
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", 0))
            udp.setblocking(False)
            self.socks.append(udp)
            self.loop.add(udp, lambda mask, udp=udp, name=name: self.log_event(mask, udp, name.encode() + b" "))
            self.names[f"port:{name}"] = str(udp.getsockname()[1])
            self.ports[self.names[f"port:{name}"]] = f"P-{name}"
        config = "\n".join(self.case["config"]) + "\n"
        config = re.sub(r"%%(\S+?)%%", lambda m: self.names.get(m[1], m[0]), config)
        with open(os.path.join(self.folder, "cfg"), "w", encoding="latin-1") as out:
            out.write(config)

    def socket(self, kind, name):
        if kind == "unix":
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(os.path.join(self.folder, name + ".sock"))
        elif kind == "tcp6":
            sock = socket.socket(socket.AF_INET6)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("::1", 0))
        else:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("127.0.0.1", 0))
        self.socks.append(sock)
        return sock

    def log_event(self, mask, sock=None, whose=b""):
        while True:
            try:
                self.logs.append(whose + (sock or self.log).recv(65536))
            except OSError:
                return

    # -- recording

    def note(self, channel, lines):
        if isinstance(lines, str):
            lines = lines.split("\n")
        if lines:
            self.record.append([self.step, channel, list(lines)])

    def collect(self):
        for name, client in self.clients.items():
            lines = client.show()
            if lines:
                self.note("client " + name, lines)
        for origin in self.origins.values():
            for name, lines in origin.show():
                self.note("origin " + name, lines)
        logs, self.logs = self.logs, []
        for line in logs:
            self.note("log", masks.escape(line.rstrip(b"\n\0")))

    # -- running

    def run(self):
        try:
            self.prepare()
            if self.with_check and not self.check():
                return self.finished()
            self.play()
            return self.finished()
        finally:
            self.tidy()

    def finished(self):
        """The record with what must differ masked."""
        return [[step, channel, [masks.line(line, self.ports, self.folder) for line in lines]]
                for step, channel, lines in self.record]

    def check(self):
        self.step = -1
        args = [self.program, "-c", "-f", "cfg"]
        got = subprocess.run(args, cwd=self.folder, capture_output=True, timeout=60, pass_fds=self.fds, stdin=subprocess.DEVNULL,
                             env={**os.environ, "SSL_CERT_DIR": AUTHORITIES})
        self.said = got.stderr.decode("latin-1") + got.stdout.decode("latin-1")
        self.note("check", f"exit {got.returncode}")
        self.note("check says", masks.messages_of_start(self.said))
        return got.returncode == 0

    def only_check(self):
        """What `-c` answers: whether it accepts, its words, the record."""
        try:
            self.prepare()
            accepted = self.check()
            return accepted, self.said, self.finished()
        finally:
            self.tidy()

    def play(self):
        self.step = 0
        errors = open(os.path.join(self.folder, "stderr"), "wb")
        self.proc = subprocess.Popen([*self.before, self.program, "-db", "-f", "cfg"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=errors,
                                     stderr=errors, pass_fds=self.fds, env={**os.environ, **self.environment})
        errors.close()
        if self.command("show version", 60) is None:
            self.note("start", "does not answer")
        for number, ops in enumerate(self.case["steps"]):
            self.step, self.asked = number + 1, False
            for op in ops:
                if self.proc.poll() is not None:
                    break
                self.operate(op)
            self.rest()
            self.collect()
            self.scripts = []
            if self.proc.poll() is not None or self.slow >= 3:
                break
        self.end()

    def rest(self):
        """Lets the program come to rest: commands on its socket take several turns of its loop, and then all its threads have to sleep.
        One that is ready to run has not had its turn, as happens on a busy machine."""
        for _ in range(2):
            self.loop.settle()
            if self.command("show version") is None:
                break
        end, still = time.monotonic() + CALM, 0
        while still < 2 and time.monotonic() < end:
            seen = self.loop.settle()
            still = still + 1 if self.sleeps() and not seen else 0
            if not still:
                self.loop.run(lambda: False, 0.001)
        self.loop.settle()

    def sleeps(self):
        """Whether no thread of the program runs or waits for a processor."""
        folder = f"/proc/{self.proc.pid}/task"
        try:
            return all(open(f"{folder}/{task}/stat", "rb").read().rpartition(b") ")[2][:1] not in b"RD" for task in os.listdir(folder))
        except OSError:
            return True

    def end(self):
        self.step = 1000
        early = self.proc.poll()
        if early is None:
            for client in self.clients.values():
                client.link.close()
            self.rest()
            self.collect()
            for number, command in enumerate(self.case.get("final", [])):
                self.note(f"final {command}", self.command(command) or "(no answer)")
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(5)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
                self.note("end", "killed")
        self.loop.settle()
        self.note("end", f"exit {self.proc.returncode}" + (" early" if early is not None else ""))
        with open(os.path.join(self.folder, "stderr"), encoding="latin-1") as got:
            self.note("stderr", masks.messages_of_start(got.read()))

    def tidy(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        for client in self.clients.values():
            client.link.close()
        for origin in self.origins.values():
            for link in origin.links:
                link.link.close()
        for sock in self.socks:
            sock.close()
        for fd in getattr(self, "fds", []):
            try:
                os.close(fd)
            except OSError:
                pass

    def wait(self, done, what, seconds=None):
        seconds = seconds or self.patience
        if not self.loop.run(lambda: done() or self.proc.poll() is not None, seconds):
            self.slow += 1
            self.note("wait", f"nothing more comes: {what}")

    def command(self, command, seconds=PATIENCE, sock="cli"):
        """The output of a command of the runtime API, None when there was no answer."""
        try:
            link = Link(self.loop, self.connect(sock))
        except OSError:
            return None
        link.send(command.encode("latin-1") + b"\n")
        done = self.loop.run(lambda: link.end or self.proc.poll() is not None, seconds)
        data = link.take()
        link.close()
        return data.decode("latin-1") if done and (data or link.end == "fin") else None

    def connect(self, name):
        kind = self.case.get("listen", {}).get(name, "unix")
        if kind == "unix":
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(os.path.join(self.folder, name + ".sock"))
            return sock
        sock = socket.socket(socket.AF_INET6 if kind == "tcp6" else socket.AF_INET)
        # The kernel may drop what comes (`tcp-md5sig`).
        sock.settimeout(1)
        sock.connect(("::1" if kind == "tcp6" else "127.0.0.1", int(self.names[f"port:{name}"])))
        self.ports[str(sock.getsockname()[1])] = "P(client)"
        return sock

    def operate(self, op):
        kind, args = op[0], op[1:]
        getattr(self, "op_" + kind)(*args)

    def op_open(self, name, listener, setting=None):
        setting = setting or {}
        try:
            sock = self.connect(listener)
        except OSError as error:
            self.note("client " + name, f"cannot connect: {error.strerror or error}")
            return
        tls = setting.get("tls")
        if setting.get("proxy"):
            try:
                sock.send(setting["proxy"].encode("latin-1"))
            except OSError:
                # Closed already: its link sees that, too.
                pass
        link = Link(self.loop, sock, self.client_tls(tls) if tls is not None else None, False, (tls or {}).get("sni"),
                    self.sessions.get((tls or {}).get("resume")))
        self.clients[name] = client = Client(self, name, link)
        if tls is not None:
            self.wait(lambda: link.shaken or link.end or link.fault, name + " handshake")
            if link.shaken and not link.fault:
                cert = link.tls.getpeercert(True)
                found = f"TLS {link.tls.version()} alpn={link.tls.selected_alpn_protocol()} cert={masks.digest(cert or b'')}"
                self.note("client " + name, found + (" resumed" if link.tls.session_reused else ""))
        if setting.get("h2") is not None:
            client.h2 = http2.Peer(link, True, [tuple(pair) for pair in setting["h2"]])

    def op_send(self, name, data, method=None):
        if name in self.clients:
            client = self.clients[name]
            if method:
                client.methods.append(method)
            client.link.send(data.encode("latin-1"))

    def op_fill(self, name, size):
        if name in self.clients:
            self.clients[name].link.send(fill(size))

    def op_resp(self, name, method="GET", count=1):
        if name in self.clients:
            client = self.clients[name]
            self.wait(lambda: client.answered(method, count), name + " response")

    def op_got(self, name, size):
        if name in self.clients:
            link = self.clients[name].link
            self.wait(lambda: len(link.data) >= size or link.end or link.fault, name + f" {size} bytes")

    def op_eof(self, name):
        if name in self.clients:
            link = self.clients[name].link
            self.wait(lambda: link.end, name + " end")

    def op_asked(self):
        self.wait(lambda: self.asked, "origin asked")

    def op_fin(self, name):
        if name in self.clients:
            self.clients[name].link.fin()

    def op_rst(self, name):
        if name in self.clients:
            self.clients[name].link.reset()

    def op_close(self, name):
        if name in self.clients:
            self.clients[name].link.close()

    def op_hold(self, name, held):
        if name in self.clients:
            self.clients[name].link.hold(held)

    def op_origin(self, scripts):
        self.scripts = [list(script) for script in scripts]

    def op_sleep(self, ms):
        self.loop.run(lambda: False, ms / 1000)

    def op_rest(self):
        self.rest()

    def op_cli(self, command, sock="cli"):
        command = re.sub(r"%%(\S+?)%%", lambda m: self.names.get(m[1], m[0]), command)
        got = self.command(command, sock=sock)
        self.note("cli " + command.split("\n")[0], got if got is not None else "(no answer)")

    def op_await(self, command, wanted, seconds=2.5):
        """Asks until the output matches: what happens by itself (checks) has come about."""
        end = time.monotonic() + seconds
        while True:
            got = self.command(command) or ""
            if re.search(wanted, got, re.S):
                return
            if time.monotonic() > end or self.proc.poll() is not None:
                self.slow += 1
                self.note("wait", f"{command}: {wanted} does not come")
                return
            self.loop.run(lambda: False, 0.01)

    def op_stream(self, name, number, pairs, body="", end="end", after=None):
        client = self.clients.get(name)
        if not client or not client.h2:
            return
        data = fill(body) if isinstance(body, int) else body.encode("latin-1")
        client.h2.take()
        client.h2.head(number, [tuple(pair) for pair in pairs], end == "end" and not data, index=number % 4 == 1)
        if data or end == "late":
            client.h2.body(number, data, end == "end")
        if end == "trailers":
            client.h2.trailers(number, [("x-trailer", "sent")])
        elif end.startswith("rst"):
            client.h2.reset(number, int(end[3:]))

    def op_frame(self, name, kind, flags, number, payload):
        client = self.clients.get(name)
        if client:
            client.link.send(http2.frame(kind, flags, number, payload.encode("latin-1")))

    def op_streams(self, name, numbers):
        client = self.clients.get(name)
        if not client or not client.h2:
            return
        def done():
            client.h2.take()
            return client.link.end or client.link.fault or all(client.h2.stream(n).over() for n in numbers)
        self.wait(done, f"{name} streams {numbers}")
