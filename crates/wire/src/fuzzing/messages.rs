//! Messages of syslog.

use crate::syslog::{Form, Framing, Message, Senseless};

/// A stream is cut the same way however it arrives, and what is read of a message is part of it.
pub fn syslog(data: &[u8]) {
    for framing in [Framing::Either, Framing::LineFeed] {
        let whole = framing.next(data);
        for cut in super::cuts(data) {
            let part = data.get(..cut).unwrap_or_default();
            match framing.next(part) {
                // More bytes never change what is there.
                Ok(Some((message, taken))) => {
                    assert!(message.len() < taken && taken <= cut);
                    assert_eq!(whole, Ok(Some((message, taken))));
                }
                Err(Senseless) => assert_eq!(whole, Err(Senseless)),
                Ok(None) => {}
            }
        }
        let mut rest = data;
        while let Ok(Some((message, taken))) = framing.next(rest) {
            read(message);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }
    read(data);
}

fn read(bytes: &[u8]) {
    let message = Message::parse(bytes);
    let fields = [message.date, message.host, message.tag, message.process, message.kind, message.structured];
    let read: usize = fields.iter().map(|field| field.len()).sum();
    assert!(read + message.text.len() <= bytes.len());
    assert!(message.priority.is_none_or(|priority| priority < 1000));
    for field in fields.iter().take(5) {
        assert!(message.form == Form::Rfc3164 || !field.contains(&b' '));
    }
    match message.form {
        Form::Plain => assert_eq!(read, 0),
        Form::Rfc3164 => assert!(message.month().is_some_and(|month| month < 12)),
        Form::Rfc5424 => rewritten(&message),
    }
    assert_eq!(Message::unread(bytes).form, Form::Plain);
}

/// What is written again is read alike.
fn rewritten(message: &Message<'_>) {
    let mut again = format!("<{}>1", message.priority.unwrap_or(0)).into_bytes();
    for field in [message.date, message.host, message.tag, message.process, message.kind, message.structured]
    {
        again.push(b' ');
        again.extend_from_slice(if field.is_empty() { b"-" } else { field });
    }
    again.push(b' ');
    again.extend_from_slice(message.text);
    assert_eq!(Message::parse(&again), *message);
}
