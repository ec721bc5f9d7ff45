//! Key contracts: what a team has agreed on its keys, and which class a key belongs to.

mod automaton;
mod check;
mod ends;
mod file;
mod literals;
mod matcher;
mod near;
mod pattern;
mod placeholder;
mod quantity;
mod raw;
mod routes;

pub use ends::{Ends, shortened};
pub use file::{Budget, Capacity, Class, Contracts, Limits, Mistake, ServerTable, Ttl};
pub use matcher::{Ambiguity, Matcher, ambiguities};
pub use near::{Fault, Miss, Near, version_number};
pub(crate) use pattern::texts;
pub use pattern::{Atom, Definition, Definitions, Pattern, Precedence, Segment, Tail};
pub use placeholder::{Narrowness, Type};
pub use quantity::{duration, size};
pub use routes::Routes;
