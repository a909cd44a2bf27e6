//! What the running program knows about itself, for the predicates of `.if` and `-cc`.

/// Answers about the build and the process. The binary implements it; tests make their own.
pub trait Facts {
    /// The version of HAProxy that this program is compatible with, as `-v` shows it: `3.5-dev5`.
    fn version(&self) -> &str;

    /// Whether `+NAME` is in the feature list of `-vv`.
    fn feature(&self, name: &str) -> bool;

    /// Whether a run-time option (`EPOLL`, `SPLICE`, ...) is on; `None` if there is no such option.
    fn enabled(&self, option: &str) -> Option<bool>;

    /// The version of OpenSSL that the TLS library claims to be compatible with, as text (`1.1.1`), if it
    /// claims one.
    fn openssl_version(&self) -> Option<&str>;

    /// The name of the TLS library as `-vv` shows it.
    fn ssl_library(&self) -> &str;

    /// The API number of AWS-LC, if that is the TLS library.
    fn awslc_api(&self) -> Option<u64>;

    /// Whether the TLS library runs in FIPS mode.
    fn fips_mode(&self) -> bool;
}

/// A build without anything optional, for tests and for whoever reads a configuration without running it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainBuild;

impl Facts for PlainBuild {
    fn version(&self) -> &str {
        "3.5-dev5"
    }

    fn feature(&self, _: &str) -> bool {
        false
    }

    fn enabled(&self, _: &str) -> Option<bool> {
        None
    }

    fn openssl_version(&self) -> Option<&str> {
        None
    }

    fn ssl_library(&self) -> &str {
        ""
    }

    fn awslc_api(&self) -> Option<u64> {
        None
    }

    fn fips_mode(&self) -> bool {
        false
    }
}
