//! What FastCGI responders say.

use crate::fcgi::{Event, HEADER, Pairs, Reader, Received, Values, put_pair};

/// Reads records, once as a whole and once in pieces: both say the same. What is a pair is one again when it
/// is written anew.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn fcgi(data: &[u8]) {
    let whole = told(&[data]);
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in super::cuts(data) {
        pieces.push(data.get(from..cut).unwrap_or_default());
        from = cut;
    }
    assert_eq!(told(&pieces), whole);
    let (mut pairs, mut again) = (Pairs::new(data), Vec::new());
    let read: Vec<_> = pairs.by_ref().collect();
    read.iter().for_each(|(name, value)| put_pair(&mut again, name, value));
    assert_eq!(Pairs::new(&again).collect::<Vec<_>>(), read);
    assert!(again.len() <= data.len() - pairs.rest().len(), "lengths are written as short as they can be");
    assert_eq!(Values::parse(&again), Values::parse(data));
}

/// What was said, data in one piece for each record of them, and whether it was understood to the end.
fn told(pieces: &[&[u8]]) -> (Vec<(u8, u16, Vec<u8>)>, bool) {
    let (mut reader, mut kept, mut said) = (Reader::default(), Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        loop {
            let Ok(Received { consumed, event }) = reader.receive(&kept) else { return (said, false) };
            assert!(consumed <= kept.len());
            let Some(event) = event else {
                kept.drain(..consumed);
                assert!(kept.len() < HEADER, "only a header has to be whole");
                break;
            };
            let fresh = match event {
                Event::Stdout { id, bytes } => (6, id, bytes.to_vec()),
                Event::Stderr { id, bytes, .. } => (7, id, bytes.to_vec()),
                Event::End { id, code, status } => (3, id, format!("{code} {status:?}").into()),
                Event::Values(values) => (10, 0, format!("{values:?}").into()),
                Event::Unknown(kind) => (11, 0, vec![kind]),
            };
            assert!(consumed > 0, "what is said takes bytes");
            kept.drain(..consumed);
            match said.last_mut() {
                Some((kind @ (6 | 7), id, bytes))
                    if (*kind, *id) == (fresh.0, fresh.1) && !fresh.2.is_empty() && !bytes.is_empty() =>
                {
                    bytes.extend(fresh.2);
                }
                _ => said.push(fresh),
            }
        }
    }
    (said, true)
}
