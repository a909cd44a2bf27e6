#!/usr/bin/env python3
"""Makes the certificates of tls.py anew (needs the Python package `cryptography`): `make.py FOLDER`.

They are committed because answers that were recorded show their fingerprints. All are good until 2056 but those that are to be
expired. `one` stands under root and inter, with all that may lie beside it.
"""
import base64, datetime, os, struct, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as ser
from cryptography.hazmat.primitives.asymmetric import ec, rsa, ed25519, dsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import NameOID as N, ExtendedKeyUsageOID as E, AuthorityInformationAccessOID as A

OUT = sys.argv[1]
FROM, TO = datetime.datetime(2026, 1, 1), datetime.datetime(2056, 1, 1)
SHA = hashes.SHA256()
serials = iter(range(0x1001, 0x2000))


def put(name, *parts):
    os.makedirs(os.path.dirname(os.path.join(OUT, name)), exist_ok=True)
    with open(os.path.join(OUT, name), "wb") as out:
        out.write(b"".join(parts))


def pem(cert):
    return cert.public_bytes(ser.Encoding.PEM)


def key_pem(key, form=ser.PrivateFormat.PKCS8, word=None):
    lock = ser.BestAvailableEncryption(word) if word else ser.NoEncryption()
    return key.private_bytes(ser.Encoding.PEM, form, lock)


def name(cn, **more):
    parts = [x509.NameAttribute(N.COUNTRY_NAME, "FR"), x509.NameAttribute(N.ORGANIZATION_NAME, "Test")]
    parts += [x509.NameAttribute(getattr(N, k), v) for k, v in more.items()]
    return x509.Name(parts + ([x509.NameAttribute(N.COMMON_NAME, cn)] if cn else []))


def cert(cn, key, by=None, authority=False, names=(), since=FROM, until=TO, usage=None, aia=None, subject=None, extra=()):
    """A certificate for a key, of `by` (certificate, key) or of itself."""
    subject = subject or name(cn)
    issuer, signer = (by[0].subject, by[1]) if by else (subject, key)
    b = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    b = b.serial_number(next(serials)).not_valid_before(since).not_valid_after(until)
    b = b.add_extension(x509.BasicConstraints(authority, None), True)
    b = b.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    if by:
        b = b.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by[1].public_key()), False)
    if names:
        b = b.add_extension(x509.SubjectAlternativeName(list(names)), False)
    if usage:
        b = b.add_extension(x509.ExtendedKeyUsage(usage), False)
    if aia:
        b = b.add_extension(x509.AuthorityInformationAccess(
            [x509.AccessDescription(A.OCSP, x509.UniformResourceIdentifier(aia))]), False)
    for one in extra:
        b = b.add_extension(one, False)
    return b.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else SHA)


def dns(*names):
    return [x509.DNSName(n) for n in names]


def curve(kind=ec.SECP256R1):
    return ec.generate_private_key(kind())


root_key, inter_key, other_key = curve(), curve(), curve()
root = cert("root", root_key, authority=True)
inter = cert("inter", inter_key, (root, root_key), authority=True)
other = cert("other", other_key, authority=True)
put("root.crt", pem(root))
put("inter.crt", pem(inter))
put("both.crt", pem(root), pem(inter))
put("other.crt", pem(other))
INTER = (inter, inter_key)

one_key = curve()
one = cert("one.example", one_key, INTER, names=dns("one.example", "*.one.example"), aia="http://127.0.0.1:1/ask")
put("one.pem", pem(one), pem(inter), key_pem(one_key))
put("one.crt", pem(one))
put("one.key", key_pem(one_key))
put("onlykey.pem", key_pem(one_key))
put("swapped.pem", pem(inter), pem(one), key_pem(one_key))
put("keyfirst.pem", key_pem(one_key), pem(one), pem(inter))
put("twokeys.pem", pem(one), key_pem(one_key), key_pem(inter_key))
put("sec1.pem", pem(one), key_pem(one_key, ser.PrivateFormat.TraditionalOpenSSL))
put("wrongkey.pem", pem(one), key_pem(inter_key))
put("locked.pem", pem(one), key_pem(one_key, word=b"secret"))
put("nokey.pem", pem(one))
put("empty.pem")
put("text.pem", b"this is no certificate\n")
put("half.pem", pem(one)[:300], b"\n", key_pem(one_key))
put("broken.pem", pem(one).replace(b"\nMII", b"\nAAA", 1), key_pem(one_key))
put("brokenkey.pem", pem(one), key_pem(one_key).replace(b"\nMIG", b"\nAAA", 1))
put("der.pem", one.public_bytes(ser.Encoding.DER))
put("dos.pem", (pem(one) + key_pem(one_key)).replace(b"\n", b"\r\n"))
put("words.pem", b"subject=/CN=one\nissuer=/CN=inter\n", pem(one), b"\nBag Attributes\n    x: y\n", key_pem(one_key))
put("params.pem", pem(one), b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n", key_pem(one_key))
DH = b"-----BEGIN DH PARAMETERS-----\nMIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz\n+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a\n87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7\nYdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi\n7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD\nssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==\n-----END DH PARAMETERS-----\n"
put("dh.pem", pem(one), key_pem(one_key), DH)
put("dh.params", DH)
put("expired.pem", *(lambda k: (pem(cert("old.example", k, INTER, names=dns("old.example"), since=datetime.datetime(2020, 1, 1),
    until=datetime.datetime(2021, 1, 1))), pem(inter), key_pem(k)))(curve()))
put("early.pem", *(lambda k: (pem(cert("new.example", k, INTER, names=dns("new.example"), since=datetime.datetime(2050, 1, 1))),
    pem(inter), key_pem(k)))(curve()))
wild_key = curve()
put("wild.pem", pem(cert("*.wild.example", wild_key, INTER, names=dns("*.wild.example"))), pem(inter), key_pem(wild_key))
rsa_key, p384 = rsa.generate_private_key(65537, 2048), curve(ec.SECP384R1)
two_rsa = cert("two.example", rsa_key, INTER, names=dns("two.example"))
put("two.pem.rsa", pem(two_rsa), pem(inter), key_pem(rsa_key))
put("two.pem.ecdsa", pem(cert("two.example", p384, INTER, names=dns("two.example"))), pem(inter), key_pem(p384))
put("rsa.pem", pem(two_rsa), pem(inter), key_pem(rsa_key, ser.PrivateFormat.TraditionalOpenSSL))
put("mixed.pem", pem(two_rsa), key_pem(one_key))
weak = rsa.generate_private_key(65537, 1024)
put("weak.pem", pem(cert("weak.example", weak, INTER)), pem(inter), key_pem(weak))
ed = ed25519.Ed25519PrivateKey.generate()
put("ed.pem", pem(cert("ed.example", ed, INTER)), pem(inter), key_pem(ed))
p521 = curve(ec.SECP521R1)
put("p521.pem", pem(cert("big.example", p521, INTER)), pem(inter), key_pem(p521))
k1 = curve(ec.SECP256K1)
put("k1.pem", pem(cert("koblitz.example", k1, INTER)), pem(inter), key_pem(k1))
self_key = curve()
put("self.pem", pem(cert("self.example", self_key, names=dns("self.example"))), key_pem(self_key))
ip_key = curve()
import ipaddress
put("ip.pem", pem(cert("", ip_key, INTER, names=[x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])), pem(inter), key_pem(ip_key))
odd = x509.Name([x509.NameAttribute(N.COUNTRY_NAME, "FR"), x509.NameAttribute(N.ORGANIZATION_NAME, "T\u00e9st, Inc + \"x\""),
    x509.NameAttribute(N.ORGANIZATIONAL_UNIT_NAME, "a"), x509.NameAttribute(N.ORGANIZATIONAL_UNIT_NAME, "b"),
    x509.NameAttribute(N.COMMON_NAME, "odd.example"), x509.NameAttribute(N.EMAIL_ADDRESS, "a@odd.example")])
odd_key = curve()
put("odd.pem", pem(cert("", odd_key, INTER, subject=odd, names=dns("odd.example", "ODD2.example") + [x509.RFC822Name("a@odd.example"),
    x509.UniformResourceIdentifier("https://odd.example/")])), pem(inter), key_pem(odd_key))
three_key = curve()
three = cert("three.example", three_key, INTER, names=dns("three.example"))
put("three.pem", pem(three), pem(inter), key_pem(three_key))

# Clients.
def client(file, cn, by=INTER, **more):
    key = curve()
    made = cert(cn, key, by, usage=more.pop("usage", [E.CLIENT_AUTH]), **more)
    put(file, pem(made), *([pem(by[0])] if by and by[0] is not root else []), key_pem(key))
    return made

client("client.pem", "client")
client("client-root.pem", "under root", (root, root_key))
client("client-other.pem", "stranger", (other, other_key))
client("client-expired.pem", "late", since=datetime.datetime(2020, 1, 1), until=datetime.datetime(2021, 1, 1))
client("client-server.pem", "for servers", usage=[E.SERVER_AUTH])
revoked = client("client-revoked.pem", "revoked")
client("client-self.pem", "alone", None)
origin = client("origin.pem", "origin.example", usage=[E.SERVER_AUTH], names=dns("origin.example", "*.origins.example"))
client("origin-expired.pem", "origin.example", usage=[E.SERVER_AUTH], names=dns("origin.example"), since=datetime.datetime(2020, 1, 1),
       until=datetime.datetime(2021, 1, 1))
origin_revoked = client("origin-revoked.pem", "origin.example", usage=[E.SERVER_AUTH], names=dns("origin.example"))
client("origin-self.pem", "origin.example", None, usage=[E.SERVER_AUTH], names=dns("origin.example"))

# Revocation lists.
def crl(ca, key, *gone, until=TO):
    b = x509.CertificateRevocationListBuilder().issuer_name(ca.subject).last_update(FROM).next_update(until)
    for c in gone:
        b = b.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(c.serial_number).revocation_date(FROM).build())
    return pem(b.sign(key, SHA))

put("inter.crl", crl(inter, inter_key, revoked, origin_revoked))
put("root.crl", crl(root, root_key))
put("both.crl", crl(inter, inter_key, revoked, origin_revoked), crl(root, root_key))
put("late.crl", crl(inter, inter_key, until=datetime.datetime(2026, 1, 2)), crl(root, root_key))

# What lies beside a certificate.
def answer(c, status=ocsp.OCSPCertStatus.GOOD, until=TO, key=inter_key):
    b = ocsp.OCSPResponseBuilder().add_response(cert=c, issuer=inter, algorithm=hashes.SHA1(), cert_status=status, this_update=FROM,
        next_update=until, revocation_time=FROM if status != ocsp.OCSPCertStatus.GOOD else None,
        revocation_reason=None).responder_id(ocsp.OCSPResponderEncoding.HASH, inter)
    return b.sign(key, SHA).public_bytes(ser.Encoding.DER)

SCT = b"\x00" + b"l" * 32 + struct.pack(">Q", 1767225600000) + b"\x00\x00" + b"\x04\x03" + struct.pack(">H", 8) + b"signture"
SCTS = struct.pack(">HH", len(SCT) + 2, len(SCT)) + SCT
put("beside.pem", pem(one), pem(inter), key_pem(one_key))
put("beside.pem.ocsp", answer(one))
put("beside.pem.issuer", pem(inter))
put("sctl.pem", pem(one), pem(inter), key_pem(one_key)); put("sctl.pem.sctl", SCTS)
put("apart.pem", pem(one), pem(inter))
put("apart.pem.key", key_pem(one_key))
put("badocsp.pem", pem(one), pem(inter), key_pem(one_key)); put("badocsp.pem.ocsp", b"nothing")
put("foreignocsp.pem", pem(one), pem(inter), key_pem(one_key)); put("foreignocsp.pem.ocsp", answer(three))
put("lateocsp.pem", pem(one), pem(inter), key_pem(one_key)); put("lateocsp.pem.ocsp", answer(one, until=datetime.datetime(2026, 1, 2)))
put("badissuer.pem", pem(one), key_pem(one_key)); put("badissuer.pem.issuer", b"nothing")
put("otherissuer.pem", pem(one), key_pem(one_key)); put("otherissuer.pem.issuer", pem(other)); put("otherissuer.pem.ocsp", answer(one))
put("badsctl.pem", pem(one), pem(inter), key_pem(one_key)); put("badsctl.pem.sctl", b"nothing")
put("badkey.pem", pem(one)); put("badkey.pem.key", b"nothing")
put("good.ocsp", answer(one)); put("three.ocsp", answer(three)); put("revoked.ocsp", answer(one, ocsp.OCSPCertStatus.REVOKED))
put("good.ocsp.b64", base64.b64encode(answer(one))); put("three.ocsp.b64", base64.b64encode(answer(three)))
put("late.ocsp.b64", base64.b64encode(answer(one, until=datetime.datetime(2026, 1, 2))))
put("revoked.ocsp.b64", base64.b64encode(answer(one, ocsp.OCSPCertStatus.REVOKED)))
put("ticket.keys", b"".join(base64.b64encode(bytes([65 + n]) * 48) + b"\n" for n in range(3)))
put("ticket80.keys", b"".join(base64.b64encode(bytes([65 + n]) * 80) + b"\n" for n in range(3)))
put("ticketbad.keys", base64.b64encode(b"a" * 20) + b"\n")
put("ticketmixed.keys", b"".join(base64.b64encode(bytes([65 + n]) * s) + b"\n" for n, s in enumerate((48, 80, 48))))
put("tickettwo.keys", b"".join(base64.b64encode(bytes([65 + n]) * 48) + b"\n" for n in range(2)))

# Folders.
put("folder/b.pem", pem(three), pem(inter), key_pem(three_key))
put("folder/a.pem", pem(one), pem(inter), key_pem(one_key))
put("folder/.hidden.pem", b"nothing")
put("folder/c.txt", pem(two_rsa), pem(inter), key_pem(rsa_key))
put("folder/two.pem.rsa", pem(two_rsa), pem(inter), key_pem(rsa_key))
put("folder/b.pem.issuer", pem(inter))
put("folder/sub/x.pem", b"nothing")
put("badfolder/a.pem", pem(one), pem(inter), key_pem(one_key))
put("badfolder/readme", b"nothing\n")
put("cas/root.pem", pem(root))
put("cas/inter.crt", pem(inter))
put("cas/other.txt", pem(other))
put("issuers/inter.pem", pem(inter))
