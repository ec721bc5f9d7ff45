//! A contracts file: mistakes are named, and nothing else happens.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::contract::Contracts;

fuzz_target!(|text: &str| {
    if let Err(mistakes) = Contracts::parse(text) {
        assert!(!mistakes.is_empty());
    }
});
