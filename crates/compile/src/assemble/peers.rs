//! `peers` sections, finished.

use std::sync::Arc;

use model::server::Target;
use program::Bind;
use program::peers::{Other, Section, Shared, Tls, Way};
use syntax::{Diagnostic, Diagnostics, Level, Style};

use super::Assembly;
use crate::draft::{Draft, ServerDraft};
use crate::peers::{PeersDraft, reachable};

impl Assembly<'_> {
    /// Those that exchange something.
    pub(super) fn peers(&mut self, drafts: &[PeersDraft], notes: &mut Diagnostics) -> Vec<Section> {
        let mut out = Vec::new();
        drafts.iter().for_each(|draft| super::identity::servers(&draft.proxy, notes));
        for draft in drafts.iter().filter(|d| !d.disabled) {
            if draft.local.is_none() || draft.bind.is_none() {
                let text = format!(
                    "Removing incomplete section 'peers {}' (no peer named '{}').",
                    draft.name, draft.proxy.name
                );
                notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare).settling());
            } else if let Some(section) = self.section(draft, notes) {
                out.push(section);
            }
        }
        out
    }

    fn section(&mut self, draft: &PeersDraft, notes: &mut Diagnostics) -> Option<Section> {
        let (p, local) = (&draft.proxy, draft.local.as_ref()?);
        let bind = self.peers_bind(draft, notes)?;
        let others: Vec<Other> = p
            .servers
            .iter()
            .map(|server| Other {
                name: server.name.clone(),
                target: super::server::target(server, None, p, &self.ground, notes).target,
                way: self.peer_way(server, p, notes),
                group: group(draft, server, notes),
                source: server.source.clone(),
                mptcp: server.plain.mptcp,
                md5sig: server.plain.md5sig.clone(),
                namespace: server.plain.namespace.without_client(),
            })
            .collect();
        let own_way = self.peer_way(local, p, notes);
        if local.shard != 0 {
            let text = format!("Peers section '{}': shard ignored for '{}' local peer", draft.name, p.name);
            notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare).settling());
        }
        let tables = self.shared(&draft.name);
        // Sessions of a section that stays as it is go on, and with them what is known of them.
        let same = |was: &&Section| {
            let names = |of: &[Other]| of.iter().map(|other| other.name.clone()).collect::<Vec<_>>();
            let keys = |of: &[Shared]| of.iter().map(|shared| shared.name.clone()).collect::<Vec<_>>();
            was.name == draft.name
                && names(&was.others) == names(&others)
                && keys(&was.tables) == keys(&tables)
        };
        let known = self.ground.before.and_then(|before| before.peers.iter().find(same));
        let made = || Arc::new(live(&p.name, &bind, &others, &tables));
        let state = known.map_or_else(made, |was| was.state.clone());
        Some(Section {
            name: draft.name.clone(),
            local: p.name.clone(),
            address: reachable(&bind.address),
            bind,
            others,
            own_way,
            groups: draft.groups,
            tables,
            state,
        })
    }

    fn peers_bind(&mut self, draft: &PeersDraft, notes: &mut Diagnostics) -> Option<Bind> {
        let bind = draft.bind.as_ref()?;
        let tls = self.acceptor(bind, &draft.proxy, None, notes);
        let name = bind.name.clone().unwrap_or_else(|| "sock-1".into());
        let state =
            crate::bind::listener(&name, bind.id.unwrap_or(1), bind.guid(0), self.ground.world.workers);
        let mptcp = !bind.mptcp.is_empty();
        let settings = Bind { tls, state: Arc::new(state), mptcp, ..bind.settings.clone() };
        Some(self.sockets.apply(bind.addresses.first()?, settings))
    }

    fn peer_way(&mut self, server: &ServerDraft, p: &Draft, notes: &mut Diagnostics) -> Way {
        let sni = self.name_of_nobody(server, p, notes);
        let connector = self.connector(server, p, false, notes).filter(|_| server.tls.on);
        Way { tls: connector.map(|connector| Tls { connector, sni }), socks4: server.socks4 }
    }

    /// The tables that a section exchanges.
    fn shared(&self, section: &str) -> Vec<Shared> {
        let tables = &self.memory.tables;
        let mine = tables.iter().filter(|t| t.settings().peers.as_deref() == Some(section));
        mine.map(|table| {
            let name = &table.settings().name;
            let own = name.strip_prefix(section).filter(|rest| rest.starts_with('/'));
            let to = table.settings().write_to.as_deref();
            let write_to = to.and_then(|to| tables.iter().find(|t| *t.settings().name == *to));
            Shared { table: table.clone(), name: own.unwrap_or(name).into(), write_to: write_to.cloned() }
        })
        .collect()
    }
}

/// The group of keys that a peer is told of, if there is one of that number. The words are HAProxy's, which
/// calls the peer a local one.
fn group(draft: &PeersDraft, server: &ServerDraft, notes: &mut Diagnostics) -> u32 {
    if server.shard <= draft.groups {
        return server.shard;
    }
    let text = format!(
        "Peers section '{}': shard ignored for '{}' local peer because {} shard value is greater than the section number of shards ({})",
        draft.name, server.name, server.shard, draft.groups
    );
    notes.push(Diagnostic::plain(Level::Warning, text).styled(Style::Bare).settling());
    0
}

/// A section of which nothing is known yet.
fn live(local: &str, bind: &Bind, others: &[Other], tables: &[Shared]) -> model::peers::Section {
    let peer = |name: &str, is_local: bool, address: String| {
        let table = |t: &Shared| model::peers::Table { name: t.name.clone(), ..Default::default() };
        Arc::new(model::peers::Peer {
            name: name.into(),
            local: is_local,
            address: address.into(),
            last_status: model::peers::word("NONE"),
            tables: tables.iter().map(table).collect(),
            ..Default::default()
        })
    };
    let mut peers: Vec<_> = others.iter().map(|o| peer(&o.name, false, told(&o.target))).collect();
    peers.push(peer(local, true, told(&reachable(&bind.address))));
    model::peers::Section { peers, ..Default::default() }
}

fn told(target: &Target) -> String {
    match target {
        Target::Inet(a) => a.to_string(),
        Target::Unix { path, .. } => String::from_utf8_lossy(path).into_owned(),
        Target::None => String::new(),
    }
}
