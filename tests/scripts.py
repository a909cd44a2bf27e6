#!/usr/bin/env python3
"""Public Lua scripts in real use, unchanged, beside HAProxy.

    scripts.py --binary PROGRAM --oracle HAPROXY --folder FOLDER [--only WORD]

FOLDER holds checkouts of these repositories, which are never committed here: haproxy-lua-oauth, haproxy-lua-cors,
haproxy-lua-http (haproxytech), haproxy-ingress (jcmoraisjr), json.lua (rxi). The first wants Debian's lua-luaossl. What
is not there is skipped. Both programs get the same requests: status, fields and bodies of the answers, and what the
origin saw, must be the same, and no script may fail in one of them only.
"""

import argparse
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import ports

passed = failed = skipped = 0
SECRET = "E57lT71DHOHK1eeOlMjatvUtUg6ejFZ8"

# What stands before the rules of a frontend.
PROXY = """defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend fe
    bind 127.0.0.1:PORT
"""


def check(name, good, seen=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else f': {seen}'}", flush=True)


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers with what it saw; as an authority it does what `x-user` says."""

    protocol_version = "HTTP/1.1"
    codes = {"ok": 200, "no": 401, "forbid": 403, "moved": 302, "err": 500, "none": 204}

    def answer(self):
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        user = self.headers.get("x-user") or ""
        authority = self.path.startswith("/chk")
        if authority and user == "drop":
            self.close_connection = True
            return
        code = self.codes.get(user, 403) if authority else 200
        fields = sorted((k.lower(), v) for k, v in self.headers.items() if k.lower() not in ("host", "connection"))
        body = b"" if code == 204 else repr((self.command, self.path, fields, sent)).encode()
        self.send_response_only(code)
        if authority:
            self.send_header("X-Auth-User", f"me {user}")
            self.send_header("X-Auth-Two", "1")
            self.send_header("X-Auth-Two", "2")
            self.send_header("WWW-Authenticate", "Basic realm=x")
        if code == 302:
            self.send_header("Location", "http://login/?x")
        if code != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_OPTIONS = answer

    def log_message(self, *_):
        pass


def origin():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    server.daemon_threads, server.handle_error = True, lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def run(program, folder, config, requests):
    """Sends the requests; what came of each, and the errors of scripts."""
    port = ports.free()
    with open(f"{folder}/cfg", "w") as file:
        file.write(config.replace("PORT", str(port)))
    with open(f"{folder}/out", "w") as out:
        process = subprocess.Popen([program, "-db", "-f", f"{folder}/cfg"], stdout=out, stderr=subprocess.STDOUT)
    came = []
    try:
        ports.await_listener(port)
        for method, path, fields, body in requests:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                line.request(method, path, body=body, headers=fields)
                answer = line.getresponse()
                text = answer.read()
                shown = sorted((k.lower(), v) for k, v in answer.getheaders() if k.lower() not in ("date", "server"))
                # Pages of errors have words of their own; a 204 has no length here (docs/differences.md).
                if b"<html>" in text:
                    text, shown = b"page", []
                if answer.status == 204:
                    shown = [field for field in shown if field[0] != "content-length"]
                came.append((answer.status, shown, text))
            except (OSError, http.client.HTTPException) as error:
                came.append(repr(error))
            line.close()
    finally:
        process.terminate()
        process.wait()
    with open(f"{folder}/out") as out:
        failures = sorted(re.findall(r"Lua function '[^']*': \[state-id 0\] runtime error: [^ ]* [^,]*? from", out.read()))
    return came, failures


def token(alg, claims, key=None):
    coded = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    text = coded(json.dumps({"alg": alg, "typ": "JWT"}).encode()) + "." + coded(json.dumps(claims).encode())
    seal = b""
    if alg == "RS256":
        sign = ["openssl", "dgst", "-sha256", "-sign", key]
        seal = subprocess.run(sign, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    elif key:
        seal = hmac.new(key.encode(), text.encode(), hashlib.sha256 if alg == "HS256" else hashlib.sha512).digest()
    return f"Bearer {text}.{coded(seal)}"


def oauth(scripts, folder):
    """haproxy-lua-oauth: tokens, good ones and others."""
    for name in ("mine", "other"):
        make = ["openssl", "genrsa", "-out", f"{folder}/{name}.pem", "2048"]
        subprocess.run(make, stderr=subprocess.DEVNULL, check=True)
    public = ["openssl", "rsa", "-in", f"{folder}/mine.pem", "-pubout", "-out", f"{folder}/public.pem"]
    subprocess.run(public, stderr=subprocess.DEVNULL, check=True)
    mine, now = f"{folder}/mine.pem", int(time.time())
    good = {"iss": "https://me/", "aud": "https://api.x", "exp": now + 3600, "scope": "read:s write:s", "n": 3.5,
            "b": True, "o": {"a": [1, 2]}}
    changed = lambda **more: {**good, **more}
    endless = {name: value for name, value in good.items() if name != "exp"}
    tokens = [None, "", "Basic Zm9vOmJhcg==", "Bearer a.b", "Bearer aaaa.bbbb.cccc", token("none", good),
              token("RS256", good, mine), token("RS256", changed(exp=now - 5), mine), token("RS256", changed(aud="x"), mine),
              token("RS256", changed(aud=["x", "https://api.x"]), mine), token("RS256", changed(iss="x"), mine),
              token("RS256", changed(scope="write:s"), mine), token("RS256", good, f"{folder}/other.pem"),
              token("RS256", endless, mine), token("RS256", good, mine)[:-8] + "!!!!", token("HS256", good, SECRET),
              token("HS256", good, "wrong"), token("HS512", good, SECRET)]
    requests = [(method, "/api", {} if one is None else {"Authorization": one}, None)
                for one in tokens for method in ("GET", "POST")]
    config = f"""global
    tune.lua.bool-sample-conversion normal
    lua-prepend-path {scripts}/json.lua/?.lua
    lua-prepend-path {scripts}/haproxy-lua-oauth/lib/?.lua
    lua-load {scripts}/haproxy-lua-oauth/lib/jwtverify.lua
    setenv OAUTH_PUBKEY_PATH {folder}/public.pem
    setenv OAUTH_HMAC_SECRET {SECRET}
    setenv OAUTH_ISSUER https://me/
    setenv OAUTH_AUDIENCE "https://api.x https://other"
{PROXY}    http-request deny unless {{ req.hdr(authorization) -m found }}
    http-request lua.jwtverify
    http-request set-header x-seen "%[var(txn.oauth.o)] %[var(txn.oauth.n)] %[var(txn.oauth.aud)]"
    http-request deny deny_status 401 unless {{ var(txn.authorized) -m bool }}
    http-request deny if {{ method GET }} ! {{ var(txn.oauth.scope) -m sub read:s }}
    default_backend be
backend be
    server s 127.0.0.1:{origin()}
"""
    return config, requests, 200


def cors(scripts, _):
    """haproxy-lua-cors: preflights and others, from origins of all kinds."""
    origins = [None, "https://a.com", "http://a.com:8080", "https://b.a.com", "https://evil.com", "null", "https://x.any.org",
               "http://port.org:81", "http://port.org"]
    requests = []
    for path in ("/list", "/star"):
        for one in origins:
            fields = {} if one is None else {"Origin": one}
            ask = {**fields, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-a"}
            requests += [("GET", path, fields, None), ("OPTIONS", path, fields, None), ("OPTIONS", path, ask, None)]
    config = f"""global
    tune.lua.bool-sample-conversion normal
    lua-load {scripts}/haproxy-lua-cors/lib/cors.lua
{PROXY}    http-request lua.cors "GET,PUT" "a.com,http://a.com:8080,.any.org,//port.org:81" "x-a,x-b" if {{ path /list }}
    http-request lua.cors "*" "*" "*" if {{ path /star }}
    http-response lua.cors
    default_backend be
backend be
    server s 127.0.0.1:{origin()}
"""
    return config, requests, 200


def ingress(scripts, _):
    """haproxy-ingress: authentication by a service elsewhere, preflights, empty answers."""
    paths = ("/get", "/head", "/term", "/post", "/req", "/none", "/dead", "/tdead", "/maint", "/get/lsr")
    requests = [(method, path, {"X-User": user, "X-More": "m", "Cookie": "a=b"}, body) for path in paths
                for user in (*Origin.codes, "drop") for method, body in (("GET", None), ("POST", "hello"))]
    requests.append(("OPTIONS", "/get", {}, None))
    lua, port, dead = f"{scripts}/haproxy-ingress/rootfs/etc/lua", origin(), ports.free()
    config = f"""global
    tune.lua.bool-sample-conversion normal
    lua-prepend-path {lua}/?.lua
    lua-prepend-path {scripts}/json.lua/?.lua
    lua-load {lua}/auth-request.lua
    lua-load {lua}/services.lua
    lua-load {lua}/send-response.lua
defaults
    mode http
    timeout connect 2s
    timeout client 5s
    timeout server 5s
frontend fe
    bind 127.0.0.1:PORT
    http-request set-var(txn.cors_max_age) str(86400)
    http-request use-service lua.send-cors-preflight if METH_OPTIONS
    http-request lua.auth-intercept auth /chk GET x-user,x-mo?e,cookie x-auth-* - if {{ path_beg /get }}
    http-request lua.auth-intercept auth /chk HEAD * X-Auth-User,x-auth-two - if {{ path_beg /head }}
    http-request lua.auth-intercept auth /chk?a=b * * * * if {{ path_beg /term }}
    http-request lua.auth-intercept auth /chk POST * x-auth-* www-auth*,location,x-auth-two if {{ path_beg /post }}
    http-request lua.auth-request auth /chk if {{ path_beg /req }}
    http-request lua.auth-intercept none /chk GET * - - if {{ path_beg /none }}
    http-request lua.auth-intercept deadauth /chk GET * - - if {{ path_beg /dead }}
    http-request lua.auth-intercept deadauth /chk GET * - * if {{ path_beg /tdead }}
    http-request lua.auth-intercept maint /chk GET * - * if {{ path_beg /maint }}
    http-request redirect location %[var(txn.auth_response_location)] if {{ var(txn.auth_response_location) -m found }}
    http-request set-header x-seen "%[var(txn.auth_response_code)] %[var(txn.auth_response_successful)]"
    http-request set-header x-said "%[var(req.auth_response_header.x_auth_user)],%[var(req.auth_response_header.x_auth_two)]"
    http-request use-service lua.send-response if {{ path_end /lsr }}
    default_backend be
backend be
    server s 127.0.0.1:{port}
backend auth
    server a 127.0.0.1:{port}
backend deadauth
    server a 127.0.0.1:{dead}
backend maint
    server a 127.0.0.1:{dead} disabled
"""
    return config, requests, 200


def main():
    global skipped
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    scripts = os.path.abspath(args.folder)
    needed = {oauth: ("haproxy-lua-oauth", "json.lua"), cors: ("haproxy-lua-cors",), ingress: ("haproxy-ingress", "json.lua")}
    for case, folders in needed.items():
        name = case.__name__
        if args.only not in name:
            continue
        if not all(os.path.isdir(f"{scripts}/{one}") for one in folders):
            skipped += 1
            print(f"skip {name}: its repository is not there")
            continue
        with tempfile.TemporaryDirectory() as folder:
            config, requests, wanted = case(scripts, folder)
            theirs, ours = (run(os.path.abspath(one), folder, config, requests) for one in (args.oracle, args.binary))
        check(f"{name}: something was served", any(one[0] == wanted for one in theirs[0]), theirs[0][:2])
        for request, one, other in zip(requests, theirs[0], ours[0]):
            if one != other:
                check(f"{name}: {request[:3]}", False, f"HAProxy {one}, here {other}")
        check(f"{name}: {len(requests)} requests are answered as by HAProxy", theirs[0] == ours[0])
        check(f"{name}: scripts fail where they do there", theirs[1] == ours[1], (theirs[1], ours[1]))
    print(f"outside: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


main()
