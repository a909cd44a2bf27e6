//! An entry for fuzzers: bytes choose which functions scripts call, on what, and with which values.
//!
//! Whatever they are called with, they return or raise an error: no panic, no end of the process, no head
//! that can't be sent, and the state runs scripts afterwards.

use mlua::{Function, MultiValue, Value};

use crate::host::Acting;
use crate::run::{Run, Step};
use crate::settings::{Settings, Stderr};

/// Most times that what a script waits for comes.
const WAITS: usize = 64;

/// Lets scripts call what the bytes say.
///
/// # Panics
/// The state is broken afterwards.
pub fn calls(data: &[u8]) {
    let settings = Settings {
        normal_bools: Some(true),
        loggers: false,
        stderr: Stderr::Off,
        maxmem: 256 << 20,
        ..Settings::default()
    };
    let state = crate::load::alone(settings).expect("a state");
    let script = state.lua.load(include_str!("fuzzing.lua")).set_name("=hostile");
    let hostile: Function = script.eval().expect("the script is right");
    let kept = state.keep(&hostile).expect("it is kept");
    lang::fuzzing::on_stage(data, |exec| {
        let mut run = Run::of_stream(&state, (kept, true), true, true).expect("it may run");
        let bytes = state.lua.create_string(data).expect("a string");
        let mut args = MultiValue::from_iter([Value::String(bytes)]);
        for _ in 0..WAITS {
            let host = Acting::new(run.id, exec, true);
            match run.resume(&host, args) {
                Step::Waits(_) => args = MultiValue::from_iter([Value::Boolean(true)]),
                Step::Done(_) | Step::Failed(_) => break,
            }
        }
    });
    let sum: i64 = state.lua.load("return 40 + 2").eval().expect("the state runs scripts");
    assert_eq!(sum, 42);
}
