"""Clients and servers that speak TLS and HTTP/2, step by step. TLS is a library between memory buffers, so that each flight may be held back, cut, or followed by what does not belong there.

Steps beside those of fates/cases.py: ("tls", {...}) a handshake; ("hello", {...}, N) the first N bytes of it (None: all) and nothing more;
("flight", N) what was held back since; ("raw", bytes) past TLS; "notify" close_notify; ("last", bytes) the two in one; ("frame", "HEADERS/1") until such a frame has
come; "ended" until a stream of HTTP/2 has come to its end; "again" another connection, with the sessions of the one before it.
"""
import os, re, ssl, threading, time
from borrowed import fates, frames

CERTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "program", "certs")
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3, "1.1": ssl.TLSVersion.TLSv1_1}


def answer(stream):
    """What a server of HTTP/2 says to everything."""
    fields = b"\x88" + frames.cases.field("content-length", "5")
    return frames.cases.frame(1, 4, stream, fields) + frames.cases.frame(0, 1, stream, b"hello")


def context(side, options):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if side == "server":
        made.load_cert_chain(f"{CERTS}/{options.get('cert', 'origin.pem')}")
    elif "cert" in options:
        made.load_cert_chain(f"{CERTS}/{options['cert']}")
    if options.get("ca"):
        made.load_verify_locations(f"{CERTS}/{options['ca']}")
        made.verify_mode = ssl.CERT_REQUIRED
    if "alpn" in options:
        made.set_alpn_protocols(options["alpn"])
    if "version" in options:
        made.minimum_version = made.maximum_version = VERSIONS[options["version"]]
    if options.get("no tickets"):
        made.options |= ssl.OP_NO_TICKET
    if "ciphers" in options:
        made.set_ciphers(options["ciphers"])
    return made


# Contexts are costly to make.
MADE, LOCK = {}, threading.Lock()
# A handshake that takes longer (s) was kept waiting by the machine.
SLOW = 0.15


class Peer(fates.Peer):
    def __init__(self, conn, longest, side, h2, dial):
        super().__init__(conn, longest)
        self.side, self.h2, self.dial = side, h2, dial
        self.past, self.session, self.served = [], None, set()
        self.plain()

    def plain(self):
        self.tls, self.done, self.holding, self.told_end, self.held = None, False, False, "", b""

    def act(self, step):
        if step == "again":
            self.leave()
            self.past.append(self.said())
            self.conn, self.got, self.end, self.over, self.read = self.dial(), b"", "open", False, 0
            self.plain()
        elif self.over:
            time.sleep(step if isinstance(step, float) else 0)
        elif step == "notify":
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass
            self.flush()
        elif isinstance(step, tuple) and step[0] == "last":
            # All in one, or it would be a matter of time whether the end is seen with what comes before it.
            self.tls.write(step[1])
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass
            self.flush()
        elif step == "ended":
            if not self.until(self.whole, 8):
                # Who is not asked has nothing to say.
                super().act("end")
                raise OSError("no request")
        elif isinstance(step, tuple) and step[0] == "raw":
            super().say(step[1])
        elif isinstance(step, tuple) and step[0] == "frame":
            self.until(lambda: any(re.match(step[1] + "( |$)", text) for text in self.outline()), 8)
        elif isinstance(step, tuple) and step[0] == "tls":
            begin = time.monotonic()
            self.start(step[1])
            self.flush()
            self.until(lambda: self.done or self.told_end, 8)
            # What waits for its peer comes late by itself.
            self.late |= self.side == "client" and self.done and time.monotonic() > begin + SLOW
        elif isinstance(step, tuple) and step[0] == "hello":
            self.start(step[1])
            self.holding = True
            self.let(step[2])
        elif isinstance(step, tuple) and step[0] == "flight":
            self.let(step[1])
        else:
            super().act(step)

    def start(self, options):
        key = self.side + repr(sorted((name, value) for name, value in options.items() if name not in ("resume", "sni")))
        with LOCK:
            made = MADE.get(key)
            if made is None:
                made = MADE[key] = context(self.side, options)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = made.wrap_bio(self.incoming, self.outgoing, self.side == "server", options.get("sni") if self.side == "client" else None,
                                 self.session if options.get("resume") else None)
        early, self.got = self.got, b""
        if early:
            self.incoming.write(early)
        self.proceed()

    def proceed(self):
        """The handshake, as far as it goes."""
        try:
            self.tls.do_handshake()
            self.done = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.told_end = f"TLS: {error.reason}, "

    def let(self, size):
        """Sends so much of what is held back."""
        self.held += self.outgoing.read()
        size = len(self.held) if size is None else size
        now, self.held = self.held[:size], self.held[size:]
        super().say(now)

    def flush(self):
        if not self.holding and self.outgoing.pending:
            super().say(self.outgoing.read())

    def say(self, data):
        if not self.tls:
            super().say(data)
        elif self.done:
            self.tls.write(data)
            super().say(self.outgoing.read())

    def hear(self, data):
        if not self.tls:
            self.got += data
            return
        self.incoming.write(data)
        if not self.done and not self.told_end:
            self.proceed()
        try:
            while self.done and not self.told_end:
                text = self.tls.read(65536)
                if not text:
                    self.told_end = "notified, "
                self.got += text
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.told_end = f"TLS: {error.reason}, "
        try:
            self.flush()
        except OSError:
            pass

    def leave(self):
        if self.tls and self.done and self.side == "client":
            self.session = self.tls.session
        super().leave()

    def outline(self):
        data = self.got
        return frames.outline(data.split(frames.cases.PREFACE)[-1] if self.side == "server" else data, self.side == "server")

    def head(self):
        return any(text.startswith("HEADERS") for text in self.outline()) if self.h2 else super().head()

    def whole(self):
        return any(text.endswith(" end") for text in self.outline()) if self.h2 else super().whole()

    def serve(self):
        if not self.h2:
            return super().serve()
        while self.end == "open":
            def new():
                return [stream for stream in re.findall(r"(?m)^\w+/(\d+).* end$", "\n".join(self.outline())) if stream not in self.served]
            if not self.until(new, self.longest):
                return
            for stream in new():
                self.served.add(stream)
                self.say(answer(int(stream)))

    def told(self):
        """What a server's connection brought, and how it ended. Whether a connection of TLS or HTTP/2 to a server is closed or reset, and which frames go
        before, is each program's choice (docs/differences.md, `farewell`)."""
        text = self.got.decode("latin-1")
        if text.startswith("\x16\x03"):
            text = "a ClientHello"
        end = self.end.replace("reset", "closed") if self.tls or self.h2 or text == "a ClientHello" else self.end
        # An alert is an alert.
        end = ("TLS, " if self.told_end.startswith("TLS: ") else self.told_end) + end
        if self.h2 and frames.cases.PREFACE in self.got:
            return ["\n".join(frames.parted([line for line in self.outline() if line != "SETTINGS/0 ack"])), end]
        return ["resumed " * self.resumed() + text, end]

    def resumed(self):
        return bool(self.tls and self.done and self.tls.session_reused)

    def said(self):
        """What a client's connection brought, and how it ended. HAProxy may say GOAWAY twice."""
        lines = self.outline() if self.h2 else fates.words(self.got)
        lines = [line for at, line in enumerate(lines) if not (line.startswith("GOAWAY") and line in lines[:at])]
        # Behind an alert it is a matter of time whether something unread makes the end a reset.
        end = self.end.replace("reset", "closed") if self.told_end.startswith("TLS: ") else self.end
        return ["resumed"] * self.resumed() + lines, self.told_end + end
