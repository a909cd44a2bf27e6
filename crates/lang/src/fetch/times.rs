//! Dates and timers of the connection and the transaction (sections 7.3.3 and 8.4).

use crate::arg::Arg;
use crate::entry::FetchDef;
use crate::env::Env;
use crate::places::Places;
use crate::places::{
    CLIENT, CLIENT_L4, REQUEST, REQUEST_FIGURES, REQUEST_KEPT, RESPONSE, RESPONSE_FIGURES, SERVER_CONN,
};
use crate::sample::{Found, Miss, Type, Value};
use crate::timers::Timers;

use super::constant::{date_in, unit};
use super::int;

const fn timer(
    name: &'static str,
    places: Places,
    eval: crate::entry::FetchFn,
    doc: &'static str,
) -> FetchDef {
    FetchDef::new(name, Type::Int, places, eval, doc).volatile()
}

pub(super) const FETCHES: &[FetchDef] = &[
    FetchDef::new(
        "accept_date",
        Type::Int,
        CLIENT_L4,
        accept_date,
        "When the connection was accepted, or ready for this request.",
    )
    .args("[string]", "accept_date(ms)")
    .check(|a, _| unit(a, 0, "accept_date")),
    FetchDef::new(
        "request_date",
        Type::Int,
        REQUEST_KEPT,
        request_date,
        "When the first byte of the request came.",
    )
    .args("[string]", "request_date(us)")
    .check(|a, _| unit(a, 0, "request_date")),
    timer(
        "fc.timer.handshake",
        CLIENT_L4,
        |e, _| ms(Timers::of(e).handshake()),
        "Time of the handshakes (%Th).",
    ),
    timer("fc.timer.total", CLIENT, |e, _| ms(Timers::of(e).total()), "Time of the stream (%Tt).").of_end(),
    timer("req.timer.hdr", REQUEST, |e, _| ms(Timers::of(e).request()), "Time to receive the request (%TR)."),
    timer(
        "req.timer.idle",
        REQUEST,
        |e, _| ms(Timers::of(e).idle()),
        "Time before the first byte of the request (%Ti).",
    ),
    timer("req.timer.queue", SERVER_CONN, |e, _| ms(Timers::of(e).queue()), "Time in queues (%Tw)."),
    timer(
        "req.timer.tq",
        REQUEST,
        |e, _| ms(Timers::of(e).client()),
        "Time from accept to the whole request (%Tq).",
    ),
    timer(
        "bc.timer.connect",
        SERVER_CONN,
        |e, _| ms(Timers::of(e).connect()),
        "Time to connect to the server (%Tc).",
    )
    .of_stream(),
    timer(
        "res.timer.data",
        RESPONSE_FIGURES,
        |e, _| ms(Timers::of(e).data()),
        "Time to transfer the response (%Td).",
    ),
    timer(
        "res.timer.hdr",
        RESPONSE,
        |e, _| ms(Timers::of(e).response()),
        "Time to receive the response head (%Tr).",
    ),
    timer(
        "txn.timer.total",
        REQUEST_FIGURES,
        |e, _| ms(Timers::of(e).active()),
        "Active time of the request (%Ta).",
    ),
    timer(
        "txn.timer.user",
        REQUEST_FIGURES,
        |e, _| ms(Timers::of(e).user()),
        "Time as the client sees it (%Tu).",
    ),
];

fn ms<'a>(time: i64) -> Found<'a> {
    Ok(Value::Int(time))
}

fn accept_date<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    int(date_in(Timers::of(env).accept_date().as_micros(), args, 0))
}

fn request_date<'a>(env: &Env<'a>, args: &'a [Arg]) -> Found<'a> {
    let date = env.txn.times.request_date.ok_or(Miss::None)?;
    int(date_in(date.as_micros(), args, 0))
}
