#!/usr/bin/env python3
"""Fates of connections over TLS and HTTP/2: what fates/ does with HTTP/1 and TCP in clear.

    transports.py --binary target/quick/harrier            compare with the recorded answers (answers.json.gz)
    transports.py --binary HARRIER --oracle HAPROXY        compare with a program that is at hand
    transports.py --record --oracle HAPROXY                ask the oracle and write answers.json.gz
    transports.py --oracle HAPROXY --ask --only REGEX      show what a program answers

tls_cases.py and h2_cases.py make them. What is compared is what fates.py compares, and beside it what TLS says on either side, alerts and sessions included. Cases
that say so run in a process of their own and have the figures of TLS in `show info` compared.
"""
import os, re, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from borrowed import fates
import h2_cases, net, peers, tls_cases

LINE = ("%ft %b/%s t=%Th/%Ti/%TR/%Tw/%Tc/%Tr/%Ta %ST %B %U %tsc %fc/%bc/%sc/%rc %sq/%bq %{+Q}r fe=%[fc_err_name] be=%[bc_err_name] "
        "%sslv %[ssl_fc]/%[ssl_fc_is_resumed]/%[ssl_fc_alpn]/%[ssl_fc_sni]/%[ssl_c_verify]/%[ssl_fc_err]/%[fc_http_major] "
        "%[ssl_bc]/%[ssl_bc_is_resumed]/%[ssl_bc_alpn]/%[ssl_bc_protocol]/%[ssl_bc_err]/%[bc_http_major]")
TCP_LINE = LINE.replace("%TR/%Tw/%Tc/%Tr/%Ta %ST", "%Tw/%Tc/%Tt").replace("%tsc", "%ts").replace("%{+Q}r fe", "fe").replace("/%[fc_http_major]", "").replace("/%[bc_http_major]", "")
CONFIG = fates.CONFIG.replace("maxconn 4000", "maxconn 4000\n tune.ssl.lifetime 1h\n ssl-server-verify none")
INFO = re.compile(r"(CumSslConns|CurrSslConns|SslCacheLookups|SslCacheMisses): (\d+)")


class Program(fates.Program):
    cases, template, line, tcp_line = {**tls_cases.CASES, **h2_cases.CASES}, CONFIG, LINE, TCP_LINE

    def __init__(self, binary, patience, names, alone=False):
        self.binary, self.alone = binary, alone
        super().__init__(binary, patience, names)

    def client(self, name, case):
        if case.get("alone") and not self.alone:
            return {"apart": self.apart(name), "late": False}
        peer = peers.Peer(self.dial(name), fates.CLIENT_END, "client", case.get("h2") in ("client", "both"), lambda: self.dial(name))
        for step in case["client"]:
            self.quietly(lambda: peer.act(step))
        peer.leave()
        told = peer.past + [peer.said()]
        return {"client": [text for text, _ in told], "end": [end for _, end in told], "late": peer.late}

    def apart(self, name):
        """A program for this case alone."""
        program = Program(self.binary, self.patience, [name], True)
        try:
            answer = program.run(name)
            answer["info"] = dict(INFO.findall(program.command("show info")))
            return answer
        finally:
            program.stop()

    def run_all(self):
        super().run_all()
        for name in self.names:
            self.answers[name] = self.answers[name].get("apart", self.answers[name])

    @staticmethod
    def compared(one, other):
        """Of data that broke off Harrier does not say that they ended (docs/differences.md, `option nolinger`), and no program fails to write to a client
        that is gone in the same moment as the other."""
        one, other = ({**answer, "log": [line.replace("fe=EPIPE", "fe=-") for line in answer.get("log", [])],
                       "end": [end.removeprefix("notified, ") if any(re.search(r" [SPLCsc][DHL](--)? ", line) for line in answer.get("log", [])) else end for end in answer.get("end", [])]}
                      for answer in (one, other))
        return fates.Program.compared(one, other)

    @staticmethod
    def server_peer(case):
        return lambda conn, longest: peers.Peer(conn, longest, "server", case.get("h2") in ("server", "both"), None)


if __name__ == "__main__":
    sys.exit(net.main(Program, Program.cases, HERE, "answers.json.gz"))
