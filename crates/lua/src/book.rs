//! Names that scripts mention while the process runs, found in the program.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use lang::arg::Kind;
use lang::names::{CaptureSlot, Missing, Names};
use lang::words::Fault;
use model::vars::{Scope, VarRef};
use model::{Proxy, Server};
use program::Program;

/// The names of a program, as seen from one proxy.
pub struct Book<'p> {
    /// The program.
    pub program: &'p Arc<Program>,
    /// The proxy at hand.
    pub proxy: u32,
    /// What was nowhere to be found.
    pub missing: Option<String>,
}

impl Book<'_> {
    fn proxy(&self, name: Option<&str>, front: bool) -> Result<Arc<Proxy>, Fault> {
        let Some(name) = name.filter(|n| !n.is_empty()) else {
            return Ok(self.program.proxy(self.proxy).state.clone());
        };
        let fits = |p: &program::Proxy| *p.name == *name && if front { p.is_frontend } else { p.is_backend };
        let found = self.program.present().find(|p| fits(p)).map(|p| p.state.clone());
        let kind = if front { "frontend" } else { "backend" };
        found.ok_or_else(|| Fault::new(format!("unable to find {kind} '{name}' referenced")))
    }
}

impl Names for Book<'_> {
    fn miss(&mut self, missing: Missing) {
        let text = match missing {
            Missing::Argument { text, .. }
            | Missing::Rule(text)
            | Missing::Refusal(text)
            | Missing::Whole(text) => text,
            Missing::Remark(_) => return,
        };
        self.missing.get_or_insert(text);
    }

    fn frontend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.proxy(name, true)
    }

    fn backend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.proxy(name, false)
    }

    fn server(&self, name: &str) -> Result<(Arc<Proxy>, Arc<Server>), Fault> {
        let (proxy, server) = match name.split_once('/') {
            Some((proxy, server)) => (self.program.backend(proxy), server),
            None => (Some(self.proxy), name),
        };
        let found = proxy.and_then(|index| {
            let proxy = self.program.proxy(index);
            let server = proxy.servers.iter().find(|s| *s.state.name == *server)?.state.clone();
            Some((proxy.state.clone(), server))
        });
        found.ok_or_else(|| Fault::new(format!("unable to find server '{name}'")))
    }

    fn variable(&mut self, name: &str) -> Result<VarRef, Fault> {
        let (prefix, rest) = name.split_once('.').unwrap_or((name, ""));
        let scope = Scope::from_prefix(prefix).filter(|_| !rest.is_empty());
        let scope = scope.ok_or_else(|| Fault::new(format!("invalid variable name '{name}'")))?;
        self.program.vars.slot_late(scope, rest).ok_or_else(|| Fault::new("too many variables"))
    }

    fn acl(&mut self, name: &str) -> Result<Arc<lang::Acl>, Fault> {
        Err(Fault::new(format!("no such ACL : '{name}'")))
    }

    fn patterns(
        &mut self,
        reference: &str,
        face: pattern::Face,
        _: bool,
    ) -> Result<Arc<pattern::View>, Fault> {
        let set = self.program.patterns.named(reference).map(|listed| listed.set.clone());
        let set = set.ok_or_else(|| Fault::new(format!("'{reference}' is no map of the configuration")))?;
        set.view(face.kind, face.flags).map(Arc::new).map_err(|e| Fault::new(e.text))
    }

    fn changed(&mut self, reference: &str) -> Arc<OnceLock<Arc<pattern::LiveSet>>> {
        let known = Arc::new(OnceLock::new());
        if let Some(listed) = self.program.patterns.named(reference) {
            let _ = known.set(listed.set.clone());
        }
        known
    }

    fn object(&self, kind: Kind, name: Option<&str>) -> Result<Arc<dyn Any + Send + Sync>, Fault> {
        if kind == Kind::Userlist {
            return Err(Fault::new("user lists can't be named by scripts"));
        }
        let own = self.program.proxy(self.proxy);
        let name = name.unwrap_or(&own.name);
        let found = self.program.tables.iter().find(|t| *t.settings().name == *name).cloned();
        let found = found.ok_or_else(|| Fault::new(format!("unable to find table '{name}' referenced")))?;
        Ok(found)
    }

    fn backend_index(&self, name: &str) -> Result<u32, Fault> {
        self.program.backend(name).ok_or_else(|| Fault::new(format!("no backend '{name}'")))
    }

    fn error_file(&mut self, section: &str, _: u16) -> Result<Option<Arc<[u8]>>, Fault> {
        Err(Fault::new(format!("no section '{section}'")))
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        Err(Fault::new(format!("'{path}' can't be read while the process runs")))
    }

    fn capture(&mut self, _: bool, slot: CaptureSlot) -> Result<u16, Fault> {
        match slot {
            CaptureSlot::Id(id) => Ok(id),
            CaptureSlot::Length(_) => Err(Fault::new("captures are declared in the configuration")),
        }
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        let found = self.program.environment.iter().find(|(n, _)| **n == *name.as_bytes());
        found.map(|(_, value)| value.to_vec())
    }

    fn tls_store(&self) -> Option<Arc<tls::Store>> {
        Some(self.program.tls.clone())
    }

    fn is_http(&self) -> bool {
        self.program.proxy(self.proxy).mode == program::Mode::Http
    }

    fn warn(&mut self, _: String) {}
}
