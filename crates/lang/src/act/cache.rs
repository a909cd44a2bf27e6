//! `cache-use` and `cache-store` (sections 4.3 and 6).
//!
//! The one looks for a response among those that are kept, and notes what the request says that others may
//! depend on; the other decides whether a response is to be kept, and keeps its head as it finds it. The body
//! follows when it goes to the client: [`model::cached::Storing`] waits in the transaction for the engine.

use std::sync::Arc;

use ::cache::{Found, Hints};
use model::cached::{Audience, Cache, Kept, Storing};
use wire::caching::{self, Codings, Freshness};
use wire::head::{Head, Known};
use wire::http1::{Body, response_body};
use wire::method::{Method, Version};

use super::{Parsed, Reading, def};
use crate::action::{Action, Exec, Flow, Need};
use crate::names::Names;
use crate::registry::{ActionDef, ActionPlace, Registry, Sets};
use crate::words::{Fault, Words};

pub(super) const ACTIONS: &[ActionDef] = &[
    def(
        "cache-store",
        Sets::HTTP_RES,
        parse_store,
        "Keeps the response in a cache, if it may be kept.",
        "cache-store small",
    ),
    def(
        "cache-use",
        Sets::HTTP_REQ,
        parse_use,
        "Answers from a cache, if that has the response.",
        "cache-use small",
    ),
];

/// A cache as the rules of a proxy name it.
#[derive(Clone)]
pub struct NamedCache {
    /// The cache.
    pub store: Arc<Cache>,
    /// Its filter is at work: `filter-sequence` does not leave it out.
    pub keeps: bool,
}

/// An entry of a head takes so many bytes more than HAProxy counts for its parts; the same holds for a piece
/// of body and each field behind it.
const BLOCK: usize = 4;

/// Bytes of a response without its body as caches count them.
fn size_around(head: &Head, framing: Body) -> usize {
    let behind = match framing {
        Body::None => 0,
        Body::Chunked => 2 * BLOCK + 1,
        Body::Length(_) | Body::UntilClose => BLOCK,
    };
    head.counted_len() + BLOCK * (head.len() + 2) + behind
}

fn name_of(reading: &mut Reading<'_, '_>) -> Result<String, Fault> {
    const MISSING: &str = "expects a cache name";
    if reading.is_over() {
        return Err(Fault::new(MISSING).at(reading.words.position().saturating_sub(1)));
    }
    reading.word(MISSING)
}

fn parse_use(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let name = name_of(&mut reading)?;
    let hints = !reading.words.take_if("no-early-hints");
    match reading.names.cache(&name) {
        Some(cache) => Ok(Box::new(Use { cache: cache.store, hints })),
        None => super::step(|_| Flow::Next),
    }
}

fn parse_store(words: &mut Words<'_>, at: &ActionPlace, reg: &Registry, names: &mut dyn Names) -> Parsed {
    let mut reading = Reading { words, at, reg, names };
    let name = name_of(&mut reading)?;
    match reading.names.cache(&name) {
        Some(cache) => super::step(move |exec| {
            store(&cache, exec);
            Flow::Next
        }),
        None => super::step(|_| Flow::Next),
    }
}

/// `cache-use`.
struct Use {
    cache: Arc<Cache>,
    hints: bool,
}

/// Seconds since 1970.
fn seconds(exec: &Exec<'_>) -> u64 {
    exec.live.date().as_secs()
}

/// Host and target make the key, as they are written. A request without a host has none.
fn make_key(req: &Head, key: &mut Vec<u8>) -> bool {
    key.clear();
    let Some(host) = req.first(Known::Host) else { return false };
    key.extend_from_slice(host);
    // No host has a blank in it.
    key.push(b' ');
    key.extend_from_slice(req.target());
    true
}

impl Action for Use {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        if exec.resumed.is_some() || exec.txn.caching.hit.is_some() {
            // The links were sent; or another cache has the response.
            return Flow::Next;
        }
        let now = seconds(exec);
        let txn = &mut *exec.txn;
        let req = &txn.req;
        let asks = &mut txn.caching.asks;
        if req.version() < Version::HTTP_11 || !make_key(req, &mut asks.key) {
            asks.key.clear();
            return Flow::Next;
        }
        let method = req.method_id();
        if !matches!(method, Method::Get | Method::Head) {
            if !matches!(method, Method::Options | Method::Trace | Method::Connect) {
                self.cache.forget(&asks.key);
            }
            asks.key.clear();
            return Flow::Next;
        }
        if req.has(Known::Authorization) {
            asks.key.clear();
            return Flow::Next;
        }
        if self.cache.settings().vary {
            asks.accept(req);
        }
        if caching::asked(req).anew {
            forget_head(method, &mut asks.key);
            return Flow::Next;
        }
        let counters = |count: fn(&model::figures::CacheCounters) -> &model::Counter| {
            let worker = exec.live.worker();
            match exec.live.backend() {
                Some(back) => count(&back.back.counters.of(worker).cache).inc(),
                None => count(&exec.live.frontend().front.counters.of(worker).cache).inc(),
            }
        };
        counters(|c| &c.lookups);
        let found = self.cache.find(&asks.key, now, |kept| kept.audience.has(asks));
        forget_head(method, &mut asks.key);
        match found {
            Found::Fresh(entry) => {
                counters(|c| &c.hits);
                // Whoever runs the rules serves it when no rule behind this one decides otherwise.
                txn.caching.hit = Some((self.cache.clone(), entry));
                Flow::Next
            }
            Found::Links(hints) if self.hints => {
                counters(|c| &c.hint_hits);
                Flow::Yield(Need::Interim(hints))
            }
            _ => Flow::Next,
        }
    }
}

/// What answers a HEAD is looked for, and never kept.
fn forget_head(method: Method, key: &mut Vec<u8>) {
    if method == Method::Head {
        key.clear();
    }
}

/// `cache-store`: has the response kept if it may be.
fn store(cache: &NamedCache, exec: &mut Exec<'_>) {
    let now = seconds(exec);
    let txn = &mut *exec.txn;
    let (settings, caching) = (cache.store.settings(), &mut txn.caching);
    let is_new = caching.hit.is_none() && !caching.asks.key.is_empty();
    if !is_new || txn.req.method_id() != Method::Get || txn.res.status() != 200 {
        return;
    }
    let Some(audience) = audience(settings.vary, &caching.asks, &txn.res) else { return };
    let lifetime = match Freshness::of(&txn.res, now) {
        Freshness::Never => return,
        Freshness::Unsaid => settings.max_age,
        Freshness::For(seconds) => seconds.min(settings.max_age),
    };
    let mut hints = Vec::new();
    if settings.hints != Hints::Off {
        caching::hints(&txn.res, &mut hints);
    }
    // It was made so long ago; whoever gets it learns that anew.
    let age = caching::age(&txn.res).unwrap_or(0);
    txn.res.remove_all("age");
    let expires = now + u64::from(lifetime);
    if settings.hints == Hints::Only {
        if !hints.is_empty() {
            cache.store.keep_links(&caching.asks.key, &hints, expires);
        }
        return;
    }
    let framing = response_body(&txn.res, Method::Get);
    let length = match framing {
        Body::Length(length) => Some(length),
        _ => None,
    };
    let around = size_around(&txn.res, framing);
    let Some(writer) = cache.store.begin(&caching.asks.key, around, length).filter(|_| cache.keeps) else {
        return;
    };
    let kept = Kept {
        head: txn.res.compact(),
        trailers: Box::default(),
        framing,
        born: now.saturating_sub(u64::from(age)),
        modified: caching::modified(&txn.res, now),
        audience,
    };
    caching.storing = Some(Box::new(Storing { writer, kept, hints: hints.into(), expires }));
}

/// Whom a response is for; `None` if it depends on what nobody looks at.
fn audience(vary: bool, asks: &model::cached::Asks, res: &Head) -> Option<Audience> {
    if !vary {
        return (!res.has("vary")).then(Audience::default);
    }
    let varies = caching::varies(res)?;
    let codings = Codings::of_response(res);
    let codings = if varies.codings { codings? } else { codings.unwrap_or_default() };
    Some(asks.audience(varies, codings))
}
