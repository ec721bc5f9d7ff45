//! lib
pub mod analyse;
pub mod census;
pub mod classify;
pub mod contract;
mod error;
pub mod filter;
pub mod input;
pub mod key_text;
pub mod measure;
pub mod privacy;
pub mod rdb;
pub mod render;
pub mod report;
pub mod scan;
pub mod skew;
pub mod tables;
pub mod time;
pub use error::{Detail, Error, ErrorKind, Result};
