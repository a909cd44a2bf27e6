//! The line that an agent answers with (manual, `agent-check`).

/// The administrative state that an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `ready`.
    Ready,
    /// `drain`.
    Drain,
    /// `maint`.
    Maint,
}

/// A weight that an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Per cent of the configured weight.
    Percent(u32),
    /// Itself, 0 to 256.
    Absolute(u32),
}

/// Everything that a line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The last word about the administrative state.
    pub admin: Option<Wanted>,
    /// The last word about health: whether it means up, and the word itself.
    pub health: Option<(bool, String)>,
    /// What stands behind `#`.
    pub description: Option<String>,
    /// Weight.
    pub weight: Option<Weight>,
    /// `maxconn:`.
    pub maxconn: Option<u32>,
    /// The first word that nobody knows.
    pub unknown: Option<String>,
    /// A word that is known but makes no sense.
    pub warning: Option<&'static str>,
}

/// Longest word or description that is kept.
const TEXT: usize = 128;

/// Reads a line, its end cut off.
pub fn parse(line: &[u8]) -> Report {
    let mut report = Report::default();
    let mut numbers = Numbers::default();
    let mut rest = line;
    loop {
        rest = after_blanks(rest, is_blank);
        if rest.is_empty() {
            break;
        }
        if let [b'#', description @ ..] = rest {
            let description = after_blanks(description, |b| matches!(b, b' ' | b'\t'));
            report.description = (!description.is_empty()).then(|| text(description));
            break;
        }
        let end = rest.iter().position(|b| is_blank(*b)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if !take(word, &mut report, &mut numbers) && report.unknown.is_none() {
            report.unknown = Some(text(word));
        }
    }
    let weight = numbers.weight.map(weight).transpose();
    let maxconn = numbers.maxconn.map(maxconn).transpose();
    report.warning = weight.as_ref().err().or(maxconn.as_ref().err()).copied();
    report.weight = weight.ok().flatten();
    report.maxconn = maxconn.ok().flatten();
    report
}

/// The last words that give numbers. Only these are looked at: what stands before them is replaced, be it
/// nonsense or not.
#[derive(Default)]
struct Numbers<'l> {
    weight: Option<&'l [u8]>,
    maxconn: Option<&'l [u8]>,
}

fn after_blanks(bytes: &[u8], is_blank: impl Fn(u8) -> bool) -> &[u8] {
    let skip = bytes.iter().take_while(|b| is_blank(**b)).count();
    bytes.get(skip..).unwrap_or_default()
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b',')
}

fn text(bytes: &[u8]) -> String {
    let kept: String = String::from_utf8_lossy(bytes).chars().take(TEXT).collect();
    kept.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Takes one word in; whether it is known.
fn take<'l>(word: &'l [u8], report: &mut Report, numbers: &mut Numbers<'l>) -> bool {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if is("ready") {
        report.admin = Some(Wanted::Ready);
    } else if is("drain") {
        report.admin = Some(Wanted::Drain);
    } else if is("maint") {
        report.admin = Some(Wanted::Maint);
    } else if is("up") {
        report.health = Some((true, text(word)));
    } else if is("down") || is("fail") || is("stopped") {
        report.health = Some((false, text(word)));
    } else if let Some(value) = after(word, b"weight:") {
        numbers.weight = Some(value);
    } else if let Some(value) = after(word, b"maxconn:") {
        numbers.maxconn = Some(value);
    } else if word.first().is_some_and(u8::is_ascii_digit) && word.contains(&b'%') {
        numbers.weight = Some(word);
    } else {
        return false;
    }
    true
}

fn after<'w>(word: &'w [u8], prefix: &[u8]) -> Option<&'w [u8]> {
    let (head, tail) = word.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn weight(value: &[u8]) -> Result<Weight, &'static str> {
    match number(value) {
        None => Err("Empty weight string empty or preceded by garbage"),
        Some((percent, b"%")) => Ok(Weight::Percent(percent)),
        Some((_, [_, ..])) => Err("Trailing garbage in weight string"),
        Some((n, [])) if n > 256 => Err("Absolute weight can only be between 0 and 256 inclusive."),
        Some((n, [])) => Ok(Weight::Absolute(n)),
    }
}

fn maxconn(value: &[u8]) -> Result<u32, &'static str> {
    match number(value) {
        _ if value.is_empty() => Err("Require <maxconn>."),
        None => Err("maxconn string empty or preceded by garbage"),
        Some((_, [_, ..])) => Err("Trailing garbage in maxconn string"),
        Some((n, [])) => Ok(n),
    }
}

/// The number at the beginning, as large as can be told, and what follows it.
fn number(value: &[u8]) -> Option<(u32, &[u8])> {
    let end = value.iter().position(|b| !b.is_ascii_digit()).unwrap_or(value.len());
    let (digits, rest) = value.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let digit = |n: u32, b: &u8| n.saturating_mul(10).saturating_add(u32::from(b.saturating_sub(b'0')));
    Some((digits.iter().fold(0, digit), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_any_order_and_the_last_one_wins() {
        let r = parse(b"  ready\tup 50% ");
        assert_eq!((r.admin, r.weight), (Some(Wanted::Ready), Some(Weight::Percent(50))));
        assert_eq!(r.health, Some((true, "up".into())));
        let r = parse(b"ready,up,drain maxconn:7 weight:30");
        assert_eq!((r.admin, r.maxconn), (Some(Wanted::Drain), Some(7)));
        assert_eq!(r.weight, Some(Weight::Absolute(30)));
        assert_eq!(parse(b""), Report::default());
    }

    #[test]
    fn a_description_follows_a_sharp_after_a_blank() {
        for line in [&b"down #too hot"[..], b"down,#too hot"] {
            let r = parse(line);
            assert_eq!(r.health, Some((false, "down".into())));
            assert_eq!(r.description.as_deref(), Some("too hot"));
        }
        let r = parse(b"fail #really bad#no");
        assert_eq!(r.description.as_deref(), Some("really bad#no"));
        let r = parse(b"down#too hot");
        assert_eq!((r.health, r.unknown.as_deref()), (None, Some("down#too")));
        assert_eq!(parse(b"down # too hot").description.as_deref(), Some("too hot"));
        assert_eq!(parse(b"down # ").description, None);
    }

    #[test]
    fn case_does_not_matter_and_nonsense_is_named() {
        assert_eq!(parse(b"DOWN").health, Some((false, "DOWN".into())));
        let r = parse(b"garbage up really");
        assert_eq!((r.health, r.unknown.as_deref()), (Some((true, "up".into())), Some("garbage")));
        assert!(parse(b"weight:300").warning.is_some_and(|w| w.starts_with("Absolute")));
        assert!(parse(b"maxconn:abc").warning.is_some());
        assert_eq!(parse(b"maxconn:").warning, Some("Require <maxconn>."));
        assert_eq!(parse(b"weight:x 75%").weight, Some(Weight::Percent(75)));
        assert!(parse(b"12.5% maxconn:z").warning.is_some_and(|w| w.starts_with("Trailing")));
        assert_eq!(parse(b"-10%").unknown.as_deref(), Some("-10%"));
        assert_eq!(parse(b"99999999999%").weight, Some(Weight::Percent(u32::MAX)));
        assert_eq!(parse(b"300%").weight, Some(Weight::Percent(300)));
        assert_eq!(parse(&b"ready".repeat(100)).unknown.map(|u| u.len()), Some(TEXT));
    }
}
