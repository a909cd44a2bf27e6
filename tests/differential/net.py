"""What the nets of one kind share (frames/, rules/): named cases, a program that runs them one after the other, what moves in
`show stat`, HAProxy's recorded answers, and the list of differences that are meant (known.txt)."""
import argparse, contextlib, gzip, json, multiprocessing, os, re, select, shutil, signal, socket, subprocess, tempfile, time

# How often a part of the cases is begun again behind one that stalled, or that the program did not survive.
ROUNDS = 6


class Stalled(Exception):
    """Something took longer than it ever should. Not an OSError, which is what cases expect of their sockets."""


@contextlib.contextmanager
def within(seconds):
    """Nothing in it, whatever it waits for, takes longer than so many seconds. For the main thread of a process."""
    def stall(*_):
        raise Stalled(f"not done in {seconds} s")
    signal.signal(signal.SIGALRM, stall)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Program:
    """One program at work. Whoever inherits says what its configuration is (`configuration`) and how a case runs (`run`)."""

    def __init__(self, binary, patience):
        self.dir, self.patience, self.process = tempfile.mkdtemp(prefix="net"), patience, None
        self.log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.bind(self.dir + "/log")
        self.log.setblocking(False)
        config, self.sockets = self.dir + "/config", []
        try:
            with open(config, "w") as file:
                file.write(self.configuration())
            self.process = subprocess.Popen([binary, "-db", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            pass_fds=[one.fileno() for one in self.sockets])
            self.command("show info")
        except BaseException:
            self.stop()
            raise

    def most(self):
        """How many seconds a case may take before it counts as stalled."""
        return 20 * self.patience

    def command(self, words):
        deadline = time.monotonic() + 20
        while True:
            conn = socket.socket(socket.AF_UNIX)
            conn.settimeout(10)
            try:
                conn.connect(self.dir + "/admin")
                break
            except OSError:
                conn.close()
                if self.process.poll() is not None:
                    raise
                if time.monotonic() > deadline:
                    raise Stalled("nobody takes commands") from None
                time.sleep(0.02)
        with conn:
            out = b""
            try:
                conn.sendall(words.encode() + b"\n")
                while data := conn.recv(65536):
                    out += data
            except TimeoutError:
                raise Stalled("no answer to a command") from None
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
            if not readable(self.log, left):
                return out
            head, _, text = self.log.recv(8192).decode("latin-1").partition(": ")
            out.append((head.split(">")[0] + "> " if level else "") + text.strip())

    @staticmethod
    def compared(one, _other):
        """What of an answer is compared with another one."""
        return one

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def readable(sock, seconds):
    """Whether something comes in so many seconds (select knows no descriptors beyond 1024)."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def work(writer, *job):
    """What a process of its own does with its part of the cases."""
    maker, binary, names, patience = job
    out = {}
    for _ in range(ROUNDS):
        if left := [name for name in names if name not in out]:
            run_part(maker, binary, left, patience, out)
    writer.send({name: out.get(name, {"died": f"not asked: {ROUNDS} cases before it stalled or ended the program"}) for name in names})
    writer.close()


def run_part(maker, binary, names, patience, out):
    """Runs the cases in one program until it is gone, or stalls."""
    try:
        with within(60):
            program = maker(binary, patience, names)
    except Exception as error:  # Whatever it is, the cases could not be run.
        out.update((name, {"died": f"no start: {error!r}"}) for name in names)
        return
    try:
        for name in names:
            try:
                with within(program.most()):
                    out[name] = program.run(name)
            except Exception as error:  # As above.
                out[name] = {"died": repr(error)}
                if isinstance(error, Stalled) or program.process.poll() is not None:
                    return
    finally:
        program.stop()


def ask(maker, binary, names, jobs, patience=1, share=None):
    """What a program makes of the cases. Those for which the machine was too busy (`late`) are run again, a few times if need be."""
    out, left = {}, names
    for _ in range(ROUNDS):
        out.update(ask_once(maker, binary, left, jobs, patience, share))
        left = [name for name in left if out[name].pop("late", False)]
        if not left:
            return out
    out.update((name, {"died": "the machine was too busy for its steps to come in time"}) for name in left)
    return out


def ask_once(maker, binary, names, jobs, patience, share):
    """What a program makes of the cases, with so many of it at work at once. `share` keeps cases together."""
    groups = {}
    for at, name in enumerate(names):
        groups.setdefault(share(name) if share else at, []).append(name)
    parts = [[] for _ in range(jobs)]
    for at, group in enumerate(groups.values()):
        parts[at % jobs].extend(group)
    out, at_work = {}, []
    context = multiprocessing.get_context("fork")
    # Not a pool, which waits for ever for a process that was killed.
    for part in filter(None, parts):
        reader, writer = context.Pipe(False)
        process = context.Process(target=work, args=(writer, maker, binary, part, patience), daemon=True)
        process.start()
        writer.close()
        at_work.append((process, reader, part))
    for process, reader, part in at_work:
        try:
            out.update(reader.recv())
        except EOFError:
            out.update((name, {"died": "its process is gone"}) for name in part)
        process.join(10)
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
    for key, (one, other) in difference.items():
        if key == "died":
            print(f"FAIL {name}: could not be run {'here' if one else 'there'}: {one or other}")
            return
    print(f"FAIL {name}")
    for key, (one, other) in difference.items():
        if isinstance(one, dict) and isinstance(other, dict):
            one, other = ({k: v for k, v in a.items() if b.get(k) != v} for a, b in ((one, other), (other, one)))
        elif isinstance(one, list) and isinstance(other, list) and sorted(map(str, one)) != sorted(map(str, other)):
            one, other = ([v for v in a if v not in b] or a for a, b in ((one, other), (other, one)))
        print(f"    {key}: here {one}\n    {' ' * len(key)}  there {other}")


def record(path, cases, names, one, other, same):
    """Writes what was answered twice in the same way; of the cases that were not asked for, what was known."""
    steady = {name: one[name] for name in names if same(one[name], other[name])}
    asked = set(names)
    before = load(path) if len(asked) < len(cases) else {}
    steady = {name: steady[name] if name in asked else before[name] for name in cases if name in steady or name in before and name not in asked}
    save(path, steady)
    print(f"{len(steady)} recorded; not the same twice: {[name for name in names if not same(one[name], other[name])]}")


def again(path, answers, now, same):
    """Takes out of the record what is answered differently now. What could not be asked stays, and is told."""
    died = [name for name in now if "died" in now[name]]
    gone = [name for name in now if name not in died and not same(now[name], answers[name])]
    save(path, {name: answers[name] for name in answers if name not in gone})
    for name in gone:
        print(f"dropped {name}")
    for name in died:
        print(f"FAIL {name}: could not be run: {now[name]['died']}")
    print(f"{len(now)} asked again, {len(gone)} dropped, {len(died)} could not be asked")
    return 1 if died else 0


def main(maker, cases, here, answers="answers.json", share=None, jobs=8):
    """The command line that the nets share."""
    p = argparse.ArgumentParser()
    for name in ("--binary", "--oracle", "--only"):
        p.add_argument(name)
    for name, text in (("--record", "ask the oracle twice and write what it answers"), ("--ask", "show what the oracle answers"),
                       ("--again", "ask the oracle again and drop from the record what it answers differently")):
        p.add_argument(name, action="store_true", help=text)
    p.add_argument("--jobs", type=int, default=jobs)
    o = p.parse_args()
    path = os.path.join(here, answers)
    names = [name for name in cases if not o.only or re.search(o.only, name)]
    run = lambda binary, names, jobs, patience=1: ask(maker, binary, names, jobs, patience, share)
    difference = lambda one, other: differs(maker.compared(one, other), maker.compared(other, one))
    same = lambda one, other: "died" not in one and not difference(one, other)
    if o.again:
        answers = load(path)
        return again(path, answers, run(o.oracle, [name for name in names if name in answers], o.jobs), same)
    theirs = run(o.oracle, names, o.jobs) if o.oracle else load(path)
    if o.ask:
        print(json.dumps(theirs, indent=1))
        return 0
    if o.record:
        record(path, cases, names, theirs, run(o.oracle, names, o.jobs, 2), same)
        return 0
    names = [name for name in names if name in theirs]
    ours = run(o.binary, names, o.jobs)
    expected = known(os.path.join(here, "known.txt"))
    surprises = lambda names: [name for name in names if bool(difference(ours.get(name, {}), theirs[name])) != (name in expected)]
    # What differs is asked again with time to spare before it counts: a busy machine answers late.
    odd = surprises(names)
    for patience in (2, 3):
        for name, answer in (run(o.binary, odd, o.jobs, patience) if odd else {}).items():
            if not difference(answer, theirs[name]) or name in expected:
                ours[name] = answer
        odd = surprises(odd)
    for name in odd:
        if name in expected:
            print(f"FAIL {name}: agrees now, take it out of known.txt")
        else:
            show(name, difference(ours.get(name, {}), theirs[name]))
    print(f"outside: {len(names) - len(odd)} passed, {len(odd)} failed, 0 skipped")
    return 1 if odd else 0
