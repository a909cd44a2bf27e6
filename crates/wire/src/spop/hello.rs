//! What an agent says of itself, and why a connection ends (`SPOE.txt`, sections 3.2.5, 3.2.9 and 3.5).

use super::LEAST_FRAME;
use super::data::{Data, Reader};

/// Why a connection or a frame failed (section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing failed.
    Normal,
    /// Reading or writing failed.
    Io,
    /// Something took too long.
    Timeout,
    /// A frame is longer than was agreed upon.
    TooBig,
    /// A frame can't be understood.
    Invalid,
    /// A greeting without a version.
    NoVersion,
    /// A greeting without a limit for frames.
    NoSize,
    /// A greeting without capabilities.
    NoCapabilities,
    /// A version that is not spoken.
    Version,
    /// A limit for frames out of range.
    Size,
    /// A payload came in fragments.
    Fragmented,
    /// Frames came between the fragments of another.
    Interlaced,
    /// An answer to a frame that nobody sent.
    NotFound,
    /// There was no room.
    Resources,
    /// Something else.
    Unknown,
}

impl Status {
    /// Its number.
    pub const fn code(self) -> u32 {
        match self {
            Status::Normal => 0,
            Status::Io => 1,
            Status::Timeout => 2,
            Status::TooBig => 3,
            Status::Invalid => 4,
            Status::NoVersion => 5,
            Status::NoSize => 6,
            Status::NoCapabilities => 7,
            Status::Version => 8,
            Status::Size => 9,
            Status::Fragmented => 10,
            Status::Interlaced => 11,
            Status::NotFound => 12,
            Status::Resources => 13,
            Status::Unknown => 99,
        }
    }

    /// What a DISCONNECT frame says of it.
    pub fn message(self) -> &'static str {
        match self {
            Status::Normal => "normal",
            Status::Io => "I/O error",
            Status::Timeout => "a timeout occurred",
            Status::TooBig => "frame is too big",
            Status::Invalid => "invalid frame received",
            Status::NoVersion => "version value not found",
            Status::NoSize => "max-frame-size value not found",
            Status::NoCapabilities => "capabilities value not found",
            Status::Version => "unsupported version",
            Status::Size => "max-frame-size too big or too small",
            Status::Fragmented => "payload fragmentation is not supported",
            Status::Interlaced => "invalid interlaced frames",
            Status::NotFound => "frame-id not found",
            Status::Resources => "resource allocation error",
            Status::Unknown => "an unknown error occurred",
        }
    }
}

/// What was agreed upon with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentHello {
    /// The longest frame from here on, in bytes without its prefix.
    pub most: usize,
    /// Whether several NOTIFY frames may wait for their answers, which come in any order.
    pub pipelining: bool,
}

impl AgentHello {
    /// Reads the payload of an AGENT-HELLO frame that answers an offer of frames of at most `offered` bytes.
    /// Items that are not known are passed over.
    ///
    /// # Errors
    /// What the agent has to be told before the connection ends.
    pub fn parse(payload: &[u8], offered: usize) -> Result<AgentHello, Status> {
        let (size, pipelining) = read(payload, offered)?;
        let most = size.ok_or(Status::NoSize)?;
        Ok(AgentHello { most, pipelining: pipelining.ok_or(Status::NoCapabilities)? })
    }

    /// The same on a connection that is to be used, where HAProxy lets an agent leave out size and
    /// capabilities: it takes what was offered then, and can do nothing special.
    ///
    /// # Errors
    /// What the agent has to be told before the connection ends.
    pub fn greeted(payload: &[u8], offered: usize) -> Result<AgentHello, Status> {
        let (size, pipelining) = read(payload, offered)?;
        Ok(AgentHello { most: size.unwrap_or(offered), pipelining: pipelining.unwrap_or(false) })
    }
}

/// Reads the limit of frames, and whether the agent can pipeline.
fn read(payload: &[u8], offered: usize) -> Result<(Option<usize>, Option<bool>), Status> {
    let (mut version, mut size, mut pipelining) = (false, None, None);
    let mut reader = Reader::new(payload);
    while !reader.is_empty() {
        let name = reader.text().ok_or(Status::Invalid)?;
        let value = reader.data().ok_or(Status::Invalid)?;
        match (name, value) {
            (b"version", Data::Text(text)) => {
                version = true;
                spoken(text)?;
            }
            (b"max-frame-size", value) => {
                let most = usize::try_from(unsigned(value)?).map_err(|_| Status::Size)?;
                if !(LEAST_FRAME..=offered).contains(&most) {
                    return Err(Status::Size);
                }
                size = Some(most);
            }
            (b"capabilities", Data::Text(text)) => pipelining = Some(can_pipeline(text)),
            (b"version" | b"capabilities", _) => return Err(Status::Invalid),
            // How long such a value is in truth is not known: what stands behind it can't be read.
            (_, Data::Unknown(_)) => break,
            _ => {}
        }
    }
    if !version {
        return Err(Status::NoVersion);
    }
    Ok((size, pipelining))
}

/// Version 2.0 is the only one.
fn spoken(text: &[u8]) -> Result<(), Status> {
    match text.trim_ascii() {
        _ if text.is_empty() => Err(Status::Invalid),
        b"2.0" => Ok(()),
        _ => Err(Status::Version),
    }
}

/// A number of any of the four types of numbers; a negative one is larger than every limit.
fn unsigned(value: Data<'_>) -> Result<u64, Status> {
    match value {
        Data::Int32(n) | Data::Int64(n) => Ok(u64::try_from(n).unwrap_or(u64::MAX)),
        Data::Uint32(n) | Data::Uint64(n) => Ok(n),
        _ => Err(Status::Invalid),
    }
}

fn can_pipeline(capabilities: &[u8]) -> bool {
    capabilities.split(|b| *b == b',').any(|one| one.trim_ascii() == b"pipelining")
}

/// Why a peer ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Its status code; agents have codes of their own beside those of [`Status`].
    pub code: u64,
    /// Its words.
    pub message: &'a [u8],
}

impl Disconnect<'_> {
    /// Reads the payload of a DISCONNECT frame. Items that are not known are passed over.
    ///
    /// # Errors
    /// [`Status::Invalid`] when code or message is missing, or something can't be read.
    pub fn parse(payload: &[u8]) -> Result<Disconnect<'_>, Status> {
        let (mut code, mut message) = (None, None);
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let name = reader.text().ok_or(Status::Invalid)?;
            match (name, reader.data().ok_or(Status::Invalid)?) {
                (b"status-code", value) => code = Some(unsigned(value)?),
                (b"message", Data::Text(text)) => message = Some(text),
                (b"message", _) => return Err(Status::Invalid),
                _ => {}
            }
        }
        match (code, message) {
            (Some(code), Some(message)) => Ok(Disconnect { code, message }),
            _ => Err(Status::Invalid),
        }
    }
}
