//! What tests ask of a stage: values, conditions, formats.

use super::Stage;
use crate::env::Side;
use crate::logfmt::{LogFormat, Use};
use crate::places::Place;
use crate::words::{Fault, Words};
use crate::{Condition, Expr};

impl Stage {
    /// Where everything may be used.
    fn place(&self) -> Place {
        match self.side {
            Side::Request => Place::BackHttpReq,
            Side::Response => Place::BackHttpRes,
        }
    }

    pub(crate) fn compile(&mut self, text: &str) -> Result<Expr, Fault> {
        let list = [text.as_bytes()];
        let place = self.place();
        Expr::parse(&mut Words::new(&list), place, &self.reg, &mut self.names)
    }

    /// The value of an expression as text; `none`, `later`, or the fault.
    pub(crate) fn value(&mut self, text: &str) -> String {
        let expr = match self.compile(text) {
            Ok(expr) => expr,
            Err(fault) => return format!("fault: {fault}"),
        };
        self.with_env(|env| match expr.eval(env) {
            Ok(value) => {
                let mut out = Vec::new();
                value.append_text(&mut out);
                out.iter().flat_map(|c| std::ascii::escape_default(*c)).map(char::from).collect()
            }
            Err(crate::Miss::None) => "none".into(),
            Err(crate::Miss::Later) => "later".into(),
        })
    }

    /// A condition, parsed.
    pub(crate) fn condition(&mut self, text: &str) -> Condition {
        let list: Vec<&[u8]> = text.split_whitespace().map(str::as_bytes).collect();
        let place = self.place();
        let parsed = Condition::parse(&mut Words::new(&list), place, &self.reg, &mut self.names);
        parsed.unwrap_or_else(|f| panic!("{text}: {f}")).unwrap_or_else(|| panic!("{text}: no condition"))
    }

    /// Whether a condition holds.
    pub(crate) fn holds(&mut self, text: &str) -> Result<crate::cond::Outcome, Fault> {
        let list: Vec<&[u8]> = text.split_whitespace().map(str::as_bytes).collect();
        let place = self.place();
        let condition = Condition::parse(&mut Words::new(&list), place, &self.reg, &mut self.names)?;
        Ok(self.with_env(|env| condition.unwrap().holds(env)))
    }

    /// A format, written.
    pub(crate) fn format(&mut self, text: &str, how: Use) -> String {
        let parsed = match how {
            Use::Log => LogFormat::parse_log(text.as_bytes(), Place::Log, &self.reg, &mut self.names),
            _ => LogFormat::parse(text.as_bytes(), self.place(), &self.reg, &mut self.names),
        };
        let format = match parsed {
            Ok(format) => format,
            Err(fault) => return format!("fault: {fault}"),
        };
        let mut out = Vec::new();
        self.with_env(|env| format.append(env, how, &mut out));
        String::from_utf8_lossy(&out).into_owned()
    }
}
