"""Ports of the loopback interface, for the scripts beside this one."""
import socket
import time


def free():
    """A port that nobody has, picked by the kernel."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def await_listener(port):
    """Returns as soon as somebody listens there, after five seconds in any case."""
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
