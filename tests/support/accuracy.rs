//! Memory figures against what servers answered to `MEMORY USAGE key SAMPLES 0` after they had loaded the dump.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base64::Engine as _;
use rdbscope::analyse::{self, Dump, Options, PieceSink, ServerOptions};
use rdbscope::input::Input;
use rdbscope::measure::{Allocator, Fact};
use serde_json::Value;

/// Types that have a model.
const MODELLED: [&str; 6] = ["string", "list", "set", "hash", "zset", "stream"];

/// Database and bytes of a key.
pub type Place = (u64, Vec<u8>);

/// One key: what is computed, and what the server answered.
#[derive(Debug, Clone)]
pub struct Measured {
    pub place: Place,
    pub key_type: String,
    pub encoding: String,
    pub ours: Option<u64>,
    pub theirs: u64,
    /// Members, fields or entries; zero where it has none.
    pub elements: u64,
    /// The server's allocator is glibc's.
    pub is_libc: bool,
}

impl Measured {
    /// The file decides the figure: neither levels of a skip list nor the history of glibc's heap are in it.
    pub fn is_decidable(&self) -> bool {
        self.encoding != "skiplist" && !self.is_libc
    }

    pub fn is_exact(&self) -> bool {
        self.ours == Some(self.theirs)
    }

    /// Within 3 % or 32 bytes.
    pub fn is_near(&self) -> bool {
        self.ours.is_some_and(|ours| ours.abs_diff(self.theirs) as f64 <= (0.03 * self.theirs as f64).max(32.0))
    }

    /// Off by a power of two of chain heads, four at least: half of a table of Redis that was about to be done with moving when the last
    /// entry came. Each entry moves one bucket on that holds any, and how many do depends on the hash seed.
    pub fn is_moving_table(&self) -> bool {
        let off = self.ours.map_or(0, |ours| ours.abs_diff(self.theirs));
        // A mean may have been rounded to the other side.
        self.encoding == "hashtable" && (off - off.min(1)..=off + 1).any(|off| off >= 4 * 8 && off.is_power_of_two())
    }

    /// Within what levels of skip lists and chains of Valkey's tables, drawn at each load, can do: six standard deviations of 12 bytes for
    /// each member, and 192 bytes since a few of them follow no normal distribution. Valkey's index of field expiries is counted roughly.
    ///
    /// glibc hands out up to 16 bytes more than it would from a new heap, since it splits off no rest below 32 (`MINSIZE`); of a stream,
    /// whose entries are not the allocations it is made of, that may be a fifth.
    pub fn is_within_chance(&self) -> bool {
        let off = self.ours.map_or(f64::INFINITY, |ours| ours.abs_diff(self.theirs) as f64);
        let heap = if self.is_libc { 16.0 * self.elements as f64 } else { 0.0 };
        let drawn = 6.0 * 12.0 * (self.elements as f64).sqrt() + 192.0 + heap;
        let is_rough = self.key_type == "stream" || self.key_type == "hash" && self.elements > 127;
        off <= drawn || is_rough && self.error() <= 0.2
    }

    /// Relative error.
    pub fn error(&self) -> f64 {
        self.ours.map_or(1.0, |ours| ours.abs_diff(self.theirs) as f64 / self.theirs.max(1) as f64)
    }

    pub fn describe(&self) -> String {
        let Self { place: (db, key), key_type, encoding, elements, ours, theirs, .. } = self;
        let key = key.escape_ascii();
        format!("{key_type} {encoding} db {db} {key}, {elements} elements: {ours:?}, the server says {theirs}")
    }
}

/// A dump with answers.
#[derive(Debug)]
pub struct Accuracy {
    pub name: String,
    /// Product and version, and the allocator.
    pub server: String,
    pub path: PathBuf,
    pub options: Options,
    pub keys: Vec<Measured>,
    /// `used_memory` less `used_memory_startup`.
    pub used: Option<u64>,
}

/// Every dump of a folder beside which answers lie, in the order of their names.
pub fn all(folder: &Path) -> Vec<Accuracy> {
    let mut answers: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(".truth.jsonl"))
        .collect();
    answers.sort();
    answers.iter().filter_map(|answers| one(answers)).filter(|accuracy| !accuracy.keys.is_empty()).collect()
}

fn one(answers: &Path) -> Option<Accuracy> {
    let name = answers.file_name()?.to_string_lossy().strip_suffix(".truth.jsonl")?.to_string();
    let path = answers.with_file_name(format!("{name}.rdb"));
    let meta: Value = json(&fs::read_to_string(answers.with_file_name(format!("{name}.meta.json"))).ok()?);
    let is_libc = meta["allocator"].as_str().is_some_and(|allocator| allocator.starts_with("libc"));
    let server = ServerOptions {
        allocator: is_libc.then_some(Allocator::Libc),
        cluster: name.ends_with("-cluster").then_some(true),
        ..ServerOptions::default()
    };
    let options = Options { server, ..Options::default() };
    let dump = Dump::new(Input::open(&path).expect("the dump can be opened"), &options).expect("it is a dump");
    let ours = memory(&dump, &options);
    // What a server dropped while loading is not what the file holds.
    let lost: BTreeSet<Place> = meta["expired_fields"].as_array().into_iter().flatten().map(place).collect();
    let mut keys = Vec::new();
    for line in fs::read_to_string(answers).expect("answers").lines().map(json) {
        let (key_type, place) = (line["type"].as_str().expect("a type").to_string(), place(&line));
        let (Some(theirs), true) = (line["memory_usage"].as_u64(), MODELLED.contains(&&*key_type)) else { continue };
        if lost.contains(&place) {
            continue;
        }
        let encoding = line["encoding"].as_str().unwrap_or_default().to_string();
        let encoding = if key_type == "stream" { "stream".into() } else { encoding };
        let ours = ours.get(&place).copied().flatten();
        let elements = line["count"].as_u64().unwrap_or(0);
        keys.push(Measured { place, key_type, encoding, elements, ours, theirs, is_libc });
    }
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let used = number(&meta["used_memory"]).zip(number(&meta["info_memory"]["used_memory_startup"]));
    let allocator = if is_libc { "libc" } else { "jemalloc" };
    let server = format!("{}, {allocator}", dump.model.server);
    Some(Accuracy { name, server, path, options, keys, used: used.map(|(used, startup)| used - startup) })
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn place(named: &Value) -> Place {
    let key = named["key_b64"].as_str().expect("a key");
    (named["db"].as_u64().expect("a database"), base64::engine::general_purpose::STANDARD.decode(key).expect("base64"))
}

struct Collect(Vec<(Place, Option<u64>)>);

impl PieceSink for Collect {
    fn fact(&mut self, fact: &Fact<'_>) {
        self.0.push(((fact.db, fact.key.to_vec()), fact.memory_bytes));
    }
}

fn memory(dump: &Dump, options: &Options) -> BTreeMap<Place, Option<u64>> {
    let mut all = BTreeMap::new();
    let workers = Mutex::new(Vec::new());
    analyse::walk_dump(
        dump,
        options,
        &workers,
        || Collect(Vec::new()),
        |worker| std::mem::take(&mut worker.0),
        |piece, _| {
            all.extend(piece);
            ControlFlow::Continue(())
        },
    );
    all
}

/// Sums over keys of one kind.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sums {
    pub keys: usize,
    pub exact: usize,
    pub near: usize,
    pub worst: f64,
    pub ours: u64,
    pub theirs: u64,
}

impl Sums {
    pub fn add(&mut self, key: &Measured) {
        self.keys += 1;
        self.exact += usize::from(key.is_exact());
        self.near += usize::from(key.is_near());
        self.worst = self.worst.max(key.error());
        self.ours += key.ours.unwrap_or(0);
        self.theirs += key.theirs;
    }

    pub fn exact_share(&self) -> f64 {
        self.exact as f64 / self.keys.max(1) as f64
    }

    /// Relative error of the total.
    pub fn total_error(&self) -> f64 {
        self.ours.abs_diff(self.theirs) as f64 / self.theirs.max(1) as f64
    }
}

/// Sums by type and encoding.
pub fn by_encoding<'k>(keys: impl IntoIterator<Item = &'k Measured>) -> BTreeMap<(String, String), Sums> {
    let mut sums: BTreeMap<_, Sums> = BTreeMap::new();
    for key in keys {
        sums.entry((key.key_type.clone(), key.encoding.clone())).or_default().add(key);
    }
    sums
}

/// Most keys of one type, as a share, whose tables [are about to be done with moving](Measured::is_moving_table).
const MOVING: f64 = 0.03;

/// The table of `docs/memory-accuracy.md`, of the dumps in some folders.
pub fn table(folders: &[PathBuf]) -> String {
    let mut sums: BTreeMap<(String, String, String), Sums> = BTreeMap::new();
    for dump in folders.iter().flat_map(|folder| all(folder)) {
        for key in &dump.keys {
            sums.entry((dump.server.clone(), key.key_type.clone(), key.encoding.clone())).or_default().add(key);
        }
    }
    let head = "| server | type | encoding | keys | exact | within 3 % or 32 bytes | worst key | total |\n\
                | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
    let rows = sums.into_iter().map(|((server, key_type, encoding), sums)| {
        let near = sums.near as f64 / sums.keys as f64;
        format!(
            "| {server} | {key_type} | {encoding} | {} | {:.2} % | {:.2} % | {:.2} % | {:.3} % |\n",
            sums.keys,
            100.0 * sums.exact_share(),
            100.0 * near,
            100.0 * sums.worst,
            100.0 * sums.total_error()
        )
    });
    head.to_string() + &rows.collect::<String>()
}

/// Every bar that the keys of one dump miss, with the worst keys.
///
/// Levels of skip lists and chains of hash tables are drawn at each load: of thousands of keys some lie outside of 3 % and 32 bytes whatever
/// is computed. `chance` is the share of such keys for which that is allowed, [within limits](Measured::is_within_chance).
pub fn misses(keys: &[Measured], chance: f64) -> Vec<String> {
    let mut misses = Vec::new();
    let worst = |keys: &mut Vec<&Measured>| {
        keys.sort_by(|a, b| b.error().total_cmp(&a.error()));
        keys.iter().take(10).map(|key| format!("\n    {}", key.describe())).collect::<String>()
    };
    let (decidable, loose): (Vec<&Measured>, Vec<&Measured>) = keys.iter().partition(|key| key.is_decidable());
    let mut all = Sums::default();
    decidable.iter().for_each(|key| all.add(key));
    let mut inexact: Vec<&Measured> = decidable.iter().copied().filter(|key| !key.is_exact()).collect();
    if all.keys > 0 && (all.exact_share() < 0.995 || all.total_error() > 0.001) {
        let share = 100.0 * all.exact_share();
        misses.push(format!("{share:.2} % exact, total off by {:.3} %:{}", 100.0 * all.total_error(), worst(&mut inexact)));
    }
    let mut far: Vec<&Measured> =
        decidable.iter().copied().filter(|key| key.error() > 0.02 && !(chance > 0.0 && key.is_moving_table())).collect();
    if !far.is_empty() {
        misses.push(format!("{} keys off by more than 2 %:{}", far.len(), worst(&mut far)));
    }
    for ((key_type, encoding), sums) in by_encoding(decidable.iter().copied()) {
        let is_of_kind = |key: &&&Measured| key.key_type == key_type && key.encoding == encoding;
        let moving = decidable.iter().filter(is_of_kind).filter(|key| key.is_moving_table()).count();
        if moving as f64 > MOVING * sums.keys as f64 && sums.keys >= 50 {
            misses.push(format!("{key_type} {encoding}: {moving} of {} off by half a table", sums.keys));
        }
        let sums = Sums { exact: sums.exact + moving, ..sums };
        if sums.keys >= 50 && sums.exact_share() < 0.98 || sums.total_error() > 0.001 {
            let mut inexact: Vec<&Measured> =
                inexact.iter().copied().filter(|key| key.key_type == key_type && key.encoding == encoding).collect();
            misses.push(format!(
                "{key_type} {encoding}: {} of {} exact, total off by {:.3} %:{}",
                sums.exact,
                sums.keys,
                100.0 * sums.total_error(),
                worst(&mut inexact)
            ));
        }
    }
    let mut far: Vec<&Measured> = loose.iter().copied().filter(|key| !key.is_near()).collect();
    let drawn = loose.iter().filter(|key| ["skiplist", "hashtable", "stream"].contains(&&*key.encoding)).count();
    if far.len() as f64 > chance * drawn as f64 {
        misses.push(format!("{} keys that only have to be near are not:{}", far.len(), worst(&mut far)));
    }
    far.retain(|key| !key.is_within_chance());
    if chance > 0.0 && !far.is_empty() {
        misses.push(format!("{} keys are off by more than chance can do:{}", far.len(), worst(&mut far)));
    }
    for ((key_type, encoding), sums) in by_encoding(loose.iter().copied()) {
        // Of few keys the sum may be off by what one of them may.
        // And a heap that was in use hands out more, never less.
        let allowed = if sums.keys < 50 { 0.03 } else { 0.005 };
        if sums.total_error() > allowed && sums.ours.abs_diff(sums.theirs) > 32 {
            misses.push(format!("{key_type} {encoding}: total off by {:.3} %", 100.0 * sums.total_error()));
        }
    }
    misses
}
