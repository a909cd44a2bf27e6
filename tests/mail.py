#!/usr/bin/env python3
"""Mails about servers (`email-alert`), as real mail servers receive them.

    mail.py --binary PROGRAM [--oracle HAPROXY --script mailers.lua]

Sends each through a mail server of this file, and, where Python's `aiosmtpd` can be imported, through that one. With
`--oracle` HAProxy sends the same by its example of a script, and what differs is shown: the texts that docs/differences.md
names may.
"""

import argparse
import email
import email.utils
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

passed = failed = skipped = 0


def check(name, good, seen=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else f': {seen}'}", flush=True)


class Own:
    """A mail server that takes whatever comes."""

    name = "own"

    def __init__(self):
        self.mails, self.socket = [], socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        say = lambda text: peer.sendall(text + b"\r\n")
        lines = peer.makefile("rb")
        hello = sender = to = None
        say(b"220 own")
        for line in lines:
            word, _, rest = line.decode().strip().partition(" ")
            if word in ("EHLO", "HELO"):
                hello = rest
            elif word == "MAIL":
                sender = rest.partition("<")[2].rstrip(">")
            elif word == "RCPT":
                to = rest.partition("<")[2].rstrip(">")
            elif word == "DATA":
                say(b"354 go on")
                text = b""
                for line in lines:
                    if line == b".\r\n":
                        break
                    text += line[1:] if line.startswith(b".") else line
                self.mails.append((hello, sender, to, text))
            say(b"221 bye" if word == "QUIT" else b"250 fine")
            if word == "QUIT":
                break
        peer.close()

    def stop(self):
        self.socket.close()


class Aiosmtpd:
    """The mail server of that name."""

    name = "aiosmtpd"

    def __init__(self):
        from aiosmtpd.controller import Controller

        self.mails = mails = []

        class Handler:
            async def handle_DATA(self, server, session, envelope):
                mails.append((session.host_name, envelope.mail_from, envelope.rcpt_tos[0], envelope.content))
                return "250 fine"

        probe = socket.create_server(("127.0.0.1", 0))
        self.port = probe.getsockname()[1]
        probe.close()
        self.controller = Controller(Handler(), hostname="127.0.0.1", port=self.port)
        self.controller.start()

    def stop(self):
        self.controller.stop()


CONFIG = """
global
    {glob}
    stats socket {dir}/cli level admin
mailers some
    timeout mail 4s
    mailer one 127.0.0.1:{port}
    mailer two 127.0.0.1:{port2}
defaults
    mode http
    timeout connect 1s
    timeout server 5s
    timeout client 5s
backend be
    email-alert mailers some
    email-alert from lb@x.test
    email-alert to ops@x.test
    email-alert level {level}
    email-alert myhostname lb.x.test
    {option}
    server s1 127.0.0.1:{web} check inter 100 fall 1 rise 1
    server s2 127.0.0.1:{web} track s1
    server s3 127.0.0.1:{web} backup
"""


def play(program, server, second, glob="", level="debug", option=""):
    """The mails that come while servers change."""
    with tempfile.TemporaryDirectory() as folder:
        web = socket.create_server(("127.0.0.1", 0))
        text = CONFIG.format(glob=glob, dir=folder, port=server.port, port2=second.port, level=level, option=option,
                             web=web.getsockname()[1])
        path = os.path.join(folder, "x.cfg")
        with open(path, "w") as file:
            file.write(text)
        process = subprocess.Popen([program, "-db", "-f", path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=folder)

        def cli(command):
            for _ in range(100):
                try:
                    with socket.socket(socket.AF_UNIX) as line:
                        line.connect(os.path.join(folder, "cli"))
                        line.sendall(command.encode() + b"\n")
                        while line.recv(4096):
                            pass
                        return
                except OSError:
                    time.sleep(0.1)

        cli("show info")
        time.sleep(1)
        for command in ["set server be/s3 health down", "set server be/s3 health up", "set server be/s3 state maint",
                        "set server be/s3 state ready", "set server be/s3 state drain"]:
            cli(command)
            time.sleep(0.2)
        web.close()
        time.sleep(1.5)
        process.terminate()
        said = process.communicate()[1].decode()
        return said


def texts(server):
    return [email.message_from_bytes(text)["Subject"] for _, _, _, text in server.mails]


LEFT = "0 sessions active, 0 requeued, 0 remaining in queue"
REFUSED = "reason: Layer4 connection problem, check duration: 0ms"
WANTED = [
    f"Server be/s3 is DOWN, changed from CLI. 2 active and 0 backup servers left. {LEFT}",
    f"Server be/s3 is UP, changed from CLI. 2 active and 1 backup servers left. {LEFT}",
    f"Server be/s3 enters drain state. 2 active and 0 backup servers left. {LEFT}",
    f"Server be/s1 is DOWN, {REFUSED}. 1 active and 0 backup servers left. {LEFT}",
    f"Server be/s2 is DOWN via be/s1. 0 active and 0 backup servers left. {LEFT}",
]


def run(program, make):
    one, two = make(), make()
    play(program, one, two)
    wanted = [f"[HAProxy Alert] {text}" for text in WANTED]
    check(f"{one.name}: what is mailed", texts(one) == wanted, texts(one))
    check(f"{one.name}: to each mailer", texts(two) == wanted, texts(two))
    if one.mails:
        hello, sender, to, text = one.mails[0]
        check(f"{one.name}: envelope", (hello, sender, to) == ("lb.x.test", "lb@x.test", "ops@x.test"), one.mails[0])
        mail = email.message_from_bytes(text)
        check(f"{one.name}: header", [mail["From"], mail["To"]] == ["lb@x.test", "ops@x.test"], text)
        age = time.time() - email.utils.parsedate_to_datetime(mail["Date"]).timestamp()
        check(f"{one.name}: date", 0 <= age < 60, mail["Date"])
        check(f"{one.name}: body", mail.get_payload().strip() == WANTED[0], mail.get_payload())
    one.stop(), two.stop()


def levels(program):
    for level, count in [("emerg", 0), ("alert", 3), ("notice", 5)]:
        one, two = Own(), Own()
        play(program, one, two, level=level)
        check(f"level {level}", len(one.mails) == count, texts(one))
    one, two = Own(), Own()
    play(program, one, two, option="option log-health-checks")
    first = f"Health check for server be/s1 failed, {REFUSED}, status: 0/1 DOWN"
    down = f"Server be/s1 is DOWN. 1 active and 0 backup servers left. {LEFT}"
    seen = [text.removeprefix("[HAProxy Alert] ") for text in texts(one)]
    check("results of checks", seen[-3:-1] == [first, down], seen)


def scripted(program):
    """A script that says that it will send the mails is believed."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("core.use_native_mailers_config()\n")
        script.flush()
        one, two = Own(), Own()
        glob = f"tune.lua.bool-sample-conversion normal\n    lua-load {script.name}"
        play(program, one, two, glob=glob)
        check("a script that sends mails", one.mails == [], texts(one))


def compare(program, oracle, script):
    """What HAProxy mails by its script, beside ours."""
    glob = f"tune.lua.bool-sample-conversion normal\n    lua-load {script}"
    seen = []
    for which, extra in [(program, ""), (oracle, glob), (program, glob)]:
        one, two = Own(), Own()
        play(which, one, two, glob=extra)
        seen.append(texts(one))
    for ours, theirs in zip(seen[0], seen[1]):
        print(f"{'same' if ours == theirs else 'ours'} {ours}")
        if ours != theirs:
            print(f"hers {theirs}")
    check("as many mails as the script's", len(seen[0]) == len(seen[1]) == len(seen[2]), seen)


def main():
    global skipped
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--script")
    args = parser.parse_args()
    program = os.path.abspath(args.binary)
    run(program, Own)
    try:
        import aiosmtpd  # noqa: F401

        run(program, Aiosmtpd)
    except ImportError:
        print("skip aiosmtpd is not here")
        skipped += 1
    levels(program)
    scripted(program)
    if args.oracle:
        compare(program, os.path.abspath(args.oracle), os.path.abspath(args.script))
    print(f"outside: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


main()
