#!/usr/bin/env python3
"""Which keywords' effects do the VTC files show? Takes each word out of the configurations and sees whether a test notices.

    tests/effects.py --binary target/quick/harrier [--only WORD ...] [--files N] [--seconds S] [--write]

For each keyword (docs/reference.md, without those that are refused or have no effect): the VTC files that name it in a
`haproxy -conf` block, or in a configuration that a `shell` block writes (`cat > FILE <<EOF`), are run without it, those that speak of it first, then the shortest, until one fails; where all pass, or the rest is refused, once
more with its number or time changed. A keyword counts as shown when a file fails otherwise than by a refused
configuration, and passes again unchanged. No build is needed, but some minutes are: it is run by hand. `--write` takes what is
shown out of effects-unshown.txt, which may only become shorter (coverage.py sees that its names are still keywords). What
that file holds is not proven idle: other nets (worlds, tests/differential) may show it, or nobody has looked yet.
"""
import argparse, concurrent.futures, os, re, subprocess, sys, tempfile, time

import coverage

VTC = os.path.join(coverage.HERE, "vtc")
UNSHOWN = os.path.join(coverage.HERE, "effects-unshown.txt")
HEAD = "# Keywords whose effect tests/effects.py has not seen a VTC file show: class and name. The list may only become shorter.\n"
SECTIONS = {"defaults", "frontend", "backend", "listen", "global"}
OTHER_SECTIONS = {"peers", "resolvers", "ring", "userlist", "mailers", "http-errors", "crt-store", "cache", "program", "log-forward",
                  "fcgi-app", "traces", "acme", "log-profile"}
SERVER_LINES = {"server", "default-server", "server-template"}
# What a program says that does not take its configuration, or can't open what it names.
REFUSED = re.compile(r"(Fatal errors|Error\(s\)|[Ee]rrors?) found in configuration|\[ALERT\].* : (parsing \[|config : )")
# A line that others need is changed in place of being taken away.
STAND_IN = {"acl": lambda words: words[:2] + ["always_false"]}


def candidates():
    """Class and name of each keyword that has an effect and is there."""
    return sorted({(kind, name) for kind, name, vain, text in coverage.keywords() if not vain and not coverage.REFUSED.search(text)})


def changed(word):
    """Another number or time: far from this one, but no error."""
    found = re.fullmatch(r"(\d+)(us|ms|s|m|h|d|k|)", word)
    if not found:
        return word
    number = int(found[1])
    return f"{number * 20 if number else 7}{found[2]}" if found[2] else str(number + 3)


def spoken_of(name, path, text):
    told = " ".join(line for line in text.split("\n") if line.lstrip().startswith(("#", "varnishtest"))) + path
    return name in told or name.split()[-1] in told


class Mutant:
    """A VTC file with one keyword taken away, or changed, wherever its configurations have it."""

    def __init__(self, kind, name, known):
        self.kind, self.words, self.known = kind, name.split(), known

    def of(self, text, change):
        """The changed text, or None where nothing of it is named."""
        out, section, depth, hits, end = [], None, 0, 0, "}"
        for line in text.split("\n"):
            words = line.split()
            if depth == 0:
                written = re.search(r"cat > \S+ <<(EOF)$", line)
                end = written[1] if written else "}"
                depth = 1 if written or re.search(r"haproxy \S+ .*-conf \{\s*$", line) else 0
                section = None
            elif words[:1] == [end]:
                depth = 0
            elif words and words[0] in SECTIONS | OTHER_SECTIONS and not (section == "global" and words[0] in ("peers", "cache")):
                section = words[0]
            elif words and not words[0].startswith("#") and section in SECTIONS:
                new = self.line(words, section, change)
                if new != words:
                    hits += 1
                    line = "        " + " ".join(new)
            out.append(line)
        return "\n".join(out) if hits else None

    def line(self, words, section, change):
        if self.kind in ("global", "proxy"):
            at = 1 if words[0] in ("no", "default") else 0
            # What stands in parentheses is an argument.
            named = [word.split("(")[0] for word in words[at:at + len(self.words)]]
            if (section == "global") != (self.kind == "global") or named != self.words:
                return words
            if change:
                return words[:at + len(self.words)] + [changed(word) for word in words[at + len(self.words):]]
            stand_in = STAND_IN.get(words[at])
            return stand_in(words) if stand_in else []
        lines = {"bind"} if self.kind == "bind" else SERVER_LINES
        if words[0] not in lines and not (self.kind == "bind" and words[:2] == ["stats", "socket"]):
            return words
        first = {"bind": 2, "server": 3, "default-server": 1, "server-template": 4, "stats": 3}[words[0]]
        out, mine = words[:first], False
        for word in words[first:]:
            # Arguments go with their word.
            bare = word.split("(")[0]
            if bare in self.known:
                mine = bare == self.words[0]
            if not mine or word.startswith("#"):
                out.append(word)
            elif change:
                out.append(changed(word))
        return out


class Bench:
    def __init__(self, binary, vtest, until, limit):
        self.env = dict(os.environ, HAPROXY_PROGRAM=os.path.realpath(binary))
        self.vtest, self.until, self.limit = vtest, until, limit

    def run(self, path, text):
        """passes, fails or refused."""
        folder = os.path.dirname(path)
        # Beside the original, in name only: files are named by ${testdir}.
        text = text.replace("${testdir}", folder)
        with tempfile.NamedTemporaryFile("w", suffix=".vtc") as copy:
            copy.write(text)
            copy.flush()
            done = subprocess.run(["timeout", "-k", "1", str(3 * self.limit), self.vtest, "-k", "-t", str(self.limit), copy.name], env=self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode == 0:
            return "passes"
        return "refused" if REFUSED.search(done.stdout) else "fails"

    def look(self, kind, name, files, known, most):
        """What the files say of a keyword: a file that shows it, or why none does."""
        mutant, seen = Mutant(kind, name, known), []
        # Files that speak of it first: their titles, comments and names.
        files = sorted(files, key=lambda file: not spoken_of(name, *file))
        for change in (False, True):
            tried = 0
            for path, text in files:
                if time.time() > self.until:
                    return None, "no time"
                new = mutant.of(text, change)
                if new is None or tried == most:
                    continue
                tried += 1
                verdict = self.run(path, new)
                if verdict == "fails" and self.run(path, text) == "passes":
                    return os.path.relpath(path, VTC), "changed" if change else "without it"
                seen.append(verdict)
        return None, "no file" if not seen else " ".join(f"{seen.count(word)} {word}" for word in sorted(set(seen)))


def listed():
    return {tuple(line.strip().split(" ", 1)) for line in open(UNSHOWN) if line.strip() and not line.startswith("#")}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary", required=True)
    args.add_argument("--only", nargs="*", default=[], help="keywords (`class name`, or a part of it)")
    args.add_argument("--files", type=int, default=6, help="most files asked for a keyword")
    args.add_argument("--seconds", type=float, default=7200, help="no new run is begun later")
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--limit", type=int, default=4, help="seconds that a file may take (more on a busy machine)")
    args.add_argument("--all", action="store_true", help="those shown before, too")
    args.add_argument("--write", action="store_true")
    args = args.parse_args()
    every = candidates()
    asked = [one for one in every if args.all or one in listed()]
    if args.only:
        asked = [one for one in asked if any(part in " ".join(one) for part in args.only)]
    files = [(path, open(path, errors="replace").read()) for path in coverage.files(".vtc", tops=["tests/vtc"])]
    files.sort(key=lambda file: len(file[1]))
    names = {kind: {name for one, name, _, _ in coverage.keywords() if one == kind} for kind in ("bind", "server", "global", "proxy")}
    bench = Bench(args.binary, os.environ.get("VTEST", "varnishtest"), time.time() + args.seconds, args.limit)
    shown = set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = {pool.submit(bench.look, kind, name, files, names[kind], args.files): (kind, name) for kind, name in asked}
        for job in concurrent.futures.as_completed(jobs):
            path, why = job.result()
            print("shown  " if path else "UNSHOWN", *jobs[job], f"({path}, {why})" if path else f"({why})", flush=True)
            if path:
                shown.add(jobs[job])
    print(f"effects: {len(shown)} of {len(asked)} keywords are shown")
    if args.write:
        left = sorted(listed() - shown)
        open(UNSHOWN, "w").writelines([HEAD] + [f"{kind} {name}\n" for kind, name in left])
    sys.exit(bool(args.only) and len(shown) < len(asked))


if __name__ == "__main__":
    main()
