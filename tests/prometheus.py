#!/usr/bin/env python3
"""prometheus.py PROGRAM [HAPROXY]: Debian's prometheus scrapes the service prometheus-exporter of PROGRAM, and what it kept is what the
program told; promtool has no more to say of its metrics than of those of HAPROXY. Loopback only; exits 1 if something is wrong."""
import json, os, shutil, subprocess, sys, tempfile, time, urllib.parse, urllib.request

import ports


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


def retried(work):
    for _ in range(300):
        try:
            if result := work():
                return result
        except OSError:
            pass
        time.sleep(.1)
    sys.exit("prometheus: waited in vain")


def start(program, folder):
    port = ports.free()
    with open(f"{folder}/cfg", "w") as f:
        f.write(f"""defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
resolvers r
    nameserver d1 127.0.0.1:1
frontend f
    bind 127.0.0.1:{port}
    description "all of it"
    http-request use-service prometheus-exporter if {{ path /metrics }}
    default_backend b
backend b
    stick-table type ip size 1k expire 1h store gpc0
    server up 127.0.0.1:{port} check
    server down 127.0.0.1:1 disabled weight 7
""")
    process = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    retried(lambda: get(port, "/metrics"))
    return process, port


def lint(port):
    """What promtool complains of."""
    said = set()
    for query in ("", "?extra-counters&desc-labels"):
        text = get(port, "/metrics" + query)
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        said |= {line.strip() for line in (done.stdout + done.stderr).splitlines()}
    return said


def main(program, oracle=None):
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("prometheus: 0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(program, folder)
        own = ports.free()
        with open(f"{folder}/prometheus.yml", "w") as f:
            f.write(f"""global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: proxy
    static_configs:
      - targets: ['127.0.0.1:{port}']
""")
        scraper = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address=127.0.0.1:{own}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def query(text):
                answer = json.loads(get(own, "/api/v1/query?query=" + urllib.parse.quote(text)))
                return {tuple(sorted((k, v) for k, v in r["metric"].items() if k not in ("instance", "job"))): r["value"][1]
                        for r in answer["data"]["result"]}

            assert retried(lambda: query("up")) == {(("__name__", "up"),): "1"}
            weights = retried(lambda: query("haproxy_server_weight"))
            told = dict(line.rsplit(" ", 1) for line in get(port, "/metrics?metrics=haproxy_server_weight").splitlines() if line[0] != "#")
            assert {dict(k)["server"]: v for k, v in weights.items()} == {"up": "1", "down": "7"}, weights
            assert len(told) == 2, told
            # All that a scrape has is kept.
            kept = int(retried(lambda: query("scrape_samples_scraped")).popitem()[1])
            lines = sum(1 for line in get(port, "/metrics").splitlines() if line and line[0] != "#")
            assert abs(kept - lines) <= 2, (kept, lines)
            ours = lint(port)
            print(f"prometheus keeps {kept} samples, promtool says {len(ours)} things")
        finally:
            for p in (scraper, process):
                p.terminate()
                p.wait()
        if oracle:
            process, port = start(oracle, folder)
            more = ours - lint(port)
            process.terminate()
            process.wait()
            assert not more, f"promtool says of ours only: {sorted(more)}"
    print("prometheus: 1 passed, 0 failed, 0 skipped")
    return 0


sys.exit(main(*sys.argv[1:3]))
