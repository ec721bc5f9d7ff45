//! Reads snapshots of Redis and Valkey, and says what is in them, without copying values.
//!
//! The modules follow the road from bytes to tables; each uses those before it:
//!
//! ```text
//!  input ──► scan ──► rdb ──► measure ──► classify ──► census ──► report ──► tables ──► render
//!  (windows  (pieces, (one key, (memory,    (contract    (sums      (finished  (typed    (csv,
//!  of bytes) threads) borrowed) slot, ttl)  or shape)    that merge) figures)  rows)     json lines)
//! ```
//!
//! [`analyse`] joins them, [`verify`] looks into everything, and [`recover`] finds records behind damage. [`rdb`] is usable on its
//! own: it walks borrowed bytes, knows nothing of files and threads, and reports to a [`Sink`](rdb::Sink) of your own:
//!
//! ```
//! use rdbscope::rdb::{RecordHead, Sink};
//!
//! #[derive(Default)]
//! struct Keys(Vec<String>);
//!
//! impl Sink for Keys {
//!     // Only the ends of records are wanted.
//!     const SKIM: bool = true;
//!
//!     fn begin(&mut self, head: &RecordHead<'_>) {
//!         self.0.push(rdbscope::key_text::escape(head.key).into_owned());
//!     }
//! }
//!
//! // Version 10, database 0, one string key, end mark, no checksum.
//! let dump = b"REDIS0010\xfe\x00\x00\x05hello\x05world\xff\0\0\0\0\0\0\0\0";
//! let mut keys = Keys::default();
//! rdbscope::scan::walk(dump, &mut keys)?;
//! assert_eq!(keys.0, ["hello"]);
//! # Ok::<(), rdbscope::Error>(())
//! ```

pub mod advice;
pub mod analyse;
pub mod census;
pub mod classify;
pub mod contract;
pub mod discover;
mod error;
pub mod filter;
pub mod findings;
pub mod input;
pub mod key_text;
mod look;
pub mod measure;
pub mod privacy;
pub mod rdb;
pub mod recover;
pub mod render;
pub mod report;
pub mod scan;
pub mod skew;
pub mod tables;
pub mod time;
pub mod values;
pub mod verify;

pub use error::{Detail, Error, ErrorKind, Result};
