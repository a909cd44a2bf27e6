#!/usr/bin/env python3
"""Be a peer called B that asks process A for everything: shards.py PORT. Prints the keys of table "t" in order, those that come
before the end of the teaching."""
import socket, sys


def number(take):
    value = take(1)[0]
    if value < 0xf0:
        return value
    shift = 4
    while True:
        byte = take(1)[0]
        value += byte << shift
        shift += 7
        if byte < 0x80:
            return value


with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as s:
    def take(count):
        data = s.recv(count, socket.MSG_WAITALL)
        assert len(data) == count, "closed"
        return data

    s.sendall(b"HAProxyS 2.1\nA\nB 1 1\n")
    assert take(4) == b"200\n"
    s.sendall(b"\0\0")
    keys = []
    while True:
        kind, which = take(2)
        if which < 128:
            if kind == 0 and which in (1, 2):
                break
            continue
        length = number(take)
        body = take(length) if length else b""
        if which in (128, 129, 133, 134):
            body = body[(4 if which in (128, 133) else 0) + (4 if which in (133, 134) else 0):]
            keys.append(body[1:1 + body[0]].decode())
    print(" ".join(sorted(set(keys))))
