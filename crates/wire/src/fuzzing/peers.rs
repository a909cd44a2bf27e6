//! What peers say.

use crate::peers::read::values;
use crate::peers::{Definition, Reader, class, frame, hello, table, write};

/// Reads a hello, a status, or messages one after the other; a definition that was understood means the same
/// when it is written again.
pub fn peers(data: &[u8]) {
    let _ = hello::parse(data);
    let _ = hello::status(data);
    let mut rest = data;
    let mut known: Option<Definition<'_>> = None;
    while let Ok(Some((message, bytes))) = frame(rest, 1024) {
        assert!(bytes >= 2 && bytes <= rest.len());
        rest = rest.get(bytes..).unwrap_or_default();
        if message.class != class::TABLE {
            continue;
        }
        if message.kind == table::DEFINITION {
            known = Definition::parse(message.body);
            if let Some(d) = &known {
                again(d);
            }
        } else if let Some(d) = &known {
            let mut r = Reader::new(message.body);
            let _ = r.long();
            if d.take_key(&mut r).is_some() {
                let _ = values(&d.columns, &mut r, |_, _, _| ());
            }
        }
    }
}

fn again(d: &Definition<'_>) {
    let (Some(key), Ok(name)) = (d.key, std::str::from_utf8(d.name)) else { return };
    let mut out = Vec::new();
    write::definition(&mut out, d.id, name, (key, d.key_len), d.expire, &d.columns);
    if let Ok(Some((message, _))) = frame(&out, 1 << 20) {
        let read = Definition::parse(message.body).map(|d| (d.id, d.columns));
        assert_eq!(read, Some((d.id, d.columns.clone())));
    }
}
