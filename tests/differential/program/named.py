"""What is said on a channel, without what the programs mean to say differently whatever the program: named rules, each with its reason
in docs/differences.md. A line whose masked forms agree is explained by the rule; what no rule explains is a finding.
"""
import re

import masks


# name: (channel, pattern that is masked on both sides). A line whose masked forms agree is explained by the rule.
MASKS = [
    # Whether an origin sees FIN or RST follows from what the proxy had left unread when it gave up.
    # The alert that a TLS peer is sent when its certificate is refused.
    ("alert", r"origin", r"^\(tls: .*(ALERT|alert).*\)$", "(tls: alert)"),
    ("ends", r"origin", r"^\((closed|reset)\)$", "(ended)"),
    ("need", r".*show servers conn", r"^(\S+/\S+ \d+/\d+ \S+ \S+ - \d+ \d+) \d+ \d+ \d+ \d+ \d+ \d+ ", r"\1 USED MAX NEED IDLE UNSAFE SAFE "),
    # Of the handshakes of the last second.
    ("rates", r".*show info", r"^(SslFrontendSessionReuse_pct): \d+", r"\1: N"),
    ("slim", r"final show stat|cli show stat", r"(?<= )slim=\d+", "slim=N"),
    ("slim", r".*show stat", r"(\.slim\.1:(?:CLPV|ConfigLimitProcess):u32:)\d+", r"\1N"),
    # Ports of a binary PROXY header, where the origin shows its bytes.
    ("ports", r"origin", r"(\\r\\n\\r\\n\\x00\\r\\nQUIT\\n!(?:\\x11\\x00(?:CHAR){9}|!\\x00(?:CHAR){33}))(?:CHAR){4}".replace("CHAR", r"\\x..|[^\\]|\\[rnt\\]"), r"\1 PORTS "),
    # Whether connect() has returned when the proxy resets a connection that it does not want.
    ("ends", r"client", r"^cannot connect: Connection reset by peer$", "(reset)"),
    # How each program describes its figures.
    ("help", r".*show (info|stat).* desc", r':".*"$', ""),
    # What HPACK makes of a head: where an origin does not speak HTTP/2 it sees nothing but bytes.
    ("hpack", r"origin", r"^\| PRI \* HTTP/2\.0.*$", "| HTTP/2"),
    # The library behind TLS.
    # Where an origin does not speak TLS it sees the bytes of a ClientHello.
    ("library", r"origin", r"^\| \\x16\\x03\\x01.*$", "| ClientHello"),
    ("library", r"cli show ssl ca-file", r"^@system-ca - \d+ cert.*", "@system-ca"),
    ("library", r"cli show ssl providers", r"^\t- .*", "\t- a provider"),
    # What comes of a stream after its reset HAProxy answers with one more.
    ("late-frames", r"client", r"^(stream \d+ RST) [015]$", r"\1 over"),
    # An upload that its client cut short is to HAProxy an error of the protocol.
    ("cut-upload", r"origin", r"^(stream \d+ RST) [18]$", r"\1 of a request that ends early"),
    # A number beyond 32 bits, of which `hdr_val` and its kin keep the last 32 in HAProxy.
    ("overflow", r"client|origin|log", r"(1410065407|(?<!\d)(2820130814|19999999998))(?!\d)|0000000[02]540BE3FF", "9999999999"),
    ("overflow", r"client|origin|log", r"(?<!\d)(1410065397|1410065402)(?!\d)|(?<!\d)9999999994(?!\d)", "9999999989"),
    # A third of it, in front of a number in hexadecimal digits, too.
    ("overflow", r"client|origin|log", r"(?<![0-9A-F])(470021802|3333333333)(?=0{6}|\D|$)", "3333333333"),
    # After a warning about a server's TLS HAProxy forgets which server it speaks of.
    ("tfo-label", r"check says|stderr", r"\[cfg:\d+\] : 'server(-template)? [^']*' : (server has tfo activated)", r"\2"),
    # The time in all has no end yet when a line is written before it: negative in HAProxy.
    ("steps", r"log", r"(\] \S+ \S+/\S+ \S+/)\+?(?:T|-\d+)(?= -?\d+ )", r"\1T"),
    # What HAProxy says behind a command that it has refused, whatever it is about.
    ("said-before", r"stderr", r"(?<=\(PID\) : )CLI : (?=(?:backend|proxy) '\S+' has no server available!|Lua function ')", ""),
    # The host of a CONNECT whose target a rule made a URL: HAProxy takes all of it for the host.
    ("connect-host", r"origin", r"^(host|  :authority): https?://([^/]*)(?:/.*)?$", r"\1: \2"),
    # The goodbye of TLS to a client that has left, right behind an answer: whether that has brought a reset by then is a matter of time.
    ("goodbye", r"log", r'^(?!.* unix:\d)(.*~ .* CH-- .*" )57(?=/0{16}/)', r"\g<1>0"),
    # HAProxy counts an error with each stream that ends, though nothing failed; what failed has its own `st`.
    ("spoe-errors", r"log", r"(SPOE: .* st=\d+ T) \d+/(?=\d+$)", r"\1 ERRORS/"),
    # The reason that a script gave its reply, which HAProxy 3.5-dev5 does not keep.
    ("reason", r"client", r"^(HTTP/1\.[01]) 418 (?:Teapot|I'm a teapot)$", r"\1 418 A teapot"),
    # What had come before an exchange was broken off is a matter of time.
    ("broken-off", r"log", r"(?<= [1-5]\d\d) \+?\d+(?= \S+ \S+ (?!----)\S\S\S\S )", " BYTES"),
    # A client of TCP that ends together with its connection, before a server is reached: HAProxy says so or not.
    ("left", r"log", r"( T/-1/\+?T \+?0) (?:--|CC) ", r"\1 LEFT "),
    # A 2xx to CONNECT has no length (RFC 9110 section 8.6), which HAProxy leaves in it.
    ("connect-length", r"log", r'(?<= 2\d\d) \+?\d+(?= .* "CONNECT )', " BYTES"),
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


UNNAMED = re.compile(r"GOAWAY last=2147483647 code=([1-9]\d*)$")


def unnamed(theirs, ours):
    """Without the last stream that an error of a connection names which was asked to go before: HAProxy goes on to name none."""
    codes = {(key, found[1]) for key, lines in theirs.items() if key[1].startswith("client ") for found in map(UNNAMED.match, lines) if found}
    if not codes:
        return theirs, ours
    said = re.compile(r"GOAWAY last=\d+ (code=([1-9]\d*))$")
    plain = lambda key, line: f"GOAWAY {found[1]}" if (found := said.match(line)) and (key, found[2]) in codes else line
    return tuple({key: [plain(key, line) for line in lines] for key, lines in side.items()} for side in (theirs, ours))


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
