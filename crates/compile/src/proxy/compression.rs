//! `compression` (manual, section 4.2).

use std::sync::Arc;

use lang::compression::{Algorithm, Direction, OneWay};

use crate::draft::{Draft, Kind};
use crate::keyword::{Keyword, Places, entry};
use crate::statement::{Statement, Step};

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] =
    &[entry("compression", Places::ALL, compression, "How bodies are compressed.", "compression algo gzip")];

const EXPECTS: &str =
    "'compression' expects 'algo', 'type', 'direction', 'offload', 'minsize-req' or 'minsize-res'.";

fn compression(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    let what = s.next().map(|w| w.text().to_owned()).unwrap_or_default();
    let in_defaults = matches!(p.kind, Kind::Defaults { .. });
    let made = Arc::make_mut(p.compression.get_or_insert_default());
    match what.as_str() {
        "algo" | "algo-res" => algorithms(s, &mut made.response),
        "algo-req" => {
            let name = s.next().map(|w| w.text().to_owned()).unwrap_or_default();
            made.request.algorithms = vec![algorithm(s, &name)?];
            Ok(())
        }
        "type" | "type-res" => types(s, &mut made.response),
        "type-req" => types(s, &mut made.request),
        "minsize-req" => s.size("minsize-req").map(|n| made.request.least = n),
        "minsize-res" => s.size("minsize-res").map(|n| made.response.least = n),
        "offload" if in_defaults => {
            s.warn("'compression' : 'offload' ignored in 'defaults' section.");
            Ok(())
        }
        "offload" => {
            made.offload = true;
            Ok(())
        }
        "direction" => {
            let word = s.next().map(|w| w.text().to_owned()).unwrap_or_default();
            let (requests, responses) = match word.as_str() {
                "request" => (true, false),
                "response" => (false, true),
                "both" => (true, true),
                _ => return Err(s.fail("'compression' expects 'request', 'response', or 'both'.")),
            };
            made.direction = Some(Direction { requests, responses });
            Ok(())
        }
        _ => Err(s.fail(EXPECTS)),
    }
}

fn algorithm(s: &Statement<'_>, name: &str) -> Step<Algorithm> {
    Algorithm::named(name)
        .ok_or_else(|| s.fail(format!("'compression' : '{name}' is not a supported algorithm.")))
}

/// Further lines add to the list.
fn algorithms(s: &mut Statement<'_>, way: &mut OneWay) -> Step {
    let before = way.algorithms.len();
    while let Some(word) = s.next() {
        let name = word.text().to_owned();
        way.algorithms.push(algorithm(s, &name)?);
    }
    if way.algorithms.len() == before {
        return Err(s.fail("'compression' expects <algorithm>."));
    }
    Ok(())
}

fn types(s: &mut Statement<'_>, way: &mut OneWay) -> Step {
    let before = way.types.len();
    while let Some(word) = s.next() {
        way.types.push(word.bytes().into());
    }
    if way.types.len() == before {
        return Err(s.fail("'compression' expects <type>."));
    }
    Ok(())
}
