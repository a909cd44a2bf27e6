#!/usr/bin/env python3
"""The commands of the runtime API on two programs, line by line.

    commands.py --binary target/quick/harrier          compare with the recorded answers (commands.json)
    commands.py --binary HARRIER --oracle HAPROXY      compare with a program that is at hand
    commands.py --record --oracle HAPROXY              ask the oracle and write commands.json
    commands.py --oracle HAPROXY --ask 'show stat'     show what a program answers, as it is compared

commands.txt is the table: a command a line, after the scenario it belongs to. Each scenario is a process of its own that gets its
commands one after the other. What differs from run to run (addresses, times, process ids) is made alike first. Differences
that are meant stand in known-commands.txt with their reason, and a known difference that has gone is a failure.
"""
import argparse, json, os, re, shutil, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = ("user", "operator", "admin")

def table():
    """(scenario, level, command) of each line. `% name` begins a scenario, `@user` says as whom, `@all` as everybody."""
    scenario, out = "", []
    for line in open(os.path.join(HERE, "commands.txt"), encoding="utf-8"):
        line = line.rstrip("\n")
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("% "):
            scenario = line[2:]
            continue
        level, command = "admin", line
        if line.startswith("@"):
            level, _, command = line[1:].partition(" ")
        command = command.replace("\\n", "\n").replace("\\x", "x" * 17000)
        out += [(scenario, one, command) for one in (LEVELS if level == "all" else [level])]
    return out

def label(case):
    scenario, level, command = case
    return f"{scenario}@{level}: {command if len(command) < 200 else command[:40] + '...'}".replace("\n", "\\n")

# Columns of the statistics that a tick of the clock or a check changes: HAProxy counts the connections of checks among those of
# traffic, and not always the first failure of a check.
TICKING = {"chkfail", "lastchg", "downtime", "check_duration", "need_conn_est", "h1_total_connections", "h1_total_streams"}

# What is made alike, for all commands and for those that the first expression fits.
ALIKE = [
    (r"^show (info|stat)", r':"[^"]*"$', ""),
    (r"", r"0x[0-9a-f]+", "0xN"),
    (r"", r"3\.5[-.][\w.-]+|3\.5-dev\d+\S*", "VERSION"),
    (r"", r"\[?\d\d/\w\w\w/20\d\d:[\d:.]+\]?", "DATE"),
    (r"", r"\w\w\w [ \d]\d [\d:]+ 20\d\d GMT", "DATE"),
    (r"", r"\b20\d\d[-/]\d\d[-/]\d\d([ T]\S+)?", "DATE"),
    # The words that describe a command are each program's own.
    (r"", r"^  ([a-z@?][\w -]*?) *[^\w -].* ?: .*$", r"  \1"),
    (r"", r"^  ([a-z@?][\w -]*?) +: .*$", r"  \1"),
    # What an unknown command is likest to is each program's own guess.
    (r"", r"Unknown command: .*(\n  .*)*", "Unknown command"),
    (r"^(show )?(foo|ssl foo)$|^help foo|^\?$|^mcp$|^set anon foo|^show foo", r"^  .*$", "  ..."),
    # Which of these there are is a question of the build, or of what is not done yet; their own tests look at them.
    (r"^help", r"^  (acme [\w -]+|set var|reload in-place|clear cache|show (cache|mirror|peers|quic|resolvers|trace)|trace)$\n", ""),
    (r"^show (ssl|info)", r"\b[0-9A-F]{40}\b", "SHA1"),
    (r"^show stat.*typed", r"\b(chkfail|lastchg|downtime|check_duration|need_conn_est|h1_total_connections|h1_total_streams)(\.\S+?:\w+:)\d{1,2}\b", r"\1\2..."),
    (r"^show servers conn", r"^(app/a(?: \S+){7}) \d+ \d+ ", r"\1 N N "),
    (r"^show events|^trace", r"^ +dpapi .*\n", ""),
    # Sources of later issues, and events that do not happen here.
    (r"^(show )?trace", r"^ \[.\] (acme|fcgi|h3|haterm|qcm|quic|spop) .*\n", ""),
    (r"^(show )?trace h1", r"^ +[-+]? ?(h1c_(recv|send|blk|wake|err)|[rt]x_(data|body|trailerus)|rx_eoi|h1s_blk|strm_\w+) .*\n", ""),
    (r"^(show )?trace", r"^( +[-+* ] \w+| \[.\] \w+| +\w+) +: (?![ +-]+$).*$", r"\1"),
    (r"^show trace", r"\[[^].]{2,}\]$", ""),
    (r"^show acl", r"^\d+ \(\) acl 'var' file 'httpclient' .*\n", ""),
    (r"^show ssl ca-file", r"\d+ certificate", "N certificate"),
    (r"^show sess help|^prompt foo|^wait 10ms foo", r"^(?!\s*$).*", "..."),
    (r"^show sess help|^prompt foo|^wait 10ms foo", r"(\.\.\.\n)+", "...\n"),
    # Only a build with zlib has these.
    (r"^show info", r"^(\d+\.)?(Max)?ZlibMemUsage.*\n", ""),
    (r"^show info.*json", r',\{"field":\{"pos":\d+,"name":"(Max)?ZlibMemUsage".*?\}\}', ""),
    (r"^show servers state", r"^((?:\S+ ){9})\d{1,2} ", r"\1T "),
    (r"^show table", r"exp=\d+", "exp=N"),
    (r"^show ssl", r"^(Serial|SHA1 FingerPrint|SHA256 FingerPrint): .*", r"\1: ..."),
    (r"^show info(?! json)", r"^(\d+\.)?((?:Pid|Ulimit|Maxsock|Uptime|Idle|Boot|Pool|Zlib|MaxZlib|Tasks|Jobs|Run_queue|Total|Cum|Curr|Maxpipes|BytesOut|Conn|Sess|Start|Unstop|Memmax|nbproc|Process_num|Patterns|Debug|MaxConnRate|MaxSessRate|Nbproc)[^:\n]*): *[^:\n]*$", r"\2: ..."),
    # A field of the typed form counts and tells its type.
    (r"^show info typed", r"^(\d+\.(?:Pid|Ulimit|Maxsock|Uptime|Idle|Boot|Pool|Zlib|MaxZlib|Tasks|Jobs|Run_queue|Total|Cum|Curr|Maxpipes|BytesOut|Conn|Sess|Start|Unstop|Memmax|Patterns|Debug|MaxConnRate|MaxSessRate)\S*:\w+:\w+:)[^:\n]*", r"\1..."),
    (r"^show (info|stat).* json|^show stat json", r'"value":("[^"]*"|[-\d.]+)', '"value":...'),
    (r"^show activity", r"\d+", "N"),
    (r"^show activity", r"(N )+\]|\[.*", "..."),
]

def alike(command, answer):
    for which, what, instead in ALIKE:
        if re.search(which, command):
            answer = re.sub(what, instead, answer, flags=re.M)
    if answer.startswith("# pxname,"):
        names = answer.partition("\n")[0].split(",")
        # A comma in quotes would move the columns.
        rows = [re.sub(r'"[^"]*"', '""', row).split(",") for row in answer.split("\n")]
        answer = "\n".join(",".join("." if n < len(names) and names[n] in TICKING and len(v) < 3 else v
                                     for n, v in enumerate(row)) for row in rows)
    return answer

class Program:
    """A program with the configuration of the walk."""
    def __init__(self, path, keep=None):
        self.work = tempfile.mkdtemp(prefix="cmd")
        files = os.path.join(HERE, "commands")
        for name in os.listdir(files):
            shutil.copy(os.path.join(files, name), self.work)
        key = os.path.join(self.work, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "3650", "-keyout", key, "-out", os.path.join(self.work, "cert.pem"), "-subj", "/C=FR/O=Test/CN=one.example",
                        "-addext", "subjectAltName=DNS:one.example,DNS:*.one.example"], check=True, capture_output=True)
        both = open(os.path.join(self.work, "cert.pem")).read() + open(key).read()
        for name in ("one.pem", "two.pem"):
            with open(os.path.join(self.work, name), "w") as out:
                out.write(both)
        self.log = open(os.path.join(self.work, "log"), "w+")
        self.proc = subprocess.Popen([path, "-db", "-f", "walk.cfg"], cwd=self.work, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if self.proc.poll() is not None:
                sys.exit(f"{path} does not start:\n{open(self.log.name).read()[-1500:]}")
            # The first check of a server changes what is shown.
            if "L4CON" in self.ask("admin", "show stat app 4 1"):
                return
            time.sleep(0.02)

    def ask(self, level, command):
        """The whole answer to a command."""
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(5)
        try:
            link.connect(os.path.join(self.work, "sock." + level))
            link.sendall(command.encode() + b"\n")
            # Whoever stays interactive is to see the end; the others close by themselves.
            if re.match(r"prompt|show version <<$", command):
                link.shutdown(socket.SHUT_WR)
            out = b""
            while piece := link.recv(65536):
                out += piece
        except OSError as error:
            return "" if isinstance(error, (FileNotFoundError, ConnectionRefusedError)) else f"failed: {error}"
        finally:
            link.close()
        return out.decode("latin-1")

    def end(self):
        self.proc.kill()
        self.proc.wait()
        self.log.close()
        shutil.rmtree(self.work)

def answers(path, cases):
    out, program, last = [], None, None
    try:
        for scenario, level, command in cases:
            if scenario != last:
                if program:
                    program.end()
                program, last = Program(path), scenario
            out.append(alike(command, program.ask(level, command)))
            if program.proc.poll() is not None:
                sys.exit(f"{path} died of {command!r}:\n{open(program.log.name).read()[-1500:]}")
    finally:
        if program:
            program.end()
    return out

def known_differences():
    path = os.path.join(HERE, "known-commands.txt")
    return {line.rstrip("\n") for line in open(path, encoding="utf-8") if line.strip() and line[0] != "#"}

def differences(ours, theirs, most=12):
    """The lines that differ, as a person reads them."""
    import difflib
    lines = list(difflib.unified_diff(theirs.split("\n"), ours.split("\n"), "oracle", "ours", n=0, lineterm=""))[2:]
    lines = [line[:300] for line in lines if not line.startswith("@@")]
    return "\n".join("     " + line for line in lines[:most]) + (f"\n     ... {len(lines) - most} more" if len(lines) > most else "")

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary")
    parser.add_argument("--oracle")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", help="regular expression on scenario, level and command")
    parser.add_argument("--ask", nargs="+", metavar="COMMAND")
    parser.add_argument("--verbose", type=int, default=40, help="so many differences are shown")
    parser.add_argument("--lines", type=int, default=12, help="so many lines of each")
    a = parser.parse_args()
    golden = os.path.join(HERE, "commands.json")
    path = {name: os.path.abspath(p) for name, p in (("binary", a.binary), ("oracle", a.oracle)) if p}
    cases = [("ask", "admin", c) for c in a.ask] if a.ask else table()
    if a.only:
        # The commands before one of a scenario made what it finds.
        wanted = {c[0] for c in cases if re.search(a.only, label(c))}
        cases = [c for c in cases if c[0] in wanted]
    if a.ask:
        for name, program in path.items():
            for case, answer in zip(cases, answers(program, cases)):
                print(f"--- {name}: {case[2]}\n{answer}")
        return
    if "oracle" in path:
        theirs = answers(path["oracle"], cases)
        if a.record:
            with open(golden, "w") as out:
                json.dump({f"{n} {label(c)}": t for n, (c, t) in enumerate(zip(cases, theirs))}, out, indent=0)
            print(f"{len(cases)} answers written")
            return
    else:
        recorded, every = json.load(open(golden)), table()
        numbers = {}
        for n, case in enumerate(every):
            numbers.setdefault(case, []).append(f"{n} {label(case)}")
        if any(names[0] not in recorded for names in numbers.values()):
            sys.exit("commands.json is of another table: run with --record")
        theirs = [recorded[numbers[case].pop(0)] for case in cases]
    ours, known = answers(path["binary"], cases), known_differences()
    passed = failed = expected = 0
    for case, mine, wanted in zip(cases, ours, theirs):
        name = label(case)
        if a.only and not re.search(a.only, name):
            continue
        if (mine == wanted) != (name in known):
            passed += 1
            expected += name in known
            continue
        failed += 1
        if mine == wanted:
            print(f"FAIL {name}: agrees now, take it out of known-commands.txt")
        elif failed <= a.verbose:
            print(f"FAIL {name}\n{differences(mine, wanted, a.lines)}")
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    print(f"({expected} of them are differences explained in known-commands.txt)")
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
