//! Listening sockets that go from one process to another (`_getsocks`, `-x`): what is said beside them.
//!
//! HAProxy's documents leave the exchange out; docs/handover.md tells what was seen between two of its
//! processes. Whoever has the sockets first says how many there are (four bytes in the machine's order), then
//! sends them in messages of at most [`AT_ONCE`]. Beside each socket stand the network namespace and the
//! interface it is bound to, both with a byte of length in front, and four bytes of options, always zero. The
//! receiver says after each message how many sockets it had before it, in four bytes.

/// What a master says to a worker to which it has a configuration to give.
pub const ADOPT: &[u8] = b"_adopt\n";

/// What a master says to a worker that waits for the end of a reload; its outcome follows, up to the end of
/// the connection.
pub const TOLD: &[u8] = b"_told\n";

/// What a client of the runtime API asks with.
pub const REQUEST: &[u8] = b"_getsocks\n";

/// The most sockets in one message.
pub const AT_ONCE: usize = 252;

/// The most bytes that tell of one socket.
pub const ROOM: usize = 256 + 256 + 4;

/// What is told of one socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Network namespace, empty for none.
    pub namespace: Vec<u8>,
    /// Interface, empty for none.
    pub interface: Vec<u8>,
}

impl Label {
    /// Appends what is told; names of more than 255 bytes are left out.
    pub fn put(&self, out: &mut Vec<u8>) {
        for name in [&self.namespace, &self.interface] {
            match u8::try_from(name.len()) {
                Ok(length) => {
                    out.push(length);
                    out.extend_from_slice(name);
                }
                Err(_) => out.push(0),
            }
        }
        out.extend_from_slice(&[0; 4]);
    }

    /// Reads what is told of one socket, and returns what stands behind it; `None` if it is not all there.
    pub fn take(data: &[u8]) -> Option<(Label, &[u8])> {
        let name = |data: &mut &[u8]| {
            let (length, rest) = data.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            *data = rest;
            Some(name.to_vec())
        };
        let mut rest = data;
        let namespace = name(&mut rest)?;
        let interface = name(&mut rest)?;
        let (_, rest) = rest.split_at_checked(4)?;
        Some((Label { namespace, interface }, rest))
    }
}

/// Four bytes of a number, as both sides say them.
pub fn number(n: usize) -> [u8; 4] {
    u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_between_two_processes() {
        // `bind 127.0.0.1:18421 interface lo` between two plain ones.
        let mut seen = vec![0; 6];
        seen.extend_from_slice(b"\0\x02lo\0\0\0\0");
        seen.extend_from_slice(&[0; 6]);
        let (plain, rest) = Label::take(&seen).unwrap();
        let (named, rest) = Label::take(rest).unwrap();
        let (last, rest) = Label::take(rest).unwrap();
        assert_eq!((plain, last, rest.len()), (Label::default(), Label::default(), 0));
        assert_eq!(named.interface, b"lo");
        let mut written = Vec::new();
        named.put(&mut written);
        assert_eq!(written, seen[6..14]);
        assert_eq!(number(9), 9u32.to_ne_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut label = Vec::new();
        Label { namespace: vec![7; 255], interface: vec![9; 300] }.put(&mut label);
        assert_eq!(label.len(), 1 + 255 + 1 + 4);
        for end in 0..label.len() {
            assert!(Label::take(&label[..end]).is_none());
        }
        assert!(Label::take(&label).is_some_and(|(l, rest)| l.interface.is_empty() && rest.is_empty()));
        assert!(Label::take(&[200, 1, 2]).is_none());
    }
}
