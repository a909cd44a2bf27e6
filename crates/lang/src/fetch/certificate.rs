//! Certificates: the client's, the one it was shown, and the server's (section 7.3.4).
//!
//! What a certificate says is taken from its DER when a rule asks for it; nothing is parsed unasked.

use bumpalo::collections::Vec as ArenaVec;
use sha1::Digest;
use x509::oid;
use x509::{Attribute, Certificate, Der, attributes};

use crate::arg::{Arg, arg};
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::names::Names;
use crate::places::CLIENT_L5;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::int;

const fn of(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L5, eval, doc)
}

const fn dn(name: &'static str, eval: FetchFn, doc: &'static str, example: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Str, CLIENT_L5, eval, doc)
        .args("[string,integer,string]", example)
        .check(check_form)
}

/// The third argument of a name: how it is written.
fn check_form(args: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    match arg(args, 2).bytes() {
        None | Some(b"" | b"rfc2253") => Ok(()),
        Some(_) => {
            Err(Fault::new("only rfc2253 or a blank value are currently supported as the format argument"))
        }
    }
}

pub(super) const FETCHES: &[FetchDef] = &[
    of(
        "ssl_c_chain_der",
        Type::Bin,
        |e, _| chain(e, client_chain(e).get(1..).unwrap_or_default()),
        "Certificates that the client showed behind its own.",
    ),
    of("ssl_c_der", Type::Bin, |e, _| Ok(Value::Bin(client(e)?)), "The client's certificate."),
    dn(
        "ssl_c_i_dn",
        |e, a| name(e, parsed(client(e))?.issuer, a),
        "Issuer of the client's certificate.",
        "ssl_c_i_dn(CN)",
    ),
    of(
        "ssl_c_key_alg",
        Type::Str,
        |e, _| key_algorithm(parsed(client(e))?),
        "Kind of the key of the client's certificate.",
    ),
    of(
        "ssl_c_notafter",
        Type::Str,
        |e, _| date(parsed(client(e))?.validity[1]),
        "End of the client's certificate.",
    ),
    of(
        "ssl_c_notbefore",
        Type::Str,
        |e, _| date(parsed(client(e))?.validity[0]),
        "Beginning of the client's certificate.",
    ),
    FetchDef::new("ssl_c_policies", Type::Str, CLIENT_L5, policies, "Policies of the client's certificate.")
        .args("[string]", "ssl_c_policies"),
    dn("ssl_c_r_dn", |e, a| name(e, root(e)?, a), "Root above the client's certificate.", "ssl_c_r_dn(CN)"),
    dn(
        "ssl_c_s_dn",
        |e, a| name(e, parsed(client(e))?.subject, a),
        "Subject of the client's certificate.",
        "ssl_c_s_dn(CN)",
    ),
    of("ssl_c_san", Type::Str, alternatives, "Names in the client's certificate."),
    of(
        "ssl_c_serial",
        Type::Bin,
        |e, _| serial(parsed(client(e))?),
        "Serial number of the client's certificate.",
    ),
    of("ssl_c_sha1", Type::Bin, |e, _| sha1(e, client(e)?), "SHA-1 of the client's certificate."),
    of(
        "ssl_c_sig_alg",
        Type::Str,
        |e, _| signature_algorithm(parsed(client(e))?),
        "How the client's certificate is signed.",
    ),
    of(
        "ssl_c_version",
        Type::Int,
        |e, _| int(parsed(client(e))?.version),
        "Version of the client's certificate.",
    ),
    of("ssl_f_der", Type::Bin, |e, _| Ok(Value::Bin(own(e)?)), "The certificate shown to the client."),
    dn(
        "ssl_f_i_dn",
        |e, a| name(e, parsed(own(e))?.issuer, a),
        "Issuer of the certificate shown to the client.",
        "ssl_f_i_dn(CN)",
    ),
    of("ssl_f_key_alg", Type::Str, |e, _| key_algorithm(parsed(own(e))?), "Kind of its key."),
    of("ssl_f_notafter", Type::Str, |e, _| date(parsed(own(e))?.validity[1]), "Its end."),
    of("ssl_f_notbefore", Type::Str, |e, _| date(parsed(own(e))?.validity[0]), "Its beginning."),
    dn("ssl_f_s_dn", |e, a| name(e, parsed(own(e))?.subject, a), "Its subject.", "ssl_f_s_dn(CN)"),
    of("ssl_f_serial", Type::Bin, |e, _| serial(parsed(own(e))?), "Its serial number."),
    of("ssl_f_sha1", Type::Bin, |e, _| sha1(e, own(e)?), "Its SHA-1."),
    of("ssl_f_sig_alg", Type::Str, |e, _| signature_algorithm(parsed(own(e))?), "How it is signed."),
    of("ssl_f_version", Type::Int, |e, _| int(parsed(own(e))?.version), "Its version."),
    of(
        "ssl_s_chain_der",
        Type::Bin,
        |e, _| chain(e, server_chain(e)),
        "Certificates that the server showed.",
    ),
    of("ssl_s_der", Type::Bin, |e, _| Ok(Value::Bin(server(e)?)), "The server's certificate."),
    dn(
        "ssl_s_i_dn",
        |e, a| name(e, parsed(server(e))?.issuer, a),
        "Issuer of the server's certificate.",
        "ssl_s_i_dn(CN)",
    ),
    of(
        "ssl_s_key_alg",
        Type::Str,
        |e, _| key_algorithm(parsed(server(e))?),
        "Kind of the key of the server's certificate.",
    ),
    of(
        "ssl_s_notafter",
        Type::Str,
        |e, _| date(parsed(server(e))?.validity[1]),
        "End of the server's certificate.",
    ),
    of(
        "ssl_s_notbefore",
        Type::Str,
        |e, _| date(parsed(server(e))?.validity[0]),
        "Beginning of the server's certificate.",
    ),
    dn(
        "ssl_s_s_dn",
        |e, a| name(e, parsed(server(e))?.subject, a),
        "Subject of the server's certificate.",
        "ssl_s_s_dn(CN)",
    ),
    of(
        "ssl_s_serial",
        Type::Bin,
        |e, _| serial(parsed(server(e))?),
        "Serial number of the server's certificate.",
    ),
    of("ssl_s_sha1", Type::Bin, |e, _| sha1(e, server(e)?), "SHA-1 of the server's certificate."),
    of(
        "ssl_s_sig_alg",
        Type::Str,
        |e, _| signature_algorithm(parsed(server(e))?),
        "How the server's certificate is signed.",
    ),
    of(
        "ssl_s_version",
        Type::Int,
        |e, _| int(parsed(server(e))?.version),
        "Version of the server's certificate.",
    ),
];

fn client_chain<'a>(env: &Env<'a>) -> &'a [Box<[u8]>] {
    env.conn.secured().map(|s| &s.peer[..]).unwrap_or_default()
}

fn server_chain<'a>(env: &Env<'a>) -> &'a [Box<[u8]>] {
    env.txn.server_secured.as_ref().map(|s| &s.peer[..]).unwrap_or_default()
}

fn client<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    client_chain(env).first().map(|c| &**c).ok_or(Miss::None)
}

fn server<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    server_chain(env).first().map(|c| &**c).ok_or(Miss::None)
}

fn own<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    env.conn.secured().and_then(|s| s.own.as_deref()).ok_or(Miss::None)
}

fn parsed(der: Result<&[u8], Miss>) -> Result<Certificate<'_>, Miss> {
    Certificate::parse(der?).ok_or(Miss::None)
}

fn chain<'a>(env: &Env<'a>, list: &[Box<[u8]>]) -> Found<'a> {
    if list.is_empty() {
        return Err(Miss::None);
    }
    let mut all = ArenaVec::new_in(env.arena);
    list.iter().for_each(|c| all.extend_from_slice(c));
    Ok(Value::Bin(all.into_bump_slice()))
}

/// The name of the last certificate of the chain that was put together, which is the root if the chain is
/// whole.
fn root<'a>(env: &Env<'a>) -> Result<&'a [u8], Miss> {
    env.conn.secured().and_then(|s| s.root.as_deref()).ok_or(Miss::None)
}

fn serial<'a>(cert: Certificate<'a>) -> Found<'a> {
    Ok(Value::Bin(cert.serial))
}

fn sha1<'a>(env: &Env<'a>, der: &[u8]) -> Found<'a> {
    let digest = sha1::Sha1::digest(der);
    Ok(Value::Bin(env.arena.alloc_slice_copy(&digest)))
}

/// `YYMMDDhhmmssZ`, whatever the century.
fn date(time: &[u8]) -> Found<'_> {
    Ok(Value::Str(time.get(time.len().saturating_sub(13)..).unwrap_or_default()))
}

fn algorithm<'a>(id: &[u8]) -> Found<'a> {
    oid::algorithm(id).map(|name| Value::Str(name.as_bytes())).ok_or(Miss::None)
}

fn key_algorithm<'a>(cert: Certificate<'a>) -> Found<'a> {
    algorithm(cert.key_algorithm().ok_or(Miss::None)?.0)
}

fn signature_algorithm<'a>(cert: Certificate<'a>) -> Found<'a> {
    algorithm(cert.signature_algorithm)
}

/// A distinguished name, or one of its values: `/C=FR/CN=x`, or as LDAP has it.
fn name<'a>(env: &Env<'a>, dn: &'a [u8], args: &'a [Arg]) -> Found<'a> {
    let wanted = arg(args, 0).bytes().unwrap_or_default();
    if !wanted.is_empty() {
        let wanted = std::str::from_utf8(wanted).map_err(|_| Miss::None)?;
        let of_name = |a: &Attribute<'_>| oid::attribute(a.oid).eq_ignore_ascii_case(wanted);
        let all = ArenaVec::from_iter_in(attributes(dn).filter(of_name), env.arena);
        let found = match arg(args, 1).int_or(1) {
            n if n < 0 => all.len().checked_sub(n.unsigned_abs() as usize),
            n => Some((n.max(1) - 1) as usize),
        };
        let value = found.and_then(|i| all.get(i)).ok_or(Miss::None)?.value;
        return if value.contains(&0) { Err(Miss::None) } else { Ok(Value::Str(value)) };
    }
    if attributes(dn).any(|a| a.value.contains(&0)) {
        return Err(Miss::None);
    }
    let mut out = ArenaVec::new_in(env.arena);
    if arg(args, 2).bytes() == Some(b"rfc2253") {
        let all = ArenaVec::from_iter_in(attributes(dn), env.arena);
        for (i, a) in all.iter().rev().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(oid::attribute(a.oid).as_bytes());
            out.push(b'=');
            escape(&mut out, a.value);
        }
    } else {
        for a in attributes(dn) {
            out.push(b'/');
            out.extend_from_slice(oid::attribute(a.oid).as_bytes());
            out.push(b'=');
            out.extend_from_slice(a.value);
        }
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// A value as RFC 2253 section 2.4 writes it.
fn escape(out: &mut ArenaVec<'_, u8>, value: &[u8]) {
    let last = value.len().wrapping_sub(1);
    for (i, c) in value.iter().enumerate() {
        let edge = (i == 0 && matches!(c, b' ' | b'#')) || (i == last && *c == b' ');
        if edge || matches!(c, b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';') {
            out.push(b'\\');
        }
        match c {
            0x20..=0x7e => out.push(*c),
            c => out.extend_from_slice(format!("\\{c:02X}").as_bytes()),
        }
    }
}

/// `DNS:name, IP Address:127.0.0.1, URI:http://x`.
fn alternatives<'a>(env: &Env<'a>, _: &'a [Arg]) -> Found<'a> {
    let cert = parsed(client(env))?;
    let value = cert.extension(&[0x55, 0x1d, 0x11]).ok_or(Miss::None)?;
    let mut list = Der(Der(value).element().ok_or(Miss::None)?.content);
    let mut out = ArenaVec::new_in(env.arena);
    while let Some(e) = list.element() {
        let (word, text) = match (e.tag, e.content) {
            (0x81, t) => ("email:", t.to_vec()),
            (0x82, t) => ("DNS:", t.to_vec()),
            (0x86, t) => ("URI:", t.to_vec()),
            (0x87, [a, b, c, d]) => ("IP Address:", format!("{a}.{b}.{c}.{d}").into_bytes()),
            (0x87, t) if t.len() == 16 => {
                let groups =
                    t.chunks_exact(2).map(|p| format!("{:X}", u16::from(p[0]) << 8 | u16::from(p[1])));
                ("IP Address:", groups.collect::<Vec<_>>().join(":").into_bytes())
            }
            (0x88, t) => ("Registered ID:", oid::dotted(t).into_bytes()),
            _ => continue,
        };
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(&text);
    }
    Ok(Value::Str(out.into_bump_slice()))
}

/// Policies as a list, or whether one of them is there.
fn policies<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let cert = parsed(client(env))?;
    let value = cert.extension(&[0x55, 0x1d, 0x20]).ok_or(Miss::None)?;
    let mut list = Der(Der(value).element().ok_or(Miss::None)?.content);
    let wanted = arg(args, 0).bytes().filter(|w| !w.is_empty());
    let mut out = ArenaVec::new_in(env.arena);
    while let Some(e) = list.element() {
        let Some(oid) = Der(e.content).element() else { break };
        let oid = oid::dotted(oid.content);
        match wanted {
            Some(wanted) if oid.as_bytes() == wanted => return Ok(Value::Str(wanted)),
            Some(_) => {}
            None => {
                if !out.is_empty() {
                    out.extend_from_slice(b", ");
                }
                out.extend_from_slice(oid.as_bytes());
            }
        }
    }
    if out.is_empty() { Err(Miss::None) } else { Ok(Value::Str(out.into_bump_slice())) }
}
