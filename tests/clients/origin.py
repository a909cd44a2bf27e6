"""An origin of HTTP/1.1 for the tests with real clients, of the standard library alone.

PUT and POST are answered with the SHA-256 of the body and its length; GET /bytes/N with N bytes and their sum in `x-sum`;
GET /page with a page that opens a WebSocket and is loaded once that is closed; GET /ws with an echo of WebSocket messages; anything else with a word.
"""

import base64
import hashlib
import socket
import socketserver
import struct
import threading

PAGE = b"""<!doctype html><title>ws</title><body><p id=out>nothing</p><img src=/hold><script>
const out = document.getElementById("out");
const ws = new WebSocket((location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/ws");
const sent = ["one", "two", "x".repeat(70000)];
let got = 0;
ws.onopen = () => sent.forEach(m => ws.send(m));
ws.onmessage = e => {
  if (e.data !== sent[got++]) { out.textContent = "wrong echo"; ws.close(); }
  else if (got === sent.length) { out.textContent = "echoed " + got; ws.close(1000); }
};
ws.onerror = () => { out.textContent = "error"; };
</script></body>"""

# Counts the WebSockets that were closed as they should be.
CLOSED = threading.Semaphore(0)


def pattern(length):
    """Bytes that repeat only after a long while, in pieces."""
    block = hashlib.sha256(b"harrier").digest() * 2048
    while length > 0:
        piece = block[: min(length, len(block))]
        length -= len(piece)
        yield piece


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        self.connection.settimeout(60)
        try:
            while self.one():
                pass
        except (OSError, ValueError):
            pass

    def one(self):
        line = self.rfile.readline(65536).split()
        if len(line) != 3:
            return False
        method, target = line[0].decode(), line[1].decode()
        fields = {}
        while True:
            text = self.rfile.readline(65536).strip()
            if not text:
                break
            name, _, value = text.partition(b":")
            fields[name.strip().lower().decode()] = value.strip().decode()
        if fields.get("upgrade", "").lower() == "websocket":
            self.websocket(fields)
            return False
        digest, length = hashlib.sha256(), 0
        for piece in self.body(fields):
            digest.update(piece)
            length += len(piece)
        if method in ("PUT", "POST"):
            self.answer(f"{digest.hexdigest()} {length}\n".encode())
        elif target.startswith("/bytes/"):
            self.bytes(int(target.split("/")[2]), "chunked" in target)
        elif target == "/hold":
            CLOSED.acquire(timeout=15)
            self.answer(b"hello\n")
        elif target == "/page":
            self.answer(PAGE, "text/html")
        else:
            self.answer(b"hello\n")
        return fields.get("connection", "").lower() != "close"

    def body(self, fields):
        if fields.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline(100).split(b";")[0], 16)
                if size == 0:
                    while self.rfile.readline(65536).strip():
                        pass
                    return
                yield self.read(size)
                self.rfile.readline(3)
        left = int(fields.get("content-length", 0))
        while left > 0:
            piece = self.read(min(left, 65536))
            left -= len(piece)
            yield piece

    def read(self, size):
        piece = self.rfile.read(size)
        if len(piece) != size:
            raise ValueError("cut short")
        return piece

    def answer(self, body, kind="text/plain"):
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def bytes(self, length, chunked):
        framing = "transfer-encoding: chunked" if chunked else f"content-length: {length}"
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        for piece in pattern(length):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def websocket(self, fields):
        key = fields.get("sec-websocket-key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            f"sec-websocket-accept: {accept}\r\n\r\n".encode()
        )
        while True:
            first, second = self.read(2)
            length = second & 127
            if length == 126:
                (length,) = struct.unpack("!H", self.read(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", self.read(8))
            mask = self.read(4)
            masked = self.read(length)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(masked))
            if length < 126:
                size = bytes([length])
            elif length < 65536:
                size = b"\x7e" + struct.pack("!H", length)
            else:
                size = b"\x7f" + struct.pack("!Q", length)
            self.wfile.write(bytes([first]) + size + data)
            if first & 15 == 8:
                CLOSED.release()
                return


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


def start():
    """A server on a free port of the loopback, in a thread; the port."""
    server = Server(("127.0.0.1", 0), Handler)
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
