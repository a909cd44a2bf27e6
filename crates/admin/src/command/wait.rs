//! `wait`: let a script pause until a time has passed or a server may be removed.

use std::pin::Pin;
use std::time::Duration;

use engine::farm::{self, Kept};

use super::basic::duration;
use super::farm::why;
use crate::cli::call::{Call, Outcome, Refusal, Reply};

const HELP: &str = "\
Usage: wait {-h|<duration>} [condition [args...]]
  - '-h' shows these lines
  - <duration> is the longest time to wait, in milliseconds unless a unit
    stands behind it: 'us', 'ms', 's', 'm', 'h', 'd'
  - <condition> ends the wait as soon as it holds:
    - <none> : the wait lasts for the whole duration
    - srv-removable <px>/<sv> : nothing uses this server any more
";

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// `wait`.
pub fn wait<'a>(call: &'a mut Call<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
    Box::pin(async move {
        if call.arg(0).is_empty() {
            return Err("Expects a duration in milliseconds.".into());
        }
        if call.arg(0) == "-h" {
            return Ok(Reply::info(HELP));
        }
        let time = duration(call.arg(0), Duration::from_millis(1)).ok_or("Invalid duration.")?;
        let deadline = rt::now() + time;
        match call.arg(1) {
            "" => rt::sleep_until(deadline).await,
            "srv-removable" => removable(call, deadline).await?,
            _ => return Ok(Reply::info(HELP)),
        }
        Ok(Reply::info("Done."))
    })
}

async fn removable(call: &Call<'_>, deadline: rt::Mono) -> Result<(), Refusal> {
    let failed = |r: Refusal| Refusal(format!("Failed. {}", r.0).into());
    if call.arg(2).is_empty() {
        return Err("Missing server name (<backend>/<server>).".into());
    }
    let at = call.server_called(call.arg(2)).map_err(failed)?;
    loop {
        match farm::removable(&call.worker, at) {
            Ok(()) => return Ok(()),
            Err(Kept::Busy) if rt::now() < deadline => {}
            Err(kept) => return Err(failed(why(kept).into())),
        }
        rt::sleep_until(deadline.min(rt::now() + LOOK)).await;
    }
}
