//! Maps keys to classes.

mod discover;
mod segment;
mod shape;
mod stems;

use std::sync::Arc;

pub(crate) use discover::wider;
pub use discover::{Discovery, Merge};
pub(crate) use segment::{SHORTEST_HEX, is_random_token, is_word};
pub use shape::{Segment, Segments, Separators, Shape};
pub(crate) use stems::{ByStem, Like, Marks, Stem};

use crate::contract::{Contracts, Ends, Routes};

/// Finds the class of one key after another: the one that a contract names, else its shape.
#[derive(Debug, Clone, Default)]
pub struct Classifier {
    contracts: Option<Arc<Contracts>>,
    routes: Routes,
    separators: Separators,
    shape: Shape,
}

/// Where a key belongs.
#[derive(Debug)]
pub struct Class<'c> {
    /// Index of the contract's class.
    pub registered: Option<usize>,
    /// The literal ends of its pattern.
    pub ends: Ends,
    /// The key, for its shape.
    pub key: UntypedKey<'c>,
}

/// A key whose shape is taken when it is asked for.
#[derive(Debug)]
pub struct UntypedKey<'c> {
    bytes: &'c [u8],
    separators: &'c Separators,
    shape: &'c mut Shape,
}

impl UntypedKey<'_> {
    /// Its shape.
    pub fn shape(&mut self) -> &Shape {
        self.shape.take(self.bytes, self.separators);
        self.shape
    }
}

impl Classifier {
    /// Classes by `contracts`, where there are any.
    pub fn new(contracts: Option<Arc<Contracts>>) -> Self {
        let separators = contracts.as_ref().map_or_else(Separators::default, |contracts| Separators::new(&contracts.separators));
        Self { contracts, routes: Routes::default(), separators, shape: Shape::default() }
    }

    /// The contracts.
    pub fn contracts(&self) -> Option<&Arc<Contracts>> {
        self.contracts.as_ref()
    }

    /// The class of `key`.
    #[inline]
    pub fn classify<'c>(&'c mut self, key: &'c [u8]) -> Class<'c> {
        let Self { contracts, routes, separators, shape } = self;
        let registered = contracts.as_ref().and_then(|contracts| contracts.class_by(routes, key));
        let ends = registered.zip(contracts.as_ref()).and_then(|(at, contracts)| contracts.classes.get(at));
        let ends = ends.map_or_else(Ends::default, |class| class.ends);
        Class { registered, ends, key: UntypedKey { bytes: key, separators, shape } }
    }
}
