"""What spoils how many programs: the differences of the findings, put together by cause.

The cause of a difference is its channel and the first lines that differ there, without numbers and names. A cause stands
*alone* in a program that has no other; those of a cause that is mostly alone agree when it is mended.
"""
import collections, glob, json, os, re

import differences

# Numbers that say what was done: a status, the code of a reset.
TOLD = re.compile(r"(HTTP/\d\.\d \d\d\d|:status: \d+|RST \d+|GOAWAY last=\d+ code=\d+|exit \d+|PROXY TCP\d)|\d+")


def channel_of(line):
    """Of a difference: the step, the place, the kind of channel, what is said there."""
    step, rest = line.split(" ", 1)
    got = re.match(r"(.*?): ([-+].*)$", rest, re.S)
    place, text = got.groups() if got else (rest, "")
    words = place.split(" ")
    kind = words[0] if words[0] in ("client", "origin") else " ".join(words[:3])
    return int(step), place, kind, text


def plain(text):
    """A line without what one program has and another has not: numbers, names, digests, most of a value."""
    text = re.sub(r"\b(origin )?([fbsdock])\d+(#\d+)?\b", r"\2N", text)
    text = re.sub(r"\([\d]+ bytes, [0-9a-f]{12}\)", "(bytes)", text)
    return TOLD.sub(lambda m: m[1] or "0", text)[:90]


def words(before, after):
    """Which words of two log lines differ."""
    one, two = before.split(" "), after.split(" ")
    if len(one) != len(two):
        return "lines of other lengths"
    return " ".join(f"[{n}] {plain(a)[:24]} / {plain(b)[:24]}" for n, (a, b) in enumerate(zip(one, two)) if a != b)[:90]


def of_program(lines):
    """The causes of one program: for each channel of each step the first lines that differ."""
    first = {}
    for line in lines:
        step, place, name, text = channel_of(line)
        pair = first.setdefault((step, place), [name, None, None])
        at = 1 if text.startswith("-") else 2
        if pair[at] is None:
            pair[at] = text[1:]
    out, started = [], {tuple(pair[1:]) for (step, _), pair in first.items() if step == -1}
    for (step, _), (name, before, after) in first.items():
        if name == "stderr" and (before, after) in started:
            continue
        if name == "log" and before and after:
            out.append(f"log: {words(before, after)}")
            continue
        said = [sign + plain(text) for sign, text in (("-", before), ("+", after)) if text is not None]
        if name == "log":
            said = [re.sub(r"DATE.*", "a line", s) for s in said]
        out.append(f"{name}: " + " ".join(said))
    return out


def findings(folder, deep=False):
    """What differs in each finding under the rules of today."""
    for path in glob.glob(os.path.join(folder, "found-*.json")):
        data = json.load(open(path))
        theirs, ours, shaky = data["case"]["records"]
        found = differences.compare(theirs, ours, data["case"], {tuple(s) for s in shaky}, deep)
        yield int(re.search(r"found-(\d+)", path)[1]), found


def table(folder, top, deep=False):
    alone, every, seeds, channels = collections.Counter(), collections.Counter(), collections.defaultdict(list), collections.Counter()
    count = gone = 0
    for seed, found in sorted(findings(folder, deep)):
        if not found:
            gone += 1
            continue
        count += 1
        causes = of_program(found)
        channels[" + ".join(sorted({cause.split(": ")[0] for cause in causes}))] += 1
        for cause in set(causes):
            every[cause] += 1
            seeds[cause].append(seed)
        if len(set(causes)) == 1:
            alone[causes[0]] += 1
    yield f"{count} programs differ, {gone} findings are explained by the rules of today"
    yield "\n# by channels that differ: programs"
    for name, n in channels.most_common(top):
        yield f"{n:5} {name}"
    yield "\n# by cause: programs with nothing else, programs in all"
    for cause, n in sorted(every.items(), key=lambda pair: (-alone[pair[0]], -pair[1], pair[0]))[:top]:
        yield f"{alone[cause]:5} {n:5} {cause}    {' '.join(map(str, seeds[cause][:8]))}"
