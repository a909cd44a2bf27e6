//! What comes from a responder.

use super::{HEADER, Header, Status, Values, kind};

/// Most bytes of a record that has to be whole. Limits take a few dozen.
const WHOLE: usize = 1024;

/// What was understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A part of a response.
    Stdout {
        /// The request.
        id: u16,
        /// The part; empty when the stream ends.
        bytes: &'a [u8],
    },
    /// A part of what the application says of errors.
    Stderr {
        /// The request.
        id: u16,
        /// The part; empty when the stream ends.
        bytes: &'a [u8],
        /// The record is over with it.
        last: bool,
    },
    /// A request is over.
    End {
        /// The request.
        id: u16,
        /// What the application would have exited with.
        code: u32,
        /// How it ended.
        status: Status,
    },
    /// The application tells its limits.
    Values(Values),
    /// The application does not know records of this type.
    Unknown(u8),
}

/// Why a connection can't be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A record of a version other than 1.
    Version,
    /// A record about the connection of a type that no responder sends.
    Type,
    /// A record of a request that belongs to the connection, or the other way round.
    Place,
    /// A record that has to be whole has a content that it can't have.
    Length,
}

/// How far a look into what came went.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Bytes that are done with.
    pub consumed: usize,
    /// What they said; nothing when more has to come.
    pub event: Option<Event<'a>>,
}

/// Reads records.
#[derive(Debug, Default)]
pub struct Reader {
    /// The record at hand, if its header has come: what is left of its content and padding.
    current: Option<Header>,
    /// What came of a record that has to be whole.
    gathered: Vec<u8>,
}

impl Reader {
    /// Whether nothing of a record has come that is not whole, but for what was not consumed.
    pub fn is_between(&self) -> bool {
        self.current.is_none()
    }

    /// Understands what is at the front of `bytes`, all that came and was not consumed. To be called again,
    /// with what is left, until it says that more has to come.
    ///
    /// # Errors
    /// What came is not FastCGI as a responder speaks it.
    pub fn receive<'a>(&mut self, bytes: &'a [u8]) -> Result<Received<'a>, Malformed> {
        let mut rest = bytes;
        loop {
            let Some(header) = self.current.as_mut() else {
                let Some((first, behind)) = rest.split_first_chunk::<HEADER>() else { break };
                rest = behind;
                let header = Header::parse(first)?;
                let empty = header.content == 0;
                check(header)?;
                self.current = Some(header);
                if empty && let Some(event) = ended(header) {
                    return Ok(Received { consumed: bytes.len() - rest.len(), event: Some(event) });
                }
                continue;
            };
            if header.content == 0 {
                let skipped = rest.len().min(usize::from(header.padding));
                rest = rest.get(skipped..).unwrap_or_default();
                header.padding -= u8::try_from(skipped).unwrap_or(header.padding);
                if header.padding > 0 {
                    break;
                }
                self.current = None;
                continue;
            }
            let size = rest.len().min(usize::from(header.content));
            let (part, behind) = rest.split_at_checked(size).unwrap_or_default();
            if part.is_empty() {
                break;
            }
            rest = behind;
            header.content -= u16::try_from(size).unwrap_or(header.content);
            let Header { kind, id, content, .. } = *header;
            let event = match kind {
                kind::STDOUT => Some(Event::Stdout { id, bytes: part }),
                kind::STDERR => Some(Event::Stderr { id, bytes: part, last: content == 0 }),
                _ if is_passed_over(*header) => None,
                _ => {
                    self.gathered.extend_from_slice(part);
                    match content {
                        0 => Some(whole(kind, id, &std::mem::take(&mut self.gathered))?),
                        _ => None,
                    }
                }
            };
            if event.is_some() {
                return Ok(Received { consumed: bytes.len() - rest.len(), event });
            }
        }
        Ok(Received { consumed: bytes.len() - rest.len(), event: None })
    }
}

/// Whether a record is of a request and of a type that means nothing here: it hurts nobody.
fn is_passed_over(header: Header) -> bool {
    let known = [kind::STDOUT, kind::STDERR, kind::END_REQUEST, kind::GET_VALUES_RESULT, kind::UNKNOWN_TYPE];
    header.id != 0 && !known.contains(&header.kind)
}

/// Whether a record may come at all.
fn check(header: Header) -> Result<(), Malformed> {
    let of_request = matches!(header.kind, kind::STDOUT | kind::STDERR | kind::END_REQUEST);
    if is_passed_over(header) {
        return Ok(());
    }
    if !of_request && !matches!(header.kind, kind::GET_VALUES_RESULT | kind::UNKNOWN_TYPE) {
        return Err(Malformed::Type);
    }
    if of_request != (header.id != 0) {
        return Err(Malformed::Place);
    }
    let content = usize::from(header.content);
    let fits = match header.kind {
        kind::END_REQUEST | kind::UNKNOWN_TYPE => content == 8,
        kind::GET_VALUES_RESULT => content <= WHOLE,
        _ => true,
    };
    if fits { Ok(()) } else { Err(Malformed::Length) }
}

/// What a record without content says.
fn ended(header: Header) -> Option<Event<'static>> {
    match header.kind {
        kind::STDOUT => Some(Event::Stdout { id: header.id, bytes: &[] }),
        kind::STDERR => Some(Event::Stderr { id: header.id, bytes: &[], last: true }),
        kind::GET_VALUES_RESULT => Some(Event::Values(Values::default())),
        _ => None,
    }
}

fn whole(kind: u8, id: u16, content: &[u8]) -> Result<Event<'static>, Malformed> {
    match (kind, content) {
        (kind::END_REQUEST, [c3, c2, c1, c0, status, _, _, _]) => {
            let status = match status {
                0 => Status::Complete,
                1 => Status::CannotMultiplex,
                2 => Status::Overloaded,
                _ => Status::Refused,
            };
            Ok(Event::End { id, code: u32::from_be_bytes([*c3, *c2, *c1, *c0]), status })
        }
        (kind::UNKNOWN_TYPE, [unknown, ..]) => Ok(Event::Unknown(*unknown)),
        (kind::GET_VALUES_RESULT, content) => Ok(Event::Values(Values::parse(content))),
        _ => Err(Malformed::Length),
    }
}
