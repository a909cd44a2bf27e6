#!/usr/bin/env python3
"""Instructions that a request takes, by function, counted by callgrind.

    bench/instructions.py --ours target/quick/harrier [--only ka,log,rules,stick] [--requests 6000] [--top 40]

Unlike time they are the same in each run, whatever else the machine does, so that small savings can be told from noise. What
the kernel does is not counted, nor what a cache miss costs. Two runs, with N and with 2 N requests, are subtracted, which takes
the start out. Needs valgrind and h2load (nghttp2-client); build with debug info or without, it is taken out of a copy
(valgrind 3.19 can't read that of new compilers). The server is a second process of the same program. All traffic stays on loopback.
"""
import argparse, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

LOADS = {
    "ka": "",
    "log": "    log 127.0.0.1:{log} local0\n    option httplog\n    capture request header Host len 32\n",
    "rules": """    acl is_api path_beg /api/ /v1/
    acl bad_ua hdr_sub(user-agent) -i sqlmap nikto masscan
    acl internal src 10.0.0.0/8 192.168.0.0/16
    http-request deny if bad_ua
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Request-Id %[rand,hex]
    http-request del-header X-Internal unless internal
    http-request set-header X-Kind api if is_api
    http-request set-header X-Client %[src]:%[src_port]
    option forwardfor
    http-response set-header Strict-Transport-Security "max-age=31536000"
    http-response del-header Server
""",
    "stick": """    stick-table type ip size 100k expire 60s store conn_cur,http_req_rate(10s),bytes_out_rate(60s)
    http-request track-sc0 src
    http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100000000 }
""",
}
HEAD = "global\n    nbthread 1\ndefaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n    timeout connect 5s\n"


def ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def answers(port):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def counted(program, folder, load, requests):
    """Instructions of each function in a run with so many requests."""
    front, origin, log = ports(3)
    write = lambda name, text: open(os.path.join(folder, name), "w").write(HEAD + text)
    write("origin.cfg", f'listen o\n    bind 127.0.0.1:{origin}\n    http-request return status 200 content-type text/plain string "{"x" * 100}"\n')
    rules = LOADS[load].replace("{log}", str(log))
    write("proxy.cfg", f"listen p\n    bind 127.0.0.1:{front}\n{rules}    server s 127.0.0.1:{origin}\n")
    out = os.path.join(folder, "out")
    server = subprocess.Popen([program, "-db", "-f", os.path.join(folder, "origin.cfg")], stdout=subprocess.DEVNULL)
    proxy = subprocess.Popen(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "-db", "-f",
                              os.path.join(folder, "proxy.cfg")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answers(origin)
        answers(front)
        told = subprocess.run(["h2load", "--h1", "-c8", f"-n{requests}", f"http://127.0.0.1:{front}/s"], capture_output=True,
                              text=True, timeout=300).stdout
        if f"{requests} succeeded" not in told:
            sys.exit(f"{load}: requests failed:\n{told}")
    finally:
        proxy.send_signal(signal.SIGINT)
        proxy.wait(60)
        server.kill()
        server.wait()
    text = subprocess.run(["callgrind_annotate", "--threshold=100", out], capture_output=True, text=True).stdout
    found = {}
    for number, name in re.findall(r"^\s*([\d,]+) \(\s*[\d.]+%\)\s+\S*?:(.*?)(?: \[.*)?$", text, re.M):
        found[name] = found.get(name, 0) + int(number.replace(",", ""))
    return found


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--ours", required=True)
    args.add_argument("--only", default=",".join(LOADS))
    args.add_argument("--requests", type=int, default=6000)
    args.add_argument("--top", type=int, default=40)
    given = args.parse_args()
    for tool in ("valgrind", "h2load", "objcopy"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install -y valgrind nghttp2-client binutils")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["objcopy", "--strip-debug", given.ours, program], check=True)
        for load in given.only.split(","):
            few = counted(program, folder, load, given.requests)
            many = counted(program, folder, load, 2 * given.requests)
            each = {name: (number - few.get(name, 0)) / given.requests for name, number in many.items()}
            print(f"{load}: {sum(each.values()):.0f} instructions a request")
            for name, number in sorted(each.items(), key=lambda pair: -pair[1])[:given.top]:
                print(f"{number:9.1f}  {name[:110]}")


if __name__ == "__main__":
    main()
