"""Where messages of HTTP/1 end, for the harness' clients and origins. Lenient: it has to follow odd messages, too."""
import re


def head_end(data, start=0):
    """Where the head that begins at `start` ends, or -1."""
    end = data.find(b"\r\n\r\n", start)
    return end + 4 if end >= 0 else -1


def fields(head):
    out = {}
    for line in head.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            out.setdefault(name.strip().lower(), []).append(value.strip())
    return out


def chunked_end(data, at):
    """Where a chunked body that begins at `at` ends, or -1."""
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return -1
        try:
            size = int(bytes(data[at:line]).split(b";")[0].strip(), 16)
        except ValueError:
            return -1
        at = line + 2
        if size == 0:
            while True:
                line = data.find(b"\r\n", at)
                if line < 0:
                    return -1
                if line == at:
                    return line + 2
                at = line + 2
        at += size + 2
        if at > len(data):
            return -1


def body_end(data, at, found, default):
    """Where the body ends: an index, -1 when more is needed, None when it ends with the connection."""
    coding = b",".join(found.get(b"transfer-encoding", [])).lower()
    if b"chunked" in coding:
        return chunked_end(data, at)
    length = found.get(b"content-length")
    if length and re.fullmatch(rb"\d+", length[0]):
        end = at + int(length[0])
        return end if end <= len(data) else -1
    return at if default == "none" else None


def request_end(data):
    """Length of the first request in `data`, or -1."""
    end = head_end(data)
    if end < 0:
        return -1
    return body_end(data, end, fields(bytes(data[:end])), "none")


def response_end(data, method="GET", at=0):
    """Length of the final response (interim ones before it included), -1 for more, None for until the connection ends."""
    while True:
        end = head_end(data, at)
        if end < 0:
            return -1
        head = bytes(data[at:end])
        match = re.match(rb"HTTP/1\.\d (\d\d\d)", head)
        if not match:
            return None
        status = int(match[1])
        if status == 101 or (method == "CONNECT" and 200 <= status < 300):
            return end
        if 100 <= status < 200:
            at = end
            continue
        if method == "HEAD" or status in (204, 304):
            return end
        return body_end(data, end, fields(head), "close")
