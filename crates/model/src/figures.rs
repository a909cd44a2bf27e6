//! Figures that are counted, one copy a worker: each is one field, and `clear` beside its struct names them
//! all, so that the compiler asks for one that is new.

use crate::compression::CompressionCounters;
use crate::counter::{Counter, zero};
use crate::term::Cause;
use crate::txn::Traffic;

/// Figures of HTTP/2 (`h2_*`).
#[derive(Debug, Default)]
pub struct H2Counters {
    /// Frames received, by kind.
    pub headers: Counter,
    pub data: Counter,
    pub settings: Counter,
    pub resets: Counter,
    pub goaways: Counter,
    /// Errors of the peer that ended the connection, or a stream.
    pub connection_errors: Counter,
    pub stream_errors: Counter,
    /// Sent in answer to such.
    pub resets_sent: Counter,
    pub goaways_sent: Counter,
    /// Connections and streams that are open. They come to life and end on one worker.
    pub open_connections: Counter,
    pub open_streams: Counter,
    /// Connections and streams so far.
    pub connections: Counter,
    pub streams: Counter,
    /// Connections before these figures were cleared, which still count as sessions.
    pub earlier: Counter,
}

impl H2Counters {
    /// Back to zero, but for what is open; the sessions go only with `all`.
    pub fn clear(&self, all: bool) {
        self.earlier.set(if all { 0 } else { self.earlier.get() + self.connections.get() });
        let frames = [&self.headers, &self.data, &self.settings, &self.resets, &self.goaways];
        let errors = [&self.connection_errors, &self.stream_errors, &self.resets_sent, &self.goaways_sent];
        for c in frames.into_iter().chain(errors).chain([&self.connections, &self.streams]) {
            c.set(0);
        }
    }
}

/// Figures of HTTP/1 (`h1_*`).
#[derive(Debug, Default)]
pub struct H1Counters {
    /// Connections of clients that are open, and their requests from the first byte on.
    pub open_connections: Counter,
    pub open_streams: Counter,
    /// Connections so far, of servers each attempt.
    pub connections: Counter,
    /// Requests that began, of servers each attempt.
    pub streams: Counter,
    /// Connections before these figures were cleared, which still count as sessions.
    pub earlier: Counter,
}

impl H1Counters {
    /// Back to zero, but for what is open; the sessions go only with `all`.
    pub fn clear(&self, all: bool) {
        self.earlier.set(if all { 0 } else { self.earlier.get() + self.connections.get() });
        self.connections.set(0);
        self.streams.set(0);
    }
}

/// Figures of TLS (`ssl_*`).
#[derive(Debug, Default)]
pub struct TlsCounters {
    /// Full handshakes (`ssl_sess`).
    pub sessions: Counter,
    /// Resumed sessions (`ssl_reused_sess`).
    pub reused: Counter,
    /// Handshakes that failed (`ssl_failed_handshake`).
    pub failed: Counter,
    /// OCSP responses sent (`ssl_ocsp_staple`).
    pub staples: Counter,
    /// OCSP responses that could not be sent (`ssl_failed_ocsp_staple`).
    pub failed_staples: Counter,
}

impl TlsCounters {
    /// Counts a handshake that succeeded.
    pub fn done(&self, resumed: bool) {
        if resumed { self.reused.inc() } else { self.sessions.inc() }
    }

    /// Back to zero.
    pub fn clear(&self) {
        for c in [&self.sessions, &self.reused, &self.failed, &self.staples, &self.failed_staples] {
            c.set(0);
        }
    }
}

/// Bytes of requests and responses, heads counted as HAProxy counts them.
#[derive(Debug, Default)]
pub struct ByteCounters {
    /// Of requests, received (`bin`, `reqbin`).
    pub request_in: Counter,
    /// Of requests, passed on (`reqbout`).
    pub request_out: Counter,
    /// Of responses, received (`bout`, `resbin`).
    pub response_in: Counter,
    /// Of responses, passed on (`resbout`).
    pub response_out: Counter,
}

impl ByteCounters {
    /// Adds what a transaction moved.
    pub fn add(&self, up: &Traffic, down: &Traffic) {
        self.request_in.add(up.received);
        self.request_out.add(up.sent);
        self.response_in.add(down.received);
        self.response_out.add(down.sent);
    }

    /// Back to zero.
    pub fn clear(&self) {
        for counter in [&self.request_in, &self.request_out, &self.response_in, &self.response_out] {
            counter.set(0);
        }
    }
}

/// Figures of a frontend, one copy a worker.
#[derive(Debug, Default)]
pub struct FrontCounters {
    /// Connections accepted (`conn_tot`).
    pub connections: Counter,
    /// Sessions (`stot`).
    pub sessions: Counter,
    /// Those of TCP that turned to HTTP/1.
    pub upgraded: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Bytes received from clients and sent to them on the wire (`h1_bytes_in`, `h1_bytes_out`).
    pub wire_in: Counter,
    pub wire_out: Counter,
    /// Bytes received from clients, and sent to them, through pipes (`h1_spliced_bytes_in`,
    /// `h1_spliced_bytes_out`).
    pub spliced_in: Counter,
    pub spliced_out: Counter,
    /// Requests denied (`dreq`).
    pub denied_req: Counter,
    /// Responses denied (`dresp`).
    pub denied_resp: Counter,
    /// Request errors (`ereq`).
    pub req_errors: Counter,
    /// Connections denied by `tcp-request connection` (`dcon`).
    pub denied_conn: Counter,
    /// Sessions denied by `tcp-request session` (`dses`).
    pub denied_sess: Counter,
    /// HTTP requests (`req_tot`).
    pub requests: Counter,
    /// Requests intercepted: statistics, redirects, monitor (`intercepted`).
    pub intercepted: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Responses by class: 1xx to 5xx, then others.
    pub responses: [Counter; 6],
    /// How its streams ended.
    pub ends: Ends,
    /// Of the requests those of HTTP/2 (`h2req`).
    pub h2_requests: Counter,
    /// Of the requests those that say they are of HTTP/3 (`h3req`).
    pub h3_requests: Counter,
    /// Of the requests those of none of these versions (`req_other`).
    pub other_requests: Counter,
    /// Figures of HTTP/1.
    pub h1: H1Counters,
    /// Figures of HTTP/2.
    pub h2: H2Counters,
    /// Figures of TLS.
    pub tls: TlsCounters,
    /// Figures of compression.
    pub compression: CompressionCounters,
    /// Figures of caches.
    pub cache: CacheCounters,
}

impl FrontCounters {
    /// Back to zero: figures of protocols and of the wire, with `all` the others, too.
    pub fn clear(&self, all: bool) {
        let FrontCounters {
            connections,
            sessions,
            upgraded,
            bytes,
            wire_in,
            wire_out,
            spliced_in,
            spliced_out,
            denied_req,
            denied_resp,
            req_errors,
            denied_conn,
            denied_sess,
            requests,
            intercepted,
            failed_rewrites,
            internal_errors,
            responses,
            ends,
            h2_requests,
            h3_requests,
            other_requests,
            h1,
            h2,
            tls,
            compression,
            cache,
        } = self;
        h1.clear(all);
        h2.clear(all);
        tls.clear();
        zero([wire_in, wire_out, spliced_in, spliced_out]);
        if all {
            compression.clear();
            cache.clear();
            bytes.clear();
            zero(responses);
            ends.clear();
            zero([
                connections,
                sessions,
                upgraded,
                denied_req,
                denied_resp,
                req_errors,
                denied_conn,
                denied_sess,
                requests,
                intercepted,
                failed_rewrites,
                internal_errors,
                h2_requests,
                h3_requests,
                other_requests,
            ]);
        }
    }
}

/// Figures of caches.
#[derive(Debug, Default)]
pub struct CacheCounters {
    /// Look-ups (`cache_lookups`).
    pub lookups: Counter,
    /// Of these, with success (`cache_hits`).
    pub hits: Counter,
    /// Of these, those that found nothing but links (`cache_hint_hits`).
    pub hint_hits: Counter,
}

impl CacheCounters {
    fn clear(&self) {
        let CacheCounters { lookups, hits, hint_hits } = self;
        zero([lookups, hits, hint_hits]);
    }
}

/// How streams ended. Each that was counted as a request (`req_tot`) is in exactly one of the first four, so
/// that at rest they add up to it.
#[derive(Debug, Default)]
pub struct Ends {
    /// By a server's answer, or by one that the configuration gave.
    pub answered: Counter,
    /// The client broke off, or was too slow.
    pub by_client: Counter,
    /// The server did.
    pub by_server: Counter,
    /// The proxy refused or gave up.
    pub refused: Counter,
    /// Those of the four that left no log line.
    pub unlogged: Counter,
    /// Log lines of streams that were no request.
    pub strangers: Counter,
}

impl Ends {
    /// Back to zero.
    pub fn clear(&self) {
        let Ends { answered, by_client, by_server, refused, unlogged, strangers } = self;
        [answered, by_client, by_server, refused, unlogged, strangers].iter().for_each(|c| c.set(0));
    }

    /// A request has ended.
    pub fn count(&self, cause: Cause, logged: bool) {
        let end = match cause {
            Cause::Normal | Cause::Local => &self.answered,
            Cause::ClientAbort | Cause::ClientTimeout => &self.by_client,
            Cause::ServerAbort | Cause::ServerTimeout => &self.by_server,
            _ => &self.refused,
        };
        end.inc();
        if !logged {
            self.unlogged.inc();
        }
    }
}

/// Figures of a backend, one copy a worker.
#[derive(Debug, Default)]
pub struct BackCounters {
    /// Sessions (`stot`).
    pub sessions: Counter,
    /// Times a server was chosen (`lbtot`).
    pub chosen: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Bytes received from servers and sent to them on the wire (`h1_bytes_in`, `h1_bytes_out`).
    pub wire_in: Counter,
    pub wire_out: Counter,
    /// Bytes received from servers, and sent to them, through pipes (`h1_spliced_bytes_in`,
    /// `h1_spliced_bytes_out`).
    pub spliced_in: Counter,
    pub spliced_out: Counter,
    /// Requests denied (`dreq`).
    pub denied_req: Counter,
    /// Responses denied (`dresp`).
    pub denied_resp: Counter,
    /// Failed connects (`econ`).
    pub conn_errors: Counter,
    /// Response errors (`eresp`).
    pub resp_errors: Counter,
    /// Retried connects (`wretr`).
    pub retries: Counter,
    /// Redispatches (`wredis`).
    pub redispatches: Counter,
    /// Transfers aborted by the client (`cli_abrt`).
    pub client_aborts: Counter,
    /// Transfers aborted by the server (`srv_abrt`).
    pub server_aborts: Counter,
    /// Connections established (`connect`).
    pub connects: Counter,
    /// Requests on a reused connection (`reuse`).
    pub reuses: Counter,
    /// HTTP requests (`req_tot`).
    pub requests: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Responses by class: 1xx to 5xx, then others.
    pub responses: [Counter; 6],
    /// Greatest times seen, ms: queue, connect, response, total.
    pub max_times: [Counter; 4],
    /// Figures of HTTP/1.
    pub h1: H1Counters,
    /// Figures of HTTP/2.
    pub h2: H2Counters,
    /// Figures of TLS.
    pub tls: TlsCounters,
    /// Figures of compression.
    pub compression: CompressionCounters,
    /// Figures of caches.
    pub cache: CacheCounters,
    /// Copies of requests for this backend.
    pub mirror: crate::mirror::MirrorCounters,
}

impl BackCounters {
    /// Back to zero: maxima, figures of protocols and of the wire, with `all` the others, too.
    pub fn clear(&self, all: bool) {
        let BackCounters {
            sessions,
            chosen,
            bytes,
            wire_in,
            wire_out,
            spliced_in,
            spliced_out,
            denied_req,
            denied_resp,
            conn_errors,
            resp_errors,
            retries,
            redispatches,
            client_aborts,
            server_aborts,
            connects,
            reuses,
            requests,
            failed_rewrites,
            internal_errors,
            responses,
            max_times,
            h1,
            h2,
            tls,
            compression,
            cache,
            mirror,
        } = self;
        h1.clear(all);
        h2.clear(all);
        tls.clear();
        zero(max_times);
        zero([wire_in, wire_out, spliced_in, spliced_out]);
        if all {
            compression.clear();
            cache.clear();
            mirror.clear();
            bytes.clear();
            zero(responses);
            zero([
                sessions,
                chosen,
                denied_req,
                denied_resp,
                conn_errors,
                resp_errors,
                retries,
                redispatches,
                client_aborts,
                server_aborts,
                connects,
                reuses,
                requests,
                failed_rewrites,
                internal_errors,
            ]);
        }
    }
}

/// Figures of one listener, one copy a worker (shown with `option socket-stats`).
#[derive(Debug, Default)]
pub struct ListenerCounters {
    /// Connections accepted (`conn_tot`).
    pub connections: Counter,
    /// Sessions.
    pub sessions: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Request errors.
    pub req_errors: Counter,
    /// Requests denied.
    pub denied_req: Counter,
    /// Responses denied.
    pub denied_resp: Counter,
    /// Connections denied.
    pub denied_conn: Counter,
    /// Sessions denied.
    pub denied_sess: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// Figures of TLS.
    pub tls: TlsCounters,
}

impl ListenerCounters {
    /// Back to zero: figures of TLS, with `all` the others, too.
    pub fn clear(&self, all: bool) {
        let ListenerCounters {
            connections,
            sessions,
            bytes,
            req_errors,
            denied_req,
            denied_resp,
            denied_conn,
            denied_sess,
            failed_rewrites,
            internal_errors,
            tls,
        } = self;
        tls.clear();
        if all {
            bytes.clear();
            zero([
                connections,
                sessions,
                req_errors,
                denied_req,
                denied_resp,
                denied_conn,
                denied_sess,
                failed_rewrites,
                internal_errors,
            ]);
        }
    }
}

/// Figures of one server written on the path of requests, one copy a worker.
#[derive(Debug, Default)]
pub struct ServerCounters {
    /// Sessions that were sent here (`stot`).
    pub sessions: Counter,
    /// Times the balancing chose it (`lbtot`).
    pub chosen: Counter,
    /// Bytes of requests and responses.
    pub bytes: ByteCounters,
    /// Responses denied by rules (`dresp`).
    pub denied_resp: Counter,
    /// Failed connects (`econ`).
    pub conn_errors: Counter,
    /// Response errors (`eresp`).
    pub resp_errors: Counter,
    /// Retried connects (`wretr`).
    pub retries: Counter,
    /// Redispatches away from it (`wredis`).
    pub redispatches: Counter,
    /// Transfers aborted by the client (`cli_abrt`).
    pub client_aborts: Counter,
    /// Transfers aborted by the server (`srv_abrt`).
    pub server_aborts: Counter,
    /// Connections established (`connect`).
    pub connects: Counter,
    /// Requests on a reused connection (`reuse`).
    pub reuses: Counter,
    /// Failed header rewrites (`wrew`).
    pub failed_rewrites: Counter,
    /// Internal errors (`eint`).
    pub internal_errors: Counter,
    /// HTTP requests (`req_tot`).
    pub requests: Counter,
    /// Responses by class: 1xx to 5xx, then others.
    pub responses: [Counter; 6],
    /// Figures of TLS.
    pub tls: TlsCounters,
    /// Requests that redispatched or failed on health observation (`hanafail`).
    pub observe_failures: Counter,
    /// Greatest times seen, ms: queue, connect, response, total.
    pub max_times: [Counter; 4],
}

impl ServerCounters {
    /// Back to zero: maxima and figures of TLS, with `all` the others, too.
    pub fn clear(&self, all: bool) {
        let ServerCounters {
            sessions,
            chosen,
            bytes,
            denied_resp,
            conn_errors,
            resp_errors,
            retries,
            redispatches,
            client_aborts,
            server_aborts,
            connects,
            reuses,
            failed_rewrites,
            internal_errors,
            requests,
            responses,
            tls,
            observe_failures,
            max_times,
        } = self;
        tls.clear();
        zero(max_times);
        if all {
            bytes.clear();
            zero(responses);
            zero([
                sessions,
                chosen,
                denied_resp,
                conn_errors,
                resp_errors,
                retries,
                redispatches,
                client_aborts,
                server_aborts,
                connects,
                reuses,
                failed_rewrites,
                internal_errors,
                requests,
                observe_failures,
            ]);
        }
    }
}
