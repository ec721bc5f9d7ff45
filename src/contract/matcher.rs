//! All patterns of a file, compiled into one tree: a key finds its class in one walk over its segments.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use std::sync::Arc;

use super::automaton::SegmentSet;
use super::literals::Literals;
use super::pattern::{Pattern, Segment, Tail};
use crate::classify::{Segments, Separators};

/// Finds the class of a key.
#[derive(Debug)]
pub struct Matcher {
    separators: Separators,
    nodes: Vec<Node>,
    /// Class by rank.
    classes: Vec<usize>,
}

/// Place of a class in the order of precedence; the smallest wins.
pub(super) type Rank = u32;

pub(super) const NO_RANK: Rank = Rank::MAX;

/// A place in the tree.
#[derive(Debug)]
pub(super) struct Node {
    /// Smallest rank at or below this node.
    pub best: Rank,
    /// Rank of the pattern that ends here.
    pub end: Rank,
    /// Rank of the pattern that takes whatever follows.
    pub rest: Rank,
    pub literals: Literals,
    pub others: Option<Arc<SegmentSet>>,
    /// Smallest rank of what follows one of `others`.
    others_best: Rank,
    /// What follows each segment of `others`.
    pub followers: Vec<Follower>,
}

/// What follows a segment that is no text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Follower {
    Node(usize),
    /// The same segment to the end of the key.
    Again(Rank),
}

/// Two patterns of equal precedence that share a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// Index of the one.
    pub first: usize,
    /// Index of the other.
    pub second: usize,
    /// A key that both match.
    pub example: Vec<u8>,
}

impl Matcher {
    /// Compiles `patterns`, whose order in the file means nothing.
    ///
    /// # Errors
    /// Patterns too complex to be compiled.
    pub fn new(patterns: &[Pattern], separators: Separators) -> Result<Self, String> {
        let mut classes: Vec<usize> = (0..patterns.len()).collect();
        classes.sort_by_cached_key(|&class| patterns[class].precedence());
        let mut building = vec![Building::default()];
        for (rank, &class) in (0..).zip(&classes) {
            place(&mut building, &patterns[class], rank);
        }
        // Most places have the same few placeholders: one automaton serves them all, and stays in the cache.
        let mut sets = HashMap::new();
        let mut nodes = building.into_iter().map(|node| node.finish(&mut sets)).collect::<Result<Vec<_>, _>>()?;
        for at in 0..nodes.len() {
            let follower = |follower: &Follower| match *follower {
                Follower::Node(next) => nodes[next].best,
                Follower::Again(rank) => rank,
            };
            nodes[at].others_best = nodes[at].followers.iter().map(follower).min().unwrap_or(NO_RANK);
        }
        Ok(Self { separators, nodes, classes })
    }

    /// Index of the class of `key`.
    #[inline]
    pub fn class(&self, key: &[u8]) -> Option<usize> {
        let mut best = NO_RANK;
        self.search(0, self.separators.segments(key), &mut best);
        self.class_of_rank(best)
    }

    /// Bytes between segments.
    pub(super) fn separators(&self) -> &Separators {
        &self.separators
    }

    /// A place in the tree; the first is where all keys begin.
    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Index of the class with this precedence.
    #[inline]
    pub(super) fn class_of_rank(&self, rank: Rank) -> Option<usize> {
        self.classes.get(rank as usize).copied()
    }

    /// Lowers `best` to the rank of the best pattern at or below `node` that matches the segments to come.
    fn search(&self, node: usize, mut segments: Segments<'_, '_>, best: &mut Rank) {
        let node = &self.nodes[node];
        if node.best >= *best {
            return;
        }
        *best = (*best).min(node.rest);
        let Some(segment) = segments.next() else {
            *best = (*best).min(node.end);
            return;
        };
        if let Some(next) = node.literals.get(segment.text) {
            self.search(next, segments.clone(), best);
        }
        // A key with more literal segments found has no need of the automaton.
        if let Some(others) = node.others.as_ref().filter(|_| node.others_best < *best) {
            others.matches(segment.text, |at| match node.followers[at] {
                Follower::Node(next) => self.search(next, segments.clone(), best),
                Follower::Again(rank) if rank < *best => {
                    if segments.clone().all(|segment| others.matches_one(at, segment.text)) {
                        *best = rank;
                    }
                }
                Follower::Again(_) => {}
            });
        }
    }
}

/// A node while patterns are placed.
#[derive(Default)]
struct Building {
    best: Option<Rank>,
    end: Option<Rank>,
    rest: Option<Rank>,
    literals: HashMap<Box<[u8]>, usize>,
    regexes: Vec<String>,
    followers: Vec<Follower>,
}

impl Building {
    fn finish(self, sets: &mut HashMap<Vec<String>, Arc<SegmentSet>>) -> Result<Node, String> {
        let others = match sets.get(&self.regexes) {
            _ if self.regexes.is_empty() => None,
            Some(set) => Some(Arc::clone(set)),
            None => {
                let set = Arc::new(SegmentSet::new(&self.regexes)?);
                sets.insert(self.regexes, Arc::clone(&set));
                Some(set)
            }
        };
        let rank = |rank: Option<Rank>| rank.unwrap_or(NO_RANK);
        Ok(Node {
            best: rank(self.best),
            end: rank(self.end),
            rest: rank(self.rest),
            literals: Literals::new(self.literals.into_iter()),
            others,
            others_best: NO_RANK,
            followers: self.followers,
        })
    }
}

fn place(nodes: &mut Vec<Building>, pattern: &Pattern, rank: Rank) {
    let mut at = 0;
    let last = pattern.segments.len().saturating_sub(1);
    for (depth, segment) in pattern.segments.iter().enumerate() {
        // Ranks come in ascending order: the first at a node is its best.
        nodes[at].best.get_or_insert(rank);
        if depth == last && pattern.tail == Tail::Optional {
            nodes[at].end.get_or_insert(rank);
        }
        if depth == last && pattern.tail == Tail::Repeated {
            nodes[at].regexes.push(segment.regex());
            nodes[at].followers.push(Follower::Again(rank));
            return;
        }
        let literal = segment.literal();
        let known = match &literal {
            Some(text) => nodes[at].literals.get(text.as_bytes()).copied(),
            None => {
                let regex = segment.regex();
                nodes[at].regexes.iter().zip(&nodes[at].followers).find_map(|(r, f)| match f {
                    Follower::Node(next) if *r == regex => Some(*next),
                    _ => None,
                })
            }
        };
        let next = known.unwrap_or(nodes.len());
        if known.is_none() {
            nodes.push(Building::default());
            match literal {
                Some(text) => {
                    nodes[at].literals.insert(text.into_bytes().into(), next);
                }
                None => {
                    nodes[at].regexes.push(segment.regex());
                    nodes[at].followers.push(Follower::Node(next));
                }
            }
        }
        at = next;
    }
    let node = &mut nodes[at];
    node.best.get_or_insert(rank);
    if pattern.tail == Tail::Rest {
        node.rest.get_or_insert(rank)
    } else {
        node.end.get_or_insert(rank)
    };
}

/// Pairs of patterns of equal precedence that share a key, each pattern with the first such other only.
///
/// # Errors
/// Patterns too complex to be compiled.
pub fn ambiguities(patterns: &[Pattern], separators: &[u8]) -> Result<Vec<Ambiguity>, String> {
    // Patterns of one precedence have their texts in the same places; those whose texts differ share no key.
    let mut by_precedence: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, pattern) in patterns.iter().enumerate() {
        let certain = pattern.segments.len() - usize::from(pattern.tail == Tail::Optional);
        let texts: Vec<Option<String>> = pattern.segments.iter().take(certain).map(Segment::literal).collect();
        by_precedence.entry((pattern.precedence(), texts)).or_default().push(at);
    }
    let mut sets: HashMap<String, SegmentSet> = HashMap::new();
    let mut found = Vec::new();
    for group in by_precedence.values() {
        for (n, &second) in group.iter().enumerate() {
            for &first in &group[..n] {
                if let Some(example) = shared_key(&patterns[first], &patterns[second], separators, &mut sets)? {
                    found.push(Ambiguity { first, second, example });
                    break;
                }
            }
        }
    }
    found.sort_by_key(|ambiguity| ambiguity.second);
    Ok(found)
}

/// A key that two patterns of equal precedence share: they have as many segments, and the same tail.
fn shared_key(
    a: &Pattern,
    b: &Pattern,
    separators: &[u8],
    sets: &mut HashMap<String, SegmentSet>,
) -> Result<Option<Vec<u8>>, String> {
    // An optional segment that is missing keeps nothing apart; of one alone no key is left.
    let kept_apart = match a.segments.len() {
        len if a.tail == Tail::Optional && len > 1 => len - 1,
        len => len,
    };
    let separator = separators.first().copied().unwrap_or(b':');
    let is_separator = Separators::new(separators);
    let pairs = || a.segments.iter().zip(&b.segments).take(kept_apart);
    // Texts first: most pairs differ in one, which costs no automaton.
    if pairs().any(|(x, y)| x.literal().zip(y.literal()).is_some_and(|(x, y)| x != y)) {
        return Ok(None);
    }
    let mut key = Vec::new();
    for (at, (x, y)) in pairs().enumerate() {
        if at > 0 {
            key.push(separator);
        }
        if let (Some(text), Some(_)) = (x.literal(), y.literal()) {
            key.extend_from_slice(text.as_bytes());
            continue;
        }
        for segment in [x, y] {
            if let Entry::Vacant(place) = sets.entry(segment.regex()) {
                let set = SegmentSet::new(std::slice::from_ref(place.key()))?;
                place.insert(set);
            }
        }
        match sets[&x.regex()].shared(&sets[&y.regex()], &is_separator) {
            Some(text) => key.extend_from_slice(&text),
            None => return Ok(None),
        }
    }
    Ok(Some(key))
}
