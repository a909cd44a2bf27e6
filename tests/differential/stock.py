"""The stock of lines that broken.py makes configurations of: for each keyword, values that HAProxy takes.

    stock.py --oracle HAPROXY --keywords /work/shared/keywords     writes stock.json

Many lines are tried at once in each kind of section and in each mode; those that HAProxy has nothing to say against are kept
for that place, three of a keyword at most. The
keywords are those that HAProxy itself lists; values are guessed from a list that knows the forms of the language, and taken
from the examples of docs/reference.md and from the configurations of tests/vtc.
"""
import argparse, glob, json, os, re, subprocess, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

VALUES = ["", "on", "1", "10", "100", "5s", "10k", "a", "/a", "x-a", "a b", "TEST", "GET /a", "127.0.0.1", "127.0.0.1:80",
          "10.0.0.0/8", "s", "b", "b if TRUE", "if TRUE", "s if TRUE", "a path /a", "request len 10", "expect status 200",
          "200", "503 /dev/null", "503 http://a/", "name x-a len 8", "header x-a len 8", "src", "src table b", "roundrobin",
          "type ip size 1k expire 1m store gpc0", "sid insert indirect", "consistent sdbm avalanche", "trace", "tcp",
          "http", "always", "none", "all", "auto", "level err", "stdout local0", "127.0.0.1:514 local0 info", "*", "%ci",
          "64 32 16 8", "1 2", "0.5", "50", "user root", "add x-a b", "source 127.0.0.1", "a:b", "TLSv1.2", "h2", "h1",
          "x-a,lower", "60", "strict", "0640", "server", "user.a", "proc.a int(1)", "A 1", "algo gzip", "type text/plain",
          "connect", "send x", "expect string x", "connection accept", "inspect-delay 1s", "content accept", "from a@b",
          "auth u:p", "refresh 5s", "scope .", "realm a", "cpu 1", "1/all 0-1", "127.0.0.1 interface lo", "0.0.0.0",
          "reject", "allow", "deny", "set-header x-a b", "last,libc", "up", "down", "layer4", "mark-down", "shutdown-sessions",
          "verify none", "send-proxy", "512", "1024", "65535", "cubic", "id", "path", "uri", "hdr(x)", "url_param a"]

PLACES = {
    "global": "global\n {}\nfrontend f\n bind 127.0.0.1:80\n timeout client 1s\n",
    "defaults": "defaults d\n mode {mode}\n timeout client 1s\n timeout connect 1s\n timeout server 1s\n {}\n"
                "frontend f from d\n bind 127.0.0.1:80\nbackend b from d\n server s 127.0.0.1:80\n",
    "frontend": "defaults\n mode {mode}\n timeout client 1s\n timeout connect 1s\n timeout server 1s\n"
                "frontend f\n bind 127.0.0.1:80\n {}\nbackend b\n server s 127.0.0.1:80\n",
    "backend": "defaults\n mode {mode}\n timeout client 1s\n timeout connect 1s\n timeout server 1s\n"
               "backend b\n {}\n server s 127.0.0.1:80\n",
    "bind": "frontend f\n timeout client 1s\n {}\n",
    "server": "backend b\n mode http\n timeout connect 1s\n timeout server 1s\n {}\n",
}
# What must not run or read anything of the machine, or needs a file.
LEFT_OUT = re.compile(r"lua|external|51degrees|deviceatlas|wurfl|chroot|user|group|daemon|module-|engine|state-file|^quick-exit|zero-w|setenv|"
                      r"presetenv|strict-limits|quiet|ca-base|crt-base|dh-param-file|issuers|crt-list|^crt|^ca-|^ecdhe|ocsp|"
                      r"maxconn-|ulimit|acme|spoe|opentracing|ot-|pidfile|tune.memory|ssl-engine|ssl-provider|expose-|master")


def words_of(folder, name):
    lines = open(os.path.join(folder, name)).read().split("\n")
    return [l.split("\t")[0] for l in lines if l and not l.startswith("#")]


def examples():
    """`set: (name, example)` of docs/reference.md."""
    out, title = {}, ""
    for line in open(os.path.join(ROOT, "docs", "reference.md")):
        if line.startswith("## "):
            title = line[3:].strip()
        found = re.match(r"- `([^`(:]+).*?`.*Example: `([^`]+)`", line)
        bare = re.match(r"- `([^`(:]+): ", line)
        if found:
            out.setdefault(title, []).append((found[1].strip(), found[2]))
        elif bare:
            out.setdefault(title, []).append((bare[1].strip(), bare[1].strip()))
    return out


def vtc_lines():
    """Lines of the configurations in tests/vtc, with the section they stand in."""
    kinds = ("global", "defaults", "frontend", "backend", "listen")
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/vtc/*/*.vtc"))):
        for block in re.findall(r"-conf(?:\+backend|\+vcl)? \{(.*?)\n\}", open(path).read(), re.S):
            place = None
            for line in block.split("\n"):
                line = re.sub(r"\$\{\w+_addr\}", "127.0.0.1", line.strip())
                line = re.sub(r"\$\{\w+_port\}", "81", line)
                line = re.sub(r'"fd@\$\{\w+\}"', "127.0.0.1:82", line)
                word = line.split(" ")[0]
                if word in kinds:
                    place = "frontend" if word == "listen" else word
                elif re.match(r"[a-z-]+$", word) and "${" not in line and "/" not in word and place:
                    if word not in ("bind", "server", "mode", "stats", "errorfile", "use-server", "default_backend",
                                    "use_backend", "dispatch", "log", "ssl-f-use"):
                        yield place, line


def candidates(folder):
    """(place, mode, line) to be tried; of one keyword the first few that are taken are kept."""
    for word in words_of(folder, "global.txt"):
        yield "global", "tcp", word, VALUES
    for word in words_of(folder, "bind.txt"):
        yield "bind", "tcp", word, VALUES
    for word in words_of(folder, "server.txt"):
        yield "server", "http", word, VALUES
    for word in words_of(folder, "proxy.txt"):
        if word in ("bind", "server", "mode", "disabled"):
            continue
        for place in ("defaults", "frontend", "backend"):
            for mode in ("tcp", "http"):
                yield place, mode, word, VALUES
    known = examples()
    for name, example in known.get("Actions", []):
        for rules in ("tcp-request connection", "tcp-request session", "tcp-request content", "tcp-response content",
                      "http-request", "http-response", "http-after-response"):
            for place in ("frontend", "backend"):
                yield place, "http", f"{rules} {example}", [""]
    for name, example in known.get("Sample fetches", []):
        for rules in ("http-request", "http-response", "tcp-request content"):
            yield "backend", "http", f"{rules} set-var(txn.a) {example}", [""]
    for name, example in known.get("Converters", []):
        for head in ("str(a)", "int(1)", "src"):
            yield "backend", "http", f"http-request set-var(txn.a) {head},{example}", [""]
    for place, line in vtc_lines():
        for mode in ("tcp", "http"):
            yield place, mode, line, [""]


def framed(place, mode, tried):
    """A configuration with all the lines, and the number of the first of them."""
    if place == "bind":
        tried = [f"bind 127.0.0.1:80 {line}" for line in tried]
    if place == "server":
        tried = [f"server s{n} 127.0.0.1:80 {line}" for n, line in enumerate(tried)]
    frame = PLACES[place].replace("{mode}", mode)
    before = frame[:frame.index("{}")].count("\n") + 1
    return frame.replace("{}", "\n ".join(tried)), before


def promising(oracle, place, mode, tried):
    """The lines among many that HAProxy does not complain of when it reads all of them in one go. Some errors end its
    reading: then it goes on behind them."""
    text, before = framed(place, mode, tried + ["the-last one"])
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as f:
        f.write(text)
        f.flush()
        r = subprocess.run([oracle, "-c", "-f", f.name], capture_output=True, timeout=120, cwd=tempfile.gettempdir())
        text = r.stderr.decode(errors="replace")
        bad = {int(n) for n in re.findall(r"ALERT\].*?%s:(\d+)\]" % re.escape(f.name), text)}
    end = max((n - before for n in bad), default=-1)
    seen = len(tried) if end >= len(tried) else end + 1
    good = [line for n, line in enumerate(tried[:seen]) if n + before not in bad]
    return good + (promising(oracle, place, mode, tried[seen:]) if 0 < seen < len(tried) else [])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--oracle", required=True)
    p.add_argument("--keywords", required=True)
    p.add_argument("--out", default=os.path.join(HERE, "stock.json"))
    options = p.parse_args()

    groups = {}
    for place, mode, word, values in candidates(options.keywords):
        if not (LEFT_OUT.search(word.split(" ")[0]) and len(values) > 1):
            lines = groups.setdefault((place, mode), {})
            lines.setdefault(word, [f"{word} {value}".strip() for value in values])
    stock = {}
    for (place, mode), words in groups.items():
        kept = stock.setdefault(f"{place} {mode}", [])
        flat = [(word, line) for word, lines in words.items() for line in lines]
        for at in range(0, len(flat), 400):
            part = flat[at:at + 400]
            good = set(promising(options.oracle, place, mode, [line for _, line in part]))
            for word, line in part:
                if line in good and sum(k.startswith(word) for k in kept) < 3 and line not in kept:
                    kept.append(line)
    with open(options.out, "w") as f:
        json.dump(stock, f, indent=0, sort_keys=True)
        f.write("\n")
    print({k: len(v) for k, v in stock.items()})


if __name__ == "__main__":
    main()
