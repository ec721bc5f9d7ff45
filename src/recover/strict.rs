//! What a record must look like where nothing says that one begins there: as a server writes it, to the last element.

use std::cell::Cell;
use std::collections::VecDeque;

use super::LEFT_OUT;
use crate::error::{Error, ErrorKind};
use crate::measure::SLOTS;
use crate::rdb::packed::{Entry, PackedForm};
use crate::rdb::{Dialect, Family, Frame, Layout, RecordHead, RecordTail, Role, Sink, Str, StreamPart};
use crate::verify::Check;

/// Databases that anybody has: a server has 16 unless told otherwise.
const MOST_DATABASES: u64 = 1 << 16;

/// Expiries that anybody sets, in Unix milliseconds: from the year 2000 up to 9999.
const EXPIRIES: std::ops::RangeInclusive<i64> = 946_684_800_000..=253_402_300_799_999;

/// Longest name of an AUX field.
const MOST_AUX_NAME: u64 = 64;

/// Bytes of a name or of a compressed string that cost as much to look at as one string.
const BYTES_A_STEP: u64 = 64;

/// Where the last few records begin.
#[derive(Debug, Clone, Default)]
pub(super) struct Last(VecDeque<u64>);

impl Last {
    fn push(&mut self, offset: u64) {
        if self.0.len() == LEFT_OUT {
            self.0.pop_front();
        }
        self.0.push_back(offset);
    }

    /// Adds those of a later piece.
    pub(super) fn append(&mut self, later: Self) {
        later.0.into_iter().for_each(|offset| self.push(offset));
    }

    /// Where the first of them begins, and how many there are.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.0.front().map(|first| (*first, self.0.len() as u64))
    }
}

/// The sink of the strict tests: it looks at every element, and doubts what no server writes.
pub(super) struct Strict {
    check: Check,
    dialect: Dialect,
    /// The first record of a chain is held against more than the others: nothing precedes it.
    is_first: bool,
    /// A database was selected, and nothing but its size was told since.
    after_select: bool,
    /// Offset of the record under way.
    at: u64,
    doubt: Option<Error>,
    /// What looking has cost so far, in strings.
    steps: Cell<u64>,
    /// A value was passed whose parts are not reported.
    is_unreported: bool,
    /// Sound records, and where the last of them begin.
    pub records: u64,
    pub last: Last,
}

impl Strict {
    /// Begins where a record boundary is suspected (`is_first`), or known.
    pub(super) fn new(dialect: Dialect, is_first: bool) -> Self {
        Self {
            check: Check::default(),
            dialect,
            is_first,
            after_select: true,
            at: 0,
            doubt: None,
            steps: Cell::new(0),
            is_unreported: false,
            records: 0,
            last: Last::default(),
        }
    }

    /// True once something was passed that no server writes.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubt.is_some() || self.check.faults() > 0
    }

    /// The first such thing.
    pub(super) fn into_doubt(self) -> Option<Error> {
        self.check.into_first().or(self.doubt)
    }

    /// What looking has cost, where it went so many bytes far: about so many strings were looked at.
    pub(super) fn cost(&self, passed: u64) -> u64 {
        self.steps.get() + if self.is_unreported { passed } else { 0 }
    }

    fn step(&self, n: u64) {
        self.steps.set(self.steps.get().saturating_add(n));
    }

    #[cold]
    fn doubt(&mut self, reading: &'static str, why: &'static str) {
        let at = self.at;
        self.doubt.get_or_insert_with(|| Error::new(at, reading, ErrorKind::Invalid(why)));
    }
}

/// True for a type that servers of the version still write; they read older ones, too.
fn is_written(byte: u8, Dialect { family, version }: Dialect) -> bool {
    match (family, version) {
        (Family::Redis, ..=3) => byte < 14,
        (Family::Redis, ..=8) => byte < 15 && byte != 9,
        // Dragonfly writes newer types under this version.
        (Family::Redis, 9) => !matches!(byte, 3 | 9),
        _ => !matches!(byte, 1 | 3 | 9 | 10 | 12 | 13 | 14 | 15),
    }
}

impl Sink for Strict {
    fn frame(&mut self, frame: Frame<'_>, _bytes: u64) {
        let after_select = std::mem::replace(&mut self.after_select, matches!(frame, Frame::SelectDb(_)));
        let is_sound = match frame {
            Frame::SelectDb(db) => db < MOST_DATABASES,
            Frame::ResizeDb { keys, expires } => after_select && expires <= keys,
            Frame::SlotInfo { slot, keys, expires } => slot < u64::from(SLOTS) && expires <= keys,
            Frame::Aux { name: Str::Raw(name), .. } => {
                name.len() as u64 <= MOST_AUX_NAME && name.iter().all(|byte| matches!(byte, b'!'..=b'~'))
            }
            Frame::ModuleAux(_) | Frame::End { .. } => true,
            // In front of the first record all others stand.
            _ => false,
        };
        if !is_sound {
            self.doubt("type or opcode", "no server writes this between records");
        }
    }

    fn begin(&mut self, head: &RecordHead<'_>) {
        self.at = head.offset;
        self.after_select = false;
        if !is_written(head.record_type.byte, self.dialect) {
            self.doubt("type or opcode", "servers of this version do not write this type");
        }
        // There are such keys, one in a database: zeros that were read for others are more likely.
        if head.key.is_empty() {
            self.doubt("key", "it has no name");
        }
        if self.is_first && head.expires_at_ms.is_some_and(|at| !EXPIRIES.contains(&at)) {
            self.doubt("expiry", "nobody sets it");
        }
        self.is_unreported |= !matches!(
            head.record_type.layout,
            Layout::Plain | Layout::Sequence(_) | Layout::Packed { .. } | Layout::Nodes { .. } | Layout::Stream(_)
        );
        self.check.begin(head);
    }

    fn text(&mut self, role: Role, text: Str<'_>) {
        self.step(1);
        if matches!(role, Role::Member | Role::Field) || matches!(text, Str::Lzf { .. }) {
            self.step(text.len() / BYTES_A_STEP);
        }
        if let Str::Lzf { packed, plain_len, .. } = text {
            // Writers compress strings of more than 20 bytes, and only where that saves 4.
            if plain_len <= 20 || packed.len() as u64 + 4 > plain_len {
                self.doubt("compressed string", "no server would have compressed it");
            }
        }
        if !self.is_doubtful() {
            self.check.text(role, text);
        }
    }

    fn score(&mut self, score: f64) {
        self.check.score(score);
    }

    fn opens(&self, len: u64) -> bool {
        self.step(len);
        self.check.opens(len)
    }

    fn is_strict(&self) -> bool {
        self.check.is_strict()
    }

    fn packed(&mut self, form: PackedForm, len: u64, entries: u64) {
        self.check.packed(form, len, entries);
    }

    fn entry(&mut self, role: Role, entry: Entry<'_>) {
        self.check.entry(role, entry);
    }

    fn stream(&mut self, part: StreamPart<'_>) {
        self.step(1);
        self.check.stream(part);
    }

    fn value_fault(&mut self, fault: Error) {
        self.check.value_fault(fault);
    }

    fn end(&mut self, head: &RecordHead<'_>, tail: &RecordTail) {
        let may_be_empty = matches!(head.record_type.layout, Layout::Stream(_) | Layout::Plain | Layout::Module);
        if tail.elements == Some(0) && !may_be_empty {
            self.doubt("number of elements", "a server keeps no empty collection");
        }
        self.check.end(head, tail);
        if !self.is_doubtful() {
            self.records += 1;
            self.last.push(head.offset);
        }
    }
}
