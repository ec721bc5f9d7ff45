//! Key text: every key comes back from it, and only what it would write is accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::key_text;

fuzz_target!(|bytes: &[u8]| {
    let text = key_text::escape(bytes);
    assert_eq!(key_text::unescape(&text).as_deref(), Ok(bytes));
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(key) = key_text::unescape(text)
    {
        // A table for spreadsheets has one more form, of keys that would be taken for formulas.
        let exact = key_text::escape(&key);
        assert!(exact == text || key_text::csv_guarded(&exact).as_deref() == Some(text));
    }
});
