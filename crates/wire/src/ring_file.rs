//! The file behind a ring (`backing-file`): lines that can be read after the process is gone, whatever ended
//! it.
//!
//! The format is ours. Sixteen bytes say what the file is; behind them records stand one after the other,
//! each on a border of eight bytes: a mark, the length of the line, its number since the ring was made, a sum
//! over number and line, and the line. A record that has no room before the end of the file stands at the
//! beginning again, over the oldest ones. Nothing points anywhere: a reader takes what is whole, wherever it
//! finds it, and puts it in the order of the numbers. So a write that was cut short costs the line that it
//! was to hold and those that it stands on, and no other.

/// What a file begins with.
pub const MAGIC: &[u8; 16] = b"harrier ring 1\n\0";

/// What a record begins with.
const MARK: &[u8; 4] = b"\xa5ln:";

/// Bytes before a line.
const HEAD: usize = 24;

/// Where the next record goes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Size of the file.
    size: u64,
    /// Where the next record stands, unless it has no room there.
    next: u64,
}

impl Cursor {
    /// The beginning of a file of this size.
    pub fn new(size: u64) -> Cursor {
        Cursor { size, next: MAGIC.len() as u64 }
    }

    /// Makes the record of a line, and says where it stands; `None`: it is longer than the file.
    pub fn place(&mut self, number: u64, line: &[u8], out: &mut Vec<u8>) -> Option<u64> {
        out.clear();
        out.extend_from_slice(MARK);
        out.extend_from_slice(&u32::try_from(line.len()).ok()?.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&sum(number, line).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(line);
        out.resize(out.len().next_multiple_of(8), 0);
        let (first, need) = (MAGIC.len() as u64, out.len() as u64);
        if first + need > self.size {
            return None;
        }
        let at = if self.next + need > self.size { first } else { self.next };
        self.next = at + need;
        Some(at)
    }
}

/// All lines of a file in order, each with its number; `None`: it is no such file.
pub fn read(file: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut rest = file.strip_prefix(MAGIC)?;
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let step = match record(rest) {
            Some((number, line)) => {
                lines.push((number, line));
                (HEAD + line.len()).next_multiple_of(8)
            }
            None => 8,
        };
        rest = rest.get(step..).unwrap_or_default();
    }
    lines.sort_unstable_by_key(|(number, _)| *number);
    Some(lines)
}

/// The record that bytes begin with, if it is whole.
fn record(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let rest = bytes.strip_prefix(MARK)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (told, rest) = rest.split_first_chunk::<4>()?;
    let line = rest.get(4..)?.get(..u32::from_le_bytes(*length) as usize)?;
    let number = u64::from_le_bytes(*number);
    (u32::from_le_bytes(*told) == sum(number, line)).then_some((number, line))
}

fn sum(number: u64, line: &[u8]) -> u32 {
    let first = base::hash::crc32(&number.to_le_bytes());
    first.rotate_left(1) ^ base::hash::crc32(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(size: u64, lines: &[&str]) -> Vec<u8> {
        let mut file = vec![0; size as usize];
        file[..MAGIC.len()].copy_from_slice(MAGIC);
        let (mut cursor, mut record) = (Cursor::new(size), Vec::new());
        for (number, line) in lines.iter().enumerate() {
            if let Some(at) = cursor.place(number as u64, line.as_bytes(), &mut record) {
                file[at as usize..][..record.len()].copy_from_slice(&record);
            }
        }
        file
    }

    fn shown(file: &[u8]) -> Vec<String> {
        let lines = read(file).unwrap();
        lines.iter().map(|(n, line)| format!("{n} {}", String::from_utf8_lossy(line))).collect()
    }

    #[test]
    fn the_newest_lines_stand_in_the_file_in_order() {
        let lines = ["one", "two", "three", "four", "five"];
        assert_eq!(shown(&written(200, &lines)), ["0 one", "1 two", "2 three", "3 four", "4 five"]);
        assert_eq!(shown(&written(16 + 3 * 32, &lines)), ["2 three", "3 four", "4 five"]);
        let long = "x".repeat(300);
        assert_eq!(shown(&written(200, &["one", &long, "two"])), ["0 one", "2 two"]);
    }

    #[test]
    fn what_is_not_whole_is_passed_over_and_costs_no_other_line() {
        let mut file = written(200, &["one", "two", "three"]);
        file[16 + 32 + HEAD] ^= 1;
        assert_eq!(shown(&file), ["0 one", "2 three"]);
        assert_eq!(shown(&file[..16 + 80]), ["0 one"]);
        assert_eq!(read(b"something else"), None);
    }
}
