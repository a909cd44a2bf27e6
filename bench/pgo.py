#!/usr/bin/env python3
"""Builds Harrier with a profile of itself: the compiler learns from ordinary traffic which ways through the program are usual.

    bench/pgo.py [--out target/pgo/harrier] [--seconds 2] [--jobs N]

Two release builds and half a minute of traffic between them (HTTP/1 and 2, TLS, TCP, rules, tables, logs, compression, a cache), all
on loopback. Needs llvm-profdata of the compiler at hand (`rustup component add llvm-tools`), h2load (Debian's nghttp2-client)
and openssl. What it saves is in bench/README.md.
"""
import argparse, glob, os, shutil, signal, subprocess, sys, tempfile

import beside  # It says where `ports` is.
import ports
from instructions import LOADS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ORIGIN = """
listen origin
    bind 127.0.0.1:{origin}
    bind 127.0.0.1:{origin2} proto h2
    http-request return status 200 content-type text/html file {folder}/text if {{ path_beg /text }}
    http-request return status 200 content-type application/octet-stream file {folder}/large if {{ path_beg /large }}
    http-request return status 200 content-type text/plain hdr cache-control max-age=60 hdr x-kind y string "{short}"
"""
# The words of a proxy of each kind, what is asked of it, and how.
KINDS = {
    "plain": ("", ["--h1", "-c20"], "/s"),
    "many": ("", ["--h1", "-c200"], "/s"),
    "close": ("    option httpclose\n", ["--h1", "-c500", "-n500"], "/s"),
    "large": ("", ["--h1", "-c8"], "/large"),
    "log": (LOADS["log"], ["--h1", "-c20"], "/s"),
    "rules": (LOADS["rules"] + """    http-request set-header X-Host %[req.hdr(host),lower,map_str({folder}/map,none)]
    http-request set-var(txn.a) path,field(2,/)
    http-response set-header X-First %[var(txn.a)] if {{ var(txn.a) -m found }}
""", ["--h1", "-c20", "-Hcookie: a=b; c=d"], "/api/v1/s?x=1"),
    "stick": (LOADS["stick"].replace("{", "{{").replace("}", "}}"), ["--h1", "-c20"], "/s"),
    "cookie": ("    cookie SRV insert indirect nocache\n    balance leastconn\n", ["--h1", "-c20", "-Hcookie: SRV=s"], "/s"),
    "return": ("    http-request return status 200 content-type text/plain string hello\n", ["--h1", "-c20"], "/s"),
    "gzip": ("    filter compression\n    compression algo gzip\n    compression type text/html\n", ["--h1", "-c8", "-Haccept-encoding: gzip"], "/text"),
    "cache": ("    http-request cache-use store\n    http-response cache-store store\n", ["--h1", "-c20"], "/s"),
    "tcp": ("    mode tcp\n", ["--h1", "-c20"], "/s"),
    "h2": ("    bind 127.0.0.1:{port} proto h2\n", ["-c10", "-m10"], "/s"),
    "h2-large": ("    bind 127.0.0.1:{port} proto h2\n", ["-c4", "-m4"], "/large"),
    "h2-server": ("    server s 127.0.0.1:{origin2} proto h2\n", ["--h1", "-c20"], "/s"),
    "tls": ("    bind 127.0.0.1:{port} ssl crt {folder}/pem alpn h2,http/1.1\n", ["--h1", "-c20"], "/s"),
    "tls-h2": ("    bind 127.0.0.1:{port} ssl crt {folder}/pem alpn h2,http/1.1\n", ["-c10", "-m10"], "/s"),
}


def written(folder):
    """Writes the configuration; the port of each proxy."""
    known = {"folder": folder, "short": "x" * 100, **{name: ports.free() for name in ("origin", "origin2", "log")}}
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", f"{folder}/key", "-out", f"{folder}/crt"], check=True, stderr=subprocess.DEVNULL)
    open(f"{folder}/pem", "w").write(open(f"{folder}/crt").read() + open(f"{folder}/key").read())
    open(f"{folder}/map", "w").write("".join(f"host{n}.example kind{n}\n" for n in range(1000)))
    open(f"{folder}/large", "wb").write(os.urandom(200_000))
    words = "the quick brown fox <a href='/jumps'>jumps</a> over the lazy dog\n"
    open(f"{folder}/text", "w").write("".join(f"{n} {words}" for n in range(200)))
    text = "global\n    nbthread 1\n    maxconn 2000\n    tune.bufsize 300000\ncache store\n    total-max-size 16\n"
    text += "defaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n    timeout connect 5s\n" + ORIGIN.format(**known)
    doors = {}
    for name, (lines, _, _) in KINDS.items():
        doors[name] = ports.free()
        lines = lines.format(port=doors[name], **known)
        door = "" if "bind " in lines else f"    bind 127.0.0.1:{doors[name]}\n"
        server = "" if "server " in lines else f"    server s 127.0.0.1:{known['origin']}{' cookie s' if name == 'cookie' else ''}\n"
        text += f"listen {name}\n{door}{lines}{server}"
    open(f"{folder}/cfg", "w").write(text)
    return doors


def train(program, folder, profiles, seconds):
    """Has a program see traffic of all kinds, and write what it saw."""
    doors = written(folder)
    process = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], env={**os.environ, "LLVM_PROFILE_FILE": f"{profiles}/%p-%m.profraw"},
                               stderr=subprocess.DEVNULL)
    try:
        ports.await_listener(doors["plain"])
        for name, (lines, how, path) in KINDS.items():
            scheme = "https" if " ssl " in lines else "http"
            how = how if how[-1].startswith("-n") else [*how, "-D", str(seconds)]
            done = subprocess.run(["h2load", *how, f"{scheme}://127.0.0.1:{doors[name]}{path}"],
                                  capture_output=True, text=True, timeout=60 + seconds)
            told = next((line for line in done.stdout.splitlines() if line.startswith("finished in")), None)
            if done.returncode or told is None or " 0 succeeded" in done.stdout:
                sys.exit(f"{name}: {done.stdout}{done.stderr}")
            print(f"{name:10} {told}", flush=True)
    finally:
        process.send_signal(signal.SIGUSR1)
        process.wait(30)
    # Reading a configuration is a way that reloads take.
    with open(f"{folder}/many", "w") as file:
        file.write("defaults\n    mode http\n    timeout client 5s\n    timeout server 5s\n    timeout connect 1s\nfrontend f\n    bind 127.0.0.1:1\n")
        file.write("".join(f"    use_backend b{n} if {{ path /p{n} }}\n" for n in range(2000)) + "    default_backend b0\n")
        file.write("".join(f"backend b{n}\n    server s 127.0.0.1:2 check\n" for n in range(2000)))
    subprocess.run([program, "-c", "-f", f"{folder}/many"], env={**os.environ, "LLVM_PROFILE_FILE": f"{profiles}/%p-%m.profraw"}, check=True)


def build(target, flags, jobs):
    command = ["cargo", "build", "--release", "--locked", "-p", "harrier", "--target-dir", target, *(["-j", str(jobs)] if jobs else [])]
    print(f"{' '.join(command)} with {flags}", flush=True)
    subprocess.run(command, cwd=ROOT, env={**os.environ, "RUSTFLAGS": flags}, check=True)
    return os.path.join(target, "release", "harrier")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--out", default=os.path.join(ROOT, "target", "pgo", "harrier"))
    args.add_argument("--seconds", type=int, default=2)
    args.add_argument("--jobs", type=int)
    given = args.parse_args()
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    merge = next(iter(glob.glob(f"{sysroot}/lib/rustlib/*/bin/llvm-profdata")), None)
    if not merge:
        sys.exit("llvm-profdata is missing: rustup component add llvm-tools")
    for tool in ("h2load", "openssl"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install -y nghttp2-client openssl")
    work = os.path.join(ROOT, "target", "pgo")
    profiles, merged = os.path.join(work, "profiles"), os.path.join(work, "merged.profdata")
    shutil.rmtree(profiles, ignore_errors=True)
    program = build(os.path.join(work, "train"), f"-Cprofile-generate={profiles}", given.jobs)
    with tempfile.TemporaryDirectory() as folder:
        train(program, folder, profiles, given.seconds)
    subprocess.run([merge, "merge", "-o", merged, *glob.glob(f"{profiles}/*.profraw")], check=True)
    program = build(os.path.join(work, "use"), f"-Cprofile-use={merged}", given.jobs)
    shutil.copy(program, given.out)
    print(given.out)


if __name__ == "__main__":
    main()
