#!/usr/bin/env python3
"""Every action in every rule set, with requests of every kind and origins of every manner: what two programs make of them.

    rules.py --binary target/quick/harrier                 compare with the recorded answers (answers.json.gz)
    rules.py --binary HARRIER --oracle HAPROXY             compare with a program that is at hand
    rules.py --record --oracle HAPROXY                     ask the oracle and write answers.json.gz
    rules.py --oracle HAPROXY --ask --only REGEX           show what a program answers

cases.py says which rules, traffic.py which requests and origins. Compared is what the client and the origin get, how the client's
connection ends, the log lines, every counter of the three proxies' lines in `show stat` that moves, and the table, map and list that
rules write to. Differences that are meant stand in known.txt with their reason; a known difference that has gone is a failure.
"""
import os, re, socket, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import cases, net, traffic

CODES = (200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 425, 429, 431, 500, 501, 502, 503, 504)
FORMAT = ("%ft %b/%s %ci:%cp %fi:%fp %si:%sp %ST %B %U %tsc %CC %CS {%hr} {%hs} %rc %ac/%fc/%bc/%sc %sq/%bq t=%Th/%Ti/%TR/%Tw/%Tc/%Tr/%Td/%Ta/%Tt "
          "v=%[var(txn.v)]/%[var(sess.v)] sc=%[sc_get_gpc(0,0)]/%[sc_get_gpt(0,0)]/%[sc_conn_cnt(0)] rule=%[last_rule_line] ent=%[last_entity]/%[waiting_entity] "
          "err=%[fc_err_name]/%[bc_err_name] %HM %HU %HV %{+Q}r")
HEAD = """global
 nbthread 1
 stats socket @d@/admin level admin
 log @d@/log local0
 expose-experimental-directives
log-profile mine
 on any format "%OG %ci %ST"
http-errors pages
@pages@
http-errors other
 errorfile 403 @d@/e404
 errorfile 429 @d@/e429
 errorfile 502 @d@/e503
 errorfile 200 @d@/e200
 errorfile 500 @d@/e410
defaults base
 mode http
 log global
 errorfiles pages
 retries 1
 timeout client 400ms
 timeout http-request 150ms
 timeout http-keep-alive 400ms
 timeout connect 30ms
 timeout server 400ms
 timeout tunnel 400ms
 timeout tarpit 30ms
 log-format '@format@'
 error-log-format 'ERROR @format@'
backend nothing from base
"""
FIGURES = re.compile("scur$|(?!.*(cur|max|time|rate|last|weight|check|chk|act|bck|pid|iid|sid|type|limit|idle|used|safe|need|agg|open|mode|lbtot$|slim|"
                     "uweight|h1_spliced|algo|resbout|reqbin|reqbout|resbin|throttle|downtime|hanafail|track|uptime|eweight|tot_mem))")


def passed_over(out, spec, kind, manner):
    """The answer without what two runs of one program need not have in common, or what docs/differences.md tells of."""
    drop = lambda pattern: out.update(moved={key: value for key, value in out["moved"].items() if not re.search(pattern, key)})
    each = lambda pattern, text: out.update(log=[re.sub(pattern, text, line) for line in out["log"]])
    if kind in traffic.SPLIT or manner in traffic.APART:
        # HAProxy counts data that pass through without a head twice.
        drop("h1_bytes_")
    if manner in ("reset", "cut"):
        # Whether the end is seen together with the data, or behind them, and counts as a failure: a matter of time, and twice in HAProxy.
        drop("eresp")
        if "table" in out:
            out["table"] = [re.sub("http_fail_cnt=[0-9]+", "http_fail_cnt=?", line) for line in out["table"]]
    if "silent-drop" in spec or re.search("tcp-request (connection|session) reject", spec):
        # What is sent to nobody, and when: `ends` of docs/differences.md.
        out["end"] = "?"
        out["client"] = [line for line in out["client"] if not line.startswith("goaway")]
        drop("h2_settings_rcvd|h2_goaway_resp")
    if kind == "h2-two":
        # Which of two streams ends first.
        each(r"( \d+/\d+)/\d+/\d+ ", r"\1/?/? ")
        each(r"sc=\S+", "sc=?")
        for key in ("client", "origin"):
            out[key].sort(key=str)
    if "do-log" in spec:
        # Durations up to a moment that has not come, which HAProxy takes from whatever it last measured; and who counts by then.
        each(r"(t=(?:[^/ ]+/){6})\S+", r"\1?/?/?" if "content" in spec or "http-" in spec else "t=?")
    if "do-log" in spec or "logasap" in spec:
        each(r"( \d+/\d+)/\d+/\d+ ", r"\1/?/? ")
    if "expect-" in spec:
        # Whether time that went by in a header that failed is idle time.
        each(r"t=\S+", "t=?")
    if re.search("tcp-response content (close|reject)", spec):
        # What the server had said by then.
        drop("h1_bytes_")
    if manner in ("reset", "cut", "close", "silent"):
        # Who ends itself sees no end, or does.
        out["origin"] = [[step for step in one if step != "end"] for one in out["origin"]]
    if kind in traffic.TWO:
        # `204-length` and `late-frames` of docs/differences.md.
        out["client"] = [re.sub("(:status: 204)(.*)\ncontent-length: \\d+", r"\1\2", line, flags=re.S) for line in out["client"]]
        if kind in ("h2-late", "h2-connect"):
            out["client"] = [line for line in out["client"] if line != "1: reset 5"]
            drop("h2_rst_stream_resp")
        out["client"] = [line for line in out["client"] if not line.endswith("body b''")]
    # `pages` of docs/differences.md.
    out["client"] = re.sub("<html>.*?</html>\n*", "PAGE", "\r\n".join(out["client"]), flags=re.S).split("\r\n")
    out["log"].sort()
    return out


class Program(net.Program):
    def __init__(self, binary, patience, names):
        self.names = list(dict.fromkeys(cases.CASES[name][0] for name in names))
        super().__init__(binary, patience)

    def configuration(self):
        self.origin, self.ports = traffic.Origin(), {}
        for code in CODES:
            self.write(f"e{code}", f"HTTP/1.1 {code} Page\r\ncontent-length: 9\r\nx-page: yes\r\ncontent-type: text/plain\r\n\r\npage {code}\n")
        self.write("page", "a page %[src]")
        self.write("page.lf", "a page %[src]")
        lines = HEAD.replace("@pages@", "\n".join(f" errorfile {code} @d@/e{code}" for code in CODES)).replace("@format@", FORMAT).replace("@d@", self.dir).split("\n")
        for at, name in enumerate(self.names):
            lines += self.sections(at, cases.SPECS[name])
        self.config = lines
        return "\n".join(lines) + "\n"

    def write(self, name, text):
        with open(f"{self.dir}/{name}", "w") as file:
            file.write(text)

    def sections(self, at, spec):
        whose, inherited = spec.inherit
        fds = []
        for kind in "12":
            one = socket.socket()
            one.bind(("127.0.0.1", 0))
            one.listen(64)
            self.sockets.append(one)
            self.ports[at, kind] = one.getsockname()[1]
            fds.append(one.fileno())
        text = "\n".join(map(str, (*spec.front, *spec.back, *inherited)))
        near = lambda words: [" " + line for line in words]
        out = [f"defaults d{at:04} from base", *near(inherited)]
        out += [f"frontend f{at:04} from {f'd{at:04}' if whose == 'front' else 'base'}", f" bind fd@{fds[0]}", f" bind fd@{fds[1]} proto h2", *near(spec.front), f" default_backend b{at:04}"]
        out += [f"backend b{at:04} from {f'd{at:04}' if whose == 'back' else 'base'}", " stick-table type string len 20 size 100 expire 1m store gpc(3),gpt(3),conn_cnt,http_req_cnt,http_err_cnt,http_fail_cnt"]
        out += [*near(spec.back), f" server s {spec.server} pool-max-conn 0"]
        if "@b@.up" in text:
            out += [f"backend b{at:04}.up from base", " stick-table type ip size 100 expire 1m store bytes_in_rate(1s)"]
        if "@m@" in text or "@a@" in text:
            self.write(f"m{at:04}", "old 1\n")
            self.write(f"a{at:04}", "old\n")
        fill = {"@b@": f"b{at:04}", "@d@": self.dir, "@m@": f"{self.dir}/m{at:04}", "@a@": f"{self.dir}/a{at:04}", "@p@": str(self.origin.port)}
        if "@m@" in text:
            out.insert(out.index(f" default_backend b{at:04}"), " http-request set-var(txn.m) str(old),map(@m@)")
        if "@a@" in text:
            out.insert(out.index(f" default_backend b{at:04}"), " http-request set-var(txn.a) bool(1) if { str(old) -f @a@ }")
        return [re.sub("@[a-z]@", lambda found: fill[found.group()], line) for line in out]

    def run(self, name):
        spec, kind, manner = cases.CASES[name]
        at = self.names.index(spec)
        self.kept = [line for line in (f"table b{at:04}" if "sc" in spec or "track" in spec else "", f"map {self.dir}/m{at:04}" if "-map" in spec else "",
                                       f"acl {self.dir}/a{at:04}" if "-acl" in spec else "") if line]
        self.refresh(at)
        self.origin.prepare(manner)
        before = self.figures(at)
        client = traffic.Client(self.ports[at, "2" if kind in traffic.TWO else "1"], self.patience, 0.12 if "silent-drop" in spec and kind != "slow" else 0.5)
        got = client.two(kind) if kind in traffic.TWO else client.one(kind)
        client.close()
        after = self.at_rest(at)
        made = sum(value - before.get(key, 0) for key, value in after.items() if key.endswith("/BACKEND connect"))
        seen = self.origin.rest(0.5 * self.patience, made if manner != "refuse" else 0)
        lines = self.log_lines()
        mask = lambda text: self.masked(text, at, client.port)
        out = {"client": [mask(line) for line in got], "end": client.end, "origin": seen, "log": sorted(mask(line) for line in lines),
               "moved": {mask(key): value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}}
        for words in self.kept:
            kept = self.command("show " + words).strip().split("\n")
            out[words.split(" ")[0]] = sorted(re.sub("0x[0-9a-f]+:? |exp=[0-9]+ |shard=[0-9]+ ", "", line) for line in kept if not line.startswith("#"))
        return passed_over(out, spec, kind, manner)

    def refresh(self, at):
        for words in self.kept:
            kind, which = words.split(" ")
            self.command(f"clear {words}" + ("" if kind == "table" else f"; add {kind} {which} old" + (" 1" if kind == "map" else "")))

    def figures(self, at):
        return self.read_figures(FIGURES, f"show stat f{at:04} -1 -1;show stat b{at:04} -1 -1")

    def at_rest(self, at):
        """The figures when the streams have ended."""
        deadline = time.monotonic() + self.patience
        while True:
            figures = self.figures(at)
            busy = any(value for key, value in figures.items() if key.endswith(" scur"))
            if not busy or time.monotonic() > deadline:
                return figures
            time.sleep(0.002)

    def log_lines(self):
        out = []
        while line := self.lines(0.003 * self.patience, True):
            out += line
        return out

    def masked(self, text, at, port):
        text = re.sub(r"(?i)^(date: ).*|(\ndate: )[^\n]*", r"\1\2DATE", text)
        text = re.sub(r"rule=(\d+)", lambda found: f"rule=({self.config[int(found.group(1)) - 1].strip()})", text)
        text = re.sub(r"t=(\S+)", lambda found: "t=" + "/".join("-" if part == "-1" else "+" if part.lstrip("+").isdigit() else part for part in found.group(1).split("/")), text)
        text = re.sub(re.escape(self.dir) + r"/config:(\d+)", lambda found: f"({self.config[int(found.group(1)) - 1].strip()})", text).replace(self.dir, "DIR")
        for number, word in ((port, "CLIENT"), (self.ports[at, "1"], "PORT"), (self.ports[at, "2"], "PORT"), (self.origin.port, "ORIGIN")):
            text = re.sub(rf"\b{number}\b", word, text)
        return re.sub(rf"\b([bfma]){at:04}\b", r"\1", text)


if __name__ == "__main__":
    sys.exit(net.main(Program, cases.CASES, HERE, "answers.json.gz", lambda name: cases.CASES[name][0], 20))
