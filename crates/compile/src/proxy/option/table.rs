//! The tables of options: switches, and options with arguments or with a meaning of their own.

use program::options::Options;

use crate::keyword::Places;

/// An option that is a plain switch.
pub(crate) struct Switch {
    /// Its name.
    pub name: &'static str,
    /// Where it may stand.
    pub places: Places,
    /// What the dump says behind the name: the sides and `HTTP` when it needs HTTP mode.
    pub dump: &'static str,
    /// The flag; `None`: accepted, nothing changes.
    pub flag: Option<fn(&mut Options) -> &mut bool>,
    /// One line of documentation.
    pub doc: &'static str,
}

const fn switch(
    name: &'static str,
    places: Places,
    dump: &'static str,
    flag: fn(&mut Options) -> &mut bool,
    doc: &'static str,
) -> Switch {
    Switch { name, places, dump, flag: Some(flag), doc }
}

/// All plain switches by name.
pub(crate) const SWITCHES: &[Switch] = &[
    switch(
        "abortonclose",
        Places::ALL,
        "FE BE",
        |o| &mut o.abortonclose,
        "Give up requests whose client has closed.",
    ),
    switch(
        "accept-unsafe-violations-in-http-request",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.unsafe_request,
        "Accept some invalid requests.",
    ),
    switch(
        "accept-unsafe-violations-in-http-response",
        Places::BACK,
        "BE HTTP",
        |o| &mut o.unsafe_response,
        "Accept some invalid responses.",
    ),
    switch(
        "allbackups",
        Places::BACK,
        "BE",
        |o| &mut o.allbackups,
        "All backups take part, not only the first.",
    ),
    switch(
        "checkcache",
        Places::BACK,
        "BE HTTP",
        |o| &mut o.checkcache,
        "Refuse responses with cookies that caches may keep.",
    ),
    Switch {
        name: "clitcpka",
        places: Places::FRONT,
        dump: "FE",
        flag: None,
        doc: "TCP keep-alive towards clients.",
    },
    switch("contstats", Places::FRONT, "FE", |o| &mut o.contstats, "Count bytes as they come."),
    switch(
        "disable-h2-upgrade",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.disable_h2_upgrade,
        "HTTP/2 only where the bind line or ALPN says so, not by its preface.",
    ),
    switch("dontlog-normal", Places::FRONT, "FE", |o| &mut o.dontlog_normal, "Log errors only."),
    switch("dontlognull", Places::FRONT, "FE", |o| &mut o.dontlognull, "Don't log connections without data."),
    switch(
        "h1-case-adjust-bogus-client",
        Places::FRONT,
        "FE",
        |o| &mut o.case_adjust_client,
        "Adjust the case of headers towards clients.",
    ),
    switch(
        "h1-case-adjust-bogus-server",
        Places::BACK,
        "BE",
        |o| &mut o.case_adjust_server,
        "Adjust the case of headers towards servers.",
    ),
    switch(
        "http-buffer-request",
        Places::ALL,
        "FE BE HTTP",
        |o| &mut o.http_buffer_request,
        "Wait for the body before rules run.",
    ),
    switch(
        "http-drop-request-trailers",
        Places(Places::DEFAULTS.0 | Places::BACK_ONLY.0),
        "BE HTTP",
        |o| &mut o.drop_request_trailers,
        "Drop trailers of requests.",
    ),
    switch(
        "http-drop-response-trailers",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.drop_response_trailers,
        "Drop trailers of responses.",
    ),
    switch(
        "http-ignore-probes",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.http_ignore_probes,
        "Silence about connections without a request.",
    ),
    switch(
        "http-no-delay",
        Places::ALL,
        "FE BE HTTP",
        |o| &mut o.http_no_delay,
        "Send small pieces at once.",
    ),
    switch(
        "http-pretend-keepalive",
        Places::BACK,
        "BE HTTP",
        |o| &mut o.http_pretend_keepalive,
        "Ask for keep-alive even when closing.",
    ),
    switch(
        "http-use-proxy-header",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.http_use_proxy_header,
        "Obey Proxy-Connection.",
    ),
    switch(
        "idle-close-on-response",
        Places::FRONT,
        "FE HTTP",
        |o| &mut o.idle_close_on_response,
        "Idle connections answer once more on a soft stop.",
    ),
    switch(
        "independent-streams",
        Places::ALL,
        "FE BE",
        |o| &mut o.independent_streams,
        "Each direction has its own timeout.",
    ),
    switch("log-health-checks", Places::BACK, "BE", |o| &mut o.log_health_checks, "Log changes of health."),
    switch(
        "log-separate-errors",
        Places::FRONT,
        "FE",
        |o| &mut o.log_separate_errors,
        "Errors are logged at level err.",
    ),
    switch("logasap", Places::FRONT, "FE", |o| &mut o.logasap, "Log before the end."),
    switch("nolinger", Places::ALL, "FE BE", |o| &mut o.nolinger, "Close with a reset."),
    switch(
        "persist",
        Places::BACK,
        "BE",
        |o| &mut o.persist,
        "Persistence holds even when the server is down.",
    ),
    switch(
        "prefer-last-server",
        Places::BACK,
        "BE HTTP",
        |o| &mut o.prefer_last_server,
        "Stay on the server of the last request.",
    ),
    switch("socket-stats", Places::FRONT, "FE", |o| &mut o.socket_stats, "Statistics of each listener."),
    switch("splice-auto", Places::ALL, "FE BE", |o| &mut o.splice_auto, "Splice where it pays."),
    switch("splice-request", Places::ALL, "FE BE", |o| &mut o.splice_request, "Splice requests."),
    switch("splice-response", Places::ALL, "FE BE", |o| &mut o.splice_response, "Splice responses."),
    Switch {
        name: "srvtcpka",
        places: Places::BACK,
        dump: "BE",
        flag: None,
        doc: "TCP keep-alive towards servers.",
    },
    switch(
        "tcp-smart-accept",
        Places::FRONT,
        "FE",
        |o| &mut o.tcp_smart_accept,
        "Save a packet when accepting.",
    ),
    switch(
        "tcp-smart-connect",
        Places::BACK,
        "BE",
        |o| &mut o.tcp_smart_connect,
        "Save a packet when connecting.",
    ),
];

/// An option with arguments or with a meaning of its own.
pub(crate) struct Other {
    /// Its name.
    pub name: &'static str,
    /// Where it may stand.
    pub places: Places,
    /// One line of documentation.
    pub doc: &'static str,
    /// A line that compiles.
    pub example: &'static str,
    /// It is read and has no effect; `doc` says why.
    pub idle: bool,
}

const fn other(name: &'static str, places: Places, doc: &'static str, example: &'static str) -> Other {
    Other { name, places, doc, example, idle: false }
}

/// All of them.
pub(crate) const OTHERS: &[Other] = &[
    other(
        "forwardfor",
        Places::ALL,
        "The address of the client goes to the server in a header field.",
        "option forwardfor except 127.0.0.0/8",
    ),
    other(
        "originalto",
        Places::ALL,
        "The address that the client connected to goes to the server in a header field.",
        "option originalto",
    ),
    other(
        "forwarded",
        Places::ALL,
        "The client and what it asked for go to the server in a Forwarded field (RFC 7239).",
        "option forwarded proto for by",
    ),
    other("httplog", Places::ALL, "Log lines tell of HTTP requests.", "option httplog"),
    other("tcplog", Places::ALL, "Log lines tell of connections.", "option tcplog"),
    other("httpslog", Places::ALL, "Log lines tell of HTTP requests and of TLS.", "option httpslog"),
    other(
        "http-keep-alive",
        Places::ALL,
        "Connections of both sides are kept for further requests; so it is unless said otherwise.",
        "option http-keep-alive",
    ),
    other(
        "http-server-close",
        Places::ALL,
        "The connection to the server is closed after each response, that of the client kept.",
        "option http-server-close",
    ),
    other(
        "httpclose",
        Places::ALL,
        "Connections of both sides are closed after each response.",
        "option httpclose",
    ),
    other(
        "http-restrict-req-hdr-names",
        Places::ALL,
        "What becomes of header fields with odd names: preserve, delete, or reject the request.",
        "option http-restrict-req-hdr-names delete",
    ),
    other(
        "redispatch",
        Places::BACK,
        "A request whose server can not be reached goes to another: at the last retry, or at every so many.",
        "option redispatch 1",
    ),
    Other {
        idle: true,
        ..other(
            "use-small-buffers",
            Places::BACK,
            "A buffer is given back as soon as it is empty, and is no smaller for those who wait.",
            "option use-small-buffers queue",
        )
    },
    other("tcpka", Places::ALL, "The system probes idle connections of both sides.", "option tcpka"),
    other("httpchk", Places::BACK, "Checks send an HTTP request.", "option httpchk GET /health"),
    other("tcp-check", Places::BACK, "Checks run the steps of tcp-check lines.", "option tcp-check"),
    other("external-check", Places::ALL, "A program checks the servers.", "option external-check"),
    other("ldap-check", Places::BACK, "Checks bind to an LDAP server without a name.", "option ldap-check"),
    other(
        "mysql-check",
        Places::BACK,
        "Checks shake hands with a MySQL server.",
        "option mysql-check user haproxy",
    ),
    other(
        "pgsql-check",
        Places::BACK,
        "Checks begin a session with a PostgreSQL server.",
        "option pgsql-check user haproxy",
    ),
    other("redis-check", Places::BACK, "Checks send PING to a Redis server.", "option redis-check"),
    other("smtpchk", Places::BACK, "Checks greet an SMTP server.", "option smtpchk EHLO example.org"),
    other("spop-check", Places::BACK, "Checks shake hands with an SPOP agent.", "option spop-check"),
    other(
        "ssl-hello-chk",
        Places::BACK,
        "Checks send the first message of a TLS handshake.",
        "option ssl-hello-chk",
    ),
];
