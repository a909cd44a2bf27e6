//! Mail about servers (`email-alert`, `mailers` sections; manual, section 12.3). Scripts send it.

use std::time::Duration;

/// What a proxy says of mail, with the section that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// `email-alert from`.
    pub from: Box<str>,
    /// `email-alert to`.
    pub to: Box<str>,
    /// `email-alert myhostname`, or the name of the host.
    pub hostname: Box<str>,
    /// `email-alert level`: the least severity that is told, as a syslog level.
    pub level: u8,
    /// `option log-health-checks`: each result of a check is told.
    pub checks: bool,
    /// `timeout mail`: how long a mail may take.
    pub timeout: Duration,
    /// The servers: name, and address as it is written.
    pub servers: Vec<(Box<str>, Box<str>)>,
}
