"""What the nets of one kind share (frames/, rules/): named cases, a program that runs them one after the other, what moves in
`show stat`, HAProxy's recorded answers, and the list of differences that are meant (known.txt)."""
import argparse, gzip, json, multiprocessing, os, re, select, shutil, socket, subprocess, tempfile, time


class Program:
    """One program at work. Whoever inherits says what its configuration is (`configuration`) and how a case runs (`run`)."""

    def __init__(self, binary, patience):
        self.dir, self.patience = tempfile.mkdtemp(prefix="net"), patience
        self.log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.bind(self.dir + "/log")
        self.log.setblocking(False)
        config, self.sockets = self.dir + "/config", []
        with open(config, "w") as file:
            file.write(self.configuration())
        self.process = subprocess.Popen([binary, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=[one.fileno() for one in self.sockets])
        self.command("show info")

    def command(self, words):
        deadline = time.monotonic() + 20
        while True:
            try:
                conn = socket.socket(socket.AF_UNIX)
                conn.connect(self.dir + "/admin")
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.02)
        conn.sendall(words.encode() + b"\n")
        out = b""
        while data := conn.recv(65536):
            out += data
        conn.close()
        return out.decode("latin-1")

    def read_figures(self, wanted, words="show stat"):
        """Figures by proxy, server and name, as far as their names are wanted."""
        out, names = {}, []
        for line in self.command(words).strip().split("\n"):
            if line.startswith("# "):
                names = line[2:].split(",")
                continue
            row = dict(zip(names, line.split(",")))
            for name, value in row.items():
                if wanted.match(name) and value.isdigit():
                    out[f"{row['pxname']}/{row['svname']} {name}"] = int(value)
        return out

    def quietly(self, act):
        try:
            act()
        except OSError:
            pass

    def lines(self, seconds, level=False):
        """The log lines that come in so many seconds, with their level before them if it is asked for."""
        out, deadline = [], time.monotonic() + seconds
        while True:
            left = max(0, deadline - time.monotonic())
            if not select.select([self.log], [], [], left)[0]:
                return out
            head, text = self.log.recv(8192).decode("latin-1").split(": ", 1)
            out.append((head.split(">")[0] + "> " if level else "") + text.strip())

    @staticmethod
    def compared(one, _other):
        """What of an answer is compared with another one."""
        return one

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def work(job):
    maker, binary, names, patience = job
    out = {}
    program = maker(binary, patience, names)
    try:
        for name in names:
            try:
                out[name] = program.run(name)
            except OSError as error:
                out[name] = {"died": str(error)}
                if program.process.poll() is not None:
                    break
    finally:
        program.stop()
    return out


def ask(maker, binary, names, jobs, patience=1, share=None):
    """What a program makes of the cases, with so many of it at work at once. `share` keeps cases together."""
    groups = {}
    for at, name in enumerate(names):
        groups.setdefault(share(name) if share else at, []).append(name)
    parts = [[] for _ in range(jobs)]
    for at, group in enumerate(groups.values()):
        parts[at % jobs].extend(group)
    out = {}
    with multiprocessing.Pool(jobs) as pool:
        for part in pool.imap_unordered(work, [(maker, binary, part, patience) for part in parts if part]):
            out.update(part)
    return out


def differs(ours, theirs):
    return {key: (ours.get(key), theirs.get(key)) for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)}


def known(path):
    out, reason = {}, ""
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("# "):
                reason = line[2:]
            elif line.strip():
                out[line.strip()] = reason
    return out


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def save(path, answers):
    text = "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(answers[name], sort_keys=True)}" for name in answers) + "\n}\n"
    if path.endswith(".gz"):
        with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
            packed.write(text.encode())
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def show(name, difference):
    print(f"FAIL {name}")
    for key, (one, other) in difference.items():
        if isinstance(one, dict) and isinstance(other, dict):
            one, other = ({k: v for k, v in a.items() if b.get(k) != v} for a, b in ((one, other), (other, one)))
        print(f"    {key}: here {one}\n    {' ' * len(key)}  there {other}")


def main(maker, cases, here, answers="answers.json", share=None, jobs=8):
    """The command line that the nets share."""
    p = argparse.ArgumentParser()
    for name in ("--binary", "--oracle", "--only"):
        p.add_argument(name)
    for name in ("--record", "--ask"):
        p.add_argument(name, action="store_true")
    p.add_argument("--jobs", type=int, default=jobs)
    o = p.parse_args()
    path = os.path.join(here, answers)
    names = [name for name in cases if not o.only or re.search(o.only, name)]
    run = lambda binary, names, jobs, patience=1: ask(maker, binary, names, jobs, patience, share)
    theirs = run(o.oracle, names, o.jobs) if o.oracle else load(path)
    if o.ask:
        print(json.dumps(theirs, indent=1))
        return 0
    if o.record:
        again = run(o.oracle, names, o.jobs, 2)
        steady = {name: theirs[name] for name in names if theirs.get(name) == again.get(name)}
        if o.only:
            # The others stay as they are.
            before = load(path)
            steady = {name: steady.get(name) or before[name] for name in cases if name in steady or name in before and name not in names}
        save(path, steady)
        print(f"{len(steady)} recorded; not the same twice: {[name for name in names if theirs.get(name) != again.get(name)]}")
        return 0
    names = [name for name in names if name in theirs]
    ours = run(o.binary, names, o.jobs)
    expected = known(os.path.join(here, "known.txt"))
    difference = lambda one, other: differs(maker.compared(one, other), maker.compared(other, one))
    surprises = lambda names: [name for name in names if bool(difference(ours.get(name, {}), theirs[name])) != (name in expected)]
    # What differs is asked again with time to spare before it counts: a busy machine answers late.
    again = surprises(names)
    for patience in (2, 3):
        for name, answer in (run(o.binary, again, o.jobs, patience) if again else {}).items():
            if not difference(answer, theirs[name]) or name in expected:
                ours[name] = answer
        again = surprises(again)
    for name in again:
        if name in expected:
            print(f"FAIL {name}: agrees now, take it out of known.txt")
        else:
            show(name, difference(ours.get(name, {}), theirs[name]))
    print(f"outside: {len(names) - len(again)} passed, {len(again)} failed, 0 skipped")
    return 1 if again else 0
