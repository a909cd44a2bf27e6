//! TLS of the client connection (section 7.3.4).

use crate::env::Env;
use crate::places::CLIENT_L5;
use crate::registry::{FetchDef, FetchFn};
use crate::sample::{Miss, Type, Value};

use super::{int, text};
use model::secured::Secured;

const fn fc(name: &'static str, out: Type, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, out, CLIENT_L5, eval, doc)
}

pub(super) const FETCHES: &[FetchDef] = &[
    fc(
        "ssl_fc",
        Type::Bool,
        |e, _| Ok(Value::Bool(e.conn.secured().is_some())),
        "Whether the client connection is encrypted.",
    ),
    fc(
        "ssl_fc_alg_keysize",
        Type::Int,
        |e, _| int(front(e)?.bits),
        "Bits of the key of the client connection's cipher.",
    ),
    fc(
        "ssl_fc_alpn",
        Type::Str,
        |e, _| text(front(e)?.alpn.as_deref()),
        "Protocol that ALPN chose with the client.",
    ),
    fc(
        "ssl_fc_cipher",
        Type::Str,
        |e, _| text(Some(front(e)?.cipher.as_bytes())),
        "Cipher of the client connection.",
    ),
    fc(
        "ssl_fc_curve",
        Type::Str,
        |e, _| text(front(e)?.group.map(str::as_bytes)),
        "Curve of the key exchange with the client.",
    ),
    fc(
        "ssl_fc_has_sni",
        Type::Bool,
        |e, _| Ok(Value::Bool(e.conn.secured().is_some_and(|s| s.sni.is_some()))),
        "Whether the client sent a server name.",
    ),
    fc(
        "ssl_fc_is_resumed",
        Type::Bool,
        |e, _| Ok(Value::Bool(e.conn.secured().is_some_and(|s| s.resumed))),
        "Whether the client resumed a session.",
    ),
    fc(
        "ssl_fc_protocol",
        Type::Str,
        |e, _| text(Some(front(e)?.version.as_bytes())),
        "TLS version of the client connection.",
    ),
    fc(
        "ssl_fc_sni",
        Type::Str,
        |e, _| text(front(e)?.sni.as_deref().map(str::as_bytes)),
        "Server name that the client sent.",
    ),
    fc(
        "ssl_fc_use_keysize",
        Type::Int,
        |e, _| int(front(e)?.bits),
        "Bits of the key of the client connection's cipher that count.",
    ),
];

fn front<'a>(env: &Env<'a>) -> Result<&'a Secured, Miss> {
    env.conn.secured().ok_or(Miss::None)
}
