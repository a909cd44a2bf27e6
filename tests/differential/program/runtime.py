"""Commands of the runtime API. A row is a maker of one command; what it shows must not depend on time."""
from values import chance, pick


def server(g):
    return pick(g.rng, g.servers) if g.servers else "b1/s1"


def proxy(g):
    return pick(g.rng, g.backends)


def front(g):
    return pick(g.rng, g.fronts)


MAPS = ["str.map", "beg.map", "list.acl"]
COMMANDS = [
    (3, lambda g: f"disable server {server(g)}"), (3, lambda g: f"enable server {server(g)}"), (3, lambda g: f"set server {server(g)} state {pick(g.rng, ['maint', 'drain', 'ready'])}"),
    (2, lambda g: f"set server {server(g)} weight {pick(g.rng, ['50%', '0', '10', '100%', '300', 'x', '257'])}"), (2, lambda g: f"set weight {server(g)} {pick(g.rng, ['5', '20%', '100%', '-1'])}"),
    (2, lambda g: f"get weight {server(g)}"), (1, lambda g: f"set maxconn server {server(g)} {pick(g.rng, ['5', '100', 'x', ''])}"), (1, lambda g: f"set maxconn frontend {front(g)} {pick(g.rng, ['50', '0', 'a'])}"),
    (1, lambda g: f"set maxconn global {pick(g.rng, ['100', '300', '-1', ''])}"), (1, lambda g: f"disable frontend {front(g)}"), (1, lambda g: f"enable frontend {front(g)}"),
    (1, lambda g: f"disable health {server(g)}"), (1, lambda g: f"enable health {server(g)}"), (1, lambda g: f"disable agent {server(g)}"), (1, lambda g: f"enable agent {server(g)}"),
    (1, lambda g: f"set server {server(g)} health {pick(g.rng, ['up', 'down', 'stopping', 'x'])}"), (1, lambda g: f"set server {server(g)} agent {pick(g.rng, ['up', 'down'])}"),
    (2, lambda g: f"set server {server(g)} addr 127.0.0.1 port %%port:{pick(g.rng, ['o1', 'o2'])}%%"), (1, lambda g: f"set server {server(g)} addr {pick(g.rng, ['127.0.0.7', 'bogus', '::1'])}"),
    (1, lambda g: f"set server {server(g)} fqdn x.test"), (1, lambda g: f"set server {server(g)} check-port {pick(g.rng, ['80', '99999'])}"), (1, lambda g: f"set server {server(g)} check-addr 127.0.0.1 port 80"), (1, lambda g: f"set server {server(g)} agent-addr 127.0.0.1 port 90"),
    (1, lambda g: f"set server {server(g)} agent-port 91"), (1, lambda g: f"set server {server(g)} agent-send hi"), (1, lambda g: f"set server {server(g)} ssl {pick(g.rng, ['on', 'off'])}"),
    (4, lambda g: "show servers state" + pick(g.rng, ["", " b1", " nope"])), (2, lambda g: "show servers conn" + pick(g.rng, ["", " b1"])), (2, lambda g: "show stat"), (1, lambda g: f"show stat {pick(g.rng, ['2 1 -1', '-1 4 -1', 'b1 4 -1', '-1 2 1', 'x 1 -1'])}"),
    (1, lambda g: "show stat typed"), (1, lambda g: "show stat json"), (1, lambda g: "show info"), (1, lambda g: "show info typed"), (1, lambda g: "show info json"), (1, lambda g: "show info desc"), (1, lambda g: "show stat desc"), (1, lambda g: "show schema json"), (1, lambda g: "show stat up"), (1, lambda g: "show stat no-maint"),
    (2, lambda g: "show backend"), (1, lambda g: "show cli level"), (1, lambda g: "show cli sockets"), (1, lambda g: "show env HX"), (1, lambda g: "show version"), (1, lambda g: "show errors"), (1, lambda g: "show errors -1"), (1, lambda g: "show events"), (1, lambda g: "show startup-logs"), (1, lambda g: "show anon"), (1, lambda g: "show defaults"), (1, lambda g: "show default-server b1"),
    (2, lambda g: "show map"), (2, lambda g: f"show map {pick(g.rng, MAPS + ['nope'])}"), (1, lambda g: "show acl"), (1, lambda g: f"show acl {pick(g.rng, ['list.acl', '#0', '#99', 'x'])}"), (2, lambda g: f"get map {pick(g.rng, MAPS)} {pick(g.rng, ['a', '/a', 'alpha', 'zz'])}"), (1, lambda g: f"get acl list.acl {pick(g.rng, ['/a', 'x'])}"),
    (2, lambda g: f"add map {pick(g.rng, MAPS)} {pick(g.rng, ['k1 v1', 'k2', 'k3 v v', '/a new'])}"), (2, lambda g: f"set map {pick(g.rng, MAPS)} {pick(g.rng, ['alpha changed', 'nokey v', '/a zz'])}"), (2, lambda g: f"del map {pick(g.rng, MAPS)} {pick(g.rng, ['alpha', 'nokey', '/a'])}"), (1, lambda g: f"clear map {pick(g.rng, MAPS)}"), (1, lambda g: f"prepare map {pick(g.rng, ['str.map'])}"), (1, lambda g: f"commit map @{pick(g.rng, ['1', '2', '9'])} str.map"), (1, lambda g: "add map @1 str.map kk vv"),
    (2, lambda g: f"add acl list.acl {pick(g.rng, ['/new', 'alpha', '/a'])}"), (1, lambda g: f"del acl list.acl {pick(g.rng, ['/a', 'nope'])}"), (1, lambda g: "clear acl list.acl"), (1, lambda g: "prepare acl list.acl"), (1, lambda g: "commit acl @1 list.acl"), (1, lambda g: "clear map @1 str.map"), (1, lambda g: "add map str.map <<\nm1 one\nm2 two\n"),
    (2, lambda g: "show table"), (3, lambda g: f"show table {pick(g.rng, ['st1', 'b1', 'nope'])}"), (1, lambda g: "show table st1 data.http_req_cnt gt 1"), (1, lambda g: "show table st1 key one"), (1, lambda g: "set table st1 key one data.gpc0 5 data.http_req_cnt 9"), (1, lambda g: "set table st1 key /a data.gpt0 3"), (1, lambda g: f"clear table st1{pick(g.rng, ['', ' key one', ' data.gpc0 ge 1'])}"), (1, lambda g: "show table st1 data.gpc0 eq 0"),
    (1, lambda g: f"clear counters{pick(g.rng, ['', ' all'])}"), (1, lambda g: "get var proc.e"), (1, lambda g: "set var proc.e expr str(new)"), (1, lambda g: "set var proc.n fmt %[int(4)]"), (1, lambda g: "get var proc.zz"), (1, lambda g: "experimental-mode on; show cli level"), (1, lambda g: "expert-mode"), (1, lambda g: "operator; show cli level; disable server b1/s1"), (1, lambda g: "user; show cli level"),
    (1, lambda g: f"set dynamic-cookie-key backend {proxy(g)} newkey"), (1, lambda g: f"enable dynamic-cookie backend {proxy(g)}"), (1, lambda g: f"disable dynamic-cookie backend {proxy(g)}"), (1, lambda g: "set rate-limit connections global 1000"), (1, lambda g: "set rate-limit sessions global 500"), (1, lambda g: "set rate-limit ssl-sessions global 400"), (1, lambda g: "set rate-limit http-compression global 100"),
    (1, lambda g: "set severity-output number"), (1, lambda g: "set timeout cli 30"), (1, lambda g: "set anon on; show anon"), (1, lambda g: "set anon global-key 77"), (1, lambda g: "set profiling tasks off"), (1, lambda g: "prompt"), (1, lambda g: "nonsense command"), (1, lambda g: "show"), (1, lambda g: "show nonsense"), (1, lambda g: "help disable"), (1, lambda g: "disable"), (1, lambda g: "echo some words"), (1, lambda g: "set server b1/nope state ready"), (1, lambda g: "set server nope/s1 state ready"), (1, lambda g: "show acl @0 list.acl"), (1, lambda g: "quit"),
    (1, lambda g: f"shutdown sessions server {server(g)}"), (1, lambda g: "shutdown session 0x0"), (1, lambda g: f"shutdown frontend {front(g)}" if chance(g.rng, 0.2) else "shutdown frontend nope"), (1, lambda g: f"publish backend {proxy(g)}"), (1, lambda g: f"unpublish backend {proxy(g)}"), (1, lambda g: f"add server b1/dyn{g.count()} 127.0.0.1:%%port:o1%% {pick(g.rng, ['', 'weight 5', 'maxconn 3', 'disabled', 'cookie z', 'bogus'])}"), (1, lambda g: f"del server {server(g)}"), (1, lambda g: f"wait 1ms"), (1, lambda g: f"wait 20 srv-removable {server(g)}"),
    (1, lambda g: "show ssl cert"), (1, lambda g: "show ssl cert www.pem"), (1, lambda g: "show ssl ca-file"), (1, lambda g: "show ssl crl-file"), (1, lambda g: "show ssl crt-list"), (1, lambda g: "show ssl ocsp-updates"), (1, lambda g: "show ssl sni"), (1, lambda g: "show tls-keys"), (1, lambda g: "abort ssl cert www.pem"), (1, lambda g: "commit ssl cert www.pem"), (1, lambda g: "new ssl cert new.pem"), (1, lambda g: "del ssl cert wild.pem"), (1, lambda g: "show ssl ocsp-response"),
    (1, lambda g: "new ssl ca-file x.crt; abort ssl ca-file x.crt"), (1, lambda g: "add backend dynb from nope"), (1, lambda g: "del backend b1"), (1, lambda g: "show ssl jwt"), (1, lambda g: "show ssl providers"), (1, lambda g: "add ssl crt-list crt.list www.pem"), (1, lambda g: "del ssl crt-list crt.list wild.pem"), (1, lambda g: "set ssl cert nope.pem x"), (1, lambda g: "new ssl crl-file y"), (1, lambda g: "dump ssl cert www.pem"),
]

COMMANDS += [(1, (lambda text: lambda g: text)(text)) for text in (
    "show activity", "show fd", "show libs", "show pools", "show profiling", "show sess", "show tasks", "show threads", "show dev", "show profiling status",
    "debug dev hash some", "new ssl crl-file z.crl; abort ssl crl-file z.crl", "commit ssl crl-file z.crl", "commit ssl ca-file ca.crt", "set ssl ca-file ca.crt x", "add ssl ca-file ca.crt x",
    "set ssl crl-file crl.pem x", "del ssl ca-file nope.crt", "del ssl ca-file ca.crt", "del ssl crl-file crl.pem", "set ssl ocsp-response x", "set ssl tls-key 0 x", "update ssl ocsp-response www.pem", "add ssl jwt www.pem", "del ssl jwt www.pem",
    "new ssl ca-file w.crt; commit ssl ca-file w.crt; del ssl ca-file w.crt", "new ssl crl-file w.crl; del ssl crl-file w.crl", "show sess all", "show ssl cert *www.pem", "set profiling memory off", "set ssl cert www.pem x")]


def command(g):
    total = sum(row[0] for row in COMMANDS)
    at = g.rng.randrange(total)
    for weight, make in COMMANDS:
        at -= weight
        if at < 0:
            return make(g)
