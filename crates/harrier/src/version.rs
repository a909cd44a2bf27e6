//! What `-v` and `-vv` say, and the answers to predicates of the configuration.

use std::fmt::Write;

use admin::product::{self, BRANCH, COMPATIBLE};
use syntax::Facts;

use crate::args::Args;
use crate::reference::flags::FLAGS;

/// The feature list of `-vv`: what exists here under the names that tools look for.
const FEATURES: &[(&str, bool)] = &[
    ("51DEGREES", false),
    ("ACCEPT4", true),
    ("ACME", false),
    ("CPU_AFFINITY", true),
    ("CRYPT_H", true),
    ("DEVICEATLAS", false),
    ("EPOLL", true),
    ("FCGI", true),
    ("GETADDRINFO", true),
    ("H2", true),
    ("HAVE_TCP_MD5SIG", true),
    ("HAVE_WORKING_TCP_MD5SIG", true),
    ("KTLS", true),
    ("LIBCRYPT", true),
    ("LINUX_CAP", true),
    ("LINUX_SPLICE", true),
    ("LINUX_TPROXY", true),
    ("LUA", true),
    ("NETFILTER", true),
    ("NS", false),
    ("OPENSSL", true),
    ("OPENSSL_AWSLC", true),
    ("OPENSSL_WOLFSSL", false),
    ("PCRE", false),
    // Its syntax is read by an engine of our own.
    ("PCRE2", true),
    ("POLL", false),
    ("PROMEX", true),
    ("QUIC", false),
    ("RT", true),
    ("SLZ", false),
    ("SPOE", true),
    ("SSL", true),
    ("TFO", true),
    ("THREAD", true),
    ("TPROXY", true),
    ("TRACE", true),
    ("WURFL", false),
    ("ZLIB", true),
];

/// Whether the program was started under HAProxy's name: scripts then expect its lines.
pub fn as_haproxy() -> bool {
    std::env::args().next().is_some_and(|a| a.rsplit('/').next() == Some("haproxy"))
}

/// The first line of `-v`. Under HAProxy's name, the words stand where scripts look for them.
pub fn line() -> String {
    let date = product::RELEASE_DATE;
    if as_haproxy() {
        format!("HAProxy version {} {date} - Harrier, compatible with HAProxy {BRANCH}", product::VERSION)
    } else {
        format!("Harrier version {} {date} - compatible with HAProxy version {COMPATIBLE}", product::OURS)
    }
}

/// The whole of `-v`.
pub fn short() -> String {
    let system = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let words: Vec<&str> = system.split_whitespace().collect();
    let release = words.get(2).copied().unwrap_or("?");
    format!(
        "{}\nStatus: development version - not yet for production.\nRunning on: Linux {release} {}\n",
        line(),
        std::env::consts::ARCH
    )
}

/// The features, each with a sign.
fn features() -> String {
    let sign = |on: bool| if on { '+' } else { '-' };
    let all: Vec<String> = FEATURES.iter().map(|(name, on)| format!("{}{name}", sign(*on))).collect();
    all.join(" ")
}

/// The lines of `show dev` about the program.
pub fn build() -> String {
    let library = tls::LIBRARY;
    format!(
        "Features:\n  {}\nBuild options:\n  \
         Harrier {} of {}, {} {}\n  \
         Built with multi-threading support (MAX_TGROUPS=32, MAX_THREADS=1000).\n  \
         Built with SSL library version : {library} (rustls)\n  \
         Built with Lua version : Lua 5.4\n  \
         Built with the Prometheus exporter as a service\n",
        features(),
        product::OURS,
        product::RELEASE_DATE,
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// The whole of `-vv`.
pub fn full() -> String {
    let library = tls::LIBRARY;
    let registry = crate::extensions::registry();
    let filters = compile::dump::filter_names(&registry);
    let filters: String = filters.iter().map(|(name, tag)| format!("\t[{tag}] {name}\n")).collect();
    let threads = rt::sys::allowed_cpus().map_or(1, |c| c.len());
    format!(
        "{}\
         Build options : \n  TARGET  = linux-glibc\n  CC      = rustc\n\n\
         Feature list : {}\n\nDefault settings :\n  bufsize = 16384, maxrewrite = 1024, maxpollevents = 200\n\n\
         Built with multi-threading support (MAX_TGROUPS=32, MAX_THREADS=1000, default={threads}).\n\
         Built with SSL library version : {library} (rustls)\nRunning on SSL library version : {library} (rustls)\n\
         SSL library supports TLS extensions : yes\nSSL library supports SNI : yes\nSSL library FIPS mode : no\n\
         SSL library supports : TLSv1.2 TLSv1.3\n\
         Built with Lua version : Lua 5.4\nAvailable polling systems :\n      epoll : pref=300,  test result OK\nTotal: 1 (1 usable), will use epoll.\n\n\
         Available multiplexer protocols :\n\
         (protocols marked as <default> cannot be specified using 'proto' keyword)\n  \
         h2 : mode=HTTP  side=FE|BE  mux=H2    flags=HTX|HOL_RISK|NO_UPG\n       \
         fcgi : mode=HTTP  side=BE     mux=FCGI  flags=HTX|HOL_RISK|NO_UPG\n  \
         <default> : mode=HTTP  side=FE|BE  mux=H1    flags=HTX\n         \
         h1 : mode=HTTP  side=FE|BE  mux=H1    flags=HTX|NO_UPG\n  \
         <default> : mode=TCP   side=FE|BE  mux=PASS  flags=\n       \
         none : mode=TCP   side=FE|BE  mux=PASS  flags=NO_UPG\n\n\
         Available services : prometheus-exporter\nAvailable filters :\n{filters}",
        short(),
        features()
    )
}

/// What predicates of the configuration ask.
#[derive(Default)]
pub struct Answers {
    no_splice: bool,
    no_fast_forward: bool,
    no_getaddrinfo: bool,
    no_reuseport: bool,
    trust_servers: bool,
}

impl Answers {
    /// The answers under this command line.
    pub fn of(args: &Args) -> Answers {
        Answers {
            no_splice: args.no_splice,
            no_fast_forward: args.no_fast_forward,
            no_getaddrinfo: args.no_getaddrinfo,
            no_reuseport: args.no_reuseport,
            trust_servers: args.trust_servers,
        }
    }
}

impl Facts for Answers {
    fn version(&self) -> &str {
        COMPATIBLE
    }

    fn feature(&self, name: &str) -> bool {
        FEATURES.iter().any(|(n, on)| *n == name && *on)
    }

    fn enabled(&self, option: &str) -> Option<bool> {
        Some(match option {
            "EPOLL" => true,
            "SPLICE" => !self.no_splice,
            "GETADDRINFO" => !self.no_getaddrinfo,
            "REUSEPORT" => !self.no_reuseport,
            "FAST-FORWARD" => !self.no_fast_forward,
            "SERVER-SSL-VERIFY-NONE" => self.trust_servers,
            "POLL" | "KQUEUE" | "EVPORTS" => false,
            _ => return None,
        })
    }

    fn openssl_version(&self) -> Option<&str> {
        Some(tls::OPENSSL)
    }

    fn ssl_library(&self) -> &str {
        tls::LIBRARY
    }

    fn awslc_api(&self) -> Option<u64> {
        Some(tls::AWSLC_API)
    }

    fn fips_mode(&self) -> bool {
        false
    }
}

/// The usage: all words of the command line.
pub fn usage() -> String {
    let program = if as_haproxy() { "haproxy" } else { "harrier" };
    let mut text = format!(
        "Usage : {program} [-f <cfgfile|cfgdir>]* [ -vdVD ] [ -n <maxconn> ] [ -N <maxpconn> ]\n        \
         [ -p <pidfile> ] [ -m <max megs> ] [ -C <dir> ] [-- <cfgfile>*]\n"
    );
    for flag in FLAGS {
        let word = format!("{} {}", flag.name, flag.takes);
        let word = word.trim_end();
        let apart = if word.len() > 22 { "\n                               " } else { "" };
        let _ = writeln!(text, "        {word:22}{apart} {}", flag.doc);
    }
    let _ = writeln!(
        text,
        "\n{program} help WORD explains a keyword, an option, a command; help alone says what there is."
    );
    text
}
