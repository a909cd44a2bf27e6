//! Writing a head as HTTP/1 text: ranges of the arena are copied, neighbours that nobody edited in one go.

use crate::head::{Head, Kind, NoRoom};

/// Appends `head` to `out` as long as `out` stays within `limit` bytes; otherwise `out` is as before.
pub fn write_head(head: &Head, out: &mut Vec<u8>, limit: usize) -> Result<(), NoRoom> {
    if out.len() + head.wire_len() > limit {
        return Err(NoRoom);
    }
    let version = match head.version_text.of(&head.bytes) {
        b"" => head.version().as_str().as_bytes(),
        text => text,
    };
    match head.kind() {
        Kind::Request => [head.method(), b" ", head.target(), b" ", version]
            .iter()
            .for_each(|part| out.extend_from_slice(part)),
        Kind::Response => {
            out.extend_from_slice(version);
            out.push(b' ');
            if head.status_text.len == 0 {
                let status = head.status();
                out.extend(
                    [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8),
                );
            } else {
                out.extend_from_slice(head.status_text.of(&head.bytes));
            }
            out.push(b' ');
            out.extend_from_slice(head.written_reason());
        }
    }
    out.extend_from_slice(b"\r\n");
    fields(head, out);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn fields(head: &Head, out: &mut Vec<u8>) {
    let mut live = head.fields.iter().filter(|field| !field.removed).peekable();
    while let Some(field) = live.next() {
        if !field.plain {
            for part in [field.name.of(&head.bytes), b": ", field.value.of(&head.bytes), b"\r\n"] {
                out.extend_from_slice(part);
            }
            continue;
        }
        let (start, mut end) = (field.name.start(), field.value.end() + 2);
        while let Some(next) = live.next_if(|next| next.plain && next.name.start() == end) {
            end = next.value.end() + 2;
        }
        out.extend_from_slice(head.bytes.get(start..end).unwrap_or_default());
    }
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
        write_head(&head, &mut out, 1000).unwrap();
        assert_eq!(out, b"GET /a HTTP/1.1\r\nhost: x\r\na: 1\r\nc: 3\r\nd: 4\r\n\r\n");
        assert_eq!(out.len(), head.wire_len());
        assert_eq!(write_head(&head, &mut out, 60), Err(NoRoom));
    }
}
