//! What both ends of HTTP/2 share: a body sent under flow control, a body taken and checked.

use std::future::poll_fn;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;

use crate::content::Rng;
use crate::http1::{Broken, Giving, Taking};
use crate::plan::Pace;

/// How much of what small frames waste may wait before h2 ends the connection for it. A reader that the
/// kernel let wait, on small windows, must not call that an attack.
pub const SMALL_FRAMES: usize = 1 << 30;

/// Sends a body, and with it the end of the stream unless `giving` says to stop before.
pub async fn give(to: &mut SendStream<Bytes>, giving: Giving<'_>, rng: &mut Rng) -> Result<(), Broken> {
    let Giving { content, len, pace, trailer, until, .. } = giving;
    let cut = |e: h2::Error| Broken::Cut(format!("sending: {e}"));
    let end = until.unwrap_or(len).min(len);
    let most = *rng.pick(&[1_000, 8_192, 16_384, 32_768, 65_536]);
    // The end may come with the last data or in a frame of its own.
    let apart = trailer.is_some() || until.is_some() || len == 0 || rng.percent(20);
    while content.at() < end {
        let mut n = rng.between(most / 2, most).min(end - content.at());
        if let Pace::Slow { piece, .. } = pace {
            n = n.min(piece);
        }
        to.reserve_capacity(n as usize);
        let room = match poll_fn(|cx| to.poll_capacity(cx)).await {
            Some(Ok(room)) => (room as u64).min(n),
            Some(Err(e)) => return Err(cut(e)),
            None => return Err(Broken::Cut("sending: the stream is closed".to_owned())),
        };
        if room == 0 {
            continue;
        }
        let before = content.at();
        let mut piece = BytesMut::zeroed(room as usize);
        content.fill(&mut piece);
        let last = content.at() == len && !apart;
        to.send_data(piece.freeze(), last).map_err(cut)?;
        let rest = pace.rest(before, content.at());
        if rest > 0 {
            tokio::time::sleep(Duration::from_millis(rest)).await;
        }
    }
    if until.is_some() {
        return Ok(());
    }
    if let Some(trailer) = trailer {
        let mut map = HeaderMap::new();
        map.insert("x-tail", trailer.parse().expect("a number is a value"));
        to.send_trailers(map).map_err(cut)?;
    } else if apart {
        to.send_data(Bytes::new(), true).map_err(cut)?;
    }
    Ok(())
}

/// Takes and checks a body; what it gives back is the trailer.
pub async fn take(from: &mut RecvStream, mut taking: Taking<'_>) -> Result<Option<String>, Broken> {
    while let Some(data) = from.data().await {
        let data =
            data.map_err(|e| Broken::Cut(format!("after {} bytes of the body: {e}", taking.content.at())))?;
        let taken = taking.take(&data).await;
        let _ = from.flow_control().release_capacity(data.len());
        taken?;
    }
    let trailers = from.trailers().await.map_err(|e| Broken::Cut(format!("trailers: {e}")))?;
    Ok(trailers.and_then(|t| t.get("x-tail").and_then(|v| v.to_str().ok()).map(str::to_owned)))
}

/// The codes with which a side gives a stream up.
pub fn reason(rng: &mut Rng) -> Reason {
    *rng.pick(&[Reason::CANCEL, Reason::INTERNAL_ERROR, Reason::NO_ERROR])
}
