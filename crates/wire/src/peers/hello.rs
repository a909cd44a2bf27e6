//! The handshake: three lines from who connects, a status from who was connected to.

/// What the first line begins with.
const PROTOCOL: &[u8] = b"HAProxyS";

/// A peer's name has at most so many bytes on the wire; a line is as long at most, and a little more.
pub const LONGEST: usize = 1024;

/// What whoever connects says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The name that is meant: ours.
    pub remote: &'a [u8],
    /// Its own name.
    pub local: &'a [u8],
}

/// Answers to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Welcome.
    Succeeded,
    /// Not now.
    TryAgain,
    /// No hello at all.
    Protocol,
    /// A version that is not spoken.
    Version,
    /// The name that is meant is not ours.
    Remote,
    /// Its own name is none that we know.
    Local,
}

impl Status {
    /// Its number.
    pub fn code(self) -> u16 {
        match self {
            Status::Succeeded => 200,
            Status::TryAgain => 300,
            Status::Protocol => 501,
            Status::Version => 502,
            Status::Remote => 503,
            Status::Local => 504,
        }
    }

    /// Its line.
    pub fn line(self) -> [u8; 4] {
        match self {
            Status::Succeeded => *b"200\n",
            Status::TryAgain => *b"300\n",
            Status::Protocol => *b"501\n",
            Status::Version => *b"502\n",
            Status::Remote => *b"503\n",
            Status::Local => *b"504\n",
        }
    }
}

/// The lines with which whoever connects begins.
pub fn compose(remote: &str, local: &str, pid: u32) -> Vec<u8> {
    format!("HAProxyS 2.1\n{remote}\n{local} {pid} 1\n").into_bytes()
}

/// Reads them, as far as they have come: `None` when more has to come. With the bytes they take.
///
/// # Errors
/// What is to be answered.
pub fn parse(data: &[u8]) -> Result<Option<(Hello<'_>, usize)>, Status> {
    let Some((first, rest)) = line(data)? else { return Ok(None) };
    let version = first.strip_prefix(PROTOCOL).and_then(|v| v.strip_prefix(b" ")).ok_or(Status::Protocol)?;
    // A later minor version of the protocol is not spoken, an earlier one is.
    if !matches!(version, b"2.0" | b"2.1") {
        return Err(Status::Version);
    }
    let Some((remote, rest)) = line(rest)? else { return Ok(None) };
    let Some((third, rest)) = line(rest)? else { return Ok(None) };
    let local = third.split(|b| *b == b' ').next().unwrap_or_default();
    Ok(Some((Hello { remote, local }, data.len() - rest.len())))
}

/// Reads the status that answers a hello: `None` when more has to come.
///
/// # Errors
/// It is none.
pub fn status(data: &[u8]) -> Result<Option<(u16, usize)>, Status> {
    let Some((line, rest)) = line(data)? else { return Ok(None) };
    let number = line.iter().try_fold(0u16, |n, b| match b {
        b'0'..=b'9' => n.checked_mul(10)?.checked_add(u16::from(b - b'0')),
        _ => None,
    });
    match number {
        Some(code) if line.len() == 3 => Ok(Some((code, data.len() - rest.len()))),
        _ => Err(Status::Protocol),
    }
}

type Split<'a> = Option<(&'a [u8], &'a [u8])>;

/// A line and what is behind it.
fn line(data: &[u8]) -> Result<Split<'_>, Status> {
    let Some(at) = data.iter().take(LONGEST).position(|b| *b == b'\n') else {
        return if data.len() >= LONGEST { Err(Status::Protocol) } else { Ok(None) };
    };
    let (line, rest) = data.split_at_checked(at).unwrap_or_default();
    let rest = rest.get(1..).unwrap_or_default();
    Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), rest)))
}
