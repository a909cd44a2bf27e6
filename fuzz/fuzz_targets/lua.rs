#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lua::fuzzing::calls(data));
