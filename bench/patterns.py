#!/usr/bin/env python3
"""What pattern files cost: load time, memory, look-ups; ours beside HAProxy's.

    bench/patterns.py --ours target/release/harrier --peer haproxy [--dir DIR] [--slow]

Generates the files (about 800 MB in DIR, kept for the next run) and prints a table. --slow also lets the peer load the shuffled
addresses, which takes it two minutes.
"""
import argparse, multiprocessing, os, random, socket, subprocess, tempfile, threading, time

CONFIG = """global
 nbthread 1
 tune.pattern.cache-size 0
defaults
 mode http
 timeout client 30s
 timeout server 5s
 timeout connect 5s
frontend f
 bind 127.0.0.1:%d
"""
FIELDS = 20
VALUE = "a" * 20 + "/some/path/that/is/long?with=query&and=more;" + "z" * 36


def generate(folder):
    """17.7 million addresses of which 16.7 are distinct, a million strings of 120 bytes, 10,000 short patterns."""
    def file(name, lines):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with open(path + ".part", "w") as f:
                f.writelines(line + "\n" for line in lines())
            os.rename(path + ".part", path)

    rng = random.Random(1)
    def addresses(shuffle):
        list_ = sorted(list(range(1 << 24)) + rng.sample(range(1 << 24), 940_000))
        if shuffle:
            rng.shuffle(list_)
        return ("10.%d.%d.%d" % (i >> 16, i >> 8 & 255, i & 255) for i in list_)
    def agents():
        head = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 build "
        return ("%s%08x%08x%04d" % (head, rng.getrandbits(32), i, i % 10000) for i in range(1_000_000))
    file("sorted", lambda: addresses(False))
    file("shuffled", lambda: addresses(True))
    file("agents", agents)
    file("short", lambda: ("%012x%04x" % (rng.getrandbits(48), i) for i in range(10_000)))


def write(text):
    f = tempfile.NamedTemporaryFile("w", suffix=".cfg", delete=False)
    f.write(text)
    f.close()
    return f.name


def load(program, test):
    """Seconds (on the clock and of CPU) and MB that `-c` takes. The two differ when something stopped the program."""
    cfg = write(CONFIG % 1 + " http-request deny if { %s }\n" % test)
    start = time.monotonic()
    child = subprocess.Popen([program, "-c", "-f", cfg], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    took = time.monotonic() - start
    os.unlink(cfg)
    cpu = usage.ru_utime + usage.ru_stime
    return "%.2f s (CPU %.2f), %d MB" % (took, cpu, usage.ru_maxrss // 1024) if status == 0 else "failed"


class Running:
    """A running proxy and a connection to it."""

    def __init__(self, program, rules):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.api = tempfile.mktemp(suffix=".sock")
        head = "global\n stats socket %s level admin\n" % self.api
        self.cfg = write(head + CONFIG % self.port + "".join(" %s\n" % r for r in rules))
        self.start = time.monotonic()
        null = subprocess.DEVNULL
        self.child = subprocess.Popen([program, "-db", "-f", self.cfg], stdout=null, stderr=null)
        while self.child.poll() is None and time.monotonic() < self.start + 300:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                return
            except OSError:
                time.sleep(0.005)
        raise SystemExit("%s does not start" % program)

    def ask(self, value):
        self.socket.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nx: %s\r\n\r\n" % value.encode())
        head = b""
        while b"\r\n\r\n" not in head:
            got = self.socket.recv(65536)
            if not got:
                raise SystemExit("the proxy closed the connection")
            head += got
        return int(head[9:12])

    def cpu(self):
        fields = open("/proc/%d/stat" % self.child.pid).read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self):
        lines = open("/proc/%d/status" % self.child.pid).readlines()
        return next(int(l.split()[1]) // 1024 for l in lines if l.startswith("VmHWM"))

    def stop(self):
        self.socket.close()
        self.child.kill()
        self.child.wait()
        os.unlink(self.cfg)
        if os.path.exists(self.api):
            os.unlink(self.api)


def changes(program, test, path, new):
    """Milliseconds that an addition and a deletion take over the runtime API, answer included, and the longest that a request
    takes meanwhile."""
    run = Running(program, ["http-request return status 200 if { %s -f %s }" % (test, path), "http-request return status 201"])
    api = socket.socket(socket.AF_UNIX)
    api.connect(run.api)
    def tell(command):
        start = time.monotonic()
        api.sendall(command.encode() + b"\n")
        while not api.recv(65536).endswith(b"> "):
            pass
        return time.monotonic() - start
    tell("prompt")
    longest, over = 0, threading.Event()
    def requests():
        nonlocal longest
        while not over.is_set():
            start = time.monotonic()
            run.ask("10.1.2.3")
            longest = max(longest, time.monotonic() - start)
    reader = threading.Thread(target=requests)
    reader.start()
    cells = []
    for verb in ("add", "del"):
        took = sorted(tell("%s acl %s %s" % (verb, path, new(n))) for n in range(1000))
        cells.append("%s: median %.3f ms, p99 %.3f ms" % (verb, took[500] * 1e3, took[990] * 1e3))
    over.set()
    reader.join()
    run.stop()
    return "; ".join(cells) + "; longest request %.1f ms" % (longest * 1e3)


def answers(program, path):
    """Asks for 1,000 members and 1,000 others."""
    member = "http-request return status 200 if { req.hdr_ip(x) -f %s }" % path
    run = Running(program, [member, "http-request return status 201"])
    rng, wrong = random.Random(5), 0
    low = lambda: ".".join(str(rng.randrange(256)) for _ in range(3))
    for _ in range(1000):
        wrong += run.ask("10." + low()) != 200
        wrong += run.ask("%d.%s" % (rng.choice([9, 11, 172, 192]), low())) != 201
    text = "%d wrong, all by %.2f s, %d MB" % (wrong, time.monotonic() - run.start, run.peak())
    run.stop()
    return text


def look_up(program, kind, path, requests):
    """Microseconds of CPU that one look-up adds to a request: twenty fields with a rule each, beside twenty fields alone."""
    cost, fields = [], "a\r\n" + "\r\n".join("x%d: %s%02d" % (n, VALUE[:-2], n) for n in range(FIELDS))
    for rules in (FIELDS, 0):
        test = "http-request set-var(txn.v) int(1) if { req.hdr(x%d) -m %s -f %s }"
        rules = [test % (n, kind, path) for n in range(rules)]
        run = Running(program, rules + ["http-request return status 200"])
        run.ask(fields)
        before = run.cpu()
        for _ in range(requests):
            run.ask(fields)
        cost.append((run.cpu() - before) / requests)
        run.stop()
    return "%.2f us" % ((cost[0] - cost[1]) / FIELDS * 1e6)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--ours", required=True)
    args.add_argument("--peer", required=True)
    args.add_argument("--dir", default="/tmp/harrier-patterns")
    args.add_argument("--slow", action="store_true")
    args = args.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    # In a process of its own: what it needs would count as the peak of every child.
    child = multiprocessing.Process(target=generate, args=(args.dir,))
    child.start()
    child.join()
    at = lambda name: os.path.join(args.dir, name)
    row = lambda *cells: print("| %s |" % " | ".join(cells), flush=True)
    row("what", "ours", "HAProxy")
    row("---", "---", "---")
    both = lambda what, measure: row(what, measure(args.ours), measure(args.peer))
    both("17.7 M addresses in order", lambda p: load(p, "src -f " + at("sorted")))
    ours = load(args.ours, "src -f " + at("shuffled"))
    row("17.7 M addresses shuffled", ours, load(args.peer, "src -f " + at("shuffled")) if args.slow else "")
    both("1 M strings of 120 bytes", lambda p: load(p, "req.hdr(x) -f " + at("agents")))
    for name in ("sorted", "shuffled"):
        row("running, %s" % name, answers(args.ours, at(name)), "")
    address = lambda n: "192.168.%d.%d" % (n >> 8, n & 255)
    agent = lambda n: "agent%04d%s" % (n, "x" * 110)
    row("runtime changes, 17.7 M addresses", changes(args.ours, "req.hdr_ip(x)", at("sorted"), address), "")
    row("runtime changes, 1 M strings", changes(args.ours, "req.hdr(x)", at("agents"), agent), "")
    for kind in ("sub", "end"):
        count = lambda p: 20_000 if p == args.ours else 200
        both("10,000 `-m %s`, 100 bytes" % kind, lambda p: look_up(p, kind, at("short"), count(p)))


if __name__ == "__main__":
    main()
