//! Random numbers, session ids and secrets of TLS connections (sections 7.3.3 and 7.3.4; manual,
//! `tune.ssl.keylog`).
//!
//! Connections keep them only if a fetch of these was read with the configuration: checking one's arguments
//! says that it is wanted. What rustls keeps to itself is not found: the master secret and resumption secrets
//! of TLS 1.3, and the messages that `tls-unique` is made of.

use bumpalo::collections::Vec as ArenaVec;
use model::secured::{Material, Secured};
use tls::secrets::{self, kind};

use crate::arg::Arg;
use crate::entry::{FetchDef, FetchFn};
use crate::env::Env;
use crate::names::Names;
use crate::places::CLIENT_L5;
use crate::sample::{Found, Miss, Type, Value};
use crate::words::Fault;

use super::secured::{back, bc, fc, front};

const fn secret(name: &'static str, eval: FetchFn, doc: &'static str) -> FetchDef {
    FetchDef::new(name, Type::Str, CLIENT_L5, eval, doc).check(wants::<{ kind::TRAFFIC }>)
}

pub(super) const FETCHES: &[FetchDef] = &[
    secret(
        "ssl_bc_client_early_traffic_secret",
        |e, _| digits(e, back(e)?, "CLIENT_EARLY_TRAFFIC_SECRET"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_client_handshake_traffic_secret",
        |e, _| digits(e, back(e)?, "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_client_traffic_secret_0",
        |e, _| digits(e, back(e)?, "CLIENT_TRAFFIC_SECRET_0"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_early_exporter_secret",
        |e, _| digits(e, back(e)?, "EARLY_EXPORTER_SECRET"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_exporter_secret",
        |e, _| digits(e, back(e)?, "EXPORTER_SECRET"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_server_handshake_traffic_secret",
        |e, _| digits(e, back(e)?, "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_bc_server_traffic_secret_0",
        |e, _| digits(e, back(e)?, "SERVER_TRAFFIC_SECRET_0"),
        "Secret of the connection to the server, with `tune.ssl.keylog`.",
    ),
    bc(
        "ssl_bc_client_random",
        Type::Bin,
        |e, _| bytes(back(e)?, |m| &m.client_random),
        "Our random bytes towards the server.",
    )
    .check(wants::<{ kind::RANDOMS }>),
    bc(
        "ssl_bc_server_random",
        Type::Bin,
        |e, _| bytes(back(e)?, |m| &m.server_random),
        "Random bytes of the handshake's server.",
    )
    .check(wants::<{ kind::RANDOMS }>),
    bc(
        "ssl_bc_session_id",
        Type::Bin,
        |e, _| bytes(back(e)?, |m| &m.session_id),
        "Id of the session, as the handshake's server said it.",
    )
    .check(wants::<{ kind::RANDOMS }>),
    bc(
        "ssl_bc_session_key",
        Type::Bin,
        |e, _| master(back(e)?),
        "Master secret of TLS 1.2; with TLS 1.3 there is none to tell.",
    )
    .check(wants::<{ kind::MASTER }>),
    bc(
        "ssl_bc_unique_id",
        Type::Bin,
        |_, _| Err(Miss::None),
        "Nothing: the messages that it is made of stay inside rustls.",
    ),
    secret(
        "ssl_fc_client_early_traffic_secret",
        |e, _| digits(e, front(e)?, "CLIENT_EARLY_TRAFFIC_SECRET"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_client_handshake_traffic_secret",
        |e, _| digits(e, front(e)?, "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_client_traffic_secret_0",
        |e, _| digits(e, front(e)?, "CLIENT_TRAFFIC_SECRET_0"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_early_exporter_secret",
        |e, _| digits(e, front(e)?, "EARLY_EXPORTER_SECRET"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_exporter_secret",
        |e, _| digits(e, front(e)?, "EXPORTER_SECRET"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_server_handshake_traffic_secret",
        |e, _| digits(e, front(e)?, "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    secret(
        "ssl_fc_server_traffic_secret_0",
        |e, _| digits(e, front(e)?, "SERVER_TRAFFIC_SECRET_0"),
        "Secret of the connection to the client, with `tune.ssl.keylog`.",
    ),
    fc(
        "ssl_fc_server_random",
        Type::Bin,
        |e, _| bytes(front(e)?, |m| &m.server_random),
        "Random bytes of the handshake's server.",
    )
    .check(wants::<{ kind::RANDOMS }>),
    fc(
        "ssl_fc_session_id",
        Type::Bin,
        |e, _| bytes(front(e)?, |m| &m.session_id),
        "Id of the session, as the handshake's server said it.",
    )
    .check(wants::<{ kind::RANDOMS }>),
    fc(
        "ssl_fc_session_key",
        Type::Bin,
        |e, _| master(front(e)?),
        "Master secret of TLS 1.2; with TLS 1.3 there is none to tell.",
    )
    .check(wants::<{ kind::MASTER }>),
    fc(
        "ssl_fc_unique_id",
        Type::Bin,
        |_, _| Err(Miss::None),
        "Nothing: the messages that it is made of stay inside rustls.",
    ),
];

fn material(facts: &Secured) -> Result<&Material, Miss> {
    facts.material.as_deref().ok_or(Miss::None)
}

/// A number of the handshake.
pub(super) fn bytes(facts: &Secured, part: fn(&Material) -> &[u8]) -> Found<'_> {
    Some(part(material(facts)?)).filter(|b| !b.is_empty()).map(Value::Bin).ok_or(Miss::None)
}

fn found<'s>(facts: &'s Secured, label: &str) -> Result<&'s [u8], Miss> {
    let list = &material(facts)?.secrets;
    list.iter().find(|(l, _)| *l == label).map(|(_, secret)| &**secret).ok_or(Miss::None)
}

fn digits<'a>(env: &Env<'a>, facts: &Secured, label: &str) -> Found<'a> {
    let mut out = ArenaVec::new_in(env.arena);
    found(facts, label)?.iter().for_each(|b| out.extend(crate::tag::hex(*b).map(|c| c.to_ascii_lowercase())));
    Ok(Value::Str(out.into_bump_slice()))
}

fn master(facts: &Secured) -> Found<'_> {
    Ok(Value::Bin(found(facts, secrets::MASTER)?))
}

/// Connections have to keep this kind.
pub(super) fn wants<const KIND: u8>(_: &mut Vec<Arg>, _: &mut dyn Names) -> Result<(), Fault> {
    secrets::want(KIND);
    Ok(())
}
