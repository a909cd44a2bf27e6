//! Names as a message of an agent sees them: those of the proxy, but ACLs of its own.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use lang::arg::Kind;
use lang::env::Side;
use lang::names::{CaptureSlot, Missing};
use lang::parse::{predefined, predefined_names};
use lang::{Acl, Fault, Names, Registry};
use model::vars::VarRef;
use model::{Proxy, Server};
use pattern::{Face, LiveSet, View};

/// The names of a message.
pub struct Scoped<'n> {
    /// Those of the proxy.
    pub names: &'n mut dyn Names,
    /// All entries.
    pub registry: &'n Registry,
    /// The ACLs of the message, those of one name together.
    pub acls: HashMap<Box<str>, Arc<Acl>>,
}

impl Names for Scoped<'_> {
    fn acl(&mut self, name: &str) -> Result<Arc<Acl>, Fault> {
        if let Some(acl) = self.acls.get(name) {
            return Ok(acl.clone());
        }
        let registry = self.registry;
        if predefined_names().any(|known| known == name)
            && let Some(acl) = predefined(name, registry, self)
        {
            self.acls.insert(name.into(), acl.clone());
            return Ok(acl);
        }
        Err(Fault::new(format!("no such ACL : '{name}'")))
    }

    fn miss(&mut self, missing: Missing) {
        self.names.miss(missing);
    }

    fn frontend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.names.frontend(name)
    }

    fn backend(&self, name: Option<&str>) -> Result<Arc<Proxy>, Fault> {
        self.names.backend(name)
    }

    fn server(&self, name: &str) -> Result<(Arc<Proxy>, Arc<Server>), Fault> {
        self.names.server(name)
    }

    fn variable(&mut self, name: &str) -> Result<VarRef, Fault> {
        self.names.variable(name)
    }

    fn patterns(&mut self, reference: &str, face: Face, map: bool) -> Result<Arc<View>, Fault> {
        self.names.patterns(reference, face, map)
    }

    fn inline(&mut self, criterion: &str, number: Option<u32>) -> Result<Arc<LiveSet>, Fault> {
        self.names.inline(criterion, number)
    }

    fn changed(&mut self, reference: &str) -> Arc<OnceLock<Arc<LiveSet>>> {
        self.names.changed(reference)
    }

    fn object(&self, kind: Kind, name: Option<&str>) -> Result<Arc<dyn Any + Send + Sync>, Fault> {
        self.names.object(kind, name)
    }

    fn backend_index(&self, name: &str) -> Result<u32, Fault> {
        self.names.backend_index(name)
    }

    fn mirror(&self, name: &str) -> Result<(Arc<Proxy>, u32), Fault> {
        self.names.mirror(name)
    }

    fn resolvers(&self, name: &str) -> Result<u32, Fault> {
        self.names.resolvers(name)
    }

    fn error_file(&mut self, section: &str, status: u16) -> Result<Option<Arc<[u8]>>, Fault> {
        self.names.error_file(section, status)
    }

    fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        self.names.read_file(path)
    }

    fn capture(&mut self, response: bool, slot: CaptureSlot) -> Result<u16, Fault> {
        self.names.capture(response, slot)
    }

    fn capture_length(&self, response: bool, id: u16) -> Option<usize> {
        self.names.capture_length(response, id)
    }

    fn stick_counters(&self) -> usize {
        self.names.stick_counters()
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        self.names.environment(name)
    }

    fn tls_store(&self) -> Option<Arc<tls::Store>> {
        self.names.tls_store()
    }

    fn is_http(&self) -> bool {
        self.names.is_http()
    }

    fn lacks(&self, side: Side) -> bool {
        self.names.lacks(side)
    }

    fn owner(&self) -> String {
        self.names.owner()
    }

    fn warn(&mut self, text: String) {
        // Conditions of messages may look at what is not there at their event: HAProxy says nothing of it.
        if !text.contains("incompatible with '") {
            self.names.warn(text);
        }
    }
}
