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
    /// A word that nobody knows: reading stopped there.
    pub unknown: Option<String>,
    /// A word that is known but makes no sense.
    pub warning: Option<&'static str>,
}

/// Longest word or description that is kept.
const TEXT: usize = 128;

/// Reads a line, its end cut off.
pub fn parse(line: &[u8]) -> Report {
    let mut report = Report::default();
    let mut rest = line;
    loop {
        let skip = rest.iter().take_while(|b| is_blank(**b)).count();
        rest = rest.get(skip..).unwrap_or_default();
        if rest.is_empty() {
            return report;
        }
        if let [b'#', description @ ..] = rest {
            report.description = Some(text(description));
            return report;
        }
        let end = rest.iter().position(|b| is_blank(*b)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if !take(word, &mut report) {
            report.unknown = Some(text(word));
            return report;
        }
    }
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b',')
}

fn text(bytes: &[u8]) -> String {
    let kept: String = String::from_utf8_lossy(bytes).chars().take(TEXT).collect();
    kept.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Takes one word in; whether it is known.
fn take(word: &[u8], report: &mut Report) -> bool {
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
        weight(value, report);
    } else if let Some(value) = after(word, b"maxconn:") {
        match number(value) {
            Some(n) => report.maxconn = Some(n),
            None => report.warning = Some("maxconn string empty or preceded by garbage"),
        }
    } else if word.ends_with(b"%") {
        weight(word, report);
    } else {
        return false;
    }
    true
}

fn after<'w>(word: &'w [u8], prefix: &[u8]) -> Option<&'w [u8]> {
    let (head, tail) = word.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn weight(value: &[u8], report: &mut Report) {
    let parsed = match value.strip_suffix(b"%") {
        Some(percent) => number(percent).map(Weight::Percent),
        None => number(value).map(Weight::Absolute),
    };
    match parsed {
        Some(Weight::Absolute(n)) if n > 256 => {
            report.warning = Some("Absolute weight can only be between 0 and 256 inclusive.");
        }
        Some(weight) => report.weight = Some(weight),
        None => report.warning = Some("Trailing garbage in weight string"),
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
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
    }

    #[test]
    fn case_does_not_matter_and_nonsense_is_named() {
        assert_eq!(parse(b"DOWN").health, Some((false, "DOWN".into())));
        assert_eq!(parse(b"garbage up").unknown.as_deref(), Some("garbage"));
        assert!(parse(b"weight:300").warning.is_some_and(|w| w.starts_with("Absolute")));
        assert!(parse(b"maxconn:abc").warning.is_some());
        assert_eq!(parse(b"300%").weight, Some(Weight::Percent(300)));
        assert_eq!(parse(&b"ready".repeat(100)).unknown.map(|u| u.len()), Some(TEXT));
    }
}
