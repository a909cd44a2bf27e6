//! Lines of messages that scripts make.

/// Appends a field line. What is no name or no value of one is left out: it would break the message.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let token = |c: &u8| c.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(c);
    let text = |c: &u8| !matches!(c, 0 | b'\r' | b'\n');
    if name.is_empty() || !name.iter().all(token) || !value.iter().all(text) {
        return;
    }
    out.extend(name.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
