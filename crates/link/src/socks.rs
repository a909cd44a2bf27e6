//! SOCKS4 towards a server (`socks4`, `check-via-socks4`): the proxy is asked once, right after the
//! connection stands, to connect on; its answer of eight bytes says whether it did. The protocol knows IPv4
//! only.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use rt::{Addr, Socket, Timer};

/// Why there is no way through the proxy.
#[derive(Debug)]
pub enum Refused {
    /// The deadline passed.
    TimedOut,
    /// Whoever wanted it is gone.
    Aborted,
    /// The connection's error, or the proxy's no.
    Io(io::Error),
}

/// Version 4, CONNECT.
const CONNECT: [u8; 2] = [4, 1];
/// The name under which proxies know HAProxy.
const USER: &[u8] = b"HAProxy\0";
const GRANTED: u8 = 90;

fn request(target: SocketAddr) -> Option<Vec<u8>> {
    let IpAddr::V4(ip) = target.ip().to_canonical() else { return None };
    Some([&CONNECT[..], &target.port().to_be_bytes(), &ip.octets(), USER].concat())
}

/// Whether a proxy can be asked for a connection to `target`: that has an address of IPv4.
pub fn leads_to(target: &Addr) -> bool {
    target.as_inet().is_some_and(|at| at.ip().to_canonical().is_ipv4())
}

/// Whether an answer grants the request.
fn granted(answer: [u8; 8]) -> bool {
    answer[0] == 0 && answer[1] == GRANTED
}

/// Asks for a connection to `target`; `gone` says that nobody wants it any more.
///
/// # Errors
/// See [`Refused`].
pub async fn connect(
    socket: &Socket,
    target: &Addr,
    timer: &mut Timer,
    mut gone: impl FnMut(&mut Context<'_>) -> bool,
) -> Result<(), Refused> {
    let target = target.as_inet().and_then(request);
    let refuse = |kind: io::ErrorKind| Refused::Io(kind.into());
    let target = target.ok_or_else(|| refuse(io::ErrorKind::Unsupported))?;
    let mut sent = 0;
    let mut answer = [0; 8];
    let mut filled = 0;
    poll_fn(|cx| {
        if gone(cx) {
            return Poll::Ready(Err(Refused::Aborted));
        }
        while let Some(rest) = target.get(sent..).filter(|r| !r.is_empty()) {
            match socket.poll_send(cx, rest, false) {
                Poll::Ready(Ok(n)) => sent += n,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(Refused::Io(e))),
                Poll::Pending => return timer.poll_expired(cx).map(|()| Err(Refused::TimedOut)),
            }
        }
        while let Some(room) = answer.get_mut(filled..).filter(|r| !r.is_empty()) {
            match socket.poll_recv(cx, room) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(refuse(io::ErrorKind::UnexpectedEof))),
                Poll::Ready(Ok(n)) => filled += n,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(Refused::Io(e))),
                Poll::Pending => return timer.poll_expired(cx).map(|()| Err(Refused::TimedOut)),
            }
        }
        Poll::Ready(if granted(answer) { Ok(()) } else { Err(refuse(io::ErrorKind::ConnectionRefused)) })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_address_port_and_user() {
        let target = "192.0.2.7:8080".parse().unwrap();
        assert_eq!(request(target).unwrap(), b"\x04\x01\x1f\x90\xc0\x00\x02\x07HAProxy\x00");
        assert_eq!(request("[2001:db8::1]:80".parse().unwrap()), None);
    }

    #[test]
    fn only_90_grants() {
        assert!(granted([0, 90, 0, 0, 0, 0, 0, 0]));
        assert!(!granted([0, 91, 0, 0, 0, 0, 0, 0]));
        assert!(!granted([4, 90, 0, 0, 0, 0, 0, 0]));
    }
}
