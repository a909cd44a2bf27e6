//! TLS of the two connections: what was agreed on, what went wrong, and what the ClientHello said (sections
//! 7.3.3 and 7.3.4).

use bumpalo::collections::Vec as ArenaVec;
use model::secured::Secured;
use tls::hello::{Cursor, Hello};

use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::places::{CLIENT_L5, SERVER_CONN};
use crate::sample::{Found, Miss, Type, Value};

use super::secrets::{bytes, wants};
use super::{cipher_names, int, text};

pub(super) const fn fc(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L5, eval, doc)
}

pub(super) const fn bc(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, SERVER_CONN, eval, doc)
}

/// A list of the ClientHello, perhaps without GREASE.
const fn list(
    name: &'static str,
    out: Type,
    eval: FetchFn,
    doc: &'static str,
    example: &'static str,
) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L5, eval, doc).args("[integer]", example)
}

pub(super) const FETCHES: &[FetchDef] = &[
    bc(
        "ssl_bc",
        Type::Bool,
        |e, _| Ok(Value::Bool(back(e).is_ok())),
        "Whether the server connection is encrypted.",
    ),
    bc("ssl_bc_alg_keysize", Type::Int, |e, _| int(bits(back(e)?)?), "Bits of the key of its cipher."),
    bc(
        "ssl_bc_alpn",
        Type::Str,
        |e, _| text(back(e)?.alpn.as_deref()),
        "Protocol that ALPN chose with the server.",
    ),
    bc("ssl_bc_cipher", Type::Str, |e, _| text(Some(back(e)?.cipher.as_bytes())), "Its cipher."),
    bc("ssl_bc_curve", Type::Str, |e, _| curve(back(e)?), "Curve of the key exchange with the server."),
    bc(
        "ssl_bc_err",
        Type::Int,
        |e, _| super::server::known_error(e).and(int(server_fault(e)?)),
        "What OpenSSL would number its failure.",
    ),
    bc(
        "ssl_bc_err_str",
        Type::Str,
        |e, _| fault_text(e, server_fault(e)?),
        "What OpenSSL would say of its failure.",
    ),
    bc(
        "ssl_bc_is_resumed",
        Type::Bool,
        |e, _| Ok(Value::Bool(back(e).is_ok_and(|s| s.resumed))),
        "Whether its session was resumed.",
    ),
    bc("ssl_bc_npn", Type::Str, |_, _| Err(Miss::None), "Nothing: ALPN has taken its place."),
    bc("ssl_bc_protocol", Type::Str, |e, _| text(Some(back(e)?.version.as_bytes())), "Its TLS version."),
    bc(
        "ssl_bc_sni",
        Type::Str,
        |e, _| text(back(e)?.sni.as_deref().map(str::as_bytes)),
        "Server name sent to the server.",
    ),
    bc(
        "ssl_bc_use_keysize",
        Type::Int,
        |e, _| int(bits(back(e)?)?),
        "Bits of the key of its cipher that count.",
    ),
    fc(
        "ssl_c_ca_err",
        Type::Int,
        |e, _| int(front(e)?.authority_error),
        "Error above the client's certificate.",
    ),
    fc(
        "ssl_c_ca_err_depth",
        Type::Int,
        |e, _| int(front(e)?.authority_depth),
        "How far above the client's certificate.",
    ),
    fc("ssl_c_err", Type::Int, |e, _| int(front(e)?.error), "Error of the client's certificate."),
    fc(
        "ssl_c_used",
        Type::Bool,
        |e, _| Ok(Value::Bool(shown(e)?)),
        "Whether the session has a client certificate.",
    ),
    fc("ssl_c_verify", Type::Int, |e, _| int(verdict(e)?), "Result of verifying the client's certificate."),
    fc(
        "ssl_fc",
        Type::Bool,
        // Before the handshake it is about to be.
        |e, _| Ok(Value::Bool(e.conn.tls.get() || front(e).is_ok())),
        "Whether the client connection is encrypted.",
    ),
    fc("ssl_fc_alg_keysize", Type::Int, |e, _| int(front(e)?.bits), "Bits of the key of its cipher."),
    fc(
        "ssl_fc_alpn",
        Type::Str,
        |e, _| text(front(e)?.alpn.as_deref()),
        "Protocol that ALPN chose with the client.",
    ),
    fc("ssl_fc_cipher", Type::Str, |e, _| cipher(front(e)?), "Its cipher."),
    list(
        "ssl_fc_cipherlist_bin",
        Type::Str,
        |e, a| Ok(Value::Str(pairs(e, a, hello(e)?.ciphers))),
        "Ciphers that the client offers.",
        "ssl_fc_cipherlist_bin(1)",
    ),
    list(
        "ssl_fc_cipherlist_hex",
        Type::Bin,
        |e, a| hex(e, pairs(e, a, hello(e)?.ciphers)),
        "The same in hexadecimal digits.",
        "ssl_fc_cipherlist_hex(1)",
    ),
    fc(
        "ssl_fc_cipherlist_xxh",
        Type::Int,
        |e, _| int(base::hash::xxh64(hello(e)?.ciphers, 0) as i64),
        "A hash of the same.",
    ),
    fc(
        "ssl_fc_client_random",
        Type::Bin,
        |e, _| bytes(front(e)?, |m| &m.client_random),
        "Random bytes of the client.",
    )
    .check(wants::<{ tls::secrets::kind::RANDOMS }>),
    list(
        "ssl_fc_cipherlist_str",
        Type::Str,
        cipher_names,
        "Names of the ciphers that the client offers.",
        "ssl_fc_cipherlist_str(1)",
    ),
    fc(
        "ssl_fc_crtname",
        Type::Str,
        |e, _| text(front(e)?.own_name.as_deref().map(str::as_bytes)),
        "Name of the certificate shown to the client.",
    ),
    fc("ssl_fc_curve", Type::Str, |e, _| curve(front(e)?), "Curve of the key exchange with the client."),
    fc(
        "ssl_fc_early_rcvd",
        Type::Bool,
        |e, _| Ok(Value::Bool(front(e)?.early)),
        "Whether early data came, be the handshake over since.",
    ),
    fc(
        "ssl_fc_ecformats_bin",
        Type::Str,
        |e, _| Ok(Value::Str(vector(hello(e)?.extension(11), 1)?)),
        "Formats of points that the client takes.",
    ),
    list(
        "ssl_fc_eclist_bin",
        Type::Str,
        |e, a| Ok(Value::Str(pairs(e, a, vector(hello(e)?.extension(10), 2)?))),
        "Curves that the client takes.",
        "ssl_fc_eclist_bin(1)",
    ),
    fc("ssl_fc_err", Type::Int, |e, _| int(client_fault(e)?), "What OpenSSL would number its failure."),
    fc(
        "ssl_fc_err_str",
        Type::Str,
        |e, _| fault_text(e, client_fault(e)?),
        "What OpenSSL would say of its failure.",
    ),
    list(
        "ssl_fc_extlist_bin",
        Type::Str,
        extensions,
        "Extensions that the client sent.",
        "ssl_fc_extlist_bin(1)",
    ),
    fc(
        "ssl_fc_has_crt",
        Type::Bool,
        |e, _| {
            // Of a handshake that fails nobody knows.
            let over = !e.conn.is_opening();
            if over { Ok(Value::Bool(shown(e)? && !front(e)?.resumed)) } else { Err(Miss::None) }
        },
        "Whether the client showed a certificate.",
    ),
    fc(
        "ssl_fc_has_early",
        Type::Bool,
        |e, _| front(e).map(|_| Value::Bool(e.conn.early.get())),
        "Whether early data came and the handshake is not over: a request may have been sent by somebody else before.",
    ),
    fc(
        "ssl_fc_has_sni",
        Type::Bool,
        |e, _| Ok(Value::Bool(front(e).is_ok_and(|s| s.sni.is_some()))),
        "Whether the client sent a server name.",
    ),
    fc(
        "ssl_fc_is_resumed",
        Type::Bool,
        |e, _| Ok(Value::Bool(front(e).is_ok_and(|s| s.resumed))),
        "Whether the client resumed a session.",
    ),
    fc("ssl_fc_npn", Type::Str, |_, _| Err(Miss::None), "Nothing: ALPN has taken its place."),
    fc("ssl_fc_protocol", Type::Str, |e, _| text(Some(front(e)?.version.as_bytes())), "Its TLS version."),
    fc("ssl_fc_protocol_hello_id", Type::Int, |e, _| int(hello(e)?.version), "Version in the ClientHello."),
    list(
        "ssl_fc_sigalgs_bin",
        Type::Bin,
        |e, a| Ok(Value::Bin(pairs(e, a, vector(hello(e)?.extension(13), 2)?))),
        "Signature algorithms that the client takes.",
        "ssl_fc_sigalgs_bin(1)",
    ),
    fc(
        "ssl_fc_sni",
        Type::Str,
        |e, _| text(front(e)?.sni.as_deref().map(str::as_bytes)),
        "Server name that the client sent.",
    ),
    list(
        "ssl_fc_supported_versions_bin",
        Type::Bin,
        |e, a| Ok(Value::Bin(pairs(e, a, vector(hello(e)?.extension(43), 1)?))),
        "Versions that the client takes.",
        "ssl_fc_supported_versions_bin(1)",
    ),
    fc(
        "ssl_fc_use_keysize",
        Type::Int,
        |e, _| int(front(e)?.bits),
        "Bits of the key of its cipher that count.",
    ),
];

pub(super) fn front<'a>(env: &Env<'a>) -> Result<&'a Secured, Miss> {
    env.conn.secured().ok_or(Miss::None)
}

/// A connection to a server on which TLS is spoken, was to be spoken, or is about to be.
pub(super) fn back<'a>(env: &Env<'a>) -> Result<&'a Secured, Miss> {
    env.txn.server_secured.as_deref().ok_or(Miss::None)
}

/// The bits of a cipher's key, where there is one.
fn bits(facts: &Secured) -> Result<u16, Miss> {
    Some(facts.bits).filter(|bits| *bits > 0).ok_or(Miss::None)
}

fn shown(env: &Env<'_>) -> Result<bool, Miss> {
    Ok(!front(env)?.peer.is_empty())
}

fn cipher(facts: &Secured) -> Found<'_> {
    text(Some(if facts.cipher.is_empty() { b"(NONE)" } else { facts.cipher.as_bytes() }))
}

/// The result of verifying, which a handshake that failed does not have.
fn verdict(env: &Env<'_>) -> Result<u8, Miss> {
    let facts = front(env)?;
    if env.conn.error.get().is_of_handshake() { Err(Miss::None) } else { Ok(facts.verdict) }
}

/// OpenSSL's name of a curve.
fn curve(facts: &Secured) -> Found<'_> {
    text(facts.group.map(|g| match g {
        "secp256r1" => b"prime256v1",
        other => other.as_bytes(),
    }))
}

/// The number as OpenSSL packs it, library and reason, of what ended the client's connection, or its
/// handshake.
fn client_fault(env: &Env<'_>) -> Result<u32, Miss> {
    Ok(front(env)?.fault.max(env.conn.fault.get()))
}

/// The same of the server's.
fn server_fault(env: &Env<'_>) -> Result<u32, Miss> {
    Ok(back(env)?.fault.max(env.txn.server_conn.fault))
}

fn fault_text<'a>(env: &Env<'a>, code: u32) -> Found<'a> {
    if code == 0 {
        return Err(Miss::None);
    }
    let said = format!("error:{code:08X}:SSL routines::{}", tls::faults::text(code));
    Ok(Value::Str(env.arena.alloc_slice_copy(said.as_bytes())))
}

pub(super) fn hello<'a>(env: &Env<'a>) -> Result<Hello<'a>, Miss> {
    Hello::parse(front(env)?.hello.as_deref().ok_or(Miss::None)?).ok_or(Miss::None)
}

/// What follows a length in an extension.
fn vector(extension: Option<&[u8]>, width: usize) -> Result<&[u8], Miss> {
    extension.and_then(|e| Cursor(e).vector(width)).ok_or(Miss::None)
}

/// Whether a number is one of those that only keep others honest (RFC 8701).
fn is_grease(pair: &[u8]) -> bool {
    matches!(pair, [a, b] if a == b && a & 0x0f == 0x0a)
}

/// A list of 16-bit numbers, without GREASE if that is asked for.
pub(super) fn pairs<'a>(env: &Env<'a>, args: &[Arg], list: &'a [u8]) -> &'a [u8] {
    if arg(args, 0).int_or(0) != 1 {
        return list;
    }
    let mut out = ArenaVec::new_in(env.arena);
    list.chunks_exact(2).filter(|p| !is_grease(p)).for_each(|p| out.extend_from_slice(p));
    out.into_bump_slice()
}

/// Names behind commas; of what has none its number.
fn cipher_names<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut out = ArenaVec::new_in(env.arena);
    for pair in pairs(env, args, hello(env)?.ciphers).chunks_exact(2) {
        if !out.is_empty() {
            out.push(b',');
        }
        let number = u16::from(pair[0]) << 8 | u16::from(pair[1]);
        match cipher_names::name(number) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => out.extend_from_slice(format!("UNKNOWN({number:04x})").as_bytes()),
        }
    }
    Ok(Value::Str(out.into_bump_slice()))
}

fn extensions<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let mut cursor = Cursor(hello(env)?.extensions);
    let mut out = ArenaVec::new_in(env.arena);
    while let Some(kind) = cursor.take(2) {
        cursor.vector(2).ok_or(Miss::None)?;
        out.extend_from_slice(kind);
    }
    Ok(Value::Str(pairs(env, args, out.into_bump_slice())))
}

fn hex<'a>(env: &Env<'a>, bytes: &[u8]) -> Found<'a> {
    let mut out = ArenaVec::new_in(env.arena);
    bytes.iter().for_each(|b| out.extend_from_slice(&crate::tag::hex(*b)));
    Ok(Value::Bin(out.into_bump_slice()))
}
