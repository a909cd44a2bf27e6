//! `wait`: let a script pause until a time has passed or a server may be removed.

use std::pin::Pin;
use std::time::Duration;

use farm::dynamic::{self, Kept, Stays};

use super::basic::duration;
use super::farm::{why, why_backend};
use crate::cli::call::{Call, Outcome, Refusal, Reply};
use crate::cli::table::Command;
use program::listener::Level;

/// The commands of this family.
pub const COMMANDS: &[Command] = &[Command::later(
    &["wait"],
    "{-h|<delay>} [condition]",
    "wait for a while, or for a condition",
    Level::Admin,
    wait,
)];

const HELP: &str = "\
Usage: wait {-h|<duration>} [condition [args...]]
  - '-h' shows these lines
  - <duration> is the longest time to wait, in milliseconds unless a unit
    stands behind it: 'us', 'ms', 's', 'm', 'h', 'd'
  - <condition> ends the wait as soon as it holds:
    - <none> : the wait lasts for the whole duration
    - srv-removable <px>/<sv> : nothing uses this server any more
    - be-removable <px> : nothing uses this backend any more
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
        let time = duration(call.arg(0), Duration::from_millis(1)).filter(|time| !time.is_zero());
        let time = time.ok_or("Invalid duration.")?;
        let deadline = rt::now() + time;
        match call.arg(1) {
            "" => rt::sleep_until(deadline).await,
            "srv-removable" => removable(call, deadline).await?,
            "be-removable" => backend_removable(call, deadline).await?,
            _ => return Ok(Reply::info(HELP)),
        }
        Ok(Reply::info("Done."))
    })
}

async fn backend_removable(call: &Call<'_>, deadline: rt::Mono) -> Result<(), Refusal> {
    if call.arg(2).is_empty() {
        return Err("Missing backend name.".into());
    }
    loop {
        let (index, _) = call.find_backend(call.arg(2)).ok_or("Failed. No such backend.")?;
        match dynamic::removable_backend(&call.worker.farm, index) {
            Ok(()) => return Ok(()),
            Err(Stays::Busy) if rt::now() < deadline => {}
            Err(Stays::Busy) => return Err(format!("Interrupted. {}", why_backend(Stays::Busy)).into()),
            Err(stays) => return Err(format!("Failed. {}", why_backend(stays)).into()),
        }
        rt::sleep_until(deadline.min(rt::now() + LOOK)).await;
    }
}

async fn removable(call: &Call<'_>, deadline: rt::Mono) -> Result<(), Refusal> {
    let failed = |r: Refusal| Refusal(format!("Failed. {}", r.0).into());
    if call.arg(2).is_empty() {
        return Err("Missing server name (<backend>/<server>).".into());
    }
    if !call.arg(2).contains('/') {
        return Err("Require 'backend/server'.".into());
    }
    loop {
        // It may be deleted meanwhile.
        let at = call.server_called(call.arg(2)).map_err(failed)?;
        match dynamic::removable(&call.worker.farm, at) {
            Ok(()) => return Ok(()),
            Err(Kept::Busy) if rt::now() < deadline => {}
            Err(Kept::Busy) => return Err(format!("Interrupted. {}", why(Kept::Busy)).into()),
            Err(kept) => return Err(failed(why(kept).into())),
        }
        rt::sleep_until(deadline.min(rt::now() + LOOK)).await;
    }
}
