"""A small name server for the tests of resolvers, over UDP and TCP, on a port that the kernel picks.

    dns.py FOLDER      reads FOLDER/conf.in and writes it to FOLDER/conf with the port for DNSPORT, then goes
                       on in the background until the folder is gone, or for a minute
    dns.py FOLDER wait SOCKET SECONDS COMMAND REGEX
                       asks the runtime API until its answer matches, and prints the part that does

FOLDER/zone is read for each question. A line is a name in lower case and one or more of
    A ADDRESS | AAAA ADDRESS | SRV WEIGHT PORT HOST | CNAME HOST | HOST NAME ADDRESS (an additional record)
    RCODE NUMBER | DROP | TRUNCATED | BADID | JUNK | LOOP | ELSEWHERE | LATE MS | OTHERNAME | LONG
Each question is noted in FOLDER/asked as `name type transport`.
"""
import os, re, socket, struct, sys, threading, time

TYPES = {1: "A", 28: "AAAA", 33: "SRV"}


def encoded(name):
    return b"".join(bytes([len(l)]) + l.encode() for l in name.split(".") if l) + b"\0"


def zone(folder):
    found, lines = {}, []
    # The test may be just writing it.
    while not lines:
        lines = open(folder + "/zone").readlines()
    for line in lines:
        words = line.split()
        if not words:
            continue
        entry = found.setdefault(words[0], {"A": [], "AAAA": [], "SRV": [], "HOST": []})
        at = 1
        while at < len(words):
            word = words[at]
            size = {"SRV": 3, "HOST": 2, "A": 1, "AAAA": 1, "CNAME": 1, "RCODE": 1, "LATE": 1}.get(word, 0)
            value = words[at + 1:at + 1 + size]
            if word in ("A", "AAAA", "SRV", "HOST"):
                entry[word].append(value)
            else:
                entry[word] = value[0] if value else True
            at += 1 + size
    return found


def record(owner, kind, data):
    return encoded(owner) + struct.pack(">HHIH", kind, 1, 1, len(data)) + data


def data_of(kind, value):
    if kind == "A":
        return socket.inet_aton(value[0])
    if kind == "AAAA":
        return socket.inet_pton(socket.AF_INET6, value[0])
    return struct.pack(">HHH", 1, int(value[0]), int(value[1])) + encoded(value[2])


def answer(folder, query, transport):
    number, = struct.unpack(">H", query[:2])
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    name, kind = ".".join(labels), struct.unpack(">H", query[at + 1:at + 3])[0]
    with open(folder + "/asked", "a") as asked:
        asked.write("%s %s %s\n" % (name, TYPES.get(kind), transport))
    entry = zone(folder).get(name.lower(), {"RCODE": "3"})
    if "DROP" in entry:
        return None, entry
    flags = 0x8580 | int(entry.get("RCODE", 0))
    if "TRUNCATED" in entry and transport == "udp":
        flags |= 0x200
    answers, more, owner = [], [], name
    if "RCODE" not in entry:
        if "CNAME" in entry:
            answers.append(record(name, 5, encoded(entry["CNAME"])))
            owner = entry["CNAME"]
        for value in entry.get(TYPES.get(kind), []):
            answers.append(record(owner, kind, data_of(TYPES[kind], value)))
        for host, ip in entry.get("HOST", []):
            more.append(record(host, 1, socket.inet_aton(ip)))
    if "BADID" in entry:
        number ^= 0xff
    question = query[12:at + 5]
    if "OTHERNAME" in entry:
        question = encoded("other.test") + query[at + 1:at + 5]
    head = struct.pack(">HHHHHH", number, flags, 1, len(answers), 0, len(more)) + question
    if "JUNK" in entry:
        return struct.pack(">H", number) + b"\x85\x80" + b"\xff" * 30, entry
    if "LOOP" in entry:
        pointer = bytes([0xc0, len(head)])
        head = struct.pack(">HHHHHH", number, flags, 1, 1, 0, 0) + question
        return head + pointer + struct.pack(">HHIH", kind, 1, 1, 4) + b"\x01\x02\x03\x04", entry
    if "LONG" in entry:
        more.extend(record("pad%d.test" % i, 1, b"\x7f\0\0\1") for i in range(60))
        head = struct.pack(">HHHHHH", number, flags, 1, len(answers), 0, len(more)) + question
    return head + b"".join(answers) + b"".join(more), entry


def over_udp(folder, sock):
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("127.0.0.1", 0))

    def send(reply, entry, peer):
        if "LATE" in entry:
            time.sleep(int(entry["LATE"]) / 1000)
        (other if "ELSEWHERE" in entry else sock).sendto(reply, peer)

    while True:
        query, peer = sock.recvfrom(65536)
        try:
            reply, entry = answer(folder, query, "udp")
        except OSError:
            return
        if reply:
            threading.Thread(target=send, args=(reply, entry, peer), daemon=True).start()


def over_tcp(folder, listener):
    def serve(client):
        stream = client.makefile("rb")
        while True:
            size = stream.read(2)
            if len(size) < 2:
                return
            query = stream.read(struct.unpack(">H", size)[0])
            reply, _ = answer(folder, query, "tcp")
            if reply:
                client.sendall(struct.pack(">H", len(reply)) + reply)

    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


def start(folder):
    while True:
        udp, tcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
        udp.bind(("127.0.0.1", 0))
        try:
            tcp.bind(udp.getsockname())
            break
        except OSError:
            continue
    tcp.listen(16)
    text = open(folder + "/conf.in").read().replace("DNSPORT", str(udp.getsockname()[1]))
    open(folder + "/asked", "a").close()
    if os.fork():
        with open(folder + "/conf", "w") as conf:
            conf.write(text)
        return
    os.setsid()
    for fd in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    threading.Thread(target=over_udp, args=(folder, udp), daemon=True).start()
    threading.Thread(target=over_tcp, args=(folder, tcp), daemon=True).start()
    end = time.time() + 60
    while time.time() < end and os.path.exists(folder + "/zone"):
        time.sleep(0.3)
    os._exit(0)


def wait(path, seconds, command, pattern):
    end, text = time.time() + float(seconds), ""
    while time.time() < end:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5)
        try:
            client.connect(path)
            client.sendall(command.encode() + b"\n")
            text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        except OSError as why:
            # The program is only just starting.
            text = str(why)
        client.close()
        found = re.search(pattern, text, re.M)
        if found:
            print(found.group(0))
            return
        time.sleep(0.03)
    print("waited in vain for %r in:\n%s" % (pattern, text))
    sys.exit(1)


if __name__ != "__main__":
    # Somebody only wants `answer`.
    pass
elif len(sys.argv) > 2:
    wait(*sys.argv[3:7])
else:
    start(sys.argv[1])
