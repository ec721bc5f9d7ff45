//! A stream's record behind its key: the first byte picks the layout.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rdbscope::Error;
use rdbscope::rdb::packed::Entry;
use rdbscope::rdb::{RecordHead, RecordTail, Role, Sink, StreamPart};
use rdbscope::scan;

#[derive(Default)]
struct Strict {
    entries: u64,
    parts: u64,
    faults: u64,
}

impl Sink for Strict {
    fn opens(&self, _len: u64) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn entry(&mut self, _role: Role, entry: Entry<'_>) {
        self.entries += entry.len();
    }

    fn stream(&mut self, _part: StreamPart<'_>) {
        self.parts += 1;
    }

    fn value_fault(&mut self, _fault: Error) {
        self.faults += 1;
    }

    fn end(&mut self, _head: &RecordHead<'_>, _tail: &RecordTail) {}
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, body)) = bytes.split_first() else { return };
    let layout = [15, 19, 21, 26, 27][usize::from(first) % 5];
    let dump = [b"REDIS0014", &[layout, 1, b's'][..], body].concat();
    // Whatever is wrong ends the walk with an error.
    let _ = scan::walk(&dump, &mut Strict::default());
});
