//! What `cache` sections keep of responses, and what a transaction has to do with them (manual, section 6).

use std::sync::Arc;

use wire::caching::{Accepted, Codings, Varies, is_unchanged, modified, standard};
use wire::head::Head;
use wire::http1::Body;

/// The store of a section.
pub type Cache = cache::Store<Kept>;

/// A whole response.
pub type Entry = cache::Entry<Kept>;

/// What is kept of a response besides its body and its links.
#[derive(Debug)]
pub struct Kept {
    /// The head as `cache-store` found it, without an age.
    pub head: Head,
    /// The fields behind the body as they are written, the empty line included; empty if there are none.
    pub trailers: Box<[u8]>,
    /// How the body was framed.
    pub framing: Body,
    /// When it would have been without age, in seconds since 1970.
    pub born: u64,
    /// When its content was changed last, in seconds since 1970.
    pub modified: u64,
    /// Whom it is for.
    pub audience: Audience,
    /// What it is good for when it is no longer good.
    pub stale: Stale,
}

/// What an entry that is no longer good is good for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stale {
    /// It may answer at all.
    pub allowed: bool,
    /// So many seconds, while one request fetches it anew.
    pub meanwhile: u32,
    /// So many seconds, in place of an error.
    pub on_error: u32,
}

impl Kept {
    /// Seconds since the response was made, at `now`.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.born)
    }

    /// Whether what the client has already is what is kept.
    pub fn is_unchanged(&self, req: &Head) -> bool {
        is_unchanged(req, self.head.first("etag"), self.modified)
    }
}

impl Stale {
    /// That of a response that allows this.
    pub fn of(settings: &cache::Settings, life: standard::Allowed) -> Stale {
        let of = |section: u32, own: u32| if life.stale { section.max(own) } else { 0 };
        Stale {
            allowed: life.stale,
            meanwhile: of(settings.stale_meanwhile, life.meanwhile),
            on_error: of(settings.stale_on_error, life.on_error),
        }
    }
}

/// Whether an entry may stand in for an error at this time, in seconds since 1970 (RFC 5861 section 4).
pub fn stands_in(entry: &Entry, now: u64) -> bool {
    now < entry.expires.saturating_add(u64::from(entry.meta.stale.on_error))
}

/// A field, and what is said in it.
pub type Other = (Box<[u8]>, Box<[u8]>);

/// What requests have to say for a response to be theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// What it depends on.
    pub varies: Varies,
    /// The codings that its content went through.
    pub codings: Codings,
    /// `Referer` of the request that it answered, if it depends on that.
    pub referer: Option<Box<[u8]>>,
    /// `Origin` likewise.
    pub origin: Option<Box<[u8]>>,
    /// Other fields that it depends on, and what that request said in them (`rfc9111`).
    pub others: Box<[Other]>,
}

impl Audience {
    /// Whether it is for a request that says this.
    pub fn has(&self, asks: &Asks) -> bool {
        (!self.varies.codings || asks.codings.take(self.codings))
            && (!self.varies.referer || asks.referer() == self.referer.as_deref())
            && (!self.varies.origin || asks.origin() == self.origin.as_deref())
            && self.others.iter().all(|(name, text)| standard::says(&asks.all, name, text))
    }
}

/// What the request said when its response was looked for. Its memory is used again.
#[derive(Debug, Default)]
pub struct Asks {
    /// Host and target; empty where no rule looked, or the response may not be kept.
    pub key: Vec<u8>,
    /// The client has authenticated itself, or wants nothing to be kept: the response is for others only if
    /// it says so itself (`public`).
    pub reserved: bool,
    codings: Codings,
    fields: Vec<u8>,
    referer: Option<usize>,
    origin: Option<usize>,
    /// All that it said, where that is asked for (`rfc9111`).
    pub all: Head,
}

impl Asks {
    /// Forgets it.
    pub fn clear(&mut self) {
        // What all holds is used only where it was taken anew.
        let Asks { key, reserved, codings, fields, referer, origin, all: _ } = self;
        *reserved = false;
        key.clear();
        fields.clear();
        (*codings, *referer, *origin) = Default::default();
    }

    /// Notes what a response may depend on.
    pub fn accept(&mut self, req: &Head) {
        let said = Accepted::of(req);
        self.fields.clear();
        self.fields.extend_from_slice(said.referer.unwrap_or_default());
        self.fields.extend_from_slice(said.origin.unwrap_or_default());
        self.codings = said.codings;
        (self.referer, self.origin) = (said.referer.map(<[u8]>::len), said.origin.map(<[u8]>::len));
    }

    fn referer(&self) -> Option<&[u8]> {
        self.fields.get(..self.referer?)
    }

    fn origin(&self) -> Option<&[u8]> {
        let start = self.referer.unwrap_or(0);
        self.fields.get(start..start + self.origin?)
    }

    /// Whom a response with these properties is for, if it answers this request.
    pub fn audience(&self, varies: Varies, codings: Codings) -> Audience {
        let kept = |wanted: bool, field: Option<&[u8]>| field.filter(|_| wanted).map(Into::into);
        let (referer, origin) = (kept(varies.referer, self.referer()), kept(varies.origin, self.origin()));
        Audience { varies, codings, referer, origin, others: Box::default() }
    }
}

/// A response that is to be kept when it has come whole.
#[derive(Debug)]
pub struct Storing {
    /// Takes its body.
    pub writer: cache::Writer<Kept>,
    /// The rest of it.
    pub kept: Kept,
    /// Its links.
    pub hints: Box<[u8]>,
    /// Good until then, in seconds since 1970.
    pub expires: u64,
    /// Others wait for it.
    pub fetch: Option<cache::Fetch>,
}

impl Storing {
    /// Keeps the fields behind the body; false if there is no room for them.
    #[must_use]
    pub fn add_trailers(&mut self, trailers: &Head) -> bool {
        let mut text = Vec::new();
        for (_, name, value) in trailers.fields() {
            for part in [name, b": ", value, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
        text.extend_from_slice(b"\r\n");
        let fields = trailers.fields().map(|(_, name, value)| name.len() + value.len() + 4);
        let fits = self.writer.add(fields.sum());
        self.kept.trailers = text.into();
        fits
    }

    /// It is whole, at `now` in seconds since 1970.
    pub fn finish(self, now: u64) {
        let Storing { writer, kept, hints, expires, fetch } = self;
        let audience = kept.audience.clone();
        writer.finish(kept, hints, (now, expires), |other| other.audience == audience);
        // Who looks now finds it.
        drop(fetch);
    }
}

/// Brings `entry` up to date with a 304 that its server answered at `now`, in seconds since 1970. Where it is
/// not to be kept any longer it is good for this one answer.
pub fn renew(cache: &Cache, entry: &Arc<Entry>, with: &Head, now: u64) -> Arc<Entry> {
    let old = &entry.meta;
    let mut head = old.head.compact();
    head.set_limit(usize::MAX);
    standard::update(&mut head, with);
    let allowed = standard::allowed(&head, now, false);
    let life = allowed.unwrap_or_default();
    let born = now.saturating_sub(standard::age(&head).unwrap_or(0).into());
    head.remove_all("age");
    let size = (entry.size() + head.counted_len()).saturating_sub(old.head.counted_len());
    let kept = Kept {
        trailers: old.trailers.clone(),
        framing: old.framing,
        born,
        modified: modified(&head, now),
        audience: old.audience.clone(),
        stale: Stale::of(cache.settings(), life),
        head,
    };
    let fresh = life.fresh.min(cache.settings().max_age);
    let new = cache.renew(entry, kept, size, now + u64::from(fresh));
    if allowed.is_none() {
        cache.forget(new.key());
    }
    new
}

/// What a transaction has to do with caches.
#[derive(Debug, Default)]
pub struct Caching {
    /// What its request said.
    pub asks: Asks,
    /// The cache that answers it, and with what.
    pub hit: Option<(Arc<Cache>, Arc<Entry>)>,
    /// Its server is asked whether this is still good; the request has the fields for that.
    pub asking: Option<(Arc<Cache>, Arc<Entry>)>,
    /// What may answer it in place of an error.
    pub stale: Option<(Arc<Cache>, Arc<Entry>)>,
    /// Its response is being kept.
    pub storing: Option<Box<Storing>>,
    /// It has waited for another one to fetch it.
    pub waited: bool,
    /// It fetches what others wait for.
    pub fetch: Option<cache::Fetch>,
}

impl Caching {
    /// Forgets all of it.
    pub fn clear(&mut self) {
        let Caching { asks, hit, asking, stale, storing, waited, fetch } = self;
        asks.clear();
        (*hit, *asking, *stale, *storing, *waited, *fetch) = Default::default();
    }
}
