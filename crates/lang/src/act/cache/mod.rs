//! `cache-use` and `cache-store` (sections 4.3 and 6).
//!
//! The one looks for a response among those that are kept, and notes what the request says that others may
//! depend on; the other decides whether a response is to be kept, and keeps its head as it finds it. The body
//! follows when it goes to the client: [`model::cached::Storing`] waits in the transaction for the engine.

mod standard;

use std::any::Any;
use std::sync::Arc;

use ::cache::{Fetch, Found, Hints};
use model::Counter;
use model::cached::{Audience, Cache, Caching, Entry, Kept, Stale, Storing, stands_in};
use model::figures::CacheCounters;
use wire::caching::standard::Allowed;
use wire::caching::{self, Codings, Freshness};
use wire::head::{Head, Known};
use wire::http1::{Body, response_body};
use wire::method::{Method, Version};

use super::{Parsed, Reading, def};
use crate::Live;
use crate::action::{Action, Exec, Extension, Flow, Need};
use crate::caching::NamedCache;
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

/// Host and target make the key, as they are written. A request without a host has none, unless its target
/// names one. Targets of `https` are those that other requests write without scheme and host: clients of
/// HTTP/2 and of HTTP/1 share what is kept.
pub(crate) fn make_key(req: &Head, key: &mut Vec<u8>) -> bool {
    key.clear();
    let target = req.target();
    let named = wire::uri::authority(target);
    let host = match req.first(Known::Host) {
        Some(host) => host,
        None if named.is_empty() => return false,
        None => named,
    };
    let path = target.strip_prefix(b"https://").and_then(|rest| rest.strip_prefix(host));
    key.extend_from_slice(host);
    // No host has a blank in it.
    key.push(b' ');
    key.extend_from_slice(path.filter(|path| path.starts_with(b"/")).unwrap_or(target));
    true
}

impl Action for Use {
    fn run(&self, exec: &mut Exec<'_>) -> Flow {
        let waited = exec.resumed.is_some() && exec.txn.caching.waited;
        if exec.txn.caching.hit.is_some() || exec.resumed.is_some() && !waited {
            // Another cache has the response; or the links were sent.
            return Flow::Next;
        }
        exec.txn.caching.waited = false;
        let now = seconds(exec);
        let txn = &mut *exec.txn;
        // Caches are about what clients ask for.
        let method = txn.first_method();
        let req = &txn.req;
        let asks = &mut txn.caching.asks;
        if req.version() < Version::HTTP_11 || !make_key(req, &mut asks.key) {
            asks.key.clear();
            return Flow::Next;
        }
        if !matches!(method, Method::Get | Method::Head) {
            // What it may change is forgotten when the server has done it.
            if matches!(method, Method::Options | Method::Trace | Method::Connect) {
                asks.key.clear();
            }
            return Flow::Next;
        }
        let authorized = req.has(Known::Authorization);
        if self.cache.settings().vary {
            asks.accept(req);
        }
        let keeps = method == Method::Get;
        if self.cache.settings().standard {
            return self.by_the_standard(exec, now, waited);
        }
        let asked = caching::asked(req);
        asks.reserved = authorized || asked.unkept;
        if asked.anew || authorized {
            forget_unless(keeps, &mut asks.key);
            return Flow::Next;
        }
        // Who has waited looks once more, for the same.
        if !waited {
            count(exec.live, |c| &c.lookups);
        }
        let found = self.cache.find(&asks.key, now, |kept| kept.audience.has(asks));
        forget_unless(keeps, &mut asks.key);
        match found {
            Found::Fresh(entry) => {
                count(exec.live, |c| &c.hits);
                // Whoever runs the rules serves it when no rule behind this one decides otherwise.
                txn.caching.hit = Some((self.cache.clone(), entry));
                Flow::Next
            }
            Found::Links(hints) if self.hints && !waited => {
                count(exec.live, |c| &c.hint_hits);
                Flow::Yield(Need::Interim(hints))
            }
            Found::Stale(entry) if entry.meta.stale.allowed => {
                if self.waits_for_better(&mut txn.caching, &entry, (now, keeps)) {
                    return Flow::Next;
                }
                count(exec.live, |c| &c.hits);
                txn.caching.hit = Some((self.cache.clone(), entry));
                Flow::Next
            }
            _ if waited || !keeps || asked.unkept => Flow::Next,
            _ => self.share(&mut txn.caching),
        }
    }
}

impl Use {
    /// Whether a request to which an entry that is no longer good would be the answer asks for another one,
    /// because nobody else does, or because it is too old but for what errors are replaced with.
    fn waits_for_better(&self, caching: &mut Caching, entry: &Arc<Entry>, at: (u64, bool)) -> bool {
        let ((now, keeps), stale) = (at, entry.meta.stale);
        if now < entry.expires.saturating_add(u64::from(stale.meanwhile)) {
            if keeps {
                caching.fetch = self.cache.fetch(&caching.asks.key);
            }
            if caching.fetch.is_none() {
                return false;
            }
        }
        if stands_in(entry, now) {
            caching.stale = Some((self.cache.clone(), entry.clone()));
        }
        true
    }

    /// Has this request fetch for others what is not there, or wait for the one that does.
    fn share(&self, caching: &mut Caching) -> Flow {
        let Some(time) = self.cache.settings().wait else { return Flow::Next };
        caching.fetch = self.cache.fetch(&caching.asks.key);
        if caching.fetch.is_some() {
            return Flow::Next;
        }
        caching.waited = true;
        let (cache, key) = (self.cache.clone(), caching.asks.key.clone());
        Flow::Yield(Need::Within(
            time,
            Extension::new(move |_| {
                Box::pin(async move {
                    std::future::poll_fn(|cx| cache.poll_fetched(&key, cx)).await;
                    Box::new(()) as Box<dyn Any>
                })
            }),
        ))
    }
}

/// Counts for the backend, or for the frontend where there is none yet.
fn count(live: &dyn Live, of: fn(&CacheCounters) -> &Counter) {
    let worker = live.worker();
    match live.backend() {
        Some(back) => of(&back.back.counters.of(worker).cache).inc(),
        None => of(&live.frontend().front.counters.of(worker).cache).inc(),
    }
}

/// What answers a HEAD is looked for, and never kept.
fn forget_unless(keeps: bool, key: &mut Vec<u8>) {
    if !keeps {
        key.clear();
    }
}

/// Methods that may change what others ask for.
fn changes(method: Method) -> bool {
    !matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace | Method::Connect)
}

/// `cache-store`: has the response kept if it may be.
fn store(cache: &NamedCache, exec: &mut Exec<'_>) {
    let now = seconds(exec);
    let txn = &mut *exec.txn;
    let method = txn.first_method();
    let (settings, caching) = (cache.store.settings(), &mut txn.caching);
    // Where the response is not kept nobody has to wait for it any longer.
    let fetch = caching.fetch.take_if(|fetch| cache.store.is_fetched_for(fetch));
    let is_new = caching.hit.is_none() && !caching.asks.key.is_empty();
    if is_new && changes(method) && (200..400).contains(&txn.res.status()) {
        cache.store.forget(&caching.asks.key);
        if settings.standard {
            standard::forget_others(&cache.store, &caching.asks.key, &txn.res);
        }
    }
    if settings.standard {
        if is_new && method == Method::Get {
            standard::store(cache, exec, (now, fetch));
        }
        return;
    }
    let is_new = is_new && (!caching.asks.reserved || txn.res.has_token(Known::CacheControl, b"public"));
    if !is_new || method != Method::Get || txn.res.status() != 200 {
        return;
    }
    let Some(audience) = audience(settings.vary, &caching.asks, &txn.res) else { return };
    let lifetime = match Freshness::of(&txn.res, now) {
        Freshness::Never => return,
        Freshness::Unsaid => settings.max_age,
        Freshness::For(seconds) => seconds.min(settings.max_age),
    };
    // What is too long to be kept goes on as it came.
    let framing = response_body(&txn.res, Method::Get);
    let too_long = matches!(framing, Body::Length(length) if length > settings.most() as u64);
    if too_long && settings.hints == Hints::Off {
        return;
    }
    // It was made so long ago; whoever gets it learns that anew.
    let age = caching::age(&txn.res).unwrap_or(0);
    txn.res.remove_all("age");
    let life = Allowed { stale: caching::may_be_stale(&txn.res), ..Allowed::default() };
    let kept = Kept {
        head: txn.res.compact(),
        trailers: Box::default(),
        framing,
        born: now.saturating_sub(u64::from(age)),
        modified: caching::modified(&txn.res, now),
        audience,
        stale: Stale::of(settings, life),
    };
    keep(cache, caching, kept, (now + u64::from(lifetime), fetch));
}

/// Has the body that follows kept with this, until it `expires`; or the links alone.
fn keep(cache: &NamedCache, caching: &mut Caching, kept: Kept, (expires, fetch): (u64, Option<Fetch>)) {
    let (store, key) = (&cache.store, &caching.asks.key);
    let mut hints = Vec::new();
    if store.settings().hints != Hints::Off {
        caching::hints(&kept.head, &mut hints);
    }
    if store.settings().hints == Hints::Only {
        if !hints.is_empty() {
            store.keep_links(key, &hints, expires);
        }
        return;
    }
    let length = match kept.framing {
        Body::Length(length) => Some(length),
        _ => None,
    };
    let around = size_around(&kept.head, kept.framing);
    if let Some(writer) = store.begin(key, around, length).filter(|_| cache.keeps) {
        caching.storing = Some(Box::new(Storing { writer, kept, hints: hints.into(), expires, fetch }));
    }
}

/// Whom a response is for; `None` if it depends on what nobody looks at.
pub(crate) fn audience(vary: bool, asks: &model::cached::Asks, res: &Head) -> Option<Audience> {
    if !vary {
        return (!res.has("vary")).then(Audience::default);
    }
    let varies = caching::varies(res)?;
    let codings = Codings::of_response(res);
    let codings = if varies.codings { codings? } else { codings.unwrap_or_default() };
    Some(asks.audience(varies, codings))
}
