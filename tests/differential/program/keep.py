"""Kept cases: programs with HAProxy's answer, so that they run without it.

`programs/NAME.json` is one case that once differed, small and readable, with the reason it is kept; `programs/*.json.xz`
are packs of many. A case whose answer is not the same ten times in a row on HAProxy is not kept.
"""
import concurrent.futures, glob, json, lzma, os, time

import differences, masks
from world import World

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(HERE), "programs")
RUNS = 10


def clean(case):
    return {k: v for k, v in case.items() if k not in ("records", "dropped", "slow")}


def answer(oracle, case, check, runs=RUNS):
    """What HAProxy does with the case, if it does it every time."""
    first = None
    for _ in range(runs):
        world = World(oracle, case, f"/tmp/h-diff-{os.getpid()}", check)
        record = world.run()
        if world.slow:
            return None
        if first is None:
            first = record
        elif differences.keyed(first) != differences.keyed(record):
            return None
    return first


def keep_one(oracle, path, name, why):
    data = json.load(open(path))
    case = clean(data.get("case", data))
    record = answer(oracle, case, True)
    if record is None:
        print(f"{name}: not stable, not kept")
        return False
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name + ".json"), "w") as out:
        json.dump({"why": why, "case": case, "answer": record}, out, indent=1)
        out.write("\n")
    print(f"{name}: kept")
    return True


def agreed(oracle, binary, case, runs):
    """The case up to where the programs part, with HAProxy's answer; None when that is too little, or not the same each time."""
    import run
    if any(" check inter" in line for line in case["config"]):
        # How often a check has run by the end is a matter of time.
        return None
    case = dict(clean(case), ignore=["stderr"])
    for _ in range(4):
        theirs = run.answers(oracle, case, runs, slow=False)
        if theirs is None:
            return None
        ours = [run.run_once(binary, case, False) for _ in range(2)]
        if any(slow for _, slow in ours):
            return None
        parts = [line for record, _ in ours for line in differences.compare(theirs[0], record, case)]
        parts += [line for other in theirs[1:] for line in differences.compare(theirs[0], other, case)]
        if not parts:
            return {"case": case, "answer": [[step, channel, masks.channel(channel, lines)] for step, channel, lines in theirs[0] if channel != "stderr"]}
        step = min(int(line.split(" ")[0]) for line in parts)
        if step == 1000 and case["final"]:
            case = dict(case, final=[])
        elif 3 < step < 1000:
            case = dict(case, steps=case["steps"][:step - 1], final=[])
        else:
            return None
    return None


def pack_one(task):
    oracle, binary, seed, runs = task
    import gen, run
    try:
        got = run.both_accept(oracle, binary, gen.make(seed))
        one = got and agreed(oracle, binary, got[0], runs)
        used = one and "\n".join(one["case"]["config"])
        if one:
            one["case"]["files"] = {n: t for n, t in one["case"]["files"].items() if n in used}
        return seed, one
    except Exception:
        return seed, None


def pack(oracle, binary, seeds, name, jobs, runs=RUNS, seconds=0):
    """Adds the programs of seeds that both programs agree on, and that are stable, to a pack."""
    path, end, kept = os.path.join(FOLDER, name + ".json.xz"), time.monotonic() + (seconds or 1e9), {}
    if os.path.exists(path):
        with lzma.open(path, "rt") as lines:
            kept = {one["case"]["seed"]: one for one in map(json.loads, lines)}
    tasks = ((oracle, binary, seed, runs) for seed in seeds if seed not in kept and time.monotonic() < end)
    made = 0
    for seed, one in spread(pack_one, jobs, tasks):
        made += 1
        if one:
            kept[seed] = one
    write(path, kept)
    print(f"{made} programs tried, {len(kept)} in {name}")


def write(path, kept):
    os.makedirs(FOLDER, exist_ok=True)
    with lzma.open(path, "wt", preset=9) as out:
        for _, one in sorted(kept.items()):
            out.write(json.dumps(one) + "\n")


def spread(work, jobs, tasks):
    """What the work makes of each task, as it comes; a task is taken when a process is free for it."""
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        running = set()
        for task in tasks:
            running.add(pool.submit(work, task))
            if len(running) >= 2 * jobs:
                done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                yield from (one.result() for one in done)
        for one in concurrent.futures.as_completed(running):
            yield one.result()


def all_kept(only=None):
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        name = os.path.basename(path)[:-5]
        if not only or only in name:
            yield name, json.load(open(path))
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json.xz"))):
        name = os.path.basename(path)[:-8]
        with lzma.open(path, "rt") as lines:
            for line in lines:
                one = json.loads(line)
                label = f"{name}/{one['case'].get('seed')}"
                if not only or only in label:
                    yield label, one


# Seconds that a case may have waited for a processor and still be judged: the shortest timeouts of cases are a second, and what waits here
# is one of three processes.
STARVED = 0.25


def starved():
    """Seconds for which this process was ready to run and had no processor."""
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9


def replay_one(task):
    """The name of the case, what differs, and whether the machine gave it the time that its timeouts count on."""
    binary, name, one = task
    check = any(channel == "check" for _, channel, _ in one["answer"])
    before = starved()
    try:
        found = differences.compare(one["answer"], World(binary, one["case"], f"/tmp/h-diff-{os.getpid()}", check).run(), one["case"])
    except Exception as error:
        found = [f"{type(error).__name__}: {error}"]
    return name, found, starved() - before < STARVED


def replay(binary, jobs, only=None, prune=False):
    """A machine under load may be slower than a timeout of a case: what differs is run again alone, and counts when it differs
    each time. If it waited for a processor each time, too, nothing is known of it. With `prune` what has differed at all leaves its pack."""
    start, passed, suspects = time.time(), 0, {}
    for name, found, _ in spread(replay_one, jobs, ((binary, name, one) for name, one in all_kept(only))):
        if found:
            suspects[name] = found
        else:
            passed += 1
    failed, skipped, again = 0, 0, {name: one for name, one in all_kept(only) if name in suspects}
    for name, one in again.items():
        timely = False
        for _ in range(6):
            _, found, in_time = replay_one((binary, name, one))
            timely |= in_time
            if not found:
                break
        if not found:
            passed += 1
            continue
        if not timely:
            skipped += 1
            print(f"skip program {name}: the machine is too busy for its timeouts", flush=True)
            continue
        failed += 1
        print(f"FAIL program {name}")
        print("\n".join("     " + line[:300] for line in found[:12]), flush=True)
    if prune and suspects:
        for path in glob.glob(os.path.join(FOLDER, "*.json.xz")):
            label = os.path.basename(path)[:-8]
            with lzma.open(path, "rt") as lines:
                kept = {one["case"]["seed"]: one for one in map(json.loads, lines)}
            write(path, {seed: one for seed, one in kept.items() if f"{label}/{seed}" not in suspects})
    print(f"({time.time() - start:.0f} s, {len(suspects)} run again)")
    print(f"outside: {passed} passed, {failed} failed, {skipped} skipped")
    return failed == 0
