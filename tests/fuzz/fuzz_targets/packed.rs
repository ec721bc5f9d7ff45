//! Each packed form: the first byte picks it, and the length that its header gives is set right so that the walk begins.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::rdb::packed::PackedForm;

const FORMS: [PackedForm; 4] = [PackedForm::Listpack, PackedForm::Ziplist, PackedForm::Intset, PackedForm::Zipmap];

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, blob)) = bytes.split_first() else { return };
    let form = FORMS[usize::from(first) % 4];
    let mut blob = blob.to_vec();
    if matches!(form, PackedForm::Listpack | PackedForm::Ziplist) && blob.len() >= 4 {
        let len = blob.len() as u32;
        blob[..4].copy_from_slice(&len.to_le_bytes());
    }
    let mut seen = 0;
    let mut text = 0;
    let walked = form.entries(&blob, |entry| {
        seen += 1;
        text += entry.len();
    });
    match walked {
        Ok(n) => assert_eq!(n, seen),
        Err(fault) => assert!(fault.at <= blob.len() as u64),
    }
    // An integer has at most twenty digits.
    assert!(text <= 20 * blob.len() as u64);
});
