//! Servers as small scripts.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use rt::{Addr, ListenOptions, Listener};

use crate::message::{Message, chunked, content, label};
use crate::peer::Peer;
use crate::task::spawn;

/// What a server does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Sends these bytes, and waits for the next request.
    Bytes(Vec<u8>),
    /// Sends these bytes after a while.
    Late(Duration, Vec<u8>),
    /// Sends these bytes and closes.
    Close(Vec<u8>),
    /// Sends these bytes and resets the connection.
    Reset(Vec<u8>),
    /// Sends these bytes, then nothing more, and keeps the connection.
    Stall(Vec<u8>),
}

/// Listens on `at` and serves each connection with `script`, which gets its number. Ends with the task.
pub(crate) fn serve<F>(at: &Addr, script: impl Fn(Peer, usize) -> F + 'static) -> rt::TaskId
where
    F: Future<Output = ()> + 'static,
{
    let listener = Listener::bind(at, &ListenOptions::default()).expect("a free address");
    let acceptor = listener.attach().expect("a world has room for a listener");
    rt::spawn(async move {
        let mut number = 0;
        loop {
            match acceptor.accept().await {
                Ok((socket, _)) => {
                    spawn(script(Peer::new(socket), number));
                    number += 1;
                }
                Err(_) => {
                    let _ = acceptor.pause();
                    rt::sleep(Duration::from_millis(50)).await;
                    let _ = acceptor.resume();
                }
            }
        }
    })
}

/// What an origin answers to each message, and how many there were on the connection.
pub(crate) type Answers = Rc<dyn Fn(&Message, usize) -> Answer>;

/// Serves requests one after the other as `answer` says, which gets the number of the request on its
/// connection.
pub(crate) async fn requests(mut peer: Peer, answer: Answers) {
    for number in 0.. {
        let request = peer.request().await;
        if !request.is_whole() {
            return;
        }
        let sent = match answer(&request, number) {
            Answer::Bytes(bytes) => peer.send(&bytes).await,
            Answer::Late(pause, bytes) => {
                rt::sleep(pause).await;
                peer.send(&bytes).await
            }
            Answer::Close(bytes) => {
                let _ = peer.send(&bytes).await;
                return;
            }
            Answer::Reset(bytes) => {
                let _ = peer.send(&bytes).await;
                return peer.reset();
            }
            Answer::Stall(bytes) => {
                let _ = peer.send(&bytes).await;
                peer.rest().await;
                return;
            }
        };
        if sent.is_err() || request.closes() {
            return;
        }
    }
}

/// The answer of the usual origin: `/<id>/<length>` is answered with so many bytes of that id, chunked if the
/// query says so; a request's body must be that of the id, too.
pub(crate) fn usual(request: &Message) -> Answer {
    let target = request.target();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut numbers = path.split('/').filter_map(|n| n.parse::<u64>().ok());
    let (id, length) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(10));
    assert_eq!(request.body, content(id, request.body.len()), "the body of another request");
    let body = content(id, length as usize);
    match query {
        "chunked" => {
            let head = format!("HTTP/1.1 200 OK\r\n{}transfer-encoding: chunked\r\n\r\n", label(&body));
            Answer::Bytes([head.as_bytes(), &chunked(&body, 7)].concat())
        }
        "close" => {
            Answer::Close([format!("HTTP/1.1 200 OK\r\n{}\r\n", label(&body)).as_bytes(), &body].concat())
        }
        _ => Answer::Bytes(crate::response(200, &body)),
    }
}
