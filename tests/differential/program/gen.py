"""From a seed to a program: a configuration, its files, its origins and at least ten exchanges.

`make(seed)` is a pure function. What it makes may still be refused by a program for good reasons (two keywords that
exclude each other): `run.py` takes out the lines that HAProxy refuses before the program is run.
"""
import random, re

import parts, rules, runtime, second, third, traffic
import values as v
from values import chance, condition, pick

FILES = {
    "tickets.keys": "".join("%s\n" % ("ABCDEFGH"[n] * 64) for n in range(3)),
    "str.map": "alpha one\nbeta two\n/a three\nGET four\n10 ten\n", "beg.map": "/a begins\n/api api\nMoz fire\n/ root\n", "reg.map": "^/a.* re1\n[0-9]+ re2\\0\n",
    "int.map": "5 five\n1:3 few\n42 answer\n", "ip.map": "127.0.0.0/8 local\n10.0.0.0/8 ten\n::1 six\n", "list.acl": "/a\nalpha\n/login\n# comment\n\nwww.example.test\n",
    "nets.acl": "127.0.0.0/8\n10.0.0.0/8\n", "small.txt": "a small file\n", "lf.txt": "path %[path] from %ci\n", "case.txt": "x-b X-B\ncontent-type Content-TYPE\n",
    "503.http": "HTTP/1.1 503 Gone Fishing\r\nContent-Type: text/plain\r\nX-Err: file\r\nContent-Length: 6\r\n\r\nsorry\n", "crt.list": "wild.pem [alpn h2 ssl-min-ver TLSv1.2] *.wild.test !no.wild.test\nwww.pem www.example.test\n",
    "state.txt": "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n3 b1 1 s1 127.0.0.1 2 0 7 1 100 6 3 4 6 0 0 0 - 80 - 0 0 - - 0\n",
}


class Feed:
    """A listener as a client sees it."""

    def __init__(self, name, mode, tls=False, proxy=False, h2=False, alpn=None):
        self.name, self.mode, self.tls, self.proxy, self.h2, self.alpn = name, mode, tls, proxy, h2, alpn

    def opening(self, g):
        out = {}
        if self.tls:
            tls = {"sni": pick(g.rng, ["www.example.test", "a.wild.test", "other.test", "example.test", None])}
            if self.h2:
                tls["alpn"] = ["h2"]
            elif chance(g.rng, 0.3):
                tls["alpn"] = ["http/1.1"]
            if chance(g.rng, 0.25):
                tls["cert"] = "client.pem"
            if chance(g.rng, 0.2):
                tls["max"] = "TLSv1_2"
            out["tls"] = tls
        if self.proxy:
            out["proxy"] = pick(g.rng, ["PROXY TCP4 10.1.2.3 10.4.5.6 1234 80\r\n", "PROXY TCP6 2001:db8::1 ::1 1234 443\r\n", "PROXY UNKNOWN\r\n",
                                        "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x0a\x09\x08\x07\x01\x02\x03\x04\x10\x00\x00\x50", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"] + (["PROXY TCP4 bad\r\n"] if chance(g.rng, 0.1) else []))
        return out


class Generator:
    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random(seed * 7919 + 17)
        self.needs, self.have, self.extra, self.acls, self.mode, self.number, self.streams = set(), {}, [], [], "http", 0, 1
        self.captures, self.listen, self.origins, self.servers, self.fronts, self.backends = {"request": [], "response": []}, {}, {}, [], [], []
        self.own_table, self.proxying, self.feeds = False, None, []

    def count(self):
        self.number += 1
        return self.number

    def need(self, what):
        self.needs.add(what)
        return ""

    def need_own_table(self):
        self.own_table = True
        return ""

    def captured(self):
        return ""

    def declare(self, side):
        """A capture slot for an action that names one."""
        self.extra.append(f"declare capture {side} len 16")
        return 0

    def agent(self):
        """An agent that finds all well."""
        name = f"k{len(self.origins)}a"
        self.origins[name] = {"quiet": True, "kind": "tcp", "default": [["accept"], ["send", "up\n"], ["close"]]}
        return f" agent-inter 400ms agent-port %%port:{name}%% agent-addr 127.0.0.1"

    def proxied(self, version):
        self.proxying = version
        return ""

    # -- lines

    def keywords(self, place, count):
        """Keyword lines for one section, no keyword twice unless it may."""
        out, seen = [], set()
        mode = self.mode[0]
        table = [row for row in parts.PROXY if place in row[2] and mode in row[3]]
        for _ in range(count):
            weight, keyword, _, _, make = rules.weighted(self.rng, table)
            if keyword in seen and not keyword.startswith(("capture", "errorloc", "http-error", "redirect", "stick", "declare")):
                continue
            seen.add(keyword)
            value = make(self)
            if value is None:
                continue
            if place == "d" and keyword.startswith("no "):
                continue
            out.append(keyword + value)
        return out

    def global_section(self):
        out = ["global", "stats socket fd@%%fd:cli%% level admin", "log unix@log.sock len 4096 local0", "nbthread 1", "insecure-fork-wanted" if chance(self.rng, 0.02) else "maxconn 400"]
        seen = set()
        for _ in range(pick(self.rng, [0, 1, 2, 3, 4, 6])):
            _, keyword, make = rules.weighted(self.rng, parts.GLOBAL)
            value = make(self)
            if value is None or keyword in seen:
                continue
            seen.add(keyword)
            out.append(keyword + value)
        return out

    def defaults_section(self, mode, name):
        self.mode = mode
        out = [f"defaults {name}", f"mode {mode}", "log global", "timeout connect 100ms", "timeout client 1s", "timeout server 1s"]
        if chance(self.rng, 0.8):
            out.append("option httplog" if mode == "http" else "option tcplog")
        out += self.keywords("d", pick(self.rng, [0, 1, 2, 3, 5]))
        if mode == "http" and chance(self.rng, 0.2):
            out += rules.some(self, "http-request", rules.HTTP_REQUEST, "req", 2)
            out += rules.some(self, "http-response", rules.HTTP_RESPONSE, "res", 2)
        return out

    def acl_lines(self):
        self.acls, out = [], []
        for _ in range(self.rng.randrange(3)):
            side = "conn" if self.mode == "tcp" else pick(self.rng, ["req", "req", "res"])
            one = pick(self.rng, {"req": v.REQ_BOOL, "res": v.RES_BOOL, "conn": v.CONN_BOOL}[side])
            if one in v.PREDEFINED:
                continue
            if "users" in one:
                self.need("users")
            name = f"acl{self.count()}"
            out.append(f"acl {name} {one}")
            self.acls.append((name, side))
        return out

    def bind(self, mode):
        """A bind line and how clients come to it."""
        rng, name = self.rng, f"fe{self.count()}"
        kind = pick(rng, ["tcp", "tcp", "unix", "tcp6", "hold"])
        self.listen[name] = kind
        line = f"bind fd@%%fd:{name}%%" if kind != "hold" else f"bind 127.0.0.1:%%port:{name}%%"
        feed = Feed(name, mode)
        words = []
        for _ in range(pick(rng, [0, 0, 1, 2])):
            _, word, make = rules.weighted(rng, parts.BIND)
            value = make(self)
            if value is not None:
                words.append(word + value)
        roll = rng.random()
        if roll < 0.28:
            feed.tls = True
            words.append("ssl crt " + pick(rng, ["www.pem", "www.pem", "wild.pem"]))
            for _ in range(pick(rng, [0, 1, 1, 2])):
                _, word, make = rules.weighted(rng, parts.BIND_TLS)
                value = make(self)
                if value is not None:
                    words.append(word + value)
            feed.h2 = mode == "http" and chance(rng, 0.5) and not any("alpn http/1.1" in w or "no-alpn" in w or "npn" in w for w in words)
        elif roll < 0.42 and mode == "http":
            feed.h2 = True
            if chance(rng, 0.7):
                words.append("proto h2")
        elif roll < 0.46 and mode == "http":
            words.append("proto h1")
        if chance(rng, 0.12):
            feed.proxy = True
            words.append("accept-proxy")
        seen, kept = set(), []
        for word in words:
            if word.split()[0] not in seen or word.startswith("crt"):
                kept.append(word)
                seen.add(word.split()[0])
        self.feeds.append(feed)
        return " ".join([line] + kept)

    def rules_of(self, side):
        out = []
        if self.mode == "http":
            if side in "fl":
                out += rules.some(self, "tcp-request connection", rules.TCP_CONNECTION, "conn", 1)
                out += rules.some(self, "tcp-request session", rules.TCP_CONNECTION, "conn", 1) if chance(self.rng, 0.3) else []
            out += rules.some(self, "http-request", rules.HTTP_REQUEST, "req", 5)
            out += rules.some(self, "http-response", rules.HTTP_RESPONSE, "res", 3)
            out += rules.some(self, "http-after-response", rules.HTTP_AFTER, "res", 2) if chance(self.rng, 0.5) else []
        else:
            if side in "fl":
                out += rules.some(self, "tcp-request connection", rules.TCP_CONNECTION, "conn", 2)
                out += rules.some(self, "tcp-request session", rules.TCP_CONNECTION, "conn", 2)
            out += rules.some(self, "tcp-request content", rules.TCP_CONTENT, "conn", 2)
            if side in "lb":
                out += rules.some(self, "tcp-response content", rules.TCP_RESPONSE, "conn", 1)
        return out

    def frontend(self, name, mode, defaults, backends):
        self.mode = mode
        self.fronts.append(name)
        body = [self.bind(mode)] + self.acl_lines() + self.keywords("f", pick(self.rng, [1, 2, 4, 6])) + self.rules_of("f")
        for one in backends[1:]:
            if chance(self.rng, 0.7):
                body.append(f"use_backend {one}" + condition(self, "req" if mode == "http" else "conn", 0.97))
        if mode == "http" and chance(self.rng, 0.08):
            body.append("use_backend b%[path_len,mod(3)]")
        body.append(f"default_backend {backends[0]}")
        body += self.extra
        self.extra, self.acls = [], []
        return [f"frontend {name} from {defaults}"] + body

    def backend(self, name, mode, defaults):
        self.mode, self.own_table = mode, False
        self.backends.append(name)
        rng = self.rng
        body = [f"balance{parts.balance(self)}"] + self.acl_lines() + self.keywords("b", pick(rng, [0, 1, 2, 4, 6])) + self.rules_of("b")
        if self.own_table:
            body.insert(0, "stick-table" + parts.stick_table(self))
        servers = []
        for number in range(pick(rng, [1, 2, 2, 3])):
            servers.append(self.server(name, f"s{number + 1}", mode))
        if chance(rng, 0.15):
            words = [rules.weighted(rng, parts.SERVER) for _ in range(2)]
            made = [w + m(self) for _, w, m in words if w in ("weight", "maxconn", "pool-max-conn", "slowstart", "max-reuse", "error-limit", "fall", "rise", "inter")]
            if made:
                body.append("default-server " + " ".join(made))
        if any(" check " in line + " " for line in servers) and chance(rng, 0.7):
            roll = rng.random()
            body += parts.http_check(self) if roll < 0.5 and mode == "http" else parts.tcp_check(self) if roll < 0.85 else [pick(rng, parts.FOREIGN_CHECKS)]
        if chance(rng, 0.05):
            servers[-1] = re.sub(r"^server s\d+ ", f"server-template s{len(servers)} {pick(rng, [1, 2])} ", servers[-1])
        body += servers
        if len(servers) > 1 and chance(rng, 0.25):
            body.append("use-server s2" + condition(self, "req" if mode == "http" else "conn", 1))
        body += self.extra
        self.extra, self.acls = [], []
        return [f"backend {name} from {defaults}"] + body

    def server(self, backend, name, mode):
        rng, origin = self.rng, f"o{len(self.origins) + 1}"
        self.servers.append(f"{backend}/{name}")
        setting = {"kind": "h1" if mode == "http" else "tcp"}
        kind = pick(rng, ["tcp", "tcp", "tcp", "unix"])
        if kind == "unix":
            setting["at"] = "unix"
        if chance(rng, 0.06):
            setting["dead"] = True
        words, self.proxying = [], None
        for _ in range(pick(rng, [0, 0, 1, 2, 3])):
            _, word, make = rules.weighted(rng, parts.SERVER)
            value = make(self)
            if value is not None:
                words.append(word + value)
        roll = rng.random()
        if roll < 0.12:
            setting["tls"] = {"alpn": ["http/1.1"]}
            words.append("ssl")
            for _ in range(pick(rng, [0, 1, 2])):
                _, word, make = rules.weighted(rng, parts.SERVER_TLS)
                value = make(self)
                if value is not None:
                    words.append(word + value)
            if not any(w.startswith("verify ") for w in words):
                words.append(pick(rng, ["verify none", "verify required ca-file ca.crt"]))
            if any(w.startswith("alpn h2") for w in words) and mode == "http":
                setting["tls"]["alpn"], setting["kind"] = ["h2"], "h2"
        elif roll < 0.22 and mode == "http" and not self.proxying:
            setting["kind"] = "h2"
            words.append("proto h2")
        if self.proxying and setting["kind"] == "h1":
            setting["proxy"] = self.proxying
        if chance(rng, 0.03 if self.have.get("checks") else 0.12):
            check = f"k{len(self.origins)}"
            self.origins[check] = {"quiet": True, "default": [["head"], ["send", "HTTP/1.0 200 OK\r\nX-K: yes\r\n\r\n"], ["close"]]} if mode == "http" else {"quiet": True, "kind": "tcp", "default": [["accept"], ["send", "+OK\r\n"]]}
            words = [w for w in words if not w.startswith(("inter ", "fastinter ", "downinter "))] + ["check", "inter 300ms", "fall 1", f"port %%port:{check}%%", "addr 127.0.0.1"]
            self.have["checks"] = self.checked = f"{backend}/{name}"
        elif getattr(self, "checked", None) and mode == "http" and chance(rng, 0.15):
            words.append("track " + self.checked)
        self.origins[origin] = setting
        seen, kept = set(), []
        for word in words:
            if word.split()[0] not in seen:
                kept.append(word)
                seen.add(word.split()[0])
        address = f"127.0.0.1:%%port:{origin}%%" if kind == "tcp" else f"unix@./{origin}.sock"
        return f"server {name} {address} " + " ".join(kept)

    def sections(self):
        """What other sections were found to need."""
        out = []
        if "users" in self.needs:
            out.append(["userlist users", "group admins users joe", "user joe insecure-password secret groups admins", "user admin insecure-password pw", "user u insecure-password p"])
        if "http-errors" in self.needs:
            out.append(["http-errors errs", "errorfile 404 503.http", "errorfile 503 503.http", "errorfile 403 503.http"])
        if "cache" in self.needs:
            out.append(["cache store1", f"total-max-size {pick(self.rng, [1, 4])}", f"max-age {pick(self.rng, [60, 30])}", "max-object-size 10000", "process-vary " + pick(self.rng, ["on", "off"])])
        if "mailers" in self.needs:
            out.append(["mailers mls", "mailer m1 127.0.0.1:1", "timeout mail 1s"])
        if "st1" in self.needs:
            out.append(["backend st1", "stick-table type string len 32 size 1k store conn_cnt,conn_cur,http_req_cnt,http_err_cnt,bytes_out_cnt,gpc(3),gpt(4),http_fail_cnt,sess_cnt" if chance(self.rng, 0.5)
                        else "stick-table type string len 32 size 1k store conn_cnt,http_req_cnt,http_err_cnt,gpc0,gpc1,gpt0,server_id"])
        return out

    def make(self):
        rng = self.rng
        config = [self.global_section()]
        modes = pick(rng, [["http"], ["http"], ["http"], ["http", "http"], ["http", "tcp"], ["tcp"]])
        names = {}
        for number, mode in enumerate(dict.fromkeys(modes)):
            section = self.defaults_section(mode, f"d{number}")
            config.append(section)
            names[mode] = [f"d{number}"] * 2
            # Rules of a defaults section are for frontends or for backends.
            without = [line for line in section if not line.startswith(("http-request ", "http-response "))]
            if without != section:
                config.append([f"defaults d{number}x"] + without[1:])
                names[mode] = [f"d{number}", f"d{number}x"] if chance(rng, 0.5) else [f"d{number}x", f"d{number}"]
        count, groups, backs = 0, [], []
        for mode in modes:
            group = []
            for _ in range(pick(rng, [1, 1, 2])):
                count += 1
                group.append(f"b{count}")
                backs.append((f"b{count}", mode))
            groups.append((mode, group))
        while count < 1:
            count += 1
        backends = [self.backend(name, mode, names[mode][1]) for name, mode in backs]
        fronts = [self.frontend(f"f{n + 1}", mode, names[mode][0], group) for n, (mode, group) in enumerate(groups)]
        config += fronts + backends
        if "bwlim" in self.needs:
            for section in config:
                if section[0].startswith(("frontend", "backend")) and any("set-bandwidth-limit" in line for line in section):
                    section.insert(1, "filter bwlim-in bw-in default-limit 100m default-period 1s")
                    section.insert(1, "filter bwlim-out bw-out default-limit 100m default-period 1s")
        config += self.sections()
        lines = []
        for section in config:
            lines.append(section[0])
            lines += ["    " + line.rstrip() for line in section[1:]]
        if re.search(r"%\{\+X[^}]*\}(o|[cfbs][ip]\b)", "\n".join(lines)):
            # An address that is no address makes HAProxy drop the whole format.
            self.listen = {name: "tcp" if kind == "unix" else kind for name, kind in self.listen.items()}
        return {"seed": self.seed, "patience": 1.7, "config": lines, "files": dict(FILES), "listen": self.listen, "origins": self.origins, "steps": self.steps(),
                "final": ["show stat", "show info", "show servers state", "show table"] + (["show table st1"] if "st1" in self.needs else []) +
                ["show map str.map", "show acl list.acl", "show servers conn"]}

    def steps(self):
        out, last = [], {}
        if self.have.get("checks"):
            out.append([["await", "show servers state", r"^(?!.*\n\d+ \S+ \d+ \S+ \S+ \d+ \d+ \d+ \d+ \d+ [12] \d+ \d+ (?:[67]|1[45]) ).*$"]])
        for _ in range(self.rng.randrange(10, 14)):
            feed = pick(self.rng, self.feeds)
            if feed.mode == "tcp":
                out.append(traffic.tcp_exchange(self, feed))
                continue
            make = traffic.h2_exchange if feed.h2 else traffic.exchange
            steps, last[feed.name] = make(self, feed, last.get(feed.name))
            out.append(steps)
            if chance(self.rng, 0.35):
                out.append([["cli", runtime.command(self)]])
        return out


def make(seed):
    generator = Generator(seed)
    made = generator.make()
    if seed >= second.FIRST:
        made = second.enrich(made)
    return third.enrich(made, generator) if seed >= third.FIRST else made
