"""What programs of the second generation have besides: keywords and commands with which those of the first, whose seeds lie below
30001, were accepted too rarely or never, with values that HAProxy takes on any machine.

The draws are its own, so that nothing of what the first generation makes of a seed changes.
"""
import os, random, re

from values import chance, pick

FIRST = 30001
CERTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "certs")

GLOBAL = ["tune.fd.tables shared", "tune.fd.tables per-thread-group", "tune.fd.edge-triggered on", "tune.fd.edge-triggered off", "tune.h2.header-table-size 8192",
          "tune.defaults.purge all", "tune.defaults.purge none", "noreuseport", "jwt.decrypt_alg_list dir", "jwt.decrypt_alg_list RSA-OAEP",
          "tune.ssl.capture-buffer-size 128", "force-cfg-parser-pause 0", "zero-warning", "harden.reject-privileged-ports.quic on",
          "tune.quic.listen off", "tune.quic.mem.tx-max 5m", "tune.quic.zero-copy-fwd-send off", "tune.quic.fe.sock-per-conn force-off",
          "tune.quic.fe.sec.retry-threshold 5", "tune.quic.fe.stream.max-total 100"]
# Both programs read them; there is no QUIC in these programs to tune.
GLOBAL += [f"tune.quic.{side}.{word}" for side in ("fe", "be") for word in (
    "cc.cubic-min-losses 2", "cc.hystart on", "cc.max-frame-loss 5", "cc.max-win-size 100k", "cc.reorder-ratio 60", "max-idle-timeout 5s",
    "sec.glitches-threshold 5", "stream.data-ratio 50", "stream.max-concurrent 5", "stream.rxbuf 50k", "tx.pacing off", "tx.udp-gso off")]
BIND_TLS = ["generate-certificates ca-sign-file sign.pem", "ktls on", "ktls off", "no-tlsv11", "no-tlsv13", "ssl-min-ver TLSv1.2", "ssl-min-ver TLSv1.3",
            "tls-ticket-keys tickets.keys"]
SERVER_TLS = ["ktls on", "ktls off", "no-tlsv11", "ssl-min-ver TLSv1.2"]
COMMANDS = ["debug counters", "debug counters show fe", "dump stats-file", "show resolvers nope", "show ssl sni", "show ssl ocsp-updates"]
# What HAProxy takes only where experiments are let in.
EXPERIMENTAL = (" ktls ", " force-cfg-parser-pause ", " tune.fd.edge-triggered ", " tune.fd.tables ")


def added(rng, line, words):
    """The line with one of these words, unless the keyword stands there."""
    word = pick(rng, words)
    return line if f" {word.split()[0]}" in line else f"{line} {word}"


def of_line(rng, line, extra):
    if line.startswith("    bind ") and " ssl crt " in line and chance(rng, 0.5):
        return added(rng, line, BIND_TLS)
    if line.startswith("    bind ") and " accept-proxy" not in line and chance(rng, 0.03):
        # Clients do not send such a header: they are turned away.
        return line + " accept-netscaler-cip 5"
    if line.startswith("    server "):
        if " ssl" in line and chance(rng, 0.3):
            line = added(rng, line, SERVER_TLS)
        if " send-proxy-v2 " in line + " " and chance(rng, 0.5):
            line += pick(rng, [" set-proxy-v2-tlv-fmt(0xE1) %[fc_src]", " set-proxy-v2-tlv-fmt(0x20) text"])
        if " check " in line + " " and chance(rng, 0.3):
            extra.add("healthcheck hc")
            line += " healthcheck hc"
        if chance(rng, 0.03):
            line += " namespace *"
        if chance(rng, 0.03):
            # It stands before all other words.
            line = re.sub(r"^(    server \S+ \S+)", r"\1 " + pick(rng, ["from none", "from be:"]), line)
    return line


def enrich(case):
    """The same program with a few words, lines and commands more."""
    rng, extra = random.Random(case["seed"] * 104729 + 3), set()
    config = [of_line(rng, line, extra) for line in case["config"]]
    if any(" filter bwlim-" in line for line in config) and chance(rng, 0.5):
        after = next(n for n, line in enumerate(config) if " filter bwlim-" in line)
        config.insert(after + 1, "    filter-sequence " + pick(rng, ["request", "response"]) + " " + config[after].split()[1])
    for _ in range(rng.randrange(3)):
        line = pick(rng, GLOBAL)
        if not any(other.split()[:1] == line.split()[:1] for other in config):
            config.insert(4, "    " + line)
    if any(word in f"{line} " for line in config for word in EXPERIMENTAL) and "    expose-experimental-directives" not in config:
        config.insert(1, "    expose-experimental-directives")
    if extra:
        config += ["healthcheck hc", "    type tcp-check"]
    steps, files = list(case["steps"]), dict(case["files"])
    if any("sign.pem" in line for line in config):
        files["sign.pem"] = "".join(open(os.path.join(CERTS, name)).read() for name in ("ca.crt", "ca.key"))
    if chance(rng, 0.5):
        steps.insert(rng.randrange(1, len(steps) + 1), [["cli", pick(rng, COMMANDS)]])
    return dict(case, config=config, steps=steps, files=files)
