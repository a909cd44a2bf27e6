//! What applications of FastCGI want of each request (manual, section 10): their rules, and the filter that
//! runs them.
//!
//! The rules of an application look at a request when its head has its final form, before a server is
//! reached: fields that are private, or mean nothing beyond one connection, are taken out unless the
//! application asks for them, and the parameters that rules set are kept beside the head
//! ([`Decisions::params`](model::txn::Decisions)). Whoever speaks to the server adds those that a head
//! implies.

use std::sync::Arc;

use model::txn::Params;
use wire::head::{Head, Known};

use crate::action::{Exec, Flow};
use crate::cond::{Condition, Outcome};
use crate::env::Env;
use crate::filter::{Filter, Maker, Moment, Moments};
use crate::logfmt::{LogFormat, Use};

/// An application: the section `fcgi-app`, compiled.
pub struct App {
    /// Its name.
    pub name: Box<str>,
    /// `docroot`.
    pub docroot: Box<[u8]>,
    /// `index`.
    pub index: Option<Box<[u8]>>,
    /// `path-info`.
    pub path_info: Option<pattern::Regex>,
    /// `pass-header`. Names that nothing takes out need not be let through: they are [`Known::Other`].
    pub pass: Vec<(Known, Option<Condition>)>,
    /// `set-param`.
    pub set: Vec<SetParam>,
    /// `option get-values`.
    pub get_values: bool,
    /// `option keep-conn`.
    pub keep_conn: bool,
    /// `option mpxs-conns`.
    pub mpxs_conns: bool,
    /// Requests that a connection carries at a time: `option max-reqs`, or one without `option mpxs-conns`.
    pub most: u32,
}

/// `set-param`.
pub struct SetParam {
    /// Name of the parameter as the application sees it.
    pub name: Box<[u8]>,
    /// Its value; an empty one sets nothing.
    pub value: LogFormat,
    /// When it is set.
    pub condition: Option<Condition>,
}

/// What no application gets unasked.
const PRIVATE: [Known; 6] = [
    Known::Authorization,
    Known::ProxyAuthorization,
    Known::Connection,
    Known::KeepAlive,
    Known::Te,
    Known::Upgrade,
];

/// The name of a parameter: letters in upper case, underscores for hyphens.
pub fn param_name(name: &[u8]) -> Box<[u8]> {
    name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }).collect()
}

fn holds(condition: Option<&Condition>, env: &Env<'_>) -> bool {
    condition.is_none_or(|condition| condition.holds(env) == Outcome::Yes)
}

impl App {
    /// Runs the rules on a request.
    pub fn prepare(&self, exec: &mut Exec<'_>) {
        let mut params = Params::new();
        let shown_to = if exec.txn.for_proxy { Known::ProxyAuthorization } else { Known::Authorization };
        credentials(&exec.txn.req, shown_to, &mut params);
        let env = exec.env();
        let passes = |(name, condition): &(Known, Option<Condition>), field| {
            *name == field && holds(condition.as_ref(), &env)
        };
        let passed = PRIVATE.map(|field| self.pass.iter().any(|pass| passes(pass, field)));
        let mut value = Vec::new();
        for rule in &self.set {
            if !holds(rule.condition.as_ref(), &env) {
                continue;
            }
            value.clear();
            rule.value.append(&env, Use::Value, &mut value);
            if !value.is_empty() {
                put(&mut params, &rule.name, &value);
            }
        }
        for (field, _) in PRIVATE.into_iter().zip(passed).filter(|(_, passed)| !passed) {
            exec.txn.req.remove_all(field);
        }
        exec.txn.decisions.params = params;
    }
}

/// Sets a parameter; they are kept in the order of their names.
pub fn put(params: &mut Params, name: &[u8], value: &[u8]) {
    match params.binary_search_by(|(known, _)| (**known).cmp(name)) {
        Ok(at) => {
            if let Some(param) = params.get_mut(at) {
                param.1 = value.into();
            }
        }
        Err(at) => params.insert(at, (name.into(), value.into())),
    }
}

/// What the credentials in `field` say of the user.
fn credentials(req: &Head, field: Known, params: &mut Params) {
    let Some(field) = req.first(field) else { return };
    let Some(blank) = field.iter().position(|byte| *byte == b' ') else { return };
    let (scheme, rest) = field.split_at(blank);
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") && !rest.is_empty() {
        put(params, b"AUTH_TYPE", b"Bearer");
    }
    if scheme.eq_ignore_ascii_case(b"basic")
        && let Some(plain) = base::base64::decode(rest)
        && let Some(colon) = plain.iter().position(|byte| *byte == b':')
    {
        put(params, b"AUTH_TYPE", b"Basic");
        let user = plain.get(..colon).filter(|user| !user.is_empty());
        user.into_iter().for_each(|user| put(params, b"REMOTE_USER", user));
    }
}

/// `filter fcgi-app`, or `use-fcgi-app` alone.
pub struct Line(pub Arc<App>);

impl Maker for Line {
    fn begin(&self, _: &mut Exec<'_>) -> Option<Box<dyn Filter>> {
        Some(Box::new(Preparing { app: self.0.clone(), done: false }))
    }
}

/// The rules of an application for one stream.
struct Preparing {
    app: Arc<App>,
    /// What was taken out is gone when the request is sent anew.
    done: bool,
}

impl Filter for Preparing {
    fn moments(&self) -> Moments {
        Moments::NONE.with(Moment::RequestHead)
    }

    fn meet(&mut self, moment: Moment, exec: &mut Exec<'_>) -> Flow {
        if moment == Moment::RequestHead && !std::mem::replace(&mut self.done, true) {
            self.app.prepare(exec);
        }
        Flow::Next
    }
}
