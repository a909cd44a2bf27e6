//! `spoe-agent` (SPOE.txt, section 2.2).

use std::time::Duration;

use base::units::{self, TimeError, Unit};
use lang::Names;
use lang::names::Loggers;
use wire::spop::{LEAST_FRAME, PREFIX};

use super::{Wrong, add, alone, odd, wrong};
use crate::ack::is_name;

/// The section while it is read.
pub struct Draft {
    /// Its name.
    pub name: String,
    /// Its line.
    pub line: usize,
    /// `messages`
    pub messages: Vec<String>,
    /// `groups`
    pub groups: Vec<String>,
    /// `use-backend`
    pub backend: Option<String>,
    /// `timeout processing`
    pub timeout: Option<Duration>,
    /// `max-frame-size`
    pub most: usize,
    /// The largest that may be.
    largest: usize,
    /// `option pipelining`
    pub pipelining: bool,
    /// `option continue-on-error`
    pub continues: bool,
    /// `option dontlog-normal`
    pub logs_errors_only: bool,
    /// `option force-set-var`
    pub forces: bool,
    /// `option set-on-error`
    pub error: Option<String>,
    /// `option set-process-time`
    pub process_time: Option<String>,
    /// `option set-total-time`
    pub total_time: Option<String>,
    /// `option var-prefix`
    pub prefix: Option<String>,
    /// `register-var-names`
    pub registered: Vec<String>,
    /// `log` lines, each behind `no` or not.
    pub logs: Vec<(bool, Vec<Vec<u8>>)>,
}

impl Draft {
    /// Nothing is said yet. `buffer` is the size of a buffer, in bytes.
    pub fn new(name: String, line: usize, buffer: usize) -> Draft {
        let largest = buffer.saturating_sub(PREFIX);
        Draft {
            name,
            line,
            messages: Vec::new(),
            groups: Vec::new(),
            backend: None,
            timeout: None,
            most: largest,
            largest,
            pipelining: true,
            continues: false,
            logs_errors_only: false,
            forces: false,
            error: None,
            process_time: None,
            total_time: None,
            prefix: None,
            registered: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// One of its lines.
    pub fn line(&mut self, list: &[&str], off: bool, names: &mut dyn Names) -> Result<(), Wrong> {
        let keyword = list.first().copied().unwrap_or_default();
        let value = list.get(1).copied().filter(|value| !value.is_empty());
        match keyword {
            "groups" => add(&mut self.groups, list.get(1..).unwrap_or_default(), "group"),
            "messages" => add(&mut self.messages, list.get(1..).unwrap_or_default(), "message"),
            "use-backend" => {
                let Some(value) = value else { return wrong("'use-backend' expects a backend name.") };
                alone(list, 1)?;
                self.backend = Some(value.to_owned());
                Ok(())
            }
            "timeout" => self.timeout(list),
            "option" => self.option(list, off),
            // What they limited is the backend's business now.
            "maxconnrate" | "maxerrrate" | "max-waiting-frames" => match value {
                Some(_) => Ok(()),
                None => wrong(format!("'{keyword}' expects an integer argument.")),
            },
            "max-frame-size" => {
                let Some(value) = value else {
                    return wrong("'max-frame-size' expects an integer argument.");
                };
                alone(list, 1)?;
                let size = value.parse().ok().filter(|size| (LEAST_FRAME..=self.largest).contains(size));
                let Some(size) = size else {
                    let most = self.largest;
                    return wrong(format!(
                        "'max-frame-size' expects a positive integer argument in the range [{LEAST_FRAME}, {most}]."
                    ));
                };
                self.most = size;
                Ok(())
            }
            "register-var-names" => {
                if value.is_none() {
                    return wrong("'register-var-names' expects one or more variable names.");
                }
                self.registered.extend(list.iter().skip(1).map(|&name| name.to_owned()));
                Ok(())
            }
            "log" => self.log(list, off, names),
            other => wrong(format!("unknown keyword '{other}' in spoe-agent section.")),
        }
    }

    /// A `log` line: its faults are told with it.
    fn log(&mut self, list: &[&str], off: bool, names: &mut dyn Names) -> Result<(), Wrong> {
        let words: Vec<Vec<u8>> = list.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.logs.push((off, words));
        let last = self.logs.len().saturating_sub(1);
        let tried = self.loggers(names);
        match tried {
            Err((number, why)) if number == last => {
                self.logs.pop();
                wrong(why)
            }
            _ => Ok(()),
        }
    }

    /// What comes of its `log` lines.
    pub fn loggers(&self, names: &mut dyn Names) -> Result<Loggers, (usize, String)> {
        names.loggers(&self.logs, &format!("spoe-agent section '{}'", self.name))
    }

    fn timeout(&mut self, list: &[&str]) -> Result<(), Wrong> {
        match list.get(1).copied().unwrap_or_default() {
            "" => return wrong("'timeout' expects 'hello', 'idle' and 'processing'."),
            // Those of the backend hold in their place.
            "hello" | "idle" => return Ok(()),
            "processing" => {}
            other => return wrong(format!("'timeout' supports 'processing' (got {other}).")),
        }
        let Some(value) = list.get(2).copied().filter(|value| !value.is_empty()) else {
            return wrong("'timeout processing' expects an integer value (in milliseconds).");
        };
        alone(list, 2)?;
        match units::time(value, Unit::Millisecond) {
            Ok(millis) => {
                self.timeout = Some(Duration::from_millis(millis.into())).filter(|time| !time.is_zero());
                Ok(())
            }
            Err(TimeError::Overflow) => odd(format!(
                "timer overflow in argument <{value}> to <timeout processing>, maximum value is 2147483647 ms (~24.8 days)."
            )),
            Err(_) => {
                let c = value.chars().find(|c| !c.is_ascii_digit()).unwrap_or('0');
                wrong(format!("unexpected character '{c}' in 'timeout processing'."))
            }
        }
    }

    fn option(&mut self, list: &[&str], off: bool) -> Result<(), Wrong> {
        let name = list.get(1).copied().unwrap_or_default();
        let switch = match name {
            "" => return odd("'option' expects an option name."),
            "pipelining" => Some(&mut self.pipelining),
            "dontlog-normal" => Some(&mut self.logs_errors_only),
            "async" | "send-frag-payload" => {
                // Gone from the protocol.
                return alone(list, 1);
            }
            _ => None,
        };
        if let Some(switch) = switch {
            alone(list, 1)?;
            *switch = !off;
            return Ok(());
        }
        if off {
            return odd(format!("negation is not supported for option '{name}'."));
        }
        let to = match name {
            "continue-on-error" | "force-set-var" => {
                alone(list, 1)?;
                let switch = if name == "force-set-var" { &mut self.forces } else { &mut self.continues };
                *switch = true;
                return Ok(());
            }
            "set-on-error" => &mut self.error,
            "set-process-time" => &mut self.process_time,
            "set-total-time" => &mut self.total_time,
            "var-prefix" => &mut self.prefix,
            _ => return odd(format!("option '{name}' is not supported.")),
        };
        let Some(value) = list.get(2).copied().filter(|value| !value.is_empty()) else {
            return odd(format!("'option {name}' expects a value."));
        };
        alone(list, 2)?;
        if !is_name(value.as_bytes()) {
            return odd(format!("'option {name}' only supports [a-zA-Z0-9_.] chars."));
        }
        *to = Some(value.to_owned());
        Ok(())
    }
}
