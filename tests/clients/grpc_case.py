"""gRPC through the proxy: a server and a client of grpcio, messages as plain bytes.

    grpc_case.py serve              prints its port and serves until its input ends
    grpc_case.py call PORT [PEM]    calls through a proxy on that port, over TLS if a certificate is given
Exits 77 if grpcio is missing.
"""

import sys
from concurrent import futures

try:
    import grpc
except ImportError:
    sys.exit(77)


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        name = details.method.rsplit("/", 1)[-1]
        if name == "Unary":
            return grpc.unary_unary_rpc_method_handler(self.unary)
        if name == "Fail":
            return grpc.unary_unary_rpc_method_handler(self.fail)
        if name == "Down":
            return grpc.unary_stream_rpc_method_handler(self.down)
        if name == "Up":
            return grpc.stream_unary_rpc_method_handler(self.up)
        if name == "Both":
            return grpc.stream_stream_rpc_method_handler(self.both)
        return None

    def unary(self, request, context):
        context.send_initial_metadata((("x-first", "yes"),))
        context.set_trailing_metadata((("x-last", "yes"), ("x-data-bin", b"\0\xff")))
        return request[::-1]

    def fail(self, request, context):
        context.set_trailing_metadata((("x-last", "failed"),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no: %s" % request.decode())

    def down(self, request, context):
        for n in range(int(request)):
            yield b"%d " % n * 1000

    def up(self, requests, context):
        return b"%d" % sum(len(r) for r in requests)

    def both(self, requests, context):
        for request in requests:
            yield b"re:" + request


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(16), handlers=(Service(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(0)


def call(port, pem):
    if pem:
        credentials = grpc.ssl_channel_credentials(open(pem, "rb").read())
        channel = grpc.secure_channel(f"localhost:{port}", credentials)
    else:
        channel = grpc.insecure_channel(f"localhost:{port}")
    limit = 15
    reply, seen = channel.unary_unary("/test.S/Unary").with_call(b"abc", timeout=limit)
    assert reply == b"cba", reply
    assert ("x-first", "yes") in seen.initial_metadata(), seen.initial_metadata()
    last = dict(seen.trailing_metadata())
    assert last["x-last"] == "yes" and last["x-data-bin"] == b"\0\xff", last
    big = bytes(range(256)) * 12000
    assert channel.unary_unary("/test.S/Unary")(big, timeout=limit) == big[::-1]
    try:
        channel.unary_unary("/test.S/Fail")(b"why", timeout=limit)
        raise AssertionError("no error")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
        assert error.details() == "no: why" and dict(error.trailing_metadata())["x-last"] == "failed", error
    try:
        channel.unary_unary("/test.S/Nothing")(b"", timeout=limit)
        raise AssertionError("no error")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
    down = list(channel.unary_stream("/test.S/Down")(b"200", timeout=limit))
    assert [d.split()[0] for d in down] == [b"%d" % n for n in range(200)]
    up = channel.stream_unary("/test.S/Up")((b"x" * 5000 for _ in range(200)), timeout=limit)
    assert up == b"1000000", up

    # Both ways, each message only after the answer to the one before: nothing may be held back.
    import queue

    out = queue.Queue()
    replies = channel.stream_stream("/test.S/Both")(iter(out.get, None), timeout=limit)
    for n in range(100):
        out.put(b"%d" % n)
        assert next(replies) == b"re:%d" % n
    out.put(None)
    assert list(replies) == []
    # A call that is given up, then others beside each other.
    given_up = channel.unary_stream("/test.S/Down")(b"100000", timeout=limit)
    next(given_up)
    given_up.cancel()
    calls = [channel.unary_unary("/test.S/Unary").future(b"%d" % n, timeout=limit) for n in range(200)]
    assert [c.result() for c in calls] == [(b"%d" % n)[::-1] for n in range(200)]
    print("ok")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        call(int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
