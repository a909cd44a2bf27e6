#!/usr/bin/env python3
"""Every keyword in every kind of section and in both modes, as it should be and with a missing, a surplus and a wrong word, on
Harrier and on HAProxy: the same messages of `-c`, all of them.

    sweep.py --binary HARRIER --oracle HAPROXY [--only WORD] [--place backend] [--mode tcp] [--part 1/4] [--odd "0 -1 x 5x"]
    sweep.py --binary HARRIER --oracle HAPROXY --lines FILE [--place backend] [--mode tcp]     the lines of a file, each alone in a section

The lines are those of stock.json. Each stands in a section of its own, many sections in one configuration, and messages are told
apart by the line or the name that they speak of. HAProxy stops reading at some errors and stops checking at the first proxy with
one; what it has not looked at is asked again without the sections that it complained of. `--odd` says which wrong words are
tried, behind the line and in place of each word.
"""
import argparse, collections, concurrent.futures, functools, json, os, re, subprocess, sys, tempfile

import broken

TIMES = " timeout client 1s\n timeout connect 1s\n timeout server 1s\n"
# {n} is the number of the section, {line} the lines that are tried.
FRAMES = {
    "global": ("", "global\n{line}"),
    "defaults": ("", "defaults p{n}x\n mode {mode}\n" + TIMES + "{line}backend q{n}x from p{n}x\n server s 127.0.0.1:80\n"),
    "frontend": ("defaults\n mode {mode}\n" + TIMES + "backend b\n server s 127.0.0.1:80\n",
                 "frontend p{n}x\n bind 127.0.0.1:80\n{line}"),
    "listen": ("defaults\n mode {mode}\n" + TIMES + "backend b\n server s 127.0.0.1:80\n",
               "listen p{n}x\n bind 127.0.0.1:80\n{line} server s 127.0.0.1:80\n"),
    "backend": ("defaults\n mode {mode}\n" + TIMES + "backend b\n server s 127.0.0.1:80\n",
                "backend p{n}x\n{line} server s 127.0.0.1:80\n"),
    "bind": ("defaults\n mode {mode}\n" + TIMES, "frontend p{n}x\n{line}"),
    "server": ("defaults\n mode {mode}\n" + TIMES, "backend p{n}x\n{line}"),
}


def variants(line, odd):
    """The line as it is and in its wrong forms."""
    words = line.split()
    out = [[line]]
    out += [[" ".join(words[:n])] for n in range(1, len(words))]
    for word in odd:
        out += [[f"{line} {word}"]]
        out += [[" ".join(words[:n] + [word] + words[n + 1:])] for n in range(1, len(words))]
    out += [[line, line]]
    return out


def probes(options):
    """The lines of a file, each as it is."""
    with open(options.lines) as file:
        lines = [line.strip() for line in file if line.strip()]
    for mode in [options.mode] if options.mode else ["tcp", "http"]:
        for line in lines:
            yield options.place or "backend", mode, (line,)


def tests(options):
    """(place, mode, lines)."""
    stock, seen = broken.stock(), set()
    proxy = {}
    for key, lines in stock.items():
        place, _ = key.split()
        for line in lines:
            words = line.split()
            # One line of each keyword, of each action, of each option.
            two = " ".join(words[:3 if words[0] in ("tcp-request", "tcp-response") else 2])
            if re.match(r"(http-\S+ |tcp-\S+ \S+ )?set-var", two) and "set-var(txn.a)" in line:
                continue
            target = proxy.setdefault("proxy" if place in ("defaults", "frontend", "backend") else place, {})
            target.setdefault(words[0] if place in ("bind", "server", "global") else two, line)
    for kind, lines in proxy.items():
        places = ("defaults", "frontend", "listen", "backend") if kind == "proxy" else (kind,)
        for name, line in lines.items():
            if options.only and not re.search(options.only, line):
                continue
            for place in places:
                for mode in ("tcp", "http"):
                    if place == "global" and mode == "http":
                        continue
                    if options.place and options.place != place or options.mode and options.mode != mode:
                        continue
                    for tried in variants(line, options.odd.split()):
                        if place == "bind":
                            tried = [f"bind 127.0.0.1:80 {t}" for t in tried][:1]
                        if place == "server":
                            tried = [f"server s 127.0.0.1:80 {t}" for t in tried][:1]
                        entry = (place, mode, tuple(tried))
                        if entry not in seen:
                            seen.add(entry)
                            yield entry


def run(program, text, work):
    with open(os.path.join(work, "FILE"), "w") as f:
        f.write(text)
    r = subprocess.run([program, "-c", "-f", "FILE"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       timeout=120, cwd=work, env=broken.ENVIRONMENT)
    return r.returncode, r.stderr.decode(errors="replace")


def messages(text):
    """(level, text), continued lines included, without what shows the source."""
    out = []
    for line in text.split("\n"):
        found = re.match(r"\[(ALERT|WARNING|NOTICE|DIAG)\] +\(\d+\) : (.*)", line)
        if found:
            out.append([found[1], found[2]])
        elif re.match(r" {8}parsing|   \|", line) and out:
            out[-1][1] += "\n" + line
    return [(level, t) for level, t in out if not re.search(
        r"haproxy version is|path to executable|Error\(s\) found in conf|Fatal errors found in conf|running as root|"
        r"Some configuration options require full|[Ww]arnings? (were|was) found|has no effect in Harrier|not built into Harrier|has no effect: epoll", t)]


def ask(program, place, mode, tried, work):
    """What a program says of each of the sections: [(level, text)]."""
    head, frame = FRAMES[place]
    head = head.replace("{mode}", mode)
    said = [[] for _ in tried]
    final = set()
    left = list(range(len(tried)))
    for _ in range(400):
        if not left:
            break
        text, owner = head, {}
        for n in left:
            lines = "".join(f" {t}\n" for t in tried[n])
            section = frame.replace("{n}", str(n)).replace("{mode}", mode).replace("{line}", lines)
            first = text.count("\n") + 1
            owner.update({first + i: (n, i) for i in range(section.count("\n"))})
            text += section
        code, output = run(program, text, work)
        here = collections.defaultdict(list)
        last = None
        for level, t in messages(output):
            number = re.search(r"FILE:(\d+)\]", t) or re.search(r"FILE:(\d+)\)", t)
            name = re.search(r"\b[pq](\d+)x\b", t)
            n = int(name[1]) if name else owner.get(int(number[1]), (None,))[0] if number else None
            t = re.sub(r"FILE:(\d+)", lambda m: f"FILE:+{owner.get(int(m[1]), (0, 0))[1]}", t)
            here[n].append((level, broken.normal(re.sub(r"\b([pq])\d+x\b", r"\1", t))))
            if level == "ALERT":
                last = n
        bad = {n for n, list_ in here.items() if n is not None and any(level == "ALERT" for level, _ in list_)}
        reading = "Error(s) found in configuration file" in output
        stopped = reading and "Fatal errors found in configuration" not in output
        if not bad:
            # Nobody is at fault: this is what the rest has to hear.
            for n in left:
                said[n] = here[n]
            break
        if stopped and last in left:
            bad = {n for n in bad if left.index(n) <= left.index(last)}
        for n in bad:
            said[n] = here[n]
        left = [n for n in left if n not in bad]
    return said


def batches(options):
    groups = collections.defaultdict(list)
    for place, mode, tried in probes(options) if options.lines else tests(options):
        groups[place, mode].append(tried)
    part, parts = map(int, options.part.split("/"))
    size = options.size
    all_ = [(key, list_[at:at + size]) for key, list_ in groups.items() for at in range(0, len(list_), size)]
    return all_[part - 1::parts]


def one(options, batch):
    (place, mode), tried = batch
    with tempfile.TemporaryDirectory() as work:
        h = ask(options.binary, place, mode, tried, work)
    with tempfile.TemporaryDirectory() as work:
        o = ask(options.oracle, place, mode, tried, work)
    return place, mode, tried, h, o


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=os.path.abspath, required=True)
    p.add_argument("--oracle", type=os.path.abspath, required=True)
    p.add_argument("--only", help="lines that match")
    p.add_argument("--place")
    p.add_argument("--mode")
    p.add_argument("--lines", metavar="FILE", help="tries the lines of a file instead, in a backend or in the kind of --place")
    p.add_argument("--odd", default="xyz", help="wrong words")
    p.add_argument("--part", default="1/1")
    p.add_argument("--size", type=int, default=24, help="sections of one configuration")
    p.add_argument("--jobs", type=int, default=2)
    options = p.parse_args()
    sums = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for place, mode, tried, h, o in pool.map(functools.partial(one, options), batches(options)):
            for lines, of_h, of_o in zip(tried, h, o):
                wrong = lambda said: any(level == "ALERT" for level, _ in said)
                planned = any("supported yet by Harrier" in t or "Harrier does not" in t for _, t in of_h)
                # Some errors end HAProxy's reading; what Harrier says beyond them is more.
                more = wrong(of_o) and of_h[:len(of_o)] == of_o
                kind = "same" if of_h == of_o or more else "planned" if planned else "verdict" if wrong(of_h) != wrong(of_o) else "message"
                sums[kind] += 1
                if kind in ("verdict", "message"):
                    print(f"--- {kind} {place} {mode}: {' // '.join(lines)}")
                    print("".join(f"  h {m[0]} {m[1]}\n" for m in of_h if m not in of_o)
                          + "".join(f"  o {m[0]} {m[1]}\n" for m in of_o if m not in of_h), end="", flush=True)
    print(dict(sums))
    return 1 if sums["verdict"] + sums["message"] else 0


if __name__ == "__main__":
    sys.exit(main())
