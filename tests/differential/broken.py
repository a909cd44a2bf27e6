#!/usr/bin/env python3
"""Configurations with one wrong word, on Harrier and on HAProxy: the same verdict, the same first message.

    broken.py --binary HARRIER --oracle HAPROXY --seeds 0-19999 --journal FILE     compare; goes on where the journal ends
    broken.py --binary HARRIER                                                     replay kept/ and kept.json.gz (no HAProxy needed)
    broken.py --fold FILE                                                          add a finished journal to broken-journal.tsv
    broken.py --binary HARRIER --oracle HAPROXY --pack 0-999                       keep what both say alike of these seeds
    broken.py --binary HARRIER --oracle HAPROXY --show 17                          what seed 17 makes, and what both say
    broken.py --oracle HAPROXY --keep FILE.cfg...                                  keep configurations with the oracle's answer

A seed makes a configuration of the lines in stock.json (stock.py) and changes one word of it. Compared are the exit code of
`-c` and the first message that is no notice, without the process number, the program's name and our own additions. A
difference is explained by a rule of RULES, each with its reason in docs/differences.md, or it is a failure, which is
shrunk to the lines that it needs. With H_DIFF_CACHE=FOLDER in the environment what HAProxy said is kept there, so another
build costs no run of HAProxy.
"""
import argparse, collections, concurrent.futures, functools, glob, gzip, hashlib, inspect, json, os, random, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "kept")
# Many more, one JSON list a line: seed, exit code, first message, configuration.
PACK = os.path.join(HERE, "kept.json.gz")
# What was compared so far: seeds, generator, commit, counts, seeds that differed.
LEDGER = os.path.join(HERE, "broken-journal.tsv")
# Reading the authorities that the system trusts is most of the time that `-c` takes HAProxy: here it trusts two.
ENVIRONMENT = {**os.environ, "SSL_CERT_DIR": os.path.join(HERE, "tls/files/cas")}

# Differences that are meant: name, and what the answer of Harrier (h) beside that of HAProxy (o) looks like. An answer is
# (exit code, first message). The reasons stand in docs/differences.md under the same names.
RULES = [
    ("no-effect", lambda h, o, text: line_of(o[1]) is not None and line_of(o[1]) in h[2]),
    ("planned", lambda h, o, text: "supported yet by Harrier" in h[1] or "planned" in h[2] and h[0] == 1 and o[0] == 0 or "Harrier does not" in h[1]),
    ("null", lambda h, o, text: h[0] == o[0] == 1 and o[1].endswith(": (null)") and line_of(h[1]) == line_of(o[1]) is not None),
    ("null", lambda h, o, text: h[0] == o[0] and "(null)" in o[1] and re.sub(r" ?\(null\)", "", o[1]) == h[1]),
    ("cut", lambda h, o, text: h[0] == o[0] == 1 and re.search(r".\[(WARNING|ALERT)\]", o[1]) and line_of(h[1]) == line_of(o[1])),
    ("machine", lambda h, o, text: "couldn't get the runtime nice value" in o[1] and h[0] == o[0]),
    ("word", lambda h, o, text: h[0] == o[0] and re.sub(r"fetch method '[^']*'", "", h[1]) == re.sub(
        r"fetch method 'set-var[^']*'", "", o[1])),
    ("forgotten", lambda h, o, text: h[0] == 1 and re.search(r"unable to set SSL (curves|(Client )?Signature Algorithm) list to .* for server", h[1])
     and (o[0] == 0 or "<HTTPSCLIENT>" in o[1]) and re.search(r"^ default-server\b.* ssl\b", text, re.M)),
    ("oracle-crash", lambda h, o, text: o[0] < 0 or o[0] > 128),
]


def line_of(message):
    """The number of the line that a message is about."""
    found = re.search(r"\[FILE:(\d+)\]", message)
    return int(found[1]) if found else None


@functools.lru_cache
def stock():
    with open(os.path.join(HERE, "stock.json")) as f:
        return json.load(f)


# ---------------------------------------------------------------- making

WORDS = ["", "0", "-1", "1", "65536", "99999999999", "4294967296", "2147483648", "1.5", "x", "5s", "5x", "5ss", "10k", "10kk",
         "on", "off", "none", "if", "unless", "{", "}", "TRUE", "nosuch", "127.0.0.1", "127.0.0.1:99999", "300.1.1.1", "::1",
         "/a", "a b", "b", "s", "f", "d", "GET", "http", "tcp", "%[", "%[src]", "%[nosuch]", "%ci", "src", "path", "str(a)", "(",
         ")", ",", "src,lower,nosuch", "\"", "\\", "!", "--", "-m", "-f", "-i", "200", "600", "all", "auto", "default", "txn.a",
         "proc.a", "badscope.a", "no", "*", "len", "table", "size", "type", "h2", "ssl", "check", "é"]


def misspelt(r, word):
    if len(word) < 2:
        return word + r.choice("xyz1-")
    at = r.randrange(len(word) - 1)
    return r.choice([
        lambda: word[:at] + word[at + 1:],
        lambda: word[:at] + word[at + 1] + word[at] + word[at + 2:],
        lambda: word[:at] + word[at] + word[at:],
        lambda: word[:at] + r.choice("abcxyz-_.019(),:/") + word[at + 1:],
        lambda: word + r.choice("sx0,)(:"),
        lambda: word.upper() if word.lower() == word else word.lower(),
    ])()


def numeric(r, word):
    number = re.search(r"\d+", word)
    if not number:
        return misspelt(r, word)
    new = r.choice(["0", "-1", "65536", "99999999999", "4294967296", "2147483648", "1.5", "x", number[0] + "0", "", "00", "+1"])
    return word[:number.start()] + new + word[number.end():]


def unit(r, word):
    return re.sub(r"(\d)([a-z]*)$", lambda m: m[1] + r.choice(["", "s", "x", "ms", "us", "d", "k", "m", "%", "ss", "y"]), word)


def base(r, lines):
    """A configuration as a list of lines; which of them may be changed is decided later."""
    mode = r.choice(["http", "http", "tcp"])
    some = lambda place, most: r.sample(lines.get(place, []), min(len(lines.get(place, [])), r.randrange(most + 1)))
    out = ["global"] + [" " + l for l in some("global tcp", 3)]
    out += ["defaults d", f" mode {mode}", " timeout client 1s", " timeout connect 1s", " timeout server 1s"]
    out += [" " + l for l in some(f"defaults {mode}", 3)]
    out += ["frontend f from d", " bind 127.0.0.1:80 " + " ".join(some("bind tcp", 2))]
    out += [" " + l for l in some(f"frontend {mode}", 4)]
    out += [" default_backend b"] if r.random() < 0.5 else []
    out += ["backend b from d"] + [" " + l for l in some(f"backend {mode}", 4)]
    out += [" server s 127.0.0.1:80 " + " ".join(some("server http", 2))]
    return [l.rstrip() for l in out]


def broken(r, lines):
    """Changes one word."""
    at = r.randrange(len(lines))
    # Lines of the frame are changed less often than those of the stock.
    while re.match(r" (timeout \w+ 1s|mode )|global$", lines[at]) and r.random() < 0.8:
        at = r.randrange(len(lines))
    line = lines[at]
    indent = " " if line.startswith(" ") else ""
    words = line.split()
    i = r.randrange(len(words))
    if len(words) > 1 and i == 0 and r.random() < 0.6:
        i = r.randrange(1, len(words))
    all_words = [w for l in lines for w in l.split()]
    kind = r.randrange(12)
    if kind == 0:
        words[i] = r.choice(WORDS)
    elif kind == 1:
        words[i] = r.choice(all_words)
    elif kind in (2, 3):
        words[i] = misspelt(r, words[i])
    elif kind == 4:
        words[i] = numeric(r, words[i])
    elif kind == 5:
        words[i] = unit(r, words[i])
    elif kind == 6:
        del words[i]
    elif kind == 7:
        words.insert(i, words[i])
    elif kind == 8:
        words.insert(i + 1, r.choice(WORDS))
    elif kind == 9:
        words = words[:i]
    elif kind == 10:
        lines.insert(r.randrange(1, len(lines)), line)
        return lines
    else:
        del lines[at]
        lines.insert(r.randrange(len(lines) + 1), line)
        return lines
    lines[at] = indent + " ".join(words)
    return lines


def valid(lines, oracle):
    """The lines that HAProxy has nothing against: those with an error are left out until none is left."""
    with tempfile.TemporaryDirectory() as work:
        for _ in range(12):
            text = answer(oracle, "\n".join(lines) + "\n", work)[1]
            bad = {int(n) for n in re.findall(r"\[ALERT\].*?\[FILE:(\d+)\]", text)}
            if not bad:
                break
            # The frame has to stay.
            keep = lambda n, l: n + 1 not in bad or not l.startswith(" ")
            lines = [re.sub(r"( (bind|server s) 127\S+).*", r"\1", l) if n + 1 in bad and re.match(r" (bind|server) ", l)
                     else l for n, l in enumerate(lines) if keep(n, l) or re.match(r" (bind|server) 127| server s ", l)]
    return lines


def make(seed, lines, oracle):
    r = random.Random(seed)
    return "\n".join(broken(r, valid(base(r, lines), oracle))) + "\n"


# ---------------------------------------------------------------- asking

def answer(program, text, work):
    """The exit code of `-c`, and what it says."""
    with open(os.path.join(work, "FILE"), "w") as f:
        f.write(text)
    try:
        r = subprocess.run([program, "-c", "-f", "FILE"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=20, cwd=work, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        return 124, "[ALERT] (0) : (no end)"
    return r.returncode, r.stderr.decode(errors="replace")


def ask(program, text, work):
    """Exit code, first message, lines without effect."""
    code, text = answer(program, text, work)
    return (code, *first(text))


def first(text):
    """The first message that is no notice, normalised; and the lines of which Harrier says that they have no effect in it,
    which HAProxy has no reason to say."""
    idle = ["planned"] if re.search(r"supported yet by Harrier", text) else []
    for line in text.split("\n"):
        found = re.match(r"\[(ALERT|WARNING)\] +\(\d+\) : (.*)", line)
        if found and re.search(r"has no effect", found[2]) and "Harrier" in found[2]:
            idle.append(line_of(found[2]))
        elif found:
            return f"{found[1]} {normal(found[2])}", idle
    return "", idle


def normal(text):
    text = re.sub(r"[;,.]? ?[Dd]id you mean '.*?' maybe ?\?", "", text)
    text = re.sub(r"'\.? Hint: ", "'. Hint: ", text)
    # The folder that it all runs in.
    text = re.sub(r"/tmp/tmp\w+/", "", text)
    # HAProxy shows the first byte of a character that has several.
    text = re.sub(r"character '[^\x00-\x7f]+'", "character '?'", text)
    text = re.sub(r"3\.5-dev5-\w+-\d+|3\.5\.0", "VERSION", text)
    # HAProxy says some places twice, and the shorter of two messages about a name that is taken first.
    text = re.sub(r"(parsing \[FILE:\+?\d+\] : )parsing \[FILE:\+?\d+\] ?: ", r"\1", text)
    text = re.sub(r"\. This is no longer supported as of 3\.3\. Please rename one or the other\.?$", "", text)
    # The order of lists of actions is that of HAProxy's modules, and ours has those that need Lua, and one of its own.
    text = re.sub(r"( expects )('.*'),? but got ", lambda m: m[1] + listed(m[2]) + " but got ", text)
    text = re.sub(r"^('tcp-\w+ \w+' expects |.*? : 'tcp-\w+ \w+' expects )('.*')( in \w+ '.*' \(got )",
                  lambda m: m[1] + listed(m[2]) + m[3], text)
    return text.strip().rstrip(".").strip()


def listed(words):
    words = {word for word in re.findall(r"'[^']*'", words) if not word.startswith("'track-sc")}
    return ", ".join(sorted(words - {"'lua.(*)'", "'mirror'"}))


def explained(h, o, text):
    for name, rule in RULES:
        if rule(h, o, text):
            return name
    return None


def compare(options, text, work):
    """None, the name of a rule, or ('', h, o)."""
    h, o = ask(options.binary, text, work), ask(options.oracle, text, work)
    if h[:2] == o[:2]:
        return None
    return explained(h, o, text) or ("", h, o)


def kind_of(h, o):
    """What kind of difference it is, so that shrinking keeps it: the answers without numbers of lines."""
    plain = lambda answer: (answer[0], re.sub(r"FILE:\d+", "FILE", answer[1]))
    return plain(h), plain(o)


def shrunk(options, text, work):
    """The same difference with the fewest lines."""
    lines = text.rstrip("\n").split("\n")
    found = compare(options, text, work)
    kind = kind_of(found[1], found[2])
    at = 0
    while at < len(lines) and len(lines) > 1:
        fewer = lines[:at] + lines[at + 1:]
        now = compare(options, "\n".join(fewer) + "\n", work)
        if isinstance(now, tuple) and kind_of(now[1], now[2]) == kind:
            lines, found = fewer, now
        else:
            at += 1
    return "\n".join(lines) + "\n", found


# ---------------------------------------------------------------- running

def commit():
    r = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return r.stdout.strip() or "-"


def seeds_of(word):
    low, _, high = word.partition("-")
    return range(int(low), int(high or low) + 1)


def asked(options, seed, known):
    """What the seed makes, and HAProxy's answer to it: those of an earlier run if there was one."""
    if known:
        return known
    with tempfile.TemporaryDirectory() as work:
        text = make(seed, stock(), options.oracle)
        code, message, _ = ask(options.oracle, text, work)
    return [seed, text, code, message]


def one(options, task):
    """Compares one seed: what was asked, how it ended, and what differs."""
    seed, known = task
    known = asked(options, seed, known)
    _, text, code, message = known
    message = normal(message)
    with tempfile.TemporaryDirectory() as work:
        h, o = ask(options.binary, text, work), (code, message, [])
        verdict = "same" if h[:2] == o[:2] else explained(h, o, text) or "DIFF"
        if verdict != "DIFF":
            return known, verdict, None
        text, found = shrunk(options, text, work)
    return known, verdict, {"kind": "verdict" if (found[1][0] == 0) != (found[2][0] == 0) else "message",
                            "harrier": found[1], "oracle": found[2], "text": text}


class Cache:
    """HAProxy's answers by seed, in a file of H_DIFF_CACHE for each version of the generator and of HAProxy."""

    def __init__(self, oracle):
        self.known, self.file = {}, None
        folder = os.environ.get("H_DIFF_CACHE")
        if folder:
            os.makedirs(folder, exist_ok=True)
            version = subprocess.run([oracle, "-vv"], capture_output=True).stdout
            name = f"broken-{generator()}-{hashlib.sha256(version).hexdigest()[:8]}.jsonl"
            self.file = open(os.path.join(folder, name), "a+")
            self.file.seek(0)
            for line in self.file:
                if line.endswith("\n"):
                    row = json.loads(line)
                    self.known[row[0]] = row

    def add(self, row):
        if self.file and row[0] not in self.known:
            self.known[row[0]] = row
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()


def run(options):
    done, cache = set(), Cache(options.oracle)
    if options.journal and os.path.exists(options.journal):
        for line in open(options.journal):
            done.add(int(line.split("\t")[0]))
    todo = [(s, cache.known.get(s)) for s in seeds_of(options.seeds) if s not in done]
    sums, at = collections.Counter(), commit()
    journal = open(options.journal, "a") if options.journal else None
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for known, verdict, detail in pool.map(functools.partial(one, options), todo, chunksize=8):
            cache.add(known)
            sums[verdict] += 1
            if detail:
                print(f"--- seed {known[0]}: {detail['kind']}\n{detail['text']}  harrier: {detail['harrier']}\n"
                      f"  oracle:  {detail['oracle']}", flush=True)
            if journal:
                journal.write(f"{known[0]}\t{at}\t{verdict}\t{json.dumps(detail) if detail else ''}\n")
                journal.flush()
    print(dict(sums))
    return 1 if sums["DIFF"] else 0


def keep(options):
    """Writes kept/NAME.cfg with the oracle's answer in its head."""
    os.makedirs(KEPT, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for path in options.keep:
            text = "".join(l for l in open(path) if not l.startswith("#! "))
            code, message, _ = ask(options.oracle, text, work)
            name = os.path.basename(path)
            with open(os.path.join(KEPT, name), "w") as f:
                f.write(f"#! exit {code}\n#! first {message}\n{text}")
    return 0


def generator():
    """Which version of the generator it is: what it is made of and from."""
    parts = [inspect.getsource(f) for f in (misspelt, numeric, unit, base, broken, valid, make)] + [repr(WORDS), open(
        os.path.join(HERE, "stock.json")).read()]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:8]


def spans(numbers):
    """5, 6, 7, 9 as `5-7,9`."""
    out = []
    for n in sorted(numbers):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in out)


def fold(options):
    """Adds what a journal says to the ledger, a line for each commit."""
    groups = collections.defaultdict(list)
    for line in open(options.fold):
        seed, at, verdict = line.rstrip("\n").split("\t")[:3]
        groups[at].append((int(seed), verdict))
    with open(LEDGER, "a") as f:
        for at, found in groups.items():
            counts = collections.Counter(verdict for _, verdict in found)
            differ = spans(seed for seed, verdict in found if verdict == "DIFF")
            sums = " ".join(f"{k}={v}" for k, v in sorted(counts.items()))
            f.write("\t".join([spans(seed for seed, _ in found), generator(), at, sums, differ]) + "\n")
    return 0


def pack(rows):
    """Writes what was kept, in the order of the seeds."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in sorted(rows))
    with open(PACK, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as out:
        out.write(text.encode())


def packed():
    if not os.path.exists(PACK):
        return []
    with gzip.open(PACK, "rt") as f:
        return [json.loads(line) for line in f]


# What depends on the machine: names, processors, files.
LOCAL = re.compile(r"could not resolve|CPUs|namespace|No such file|failed to open")


def keep_seeds(options):
    """Adds what both programs say alike of broken configurations."""
    lines, rows = stock(), {row[0]: row for row in packed()}

    def one(seed):
        with tempfile.TemporaryDirectory() as work:
            text = make(seed, lines, options.oracle)
            h, o = ask(options.binary, text, work), ask(options.oracle, text, work)
        return [seed, o[0], o[1], text] if h[:2] == o[:2] and o[1] and not LOCAL.search(o[1]) else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(one, seeds_of(options.pack)):
            if row:
                rows[row[0]] = row
    pack(rows.values())
    print(f"{len(rows)} kept")
    return 0


def replay(options):
    """Every kept configuration must get the answer that the oracle gave."""
    kept = []
    for path in sorted(glob.glob(os.path.join(KEPT, "*.cfg"))):
        text = open(path).read()
        code = int(re.search(r"^#! exit (-?\d+)", text, re.M)[1])
        message = re.search(r"^#! first (.*)", text, re.M)[1]
        body = "".join(l + "\n" for l in text.rstrip("\n").split("\n") if not l.startswith("#! "))
        kept.append((f"kept/{os.path.basename(path)}", code, message, body))
    kept += [(f"seed {seed}", code, message, text) for seed, code, message, text in packed()]

    def check(entry):
        name, code, message, body = entry
        with tempfile.TemporaryDirectory() as work:
            got = ask(options.binary, body, work)
        return name, got[:2] == (code, normal(message)), got, (code, message)

    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, good, got, want in pool.map(check, kept):
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"FAIL {name}: {got}, HAProxy: {want}")
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=os.path.abspath)
    p.add_argument("--oracle", type=os.path.abspath)
    p.add_argument("--seeds")
    p.add_argument("--journal")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--show", type=int)
    p.add_argument("--keep", nargs="*")
    p.add_argument("--fold")
    p.add_argument("--pack")
    options = p.parse_args()
    if options.fold:
        return fold(options)
    if options.pack:
        return keep_seeds(options)
    if options.keep:
        return keep(options)
    if options.show is not None:
        text = make(options.show, stock(), options.oracle)
        with tempfile.TemporaryDirectory() as work:
            print(text)
            print("harrier:", ask(options.binary, text, work))
            print("oracle: ", ask(options.oracle, text, work))
        return 0
    if options.seeds:
        return run(options)
    return replay(options)


if __name__ == "__main__":
    sys.exit(main())
