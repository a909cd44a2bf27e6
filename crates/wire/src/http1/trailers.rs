//! The fields behind a chunked body (RFC 9112 section 7.1.2), put in order: one line each, names in lower
//! case, CR LF at the end. They are read by the same rules as the fields of a head, so what a head may not
//! hold is refused here, too, and what is let pass there (line ends of LF alone, folded values, with `relax`
//! bad names, which are dropped) is let pass here.

use super::chunk::Malformed;
use super::line::{self, Line};

/// So many fields fit, by the default of `tune.http.maxhdr`.
const MOST: usize = 100;

/// Where a name and its value lie.
type Parts = ((usize, usize), (usize, usize));

/// The lines of `raw`, which ends with the empty one, in order.
///
/// # Errors
/// They are no fields.
pub(super) fn ordered(raw: &[u8], relax: bool) -> Result<Vec<u8>, Malformed> {
    let fields = read(raw, relax)?;
    let mut out = Vec::with_capacity(raw.len() + fields.len() * 2);
    for (name, value) in fields {
        out.extend(raw.get(name.0..name.1).unwrap_or_default().iter().map(u8::to_ascii_lowercase));
        out.extend_from_slice(b": ");
        let bytes = raw.get(value.0..value.1).unwrap_or_default().iter();
        out.extend(bytes.map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(out)
}

/// Bytes of the names and values of trailers that are in order.
pub fn counted(ordered: &[u8]) -> u64 {
    let lines = ordered.split(|byte| *byte == b'\n').filter(|line| line.len() > 1);
    // A colon, a blank and a CR stand in each line.
    lines.map(|line| line.len().saturating_sub(3) as u64).sum()
}

fn read(raw: &[u8], relax: bool) -> Result<Vec<Parts>, Malformed> {
    let mut fields: Vec<Parts> = Vec::new();
    let (mut at, mut dropped) = (0, false);
    loop {
        at = match line::field(raw, at, fields.is_empty(), relax).map_err(|_| Malformed)? {
            Line::More => return Err(Malformed),
            Line::End { .. } => return Ok(fields),
            Line::Drop { next, .. } => {
                dropped = true;
                next
            }
            Line::Fold { next, .. } if dropped => next,
            Line::Fold { value, next } => {
                let (_, last) = fields.last_mut().ok_or(Malformed)?;
                let empty = last.0 == last.1;
                last.0 = if empty { value.0 } else { last.0 };
                last.1 = if value.1 > value.0 { value.1 } else { last.1 }.max(last.0);
                next
            }
            Line::Field(field) if fields.len() < MOST => {
                dropped = false;
                fields.push((field.name, field.value));
                field.next
            }
            Line::Field(_) => return Err(Malformed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(raw: &str) -> Option<String> {
        ordered(raw.as_bytes(), false).ok().map(|out| String::from_utf8(out).unwrap())
    }

    /// What the oracle passes on.
    #[test]
    fn line_ends_folds_and_blanks_are_put_in_order() {
        for (raw, want) in [
            ("X:y\r\n\r\n", "x: y\r\n\r\n"),
            ("X: y\n\n", "x: y\r\n\r\n"),
            ("X: y\r\n folded\r\n\r\n", "x: y   folded\r\n\r\n"),
            ("X: y\n\tfolded\n  more \n\n", "x: y \tfolded   more\r\n\r\n"),
            ("X: y \r\n \r\n\r\n", "x: y\r\n\r\n"),
            ("X:\r\n z\r\n\r\n", "x: z\r\n\r\n"),
            ("\n", "\r\n"),
        ] {
            assert_eq!(strict(raw).as_deref(), Some(want), "{raw:?}");
        }
    }

    #[test]
    fn what_no_head_may_hold_is_refused() {
        let many = "x: 1\r\n".repeat(101) + "\r\n";
        for raw in [
            " f\r\n\r\n",
            "X y: 1\r\n\r\n",
            "X: a\rb\r\n\r\n",
            ": b\r\n\r\n",
            "X: a\0b\r\n\r\n",
            "X\r\n\r\n",
            &many,
        ] {
            assert_eq!(strict(raw), None, "{raw:?}");
        }
        assert!(strict(&many[6..]).is_some());
    }

    #[test]
    fn in_relaxed_mode_bad_names_are_dropped_and_nul_is_let_pass() {
        let relaxed = |raw: &[u8]| ordered(raw, true);
        assert_eq!(relaxed(b"X y: 1\r\n more\r\nA: b\r\n\r\n"), Ok(b"a: b\r\n\r\n".to_vec()));
        assert_eq!(relaxed(b"X: a\0b\r\n\r\n"), Ok(b"x: a\0b\r\n\r\n".to_vec()));
        assert_eq!(relaxed(b": b\r\n\r\n"), Err(Malformed));
    }
}
