//! How what scripts wait for comes.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use engine::Worker;

use crate::came::Came;
use crate::io::Io;
use crate::run::Run;
use crate::wait::Wait;
use crate::{client, sockets};

/// Waits for what a script waits for.
pub async fn fulfil(wait: Wait, run: &Run, worker: &Rc<Worker>, io: Option<&mut Io>) -> Came {
    match wait {
        Wait::Yield => rt::yield_now().await,
        Wait::Own => {
            rt::yield_now().await;
            return Came::Nothing;
        }
        Wait::Sleep(time) => rt::sleep(time).await,
        Wait::Wake(time) => {
            let mut timer = rt::Timer::new();
            timer.set_after(time);
            poll_fn(|cx| match run.wake.poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => timer.poll_expired(cx),
            })
            .await;
        }
        Wait::Socket(ask) => return sockets::fulfil(ask, worker).await,
        Wait::Http(request) => return Came::Answer(Box::new(client::send(worker, *request).await)),
        Wait::Applet(ask) => {
            return match io {
                Some(io) => io.fulfil(ask).await,
                None => Came::Wrong("an applet may be used by its own service only".into()),
            };
        }
        Wait::Data => return Came::Wrong("data can't be waited for here".into()),
        Wait::Wrong(text) => return Came::Wrong(text),
    }
    Came::Over
}
