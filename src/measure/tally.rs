//! What is added up while a value passes: all that encoding and memory are computed from.

use super::config::LoadConfig;
use super::costs::{Costs, Line};
use super::nodes::ListNodes;
use super::packing::{self, Item, Packing};
use super::server::Server;
use super::stream::StreamTally;
use crate::rdb::packed::{Entry, PackedForm};
use crate::rdb::{KeyType, Layout, RecordType, Role, Sequence, Str, StreamPart};

/// By what a value is added up, fixed for one server.
#[derive(Debug, Clone)]
pub(super) struct Scale<'m> {
    /// The server whose memory is described.
    pub server: Server,
    /// Its configuration.
    pub config: &'m LoadConfig,
    /// What its parts cost.
    pub costs: Costs,
}

impl Scale<'_> {
    /// True where packed values are listpacks, not ziplists.
    #[inline]
    pub fn has_listpacks(&self) -> bool {
        self.server.is_redis_from(7, 0)
    }

    /// True where the length of a name decides whether a short string lies beside it.
    #[inline]
    pub fn names_move_values(&self) -> bool {
        self.costs.line >= Line::Redis82Early
    }
}

/// What becomes of a packed value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Packed {
    /// It stays as it is.
    #[default]
    Kept,
    /// It is written anew, entry by entry.
    Converted,
    /// It is a node of a list and stays.
    Node,
    /// It is a node of a list and is written anew.
    ConvertedNode,
    /// Its entries are pushed to a list.
    Pushed,
    /// It is a node of a stream.
    StreamNode,
}

/// What is to be done with the parts of the value at hand, by its record type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Plan {
    packed: Packed,
    /// Most elements of a packed value, under the highest limit that is thought of.
    packable_elements: u64,
    /// The value may end up packed as far as its number of elements goes.
    may_pack: bool,
    /// Longest string that may, likewise.
    packable_len: u64,
    /// Longest string that a packed value takes.
    longest: u64,
    /// Entries up to which a packed value stays one.
    entries: u64,
    is_zset: bool,
    /// Each field has an expiry, or says that it has none: behind its value, or in front of it.
    expiry_behind: bool,
    expiry_before: bool,
}

impl Plan {
    #[inline]
    fn of(record: &RecordType, highest_step: u64, scale: &Scale<'_>) -> Self {
        let config = scale.config;
        let limits = match record.key_type {
            KeyType::Hash => config.hash,
            KeyType::Zset => config.zset,
            KeyType::Set if scale.server.is_redis_from(7, 2) => config.set,
            KeyType::Stream => return Self { packed: Packed::StreamNode, entries: u64::MAX, ..Self::default() },
            _ => return Self::of_other(record, scale),
        };
        let plan = Self { longest: limits.value, is_zset: record.key_type == KeyType::Zset, ..Self::default() };
        match record.layout {
            Layout::Packed { form, per_element, .. } => {
                let converts = form == PackedForm::Zipmap || (form == PackedForm::Ziplist && scale.has_listpacks());
                let most = if form == PackedForm::Intset { config.intset_entries } else { limits.entries };
                Self {
                    packed: if converts { Packed::Converted } else { Packed::Kept },
                    entries: most.saturating_mul(per_element),
                    expiry_behind: per_element == 3,
                    ..plan
                }
            }
            Layout::Sequence(sequence) => Self {
                packable_elements: limits.entries.saturating_mul(highest_step),
                packable_len: limits.value.saturating_mul(highest_step),
                expiry_before: matches!(sequence, Sequence::ExpiryPair { .. }),
                expiry_behind: matches!(sequence, Sequence::PairExpiry | Sequence::PairTextExpiry),
                ..plan
            },
            _ => Self { entries: u64::MAX, ..plan },
        }
    }

    fn of_other(record: &RecordType, scale: &Scale<'_>) -> Self {
        let plan = Self { entries: u64::MAX, ..Self::default() };
        match (record.key_type, record.layout) {
            (KeyType::List, Layout::Nodes { form: PackedForm::Ziplist, .. }) if scale.has_listpacks() => {
                Self { packed: Packed::ConvertedNode, ..plan }
            }
            (KeyType::List, Layout::Nodes { .. }) => Self { packed: Packed::Node, ..plan },
            (KeyType::List, _) => Self { packed: Packed::Pushed, ..plan },
            (KeyType::Set, Layout::Packed { form: PackedForm::Intset, .. }) => {
                Self { entries: scale.config.intset_entries, ..plan }
            }
            // A server without listpacks of members that is given one.
            (KeyType::Set, Layout::Packed { .. }) => Self { entries: scale.config.set.entries, ..plan },
            _ => plan,
        }
    }
}

/// Sums over the strings and packed nodes of one value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    plan: Plan,
    /// Strings of the value that stand by themselves.
    pub texts: u64,
    /// Bytes of those strings.
    pub payload: u64,
    /// Bytes of the entries of packed values, where these were opened; encoding and memory must not depend on that.
    pub opened: u64,
    /// Longest string or entry.
    pub longest: u64,
    /// True while every string was the decimal text of a 64-bit integer; false without any.
    pub all_integers: bool,
    /// Strings in front of the first that is none.
    pub leading_integers: u64,
    /// Smallest and largest of these integers, zero among them.
    pub range: (i64, i64),
    /// Bytes of packed values as the dump holds them.
    pub packed_bytes: u64,
    /// Strings in front of the first that is too long for a packed value.
    pub short_texts: Option<u64>,
    /// Cost of the elements in a table; of sorted sets in units.
    pub table_cost: u64,
    /// The value as a packed one that the server writes.
    pub packing: Packing,
    /// Nodes of a list.
    pub list: ListNodes,
    /// Fields with an expiry.
    pub expiring_fields: u64,
    field: u64,
    value: u64,
    field_expires: bool,
}

/// Length of a window of Valkey's index of field expiries, in milliseconds as a power of two.
const WINDOW: u32 = 13;

/// Counts distinct windows of time by the bits that their hashes set, which is exact for few and within some percent for hundreds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Windows([u64; 16]);

impl Windows {
    fn add(&mut self, at_ms: i64) {
        // Fibonacci hashing: the upper bits are well mixed.
        let hash = ((at_ms >> WINDOW) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        self.0[(hash >> 6) as usize] |= 1 << (hash & 63);
    }

    /// About how many there are, one at least.
    pub fn count(&self) -> u64 {
        let set: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        let clear = f64::from((1024 - set).max(1));
        ((1024.0 * (1024.0 / clear).ln()).round() as u64).max(1)
    }
}

/// Tallies of one value after another.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    /// Windows of time in which fields expire; apart, since few hashes have any.
    pub windows: Windows,
    /// Sums over strings and packed values.
    pub sums: Tally,
    /// Sums over a stream; apart, since few values are streams.
    pub stream: StreamTally,
}

impl Tallies {
    /// Starts over for the next value, which limits are thought of for that are so many times as high as those in force.
    #[inline]
    pub fn begin(&mut self, record: &RecordType, highest_step: u64, scale: &Scale<'_>) {
        if record.key_type == KeyType::String {
            // Most keys are strings, and of a string no more than this is looked at.
            let sums = &mut self.sums;
            sums.plan = Plan { entries: u64::MAX, ..Plan::default() };
            (sums.texts, sums.payload, sums.opened, sums.longest, sums.all_integers) = (0, 0, 0, 0, true);
            return;
        }
        self.sums = Tally { all_integers: true, plan: Plan::of(record, highest_step, scale), ..Tally::default() };
        if self.sums.plan.packed == Packed::StreamNode {
            self.stream = StreamTally::default();
        }
        if self.sums.plan.expiry_behind {
            self.windows = Windows::default();
        }
    }

    /// A packed value, or a packed node.
    #[inline]
    pub fn packed(&mut self, len: u64, entries: u64, for_memory: bool, scale: &Scale<'_>) {
        let Tally { plan, packed_bytes, list, .. } = &mut self.sums;
        match plan.packed {
            Packed::Kept | Packed::Converted | Packed::Pushed => *packed_bytes = packed_bytes.saturating_add(len),
            // The loader drops empty nodes.
            Packed::Node if entries > 0 => list.kept(len, scale),
            Packed::Node => {}
            Packed::ConvertedNode => list.announce(entries, scale),
            Packed::StreamNode if for_memory => self.stream.block(len, &scale.costs),
            Packed::StreamNode => {}
        }
    }

    /// The expiry of a field, or that it has none.
    pub fn field_expiry(&mut self, at_ms: Option<i64>, scale: &Scale<'_>) {
        if let Some(at_ms) = at_ms {
            self.windows.add(at_ms);
        }
        self.sums.field_expiry(at_ms, scale);
    }

    /// A part of a stream.
    pub fn part(&mut self, part: &StreamPart<'_>, scale: &Scale<'_>) {
        self.stream.part(part, &scale.costs);
    }
}

impl Tally {
    /// How many elements follow.
    #[inline]
    pub fn elements(&mut self, n: u64) {
        self.plan.may_pack = n <= self.plan.packable_elements;
    }

    /// Whether all strings so far fit into a packed value.
    #[inline]
    fn packs(&self) -> bool {
        self.plan.may_pack && self.longest <= self.plan.packable_len
    }

    /// A string that stands by itself; `for_memory` if more is wanted than the encoding.
    #[inline]
    pub fn text(&mut self, role: Role, text: Str<'_>, for_memory: bool, scale: &Scale<'_>) {
        let len = text.len();
        self.texts += 1;
        self.payload = self.payload.saturating_add(len);
        self.longest = self.longest.max(len);
        if role == Role::Value {
            let number = integer(text);
            self.all_integers = number.is_some();
            self.range = number.map_or((0, 0), |number| (number, number));
            return;
        }
        if len > self.plan.longest && self.short_texts.is_none() {
            self.short_texts = Some(self.texts - 1);
        }
        if self.is_open(role) {
            self.open_text(role, text, for_memory, scale);
        } else if for_memory {
            self.element(role, len, scale);
        }
    }

    /// True while a string may still decide more than the size of a table: the value may be packed, or all integers, or it is a list.
    #[inline]
    fn is_open(&self, role: Role) -> bool {
        self.packs() || self.all_integers || role == Role::Element
    }

    /// Apart from [`Tally::text`], so that the way of most strings of large tables stays short.
    #[inline(never)]
    fn open_text(&mut self, role: Role, text: Str<'_>, for_memory: bool, scale: &Scale<'_>) {
        let len = text.len();
        let is_pushed = self.plan.packed == Packed::Pushed;
        let is_packed = for_memory && self.packs();
        let number = if self.all_integers || is_packed || is_pushed { integer(text) } else { None };
        match number {
            Some(number) => {
                self.range = (self.range.0.min(number), self.range.1.max(number));
                self.leading_integers += u64::from(self.all_integers);
            }
            None => self.all_integers = false,
        }
        let item = number.map_or(Item::Text(len), Item::Int);
        if is_packed {
            self.packing.push(item, scale.has_listpacks());
        }
        match role {
            Role::Element if is_pushed => self.list.push(item, len, scale),
            Role::Element => self.list.plain(len, scale),
            _ if for_memory => self.element(role, len, scale),
            _ => {}
        }
    }

    /// A member, field or value as an entry of a table.
    #[inline]
    fn element(&mut self, role: Role, len: u64, scale: &Scale<'_>) {
        let costs = &scale.costs;
        let cost = match role {
            Role::Member if self.plan.is_zset => costs.skiplist_member(len),
            Role::Member => costs.set_member(len),
            Role::Field => {
                self.field = len;
                return;
            }
            Role::FieldValue if self.plan.expiry_behind => {
                self.value = len;
                return;
            }
            Role::FieldValue => costs.hash_entry(self.field, len, self.field_expires),
            _ => return,
        };
        self.table_cost = self.table_cost.saturating_add(cost);
    }

    /// The score of the member that just passed.
    #[inline]
    pub fn score(&mut self, score: f64, scale: &Scale<'_>) {
        // Without texts it is of a packed value, whose entries are looked at as they are stored.
        if self.texts > 0 && self.packs() {
            let shortest = scale.server.is_redis_from(7, 2);
            self.packing.push(packing::score(score, scale.has_listpacks(), shortest), scale.has_listpacks());
        }
    }

    /// The expiry of a field, or that it has none.
    #[inline]
    fn field_expiry(&mut self, at_ms: Option<i64>, scale: &Scale<'_>) {
        self.expiring_fields += u64::from(at_ms.is_some());
        if self.plan.expiry_behind {
            let cost = scale.costs.hash_entry(self.field, self.value, at_ms.is_some());
            self.table_cost = self.table_cost.saturating_add(cost);
        } else if self.plan.expiry_before {
            self.field_expires = at_ms.is_some();
            if self.packs() {
                self.packing.push(Item::Int(at_ms.unwrap_or(0)), scale.has_listpacks());
            }
        }
    }

    /// An entry of a packed value, whatever its role.
    #[inline]
    pub fn stored(&mut self, entry: &Entry<'_>, scale: &Scale<'_>) {
        match self.plan.packed {
            Packed::Pushed => self.list.push(Item::of(entry), entry.len(), scale),
            Packed::ConvertedNode => self.list.repack(Item::of(entry), scale),
            Packed::Converted => self.packing.push(Item::of(entry), scale.has_listpacks()),
            Packed::Kept | Packed::Node | Packed::StreamNode => {}
        }
    }

    /// An entry of a packed value.
    #[inline]
    pub fn entry(&mut self, role: Role, entry: &Entry<'_>, for_memory: bool, scale: &Scale<'_>) {
        let len = entry.len();
        self.opened = self.opened.saturating_add(len);
        self.longest = self.longest.max(len);
        if for_memory && !matches!(self.plan.packed, Packed::StreamNode) {
            self.element(role, len, scale);
        }
    }

    /// Whether the entries of a packed value are needed, of which its header counts so many.
    #[inline]
    pub fn opens(&self, entries: u64, for_memory: bool) -> bool {
        match self.plan.packed {
            // The encoding of a list follows from its nodes.
            Packed::ConvertedNode | Packed::Pushed => true,
            Packed::Converted => for_memory,
            Packed::Kept => for_memory && entries > self.plan.entries,
            Packed::Node | Packed::StreamNode => false,
        }
    }

    /// Bytes of the packed value that is loaded, as the server holds it.
    #[inline]
    pub fn packed_value(&self, scale: &Scale<'_>) -> u64 {
        if self.packing.entries() > 0 { self.packing.bytes(scale.has_listpacks()) } else { self.packed_bytes }
    }
}

/// What the server keeps as a number.
#[inline]
fn integer(text: Str<'_>) -> Option<i64> {
    match text {
        Str::Int(value) => Some(i64::from(value)),
        Str::Raw(bytes) => packing::integer(bytes),
        // Only strings above 20 bytes are compressed.
        Str::Lzf { .. } => None,
    }
}
