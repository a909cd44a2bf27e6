#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| compile::fuzzing::config(data));
