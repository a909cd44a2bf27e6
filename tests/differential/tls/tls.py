#!/usr/bin/env python3
"""TLS on two programs: what `-c` says of files and words, what handshakes look like from outside, what the `ssl` commands say.

    tls.py --binary target/quick/harrier          compare with the recorded answers (answers.json)
    tls.py --binary HARRIER --oracle HAPROXY      compare with a program that is at hand
    tls.py --record --oracle HAPROXY              ask the oracle and write answers.json
    tls.py --oracle HAPROXY --ask --only NAME     show what a program answers

table.txt holds the scenarios. `% words NAME` has a line a configuration: the place (`bind`, `server`, `global`, `list`, `store`, `use`) and
what stands there. `% run NAME` has a configuration (lines with `| `) and steps: commands of the runtime API, and what a client (`!c`) or an
origin (`!s`) made of openssl does. Files stand in files/ (make.py made them). Differences that are meant stand in known.txt with their
reason; a known difference that has gone is a failure.
"""
import argparse, atexit, concurrent.futures, contextlib, json, os, re, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
FRONT = "frontend f\n mode http\n timeout client 1s\n {}\n"
BACK = "backend b\n mode http\n timeout connect 1s\n timeout server 1s\n {}\n"
PLACES = {
    "bind": FRONT.format("bind unix@a.sock ssl {}"),
    "server": BACK.format("server s 127.0.0.1:1 {}"),
    "default": BACK.format("default-server {}\n server s 127.0.0.1:1 ssl"),
    "global": "global\n {}\n" + FRONT.format("bind unix@a.sock ssl crt one.pem") + BACK.format("server s 127.0.0.1:1 ssl verify none"),
    "list": FRONT.format("bind unix@a.sock ssl crt-list x.list"),
    "store": "crt-store\n {}\n" + FRONT.format("bind unix@a.sock ssl crt one.pem"),
    "named": "crt-store web\n {}\n" + FRONT.format("bind unix@a.sock ssl crt @web/one"),
    "use": FRONT.format("bind unix@a.sock ssl\n ssl-f-use {}"),
    "front": FRONT.format("bind unix@a.sock ssl crt one.pem\n {}"),
    "back": BACK.format("server s 127.0.0.1:1 ssl verify none\n {}"),
    "whole": "{}\n",
}


def scenarios():
    """Name, kind, configuration and steps of each scenario."""
    out = []
    for line in open(os.path.join(HERE, "table.txt"), encoding="utf-8"):
        line = line.rstrip("\n")
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("% "):
            _, kind, name = line.split(" ")
            out.append((name, kind, [], []))
        elif line.startswith("| "):
            out[-1][2].append(line[2:])
        else:
            out[-1][3].append(line)
    return out


# ---------------------------------------------------------------- what is made alike

def alike(text):
    text = re.sub(r"3\.5-dev5-\w+-\d+|3\.5\.0", "VERSION", text)
    text = re.sub(r"0x[0-9a-f]+", "0xN", text).replace("..\n", ".\n").replace(".. Content", ". Content").replace(".sctl.sctl", ".sctl")
    text = re.sub(r"\.\.$", ".", text)
    # A NUL behind protocols, which is no part of what a list says.
    text = text.replace("\0", "")
    text = re.sub(r"@system-ca - \d+ ", "@system-ca - N ", text)
    text = re.sub(r"\[?\d\d/\w\w\w/20\d\d:[\d:.]+( \+0000)?\]?", "DATE", text)
    text = re.sub(r"\w\w\w [ \d]\d [\d:]+ 20(2[6-9]|3\d) GMT", "DATE", text)
    text = re.sub(r"\b20(2[6-9]|3\d)[-/]\d\d[-/]\d\d([ T]\S+)?", "DATE", text)
    return text


class Folders:
    """Folders with the files, each for one configuration at a time."""
    def __init__(self):
        self.free = []

    @contextlib.contextmanager
    def get(self):
        try:
            folder = self.free.pop()
        except IndexError:
            folder = tempfile.mkdtemp(prefix="tls")
            shutil.copytree(os.path.join(HERE, "files"), folder, dirs_exist_ok=True)
            atexit.register(shutil.rmtree, folder)
        try:
            yield folder
        finally:
            self.free.append(folder)


folders = Folders()


def verdict(program, place, words):
    """The exit code of `-c`, and what it says but for the closing words."""
    words = words.replace("\\n", "\n ")
    with folders.get() as files:
        if place == "list":
            with open(os.path.join(files, "x.list"), "w") as out:
                out.write(words.replace("\n ", "\n") + "\n")
        with open(os.path.join(files, "FILE"), "w") as out:
            out.write(PLACES[place].replace("{}", words))
        try:
            r = subprocess.run([program, "-c", "-f", "FILE"], capture_output=True, timeout=20, cwd=files, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "no end"
    out = [f"exit {r.returncode}"]
    for line in r.stderr.decode(errors="replace").split("\n"):
        line = re.sub(r"^\[(\w+)\] +\(\d+\) : ", r"\1 ", line.rstrip())
        if re.search(r"haproxy version is|path to executable|rror\(s\) found|Fatal errors|Warnings were|Automatically setting", line) or not line:
            continue
        # What Harrier shows of the line at fault: the line, and a mark under the word.
        if re.match(r" +\^+$", line) and out[-1].startswith("  "):
            out.pop()
            continue
        # What is accepted and without effect is told by Harrier alone (docs/differential.md, `no-effect`).
        if re.search(r"has no effect in Harrier|not available in Harrier's TLS", line):
            continue
        # HAProxy says some things twice, the second time without their level.
        if not (out and out[-1].split(" ", 1)[-1] == line):
            out.append(line)
    text = re.sub(r"[;,.]? ?[Dd]id you mean '.*?' maybe ?\?", "", "\n".join(out))
    return alike(text)


class Run:
    """A program with a configuration, its log, and openssl around it."""
    def __init__(self, program, lines):
        self.work = tempfile.mkdtemp(prefix="tls")
        shutil.copytree(os.path.join(HERE, "files"), self.work, dirs_exist_ok=True)
        self.origins, self.log = [], socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.bind(os.path.join(self.work, "log.sock"))
        self.resp = socket.create_server(("127.0.0.1", 0))
        text = "global\n stats socket unix@cli.sock level admin\n log unix@log.sock local0\n" if not any("global" == l for l in lines) else ""
        lines = [l.replace("LIST:", "") for l in lines]
        body, lists = [], {}
        for l in lines:
            if m := re.match(r"(\S+\.list) <<(.*)$", l):
                lists.setdefault(m[1], []).append(m[2])
            else:
                body.append(l)
        for name, rows in lists.items():
            with open(os.path.join(self.work, name), "w") as out:
                out.write("\n".join(rows) + "\n")
        with open(os.path.join(self.work, "FILE"), "w") as out:
            out.write(text + "\n".join(body) + "\n")
        self.said = open(os.path.join(self.work, "said"), "w+")
        self.proc = subprocess.Popen([program, "-db", "-f", "FILE"], cwd=self.work, stdout=self.said, stderr=self.said, stdin=subprocess.DEVNULL)
        for _ in range(400):
            if self.proc.poll() is not None:
                sys.exit(f"{program} does not start:\n{open(self.said.name).read()[-2500:]}")
            if "Pid" in self.ask("show info"):
                return
            time.sleep(0.02)

    def lines(self, wait):
        """Log lines that have come."""
        out = []
        while True:
            self.log.settimeout(wait if not out else 0.05)
            try:
                line = self.log.recv(65536).decode("latin-1").rstrip("\n\0")
            except OSError:
                return out
            line = re.sub(r"^<(\d+)>\S+ +\S+ \S+ \S+?\[\d+\]: ", r"<\1> ", line)
            line = re.sub(r" 200 [1-9]\d+ ", " 200 N ", line)
            line = re.sub(r"(\] \S+ \S+/\S+ )(\+?-?\d+(?:/\+?-?\d+)+)(?= )", lambda m: m[1] + re.sub(r"(?<![-\d])\d+", "T", m[2]), line)
            out.append("log " + re.sub(r"^(<\d+> )\S+:\d+ ", r"\1SRC ", line))

    def ask(self, command):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(8)
        try:
            link.connect(os.path.join(self.work, "cli.sock"))
            link.sendall(command.encode() + b"\n")
            out = b""
            while piece := link.recv(65536):
                out += piece
        except OSError as error:
            return f"failed: {error}"
        finally:
            link.close()
        return out.decode("latin-1")

    def client(self, words):
        """What a client of openssl sees: `SOCKET OPTIONS [/PATH]`."""
        words = words.split()
        path = words.pop() if words[-1].startswith("/") else "/"
        request = f"GET {path} HTTP/1.1\r\nHost: some.example\r\nConnection: close\r\n\r\n"
        command = ["openssl", "s_client", "-unix", words[0] + ".sock", "-ign_eof", *words[1:]]
        try:
            r = subprocess.run(command, cwd=self.work, input=request.encode(), capture_output=True, timeout=6)
            text = r.stdout.decode("latin-1") + r.stderr.decode("latin-1")
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode("latin-1") + "\n(no end)"
        return told(text)

    def origin(self, words):
        """Starts an origin: `NAME OPTIONS`, on a socket of that name; it ends with the run."""
        name, *options = words.split()
        path = os.path.join(self.work, name + ".sock")
        for old, proc, log in [o for o in self.origins if o[0] == name]:
            proc.kill(); proc.wait()
            os.path.exists(path) and os.unlink(path)
        log = open(os.path.join(self.work, name + ".log"), "w+")
        command = ["openssl", "s_server", "-unix", path, "-www", *options]
        proc = subprocess.Popen(command, cwd=self.work, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.origins = [o for o in self.origins if o[0] != name] + [(name, proc, log)]
        for _ in range(200):
            if "ACCEPT" in open(log.name).read() and os.path.exists(path):
                break
            time.sleep(0.02)
        return ""

    def step(self, line):
        if line.startswith("!c "):
            return self.client(line[3:]) + "".join("\n" + l for l in self.lines(0.4))
        if line.startswith("!s "):
            return self.origin(line[3:])
        if line.startswith("!until "):
            # `!until EXPRESSION COMMAND`: what an action behind the scenes makes of it.
            _, pattern, command = line.split(" ", 2)
            for _ in range(150):
                if re.search(pattern, answer := self.ask(command)):
                    break
                time.sleep(0.03)
            return answer
        if line == "!ssl":
            # What the statistics and `show info` count of TLS, but for rates.
            found = [l for l in self.ask("show stat typed").split("\n") if "ssl" in l.split(":")[0]]
            info = [l for l in self.ask("show info").split("\n") if re.match(r"(?!.*(Rate|_pct)).*Ssl", l)]
            return "\n".join(found + info)
        if line == "!said":
            return re.sub(r"\(\d+\)", "(PID)", open(self.said.name).read())
        command = line.replace("\\n", "\n")
        command = re.sub(r"<([\w./-]+)>", lambda m: open(os.path.join(self.work, m[1])).read().rstrip("\n"), command)
        return self.ask(command)

    def end(self):
        for _, proc, log in self.origins:
            proc.kill(); proc.wait(); log.close()
        self.proc.kill()
        self.proc.wait()
        self.said.close()
        self.log.close()
        self.resp.close()
        shutil.rmtree(self.work)


KEEP = re.compile(r"^ ?\d+ s:|^   i:|^New, |^Reused, |ALPN|Server Temp Key|Peer signature type|client certificate CA|^[CO] ?= ?|^OCSP response: no|Cert Status|"
                  r"alert|Early data was|no peer certificate|\(no end\)|errno|:error:")


def told(text):
    """Of what s_client writes the lines that tell of the server, and the response."""
    out = []
    for line in text.partition("HTTP/1.1 ")[0].split("\n"):
        if KEEP.search(line) and "lifetime" not in line:
            out.append(re.sub(r"^[0-9A-F]{8,}:error:[0-9A-F]+:", "error:", line.rstrip()).split(":../")[0])
    if "TLS session ticket:" in text:
        out.append("ticket")
    if m := re.search(r"HTTP/1\.1 (\d+.*?)\r\n(.*?)\r\n\r\n", text, re.S):
        size = re.search(r"content-length: (\d+)", m[2], re.I)
        body = text[m.end():][:int(size[1]) if size else 0]
        out += [m[1], body] if not body.startswith("<html") else [m[1]]
    return "\n".join(out)


def answers(program, scenario):
    """(label, answer) of each step of a scenario."""
    name, kind, lines, steps = scenario
    if kind == "words":
        return [(f"{name}: {step}", verdict(program, *(step.split(" ", 1) + [""])[:2])) for step in steps]
    run = Run(program, lines)
    try:
        out = []
        for n, step in enumerate(steps):
            out.append((f"{name}: {n} {step[:150]}", alike(run.step(step))))
            if run.proc.poll() is not None:
                sys.exit(f"{program} died of {step!r}:\n{open(run.said.name).read()[-1500:]}")
        return out
    finally:
        run.end()


def differences(ours, theirs, most=14):
    import difflib
    lines = list(difflib.unified_diff(theirs.split("\n"), ours.split("\n"), "oracle", "ours", n=0, lineterm=""))[2:]
    lines = [line[:400] for line in lines if not line.startswith("@@")]
    return "\n".join("     " + line for line in lines[:most]) + (f"\n     ... {len(lines) - most} more" if len(lines) > most else "")


def known_differences():
    path = os.path.join(HERE, "known.txt")
    return {line.rstrip("\n") for line in open(path, encoding="utf-8") if line.strip() and line[0] != "#"}


def everything(program, chosen, jobs):
    parts = []
    for name, kind, lines, steps in chosen:
        parts += [(name, kind, lines, [step]) for step in steps] if kind == "words" else [(name, kind, lines, steps)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [pair for part in pool.map(lambda s: answers(program, s), parts) for pair in part]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", type=os.path.abspath)
    p.add_argument("--oracle", type=os.path.abspath)
    p.add_argument("--record", action="store_true")
    p.add_argument("--ask", action="store_true")
    p.add_argument("--only", default="", help="regular expression on names of scenarios")
    p.add_argument("--jobs", type=int, default=3)
    a = p.parse_args()
    chosen = [s for s in scenarios() if re.search(a.only, s[0])]
    golden = os.path.join(HERE, "answers.json")
    if a.ask:
        for program in filter(None, (a.binary, a.oracle)):
            for label, answer in everything(program, chosen, a.jobs):
                print(f"--- {label}\n{answer}")
        return 0
    if a.oracle:
        theirs = dict(everything(a.oracle, chosen, a.jobs))
        if a.record:
            old = json.load(open(golden)) if a.only and os.path.exists(golden) else {}
            if a.only:
                theirs = {k: v for k, v in old.items() if not re.search(a.only, k.split(":")[0])} | theirs
            with open(golden, "w") as out:
                json.dump(theirs, out, indent=0, sort_keys=True)
            print(f"{len(theirs)} answers written")
            return 0
    else:
        theirs = json.load(open(golden))
    known, passed, failed = known_differences(), 0, 0
    ours = dict(everything(a.binary, chosen, a.jobs))
    # A client that writes before it reads an alert, on a machine that stood still: what differs is asked once more when little else runs.
    odd = {label for label, answer in ours.items() if (answer == theirs.get(label)) == (label in known)}
    shaky = [s for s in chosen if s[0] in {label.split(":")[0] for label in odd}]
    if shaky and len(shaky) < 12:
        for label, answer in everything(a.binary, shaky, 1):
            if label in odd:
                ours[label] = answer
                print(f"{label}: asked once more")
    for label, answer in ours.items():
        wanted = theirs.get(label)
        if (answer == wanted) != (label in known):
            passed += 1
            continue
        failed += 1
        if answer == wanted:
            print(f"FAIL {label}: agrees now, take it out of known.txt")
        else:
            print(f"FAIL {label}\n{differences(answer, wanted or 'not recorded')}")
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
