//! What `DUMP` answers: one value without a name. It becomes a dump of one key whose name is empty.

use crate::rdb::{Dialect, Family, Format, Sink, Step, Walker};
use crate::scan;

/// Bytes behind the value: the version of the format, and a checksum.
const FOOTER: usize = 10;

/// Longest payload that is looked at.
const MOST_BYTES: usize = 1 << 30;

/// Highest type byte of any server, and the opcode of metadata in front of it.
const LAST_TYPE: u8 = 64;
const KEY_META: u8 = 243;

/// First version of Valkey.
const VALKEY: u16 = 80;

/// True for a byte that a payload may begin with: a type, or what modules have attached to the key.
pub(super) fn may_begin(byte: u8) -> bool {
    byte <= LAST_TYPE || byte == KEY_META
}

/// A dump that holds the value of `payload`; `None` for anything else. `redis-cli --raw` puts a line feed behind it.
pub(super) fn dump_of(payload: &[u8]) -> Option<Vec<u8>> {
    let bare = payload.strip_suffix(b"\n");
    [Some(payload), bare].into_iter().flatten().find_map(of_exact)
}

fn of_exact(payload: &[u8]) -> Option<Vec<u8>> {
    if payload.len() > MOST_BYTES || !may_begin(*payload.first()?) {
        return None;
    }
    let (value, footer) = payload.split_last_chunk::<FOOTER>()?;
    let [low, high, checksum @ ..] = *footer;
    let version = u16::from_le_bytes([low, high]);
    let family = if version >= VALKEY { Family::Valkey } else { Family::Redis };
    let dialect = Dialect { family, version };
    if !(1..1000).contains(&version) {
        return None;
    }
    let format = Format::new(dialect);
    let type_at = Walker::metadata_len(value, &format)?;
    if !Walker::is_type(*value.get(type_at)?, &format) {
        return None;
    }
    let mut dump = dialect.header().to_vec();
    dump.extend_from_slice(&value[..=type_at]);
    // An empty name.
    dump.push(0);
    dump.extend_from_slice(&value[type_at + 1..]);
    let stored = u64::from_le_bytes(checksum);
    if stored != 0 && stored != scan::crc64(&payload[..payload.len() - checksum.len()]) {
        return None;
    }
    // Servers leave out the checksum of some; then the value itself has to tell.
    if stored == 0 && !is_one_record(&dump[dialect.header().len()..], &format) {
        return None;
    }
    dump.push(0xff);
    if dialect.has_checksum() {
        let checksum = if stored == 0 { 0 } else { scan::crc64(&dump) };
        dump.extend_from_slice(&checksum.to_le_bytes());
    }
    Some(dump)
}

/// True for exactly one record.
fn is_one_record(bytes: &[u8], format: &Format) -> bool {
    struct Skim;
    impl Sink for Skim {
        const SKIM: bool = true;
    }
    let mut walker = Walker::new(bytes, 0, format, 0);
    matches!(walker.step(&mut Skim), Ok(Step::Record)) && walker.at_end()
}
