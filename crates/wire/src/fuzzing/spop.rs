//! What SPOE agents say.

use crate::spop::write::Writer;
use crate::spop::{
    Action, Actions, AgentHello, Data, Disconnect, LEAST_FRAME, Reader, Status, flag, frame, kind,
};

/// The longest frame that is taken.
const MOST: usize = 1024;

/// Reads frames one after the other, each as whatever its type says. A frame is the same however much of it
/// came first; values that were understood mean the same when they are written again.
///
/// # Panics
/// If what must hold does not: that is the finding.
pub fn spop(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((read, taken))) = frame(rest, MOST) {
        assert!(taken <= rest.len() && read.payload.len() < taken && read.flags & flag::FIN != 0);
        for cut in super::cuts(rest.get(..taken).unwrap_or_default()) {
            let early = frame(rest.get(..cut).unwrap_or_default(), MOST);
            assert!(cut == taken || early == Ok(None), "a frame that is not whole waits");
        }
        rest = rest.get(taken..).unwrap_or_default();
        match read.kind {
            kind::AGENT_HELLO => greeted(read.payload),
            kind::AGENT_DISCONNECT => drop(Disconnect::parse(read.payload)),
            kind::ACK => asked(read.payload),
            _ => items(read.payload),
        }
    }
}

fn greeted(payload: &[u8]) {
    match AgentHello::parse(payload, MOST) {
        Ok(hello) => assert!((LEAST_FRAME..=MOST).contains(&hello.most)),
        Err(status) => assert_ne!(status, Status::Normal),
    }
}

fn asked(payload: &[u8]) {
    let mut failed = false;
    for action in Actions::new(payload) {
        assert!(!failed, "nothing comes behind an error");
        match action {
            Ok(Action::SetVar { name, value, .. }) => again(name, &value),
            Ok(Action::UnsetVar { name, .. }) => assert!(name.len() <= payload.len()),
            Err(_) => failed = true,
        }
    }
}

fn items(payload: &[u8]) {
    let mut reader = Reader::new(payload);
    while let Some(name) = reader.text() {
        let Some(value) = reader.data() else { break };
        again(name, &value);
    }
}

/// A name and a value as an item of a frame of ours.
fn again(name: &[u8], value: &Data<'_>) {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, kind::NOTIFY, 1, 2);
    writer.item(name, value);
    let length = writer.length();
    if writer.finish(MOST).is_err() {
        assert!(out.is_empty() && length > MOST);
        return;
    }
    let (read, taken) = frame(&out, MOST).ok().flatten().expect("a frame of ours");
    assert_eq!(taken, out.len());
    let mut reader = Reader::new(read.payload);
    assert_eq!((reader.text(), reader.data()), (Some(name), Some(*value)));
    assert!(reader.is_empty());
}
