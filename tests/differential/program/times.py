"""What is a matter of time: what may come first or second, be seen or not, in either program."""
import collections, re

from named import by_column, dropped
from settings import ENDS, GAUGES, REFUSES, early, given_up, in_pieces, over


def without_interim(lines):
    """A client of HTTP/1.0 is sent no interim responses (RFC 9110 section 15.2), by HAProxy it is."""
    out, skip = [], False
    for line in lines:
        skip |= bool(re.match(r"HTTP/1\.1 1\d\d ", line))
        if not skip:
            out.append(line)
        skip &= line != "."
    return out


def timely(side, case):
    """Without the ends of connections whose moment says nothing: idle clients that no operation of the step is about, clients that a
    rule dropped in silence, origins that close themselves or answer before the request's end. How the connection of a client ends that uploads follows from what was read of it."""
    steps, config = case["steps"], case["config"]
    dropped = any("silent-drop" in line for line in config)
    # Of TCP the harness waits for the other side.
    # When a connection to a server of HTTP/2 or FastCGI that is at rest goes, HAProxy decides by what it expects to need.
    resting = {name for name, setting in case.get("origins", {}).items() if setting.get("kind") in ("h2", "fcgi") or "h2" in (setting.get("tls") or {}).get("alpn", [])}
    closers = [name for name, setting in case.get("origins", {}).items() if setting.get("kind") != "tcp"]
    closes = lambda op: op[0] == "origin" and any(["close"] in script or ["head"] in script for script in op[1])
    closing = {(at + 1, name) for at, ops in enumerate(steps) if any(map(closes, ops)) for name in closers}
    out, going, closed = {}, set(), set()
    for (step, channel), lines in sorted(side.items()):
        name = channel.rpartition(" ")[2]
        if channel.startswith("client "):
            about = [op for at in (step - 2, step - 1) if 0 <= at < len(steps) for op in steps[at]]
            if any(re.match(r"GOAWAY last=\d+ code=0$", line) for line in lines):
                going.add(name)
            if not any(name in op for op in about):
                lines = [line for line in lines if not ENDS.match(line)]
            elif dropped:
                lines = [line for line in lines if not ENDS.match(line)]
                # An early hint of a request that is then dropped is at the client already here, never there.
                lines = lines if without_interim(lines) else []
            if " HTTP/1.0\r\n" in "".join(op[2] for op in about if op[:2] == ["send", name]):
                lines = without_interim(lines)
            if any(op[:2] == ["send", name] and re.search(r"(?:^|\n)CONNECT ", op[2]) for op in about):
                # A 2xx to CONNECT has no length (RFC 9110 section 8.6); HAProxy keeps that of a server of HTTP/2.
                lines = [line for line in lines if not re.match(r"content-length: (\d+)$", line)]
            if name in going or name in taken_back(steps[:max(step, 0)]):
                # Who is told to go is waited for, for a while; who took a request back HAProxy keeps while it keeps the stream.
                lines = [line for line in lines if line not in ("(closed)", "(ended)")]
            # Nor was what it had sent, where that is all that becomes of it.
            begun = lambda op: op[:2] == ["open", name] and len(op) > 3 and (op[3].get("proxy") or op[3].get("tls") is not None or op[3].get("h2") is not None)
            said = lambda op: op[:2] == ["send", name] and op[2] or begun(op)
            unread = lines in (["(closed)"], ["(reset)"]) and any(map(said, about))
            # Nor was the rest of a head that is longer than a buffer.
            long = lambda op: op[:2] == ["fill", name] or op[:2] == ["send", name] and len(op[2]) > 15360
            if unread or any(map(long, about)):
                lines = ["(ended)" if line in ("(closed)", "(reset)") else line for line in lines]
        elif channel.startswith("origin ") and name.partition("#")[0] in resting:
            # Whether an origin that closes sees the other side's end before is a matter of time.
            ended = ["(ended)"] if (step, name.partition("#")[0]) in closing else []
            lines = [line for line in untold(lines + ended) if line != "(ended)"]
        elif channel.startswith("origin ") and (dropped or (step, name.partition("#")[0]) in closing or taken_back(steps[:max(step, 0)])):
            lines = [line for line in lines if line != "(ended)"]
            closed.add(channel)
        elif lines == ["(ended)"] and channel in closed:
            # The end of what it sent so was seen a step later only.
            lines = []
        elif channel == "wait" and dropped:
            lines = []
        elif resting and "show info" in channel:
            # Nor how many are open, then.
            lines = [line for line in lines if not line.startswith("CurrSslConns: ")]
        else:
            closed.discard(channel)
        if channel == "log" and step >= 0:
            # A check comes when its time has come, whatever step that is.
            out.setdefault((len(steps) + 2, "log of checks"), []).extend(line for line in lines if CHECK_LINE.search(line))
            lines = [line for line in lines if not CHECK_LINE.search(line)]
        if lines:
            out[step, channel] = lines
    return {key: lines for key, lines in out.items() if lines}


# What `option log-health-checks` says.
CHECK_LINE = re.compile(r": Health check for server ")


def taken_back(steps):
    """The clients of HTTP/2 that took a request back: HAProxy keeps such a stream for a while, with its client and its server."""
    return {op[1] for ops in steps for op in ops if op[0] == "stream" and op[-1] == "rst8"}


def untold(lines):
    """A connection of HTTP/2 to a server that ends takes its streams along, whether or not they are told first."""
    told = re.compile(r"stream \d+ (RST of a request that ends early|over)$")
    return [line for line in lines if not told.match(line)] if "(ended)" in lines else lines


def idle_ends(side, case):
    """The steps in which connections end that nobody does anything with."""
    found, going = set(), {}
    for (step, channel), lines in sorted(side.items()):
        name = channel.rpartition(" ")[2]
        about = [op for at in (step - 2, step - 1) if 0 <= at < len(case["steps"]) for op in case["steps"][at]]
        if not channel.startswith("client "):
            continue
        if any(map(ENDS.match, lines)) and not any(name in op for op in about):
            found |= {step - 1, step, step + 1}
        # HAProxy waits for a client that it has told to go as long as it did before.
        if any(re.match(r"GOAWAY last=\d+ code=0$", line) for line in lines):
            going.setdefault(name, step)
        if "(closed)" in lines and name in going:
            found |= set(range(going.pop(name), step + 2))
    return found.union(*(range(step, len(case["steps"]) + 1) for step in going.values()))


def leaving(side):
    """When each client of HTTP/2 that was told to go was gone."""
    told, gone = set(), {}
    for (step, channel), lines in sorted(side.items()):
        if channel.startswith("client "):
            told |= {channel} if any(re.match(r"GOAWAY last=\d+ code=0$", line) for line in lines) else set()
            if channel in told and "(closed)" in lines:
                gone.setdefault(channel, step)
    return {channel: gone.get(channel) for channel in told}


# How many connections a frontend has, or had at once.
MAXIMA = re.compile(r"f\d+/(FRONTEND|sock-\d+|n\d+) (smax|scur|h2_open_connections)=|CurrConns: ")


def without_maxima(side, case):
    """Nor is it told when connections of such clients' own to servers end."""
    own = any(line.strip() == "http-reuse never" for line in case["config"])
    kept = lambda key, line: not (MAXIMA.match(line) if "show" in key[1] else own and key[1].startswith("origin ") and line == "(ended)")
    left = {key: [line for line in lines if kept(key, line)] for key, lines in side.items()}
    return {key: lines for key, lines in left.items() if lines or not side[key]}


def counted(side, steps, case):
    """Log lines without the numbers of connections where these follow from a matter of time: around the end of an idle connection, and
    behind a request that its client took back, whose stream HAProxy may keep."""
    back = [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[-1] == "rst8" for op in ops)]
    loose = lambda step: step in steps or step >= min(back, default=1 << 30) or step == 1000 and bool(steps or back)
    # A format may show one of them alone.
    alone = any(re.match(r"\s+(error-)?log-format .*%(\{[^}]*\})?(ac|fc|bc|sc)\b", line) for line in case["config"])
    gauge = lambda line: re.sub(r"(?<= )\d\d?(?= |$)", "N", GAUGES.sub("GAUGES", line)) if alone else GAUGES.sub("GAUGES", line)
    return {key: [gauge(line) for line in lines] if (key[1] == "log" or "show events" in key[1]) and loose(key[0]) else lines for key, lines in side.items()}


def hasty(case):
    """The steps in which a TLS server may answer after its client has ended its half, which HAProxy does not wait for, a client takes
    its request back with the last byte of it, or a server is told only after its client's handshake that it is to close at once."""
    tls = any(o.get("kind") == "tcp" and o.get("tls") for o in case.get("origins", {}).values())
    late = lambda script: ["end"] in script and any(op[0] in ("send", "fill") for op in script[script.index(["end"]):])
    linger = any(line.split() == ["option", "nolinger"] for line in case["config"])
    odd = lambda op: (tls or linger) and op[0] == "origin" and any(map(late, op[1])) or op[0] == "stream" and op[-1] == "rst8"
    secure = lambda ops: any(op[0] == "open" and op[-1].get("tls") is not None for op in ops if isinstance(op[-1], dict))
    early = lambda ops: any(op[0] == "origin" and any(script[:2] == [["accept"], ["close"]] for script in op[1]) for op in ops)
    socks = any(" socks4 " in line for line in case["config"])
    return {at + 1 for at, ops in enumerate(case["steps"]) if any(map(odd, ops)) or (socks or secure(ops)) and early(ops)}


# The server in a line, and what is a matter of which one it was.
SERVED = re.compile(r"( b\d+/)\S+ .*")


def turned(first, second, case):
    """The step in which another server has its turn, behind a change of weight at run time or a request that its client took back (which
    HAProxy may have given a server by then): what follows goes other ways."""
    weighs = lambda op: op[0] == "cli" and re.search(r"set (weight|server \S+ weight) ", op[1])
    serves_in_turn = any(line.split()[:2] == ["balance", "roundrobin"] for line in case["config"])
    back = lambda op: op[0] == "stream" and op[-1] == "rst8"
    changed = min((at + 1 for at, ops in enumerate(case["steps"]) if any(serves_in_turn and weighs(op) or back(op) for op in ops)), default=1 << 30)
    numbers = lambda side, key: [re.sub(r"stream \d+ ", "stream N ", line) for line in side[key]]
    for key in sorted({*first} & {*second}):
        # Or the connection to a server of HTTP/2 has carried it, or not.
        if key[1].startswith("origin ") and key[0] > changed and first[key] != second[key] and numbers(first, key) == numbers(second, key):
            return key[0]
        lines = [[SERVED.sub(r"\1SERVER", line) for line in side[key]] for side in (first, second)]
        if key[1] == "log" and key[0] > changed and first[key] != second[key] and lines[0] == lines[1]:
            return key[0]
    return 1 << 30


# What a rule that waits for nothing sees of a body.
BODY_SO_FAR = re.compile(r"\breq\.body(_len)?\b")


def hurried_body(first, second, case):
    """The step in which a rule counts what has come of the body of a request of HTTP/2, whose head and data are two frames, or of a long one,
    which is sent behind its head: what it finds, and what follows from that, is a matter of which were read together."""
    lines = [line for line in case["config"] if not re.match(r"\s+http-response ", line)]
    if not any(map(BODY_SO_FAR.search, lines)) or any(re.match(r"\s+(option http-buffer-request|http-request wait-for-body)\b", line) for line in lines):
        return 1 << 30
    uploads = [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[4] or op[0] == "fill" for op in ops)]
    differs = lambda step: any(first.get(key) != second.get(key) for key in {*first, *second} if key[0] == step)
    return min(filter(differs, uploads), default=1 << 30)


def overtaken(first, second, case):
    """The step in which a client leaves while its request waits in a `pause`, and one program alone had brought it to the server by then:
    what the origin was to answer is left for the next request in the other."""
    if not any(re.match(r"\s+http-request pause ", line) for line in case["config"]):
        return 1 << 30
    leaves = lambda ops: any(op[0] in ("rst", "close", "fin") for op in ops) and any(op[0] == "origin" for op in ops)
    reached = lambda side, step: {channel for at, channel in side if at == step and channel.startswith("origin ")}
    told = lambda side, step: [re.sub(r" \S+/\S+/\S+/\S+/\S+ .*", "", line) for line in side.get((step, "log"), [])]
    parts = lambda step: reached(first, step) != reached(second, step) or told(first, step) != told(second, step)
    return min((at + 1 for at, ops in enumerate(case["steps"]) if leaves(ops) and parts(at + 1)), default=1 << 30)


# What rules on a response wait for.
WAITS = re.compile(r"\s+(http-response (pause|lua\.later|send-spoe-group)|filter spoe)\b")


def unfinished(first, second, case):
    """The steps in which a server broke its response off while such a rule waited: HAProxy gives the client nothing of it then."""
    if not any(map(WAITS.match, case["config"])):
        return
    said = lambda text: re.search(r"(?s)Content-Length: (\d+).*?\r\n\r\n(.*)", text)
    short = lambda op: op[0] == "fcgi" and (op[3] == "close" or any(int(found[1]) > len(found[2]) for found in [said(op[1])] if found))
    breaks = lambda script: any(op[0] in ("close", "rst") or short(op) for op in script)
    over = lambda line: re.match(r"\(\w+\)$|stream \d+ (RST|ended|END)", line)
    for (step, channel), lines in second.items():
        at_once = channel.startswith("client ") and 0 < step <= len(case["steps"])
        if at_once and any(op[0] == "origin" and any(map(breaks, op[1])) for op in case["steps"][step - 1]):
            theirs = [line for line in first.get((step, channel), []) if not over(line)]
            if theirs == lines[:len(theirs)] and any(not over(line) for line in lines[len(theirs):]):
                yield step


def cut_short(first, second, case):
    """What `show info` tells has to fit in a buffer of HAProxy's: where buffers are small, both without the figures behind its last."""
    small = any(re.match(r"\s+tune\.bufsize (\d+)$", line) and int(line.split()[1]) < 16384 for line in case["config"])
    for key in [key for key in {*first} & {*second} if small and "show info" in key[1]]:
        # Of the last of them HAProxy may show the figures and no names.
        first = {**first, key: [line for line in first[key] if ":" in line or not line]}
        names = {line.split(":")[0] for line in first[key]}
        second = {**second, key: [line for line in second[key] if line.split(":")[0] in names]}
        # What is left of a line that did not fit.
        first = {**first, key: [line for line in first[key] if not line or ":" in line]}
    return first, second


def belated(first, second, case):
    """An origin whose connection is closed with the last byte of a response sees that in the same step or in the one that follows: both
    programs with the end where the first of them has it; of the last step, behind which nothing is seen, without it."""
    last, sides = len(case["steps"]), (dict(first), dict(second))
    for one, other in (sides, sides[::-1]):
        for (step, channel), lines in sorted(one.items()):
            if not channel.startswith("origin ") or len(lines) < 2 or lines[-1] != "(ended)" or other.get((step, channel)) != lines[:-1]:
                continue
            later = min((at for at, name in other if name == channel and at > step), default=None)
            if step == last:
                one[step, channel] = lines[:-1]
            elif later is not None and other[later, channel] == ["(ended)"]:
                other[step, channel] = lines
                del other[later, channel]
    return sides


def paused(first, second, case):
    """The steps in which a client leaves while a `pause` lasts and the two programs part: HAProxy gives up as it connects, or sends the request
    and answers with 400 what then becomes of it, by chance."""
    if any(re.match(r"\s+http-request pause ", line) for line in case["config"]):
        for step, ops in enumerate(case["steps"], 1):
            words = [op[0] for op in ops]
            leaves = "rest" in words and {"fin", "rst", "close"} & set(words[words.index("rest"):])
            if leaves and any(first.get(key) != second.get(key) for key in {*first, *second} if key[0] == step):
                yield step


def streams_anew(side, steps):
    """Streams of servers of HTTP/2 numbered as they come, without those of `steps`: behind a request that one program alone sent, all have other numbers."""
    anew, out = {}, {}
    for (step, channel), lines in sorted(side.items()):
        if channel.startswith("origin ") and step < 1000:
            known = anew.setdefault(channel, {})
            lines = [re.sub(r"^(stream )(\d+)(?= )", lambda m: m[1] + (str(known.setdefault(m[2], 2 * len(known) + 1)) if step not in steps else m[2]), line) for line in lines]
        out[step, channel] = lines
    return out


REST = re.compile(r"bfcgi/\S+ (connect|reuse|used_conn_cur|scur|smax|h1_\w+)=")


def rested(first, second):
    """Where HAProxy has closed a connection of FastCGI at rest that is used again here: applications without the numbers of
    connections, and without the figures about those."""
    of = lambda side: {(step, channel) for step, channel in side if channel.startswith("origin php#")}
    if of(first) == of(second):
        return first, second
    out = []
    for side in (first, second):
        clean = {}
        for (step, channel), lines in sorted(side.items()):
            lines = [l for l in lines if not REST.match(l)] if "show stat" in channel else lines
            clean.setdefault((step, re.sub(r"^(origin php)#\d+$", r"\1", channel)), []).extend(lines)
        out.append(clean)
    return tuple(out)


# Rules of TCP that end a connection once its server is reached.
UNHEARD = re.compile(r"\s+tcp-response content (reject|close|silent-drop)\b")


def unheard(first, second, case):
    """The steps in which such a rule came before the first bytes of a client in one program, and behind them in the other: then the
    server has them or not, and `option dontlognull` leaves the line out or not."""
    if any(map(UNHEARD.match, case["config"])):
        for step, channel in {*first} & {*second}:
            lines = [side[step, channel] for side in (first, second)]
            heard = sorted(lines, key=len)
            if channel.startswith("origin ") and heard[0] == ["(ended)"] == heard[1][1:]:
                yield step


def without_numbers(side, case):
    """Behind a request that its client took back, which HAProxy may have sent: origins without the numbers and ends of their
    connections, of which it may have closed one for that, or made one, and without those of streams on them."""
    first = min((at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[-1] == "rst8" for op in ops)), default=1 << 30)
    out = {}
    for (step, channel), lines in sorted(side.items()):
        if step >= first and channel.startswith("origin "):
            channel, lines = channel.partition("#")[0], [re.sub(r"^stream \d+ ", "stream ", line) for line in lines if line != "(ended)"]
        if lines:
            out.setdefault((step, channel), []).extend(lines)
    return out


def numbered(side):
    """Connections of origins by when they were first seen: where steps are left out, what they opened has no number."""
    names, counts = {}, {}
    for step, channel in sorted(side):
        origin, hash, number = channel.rpartition("#")
        if hash and channel not in names:
            counts[origin] = counts.get(origin, 0) + 1
            names[channel] = f"{origin}#{counts[origin]}"
    return {(step, names.get(channel, channel)): lines for (step, channel), lines in side.items()}


# Requests in service on a server that HAProxy counted down too often: below zero, and written as a number of 32 bits.
BELOW = re.compile(r"(\S+/\S+) \d+/\d+ \S+ \S+ - \d+ 429496\d{4} ")


def below_zero(theirs, ours):
    """Without the requests in service and the sessions so far of servers whose requests HAProxy has counted down below zero."""
    names = {found[1] for (_, channel), lines in theirs.items() if "show servers conn" in channel for found in map(BELOW.match, lines) if found}
    if not names:
        return theirs, ours
    row = "|".join(map(re.escape, sorted(names)))
    used = re.compile(rf"((?:{row}) \d+/\d+ \S+ \S+ - \d+) \d+ ")
    sessions = re.compile(rf"(?:{row}) (stot|scur)=")
    clean = lambda lines: [used.sub(r"\1 SERVED ", line) for line in lines if not sessions.match(line)]
    return tuple({key: clean(lines) if "show s" in key[1] else lines for key, lines in side.items()} for side in (theirs, ours))


# A check that is at work has neither words nor a status yet, in either program.
AT_IT = re.compile(r"(\S+/\S+) (check|agent)_status=\* ")


def unspoken(*sides):
    """Without the last words of checks that are at work on either side."""
    stats = {key for side in sides for key in side if "show stat" in key[1]}
    for key in stats:
        busy = {AT_IT.match(line).groups() for side in sides for line in side.get(key, []) if AT_IT.match(line)}
        words = {f"{server} {column}=" for server, kind in busy for column in (("last_chk", "check_code") if kind == "check" else ("last_agt", "agent_code"))}
        for side in sides:
            if key in side:
                side[key] = [line for line in side[key] if not line.startswith(tuple(words))]
    return sides


# A client that left while its server was awaited, behind a server that was tried in vain.
LEFT_RETRIED = re.compile(r" C[HD]-- \d+/\d+/\d+/\d+/\+?[1-9]\d* ")
LEFT_IN_A_PAUSE = re.compile(r" C[CHR]-- \d+/\d+/\d+/\d+/")


# A head that says a body, none of which comes along.
BODY_TO_COME = re.compile(r"\r\nContent-Length: [1-9]\d*\r\n(?:[^\r]+\r\n)*\r\n$")


def left_untold(case, record):
    """Steps in which a client leaves before any of its body came, where a server may be tried in vain and the line tells neither."""
    if not any(origin.get("dead") for origin in case.get("origins", {}).values()):
        return set()
    short = {at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "send" and BODY_TO_COME.search(op[2]) for op in ops) and any(op[0] in ("fin", "close", "rst") for op in ops)}
    return {key[0] for key, lines in record.items() if key[1] == "log" and key[0] in short and any(": Connect from " in line for line in lines)}


STREAMS_ASKED = re.compile(r"\S+[ .]h2_backend_total_streams[=.]")


def held(case, *sides):
    """Without heads of requests that HAProxy keeps back behind an attempt in vain (for 0.2 s, as MSG_MORE does) while more of them is to come,
    where the client leaves meanwhile; and of those whose client left in a `pause`, which HAProxy sees or overlooks by chance."""
    line = LEFT_IN_A_PAUSE if any(re.match(r"\s+http-request pause ", line) for line in case["config"]) else LEFT_RETRIED
    left = {key[0] for side in sides for key, lines in side.items() if key[1] == "log" and any(map(line.search, lines))}
    left |= {step for side in sides for step in left_untold(case, side)}
    for side in sides:
        for key in [key for key in side if key[0] in left and key[1].startswith("origin ")]:
            side[key] = [line for line in side[key] if line.startswith(("| ", "("))]
            if not side[key]:
                del side[key]
        for key in [key for key in side if left and line is LEFT_IN_A_PAUSE and "show stat" in key[1]]:
            # Nor are the streams of servers of HTTP/2 counted that they were, or were not.
            side[key] = [told for told in side[key] if not STREAMS_ASKED.match(told)]
    return sides


# A request that was kept in a tarpit.
TARPITTED = re.compile(r" PT\S\S (\d+/|GAUGES)")
# What moves with it.
KEPT_ON = re.compile(r"\S+/(FRONTEND|BACKEND|sock-\d+|n\d+) (smax|scur|cli_abrt)=")

# What counts when a request is over.
ENDED = re.compile(r"\S+/(FRONTEND|BACKEND) (hrsp_\dxx|req_tot|h1_open_\w+)=")


def overlooked(case, *sides):
    """Without lines of requests in a tarpit where one program wrote them in other steps than the other: HAProxy overlooks a client that leaves it
    now and then, and writes the line when its time is over; until then it counts among the connections."""
    if not any(re.match(r"\s+http-request tarpit\b", line) for line in case["config"]):
        return sides
    plain = lambda line: GAUGES.sub("GAUGES", line)
    kept = [{key: sorted(map(plain, filter(TARPITTED.search, lines))) for key, lines in side.items() if key[1] == "log"} for side in sides]
    moved = [key[0] for key in {*kept[0], *kept[1]} if kept[0].get(key, []) != kept[1].get(key, [])]
    told = [collections.Counter(sum(side.values(), [])) for side in kept]
    # The time of one that leaves in the last step may not be over when the program is.
    last = collections.Counter(sum((lines for key, lines in kept[1].items() if key[0] >= len(case["steps"])), []))
    if not moved or told[0] - told[1] or told[1] - told[0] - last:
        return sides
    open_still = told[1] - told[0]
    late = lambda line: TARPITTED.search(line) or KEPT_ON.match(line) or open_still and ENDED.match(by_column(line))
    rest = lambda key, lines: [plain(line) for line in lines if not late(line)] if (key[1] == "log" or "show stat" in key[1]) and key[0] >= min(moved) else lines
    return tuple({key: told for key, lines in side.items() for told in [rest(key, lines)] if told} for side in sides)


# The line of a rule about an answer to a client that has left, and the line of such a stream.
UNSEEN = re.compile(r" 400 (?:\+?\d+|BYTES) \S+ \S+ CC-- ")
UNANSWERED = re.compile(r" -1 (?:\+?\d+|BYTES) \S+ \S+ CC-- (?:\d+/\d+/\d+/(?:\d+|N)|GAUGES)/\+?[1-9]")


def unseen(case, *sides):
    """Without lines of `http-after-response do-log` about the answer that HAProxy makes for a client that has left in the middle of its request,
    while a server is tried again: the stream's own line tells of no answer, and is kept back where such rules set its level."""
    ruled = lambda action: any(re.match(rf"\s+http-after-response {action}\b", line) for line in case["config"])
    told, levels = ruled("do-log"), ruled("set-log-level")
    if not (told or levels):
        return sides
    other = lambda line: not (told and UNSEEN.search(line) or levels and UNANSWERED.search(line))
    clean = lambda key, lines: list(filter(other, lines)) if key[1] == "log" and any(map(UNANSWERED.search, lines)) else lines
    return tuple({key: clean(key, lines) for key, lines in side.items()} for side in sides)


# A session of TCP that a rule ended before anything of the server's went to the client, and one that never had a stream.
TURNED_AWAY = re.compile(r" \S+/\S+ (?:-?\d+|T)/(?:-?\d+|T)/\+?(?:-?\d+|T) \+?0 (?:PD|PC|PR|--) ")
NO_STREAM = re.compile(r"\] \S+/\S+: Success$")
# One that a rule refused before it had a server.
REFUSED_AT_ONCE = re.compile(r" \S+/<NOSRV> -1/-1/\+?T \+?0 PR ")


def turned_away(case, *sides):
    """Without what is a race where a rule ends a session that has just begun: whether its server has been sent the client's first bytes by
    then (`tcp-response content reject` and `close`) and whether the client has had the end of its handshake, and whether the client that it
    drops has (`tcp-request session reject`)."""
    late = any(re.match(r"\s+tcp-response content (reject|close|silent-drop)\b", line) for line in case["config"])
    # Who has sent nothing yet that went on has no line with `dontlognull`.
    null = any(line.split() == ["option", "dontlognull"] for line in case["config"])
    # Rules on content that wait for nothing refuse it before its first bytes or behind them.
    at_once = null and any(re.match(r"\s+tcp-request content (reject|silent-drop)\b", line) for line in case["config"]) and not any(re.match(r"\s+tcp-request inspect-delay ", line) for line in case["config"])
    speaks = {at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] in ("send", "fill") for op in ops)}
    logs = [{key[0]: lines for key, lines in side.items() if key[1] == "log"} for side in sides]
    told = lambda log, step, line, none=False: any(map(line.search, log[step])) if step in log else none
    ended = {step for step in set().union(*logs) if late and all(told(log, step, TURNED_AWAY, null) for log in logs)}
    early = {step for step in set().union(*logs) if all(told(log, step, NO_STREAM) for log in logs)}
    if late:
        # In lines of other formats that can't be seen: who was given nothing was turned away, or never had an answer.
        answered = {key[0] for side in sides for key, lines in side.items() if key[1].startswith("client ") and any(not re.match(r"TLS |\((closed|reset|ended)\)$", line) for line in lines)}
        ended |= {step for step in set().union(*logs) - answered if not any(re.search(r"(PD|PC|PR|--|[CSscLI][A-Z]) \d+/\d+/", line) for log in logs for line in log.get(step, []))}
    for side in sides:
        for key in list(side):
            if at_once and key[0] in speaks and key[1] == "log":
                side[key] = [line for line in side[key] if not REFUSED_AT_ONCE.search(line)]
            if key[0] in ended and key[1].startswith("origin "):
                side[key] = [line for line in side[key] if not re.match(r"\| |\((closed|reset|ended)\)$", line) or line.startswith(("| PROXY ", "| \\r\\n\\r\\n\\x00"))]
            elif key[0] in ended and key[1].startswith("client ") and all(re.match(r"TLS |\((closed|reset|ended)\)$", line) for line in side[key]):
                # Nor whether such a client has read the end of its handshake when its connection is closed or reset.
                side[key] = ["(ended)"]
            elif key[0] in ended and key[1] == "log" and null:
                side[key] = [line for line in side[key] if not TURNED_AWAY.search(line)]
            elif key[0] in early and key[1].startswith("client "):
                side[key] = [re.sub(r"^\((closed|reset)\)$", "(ended)", line) for line in side[key]]
    return tuple({key: lines for key, lines in side.items() if lines} for side in sides)


def refused_by_half(case, *sides):
    """The step behind one in which a response that came in pieces was refused, and one program alone had all of it and kept the connection:
    others follow on it, or on new ones."""
    if not any(map(REFUSES.match, case["config"])):
        return 1 << 30
    ends = lambda side, step: sorted(key[1] for key, lines in side.items() if key[0] == step and key[1].startswith("origin ") and "(ended)" in lines)
    return min((step + 1 for step in in_pieces(case) if ends(sides[0], step) != ends(sides[1], step)), default=1 << 30)


def carried_otherwise(case, *sides):
    """The step in which another connection to a server of HTTP/2 carries a request, behind a response that a rule refused: its stream was reset
    by one program alone, for the other had seen its end, and the order of connections at rest follows from that."""
    if not any(map(REFUSES.match, case["config"])):
        return 1 << 30
    told = lambda side: {key: lines for key, lines in side.items() if key[1].startswith("origin ")}
    plain = lambda side: {key: [given_up(line) for line in lines] for key, lines in told(side).items()}
    first, second = map(plain, sides)
    half = [key[0] for key in {*first} & {*second} if first[key] == second[key] and sides[0][key] != sides[1][key]]
    others = lambda side, step: sorted((key[1].partition("#")[0], [re.sub(r"^stream \d+", "stream N", l) for l in lines]) for key, lines in side.items() if key[0] == step)
    parts = lambda step: any(first.get(key) != second.get(key) for key in {*first, *second} if key[0] == step)
    steps = {key[0] for key in first if half and key[0] > min(half)}
    return min((step for step in steps if parts(step) and others(first, step) == others(second, step)), default=1 << 30)


def retried_by_half(case, *sides):
    """The step in which a response that came in pieces was tried again: one program alone had all of it, and sends the request once more on
    the same connection."""
    if not any(re.match(r"\s+retry-on .*(all-retryable-errors|\b[45]\d\d\b)", line) for line in case["config"]):
        return 1 << 30
    parts = [step for step in in_pieces(case) if len({tuple(sorted({key[1] for key in side if key[0] == step and key[1].startswith("origin ")})) for side in sides}) > 1]
    if any(re.match(r"\s+filter trace .*random-forwarding", line) for line in case["config"]):
        # An upload that HAProxy forwards in pieces of chance is not there any more to be sent again.
        seen = lambda side, step: [(key, told) for key, told in sorted(side.items()) if key[0] == step and key[1].startswith("origin ")]
        uploads = [at for at, ops in enumerate(case["steps"], 1) if any(op[0] == "send" and re.search(r"(?i)\r\n(content-length: [1-9]|transfer-encoding:)", op[2]) for op in ops)]
        parts += [step for step in uploads if seen(sides[0], step) != seen(sides[1], step)]
    return min(parts, default=1 << 30)
