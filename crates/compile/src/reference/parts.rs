//! Keywords of proxies that are made of two words and more: what the second word says. The entry of the first
//! word is in the table of its family.

use super::Entry;

const fn part(name: &'static str, places: &'static str, doc: &'static str, example: &'static str) -> Entry {
    Entry { class: "proxy", name, places, doc, example, default: "", idle: false }
}

const ALL: &str = "all proxies and defaults";
const RULES: &str = "all proxies, of defaults only named ones";
const BACK: &str = "defaults, listen, backend";
const FRONT: &str = "defaults, frontend, listen";
const FRONT_ONLY: &str = "frontend, listen";
const BACK_ONLY: &str = "listen, backend";

/// All of them.
#[rustfmt::skip]
pub(super) const PARTS: &[Entry] = &[
    part("capture cookie", FRONT_ONLY, "A cookie of requests and responses is kept for the log.", "capture cookie ID= len 32"),
    part("capture request header", FRONT_ONLY, "A header field of requests is kept for the log.", "capture request header Host len 32"),
    part("capture response header", FRONT_ONLY, "A header field of responses is kept for the log.", "capture response header Server len 20"),
    part("declare capture", FRONT_ONLY, "A place that rules fill with what the log shall show.", "declare capture request len 32"),
    part("email-alert from", ALL, "Sender of the mails.", "email-alert from lb@example.org"),
    part("email-alert level", ALL, "Least severity that is mailed; alert unless said.", "email-alert level notice"),
    part("email-alert mailers", ALL, "The section that says where mails go.", ""),
    part("email-alert myhostname", ALL, "Name that is told to mail servers; the host's unless said.", "email-alert myhostname lb1"),
    part("email-alert to", ALL, "Recipient of the mails.", "email-alert to ops@example.org"),
    part("external-check command", BACK, "The program that checks servers.", "external-check command /bin/true"),
    part("external-check path", BACK, "PATH of the program that checks servers.", "external-check path /usr/bin:/bin"),
    part("http-check comment", BACK, "Text of the next step, told when it fails.", "http-check comment \"is it up\""),
    part("http-check connect", BACK, "A connection is made, with words of server lines.", "http-check connect port 80 linger"),
    part("http-check disable-on-404", BACK, "A server whose check is answered 404 gets no new clients.", "http-check disable-on-404"),
    part("http-check expect", BACK, "What the answer must be; status 200 to 399 unless said.", "http-check expect status 200,204"),
    part("http-check send", BACK, "The request that is sent.", "http-check send meth GET uri /up hdr Host www"),
    part("http-check send-state", BACK, "The request tells the state of the server.", "http-check send-state"),
    part("http-check set-var", BACK, "A variable of the check is set.", "http-check set-var(check.port) int(80)"),
    part("http-check set-var-fmt", BACK, "A variable of the check is set by a format.", "http-check set-var-fmt(check.name) %H"),
    part("http-check unset-var", BACK, "A variable of the check is forgotten.", "http-check unset-var(check.port)"),
    part("monitor fail", FRONT_ONLY, "Requests for monitor-uri are answered 503 while this holds.", "monitor fail if { nbsrv lt 1 }"),
    part("persist rdp-cookie", BACK, "RDP clients stay with the server that their cookie names.", "persist rdp-cookie"),
    part("rate-limit sessions", FRONT, "Most new sessions a second; none unless said.", "rate-limit sessions 100"),
    part("stats admin", "frontend, listen, backend", "The page may change servers while this holds.", "stats admin if LOCALHOST"),
    part("stats auth", ALL, "A user and the password that the page asks for.", "stats auth ops:secret"),
    part("stats enable", ALL, "There is a page of statistics.", "stats enable"),
    part("stats hide-version", ALL, "The page does not tell the version.", "stats hide-version"),
    part("stats http-request", "frontend, listen, backend", "Who may see the page: allow, deny, auth.", "stats http-request auth unless LOCALHOST"),
    part("stats realm", ALL, "Realm that passwords are asked for.", "stats realm Statistics"),
    part("stats refresh", ALL, "The page is loaded again every so often.", "stats refresh 10s"),
    part("stats scope", ALL, "Only these proxies are shown; '.' is the one that has the page.", "stats scope ."),
    part("stats show-desc", ALL, "The page shows this text, or that of 'description' in global.", "stats show-desc edge"),
    part("stats show-legends", ALL, "The page tells more of proxies and servers in tips.", "stats show-legends"),
    part("stats show-modules", ALL, "The page shows the figures of protocols, too.", "stats show-modules"),
    part("stats show-node", ALL, "The page shows the name of the node.", "stats show-node"),
    part("stats show-version", ALL, "The page tells the version.", "stats show-version"),
    part("stats uri", ALL, "Where the page is; /haproxy?stats unless said.", "stats uri /stats"),
    part("stick match", BACK_ONLY, "A client that the table knows goes where it was before.", "stick match src"),
    part("stick on", BACK_ONLY, "'stick match' and 'stick store-request' in one.", "stick on src"),
    part("stick store-request", BACK_ONLY, "The table keeps which server the request went to.", "stick store-request src"),
    part("stick store-response", BACK_ONLY, "The table keeps which server the response came from.", "stick store-response res.hdr(x-id)"),
    part("tcp-check comment", BACK, "Text of the next step, told when it fails.", "tcp-check comment hello"),
    part("tcp-check connect", BACK, "A connection is made, with words of server lines.", "tcp-check connect port 25"),
    part("tcp-check expect", BACK, "What the server must send.", "tcp-check expect string +PONG"),
    part("tcp-check send", BACK, "Text that is sent.", "tcp-check send PING\\r\\n"),
    part("tcp-check send-lf", BACK, "A format whose text is sent.", "tcp-check send-lf \"HELO %H\\r\\n\""),
    part("tcp-check send-binary", BACK, "Bytes that are sent, in hexadecimal digits.", "tcp-check send-binary 50494e47"),
    part("tcp-check send-binary-lf", BACK, "A format of hexadecimal digits whose bytes are sent.", "tcp-check send-binary-lf %[str(PING),hex]"),
    part("tcp-check set-var", BACK, "A variable of the check is set.", "tcp-check set-var(check.port) int(25)"),
    part("tcp-check set-var-fmt", BACK, "A variable of the check is set by a format.", "tcp-check set-var-fmt(check.name) %H"),
    part("tcp-check unset-var", BACK, "A variable of the check is forgotten.", "tcp-check unset-var(check.port)"),
    part("tcp-request connection", "frontend, listen, named defaults", "What is done with new connections, before anything is read.", "tcp-request connection reject if !LOCALHOST"),
    part("tcp-request content", RULES, "What is done with what clients send first.", "tcp-request content accept if WAIT_END"),
    part("tcp-request inspect-delay", RULES, "How long rules of the content wait for data; not at all unless said.", "tcp-request inspect-delay 5s"),
    part("tcp-request session", "frontend, listen, named defaults", "What is done with connections once PROXY headers and handshakes are read.", "tcp-request session reject if !LOCALHOST"),
    part("tcp-response content", "listen, backend, named defaults", "What is done with what servers send first.", "tcp-response content accept if WAIT_END"),
    part("tcp-response inspect-delay", "listen, backend, named defaults", "How long rules of responses wait for data; not at all unless said.", "tcp-response inspect-delay 5s"),
];
