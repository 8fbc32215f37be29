#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| basalt_fuzz::target::host_frames::run(input));
