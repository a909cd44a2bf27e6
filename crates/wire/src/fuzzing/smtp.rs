//! What mail servers say, and what is said to them.

use crate::smtp::{mail, reply};

/// Reads replies one after the other, each the same however much of it came first; and makes a mail of the
/// input, which has one end.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn smtp(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(read)) = reply(rest) {
        assert!(read.length > 0 && read.length <= rest.len() && read.code < 1000);
        for cut in super::cuts(rest.get(..read.length).unwrap_or_default()) {
            let early = reply(rest.get(..cut).unwrap_or_default());
            assert!(cut == read.length || early == Ok(None), "a reply that is not whole waits");
        }
        rest = rest.get(read.length..).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(data);
    let sent = mail(&[("Subject", &text)], &text);
    let lines: Vec<&[u8]> = sent.split(|byte| *byte == b'\n').collect();
    let ends = lines.iter().filter(|line| **line == b".\r").count();
    assert!(ends == 1 && sent.ends_with(b"\r\n.\r\n"), "a mail has one end");
    let whole = |line: &&[u8]| line.len() < 999 && line.last().is_none_or(|byte| *byte == b'\r');
    assert!(lines.iter().all(whole), "lines have their ends, and are not too long");
}
