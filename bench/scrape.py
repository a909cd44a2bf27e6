#!/usr/bin/env python3
"""scrape.py --ours PROGRAM --peer HAPROXY [--rounds N] [--backends N] [--scrapes N]: what it costs to read the metrics of many backends of three
servers, and how long other requests wait meanwhile: whoever scrapes is a process of the lowest priority, so that it is the program that the others
wait for and not a processor. Rounds are taken in turn; the median of the pairs counts. Loopback only."""
import argparse, multiprocessing, os, socket, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import ports


def write(folder, port, backends):
    with open(f"{folder}/cfg", "w") as file:
        file.write(f"""global
    nbthread 2
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 1s
frontend f
    bind 127.0.0.1:{port}
    http-request use-service prometheus-exporter if {{ path /metrics }}
    http-request return status 200
""")
        for n in range(backends):
            file.write(f"backend b{n}\n" + "".join(f"    server s{k} 127.0.0.1:{20000 + k}\n" for k in range(3)))


def get(port, path):
    """How many bytes came, and after how long."""
    begun, bytes_read = time.monotonic(), 0
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\nHost: a\r\n\r\n".encode())
        while piece := client.recv(1 << 20):
            bytes_read += len(piece)
    return bytes_read, time.monotonic() - begun


def cpu(pid):
    """Seconds that all threads ran."""
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9


def scrape(port, times):
    os.nice(19)
    for _ in range(times):
        get(port, "/metrics")


def measure(program, args):
    with tempfile.TemporaryDirectory() as folder:
        port = ports.free()
        write(folder, port, args.backends)
        process = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    get(port, "/metrics")
                    break
                except OSError:
                    time.sleep(.1)
            before = cpu(process.pid)
            sizes = [get(port, "/metrics")[0] for _ in range(args.scrapes)]
            each = (cpu(process.pid) - before) / args.scrapes
            other, waits = multiprocessing.Process(target=scrape, args=(port, args.scrapes)), []
            other.start()
            while other.is_alive():
                waits.append(get(port, "/")[1])
                time.sleep(.001)
            other.join()
        finally:
            process.kill()
            process.wait()
    waits.sort()
    return each * 1000, sizes[-1], waits[len(waits) * 99 // 100] * 1000, waits[-1] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backends", type=int, default=1000)
    parser.add_argument("--scrapes", type=int, default=20)
    args = parser.parse_args()
    pairs = []
    for turn in range(args.rounds):
        found = {name: measure(getattr(args, name), args) for name in ("ours", "peer")}
        for name, (each, size, late, latest) in found.items():
            print(f"round {turn + 1} {name}: {each:.1f} ms of CPU for {size} bytes; others waited {late:.2f} ms (p99), {latest:.2f} ms at most", flush=True)
        pairs.append(found["ours"][0] / found["peer"][0])
    print(f"CPU, ours / peer: {statistics.median(pairs):.2f} ({min(pairs):.2f}-{max(pairs):.2f})")


if __name__ == "__main__":
    main()
