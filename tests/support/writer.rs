//! Writes RDB dumps for tests, benches and the generator.
//!
//! The encoders are made from the description of the format, not from the product's decoders, so that a test that reads back what was
//! written here compares two accounts of the format. A dump is never held in memory: what is written goes out in blocks, and the checksum
//! runs along. The same calls give the same bytes.
//!
//! An output that fails is reported once, by [`DumpWriter::finish`]; until then nothing needs a `?`.

#![allow(dead_code, reason = "each test, bench and example uses a part of it")]

use std::io::{self, Write};

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes that are gathered before they go to the checksum and out.
const BLOCK_BYTES: usize = 256 << 10;

/// Strings up to this length are never compressed.
const NEVER_COMPRESSED_BYTES: usize = 20;

/// Bytes that compression must save.
const LEAST_SAVED_BYTES: usize = 4;

/// Magic and version of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Magic {
    /// `REDIS` and four digits.
    Redis(u16),
    /// `VALKEY` and three digits.
    Valkey(u16),
}

impl Magic {
    /// The nine bytes.
    pub fn header(self) -> Vec<u8> {
        match self {
            Self::Redis(version) => format!("REDIS{version:04}").into_bytes(),
            Self::Valkey(version) => format!("VALKEY{version:03}").into_bytes(),
        }
    }

    /// The version number.
    pub fn version(self) -> u16 {
        match self {
            Self::Redis(version) | Self::Valkey(version) => version,
        }
    }

    /// True where eight bytes of checksum follow the end mark.
    pub fn has_checksum(self) -> bool {
        self.version() >= 5
    }
}

/// What stands behind the end mark of a version that has a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// That of the bytes.
    Real,
    /// Zero, as a server writes that was told not to compute one.
    Zero,
    /// Any other number.
    Other(u64),
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Offset of its first byte, attributes included.
    pub offset: u64,
    /// Its length in bytes.
    pub serialized_bytes: u64,
}

impl Written {
    /// Offset of the first byte behind it.
    pub fn end(self) -> u64 {
        self.offset + self.serialized_bytes
    }
}

/// A finished dump.
#[derive(Debug)]
pub struct Finished<W> {
    /// The output, flushed.
    pub out: W,
    /// Length of the dump in bytes.
    pub bytes: u64,
    /// Bytes of it that belong to no key.
    pub framing_bytes: u64,
    /// Keys in it.
    pub keys: u64,
}

/// Writes one dump.
#[derive(Debug)]
pub struct DumpWriter<W: Write> {
    out: W,
    magic: Magic,
    compress: bool,
    block: Vec<u8>,
    flushed: u64,
    digest: Digest,
    lzf: Lzf,
    keys: u64,
    record_bytes: u64,
    fault: Option<io::Error>,
}

impl DumpWriter<Vec<u8>> {
    /// Begins a dump in memory.
    pub fn in_memory(magic: Magic) -> Self {
        Self::new(Vec::new(), magic)
    }

    /// Ends the dump with a real checksum and returns its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        // Writing to memory does not fail.
        self.finish().map(|finished| finished.out).unwrap_or_default()
    }
}

impl<W: Write> DumpWriter<W> {
    /// Begins a dump. Strings are not compressed until [`compress`](Self::compress) says so.
    pub fn new(out: W, magic: Magic) -> Self {
        let mut writer = Self {
            out,
            magic,
            compress: false,
            block: Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 4),
            flushed: 0,
            digest: Digest::new(CrcAlgorithm::Crc64Redis),
            lzf: Lzf::new(),
            keys: 0,
            record_bytes: 0,
            fault: None,
        };
        writer.bytes(&magic.header());
        writer
    }

    /// Compresses the strings that follow as the server does: those above 20 bytes that become at least 4 bytes shorter.
    pub fn compress(&mut self, on: bool) -> &mut Self {
        self.compress = on;
        self
    }

    /// Magic and version.
    pub fn magic(&self) -> Magic {
        self.magic
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.flushed + self.block.len() as u64
    }

    /// Bytes so far that belong to no key, the header included.
    pub fn framing_bytes(&self) -> u64 {
        self.offset() - self.record_bytes
    }

    /// Ends the dump with the checksum of its bytes, where its version has one.
    pub fn finish(self) -> io::Result<Finished<W>> {
        self.finish_with(Checksum::Real)
    }

    /// Ends the dump.
    pub fn finish_with(mut self, checksum: Checksum) -> io::Result<Finished<W>> {
        self.byte(0xff);
        if self.magic.has_checksum() {
            self.flush_block();
            let stored = match checksum {
                Checksum::Real => self.digest.finalize(),
                Checksum::Zero => 0,
                Checksum::Other(value) => value,
            };
            self.bytes(&stored.to_le_bytes());
        }
        self.flush_block();
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.out.flush()?;
        Ok(Finished { out: self.out, bytes: self.flushed, framing_bytes: self.flushed - self.record_bytes, keys: self.keys })
    }

    // What stands between records.

    /// A name and value about the file.
    pub fn aux(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.byte(250);
        self.str(name.as_ref());
        self.str(value.as_ref());
        self
    }

    /// Keys of this database follow.
    pub fn select_db(&mut self, db: u64) -> &mut Self {
        self.byte(254);
        self.len(db);
        self
    }

    /// How many keys the database has, and how many of them have an expiry.
    pub fn resize_db(&mut self, keys: u64, expires: u64) -> &mut Self {
        self.byte(251);
        self.len(keys);
        self.len(expires);
        self
    }

    /// Keys of this slot follow, as Redis 7.4 and later say in cluster mode.
    pub fn slot_info(&mut self, slot: u64, keys: u64, expires: u64) -> &mut Self {
        self.byte(244);
        for number in [slot, keys, expires] {
            self.len(number);
        }
        self
    }

    /// The same as Valkey says it.
    pub fn slot_info_aux(&mut self, slot: u64, keys: u64, expires: u64) -> &mut Self {
        self.aux("slot-info", format!("{slot},{keys},{expires},0"))
    }

    /// Slots that are being imported, as inclusive ranges (Valkey 9.0 and later).
    pub fn slot_import(&mut self, job: impl AsRef<[u8]>, ranges: &[(u64, u64)]) -> &mut Self {
        self.byte(243);
        self.str(job.as_ref());
        self.len(ranges.len() as u64);
        for &(first, last) in ranges {
            self.len(first);
            self.len(last);
        }
        self
    }

    /// A function library.
    pub fn function(&mut self, source: impl AsRef<[u8]>) -> &mut Self {
        self.byte(245);
        self.str(source.as_ref());
        self
    }

    /// Data of a module that belongs to no key; `when` is 1 in front of the keys and 2 behind them.
    pub fn module_aux(&mut self, id: u64, when: u64, parts: &[ModulePart]) -> &mut Self {
        self.byte(247);
        self.len(id);
        self.len(2);
        self.len(when);
        self.module_parts(parts);
        self
    }

    /// Begins a record: its attributes and its value are methods of what is returned.
    pub fn key<'w>(&'w mut self, key: &'w (impl AsRef<[u8]> + ?Sized)) -> Record<'w, W> {
        let start = self.offset();
        Record { writer: self, key: key.as_ref(), start }
    }

    // The parts that everything is made of, public so that a test can write what no server would.

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.block.len() + bytes.len() > BLOCK_BYTES {
            self.flush_block();
            if bytes.len() > BLOCK_BYTES {
                self.send(bytes);
                return;
            }
        }
        self.block.extend_from_slice(bytes);
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    /// A length in its shortest form.
    pub fn len(&mut self, n: u64) {
        let mut form = [0; 9];
        let used = match n {
            0..64 => {
                form[0] = n as u8;
                1
            }
            64..16_384 => {
                form[..2].copy_from_slice(&(n as u16 | 0x4000).to_be_bytes());
                2
            }
            16_384..=0xffff_ffff => {
                form[0] = 0x80;
                form[1..5].copy_from_slice(&(n as u32).to_be_bytes());
                5
            }
            _ => {
                form[0] = 0x81;
                form[1..].copy_from_slice(&n.to_be_bytes());
                9
            }
        };
        self.bytes(&form[..used]);
    }

    /// A string by the server's rule: as an integer where it is one of 32 bits, compressed where that is on and pays, else as it is.
    pub fn str(&mut self, text: &[u8]) {
        let small = if text.len() <= 11 { integer_of(text).and_then(|value| i32::try_from(value).ok()) } else { None };
        if let Some(value) = small {
            self.int_str(value);
        } else if !(self.compress && text.len() > NEVER_COMPRESSED_BYTES && self.lzf_str(text)) {
            self.raw_str(text);
        }
    }

    /// A string as it is, whatever it holds.
    pub fn raw_str(&mut self, text: &[u8]) {
        self.len(text.len() as u64);
        self.bytes(text);
    }

    /// A string in the shortest integer form.
    pub fn int_str(&mut self, value: i32) {
        if let Ok(value) = i8::try_from(value) {
            self.bytes(&[0xc0, value as u8]);
        } else if let Ok(value) = i16::try_from(value) {
            let [a, b] = value.to_le_bytes();
            self.bytes(&[0xc1, a, b]);
        } else {
            let [a, b, c, d] = value.to_le_bytes();
            self.bytes(&[0xc2, a, b, c, d]);
        }
    }

    /// A string in compressed form; false, and nothing written, where that does not pay.
    pub fn lzf_str(&mut self, text: &[u8]) -> bool {
        let mut lzf = std::mem::take(&mut self.lzf);
        let packed = lzf.compress(text, text.len().saturating_sub(LEAST_SAVED_BYTES));
        if let Some(packed) = packed {
            self.byte(0xc3);
            self.len(packed.len() as u64);
            self.len(text.len() as u64);
            self.bytes(packed);
        }
        let pays = packed.is_some();
        self.lzf = lzf;
        pays
    }

    fn strs<T: AsRef<[u8]>>(&mut self, items: impl ExactSizeIterator<Item = T>) {
        self.len(items.len() as u64);
        for item in items {
            self.str(item.as_ref());
        }
    }

    fn module_parts(&mut self, parts: &[ModulePart]) {
        for part in parts {
            match part {
                ModulePart::Signed(value) => {
                    self.len(1);
                    self.len(*value as u64);
                }
                ModulePart::Unsigned(value) => {
                    self.len(2);
                    self.len(*value);
                }
                ModulePart::Float(value) => {
                    self.len(3);
                    self.bytes(&value.to_le_bytes());
                }
                ModulePart::Double(value) => {
                    self.len(4);
                    self.bytes(&value.to_le_bytes());
                }
                ModulePart::Text(text) => {
                    self.len(5);
                    self.str(text);
                }
            }
        }
        self.len(0);
    }

    fn id(&mut self, id: StreamId) {
        self.len(id.ms);
        self.len(id.seq);
    }

    fn flush_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        self.send(&block);
        block.clear();
        self.block = block;
    }

    fn send(&mut self, bytes: &[u8]) {
        self.flushed += bytes.len() as u64;
        self.digest.update(bytes);
        if self.fault.is_none() {
            self.fault = self.out.write_all(bytes).err();
        }
    }
}

/// A record that has begun. Attributes are written in the order of the calls; the call that writes the value ends it.
#[derive(Debug)]
#[must_use = "a record without a value breaks the dump"]
pub struct Record<'w, W: Write> {
    writer: &'w mut DumpWriter<W>,
    key: &'w [u8],
    start: u64,
}

impl<W: Write> Record<'_, W> {
    /// Absolute expiry in Unix milliseconds.
    pub fn expires_at_ms(self, at_ms: i64) -> Self {
        self.writer.byte(252);
        self.writer.bytes(&at_ms.to_le_bytes());
        self
    }

    /// Absolute expiry in Unix seconds, as RDB 1 and 2 have it.
    pub fn expires_at_seconds(self, at: i32) -> Self {
        self.writer.byte(253);
        self.writer.bytes(&at.to_le_bytes());
        self
    }

    /// Seconds since the last access.
    pub fn idle_seconds(self, seconds: u64) -> Self {
        self.writer.byte(248);
        self.writer.len(seconds);
        self
    }

    /// Access counter.
    pub fn freq(self, counter: u8) -> Self {
        self.writer.bytes(&[249, counter]);
        self
    }

    /// An AUX field between the attributes and the key, as KeyDB writes it.
    pub fn aux(self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.writer.aux(name, value);
        self
    }

    /// A value of any type: `body` writes what follows the key.
    pub fn value(self, type_byte: u8, body: impl FnOnce(&mut DumpWriter<W>)) -> Written {
        let Self { writer, key, start } = self;
        writer.byte(type_byte);
        writer.str(key);
        body(writer);
        let written = Written { offset: start, serialized_bytes: writer.offset() - start };
        writer.keys += 1;
        writer.record_bytes += written.serialized_bytes;
        written
    }

    /// A value of any type that is one string, such as a packed one.
    pub fn blob(self, type_byte: u8, blob: &[u8]) -> Written {
        self.value(type_byte, |w| w.str(blob))
    }

    /// Type 0: a string.
    pub fn string(self, value: impl AsRef<[u8]>) -> Written {
        self.blob(0, value.as_ref())
    }

    /// Type 1: a list of strings.
    pub fn list<T: AsRef<[u8]>>(self, items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>) -> Written {
        self.value(1, |w| w.strs(items.into_iter()))
    }

    /// Type 2: a set.
    pub fn set<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>) -> Written {
        self.value(2, |w| w.strs(members.into_iter()))
    }

    /// Type 3: a sorted set with scores as text.
    pub fn zset_text<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = (T, f64), IntoIter: ExactSizeIterator>) -> Written {
        let members = members.into_iter();
        self.value(3, |w| {
            w.len(members.len() as u64);
            for (member, score) in members {
                w.str(member.as_ref());
                w.bytes(&text_score(score));
            }
        })
    }

    /// Type 4: a hash.
    pub fn hash<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        fields: impl IntoIterator<Item = (F, V), IntoIter: ExactSizeIterator>,
    ) -> Written {
        let fields = fields.into_iter();
        self.value(4, |w| {
            w.len(fields.len() as u64);
            for (field, value) in fields {
                w.str(field.as_ref());
                w.str(value.as_ref());
            }
        })
    }

    /// Type 5: a sorted set with binary scores; the server writes the highest first.
    pub fn zset<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = (T, f64), IntoIter: ExactSizeIterator>) -> Written {
        let members = members.into_iter();
        self.value(5, |w| {
            w.len(members.len() as u64);
            for (member, score) in members {
                w.str(member.as_ref());
                w.bytes(&score.to_le_bytes());
            }
        })
    }

    /// Type 7: a module's value.
    pub fn module(self, id: u64, parts: &[ModulePart]) -> Written {
        self.value(7, |w| {
            w.len(id);
            w.module_parts(parts);
        })
    }

    /// Type 9: a hash as a zipmap, with so many unused bytes behind each value.
    pub fn hash_zipmap<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        self,
        fields: impl IntoIterator<Item = (F, V), IntoIter: ExactSizeIterator>,
        unused: u8,
    ) -> Written {
        self.blob(9, &zipmap(fields, unused))
    }

    /// Type 10: a list as one ziplist.
    pub fn list_ziplist<T: AsRef<[u8]>>(self, items: impl IntoIterator<Item = T>) -> Written {
        let blob = ziplist(self.writer.magic, items);
        self.blob(10, &blob)
    }

    /// Type 11: a set of integers; they are sorted and equal ones dropped.
    pub fn set_intset(self, members: impl IntoIterator<Item = i64>) -> Written {
        self.blob(11, &intset(members))
    }

    /// Type 12: a sorted set as a ziplist of members and scores.
    pub fn zset_ziplist<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = (T, f64)>) -> Written {
        let blob = ziplist(self.writer.magic, members.into_iter().flat_map(member_and_score));
        self.blob(12, &blob)
    }

    /// Type 13: a hash as a ziplist of fields and values.
    pub fn hash_ziplist<T: AsRef<[u8]>>(self, fields: impl IntoIterator<Item = (T, T)>) -> Written {
        let blob = ziplist(self.writer.magic, fields.into_iter().flat_map(|(field, value)| [field, value]));
        self.blob(13, &blob)
    }

    /// Type 14: a list of ziplists.
    pub fn list_quicklist(self, nodes: &[Vec<u8>]) -> Written {
        self.value(14, |w| w.strs(nodes.iter()))
    }

    /// Types 15, 19, 21, 26 and 27: a stream.
    pub fn stream(self, layout: StreamLayout, stream: &Stream) -> Written {
        self.value(layout as u8, |w| write_stream(w, layout, stream))
    }

    /// Type 16: a hash as a listpack of fields and values.
    pub fn hash_listpack<T: AsRef<[u8]>>(self, fields: impl IntoIterator<Item = (T, T)>) -> Written {
        self.blob(16, &listpack(fields.into_iter().flat_map(|(field, value)| [field, value])))
    }

    /// Type 17: a sorted set as a listpack of members and scores; the server writes the lowest first.
    pub fn zset_listpack<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = (T, f64)>) -> Written {
        self.blob(17, &listpack(members.into_iter().flat_map(member_and_score)))
    }

    /// Type 18: a list of listpacks and plain elements.
    pub fn list_quicklist2(self, nodes: &[ListNode]) -> Written {
        self.value(18, |w| {
            w.len(nodes.len() as u64);
            for node in nodes {
                match node {
                    ListNode::Plain(element) => {
                        w.len(1);
                        w.str(element);
                    }
                    ListNode::Packed(listpack) => {
                        w.len(2);
                        w.str(listpack);
                    }
                }
            }
        })
    }

    /// Type 20: a set as a listpack.
    pub fn set_listpack<T: AsRef<[u8]>>(self, members: impl IntoIterator<Item = T>) -> Written {
        self.blob(20, &listpack(members))
    }

    /// A hash with field expiries (Unix milliseconds), in the form named.
    pub fn hash_with_expiries(self, form: FieldExpiryForm, fields: &[(Vec<u8>, Vec<u8>, Option<u64>)]) -> Written {
        let earliest = fields.iter().filter_map(|(_, _, at)| *at).min().unwrap_or(0);
        let count = fields.len() as u64;
        match form {
            FieldExpiryForm::Candidate => self.value(22, |w| {
                w.len(count);
                for (field, value, at) in fields {
                    w.len(at.unwrap_or(0));
                    w.str(field);
                    w.str(value);
                }
            }),
            FieldExpiryForm::Valkey => self.value(22, |w| {
                w.len(count);
                for (field, value, at) in fields {
                    w.str(field);
                    w.str(value);
                    w.bytes(&at.map_or(-1, |at| at as i64).to_le_bytes());
                }
            }),
            FieldExpiryForm::CandidateListpack => self.blob(23, &expiry_listpack(fields)),
            FieldExpiryForm::Table => self.value(24, |w| {
                w.bytes(&earliest.to_le_bytes());
                w.len(count);
                for (field, value, at) in fields {
                    w.len(at.map_or(0, |at| at - earliest + 1));
                    w.str(field);
                    w.str(value);
                }
            }),
            FieldExpiryForm::Listpack => self.value(25, |w| {
                w.bytes(&earliest.to_le_bytes());
                w.str(&expiry_listpack(fields));
            }),
        }
    }
}

/// How a hash with field expiries lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldExpiryForm {
    /// Type 22 of the release candidates of Redis 7.4.
    Candidate,
    /// Type 23 of the release candidates of Redis 7.4.
    CandidateListpack,
    /// Type 24, Redis 7.4 and later.
    Table,
    /// Type 25, Redis 7.4 and later.
    Listpack,
    /// Type 22 of Valkey 9.0 and later.
    Valkey,
}

/// A node of a type 18 list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListNode {
    /// One element.
    Plain(Vec<u8>),
    /// A listpack, complete.
    Packed(Vec<u8>),
}

/// One value in a module's self-describing stream.
#[derive(Debug, Clone, PartialEq)]
pub enum ModulePart {
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// Four bytes.
    Float(f32),
    /// Eight bytes.
    Double(f64),
    /// A string.
    Text(Vec<u8>),
}

/// Id of a module type: nine characters and the encoding version.
pub fn module_id(name: &str, version: u64) -> u64 {
    let index = |b: u8| match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    name.bytes().take(9).fold(0, |id, b| id << 6 | u64::from(index(b))) << 10 | version & 1023
}

fn expiry_listpack(fields: &[(Vec<u8>, Vec<u8>, Option<u64>)]) -> Vec<u8> {
    let mut pack = Listpack::default();
    for (field, value, at) in fields {
        pack.push(field).push(value).push_integer(at.unwrap_or(0) as i64);
    }
    pack.finish()
}

fn member_and_score<T: AsRef<[u8]>>((member, score): (T, f64)) -> [Vec<u8>; 2] {
    [member.as_ref().to_vec(), score_text(score).into_bytes()]
}

/// A score as a packed value holds it.
pub fn score_text(score: f64) -> String {
    let size = score.abs();
    if score == 0.0 || (1e-5..1e17).contains(&size) { format!("{score}") } else { format!("{score:e}") }
}

/// A score of type 3: a length and digits, or one byte for what is no number.
fn text_score(score: f64) -> Vec<u8> {
    if score.is_nan() {
        return vec![253];
    }
    if score.is_infinite() {
        return vec![if score > 0.0 { 254 } else { 255 }];
    }
    let text = score_text(score);
    let mut out = vec![text.len() as u8];
    out.extend_from_slice(text.as_bytes());
    out
}

/// The integer of which `text` is the canonical decimal form, within 64 bits.
pub fn integer_of(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [] => false,
        [b'0'] => text.len() == 1,
        [first, ..] => *first != b'0' && digits.len() <= 19 && digits.iter().all(u8::is_ascii_digit),
    };
    if canonical { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

// Packed forms.

/// Builds a listpack, entry by entry.
#[derive(Debug, Clone, Default)]
pub struct Listpack {
    entries: Vec<u8>,
    count: u64,
    hides_count: bool,
}

impl Listpack {
    /// The header says 65,535 entries, which means that a reader must walk.
    pub fn hide_count(&mut self) -> &mut Self {
        self.hides_count = true;
        self
    }

    /// Entries so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Length in bytes that the listpack has by now.
    pub fn byte_len(&self) -> usize {
        6 + self.entries.len() + 1
    }

    /// A string, or the integer of which it is the decimal text.
    pub fn push(&mut self, text: &[u8]) -> &mut Self {
        match integer_of(text) {
            Some(value) => self.push_integer(value),
            None => self.push_text(text),
        }
    }

    /// A string, whatever it holds.
    pub fn push_text(&mut self, text: &[u8]) -> &mut Self {
        let start = self.entries.len();
        let n = text.len();
        match n {
            0..64 => self.entries.push(0x80 | n as u8),
            64..4096 => self.entries.extend((0xe000 | n as u16).to_be_bytes()),
            _ => {
                self.entries.push(0xf0);
                self.entries.extend((n as u32).to_le_bytes());
            }
        }
        self.entries.extend_from_slice(text);
        self.end_entry(start)
    }

    /// An integer in its shortest form.
    pub fn push_integer(&mut self, value: i64) -> &mut Self {
        let start = self.entries.len();
        let wide = value.to_le_bytes();
        match value {
            0..=127 => self.entries.push(value as u8),
            -4096..=4095 => self.entries.extend((0xc000 | (value as u16 & 0x1fff)).to_be_bytes()),
            -0x8000..=0x7fff => self.wide(0xf1, &wide[..2]),
            -0x80_0000..=0x7f_ffff => self.wide(0xf2, &wide[..3]),
            -0x8000_0000..=0x7fff_ffff => self.wide(0xf3, &wide[..4]),
            _ => self.wide(0xf4, &wide),
        }
        self.end_entry(start)
    }

    /// The whole listpack.
    pub fn finish(&self) -> Vec<u8> {
        let count = if self.hides_count || self.count >= 65_535 { 65_535 } else { self.count as u16 };
        let mut out = Vec::with_capacity(self.byte_len());
        out.extend((self.byte_len() as u32).to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend_from_slice(&self.entries);
        out.push(0xff);
        out
    }

    /// Forgets all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        (self.count, self.hides_count) = (0, false);
    }

    fn wide(&mut self, first: u8, bytes: &[u8]) {
        self.entries.push(first);
        self.entries.extend_from_slice(bytes);
    }

    /// Writes the length of the entry behind it: groups of seven bits, the highest first, all but that one marked.
    fn end_entry(&mut self, start: usize) -> &mut Self {
        let size = self.entries.len() - start;
        let groups = match size {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        for group in (0..groups).rev() {
            let mark = if group + 1 == groups { 0 } else { 0x80 };
            self.entries.push((size >> (7 * group)) as u8 & 0x7f | mark);
        }
        self.count += 1;
        self
    }
}

/// A listpack of strings, integers among them as such.
pub fn listpack<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut pack = Listpack::default();
    for item in items {
        pack.push(item.as_ref());
    }
    pack.finish()
}

/// Builds a ziplist, entry by entry.
#[derive(Debug, Clone)]
pub struct Ziplist {
    entries: Vec<u8>,
    count: u64,
    last: usize,
    hides_count: bool,
    has_short_integers: bool,
    long_previous: bool,
}

impl Ziplist {
    /// An empty one; integers of 24, 8 and 4 bits exist from RDB 6 on.
    pub fn new(magic: Magic) -> Self {
        let has_short_integers = magic.version() >= 6;
        Self { entries: Vec::new(), count: 0, last: 0, hides_count: false, has_short_integers, long_previous: false }
    }

    /// The header says 65,535 entries, which means that a reader must walk.
    pub fn hide_count(&mut self) -> &mut Self {
        self.hides_count = true;
        self
    }

    /// The length of the previous entry takes five bytes however short that is, as a cascade of updates leaves it.
    pub fn long_previous(&mut self) -> &mut Self {
        self.long_previous = true;
        self
    }

    /// A string, or the integer of which it is the decimal text.
    pub fn push(&mut self, text: &[u8]) -> &mut Self {
        let previous = self.entries.len() - self.last;
        self.last = self.entries.len();
        if previous < 254 && !self.long_previous {
            self.entries.push(previous as u8);
        } else {
            self.entries.push(0xfe);
            self.entries.extend((previous as u32).to_le_bytes());
        }
        match integer_of(text) {
            Some(value) => self.integer(value),
            None => self.text(text),
        }
        self.count += 1;
        self
    }

    /// The whole ziplist.
    pub fn finish(&self) -> Vec<u8> {
        let count = if self.hides_count || self.count >= 65_535 { 65_535 } else { self.count as u16 };
        let mut out = Vec::with_capacity(self.entries.len() + 11);
        out.extend((self.entries.len() as u32 + 11).to_le_bytes());
        out.extend((self.last as u32 + 10).to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend_from_slice(&self.entries);
        out.push(0xff);
        out
    }

    fn text(&mut self, text: &[u8]) {
        let n = text.len();
        match n {
            0..64 => self.entries.push(n as u8),
            64..16_384 => self.entries.extend((0x4000 | n as u16).to_be_bytes()),
            _ => {
                self.entries.push(0x80);
                self.entries.extend((n as u32).to_be_bytes());
            }
        }
        self.entries.extend_from_slice(text);
    }

    fn integer(&mut self, value: i64) {
        let wide = value.to_le_bytes();
        let short = self.has_short_integers;
        let (first, bytes) = match value {
            0..=12 if short => (0xf1 + value as u8, &wide[..0]),
            -0x80..=0x7f if short => (0xfe, &wide[..1]),
            -0x8000..=0x7fff => (0xc0, &wide[..2]),
            -0x80_0000..=0x7f_ffff if short => (0xf0, &wide[..3]),
            -0x8000_0000..=0x7fff_ffff => (0xd0, &wide[..4]),
            _ => (0xe0, &wide[..]),
        };
        self.entries.push(first);
        self.entries.extend_from_slice(bytes);
    }
}

/// A ziplist of strings, integers among them as such.
pub fn ziplist<T: AsRef<[u8]>>(magic: Magic, items: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut pack = Ziplist::new(magic);
    for item in items {
        pack.push(item.as_ref());
    }
    pack.finish()
}

/// A sorted array of integers, as wide as the widest needs.
pub fn intset(members: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut members: Vec<i64> = members.into_iter().collect();
    members.sort_unstable();
    members.dedup();
    let fits = |low, high| members.iter().all(|m| (low..=high).contains(m));
    let width = if fits(i64::from(i16::MIN), i64::from(i16::MAX)) {
        2
    } else if fits(i64::from(i32::MIN), i64::from(i32::MAX)) {
        4
    } else {
        8
    };
    let mut out = Vec::with_capacity(8 + width * members.len());
    out.extend((width as u32).to_le_bytes());
    out.extend((members.len() as u32).to_le_bytes());
    for member in &members {
        out.extend_from_slice(&member.to_le_bytes()[..width]);
    }
    out
}

/// A hash of Redis 2.4, with so many unused bytes behind each value.
pub fn zipmap<F: AsRef<[u8]>, V: AsRef<[u8]>>(
    fields: impl IntoIterator<Item = (F, V), IntoIter: ExactSizeIterator>,
    unused: u8,
) -> Vec<u8> {
    let fields = fields.into_iter();
    let mut out = vec![fields.len().min(254) as u8];
    let length = |out: &mut Vec<u8>, n: usize| {
        if n < 254 {
            out.push(n as u8);
        } else {
            out.push(254);
            out.extend((n as u32).to_le_bytes());
        }
    };
    for (field, value) in fields {
        let (field, value) = (field.as_ref(), value.as_ref());
        length(&mut out, field.len());
        out.extend_from_slice(field);
        length(&mut out, value.len());
        out.push(unused);
        out.extend_from_slice(value);
        // What was there before the value shrank; any byte may stand here, an end mark too.
        out.extend(std::iter::repeat_n(0xff, usize::from(unused)));
    }
    out.push(0xff);
    out
}

// Streams.

/// Type byte of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamLayout {
    /// Redis 5.0.
    V1 = 15,
    /// Redis 7.0.
    V2 = 19,
    /// Redis 7.2.
    V3 = 21,
    /// Redis 8.6.
    V4 = 26,
    /// Redis 8.8.
    V5 = 27,
}

/// Id of a stream entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// Unix milliseconds.
    pub ms: u64,
    /// Sequence number.
    pub seq: u64,
}

impl StreamId {
    fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

/// A stream: its nodes with their entries, and its groups.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Nodes, in order of their ids.
    pub nodes: Vec<StreamNode>,
    /// Consumer groups.
    pub groups: Vec<Group>,
    /// Producers whose entries are told apart.
    pub producers: Vec<Producer>,
}

/// Its name, and ids of its own, each with that of its entry.
pub type Producer = (Vec<u8>, Vec<(Vec<u8>, StreamId)>);

/// Entries that share a listpack.
#[derive(Debug, Clone, Default)]
pub struct StreamNode {
    /// Id from which those of the entries count.
    pub id: StreamId,
    /// Field names that entries need not repeat.
    pub fields: Vec<Vec<u8>>,
    /// Entries.
    pub entries: Vec<StreamEntry>,
}

/// One entry of a stream.
#[derive(Debug, Clone)]
pub struct StreamEntry {
    /// Its id, not below that of its node.
    pub id: StreamId,
    /// Deleted, and still in the listpack.
    pub deleted: bool,
    /// What it holds.
    pub content: Content,
}

/// Fields and values of a stream entry.
#[derive(Debug, Clone)]
pub enum Content {
    /// Values of the node's fields.
    Same(Vec<Vec<u8>>),
    /// Fields of its own.
    Own(Vec<(Vec<u8>, Vec<u8>)>),
}

/// A consumer group.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Its name.
    pub name: Vec<u8>,
    /// Last id that was delivered.
    pub last_id: StreamId,
    /// Entries read; `None` where the server does not know.
    pub entries_read: Option<u64>,
    /// Delivered and not acknowledged.
    pub pending: Vec<Pending>,
    /// Consumers.
    pub consumers: Vec<Consumer>,
    /// Pending entries that were handed back and have no consumer.
    pub handed_back: Vec<StreamId>,
}

/// An entry that a group has delivered and nobody acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pending {
    /// The entry.
    pub id: StreamId,
    /// Unix milliseconds of the last delivery.
    pub delivered_at_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// A consumer of a group.
#[derive(Debug, Clone, Default)]
pub struct Consumer {
    /// Its name.
    pub name: Vec<u8>,
    /// Unix milliseconds of its last attempt.
    pub seen_at_ms: i64,
    /// Unix milliseconds of its last success.
    pub active_at_ms: i64,
    /// Entries delivered to it and not acknowledged.
    pub pending: Vec<StreamId>,
}

impl Stream {
    /// Entries that are not deleted.
    pub fn live_entries(&self) -> u64 {
        self.entries().filter(|entry| !entry.deleted).count() as u64
    }

    fn entries(&self) -> impl Iterator<Item = &StreamEntry> {
        self.nodes.iter().flat_map(|node| &node.entries)
    }
}

impl StreamNode {
    /// The node's listpack: counts, the shared fields, then the entries.
    pub fn listpack(&self) -> Vec<u8> {
        let deleted = self.entries.iter().filter(|entry| entry.deleted).count();
        let mut pack = Listpack::default();
        pack.push_integer((self.entries.len() - deleted) as i64);
        pack.push_integer(deleted as i64);
        pack.push_integer(self.fields.len() as i64);
        for field in &self.fields {
            pack.push(field);
        }
        pack.push_integer(0);
        for entry in &self.entries {
            let own = matches!(entry.content, Content::Own(_));
            pack.push_integer(i64::from(entry.deleted) | if own { 0 } else { 2 });
            pack.push_integer(entry.id.ms.wrapping_sub(self.id.ms) as i64);
            pack.push_integer(entry.id.seq.wrapping_sub(self.id.seq) as i64);
            // How many entries a reader that comes from behind must go back.
            let back = match &entry.content {
                Content::Same(values) => {
                    for value in values {
                        pack.push(value);
                    }
                    values.len() + 3
                }
                Content::Own(fields) => {
                    pack.push_integer(fields.len() as i64);
                    for (field, value) in fields {
                        pack.push(field).push(value);
                    }
                    2 * fields.len() + 4
                }
            };
            pack.push_integer(back as i64);
        }
        pack.finish()
    }
}

fn write_stream<W: Write>(w: &mut DumpWriter<W>, layout: StreamLayout, stream: &Stream) {
    w.len(stream.nodes.len() as u64);
    for node in &stream.nodes {
        w.raw_str(&node.id.to_bytes());
        w.str(&node.listpack());
    }
    let id_of = |entry: Option<&StreamEntry>| entry.map_or_else(StreamId::default, |entry| entry.id);
    w.len(stream.live_entries());
    w.id(id_of(stream.entries().last()));
    if layout >= StreamLayout::V2 {
        w.id(id_of(stream.entries().find(|entry| !entry.deleted)));
        w.id(id_of(stream.entries().filter(|entry| entry.deleted).last()));
        w.len(stream.entries().count() as u64);
    }
    w.len(stream.groups.len() as u64);
    for group in &stream.groups {
        w.str(&group.name);
        w.id(group.last_id);
        if layout >= StreamLayout::V2 {
            w.len(group.entries_read.unwrap_or(u64::MAX));
        }
        w.len(group.pending.len() as u64);
        for pending in &group.pending {
            w.bytes(&pending.id.to_bytes());
            w.bytes(&pending.delivered_at_ms.to_le_bytes());
            w.len(pending.deliveries);
        }
        w.len(group.consumers.len() as u64);
        for consumer in &group.consumers {
            w.str(&consumer.name);
            w.bytes(&consumer.seen_at_ms.to_le_bytes());
            if layout >= StreamLayout::V3 {
                w.bytes(&consumer.active_at_ms.to_le_bytes());
            }
            w.len(consumer.pending.len() as u64);
            for id in &consumer.pending {
                w.bytes(&id.to_bytes());
            }
        }
        if layout >= StreamLayout::V5 {
            w.len(group.handed_back.len() as u64);
            for id in &group.handed_back {
                w.bytes(&id.to_bytes());
            }
        }
    }
    if layout >= StreamLayout::V4 {
        // Seconds and entries for which ids are kept, both the server's default.
        w.len(100);
        w.len(100);
        w.len(stream.producers.len() as u64);
        for (producer, ids) in &stream.producers {
            w.str(producer);
            w.len(ids.len() as u64);
            for (own, id) in ids {
                w.str(own);
                w.id(*id);
            }
        }
        w.len(stream.producers.iter().map(|(_, ids)| ids.len() as u64).sum());
        w.len(0);
    }
}

// Compression.

/// Compresses strings one after another. The `lzf` crate clears a table of its own for every string, which takes longer than writing
/// a gigabyte of small ones; here the table is kept, and what it holds of earlier strings is told apart by its position.
#[derive(Debug, Default)]
pub struct Lzf {
    /// By hash of three bytes: where they were seen last, counted over all strings, plus one.
    seen: Vec<u32>,
    /// Bytes of all earlier strings.
    base: u32,
    out: Vec<u8>,
}

impl Lzf {
    const HASH_BITS: u32 = 14;
    const MOST_DISTANCE: usize = 1 << 13;
    const MOST_LENGTH: usize = 264;

    /// With an empty table.
    pub fn new() -> Self {
        Self { seen: vec![0; 1 << Self::HASH_BITS], base: 0, out: Vec::new() }
    }

    /// The compressed form of `plain`, where that has at most `most` bytes.
    pub fn compress(&mut self, plain: &[u8], most: usize) -> Option<&[u8]> {
        // A string of 4 GB has positions that the table cannot hold.
        let len = u32::try_from(plain.len()).ok().filter(|len| *len < u32::MAX / 2)?;
        if self.base > u32::MAX - len - 1 {
            self.seen.fill(0);
            self.base = 0;
        }
        self.out.clear();
        let mut literals = 0;
        let mut at = 0;
        while at + 3 <= plain.len() && self.out.len() <= most {
            let Some((distance, length)) = self.find(plain, at) else {
                // Where nothing repeats for long, nothing may ever: look less and less often.
                at += 1 + (at - literals) / 64;
                continue;
            };
            self.literals(&plain[literals..at]);
            let (distance, extra) = (distance - 1, length - 2);
            if extra < 7 {
                self.out.push((extra << 5 | distance >> 8) as u8);
            } else {
                self.out.push((7 << 5 | distance >> 8) as u8);
                self.out.push((extra - 7) as u8);
            }
            self.out.push(distance as u8);
            at += length;
            literals = at;
        }
        self.literals(&plain[literals..]);
        self.base += len;
        (self.out.len() <= most).then_some(&self.out)
    }

    /// An earlier place of the bytes at `at`, as distance and length, and notes that they are here too.
    fn find(&mut self, plain: &[u8], at: usize) -> Option<(usize, usize)> {
        let three = u32::from_le_bytes([plain[at], plain[at + 1], plain[at + 2], 0]);
        let seen = &mut self.seen[(three.wrapping_mul(0x9e37_79b1) >> (32 - Self::HASH_BITS)) as usize];
        let before = std::mem::replace(seen, self.base + at as u32 + 1);
        let from = before.checked_sub(self.base + 1)? as usize;
        let distance = at - from;
        if distance > Self::MOST_DISTANCE || plain[from..from + 3] != plain[at..at + 3] {
            return None;
        }
        let longest = Self::MOST_LENGTH.min(plain.len() - at);
        let length = 3 + plain[from + 3..].iter().zip(&plain[at + 3..at + longest]).take_while(|(a, b)| a == b).count();
        Some((distance, length))
    }

    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(32) {
            self.out.push(run.len() as u8 - 1);
            self.out.extend_from_slice(run);
        }
    }
}

// Chance.

/// Splitmix64: the same seed gives the same numbers, everywhere and in every version of every library.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0 for `n` = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// At least 0, below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    /// So many random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut out = vec![0; n];
        self.fill(&mut out);
        out
    }
}
