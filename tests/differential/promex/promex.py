#!/usr/bin/env python3
"""The metrics of the service prometheus-exporter, line by line but for their values, beside what HAProxy answered.

    tests/differential/promex/promex.py --binary PROGRAM      compares with answers.json.gz
    tests/differential/promex/promex.py --record HAPROXY      asks HAProxy anew

Compared are order, names, types, labels, and that each metric has its HELP line; the texts of those are our own. Left out: the metrics
of resolvers (HAProxy has a section of its own making with the machine's name servers), and the version."""
import argparse, gzip, http.client, json, os, re, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWERS = os.path.join(HERE, "answers.json.gz")
QUERIES = ["", "?extra-counters&desc-labels", "?no-maint", "?scope=server&scope=global", "?scope=*&scope=", "?scope=&scope=sticktable",
           "?scope=listener", "?scope=resolver&metrics=none", "?scope=x", "?scope", "?metrics", "?metrics=&other=x", "?x%zz", "?scope=%67lobal",
           "?metrics=-haproxy_process_nbproc&scope=global", "?metrics=haproxy_process_node,haproxy_server_status&desc-labels",
           "?metrics=haproxy_backend_status&metrics=-haproxy_backend_status", "?metrics=-haproxy_backend_weight,haproxy_backend_weight",
           "?extra-counters&scope=frontend&metrics=haproxy_frontend_h1_bytes_in"]
METHODS = ["HEAD", "POST", "PUT", "OPTIONS"]


def plain(text):
    """The lines without values and the texts of HELP."""
    lines = []
    for line in text.splitlines():
        if "haproxy_resolver_" in line:
            continue
        if line.startswith("# HELP "):
            _, _, name, about = line.split(" ", 3)
            assert about.strip(), line
            line = f"# HELP {name}"
        elif not line.startswith("#"):
            line, value = line.rsplit(" ", 1)
            float(value)
            line = re.sub(r'version="[^"]*"', 'version=""', line)
        lines.append(line)
    return lines


def ask(port, method, query):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, "/metrics" + query)
    response = connection.getresponse()
    body = response.read().decode()
    fields = {n.lower(): v for n, v in response.getheaders() if n.lower() in ("content-type", "cache-control", "transfer-encoding")}
    connection.close()
    return {"status": response.status, "fields": fields, "lines": plain(body) if response.status == 200 else []}


def answers(binary):
    found = {}
    for name in sorted(n for n in os.listdir(HERE) if n.endswith(".cfg")):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
        port, numbers = sockets[0].getsockname()[1], [s.fileno() for s in sockets]
        env = dict(os.environ, **dict(zip(["METRICS", "OTHER1", "OTHER2", "OTHER3"], map(str, numbers))))
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen([binary, "-db", "-f", os.path.join(HERE, name)], env=env, pass_fds=numbers,
                                       stdout=said, stderr=said)
            # From here on it alone has them: where it does not start, requests fail at once.
            for s in sockets:
                s.close()
            try:
                settle(port)
                for method, query in [("GET", q) for q in QUERIES] + [(m, "?metrics=haproxy_process_nbproc") for m in METHODS]:
                    found[f"{name} {method} {query}"] = ask(port, method, query)
            finally:
                process.kill()
                process.wait()
    return found


def settle(port):
    """Until the first checks are over, as far as there are such that end."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        lines = http_text(port)
        if 'haproxy_server_check_status' not in lines or re.search(r'haproxy_server_check_status{[^}]*"L4CON"} 1', lines):
            return
        time.sleep(0.05)
    sys.exit("no check has ended")


def http_text(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics?scope=server")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary")
    parser.add_argument("--record")
    args = parser.parse_args()
    if args.record:
        with open(ANSWERS, "wb") as out:
            out.write(gzip.compress(json.dumps(answers(args.record), sort_keys=True).encode(), mtime=0))
        return 0
    with gzip.open(ANSWERS) as kept:
        wanted = json.load(kept)
    got, wrong = answers(args.binary), 0
    for key, want in wanted.items():
        have = got.get(key)
        if want["status"] != 200:
            # The pages of errors are our own.
            want["lines"] = []
        # HAProxy tells the type by the first backend, which has no downtime where it has no servers.
        downtime = "# TYPE haproxy_backend_downtime_seconds_total "
        want["lines"] = [downtime + "counter" if line.startswith(downtime) else line for line in want["lines"]]
        if have == want:
            continue
        wrong += 1
        print(f"FAIL {key}: {have and (have['status'], have['fields'])}, HAProxy {want['status'], want['fields']}")
        mine, theirs = (have or {}).get("lines", []), want["lines"]
        for line in [f"  - {l}" for l in theirs if l not in mine][:10] + [f"  + {l}" for l in mine if l not in theirs][:10]:
            print(line)
    print(f"{len(wanted)} answers compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
