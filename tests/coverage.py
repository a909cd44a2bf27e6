#!/usr/bin/env python3
"""No entry of the rule language that is only registered: each is named by a test that shows what it does.

    tests/coverage.py [--binary target/quick/harrier]

Reads the names of docs/reference.md (with a binary, first sees that this page is what the binary writes) and looks for each
in the tests: strings of unit tests, VTC files, and cases of the differential test that had a value, not a refusal. Prints
those that none of them names; exits 1 if there are any.
"""
import argparse, json, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
REFERENCE = os.path.join(ROOT, "docs", "reference.md")
# What needs something that is not there yet (docs/open.md): Lua, caches, resolvers, agents, the messages of handshakes.
WAITING = {"attach-srv", "cache-store", "cache-use", "do-resolve", "lua.", "send-spoe-group", "ssl_fc_unique_id", "ssl_bc_unique_id"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")


def entries():
    """Section and name of each entry; what the manual calls a parameter of a name is cut off."""
    section, out = "", []
    for line in open(REFERENCE):
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("- `") and section in ("Sample fetches", "Converters", "Actions"):
            out.append((section, NAME.match(line, 3)[0]))
    return out


def files(*ends):
    for top in ("crates", "tests"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            yield from (os.path.join(folder, name) for name in names if name.endswith(ends))


def unit_tests():
    """Strings of test modules. Those that police the tables run examples without looking at what they yield."""
    for path in files(".rs"):
        text = open(path).read()
        if path.endswith(("tests/tables.rs", "testing.rs")):
            continue
        if not re.search(r"(^|/)tests(/|\.rs$)|_tests\.rs$|worlds/", path[len(ROOT):]):
            at = text.find("#[cfg(test)]\nmod tests {")
            text = text[at:] if at >= 0 else ""
        yield from re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.S)
        yield from re.findall(r'r#"(.*?)"#', text, re.S)


def outside_tests():
    for path in files(".vtc"):
        yield "\n".join(line for line in open(path, errors="replace") if not line.lstrip().startswith("#"))


def differential_tests():
    golden = json.load(open(os.path.join(HERE, "differential", "golden.json")))
    yield from (case for case, answer in golden.items() if answer.startswith("= "))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary")
    args = args.parse_args()
    if args.binary:
        page = subprocess.run([args.binary, "help", "--markdown"], capture_output=True, text=True, check=True).stdout
        if page != open(REFERENCE).read():
            sys.exit("docs/reference.md is not what `harrier help --markdown` writes")
    named = set()
    for source in (unit_tests(), outside_tests(), differential_tests()):
        for text in source:
            named.update(name.rstrip(".") for name in NAME.findall(text))
    every = entries()
    missing = [entry for entry in every if entry[1] not in named and entry[1] not in WAITING]
    stale = WAITING & named
    if stale:
        print("tested now, take them out of WAITING:", ", ".join(sorted(stale)))
    for section, name in missing:
        print(f"no test names: {name} ({section})")
    print(f"coverage: {len(every) - len(missing) - len(WAITING)} of {len(every)} entries are named by a test, {len(WAITING)} wait")
    sys.exit(bool(missing or stale))


if __name__ == "__main__":
    main()
