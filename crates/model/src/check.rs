//! Results of health checks, as statistics and logs name them (manual of the CSV, `check_status`).

use std::borrow::Cow;

/// The outcome of the last check of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum CheckStatus {
    /// No check has been run yet (`UNK`).
    #[default]
    Unknown,
    /// `INI`: initialising.
    Init,
    /// `SOCKERR`: a local socket error.
    SockErr,
    /// `L4OK`: the connection was established.
    L4Ok,
    /// `L4TOUT`: layer 1-4 timeout.
    L4Timeout,
    /// `L4CON`: layer 1-4 connection problem, such as "Connection refused".
    L4Con,
    /// `L6OK`: TLS established.
    L6Ok,
    /// `L6TOUT`: timeout in TLS.
    L6Timeout,
    /// `L6RSP`: invalid TLS answer.
    L6Rsp,
    /// `L7OK`: the protocol's check passed.
    L7Ok,
    /// `L7OKC`: conditionally passed (404 with `disable-on-404`).
    L7OkCond,
    /// `L7TOUT`: timeout waiting for the protocol's answer.
    L7Timeout,
    /// `L7RSP`: an answer that is no answer of the protocol.
    L7Rsp,
    /// `L7STS`: a well-formed answer that says failure.
    L7Sts,
    /// `PROCERR`, `PROCTOUT`, `PROCOK`: external checks.
    ProcErr,
    /// External check ran too long.
    ProcTimeout,
    /// External check passed.
    ProcOk,
    /// `CHECKED`: an answer that says nothing about health (an agent that only sets a weight).
    Forced,
    /// `HANA`: traffic says that the server fails (`observe`).
    Analyzed,
}

/// Outcomes by number; 2 and 14 are HAProxy's own steps on the way.
const NUMBERED: [(u8, CheckStatus); 18] = [
    (1, CheckStatus::Init),
    (3, CheckStatus::Forced),
    (4, CheckStatus::Analyzed),
    (5, CheckStatus::SockErr),
    (6, CheckStatus::L4Ok),
    (7, CheckStatus::L4Timeout),
    (8, CheckStatus::L4Con),
    (9, CheckStatus::L6Ok),
    (10, CheckStatus::L6Timeout),
    (11, CheckStatus::L6Rsp),
    (12, CheckStatus::L7Timeout),
    (13, CheckStatus::L7Rsp),
    (15, CheckStatus::L7Ok),
    (16, CheckStatus::L7OkCond),
    (17, CheckStatus::L7Sts),
    (18, CheckStatus::ProcErr),
    (19, CheckStatus::ProcTimeout),
    (20, CheckStatus::ProcOk),
];

impl CheckStatus {
    /// Short name, as in the `check_status` column.
    pub fn code(self) -> &'static str {
        self.texts().0
    }

    /// Description, as in log lines ("Layer4 check passed").
    pub fn text(self) -> &'static str {
        self.texts().1
    }

    /// The number of an outcome, as `show servers state` and its files have it (`srv_check_status`).
    pub fn number(self) -> u8 {
        NUMBERED.iter().find(|(_, status)| *status == self).map_or(1, |(number, _)| *number)
    }

    /// The outcome that has a number.
    pub fn from_number(number: u8) -> Option<CheckStatus> {
        NUMBERED.iter().find(|(of, _)| *of == number).map(|(_, status)| *status)
    }

    /// Whether a server that answers like this is up.
    pub fn passed(self) -> bool {
        use CheckStatus::*;
        matches!(self, L4Ok | L6Ok | L7Ok | L7OkCond | ProcOk)
    }

    /// Whether such an outcome carries a status code.
    pub fn has_code(self) -> bool {
        use CheckStatus::*;
        matches!(self, L7Ok | L7OkCond | L7Sts | ProcOk | ProcErr | ProcTimeout)
    }

    fn texts(self) -> (&'static str, &'static str) {
        use CheckStatus::*;
        match self {
            Unknown => ("UNK", "Unknown"),
            Init => ("INI", "Initializing"),
            SockErr => ("SOCKERR", "Socket error"),
            L4Ok => ("L4OK", "Layer4 check passed"),
            L4Timeout => ("L4TOUT", "Layer4 timeout"),
            L4Con => ("L4CON", "Layer4 connection problem"),
            L6Ok => ("L6OK", "Layer6 check passed"),
            L6Timeout => ("L6TOUT", "Layer6 timeout"),
            L6Rsp => ("L6RSP", "Layer6 invalid response"),
            L7Ok => ("L7OK", "Layer7 check passed"),
            L7OkCond => ("L7OKC", "Layer7 check conditionally passed"),
            L7Timeout => ("L7TOUT", "Layer7 timeout"),
            L7Rsp => ("L7RSP", "Layer7 invalid response"),
            L7Sts => ("L7STS", "Layer7 wrong status"),
            ProcErr => ("PROCERR", "External check error"),
            ProcTimeout => ("PROCTOUT", "External check timeout"),
            ProcOk => ("PROCOK", "External check passed"),
            Forced => ("CHECKED", "No status change"),
            Analyzed => ("HANA", "Health analyze"),
        }
    }
}

/// What one check found.
#[derive(Clone, Debug, Default)]
pub struct CheckResult {
    /// Class of the outcome.
    pub status: CheckStatus,
    /// Status code of the protocol (HTTP status) or exit status of a program, 0 when there is none.
    pub code: i32,
    /// How long it took, milliseconds.
    pub duration_ms: u32,
    /// What the peer or the system said, for `last_chk` and the log.
    pub detail: String,
    /// The detail is for the log only: the statistics don't keep it.
    pub fleeting: bool,
    /// `srv_check_result` as a file of server states tells it, until a check has a result of its own.
    pub told: Option<u8>,
    /// A check is at work: status and time are those of the one before it.
    pub at_work: bool,
}

impl CheckResult {
    /// A check begins: of the one before only its class and its time are shown from here on.
    pub fn begin(&mut self) {
        (self.at_work, self.code, self.told) = (true, 0, None);
        self.detail.clear();
        if self.status == CheckStatus::Unknown {
            self.status = CheckStatus::Init;
        }
    }

    /// The short name of the outcome, as the statistics show it: marked while a check is at work.
    pub fn shown(&self) -> Cow<'static, str> {
        match self.at_work {
            true => format!("* {}", self.status.code()).into(),
            false => self.status.code().into(),
        }
    }
}
