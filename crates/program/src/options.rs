//! `option ...` of a proxy that are plain flags, and the small settings beside them.

use std::net::IpAddr;

/// Flags.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `option abortonclose`.
    pub abortonclose: bool,
    /// `option allbackups`.
    pub allbackups: bool,
    /// `option disable-h2-upgrade`.
    pub disable_h2_upgrade: bool,
    /// `option checkcache`.
    pub checkcache: bool,
    /// `option contstats`.
    pub contstats: bool,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option dontlognull`.
    pub dontlognull: bool,
    /// `option http-buffer-request`.
    pub http_buffer_request: bool,
    /// `option http-drop-request-trailers`.
    pub drop_request_trailers: bool,
    /// `option http-drop-response-trailers`.
    pub drop_response_trailers: bool,
    /// `option http-ignore-probes`.
    pub http_ignore_probes: bool,
    /// How connections end after a response.
    pub connection: Connection,
    /// `option http-no-delay`.
    pub http_no_delay: bool,
    /// `option http-pretend-keepalive`.
    pub http_pretend_keepalive: bool,
    /// `option http-restrict-req-hdr-names`.
    pub restrict_names: RestrictNames,
    /// `option http-use-proxy-header`.
    pub http_use_proxy_header: bool,
    /// `option h1-case-adjust-bogus-client`.
    pub case_adjust_client: bool,
    /// `option h1-case-adjust-bogus-server`.
    pub case_adjust_server: bool,
    /// `option accept-unsafe-violations-in-http-request`.
    pub unsafe_request: bool,
    /// `option accept-unsafe-violations-in-http-response`.
    pub unsafe_response: bool,
    /// `option idle-close-on-response`.
    pub idle_close_on_response: bool,
    /// `option independent-streams`.
    pub independent_streams: bool,
    /// `option log-health-checks`.
    pub log_health_checks: bool,
    /// `option log-separate-errors`.
    pub log_separate_errors: bool,
    /// `option logasap`.
    pub logasap: bool,
    /// `option nolinger` of the frontend side.
    pub nolinger: bool,
    /// `option persist`.
    pub persist: bool,
    /// `option prefer-last-server`.
    pub prefer_last_server: bool,
    /// `option redispatch`: 0 off, n: every n-th retry, negative: counted from the last.
    pub redispatch: i32,
    /// `option socket-stats`.
    pub socket_stats: bool,
    /// `option splice-auto`.
    pub splice_auto: bool,
    /// `option splice-request`.
    pub splice_request: bool,
    /// `option splice-response`.
    pub splice_response: bool,
    /// `option tcp-smart-accept`.
    pub tcp_smart_accept: bool,
    /// `option tcp-smart-connect`.
    pub tcp_smart_connect: bool,
    /// `option clitcpka` (or `tcpka`), with its figures.
    pub client_keepalive: Option<KeepAlive>,
    /// `option srvtcpka` (or `tcpka`), with its figures.
    pub server_keepalive: Option<KeepAlive>,
    /// `option transparent`: no server, connect to the client's original destination.
    pub transparent: bool,
}

/// Figures of TCP keep-alive; 0: as the system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Probes before giving up.
    pub count: u32,
    /// Idle seconds before the first probe.
    pub idle: u32,
    /// Seconds between probes.
    pub interval: u32,
}

/// `option http-keep-alive`, `http-server-close`, `httpclose`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Connection {
    /// Both sides are kept.
    #[default]
    KeepAlive,
    /// The server side is closed, whether the frontend says so or the backend.
    ServerClose,
    /// Of a frontend, the client side is closed; of a backend, the server side.
    Close,
}

/// `option http-restrict-req-hdr-names`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestrictNames {
    /// No restriction.
    #[default]
    Preserve,
    /// Fields with such names are removed.
    Delete,
    /// The request is refused with 403.
    Reject,
}

/// `option forwardfor` and `option originalto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressHeader {
    /// Name of the field.
    pub name: wire::head::FieldName,
    /// Not for addresses of this network: address and prefix length.
    pub except: Option<(IpAddr, u8)>,
    /// `if-none`: not when the request carries the field.
    pub if_none: bool,
}

impl AddressHeader {
    /// The setting by which a request gets the field, if it does. The backend's name counts before the
    /// frontend's; either may except networks; `if-none` holds only where nobody insists. `present` tells of
    /// fields that the request has.
    pub fn that_applies<'a>(
        front: Option<&'a AddressHeader>,
        back: Option<&'a AddressHeader>,
        ip: IpAddr,
        present: impl Fn(&wire::head::FieldName) -> bool,
    ) -> Option<&'a AddressHeader> {
        let setting = back.or(front)?;
        let both = || [front, back].into_iter().flatten();
        let has_one = both().all(|s| s.if_none) && present(&setting.name);
        let excepted = both().any(|s| s.except.is_some_and(|(net, bits)| covers(net, bits, ip)));
        (!has_one && !excepted).then_some(setting)
    }
}

/// Whether a network covers an address.
fn covers(net: IpAddr, bits: u8, ip: IpAddr) -> bool {
    use std::net::IpAddr::{V4, V6};
    match (net, ip) {
        (V4(n), V4(i)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            u32::from(n) & mask == u32::from(i) & mask
        }
        (V6(n), V6(i)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            u128::from(n) & mask == u128::from(i) & mask
        }
        _ => false,
    }
}

/// `option forwarded` (RFC 7239).
pub struct Forwarded {
    /// `proto`.
    pub proto: bool,
    /// `host` or `host-expr`.
    pub host: Option<ForwardedValue>,
    /// `by` or `by-expr`.
    pub by: Option<ForwardedValue>,
    /// `by_port` or `by_port-expr`.
    pub by_port: Option<ForwardedValue>,
    /// `for` or `for-expr`.
    pub for_: Option<ForwardedValue>,
    /// `for_port` or `for_port-expr`.
    pub for_port: Option<ForwardedValue>,
}

/// One part of `option forwarded`.
pub enum ForwardedValue {
    /// What the connection says.
    Auto,
    /// What an expression says.
    Expr(lang::Expr),
}
