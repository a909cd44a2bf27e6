"""Ports of the loopback interface, for the scripts beside this one."""
import socket
import time


# The kernel may pick a port again that it gave before: two listeners would share it, and each get half of the connections.
GIVEN = set()


def free():
    """A port that nobody has, picked by the kernel, and another one each time."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def await_listener(port):
    """Returns as soon as somebody listens there, after five seconds in any case."""
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
