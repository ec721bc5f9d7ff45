//! Maps keys to classes.

mod discover;
mod segment;
mod shape;

pub use discover::{Discovery, Merge};
pub use shape::{Separators, Shape};
