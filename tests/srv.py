#!/usr/bin/env python3
"""srv.py PROGRAM HAPROXY: 1,000 servers come by SRV from real name servers (nsd, and unbound before it), change, and go. The states of the
servers of both programs must be equal but for which server of the template has which record. Needs nsd and unbound; loopback only.
Prints a line for each step, exits 1 if there is a difference."""
import os, shutil, signal, socket, subprocess, sys, tempfile, time

COUNT, ROOM = 1000, 1100


def free():
    with socket.socket() as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        s.bind(("127.0.0.1", 0))
        u.bind(s.getsockname())
        return s.getsockname()[1]


def zone(path, serial, hosts):
    """Host n is at 127.0.x.y, its service at port 8000 + n with a weight of its own."""
    lines = ["$ORIGIN test.", "$TTL 1", f"@ IN SOA ns.test. me.test. {serial} 3600 900 1209600 1", "@ IN NS ns.test.", "ns IN A 127.0.0.1"]
    for n in hosts:
        lines.append(f"_w._tcp.s IN SRV 1 {n * 65} {8000 + n} h{n}")
        lines.append(f"h{n} IN A 127.0.{1 + n // 200}.{1 + n % 200}")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")


def command(path, text):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(path)
        s.sendall(text.encode() + b"\n")
        return b"".join(iter(lambda: s.recv(65536), b"")).decode()


def states(path):
    """What is known of each server that has an address, and of how many it is so."""
    found = {}
    for w in map(str.split, command(path, "show servers state b").splitlines()[2:]):
        if len(w) < 20:
            continue
        # address, operational and administrative state, weights, name, port, record
        # What one without an address was before depends on which of them had which record.
        state = ("-", w[5]) if int(w[6]) & 32 else (w[4], w[5], w[6], w[7], w[8], w[17], w[18], w[19])
        found[state] = found.get(state, 0) + 1
    return found


def start(program, folder, name, port):
    socket_path, path = f"{folder}/{name}.sock", f"{folder}/{name}.cfg"
    with open(path, "w") as f:
        f.write(f"""global
    stats socket {socket_path} level admin
    nbthread 1
resolvers r
    nameserver d tcp@127.0.0.1:{port}
    accepted_payload_size 65535
    timeout resolve 500ms
    timeout retry 1s
    hold obsolete 0s
    hold nx 0s
    hold other 0s
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
backend b
    server-template s {ROOM} _w._tcp.s.test resolvers r resolve-prefer ipv4 init-addr none
""")
    log = open(f"{folder}/{name}.log", "w")
    return subprocess.Popen([program, "-db", "-f", path], stdout=log, stderr=log), socket_path


def settled(paths, count):
    """The states of all once each has `count` servers with an address, or what there is after a while."""
    end = time.monotonic() + 30
    while True:
        try:
            all_states = [states(p) for p in paths]
        except OSError:
            all_states = []
        up = [sum(n for s, n in found.items() if s[1] == "2") for found in all_states]
        if up and all(n == count for n in up) or time.monotonic() > end:
            return all_states, up
        time.sleep(.3)


def main(programs):
    differ = False
    with tempfile.TemporaryDirectory(prefix="srv") as folder:
        os.chmod(folder, 0o755)
        authority, cache = free(), free()
        zone(f"{folder}/zone", 1, range(COUNT))
        with open(f"{folder}/nsd.conf", "w") as f:
            f.write(f"""server:
    ip-address: 127.0.0.1
    port: {authority}
    username: ""
    chroot: ""
    zonesdir: "{folder}"
    database: ""
    pidfile: "{folder}/nsd.pid"
    xfrdfile: "{folder}/xfrd.state"
    zonelistfile: "{folder}/zone.list"
    xfrdir: "{folder}"
    logfile: "{folder}/nsd.log"
    rrl-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: test
    zonefile: zone
""")
        with open(f"{folder}/unbound.conf", "w") as f:
            f.write(f"""server:
    interface: 127.0.0.1@{cache}
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: ""
    use-syslog: no
    do-not-query-localhost: no
    module-config: "iterator"
    local-zone: "test." nodefault
    cache-max-ttl: 1
    outgoing-range: 200
    incoming-num-tcp: 200
    private-address: 10.0.0.0/8
stub-zone:
    name: "test"
    stub-addr: 127.0.0.1@{authority}
""")
        find = lambda name: shutil.which(name) or f"/usr/sbin/{name}"
        log = open(f"{folder}/servers.log", "w")
        servers = [subprocess.Popen([find("nsd"), "-d", "-c", f"{folder}/nsd.conf"], stdout=log, stderr=log),
                   subprocess.Popen([find("unbound"), "-d", "-p", "-c", f"{folder}/unbound.conf"], stdout=log, stderr=log)]
        running = []
        try:
            time.sleep(1)
            for kind, port in (("nsd", authority), ("unbound", cache)):
                zone(f"{folder}/zone", 1, range(COUNT))
                servers[0].send_signal(signal.SIGHUP)
                started = [start(p, folder, f"{kind}{i}", port) for i, p in enumerate(programs)]
                running.extend(p for p, _ in started)
                paths = [path for _, path in started]
                steps = [("all", range(COUNT)), ("700", range(300, COUNT)), ("1050", range(1050)), ("none", range(0))]
                for serial, (step, hosts) in enumerate(steps):
                    if serial:
                        zone(f"{folder}/zone", serial + 1, hosts)
                        servers[0].send_signal(signal.SIGHUP)
                    found, up = settled(paths, len(hosts))
                    same = len(found) == len(programs) and all(f == found[0] for f in found)
                    print(f"{kind}, {step}: {up} servers are up, states are {'equal' if same else 'different'}", flush=True)
                    if not same:
                        differ = True
                        for one, other in ((0, 1), (1, 0)):
                            odd = [(s, n) for s, n in found[one].items() if found[other].get(s) != n] if len(found) > 1 else []
                            print(f"  {os.path.basename(programs[one])}: {len(odd)} others, {odd[:4]}")
                for p in running:
                    p.kill()
                    p.wait()
                running = []
        finally:
            for p in running + servers:
                p.kill()
                p.wait()
            if differ:
                print(open(f"{folder}/servers.log").read()[-800:])
    return differ


sys.exit(main(sys.argv[1:3]))
