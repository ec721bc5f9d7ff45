//! Turns a record into a small plain struct of facts.

mod allocator;
mod config;
mod costs;
mod encoding;
mod lifetime;
mod memory;
mod nodes;
mod overhead;
mod packing;
mod radix;
mod server;
mod slot;
mod stream;
mod table;
mod tally;
mod what_if;

pub use allocator::Allocator;
pub use config::{ConfigMistake, Limit, LoadConfig, PackedLimits, ServerConfig};
pub use encoding::Encoding;
pub use lifetime::{Lifetime, Snapshot, SnapshotSource};
pub use overhead::{Overhead, TableKeys};
pub use server::Server;
pub use slot::{SLOTS, hash_tag, slot};
pub use what_if::{Fallback, StringsAsHash, WhatIf};

use crate::error::Error;
use crate::rdb::packed::{Entry, PackedForm};
use crate::rdb::{Frame, KeyType, RecordHead, RecordTail, Role, Sink, Str, StreamCounters, StreamPart};
use costs::Costs;
use encoding::LoadedKey;
use tally::{Scale, Tallies};

/// Longest string that is taken at the word of its header: what a server takes from a client by default (`proto-max-bulk-len`).
const MOST_DOUBTFUL_BYTES: u64 = 512 << 20;

/// Memory of every key where it [is not modelled](FactSink::MEMORY).
pub const NOT_MODELLED_BYTES: u64 = 100;

/// What is known of one key. Borrowed from the dump; nothing in it owns memory.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'a> {
    /// Offset of the record in the uncompressed dump.
    pub offset: u64,
    /// Database number.
    pub db: u64,
    /// Bytes of the key.
    pub key: &'a [u8],
    /// Type, as `TYPE` answers.
    pub key_type: KeyType,
    /// Encoding after the load, as `OBJECT ENCODING` answers.
    pub encoding: Encoding,
    /// Members, fields or entries; `None` for strings and for modules whose format is their own.
    pub elements: Option<u64>,
    /// Logical length of a string; of other types the bytes of their members, where packed values were opened.
    pub payload_bytes: Option<u64>,
    /// Bytes of the longest member, field or value, where packed values were opened.
    pub largest_element_bytes: Option<u64>,
    /// Bytes of the longest element that was looked at: where packed values are opened above a length, exact above that length.
    pub longest_seen_bytes: u64,
    /// Bytes that the record takes in the dump.
    pub serialized_bytes: u64,
    /// Bytes in the server's memory; `None` where that is not modelled.
    pub memory_bytes: Option<u64>,
    /// What it takes beside that, since `MEMORY USAGE` does not count all as it is; part of the overhead.
    pub uncounted_bytes: i64,
    /// Absolute expiry in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// Permanent, volatile or expired at the snapshot time.
    pub lifetime: Lifetime,
    /// Cluster slot.
    pub slot: u16,
    /// Seconds since the last access.
    pub idle_seconds: Option<u64>,
    /// Access counter of LFU.
    pub freq: Option<u8>,
    /// Expiries of its fields or members, where any has one.
    pub field_expiry: Option<FieldExpiry>,
    /// What is known of a stream.
    pub stream: Option<StreamFacts>,
    /// On which other conditions can be tried; `None` where memory is not modelled, or nobody [asks](FactSink::ADVICE).
    pub what_if: Option<WhatIf<'a>>,
}

impl Fact<'_> {
    /// True where the key itself stays and every field of it expires.
    pub fn all_fields_expire(&self) -> bool {
        self.lifetime == Lifetime::Permanent && self.field_expiry.is_some_and(|expiry| Some(expiry.fields) == self.elements)
    }
}

/// Expiries of the fields or members of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldExpiry {
    /// Fields that have one.
    pub fields: u64,
    /// Of these, fields whose expiry has passed at the snapshot time.
    pub expired: u64,
    /// The earliest, in Unix milliseconds.
    pub min_ms: i64,
    /// The latest, in Unix milliseconds.
    pub max_ms: i64,
}

/// What a stream's record says beside its entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// Counters.
    pub counters: StreamCounters,
    /// Consumer groups.
    pub groups: u64,
    /// Consumers over all groups.
    pub consumers: u64,
    /// Pending entries over all groups.
    pub pending: u64,
}

impl StreamFacts {
    /// Entries that were deleted or trimmed away; Redis 7.0 and later.
    pub fn removed(&self) -> Option<u64> {
        self.counters.entries_added.map(|added| added.saturating_sub(self.counters.length))
    }
}

/// What decides encodings, memory and lifetimes: the loading server and the moment.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// The server that is taken to load the dump.
    pub server: Server,
    /// Its limits.
    pub config: LoadConfig,
    /// Its allocator; unless known, the jemalloc that servers bundle.
    pub allocator: Option<Allocator>,
    /// It is a cluster's.
    pub cluster: bool,
    /// Bytes of the header of an object; [`Model::OBJECT`] but for KeyDB.
    pub object_bytes: u64,
    /// The moment against which expiries are judged.
    pub snapshot: Option<Snapshot>,
}

impl Model {
    /// Bytes of the header of an object.
    pub const OBJECT: u64 = 16;

    /// `directive value`, as a `redis.conf` has it, of a limit that is raised by a step, or stays.
    pub fn limit_text(&self, limit: Limit, step: Option<usize>) -> String {
        let config = step.map_or(self.config, |step| limit.raised(&self.config, step));
        format!("{} {}", limit.directive(self.scale().has_listpacks()), limit.get(&config))
    }

    fn scale(&self) -> Scale<'_> {
        // Redis 4.0 is the first that can be asked; older dumps are described as if it had loaded them.
        let server = self.server.at_least(Server::redis(4, 0, 14));
        let mut costs = Costs::new(server, self.allocator.unwrap_or_default(), self.cluster);
        costs.object = self.object_bytes;
        Scale { server, config: &self.config, costs }
    }
}

/// Receives facts, and what stands between them.
pub trait FactSink {
    /// Every packed value is opened, so that payload and largest element are known.
    const DEEP: bool = false;

    /// Memory is modelled; else every key is said to take [`NOT_MODELLED_BYTES`], and nothing is added up or opened for it.
    const MEMORY: bool = true;

    /// What would save memory is asked of keys; else [`Fact::what_if`] is empty, and nothing is added up for it.
    const ADVICE: bool = Self::MEMORY;

    /// Whether a packed value of `len` plain bytes is opened.
    fn opens(&self, _len: u64) -> bool {
        false
    }

    /// A key.
    fn fact(&mut self, fact: &Fact<'_>);

    /// Something between records, `bytes` long.
    fn frame(&mut self, _frame: Frame<'_>, _bytes: u64) {}

    /// A fault inside a value; its key is reported all the same.
    fn value_fault(&mut self, _fault: Error) {}

    /// A value whose size is taken from its header though its bytes cannot hold that much.
    fn doubtful_size(&mut self, _fault: Error) {}
}

/// The sink that measures: adds up one value at a time and hands out a [`Fact`].
#[derive(Debug)]
pub struct Measure<'m, F> {
    model: &'m Model,
    /// Where facts go.
    pub facts: F,
    scale: Scale<'m>,
    tallies: Tallies,
    field_expiry: Option<FieldExpiry>,
    stream: StreamFacts,
}

impl<'m, F: FactSink> Measure<'m, F> {
    /// Measures by `model` into `facts`.
    pub fn new(model: &'m Model, facts: F) -> Self {
        let (scale, tallies) = (model.scale(), Tallies::default());
        Self { model, facts, scale, tallies, field_expiry: None, stream: StreamFacts::default() }
    }
}

impl<F: FactSink> Sink for Measure<'_, F> {
    fn frame(&mut self, frame: Frame<'_>, bytes: u64) {
        self.facts.frame(frame, bytes);
    }

    #[inline]
    fn begin(&mut self, head: &RecordHead<'_>) {
        self.tallies.begin(&head.record_type, if F::ADVICE { Limit::HIGHEST_STEP } else { 1 }, &self.scale);
        self.field_expiry = None;
    }

    #[inline]
    fn elements(&mut self, n: u64) {
        self.tallies.sums.elements(n);
    }

    #[inline]
    fn text(&mut self, role: Role, mut text: Str<'_>) {
        if matches!(text, Str::Lzf { .. })
            && let Some(fault) = text.cannot_expand()
        {
            if text.len() <= MOST_DOUBTFUL_BYTES {
                self.facts.doubtful_size(fault);
            } else {
                // No server takes such a string, and sums that have it are worth nothing.
                self.facts.value_fault(fault);
                text = Str::Raw(&[]);
            }
        }
        self.tallies.sums.text(role, text, F::MEMORY, &self.scale);
    }

    #[inline]
    fn score(&mut self, score: f64) {
        if F::MEMORY {
            self.tallies.sums.score(score, &self.scale);
        }
    }

    #[inline]
    fn opens(&self, len: u64) -> bool {
        F::DEEP || self.facts.opens(len)
    }

    #[inline]
    fn opens_entries(&self, len: u64, entries: u64) -> bool {
        self.tallies.sums.opens(entries, F::MEMORY) || self.opens(len)
    }

    #[inline]
    fn packed(&mut self, _form: PackedForm, len: u64, entries: u64) {
        self.tallies.packed(len, entries, F::MEMORY, &self.scale);
    }

    #[inline]
    fn stored(&mut self, entry: Entry<'_>) {
        self.tallies.sums.stored(&entry, &self.scale);
    }

    #[inline]
    fn entry(&mut self, role: Role, entry: Entry<'_>) {
        self.tallies.sums.entry(role, &entry, F::MEMORY, &self.scale);
    }

    fn field_expiry(&mut self, at_ms: Option<i64>) {
        if F::MEMORY {
            self.tallies.field_expiry(at_ms, &self.scale);
        }
        let Some(at_ms) = at_ms else { return };
        let expired = u64::from(self.model.snapshot.is_some_and(|snapshot| at_ms <= snapshot.at_ms));
        let before = self.field_expiry.unwrap_or(FieldExpiry { fields: 0, expired: 0, min_ms: at_ms, max_ms: at_ms });
        self.field_expiry = Some(FieldExpiry {
            fields: before.fields + 1,
            expired: before.expired + expired,
            min_ms: before.min_ms.min(at_ms),
            max_ms: before.max_ms.max(at_ms),
        });
    }

    fn stream(&mut self, part: StreamPart<'_>) {
        if F::MEMORY {
            self.tallies.part(&part, &self.scale);
        }
        match part {
            // The counters come first of what is kept.
            StreamPart::Counters(counters) => self.stream = StreamFacts { counters, ..StreamFacts::default() },
            StreamPart::Group { pending, .. } => {
                self.stream.groups += 1;
                self.stream.pending = self.stream.pending.saturating_add(pending);
            }
            StreamPart::Consumer { .. } => self.stream.consumers += 1,
            _ => {}
        }
    }

    fn value_fault(&mut self, fault: Error) {
        self.facts.value_fault(fault);
    }

    #[inline]
    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        let Self { scale, tallies, .. } = self;
        let Model { server, config, allocator, snapshot, .. } = self.model;
        let key_type = head.record_type.key_type;
        if key_type == KeyType::List {
            tallies.sums.list.settle(scale);
        }
        let key_len = head.key.len() as u64;
        let elements = tail.elements.unwrap_or(0);
        let has_expiry = head.expires_at_ms.is_some();
        let key = LoadedKey { record_type: &head.record_type, elements, key_len, has_expiry };
        let loaded_by = |server| encoding::after_load(server, config, *allocator, &key, &tallies.sums);
        let encoding = loaded_by(*server);
        let counted = if scale.server == *server { encoding } else { loaded_by(scale.server) };
        let memory_bytes = if F::MEMORY { memory::of(&key, counted, tallies, scale) } else { Some(NOT_MODELLED_BYTES) };
        let sums = &tallies.sums;
        let what_if = WhatIf { key: &key, encoding: counted, allocator: *allocator, tally: sums, scale };
        let payload_known = match key_type {
            KeyType::String => true,
            KeyType::Module(_) | KeyType::Array | KeyType::Other(_) => false,
            // A value that is damaged inside was not passed whole.
            _ => F::DEEP && tail.elements.is_some(),
        };
        self.facts.fact(&Fact {
            offset: head.offset,
            db: head.db,
            key: head.key,
            key_type,
            encoding,
            elements: tail.elements,
            payload_bytes: payload_known.then_some(sums.payload.saturating_add(sums.opened)),
            largest_element_bytes: payload_known.then_some(sums.longest),
            longest_seen_bytes: sums.longest,
            serialized_bytes: tail.serialized_bytes,
            memory_bytes,
            uncounted_bytes: if F::MEMORY { memory::uncounted(&key, counted, sums, scale) } else { 0 },
            expires_at_ms: head.expires_at_ms,
            lifetime: Lifetime::of(head.expires_at_ms, *snapshot),
            slot: slot(head.key),
            idle_seconds: head.idle_seconds,
            freq: head.freq,
            field_expiry: self.field_expiry,
            stream: (key_type == KeyType::Stream).then_some(self.stream),
            what_if: (F::ADVICE && memory_bytes.is_some()).then_some(what_if),
        });
    }
}
