#!/usr/bin/env python3
"""CPU that a message costs in a `log-forward` section, and whether any is lost, beside HAProxy.

    bench/log_forward.py --ours target/release/harrier --peer haproxy [--only udp,tcp] [--rounds 7] [--rate 20000] [--seconds 3]

A sender keeps to the rate, in small bursts each millisecond; a sink counts what comes out. Both programs run all the time with
one thread each and are measured in turn, who is first changes. What is told is the processor time of the program for each
message sent (of all its threads, to the nanosecond: at low rates the ticks of /proc/PID/stat are too coarse), the share of it
in user mode, the median of the ratios of the pairs with their spread, and what was lost: in the program, since the sink has
a large buffer and says what it lost itself. All traffic stays on loopback.
"""
import argparse, multiprocessing, os, shutil, signal, socket, statistics, struct, subprocess, sys, tempfile, time

import beside

# What comes in, over what; what goes out, over what.
LOADS = {
    "udp": ("udp", "udp"),
    "udp-2": ("udp", "udp"),
    "tcp": ("tcp", "udp"),
    "tcp-lf": ("tcp-lf", "udp"),
    "udp-ring": ("udp", "tcp"),
    "tcp-ring": ("tcp", "tcp"),
}
CONFIG = """global
    nbthread 1
{extra}log-forward in
    {bind}
    maxconn 100
    timeout client 100s
{log}"""
RING = "ring out\n    size 8388608\n    maxlen 2000\n    timeout connect 5s\n    timeout server 60s\n    server s 127.0.0.1:{sink}\n"
MESSAGES = [
    b"<134>1 2026-11-28T00:00:00.123Z web1 nginx 4321 - - 203.0.113.7 GET /static/app.js 200 5312 0.004 "
    b"\"Mozilla/5.0 (X11; Linux x86_64)\" cache=hit upstream=10.0.0.12:8080 n=%07d",
    b"<86>Nov 28 00:00:00 web1 sshd[12345]: Accepted publickey for deploy from 198.51.100.23 port 51234 ssh2: "
    b"ED25519 SHA256:0123456789abcdef0123456789abcdef n=%07d",
]


def udp_socket():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # The sink must not be what loses (SO_RCVBUFFORCE needs root).
    for option in (33, socket.SO_RCVBUF):
        try:
            sock.setsockopt(socket.SOL_SOCKET, option, 64 << 20)
            break
        except OSError:
            pass
    sock.bind(("127.0.0.1", 0))
    return sock


def udp_sink(sock, count):
    buf = bytearray(65536)
    while True:
        sock.recv_into(buf)
        count.value += 1


def tcp_sink(listener, count):
    while True:
        conn, _ = listener.accept()
        buf = bytearray(1 << 20)
        while got := conn.recv_into(buf):
            count.value += buf.count(b" n=", 0, got)


def start_sink(kind):
    count = multiprocessing.Value("Q", 0, lock=False)
    if kind == "udp":
        sock, work = udp_socket(), udp_sink
    else:
        sock, work = socket.socket(), tcp_sink
        sock.bind(("127.0.0.1", 0))
        sock.listen(16)
    port = sock.getsockname()[1]
    process = multiprocessing.Process(target=work, args=(sock, count), daemon=True)
    process.start()
    return port, count, process


def free_port(kind):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def frames(kind, number):
    message = MESSAGES[number % len(MESSAGES)] % number
    return {"udp": message, "tcp": b"%d %s" % (len(message), message), "tcp-lf": message + b"\n"}[kind]


def send(kind, port, rate, messages):
    """Sends so many, at the rate; how long it took."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    sock.connect(("127.0.0.1", port))
    ready = [frames(kind, n) for n in range(4096)]
    begun, sent = time.monotonic(), 0
    while sent < messages:
        due = min(messages, int((time.monotonic() - begun) * rate) + 1)
        # A sender that was kept waiting by the machine doesn't make up for it in one blow.
        due = min(due, sent + max(1, rate // 250))
        if due <= sent:
            time.sleep(0.001)
            continue
        burst = [ready[n % 4096] for n in range(sent, due)]
        if kind == "udp":
            for message in burst:
                sock.send(message)
        else:
            sock.sendall(b"".join(burst))
        sent = due
    took = time.monotonic() - begun
    sock.close()
    return took


def cpu(pid):
    """Seconds in user mode by ticks, and seconds in all."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK"), beside.cpu(pid) / 1e9


def drops(port):
    """Datagrams that the kernel dropped at a UDP socket with this port."""
    lines = open("/proc/net/udp").read().splitlines()[1:]
    return sum(int(line.split()[-1]) for line in lines if int(line.split()[1].split(":")[1], 16) == port)


class Program:
    def __init__(self, binary, load, folder, name):
        self.kind, out = LOADS[load]
        self.sink, self.count, self.counter = start_sink(out)
        self.sinks = [(self.sink, self.count)]
        self.port = free_port(self.kind)
        bind = f"dgram-bind 127.0.0.1:{self.port}" if self.kind == "udp" else f"bind 127.0.0.1:{self.port}"
        targets = [f"127.0.0.1:{self.sink}"] if out == "udp" else ["ring@out"]
        if load.endswith("-2"):
            port, count, self.second = start_sink(out)
            self.sinks.append((port, count))
            targets.append(f"127.0.0.1:{port}")
        extra = RING.format(sink=self.sink) if out == "tcp" else ""
        log = "".join(f"    log {target} local0\n" for target in targets)
        path = os.path.join(folder, f"{name}-{load}.cfg")
        with open(path, "w") as file:
            file.write(CONFIG.format(bind=bind, extra=extra, log=log))
        self.process = subprocess.Popen([binary, "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1.0)

    def round(self, rate, messages):
        before, counts, lost_there = cpu(self.process.pid), [c.value for _, c in self.sinks], self.sink_drops()
        took = send(self.kind, self.port, rate, messages)
        still, seen = 0, None
        while still < 5:
            time.sleep(0.1)
            now = [c.value for _, c in self.sinks]
            still, seen = (still + 1 if now == seen else 0), now
        used = [b - a for a, b in zip(before, cpu(self.process.pid))]
        came = min(b - a for a, b in zip(counts, seen)) + self.sink_drops() - lost_there
        return [s / messages * 1e6 for s in used], messages - came, messages / took

    def sink_drops(self):
        return sum(drops(port) for port, _ in self.sinks)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.counter.kill()


def measure(load, args, folder):
    pair = {"ours": Program(args.ours, load, folder, "ours"), "peer": Program(args.peer, load, folder, "peer")}
    ratios, each, lost, rates = [], {"ours": [], "peer": []}, {"ours": 0, "peer": 0}, []
    try:
        for number in range(args.rounds + 1):
            got = {}
            for name in sorted(pair, reverse=number % 2 == 1):
                used, missing, rate = pair[name].round(args.rate, int(args.rate * args.seconds))
                got[name] = used[1]
                if number > 0:
                    each[name].append(used)
                    lost[name] += missing
                    rates.append(rate)
            # The first round warms both up.
            if number > 0:
                ratios.append(got["ours"] / got["peer"])
    finally:
        for program in pair.values():
            program.stop()
    middle = lambda name: [statistics.median(part) for part in zip(*each[name])]
    ours, peer = middle("ours"), middle("peer")
    print(f"{load:9} ours {ours[1]:6.2f} us ({ours[0]:.2f} user), HAProxy {peer[1]:6.2f} us ({peer[0]:.2f} user), "
          f"{beside.ratio(ratios)}; lost {lost['ours']} and {lost['peer']} of "
          f"{int(args.rate * args.seconds) * args.rounds}; {min(rates):.0f}-{max(rates):.0f} a second", flush=True)
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--only", default=",".join(LOADS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; {args.rounds} pairs of {args.seconds:g} s at {args.rate} messages a second")
    folder = tempfile.mkdtemp()
    try:
        for load in args.only.split(","):
            measure(load, args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
