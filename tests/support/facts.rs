//! Facts of a dump by way of the library, with everything they borrow copied.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use rdbscope::analyse::{self, Dump, Options, Outcome, PieceSink};
use rdbscope::input::Input;
use rdbscope::measure::{Fact, FieldExpiry, StreamFacts};

/// A fact that outlives its dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFact {
    pub db: u64,
    pub key: Vec<u8>,
    pub key_type: String,
    pub encoding: &'static str,
    pub elements: Option<u64>,
    pub payload_bytes: Option<u64>,
    pub largest_element_bytes: Option<u64>,
    pub serialized_bytes: u64,
    pub memory_bytes: Option<u64>,
    pub expires_at_ms: Option<i64>,
    pub slot: u16,
    pub idle_seconds: Option<u64>,
    pub freq: Option<u8>,
    pub field_expiry: Option<FieldExpiry>,
    pub stream: Option<StreamFacts>,
}

impl OwnedFact {
    fn new(fact: &Fact<'_>) -> Self {
        Self {
            db: fact.db,
            key: fact.key.to_vec(),
            key_type: fact.key_type.to_string(),
            encoding: fact.encoding.name(),
            elements: fact.elements,
            payload_bytes: fact.payload_bytes,
            largest_element_bytes: fact.largest_element_bytes,
            serialized_bytes: fact.serialized_bytes,
            memory_bytes: fact.memory_bytes,
            expires_at_ms: fact.expires_at_ms,
            slot: fact.slot,
            idle_seconds: fact.idle_seconds,
            freq: fact.freq,
            field_expiry: fact.field_expiry,
            stream: fact.stream,
        }
    }
}

/// Collects the facts of a piece.
struct Collect<const DEEP: bool>(Vec<OwnedFact>);

impl<const DEEP: bool> PieceSink for Collect<DEEP> {
    const DEEP: bool = DEEP;

    fn fact(&mut self, fact: &Fact<'_>) {
        self.0.push(OwnedFact::new(fact));
    }
}

/// Opens a dump with the default options.
pub fn open(path: &Path) -> Dump {
    open_with(path, &Options::default())
}

/// Opens a dump with these options.
pub fn open_with(path: &Path, options: &Options) -> Dump {
    let input = Input::open(path).expect("the dump can be opened");
    Dump::new(input, options).expect("it is a dump")
}

/// Every fact of a dump in file order, packed values opened where `DEEP`.
pub fn facts<const DEEP: bool>(dump: &Dump) -> (Vec<OwnedFact>, Outcome) {
    let mut all = Vec::new();
    let outcome = analyse::walk_dump(
        dump,
        &Options::default(),
        &Mutex::new(Vec::new()),
        || Collect::<DEEP>(Vec::new()),
        |worker| std::mem::take(&mut worker.0),
        |piece, _| {
            all.extend(piece);
            ControlFlow::Continue(())
        },
    );
    (all, outcome)
}
