//! "Did you mean": the nearest of a table's words.
//!
//! The distance is the number of letters to insert, drop, change or swap with their neighbour. A word is
//! offered only when it is near enough to be a slip of the hand; a far-fetched offer is worse than none.

/// Words longer than this are not worth comparing.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if one is near enough. The first of equals wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match word.len() {
        0..=1 => return None,
        2..=3 => 1,
        4..=7 => 2,
        8..=LONGEST => 3,
        _ => return None,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let bound = best.map_or(limit, |(found, _)| found.saturating_sub(1));
        if let Some(found) = distance(word.as_bytes(), candidate.as_bytes(), bound) {
            best = Some((found, candidate));
            if found == 0 {
                break;
            }
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The distance between two words if it is at most `bound`.
fn distance(a: &[u8], b: &[u8], bound: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > bound || b.len() > LONGEST || a.len() > LONGEST {
        return None;
    }
    let mut rows = [[0usize; LONGEST + 1]; 3];
    for (column, cell) in rows[1].iter_mut().enumerate() {
        *cell = column;
    }
    for (i, left) in a.iter().enumerate() {
        let [before, last, row] = &mut rows;
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let change = last[j] + usize::from(!left.eq_ignore_ascii_case(right));
            let mut cell = change.min(last[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(right) && b.get(j - 1) == Some(left);
            if swapped {
                cell = cell.min(before[j - 1] + 1);
            }
            row[j + 1] = cell;
        }
        rows.rotate_left(1);
    }
    rows[1].get(b.len()).copied().filter(|found| *found <= bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let table = ["bind", "balance", "backlog", "maxconn", "timeout"];
        assert_eq!(nearest("bidn", table), Some("bind"));
        assert_eq!(nearest("ballance", table), Some("balance"));
        assert_eq!(nearest("max-conn", table), Some("maxconn"));
        assert_eq!(nearest("TimeOut", table), Some("timeout"));
        assert_eq!(nearest("server", table), None);
        assert_eq!(nearest("x", table), None);
        assert_eq!(nearest(&"b".repeat(10_000), table), None);
    }
}
