//! Bytes of the transaction (section 7.3.3).

use crate::entry::FetchDef;
use crate::places::{REQUEST_FIGURES, RESPONSE_FIGURES};
use crate::sample::Type;

use super::int;

const REQ_IN: FetchDef = FetchDef::new(
    "req.bytes_in",
    Type::Int,
    REQUEST_FIGURES,
    |e, _| int(e.txn.shown().0.received),
    "Bytes received from the client.",
)
.volatile();
const RES_IN: FetchDef = FetchDef::new(
    "res.bytes_in",
    Type::Int,
    RESPONSE_FIGURES,
    |e, _| int(e.txn.shown().1.received),
    "Bytes received from the server.",
)
.volatile();

pub(super) const FETCHES: &[FetchDef] = &[
    REQ_IN,
    REQ_IN.alias("bytes_in", REQUEST_FIGURES, "bytes_in"),
    FetchDef::new(
        "req.bytes_out",
        Type::Int,
        REQUEST_FIGURES,
        |e, _| int(e.txn.shown().0.sent),
        "Bytes sent to the server.",
    )
    .volatile(),
    RES_IN,
    RES_IN.alias("bytes_out", RESPONSE_FIGURES, "bytes_out"),
    FetchDef::new(
        "res.bytes_out",
        Type::Int,
        RESPONSE_FIGURES,
        |e, _| int(e.txn.shown().1.sent),
        "Bytes sent to the client.",
    )
    .volatile(),
];
