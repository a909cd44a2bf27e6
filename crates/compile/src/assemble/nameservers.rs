//! `resolvers` sections, finished: name servers over TCP are told how they are connected to.

use std::sync::Arc;

use program::names::Way;
use program::server::ServerTls;
use syntax::Diagnostics;

use super::Assembly;
use crate::draft::ServerDraft;
use crate::resolvers::{self, ResolversDraft};

/// What the lines of a section say, in order.
type Lines = Vec<Option<Box<ServerDraft>>>;

impl Assembly<'_> {
    /// All sections.
    pub(super) fn finish_resolvers(&mut self, mut drafts: Vec<ResolversDraft>, notes: &mut Diagnostics) {
        let lines = drafts.iter_mut().map(|draft| std::mem::take(&mut draft.lines)).collect();
        self.resolvers = resolvers::finish(drafts, notes);
        self.ways_to_nameservers(lines, notes);
        if let Some(before) = self.ground.before {
            self.resolvers.iter_mut().for_each(|section| section.keep(&before.resolvers));
        }
        self.memory.resolvers = self.resolvers.iter().map(|r| r.name.clone()).collect();
    }

    /// Gives the name servers of all sections what their lines say.
    fn ways_to_nameservers(&mut self, sections: Vec<Lines>, notes: &mut Diagnostics) {
        let nobody = crate::server::nobody();
        for (section, lines) in sections.into_iter().enumerate() {
            for (at, line) in lines.into_iter().enumerate() {
                let Some(line) = line else { continue };
                let sni = self.name_of_nobody(&line, &nobody, notes);
                let connector = self.connector(&line, &nobody, false, notes).filter(|_| line.tls.on);
                let alpn = line.tls.words.alpn.clone().unwrap_or_default().into();
                let tls = connector.map(|connector| ServerTls {
                    connector,
                    alpn,
                    npn: false,
                    sni,
                    early: false,
                    auto: false,
                });
                let way = Way { tls, plain: line.plain.clone(), source: line.source.clone() };
                let section = self.resolvers.get_mut(section);
                if let Some(server) = section.and_then(|section| section.servers.get_mut(at)) {
                    server.way = Arc::new(way);
                }
            }
        }
    }
}
