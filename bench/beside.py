"""What the benches beside this file share."""
import os, statistics, sys

# Ports of the tests' scripts, their agent's codec.
for folder in ("tests", "tests/agents"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))


def cpu(pid):
    """Nanoseconds of processor time of all threads of a process."""
    return sum(int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) for task in os.listdir(f"/proc/{pid}/task"))


def ratio(ratios):
    """The median of the pairs, with the least and the greatest."""
    return f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
