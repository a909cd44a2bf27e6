//! `capture`, `declare capture`: what of a message the log keeps (manual, section 4.2).

use program::proxy::{Capture, CaptureCookie};
use syntax::Word;

use super::entry;
use crate::draft::{Draft, Slot};
use crate::keyword::{Keyword, Places};
use crate::statement::{Statement, Step, clamp};
use crate::units;

/// The keywords of this family.
pub(crate) const KEYWORDS: &[Keyword<Draft>] = &[
    entry(
        "capture",
        Places::FRONT_ONLY,
        capture,
        "Keep a header or a cookie for the log.",
        "capture request header Host len 32",
    ),
    entry(
        "declare",
        Places::ALL,
        declare,
        "A capture slot that rules fill.",
        "declare capture request len 32",
    ),
];

fn capture(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    match s.next().map_or("", Word::text) {
        "cookie" => {
            const EXPECTS: &str = "'capture cookie' expects <cookie_name> 'len' <len>.";
            let name = s.word(EXPECTS)?;
            let len = length(s, EXPECTS)?;
            let exact = name.bytes().strip_suffix(b"=");
            p.capture_cookie = Some(CaptureCookie {
                name: exact.unwrap_or(name.bytes()).into(),
                exact: exact.is_some(),
                len,
            });
            Ok(())
        }
        side @ ("request" | "response") if s.peek() == "header" => {
            s.next();
            let expects = format!("'capture {side}' expects 'header' <header_name> 'len' <len>.");
            let name = s.word(&*expects)?;
            let len = length(s, &expects)?;
            let capture = Capture { header: Some(name.bytes().into()), len };
            let list = if side == "request" { &mut p.req_captures } else { &mut p.res_captures };
            list.push(Slot { capture, rule: None });
            Ok(())
        }
        _ => Err(s.fail("'capture' expects 'cookie' or 'request header' or 'response header'.")),
    }
}

/// `http-request capture ... len 32` makes a slot of its own, at its place among the declared ones.
pub(super) fn of_rule(s: &Statement<'_>, p: &mut Draft) {
    let words: Vec<&str> = s.line.words().iter().map(Word::text).collect();
    let action = words.iter().skip(1).find(|w| **w != "content");
    let len = words.iter().position(|w| *w == "len").and_then(|i| words.get(i + 1)?.parse().ok());
    if let (Some(&"capture"), Some(len)) = (action, len) {
        p.req_captures.push(Slot { capture: Capture { header: None, len }, rule: Some(s.at) });
    }
}

fn length(s: &mut Statement<'_>, expects: &str) -> Step<usize> {
    if s.peek() != "len" {
        return Err(s.fail(expects));
    }
    s.next();
    let word = s.word(expects)?;
    Ok(clamp(units::lenient(word.text())) as usize)
}

fn declare(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if p.kind.is_defaults() {
        return Err(s.fail("'declare' not available in default section"));
    }
    if !p.kind.is_front() {
        return Err(s.fail("'declare' only available in frontend or listen section"));
    }
    if s.next().map_or("", Word::text) != "capture" {
        return Err(s.fail("'declare' supports only 'capture'"));
    }
    let side = s.next().map_or("", Word::text);
    if !matches!(side, "request" | "response") {
        return Err(s.fail("'declare capture' requires 'request' or 'response'"));
    }
    if s.next().map_or("", Word::text) != "len" {
        return Err(s.fail("'declare capture' requires a capture length ('len')"));
    }
    let word = s.next();
    let len = word.and_then(|w| units::strict(w.text())).filter(|n| *n >= 0);
    let Some(len) = len else {
        let text = word.map_or("", Word::text);
        return Err(s.fail(format!("'declare capture': cannot parse the length '{text}'.")));
    };
    let list = if side == "request" { &mut p.req_captures } else { &mut p.res_captures };
    list.push(Slot { capture: Capture { header: None, len: clamp(len) as usize }, rule: None });
    Ok(())
}
