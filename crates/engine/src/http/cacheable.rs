//! `option checkcache`: a response that caches may keep must not set a cookie, which would be everybody's.

use model::term::{Cause, Phase};
use wire::caching::is_cacheable;

use super::{Next, answer, rules};
use crate::stream::Stream;

/// Refuses a response that sets a cookie and may be cached; `None` if it may go on.
pub async fn refuse_cacheable(stream: &mut Stream<'_>) -> Option<Next> {
    let res = &stream.txn.res;
    if res.first("set-cookie").is_none() || !is_cacheable(stream.txn.first_method(), res) {
        return None;
    }
    let back = stream.backend_index();
    let text = {
        let program = &stream.worker.shared.program;
        let server = stream.txn.server.and_then(|server| program.find_server(back, server));
        let server = server.as_ref().map_or("<NOSRV>", |s| &s.name);
        format!(
            "Blocking cacheable cookie in response from instance {}, server {server}.",
            program.proxy(back).name
        )
    };
    crate::lines::proxy_line(&stream.worker, back, program::log::level::ALERT, &text);
    rules::denied(stream, true, false);
    stream.end(Cause::Proxy, Phase::Headers);
    Some(answer::refuse(stream, 502).await)
}
