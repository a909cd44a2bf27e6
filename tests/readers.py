#!/usr/bin/env python3
"""Does a test notice when a setting loses the one place that reads it?

    tests/readers.py [--seed S] [--count N]             what would be taken: fields of `program` with one reader, and where that is
    tests/readers.py --seed S --try 1,4,7  takes the reader of each away, builds, and runs the VTC files that name the keyword

Reads the fields of the structs of crates/program and looks for `.field` in the sources of all crates but those that write them (program,
compile) and tests. A field that one line reads is a candidate; a seed chooses among them. Taken away means: the expression becomes what the
setting is where nobody sets it (`false`, `None`; for other types the script says so, and somebody does it by hand). The build is
the `dev` profile in CARGO_TARGET_DIR; the working tree must be clean and is put back. What no VTC file notices is looked for in the unit
tests and worlds of the reader's crate by hand (`cargo test -p`).

What is known of the sample with seed 20261126 is in docs/open.md.
"""
import argparse, os, random, re, subprocess, sys

import coverage

CRATES = os.path.join(coverage.ROOT, "crates")
FIELD = re.compile(r"^\s*pub (\w+): (.+?),?$")
# Whoever writes settings is no reader, nor is a test.
WRITERS = ("program", "compile", "worlds", "tidy")


def sources():
    for path in coverage.files(".rs", tops=["crates"]):
        parts = os.path.relpath(path, CRATES).split(os.sep)
        if parts[0] not in WRITERS and parts[1] == "src" and "tests" not in parts and not path.endswith(("tests.rs", "testing.rs")):
            text = open(path).read()
            at = text.find("#[cfg(test)]\nmod tests {")
            yield path, text if at < 0 else text[:at]


def fields():
    """Name, type and keywords of each public field of `program` whose name is its own."""
    found, told = {}, []
    for path in coverage.files(".rs", tops=["crates/program/src"]):
        for line in open(path):
            if line.lstrip().startswith("///"):
                told += re.findall(r"`([^`]+)`", line)
                continue
            field = FIELD.match(line)
            if field:
                found.setdefault(field[1], []).append((field[2], told))
            told = []
    return {name: all_of[0] for name, all_of in found.items() if len(all_of) == 1}


def candidates():
    known = fields()
    places = {name: [] for name in known}
    for path, text in sources():
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("//"):
                continue
            for name in re.findall(r"\.(\w+)\b(?!\s*\()", line):
                if name in places:
                    places[name].append((path, number))
    return [(name, *known[name], where[0]) for name, where in sorted(places.items()) if len(where) == 1]


def without(line, name, kind):
    """The line without the setting, or None where it takes a person."""
    value = {"bool": "false"}.get(kind) or ("None" if kind.startswith("Option<") else None)
    expression = re.search(r"[\w.]+(\(\)\.[\w.]+)*\." + name + r"\b", line)
    if not value or not expression or re.match(r"\s*=[^=]", line[expression.end():]):
        return None
    before, rest = line[:expression.start()].rstrip("&"), line[expression.end():]
    if value == "None" and rest.startswith("."):
        value = f"None::<{kind[7:-1]}>"
    return before + value + rest


def vtcs(keywords):
    """The files whose configurations name the first keyword that any of them names."""
    for keyword in keywords:
        word = keyword.split()[-1]
        paths = [path for path in coverage.files(".vtc", tops=["tests/vtc"])
                 if re.search(rf"^\s+[^#\n]*(?<![\w.-]){re.escape(word)}(?![\w.-])", open(path, errors="replace").read(), re.M)]
        if paths:
            return sorted(paths, key=os.path.getsize)
    return []


def attempt(name, kind, keywords, place):
    path, number = place
    lines = open(path).read().split("\n")
    new = without(lines[number - 1], name, kind)
    if new is None:
        return f"by hand ({kind}: {lines[number - 1].strip()})"
    kept = lines[number - 1]
    lines[number - 1] = new
    open(path, "w").write("\n".join(lines))
    try:
        built = subprocess.run(["nice", "-n", "5", "cargo", "build", "-p", "harrier", "-j2"], cwd=coverage.ROOT, capture_output=True, text=True)
        if built.returncode:
            return f"by hand (does not build: {new.strip()})"
        target = os.environ.get("CARGO_TARGET_DIR", os.path.join(coverage.ROOT, "target"))
        env = dict(os.environ, HAPROXY_PROGRAM=os.path.join(target, "debug", "harrier"))
        tried = vtcs(keywords)[:8]
        for vtc in tried:
            done = subprocess.run(["timeout", "40", "varnishtest", "-k", "-t", "20", vtc], env=env, capture_output=True)
            if done.returncode not in (0, 77):
                return "noticed by " + os.path.relpath(vtc, coverage.HERE)
        return f"NOT noticed by {len(tried)} VTC files of {keywords}"
    finally:
        lines[number - 1] = kept
        open(path, "w").write("\n".join(lines))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--count", type=int, default=30)
    args.add_argument("--try", dest="numbers", default="", help="numbers of the list, or `all`")
    args = args.parse_args()
    every = candidates()
    chosen = random.Random(args.seed).sample(every, min(args.count, len(every)))
    print(f"readers: {len(every)} fields have one reader; seed {args.seed}")
    numbers = range(1, len(chosen) + 1) if args.numbers == "all" else [int(n) for n in args.numbers.split(",") if n]
    if numbers and subprocess.run(["git", "diff", "--quiet"], cwd=coverage.ROOT).returncode:
        sys.exit("the working tree is not clean")
    for number, (name, kind, keywords, (path, line)) in enumerate(chosen, 1):
        told = ""
        if number in numbers:
            told = ": " + attempt(name, kind, keywords, (path, line))
        elif numbers:
            continue
        print(f"{number:3} {name} ({kind}) {os.path.relpath(path, CRATES)}:{line} {keywords}{told}", flush=True)


if __name__ == "__main__":
    main()
