//! Words about a server's share of the traffic: limits, weight, persistence, idle connections, names.

use std::time::Duration;

use balance::HashKey;

use super::{ServerKeyword, bare, disabled, enabled, off, on, own, time, value, word};
use crate::draft::Deferred;
use crate::statement::clamp;
use crate::units;

/// The words of this family.
pub(super) const KEYWORDS: &[ServerKeyword] = &[
    word("backup", 0, |v, _, _| on(&mut v.backup), "Used only when all others are down.").example("backup"),
    word(
        "cookie",
        1,
        |v, s, _| {
            v.cookie = Some(s.word("'cookie' expects <value> as argument.")?.bytes().into());
            Ok(())
        },
        "Value of the persistence cookie.",
    )
    .example("cookie s1"),
    word("disabled", 0, |v, _, _| disabled(v), "Starts in maintenance.").example("disabled"),
    word("enabled", 0, |v, _, _| enabled(v), "Does not start in maintenance.")
        .example("enabled")
        .configured(),
    own(
        "guid",
        1,
        |v, s, _| {
            let word = s.word("'guid' : expects an argument")?;
            let guid = crate::statement::unique_name(word.text());
            v.guid = Some(guid.map_err(|why| s.fail(format!("'guid': {why}")))?);
            Ok(())
        },
        "Unique name of the server.",
    )
    .example("guid one"),
    word(
        "hash-key",
        1,
        |v, s, _| {
            v.hash_key = match s
                .word("'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'")?
                .text()
            {
                "id" => HashKey::Id,
                "id32" => HashKey::Id32,
                "guid" => HashKey::Guid,
                "addr" => HashKey::Addr,
                "addr-port" => HashKey::AddrPort,
                _ => return Err(s.fail("'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'")),
            };
            Ok(())
        },
        "What places the server on the consistent ring.",
    )
    .example("hash-key addr-port")
    .default("id"),
    own(
        "id",
        1,
        |v, s, _| {
            let n = units::whole(s.word("'id' : expects an integer argument")?.text());
            v.id = Some(
                u32::try_from(n)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| s.fail("'id' : custom id has to be between 1 and 4294967295."))?,
            );
            Ok(())
        },
        "Number of the server.",
    )
    .example("id 7")
    .default("the next free number"),
    word(
        "max-reuse",
        1,
        |v, s, _| {
            v.max_reuse = signed(value(s, "max-reuse", "expects <value> as argument")?);
            Ok(())
        },
        "How often a connection is reused, -1: no limit.",
    )
    .example("max-reuse 100")
    .default("-1")
    .configured(),
    word(
        "maxconn",
        1,
        |v, s, _| {
            v.maxconn = clamp(bare(s));
            Ok(())
        },
        "Most requests at a time.",
    )
    .example("maxconn 100")
    .default("0: no limit"),
    word(
        "maxqueue",
        1,
        |v, s, _| {
            // Without a number there is no limit.
            v.maxqueue = s.next().map_or(0, |word| clamp(s.lenient(word)));
            Ok(())
        },
        "Most requests that wait for this server.",
    )
    .example("maxqueue 10")
    .default("0: no limit"),
    word(
        "minconn",
        1,
        |v, s, _| {
            v.minconn = clamp(bare(s));
            Ok(())
        },
        "Lower bound of a limit that follows the load.",
    )
    .example("minconn 10 maxconn 100")
    .default("0: maxconn does not follow the load"),
    word("no-backup", 0, |v, _, _| off(&mut v.backup), "Not a backup.").example("no-backup"),
    word("non-stick", 0, |v, _, _| on(&mut v.non_stick), "Never stored in a stick table.")
        .example("non-stick")
        .configured(),
    word(
        "pool-conn-name",
        1,
        |v, s, _| {
            let word = s.args.position();
            s.word("'pool-conn-name' expects <value> as argument")?;
            v.pool_conn_name = Some(Deferred { at: s.at, word });
            Ok(())
        },
        "Part of the identity of idle connections.",
    )
    .example("pool-conn-name req.hdr(host)")
    .default("that of sni"),
    word(
        "pool-low-conn",
        1,
        |v, s, _| {
            v.pool_low_conn = clamp(value(s, "pool-low-conn", "expects <value> as argument")?);
            Ok(())
        },
        "Idle connections a thread keeps for itself.",
    )
    .example("pool-low-conn 5")
    .default("0"),
    word(
        "pool-max-conn",
        1,
        |v, s, _| {
            v.pool_max_conn = match signed(value(s, "pool-max-conn", "expects <value> as argument")?) {
                n if n < -1 => return Err(s.fail("'pool-max-conn' must be >= -1")),
                n => n,
            };
            Ok(())
        },
        "Most idle connections kept, -1: no limit.",
    )
    .example("pool-max-conn 100")
    .default("-1"),
    word(
        "pool-purge-delay",
        1,
        |v, s, _| {
            let word = s.word("'pool-purge-delay' expects <value> as argument")?;
            let ms = s.millis(word, "pool-purge-delay", |c| {
                format!("unexpected character '{c}' in argument to <pool-purge-delay>.")
            })?;
            v.pool_purge_delay = Duration::from_millis(ms);
            Ok(())
        },
        "Time after which half of the idle connections go.",
    )
    .example("pool-purge-delay 10s")
    .default("5s"),
    word(
        "redir",
        1,
        |v, s, _| {
            v.redir = Some(s.word("'redir' expects <prefix> as argument.")?.bytes().into());
            Ok(())
        },
        "Redirect GET and HEAD here instead of connecting.",
    )
    .example("redir http://mirror.example.org")
    .configured(),
    word(
        "shard",
        1,
        |v, s, _| {
            let word = s.word("'shard' expects an argument.")?;
            v.shard = u32::try_from(s.lenient(word)).unwrap_or(0);
            Ok(())
        },
        "Of which group of keys a peer is told, see `shards`.",
    )
    .example("shard 1")
    .default("0: all"),
    word(
        "slowstart",
        1,
        |v, s, p| {
            let d = time(s, v, p, "slowstart", "'slowstart' expects a time in milliseconds as argument.")?;
            v.slowstart = (!d.is_zero()).then_some(d);
            Ok(())
        },
        "Time over which the weight grows after coming up.",
    )
    .example("slowstart 30s")
    .default("0"),
    word("stick", 0, |v, _, _| off(&mut v.non_stick), "May be stored in stick tables.")
        .example("stick")
        .configured(),
    word(
        "strict-maxconn",
        0,
        |v, _, _| on(&mut v.strict_maxconn),
        "Count connections, not requests, against maxconn.",
    )
    .example("strict-maxconn maxconn 100"),
    word(
        "weight",
        1,
        |v, s, _| {
            let n = bare(s);
            v.weight = u32::try_from(n).ok().filter(|n| *n <= 256).ok_or_else(|| {
                s.fail(format!("weight of server {} is not within 0 and 256 ({n}).", v.name))
            })?;
            Ok(())
        },
        "Share of the load, 0 to 256.",
    )
    .example("weight 10")
    .default("1"),
];

fn signed(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
