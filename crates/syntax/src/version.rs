//! Versions as the predicates compare them.

/// A version of HAProxy: `major.minor[.patch][-devN|-preN|-rcN][-commits]`. What is missing counts as zero, a
/// stage that is missing as the release, which comes after all stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    numbers: [u64; 3],
    stage: u8,
    stage_number: u64,
    commits: u64,
}

const RELEASE: u8 = u8::MAX;

impl Version {
    /// Reads as much of `text` as makes sense.
    pub(crate) fn parse(text: &str) -> Version {
        let mut parts = text.split('-');
        let mut numbers = [0; 3];
        for (slot, part) in numbers.iter_mut().zip(parts.next().unwrap_or_default().split('.')) {
            *slot = leading(part);
        }
        let (mut stage, mut stage_number) = (RELEASE, 0);
        let mut next = parts.next();
        for (rank, name) in ["dev", "pre", "rc"].into_iter().enumerate() {
            if let Some(number) = next.and_then(|part| part.strip_prefix(name)) {
                (stage, stage_number) = (rank as u8, leading(number));
                next = parts.next();
                break;
            }
        }
        let commits = next.and_then(|part| part.parse().ok()).unwrap_or(0);
        Version { numbers, stage, stage_number, commits }
    }
}

fn leading(text: &str) -> u64 {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A version of OpenSSL, `1.1.1` with a patch letter or `3.0.2`, as numbers to compare; a beta counts as its
/// release.
pub(crate) fn openssl(text: &str) -> Option<[u64; 4]> {
    let mut parts = text.split('-').next()?.splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let last = parts.next()?;
    let end = last.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(last.len());
    let (patch, letter) = last.split_at_checked(end)?;
    let letter = match letter.as_bytes() {
        [] => 0,
        [letter @ b'a'..=b'z'] => u64::from(letter - b'a') + 1,
        _ => return None,
    };
    Some([major, minor, patch.parse().ok()?, letter])
}
