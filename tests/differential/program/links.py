"""Sockets of the harness: one loop, one kind of link with or without TLS, nothing that blocks.

The harness plays the clients, the origins, the log server and the user of the runtime API in one thread, so that what
it records has one order. A link gathers what it received; whoever waits for something asks the loop to run until it is there.
"""
import select, socket, ssl, struct, time


class Loop:
    def __init__(self):
        self.poll, self.called = select.poll(), {}

    def add(self, sock, call):
        self.called[sock.fileno()] = call
        self.poll.register(sock.fileno(), select.POLLIN)

    def drop(self, sock):
        if self.called.pop(sock.fileno(), None):
            self.poll.unregister(sock.fileno())

    def want_write(self, sock, wanted):
        self.poll.modify(sock.fileno(), select.POLLIN | (select.POLLOUT if wanted else 0))

    def run(self, done, seconds):
        """Runs until `done()` or the time is over; says whether it was done."""
        end = time.monotonic() + seconds
        while not done():
            left = end - time.monotonic()
            if left <= 0:
                return False
            for fd, mask in self.poll.poll(left * 1000 + 1):
                call = self.called.get(fd)
                if call:
                    call(mask)
        return True

    def settle(self):
        """Takes what is at hand, waits for nothing; whether there was something."""
        for turn in range(50):
            events = self.poll.poll(0)
            if not events:
                return turn > 0
            for fd, mask in events:
                call = self.called.get(fd)
                if call:
                    call(mask)
        return True


class Link:
    """A connection. `data` is what was received and not taken; `end` says how the peer ended it: '', 'fin', 'rst'."""

    def __init__(self, loop, sock, tls=None, server_side=False, name=None, session=None):
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.loop, self.sock, self.data, self.end, self.out, self.wake = loop, sock, bytearray(), "", bytearray(), None
        self.tls, self.shaken, self.fault, self.fin_due, self.gone, self.held = None, tls is None, "", False, False, False
        self.early, self.broken = bytearray(), False
        if tls:
            self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.tls = tls.wrap_bio(self.coming, self.going, server_side, None if server_side else name, session)
        loop.add(sock, self.event)
        if tls:
            self.step()

    def event(self, mask):
        if mask & select.POLLOUT:
            self.flush()
        if mask & (select.POLLIN | select.POLLHUP | select.POLLERR) and not self.gone and not self.held:
            self.receive()
        if self.wake:
            self.wake(self)

    def receive(self):
        try:
            got = self.sock.recv(262144)
        except BlockingIOError:
            return
        except OSError:
            self.ended("rst")
            return
        if not got:
            self.ended("rst" if self.broken else "fin")
        elif self.tls:
            self.coming.write(got)
            self.step()
        else:
            self.data += got

    def ended(self, how):
        if not self.end:
            self.end = how
        self.loop.drop(self.sock)

    def step(self):
        """Lets TLS go on with what has come."""
        try:
            if not self.shaken:
                self.tls.do_handshake()
                self.shaken = True
            while True:
                got = self.tls.read(262144)
                if not got:
                    self.fault = self.fault or "close_notify"
                    break
                self.data += got
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except ssl.SSLZeroReturnError:
            self.fault = self.fault or "close_notify"
        except (ssl.SSLError, ssl.CertificateError) as error:
            self.fault = self.fault or "tls: " + str(getattr(error, "reason", None) or error)
        if self.shaken and self.early and not self.fault:
            early, self.early = bytes(self.early), bytearray()
            self.tls.write(early)
        self.flush()

    def send(self, data):
        if self.gone:
            return
        if self.tls:
            if not self.shaken:
                self.early += data
                return
            try:
                self.tls.write(data)
            except ssl.SSLError:
                return
        else:
            self.out += data
        self.flush()

    def flush(self):
        if self.tls:
            self.out += self.going.read()
        while self.out and not self.gone:
            try:
                sent = self.sock.send(self.out)
                del self.out[:sent]
            except BlockingIOError:
                if not self.end:
                    self.loop.want_write(self.sock, True)
                return
            except OSError as error:
                self.out.clear()
                # Who is told of a reset when he sends is not told of it again when he reads.
                self.broken = isinstance(error, ConnectionResetError)
                if not self.end:
                    # What had come before the reset is still to be read.
                    self.receive()
                return
        if not self.gone and not self.end and self.sock.fileno() in self.loop.called:
            self.loop.want_write(self.sock, False)
        if self.fin_due:
            self.fin_due = False
            self.shut()

    def shut(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def fin(self):
        """Closes the sending direction when all is sent."""
        if self.tls and self.shaken and not self.gone:
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass
            self.out += self.going.read()
        if self.out:
            self.fin_due = True
            self.flush()
        elif not self.gone:
            self.shut()

    def reset(self):
        if not self.gone:
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            self.close()

    def close(self):
        if not self.gone:
            self.loop.drop(self.sock)
            self.gone = True
            self.sock.close()

    def hold(self, held):
        """A slow reader: what comes stays in the kernel."""
        self.held = held
        if held:
            self.loop.drop(self.sock)
        elif not self.gone and not self.end:
            self.loop.add(self.sock, self.event)

    def take(self):
        data, self.data = bytes(self.data), bytearray()
        return data
