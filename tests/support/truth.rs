//! What servers said of the dumps they had loaded, as `fixtures/README.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;

/// A database and the bytes of a key.
pub type Place = (u64, Vec<u8>);

/// One key that was live after the load.
#[derive(Debug)]
pub struct TruthLine {
    pub db: u64,
    pub key: Vec<u8>,
    pub key_type: String,
    pub encoding: Option<String>,
    pub count: Option<u64>,
    pub expire_at_ms: Option<i64>,
    pub expire_approx: bool,
    pub slot: Option<u64>,
    pub freq: Option<u64>,
    pub idle: Option<u64>,
    pub elem_bytes: Option<u64>,
    pub max_elem_bytes: Option<u64>,
    /// What `MEMORY USAGE key SAMPLES 0` answered.
    pub memory_usage: Option<u64>,
    pub hfe_fields: Option<u64>,
    pub hfe_min_expire_ms: Option<i64>,
    pub hfe_max_expire_ms: Option<i64>,
    /// Groups, consumers over all groups, pending entries over all groups.
    pub stream_totals: Option<[u64; 3]>,
    pub last_id: Option<String>,
    pub max_deleted_id: Option<String>,
    pub entries_added: Option<u64>,
}

impl TruthLine {
    fn new(line: &Value) -> Self {
        let (db, key) = place(line);
        Self {
            db,
            key,
            key_type: line["type"].as_str().expect("every key has a type").into(),
            encoding: line["encoding"].as_str().map(Into::into),
            count: line["count"].as_u64(),
            expire_at_ms: line["expire_at_ms"].as_i64(),
            expire_approx: line["expire_approx"].as_bool().unwrap_or(false),
            slot: line["slot"].as_u64(),
            freq: line["freq"].as_u64(),
            idle: line["idle"].as_u64(),
            elem_bytes: line["elem_bytes"].as_u64(),
            max_elem_bytes: line["max_elem_bytes"].as_u64(),
            memory_usage: line["memory_usage"].as_u64(),
            hfe_fields: line["hfe_fields"].as_u64(),
            hfe_min_expire_ms: line["hfe_min_expire_ms"].as_i64(),
            hfe_max_expire_ms: line["hfe_max_expire_ms"].as_i64(),
            stream_totals: line["groups"]
                .as_u64()
                .zip(line["consumers"].as_u64())
                .zip(line["pending"].as_u64())
                .map(|((groups, consumers), pending)| [groups, consumers, pending]),
            last_id: line["stream"]["last_id"].as_str().map(Into::into),
            max_deleted_id: line["stream"]["max_deleted_id"].as_str().map(Into::into),
            entries_added: line["stream"]["entries_added"].as_u64(),
        }
    }

    pub fn place(&self) -> Place {
        (self.db, self.key.clone())
    }
}

/// What is known of the file itself.
#[derive(Debug)]
pub struct Meta {
    pub file: String,
    pub file_size: u64,
    /// The last eight bytes in hexadecimal digits.
    pub checksum: String,
    pub keys_in_file: BTreeMap<u64, u64>,
    pub expires_in_file: BTreeMap<u64, u64>,
    pub functions_in_file: u64,
    pub module_aux_in_file: u64,
    pub slot_info_in_file: u64,
    pub rdb_types_in_file: BTreeMap<u64, u64>,
    pub opcodes_in_file: BTreeMap<u64, u64>,
    /// Keys of the file that were past due when the server started.
    pub expired_on_load: BTreeSet<Place>,
    /// Hashes that have more fields in the file than after the load.
    pub lost_fields: BTreeSet<Place>,
}

impl Meta {
    fn new(meta: &Value) -> Self {
        let text = |name: &str| meta[name].as_str().expect(name).to_string();
        let number = |name: &str| meta[name].as_u64().expect(name);
        let counts = |name: &str| -> BTreeMap<u64, u64> {
            let object = meta[name].as_object().expect(name);
            let count = |(key, n): (&String, &Value)| Some((key.parse().ok()?, n.as_u64()?));
            object.iter().map(count).collect::<Option<_>>().expect(name)
        };
        let places = |name: &str| meta[name].as_array().expect(name).iter().map(place).collect();
        // Only append-only files with commands behind the dump have these, and no fixture is one.
        assert_eq!(meta["keys_after_preamble_b64"], Value::Null);
        Self {
            file: text("file"),
            file_size: number("file_size"),
            checksum: text("checksum"),
            keys_in_file: counts("keys_in_file"),
            expires_in_file: counts("expires_in_file"),
            functions_in_file: number("functions_in_file"),
            module_aux_in_file: number("module_aux_in_file"),
            slot_info_in_file: number("slot_info_in_file"),
            rdb_types_in_file: counts("rdb_types_in_file"),
            opcodes_in_file: counts("opcodes_in_file"),
            expired_on_load: places("expired_on_load"),
            lost_fields: places("expired_fields"),
        }
    }
}

/// A dump, and what its server said.
#[derive(Debug)]
pub struct Truth {
    pub dump: PathBuf,
    pub meta: Meta,
    pub lines: Vec<TruthLine>,
}

impl Truth {
    /// Reads what stands beside `dump`.
    pub fn beside(dump: &Path) -> Self {
        let read = |extension| {
            let path = dump.with_extension(extension);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        Self {
            dump: dump.to_path_buf(),
            meta: Meta::new(&json(&read("meta.json"))),
            lines: read("truth.jsonl").lines().map(|line| TruthLine::new(&json(line))).collect(),
        }
    }
}

fn place(named: &Value) -> Place {
    let key = named["key_b64"].as_str().expect("a key");
    let key = base64::engine::general_purpose::STANDARD.decode(key).expect("base64");
    (named["db"].as_u64().expect("a database"), key)
}
