#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::fuzzing::response_to_h2(data));
