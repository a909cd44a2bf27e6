#!/usr/bin/env python3
"""Ask a runtime socket again and again until its answer matches: until.py SOCKET COMMAND REGEX.

What peers tell each other arrives when it arrives; a test waits for it here, and fails after 20 s."""
import re, socket, sys, time

path, command, wanted = sys.argv[1:4]
end = time.monotonic() + 20
answer = ""
while time.monotonic() < end:
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(path)
            s.sendall(command.encode() + b"\n")
            parts = iter(lambda: s.recv(65536), b"")
            answer = b"".join(parts).decode(errors="replace")
    except OSError as e:
        answer = str(e)
    if re.search(wanted, answer):
        sys.exit(0)
    time.sleep(0.02)
print(f"{command!r} never matched {wanted!r}, but said:\n{answer}")
sys.exit(1)
