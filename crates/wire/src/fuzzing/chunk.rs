//! Chunked bodies: the end and the bytes passed on do not depend on the cuts, and what is passed on is what a
//! plain decoder, written another way, reads as the same data.

use super::cuts;
use crate::http1::Scanner;

/// Any bytes as a chunked body.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn chunk(data: &[u8]) {
    let whole = passed_on(&[data]);
    let mut start = 0;
    let mut pieces = Vec::new();
    for cut in cuts(data) {
        pieces.push(&data[start..cut]);
        start = cut;
    }
    assert_eq!(whole, passed_on(&pieces), "the cuts change nothing");
    let scanned = Scanner::default().scan(data);
    let Some((out, end)) = whole else {
        assert!(scanned.is_err());
        return;
    };
    assert_eq!(scanned, Ok((end.unwrap_or(data.len()), end.is_some())));
    let Some(end) = end else { return };
    assert_eq!(passed_on(&[&out]), Some((out.clone(), Some(out.len()))), "what is passed on is left alone");
    let sent = decode(&data[..end]).expect("a plain decoder reads what came in");
    let kept = decode(&out).expect("a plain decoder reads what goes out");
    assert_eq!(sent.0, kept.0);
    assert!(kept.1.ends_with(b"\r\n"), "trailers go on with whole lines");
}

/// What is passed on, and where the body ends; nothing for what is no chunked body.
fn passed_on(pieces: &[&[u8]]) -> Option<(Vec<u8>, Option<usize>)> {
    let (mut scanner, mut out, mut used) = (Scanner::default(), Vec::new(), 0);
    for piece in pieces {
        let mut piece = piece.to_vec();
        let done = scanner.strip(&mut piece).ok()?;
        assert!(done.kept <= done.used && done.used <= piece.len());
        assert!(done.end || done.used == piece.len());
        out.extend_from_slice(&piece[..done.kept]);
        used += done.used;
        if done.end {
            out.extend_from_slice(&scanner.take_trailers());
            return Some((out, Some(used)));
        }
    }
    Some((out, None))
}

/// The data and the trailers of a whole body, read line by line.
fn decode(body: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut data = Vec::new();
    let mut rest = body;
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let (line, tail) = (&rest[..end], &rest[end + 2..]);
        let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
        let size = usize::from_str_radix(std::str::from_utf8(&line[..digits]).ok()?, 16).ok()?;
        if size == 0 {
            return Some((data, tail.to_vec()));
        }
        data.extend_from_slice(tail.get(..size)?);
        rest = tail.get(size..)?.strip_prefix(b"\r\n")?;
    }
}
