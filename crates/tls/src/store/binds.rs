//! What each `bind` line makes of the certificates it names: a row for each use of a certificate, and out of
//! the rows the table that handshakes look at.

use std::sync::Arc;

use super::certs::{Beside, clash};
use super::{Inner, Store, Trouble};
use crate::files::{self, Identity, Sources};
use crate::forge::Forge;
use crate::server::{self, Acceptor, Entry, Rules, Table};
use crate::sessions::Sessions;
use crate::verify::Trust;
use crate::words::{Verify, Words};

/// What messages and lists call a `bind` line.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// The frontend.
    pub frontend: Box<str>,
    /// `bind ':443' at [file:line]`.
    pub bind: Box<str>,
    /// `file:line`.
    pub place: Box<str>,
}

/// What a `bind` line shows.
#[derive(Clone, Debug)]
pub enum Show {
    /// `crt`, or with `true` `default-crt`: a certificate, a bundle, a folder.
    Certificate(Sources, bool),
    /// A list that the store has.
    List(Box<str>),
}

/// A `bind ... ssl` line.
#[derive(Clone, Debug)]
pub struct BindSpec {
    /// What it is called.
    pub label: Label,
    /// Its settings with those of `global`.
    pub words: Arc<Words>,
    /// What it shows, in order.
    pub shows: Vec<Show>,
    /// Its frontend speaks HTTP: ALPN offers that unasked.
    pub http: bool,
    /// Sessions that may be resumed.
    pub sessions: Sessions,
    /// Bytes of each ClientHello to keep.
    pub captures: usize,
}

/// A `bind` line that uses the store.
#[derive(Debug)]
pub(super) struct BindUse {
    pub spec: BindSpec,
    pub acceptor: Arc<Acceptor>,
    pub rows: Vec<Row>,
}

/// One use of a certificate.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub cert: Box<str>,
    /// Settings of the line with those of the list.
    pub words: Arc<Words>,
    pub filters: Vec<Box<str>>,
    /// `default-crt`, or part of the bundle that comes first.
    pub default: bool,
    /// The list it comes from, and the number of its entry.
    pub from: Option<(Box<str>, u64)>,
    pub entry: Arc<Entry>,
    pub sessions: Sessions,
}

/// A row that is still to be made.
pub(super) struct Draft {
    pub cert: Box<str>,
    pub words: Arc<Words>,
    pub filters: Vec<Box<str>>,
    pub default: bool,
    pub from: Option<(Box<str>, u64)>,
    pub sessions: Sessions,
}

/// What ALPN offers unasked where HTTP is spoken.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

impl Store {
    /// Builds what a `bind` line needs; `forge` makes certificates for names that have none. The line follows
    /// changes from now on. Also tells what of its settings has no effect.
    ///
    /// # Errors
    /// What is wrong, and in which of the things that it shows.
    pub fn bind(
        &self,
        mut spec: BindSpec,
        forge: Option<Forge>,
    ) -> Result<(Arc<Acceptor>, Vec<String>), (usize, Trouble)> {
        let inner = &mut *self.lock();
        inner.resume(&mut spec);
        let strict = spec.words.strict_sni.unwrap_or(false);
        let mut acceptor = Acceptor::new(strict, spec.captures);
        if let Some(forge) = forge {
            acceptor.set_forge(forge);
        }
        let acceptor = Arc::new(acceptor);
        let mut bind = BindUse { acceptor: acceptor.clone(), rows: Vec::new(), spec };
        let mut ignored = Vec::new();
        for (at, show) in bind.spec.shows.clone().iter().enumerate() {
            let drafts = inner.drafts(&bind.spec, show, bind.rows.is_empty()).map_err(|e| (at, e))?;
            for draft in drafts {
                let (row, without) = inner.row(&bind.spec, draft).map_err(|e| (at, e))?;
                ignored.extend(without);
                bind.rows.push(row);
            }
        }
        bind.publish();
        inner.binds.push(bind);
        ignored.dedup();
        Ok((acceptor, ignored))
    }
}

impl BindUse {
    /// Lets handshakes see the rows.
    pub fn publish(&self) {
        let mut table = Table::default();
        for row in &self.rows {
            table.add(row.entry.clone(), &row.filters, row.default);
        }
        self.acceptor.publish(table);
    }

    /// Whether clients that match nothing would get what the row at this index shows, but for `strict-sni`.
    pub fn is_default(&self, index: usize) -> bool {
        self.rows.get(index).is_some_and(|r| index == 0 || r.default || r.filters.iter().any(|f| &**f == "*"))
    }
}

impl Inner {
    /// The rows that a line gets for something that it shows.
    fn drafts(&mut self, spec: &BindSpec, show: &Show, first: bool) -> Result<Vec<Draft>, Trouble> {
        let (sources, default) = match show {
            Show::List(name) => return Ok(self.of_list(spec, name)),
            Show::Certificate(sources, default) => (sources, *default),
        };
        let path = self.full(&sources.certificate);
        let known = self.lists.contains_key(&path);
        if known || !self.certs.contains_key(&path) && base::outside::is_folder(&*path) {
            if !known {
                self.folder(&path)?;
            }
            return Ok(self.of_list(spec, &path));
        }
        let place = format!("\n{}", clash(&path));
        let names = self.named(sources, &place, Beside::Told)?;
        let default = default || first && names.len() > 1 && !spec.words.strict_sni.unwrap_or(false);
        let draft = |cert| Draft {
            cert,
            words: spec.words.clone(),
            filters: Vec::new(),
            default,
            from: None,
            sessions: spec.sessions.clone(),
        };
        Ok(names.into_iter().map(draft).collect())
    }

    /// Loads the certificates of a folder as a list.
    fn folder(&mut self, path: &str) -> Result<(), Trouble> {
        const RESERVED: [&str; 4] = [".key", ".issuer", ".ocsp", ".sctl"];
        let found = files::folder(path, |name| !RESERVED.iter().any(|end| name.ends_with(end)))
            .map_err(|e| format!("unable to scan directory '{path}' : {e}"))?;
        let mut lines = Vec::new();
        for file in found {
            let place = format!("\n{}", clash(&file));
            let cert = self.named(&Sources::plain(&file), &place, Beside::Told)?;
            lines.extend(cert);
        }
        self.make_list(path, lines);
        Ok(())
    }

    fn of_list(&self, spec: &BindSpec, name: &str) -> Vec<Draft> {
        let Some(list) = self.lists.get(name) else { return Vec::new() };
        list.entries.iter().map(|e| self.of_entry(spec, name, e)).collect()
    }

    /// The row of an entry of a list.
    pub(super) fn of_entry(&self, spec: &BindSpec, list: &str, entry: &super::lists::ListEntry) -> Draft {
        let own = entry.words.as_deref();
        // Rules about clients that a line sets for itself have sessions of their own.
        let apart = own.is_some_and(|w| w.verify.is_some() || w.ca_file.is_some() || w.crl_file.is_some());
        Draft {
            cert: entry.cert.clone(),
            words: own.map_or_else(|| spec.words.clone(), |w| Arc::new(w.or(&spec.words))),
            filters: entry.filters.clone(),
            default: false,
            from: Some((list.into(), entry.id)),
            sessions: if apart { spec.sessions.renewed() } else { spec.sessions.clone() },
        }
    }

    /// Makes a row.
    pub(super) fn row(&mut self, spec: &BindSpec, draft: Draft) -> Result<(Row, Vec<String>), Trouble> {
        let identity = self.identity(&draft.cert)?;
        let key = self.trust_key(&draft.words);
        self.read_trust(&key)?;
        let trust = match draft.words.verify {
            Some(Verify::Optional | Verify::Required) => Some(self.trust(&key)?.ok_or(Trouble::Nobody)?),
            _ => None,
        };
        let (entry, ignored) = self.entry(spec, &draft.words, identity, trust, &draft.sessions)?;
        let Draft { cert, words, filters, default, from, sessions } = draft;
        self.note_use(&cert);
        Ok((Row { cert, words, filters, default, from, entry, sessions }, ignored))
    }

    /// What handshakes run for a certificate.
    pub(super) fn entry(
        &self,
        spec: &BindSpec,
        words: &Words,
        identity: Arc<Identity>,
        trust: Option<Arc<Trust>>,
        sessions: &Sessions,
    ) -> Result<(Arc<Entry>, Vec<String>), Trouble> {
        let rules = self.rules(spec, words, trust);
        let (entry, ignored) = server::entry(identity, &rules, sessions).map_err(Trouble::Unusable)?;
        Ok((Arc::new(entry), ignored))
    }

    fn rules(&self, spec: &BindSpec, words: &Words, clients: Option<Arc<Trust>>) -> Rules {
        let unasked = || {
            if spec.http && !self.ground.small_buffers {
                HTTP.map(<[u8]>::to_vec).to_vec()
            } else {
                Vec::new()
            }
        };
        Rules {
            policy: words.policy.clone(),
            alpn: words.alpn.clone().unwrap_or_else(unasked),
            clients,
            required: words.verify == Some(Verify::Required),
            ignored: [words.crt_ignore.unwrap_or_default(), words.ca_ignore.unwrap_or_default()],
            no_ca_names: words.no_ca_names,
            no_tickets: words.no_tickets.unwrap_or(false),
            client_order: words.client_order,
            early_data: if words.early_data { self.ground.early_data } else { 0 },
            ktls: words.ktls.unwrap_or(false),
            keylog: self.ground.keylog,
        }
    }
}
