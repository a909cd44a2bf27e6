#!/usr/bin/env python3
"""What it costs to exchange a stick table with a peer, beside HAProxy.

    bench/peers.py --ours target/release/harrier --peer haproxy [--rounds 5] [--entries 1000000] [--updates 400000]

`lesson`: a process that knows so many entries of four data types teaches one that starts; told is the time from the first entry that it
knows to the last one, for each pair of programs, and whether both tables are equal but for rates and expiry (a sample of keys).
`updates`: a process of HAProxy tells the same updates to two peers at once, one of them Harrier; told is the processor time of each
for each update that it learns. Then the other way round: one Harrier and one HAProxy take the same commands, each with a
peer and without; told is what having the peer adds for each update. Processor time is /proc/PID/schedstat's. All traffic stays on loopback.
"""
import argparse, os, random, re, socket, statistics, subprocess, tempfile, time

import beside
import ports

CONFIG = """global
    nbthread 1
    stats socket {socket} level admin
    localpeer {name}
defaults
    mode http
    timeout connect 1s
    timeout client 10s
    timeout server 10s
peers ps
{peers}frontend f
    bind unix@{folder}/{name}.http
    http-request track-sc0 int(1) table t
    http-request return status 200
backend t
    stick-table type integer size 2m expire 1h store gpc0,conn_cnt,http_req_rate(10s),bytes_out_cnt peers ps
"""


class Node:
    def __init__(self, binary, folder, name, peers):
        """`peers`: name to port, itself included."""
        self.name, self.socket = name, os.path.join(folder, f"{name}.sock")
        path = os.path.join(folder, f"{name}.cfg")
        lines = "".join(f"    peer {other} 127.0.0.1:{port}\n" for other, port in peers.items())
        with open(path, "w") as file:
            file.write(CONFIG.format(socket=self.socket, name=name, folder=folder, peers=lines))
        self.process = subprocess.Popen([binary, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.ask("show info")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{binary} does not start")
                time.sleep(0.02)

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self.socket)
            sock.sendall(command.encode() + b"\n")
            out = b""
            while data := sock.recv(1 << 16):
                out += data
            return out.decode()

    def used(self):
        return int(re.search(r"used:(\d+)", self.ask("show table"))[1])

    def knows(self, key):
        line = self.ask(f"show table t key {key}")
        return sorted(re.findall(r"(?:gpc0|conn_cnt|bytes_out_cnt)=\d+", line))

    def set(self, keys, value):
        """Sets entries, as many commands on a line as it may have."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(self.socket)
            sock.sendall(b"prompt\n")
            sock.settimeout(60)
            waiting = 1
            for at in range(0, len(keys), 100):
                line = ";".join(f"set table t key {k} data.gpc0 {value} data.conn_cnt {k % 97} data.bytes_out_cnt {k}" for k in keys[at:at + 100])
                sock.sendall(line.encode() + b"\n")
                waiting += 1
                while waiting > 20:
                    waiting -= sock.recv(1 << 16).count(b"> ")
            while waiting > 0:
                waiting -= sock.recv(1 << 16).count(b"> ")

    def cpu(self):
        return beside.cpu(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()


def lesson(binaries, pair, folder, args):
    """Seconds for each round."""
    teacher, pupil = pair
    peers = {name: ports.free() for name in "ab"}
    first = Node(binaries[teacher], folder, "a", peers)
    took, same = [], True
    try:
        first.set(range(1, args.entries + 1), 5)
        for _ in range(args.rounds):
            second = Node(binaries[pupil], folder, "b", peers)
            try:
                while second.used() == 0:
                    time.sleep(0.001)
                begun = time.monotonic()
                while second.used() < args.entries:
                    time.sleep(0.005)
                took.append(time.monotonic() - begun)
                some = random.sample(range(1, args.entries + 1), 200)
                same = same and all(first.knows(key) == second.knows(key) for key in some)
            finally:
                second.stop()
    finally:
        first.stop()
    print(f"lesson {teacher:7} -> {pupil:7} {statistics.median(took):.2f} s ({min(took):.2f}-{max(took):.2f}), {'equal' if same else 'NOT EQUAL'}", flush=True)


def settle(nodes, keys, value):
    """Waits until all know the last value."""
    for node in nodes:
        while f"gpc0={value}" not in node.knows(keys[-1]):
            time.sleep(0.01)
    time.sleep(0.3)


def learning(binaries, folder, args):
    """An update's processor time at those that learn it."""
    peers = {name: ports.free() for name in "abc"}
    nodes = [Node(binaries[program], folder, name, peers) for name, program in (("a", "peer"), ("b", "ours"), ("c", "peer"))]
    keys, ratios, costs = list(range(1, 20001)), [], []
    try:
        time.sleep(3)
        for number in range(args.rounds + 1):
            before = [node.cpu() for node in nodes]
            for turn in range(args.updates // len(keys)):
                nodes[0].set(keys, number * 1000 + turn + 1)
            settle(nodes[1:], keys, number * 1000 + turn + 1)
            cost = [(node.cpu() - past) / args.updates / 1000 for node, past in zip(nodes, before)][1:]
            if number > 0:
                costs.append(cost)
                ratios.append(cost[0] / cost[1])
    finally:
        for node in nodes:
            node.stop()
    told("learnt", costs, ratios)


def telling(binaries, folder, args):
    """What a peer adds to an update's processor time at the one that tells it."""
    costs, ratios = [], []
    keys = list(range(1, 20001))
    for number in range(args.rounds):
        cost = {}
        for program in sorted(binaries, reverse=number % 2 == 1):
            spent = []
            for alone in (True, False):
                peers = {name: ports.free() for name in "ab"}
                nodes = [Node(binaries[program], folder, "a", peers)]
                if not alone:
                    nodes.append(Node(binaries["peer"], folder, "b", peers))
                try:
                    time.sleep(2)
                    nodes[0].set(keys, 1)
                    before = nodes[0].cpu()
                    for turn in range(args.updates // len(keys)):
                        nodes[0].set(keys, turn + 2)
                    settle(nodes, keys, turn + 2)
                    spent.append(nodes[0].cpu() - before)
                finally:
                    for node in nodes:
                        node.stop()
            cost[program] = (spent[1] - spent[0]) / args.updates / 1000
        costs.append([cost["ours"], cost["peer"]])
        ratios.append(cost["ours"] / cost["peer"])
    told("told", costs, ratios)


def told(what, costs, ratios):
    ours, theirs = (statistics.median(part) for part in zip(*costs))
    print(f"{what:6} ours {ours:.2f} us, HAProxy {theirs:.2f} us for an update, {beside.ratio(ratios)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=400_000)
    parser.add_argument("--only", default="learnt,told,lesson")
    args = parser.parse_args()
    binaries = {"ours": args.ours, "peer": args.peer}
    with tempfile.TemporaryDirectory() as folder:
        if "learnt" in args.only:
            learning(binaries, folder, args)
        if "told" in args.only:
            telling(binaries, folder, args)
        if "lesson" in args.only:
            for pair in (("peer", "peer"), ("peer", "ours"), ("ours", "peer"), ("ours", "ours")):
                lesson(binaries, pair, folder, args)


if __name__ == "__main__":
    main()
