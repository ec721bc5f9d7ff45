//! The way of a key through the patterns, remembered: most keys go where others went before.

use hashbrown::HashMap;

use super::automaton::Digits;
use super::matcher::{Follower, Matcher, NO_RANK, Rank};
use crate::classify::{ByStem, Like, Marks, Stem};

/// Most places that are remembered, and most ways from one to another; keys that would need more are matched anew.
const MOST_PLACES: usize = 1 << 12;
const MOST_WAYS: usize = 1 << 14;

/// Where the segments so far lead in a [`Matcher`]: all that its search would have reached, found once. A deterministic automaton over segments,
/// built as keys ask for it. It belongs to one matcher.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    places: Vec<Place>,
    known: HashMap<Reached, u32>,
    ways: usize,
}

/// Something that waits for the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Item {
    /// A node of the matcher.
    Node(usize),
    /// The segment of a node, over and over, and the rank that it leads to.
    Again { node: usize, at: usize, rank: Rank },
}

/// What segments have reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reached {
    /// In order, each once; without what could lead to no better rank.
    items: Vec<Item>,
    /// Smallest rank of those that take whatever follows.
    rest: Rank,
}

#[derive(Debug, Clone)]
struct Place {
    reached: Reached,
    /// Smallest rank where the key ends here.
    end: Rank,
    ways: ByStem<Way>,
    /// Texts that go elsewhere than others of their stem.
    texts: HashMap<Box<[u8]>, u32>,
}

/// Where a stem leads.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// All texts of it lead there.
    To(u32),
    /// All texts of it lead there that have no place of their own.
    Unless(u32),
    /// That depends on the text.
    Look,
}

impl Routes {
    /// Index of the class of `key`, as [`Matcher::class`] finds it.
    #[inline]
    pub fn class(&mut self, matcher: &Matcher, key: &[u8]) -> Option<usize> {
        // Not moved: its parts were just written one by one.
        let marks = Marks::of(key, matcher.separators());
        let Some(marks) = &marks else { return matcher.class(key) };
        let known = marks.follow(0u32, |at, stem, text| {
            let place = self.places.get(at as usize)?;
            match place.ways.get(stem?)? {
                Way::To(next) => Some(next),
                Way::Unless(next) => Some(place.texts.get(text).copied().unwrap_or(next)),
                Way::Look => None,
            }
        });
        let place = match known {
            Some(place) => Some(place),
            None => self.explore(matcher, marks),
        };
        match place.and_then(|place| self.places.get(place as usize)) {
            Some(place) => matcher.class_of_rank(place.end),
            None => matcher.class(key),
        }
    }

    /// Finds the place of a key segment by segment, and remembers what it can; `None` where there is no room for more.
    #[inline(never)]
    fn explore(&mut self, matcher: &Matcher, marks: &Marks<'_>) -> Option<u32> {
        let start = match self.places.is_empty() {
            true => self.place(matcher, Reached::begin(matcher))?,
            false => 0,
        };
        marks.follow(start, |from, stem, text| {
            let place = self.places.get(from as usize)?;
            let known = stem.and_then(|stem| place.ways.get(stem));
            match known {
                Some(Way::To(next)) => return Some(next),
                Some(Way::Unless(next)) => return Some(place.texts.get(text).copied().unwrap_or(next)),
                Some(Way::Look) | None => {}
            }
            let reached = place.reached.next(matcher, text);
            let next = self.place(matcher, reached)?;
            if let (Some(stem), None) = (stem, known) {
                self.learn(matcher, from, stem, text, next);
            }
            Some(next)
        })
    }

    /// Remembers where `stem` leads, one of whose texts leads to `next`.
    fn learn(&mut self, matcher: &Matcher, from: u32, stem: Stem, text: &[u8], next: u32) {
        if self.ways >= MOST_WAYS {
            return;
        }
        let Some(place) = self.places.get(from as usize) else { return };
        let reached = &place.reached;
        let own: Vec<Box<[u8]>> = match stem.like(text) {
            Like::Itself => Vec::new(),
            Like::Digits { .. } | Like::Hex { .. } => reached.literals(matcher, stem),
        };
        let way = if !reached.is_uniform(matcher, &stem.like(text)) {
            Way::Look
        } else if own.iter().any(|own| **own == *text) {
            // What others of the stem do, one of them will show.
            return;
        } else if own.is_empty() {
            Way::To(next)
        } else {
            Way::Unless(next)
        };
        if let Way::Unless(_) = way {
            for text in own {
                let reached = self.places[from as usize].reached.next(matcher, &text);
                let Some(place) = self.place(matcher, reached) else { return };
                self.ways += 1;
                self.places[from as usize].texts.insert(text, place);
            }
        }
        self.ways += 1;
        self.places[from as usize].ways.learn(stem, way);
    }

    /// The place of what was reached.
    fn place(&mut self, matcher: &Matcher, reached: Reached) -> Option<u32> {
        if let Some(place) = self.known.get(&reached) {
            return Some(*place);
        }
        if self.places.len() >= MOST_PLACES {
            return None;
        }
        let place = self.places.len() as u32;
        self.known.insert(reached.clone(), place);
        let end = reached.end(matcher);
        self.places.push(Place { reached, end, ways: ByStem::default(), texts: HashMap::new() });
        Some(place)
    }
}

impl Reached {
    /// Where every key begins.
    fn begin(matcher: &Matcher) -> Self {
        Self::of(matcher, vec![Item::Node(0)], NO_RANK)
    }

    fn of(matcher: &Matcher, mut items: Vec<Item>, before: Rank) -> Self {
        let rests = items.iter().filter_map(|item| match *item {
            Item::Node(node) => Some(matcher.node(node).rest),
            Item::Again { .. } => None,
        });
        let rest = rests.fold(before, Rank::min);
        items.retain(|item| match *item {
            Item::Node(node) => matcher.node(node).best < rest,
            Item::Again { rank, .. } => rank < rest,
        });
        items.sort_unstable();
        items.dedup();
        Self { items, rest }
    }

    /// What is reached with one more segment.
    fn next(&self, matcher: &Matcher, text: &[u8]) -> Self {
        let mut items = Vec::new();
        for &item in &self.items {
            match item {
                Item::Node(at_node) => {
                    let node = matcher.node(at_node);
                    items.extend(node.literals.get(text).map(Item::Node));
                    let Some(others) = &node.others else { continue };
                    others.matches(text, |at| {
                        items.push(match node.followers[at] {
                            Follower::Node(next) => Item::Node(next),
                            Follower::Again(rank) => Item::Again { node: at_node, at, rank },
                        });
                    });
                }
                Item::Again { node, at, .. } => {
                    if matcher.node(node).others.as_ref().is_some_and(|others| others.matches_one(at, text)) {
                        items.push(item);
                    }
                }
            }
        }
        Self::of(matcher, items, self.rest)
    }

    /// The best rank of a key that ends here.
    fn end(&self, matcher: &Matcher) -> Rank {
        let ends = self.items.iter().map(|item| match *item {
            Item::Node(node) => matcher.node(node).end,
            Item::Again { rank, .. } => rank,
        });
        ends.fold(self.rest, Rank::min)
    }

    /// True where no automaton tells texts from one another that are alike.
    fn is_uniform(&self, matcher: &Matcher, like: &Like<'_>) -> bool {
        let (before, digits, behind) = match *like {
            Like::Itself => return true,
            Like::Digits { before, behind } => (before, Digits::Decimal, behind),
            Like::Hex { behind } => (&[][..], Digits::Hex, behind),
        };
        self.items.iter().all(|item| match *item {
            Item::Node(node) | Item::Again { node, .. } => {
                matcher.node(node).others.as_ref().is_none_or(|others| others.is_uniform(before, digits, behind))
            }
        })
    }

    /// The literal segments that have a stem.
    fn literals(&self, matcher: &Matcher, stem: Stem) -> Vec<Box<[u8]>> {
        let nodes = self.items.iter().filter_map(|item| if let Item::Node(node) = item { Some(*node) } else { None });
        let texts = nodes.flat_map(|node| matcher.node(node).literals.texts());
        texts.filter(|text| stem.is_of(text, matcher.separators())).map(Box::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;
    use crate::classify::Separators;
    use crate::contract::{Definitions, Pattern};

    const PATTERNS: [&str; 30] = [
        "prod:shop-<digits>:user:<digits>",
        "prod:shop-1:user:<digits>",
        "prod:shop-1:user:7",
        "prod:shop-<digits>:session:<hex>",
        "prod:shop-<digits>:session:<hex(8)>",
        "prod:<digits>:<digits>",
        "prod:7:<digits>",
        "prod:<*>:<int>",
        "prod:<slug>:x:<x?>",
        "prod:shop-<digits>:<x+>",
        "prod:<x+>",
        "prod:<date>:<**>",
        "a:<**>",
        "a:b:<*>",
        "a:b:c:<**>",
        "a:{<digits>}:x",
        "a:{7}:x",
        "a:{shop-<digits>}:<**>",
        "<*>:<*>",
        "<digits>",
        "<slug>:<hour>",
        "<phone>:<*>:<*>",
        "b:<uuid>",
        "b:<slug>",
        "b:<base64url>",
        "b:v1:<hex>",
        "b:v<digits>:<hex>",
        "b:v<digits>:deadbee7",
        "b:<version>:<digits>",
        "<**>",
    ];

    fn matcher(patterns: &[&str]) -> Matcher {
        let definitions = Definitions::default();
        let placeholder = |text: &str| text.replace("<x", "<*");
        let parse = |text: &&str| {
            Pattern::parse(text, b":/", &definitions).or_else(|_| Pattern::parse(&placeholder(text), b":/", &definitions))
        };
        let patterns: Vec<Pattern> = patterns.iter().map(|text| parse(text).expect("a pattern")).collect();
        Matcher::new(&patterns, Separators::new(b":/")).expect("patterns")
    }

    proptest! {
        #[test]
        fn the_class_that_the_matcher_finds(
            patterns in subsequence(&PATTERNS[..], 1..PATTERNS.len()),
            keys in vec(vec(select(&[
                "prod", "shop-1", "shop-2", "shop-77", "user", "session", "7", "8", "12345678", "13800000001", "deadbee7", "0000000a",
                "0000000ab", "DEADBEE7", "a", "b", "c", "x", "{7}", "{8}", "{shop-1}", "{shop-9}", "v1", "v2", "v10", "20260819",
                "2026-08-19", "0f8fad5b-d9cb-469f-a165-70867728950e", "", "caf\u{e9}", "-5", "word", "averyveryverylongword", "2026081923",
            ][..]), 1..6), 1..40),
            separators in vec(select(&[":", ":", "/", "::"][..]), 6),
        ) {
            let matcher = matcher(&patterns);
            let mut routes = Routes::default();
            for key in keys.iter().chain(&keys) {
                let key: String = key.iter().zip(&separators).flat_map(|(text, separator)| [*separator, text]).skip(1).collect();
                prop_assert_eq!(routes.class(&matcher, key.as_bytes()), matcher.class(key.as_bytes()), "{}", key);
            }
        }
    }

    #[test]
    fn what_goes_one_way_is_found_without_its_text() {
        let matcher = matcher(&["prod:shop-<digits>:user:<digits>", "prod:shop-1:user:<digits>", "prod:<hex(8)>:<**>"]);
        let mut routes = Routes::default();
        let class = |routes: &mut Routes, key: &str| routes.class(&matcher, key.as_bytes());
        assert_eq!(class(&mut routes, "prod:shop-2:user:3"), Some(0));
        let (places, ways) = (routes.places.len(), routes.ways);
        assert_eq!(class(&mut routes, "prod:shop-9999:user:123"), Some(0));
        assert_eq!(class(&mut routes, "prod:shop-1:user:123"), Some(1));
        // Behind `shop-1` two segments are new.
        assert_eq!((routes.places.len(), routes.ways), (places + 2, ways + 2));
        // Eight digits and nine go different ways.
        assert_eq!(class(&mut routes, "prod:0000000a:x"), Some(2));
        assert_eq!(class(&mut routes, "prod:00000000a:x"), None);
        assert_eq!(class(&mut routes, "prod:0000000b:x"), Some(2));
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let matcher = matcher(&["<slug>:<digits>"]);
        let mut routes = Routes::default();
        for n in 0..3 * MOST_WAYS {
            let word: String = format!("{n:b}").chars().map(|bit| if bit == '0' { 'a' } else { 'b' }).collect();
            assert_eq!(routes.class(&matcher, format!("{word}:7").as_bytes()), Some(0), "{word}");
        }
        assert!(routes.ways <= MOST_WAYS && routes.places.len() < 5);
    }
}
