//! What `cache-use` and `cache-store` do where `rfc9111` is on: whatever the RFC allows is kept, and its
//! server is asked whether it is still good.

use std::sync::Arc;

use ::cache::{Fetch, Found};
use model::cached::{Audience, Cache, Entry, Kept, Stale};
use model::txn::Txn;
use wire::caching::{self, Codings, Varies, standard};
use wire::head::{Head, Known};
use wire::http1::response_body;
use wire::method::Method;

use super::{Use, count, forget_unless, keep};
use crate::action::{Exec, Flow, Need, Reply};
use crate::caching::NamedCache;

impl Use {
    /// Looks for what the request takes.
    pub(super) fn by_the_standard(&self, exec: &mut Exec<'_>, now: u64, waited: bool) -> Flow {
        let txn = &mut *exec.txn;
        let keeps = txn.first_method() == Method::Get;
        let asks = &mut txn.caching.asks;
        let request = standard::Request::of(&txn.req);
        asks.all.copy_from(&txn.req);
        asks.reserved = txn.req.has(Known::Authorization);
        if !waited {
            count(exec.live, |c| &c.lookups);
        }
        let found = self.cache.find(&asks.key, now, |kept| kept.audience.has(asks));
        forget_unless(keeps, &mut asks.key);
        let hit = match &found {
            Found::Fresh(entry) => request.takes(entry.meta.age(now), entry.expires.saturating_sub(now)),
            Found::Stale(entry) => {
                let late = now.saturating_sub(entry.expires);
                entry.meta.stale.allowed && request.takes_late(entry.meta.age(now), late)
            }
            Found::Links(_) | Found::Nothing => false,
        };
        let flow = match found {
            Found::Fresh(entry) | Found::Stale(entry) if hit => self.hit(exec, entry),
            _ if request.only_if_cached => return unavailable(),
            Found::Fresh(entry) => self.ask(exec, entry),
            Found::Stale(entry) => {
                let caching = &mut exec.txn.caching;
                if request.ask || self.waits_for_better(caching, &entry, (now, keeps)) {
                    self.ask(exec, entry)
                } else {
                    self.hit(exec, entry)
                }
            }
            Found::Links(hints) if self.hints && !waited => {
                count(exec.live, |c| &c.hint_hits);
                Flow::Yield(Need::Interim(hints))
            }
            _ if waited || !keeps || request.no_store => Flow::Next,
            _ => self.share(&mut exec.txn.caching),
        };
        if request.no_store {
            exec.txn.caching.asks.key.clear();
        }
        flow
    }

    fn hit(&self, exec: &mut Exec<'_>, entry: Arc<Entry>) -> Flow {
        count(exec.live, |c| &c.hits);
        exec.txn.caching.hit = Some((self.cache.clone(), entry));
        Flow::Next
    }

    /// Has its server asked whether it is still good, unless the client asks such things itself.
    fn ask(&self, exec: &mut Exec<'_>, entry: Arc<Entry>) -> Flow {
        let Txn { req, caching, .. } = &mut *exec.txn;
        let kept = &entry.meta.head;
        let may = req.method_id() == Method::Get && standard::has_validator(kept);
        if may && !standard::is_conditional(req) {
            if standard::ask(req, kept) {
                caching.asking = Some((self.cache.clone(), entry));
            } else {
                standard::unask(req);
            }
        }
        Flow::Next
    }
}

/// What a client gets that wants nothing but what is kept (RFC 9111 section 5.2.1.7).
fn unavailable() -> Flow {
    Flow::Reply(Reply { keep_alive: true, ..Reply::error(504) })
}

/// Forgets what a request has changed elsewhere, as its response says. `key` is that of the request.
pub(super) fn forget_others(cache: &Cache, key: &[u8], res: &Head) {
    let Some(at) = key.iter().position(|byte| *byte == b' ') else { return };
    let (host, target) = key.split_at(at);
    let target = target.strip_prefix(b" ").unwrap_or_default();
    let path = wire::uri::path_and_query(target);
    // It may have been asked of a proxy, or with HTTP/2: then what stands before the path is a part of keys.
    let before = target.get(..target.len() - path.len()).unwrap_or_default();
    for other in standard::changed(res, host, path) {
        cache.forget(&[host, b" ", before, &other].concat());
    }
}

/// Has the response to a GET kept, if it may be.
pub(super) fn store(cache: &NamedCache, exec: &mut Exec<'_>, (now, fetch): (u64, Option<Fetch>)) {
    let txn = &mut *exec.txn;
    let (settings, caching, res) = (cache.store.settings(), &mut txn.caching, &txn.res);
    let Some(life) = standard::allowed(res, now, caching.asks.reserved) else { return };
    let audience = if settings.vary { audience(caching, res) } else { plain(res) };
    let Some(audience) = audience else { return };
    let mut head = res.compact();
    head.remove_all("age");
    for name in standard::unkept_fields(res) {
        head.remove_all(name.as_slice());
    }
    let kept = Kept {
        head,
        trailers: Box::default(),
        framing: response_body(res, Method::Get),
        born: now.saturating_sub(u64::from(standard::age(res).unwrap_or(0))),
        modified: caching::modified(res, now),
        audience,
        stale: Stale::of(settings, life),
    };
    let expires = now + u64::from(life.fresh.min(settings.max_age));
    keep(cache, caching, kept, (expires, fetch));
}

/// `process-vary off`: a response is for everybody, or for nobody.
fn plain(res: &Head) -> Option<Audience> {
    (!res.has("vary")).then(Audience::default)
}

/// Whom a response is for. Of codings counts what the client can read, of other fields what they say.
fn audience(caching: &model::cached::Caching, res: &Head) -> Option<Audience> {
    let mut names = standard::varies(res)?;
    let codings = Codings::of_response(res);
    let by_codings = codings.is_some() && names.iter().any(|name| name == b"accept-encoding");
    if by_codings {
        names.retain(|name| name != b"accept-encoding");
    }
    let varies = Varies { codings: by_codings, ..Varies::default() };
    let asks = &caching.asks;
    let others = names.into_iter().map(|name| {
        let said = standard::said_in(&asks.all, &name);
        (name.into(), said.into())
    });
    Some(Audience { others: others.collect(), ..asks.audience(varies, codings.unwrap_or_default()) })
}
