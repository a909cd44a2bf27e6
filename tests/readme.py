#!/usr/bin/env python3
"""Every command of README.md is run, and what it says of it is seen.

    tests/readme.py --binary target/quick/harrier

A command that README.md has and this file does not, or the other way round, is a failure. What is slow or changes the
machine is run in a smaller form: `make run` and `make test` with -n (and the program that `make run` starts, with other
ports), the release build as far as cargo resolves it, `install` into a folder of our own.
"""
import argparse, os, re, signal, socket, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = open(os.path.join(ROOT, "README.md")).read()
# What a command begins with, in a line of its own or between backquotes.
COMMAND = re.compile(r"(make|cargo|install|harrier|kill|echo) \S")
LIMIT = 20
CASES = {}


def case(command):
    def keep(run):
        CASES[command] = run
        return run
    return keep


def commands():
    """Commands of README.md, without the remarks behind those that stand in a line of their own."""
    own = [line[4:].split("#")[0].strip() for line in README.split("\n") if line.startswith("    ")]
    spans = [span.replace("\\|", "|") for span in re.findall(r"`([^`\n]+)`", README)]
    return {text for text in own + spans if COMMAND.match(text)}


def run(*words, code=0, **more):
    done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT, **more)
    assert done.returncode == code, f"{' '.join(words)}: exit code {done.returncode}, not {code}: {done.stdout[-400:]}"
    return done.stdout


def until(what, told):
    """Waits for what is about to be true."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"never seen: {told}")


def gone(pid):
    try:
        state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Place:
    """A folder of our own with a configuration, and the processes started there."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.pids = binary, folder, set()
        self.pid_file, self.socket = self.path("harrier.pid"), self.path("stats")
        self.port, self.silent = free_ports(2)
        self.file = self.write("web.cfg", f"""
global
    stats socket {self.socket} level admin
    log stdout format raw local0
defaults
    mode http
    log global
    timeout connect 5s
    timeout client 10s
    timeout server 10s
frontend web
    bind 127.0.0.1:{self.port}
    http-request return status 200 content-type text/plain string here if {{ path / }}
    default_backend slow
backend slow
    server s1 127.0.0.1:{self.silent}
""")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        open(self.path(name), "w").write(text)
        return self.path(name)

    def get(self, port, path="/"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT) as answer:
            return answer.read().decode()

    def serves(self, port=None, path="/"):
        def asked():
            try:
                return self.get(port or self.port, path)
            except OSError:
                return None
        return until(asked, f"an answer on port {port or self.port}")

    def start(self, *words, log="log", **more):
        with open(self.path(log), "w") as out:
            child = subprocess.Popen([self.binary, *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **more)
        self.pids.add(child.pid)
        return child

    def says(self, text, log="log"):
        until(lambda: text in open(self.path(log)).read(), text)

    def daemon(self, *words):
        run(self.binary, "-D", "-f", self.file, "-p", self.pid_file, *words)
        pid = int(open(self.pid_file).read())
        self.pids.add(pid)
        self.serves()
        return pid

    def end(self):
        for pid in self.pids:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


# ---------------------------------------------------------------- building and installing

@case("make run")
def make_run(place):
    last = run("make", "--no-print-directory", "-n", "run").strip().split("\n")[-1]
    assert "target/release/harrier -db -f examples/quickstart.cfg" in last, last
    text = open(os.path.join(ROOT, "examples/quickstart.cfg")).read()
    moved = dict(zip(("8080", "8404", "8081", "8082"), free_ports(4)))
    for old, new in moved.items():
        text = text.replace(f":{old}", f":{new}")
    child = place.start("-db", "-f", place.write("quickstart.cfg", text))
    first = place.serves(moved["8080"])
    answers = [first] + [place.get(moved["8080"]) for _ in range(3)]
    assert sorted(answers) == ["blue answers /\n"] * 2 + ["red answers /\n"] * 2, answers
    assert "<html" in place.get(moved["8404"]).lower()
    place.says("GET / HTTP/1.1")
    child.send_signal(signal.SIGINT)
    child.wait(LIMIT)


@case("make test")
def make_test(place):
    assert "sh tests/all.sh" in run("make", "--no-print-directory", "-n", "test")


@case("cargo build --release --locked -p harrier")
def build(place):
    assert run("cargo", "tree", "--locked", "--offline", "-p", "harrier", "--depth", "0").startswith("harrier v")


@case("install -m 755 target/release/harrier /usr/local/sbin/")
def install(place):
    run("install", "-m", "755", place.binary, place.folder + "/")
    run(place.path(os.path.basename(place.binary)), "-v")


# ---------------------------------------------------------------- moving

@case("harrier -c -f /etc/haproxy/haproxy.cfg")
def check(place):
    assert run(place.binary, "-c", "-f", place.file) == ""
    assert "Configuration file is valid" in run(place.binary, "-c", "-V", "-f", place.file)
    wrong = place.write("wrong.cfg", "frontend web\n    frobnicate\n    mode htp\n")
    told = run(place.binary, "-c", "-f", wrong, code=1)
    assert f"[{wrong}:2]" in told and f"[{wrong}:3]" in told, told
    idle = place.write("idle.cfg", open(place.file).read() + "\nglobal\n    noepoll\n")
    told = run(place.binary, "-c", "-f", idle)
    assert "[NOTICE]" in told and "'noepoll' has no effect" in told, told


@case("harrier -db -f copy.cfg")
@case("harrier -db -f FILE")
def foreground(place):
    link = place.path("haproxy")
    os.symlink(place.binary, link)
    run(link, "-v")
    child = place.start("-db", "-f", place.file)
    assert place.serves() == "here"
    child.send_signal(signal.SIGINT)
    child.wait(LIMIT)


# ---------------------------------------------------------------- running

@case("harrier -Ws -f FILE")
def service(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(LIMIT)
        manager.bind(place.path("notify"))
        child = place.start("-Ws", "-f", place.file, env=dict(os.environ, NOTIFY_SOCKET=place.path("notify")))
        assert b"READY=1" in manager.recv(4096)
        assert place.serves() == "here"
        # What the unit's reload sends: the service manager is told when it begins and when a new worker serves.
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        child.send_signal(signal.SIGUSR2)
        reloading = manager.recv(4096)
        assert b"RELOADING=1" in reloading
        # A unit of Type=notify-reload is believed only where the two clocks agree.
        told = int(re.search(rb"MONOTONIC_USEC=(\d+)", reloading)[1]) / 1e6
        assert before <= told <= time.clock_gettime(time.CLOCK_MONOTONIC), (before, told)
        assert b"READY=1" in manager.recv(4096)
        assert place.serves() == "here"
        child.terminate()
        assert child.wait(LIMIT) == 0


def silent_server(place):
    """A server that takes the connection, and answers when it is told to."""
    listener = socket.create_server(("127.0.0.1", place.silent))
    listener.settimeout(LIMIT)
    return listener


def waiting(place, listener):
    """A request that is being served: its client, and the server's side of it."""
    client = socket.create_connection(("127.0.0.1", place.port), timeout=LIMIT)
    client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    server, _ = listener.accept()
    server.settimeout(LIMIT)
    assert b"/slow" in server.recv(4096)
    return client, server


def answered(client, server):
    server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
    got = b""
    while not got.endswith(b"late"):
        piece = client.recv(4096)
        assert piece, got
        got += piece
    client.close()
    server.close()


@case("harrier -D -f FILE -p /run/harrier.pid")
@case("harrier -D -f FILE -p /run/harrier.pid -sf $(cat /run/harrier.pid)")
def reload(place):
    with silent_server(place) as listener:
        old = place.daemon()
        client, server = waiting(place, listener)
        new = place.daemon("-sf", str(old))
        assert new != old and not gone(old)
        answered(client, server)
        until(lambda: gone(old), "the end of the old process")
        os.kill(new, signal.SIGTERM)
        until(lambda: gone(new), "the end of the new process")


@case("harrier reload -S SOCKET")
def reload_in_place(place):
    socket_path, copy = place.path("master"), place.path("in-place.cfg")
    text = open(place.file).read()
    open(copy, "w").write(text)
    child = place.start("-W", "-S", socket_path, "-f", copy)
    assert place.serves() == "here"
    good = subprocess.run([place.binary, "reload", "-S", socket_path], capture_output=True, timeout=LIMIT)
    assert good.returncode == 0, good
    open(copy, "w").write(text + "\nbackend wrong\n    no-such-word\n")
    bad = subprocess.run([place.binary, "reload", "-S", socket_path], capture_output=True, timeout=LIMIT)
    assert bad.returncode == 1 and b"no-such-word" in bad.stderr, bad
    assert place.serves() == "here"
    child.terminate()
    assert child.wait(LIMIT) == 0


@case("kill -USR1 PID")
def soft_stop(place):
    with silent_server(place) as listener:
        child = place.start("-db", "-f", place.file)
        place.serves()
        client, server = waiting(place, listener)
        run("kill", "-USR1", str(child.pid))
        answered(client, server)
        child.wait(LIMIT)


@case("kill -TERM PID")
def hard_stop(place):
    child = place.start("-db", "-f", place.file)
    place.serves()
    run("kill", "-TERM", str(child.pid))
    child.wait(LIMIT)


@case("kill -HUP PID")
def states(place):
    child = place.start("-db", "-f", place.file)
    place.serves()
    run("kill", "-HUP", str(child.pid))
    place.says("Server slow/s1 is UP")
    child.terminate()
    child.wait(LIMIT)


@case("echo help | socat - PATH")
def commanded(place):
    child = place.start("-db", "-f", place.file)
    place.serves()
    assert "show info" in run("sh", "-c", f"echo help | socat - {place.socket}")
    assert "DroppedLogs:" in run("sh", "-c", f"echo show info | socat - {place.socket}")
    child.terminate()
    child.wait(LIMIT)


# ---------------------------------------------------------------- what is not there

@case("what is refused")
def refused(place):
    """Each part that README.md says is not there, by a line that asks for it."""
    lines = {"HTTP/3": "frontend f\n    bind quic4@:1",
             "ACME": "acme x\n    directory http://x"}
    for name, text in lines.items():
        assert name in README, name
        told = run(place.binary, "-c", "-f", place.write("refused.cfg", text + "\n"), code=1)
        assert "not supported yet" in told, f"{name}: {told}"


@case("links")
def links(place):
    for path in re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`((?:docs|tests|examples)/[^` ]*)`", README):
        assert os.path.exists(os.path.join(ROOT, path)), path


BEYOND = {"what is refused", "links"}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--binary", required=True)
    binary = os.path.realpath(args.parse_args().binary)
    failed = 0
    told = commands()
    for command in sorted(told ^ (set(CASES) - BEYOND)):
        failed += 1
        print("FAIL", command, "(no test runs it)" if command in told else "(not in README.md)")
    passed = 0
    # One run serves the commands that it is about.
    for test in dict.fromkeys(CASES.values()):
        with tempfile.TemporaryDirectory() as folder:
            place = Place(binary, folder)
            try:
                test(place)
                passed += 1
                print("ok  ", test.__name__)
            except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as error:
                failed += 1
                print("FAIL", test.__name__, error)
            finally:
                place.end()
    print(f"outside: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
