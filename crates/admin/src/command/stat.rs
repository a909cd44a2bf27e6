//! `show stat`, `show schema json`.

use program::listener::Level;

use crate::cli::call::{Call, Outcome, Refusal, Reply, find_proxy};
use crate::cli::table::Command;
use crate::stats::row::Filter;
use crate::stats::{resolvers, show as write};

/// The commands of this family.
pub const COMMANDS: &[Command] = &[
    Command::now(&["show", "schema", "json"], "", "JSON schema of the statistics", Level::User, schema),
    Command::now(
        &["show", "stat"],
        "[desc|json|no-maint|typed|up]*",
        "statistics of proxies and servers",
        Level::User,
        show,
    ),
];

/// `show stat [domain proxy] [{<iid>|<proxy>} <type> <sid>] [desc|json|no-maint|typed|up]*`.
pub fn show(call: &mut Call<'_>) -> Outcome {
    let mut args = call.args();
    if matches!(args, [word] if word == "domain") {
        return Err("Invalid statistics domain.".into());
    }
    if let [word, domain, rest @ ..] = args
        && word == "domain"
    {
        if domain == "resolvers" {
            return Ok(Reply::Dump(names(call, rest)));
        }
        if domain != "proxy" {
            return Err("Invalid statistics domain.".into());
        }
        args = rest;
    }
    let mut filter = Filter { legends: call.client.level >= Level::Operator, ..Filter::default() };
    if let [proxy, kind, id, ..] = args
        && let (Some(kind), Some(id)) = (number(kind), number(id))
    {
        filter.proxy = proxy_id(call, proxy)?;
        filter.kinds = u32::try_from(kind).unwrap_or(u32::MAX);
        filter.id = u32::try_from(id).ok();
    }
    let has = |word: &str| args.iter().any(|a| a == word);
    filter.no_maint = has("no-maint");
    filter.up = has("up");
    let shared = call.shared();
    crate::shm::refresh(shared);
    Ok(Reply::Dump(match (has("json"), has("typed")) {
        (true, _) => write::json(shared, &filter),
        (_, true) => write::typed(shared, &filter, has("desc")),
        _ => write::csv(shared, &filter),
    }))
}

/// The statistics of name servers.
fn names(call: &Call<'_>, args: &[String]) -> String {
    let has = |word: &str| args.iter().any(|a| a == word);
    let all = &call.shared().program.resolvers;
    match (has("json"), has("typed")) {
        (true, _) => resolvers::json(all),
        (_, true) => resolvers::typed(all, has("desc")),
        _ => resolvers::csv(all),
    }
}

fn number(word: &str) -> Option<i64> {
    word.parse().ok()
}

fn proxy_id(call: &Call<'_>, word: &str) -> Result<Option<u32>, Refusal> {
    match number(word) {
        Some(n) => Ok(u32::try_from(n).ok()),
        None => {
            let found = find_proxy(call.shared(), word, |_| true);
            if found.is_none() && call.shared().program.forwards.iter().any(|f| *f.name == *word) {
                // There is such a thing, and it has no statistics.
                return Ok(Some(u32::MAX));
            }
            found.map(|(_, p)| Some(p.state.id)).ok_or("No such proxy.".into())
        }
    }
}

/// `show schema json`.
pub fn schema(_: &mut Call<'_>) -> Outcome {
    Ok(Reply::Dump(crate::stats::schema::text()))
}
