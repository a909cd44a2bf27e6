//! The world that rules see while they are explained: right after the start, no traffic.

use std::time::{SystemTime, UNIX_EPOCH};

use base::time::{Mono, Wall};
use lang::Env;
use lang::Live;
use lang::env::{Payload, Side, TcpInfo};
use model::proxy::{Listener, Proxy};
use model::{Server, World};
use program::Program;

/// See [`Live`].
pub struct Outside<'p> {
    /// The configuration.
    pub program: &'p Program,
    /// The frontend, as an index of the program.
    pub frontend: u32,
    /// The listener, as an index of the frontend.
    pub listener: u32,
    /// The backend, once chosen.
    pub backend: Option<u32>,
    /// The body.
    pub body: &'p [u8],
}

/// When all of it happens.
pub const NOW: Mono = Mono::from_nanos(1_000_000_000);

/// The date.
pub fn date() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl Live for Outside<'_> {
    fn now(&self) -> Mono {
        NOW
    }

    fn date(&self) -> Wall {
        date()
    }

    fn local_offset(&self, secs: i64) -> i32 {
        rt::sys::local_offset(secs)
    }

    fn random(&self) -> u64 {
        // One request has no need of chance: the same question gets the same answer.
        0x9e37_79b9_7f4a_7c15
    }

    fn worker(&self) -> usize {
        0
    }

    fn world(&self) -> &World {
        &self.program.world
    }

    fn frontend(&self) -> &Proxy {
        &self.program.configured(self.frontend).state
    }

    fn backend(&self) -> Option<&Proxy> {
        Some(&self.program.configured(self.backend?).state)
    }

    fn server(&self) -> Option<&Server> {
        None
    }

    fn listener(&self) -> Option<&Listener> {
        Some(&self.program.configured(self.frontend).binds.get(self.listener as usize)?.state)
    }

    fn default_backend(&self) -> Option<&str> {
        Some(&self.program.configured(self.program.configured(self.frontend).default_backend?).name)
    }

    fn payload(&self, side: Side) -> Payload<'_> {
        match side {
            Side::Request => Payload { data: self.body, complete: true, due: 0 },
            Side::Response => Payload::default(),
        }
    }

    fn tcp_info(&self, _: Side) -> Option<TcpInfo> {
        None
    }

    fn write_unique_id(&self, env: &Env<'_>, out: &mut Vec<u8>) -> bool {
        let format = &self.program.configured(self.frontend).unique_id_format;
        format.as_ref().map(|format| format.append(env, lang::logfmt::Use::Header, out)).is_some()
    }

    fn rule_place(&self, rule: u32) -> Option<(&str, u32)> {
        let (file, line) = *self.program.rule_places.get(rule as usize)?;
        Some((self.program.files.get(usize::from(file))?, line))
    }

    fn node(&self) -> (&str, u32) {
        (&self.program.global.node, std::process::id())
    }
}
