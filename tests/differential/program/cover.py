"""Which keywords and commands programs hold, by the lists of keywords that HAProxy registers.

Counted are exact entries of a list: a keyword of a proxy that begins a line of a section, a word of a bind or server line
with its argument skipped, a runtime command by its first words. What the generator writes is never a default: it writes a
keyword to change something.
"""
import functools, os, re

LISTS = os.environ.get("H_KEYWORDS", "/work/shared/keywords")


@functools.lru_cache
def known(name):
    with open(os.path.join(LISTS, name + ".txt")) as lines:
        return {line.split("\t")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


@functools.lru_cache
def longest(name):
    return max(len(entry.split()) for entry in known(name))


def entry(name, words):
    """The longest entry of a list that these words begin with."""
    words = [word.split("(")[0] for word in words[:3]]
    for count in range(min(longest(name), len(words)), 0, -1):
        found = " ".join(words[:count])
        if found in known(name):
            return found
    return None


def words_of(case):
    """Entries as LIST/ENTRY."""
    out, section = set(), ""
    for line in case["config"]:
        words = line.split()
        if not line.startswith(" "):
            section = words[0]
            continue
        if section == "global":
            found = entry("global", words)
            out |= {f"global/{found}"} if found else set()
            if words[:2] == ["stats", "socket"]:
                out |= {f"bind/{word}" for word in words[3:] if word in known("bind")}
            continue
        words = words[1:] if words[0] == "no" else words
        found = entry("proxy", words)
        if found:
            out.add(f"proxy/{found}")
        if words[0] in ("http-request", "http-response", "http-after-response") and len(words) > 1:
            out.add(f"action/{words[0]} {words[1].split('(')[0]}")
        kind = {"bind": "bind", "server": "server", "default-server": "server", "server-template": "server"}.get(words[0])
        if kind:
            names = [word.split("(")[0] for word in words[1 if words[0] == "default-server" else 2:]]
            out |= {f"{kind}/{name}" for name in names if name in known(kind)}
    for step in case["steps"]:
        for op in step:
            if op[0] == "cli":
                for part in re.split(r"; *", op[1].split("\n")[0]):
                    found = entry("cli-commands", part.split())
                    out |= {f"command/{found}"} if found else set()
    for command in case.get("final", []):
        found = entry("cli-commands", command.split())
        out |= {f"command/{found}"} if found else set()
    return out


def all_words():
    for name in ("proxy", "bind", "server", "global", "cli-commands"):
        for one in known(name):
            yield ("command" if name == "cli-commands" else name) + "/" + one
