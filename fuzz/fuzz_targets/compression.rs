#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    compress::fuzzing::choose(data);
    compress::fuzzing::pack(data);
});
