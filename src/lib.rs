//! lib
mod error;
pub mod key_text;
pub mod rdb;
pub use error::{Detail, Error, ErrorKind, Result};
