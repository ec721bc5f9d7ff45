//! Damaged dumps: how they are made, and what a walk over one may cost.
//!
//! Memory is counted by the allocator of the whole program, thread by thread; an input is examined on one thread only.

#![allow(dead_code, reason = "the test and the long run use a part of it each")]
#![allow(unsafe_code, reason = "an allocator that counts cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rdbscope::analyse::{self, Dump, Options, PieceSink};
use rdbscope::input::Input;
use rdbscope::measure::Fact;
use rdbscope::verify;

use crate::writer::{
    Consumer, Content, DumpWriter, FieldExpiryForm, Group, ListNode, Magic, ModulePart, Pending, Random, Stream, StreamEntry,
    StreamId, StreamLayout, StreamNode, listpack, module_id, ziplist,
};

/// Longest time that an input may take.
pub const MOST_TIME: Duration = Duration::from_secs(1);

/// Memory that an input of no size may take, and the largest block at once for inputs up to [`SMALL_BYTES`].
pub const MOST_BYTES: usize = 64 << 20;

/// Largest of the inputs that count as small.
pub const SMALL_BYTES: usize = 35 << 10;

// Counting.

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn count(taken: usize, freed: usize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        // Old and new block stand side by side while one is copied to the other.
        let most = live.get() + taken as isize;
        live.set(most - freed as isize);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(most)));
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(taken)));
    });
}

// SAFETY: every call is handed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

// Examining.

/// What a walk over an input found and cost.
#[derive(Debug)]
pub struct Examined {
    /// Every record: where it begins and ends, and a hash of all that was said of it.
    pub records: Vec<(u64, u64, u64)>,
    /// True where a fault was reported.
    pub is_damaged: bool,
    pub time: Duration,
    pub peak_bytes: usize,
    pub largest_block: usize,
}

/// Keeps of a fact what two walks are compared by.
#[derive(Default)]
struct Records(Vec<(u64, u64, u64)>);

impl PieceSink for Records {
    const DEEP: bool = true;

    fn fact(&mut self, fact: &Fact<'_>) {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hash = DefaultHasher::new();
        (fact.db, fact.key, fact.encoding.name(), fact.elements, fact.payload_bytes, fact.memory_bytes).hash(&mut hash);
        (fact.expires_at_ms, fact.idle_seconds, fact.freq, fact.slot, fact.largest_element_bytes).hash(&mut hash);
        self.0.push((fact.offset, fact.offset + fact.serialized_bytes, hash.finish()));
    }
}

/// Takes an input the whole way: to a census, to rows of keys with every packed value opened, and through `verify`. Must run inside a pool of one thread.
pub fn examine(bytes: &[u8]) -> Examined {
    assert_eq!(rayon::current_num_threads(), 1, "memory is counted by thread");
    let before = LIVE.get();
    PEAK.set(before);
    LARGEST.set(0);
    let begin = Instant::now();
    let (records, is_damaged) = walk(bytes);
    let time = begin.elapsed();
    Examined { records, is_damaged, time, peak_bytes: (PEAK.get() - before) as usize, largest_block: LARGEST.get() }
}

fn walk(bytes: &[u8]) -> (Vec<(u64, u64, u64)>, bool) {
    let options = Options::default();
    let Ok(dump) = Input::in_memory(Path::new("dump.rdb"), bytes.to_vec())
        .map_err(|_| ())
        .and_then(|input| Dump::new(input, &options).map_err(|_| ()))
    else {
        return (Vec::new(), true);
    };
    let dumps = [dump];
    let (_, outcomes) = analyse::census(&dumps, &options, |_| ());
    let keys = outcomes[0].passed.keys;
    let mut records = Vec::new();
    let outcome = analyse::walk_dump(
        &dumps[0],
        &options,
        &Mutex::new(Vec::new()),
        Records::default,
        |worker| std::mem::take(&mut worker.0),
        |piece, _| {
            records.extend(piece);
            ControlFlow::Continue(())
        },
    );
    assert_eq!(records.len() as u64, keys, "census and rows count other keys");
    let verdict = verify::verify(&dumps[0], options.scan, |_| ());
    assert_eq!(verdict.keys, keys, "verify counts other keys");
    assert!(!(outcome.is_partial() && verdict.is_ok()), "verify finds less than a report");
    let Outcome { serialized_bytes, framing_bytes } = Outcome::of(&outcome);
    assert_eq!(serialized_bytes + framing_bytes, outcome.end.bytes, "records and what stands between them");
    (records, outcome.is_partial())
}

struct Outcome {
    serialized_bytes: u64,
    framing_bytes: u64,
}

impl Outcome {
    fn of(outcome: &analyse::Outcome) -> Self {
        Self { serialized_bytes: outcome.passed.serialized_bytes, framing_bytes: outcome.passed.framing_bytes }
    }
}

/// Examines an input and says what is wrong with how that went.
pub fn fault_of(bytes: &[u8]) -> Result<Examined, String> {
    let mut examined = catch_unwind(AssertUnwindSafe(|| examine(bytes)))
        .map_err(|panic| format!("a panic: {:?}", panic.downcast_ref::<String>().map_or("", String::as_str)))?;
    if examined.time > MOST_TIME {
        // The machine may have been busy with something else.
        examined.time = examined.time.min(examine(bytes).time);
    }
    if examined.time > MOST_TIME {
        return Err(format!("{:?}", examined.time));
    }
    if examined.peak_bytes > MOST_BYTES + 100 * bytes.len() {
        return Err(format!("{} bytes of memory", examined.peak_bytes));
    }
    if bytes.len() <= SMALL_BYTES && examined.largest_block > MOST_BYTES {
        return Err(format!("a block of {} bytes", examined.largest_block));
    }
    Ok(examined)
}

/// Runs `run` where memory is counted: in a pool of one thread.
pub fn on_one_thread<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread").install(run)
}

/// Splits `0..n` over `threads` threads, each of which stands for itself, and returns what each of them found.
pub fn over<R: Send>(threads: u64, n: u64, run: impl Fn(&mut dyn Iterator<Item = u64>) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let run = &run;
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || on_one_thread(|| run(&mut (thread..n).step_by(threads as usize)))))
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).collect()
    })
}

// Mutations.

/// Bytes that mean something: edges of length forms, types, opcodes.
const TELLING: [u8; 34] = [
    0x00, 0x01, 0x02, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xdf, 0xe0, 0xef, 0xf0, 0xf1, 0xf2, 0xf3,
    0xf4, 0xf5, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 14, 18,
];

/// Damages `input` by up to four changes, of which each is a bit, a byte, bytes more or less, a piece of `other`, or a length blown up.
pub fn mutate(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.between(1, 4) {
        // The first nine bytes decide everything and are damaged now and then only.
        let first = if random.percent(3) { 0 } else { 9.min(bytes.len()) };
        let at = first + random.below((bytes.len() - first) as u64 + 1) as usize;
        let magnitude = random.below(8);
        let some = (1 + random.below(1 << magnitude)) as usize;
        match random.below(7) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if random.percent(50) { *random.pick(&TELLING) } else { random.next() as u8 };
                }
            }
            2 => {
                let new = if random.percent(50) { random.bytes(some) } else { vec![*random.pick(&TELLING); some] };
                bytes.splice(at..at, new);
            }
            3 => {
                let end = bytes.len().min(at + some);
                bytes.drain(at..end);
            }
            4 => {
                let from = random.below(other.len() as u64 + 1) as usize;
                let piece = &other[from..other.len().min(from + 4 * some)];
                let end = if random.percent(50) { at } else { bytes.len().min(at + piece.len()) };
                bytes.splice(at..end, piece.iter().copied());
            }
            5 => {
                let most = [0x3fu64, 0x4000, 0x7fff_ffff, 0xffff_ffff, 1 << 40, 1 << 62, u64::MAX - 1];
                let n = random.pick(&most).wrapping_add(random.below(3)).wrapping_sub(1);
                let form = if random.percent(50) {
                    [&[0x80][..], &(n as u32).to_be_bytes()].concat()
                } else {
                    [&[0x81][..], &n.to_be_bytes()].concat()
                };
                let end = if random.percent(70) { bytes.len().min(at + 1) } else { bytes.len().min(at + form.len()) };
                bytes.splice(at..end, form);
            }
            _ => {
                // The lengths and counts inside packed values.
                let width = *random.pick(&[1usize, 2, 4]);
                let value = random.pick(&[0u32, 1, 0xfe, 0xffff, 0x7fff_ffff, u32::MAX]).to_le_bytes();
                if let Some(place) = bytes.get_mut(at..at + width) {
                    place.copy_from_slice(&value[..width]);
                }
            }
        }
    }
    bytes
}

/// The mutation of that number: the same for the same seed and inputs, whatever ran before it. The name is that of the input.
pub fn mutation(seed: u64, number: u64, inputs: &[(String, Vec<u8>)]) -> (&str, Vec<u8>) {
    let mut random = Random::new(seed ^ Random::new(number).next());
    let (name, input) = random.pick(inputs);
    let (_, other) = random.pick(inputs);
    (name, mutate(input, other, &mut random))
}

// Inputs.

/// The inputs of a folder's dumps.
pub fn read(paths: impl IntoIterator<Item = std::path::PathBuf>) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.into_iter().map(|path| (name(&path), std::fs::read(&path).expect("the dump is there"))).collect()
}

/// The worked examples of the format's description.
pub fn examples() -> Vec<(String, Vec<u8>)> {
    let hex = |digits: &str| {
        let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (0..digits.len()).step_by(2).map(digit).collect()
    };
    (1..).zip(crate::examples::ALL).map(|(n, digits)| (format!("E{n}"), hex(digits))).collect()
}

/// About four kilobytes with something of every type that Redis 7.4 and earlier ones write.
pub fn small_dump() -> Vec<u8> {
    let magic = Magic::Redis(12);
    let mut w = DumpWriter::in_memory(magic);
    w.compress(true).aux("redis-ver", "7.4.1").aux("ctime", "1767225600");
    w.function("#!lua name=lib\nredis.register_function('f', function() return 1 end)");
    w.module_aux(module_id("ft_index0", 1), 1, &[ModulePart::Unsigned(3), ModulePart::Text(b"some text".to_vec())]);
    w.select_db(0).resize_db(26, 3).slot_info(17, 26, 3);
    let words: Vec<String> = (0..18).map(|n| format!("word {n} {}", "x".repeat(n))).collect();
    let numbers = ["1", "-7", "300", "70000", "5000000000", "text"];
    let pairs = || (0..6).map(|n| (format!("field{n}"), format!("value {n}")));
    let scores = || words.iter().zip([1.0, -2.5, f64::INFINITY, 1e300, 0.0, 7.0]);
    let expiries: Vec<_> = (0..5u64)
        .map(|n| (format!("f{n}").into_bytes(), b"value".to_vec(), (n % 2 == 0).then_some(1_999_999_999_999 + n)))
        .collect();
    w.key("string").expires_at_ms(1_999_999_999_999).idle_seconds(70_000).string("a value");
    w.key("integer").freq(9).string("-12345");
    w.key("compressed").string([&b"abcd"[..]; 60].concat());
    w.key(&"long key ".repeat(9)).expires_at_seconds(1_999_999_999).string("v".repeat(90));
    w.key("list").list(&words);
    w.key("list:ziplist").list_ziplist(&words);
    w.key("list:ziplists").list_quicklist(&[ziplist(magic, numbers), ziplist(magic, &words)]);
    let nodes = [ListNode::Packed(listpack(numbers)), ListNode::Plain(vec![b'p'; 70]), ListNode::Packed(listpack(&words))];
    w.key("list:listpacks").list_quicklist2(&nodes);
    w.key("set").set(&words);
    w.key("set:listpack").set_listpack(&words);
    for (key, member) in [("set:16", 1i64), ("set:32", 100_000), ("set:64", 1 << 40)] {
        w.key(key).set_intset((-3..9).map(|n| n * member));
    }
    w.key("zset:text").zset_text(scores());
    w.key("zset").zset(scores());
    w.key("zset:ziplist").zset_ziplist(scores());
    w.key("zset:listpack").zset_listpack(scores());
    w.key("hash").hash(pairs().collect::<Vec<_>>());
    w.key("hash:zipmap").hash_zipmap(pairs().collect::<Vec<_>>(), 2);
    w.key("hash:ziplist").hash_ziplist(pairs());
    w.key("hash:listpack").hash_listpack(pairs());
    for form in
        [FieldExpiryForm::Candidate, FieldExpiryForm::CandidateListpack, FieldExpiryForm::Table, FieldExpiryForm::Listpack]
    {
        w.key(&format!("{form:?}")).hash_with_expiries(form, &expiries);
    }
    w.select_db(3).resize_db(4, 0);
    for layout in [StreamLayout::V1, StreamLayout::V2, StreamLayout::V3] {
        w.key(&format!("stream:{layout:?}")).stream(layout, &small_stream());
    }
    let parts = [
        ModulePart::Signed(-5),
        ModulePart::Unsigned(70_000),
        ModulePart::Float(1.5),
        ModulePart::Double(-2.25),
        ModulePart::Text(b"module text".to_vec()),
    ];
    w.key("module").module(module_id("ReJSON-RL", 3), &parts);
    w.into_bytes()
}

fn small_stream() -> Stream {
    let id = |seq| StreamId { ms: 1_700_000_000_000, seq };
    let entry = |seq, deleted, content| StreamEntry { id: id(seq), deleted, content };
    let same = |text: &str| Content::Same(vec![text.into(), b"1".to_vec()]);
    let own = Content::Own(vec![(b"other".to_vec(), b"-70000".to_vec())]);
    let fields = vec![b"name".to_vec(), b"size".to_vec()];
    let entries = vec![entry(1, false, same("one")), entry(2, true, same("two")), entry(3, false, own)];
    let group = Group {
        name: b"group".to_vec(),
        last_id: id(3),
        entries_read: Some(3),
        pending: vec![Pending { id: id(1), delivered_at_ms: 1_700_000_000_500, deliveries: 2 }],
        consumers: vec![Consumer { name: b"consumer".to_vec(), seen_at_ms: 7, active_at_ms: 8, pending: vec![id(1)] }],
        ..Group::default()
    };
    Stream { nodes: vec![StreamNode { id: id(0), fields, entries }], groups: vec![group], ..Stream::default() }
}
