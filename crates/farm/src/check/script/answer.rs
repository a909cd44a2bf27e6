//! What a check makes of an answer: whether a rule is satisfied, violated or needs more of it, and what the
//! result says.

use lang::Env;
use lang::logfmt::Use;
use lang::{Expr, LogFormat};
use model::check::{CheckResult, CheckStatus};
use model::vars::{Owned, VarRef};
use program::check::{Expect, Pattern, Protocol};
use wire::http1::{Limits, Parsed, parse_response};

use super::{Script, failure};
use crate::Seen;
use crate::check::contact::{self, Contact};
use crate::check::expect::{self, Look, Received};
use crate::check::protocols::{self, Judged};
use crate::check::{http, verdict};

impl Script<'_> {
    /// Waits until a rule is decided. `spare` is the comment for one that has none of its own.
    pub(super) async fn expect(
        &mut self,
        rule: &Expect,
        number: usize,
        spare: Option<&str>,
    ) -> Result<CheckResult, CheckResult> {
        let what = expect::describe(&rule.what);
        let comment = rule.comment.as_deref().or(spare);
        self.flush(number, &what, comment).await?;
        loop {
            let look = if self.check.ruleset.http {
                self.look_http(rule)?
            } else if let Some(result) = self.look_protocol(rule) {
                return result;
            } else {
                self.look_tcp(rule, number, comment)?
            };
            match look {
                Look::Satisfied => return Ok(self.satisfied(rule)),
                Look::Violated => return Err(self.violated(rule, number, comment)),
                Look::Later => {}
            }
            let Some(link) = &mut self.link else {
                return Err(failure(CheckStatus::SockErr, String::new()));
            };
            if link.more(&mut self.timer).await.is_err() {
                let status = rule.timeout_status.unwrap_or(CheckStatus::L7Timeout);
                return Err(failure(status, self.place(number, &what, comment)));
            }
        }
    }

    /// What a protocol's own rules make of the answer; `None`: it needs more, or there is none at all.
    pub(super) fn look_protocol(&mut self, rule: &Expect) -> Option<Result<CheckResult, CheckResult>> {
        let Pattern::Protocol(protocol) = rule.what else { return None };
        let link = self.link.as_ref()?;
        let (data, over) = (link.data(), link.is_over());
        if data.is_empty() && (link.error().is_some() || !over || protocol != Protocol::Ldap) {
            return None;
        }
        match protocols::judge(protocol, data, over) {
            Judged::Later => None,
            Judged::Passed(detail) => {
                Some(Ok(CheckResult { fleeting: true, ..failure(CheckStatus::L7Ok, detail) }))
            }
            Judged::Failed(status, code, detail) => {
                Some(Err(CheckResult { code, ..failure(status, detail) }))
            }
        }
    }

    pub(super) fn look_tcp(
        &mut self,
        rule: &Expect,
        number: usize,
        comment: Option<&str>,
    ) -> Result<Look, CheckResult> {
        let Some(link) = &self.link else { return Ok(Look::Later) };
        let (data, over) = (link.data(), link.is_over());
        if over
            && data.is_empty()
            && let Some(e) = link.error()
        {
            let place = self.place(number, &expect::describe(&rule.what), comment);
            return Err(failure(CheckStatus::SockErr, format!("{}{place}", contact::describe(e))));
        }
        match rule.what {
            // Nothing at all, and no more to come: no answer of any protocol.
            Pattern::Protocol(_) => return Ok(if over { Look::Violated } else { Look::Later }),
            _ if data.is_empty() && !over => return Ok(Look::Later),
            _ => {}
        }
        self.body.clear();
        self.body.extend_from_slice(data);
        Ok(expect::in_data(rule, &self.needle(rule), &Received { data, over }))
    }

    pub(super) fn look_http(&mut self, rule: &Expect) -> Result<Look, CheckResult> {
        let Some(link) = &self.link else { return Ok(Look::Later) };
        let (data, over) = (link.data(), link.is_over());
        let head = match self.head {
            Some(length) => length,
            None => {
                let limits = Limits { head: rt::bufsize(), ..Limits::default() };
                match parse_response(data, &mut self.txn.res, &limits, false) {
                    Ok(Parsed::Complete { consumed }) => consumed,
                    Ok(Parsed::Partial) if !over => return Ok(Look::Later),
                    _ => {
                        let detail = link.error().map(contact::describe).unwrap_or_default();
                        return Err(failure(CheckStatus::SockErr, detail));
                    }
                }
            }
        };
        self.head = Some(head);
        self.txn.has_res = true;
        let status = self.txn.res.status();
        if link.speaks_h2() {
            // HTTP/2 has no reasons: the text was made for the form of HTTP/1.
            let _ = self.txn.res.set_status(status, Some(b""));
        }
        self.txn.status = status;
        if status == 404 && self.check.ruleset.disable_on_404 && verdict::runs(self.server) {
            let result = failure(CheckStatus::L7OkCond, String::new());
            return Err(CheckResult { code: i32::from(status), ..result });
        }
        let raw = data.get(head..).unwrap_or_default();
        let (body, whole) = http::body(&self.txn.res, self.method, raw, over);
        self.body.clear();
        self.body.extend_from_slice(&body);
        if expect::wants_head(&rule.what) {
            return Ok(expect::in_head(rule, &self.txn.res, &|f| self.text(f)));
        }
        if self.body.is_empty() {
            return Ok(if whole { Look::Violated } else { Look::Later });
        }
        Ok(expect::in_data(rule, &self.needle(rule), &Received { data: &self.body, over: whole }))
    }

    /// The bytes that a pattern looks for.
    pub(super) fn needle(&self, rule: &Expect) -> Vec<u8> {
        match &rule.what {
            Pattern::Text(t) | Pattern::Binary(t) => t.to_vec(),
            Pattern::Format(f) => self.text(f),
            Pattern::BinaryFormat(f) => expect::unhex(&self.text(f)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    pub(super) fn satisfied(&self, rule: &Expect) -> CheckResult {
        let http = self.check.ruleset.http;
        let detail = match &rule.on_success {
            Some(format) => self.message(format),
            None if http || self.check.ruleset.canned => String::new(),
            None => "(tcp-check)".to_owned(),
        };
        let status = rule.ok_status.unwrap_or(CheckStatus::L7Ok);
        CheckResult { code: self.code(rule), ..failure(status, detail) }
    }

    pub(super) fn violated(&self, rule: &Expect, number: usize, comment: Option<&str>) -> CheckResult {
        let http = self.check.ruleset.http;
        let about_head = http && expect::wants_head(&rule.what);
        let comment = comment.map(|c| format!(" comment: {c}")).unwrap_or_default();
        let detail = match &rule.on_error {
            Some(format) => format!("{}{comment}", self.message(format)),
            None if !http && self.body.is_empty() => {
                format!("TCPCHK got an empty response at step {number}{comment}")
            }
            None if self.check.ruleset.canned => String::new(),
            None if about_head && self.txn.res.reason().is_empty() => {
                let what = match &rule.what {
                    Pattern::Status(_) => "(status codes)",
                    Pattern::StatusRegex(_) => " (regex)",
                    _ => " (header pattern)",
                };
                format!("TCPCHK did not match content{what} at step {number}{comment}")
            }
            None if about_head => {
                format!("{}{comment}", String::from_utf8_lossy(self.txn.res.reason()))
            }
            None if http && self.body.is_empty() => {
                format!("HTTP content check could not find a response body{comment}")
            }
            None if http && rule.negated => format!("HTTP check matched unwanted content{comment}"),
            None if http => format!("HTTP content check did not match{comment}"),
            None => {
                let how = if rule.negated { "matched unwanted content" } else { "did not match content" };
                format!("TCPCHK {how} {} at step {number}{comment}", expect::name(&rule.what))
            }
        };
        let usual = if about_head { CheckStatus::L7Sts } else { CheckStatus::L7Rsp };
        let status = rule.error_status.unwrap_or(usual);
        CheckResult { code: self.code(rule), ..failure(status, detail) }
    }

    pub(super) fn code(&self, rule: &Expect) -> i32 {
        let given = rule.status_code.as_ref().and_then(|expr| match self.value(expr)? {
            Owned::Int(n) => i32::try_from(n).ok(),
            Owned::Str(t) | Owned::Bin(t) => std::str::from_utf8(&t).ok()?.trim().parse().ok(),
            _ => None,
        });
        given.unwrap_or(if self.check.ruleset.http { i32::from(self.txn.status) } else { 0 })
    }

    pub(super) fn message(&self, format: &LogFormat) -> String {
        String::from_utf8_lossy(&self.text(format)).into_owned()
    }

    /// A payload or a pattern.
    pub(super) fn text(&self, format: &LogFormat) -> Vec<u8> {
        self.written(format, Use::Value)
    }

    /// A target or a field value: what an earlier answer left in a variable must not end its line.
    pub(super) fn line(&self, format: &LogFormat) -> Vec<u8> {
        self.written(format, Use::Header)
    }

    fn written(&self, format: &LogFormat, how: Use) -> Vec<u8> {
        if let Some(text) = format.constant() {
            return text.to_vec();
        }
        let mut out = Vec::new();
        self.evaluate(|env| format.append(env, how, &mut out));
        out
    }

    pub(super) fn value(&self, expr: &Expr) -> Option<Owned> {
        self.evaluate(|env| expr.eval_owned(env))?
    }

    /// Evaluates something on what is known by now.
    fn evaluate<R>(&self, mut f: impl FnMut(&Env<'_>) -> R) -> Option<R> {
        let socket = self.link.as_ref().map(Contact::socket);
        let seen = Seen { conn: &self.conn, txn: &self.txn, answer: &self.body, socket };
        let mut value = None;
        self.worker.above.evaluate(seen, &mut |env| value = Some(f(env)));
        value
    }

    /// Sets or forgets a variable; only those of the process, the session and the check are in reach.
    pub(super) fn set(&self, var: VarRef, value: Option<Owned>) {
        self.evaluate(|env| lang::set_variable(env, var, value.clone()));
    }
}
