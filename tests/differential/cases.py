"""The cases of the differential test: expressions, requests, and where the sample is taken.

Each converter is run on the same inputs, of every type and at every edge, with each of its argument lists; then on
inputs of its own. Fetches are run on the same few requests.
"""
import base64, binascii, hashlib, hmac, itertools, json, struct

BYTES = bytes(range(256))
HUGE = "aZ09-_ %;" * 300

REQUESTS = {
    "plain": ("GET", "/path/to;x=1/file.html?a=1&b=two%20words&empty=&a=3&c=%41%zz", [
        ("host", "www.Example.com:8080"), ("x-text", "Hello, World"), ("x-list", "one, two ,three"),
        ("x-list", "four"), ("x-empty", ""), ("cookie", "id=abc; Lang=fr; id=def; q=\"a b\"; empty="),
        ("user-agent", "tester/1.0 (x; y)"), ("accept-language", "fr;q=0.5, en, de;q=0.1"),
        ("authorization", "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("x-ip", "192.0.2.7, 2001:db8::9 , bogus"),
        ("x-num", "42, -7, abc"), ("x-huge", HUGE)], None),
    "bytes": ("POST", "/upload?", [("host", "h"), ("content-type", "application/octet-stream"),
                                   ("content-length", "256")], BYTES),
    "form": ("POST", "http://abs.example:81/form?q=1", [
        ("host", "abs.example:81"), ("content-type", "application/x-www-form-urlencoded"), ("content-length", "35"),
        ("cookie", "a=1"), ("cookie", "b=2; a=3"), ("authorization", "Bearer abc.def.ghi"),
        ("x-forwarded-for", "10.0.0.1"), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")],
             b"name=J%C3%B6rg&x=1&x=2&empty=&flag&z"[:35]),
    "bare": ("OPTIONS", "*", [("host", "")], None),
    "root": ("HEAD_AS_GET", "/", [("host", "[2001:db8::1]:443")], None),
}
REQUESTS["root"] = ("GET", "/", [("host", "[2001:db8::1]:443"), ("x-many", "a"), ("x-many", "b,c"), ("x-many", " , ")],
                    None)
RESPONSE_FIELDS = [("x-list", "one, two ,three"), ("x-list", "four"), ("set-cookie", "id=abc; path=/"),
                   ("set-cookie", "Two=2"), ("x-num", "42"), ("x-ip", "192.0.2.7")]

def hexed(data):
    return "bin(" + binascii.hexlify(data).decode() + ")"

def b64(data):
    return base64.b64encode(data).decode()

def b64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

# Every type and edge: empty, one byte, text, numbers at their limits, binary, not UTF-8, huge, none at all.
INPUTS = [
    ("str()", "plain"), ("str(a)", "plain"), ('str("Hello, World")', "plain"), ("str(12)", "plain"),
    ("str(-7x)", "plain"), ("str(99999999999999999999)", "plain"), ('str("a=1&b=%41%zz&c")', "plain"),
    ("bin(00)", "plain"), ("bin(0001fe80ff)", "plain"), ("bin(c3a9e282acf09f9880)", "plain"), ("bin(61ff0062)", "plain"),
    ("int(0)", "plain"), ("int(-1)", "plain"), ("int(1700000000)", "plain"), ("int(9223372036854775807)", "plain"),
    ("int(-9223372036854775808)", "plain"), ("bool(true)", "plain"), ("ipv4(192.0.2.7)", "plain"),
    ("ipv6(2001:db8::7)", "plain"), ("method", "plain"), ("req.hdr(x-none)", "plain"), ("req.fhdr(x-huge)", "plain"),
    ("req.body", "bytes"),
]

# Argument lists of every converter; "" is the bare name. What is refused is a case, too.
NUMBER_ARGS = ["(3)", "(-2)", "(0)", "(9223372036854775807)", "(txn.none)", "", "(x)", "(1,2)"]
SEED_ARGS = ["", "(0)", "(1)", "(-1)", "(4294967297)", "(x)"]
TIME_ARGS = ["(%Y-%m-%dT%H:%M:%S)", "(%a %b %j %Z %z,3600)", "(%s,-86400)", "()", ""]
CONVERTERS = {
    "add": NUMBER_ARGS, "sub": NUMBER_ARGS, "mul": NUMBER_ARGS, "div": NUMBER_ARGS, "mod": NUMBER_ARGS,
    "and": NUMBER_ARGS, "or": NUMBER_ARGS, "xor": NUMBER_ARGS,
    "neg": ["", "(1)"], "cpl": [""], "not": [""], "odd": [""], "even": [""], "bool": ["", "()"], "htonl": [""],
    "add_item": ['(",",,x)', "(-,txn.none,x)", "(-)", "(-,txn.none)", "(-,,)"],
    "b64dec": [""], "base2": [""], "base64": [""], "ub64dec": [""], "ub64enc": [""], "hex": [""], "hex2i": [""],
    "be2dec": ["(:,2)", "(,1)", "(-,8)", "(-,9)", "(:,3,1)", "(:)", "(:,0)"],
    "be2hex": ["(:,2)", "(,1)", "(:)", "(:,3,1)", "(:,0)", "", "(:,0,1)"],
    "le2dec": ["(:,2)", "(,1)", "(-,8)", "(-,9)", "(:,3,1)", "(:)", "(:,0)"],
    "bytes": ["(0)", "(1,2)", "(3,100)", "(txn.none)", "(-1)", "(0,txn.none)", "(1000)"],
    "concat": ["(a)", "(a,txn.none,b)", "(,txn.none)", "()", "(a,,b)", "(a,bogus)"],
    "crc32": SEED_ARGS, "crc32c": SEED_ARGS, "djb2": SEED_ARGS, "sdbm": SEED_ARGS, "wt6": SEED_ARGS,
    "xxh32": SEED_ARGS, "xxh64": SEED_ARGS, "xxh3": SEED_ARGS,
    "cut_crlf": [""], "length": [""], "lower": [""], "upper": [""], "reverse": [""], "reverse_dom": [""],
    "host_only": [""], "port_only": [""], "fe_exists": [""],
    "digest": ["(sha1)", "(SHA256)", "(sha224)", "(sha384)", "(sha512)", "(md5)", "(bogus)", ""],
    "hmac": ["(sha256,a2V5)", "(sha512,a2V5)", "(sha1,txn.none)", "(sha256)", "(bogus,a2V5)", "(sha256,a)"],
    "sha1": [""], "sha2": ["", "(224)", "(256)", "(384)", "(512)", "(1)"],
    "field": ["(1,a)", "(2,=)", "(-1,&)", "(1,&,0)", "(1,&,2)", "(0,a)", "(1)", "(1,)", "(-2,&,2)"],
    "word": ["(1,a)", "(2,=)", "(-1,&)", "(1,&,0)", "(1,&,2)", "(0,a)", "(1)", "(1,)", "(-2,&,2)"],
    "has_ctl": ["", "(00)"],
    "iif": ["(yes,no)", "(,no)", "(yes)", "()"],
    "http_date": ["", "(3600)", "(1000,ms)", "(0,us)", "(0,bogus)"],
    "ipmask": ["(24)", "(255.255.0.0)", "(24,64)", "(33)", "(0,0)", "(32,128)", "(24,ffff:ffff::)", ""],
    "json": ["(ascii)", "(utf8)", "(utf8s)", "(utf8p)", "(utf8ps)", "(bogus)", "()", ""],
    "json_query": ["($.a)", "($.a,int)", "($)", "(a)", "($.a,bogus)", ""],
    "jwt_header_query": ["", "($.alg)", "($.alg,int)"], "jwt_payload_query": ["", "($.sub)"],
    "jwt_verify": ["(HS256,secret)", "(HS512,)", "(bogus,x)", "(HS256)", "(txn.none,x)"],
    "jwt_verify_cert": ["(HS256,x)", "(txn.none,txn.none)", "(bogus,x)"],
    "jwt_decrypt_secret": ["(YWJj)", "(txn.none)", "(.)", ""], "jwt_decrypt_jwk": ["(txn.none)", "(bogus)"],
    "jwt_decrypt_cert": ["(txn.none)", "(/none)"],
    "language": ["(en;fr)", "(en;fr,de)", "()", ""],
    "ltrim": ["(a)", "(Hel)", "( )", "()", ""], "rtrim": ["(a)", "(dl)", "( )", "()", ""],
    "ltime": TIME_ARGS, "ms_ltime": TIME_ARGS, "us_ltime": TIME_ARGS,
    "utime": TIME_ARGS, "ms_utime": TIME_ARGS, "us_utime": TIME_ARGS, "date": [""],
    "mqtt_is_valid": [""], "mqtt_field_value": ["(connect,flags)", "(2,17)", "(connect,reason_code)", "(x,y)", "(1)"],
    "fix_is_valid": [""], "fix_tag_value": ["(35)", "(MsgType)", "(bogus)", "(0)", ""],
    "param": ["(a)", "(b,&)", "(c)", "()", "(zz,;)"],
    "protobuf": ["(1)", "(1,int32)", "(1.2)", "(0)", "(1,bogus)", "()", "(a)"],
    "ungrpc": ["(1)", "(1,int32)", "(1.2)", "(0)"],
    "regsub": ["(a,X)", "([aeo],<&>,g)", "(^,>)", "(a,,g)", "((l+),[\\1],g)", "([,x)", "(HELLO,x,i)", "(x,y,q)", ""],
    "rfc7239_field": ["(for)", "(by)", "(bogus)"], "rfc7239_is_valid": [""], "rfc7239_n2nn": [""], "rfc7239_n2np": [""],
    "rfc7239_nn": [""], "rfc7239_np": [""],
    "secure_memcmp": ["(txn.none)", "(bogus)", "()"], "strcmp": ["(txn.none)", "(bogus)"],
    "set-var": ["(txn.v)", "(txn.v,ifexists)", "(bogus)", "(txn.v,bogus)"], "unset-var": ["(txn.v)", "(bogus)"],
    "nbsrv": [""], "srv_is_up": [""], "srv_queue": [""],
    "url_dec": ["", "(1)", "(0)"], "url_enc": ["", "(query)", "(bogus)"],
    "when": ["(error)", "(normal)", "(!normal)", "(forwarded)", "(processed)", "(toapplet)", "(stopping)", "(acl,TRUE)",
             "(!acl,TRUE)", "(bogus)", "(acl)"],
    "capture-req": ["(0)", "(1)", "(9)", "()"], "capture-res": ["(0)", "(9)"], "debug": ["", "(x,stderr)"],
    "x509_v_err_str": [""],
    "aes_cbc_enc": ["(128,MTIzNDU2Nzg5MDEyMzQ1Ng==,MTIzNDU2Nzg5MDEyMzQ1Ng==)", "(100,,)", "(128,txn.none,txn.none)"],
    "aes_cbc_dec": ["(128,MTIzNDU2Nzg5MDEyMzQ1Ng==,MTIzNDU2Nzg5MDEyMzQ1Ng==)", "(256,)"],
    "aes_gcm_enc": ["(128,MTIzNDU2Nzg5MDEy,MTIzNDU2Nzg5MDEyMzQ1Ng==,txn.tag)",
                    "(128,MTIzNDU2Nzg5MDEyMzQ1Ng==,MTIzNDU2Nzg5MDEyMzQ1Ng==,txn.tag,YWFk)", "(128,a,b,c)"],
    "aes_gcm_dec": ["(128,MTIzNDU2Nzg5MDEy,MTIzNDU2Nzg5MDEyMzQ1Ng==,YWFk)"],
    "eth.data": [""], "eth.dst": [""], "eth.hdr": [""], "eth.proto": [""], "eth.src": [""], "eth.vlan": [""],
    "ip.data": [""], "ip.df": [""], "ip.dst": [""], "ip.fp": ["", "(7)"], "ip.hdr": [""], "ip.proto": [""],
    "ip.src": [""], "ip.tos": [""], "ip.ttl": [""], "ip.ver": [""], "tcp.dst": [""], "tcp.flags": [""],
    "tcp.options.mss": [""], "tcp.options.sack": [""], "tcp.options.tsopt": [""], "tcp.options.tsval": [""],
    "tcp.options.wscale": [""], "tcp.options.wsopt": [""], "tcp.options_list": [""], "tcp.seq": [""], "tcp.src": [""],
    "tcp.win": [""],
}

def matrix():
    """Inputs times argument lists, thinned where there are many of both; all inputs meet the first two."""
    for name, lists in CONVERTERS.items():
        for at, args in enumerate(lists):
            for number, (fetch, request) in enumerate(INPUTS):
                if at < 1 or (at + number) % 4 == 0 or number == 2:
                    yield {"expr": f"{fetch},{name}{args}", "request": request}

NONCE12, NONCE16, AAD = b64(b"123456789012"), b64(b"1234567890123456"), b64(b"aad")
KEY32 = b64(b"12345678901234567890123456789012")

def ciphers():
    for bits, text in itertools.product((128, 192, 256), ("", "hello", "0123456789012345", "x" * 33)):
        yield f"str({text}),aes_cbc_enc({bits},{NONCE16},{KEY32})"
        yield f"str({text}),aes_cbc_enc({bits},{NONCE16},{KEY32}),aes_cbc_dec({bits},{NONCE16},{KEY32})"
        for nonce in (NONCE12, NONCE16, b64(b"1")):
            yield f"str({text}),aes_gcm_enc({bits},{nonce},{KEY32},txn.tag,{AAD})"
            yield f"str({text}),aes_gcm_enc({bits},{nonce},{KEY32},txn.tag,{AAD}),concat(|,txn.tag)"
            yield f"str({text}),aes_gcm_enc({bits},{nonce},{KEY32},txn.tag),aes_gcm_dec({bits},{nonce},{KEY32},txn.tag)"
            yield (f"str({text}),aes_gcm_enc({bits},{nonce},{KEY32},txn.tag),"
                   f"aes_gcm_dec({bits},{nonce},{KEY32},txn.tag,{AAD})")
    yield f"str(0123456789012345),aes_cbc_dec(128,{NONCE16},{KEY32})"
    yield f"str(hello),aes_gcm_enc(128,{NONCE12},{NONCE12},txn.tag)"

def token(header, payload, key=b"secret", digest=hashlib.sha256):
    text = b64url(json.dumps(header).encode()) + "." + b64url(json.dumps(payload).encode())
    return text + "." + b64url(hmac.new(key, text.encode(), digest).digest())

def tokens():
    good = token({"alg": "HS256", "typ": "JWT"}, {"sub": "me", "n": 12, "f": 1.5, "deep": {"x": [1, "two", None]}})
    # RFC 7516, appendix A.3.
    wrapped = ("eyJhbGciOiJBMTI4S1ciLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.6KB707dM9YTIgHtLvtgWQ8mKwboJW3of9locizkDTHzBC2IlrT1oOQ."
               "AxY8DCtDaGlsbGljb3RoZQ.KDlTtXchhZTGufMYmOYGS4HffxPSUrfmqCHXaI9wOGY.U0m_YmjN04DJvceFICbCVQ")
    for key in ("GawgguFyGrWKav7AX4VKUg==", "AAAgguFyGrWKav7AX4VKUg=="):
        yield f"str({wrapped}),jwt_decrypt_secret({key})"
    for alg, digest in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
        one = token({"alg": alg}, {"a": 1}, digest=digest)
        for used, key in itertools.product(("HS256", "HS384", "HS512", "none"), ("secret", "other")):
            yield f"str({one}),jwt_verify({used},{key})"
    for text in (good, good[:-2], good + ".x", good.rsplit(".", 1)[0], good.rsplit(".", 1)[0] + ".", "..", "a..c"):
        yield f"str({text}),jwt_verify(HS256,secret)"
        yield f"str({text}),jwt_header_query"
        yield f"str({text}),jwt_payload_query"
        for path in ("$.alg", "$.typ", "$.none"):
            yield f"str({text}),jwt_header_query({path})"
    for path in ("$.sub", "$.n", "$.n,int", "$.f", "$.f,int", "$.deep", "$.deep.x", "$.deep.x[0]", "$.deep.x[1]",
                 "$.deep.x[2]", "$.deep.x[3]", "$"):
        yield f"str({good}),jwt_payload_query({path})"

def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])

def field(n, kind, content):
    return number(n << 3 | kind) + (number(len(content)) + content if kind == 2 else content)

def buffers():
    inner = field(1, 0, number(150)) + field(2, 2, b"text") + field(1, 0, number(7))
    message = (field(1, 0, number(300)) + field(2, 5, struct.pack("<I", 0xfffffffe)) + field(3, 1, struct.pack("<q", -5)) +
               field(4, 2, inner) + field(5, 5, struct.pack("<f", -2.75)) + field(6, 1, struct.pack("<d", 1e10)) +
               field(7, 0, number((1 << 64) - 1)) + field(8, 0, number(3)) + field(48, 2, field(59, 2, inner)) +
               field(9, 2, b""))
    kinds = ["int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum", "fixed32", "sfixed32", "float",
             "fixed64", "sfixed64", "double"]
    grpc = b"\0" + struct.pack(">I", len(message)) + message
    for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10):
        yield f"{hexed(message)},protobuf({n})"
        yield f"{hexed(grpc)},ungrpc({n})"
        for kind in kinds:
            yield f"{hexed(message)},protobuf({n},{kind})"
    for path in ("4.1,int32", "4.2", "48.59.1,int32", "48.59", "48.59.2", "48.59.3", "4.2.1", "1.1"):
        yield f"{hexed(grpc)},ungrpc({path})"
    yield f"{hexed(grpc)},ungrpc(48),protobuf(59),protobuf(1,int32)"
    for broken in (grpc[:-3], grpc[:4], b"\1" + grpc[1:], grpc + b"xx"):
        yield f"{hexed(broken)},ungrpc(48.59.1,int32)"
        yield f"{hexed(broken)},ungrpc(9)"
    for broken in (message[:-1], message[:20], b"\x0f" + message, b"\xff" * 11):
        yield f"{hexed(broken)},protobuf(48.59.1,int32)"
        yield f"{hexed(broken)},protobuf(1)"

def fix(fields, length=None, total=None, version="FIX.4.2"):
    body = "".join(f"{k}={v}\1" for k, v in fields)
    head = f"8={version}\1" + f"9={len(body) if length is None else length}\1"
    value = sum((head + body).encode()) % 256 if total is None else total
    return (head + body + f"10={value:03}\1").encode()

def exchanges():
    fields = [(35, "A"), (34, 1), (49, "EXECUTOR"), (56, "CLIENT1"), (98, 0)]
    good = fix(fields)
    for message in (good, good[:-1], good + b"x", good[:30], good[:3], b"9=1\1" + good, fix(fields, length=5),
                    fix(fields, total=1), fix(fields, version="FIX.5.0"), fix(fields, version="FIXT.1.1"),
                    fix(fields[1:]), fix([(35, "")]), fix(fields + [("a", "b")]), good.replace(b"34=1", b"34=")):
        yield f"{hexed(message)},fix_is_valid"
    for tag in ("8", "9", "10", "35", "34", "99", "BeginString", "bodylength", "MsgType", "SenderCompID", "TargetCompID",
                "CheckSum"):
        yield f"{hexed(good)},fix_tag_value({tag})"
        yield f"{hexed(good[:40])},fix_tag_value({tag})"

def text16(text):
    return struct.pack(">H", len(text)) + text

def packet(kind, body):
    return bytes([kind]) + number(len(body)) + body

def queues():
    old = packet(0x10, text16(b"MQIsdp") + bytes([3, 0xc6, 0, 60]) + text16(b"client") + text16(b"topic") + text16(b"bye") +
                 text16(b"user") + text16(b"pass"))
    mid = packet(0x10, text16(b"MQTT") + bytes([4, 2, 0, 10]) + text16(b""))
    own = bytes([17]) + struct.pack(">I", 120) + bytes([33, 0, 20, 39]) + struct.pack(">I", 100) + bytes([34, 0, 5, 25, 1, 23, 0])
    own += bytes([21]) + text16(b"method") + bytes([22]) + text16(b"data") + bytes([38]) + text16(b"k") + text16(b"v")
    will = bytes([24]) + struct.pack(">I", 5) + bytes([1, 1, 2]) + struct.pack(">I", 9) + bytes([3]) + text16(b"text/plain")
    will += bytes([8]) + text16(b"answer") + bytes([9]) + text16(b"corr")
    new = packet(0x10, text16(b"MQTT") + bytes([5, 0xee, 1, 0]) + number(len(own)) + own + text16(b"id5") +
                 number(len(will)) + will + text16(b"wt") + text16(b"wp") + text16(b"u") + text16(b"p"))
    ack4, ack4bad = packet(0x20, bytes([1, 0])), packet(0x20, bytes([2, 0]))
    props = bytes([17]) + struct.pack(">I", 7) + bytes([33, 1, 0, 36, 1, 37, 1, 39]) + struct.pack(">I", 64) + bytes([18])
    props += text16(b"assigned") + bytes([34, 0, 9, 31]) + text16(b"why") + bytes([40, 1, 41, 0, 42, 1, 19, 0, 30, 26])
    props += text16(b"info") + bytes([28]) + text16(b"ref") + bytes([21]) + text16(b"m") + bytes([22]) + text16(b"d")
    ack5 = packet(0x20, bytes([0, 5]) + number(len(props)) + props)
    fields = ["flags", "protocol_version", "protocol_name", "client_identifier", "will_topic", "will_payload", "username",
              "Password", "keepalive", "17", "33", "39", "34", "25", "23", "21", "22", "24", "1", "2", "3", "8", "9", "38"]
    for message, name in itertools.product((old, mid, new), fields):
        yield f"{hexed(message)},mqtt_field_value(connect,{name})"
    for message, name in itertools.product((ack4, ack5), ["flags", "protocol_version", "reason_code", "17", "33", "36", "37",
                                           "39", "18", "34", "31", "40", "41", "42", "19", "26", "28", "21", "22", "38"]):
        yield f"{hexed(message)},mqtt_field_value(2,{name})"
    broken = [old[:-1], old + b"x", old[:5], old[:1], b"\x11" + old[1:], new[:30], new.replace(bytes([33, 0, 20]), bytes([17, 0, 20])),
              packet(0x10, text16(b"MQTT") + bytes([4, 3, 0, 10]) + text16(b"a")),
              packet(0x10, text16(b"MQTT") + bytes([4, 0x42, 0, 10]) + text16(b"a") + text16(b"p")),
              packet(0x10, text16(b"MQTT") + bytes([4, 0x0a, 0, 10]) + text16(b"a")),
              packet(0x10, text16(b"MQTT") + bytes([4, 0x1e, 0, 10]) + text16(b"a") + text16(b"t") + text16(b"p")),
              packet(0x10, text16(b"MQTT") + bytes([6, 2, 0, 10]) + text16(b"a")),
              packet(0x10, text16(b"MQTT") + bytes([4, 0, 0, 10]) + text16(b"")),
              packet(0x30, text16(b"topic") + b"payload"), packet(0xc0, b""), ack4bad, b"\x10\xff\xff\xff\xff\x01"]
    for message in [old, mid, new, ack4, ack5] + broken:
        yield f"{hexed(message)},mqtt_is_valid"
        yield f"{hexed(message)},mqtt_field_value(connect,client_identifier)"

def frames():
    options = bytes([2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7])
    tcp = struct.pack(">HHIIBBHHH", 51000, 443, 0xdeadbeef, 0, (20 + len(options)) // 4 << 4, 0xc2, 64240, 0, 0) + options
    plain = struct.pack(">HHIIBBHHH", 1, 2, 3, 0, 5 << 4, 2, 100, 0, 0)
    ip4 = struct.pack(">BBHHHBBH4s4s", 0x45, 0xb8, 20 + len(tcp), 1, 0x4000, 57, 6, 0, bytes([192, 0, 2, 1]), bytes([10, 0, 0, 9]))
    ip4o = struct.pack(">BBHHHBBH4s4s", 0x46, 0, 24 + len(plain), 1, 0, 255, 6, 0, bytes([1, 2, 3, 4]), bytes(4)) + bytes([1] * 4)
    ip6 = struct.pack(">IHBB16s16s", 6 << 28 | 0x12 << 20, len(tcp), 6, 128, bytes(range(16)), bytes(range(16, 32)))
    hop = struct.pack(">IHBB16s16s", 6 << 28, len(tcp) + 8, 0, 1, bytes(16), bytes(16)) + bytes([6, 0] + [0] * 6)
    ether = bytes(range(12)) + bytes([8, 0])
    vlan = bytes(range(12)) + bytes([0x81, 0, 0x20, 5, 8, 0])
    double = bytes(range(12)) + bytes([0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x86, 0xdd])
    for frame in (ether + ip4, vlan + ip4, double + ip6, ether, ether[:13], ether[:11]):
        for name in ("eth.data", "eth.dst", "eth.hdr", "eth.proto", "eth.src", "eth.vlan"):
            yield f"{hexed(frame)},{name}"
    names = ("ip.data", "ip.df", "ip.dst", "ip.fp", "ip.fp(1)", "ip.fp(2)", "ip.fp(4)", "ip.fp(7)", "ip.hdr", "ip.proto", "ip.src",
             "ip.tos", "ip.ttl", "ip.ver")
    for data in (ip4 + tcp, ip4o + plain, ip6 + tcp, hop + tcp, ip4 + tcp + b"data", ip4, ip4[:19], ip6[:39], b"\x75" + ip4[1:]):
        for name in names:
            yield f"{hexed(data)},{name}"
    for data in (tcp, plain, tcp[:24], plain[:19], plain[:3], plain[:12] + b"\xf0" + plain[13:]):
        for name in ("dst", "flags", "options.mss", "options.sack", "options.tsopt", "options.tsval", "options.wscale",
                     "options.wsopt", "options_list", "seq", "src", "win"):
            yield f"{hexed(data)},tcp.{name}"

def texts():
    """Inputs that fit one converter."""
    documents = ['{"a":1}', '{"a":"x y"}', '{"a":{"b":[1,2.5,"three",true,false,null]}}', '{"a":"\\\\u00e9\\\\n"}', "[1,2]", '{"a":',
                 '"text"', "12", '{"a":-1.5e3}', '{"a.b":1}', '{"a":99999999999999999999}', '{"A":1,"a":2,"a":3}', "{}", '{"a":[]}']
    for text in documents:
        data = hexed(text.replace("\\\\", "\\").encode())
        for path in ("$.a", "$.a,int", "$.a.b", "$.a.b[0]", "$.a.b[0],int", "$.a.b[1]", "$.a.b[1],int", "$.a.b[2]", "$.a.b[3]",
                     "$.a.b[5]", "$.a.b[9]", "$.a\\.b", "$[0]", "$[1],int", "$"):
            yield f"{data},json_query({path})"
    for text in ("YWJj", "YW==", "YWI=", "YWI", "Y", "YWJj YWJj", "YW-_", "YW+/", "====", "YWJjZA==", "YWJjZA=", "yw=a"):
        for name in ("b64dec", "ub64dec"):
            yield f"str({text}),{name}"
    for text in ("a%20b+c", "%", "%4", "%41%4a%4A", "a?b+c=%2b", "%00x", "%zz", "++", "a+b?c+d?e+f"):
        for name in ("url_dec", "url_dec(1)", "url_dec(0)"):
            yield f'str("{text}"),{name}'
    for text in (b"a b/c?d&e=f", b"\xc3\xa9\0\xff", b"AZaz09-._~", b"!*'();:@&=+$,/?#[]%", b'"<>\\^`{|}'):
        for name in ("url_enc", "url_enc(query)", "json(utf8)", "json(ascii)", "json(utf8s)", "json(utf8p)", "json(utf8ps)", "hex", "base64",
                     "ub64enc", "reverse", "length", "has_ctl", "has_ctl(00)", "lower", "upper", "cut_crlf"):
            yield f"{hexed(text)},{name}"
    for host in ("a.example.com", "a.example.com:80", "[::1]:80", "[::1]", "::1", "1.2.3.4:99999", "h:", ":80", "a:b", "h:80:90", "[::1"):
        for name in ("host_only", "port_only", "reverse_dom"):
            yield f"str({host}),{name}"
    for text in ("0x10", "10", "ff", "FFFFFFFFFFFFFFFF", "xyz", "1g", "-1", " 12", "", "7fffffffffffffff", "10000000000000000"):
        yield f'str("{text}"),hex2i'
    for text in ("a,b;c d", "f1_f2_f3__f5", ",,", "abc", ",a,", "a,,b"):
        for name, index, count in itertools.product(("field", "word"), (1, 2, -1, -2, 9), ("", ",0", ",2")):
            yield f'str("{text}"),{name}({index},",_"{count})'
    for text in ("for=1.2.3.4", 'for="[::1]:80";proto=https;host=h;by=_x', "for=unknown", "For=1.2.3.4:5;FOR=1.1.1.1", "for=1.2.3.4, for=2.2.2.2",
                 "for", "for=", "proto=ftp", 'for="a', "bogus=1", "host=\"a b\"", "by=1.2.3.4:_p", "for=[::1]"):
        for name in ("rfc7239_is_valid", "rfc7239_field(for)", "rfc7239_field(by)", "rfc7239_field(proto)", "rfc7239_field(host)",
                     "rfc7239_field(for),rfc7239_nn", "rfc7239_field(for),rfc7239_np", "rfc7239_field(for),rfc7239_n2nn",
                     "rfc7239_field(for),rfc7239_n2np"):
            yield f"{hexed(text.encode())},{name}"
    for text in ("fr", "en-GB,fr;q=0.2", "*", "de;q=1,en;q=0.9", "fr;q=0", "xx,yy", "EN", "en;q=abc", "fr;q=0.5;en"):
        for args in ("(en;fr)", "(en;fr,none)", "(fr-FR;en-GB,zz)"):
            yield f'str("{text}"),language{args}'
    for text in ("a=1&b=2", "a&b", "b=2;a=1", "a=1&a=2", "aa=1&a=3", "=1", "a==b", "a=%41"):
        for args in ("(a)", "(b)", "(a,;)", "(a,&;)"):
            yield f'str("{text}"),param{args}'
    for text, args in itertools.product(("aXbXc", "hello", "", "a.b.c", "/x//y/"), ("(X,-)", "(X,-,g)", '("[.]",_,g)', "(l*,_,g)", "(l*,_)", "(^,>,g)",
                                        "($,<)", '("(.)(.)",\\\\2\\\\1,g)', "(L,_,ig)", "(/+,/,g)", '("b|c",[\\0],g)')):
        yield f'str("{text}"),regsub{args}'
    for n in (0, 1, 784111777, 1700000000, 253402300799, 253402300800, -1, 2147483648, 1582934400):
        for name in ("http_date", "http_date(1)", "http_date(0,ms)", "http_date(0,us)", "utime(%Y%m%d%H%M%S)", "utime(%A %B %d %e %I %p %U %y %C)",
                     "utime(%j %w %u %V %G %D %F %T %R %%)", "ms_utime(%F %T.%N)", "us_utime(%F %T.%N)", "utime(%N)", "ms_utime(%3N)", "utime(%c)"):
            yield f"int({n}),{name}"
    for text in ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "bogus", "Sun, 32 Nov 1994 08:49:37 GMT"):
        yield f'str("{text}"),date'
    for one, two in itertools.product(("abc", "abd", "", "ab", "abcd"), repeat=2):
        yield f"str({one}),set-var(txn.one),str_none", None
    for address in ("ipv4(10.1.2.3)", "ipv6(::ffff:10.1.2.3)", "ipv6(2001:db8::1)", "str(10.1.2.3)", "str(2001:db8::1)", "int(167838211)"):
        for args in ("(8)", "(0)", "(32)", "(8,32)", "(32,127)", "(255.0.255.0)"):
            yield f"{address},ipmask{args}"
    for name in ("a.b.", ".", "a..b", ".a", "a..", "localhost"):
        yield f"str({name}),reverse_dom"
    for address in ("1.2.3.4:80", "1.2.3.4x", "1.2.3.4.5", "1.2.3.4/8", "1.2.3.256", "01.2.3.4", "1.2.3", "[::1]", "::1:x"):
        yield f"str({address}),ipmask(32,128)"
    for n in range(0, 12):
        yield f"int({n}),x509_v_err_str"
    for name in ("fe", "known", "none", ""):
        yield f"str({name}),fe_exists"
        yield f"str({name}),nbsrv"
    for name in ("known/s1", "known/s2", "known/none", "s1", "none/s1", "known/"):
        yield f"str({name}),srv_is_up"
        yield f"str({name}),srv_queue"
    for at, n in itertools.product(("0", "2", "9", "txn.a", "txn.none"), ("", ",0", ",3", ",99", ",txn.a")):
        yield f"str(abcdef),bytes({at}{n})"

def compared():
    for one, two in itertools.product(("abc", "abd", "", "ab", "abcd"), repeat=2):
        for name in ("strcmp", "secure_memcmp"):
            yield {"expr": f"str({one}),{name}(txn.two)", "before": [f"http-request set-var(txn.two) str({two})"]}
    for condition in ("ifexists", "ifnotexists", "ifempty", "ifnotempty", "ifset", "ifnotset", "ifgt", "iflt"):
        for old, new in itertools.product(("int(5)", "str()", "str(x)", None), ("int(3)", "int(7)", "str()", "str(y)")):
            before = [f"http-request set-var(txn.v) {old}"] if old else []
            yield {"expr": "var(txn.v)", "before": before + [f"http-request set-var(txn.v,{condition}) {new}"]}
            yield {"expr": f"{new},set-var(txn.v,{condition}),concat(|,txn.v)", "before": before}
    for n in ("int(7)", "str(7)", "str(x)", "bool(true)", "ipv4(0.0.0.9)"):
        for name in ("add", "sub", "mul", "div", "mod", "and", "or", "xor"):
            yield {"expr": f"int(100),{name}(txn.n)", "before": [f"http-request set-var(txn.n) {n}"]}
    for item in ("int(7)", "str(x)", "str()", "ipv4(1.2.3.4)", "bin(00ff)"):
        for expr in ("str(a),concat(<,txn.n,>)", 'str(a),add_item(",",txn.n)', 'str(),add_item(",",txn.n,y)', 'str(a),add_item(",",txn.n,y)'):
            yield {"expr": expr, "before": [f"http-request set-var(txn.n) {item}"]}

# Fetches on each request; with a name, position and form where they take them.
FETCHES = ["base", "base32", "base32+src", "path", "pathq", "url", "url32", "url32+src", "query", "query(with_qm)", "url_ip", "url_port", "method",
           "req.ver", "req_ver", "req.hdr_cnt", "req.hdr_names", "req.hdr_names(;)", "req.hdrs", "req.hdrs_bin", "req.body", "req.body_len", "req.body_size",
           "req.body_param", "req.body_param(x)", "req.body_param(X,i)", "req.body_param(flag)", "req.body_param(name)", "req.body_param(empty)",
           "http_auth_bearer", "http_auth_bearer(authorization)", "http_auth_bearer(x-none)", "http_auth_pass", "http_auth_user", "http_auth_type",
           "url_param", "url_param(a)", "url_param(a,;)", "url_param(A,,i)", "url_param(b)", "url_param(empty)", "url_param(c)", "url_param(none)", "url_param(x,;)",
           "urlp(a)", "urlp_val(a)", "urlp_val(b)", "req.cook", "req.cook(id)", "req.cook(Lang)", "req.cook(lang)", "req.cook(q)", "req.cook(empty)", "req.cook_cnt",
           "req.cook_cnt(id)", "req.cook_val(a)", "req.cook_val(id)", "cookie(id)", "req.cook_names", "req.cook_names(;)", "capture.req.method", "capture.req.uri",
           "capture.req.ver", "req.proto_http", "HTTP", "hdr(host)", "req.hdr(host),host_only", "req.hdr(host),port_only", "shdr(host)", "fhdr(host)", "unique-id",
           "req.len", "req.payload(0,4)", "req.payload(0,0)", "payload(2,3)", "src", "src_port,length", "dst", "fc_http_major", "fc_rcvd_proxy", "fc_pp_authority",
           "fc_pp_unique_id", "fc_src", "fc_dst", "be_name", "fe_name", "fe_defbe", "so_name", "so_id", "nbsrv(known)", "avg_queue(known)", "be_conn(known)",
           "be_conn_free(known)", "be_sess_rate(known)", "connslots(known)", "queue(known)", "srv_conn(known/s1)", "srv_conn_free(known/s1)", "srv_is_up(known/s1)",
           "srv_is_up(known/s2)", "srv_weight(known/s1)", "srv_iweight(known/s1)", "srv_uweight(known/s1)", "srv_queue(known/s1)", "srv_sess_rate(known/s1)",
           "be_server_timeout", "be_tunnel_timeout", "be_connect_timeout", "be_queue_timeout", "be_tarpit_timeout", "be_max_retries", "cur_server_timeout", "cur_tunnel_timeout",
           "cur_client_timeout", "cur_connect_timeout", "cur_queue_timeout", "cur_tarpit_timeout", "cur_max_retries", "fe_client_timeout", "fe_tarpit_timeout",
           "fc_src_is_local", "fc_dst_is_local", "src_is_local", "dst_is_local", "fc_glitches", "fc_nb_streams", "fc_settings_streams_limit", "fc_saved_syn", "quic_enabled",
           "always_true", "always_false", "bool(1)", "bool(false)", "int(7)", "int(x)", "ipv4(1.2.3)", "ipv6(zz)", "meth(POST)", "meth(foo)", "str()", "bin(0)", "bin(zz)",
           "proc", "prio_class", "prio_offset", "ssl_hello_type", "req.rdp_cookie", "req.ssl_sni", "req.ssl_ver", "req.ssl_hello_type", "rdp_cookie(x)", "req.ssl_alpn",
           "stopping", "txn.status,length", "last_rule_line,length", "var(txn.none)", "var(txn.none,str)", "var(bogus)", "acl(TRUE)", "acl(FALSE,!TRUE)", "acl(bogus)",
           "internal.strm.is_htx", "req.fhdr_cnt", "fc_err", "fc_err_name", "fc_err_str", "bc_err", "env(NONE_SUCH)", "capture.req.hdr(0)", "capture.req.hdr(9)", "wait_end",
           "distcc_body(x)", "res.hdr(x)", "status", "fs.aborted", "fs.rst_code", "waiting_entity", "last_entity", "term_events,length"]
HEADERS = ["x-list", "X-LIST", "x-empty", "x-none", "x-text", "x-num", "x-ip", "x-many", "host", "cookie"]
FORMS = ["req.hdr({})", "req.hdr({},1)", "req.hdr({},2)", "req.hdr({},-1)", "req.hdr({},-3)", "req.hdr({},9)", "req.fhdr({})", "req.fhdr({},1)", "req.fhdr({},-2)", "req.hdr_cnt({})",
         "req.fhdr_cnt({})", "req.hdr_ip({})", "req.hdr_ip({},1)", "req.hdr_ip({},2)", "req.hdr_val({})", "req.hdr_val({},1)", "req.hdr_val({},2)", "hdr({})", "hdr_cnt({})"]
RESPONSE = ["res.hdr(x-list)", "res.hdr(x-list,1)", "res.hdr(x-list,-1)", "res.fhdr(x-list)", "res.fhdr(x-list,1)", "res.hdr_cnt(x-list)", "res.fhdr_cnt(x-list)", "res.hdr_ip(x-ip)",
            "res.hdr_val(x-num)", "res.hdr(x-empty)", "res.hdr(x-none)", "res.cook(id)", "res.cook(Two)", "res.cook_cnt(id)", "res.cook_cnt", "res.cook_val(Two)", "res.cook_names", "res.hdr_names",
            "res.ver", "resp_ver", "status", "shdr(x-list)", "shdr_cnt(x-list)", "scook(id)", "set-cookie(id)", "res.body_len", "res.len", "hdr(x-list)", "capture.res.hdr(0)", "txn.status", "res.comp",
            "res.comp_algo", "res.cache_hit", "res.cache_name", "bc_http_major", "server_status", "str(abc),capture-res(0)", "fc_http_major", "method", "req.hdr(host)", "path", "capture.req.uri",
            "be_name", "http_status", "res.unique_id", "int(5)", "res.hdrs,length", "res.hdrs_bin,length"]

def fetches():
    for request in REQUESTS:
        for fetch in FETCHES:
            if request in ("plain", "form") or "(" not in fetch:
                yield {"expr": fetch, "request": request}
        for name, form in itertools.product(HEADERS, FORMS):
            if request == "plain" or request == "root" and name == "x-many":
                yield {"expr": form.format(name), "request": request}
    for status in (200, 404):
        for fetch in RESPONSE:
            yield {"expr": fetch, "side": "response", "status": status}

def all_cases():
    own = itertools.chain(ciphers(), tokens(), buffers(), exchanges(), queues(), frames(),
                          (t for t in texts() if isinstance(t, str)))
    every = itertools.chain(matrix(), ({"expr": e} for e in own), compared(), fetches())
    seen, out = set(), []
    for case in every:
        key = json.dumps(case, sort_keys=True)
        if key not in seen:
            seen.add(key)
            out.append(case)
    return out
