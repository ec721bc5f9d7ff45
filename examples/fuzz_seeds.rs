//! Writes what fuzzing begins from, taken from the fixtures: a folder for each target of `tests/fuzz`.
//!
//! ```text
//! cargo run --example fuzz_seeds -- tests/fuzz/corpus
//! ```

#[path = "../tests/support/examples.rs"]
mod examples;
#[path = "../tests/support/writer.rs"]
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rdbscope::key_text;
use rdbscope::rdb::{KeyType, RecordHead, RecordTail, Role, Sink, Str};
use rdbscope::scan;
use writer::{Magic, intset, listpack, ziplist, zipmap};

/// Larger seeds are slow to mutate.
const MOST_BYTES: usize = 35 << 10;

/// Seeds of each target that are taken from one dump.
const MOST_OF_A_DUMP: usize = 20;

const CONTRACTS: &str = r#"
separator = [":", "/"]
[segments]
env = ["prod", "staging"]
tenant = "shop-<digits>"
[limits]
key_bytes = 100
string_bytes = "10KB"
databases = [0]
[[class]]
name = "user-profile"
pattern = "<env>:<tenant>:user:<uuid>"
owner = "user-team"
type = "string"
ttl = { min = "120s", max = "150s" }
budget = { keys = 2_000_000, peak_factor = 1.3 }
[[class]]
name = "cart"
pattern = "cart:{<digits>:<x?>}:<**>"
limits = { elements = 200 }
ttl = "permanent"
[capacity]
maxmemory = "64gb"
"#;

/// What a dump has for each target.
#[derive(Default)]
struct Seeds<'a> {
    dump: &'a [u8],
    stream: Vec<Vec<u8>>,
    lzf: Vec<Vec<u8>>,
    key_text: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

/// Values as clients write them, one of each format that has more to it than its first bytes.
const VALUES: [&[u8]; 9] = [
    b"{\"v\":1,\"items\":[1,2.5,null,{\"a\":\"\\u00e9\"}]}",
    b"a:2:{i:0;s:1:\"x\";s:1:\"k\";a:1:{i:-7;N;}}",
    b"O:8:\"stdClass\":1:{s:1:\"a\";d:0.5;}",
    b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.",
    b"\xac\xed\x00\x05t\x00\x02hi",
    b"\x82\xa7compact\xc3\xa6schema\x00",
    b"\x08\x05\x10\x07\x19\0\0\0\0\0\0\xf8\x3f\x22\x01a",
    b"\xff\x06\x00\x00sNaPpY\x01\x06\x00\x00\x01\x02\x03\x04hi",
    b"\x78\x01\x01\x02\x00\xfd\xff\x68\x69\x01\x3b\x00\xd2",
];

impl Sink for Seeds<'_> {
    fn begin(&mut self, head: &RecordHead<'_>) {
        self.key_text.push(head.key.to_vec());
        self.key_text.push(key_text::escape(head.key).into_owned().into_bytes());
    }

    fn text(&mut self, role: Role, text: Str<'_>) {
        if let (Role::Value, Str::Raw(value)) = (role, text) {
            self.values.push(value.to_vec());
        }
        if let Str::Lzf { packed, plain_len, .. } = text {
            self.lzf.push([&(plain_len as u32).to_le_bytes()[..], packed].concat());
        }
    }

    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        if head.record_type.key_type == KeyType::Stream
            && let Some(layout) = [15, 19, 21, 26, 27].iter().position(|byte| *byte == head.record_type.byte)
        {
            let record = &self.dump[head.offset as usize..(head.offset + tail.serialized_bytes) as usize];
            // The key is where the type, its length and it stand together; what is behind it is the value.
            let key = [&[head.record_type.byte, head.key.len() as u8], head.key].concat();
            if let Some(at) = record.windows(key.len()).position(|window| window == key) {
                self.stream.push([&[layout as u8], &record[at + key.len()..]].concat());
            }
        }
    }
}

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("tests/fuzz/corpus"), PathBuf::from);
    let mut seeds: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for fixtures in ["fixtures/truth", "fixtures/cases", "fixtures/crashes"] {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(fixtures)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|ext| ext == "rdb"));
        paths.sort();
        for path in paths {
            let dump = fs::read(path)?;
            let mut found = Seeds { dump: &dump, ..Seeds::default() };
            // What a damaged one has is found up to the damage.
            let _ = scan::walk(&dump, &mut found);
            for (target, of_dump) in
                [("stream", found.stream), ("lzf", found.lzf), ("key_text", found.key_text), ("values", found.values)]
            {
                let small = of_dump.into_iter().filter(|seed| seed.len() <= 4096);
                seeds.entry(target).or_default().extend(small.take(MOST_OF_A_DUMP));
            }
            if dump.len() <= MOST_BYTES {
                seeds.entry("dump").or_default().push(dump);
            }
        }
    }
    let hex = |digits: &str| {
        let digit = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or_default();
        (0..digits.len()).step_by(2).map(digit).collect::<Vec<_>>()
    };
    seeds.entry("dump").or_default().extend(examples::ALL.map(hex));
    let items = ["a", "-1", "4095", "-70000", "5000000000", &"long ".repeat(30), &"longer ".repeat(800)];
    let integers = [[1i64, 2, 300], [-70_000, 5, 6], [1 << 40, 7, 8]];
    let packed = seeds.entry("packed").or_default();
    packed.push([&[0][..], &listpack(items)].concat());
    packed.extend([4, 6].map(|version| [&[1][..], &ziplist(Magic::Redis(version), items)].concat()));
    packed.extend(integers.map(|members| [&[2][..], &intset(members)].concat()));
    packed.push([&[3][..], &zipmap(items.iter().zip(items), 2)].concat());
    seeds.entry("contracts").or_default().push(CONTRACTS.into());
    seeds.entry("values").or_default().extend(VALUES.map(<[u8]>::to_vec));
    for (target, seeds) in seeds {
        write(&folder.join(target), &seeds)?;
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}

fn write(folder: &Path, seeds: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:04}")), seed)?;
    }
    Ok(())
}
