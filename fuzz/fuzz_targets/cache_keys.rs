#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lang::fuzzing::cache_keys(data));
