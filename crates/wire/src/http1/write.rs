//! Writing a head as HTTP/1 text: ranges of the arena are handed on, neighbours that nobody edited in one go.
//! The parts of a head sum up to [`Head::wire_len`] bytes, so that whoever stages them knows beforehand
//! whether they fit.

use crate::head::{Field, Head, Kind, Known};
use crate::method::Version;

/// Hands the text of `head` to `put`, part by part.
pub fn write_head(head: &Head, put: &mut impl FnMut(&[u8])) {
    start_line(head, put);
    let mut live = live(head).peekable();
    while let Some(field) = live.next() {
        if !field.plain {
            line(field.name.of(&head.bytes), value(field, head), put);
            continue;
        }
        let (start, mut end) = (field.name.start(), field.value.end() + 2);
        while let Some(next) = live.next_if(|next| next.plain && next.name.start() == end) {
            end = next.value.end() + 2;
        }
        put(head.bytes.get(start..end).unwrap_or_default());
    }
    put(b"\r\n");
}

/// The same with other names: `name` gives what is written for each, as long as the name itself.
pub fn write_head_as<'h>(head: &'h Head, name: impl Fn(&'h [u8]) -> &'h [u8], put: &mut impl FnMut(&[u8])) {
    start_line(head, put);
    for field in live(head) {
        line(name(field.name.of(&head.bytes)), value(field, head), put);
    }
    put(b"\r\n");
}

/// The value as it is written: a coding that decides where a message ends in letters that nobody can take for
/// another.
fn value<'h>(field: &Field, head: &'h Head) -> &'h [u8] {
    let value = field.value.of(&head.bytes);
    let coding = field.known == Known::TransferEncoding && value.eq_ignore_ascii_case(b"chunked");
    if coding { b"chunked" } else { value }
}

fn live(head: &Head) -> impl Iterator<Item = &Field> {
    head.fields.iter().filter(|field| !field.removed)
}

fn line(name: &[u8], value: &[u8], put: &mut impl FnMut(&[u8])) {
    [name, b": ", value, b"\r\n"].into_iter().for_each(put);
}

fn start_line(head: &Head, put: &mut impl FnMut(&[u8])) {
    let version = match head.version_text.of(&head.bytes) {
        // What came by a later version goes on as HTTP/1.1.
        b"" => head.version().min(Version::HTTP_11).as_str().as_bytes(),
        text => text,
    };
    if head.kind() == Kind::Request {
        [head.method(), b" ", head.written_target(), b" ", version, b"\r\n"].into_iter().for_each(put);
        return;
    }
    let status = head.status();
    let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
    let status = if head.status_text.len == 0 { &digits } else { head.status_text.of(&head.bytes) };
    [version, b" ", status, b" ", head.written_reason(), b"\r\n"].into_iter().for_each(put);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{Limits, parse_request};

    #[test]
    fn a_head_is_written_as_it_was_read_but_for_edits() {
        let mut head = Head::request();
        let input = b"GET /a HTTP/1.1\r\nHost: x\r\nA:1\r\nB: 2\r\nC: 3\r\n\r\n";
        parse_request(input, &mut head, &Limits::default(), false).unwrap();
        head.remove_all("b");
        head.append(b"D", b"4").unwrap();
        let mut out = Vec::new();
        write_head(&head, &mut |part| out.extend_from_slice(part));
        assert_eq!(out, b"GET /a HTTP/1.1\r\nhost: x\r\na: 1\r\nc: 3\r\nd: 4\r\n\r\n");
        assert_eq!(out.len(), head.wire_len());
        let mut renamed = Vec::new();
        write_head_as(&head, |name| if name == b"host" { b"HOST" } else { name }, &mut |part| {
            renamed.extend_from_slice(part);
        });
        assert_eq!(renamed, b"GET /a HTTP/1.1\r\nHOST: x\r\na: 1\r\nc: 3\r\nd: 4\r\n\r\n");
    }
}
