//! Formats of values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::rdb::Str;
use rdbscope::values::{Format, Judge};

fuzz_target!(|bytes: &[u8]| {
    let verdict = Judge::default().judge(Str::Raw(bytes));
    assert_eq!(verdict.bytes, bytes.len() as u64);
    assert_eq!(verdict.format == Format::Empty, bytes.is_empty());
    assert!(verdict.schema_version.is_none_or(|version| version.len() <= 10));
});
