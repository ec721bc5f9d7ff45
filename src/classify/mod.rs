//! Maps keys to classes.

mod discover;
mod segment;
mod shape;

use std::sync::Arc;

pub(crate) use discover::wider;
pub use discover::{Discovery, Merge};
pub(crate) use segment::{is_random_token, is_word};
pub use shape::{Separators, Shape};

use crate::contract::{Contracts, Ends};

/// Finds the class of one key after another: the one that a contract names, else its shape.
#[derive(Debug, Clone, Default)]
pub struct Classifier {
    contracts: Option<Arc<Contracts>>,
    separators: Separators,
    shape: Shape,
}

/// Where a key belongs.
#[derive(Debug, Clone, Copy)]
pub struct Class<'c> {
    /// Index of the contract's class.
    pub registered: Option<usize>,
    /// The literal ends of its pattern.
    pub ends: Ends,
    /// The key's own shape; of a registered key only where it was asked for.
    pub shape: &'c Shape,
}

impl Classifier {
    /// Classes by `contracts`, where there are any.
    pub fn new(contracts: Option<Arc<Contracts>>) -> Self {
        let separators = contracts.as_ref().map_or_else(Separators::default, |contracts| Separators::new(&contracts.separators));
        Self { contracts, separators, shape: Shape::default() }
    }

    /// The contracts.
    pub fn contracts(&self) -> Option<&Arc<Contracts>> {
        self.contracts.as_ref()
    }

    /// The class of `key`. The shape of a registered key is taken only where `with_shape` asks for it.
    #[inline]
    pub fn classify(&mut self, key: &[u8], with_shape: bool) -> Class<'_> {
        let registered = self.contracts.as_ref().and_then(|contracts| contracts.class_of(key));
        if registered.is_none() || with_shape {
            self.shape.take(key, &self.separators);
        }
        let ends = registered.zip(self.contracts.as_ref()).and_then(|(at, contracts)| contracts.classes.get(at));
        Class { registered, ends: ends.map_or_else(Ends::default, |class| class.ends), shape: &self.shape }
    }
}
