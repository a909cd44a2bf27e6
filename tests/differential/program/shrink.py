"""Makes a case that differs as small as it can be: steps, operations, lines and words go while the difference stays."""
import json, os, re, time

import differences


def kept(run, a, case, wanted):
    """Whether `wanted`, the kind of a difference, still stands. A case that HAProxy refuses is not a smaller one."""
    checked = wanted.startswith(("check", "stderr"))
    try:
        theirs, slow = run.run_once(a.oracle, case, checked)
        if any(channel == "start" or (channel == "check" and lines != ["exit 0"]) for _, channel, lines in theirs):
            return False
        ours, _ = run.run_once(a.binary, case, checked)
    except Exception:
        return False
    return any(differences.cause(line) == wanted for line in differences.compare(theirs, ours, case))


def smaller(items, holds, end):
    """`items` without what is not needed; halves first, then single ones."""
    size = max(1, len(items) // 2)
    while size:
        at = 0
        while at < len(items) and time.monotonic() < end:
            without = items[:at] + items[at + size:]
            if holds(without):
                items = without
            else:
                at += size
        size //= 2
    return items


def shrink(run, a, case, wanted, step=None, seconds=150):
    end = time.monotonic() + seconds
    if step is not None and 0 < step < 1000:
        case = dict(case, steps=case["steps"][:step])
    case = {k: v for k, v in case.items() if k not in ("records", "dropped")}
    if not wanted.startswith("final"):
        case["final"] = []
    steps = smaller(case["steps"], lambda steps: kept(run, a, dict(case, steps=steps), wanted), end)
    case["steps"] = steps
    # With one thread alone does a command on the socket tell that what came before it is done.
    fixed = re.compile(r"^\S|\s+(mode|timeout|stats socket|bind|nbthread)")
    movable = [n for n, line in enumerate(case["config"]) if not fixed.match(line)]
    left = set(smaller(movable, lambda some: kept(run, a, dict(case, config=[l for n, l in enumerate(case["config"]) if n not in movable or n in some]), wanted), end))
    case["config"] = [line for n, line in enumerate(case["config"]) if n not in movable or n in left]
    # Sections that have become empty, and words of bind and server lines.
    for at in range(len(case["config"]) - 1, -1, -1):
        words = case["config"][at].split(" ")
        if words[4:5] in (["bind"], ["server"]) and time.monotonic() < end:
            keep = 6 if words[4] == "bind" else 7
            rest = smaller(words[keep:], lambda some: kept(run, a, dict(case, config=case["config"][:at] + [" ".join(words[:keep] + some)] + case["config"][at + 1:]), wanted), end)
            case["config"][at] = " ".join(words[:keep] + rest)
    for at, ops in enumerate(case["steps"]):
        case["steps"][at] = smaller(ops, lambda some: kept(run, a, dict(case, steps=case["steps"][:at] + [some] + case["steps"][at + 1:]), wanted), end)
    used = "\n".join(case["config"])
    case["files"] = {n: t for n, t in case["files"].items() if n in used}
    case["origins"] = {n: t for n, t in case["origins"].items() if re.search(rf"\b{n}\b", used)}
    return case


def main(a):
    import run
    data = json.load(open(a.shrink))
    case = data.get("case", data)
    if "records" in case:
        theirs, ours, shaky = case["records"]
        found = differences.compare(theirs, ours, case, {tuple(s) for s in shaky})
    else:
        theirs, ours = run.run_once(a.oracle, case)[0], run.run_once(a.binary, case)[0]
        found = differences.compare(theirs, ours, case)
    found = [line for line in found if re.search(a.only or "", line)]
    if not found:
        print(a.shrink, "no difference")
        return
    # The wait for something that does not come says less than what was or was not said.
    first = min(found, key=lambda line: (" wait:" in line, found.index(line)))
    case = shrink(run, a, case, differences.cause(first), int(first.split(" ")[0]))
    theirs, ours = run.run_once(a.oracle, case)[0], run.run_once(a.binary, case)[0]
    out = a.shrink.replace("found-", "small-")
    json.dump(case, open(out, "w"), indent=1)
    print("#", out)
    print("\n".join(case["config"]))
    for step in case["steps"]:
        print(json.dumps(step)[:1500])
    print("\n".join(line[:400] for line in differences.compare(theirs, ours, case)[:30]), flush=True)
