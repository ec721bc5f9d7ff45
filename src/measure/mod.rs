//! Turns a record into a small plain struct of facts.

mod encoding;
mod lifetime;
mod memory;
mod server;
mod slot;
mod tally;

pub use encoding::{Encoding, LoadConfig, PackedLimits};
pub use lifetime::{Lifetime, Snapshot, SnapshotSource};
pub use server::Server;
pub use slot::{SLOTS, hash_tag, slot};

use crate::error::Error;
use crate::rdb::packed::{Entry, PackedForm};
use crate::rdb::{Frame, KeyType, RecordHead, RecordTail, Role, Sink, Str, StreamCounters, StreamPart};
use tally::Tally;

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
    /// The moment against which expiries are judged.
    pub snapshot: Option<Snapshot>,
}

/// Receives facts, and what stands between them.
pub trait FactSink {
    /// Every packed value is opened, so that payload and largest element are known.
    const DEEP: bool = false;

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
    tally: Tally,
    field_expiry: Option<FieldExpiry>,
    stream: StreamFacts,
}

impl<'m, F: FactSink> Measure<'m, F> {
    /// Measures by `model` into `facts`.
    pub fn new(model: &'m Model, facts: F) -> Self {
        Self { model, facts, tally: Tally::default(), field_expiry: None, stream: StreamFacts::default() }
    }
}

impl<F: FactSink> Sink for Measure<'_, F> {
    fn frame(&mut self, frame: Frame<'_>, bytes: u64) {
        self.facts.frame(frame, bytes);
    }

    #[inline]
    fn begin(&mut self, _head: &RecordHead<'_>) {
        self.tally.clear();
        self.field_expiry = None;
    }

    #[inline]
    fn text(&mut self, role: Role, text: Str<'_>) {
        if matches!(text, Str::Lzf { .. })
            && let Some(fault) = text.cannot_expand()
        {
            self.facts.doubtful_size(fault);
        }
        self.tally.text(text);
        if role == Role::Element {
            self.tally.list_nodes += 1;
            self.tally.list_plain_nodes += 1;
        }
    }

    #[inline]
    fn opens(&self, len: u64) -> bool {
        F::DEEP || self.facts.opens(len)
    }

    #[inline]
    fn packed(&mut self, form: PackedForm, len: u64, entries: u64) {
        self.tally.packed(form, len, entries);
    }

    #[inline]
    fn entry(&mut self, _role: Role, entry: Entry<'_>) {
        self.tally.entry(entry.len());
    }

    fn field_expiry(&mut self, at_ms: Option<i64>) {
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
        let Model { server, config, snapshot } = self.model;
        let key_type = head.record_type.key_type;
        let key_len = head.key.len() as u64;
        let elements = tail.elements.unwrap_or(0);
        let has_expiry = head.expires_at_ms.is_some();
        let encoding = encoding::after_load(*server, config, &head.record_type, elements, key_len, has_expiry, &self.tally);
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
            payload_bytes: payload_known.then_some(self.tally.payload + self.tally.opened),
            largest_element_bytes: payload_known.then_some(self.tally.longest),
            longest_seen_bytes: self.tally.longest,
            serialized_bytes: tail.serialized_bytes,
            memory_bytes: memory::estimate(key_type, encoding, key_len, elements, &self.tally),
            expires_at_ms: head.expires_at_ms,
            lifetime: Lifetime::of(head.expires_at_ms, *snapshot),
            slot: slot(head.key),
            idle_seconds: head.idle_seconds,
            freq: head.freq,
            field_expiry: self.field_expiry,
            stream: (key_type == KeyType::Stream).then_some(self.stream),
        });
    }
}
