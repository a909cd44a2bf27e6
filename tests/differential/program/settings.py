"""What the settings and the traffic of a program explain: lines that differ since it has a certain keyword or does a certain thing."""
import re

from named import by_column, sink


def without_trailers_of(lines, heads):
    """Nor has one to HEAD, which HAProxy sends where a rule made another method of it."""
    text = "\n".join(lines)
    for number in heads:
        text = re.sub(rf"(stream {number} HEADERS\n  :status: [2-5]\d\d\n(?:  [^\n]*\n)*)stream {number} HEADERS\n(?:  [^:\n][^\n]*\n)+", r"\1", text)
    return text.split("\n") if heads and lines else lines


# HAProxy keeps no request line for lines that `log-steps` has written later than with the request.
STEPS = re.compile(r'"(<BADREQ>|[^"]* HTTP/\d\.\d|[A-Z]+ /[^"]*|/[^" ]*)"')
# The same where a format shows a part of it.
STEPS_VERSION = re.compile(r'(?<= )"?(<BADREQ>|HTTP/\d\.\d)"?(?= |$)')
STEPS_METHOD = re.compile(r'(?<= )"?(<BADREQ>|GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|FOO)"?(?= |$)')
# Where it writes no request line it has no target either.
STEPS_TARGET = re.compile(r'(?<= )"?(<BADREQ>|METHOD|/[^ "]*|https?://[^ "]*)"?(?= |$)')
AT_STEP = re.compile(r" ([1-5]\d\d) (?:\+?\d+|BYTES) (\S+ \S+ \S\S\S\S )\d+/\d+/\d+/\d+(?=/)")
# What was captured, as a line shows it.
CAPTURED = re.compile(r"(?<= )\{[^{}]*\}(?= )")
# Status, bytes and captures of a line that was written early, or was not, and how its stream ended.
LATE_LINE = re.compile(r"(/T (?:-1|0|[1-5]\d\d)) \+?(?:\d+|BYTES)( \S+ \S+) \S{4} ")
# The connections of the server in a line.
AT_SERVER = re.compile(r"((?<= )\d+/\d+/\d+/)\d+(?=/\+?\d+ \d+/\d+( |$))")
# The address of a peer that may be a Unix socket, in hexadecimal digits.
HEX_OF_UNIX = re.compile(r"(log-format|do-log).*%\{\+X\}(ci|fi|si|bi|cp|fp|sp|bp)\b")
# What is open HAProxy sets to zero as well, and counts on below it.
OPEN_NOW = re.compile(r"\S+/\S+ h[12]_(open_connections|open_streams)=")
# How often a check has run by the end, and whether one is at work, is a matter of time.
AT_WORK = [(r".*show servers state", re.compile(r"^((\S+ ){11})\d+ \d+ \d+ \d+"), r"\1CHECKED"), (r".*show stat", re.compile(r"(check|agent)_status=\* "), r"\1_status="),
           (r".*show stat", re.compile(r"(status=UP) \d+/\d+$|(check_health=)\d+$"), r"\1\2")]
# The same where there are no retries behind.
FEW_GAUGES = re.compile(r"(?<= )\d+/\d+/\d+/\d+/(\+?\d+)(?= \d+/\d+)")
# HAProxy does not finish a proxy that is disabled: its servers have no numbers, templates no addresses.
UNFINISHED = re.compile(r"final show servers|final show stat$")
# HAProxy never takes a stream that turned to HTTP and found a backend of TCP out of the sums of that backend.
MISLED = re.compile(r"\S+/\S+ (scur|smax)=|CurrConns: ")
# HAProxy counts the attempts of `retry-on` as ones on a connection that was there when the first was.
RETRIED = re.compile(r"\S+/\S+ (connect|reuse)=")
# What a request left behind that was taken back with its last byte.
COUNTED = re.compile(r".*show (stat|info|table|sess|servers)")


AS_HTTP1 = re.compile(r"\S+/FRONTEND (h1sess|h1_total_connections)=")
LATE_HEAD = re.compile(r"HTTP/1\.1 408 Request Time-out\n(?:[^\n]*\n)*?body: a built-in page\n")


def of_case(record, case):
    """What is a matter of a keyword of the configuration."""
    if any(line.split()[:1] == ["master-worker"] for line in case["config"]):
        # A worker of HAProxy does not get the sockets that the harness hands over.
        record = {key: lines for key, lines in record.items() if key[0] == -1}
    if any(line.split()[:1] == ["chroot"] for line in case["config"]):
        # HAProxy looks for the log's socket, whose path is relative, within the new root; Harrier has opened it before.
        record = {key: lines for key, lines in record.items() if key[1] != "log"}
    if any(line.startswith("log-forward ") for line in case["config"]):
        # A connection of `log-forward` that was closed is still counted as one of the process by HAProxy 3.5-dev5.
        record = {key: [GAUGES.sub("GAUGES", FEW_GAUGES.sub("GAUGES", l)) for l in lines] if key[1] == "log" or "show events" in key[1] else lines for key, lines in record.items()}
    if any(line.split()[:1] in (["compression"], ["filter"]) and "comp" in line for line in case["config"]):
        # What goes out depends on the packer.
        record = {key: [re.sub(r"(?<= [1-5]\d\d) \+?\d+(?= )", " BYTES", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.match(r"\s+stats (uri|enable|auth|realm|refresh|show-|hide-|admin|scope|http-request)", line) for line in case["config"]):
        # The page of statistics is not as long as HAProxy's, so a table whose entry follows its readers counts other bytes.
        record = {key: [re.sub(r"(bytes_out_(?:cnt|rate\(\d+\)))=\d+", r"\1=N", l) for l in lines] if "show table" in key[1] else lines for key, lines in record.items()}
    if "    busy-polling" in case["config"]:
        # The harness takes a program for idle that has answered it; one that polls without a pause of HAProxy's is not yet.
        record = {key: lines for key, lines in record.items() if key[0] == -1}
    if any(line.split() == ["tune.maxaccept", "-1"] for line in case["config"]) and any(line.startswith("log-forward ") for line in case["config"]):
        # HAProxy 3.5-dev5 forwards nothing then.
        record = {key: [l for l in lines if "haproxy[PID]" in l] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.search(r" set-status (204|304)\b", line) for line in case["config"]):
        # Its head ends such a response (RFC 9110, 6.4.1); HAProxy waits for the body that it drops, and resets the stream where that breaks off.
        record = {key: over(lines) if key[1].startswith("client ") else lines for key, lines in record.items()}
    if any(re.search(r"ssl-f-use .* alpn ", line) for line in case["config"]):
        record = {key: [re.sub(r"^(TLS \S+ alpn=)\S+", r"\1PROTOCOL", l) for l in lines] if key[1].startswith("client ") else lines for key, lines in record.items()}
        # Where nothing was agreed on a client of HTTP/2 begins as one of HTTP/1.
        record = {key: [l for l in lines if not AS_HTTP1.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if any(line.split() == ["option", "nolinger"] for line in case["config"]) and any(re.match(r"    bind .* ssl ", line) for line in case["config"]):
        # Data over TLS that broke off Harrier does not end as if they were whole; HAProxy says goodbye before it resets the client.
        record = {key: [re.sub(r"^\((closed|reset)\)$", "(ended)", l) for l in lines] if key[1].startswith("client ") else lines for key, lines in record.items()}
    holes = unserved(case["config"])
    if holes:
        # HAProxy deletes the certificate of such a line and keeps the line, whose list can't be shown to its end from then on.
        asked = re.compile(r"cli (show ssl c|(del|commit|add) ssl c)")
        record = {key: lines for key, lines in record.items() if not asked.match(key[1]) or not any(name in key[1] for name in holes)}
    if "    disabled" in case["config"]:
        record = {key: lines for key, lines in record.items() if not UNFINISHED.match(key[1])}
    if any("switch-mode http" in line for line in case["config"]):
        # Whether a client whose head is late there gets the answer, or is closed without one, is a matter of chance in HAProxy.
        record = {key: LATE_HEAD.sub("", "\n".join(lines)).split("\n") if key[1].startswith("client ") else lines for key, lines in record.items()}
        record = {key: [GAUGES.sub("GAUGES", l) for l in lines if not MISLED.match(l)] for key, lines in record.items()}
    if any(origin.get("kind") == "fcgi" for origin in case.get("origins", {}).values()):
        # A response without content has no length (RFC 9110, section 8.6); HAProxy counts what FastCGI said.
        record = {key: unmeasured(lines) if key[1].startswith("client ") else lines for key, lines in record.items()}
        # It tells an application to abort what it never asked for: a request that has no parameters.
        record = {key: [] if key[1].startswith("origin php#") and lines[:1] == ["abort"] else lines for key, lines in record.items()}
        if any(script[:1] == ["fcgi"] and ":" not in script[1] and script[3] == "close" for ops in case["steps"] for op in ops if op[0] == "origin" for scripts in op[1] for script in scripts):
            # Nor is it the answer alone that it counts where one that is none ends with the connection.
            record = {key: [l for l in lines if not re.match(r"bfcgi/\S+ eresp=", l)] if "show stat" in key[1] else lines for key, lines in record.items()}
        if any(re.match(r"\s+http-request (replace|set)-pathq? ", line) for line in case["config"]):
            # A path without a slash is no name of a script: both answer with 500, which HAProxy counts among the application's errors.
            record = {key: [l for l in lines if not re.match(r"bfcgi/\S+ eresp=", by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
        # When a connection at rest goes HAProxy decides by what it expects to need.
        record = {key: [re.sub(r"^(bfcgi/\S+ .*) \d+ \d+$", r"\1 HELD", l) for l in lines if not re.match(r"bfcgi/\S+ srv_icur=", l)] if "show s" in key[1] else lines for key, lines in record.items()}
    if any(origin.get("kind") == "spop" for origin in case.get("origins", {}).values()):
        # How many questions an agent has at once, and on how many connections, is a matter of time.
        asked = re.compile(r"spoeb/\S+ (smax|scur|connect|reuse|srv_icur|used_conn_cur)=")
        record = {key: [l for l in lines if not asked.match(l)] if "show stat" in key[1] else lines for key, lines in record.items()}
        # So is on which of them it was asked.
        record = {key: sorted(lines) if key[1] == "origin agent" else lines for key, lines in record.items()}
        record = {key: [re.sub(r"^(spoeb/\S+ .*) \d+ \d+$", r"\1 HELD", l) for l in lines] if "show servers conn" in key[1] else lines for key, lines in record.items()}
    if any(re.search(r" set-status (204|304)\b", line) for line in case["config"]) and any(re.match(r"\s+(filter )?compression\b", line) for line in case["config"]):
        # What has no content (RFC 9110 section 6.4.1) is not compressed here; HAProxy compresses what it then does not send.
        record = {key: [l for l in lines if not PACKED.match(by_column(l))] for key, lines in record.items()}
    if any(line.split()[:1] == ["tune.bufsize"] and int(line.split()[1]) < 16384 for line in case["config"] if line.split()[1:] and line.split()[1].isdigit()):
        # HAProxy leaves out a row that is longer than its buffer.
        record = {key: lines for key, lines in record.items() if not re.match(r"cli show stat .*typed", key[1])}
    heads = {(op[1], op[2]) for ops in case["steps"] for op in ops if op[0] == "stream" and [":method", "HEAD"] in op[3]}
    if heads:
        record = {key: without_trailers_of(lines, {n for client, n in heads if key[1] == "client " + client}) for key, lines in record.items()}
    if heads:
        # Nor has it a body: a server of HTTP/2 that sends one is told to stop where it is not all there, which HAProxy takes in.
        record = {key: unfinished_heads(lines) if key[1].startswith("origin ") else lines for key, lines in record.items()}
    if any(line.split() == ["process-vary", "on"] for line in case["config"]):
        # HAProxy writes what is accepted in small letters, where a cache looks at it.
        record = {key: [re.sub(r"^ *accept-encoding: .*", lambda m: m[0].lower(), l) for l in lines] if key[1].startswith("origin ") else lines for key, lines in record.items()}
    if any(line.split() == ["balance", "sticky"] for line in case["config"]):
        # HAProxy shows the weight 1 for servers of such a backend, whatever theirs is.
        record = {key: [l for l in lines if not re.match(r"\S+ weight=", by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if any("log-steps" in line for line in case["config"]) and any(re.match(r"\s+capture cookie ", line) for line in case["config"]):
        record = {key: lines for key, lines in record.items() if key[1] != "log"}
    if any(re.match(r"\s+log-steps (.*,)?(request|all|any)\b", line) for line in case["config"]):
        # Once it has written a line with the request HAProxy captures nothing any more.
        record = {key: [CAPTURED.sub("{CAPTURED}", line) for line in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(line.split() == ["option", "logasap"] for line in case["config"]) and any(re.search(r"(?<!\S)\S*%\[lua\.", line) for line in case["config"]):
        # Where a rule's format asks a script for something HAProxy waits for the end with every line of the frontend.
        record = {key: [LATE_LINE.sub(r"\1 BYTES\2 FLAGS ", GAUGES.sub("GAUGES", l)) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(line.split() == ["option", "logasap"] for line in case["config"]):
        # A page of statistics is still at work in the backend when HAProxy writes such a line; whether the end of a response was seen by
        # then, with which its server is not at work any more, is a matter of time.
        early_line = lambda l: GAUGES.sub("GAUGES", l) if "/<STATS> " in l else AT_SERVER.sub(r"\1N", l)
        record = {key: [early_line(l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.match(r"\s+http-(after-)?response do-log\b", line) for line in case["config"]):
        # Nor whether the end of a response was seen by the time its rules run: either program says one or the other from run to run.
        record = {key: [AT_SERVER.sub(r"\1N", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
        if "    option contstats" in case["config"] and any(re.match(r"\s+http-response pause\b", line) for line in case["config"]):
            # HAProxy counts a head that waits for the end of a pause as sent.
            record = {key: [re.sub(r"(?<= [1-5]\d\d) \+?\d+(?= )", " BYTES", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(line.split()[:2] == ["balance", "log-hash"] for line in case["config"]):
        # Which server a line goes to follows from its text, with its times and ports.
        spread = lambda lines: [l for l in lines if not sink(l)] + sorted(re.sub(r"^l\d+ ", "lN ", l) for l in lines if sink(l))
        record = {key: spread(lines) if key[1] == "log" else lines for key, lines in record.items()}
    if any(HEX_OF_UNIX.search(line) for line in case["config"]):
        # HAProxy ends a line where the address of a Unix socket should stand in hexadecimal digits.
        record = {key: lines for key, lines in record.items() if key[1] != "log"}
    if any(op[0] == "cli" and op[1].startswith("clear counters") for ops in case["steps"] for op in ops):
        record = {key: [l for l in lines if not OPEN_NOW.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if any("log-steps" in line for line in case["config"]):
        # Nor is what a response took, or a server has at work, the same at each of the moments that it calls so.
        if any(re.match(r"\s+log-format .*%(\{[^}]*\})?HM\b", line) for line in case["config"]):
            record = {key: [STEPS_METHOD.sub("METHOD", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
        if any(re.match(r"\s+log-format .*%(\{[^}]*\})?H[PU]\b", line) for line in case["config"]):
            record = {key: [STEPS_TARGET.sub("METHOD", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
        step = lambda line: AT_STEP.sub(r" \1 BYTES \2GAUGES", STEPS_VERSION.sub("VERSION", STEPS.sub('"REQUEST"', line)))
        record = {key: [step(line) for line in lines] if key[1] == "log" else lines for key, lines in record.items()}
    padded = {match[1].lower() for line in case["config"] if (match := re.match(r"\s+http-\S+ (?:add|set)-header (\S+) .*\bub64dec\b", line))}
    if padded and any("=" in repr(op) for ops in case["steps"] for op in ops if op[0] in ("send", "stream")):
        # HAProxy decodes `=` as a digit of 63, and cuts off nothing.
        record = {key: [l for l in lines if l.strip().split(":")[0].lower() not in padded] if key[1].startswith(("origin ", "client ")) else lines for key, lines in record.items()}
    read_on = {match[1].lower() for line in case["config"] if (match := re.match(r"\s+http-\S+ (?:add|set)-header (\S+) .*\b(?:base|baseq|url|capture\.req\.uri),port_only\b", line))}
    if read_on:
        # HAProxy takes all that follows the colon for digits.
        record = {key: [l for l in lines if l.strip().split(":")[0].lower() not in read_on] if key[1].startswith(("origin ", "client ")) else lines for key, lines in record.items()}
    if any(op[0] == "origin" and any(["close"] in script for script in op[1]) for ops in case["steps"] for op in ops):
        # A response that breaks off is two failures or none to HAProxy: whether its end came along with it.
        record = {key: [re.sub(r"(?<= http_fail_)(cnt|rate\(\d+\))=\d+", r"\1=N", line) for line in lines] if "show table" in key[1] else lines for key, lines in record.items()}
    if any(re.match(r"\s+retry-on ", line) for line in case["config"]):
        record = {key: [l for l in lines if not RETRIED.match(by_column(l))] for key, lines in record.items()}
    if any(" check" in line for line in case["config"]):
        record = {key: [l for l in lines if not CHECKED.match(by_column(l))] for key, lines in record.items()}
        if any(re.match(r"\s+(default-)?server.* check\b.* h2\b|\s+(default-)?server.* h2\b.* check\b", line) for line in case["config"]):
            record = {key: [l for l in lines if not CHECKED_H2.match(by_column(l))] for key, lines in record.items()}
    if any(re.search(r" (agent-)?check\b", line) for line in case["config"]):
        for where, pattern, to in AT_WORK:
            record = {key: [pattern.sub(to, l) for l in lines] if re.match(where, key[1]) else lines for key, lines in record.items()}
    if len({value for ops in case["steps"] for op in ops for value in hosts_of(op)}) > 1:
        # Sessions of TLS with a server are kept for each name here, there the last one alone.
        record = {key: [l for l in lines if not RESUMED.match(by_column(l))] for key, lines in record.items()}
    if any(map(SHUTS.match, case["config"])):
        # Such a rule waits for nothing: what the server was sent before its connection ends is a matter of time.
        record = {key: [l for l in lines if not l.startswith("| ")] if key[1].startswith("origin ") and any(map(ENDS.match, lines)) else lines for key, lines in record.items()}
    if any(map(REFUSES.match, case["config"])):
        record = {key: [given_up(line) for line in lines] if key[1].startswith("origin ") else lines for key, lines in record.items()}
        if cut_short(case):
            # So is whether the end of one that its server cut short was seen by then, which is an error of its own.
            record = {key: [l for l in lines if not ERRORS.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
        # So is whether the rest of one that comes in pieces was there, and the connection may be kept.
        pieces = in_pieces(case)
        record = {key: [line for line in lines if line != "(ended)"] if key[0] in pieces and key[1].startswith("origin ") else lines for key, lines in record.items()}
        if pieces:
            record = {key: [re.sub(r"(?<= bytes_out_)(cnt|rate\(\d+\))=\d+", r"\1=N", line) for line in lines] if "show table" in key[1] else lines for key, lines in record.items()}
    if any("silent-drop" in line for line in case["config"]):
        # Of an upload that is dropped in silence more may come behind the reset of its stream: another one, for that.
        dropped_uploads = {str(op[2]) for ops in case["steps"] for op in ops if op[0] == "stream" and op[4]}
        record = {key: [re.sub(r"^stream (\d+) RST 7$", lambda m: f"stream {m[1]} ended" if m[1] in dropped_uploads else m[0], l) for l in lines] if key[1].startswith("client ") else lines for key, lines in record.items()}
    if any(op[0] == "stream" and op[-1] == "trailers" for ops in case["steps"] for op in ops):
        # Trailers that come when the stream is answered and over: HAProxy may say goodbye to such a client.
        record = {key: [l for l in lines if not FAREWELLS.match(by_column(l))] for key, lines in record.items()}
    if any(op[0] == "stream" and op[-1] == "rst8" for ops in case["steps"] for op in ops):
        record = {key: lines for key, lines in record.items() if not COUNTED.match(key[1])}
    if "    option dontlognull" in case["config"] and any(o.get("dead") and o.get("at") == "unix" for o in case.get("origins", {}).values()):
        # Such a server refuses at once: what its client says may come before that or not, and is a line or none.
        record = {key: [l for l in lines if not re.search(r" T/-1/\+?T \+?0 SC ", l)] if key[1] == "log" else lines for key, lines in record.items()}
    if any(" early-hint " in line for line in case["config"]):
        # What HAProxy 3.5-dev5 does behind an early hint: it resets a stream of HTTP/2 whose response ends with its connection, and does
        # not count the first handshake with a server that fails.
        record = {key: hinted(lines) if key[1].startswith("client ") else lines for key, lines in record.items()}
        if any(" silent-drop" in line for line in case["config"]):
            # HAProxy drops a client together with a hint that has not gone yet.
            record = {key: [] if key[1].startswith("client ") and lines[:1] == ["HTTP/1.1 103 Early Hints"] and not any(map(ANSWERED.match, lines)) else lines for key, lines in record.items()}
        record = {key: [l for l in lines if not HANDSHAKES.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if "    tune.sched.low-latency on" in case["config"]:
        # HAProxy counts no handshake with a server that refuses the connection then, and one for each attempt without it.
        record = {key: [l for l in lines if not HANDSHAKES.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if any(re.match(r"\s+tcp-request connection do-log\b|\s+log-steps .*\b(accept|any|all)\b", line) for line in case["config"]) and any(re.search(r"sslv|sslc|ssl_fc_(protocol|cipher)", line) for line in case["config"]):
        # A version that no handshake has agreed on yet is to HAProxy the best that it could be.
        record = {key: [re.sub(r"(?<![\w\"])TLSv1\.3", "-", l.replace('"TLSv1.3"', '""').replace("(NONE)", "-")) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.match(r"\s+(error-)?log-format .*%(\{[^}]*\})?\[status\b", line) for line in case["config"]):
        # `status` is not there in lines that HAProxy writes at the end of a response, nor is what converters would make of it.
        made = any(re.match(r"\s+(error-)?log-format .*\[status,", line) for line in case["config"])
        said = MADE_OF_STATUS if made else STATUS
        record = {key: [said.sub("STATUS", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.match(r"\s+http-after-response do-log\b", line) for line in case["config"]):
        # Whether a server has its place back when a client left is a matter of chance to HAProxy.
        record = {key: [GAUGES.sub("GAUGES", l) if LEFT.search(l) else l for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if uploads_to_a_page(case):
        # A page of statistics that answers before an upload is over counts in HAProxy like a server that left.
        record = {key: [l for l in lines if not UNREAD.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    if any(re.match(r"\s+(error-)?log-format .*%(\{[^}]*\})?\[method\b", line) for line in case["config"]):
        # HAProxy no longer knows a method by then that is none of those of RFC 9110.
        odd = odd_methods(case)
        record = {key: lines for key, lines in record.items() if key[1] != "log" or key[0] not in odd}
    if stalls(case):
        record = {key: [l for l in lines if not STALLED.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
    healthy = mistaken(case["config"]) | laid_up(case["config"])
    if healthy:
        # HAProxy forgets `init-state` where `rise` or `fall` follow it: without checks that is only shown.
        row = re.compile(rf"((?:\S+ ){{3}}(?:{'|'.join(sorted(healthy))}) (?:\S+ ){{8}})\d+ ")
        record = {key: [row.sub(r"\1HEALTH ", l) for l in lines] if "show servers state" in key[1] else lines for key, lines in record.items()}
    uploads = {f"stream {op[2]}" for ops in case["steps"] for op in ops if op[0] == "stream" and op[4]}
    if uploads:
        record = {key: [early(line, uploads) for line in lines] if key[1].startswith("client ") else lines for key, lines in record.items()}
    return record


BARE_HEAD = re.compile(r"(stream (\d+) HEADERS\n  :status: (?:204|304)\n(?:  [^\n]*\n)*)stream \2 (?:END|RST 8)(?=\n|$)")


def over(lines):
    """The end of a stream whose response has no content, whichever way it ends."""
    return BARE_HEAD.sub(r"\1stream \2 END", "\n".join(lines)).split("\n") if any("HEADERS" in line for line in lines) else lines


MADE_OF_STATUS = re.compile(r"(?<= )(-|-?\d+(?:-\w+)*|\"(?:-?\d+(?:-x)?)?\")(?= |$)")
STATUS = re.compile(r"(?<= )(-|-?[1-5]\d\d(?:-x)?|\"(?:-?[1-5]\d\d(?:-x)?)?\")(?= |$)")
PACKED = re.compile(r"\S+ comp_(in|rsp|byp)=|CompressBps(In|Out): ")
LEFT = re.compile(r" C[A-Z]\S\S ")
UPLOADS = re.compile(r"(?:POST|PUT|PATCH) /[a-z/]*stats\b[^\r]*\r\n(?:[^\r]+\r\n)*Content-Length: \d{5}")
UNREAD = re.compile(r"\S+/BACKEND (eresp|srv_abrt)=")
HANDSHAKES = re.compile(r"\S+/(?!FRONTEND)\S+ ssl_failed_handshake=")
ANSWERED = re.compile(r"HTTP/1\.\d [2-5]\d\d|\((closed|reset|ended)\)$")


def uploads_to_a_page(case):
    """Whether a client sends a page of statistics more than a buffer."""
    ops = [op for ops in case["steps"] for op in ops]
    over_h2 = lambda op: op[0] == "stream" and isinstance(op[4], int) and op[4] > 16384 and any(name == ":path" and "stats" in value for name, value in op[3])
    return any(map(over_h2, ops)) or any(op[0] == "send" and UPLOADS.search(op[2]) for op in ops) and any(op[0] == "fill" for op in ops)


def hinted(lines):
    """Resets of streams that were given an early hint, and a response without a length, as what they are: the end."""
    out, stream, hints, length = [], None, set(), set()
    for line in lines:
        head = re.match(r"stream (\d+) HEADERS$", line)
        stream = head[1] if head else stream
        hints |= {stream} if line == "  :status: 103" else set()
        length |= {stream} if line.startswith("  content-length: ") else set()
        reset = re.match(r"stream (\d+) RST 8$", line)
        out.append(f"stream {reset[1]} END" if reset and reset[1] in hints - length else line)
    return out


def mistaken(config):
    """Servers whose `init-state` is followed by `rise` or `fall`, on their own line or behind `default-server`."""
    names, default = set(), False
    for line in config:
        default = default and line.startswith(" ")
        words = line.split()
        if words[:1] == ["default-server"]:
            default |= "init-state" in words
        elif words[:1] in (["server"], ["server-template"]):
            after = words[words.index("init-state"):] if "init-state" in words else words if default else []
            if "rise" in after or "fall" in after:
                names.add(words[1] + (r"\d+" if words[0] == "server-template" else ""))
    return names


def laid_up(config):
    """Servers with an `init-state` that begin in maintenance: HAProxy 3.5-dev5 gives them no health, and has them DOWN when they leave it."""
    names, default = set(), False
    for line in config:
        words = line.split()
        default = default and line.startswith(" ") or words[:1] == ["default-server"] and "init-state" in words
        if words[:1] in (["server"], ["server-template"]) and "disabled" in words and (default or "init-state" in words):
            names.add(words[1] + (r"\d+" if words[0] == "server-template" else ""))
    return names


def unmeasured(lines):
    """Responses without content lose the field that tells its length."""
    out, bare = [], False
    for line in lines:
        bare = bool(re.match(r"HTTP/1\.\d (204|304) ", line)) or bare and line != "."
        if not (bare and line.startswith("content-length: ")):
            out.append(line)
    return out


def unserved(config):
    """The certificates of `ssl-f-use` lines of sections none of whose `bind` lines speaks TLS, and the names of such sections."""
    out, section, names, serves = set(), None, set(), False
    for line in [*config, "end"]:
        words = line.split()
        if not line.startswith(" "):
            if names and not serves:
                out |= names | {section}
            section, names, serves = "@" + (words[1] if len(words) > 1 else ""), set(), False
        elif words[:1] == ["bind"]:
            serves |= "ssl" in words
        elif words[:1] == ["ssl-f-use"] and "crt" in words[:-1]:
            names.add(words[words.index("crt") + 1])
    return out


def unfinished_heads(lines):
    """Streams of HEAD requests to a server are over, however they ended."""
    streams = sum(bool(re.match(r"stream \d+ HEADERS$", line)) for line in lines)
    if lines.count("  :method: HEAD") != streams:
        return lines
    return [re.sub(r"^(stream \d+) (END|RST .*)$", r"\1 over", line) for line in lines]


FAREWELLS = re.compile(r"\S+/\S+ h2_goaway_resp=")
RESUMED = re.compile(r"\S+/(?!FRONTEND)\S+ ssl_(sess|reused_sess)=|SslBackend(Max)?KeyRate: ")


def hosts_of(op):
    """The hosts that an operation asks for."""
    if op[0] == "send":
        return re.findall(r"(?i)\r\nhost: ([^\r]*)", op[2])
    return [value for name, value in op[3] if name == ":authority"] if op[0] == "stream" else []


# Rules by which a response is given up that may still be on its way.
REFUSES = re.compile(r"    http-response (deny|return|redirect|silent-drop)|    tcp-response ")


STANDARD = {"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"}


def odd_methods(case):
    """The steps with requests of methods that RFC 9110 does not name."""
    said = lambda op: re.findall(r"(?:^|\n)([A-Z]+) \S* *HTTP/", op[2]) if op[0] == "send" else [value for name, value in op[3] if name == ":method"] if op[0] == "stream" else []
    return {at + 1 for at, ops in enumerate(case["steps"]) if any(set(said(op)) - STANDARD for op in ops)}


STALLED = re.compile(r"[fb]\d+/BACKEND cli_abrt=")


def stalls(case):
    """Whether a client of HTTP/2 with a window of a few bytes asks for a page of statistics: HAProxy 3.5-dev5 sends most of it only when the
    client's time is over, and counts it as one that left."""
    ops = [op for ops in case["steps"] for op in ops]
    narrow = {op[1] for op in ops if op[0] == "open" and any(name == 4 and size < 4096 for name, size in (op[3].get("h2") if len(op) > 3 else None) or ())}
    return any(op[0] == "stream" and op[1] in narrow and any(name == ":path" and "stats" in value for name, value in op[3]) for op in ops)


ERRORS = re.compile(r"b\d+/\S+ eresp=")
PROMISED = re.compile(r"(?s)Content-Length: (\d+).*?\r\n\r\n(.*)")


def cut_short(case):
    """Whether an origin closes within the body of a response."""
    found = lambda op: op[0] == "send" and PROMISED.search(op[1])
    short = lambda op: any(int(said[1]) > len(said[2]) for said in [found(op)] if said)
    ends = lambda script: any(op[0] in ("close", "rst") for op in script)
    return any(op[0] == "origin" and any(ends(script) and any(map(short, script)) for script in op[1]) for ops in case["steps"] for op in ops)


def given_up(line):
    """Whether the stream of a response that a rule refuses is reset, or had ended, is a matter of time."""
    return re.sub(r"^(stream \d+) (END|RST .*)$", r"\1 over", line)


def early(line, uploads):
    """An answer before the request's end is followed by RST_STREAM with NO_ERROR (RFC 9113, 8.1): whether the proxy had the whole of an
    upload when it answered is a matter of time, on HAProxy as well."""
    found = re.match(r"(stream \d+) (?:END|RST over)$", line)
    return f"{found[1]} ended" if found and found[1] in uploads else line


# Connections of health checks over HTTP/1, and over TLS on either side, count in HAProxy as often as they are made.
CHECKED = re.compile(r"\S+/BACKEND h1_(total_connections|total_streams|open_connections|open_streams)=|(Cum|Curr)SslConns: ")
# The same over HTTP/2.
CHECKED_H2 = re.compile(r"\S+/BACKEND h2_(total_connections|backend_total_streams|open_connections|backend_open_streams)=")
ENDS = re.compile(r"\((closed|reset)\)$|GOAWAY last=\d+ code=0$|\(ended\)$")
# Rules that end a connection of TCP when its server is reached.
SHUTS = re.compile(r"\s+tcp-response content (reject|close|silent-drop)\b")
# The connections of process, frontend, backend and server in a log line, before the retries.
GAUGES = re.compile(r"(?<= )\d+/\d+/\d+/(?:\d+|N)(?=/\+?\d+ \d+/\d+( |$))")


def in_pieces(case):
    """The steps in which an origin sends a response in several pieces."""
    pieces = lambda script: sum(op[0] in ("send", "fill") for op in script) > 1
    return {at + 1 for at, ops in enumerate(case["steps"]) for op in ops if op[0] == "origin" and any(map(pieces, op[1]))}
