"""From which step on the two programs go different ways, so that nothing behind it can be compared, and why."""
import re

from named import dropped
from settings import laid_up, mistaken


# A connection of HTTP/2 that HAProxy ends because more of a request came after the stream was reset: what follows on it has no match.
LATE = re.compile(r"GOAWAY last=\d+ code=5$")


def nowhere(config):
    """Whether a section has servers of a template behind a `default-server`: HAProxy 3.5-dev5 forgets their addresses."""
    default = False
    for line in config:
        default = line.startswith(" ") and (default or line.split()[:1] == ["default-server"])
        if default and line.split()[:1] == ["server-template"]:
            return True
    return False


# What HAProxy says when a server with `proto h2` refuses the connection, whatever status rules give it.
UNREACHED = re.compile(r"(HTTP/1\.\d|  :status:) 50[24]|body \d+: <html><body><h1>50[24] ")


def places_of_502(case):
    """What stands for a 502: the address of an `errorloc`, the status of an `errorfile`."""
    for line in case["config"]:
        place = re.match(r"\s+errorloc(?:302|303)? 502 (\S+)", line)
        if place:
            yield " *location: " + re.escape(place[1]) + "$"
        file = re.match(r"\s+errorfile 502 (\S+)", line)
        status = file and re.match(r"HTTP/\S+ (\d+)", case["files"].get(file[1], ""))
        if status:
            yield rf"(HTTP/1\.\d|  :status:) {status[1]}\b"


def unreachable(case):
    """Whether a server of HTTP/2 may refuse connections: nobody listens there, or a command gives it another address."""
    if any(re.match(r"\s+server .* socks4 127\.0\.0\.1:1 .*proto h2\b|\s+server .* proto h2 .*socks4 127\.0\.0\.1:1\b", line) for line in case["config"]):
        return True
    if any(o.get("dead") and o.get("kind") == "h2" for o in case.get("origins", {}).values()):
        return True
    h2 = {line.split()[1] for line in case["config"] if re.match(r"\s+server .* proto h2\b", line)}
    moved = (re.match(r"set server \S+/(\S+) addr ", op[1]) for ops in case["steps"] for op in ops if op[0] == "cli")
    return any(found and found[1] in h2 for found in moved)


def parted(record, case):
    """The step from which on the two programs go different ways: HAProxy ends a connection for frames that came too late, or takes a status
    of two digits for one, drops a file that servers use, sends a body of HTTP/2 without its head, does not try a server of HTTP/2 again that refuses the connection, or drops a client that waits; a server with `strict-maxconn` and no `maxconn`, or with checks, gets no connection there at all."""
    strict = [line for line in case["config"] if re.search(r" strict-maxconn\b", line)]
    if any(not re.search(r" maxconn \d", line) or re.search(r" (agent-)?check\b", line) for line in strict):
        return 0
    if nowhere(case["config"]):
        return 0
    if {"    noepoll", "    tune.fd.tables per-thread-group"} <= {*case["config"]}:
        # HAProxy has no other poller for such tables, and does not start.
        return 0
    if {"    noepoll", "    nopoll"} <= set(case["config"]) and any(channel == "start" and "does not answer" in lines for _, channel, lines in record):
        # What is left is select(), whose 1024 descriptors are too few for it.
        return 0
    if mistaken(case["config"]) and any("check" in line.split() for line in case["config"]):
        # A server may be down after its first check that is not down yet.
        return 0
    steps = [step for step, channel, lines in record if channel.startswith("client") and any(map(LATE.match, lines))]
    steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "origin" and "HTTP/1.1 99 " in repr(op) for op in ops)]
    used = [word for line in case["config"] for word in line.split() if re.match(r"\s+(default-)?server", line)]
    dropped = lambda op: op[0] == "cli" and re.search(r"del ssl (ca|crl)-file", op[1]) and op[1].split()[-1] in used
    steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(map(dropped, ops))]
    # HAProxy 3.5-dev5 refuses every address there.
    steps += [step for step, channel, lines in record if re.match(r"cli set server \S+ check-addr ", channel) and any(line.startswith("invalid addr ") for line in lines)]
    # HAProxy 3.5-dev5 refuses with the status that the response had.
    steps += [step for step, channel, lines in record if channel == "log" and any("Blocking cacheable cookie in response" in line for line in lines)]
    # OpenSSL refuses the parameters that HAProxy 3.5-dev5 has for a certificate that it makes itself.
    steps += [step for step, channel, lines in record if channel == "log" and any("dh key too small" in line for line in lines)]
    if any(" generate-certificates" in line for line in case["config"]):
        # The same where nobody logs that.
        secure = lambda op: op[0] == "open" and len(op) > 3 and op[3].get("tls") is not None
        opened = {f"client {op[1]}" for ops in case["steps"] for op in ops if secure(op)}
        known = {channel for _, channel, lines in record if any(line.startswith("TLS ") for line in lines)}
        steps += [step for step, channel, lines in record if channel in opened - known and lines == ["(closed)"]]
        # Or what came along with the last of such a handshake is lost to that error: the connection counts as broken off.
        broken = {step for step, channel, lines in record if channel == "log" and any(re.search(r"/<NOSRV> \S+ -1 0 - - CR-- ", line) for line in lines)}
        steps += [step for step, channel, lines in record if channel in opened and step in broken and lines == ["(closed)"]]
        # Beside a certificate of its own making HAProxy 3.5-dev5 has no `ca-file`: no client is believed.
        steps += [step for step, channel, lines in record if channel == "log" and any("SSL client CA chain cannot be verified" in line for line in lines)]
    # A path without a slash, which HAProxy takes for more of the host's name, and the path of a CONNECT, which it takes for that.
    steps += [step for step, channel, lines in record if channel.startswith("origin ") and any(re.match(r"  :authority: ([^?]*\?|/)", line) for line in lines)]
    if any("req.body_size" in line for line in case["config"]):
        # Without `content-length` the body of a request of HTTP/2 has the size 0 in HAProxy 3.5-dev5.
        sized = lambda op: any(name == "content-length" for name, _ in op[3])
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[4] and not sized(op) for op in ops)]
    if any("load-server-state-from-file" in line for line in case["config"]) and any(map(reweighed, case["files"].values())):
        # The turns of `roundrobin` after a change of weight.
        return 0
    if "    disabled" in case["config"] and any(re.search(r"\bnbsrv\b", line) for line in case["config"]):
        return 0
    if any(re.match(r"\s+http-(after-)?response set-status ", line) for line in case["config"]):
        # HAProxy loses the content of a CONNECT that a rule refuses when the server has agreed.
        tunnels = lambda op: op[0] == "send" and "CONNECT " in op[2] or op[0] == "stream" and [":method", "CONNECT"] in op[3]
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(map(tunnels, ops))]
    if any(line.split()[:1] == ["tune.bufsize"] and int(line.split()[1]) < 16384 for line in case["config"]):
        # A frame longer than a buffer, which every peer of HTTP/2 may send (RFC 9113, 6.5.2): HAProxy asks for shorter ones and ends the connection.
        steps += [step for step, channel, lines in record if channel.startswith("client") and any(re.match(r"GOAWAY last=\d+ code=6$", line) for line in lines)]
    if any(re.match(r"\s+log-steps .*\b(accept|any)\b", line) for line in case["config"]) and any(re.match(r"\s+log-format .*%(\{[^}]*\})?\[(status|res\.ver)\b", line) for line in case["config"]):
        # HAProxy 3.5-dev5 ends a TCP session whose first line asks for the status of a response.
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "open" for op in ops)]
    if any(re.match(r"\s+http-response pause ", line) for line in case["config"]):
        # A response that breaks off meanwhile: HAProxy leaves out all rules behind the pause, and the client gets what came, or nothing.
        steps += [step for step, channel, lines in record if channel == "log" and any(" SD-- " in line for line in lines)]
    if any("set-method" in line for line in case["config"]):
        # `method` of a client's own method that HAProxy has no number for is no method of any other name to it, whatever rules make of it.
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(map(own_method, ops))]
    steps += reweighed_at_run_time(case)
    steps += headless(record)
    steps += twice(record)
    # HAProxy ends the connection of a long upload that a page of statistics asks a password of; here its rest is read, and the next awaited.
    steps += [step for step, channel, lines in record if channel.startswith("client ") and 'www-authenticate: Basic realm="HAProxy Statistics"' in lines
              and lines[-1] in ("(closed)", "(reset)") and any(op[0] == "fill" for op in case["steps"][step - 1])]
    steps += pathless(record)
    steps += nameless(record, case)
    idle = laid_up(case["config"])
    if idle:
        ready = re.compile(rf"(enable server|set server) \S+/(?:{'|'.join(sorted(idle))})( state (ready|drain))?$")
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "cli" and ready.search(op[1]) for op in ops)]
    steps += hollow(record, case)
    steps += cut_twice(case)
    steps += merged(case)
    steps += lost(record, case)
    if any(channel == "end" and any(re.match(r"exit -(6|11) early", line) for line in lines) for _, channel, lines in record):
        # HAProxy 3.5-dev5 crashed in the last step that it has.
        steps.append(max((step for step, _, _ in record if 0 < step < 1000), default=1))
    if unreachable(case):
        unreached = re.compile("|".join([UNREACHED.pattern, *places_of_502(case)]))
        steps += [step for step, channel, lines in record if channel.startswith("client") and any(map(unreached.match, lines))]
        # In answer to HEAD, with the status of a rule, the line alone tells of it.
        steps += [step for step, channel, lines in record if channel == "log" and any(re.search(r" SH(\S\S)?( |$)", line) for line in lines)]
    steps += unended(record, case)
    steps += once(record, case)
    steps += unconnected(record, case)
    steps += slept(record, case)
    if any(re.match(r"\s+server.* unix@.* socks4 ", line) for line in case["config"]):
        # HAProxy speaks SOCKS to the server itself then, here the proxy is asked for an address that there is not.
        return 0
    if any(line.split() == ["option", "use-small-buffers"] for line in case["config"]) and any(re.match(r"\s+retry-on ", line) for line in case["config"]):
        # HAProxy 3.5-dev5 closes behind the first of several requests that came at once, or of one that is longer than such a buffer, and
        # resets the streams of HTTP/2.
        several = lambda op: op[0] == "stream" or op[0] == "resp" and len(op) > 3 and op[3] > 1 or op[0] == "send" and len(op[2]) > 1024
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(map(several, ops))]
        # Or behind a single one.
        steps += [step for step, channel, lines in record if channel.startswith("client ") and lines[-1:] == ["(closed)"] and any(line.startswith("HTTP/1.1 ") for line in lines)]
    if any(re.match(r"\s+filter trace\b.* random-forwarding", line) for line in case["config"]) and any(re.match(r"\s+retry-on ", line) for line in case["config"]):
        # HAProxy tries nothing again of whose body a part has gone, which such a filter sees to.
        uploads = lambda op: op[0] == "stream" and op[4] or op[0] == "send" and re.search(r"(?i)\r\n(content-length: *[1-9]|transfer-encoding:)", op[2])
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(map(uploads, ops))]
    if any(re.search(r" lua\.later\b", line) for line in case["config"]):
        # A script that sleeps for no time (`core.sleep(0)`) at some times of HAProxy's clock never wakes up there, and the process dies of it.
        steps += [step for step, channel, _ in record if channel == "wait"]
    if any("silent-drop" in line for line in case["config"]):
        # Idle connections end while the harness waits for what was dropped.
        steps += [step + 1 for step, channel, _ in record if channel == "wait"]
    return min(steps, default=1 << 30)


NUMBERED = {"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}


def own_method(op):
    """Whether a request has a method that is none of HTTP's first ones."""
    if op[0] == "stream":
        return any(name == ":method" and value not in NUMBERED for name, value in op[3])
    return op[0] == "send" and any(word not in NUMBERED for word in re.findall(r"(?m)^([A-Z]+) \S+ HTTP/1", op[2]))


def reweighed_at_run_time(case):
    """The steps in which a server of a backend that serves in turn gets another weight: whose turn is next then is each program's own."""
    turns, name = set(), None
    for line in case["config"]:
        name = line.split()[1] if re.match(r"(backend|listen) ", line) else name if line.startswith(" ") else None
        if name and line.split()[:2] == ["balance", "roundrobin"]:
            turns.add(name)
    for at, ops in enumerate(case["steps"]):
        changed = [re.match(r"set (?:weight (\S+)/|server (\S+)/\S+ weight )", op[1]) for op in ops if op[0] == "cli"]
        if any(found and (found[1] or found[2]) in turns for found in changed):
            yield at + 1


def reweighed(text):
    """Whether a file of server states gives a server another weight than its configuration."""
    lines = [line.split() for line in text.splitlines()] if isinstance(text, str) else []
    return any(len(words) > 8 and words[0].isdigit() and words[7] != words[8] for words in lines)


# A field of an answer in place of a response whose text asks for something of a response.
LOST = re.compile(r"\s+(http-response (return|deny|tarpit)|http-error) .* hdr \S+ (['\"])(?:(?!\3).)*%(\{[^}]*\})?\[(res\.|status|shdr|scook|server_status)"
                  r"|\s+http-response redirect .* set-cookie-fmt '[^']*%(\{[^}]*\})?\[(res\.|status|shdr|scook)")


def lost(record, case):
    """The steps in which HAProxy lost an answer: where such a field is evaluated a client gets nothing, or 500."""
    if any(map(LOST.match, case["config"])):
        for step, channel, lines in record:
            nothing = any(GIVEN_UP.match(l) for l in lines) and not any(re.match(r"(HTTP/\d\.\d|  :status:) [2-9]", l) for l in lines)
            if channel.startswith("client ") and (nothing or fewer(case, step, channel, lines) or any("<h1>500 " in l for l in lines)):
                yield step


def fewer(case, step, channel, lines):
    """Whether a client whose connection has ended has got fewer answers than it waited for."""
    asked = [op[3] for op in case["steps"][step - 1] if op[0] == "resp" and op[1] == channel.split(" ")[1] and len(op) > 3] if 0 < step <= len(case["steps"]) else []
    return bool(asked) and lines[-1:] == ["(closed)"] and sum(bool(re.match(r"HTTP/1\.\d [2-9]", line)) for line in lines) < sum(asked)


# A host that is longer than a name of a server may be (RFC 6066 section 3).
OVERLONG = re.compile(r" *(host|:authority): .{256,}")


def nameless(record, case):
    """The steps in which HAProxy trusts a server whatever its certificate says, for the host is too long to be told to it as its name."""
    if any(re.match(r"\s+(default-)?server.* verify required\b", line) for line in case["config"]):
        yield from (step for step, channel, lines in record if channel.startswith("origin ") and any(map(OVERLONG.match, lines)))


def slept(record, case):
    """The steps in which HAProxy ends a `wait-for-body` behind an action of a script that slept as soon as it begins."""
    config = "\n".join(case["config"])
    if re.search(r"http-request lua\.", config) and "http-request wait-for-body" in config:
        yield from (step for step, channel, lines in record if channel == "log" and any(" -1/-1/-1/-1/" in l and " 408 " in l and " cR-- " in l for l in lines))


def unended(record, case):
    """The steps in which HAProxy answers a request for a server with `redir` and then never ends it: streams that have a filter."""
    targets = [found[1] for line in case["config"] for found in re.finditer(r"\s+(?:default-)?server.* redir (\S+)", line)]
    if targets and any(re.match(r"\s+(filter|compression) ", line) for line in case["config"]):
        told = re.compile("(?i) *location: .*(?:" + "|".join(map(re.escape, targets)) + ")")
        yield from (step for step, channel, lines in record if channel.startswith("client ") and any(map(told.match, lines)))


def once(record, case):
    """The steps behind the first answer of `redir` of a server with `maxconn`: HAProxy 3.5-dev5 never chooses that server again."""
    targets = [found[1] for line in case["config"] if re.search(r" maxconn ", line) for found in re.finditer(r"\s+server.* redir (\S+)", line)]
    if targets:
        told = re.compile("(?i) *location: .*(?:" + "|".join(map(re.escape, targets)) + ")")
        yield from (step + 1 for step, channel, lines in record if channel.startswith("client ") and any(map(told.match, lines)))


def unconnected(record, case):
    """The steps in which HAProxy waits for an answer of a server that never took the connection: with `proto` it takes it for connected at
    once, and `timeout connect` does not count. Here only the kernel of a server with `tcp-md5sig` takes none."""
    lines = (line.split() for line in case["config"] if re.match(r"\s+server(-template)? .* tcp-md5sig ", line) and re.search(r" proto (h2|fcgi)\b", line))
    mute = [re.escape(words[1]) + (r"\d+" if words[0] == "server-template" else "") for words in lines]
    if mute:
        waited = re.compile(r".*/(?:" + "|".join(mute) + r") \S+/-1/\S+ \d{3} .* sH")
        yield from (step for step, channel, lines in record if channel == "log" and any(map(waited.match, lines)))


GIVEN_UP = re.compile(r"\((closed|reset|ended)\)$|stream \d+ RST")
# What HAProxy takes out of such a field stands over what it left, once more for each piece of the head.
SEVERAL = re.compile(r"\r\nConnection: [^\r]*,[^\r]*\r\n", re.I)


def cut_twice(case):
    """The steps in which a head with several words in `Connection` comes in two pieces."""
    for at, ops in enumerate(case["steps"]):
        parts = [op[2] for op in ops if op[0] == "send"]
        if any(SEVERAL.search(part.rpartition("\r\n\r\n")[2]) for part in parts[:-1]):
            yield at + 1


# The normalizers that HAProxy 3.5-dev5 takes for `path-merge-slashes` where a condition stands right behind them.
MERGED = re.compile(r"\s+http-request normalize-uri (percent-decode-unreserved|percent-to-uppercase|path-strip-dotdot) (if|unless) ")


def merged(case):
    """The steps in which such a rule may meet a path that it changes, or that has two slashes in a row."""
    if any(map(MERGED.match, case["config"])):
        for at, ops in enumerate(case["steps"]):
            targets = [value for op in ops if op[0] == "stream" for name, value in op[3] if name == ":path"]
            targets += [found for op in ops if op[0] == "send" for found in re.findall(r"(?m)^\S+ (\S+) HTTP/1", op[2])]
            if any(re.search(r"(?<!:)//|%|/\.\.", target) for target in targets):
                yield at + 1


# The head of a request without a body that says how its body is packed.
HOLLOW = re.compile(r"(?m)^(?:(?:GET|HEAD|DELETE|OPTIONS) .*\n(?:[a-z].*\n)*|  :method: (?:GET|HEAD|DELETE|OPTIONS)\n(?:  .*\n)*  )content-encoding: |^  CONTENT_LENGTH=0\n(?:  .*\n)*  HTTP_CONTENT_ENCODING=")


def hollow(record, case):
    """The steps in which HAProxy packs the body of a request that has none."""
    if any(re.match(r"\s+compression algo-req ", line) for line in case["config"]):
        bare = lambda lines: HOLLOW.search("\n".join(lines)) or {"content-encoding: gzip", "chunked 0: "} <= {*lines} or {"  CONTENT_LENGTH=0", "  HTTP_CONTENT_ENCODING=gzip"} <= {*lines}
        yield from (step for step, channel, lines in record if channel.startswith("origin ") and bare(lines))


def headless(record):
    """The steps in which a stream of HTTP/2 has data and never had fields, or those of an interim response alone."""
    known = set()
    for step, channel, lines in record:
        behind = zip(lines, [*lines[1:], ""]) if channel.startswith("client ") else ()
        streams = [re.match(r"stream (\d+) (HEADERS|DATA)", line) for line, fields in behind if not re.match(r"  :status: 1\d\d$", fields)]
        known |= {(channel, found[1]) for found in streams if found and found[2] == "HEADERS"}
        if any(found and (channel, found[1]) not in known for found in streams):
            yield step


def twice(record):
    """The steps in which a stream of HTTP/2 is answered twice: a POST to a page of statistics that asks for a password."""
    for step, channel, lines in record:
        heads = re.findall(r"(?m)^stream (\d+) HEADERS\n  :status: [2-5]", "\n".join(lines)) if channel.startswith("client ") else []
        if len(heads) > len(set(heads)):
            yield step


def pathless(record):
    """The steps in which HAProxy resets a stream to a server before its head: a rule left a request no path, and it answers 502."""
    begun = set()
    for step, channel, lines in record:
        if channel.startswith("origin "):
            begun |= {(channel, line.split()[1]) for line in lines if re.match(r"stream \d+ HEADERS", line)}
            if any(re.match(r"stream \d+ RST 2$", line) and (channel, line.split()[1]) not in begun for line in lines):
                yield step
