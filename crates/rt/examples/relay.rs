//! The bare minimum that a proxy does: takes connections on one port, opens one to another for each, and
//! copies both ways. `strace -fc` shows what a request costs: one recv and one send per side, and a share of
//! an epoll_wait.
//!
//! `relay 127.0.0.1:8000 127.0.0.1:9000 [threads]`

use std::io;
use std::rc::Rc;

use rt::{Addr, Buf, ConnectOptions, ListenOptions, Listener, Socket, WorkerSpec};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, from, to, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: relay LISTEN-ADDRESS SERVER-ADDRESS [THREADS]");
        std::process::exit(2);
    };
    let parse = |s: &str| s.parse().map(Addr::Inet).map_err(io::Error::other);
    let (listener, server) = (Listener::bind(&parse(from)?, &ListenOptions::default())?, parse(to)?);
    let threads = rest.first().and_then(|t| t.parse().ok()).unwrap_or(1);
    rt::run(vec![WorkerSpec::default(); threads], move |_| {
        let (acceptor, server) = (listener.attach().expect("the listener registers"), server.clone());
        rt::spawn(async move {
            while let Ok((client, _)) = acceptor.accept().await {
                if let Ok(server) = Socket::connect(&server, &ConnectOptions::default()) {
                    relay(client, server);
                }
            }
        });
    })
}

fn relay(client: Socket, server: Socket) {
    let (client, server) = (Rc::new(client), Rc::new(server));
    rt::spawn(copy(client.clone(), server.clone()));
    rt::spawn(copy(server, client));
}

async fn copy(from: Rc<Socket>, to: Rc<Socket>) {
    loop {
        // An idle direction holds no buffer.
        std::future::poll_fn(|cx| from.poll_readable(cx)).await;
        let mut buf = Buf::new();
        match from.recv(buf.spare_mut()).await {
            Ok(n) if n > 0 => buf.advance(n),
            _ => break,
        }
        if to.send_all(buf.filled()).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown_write();
}
