#!/usr/bin/env python3
"""The same expressions on two programs, byte for byte.

    run.py --binary target/quick/harrier            compare with the recorded answers (golden.json)
    run.py --binary HARRIER --oracle HAPROXY        compare with a program that is at hand
    run.py --record --oracle HAPROXY                ask the oracle and write golden.json
    run.py --oracle HAPROXY --ask 'str(a),upper'    show what a program makes of expressions

Every case of cases.py is a backend of one configuration; a request names the case, and the answer is the
sample as text and as hexadecimal digits, or the word that there was none. Expressions that a program refuses
are found with -c first. Differences that are meant stand in known.txt with their reason; a known difference that
has gone is a failure, too, so the list can only tell the truth.
"""
import argparse, concurrent.futures, hashlib, http.client, json, os, re, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import cases as the_cases

GROUP = 1000
GOLDEN = os.path.join(HERE, "golden.json")
HEAD = """\
global
    stats socket {work}/sock level admin
    tune.bufsize 32768
    tune.vars.txn-max-size 100000
defaults
    mode http
    timeout connect 2s
    timeout client 20s
    timeout server 20s
frontend fe
    bind fd@{fd}
    http-request wait-for-body time 2s
    declare capture request len 64
    declare capture request len 8
    declare capture response len 16
    use_backend c%[req.hdr(x-case)]
backend known
    server s1 127.0.0.1:1 disabled weight 7
    server s2 127.0.0.1:1 weight 3
"""

def digest(case):
    """The name of a case, whichever others there are."""
    return hashlib.sha1(label(case).encode()).hexdigest()[:8]

def rules(case):
    """The backend of one case; `side` says whether the request's or the response's rules take the sample."""
    expr = case["expr"]
    lines = [f"backend c{digest(case)}"]
    lines += ["    " + line for line in case.get("before", [])]
    shown = f"'%[{expr}]|%[{expr},hex]'"
    if case.get("side") == "response":
        lines += [f"    http-request return status {case.get('status', 200)} content-type text/plain " +
                  " ".join(f"hdr {n} '{v}'" for n, v in the_cases.RESPONSE_FIELDS) + " string body",
                  f"    http-after-response set-header x-found 1 if {{ '{expr}' -m found }}",
                  f"    http-after-response set-header x-sample {shown}"]
    else:
        lines += [f"    http-request return status 200 content-type text/plain lf-string {shown}"
                  f" if {{ '{expr}' -m found }}",
                  "    http-request return status 404 content-type text/plain string none"]
    return lines

class Program:
    """One program, its configuration and its answers."""
    def __init__(self, path, cases, work, step):
        self.path, self.cases, self.work, self.step = path, cases, work, step
        self.config = os.path.join(work, "test.cfg")
        self.refused = {}

    def write(self, fd, numbers, path):
        """Writes the configuration without what was refused; returns which line belongs to which case."""
        text, owner = HEAD.format(fd=fd, work=self.work).rstrip("\n").split("\n"), {}
        for number in numbers:
            if number in self.refused:
                continue
            for line in rules(self.cases[number]):
                text.append(line)
                owner[len(text)] = number
        with open(path, "w", encoding="latin-1") as out:
            out.write("\n".join(text) + "\n")
        return owner

    def check(self, fd, numbers):
        """Runs -c until nothing is refused any more. HAProxy stops at the first bad expression, so a call
        looks at few of them."""
        path = os.path.join(self.work, f"check{numbers[0]}.cfg")
        while True:
            owner = self.write(fd, numbers, path)
            got = subprocess.run([self.path, "-c", "-f", path], pass_fds=[fd], text=True,
                                 errors="replace", capture_output=True, timeout=120)
            if got.returncode == 0:
                return
            places = re.finditer(r"^'?(?:\[ALERT\]|\s).*?\[\S+?:(\d+)\][ :]+(.*)", got.stderr, re.M)
            bad = {owner[int(m[1])]: m[2] for m in places if int(m[1]) in owner}
            if not bad:
                sys.exit(f"{self.path} refuses the configuration:\n{got.stderr[:2000]}")
            self.refused.update(bad)

    def answers(self):
        """The answer to each case: `refused`, `none`, or the sample."""
        listener = socket.create_server(("127.0.0.1", 0))
        fd, port = listener.fileno(), listener.getsockname()[1]
        every = range(len(self.cases))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda first: self.check(fd, every[first:first + self.step]), every[::self.step]))
        self.write(fd, every, self.config)
        proc = self.start(fd)
        try:
            out, link = [], None
            for number, case in enumerate(self.cases):
                if number in self.refused:
                    out.append("refused")
                    continue
                link = link or http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                answer, link = ask(link, case)
                out.append(answer)
                if answer.startswith("failed") and proc.poll() is not None:
                    end = open(os.path.join(self.work, "log")).read()[-400:]
                    print(f"{self.path} died of {label(case)}: {end}", flush=True)
                    proc, link = self.start(fd), None
            return out
        finally:
            proc.terminate()
            proc.wait(10)
            listener.close()

    def start(self, fd):
        log = open(os.path.join(self.work, "log"), "w")
        return subprocess.Popen([self.path, "-db", "-f", self.config], pass_fds=[fd], stdout=log, stderr=log)

def ask(link, case):
    method, target, fields, body = the_cases.REQUESTS[case.get("request", "plain")]
    try:
        link.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        link.putheader("x-case", digest(case))
        for name, value in fields:
            link.putheader(name, value)
        link.endheaders(body)
        response = link.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        link.close()
        return f"failed: {type(error).__name__}", None
    if case.get("side") == "response":
        if not response.getheader("x-found"):
            return "none", link
        body = response.getheader("x-sample", "").encode("latin-1")
    elif response.status != 200:
        return ("none" if response.status == 404 else f"status {response.status}"), link
    return ("= " + body.decode("latin-1") if len(body) <= 200
            else f"# {len(body)} {hashlib.sha1(body).hexdigest()}"), link

def groups(cases):
    """Which cases one process takes: HAProxy does not start with all of them in one configuration, and its has_ctl
    without a mask changes the default arguments of everything else in the process."""
    alone = [n for n, case in enumerate(cases) if ",has_ctl" in case["expr"]]
    others = [n for n, case in enumerate(cases) if ",has_ctl" not in case["expr"]]
    for part in (others, alone):
        yield from (part[first:first + GROUP] for first in range(0, len(part), GROUP))

def ask_program(path, cases, step=20):
    answers, refused = [""] * len(cases), {}
    for numbers in groups(cases):
        with tempfile.TemporaryDirectory() as work:
            program = Program(path, [cases[n] for n in numbers], work, step)
            for n, answer in zip(numbers, program.answers()):
                answers[n] = answer
            refused.update({numbers[n]: why for n, why in program.refused.items()})
    return answers, refused

def label(case):
    extra = [f"{k}={case[k]}" for k in ("request", "side", "status") if k in case] + case.get("before", [])
    return case["expr"] + (" [" + "; ".join(extra) + "]" if extra else "")

def known_differences():
    """Lines `label` behind a comment that gives the reason."""
    path = os.path.join(HERE, "known.txt")
    if not os.path.exists(path):
        return set()
    return {line.rstrip("\n") for line in open(path, encoding="utf-8") if line.strip() and line[0] != "#"}

def compare(cases, ours, theirs, refused, verbose):
    known, failed, passed, expected = known_differences(), 0, 0, 0
    for number, (case, mine, wanted) in enumerate(zip(cases, ours, theirs)):
        name = label(case)
        if (mine == wanted) != (name in known):
            passed += 1
            expected += name in known
            continue
        failed += 1
        if mine == wanted:
            print(f"FAIL {name}: agrees now, take it out of known.txt")
        elif failed <= verbose:
            print(f"FAIL {name}\n     ours   {mine} {refused.get(number, '')[-120:]}\n     oracle {wanted}")
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    print(f"({expected} of them are differences explained in known.txt)")
    return failed == 0

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary")
    parser.add_argument("--oracle")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", help="regular expression on the expression")
    parser.add_argument("--ask", nargs="+", metavar="EXPR")
    parser.add_argument("--request", default="plain")
    parser.add_argument("--side")
    parser.add_argument("--verbose", type=int, default=60, help="so many differences are shown")
    a = parser.parse_args()
    if a.ask:
        cases = [{"expr": e, "request": a.request, **({"side": a.side} if a.side else {})} for e in a.ask]
        for path in filter(None, [a.oracle, a.binary]):
            answers, refused = ask_program(path, cases)
            for number, (case, answer) in enumerate(zip(cases, answers)):
                print(f"{case['expr']:50} {answer} {refused.get(number, '')}")
            print()
        return
    cases = the_cases.all_cases()
    golden = None
    if not a.oracle:
        golden = json.load(open(GOLDEN))
    if a.only:
        cases = [c for c in cases if re.search(a.only, c["expr"])]
    if a.oracle:
        theirs, _ = ask_program(a.oracle, cases)
        if a.record:
            with open(GOLDEN, "w") as out:
                json.dump({label(c): t for c, t in zip(cases, theirs)}, out, indent=0)
            print(f"{len(cases)} answers written")
            return
    else:
        missing = [label(c) for c in cases if label(c) not in golden]
        if missing:
            sys.exit(f"golden.json lacks {len(missing)} cases, the first {missing[0]}: run with --record")
        theirs = [golden[label(c)] for c in cases]
    ours, refused = ask_program(a.binary, cases, 500)
    sys.exit(0 if compare(cases, ours, theirs, refused, a.verbose) else 1)

if __name__ == "__main__":
    main()
