"""Differences between the programs that are meant: named rules, each with its reason in docs/differences.md.

A rule looks at two lines of one channel and says whether it explains them. What no rule explains is a finding.
"""
import difflib, re

import masks

# name: (channel, pattern that is masked on both sides). A line whose masked forms agree is explained by the rule.
MASKS = [
    # Whether an origin sees FIN or RST follows from what the proxy had left unread when it gave up.
    # The alert that a TLS peer is sent when its certificate is refused.
    ("alert", r"origin", r"^\(tls: .*(ALERT|alert).*\)$", "(tls: alert)"),
    ("ends", r"origin", r"^\((closed|reset)\)$", "(ended)"),
    ("need", r".*show servers conn", r"^(\S+/\S+ \d+/\d+ \S+ \S+ - \d+ \d+) \d+ \d+ \d+ \d+ \d+ \d+ ", r"\1 USED MAX NEED IDLE UNSAFE SAFE "),
    ("slim", r"final show stat|cli show stat", r"(?<= )slim=\d+", "slim=N"),
    ("slim", r".*show stat", r"(?<=\.slim\.1:CLPV:u32:)\d+", "N"),
    # Ports of a binary PROXY header, where the origin shows its bytes.
    ("ports", r"origin", r"(\\r\\n\\r\\n\\x00\\r\\nQUIT\\n!(?:\\x11|!)\\x00(?:\\x..|[^\\]|\\[rnt\\])(?:(?:(?:\\x00){10}\\xff\\xff)?\\x7f\\x00\\x00\\x01|(?:\\x00){15}\\x01){2})(?:(?:\\x..|[^\\]|\\[rnt\\])){4}", r"\1 PORTS "),
    # Whether connect() has returned when the proxy resets a connection that it does not want.
    ("ends", r"client", r"^cannot connect: Connection reset by peer$", "(reset)"),
    # How each program describes its figures.
    ("help", r".*show (info|stat).* desc", r':".*"$', ""),
    # What HPACK makes of a head: where an origin does not speak HTTP/2 it sees nothing but bytes.
    ("hpack", r"origin", r"^\| PRI \* HTTP/2\.0.*$", "| HTTP/2"),
    # The library behind TLS.
    ("library", r"cli show ssl ca-file", r"^@system-ca - \d+ cert.*", "@system-ca"),
    ("library", r"cli show ssl providers", r"^\t- .*", "\t- a provider"),
    # What comes of a stream after its reset HAProxy answers with one more.
    ("late-frames", r"client", r"^(stream \d+ RST) [015]$", r"\1 over"),
    # An upload that its client cut short is to HAProxy an error of the protocol.
    ("cut-upload", r"origin", r"^(stream \d+ RST) [18]$", r"\1 of a request that ends early"),
    # A number beyond 32 bits, of which `hdr_val` and its kin keep the last 32 in HAProxy.
    ("overflow", r"client|origin|log", r"1410065407(?!\d)", "9999999999"),
    # After a warning about a server's TLS HAProxy forgets which server it speaks of.
    ("tfo-label", r"check says|stderr", r"\[cfg:\d+\] : 'server(-template)? [^']*' : (server has tfo activated)", r"\2"),
    # The time in all has no end yet when a line is written before it: negative in HAProxy.
    ("steps", r"log", r"(\] \S+ \S+/\S+ \S+/)\+?(?:T|-\d+)(?= -?\d+ )", r"\1T"),
    # What HAProxy says behind a command that it has refused, whatever it is about.
    ("said-before", r"stderr", r"(?<=\(PID\) : )CLI : (?=(?:backend|proxy) '\S+' has no server available!|Lua function ')", ""),
    # The host of a CONNECT whose target a rule made a URL: HAProxy takes all of it for the host.
    ("connect-host", r"origin", r"^host: https?://([^/]*)(?:/.*)?$", r"host: \1"),
    # HAProxy counts an error with each stream that ends, though nothing failed; what failed has its own `st`.
    ("spoe-errors", r"log", r"(SPOE: .* st=\d+ T) \d+/(?=\d+$)", r"\1 ERRORS/"),
    # The reason that a script gave its reply, which HAProxy 3.5-dev5 does not keep.
    ("reason", r"client", r"^(HTTP/1\.[01]) 418 (?:Teapot|I'm a teapot)$", r"\1 418 A teapot"),
    # What had come before an exchange was broken off is a matter of time.
    ("broken-off", r"log", r"(?<= [1-5]\d\d) \+?\d+(?= \S+ \S+ (?!----)\S\S\S\S )", " BYTES"),
    # A client of TCP that ends together with its connection, before a server is reached: HAProxy says so or not.
    ("left", r"log", r"( T/-1/\+?T \+?0) (?:--|CC) ", r"\1 LEFT "),
    # So is what came along with the head, where the log is written then.
    ("asap", r"log", r"(?<= [1-5]\d\d) \+\d+(?= )", " +BYTES"),
]


# name: (channel, pattern of lines that are passed over).
DROPS = [
    # Harrier does not say again what HAProxy says about running as root.
    ("root-warnings", r"stderr", r"\[WARNING\].*HAProxy was started as (the )?root"),
    # The limit of connections follows from the descriptors that each program takes for itself.
    ("slim", r"check says|stderr", r"\[NOTICE\].*Automatically setting global.maxconn"),
    # What the filter `trace` writes, with times and its own words.
    ("trace", r"check says|stderr", r"\d+\.\d{6} \[|\[[\w.-]+/\w+ *\] \[strm |\t"),
    # The log's socket goes with the run; HAProxy says so once when something is logged at the end.
    ("log-gone", r"stderr", r"\[ALERT\] .*sendmsg\(\)/writev\(\) failed in logger"),
    # Pipes are used unasked for long bodies.
    ("pipes", r".*show stat", r"\S+ h1_spliced_bytes_(in|out)="),
    # Harrier shows the line that a message is about.
    ("excerpt", r"check says|stderr", r"  |Warnings were found"),
    # Keywords that tune parts of HAProxy that Harrier has no counterpart of are accepted and said to be without effect.
    ("no-effect", r"check says|stderr", r".*' has no effect"),
    ("no-effect", r"check says|stderr", r".* left out: tls-ticket-keys \(beside allow-0rtt\)"),
    # What the programs offer instead of an unknown command, and how they describe commands.
    ("help", r"cli (help|show nonsense|nonsense|show$|disable$|lua count)", r"(  \S.*|)$"),
    ("help", r"cli ", r"  \S.* : .*"),
    ("schema", r"cli show schema json", r'\{"\$schema"'),
    # An event ring of a part of HAProxy that Harrier has no counterpart of.
    ("help", r"(cli|final) show events", r"    (dpapi|acme) "),
    # Mails about servers need no script here.
    ("mails", r"stderr", r"\[WARNING\].* mailers '.*' is referenced on at least one proxy but Lua mailers are"),
    # How long HAProxy took to check a password when it read it.
    ("slow-hash", r"check says|stderr", r"\[WARNING\].*the hash algorithm used for this password takes"),
    # HAProxy 3.5-dev5 counts none, whatever name servers say or do not.
    ("unresolved", r".*show info", r"FailedResolutions: "),
    # What each packer makes of a body.
    ("packers", r".*show stat", r"\S+ comp_out="),
    ("packers", r".*show info", r"CompressBps(In|Out): "),
    # What each end of HTTP/2 lets the other do.
    ("h2-settings", r"origin|client", r"SETTINGS "),
    # Harrier says goodbye to a server of HTTP/2 before it closes (RFC 9113, 6.8).
    ("farewell", r"origin", r"GOAWAY last=0 code=0$"),
    # Expressions of HAProxy's own HTTP client, and one that it makes of `stats auth`.
    ("help", r"cli show (acl|map)", r".*file '(httpclient|internal-stats-auth-compat)'"),
    # The runtime API's own connections, requests and streams count as work in HAProxy; memory of zlib, which Harrier does not use.
    ("own-work", r".*show info", r"(CumConns|CumReq|CumStreams|CurrStreams|ZlibMemUsage|MaxZlibMemUsage|Tainted|PatternsAdded|PatternsFreed|PipesUsed|PipesFree): "),
    # HAProxy counts what it answers itself twice, and also when nobody is there to be answered.
    ("own-answers", r".*show stat", r"\S+ resbout="),
    # The same in sums: most programs have an exchange that is broken off.
    ("broken-off", r".*show stat", r"\S+ (bin|bout|reqbin|reqbout|resbin)="),
    # HAProxy counts a frame of data each time that it takes a part of it.
    ("data-frames", r".*show stat", r"\S+ h2_data_rcvd="),
    # Frames that come to a stream after it was reset: HAProxy counts and answers them, Harrier passes over them.
    ("late-frames", r".*show stat", r"\S+ (h2_headers_rcvd|h2_rst_stream_resp)="),
    # A forecast of HAProxy's pool that Harrier makes in another way.
    ("need", r".*show stat", r"\S+ (need_conn_est|priv_idle_cur|idle_conn_cur|safe_conn_cur|h1_bytes_out|h1_bytes_in|h2_bytes_in|h2_bytes_out)="),
]


def masked(channel, line):
    for _, where, pattern, to in MASKS:
        if re.match(where, channel):
            line = re.sub(pattern, to, line)
    return line


TYPED = re.compile(r"[FBSL]\.\d+\.\d+\.\d+\.(\w+)\.\d+:")


def by_column(line):
    """A line of `show stat typed` as one of the table, without its figure: `b/BACKEND h1_total_streams=`."""
    typed = TYPED.match(line)
    return f"row/{ROWS[line[0]]} {typed[1]}=" if typed else line


ROWS = {"F": "FRONTEND", "B": "BACKEND", "S": "server", "L": "listener"}


def dropped(channel, line):
    line = by_column(line)
    return any(re.match(where, channel) and re.match(pattern, line) for _, where, pattern in DROPS)


def pages(lines):
    """The length of a built-in page also stands in an answer to HEAD, which has no page."""
    if not lines:
        return lines
    text = "\n".join(lines)
    fields = r"(?:\n(?!stream |client )[^\n]*[^\n.])*"
    page = rf"(content-length: )\d+({fields}\n *cache-control: no-cache{fields}\n *content-type: text/html{fields}\n(?:\.|stream))"
    text = re.sub(page, r"\1of a built-in page\2", text)
    # A 204 has no length; Harrier leaves it out over HTTP/2.
    text = re.sub(r"(  :status: 204(?:\n  [^\n]*)*?)\n  content-length: [^\n]*", r"\1", text)
    text = re.sub(r"(\n\.\n\| )<html><body><h1>\d+ .*", r"\1a built-in page", text)
    return built_in(text.split("\n"))


# Lengths of the built-in pages of both programs, which a HEAD is told without the page.
PAGES = {(90, 89), (112, 96), (93, 79), (83, 84), (147, 147), (110, 93), (106, 96), (116, 113), (117, 94), (105, 113), (97, 101), (107, 99), (107, 107)}
LENGTHS = {str(length) for pair in PAGES for length in pair}


def bodiless(rest):
    """Whether no body follows the rest of a head."""
    behind = re.sub(r"(?s)^.*?(?:^\.\n|(?=^stream ))", "", "\n".join(rest) + "\n", count=1, flags=re.M)
    return not re.match(r"body |stream \d+ DATA ", behind)


def built_in(lines):
    """The texts of built-in pages are each program's own: their length and words are passed over."""
    for at, line in enumerate(lines):
        told = re.match(r"( *content-length: )(\d+)$", line, re.I)
        if told and told[2] in LENGTHS and bodiless(lines[at:]):
            lines[at] = told[1] + "of a built-in page"
        # A page that a body quotes with its head.
        lines[at] = line = re.sub(r"^body \d+(: HTTP/1\.1 \d{3} .*content-length: )\d+(.*<html><body><h1>\d+ ).*", r"body\1N\2", line)
        if re.match(r"body \d+: <html><body><h1>\d+ ", line):
            lines[at] = "body: a built-in page"
            for back in range(at - 1, -1, -1):
                if re.match(r"content-length: ", lines[back], re.I):
                    lines[back] = "content-length: of a built-in page"
                    break
        line = re.match(r"stream \d+ DATA <html><body><h1>\d+ ", line)
        if line:
            lines[at] = line[0]
            for back in range(at - 1, -1, -1):
                if re.match(r"  content-length: ", lines[back], re.I):
                    lines[back] = "  content-length: of a built-in page"
                    break
    return lines


def without_trailers_of(lines, heads):
    """Nor has one to HEAD, which HAProxy sends where a rule made another method of it."""
    text = "\n".join(lines)
    for number in heads:
        text = re.sub(rf"(stream {number} HEADERS\n  :status: [2-5]\d\d\n(?:  [^\n]*\n)*)stream {number} HEADERS\n(?:  [^:\n][^\n]*\n)+", r"\1", text)
    return text.split("\n") if heads and lines else lines


HOP = re.compile(r" *(connection|transfer-encoding|host|cookie|:\w+): ")


def hops(lines):
    """The fields that each side of a proxy makes anew stand at the end of a head, wherever a program puts them."""
    out, kept = [], []
    for line in lines:
        if line == ".":
            out += sorted(kept)
            kept = []
        (kept if HOP.match(line) else out).append(line)
    return out + sorted(kept)


# A response without content has no trailers either (RFC 9110 section 6.5); HAProxy sends them over HTTP/2, and of a long body the rest.
BARE = re.compile(r"(stream (\d+) HEADERS\n  :status: (?:204|304)\n(?:  [^\n]*\n)*)(?:stream \2 DATA [^\n]*\n|stream \2 HEADERS\n(?:  [^:\n][^\n]*\n)+)+")


def without_trailers(lines):
    return BARE.sub(r"\1", "\n".join(lines)).split("\n") if any("HEADERS" in line for line in lines) else lines


def sink(line):
    """The syslog server that a line came to, where that is told."""
    found = re.match(r"l\d+ ", line)
    return found[0] if found else ""


def keyed(record):
    out = {}
    for step, channel, lines in record:
        lines = masks.channel(channel, lines)
        # Ports of origins in commands are other ones in each run.
        channel = re.sub(r"^(cli .*(?: port |:))\d{4,5}\b", r"\1P", channel)
        if channel.startswith("origin"):
            lines = hops(lines)
        lines = without_trailers(pages([masked(channel, line) for line in lines if not dropped(channel, line)]))
        if lines:
            out.setdefault((step, channel), []).extend(lines)
    # What comes to one socket before what comes to another says nothing.
    return {key: sorted(lines, key=sink) if key[1] == "log" else lines for key, lines in out.items()}


def unstable(one, two):
    """Places in which one program differs from itself."""
    first, second = keyed(one), keyed(two)
    return {key for key in set(first) | set(second) if first.get(key) != second.get(key)}


# HAProxy keeps no request line for lines that `log-steps` has written later than with the request.
STEPS = re.compile(r'"(<BADREQ>|[^"]* HTTP/\d\.\d|[A-Z]+ /[^"]*)"')
# The same where a format shows a part of it.
STEPS_VERSION = re.compile(r'(?<= )"?(<BADREQ>|HTTP/\d\.\d)"?(?= |$)')
STEPS_METHOD = re.compile(r'(?<= )"?(<BADREQ>|GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|FOO)"?(?= |$)')
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
    if any(line.split() == ["option", "nolinger"] for line in case["config"]) and any(re.match(r"    bind .* ssl ", line) for line in case["config"]):
        # Data over TLS that broke off Harrier does not end as if they were whole; HAProxy says goodbye before it resets the client.
        record = {key: [re.sub(r"^\((closed|reset)\)$", "(ended)", l) for l in lines] if key[1].startswith("client ") else lines for key, lines in record.items()}
    if "    disabled" in case["config"]:
        record = {key: lines for key, lines in record.items() if not UNFINISHED.match(key[1])}
    if any("switch-mode http" in line for line in case["config"]):
        record = {key: [GAUGES.sub("GAUGES", l) for l in lines if not MISLED.match(l)] for key, lines in record.items()}
    if any(origin.get("kind") == "fcgi" for origin in case.get("origins", {}).values()):
        # A response without content has no length (RFC 9110, section 8.6); HAProxy counts what FastCGI said.
        record = {key: unmeasured(lines) if key[1].startswith("client ") else lines for key, lines in record.items()}
        # It tells an application to abort what it never asked for: a request that has no parameters.
        record = {key: [] if key[1].startswith("origin php#") and lines[:1] == ["abort"] else lines for key, lines in record.items()}
        if any(script[:1] == ["fcgi"] and ":" not in script[1] and script[3] == "close" for ops in case["steps"] for op in ops if op[0] == "origin" for scripts in op[1] for script in scripts):
            # Nor is it the answer alone that it counts where one that is none ends with the connection.
            record = {key: [l for l in lines if not re.match(r"bfcgi/\S+ eresp=", l)] if "show stat" in key[1] else lines for key, lines in record.items()}
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
        record = {key: [l for l in lines if not RETRIED.match(l)] for key, lines in record.items()}
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
    if any(re.match(r"\s+(error-)?log-format .*%(\{[^}]*\})?\[status\b", line) for line in case["config"]):
        # `status` is not there in some lines of HAProxy.
        record = {key: [STATUS.sub("STATUS", l) for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(re.match(r"\s+http-after-response do-log\b", line) for line in case["config"]):
        # Whether a server has its place back when a client left is a matter of chance to HAProxy.
        record = {key: [GAUGES.sub("GAUGES", l) if LEFT.search(l) else l for l in lines] if key[1] == "log" else lines for key, lines in record.items()}
    if any(op[0] == "send" and UPLOADS.search(op[2]) for ops in case["steps"] for op in ops) and any(op[0] == "fill" for ops in case["steps"] for op in ops):
        # A page of statistics that answers before an upload is over counts in HAProxy like a server that left.
        record = {key: [l for l in lines if not UNREAD.match(by_column(l))] if "show stat" in key[1] else lines for key, lines in record.items()}
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


STATUS = re.compile(r"(?<= )(-|-?[1-5]\d\d(?:-x)?)(?= |$)")
PACKED = re.compile(r"\S+ comp_(in|rsp|byp)=|CompressBps(In|Out): ")
LEFT = re.compile(r" C[A-Z]\S\S ")
UPLOADS = re.compile(r"(?:POST|PUT|PATCH) /[a-z/]*stats\b[^\r]*\r\n(?:[^\r]+\r\n)*Content-Length: \d{5}")
UNREAD = re.compile(r"\S+/BACKEND (eresp|srv_abrt)=")
HANDSHAKES = re.compile(r"\S+/(?!FRONTEND)\S+ ssl_failed_handshake=")


ANSWERED = re.compile(r"HTTP/1\.\d [2-5]\d\d|\((closed|reset|ended)\)$")


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


FAREWELLS = re.compile(r"\S+/\S+ h2_goaway_resp=")
RESUMED = re.compile(r"\S+/(?!FRONTEND)\S+ ssl_(sess|reused_sess)=|SslBackend(Max)?KeyRate: ")


def hosts_of(op):
    """The hosts that an operation asks for."""
    if op[0] == "send":
        return re.findall(r"(?i)\r\nhost: ([^\r]*)", op[2])
    return [value for name, value in op[3] if name == ":authority"] if op[0] == "stream" else []


# Rules by which a response is given up that may still be on its way.
REFUSES = re.compile(r"    http-response (deny|return|redirect|silent-drop)|    tcp-response ")


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


# A connection of HTTP/2 that HAProxy ends because more of a request came after the stream was reset: what follows on it has no match.
LATE = re.compile(r"GOAWAY last=\d+ code=5$")
ENDS = re.compile(r"\((closed|reset)\)$|GOAWAY last=\d+ code=0$|\(ended\)$")


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


def places_of_502(config):
    """The addresses that stand for a 502 (`errorloc`)."""
    found = (re.match(r"\s+errorloc(?:302|303)? 502 (\S+)", line) for line in config)
    return [" *location: " + re.escape(place[1]) + "$" for place in found if place]


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
    # A path without a slash, which HAProxy takes for more of the host's name.
    steps += [step for step, channel, lines in record if channel.startswith("origin ") and any(re.match(r"  :authority: [^?]*\?", line) for line in lines)]
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
    if any(re.match(r"\s+log-steps .*\b(accept|any)\b", line) for line in case["config"]) and any(re.match(r"\s+log-format .*%(\{[^}]*\})?\[status\b", line) for line in case["config"]):
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
    steps += pathless(record)
    idle = laid_up(case["config"])
    if idle:
        ready = re.compile(rf"(enable server|set server) \S+/(?:{'|'.join(sorted(idle))})( state (ready|drain))?$")
        steps += [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "cli" and ready.search(op[1]) for op in ops)]
    steps += hollow(record, case)
    steps += cut_twice(case)
    steps += lost(record, case)
    if any(channel == "end" and any(re.match(r"exit -(6|11) early", line) for line in lines) for _, channel, lines in record):
        # HAProxy 3.5-dev5 crashed in the last step that it has.
        steps.append(max((step for step, _, _ in record if 0 < step < 1000), default=1))
    if unreachable(case):
        unreached = re.compile("|".join([UNREACHED.pattern, *places_of_502(case["config"])]))
        steps += [step for step, channel, lines in record if channel.startswith("client") and any(map(unreached.match, lines))]
    steps += unended(record, case)
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
LOST = re.compile(r"\s+(http-response (return|deny|tarpit)|http-error) .* hdr \S+ '[^']*%(\{[^}]*\})?\[(res\.|status|shdr|scook|server_status)"
                  r"|\s+http-response redirect .* set-cookie-fmt '[^']*%(\{[^}]*\})?\[(res\.|status|shdr|scook)")


def lost(record, case):
    """The steps in which HAProxy lost an answer: where such a field is evaluated a client gets nothing, or 500."""
    if any(map(LOST.match, case["config"])):
        for step, channel, lines in record:
            nothing = any(GIVEN_UP.match(l) for l in lines) and not any(re.match(r"(HTTP/\d\.\d|  :status:) [2-9]", l) for l in lines)
            if channel.startswith("client ") and (nothing or any("<h1>500 " in l for l in lines)):
                yield step


def slept(record, case):
    """The steps in which HAProxy ends a `wait-for-body` behind an action of a script that slept as soon as it begins."""
    config = "\n".join(case["config"])
    if re.search(r"http-request lua\.", config) and "http-request wait-for-body" in config:
        yield from (step for step, channel, lines in record if channel == "log" and any(" -1/-1/-1/-1/" in l and " 408 " in l and " cR-- " in l for l in lines))


def unended(record, case):
    """The steps in which HAProxy answers a request for a server with `redir` and then never ends it: streams that have a filter."""
    targets = [found[1] for line in case["config"] for found in re.finditer(r"\s+(?:default-)?server.* redir (\S+)", line)]
    if targets and any(re.match(r"\s+(filter|compression) ", line) for line in case["config"]):
        told = re.compile("(?i) *location: (?:" + "|".join(map(re.escape, targets)) + ")")
        yield from (step for step, channel, lines in record if channel.startswith("client ") and any(map(told.match, lines)))


def unconnected(record, case):
    """The steps in which HAProxy waits for an answer of a server that never took the connection: with `proto` it takes it for connected at
    once, and `timeout connect` does not count. Here only the kernel of a server with `tcp-md5sig` takes none."""
    mute = [line.split()[1] for line in case["config"] if re.match(r"\s+server .* tcp-md5sig ", line) and re.search(r" proto (h2|fcgi)\b", line)]
    if mute:
        waited = re.compile(r".*/(?:" + "|".join(map(re.escape, mute)) + r") \S+/-1/\S+ 504 .* sH")
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


# The head of a request without a body that says how its body is packed.
HOLLOW = re.compile(r"(?m)^(?:(?:GET|HEAD|DELETE|OPTIONS) .*\n(?:[a-z].*\n)*|  :method: (?:GET|HEAD|DELETE|OPTIONS)\n(?:  .*\n)*  )content-encoding: |^  CONTENT_LENGTH=0\n(?:  .*\n)*  HTTP_CONTENT_ENCODING=")


# Rules that end a connection of TCP when its server is reached.
SHUTS = re.compile(r"\s+tcp-response content (reject|close|silent-drop)\b")


def hollow(record, case):
    """The steps in which HAProxy packs the body of a request that has none."""
    if any(re.match(r"\s+compression algo-req ", line) for line in case["config"]):
        bare = lambda lines: HOLLOW.search("\n".join(lines)) or {"content-encoding: gzip", "chunked 0: "} <= {*lines} or {"  CONTENT_LENGTH=0", "  HTTP_CONTENT_ENCODING=gzip"} <= {*lines}
        yield from (step for step, channel, lines in record if channel.startswith("origin ") and bare(lines))


def headless(record):
    """The steps in which a stream of HTTP/2 has data and never had fields."""
    known = set()
    for step, channel, lines in record:
        streams = [re.match(r"stream (\d+) (HEADERS|DATA)", line) for line in lines if channel.startswith("client ")]
        known |= {(channel, found[1]) for found in streams if found and found[2] == "HEADERS"}
        if any(found and (channel, found[1]) not in known for found in streams):
            yield step


def pathless(record):
    """The steps in which HAProxy resets a stream to a server before its head: a rule left a request no path, and it answers 502."""
    begun = set()
    for step, channel, lines in record:
        if channel.startswith("origin "):
            begun |= {(channel, line.split()[1]) for line in lines if re.match(r"stream \d+ HEADERS", line)}
            if any(re.match(r"stream \d+ RST 2$", line) and (channel, line.split()[1]) not in begun for line in lines):
                yield step


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
    out, going = {}, set()
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
            if any(op[:2] == ["send", name] and " HTTP/1.0\r\n" in op[2] for op in about):
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
            lines = [line for line in untold(lines) if line != "(ended)"]
        elif channel.startswith("origin ") and ((step, name.partition("#")[0]) in closing or taken_back(steps[:max(step, 0)])):
            lines = [line for line in lines if line != "(ended)"]
        elif channel == "wait" and dropped:
            lines = []
        if lines:
            out[step, channel] = lines
    return out


def taken_back(steps):
    """The clients of HTTP/2 that took a request back: HAProxy keeps such a stream for a while, with its client and its server."""
    return {op[1] for ops in steps for op in ops if op[0] == "stream" and op[-1] == "rst8"}


def untold(lines):
    """A connection of HTTP/2 to a server that ends takes its streams along, whether or not they are told first."""
    told = re.compile(r"stream \d+ (RST of a request that ends early|over)$")
    return [line for line in lines if not told.match(line)] if "(ended)" in lines else lines


# The connections of process, frontend, backend and server in a log line, before the retries.
GAUGES = re.compile(r"(?<= )\d+/\d+/\d+/\d+(?=/\+?\d+ \d+/\d+( |$))")


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


def without_maxima(side):
    return {key: [l for l in lines if not MAXIMA.match(l)] if "show" in key[1] else lines for key, lines in side.items()}


def counted(side, steps, case):
    """Log lines without the numbers of connections where these follow from a matter of time: around the end of an idle connection, and
    behind a request that its client took back, whose stream HAProxy may keep."""
    back = [at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[-1] == "rst8" for op in ops)]
    loose = lambda step: step in steps or step >= min(back, default=1 << 30) or step == 1000 and bool(steps or back)
    return {key: [GAUGES.sub("GAUGES", line) for line in lines] if (key[1] == "log" or "show events" in key[1]) and loose(key[0]) else lines for key, lines in side.items()}


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
    """The step in which another server has its turn after a change of weight at run time: what follows goes other ways."""
    weighs = lambda op: op[0] == "cli" and re.search(r"set (weight|server \S+ weight) ", op[1])
    changed = min((at + 1 for at, ops in enumerate(case["steps"]) if any(map(weighs, ops))), default=None)
    if changed is None or not any(line.split()[:2] == ["balance", "roundrobin"] for line in case["config"]):
        return 1 << 30
    for key in sorted({*first} & {*second}):
        lines = [[SERVED.sub(r"\1SERVER", line) for line in side[key]] for side in (first, second)]
        if key[1] == "log" and key[0] > changed and first[key] != second[key] and lines[0] == lines[1]:
            return key[0]
    return 1 << 30


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
    connections, of which it may have closed one for that, or made one."""
    first = min((at + 1 for at, ops in enumerate(case["steps"]) if any(op[0] == "stream" and op[-1] == "rst8" for op in ops)), default=1 << 30)
    out = {}
    for (step, channel), lines in sorted(side.items()):
        if step >= first and channel.startswith("origin "):
            channel, lines = channel.partition("#")[0], [line for line in lines if line != "(ended)"]
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


def held(case, *sides):
    """Without heads of requests that HAProxy keeps back behind an attempt in vain (for 0.2 s, as MSG_MORE does) while more of them is to come,
    where the client leaves meanwhile; and of those whose client left in a `pause`, which HAProxy sees or overlooks by chance."""
    line = LEFT_IN_A_PAUSE if any(re.match(r"\s+http-request pause ", line) for line in case["config"]) else LEFT_RETRIED
    left = {key[0] for side in sides for key, lines in side.items() if key[1] == "log" and any(map(line.search, lines))}
    for side in sides:
        for key in [key for key in side if key[0] in left and key[1].startswith("origin ")]:
            side[key] = [line for line in side[key] if line.startswith(("| ", "("))]
            if not side[key]:
                del side[key]
    return sides


# A session of TCP that a rule ended before anything of the server's went to the client, and one that never had a stream.
TURNED_AWAY = re.compile(r" \S+/\S+ (?:-?\d+|T)/(?:-?\d+|T)/\+?(?:-?\d+|T) \+?0 (?:PD|PC|PR|--) ")
NO_STREAM = re.compile(r"\] \S+/\S+: Success$")


def turned_away(case, *sides):
    """Without what is a race where a rule ends a session that has just begun: whether its server has been sent the client's first bytes by
    then (`tcp-response content reject` and `close`), and whether the client that it drops has (`tcp-request session reject`)."""
    late = any(re.match(r"\s+tcp-response content (reject|close|silent-drop)\b", line) for line in case["config"])
    # Who has sent nothing yet that went on has no line with `dontlognull`.
    null = any(line.split() == ["option", "dontlognull"] for line in case["config"])
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
            if key[0] in ended and key[1].startswith("origin "):
                side[key] = [line for line in side[key] if not re.match(r"\| |\((closed|reset|ended)\)$", line) or line.startswith(("| PROXY ", "| \\r\\n\\r\\n\\x00"))]
            elif key[0] in ended and key[1] == "log" and null:
                side[key] = [line for line in side[key] if not TURNED_AWAY.search(line)]
            elif key[0] in early and key[1].startswith("client "):
                side[key] = [re.sub(r"^\((closed|reset)\)$", "(ended)", line) for line in side[key]]
    return tuple({key: lines for key, lines in side.items() if lines} for side in sides)


def in_pieces(case):
    """The steps in which an origin sends a response in several pieces."""
    pieces = lambda script: sum(op[0] in ("send", "fill") for op in script) > 1
    return {at + 1 for at, ops in enumerate(case["steps"]) for op in ops if op[0] == "origin" and any(map(pieces, op[1]))}


def refused_by_half(case, *sides):
    """The step behind one in which a response that came in pieces was refused, and one program alone had all of it and kept the connection:
    others follow on it, or on new ones."""
    if not any(map(REFUSES.match, case["config"])):
        return 1 << 30
    ends = lambda side, step: sorted(key[1] for key, lines in side.items() if key[0] == step and key[1].startswith("origin ") and "(ended)" in lines)
    return min((step + 1 for step in in_pieces(case) if ends(sides[0], step) != ends(sides[1], step)), default=1 << 30)


def compare(theirs, ours, case, shaky=(), deep=False):
    """What differs, up to the end of the first step that does; `deep` goes on behind it."""
    end, late = parted(theirs, case), hasty(case)
    first, second = (of_case(side, case) for side in turned_away(case, *held(case, *unspoken(keyed(theirs), keyed(ours)))))
    end = min(end, refused_by_half(case, keyed(theirs), keyed(ours)))
    first, second = below_zero(first, second)
    ends = idle_ends(first, case) | idle_ends(second, case)
    if leaving(first) != leaving(second):
        first, second = (without_maxima(side) for side in (first, second))
    first, second = (timely(counted(side, ends, case), case) for side in (first, second))
    first, second = ({key: lines for key, lines in side.items() if key[0] < end and key[0] not in late} for side in (first, second))
    turn = turned(first, second, case)
    first, second = ({key: lines for key, lines in side.items() if key[0] < turn} for side in (first, second))
    if late:
        first, second = numbered(without_numbers(first, case)), numbered(without_numbers(second, case))
    first, second = rested(first, second)
    hurried = {*unheard(first, second, case), *unfinished(first, second, case)}
    first, second = ({key: lines for key, lines in side.items() if key[0] not in hurried} for side in (first, second))
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
