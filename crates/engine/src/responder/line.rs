//! The line that a question leaves in the log when HTTP itself went wrong (manual, `ocsp-update`): the
//! default format of HTTP with what is not there left out, as for any request that nobody sent to a frontend.

use std::time::Duration;

use rt::{Mono, Wall};

/// How asking a responder went.
#[derive(Debug)]
pub(super) struct Story {
    request: String,
    date: Wall,
    begun: Mono,
    connected: Option<Duration>,
    answered: Option<Duration>,
    whole: Duration,
    status: u16,
    flags: &'static str,
    /// Bytes of the answer.
    pub bytes: usize,
    /// Tries behind the first.
    pub retries: u32,
}

impl Story {
    /// It begins. `request` is the first line of the request.
    pub fn begin(request: String) -> Story {
        Story {
            request,
            date: rt::wall(),
            begun: rt::now(),
            connected: None,
            answered: None,
            whole: Duration::ZERO,
            status: 0,
            flags: "--",
            bytes: 0,
            retries: 0,
        }
    }

    fn so_far(&self) -> Duration {
        rt::now().since(self.begun)
    }

    /// The connection stands.
    pub fn connected(&mut self) {
        (self.connected, self.answered) = (Some(self.so_far()), None);
    }

    /// The head of an answer is there.
    pub fn answered(&mut self) {
        self.answered = self.answered.or(Some(self.so_far()));
    }

    /// It is over: the letters of the termination state, and the status.
    pub fn end(&mut self, (flags, status): (&'static str, u16)) {
        (self.flags, self.status, self.whole) = (flags, status, self.so_far());
    }

    /// Whether a log without ordinary lines has it (`dontlog-normal`).
    pub fn is_worth_telling(&self) -> bool {
        self.flags != "--" || self.retries > 0 || self.status >= 500
    }

    /// The line.
    pub fn line(&self) -> String {
        let mut date = Vec::new();
        crate::sinks::local_stamp(&mut date, self.date);
        let date = String::from_utf8_lossy(&date);
        let shown = |time: Option<Duration>| time.map_or("-1".to_owned(), |t| t.as_millis().to_string());
        let wait = self.answered.zip(self.connected).map(|(a, c)| a.saturating_sub(c));
        let (connect, wait, whole) = (shown(self.connected), shown(wait), shown(Some(self.whole)));
        let Story { status, bytes, flags, retries, request, .. } = self;
        format!(
            "-:- [{date}] <OCSP-UPDATE> -/- 0/0/{connect}/{wait}/{whole} {status} {bytes} - - {flags}-- 0/0/0/0/{retries} 0/0 {{}} \
             \"{request}\""
        )
    }
}
