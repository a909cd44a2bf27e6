"""Differences between the programs that are meant. A rule looks at what was said on one channel (named.py), at the program (settings.py),
at where two programs part (ways.py) or at what is a matter of time (times.py); what no rule explains is a finding.
"""
import difflib, re

from named import by_column, keyed, unnamed
from settings import of_case
from ways import parted
from times import belated, below_zero, carried_otherwise, counted, cut_short, hasty, held, hurried_body, idle_ends, leaving, numbered, overlooked, overtaken, paused, refused_by_half, rested, retried_by_half, streams_anew, timely, turned, turned_away, unfinished, unheard, unseen, unspoken, without_maxima, without_numbers


ANSWERED_OR_NOT = re.compile(r"\S+/\S+ (hrsp_4xx|hrsp_other|cli_abrt|connect|reuse)=")


def unstable(one, two):
    """Places in which one program differs from itself."""
    first, second = keyed(one), keyed(two)
    return {key for key in set(first) | set(second) if first.get(key) != second.get(key)}


def compare(theirs, ours, case, shaky=(), deep=False):
    """What differs, up to the end of the first step that does; `deep` goes on behind it."""
    end, late = parted(theirs, case), hasty(case)
    first, second = (of_case(side, case) for side in turned_away(case, *unseen(case, *held(case, *unspoken(keyed(theirs), keyed(ours))))))
    end = min(end, *(rule(case, keyed(theirs), keyed(ours)) for rule in (carried_otherwise, refused_by_half, retried_by_half)))
    first, second = cut_short(*overlooked(case, *below_zero(*unnamed(first, second))), case)
    ends = idle_ends(first, case) | idle_ends(second, case)
    if leaving(first) != leaving(second):
        first, second = (without_maxima(side, case) for side in (first, second))
    first, second = belated(*(timely(counted(side, ends, case), case) for side in (first, second)), case)
    first, second = ({key: lines for key, lines in side.items() if key[0] < end and key[0] not in late} for side in (first, second))
    turn = min(rule(first, second, case) for rule in (turned, hurried_body, overtaken))
    first, second = ({key: lines for key, lines in side.items() if key[0] < turn} for side in (first, second))
    if late:
        first, second = numbered(without_numbers(first, case)), numbered(without_numbers(second, case))
    first, second = rested(first, second)
    gone = set(paused(first, second, case))
    hurried = {*unheard(first, second, case), *unfinished(first, second, case), *gone}
    first, second = ({key: lines for key, lines in side.items() if key[0] not in hurried} for side in (first, second))
    if gone:
        first, second = (streams_anew(side, gone) for side in (first, second))
        # How often that was answered, and a server reached for it.
        first, second = ({key: [l for l in lines if not ANSWERED_OR_NOT.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in side.items()} for side in (first, second))
    if hurried:
        # Questions that were on their way for such a stream.
        first, second = ({key: [l for l in lines if not re.match(r"spoeb/\S+ cli_abrt=", l)] for key, lines in side.items()} for side in (first, second))
    for key in [key for key in {*first, *second} if key[1] in case.get("ignore", ())]:
        first.pop(key, None), second.pop(key, None)
    out, refused = [], first.get((-1, "check")) != second.get((-1, "check"))
    for key in sorted(set(first) | set(second)):
        if key in shaky or first.get(key) == second.get(key):
            continue
        if key[0] >= 0 and refused and not deep:
            break
        # What differs later mostly follows from the first difference.
        if not deep and key[0] >= 0 and out and int(out[-1].split(" ")[0]) not in (-1, key[0]):
            break
        a, b = first.get(key, []), second.get(key, [])
        for line in difflib.unified_diff(a, b, lineterm="", n=0):
            if line[:3] in ("---", "+++") or line[:2] == "@@":
                continue
            out.append(f"{key[0]} {key[1]}: {line}")
    return out


def cause(line):
    """A difference without its numbers and names: what differences of one cause have in common."""
    line = re.sub(r"^-?\d+ ", "", line)
    line = re.sub(r"(client) c\d+", r"\1", line)
    line = re.sub(r"(origin) [ok]\d+(#\d+)?", r"\1", line)
    line = re.sub(r"\b([fbsdo])\d+\b", r"\1N", line)
    line = re.sub(r"\d+", "0", line)
    return line[:140]
