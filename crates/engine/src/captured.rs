//! Messages that could not be parsed, kept for `show errors`.

use model::Peer;
use rt::Wall;

/// Bytes kept of a bad message.
pub const KEPT: usize = 16384;

/// A proxy or a server, as it was called then.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name.
    pub name: Box<str>,
    /// Its numeric id.
    pub id: u32,
}

impl Named {
    /// Of a proxy.
    pub fn proxy(proxy: &program::Proxy) -> Named {
        Named { name: proxy.name.clone(), id: proxy.state.id }
    }

    /// Of a server.
    pub fn server(server: &program::Server) -> Named {
        Named { name: (&*server.name).into(), id: server.state.id }
    }
}

/// One bad message.
#[derive(Clone, Debug)]
pub struct Captured {
    /// It was a response.
    pub response: bool,
    /// When.
    pub date: Wall,
    /// Frontend.
    pub frontend: Named,
    /// Backend. It and the server may have been deleted since.
    pub backend: Option<Named>,
    /// Server.
    pub server: Option<Named>,
    /// Client.
    pub src: Peer,
    /// Number of the connection.
    pub session: u64,
    /// Where the parser stopped.
    pub position: usize,
    /// What the parser was reading.
    pub state: &'static str,
    /// What is wrong.
    pub text: &'static str,
    /// What was received.
    pub bytes: Box<[u8]>,
}
