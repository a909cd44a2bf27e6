//! The ready-made log lines (manual, sections 8.2.2 to 8.2.4). They stand in the environment while a
//! configuration is read, so that others can be built on them.

/// `option tcplog`.
pub const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
/// `option tcplog clf`.
pub const TCP_CLF: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";
/// `option httplog`.
pub const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
/// `option httplog clf`.
pub const HTTP_CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
/// `option httpslog`.
pub const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";

/// The variables to preset before a configuration is read.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("HAPROXY_HTTP_LOG_FMT", HTTP),
    ("HAPROXY_HTTP_CLF_LOG_FMT", HTTP_CLF),
    ("HAPROXY_HTTPS_LOG_FMT", HTTPS),
    ("HAPROXY_TCP_LOG_FMT", TCP),
    ("HAPROXY_TCP_CLF_LOG_FMT", TCP_CLF),
];
