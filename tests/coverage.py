#!/usr/bin/env python3
"""No word that is only registered: each is named by a test that shows what it does.

    tests/coverage.py [--binary target/quick/harrier]

Reads the names of docs/reference.md (with a binary, first sees that this page is what the binary writes) and looks for each
in the tests. Entries of the rule language: strings of unit tests, VTC files, and cases of the differential test that had a
value, not a refusal. Keywords, options, words of `bind` and `server` lines: lines of configurations in VTC files, worlds,
tests of the process, and the nets; or, if they have no effect, the table of docs/differences.md. Prints those that none of
them names; exits 1 if there are any.
"""
import argparse, json, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
REFERENCE = os.path.join(ROOT, "docs", "reference.md")
# What needs something that is not there yet (docs/open.md): Lua, caches, agents, the messages of handshakes.
WAITING = {"attach-srv", "lua.", "ssl_fc_unique_id", "ssl_bc_unique_id"}
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


def files(*ends, tops=("crates", "tests")):
    for top in tops:
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


# ---------------------------------------------------------------- keywords

CLASSES = {"Keywords of global": "global", "Keywords of proxies": "proxy", "Words of bind lines": "bind",
           "Words of server lines": "server"}
# Keywords that no test names yet, a class and a name in each line: the list may only become shorter.
UNTESTED = os.path.join(HERE, "keywords-untested.txt")
# Keywords whose effect effects.py has seen no VTC file show yet.
UNSHOWN = os.path.join(HERE, "effects-unshown.txt")
# Keywords whose effect no VTC file can show, each with the reason.
UNSEEN = os.path.join(HERE, "effects-unseen.txt")
MOST_UNSEEN = 10
# Where configurations stand whose effect is looked at from outside.
NETS = ("fates", "rules", "frames", "sequences", "transports", "tls")

def keywords():
    """Class, name and whether it has an effect, of each keyword of the reference; and what is refused."""
    section = ""
    for line in open(REFERENCE):
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("- `") and section in CLASSES:
            name, _, text = line[3:].partition("`")
            yield CLASSES[section], name, bool(re.search(r"[(,] ?no effect\)", text)), text


def configuration_lines():
    """Lines of configurations in the tests, as lists of words, without `no` and `default`."""
    nets = [os.path.join("tests", "differential", net) for net in NETS]
    for path in files(".vtc", ".case", ".rs", ".py", "table.txt",
                      tops=["tests/vtc", "tests/config", "tests/soak/src", "crates/worlds", "crates/harrier/tests", *nets]):
        code = path.endswith((".rs", ".py"))
        for line in open(path, errors="replace"):
            if not code and line.lstrip().startswith("#"):
                continue
            # Within code a line of a configuration begins where a string does.
            for piece in re.split(r"\\n|;|[\"']|\+ " if code else r"\\n", line):
                words = re.sub(r"[{,|(]", " ", piece).replace('"', " ").replace("'", " ").split()
                if words and words[0] in ("no", "default"):
                    words = words[1:]
                if words:
                    yield words


def without_test(every):
    """The keywords that no line of a test begins with, or holds in its place."""
    first, bind, server = {}, set(), set()
    for words in configuration_lines():
        first.setdefault(words[0], []).append(words)
        if words[0] in ("bind", "ssl-f-use") or words[:2] == ["stats", "socket"]:
            bind.update(words)
        if words[0] in ("server", "default-server", "server-template", "add"):
            server.update(words)
    several = {" ".join(words[:count]) for lines in first.values() for words in lines for count in (2, 3)}
    named = {"global": set(first), "proxy": set(first) | several, "bind": bind, "server": server}
    return [(kind, name) for kind, name in every if name not in named[kind]]


def words_without_effect():
    """The words that docs/differences.md says to have none, by class."""
    rows = [line.split("|") for line in open(os.path.join(ROOT, "docs", "differences.md")) if line.startswith("| *")]
    return {(row[1].strip().strip("*"), name) for row in rows for name in re.findall(r"`([^`]+)`", row[2])}


def unseen():
    """Class and name of each keyword of effects-unseen.txt, and its reason."""
    lines = [line.strip() for line in open(UNSEEN) if line.strip() and not line.startswith("#")]
    rows = [line.partition(": ") for line in lines]
    return {tuple(name.split(" ", 1)): reason for name, _, reason in rows}


def check_unseen(every, unshown):
    """Few keywords, all with a reason, and none that the other list holds, too."""
    reasons = unseen()
    wrong = [one for one, reason in reasons.items() if one not in every or one in unshown or len(reason) < 20]
    for kind, name in sorted(wrong):
        print(f"effects-unseen.txt: no keyword with an effect, or in effects-unshown.txt, too, or without a reason: {name} ({kind})")
    if len(reasons) > MOST_UNSEEN:
        print(f"effects-unseen.txt holds more than {MOST_UNSEEN} keywords")
    return not wrong and len(reasons) <= MOST_UNSEEN


def check_unshown(every, untested):
    """The list of effects.py names keywords that have an effect, in order and once, and every one that no test names."""
    lines = [line.strip() for line in open(UNSHOWN) if line.strip() and not line.startswith("#")]
    unshown = {tuple(line.split(" ", 1)) for line in lines}
    for kind, name in sorted(unshown - every):
        print(f"effects-unshown.txt names what is no keyword with an effect: {name} ({kind})")
    hidden = set(unseen())
    for kind, name in sorted(untested - unshown - hidden):
        print(f"no test names it, and effects-unshown.txt doesn't: {name} ({kind})")
    ordered = [" ".join(one) for one in sorted(unshown)] == lines
    if not ordered:
        print("effects-unshown.txt is not in order, or names something twice")
    seen = len(every) - len(unshown | hidden)
    print(f"coverage: {seen} of {len(every)} keywords with an effect were seen to have it in a VTC file; of {len(hidden)} none can")
    return check_unseen(every, unshown) and ordered and unshown <= every and untested <= unshown | hidden


def check_keywords():
    every = list(keywords())
    idle = {(kind, name) for kind, name, vain, _ in every if vain}
    told = words_without_effect()
    for kind, name in sorted(idle - told):
        print(f"no effect, and not in docs/differences.md: {name} ({kind})")
    for kind, name in sorted(told - idle):
        print(f"has an effect, and docs/differences.md says it has none: {name} ({kind})")
    refused = {(kind, name) for kind, name, _, text in every if REFUSED.search(text)}
    missing = without_test([(kind, name) for kind, name, vain, _ in every if not vain and (kind, name) not in refused])
    known = {tuple(line.strip().split(" ", 1)) for line in open(UNTESTED) if line.strip() and not line.startswith("#")}
    for kind, name in sorted(set(missing) - known):
        print(f"no test names: {name} ({kind})")
    for kind, name in sorted(known - set(missing)):
        print(f"tested now, take it out of keywords-untested.txt: {name} ({kind})")
    print(f"coverage: {len(every) - len(missing)} of {len(every)} keywords are named by a test, {len(idle)} have no effect, "
          f"{len(refused)} are refused")
    active = {(kind, name) for kind, name, vain, _ in every if not vain} - refused
    return check_unshown(active, known) and set(missing) == known and idle == told


# What a keyword's line of documentation says that is gone, or not there yet.
REFUSED = re.compile(r" (Not built yet|Removed|Only in special builds of HAProxy)\b")


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
    sys.exit(not check_keywords() or bool(missing or stale))


if __name__ == "__main__":
    main()
