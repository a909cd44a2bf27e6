"""Words that many keywords share: expressions, conditions, formats, times. All are drawn from the generator's seed."""

HEADERS = ["x-a", "x-b", "x-list", "x-num", "user-agent", "accept", "x-ip", "referer", "x-none", "content-type", "cookie"]
RES_HEADERS = ["x-origin", "content-type", "cache-control", "set-cookie", "x-list", "etag", "server", "location", "x-none"]
PATHS = ["/", "/a", "/a/b.html", "/static/img.png", "/api/v1/items", "/login", "/A%20b/c", "/x/../y", "/q//z", "/.hidden/", "/stats"]
HOSTS = ["www.example.test", "api.example.test", "a.b.wild.test:8080", "h", "WWW.Example.Test", "127.0.0.1", "[::1]:80"]
AGENTS = ["curl/8.0", "Mozilla/5.0 (X11; Linux)", "bot/1.0"]
METHODS = ["GET", "GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"]
WORDS = ["alpha", "beta", "Gamma", "a=b", "10", "-3", "x y", "%41", "1.2.3.4", "", "ZZ"]

REQ_STR = ["path", "pathq", "url", "base", "method", "query", "req.ver", "req.hdr(host)", "req.hdr(x-a)", "req.hdr(x-list)",
           "req.hdr(x-list,1)", "req.hdr(x-list,-1)", "req.fhdr(x-list)", "req.fhdr(user-agent)", "url_param(a)", "url_param(b,;)",
           "url_param(n)", "req.cook(sid)", "req.cook(lang)", "hdr(x-b)", "urlp(c)", "req.hdr_names(;)", "capture.req.uri",
           "capture.req.method", "req.cook_names", "baseq", "req.hdrs", "unique-id", "url32,hex", "base32,hex", "http_auth_user",
           "req.hdr(x-ip)", "fe_name", "var(txn.a)", "var(req.b)", "req.hdr(content-type)", "path(0)", "url_ip"]
REQ_INT = ["req.hdr_cnt(x-list)", "req.fhdr_cnt(x-list)", "req.hdr_cnt", "path,length", "url_param(n)", "req.hdr_val(x-num)", "urlp_val(n)",
           "req.cook_cnt(sid)", "fc_http_major", "int(5)", "req.hdr_ip(x-ip)", "nbsrv", "fe_id", "fe_req_rate,bool", "req.cook_val(n)",
           "req.body_len", "req.body_size", "srv_is_up(b1/s1)", "nbsrv(b1)", "be_conn(b1)", "connslots(b1)", "fe_conn", "queue(b1)",
           "so_id", "txn.timer.user,bool", "b1.x,bool"]
REQ_INT = REQ_INT[:-2]
REQ_BOOL = ["ssl_fc", "always_true", "always_false", "http_first_req", "fc_rcvd_proxy", "req.hdr(x-a) -m found",
            "src 127.0.0.0/8", "method GET", "method POST", "path_beg /a", "path_end .html .png", "path_dir static api",
            "path_sub in", "path_reg ^/[a-z]+/", "hdr(host) -i www.example.test", "hdr_dom(host) example", "hdr_beg(user-agent) -i moz",
            "hdr_cnt(x-list) gt 1", "req.cook(sid) -m found", "url_param(a) 1 2", "path -i -m beg /A", "req.ver 1.0",
            "hdr(x-num) -m int gt 5", "path_len lt 4", "req.hdr_val(x-num) 1:50", "query -m found", "hdr_len(x-a) ge 3",
            "url_reg \\?", "base_dom example", "req.hdr_ip(x-ip) 10.0.0.0/8 192.0.2.0/24", "req.hdr(x-list) -m sub b", "cook_beg(sid) a",
            "http_auth(users)", "nbsrv(b1) ge 1", "srv_is_up(b1/s1)", "var(txn.a) -m found", "str(a),upper A", "int(3),add(4) 7",
            "path -m str -f list.acl", "path,map_beg(beg.map) -m found", "dst_port gt 0", "urlp_val(n) le 10", "fe_id 2",
            "req.hdrs_bin -m found", "LOCALHOST", "HTTP_1.1", "METH_GET", "HTTP_CONTENT", "HTTP_URL_SLASH", "TRUE", "FALSE",
            "HTTP", "HTTP_2.0", "METH_POST", "HTTP_URL_ABS", "HTTP_URL_STAR", "METH_HEAD", "req.body_len gt 3", "req.len gt 0"]
PREDEFINED = ("LOCALHOST", "HTTP_1.1", "METH_GET", "HTTP_CONTENT", "HTTP_URL_SLASH", "TRUE", "FALSE", "HTTP", "HTTP_2.0", "METH_POST",
              "HTTP_URL_ABS", "HTTP_URL_STAR", "METH_HEAD")
RES_STR = ["res.hdr(x-origin)", "res.hdr(content-type)", "res.fhdr(x-list)", "res.ver", "res.cook(srv)", "res.hdr_names(,)", "srv_name",
           "be_name", "res.hdr(set-cookie,1)", "var(txn.a)", "capture.req.uri", "res.cook_names", "status,concat(-x)", "res.hdr(server)"]
RES_INT = ["status", "res.hdr_cnt(x-list)", "res.hdr_val(content-length)", "srv_id", "be_id", "bc_http_major", "res.fhdr_cnt",
           "res.cook_cnt(srv)", "bc_nb_streams,bool", "fc_http_major"]
RES_BOOL = ["status 200", "status 404 500:599", "status ge 400", "res.hdr(x-origin) o1", "res.hdr(content-type) -m beg text/", "always_true",
            "res.hdr_cnt(set-cookie) gt 0", "srv_name s1 s2", "res.ver 1.1", "var(txn.a) -m found", "shdr_sub(cache-control) no-",
            "res.cook(srv) -m found", "scook(srv) -m found", "TRUE", "FALSE", "capture.req.method GET", "res.comp", "res.hdr(location) -m found"]
CONN_BOOL = ["src 127.0.0.1", "src 10.0.0.0/8", "always_true", "dst_port ge 1", "ssl_fc", "src -f nets.acl", "fe_conn lt 100", "src_port gt 1",
             "fc_rcvd_proxy", "src ::1", "so_id 1", "dst 127.0.0.1", "TRUE", "FALSE", "LOCALHOST"]
STR_CONV = ["lower", "upper", "length", "field(1,/)", "field(-1,.)", "word(2,/)", "word(1,.)", "hex", "base64", "ub64enc", "url_dec", "url_enc",
            "crc32", "crc32(1)", "crc32c", "djb2", "sdbm", "sdbm(1)", "wt6", "xxh32", "xxh64", "xxh3", "sha1,hex", "sha2(256),hex", "digest(md5),hex",
            "regsub(a,b,g)", "regsub(/.*,)", "bytes(0,4)", "bytes(2)", "json(utf8s)", "concat(-,txn.a,-)", "strcmp(txn.a)", "ltrim( x)",
            "rtrim(/)", "map(str.map,none)", "map_beg(beg.map,none)", "map_sub(str.map)", "map_reg(reg.map)", "map_end(str.map,-)", "map_dir(str.map)",
            "map_dom(str.map)", "debug", "url_dec,upper", "cut_crlf", "param(a)", "param(b,;)", "when(toapplet)", "reverse", "reverse_dom",
            "protobuf(1)", "mqtt_is_valid", "language(en;fr)", "host_only", "port_only", "add_item(;,txn.a,)", "iif(yes,no)", "json_query('$.a')",
            "fix_is_valid", "jwt_header_query('$.alg')", "htonl,hex", "be2dec(:,2)", "be2hex(:,2)", "le2dec(-,1)", "ungrpc(1)", "secure_memcmp(txn.a)",
            "hmac(sha1,a2V5),hex", "b64dec,hex", "ub64dec,hex", "xml_escape", "first_word"]
STR_CONV = [c for c in STR_CONV if c not in ("when(toapplet)", "xml_escape", "first_word", "reverse_dom", "debug", "ltrim( x)")]
INT_CONV = ["add(3)", "sub(10)", "mul(2)", "div(3)", "mod(7)", "neg", "cpl", "odd", "even", "not", "bool", "and(6)", "or(8)", "xor(5)", "hex",
            "in_table(st1)", "table_http_req_cnt(st1)", "iif(yes,no)", "map_int(int.map,none)", "concat(x)", "bytes(0,1)", "htonl", "avalanche"]
ADDR = ["src", "dst", "req.hdr_ip(x-ip)", "ipv4(192.0.2.7)", "ipv6(2001:db8::1)", "src,ipmask(8)", "dst,ipmask(24,64)", "fc_src", "fc_dst",
        "src,map_ip(ip.map,no)"]
PREDICTABLE_ALIASES = ["%ci", "%fi", "%f", "%b", "%s", "%ST", "%HM", "%HP", "%HU", "%HV", "%HQ", "%tsc", "%ts", "%ac", "%fc", "%bc", "%sc",
                       "%rc", "%bq", "%sq", "%CC", "%CS", "%hr", "%hs", "%hrl", "%hsl", "%r", "%ft", "%ID", "%lc", "%HPO", "%sslv", "%sslc", "%fp",
                       "%bi", "%si", "%sp", "%cp"]


def pick(rng, items):
    return items[rng.randrange(len(items))]


def chance(rng, p):
    return rng.random() < p


def expression(gen, side="req"):
    """A sample expression that needs nothing that this side does not have."""
    rng = gen.rng
    kind = rng.randrange(10)
    strings, ints = (RES_STR, RES_INT) if side == "res" else (REQ_STR, REQ_INT)
    if side == "conn":
        strings, ints = ["src", "dst", "str(abc)", "fe_name"], ["int(7)", "dst_port,bool", "fe_id", "so_id"]
    if kind < 6:
        out = pick(rng, strings)
        for _ in range(pick(rng, [0, 0, 1, 1, 2])):
            out += "," + pick(rng, STR_CONV)
    elif kind < 9:
        out = pick(rng, ints)
        for _ in range(pick(rng, [0, 1, 1])):
            out += "," + pick(rng, INT_CONV)
    else:
        out = pick(rng, ADDR if side == "req" else ["src", "dst"])
    if "st1" in out:
        gen.need("st1")
    if "unique-id" in out and "unique-id" not in gen.have:
        out = "path"
    return out


def format_text(gen, side="req", spaces=False):
    """A log-format of a few pieces for a header, a body, a variable."""
    rng = gen.rng
    out = []
    for _ in range(rng.randrange(1, 4)):
        if chance(rng, 0.4):
            out.append(pick(rng, ["lit", "a:", "x=", "v1", "[", "]", "-"]))
        elif chance(rng, 0.25):
            flags = pick(rng, ["", "{+Q}", "{+X}", "{+E}", "{+Q,+E}"])
            out.append(f"%{flags}" + pick(rng, ["ci", "f", "b" if side == "res" else "f", "ft", "fi"]))
        else:
            flags = pick(rng, ["", "", "", "{+Q}", "{+E}", "{-Q}"])
            out.append(f"%{flags}[{expression(gen, side)}]")
    text = (" " if spaces else "").join(out)
    return quoted(text)


def quoted(text):
    if "'" in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
    return "'" + text + "'"


def condition(gen, side="req", p=0.6):
    """` if ...` or ` unless ...`, or nothing."""
    rng = gen.rng
    if not chance(rng, p):
        return ""
    table = {"req": REQ_BOOL, "res": RES_BOOL, "conn": CONN_BOOL}[side]
    parts = []
    for _ in range(pick(rng, [1, 1, 1, 2, 2, 3])):
        named = [name for name, where in gen.acls if where == side]
        if named and chance(rng, 0.3):
            one = pick(rng, named)
        else:
            one = pick(rng, table)
            if "users" in one:
                gen.need("users")
            if side == "req" and gen.mode == "tcp":
                one = pick(rng, CONN_BOOL)
            one = one if one in PREDEFINED else "{ " + one.replace("\\", "\\\\") + " }"
        parts.append(pick(rng, ["", "", "", "!"]) + one)
        if chance(rng, 0.2):
            parts.append("or")
    if parts[-1] == "or":
        parts.pop()
    return pick(rng, [" if ", " if ", " if ", " unless "]) + " ".join(parts)


def log_format(gen):
    rng = gen.rng
    out = [pick(rng, ["fmt", "L", "%{+Q}o", "x"])]
    for _ in range(rng.randrange(3, 10)):
        if chance(rng, 0.6):
            flags = pick(rng, ["", "", "", "{+Q}", "{+X}", "{+E}"])
            out.append("%" + flags + pick(rng, PREDICTABLE_ALIASES)[1:])
        else:
            out.append(f"%[{expression(gen, pick(rng, ['req', 'res']))}]")
    return quoted(" ".join(out))
