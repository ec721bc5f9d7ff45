//! The bytes of a dump as a scan gets them: a mapped file at once, a stream in windows that a thread fills beside the scan.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, thread};

use super::decode::{Fault, Reader};
use super::mapped::Passed;

/// Bytes of a window, unless told otherwise.
pub const WINDOW_BYTES: usize = 16 << 20;

/// Most bytes that a window grows to for one record: memory is not taken for whatever a compressed file of some megabytes says. Mapped files are not
/// read in windows, and have no such limit.
pub const MOST_WINDOW_BYTES: u64 = 1 << 30;

/// Buffers that go round: while one is scanned the others are filled, so that neither has to wait for the other where records are large.
const BUFFERS: usize = 4;

/// Fewest bytes of a window.
const LEAST_WINDOW: usize = 64;

/// The first window is so much smaller than the others, so that the scan has something to do soon.
const FIRST_SHARE: usize = 8;

/// This share of a buffer is left free in front, for the part of a record that the window before ended with.
const ROOM_SHARE: usize = 8;

/// Bytes in front of which nothing is left to read that follow a dump, and are looked at.
const LOOKED_AT: usize = 64;

/// A stretch of a dump at hand.
#[derive(Debug)]
pub struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Nothing follows them.
    pub is_last: bool,
    /// Why nothing follows, where that is not the end of the file.
    pub fault: Option<Fault>,
    /// Where bytes of it go that were read.
    pub passed: Passed<'a>,
}

/// What follows the end of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rest {
    /// How many bytes.
    pub bytes: u64,
    /// The first of them, at most 64.
    pub first: Vec<u8>,
    /// Why they could not be read to their end.
    pub fault: Option<Fault>,
}

/// Gives a dump, window after window.
pub trait Windows {
    /// Forgets the first `passed` bytes of the window before, and gives one that begins with the others: with at least `wanted`
    /// bytes, unless the dump ends before.
    fn next(&mut self, passed: usize, wanted: usize) -> Window<'_>;

    /// Passes everything behind the first `passed` bytes of the window.
    fn rest(&mut self, passed: usize) -> Rest;

    /// Bytes to which a window had to grow for one record.
    fn grown_to(&self) -> Option<u64> {
        None
    }

    /// Bytes to which a window may grow.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    /// The bytes are not those of the file, but were decoded.
    fn is_decoded(&self) -> bool {
        false
    }
}

/// A dump that is at hand as a whole: one window.
#[derive(Debug)]
pub struct Whole<'a> {
    bytes: &'a [u8],
    passed: Passed<'a>,
}

impl<'a> Whole<'a> {
    /// A dump in memory.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, passed: Passed::default() }
    }

    /// One that may be mapped.
    pub(super) fn stored(bytes: &'a [u8], passed: Passed<'a>) -> Self {
        Self { bytes, passed }
    }
}

impl Windows for Whole<'_> {
    fn next(&mut self, passed: usize, _wanted: usize) -> Window<'_> {
        self.bytes = self.bytes.get(passed..).unwrap_or_default();
        Window { bytes: self.bytes, is_last: true, fault: None, passed: self.passed }
    }

    fn rest(&mut self, passed: usize) -> Rest {
        let rest = self.bytes.get(passed..).unwrap_or_default();
        Rest { bytes: rest.len() as u64, first: rest[..rest.len().min(LOOKED_AT)].into(), fault: None }
    }
}

/// What the thread that reads has read.
#[derive(Debug)]
struct Filled {
    buffer: Vec<u8>,
    /// Where the bytes in it end; they begin behind the room in front.
    end: usize,
    /// Nothing follows, and why.
    ended: Option<Option<Fault>>,
}

/// A stream in windows.
#[derive(Debug)]
pub struct StreamWindows {
    filled: Receiver<Filled>,
    empty: SyncSender<Vec<u8>>,
    room: usize,
    buffer_bytes: usize,
    window: Vec<u8>,
    /// It holds more than a buffer does.
    is_grown: bool,
    /// What has grown before.
    grown: Vec<u8>,
    /// The part of the window that counts.
    from: usize,
    to: usize,
    ended: Option<Option<Fault>>,
    grown_to: Option<u64>,
    is_decoded: bool,
}

/// Memory that cannot be had for a window of so many bytes.
#[cold]
fn no_memory(bytes: usize) -> Fault {
    let why = format!("not enough memory for a window of {bytes} bytes: decompress the dump into a file, and give that");
    Fault { reading: "the stream", why }
}

/// Bytes of zeros. The system gives them as they are touched, which a vector that is filled would do at once.
fn zeros(bytes: usize) -> Result<Vec<u8>, Fault> {
    // Asked for in advance, as there is no way to ask for zeros that may fail.
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| no_memory(bytes))?;
    Ok(vec![0; bytes])
}

impl StreamWindows {
    /// Begins to read, in windows of so many bytes, at least 64; the thread ends with the stream, or when the windows are
    /// dropped.
    pub fn new(reader: Reader, window_bytes: usize) -> Self {
        let buffer_bytes = window_bytes.max(LEAST_WINDOW);
        let room = buffer_bytes / ROOM_SHARE;
        let (to_fill, empty) = mpsc::sync_channel::<Vec<u8>>(BUFFERS);
        let (filled, take) = mpsc::sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            // Whoever fills them makes them, so that a short stream has one.
            let _ = to_fill.send(Vec::new());
        }
        let read = move || fill(reader, &empty, &filled, buffer_bytes, room);
        let ended = match thread::Builder::new().name("reader".into()).spawn(read) {
            Ok(_) => None,
            Err(error) => Some(Some(Fault::of(&error, "the stream"))),
        };
        Self {
            filled: take,
            empty: to_fill,
            room,
            buffer_bytes,
            window: Vec::new(),
            is_grown: false,
            grown: Vec::new(),
            from: 0,
            to: 0,
            ended,
            grown_to: None,
            is_decoded: false,
        }
    }

    /// The same, of bytes that were decoded.
    pub(super) fn decoded(self, is_decoded: bool) -> Self {
        Self { is_decoded, ..self }
    }

    /// Waits for the next bytes and puts them behind those at hand, which stay.
    fn read_on(&mut self) {
        let Ok(Filled { mut buffer, end, ended }) = self.filled.recv() else {
            let why = "its decoder failed; decompress it with another program first".into();
            self.ended = Some(Some(Fault { reading: "the stream", why }));
            return;
        };
        self.ended = ended;
        if buffer.is_empty() {
            return;
        }
        let kept = self.from..self.to;
        if kept.len() <= self.room {
            let from = self.room - kept.len();
            buffer[from..self.room].copy_from_slice(&self.window[kept]);
            let used = std::mem::replace(&mut self.window, buffer);
            (self.from, self.to) = (from, end);
            self.give_back(used);
            return;
        }
        let bytes = kept.len() + (end - self.room);
        if self.is_grown {
            self.window.truncate(self.to);
            self.window.drain(..self.from);
            (self.from, self.to) = (0, self.window.len());
        } else {
            self.grown.clear();
            if self.grown.try_reserve(bytes).is_err() {
                self.ended = Some(Some(no_memory(bytes)));
                return;
            }
            self.grown.extend_from_slice(&self.window[kept]);
            let used = std::mem::replace(&mut self.window, std::mem::take(&mut self.grown));
            let _ = self.empty.send(used);
            self.is_grown = true;
            (self.from, self.to) = (0, self.window.len());
        }
        if self.window.try_reserve(end - self.room).is_err() {
            self.ended = Some(Some(no_memory(bytes)));
            return;
        }
        self.window.extend_from_slice(&buffer[self.room..end]);
        let _ = self.empty.send(buffer);
        self.to = self.window.len();
    }

    /// A buffer goes round again; one that grew waits for the next record that is as large.
    fn give_back(&mut self, used: Vec<u8>) {
        if std::mem::take(&mut self.is_grown) {
            self.grown = used;
        } else if !used.is_empty() {
            let _ = self.empty.send(used);
        }
    }
}

impl Windows for StreamWindows {
    fn next(&mut self, passed: usize, wanted: usize) -> Window<'_> {
        self.from = self.to.min(self.from.saturating_add(passed));
        if self.ended.is_none() {
            self.read_on();
        }
        while self.to - self.from < wanted && self.ended.is_none() {
            self.read_on();
        }
        let len = self.to - self.from;
        if wanted > 0 && len > self.buffer_bytes {
            self.grown_to = self.grown_to.max(Some(len as u64));
        }
        let fault = self.ended.clone().flatten();
        Window { bytes: &self.window[self.from..self.to], is_last: self.ended.is_some(), fault, passed: Passed::default() }
    }

    fn rest(&mut self, passed: usize) -> Rest {
        self.from = self.to.min(self.from.saturating_add(passed));
        let mut rest = Rest::default();
        loop {
            let bytes = &self.window[self.from..self.to];
            rest.bytes += bytes.len() as u64;
            let wanted = LOOKED_AT.saturating_sub(rest.first.len());
            rest.first.extend_from_slice(&bytes[..bytes.len().min(wanted)]);
            if let Some(fault) = &self.ended {
                rest.fault.clone_from(fault);
                return rest;
            }
            self.from = self.to;
            self.read_on();
        }
    }

    fn grown_to(&self) -> Option<u64> {
        self.grown_to
    }

    fn most_bytes(&self) -> u64 {
        MOST_WINDOW_BYTES
    }

    fn is_decoded(&self) -> bool {
        self.is_decoded
    }
}

/// Fills buffers until the stream ends, or nobody wants more.
fn fill(mut reader: Reader, empty: &Receiver<Vec<u8>>, filled: &SyncSender<Filled>, buffer_bytes: usize, room: usize) {
    let mut share = FIRST_SHARE;
    while let Ok(mut buffer) = empty.recv() {
        if buffer.is_empty() {
            match zeros(buffer_bytes) {
                Ok(zeros) => buffer = zeros,
                Err(fault) => {
                    let _ = filled.send(Filled { buffer, end: room, ended: Some(Some(fault)) });
                    return;
                }
            }
        }
        let most = room + ((buffer.len() - room) / share).max(1);
        share = (share / 2).max(1);
        let (mut end, mut ended) = (room, None);
        while end < most && ended.is_none() {
            match reader.read(&mut buffer[end..most]) {
                Ok(0) => ended = Some(None),
                Ok(n) => end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => ended = Some(Some(Fault::of(&error, "the stream"))),
            }
        }
        let is_last = ended.is_some();
        if filled.send(Filled { buffer, end, ended }).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;

    fn windows(bytes: &[u8], window_bytes: usize) -> StreamWindows {
        StreamWindows::new(Box::new(Cursor::new(bytes.to_vec())), window_bytes)
    }

    #[test]
    fn every_byte_once_whatever_is_left_over() {
        let bytes: Vec<u8> = (0..20_000u32).map(|n| ((n * n) >> 5) as u8).collect();
        for window_bytes in [64, 65, 100, 1000, 30_000] {
            for left in [0, 1, 7, 8, 9, 50] {
                let mut windows = windows(&bytes, window_bytes);
                let (mut seen, mut passed) = (Vec::new(), 0);
                loop {
                    let window = windows.next(passed, 0);
                    let take = if window.is_last { window.bytes.len() } else { window.bytes.len().saturating_sub(left) };
                    seen.extend_from_slice(&window.bytes[..take]);
                    passed = take;
                    if window.is_last {
                        break;
                    }
                }
                assert!(seen == bytes, "windows of {window_bytes}, {left} left over");
            }
        }
    }

    #[test]
    fn a_window_grows_to_what_is_wanted_and_not_beyond_the_end() {
        let bytes: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        let mut windows = windows(&bytes, 80);
        assert!(windows.next(0, 0).bytes.len() < 80);
        let window = windows.next(0, 5000);
        // As many buffers of 70 bytes as it takes.
        assert!((5000..5070).contains(&window.bytes.len()));
        assert_eq!(window.bytes, &bytes[..window.bytes.len()]);
        let grown = window.bytes.len() as u64;
        let window = windows.next(4999, 1 << 40);
        assert_eq!((window.bytes, window.is_last), (&bytes[4999..], true));
        assert!(windows.grown_to().is_some_and(|to| to >= grown));
    }

    #[test]
    fn what_follows_a_dump_is_counted() {
        let bytes: Vec<u8> = (0..3000u32).map(|n| n as u8).collect();
        let mut windows = windows(&bytes, 100);
        windows.next(0, 0);
        let rest = windows.rest(3);
        assert_eq!((rest.bytes, rest.first.as_slice(), rest.fault), (2997, &bytes[3..67], None));
        assert_eq!(Whole::new(&bytes).rest(2999), Rest { bytes: 1, first: vec![183], fault: None });
    }

    #[test]
    fn a_fault_comes_after_the_bytes_before_it() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _buf: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
        }
        let mut windows = StreamWindows::new(Box::new(Cursor::new(vec![1; 10]).chain(io::BufReader::new(Broken))), 1000);
        let window = windows.next(0, 0);
        assert_eq!((window.bytes, window.is_last), (&[1; 10][..], true));
        assert!(window.fault.is_some_and(|fault| fault.why.contains("truncated")));
    }
}
