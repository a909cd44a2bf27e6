//! `capture`, `declare capture`: what of a message the log keeps (manual, section 4.2).

use program::proxy::{Capture, CaptureCookie};
use syntax::Word;

use crate::draft::{Draft, Slot};
use crate::keyword::{Keyword, Places, entry};
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
            const EXPECTS: &str = "'capture' expects 'cookie' <cookie_name> 'len' <len>.";
            let name = s.word(EXPECTS)?;
            // HAProxy takes any word where 'len' should stand.
            s.word(EXPECTS)?;
            let len = clamp(units::lenient(s.word(EXPECTS)?.text())) as usize;
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
            if let Some(extra) = s.line.args().get(5) {
                let text = format!("'capture {side}' cannot handle unexpected argument '{extra}'.");
                return Err(s.fail_at(extra.span(), text));
            }
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
    let len = words
        .iter()
        .position(|w| *w == "len")
        .and_then(|i| words.get(i + 1))
        .map(|w| clamp(units::lenient(w)) as usize);
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
    let length = units::lenient(word.text());
    if length < 0 && units::whole(word.text()) > 0 {
        // HAProxy tries to reserve what the number looks like.
        let text = format!(
            "Failed to create pool 'caphdr' of size '{}': overflow detected due to too large a configured size and/or configured pool options. Aborting.",
            (length + 1) as u64
        );
        return Err(s.fail(text).styled(syntax::Style::Plain));
    }
    Ok(clamp(length) as usize)
}

fn declare(s: &mut Statement<'_>, p: &mut Draft) -> Step {
    if p.kind.is_defaults() {
        return Err(s.fail("'declare' not available in default section"));
    }
    if !p.kind.is_front() {
        return Err(s.fail("'declare' only available in frontend or listen section"));
    }
    if s.next().map_or("", Word::text) != "capture" {
        return Err(match s.line.args().first().map_or("", Word::text) {
            "" => s.fail("'declare' needs a second keyword that specify the type of declaration ('capture')"),
            other => s.fail(format!("unknown declaration type '{other}' (supports 'capture')")),
        });
    }
    let side = s.next().map_or("", Word::text);
    if !matches!(side, "request" | "response") {
        return Err(s.fail("'declare capture' requires a direction ('request' or 'response')"));
    }
    if s.next().map_or("", Word::text) != "len" {
        return Err(s.fail("'declare capture' requires a capture length ('len')"));
    }
    if s.peek().is_empty() {
        return Err(
            s.fail("'declare capture': 'len' requires a numeric value that represents the capture length")
        );
    }
    let word = s.next();
    let Some(len) = word.and_then(|w| units::strict(w.text())) else {
        let text = word.map_or("", Word::text);
        return Err(s.fail(format!("'declare capture': cannot parse the length '{text}'.")));
    };
    if len <= 0 {
        return Err(s.fail("length must be > 0"));
    }
    let list = if side == "request" { &mut p.req_captures } else { &mut p.res_captures };
    list.push(Slot { capture: Capture { header: None, len: clamp(len) as usize }, rule: None });
    Ok(())
}
