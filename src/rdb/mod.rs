//! The RDB format: one walker over borrowed bytes.
//!
//! Nothing here opens a file, starts a thread or allocates for a record (a key or blob that is compressed and must be looked into
//! goes through a reused or short-lived buffer). Input is taken for hostile: whatever the bytes, a walk ends with an
//! [`Error`](crate::Error) or at the end.
#![forbid(unsafe_code)]

mod cursor;
mod foreign;
pub mod lzf;
pub mod packed;
mod rare;
mod servers;
mod sink;
mod stream;
mod types;
mod value;
mod walk;

pub use cursor::{Cursor, INT_TEXT, Str};
pub use servers::{SUPPORTED, ServerLine, Verified};
pub use sink::{BlobCodec, Frame, RecordHead, RecordTail, Role, Sink, StreamCounters, StreamPart};
pub use types::{
    DRAGONFLY_EPOCH, Dialect, Family, Format, HEADER_LEN, KeyType, Layout, ModuleId, RecordType, Sequence, Sketch, StreamLayout,
    TemplateLayout,
};
pub use walk::{MAX_KEY_BYTES, Step, UNKNOWN_DB, Walker, header};
