#!/usr/bin/env python3
"""Faults that Harrier once had are put back one by one; the nets that are to find them must.

    run.py --list                                       the faults
    run.py --build                                      a build with all of them in it, switched off (target/faults)
    run.py --net worlds|soak|lifecycle|replay|broken|samples|commands|tls [NAME...]      which faults a net finds; all without names
    run.py --net programs --seeds 1-300 --oracle HAPROXY [NAME...]         the same by programs made from seeds

One build holds every fault, HARRIER_FAULT names those that are on. Each net is first run without any fault: what it then
finds counts for nothing. What was found is appended to target/faults/found.tsv: fault, net, result, seconds, first words.
"""
import argparse, os, re, signal, subprocess, sys, threading, time

import apply
from faults import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
TREE, TARGET = os.path.join(ROOT, "target/faults/tree"), os.path.join(ROOT, "target/faults/target")
BINARY = os.path.join(TARGET, "quick/harrier")
DIFFERENTIAL = os.path.join(ROOT, "tests/differential")


def build():
    if not os.path.exists(TREE):
        subprocess.run(["git", "worktree", "add", "--detach", TREE, "HEAD"], cwd=ROOT, check=True)
    if apply.main(TREE):
        return 1
    # Half optimised where the code is long: what counts is to find faults, not speed.
    light = ["lang", "compile", "engine", "admin", "tls", "explain", "harrier", "worlds", "syntax", "program"]
    light = [word for crate in light for word in ("--config", f"profile.quick.package.{crate}.opt-level=1")]
    cargo = ["--profile", "quick", "--locked", "--target-dir", TARGET, *light]
    return (subprocess.run(["cargo", "build", *cargo, "-p", "harrier"], cwd=TREE).returncode
            or subprocess.run(["cargo", "test", *cargo, "-p", "worlds", "--no-run"], cwd=TREE).returncode)


# Nets of tests/differential, and those beside it: what is run, with the build under test behind.
COMPARED = {"replay": "program/run.py --replay", "programs": "program/run.py --jobs 2", "samples": "run.py", "broken": "broken.py",
            "commands": "commands.py", "tls": "tls/tls.py"}


def command(net, a):
    if net == "worlds":
        return [sys.executable, os.path.join(HERE, "worlds.py"), os.path.join(TARGET, "quick/deps"), *([a.only] if a.only else [])]
    if net == "soak":
        return [os.path.join(ROOT, "target/soak/release/harrier-soak"), BINARY, "--seconds", str(a.seconds), "--seed", str(a.seed)]
    if net == "lifecycle":
        return [sys.executable, f"{ROOT}/tests/soak/lifecycle.py", BINARY, "--seconds", str(a.seconds)]
    if net not in COMPARED:
        sys.exit(f"unknown net {net}")
    script, *words = COMPARED[net].split()
    seeds = ["--oracle", a.oracle, "--seeds", a.seeds] if net == "programs" else []
    return [sys.executable, os.path.join(DIFFERENTIAL, script), *words, "--binary", BINARY, *seeds]


def failures(net, text, out):
    """What a net has found, a line each."""
    if net == "worlds":
        return sorted(set(re.findall(r"^    ([a-z_0-9]+(?:::[a-z_0-9]+)+)$", text, re.M)) | set(re.findall(r"(?:signal: \d+|panicked)[^\n]{0,80}", text) if "test result" not in text else []))
    if net == "soak":
        return re.findall(r"^FAIL  \(seed \d+\) (.*)", text, re.M)
    if net == "lifecycle":
        return re.findall(r"^\w+ +FAIL (.*)", text, re.M)
    if net == "programs":
        found = []
        for name in sorted(os.listdir(out)):
            if name.startswith("found-"):
                found.append(name)
        return found
    lines = re.findall(r"^(?:FAIL|fail|FAILED|differs)\b.*", text, re.M)
    return lines or ([text.strip().splitlines()[-1]] if text.strip() and not re.search(r" 0 failed", text) else [])


# What a net says when it has found something, where it says so before its end: then it may stop.
FIRST = {"soak": re.compile(rb"^FAIL  "), "replay": re.compile(rb"^FAIL"), "lifecycle": re.compile(rb"^\w+ +FAIL ")}


def stream(words, cwd, env, limit, first):
    """Runs a net, with all that it starts in a session of its own, and gives back what it said."""
    child = subprocess.Popen(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    late = threading.Timer(limit, lambda: os.killpg(child.pid, signal.SIGKILL))
    late.start()
    text, more = b"", None
    for line in child.stdout:
        text += line
        # The lines behind it say what it is about.
        more = more - 1 if more is not None else 2 if first and first.search(line) else None
        if more == 0:
            break
    if late.is_alive():
        late.cancel()
    else:
        text += f"FAIL  (seed 0) no end within {limit} s\n".encode()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    return text.decode("latin-1")


def play(net, a, name):
    env = dict(os.environ, HARRIER_FAULT=name or "")
    start = time.time()
    words, out = command(net, a), os.path.join(ROOT, f"target/faults/out/{name or 'none'}")
    if net == "programs":
        words += ["--out", out, "--build", f"fault-{name}"]
        subprocess.run(["rm", "-rf", out])
    cwd = TREE if net == "worlds" else ROOT
    text = stream(words, cwd, env, a.limit, FIRST.get(net) if name else None)
    os.makedirs(os.path.join(ROOT, "target/faults/log"), exist_ok=True)
    with open(os.path.join(ROOT, f"target/faults/log/{net}-{name or 'none'}.log"), "w") as log:
        log.write(text)
    return failures(net, text, out), time.time() - start


def table():
    """Each fault with the net that found it first, by the file that `play` goes on with."""
    found = {}
    for line in open(os.path.join(ROOT, "target/faults/found.tsv")):
        name, net, result, seconds, words = line.rstrip("\n").split("\t")
        if result == "found":
            found.setdefault(name, (net, seconds, words))
    print("| fault | what was wrong | put back in | found by | after |\n|---|---|---|---|---|")
    for row in ROWS:
        net, seconds, words = found.get(row.name, ("nothing yet", "", ""))
        words = f", `{words.split('::')[-1]}`" if net == "worlds" else ""
        after = f"{max(1, int(seconds))} s" if seconds else ""
        print(f"| `{row.name}` | {row.what} | `{row.edits[0][0]}` | {net}{words} | {after} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--list", action="store_true")
    p.add_argument("--build", action="store_true")
    p.add_argument("--table", action="store_true", help="what was found so far, as docs/differential.md has it")
    p.add_argument("--net")
    p.add_argument("--only", help="scenes with this in their names")
    p.add_argument("--missed", action="store_true", help="only faults that no net has found yet")
    p.add_argument("--seconds", type=int, default=120)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seeds", default="1-300")
    p.add_argument("--oracle")
    p.add_argument("--limit", type=int, default=900, help="seconds after which a run is given up, which counts as found")
    a = p.parse_args()
    if a.list:
        for row in ROWS:
            print(f"{row.name:20} {row.what}")
    if a.table:
        table()
        return 0
    if a.build and build():
        return 1
    if not a.net:
        return 0
    unknown = set(a.names) - {row.name for row in ROWS}
    if unknown:
        sys.exit(f"no such fault: {' '.join(sorted(unknown))}")
    found = os.path.join(ROOT, "target/faults/found.tsv")
    known = [line.split("\t") for line in open(found)] if a.missed and os.path.exists(found) else []
    done = {cells[0] for cells in known if cells[2] == "found"}
    usual, seconds = play(a.net, a, None)
    print(f"{a.net} without a fault: {seconds:.0f} s, finds {len(usual)}", *usual[:3], sep="\n    ", flush=True)
    missed = 0
    for row in ROWS:
        if (a.names and row.name not in a.names) or row.name in done:
            continue
        found, seconds = play(a.net, a, row.name)
        found = [line for line in found if line not in usual]
        missed += not found
        print(f"{row.name:20} {'found' if found else 'MISSED'} {seconds:.0f} s  {found[0][:150] if found else ''}", flush=True)
        with open(os.path.join(ROOT, "target/faults/found.tsv"), "a") as out:
            out.write(f"{row.name}\t{a.net}\t{'found' if found else 'missed'}\t{seconds:.0f}\t{found[0][:200] if found else ''}\n")
    print(f"{missed} missed by {a.net}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
