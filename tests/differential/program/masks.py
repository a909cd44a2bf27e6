"""What must differ between two runs is masked here, and nothing else: dates, process numbers, pointers, durations, ports,
the version's name. Differences between the programs that are meant are rules of named.py and its neighbours.
"""
import csv, hashlib, io, json, re, zlib

import http1

# How a binary header of the PROXY protocol begins.
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def size_of_header(data):
    """The size of the header of the PROXY protocol, in text or in binary, that these bytes begin with; 0: they begin with none. One
    in binary may be longer than what is there."""
    if data.startswith(b"PROXY "):
        return data.find(b"\r\n") + 2 if b"\r\n" in data else 0
    return 16 + int.from_bytes(data[14:16], "big") if data.startswith(SIGNATURE) else 0


def digest(data):
    return hashlib.sha1(data).hexdigest()[:12]


def escape(data):
    out = data.decode("latin-1").replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    return re.sub(r"[^\x20-\x7e]", lambda m: f"\\x{ord(m[0]):02x}", out)


def dechunk(data):
    """The content of a chunked body as far as it has come, its trailers, what is left, and whether it was whole."""
    out, at = bytearray(), 0
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return bytes(out), b"", data[at:], False
        try:
            size = int(data[at:line].split(b";")[0].strip(), 16)
        except ValueError:
            return bytes(out), b"", data[at:], False
        at = line + 2
        if size == 0:
            end = http1.chunked_end(b"0\r\n" + data[at:], 0)
            if end < 0:
                return bytes(out), b"", b"0\r\n" + data[at:], False
            return bytes(out), data[at:at + end - 5], data[at + end - 3:], True
        if at + size > len(data):
            out += data[at:]
            return bytes(out), b"", b"", False
        out += data[at:at + size]
        at += size + 2


def unpacked(body, coding, text):
    """What a packed body holds, whatever its packer made of it; nothing where it is not packed."""
    if coding.lower() not in (b"gzip", b"deflate") or not body:
        return None
    for bits in (47, -15):
        unpacker = zlib.decompressobj(bits)
        try:
            plain = unpacker.decompress(body)
        except zlib.error:
            continue
        return f"{coding.decode()} of {len(plain)}: {text(plain)}" + ("" if unpacker.eof else " (not whole)")
    return None


def messages(data, kind, text, methods=(), unpack=False):
    """Lines that show messages: a head line by line, a body by its content, whatever its framing."""
    lines, methods = [], list(methods)
    # What is long is told by its sum, in which the ports of a header count.
    if (kind != "tcp" or len(data) > 3000) and data.startswith(SIGNATURE) or len(data) > 3000 and data.startswith(b"PROXY ") and b"\r\n" in data:
        size = size_of_header(data)
        lines, data = ["| " + text(data[:size])], data[size:]
    while data:
        if kind == "tcp" or not re.match(rb"(HTTP/1\.\d \d\d\d|[!-~]+ \S* *HTTP/1\.\d\r)" if kind != "response" else rb"HTTP/1\.\d \d\d\d", data):
            return lines + ["| " + text(data)]
        end = http1.head_end(data)
        if end < 0:
            return lines + ["| " + text(data)]
        head, data = data[:end], data[end:]
        lines += [escape(line) for line in head.split(b"\r\n")[:-2]] + ["."]
        found = http1.fields(head)
        coding = b",".join(found.get(b"content-encoding", [])) if unpack else b""
        status = int(head[9:12]) if head.startswith(b"HTTP/1.") else 0
        method = methods.pop(0) if methods and status >= 200 else "GET"
        if 100 <= status < 200 or status in (204, 304) or (status and method == "HEAD"):
            continue
        if b"chunked" in b",".join(found.get(b"transfer-encoding", [])).lower():
            body, trailers, data, whole = dechunk(data)
            lines.append("chunked " + (unpacked(body, coding, text) or f"{len(body)}: {text(body)}") + ("" if whole else " (not whole)"))
            lines += ["trailer " + escape(line) for line in trailers.split(b"\r\n") if line]
            if not whole and data:
                return lines + ["| " + text(data)]
            continue
        size = http1.body_end(data, 0, found, "close" if status else "none")
        if size is None or size < 0:
            size = len(data)
        body, data = data[:size], data[size:]
        if body:
            lines.append("body " + (unpacked(body, coding, text) or f"{len(body)}: {text(body)}"))
    return lines


MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
TIMERS = re.compile(r"(\] \S+ \S+/\S+ )(\+?-?\d+(?:/\+?-?\d+){2,4})(?= )")


def log(line):
    """A log line without dates, process number and durations."""
    line = re.sub(rf"\d\d/{MONTHS}/\d\d\d\d:\d\d:\d\d:\d\d( [+-]\d{{4}}|\.\d{{3}})?", "DATE", line)
    line = re.sub(rf"{MONTHS} [ \d]\d \d\d:\d\d:\d\d", "DATE", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?", "DATE", line)
    line = re.sub(r"\[(\d+|P-\w+|P\(\w+\))\]:", "[PID]:", line, count=1)
    line = re.sub(r"^(<\d+>1 DATE \S+ \S+) (?:\d+|P-\w+|P\(\w+\)) ", r"\1 PID ", line)
    line = re.sub(r"\b(t=)\d+", r"\1T", line)
    line = re.sub(r"(check duration: )\d+ms", r"\1T", line)
    # The number of a stream, and how long the agent took.
    line = re.sub(r"(SPOE: \[\S+\] <\S+> sid=)\d+( st=\d+) -?\d+ ", r"\1N\2 T ", line)
    return TIMERS.sub(lambda m: m[1] + re.sub(r"(?<![-\d])\d+", "T", m[2]), line)


def line(text, ports, folder):
    """Ports by the names of their sockets, the folder of this run, pointers. A length may be the number of a port, too."""
    text = text.replace(folder, "FOLDER")
    text = re.sub(r"(?<![\w.])(?<!length: )(?<!body )(?<!chunked )\d{4,5}(?!\w|\.\d| bytes)", lambda m: ports.get(m[0], m[0]), text)
    return re.sub(r"0x[0-9a-f]{5,16}\b", "0xPTR", text)


def messages_of_start(text):
    """Alerts and warnings without process numbers and the lines that name the program."""
    out = []
    for line in text.split("\n"):
        if re.search(r"haproxy version is|path to executable is|harrier version|New worker|Loading success", line) or not line.strip():
            continue
        line = re.sub(r"\(\d+\) : ", "(PID) : ", line)
        # HAProxy goes on to say so of all that it says behind a command that it has said something about.
        line = re.sub(r"^(\[WARNING\] .*\(PID\) : )CLI : ", r"\1", line)
        line = re.sub(r"(check duration: )\d+ms", r"\1T", line)
        out.append(line)
    return out


CODES = {"\\\\": "\\", "\\r": "\r", "\\n": "\n", "\\t": "\t"}


def unescape(line):
    return re.sub(r"\\x[0-9a-f]{2}|\\.", lambda m: CODES.get(m[0]) or chr(int(m[0][2:], 16)), line).encode("latin-1")


def behind_header(line):
    """What came behind a header of the PROXY protocol, told like what comes without one."""
    if not line.startswith(("| PROXY ", "| " + escape(SIGNATURE))) or re.search(r"[.]{3}\(\d+ bytes, ", line):
        return [line]
    data = unescape(line[2:])
    size = size_of_header(data)
    if not 0 < size < len(data):
        return [line]
    return ["| " + escape(data[:size]), *messages(data[size:], "request", escape)]


def channel(name, lines):
    """The lines of one channel of a record."""
    if name.startswith("client "):
        # How old what a cache gives is, give or take what a run takes.
        lines = [re.sub(r"(?i)^( *age: \d*)\d$", r"\1N", line) for line in lines]
        # When a response was made that had no date; those of origins are of other years.
        lines = [re.sub(r"^( *date: )\w{3}, \d\d \w{3} 20[23]\d .* GMT$", r"\1NOW", line) for line in lines]
    if name == "log":
        return [log(line) for line in lines]
    if name.startswith(("cli ", "final ")):
        return output(name.split(" ", 1)[1], lines)
    if name.startswith("origin "):
        # Who does not speak HTTP/2 shows its bytes: which fields HPACK puts into its table is the sender's choice.
        lines = [re.sub(r"^(\| PRI \* HTTP/2\.0|  SERVER_SOFTWARE=HAProxy).*", r"\1", line) for line in lines]
        return [part for line in lines for part in behind_header(line)]
    return lines


# What passes with time, or is a mean or a maximum of it.
TIMES = {"pid", "lastsess", "lastchg", "downtime", "qtime", "ctime", "rtime", "ttime", "rate", "rate_max", "req_rate",
         "req_rate_max", "conn_rate", "conn_rate_max", "check_duration", "qtime_max", "ctime_max", "rtime_max", "ttime_max",
         "agent_duration"}
INFO = re.compile(r"^(Name|Version|Build info|Release_date|Nbthread|Nbproc|Pid|Uptime\w*|Start_time_sec|Memmax\w*|Pool\w*|Run_queue|Tasks|"
                  r"Idle_pct|node|Hard_maxconn|Ulimit-n|Maxsock|Maxpipes|Maxconn|\w*Rate\w*|BusyPolling|"
                  r"TotalWarnings|NiceTasks|Unstoppable\w*|CurrConns|MaxConn\w*|LastSess|FD_\w+|Niced_tasks|Stopping|Jobs|Listeners|"
                  r"BootTime\w*|DebugCommandsIssued|CumRecvLogs|ConnRate\w*|Bytes_out_rate|TotalSplicedBytesOut|TotalBytesOut): .*")


def typed(text):
    """What `show stat json` says, as `show stat typed` says it."""
    try:
        rows = json.loads(text)
    except ValueError:
        return [text]
    tags = lambda one: "/".join(one["tags"][of] for of in ("origin", "nature", "scope"))
    return [f"{one['objType'][0]}.{one['proxyId']}.{one['id']}.{one['field']['pos']}.{one['field']['name']}.{one['processNum']}:"
            f"{re.sub(r'[^A-Za-z]', '', tags(one))}:{one['value']['type']}:{one['value']['value']}" for row in rows for one in row]


def asked_by_others(lines):
    """A list of sessions without the one that asks for it, which HAProxy's has, and without those of `log-forward`, which HAProxy 3.5-dev5 keeps
    when they are closed: a line of it, or a block whose first line is not indented."""
    blocks = []
    for line in lines:
        if blocks and line.startswith(" "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return [line for block in blocks if not re.search(r" (fe|frontend)=(GLOBAL|lfthird) ", " ".join(block)) for line in block]


def output(command, lines):
    """What a command said, by lines, without what must differ. What is masked stays as it is."""
    first, text = command.split(";")[0], "\n".join(lines)
    if first.startswith("show stat") and " json" not in first and "typed" not in first and text.startswith("#"):
        return stat(text)
    if first.startswith("show stat") and " json" in first:
        lines = typed(text)
    if first.startswith("show stat") and ("typed" in first or " json" in first):
        return [re.sub(r"^(\w\.\d+\.\d+\.\d+\.(\w+)\.\d+:\w+:\w+:).*", lambda m: m[1] + "T" if m[2] in TIMES else m[0], l) for l in lines]
    if first.startswith("show info"):
        return [l for l in lines if l and not INFO.match(re.sub(r"^\d+\.", "", l))]
    if first.startswith("show table") or first.startswith("set table"):
        lines = [re.sub(r"\bexp=\d+", "exp=T", re.sub(r"^0x[0-9a-f]+", "0xPTR", l)) for l in lines]
        lines = [re.sub(r"_rate\((\d+)\)=\d+", r"_rate(\1)=R", l) for l in lines]
        return lines[:1] + sorted(lines[1:])
    if first.startswith(("show map", "show acl")):
        lines = [re.sub(r"^0x[0-9a-f]+", "0xPTR", l) for l in lines]
    if first.startswith("show servers state"):
        # Seconds since the last change.
        out = []
        for l in lines:
            words = l.split(" ")
            if len(words) > 15 and words[0].isdigit():
                words[9] = "T"
            out.append(" ".join(words))
        return out
    if first.startswith("show version"):
        return ["version"]
    if first.startswith("debug counters"):
        # Statements of the source of each program that were passed: Harrier has none.
        return ["counters"]
    if first.startswith("show sess"):
        lines = asked_by_others(lines)
    if first.startswith("show events"):
        return [log(l) for l in lines]
    if first.startswith("show cache"):
        # Which hash an object has, and what HAProxy's own description of it takes, is each program's own.
        lines = [re.sub(r"0x\w+|\b\d+\b", "N", l) for l in lines]
    if first.startswith("show resolvers"):
        lines = [re.sub(r"\b[1-9]\d*\b", "N", l) for l in lines]
    if re.match(r"show (activity|peers|fd|libs|pools|profiling|sess|tasks|threads|trace|dev)\b|dump stats-file|trace\b", first):
        # What is inside of each program.
        return ["(shown)" if any(lines) and lines != ["(nothing)"] else "(nothing)"]
    return [l.rstrip() for l in lines]


def stat(text):
    """Each line of the statistics as its fields that are not empty and not zero."""
    out = []
    for row in csv.DictReader(io.StringIO(text[2:])):
        name = f"{row.get('pxname')}/{row.get('svname')}"
        cells = [f"{k}={v}" for k, v in row.items() if k and v not in ("", "0", None) and k not in TIMES
                 and k not in ("pxname", "svname") and k != "-"]
        if row.get("pxname"):
            out += [f"{name} {cell}" for cell in cells]
    return out
