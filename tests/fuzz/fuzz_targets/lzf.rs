//! LZF: the first four bytes are the length that is promised.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::rdb::lzf;

fuzz_target!(|bytes: &[u8]| {
    let Some((len, packed)) = bytes.split_first_chunk::<4>() else { return };
    let len = (u32::from_le_bytes(*len) % (1 << 22)) as usize;
    let mut plain = Vec::new();
    let whole = lzf::decompress(packed, len, &mut plain);
    if whole.is_ok() {
        assert_eq!(plain.len(), len);
        assert!(len as u64 <= lzf::most_plain(packed.len()));
        let mut head = vec![0; len.min(64)];
        assert_eq!(lzf::decompress_head(packed, &mut head), head.len());
        assert_eq!(head, plain[..head.len()]);
    }
    // Of what is no LZF too, the head is whatever can be had.
    let mut head = [0; 100];
    assert!(lzf::decompress_head(packed, &mut head) <= 100);
});
