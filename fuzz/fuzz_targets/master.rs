//! What clients say on the master's socket, what workers say on their line, and what the master before left.
#![no_main]

use supervisor::line::Words;
use supervisor::machine::{Child, Effect, Event, Machine, Stage};
use supervisor::route::{Routed, Target, route};
use supervisor::said::{self, Gathered, Input, Own, Payload, Prompt};

/// A master with an old worker, one that serves, and one that loads.
fn machine() -> Machine {
    let mut machine = Machine::new(0, "v");
    for (pid, stage) in [(70, Stage::Former), (71, Stage::Current), (72, Stage::Loading)] {
        let version = String::new();
        machine.children.push(Child { pid, stage, reloads: 0, started: 0, version, overdue: false, line: 3 });
    }
    machine
}

/// Lines of a client that come in pieces.
fn client(data: &[u8], step: usize, most: usize) {
    let (mut input, mut prompt, machine) = (Input::default(), Prompt::default(), machine());
    let (mut payload, mut taken) = (None::<Payload>, 0);
    for piece in data.chunks(step) {
        input.push(piece);
        loop {
            let within = payload.is_some();
            let next = if within { input.next_of_payload(most) } else { input.next(most) };
            let Some(line) = next else { break };
            taken += line.len();
            // A backslash takes the meaning from the end of a line of commands, not from that of a payload's.
            let whole = |at: usize| !within && at > 0 && line.get(at - 1) == Some(&b'\\');
            let ends = line.iter().enumerate().all(|(at, byte)| *byte != b'\n' || whole(at));
            assert!(taken <= data.len() && ends || line.len() > most);
            if line.len() > most {
                // The connection ends.
                return;
            }
            if let Some(gathering) = payload.take() {
                payload = gather(gathering, &line, most);
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            let spoken = said::line(&text);
            for command in &spoken.commands {
                assert!(text.contains(command));
                obey(command, &machine, &mut prompt);
            }
            payload = spoken.payload_end.map(|end| Payload::new(&end, most * 4));
        }
    }
    assert!(input.rest().len() <= most);
}

fn gather(mut payload: Payload, line: &[u8], most: usize) -> Option<Payload> {
    match payload.take(line) {
        Gathered::More => Some(payload),
        Gathered::Whole(text) => {
            assert!(text.is_empty() || text.ends_with('\n'));
            assert!(text.chars().count() <= most * 4);
            None
        }
        Gathered::TooBig => None,
    }
}

fn obey(command: &str, machine: &Machine, prompt: &mut Prompt) {
    let (target, rest) = match route(command, machine) {
        Routed::Plain(rest) => (None, rest),
        Routed::To(target, rest) | Routed::Through(target, rest) => (Some(target), rest),
        Routed::Switch(target) => (Some(target), ""),
        Routed::Nobody(prefix) => return assert!(prefix.starts_with('@') && command.contains(prefix)),
    };
    assert!(command.contains(rest));
    if let Some(Target::Worker(pid)) = target {
        assert!(machine.children.iter().any(|child| child.pid == pid));
    }
    let mut words = rest.split_ascii_whitespace();
    if target.is_none() && words.next() == Some("prompt") {
        prompt.change(words);
        return;
    }
    let words = admin::cli::line::parse(rest.as_bytes()).commands.into_iter().next().unwrap_or_default();
    if let Own::Reload(event) = said::own(&words) {
        let mut out = Vec::new();
        machine.clone().handle(event, &mut out);
        assert!(!out.iter().any(|effect| matches!(effect, Effect::Exit(_))), "nobody's words end a master");
    }
}

/// What a worker says.
fn worker(data: &[u8], step: usize) {
    let (mut words, mut count) = (Words::default(), 0);
    for piece in data.chunks(step) {
        words.push(piece);
        while words.take().is_some() {
            count += 1;
        }
    }
    assert!(count * 5 <= data.len());
}

/// What the master before left.
fn before(data: &[u8]) {
    let Some(mut machine) = Machine::resume(&String::from_utf8_lossy(data)) else { return };
    let again = Machine::resume(&machine.keep()).expect("what was kept is understood");
    assert_eq!(again.children.len(), machine.children.len());
    assert_eq!((again.reloads, again.started), (machine.reloads, machine.started));
    let mut out = Vec::new();
    machine.handle(Event::NotStarted("no processes left".to_owned()), &mut out);
    assert_eq!(machine.children.is_empty(), out.iter().any(|effect| matches!(effect, Effect::Exit(_))));
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [kind, step, most, rest @ ..] = data else { return };
    let step = 1 + usize::from(*step);
    match kind % 4 {
        0 => worker(rest, step),
        1 => before(rest),
        _ => client(rest, step, 16 + 4 * usize::from(*most)),
    }
});
