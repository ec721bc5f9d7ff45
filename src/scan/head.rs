//! What a dump says of itself before its first key.

use crate::error::Result;
use crate::measure::Server;
use crate::rdb::{self, Dialect, Family, Format, Frame, HEADER_LEN, ModuleId, RecordHead, Sink, Step, Walker};

/// Most AUX fields that are kept for display.
const MOST_AUX: usize = 64;

/// Most bytes of an AUX name or value that are kept.
const MOST_AUX_BYTES: u64 = 1024;

/// Bytes of a dump that are looked at for its head, however it is stored: no server writes so many in front of its keys.
const MOST_HEAD_BYTES: usize = 64 << 20;

/// The head of a dump: everything up to the first database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What the walk of the records needs to know.
    pub format: Format,
    /// AUX fields in file order, at most 64.
    pub aux: Vec<(Vec<u8>, Vec<u8>)>,
    /// Function libraries.
    pub functions: u64,
    /// Module types with data of their own in front of the keys.
    pub module_aux: Vec<ModuleId>,
    /// Keys and keys with an expiry of the first database, as the server counted them when the save began.
    pub first_database: Option<(u64, u64)>,
    /// Where the head ends.
    pub end: u64,
}

impl Head {
    /// Reads the head of a whole dump.
    ///
    /// # Errors
    /// Bytes that are no dump. A fault behind the nine bytes of the header ends the head where it lies, and the walk over the
    /// records reports it.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::read_start(bytes)?.0)
    }

    /// Reads the head of a dump from its first bytes. Also returns whether more of them would make more of the head.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_start(bytes: &[u8]) -> Result<(Self, bool)> {
        let format = Format::new(rdb::header(bytes)?);
        let is_all = bytes.len() >= MOST_HEAD_BYTES;
        let records = bytes.get(HEADER_LEN..bytes.len().min(MOST_HEAD_BYTES)).unwrap_or_default();
        let mut walker = Walker::new(records, HEADER_LEN as u64, &format, 0);
        let mut sink = HeadSink { head: Self::new(format.dialect()), done: false };
        let mut is_cut = false;
        while !sink.done {
            let before = walker.offset();
            match walker.step(&mut sink) {
                Ok(Step::Frame | Step::Packed) => sink.head.end = walker.offset(),
                Ok(Step::Record | Step::End) => {
                    sink.head.end = before;
                    break;
                }
                Err(fault) => {
                    is_cut = fault.is_truncation() && !sink.done && !is_all;
                    sink.head.end = before;
                    break;
                }
            }
        }
        Ok((sink.head, is_cut))
    }

    /// Family and version of the format.
    pub fn dialect(&self) -> Dialect {
        self.format.dialect()
    }

    /// Text of the AUX field `name`.
    pub fn aux(&self, name: &str) -> Option<&str> {
        let (_, value) = self.aux.iter().find(|(n, _)| n == name.as_bytes())?;
        std::str::from_utf8(value).ok()
    }

    /// Number in the AUX field `name`.
    pub fn aux_number(&self, name: &str) -> Option<i64> {
        self.aux(name)?.parse().ok()
    }

    /// The version that the writing server gave itself.
    pub fn server_version(&self) -> Option<&str> {
        self.aux("valkey-ver").or_else(|| self.aux("redis-ver"))
    }

    /// The product that wrote the dump.
    pub fn product(&self) -> &'static str {
        if self.aux("df-ver").is_some() {
            "Dragonfly"
        } else if self.dialect().family == Family::Valkey || self.aux("valkey-ver").is_some() {
            "Valkey"
        } else {
            "Redis"
        }
    }

    /// True for a dump of KeyDB, whose versions Redis never released.
    pub fn is_keydb(&self) -> bool {
        let number = self.aux("redis-ver").unwrap_or_default();
        number.starts_with("6.3.") && self.product() == "Redis"
    }

    /// The server that is taken to load the dump: the one that wrote it, or the first that wrote this version of the format.
    pub fn server(&self) -> Server {
        if self.is_keydb() {
            // KeyDB 6.3 branched off Redis 6.2.
            return Server::redis(6, 2, 0);
        }
        let valkey = self.aux("valkey-ver").and_then(|text| Server::release(Family::Valkey, text));
        let redis = self.aux("redis-ver").and_then(|text| Server::release(Family::Redis, text));
        valkey.or(redis).unwrap_or_else(|| Server::first_of(self.dialect()))
    }

    /// Unix milliseconds of the moment at which the save began.
    pub fn ctime_ms(&self) -> Option<i64> {
        self.aux_number("ctime").filter(|seconds| *seconds > 0)?.checked_mul(1000)
    }

    fn new(dialect: Dialect) -> Self {
        let header = HEADER_LEN as u64;
        Self {
            format: Format::new(dialect),
            aux: Vec::new(),
            functions: 0,
            module_aux: Vec::new(),
            first_database: None,
            end: header,
        }
    }
}

struct HeadSink {
    head: Head,
    done: bool,
}

impl Sink for HeadSink {
    const SKIM: bool = true;

    fn frame(&mut self, frame: Frame<'_>, _bytes: u64) {
        match frame {
            Frame::Aux { name, value } if self.head.aux.len() < MOST_AUX => {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                if let (Ok(name), Ok(value)) = (name.text(&mut a, MOST_AUX_BYTES), value.text(&mut b, MOST_AUX_BYTES))
                    && name.len() + value.len() <= MOST_AUX_BYTES as usize
                {
                    self.head.aux.push((name.to_vec(), value.to_vec()));
                }
            }
            Frame::Function { .. } => self.head.functions += 1,
            Frame::ModuleAux(id) if !self.head.module_aux.contains(&id) && self.head.module_aux.len() < MOST_AUX => {
                self.head.module_aux.push(id);
            }
            Frame::HashTemplate { id, fields } => {
                self.head.format.templates.insert(id, fields);
            }
            Frame::Blob { .. } | Frame::Chunk { .. } => self.done = true,
            Frame::ResizeDb { keys, expires } => {
                self.head.first_database = Some((keys, expires));
                self.done = true;
            }
            _ => {}
        }
    }

    fn begin(&mut self, _head: &RecordHead<'_>) {
        self.done = true;
    }
}
