use super::command::{Told, of_command_line, run};
use super::*;

const SINKS: &[(&str, &str)] = &[("stderr", "fd"), ("buf0", "ring")];

fn fresh() -> Vec<Settings> {
    sources().iter().map(|_| Settings::off()).collect()
}

fn after(all: &mut [Settings], words: &str) -> Result<Told, String> {
    run(all, &words.split_whitespace().collect::<Vec<_>>(), SINKS)
}

fn at(name: &str) -> usize {
    sources().iter().position(|source| source.table.name == name).expect("a source")
}

#[test]
fn words_change_what_is_set() {
    let mut all = fresh();
    assert_eq!(after(&mut all, "session sink buf0 level state lock session start now"), Ok(Told::Nothing));
    let set = &all[at("session")];
    assert_eq!((set.level, set.lock, set.state), (level::STATE, Kind::Session, State::Running));
    assert_eq!(set.sink.as_deref(), Some("buf0"));
    assert_eq!(after(&mut all, "h1 event none event +rx_headers start h1s_new stop -any"), Ok(Told::Nothing));
    assert_eq!(
        (all[at("h1")].report, all[at("h1")].start, all[at("h1")].state),
        (h1::RX_HEADERS, h1::STREAM_NEW, State::Waiting)
    );
    assert_eq!(after(&mut all, "h1 follow session"), Ok(Told::Nothing));
    assert!(all[at("h1")].follow == Some(at("session")) && all[at("h1")].is_on());
    assert_eq!(after(&mut all, "all level error"), Ok(Told::Nothing));
    assert!(all.iter().all(|s| s.level == 0));
    assert_eq!(after(&mut all, "0"), Ok(Told::Notice("All traces now stopped")));
    assert!(all.iter().all(|s| s.state == State::Stopped));
}

#[test]
fn wrong_words_are_named() {
    for (words, wanted) in [
        ("nope", "No such trace source 'nope'"),
        ("h1 foo", "Unknown trace keyword 'foo'"),
        ("h1 sink nope", "No such trace sink 'nope' "),
        ("all level nope", "No such trace level 'nope'. Supported trace levels for source all:\n    error "),
        ("h1 event nope", "No such trace event 'nope'"),
        ("h1 lock nope", "Unsupported lock-on criterion 'nope'"),
        ("all event", "'event' not applicable to meta-source 'all'"),
        ("h1 level", "Supported trace levels for source h1:"),
        ("h1 level 3", "No such trace level '3'. Supported trace levels"),
    ] {
        let text = match after(&mut fresh(), words) {
            Ok(Told::List(text)) | Err(text) => text,
            other => panic!("{words}: {other:?}"),
        };
        assert!(text.starts_with(wanted), "{words}: {text}");
    }
}

#[test]
fn the_command_line_starts_sources_on_standard_error() {
    let mut all = fresh();
    assert_eq!(of_command_line(&mut all, "h1:user:minimal,h2"), Ok(()));
    assert_eq!((all[at("h1")].level, all[at("h1")].verbosity, all[at("h1")].state), (1, 2, State::Running));
    assert_eq!((all[0].level, all[0].sink.as_deref()), (0, Some("stderr")));
    assert!(!all[at("session")].is_on());
    for (words, wanted) in [
        ("xx", "-dt: unknown trace source 'xx'."),
        (
            "h1:help",
            "-dt: no such trace level 'help', available levels are 'error', 'user', 'proto', 'state', 'data', and 'developer'.",
        ),
        (
            "session:user:x",
            "-dt: no such trace verbosity 'x' for source 'session', available verbosities for this source are: 'quiet', and 'default'.",
        ),
    ] {
        assert_eq!(of_command_line(&mut fresh(), words), Err(wanted.to_owned()));
    }
}

fn live(change: impl FnOnce(&mut Settings)) -> Live {
    let mut settings = Settings { state: State::Running, ..Settings::off() };
    change(&mut settings);
    Live { settings, locked: None, sink: None }
}

fn point(events: u32, session: u64) -> Point<'static> {
    Point { events, level: 0, text: "", whom: Whom { session: Some(session), ..Whom::default() } }
}

#[test]
fn a_lock_stays_with_the_first_until_a_pause() {
    let mut live = live(|s| {
        (s.state, s.start, s.pause) = (State::Waiting, session::NEW, session::END);
        s.lock = Kind::Session;
    });
    assert!(!live.pass(&point(session::ERR, 1), 0), "it waits");
    assert!(live.pass(&point(session::NEW, 1), 0));
    assert!(!live.pass(&point(session::NEW, 2), 0), "another one");
    assert!(live.pass(&point(session::END, 1), 0));
    assert_eq!(live.settings.state, State::Waiting);
    assert!(live.pass(&point(session::NEW, 2), 0));
}

#[test]
fn an_event_stops_for_good_and_others_are_left_out() {
    let mut live = live(|s| (s.report, s.stop) = (session::NEW, session::END));
    assert!(live.pass(&point(session::NEW, 1), 0));
    assert!(!live.pass(&point(session::END, 1), 0), "not among those that are told");
    assert_eq!(live.settings.state, State::Stopped);
    assert!(!live.pass(&point(session::NEW, 1), 0));
}
