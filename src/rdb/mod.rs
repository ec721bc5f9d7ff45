//! The RDB format: one walker over borrowed bytes.
//!
//! Nothing here opens a file, starts a thread or allocates for a record (a key or blob that is compressed and must be looked into
//! goes through a reused or short-lived buffer). Input is taken for hostile: whatever the bytes, a walk ends with an
//! [`Error`](crate::Error) or at the end.
#![forbid(unsafe_code)]

mod cursor;
pub mod lzf;
pub mod packed;
mod sink;
mod stream;
mod types;
mod value;
mod walk;

pub use cursor::{Cursor, INT_TEXT, Str};
pub use sink::{Frame, RecordHead, RecordTail, Role, Sink};
pub use types::{Dialect, Family, HEADER_LEN, KeyType, Layout, ModuleId, RecordType, Sequence, StreamLayout};
pub use walk::{MAX_KEY_BYTES, Step, Walker};
