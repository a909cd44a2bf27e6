#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire::fuzzing::h1_to_h2(data));
