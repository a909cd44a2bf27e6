#!/usr/bin/env python3
"""CPU that a request costs that asks an SPOE agent, beside HAProxy.

    bench/spoe.py --ours target/release/harrier --peer haproxy [--rounds 7] [--rate 1000] [--delay 5] [--seconds 6]

A client keeps to the rate over 32 connections, and an agent in this script answers each question after so many milliseconds by
setting a variable, which the response shows. Both programs run all the time, pinned to processor 0 with one thread each, and are
measured in turn, who is first changes; client and agent have processor 1. What is told is CPU time of the program for each
request (from /proc/PID/schedstat: nanoseconds), the median of the ratios of the pairs with their spread, the 99th percentile of
latency, and how many answers lacked the variable. All traffic stays on loopback.
"""
import argparse, asyncio, multiprocessing, os, socket, statistics, subprocess, tempfile, time

import beside
import ports
from spoa import ACK, AGENT_HELLO, HELLO, NOTIFY, Reader, frame, items, set_var, typed

CONFIG = """global
    nbthread 1
defaults
    mode http
    timeout connect 1s
    timeout client 30s
    timeout server 30s
frontend f
    bind 127.0.0.1:{port}
    filter spoe engine e config {spoe}
    http-request return status 200 hdr x-said "%[var(txn.p.said)]"
backend agents
    mode spop
    server a 127.0.0.1:{agent}
"""
SPOE = """[e]
spoe-agent ag
    messages m
    option var-prefix p
    timeout processing 500ms
    use-backend agents
spoe-message m
    args ip=src path=path host=req.hdr(host)
    event on-frontend-http-request
"""
CONNECTIONS = 32


GREETING = frame(AGENT_HELLO, items([("version", typed("str", "2.0")), ("max-frame-size", typed("uint32", 16380)),
                                     ("capabilities", typed("str", "pipelining"))]))
ANSWER = set_var("txn.said", typed("str", "yes"))


class Agent(asyncio.Protocol):
    delay = 0.0

    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        data, at = self.data + data, 0
        while len(data) >= at + 4:
            end = at + 4 + int.from_bytes(data[at:at + 4], "big")
            if len(data) < end:
                break
            if data[at + 4] == HELLO:
                self.transport.write(GREETING)
            elif data[at + 4] == NOTIFY:
                ids = Reader(data[at + 9:end])
                answer = frame(ACK, ANSWER, ids.number(), ids.number())
                asyncio.get_running_loop().call_later(self.delay, self.transport.write, answer)
            at = end
        self.data = data[at:]


def serve(sock, delay):
    os.sched_setaffinity(0, {1})
    Agent.delay = delay

    async def run():
        server = await asyncio.get_running_loop().create_server(Agent, sock=sock)
        await server.serve_forever()

    asyncio.run(run())


class Client(asyncio.Protocol):
    """One connection: a request at a time."""

    def connection_made(self, transport):
        self.transport, self.data, self.answered = transport, b"", None

    def data_received(self, data):
        self.data += data
        if self.data.endswith(b"\r\n\r\n") and self.answered:
            answered, self.answered, answer, self.data = self.answered, None, self.data, b""
            answered.set_result(b"x-said: yes" in answer)

    def ask(self):
        self.answered = asyncio.get_running_loop().create_future()
        self.transport.write(b"GET /a/path HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: bench\r\n\r\n")
        return self.answered


async def load(port, rate, seconds):
    """(latencies, answers without the variable)"""
    loop, times, wrong, tasks = asyncio.get_running_loop(), [], 0, set()
    free = [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]

    async def one(client, begun):
        nonlocal wrong
        wrong += not await client.ask()
        times.append(time.monotonic() - begun)
        free.append(client)

    begun = time.monotonic()
    for number in range(int(rate * seconds)):
        due = begun + number / rate
        while time.monotonic() < due or not free:
            await asyncio.sleep(max(0.0005, due - time.monotonic()))
        task = asyncio.ensure_future(one(free.pop(), time.monotonic()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if tasks:
        await asyncio.wait(tasks)
    for client in free:
        client.transport.close()
    return times, wrong


class Program:
    def __init__(self, binary, folder, name, agent):
        self.port, spoe, path = ports.free(), os.path.join(folder, f"{name}.spoe"), os.path.join(folder, f"{name}.cfg")
        with open(spoe, "w") as file:
            file.write(SPOE)
        with open(path, "w") as file:
            file.write(CONFIG.format(port=self.port, spoe=spoe, agent=agent))
        self.process = subprocess.Popen(["taskset", "-c", "0", binary, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ports.await_listener(self.port)

    def round(self, args):
        before = beside.cpu(self.process.pid)
        times, wrong = asyncio.run(load(self.port, args.rate, args.seconds))
        used = beside.cpu(self.process.pid) - before
        return used / len(times) / 1000, sorted(times)[len(times) * 99 // 100] * 1000, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=5, help="milliseconds that the agent takes")
    parser.add_argument("--seconds", type=float, default=6)
    args = parser.parse_args()
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    agent = multiprocessing.Process(target=serve, args=(sock, args.delay / 1000), daemon=True)
    agent.start()
    os.sched_setaffinity(0, {1})
    ratios, each, late, wrong = [], {"ours": [], "peer": []}, {"ours": [], "peer": []}, {"ours": 0, "peer": 0}
    with tempfile.TemporaryDirectory() as folder:
        pair = {name: Program(getattr(args, name), folder, name, sock.getsockname()[1]) for name in ("ours", "peer")}
        try:
            # The first round warms both up.
            for number in range(args.rounds + 1):
                for name in sorted(pair, reverse=number % 2 == 1):
                    used, p99, bad = pair[name].round(args)
                    wrong[name] += bad
                    if number > 0:
                        each[name].append(used)
                        late[name].append(p99)
                if number > 0:
                    ratios.append(each["ours"][-1] / each["peer"][-1])
        finally:
            for program in pair.values():
                program.process.kill()
    middle = statistics.median
    print(f"ours {middle(each['ours']):.1f} us, HAProxy {middle(each['peer']):.1f} us, {beside.ratio(ratios)}; "
          f"p99 {middle(late['ours']):.1f} and {middle(late['peer']):.1f} ms; without the variable {wrong['ours']} and {wrong['peer']}")


if __name__ == "__main__":
    main()
