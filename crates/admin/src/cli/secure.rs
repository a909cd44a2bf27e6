//! TLS on sockets of the runtime API.
//!
//! Commands are answered on a plain socket, whose descriptor can be given away and whose end can be awaited.
//! Behind a handshake that socket is one end of a pair, and a task carries what is said between the other end
//! and the client.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use link::handshake;
use link::transport::Transport;
use rt::{Socket, Timer};
use tls::stream::Sizes;
use tls::{Acceptor, Handshake};

/// How much is carried at once.
const PIECE: usize = 16 * 1024;

/// Shakes hands with a client and returns the plain end. `input` has come already; `None`: there is no TLS.
pub async fn accept(
    mut transport: Transport,
    acceptor: &Arc<Acceptor>,
    sizes: Sizes,
    input: &[u8],
    timer: &mut Timer,
) -> Option<Socket> {
    let begun = Handshake::accept(acceptor.clone(), input);
    let (stream, _) = handshake::accept(sizes, transport.raw(), begun, timer, || false).await.ok()?;
    transport.secure(*stream, None);
    let (near, far) = Socket::pair().ok()?;
    rt::spawn(carry(transport, far));
    Some(near)
}

/// Carries both ways until nobody answers any more, or the client is gone.
async fn carry(client: Transport, inner: Socket) {
    let (mut up, mut down) = (Way::new(), Way::new());
    poll_fn(|cx| {
        let mut hear = |cx: &mut Context<'_>, buf: &mut [u8]| client.poll_recv(cx, buf);
        let mut pass = |cx: &mut Context<'_>, data: &[u8]| inner.poll_send(cx, data, false);
        match up.poll(cx, &mut hear, &mut pass) {
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(true)) => drop(inner.shutdown_write()),
            Poll::Ready(Ok(false)) | Poll::Pending => {}
        }
        let mut hear = |cx: &mut Context<'_>, buf: &mut [u8]| inner.poll_recv(cx, buf);
        let mut pass = |cx: &mut Context<'_>, data: &[u8]| client.poll_send(cx, data, false);
        match down.poll(cx, &mut hear, &mut pass) {
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(true)) => drop(client.shutdown_write()),
            Poll::Ready(Ok(false)) | Poll::Pending => {}
        }
        // What the client still says is read as long as the other end is there: closing in front of it would
        // reset the connection, and the answer with it.
        match (up.ended, down.ended) {
            (true, true) => Poll::Ready(()),
            (false, true) => inner.poll_broken(cx),
            _ => Poll::Pending,
        }
    })
    .await;
}

/// Reads from where a direction begins, and writes to where it ends.
type Hear<'f> = dyn FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>> + 'f;
type Pass<'f> = dyn FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>> + 'f;

/// One direction.
struct Way {
    bytes: Vec<u8>,
    /// What of them waits to be passed on.
    waits: std::ops::Range<usize>,
    ended: bool,
}

impl Way {
    fn new() -> Way {
        Way { bytes: vec![0; PIECE], waits: 0..0, ended: false }
    }

    /// Carries what there is. Ready at the end: `true` when it is seen first.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        hear: &mut Hear<'_>,
        pass: &mut Pass<'_>,
    ) -> Poll<io::Result<bool>> {
        while !self.ended {
            if self.waits.is_empty() {
                let heard = ready!(hear(cx, &mut self.bytes))?;
                self.waits = 0..heard;
                self.ended = heard == 0;
                if self.ended {
                    return Poll::Ready(Ok(true));
                }
            }
            let waiting = self.bytes.get(self.waits.clone()).unwrap_or_default();
            self.waits.start += ready!(pass(cx, waiting))?;
        }
        Poll::Ready(Ok(false))
    }
}
