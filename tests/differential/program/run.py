#!/usr/bin/env python3
"""Whole programs on Harrier and on HAProxy, compared by a machine.

    run.py --binary HARRIER --oracle HAPROXY --seeds 1-500 [--jobs 2]   compare programs made from seeds; journal and findings go to --out
    run.py --binary HARRIER --oracle HAPROXY --seeds 1-500 --check-only compare only what `-c` says of them; with --start also what they say
                                                                        when they start and end, without any traffic
    run.py --binary HARRIER --oracle HAPROXY --case FILE                compare one case, show what differs
    run.py --binary HARRIER --oracle HAPROXY --shrink FILE              make a case that differs as small as it can be
    run.py --binary HARRIER --replay                                    kept cases against HAProxy's recorded answers
    run.py --oracle HAPROXY --keep FILE --name NAME --why TEXT          keep one case with HAProxy's answer
    run.py --binary HARRIER --oracle HAPROXY --pack NAME --seeds 1-100  keep those of a range that are stable and agree
    run.py --journal | --sum                                            put the journal into journal.txt; what was compared in all
    run.py --report                                                     differences of the findings, sorted by cause
    run.py --coverage                                                   how often each keyword and command has occurred

A program is a configuration, its files, its origins and at least ten exchanges, made by gen.py from a seed. A difference
counts when both programs repeat it: what one program does differently from run to run is not compared.
"""
import argparse, collections, glob, hashlib, json, multiprocessing, os, re, subprocess, sys, time, traceback, zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import causes, cover, differences, gen, keep, shrink
from world import World

# Raised whenever a record could come out otherwise: answers kept under another number are not used.
VERSION = 3
JOURNAL = os.path.join(HERE, "journal.txt")
# What Harrier says of lines that it does not take: a program is compared without them.
PLANNED = re.compile("supported yet by Harrier|TLS before 1.2 is not available")
CACHE = os.environ.get("H_DIFF_CACHE", "/tmp/h-diff/cache")


def scratch(tag=""):
    return f"/tmp/h-diff/w{os.getpid()}{tag}"


# Ways in which a program may run on another day: on one processor, or with system calls that take their time (tests/lag).
MANNERS = [(("taskset", "-c", "0"), {}), ((), {"LAG_EPOLL": "4"}), ((), {"LAG_WRITE": "4", "LAG_READ": "2"}),
           ((), {"LAG_CLOSE": "8", "LAG_ACCEPT": "4", "LAG_CONNECT": "4"})]
LAG = os.path.join(HERE, "..", "..", "lag", "lag.c")


def lag_library():
    """The library of tests/lag, made once for each state of its source."""
    with open(LAG, "rb") as file:
        path = os.path.join("/tmp/h-diff", f"lag-{hashlib.sha1(file.read()).hexdigest()[:12]}.so")
    if not os.path.exists(path):
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", f"{path}.{os.getpid()}", LAG, "-ldl"], check=True)
        os.replace(f"{path}.{os.getpid()}", path)
    return path


def run_in_manner(program, case, manner):
    before, delays = manner
    if delays:
        delays = {"LD_PRELOAD": lag_library(), "LAG_PROG": os.path.basename(program), "LAG_RANDOM": "1", **delays}
    return World(program, case, scratch(), False, before, delays).run()


def in_other_manners(binary, oracle, case, shaky):
    """Whether there is a manner in which HAProxy runs and one in which Harrier does that give the same answers: then what differed is a
    matter of time to HAProxy itself."""
    kept = Answers(case, "manners")
    answers = kept.load() or []
    checks = [[entry for entry in record if entry[0] == -1] for record in case["records"][:2]]
    theirs, ours = [case["records"][0]], [case["records"][1]]
    same = lambda one, other: not differences.compare(one, other, case, shaky)
    for at, manner in enumerate(MANNERS):
        if at == len(answers):
            answers.append(run_in_manner(oracle, case, manner))
            kept.store(answers)
        theirs.append(checks[0] + answers[at])
        if any(same(theirs[-1], one) for one in ours):
            return True
        ours.append(checks[1] + run_in_manner(binary, case, manner))
        if any(same(one, ours[-1]) for one in theirs):
            return True
    return False


def run_once(program, case, check=True):
    world = World(program, case, scratch(), check)
    record = world.run()
    return record, world.slow


def trailing(case):
    """Trailers wait for the body, and a reset forgets it, since then."""
    return any(op[0] == "stream" and op[-1] in ("trailers", "rst8") and isinstance(op[4], int) for ops in case.get("steps", ()) for op in ops)


def begun(case):
    """Origins pass over a binary header of the PROXY protocol since then."""
    return any("proxy-v2" in line for line in case.get("config", ()))


def headed(case):
    """What is long behind a header of the PROXY protocol in text is told like what comes without one since then."""
    return any(re.search(r"send-proxy(?!-v2)", line) for line in case.get("config", ()))


def headed_in_tcp(case):
    """So is it in TCP since then."""
    return headed(case) and any("mode tcp" in line for line in case.get("config", ()))


def at_once(case):
    """Applications of FastCGI answer by one write since then."""
    return any(origin.get("kind") == "fcgi" for origin in case.get("origins", {}).values())


def checked(case):
    """Origins that are asked by checks alone leave the scripts to the others since then."""
    return any(origin.get("quiet") for origin in case.get("origins", {}).values()) and any(op[0] == "origin" for ops in case.get("steps", ()) for op in ops)


def asked_at_length(case):
    """Origins read checks to their end since then."""
    return any(re.search(r"http-check send .*\bbody", line) for line in case.get("config", ()))


class Answers:
    """What HAProxy said about a case, kept in files: it is asked once for all builds of Harrier."""

    def __init__(self, case, what):
        told = json.dumps([VERSION + 0.5 * trailing(case) + 0.0625 * begun(case) + 0.015625 * at_once(case) + 0.0078125 * headed(case) + 0.0009765625 * headed_in_tcp(case) + 0.00390625 * checked(case) + 0.001953125 * asked_at_length(case), what] + [case.get(k) for k in ("config", "files", "listen", "origins", "steps", "final", "patience")])
        name = hashlib.sha1(told.encode()).hexdigest()
        self.path = os.path.join(CACHE, name[:2], name)

    def load(self):
        try:
            with open(self.path, "rb") as file:
                return json.loads(zlib.decompress(file.read()))
        except (OSError, ValueError, zlib.error):
            return None

    def store(self, value):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        name = f"{self.path}.{os.getpid()}"
        with open(name, "wb") as file:
            file.write(zlib.compress(json.dumps(value).encode()))
        os.replace(name, self.path)
        return value


def valid(oracle, case):
    """The case without the lines that HAProxy refuses, and what `-c` says then; None when nothing helps."""
    kept = Answers(case, "valid")
    found = kept.load()
    if found is None:
        found = kept.store(without_refused(oracle, case))
    return found and (dict(case, config=found[0], dropped=case.get("dropped", []) + found[1]), found[2])


def without_refused(oracle, case, rounds=12):
    dropped = []
    for _ in range(rounds):
        accepted, said, record = World(oracle, case, scratch()).only_check()
        if accepted:
            return [case["config"], dropped, record]
        bad = refused_lines(case["config"], said)
        if not bad:
            return []
        dropped += [case["config"][n - 1].strip() for n in sorted(bad)]
        case = dict(case, config=[line for n, line in enumerate(case["config"], 1) if n not in bad])
    return []


def refused_lines(lines, said):
    """Numbers of the lines that alerts are about: those they name, or one that has a word they name."""
    bad = {int(n) for n in re.findall(r"\[ALERT\].*?\[cfg:(\d+)\]", said)}
    bad |= {int(n) for n in re.findall(r"\[ALERT\].*?(?:declared )?(?:at|in) (?:file )?'?cfg:(\d+)", said)}
    if not bad:
        for text in re.findall(r"\[ALERT\][^\n]*", said):
            named = re.findall(r"'([^']+)'", text)
            for number, line in enumerate(lines):
                if not line.startswith("    ") or re.match(r"\s+(mode|bind|server|stats socket)", line):
                    continue
                if any(n in line for n in named if len(n) > 2):
                    bad.add(number + 1)
                    break
    return {n for n in bad if 0 < n <= len(lines) and lines[n - 1].startswith("    ") and "%%fd:cli" not in lines[n - 1]}


def both_accept(oracle, binary, case):
    """The case without what HAProxy refuses and without what Harrier says is planned, and both answers of `-c`; None if there is no such case."""
    got = valid(oracle, case)
    for _ in range(6):
        if not got:
            return None
        case, theirs = got
        accepted, said, ours = World(binary, case, scratch()).only_check()
        if not accepted and "    quiet" in case["config"]:
            loud = dict(case, config=["" if line == "    quiet" else line for line in case["config"]])
            said = World(binary, loud, scratch()).only_check()[1]
        planned = "\n".join(line for line in said.split("\n") if PLANNED.search(line))
        if not planned:
            return case, theirs, ours
        bad = refused_lines(case["config"], planned)
        if not bad:
            return None
        case = dict(case, dropped=case["dropped"] + [case["config"][n - 1].strip() for n in sorted(bad)],
                    config=[line for n, line in enumerate(case["config"], 1) if n not in bad])
        got = valid(oracle, case)
    return None


def flat(record):
    out = []
    for step, channel, lines in record:
        out += [(step, channel, line) for line in lines]
    return out


def answers(oracle, case, count, slow=True):
    """`count` records of HAProxy's; without `slow` None when it was waited for something that did not come."""
    kept = Answers(case, "runs")
    found = kept.load() or []
    if not slow and any(waited for _, waited in found):
        return None
    if len(found) < count:
        while len(found) < count and (slow or not any(waited for _, waited in found)):
            found.append(run_once(oracle, case, False))
        kept.store(found)
    return [record for record, _ in found] if slow or not any(waited for _, waited in found) else None


def compare(binary, oracle, case, theirs, ours, again=0):
    """Lines that differ, after the rules of differences.py; [] when there are none. A difference that is found `again`
    more times on both sides counts, what one program does differently from run to run is passed over."""
    first = [theirs + record for record in answers(oracle, case, 1 + again)]
    second = [ours + run_once(binary, case, False)[0] for _ in range(1 + again)]
    shaky = set()
    for records in (first, second):
        for record in records[1:]:
            shaky |= differences.unstable(records[0], record)
    found = differences.compare(first[-1], second[-1], case, shaky)
    case["records"] = [first[-1], second[-1], sorted(shaky)]
    if found and again and case["steps"] and not any(line.startswith("-1 ") for line in found) and in_other_manners(binary, oracle, case, shaky):
        return []
    return found


def one_seed(task):
    """A difference is only a suspicion while `again` is 0: the same seed is run once more when little else runs."""
    seed, binary, oracle, depth, again = task
    start = time.time()
    try:
        got = both_accept(oracle, binary, gen.make(seed))
        if got is None:
            return seed, "refused", [], time.time() - start, None
        case, theirs, ours = got
        if depth == "check":
            found = differences.compare(theirs, ours, case)
            case["records"] = [theirs, ours, []]
        else:
            # Servers are told to be down before the end, or are not: their checks are waited for.
            awaited = [step for step in case["steps"][:1] if step[0][0] == "await"]
            case = dict(case, steps=awaited, final=[]) if depth == "start" else case
            found = compare(binary, oracle, case, theirs, ours, again)
        return seed, "differs" if found else "same", found, time.time() - start, case
    except Exception:
        return seed, "error", [traceback.format_exc()[-700:]], time.time() - start, None


def commit():
    got = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return got.stdout.strip() or "?"


def span(text):
    out = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


def run_seeds(a):
    os.makedirs(a.out, exist_ok=True)
    depth = "start" if a.start else "check" if a.check_only else "whole"
    path = os.path.join(a.out, "journal.tsv" if depth == "whole" else f"{depth}s.tsv")
    build = a.build or commit()
    done = set()
    if os.path.exists(path):
        for line in open(path):
            cells = line.rstrip("\n").split("\t")
            if len(cells) > 2 and cells[1] == build and cells[2] == str(VERSION):
                done.add(int(cells[0]))
    wanted = span(a.seeds)
    seeds = [s for s in wanted if s not in done]
    sums, start, suspects = collections.Counter(), time.time(), []
    with open(path, "a") as out:
        def told(seed, verdict, found, seconds, case):
            sums[verdict] += 1
            out.write(f"{seed}\t{build}\t{VERSION}\t{verdict}\t{seconds:.2f}\t{coverage_words(case) if case else ''}\n")
            out.flush()
            path = os.path.join(a.out, f"found-{seed}.json")
            if verdict == "differs":
                json.dump({"found": found, "case": case}, open(path, "w"))
            elif os.path.exists(path):
                os.unlink(path)
            if verdict == "error":
                print(seed, found[0], flush=True)
        def until(seeds):
            for seed in seeds:
                if a.seconds and time.time() - start > a.seconds:
                    return
                yield seed
        for one in keep.spread(one_seed, a.jobs, until((s, a.binary, a.oracle, depth, 0) for s in seeds)):
            if one[1] in ("differs", "error") and depth != "check":
                suspects.append(one[0])
            else:
                told(*one)
        print(f"{len(seeds)} programs run in {time.time() - start:.0f} s, {len(suspects)} to run again", flush=True)
        for one in keep.spread(one_seed, a.calm, [(s, a.binary, a.oracle, depth, 2) for s in sorted(suspects)]):
            told(*one)
    spent = time.time() - start
    print(f"{sum(sums.values())} programs in {spent:.0f} s: " + ", ".join(f"{n} {w}" for w, n in sorted(sums.items())))


def seeds_of(spans):
    """The seeds of `1-57,59`."""
    ends = ([int(n) for n in part.split("-")] for part in spans.split(",") if part != "-")
    return [seed for first, *last in ends for seed in range(first, (last or [first])[0] + 1)]


def spans_of(seeds):
    """The seeds as `1-57,59`; `-` for none."""
    spans = []
    for seed in sorted(seeds):
        if spans and spans[-1][1] + 1 == seed:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in spans) or "-"


VERDICTS = ("same", "differs", "refused")


def kept_journal():
    """What the committed journal says of each seed: the commit that it was run on, and what came of it."""
    known = {}
    for line in open(JOURNAL):
        if not line.startswith("#"):
            version, build, *spans = line.split()
            known.update({(int(version), seed): (build, verdict) for verdict, seeds in zip(VERDICTS, spans) for seed in seeds_of(seeds)})
    return known


def journal(a):
    """Puts what the journal of --out says about the newest build of each seed into the committed one. What that says of other seeds
    stays, so that machines that live for one day add up to the whole."""
    newest = kept_journal()
    for line in open(os.path.join(a.out, "journal.tsv")):
        cells = line.split("\t")
        newest[(int(cells[2]), int(cells[0]))] = (a.build or cells[1], cells[3])
    builds = {}
    for (version, seed), (build, verdict) in newest.items():
        builds.setdefault((version, build), {}).setdefault(verdict, []).append(seed)
    with open(JOURNAL, "w") as out:
        out.write("# version of the generator, commit, seeds of programs that agree, that differ, that either program refuses\n")
        for (version, build), seeds in sorted(builds.items(), key=lambda item: min(min(of) for of in item[1].values())):
            out.write(" ".join([str(version), build, *(spans_of(seeds.get(verdict, ())) for verdict in VERDICTS)]) + "\n")
    sums()


def sums():
    total = collections.Counter(verdict for _, verdict in kept_journal().values())
    ran = total["same"] + total["differs"]
    print(f"{ran} programs compared: {total['same']} agree, {total['differs']} differ ({100 * total['differs'] / max(1, ran):.2f} %); {total['refused']} refused")


def coverage_words(case):
    return ";".join(sorted(cover.words_of(case)))


def generated(seeds):
    counts = collections.Counter()
    for seed in seeds:
        counts.update(cover.words_of(gen.make(seed)))
    return counts


def coverage(a):
    """Of each keyword and command: in how many programs it would occur (those of --seeds, before anything is refused), and in how
    many of those that ran both accepted it."""
    ran, seen = 0, collections.Counter()
    path = os.path.join(a.out, "journal.tsv")
    for line in open(path) if os.path.exists(path) else []:
        cells = line.rstrip("\n").split("\t")
        if len(cells) > 5 and cells[2] == str(VERSION) and cells[3] in ("same", "differs"):
            ran += 1
            seen.update(cells[5].split(";"))
    seeds = span(a.seeds or "1-20000")
    parts = [seeds[n::a.jobs] for n in range(a.jobs)]
    with multiprocessing.Pool(a.jobs) as pool:
        counts = sum(pool.map(generated, parts), collections.Counter())
    want = 20 * len(seeds) / 20000
    print(f"{len(seeds)} programs made, {ran} ran")
    short = [word for word in cover.all_words() if counts[word] < want]
    for word in sorted(short):
        print(f"never enough: {counts[word]:6} made {seen[word]:6} accepted  {word}")
    for word in sorted(set(cover.all_words()) - set(short)):
        if ran and not seen[word]:
            print(f"never accepted: {counts[word]:6} made {word}")
    for word, count in sorted(counts.items(), key=lambda pair: (pair[1], pair[0]))[:a.top]:
        print(f"{count:6} {seen[word]:6} {word}")


def again(a):
    """Shows what still differs in the findings, under the rules of today."""
    for path in sorted(glob.glob(os.path.join(a.out, "found-*.json"))):
        data = json.load(open(path))
        theirs, ours, shaky = data["case"]["records"]
        found = differences.compare(theirs, ours, data["case"], {tuple(s) for s in shaky})
        if not found:
            os.unlink(path)
            continue
        if a.only and not any(re.search(a.only, line) for line in found):
            continue
        print("#", path)
        print("\n".join(line[:300] for line in found[:a.top]))


def report(a):
    print("\n".join(causes.table(a.out, a.top, a.deep)))


def load(path):
    data = json.load(open(path))
    return data.get("case", data)


def show_case(a):
    case = load(a.case) if os.path.exists(a.case) else valid(a.oracle, gen.make(int(a.case)))[0]
    if a.print:
        print("\n".join(case["config"]))
        for step in case["steps"]:
            print(json.dumps(step))
    theirs, _ = run_once(a.oracle, case)
    ours, _ = run_once(a.binary, case) if a.binary else (theirs, 0)
    if a.all:
        for step, channel, line in flat(theirs):
            print(f"{step} {channel}: {line}")
    for line in differences.compare(theirs, ours, case):
        print(line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary")
    p.add_argument("--oracle")
    p.add_argument("--seeds")
    p.add_argument("--case")
    p.add_argument("--shrink")
    p.add_argument("--only", help="regular expression: the difference that a shrunk case must keep")
    p.add_argument("--replay", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--pack")
    p.add_argument("--name")
    p.add_argument("--why", default="")
    p.add_argument("--seconds", type=int, default=0, help="no more programs are begun after so long")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--again", action="store_true")
    p.add_argument("--check-only", action="store_true")
    p.add_argument("--start", action="store_true")
    p.add_argument("--report", action="store_true")
    p.add_argument("--deep", action="store_true", help="with --report: also what differs behind the first step that does")
    p.add_argument("--coverage", action="store_true")
    p.add_argument("--out", default="/tmp/h-diff/out")
    p.add_argument("--build", help="name of the build in the journal, if not the commit")
    p.add_argument("--jobs", type=int, default=12, help="programs at once: they mostly wait")
    p.add_argument("--prune", action="store_true", help="with --replay: takes what differed once out of the packs")
    p.add_argument("--calm", type=int, default=3, help="jobs for those that are run again because they differed")
    p.add_argument("--journal", action="store_true")
    p.add_argument("--sum", action="store_true")
    p.add_argument("--top", type=int, default=60)
    p.add_argument("--print", action="store_true")
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    if a.binary:
        a.binary = os.path.abspath(a.binary)
    if a.replay:
        sys.exit(0 if keep.replay(a.binary, a.jobs, a.only, a.prune) else 1)
    elif a.pack:
        keep.pack(a.oracle, a.binary, span(a.seeds), a.pack, a.jobs, a.runs, a.seconds)
    elif a.keep:
        keep.keep_one(a.oracle, a.keep, a.name, a.why)
    elif a.coverage:
        coverage(a)
    elif a.journal:
        journal(a)
    elif a.sum:
        sums()
    elif a.seeds:
        run_seeds(a)
    elif a.case:
        show_case(a)
    elif a.shrink:
        shrink.main(a)
    elif a.again:
        again(a)
    elif a.report:
        report(a)


if __name__ == "__main__":
    main()
