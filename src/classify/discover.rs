//! Classes by shape, found while keys pass: a tree of typed segments whose crowded places collapse to `<*>`.
//!
//! Which places are crowded is a function of the set of keys alone: a place that is crowded in a part of the input is crowded in
//! all of it, so that collapsing early, in any order, in any part, ends in the same tree.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::UntypedKey;
use super::shape::Shape;
use super::stems::{ByStem, Marks, Stem};
use crate::contract::Ends;

/// Distinct literal values of a first segment above which they collapse.
const MOST_FIRST: usize = 1024;

/// Distinct literal values of a later segment, under the same parent, above which they collapse.
const MOST_LATER: usize = 64;

const ANY: &[u8] = b"<*>";

/// A kind of identifier that outnumbers a narrower one in the same place by this factor takes it in.
const OUTNUMBERS: u64 = 16;

/// Text of a part of a shape.
type Text = Box<[u8]>;

/// Narrow kinds of identifiers, and the wider kind whose members may look like them by accident: one hexadecimal token in a few
/// hundred has no letter, one number in a few thousand is a date.
const WIDER: [(&str, &str); 6] =
    [("date", "digits"), ("hour", "digits"), ("phone", "digits"), ("digits", "hex"), ("digits", "slug"), ("hex", "slug")];

/// Statistics of a class: they add up when classes turn out to be one.
pub trait Merge: Default {
    /// Adds `other`.
    fn merge(&mut self, other: Self);

    /// How many keys they stand for.
    fn keys(&self) -> u64;
}

/// A class in a [`Discovery`]; stays valid when classes collapse into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NodeId(u32);

const ROOT: NodeId = NodeId(0);

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Text, Child>,
    /// Children that hold literal letters.
    literals: usize,
    collapsed: bool,
    class: Option<ClassId>,
    /// Children that were taken in by wider ones, and those.
    widened: HashMap<Text, Text>,
    /// Children by the stems of segments that led to them.
    stems: ByStem<NodeId>,
    /// What [`Discovery::known`] says of the shape that ends here.
    known: Option<(ClassId, Ends)>,
}

#[derive(Debug, Clone, Copy)]
struct Child {
    node: NodeId,
    literal: bool,
}

/// The classes seen so far, each with its statistics.
#[derive(Debug)]
pub struct Discovery<T> {
    nodes: Vec<Node>,
    /// Statistics by class, and the class that each became part of: itself, while it stands.
    classes: Vec<(T, ClassId)>,
    /// Whole shapes, as typed, to their class: the common case in one lookup.
    known: HashMap<Text, (ClassId, Ends)>,
}

impl<T> Default for Discovery<T> {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], classes: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Merge> Discovery<T> {
    /// Statistics of the class of `key`, which is made where it is new, and the literal ends of the key's shape.
    #[inline]
    pub fn class(&mut self, key: UntypedKey<'_>) -> (&mut T, Ends) {
        let marks = Marks::of(key.bytes, key.separators);
        let (id, ends) = match marks.as_ref().and_then(|marks| self.by_stems(marks)) {
            Some(found) => found,
            None => self.by_shape(key, marks.as_ref()),
        };
        (self.stats(id), ends)
    }

    /// The class of a key, where one whose shape has the same stems came before.
    #[inline]
    fn by_stems<'n>(&'n self, marks: &Marks<'_>) -> Option<(ClassId, Ends)> {
        let child = |node: &'n Node, stem: Option<Stem>, _: &[u8]| self.nodes.get(node.stems.get(stem?)?.0 as usize);
        marks.follow(self.nodes.first()?, child)?.known
    }

    #[inline(never)]
    fn by_shape(&mut self, mut key: UntypedKey<'_>, marks: Option<&Marks<'_>>) -> (ClassId, Ends) {
        let shape = key.shape();
        let Some(&found) = self.known.get(shape.text()) else { return self.place(shape) };
        if let Some(marks) = marks {
            self.learn(shape, marks, found);
        }
        found
    }

    /// Keeps how the stems of a shape that is known as it is typed lead to its class.
    fn learn(&mut self, shape: &Shape, marks: &Marks, found: (ClassId, Ends)) {
        let mut parts = shape.parts();
        let end = marks.follow(ROOT, |node, stem, _| {
            let place = &mut self.nodes[node.0 as usize];
            // Crowded by now, or in need of a closer look each time.
            let child = place.children.get(parts.next()?.0)?.node;
            place.stems.learn(stem?, child);
            Some(child)
        });
        if let Some(end) = end {
            self.nodes[end.0 as usize].known = Some(found);
        }
    }

    /// Statistics of every class, in no order.
    pub fn stats_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.classes.iter_mut().map(|(stats, _)| stats)
    }

    /// Adds the classes of `other`.
    pub fn merge(&mut self, other: Self) {
        let Self { mut nodes, mut classes, .. } = other;
        let mut open = vec![(ROOT, Vec::<(Text, bool)>::new())];
        while let Some((from, path)) = open.pop() {
            let node = std::mem::take(&mut nodes[from.0 as usize]);
            let place = self.descend(path.iter().map(|(text, literal)| (&**text, *literal))).0;
            if node.collapsed {
                self.collapse(place, path.len());
            }
            if let Some(id) = node.class {
                let stats = std::mem::take(&mut classes[id.0 as usize].0);
                let id = self.class_at(place);
                self.stats(id).merge(stats);
            }
            for (text, child) in node.children {
                let mut path = path.clone();
                path.push((text, child.literal));
                open.push((child.node, path));
            }
        }
    }

    /// Takes narrow kinds of identifiers into the wider ones that outnumber them. For the end: it looks at how many keys there are
    /// of each in the whole input.
    pub fn widen(&mut self) {
        let mut open = vec![(ROOT, 0)];
        while let Some((node, depth)) = open.pop() {
            for (narrow, wide) in WIDER {
                self.widen_at(node, depth, narrow, wide);
            }
            open.extend(self.nodes[node.0 as usize].children.values().map(|child| (child.node, depth + 1)));
        }
    }

    /// The text of the class that `shape` belongs to, as its parts stand collapsed by now.
    pub fn name(&self, shape: &Shape) -> String {
        let mut text = Vec::new();
        let mut node = Some(ROOT);
        for (depth, (part, literal)) in shape.parts().enumerate() {
            let place = node.and_then(|id| self.nodes.get(id.0 as usize));
            let collapsed = literal && place.is_some_and(|place| place.collapsed);
            let mut part = if collapsed { any(part, depth) } else { part.to_vec() };
            while let Some(wider) = place.and_then(|place| place.widened.get(&*part)) {
                part = wider.to_vec();
            }
            node = place.and_then(|place| place.children.get(&*part)).map(|child| child.node);
            text.extend_from_slice(&part);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Every class with its shape's text, in no order.
    pub fn into_classes(mut self) -> Vec<(String, T)> {
        let mut out = Vec::new();
        let mut open = vec![(ROOT, Vec::new())];
        while let Some((id, text)) = open.pop() {
            let node = std::mem::take(&mut self.nodes[id.0 as usize]);
            if let Some(class) = node.class {
                let stats = std::mem::take(self.stats(class));
                out.push((String::from_utf8_lossy(&text).into_owned(), stats));
            }
            for (part, child) in node.children {
                open.push((child.node, [&text[..], &part].concat()));
            }
        }
        out
    }

    /// The class of a shape that was not seen as it stands.
    #[inline(never)]
    fn place(&mut self, shape: &Shape) -> (ClassId, Ends) {
        let (node, as_typed) = self.descend(shape.parts());
        let found = (self.class_at(node), shape.ends());
        // A shape below a crowded place is not kept: there may be as many as keys.
        if as_typed {
            self.known.insert(shape.text().into(), found);
        }
        found
    }

    /// The node at the end of a path, made where it is new, and whether no part of the path was collapsed.
    fn descend<'p>(&mut self, path: impl Iterator<Item = (&'p [u8], bool)>) -> (NodeId, bool) {
        let mut node = ROOT;
        let mut as_typed = true;
        for (depth, (text, literal)) in path.enumerate() {
            if literal && !self.nodes[node.0 as usize].collapsed && !self.nodes[node.0 as usize].children.contains_key(text) {
                let fresh = self.new_node();
                self.attach(node, text.into(), Child { node: fresh, literal }, depth);
            }
            let collapsed = literal && self.nodes[node.0 as usize].collapsed;
            as_typed &= !collapsed;
            node = if collapsed { self.typed_child(node, &any(text, depth)) } else { self.typed_child(node, text) };
        }
        (node, as_typed)
    }

    /// The child of `node` under `text`, made where it is new as one that is not counted.
    fn typed_child(&mut self, node: NodeId, text: &[u8]) -> NodeId {
        if let Some(child) = self.nodes[node.0 as usize].children.get(text) {
            return child.node;
        }
        let fresh = self.new_node();
        self.nodes[node.0 as usize].children.insert(text.into(), Child { node: fresh, literal: false });
        fresh
    }

    /// Hangs a new child below `node`, and collapses the place where that makes it crowded.
    fn attach(&mut self, node: NodeId, text: Text, child: Child, depth: usize) {
        let parent = &mut self.nodes[node.0 as usize];
        parent.children.insert(text, child);
        parent.literals += usize::from(child.literal);
        if parent.literals > if depth == 0 { MOST_FIRST } else { MOST_LATER } {
            self.collapse(node, depth);
        }
    }

    /// Makes one child of all literal children of `node`, which stands at `depth`.
    fn collapse(&mut self, node: NodeId, depth: usize) {
        let parent = &mut self.nodes[node.0 as usize];
        if std::mem::replace(&mut parent.collapsed, true) {
            return;
        }
        parent.literals = 0;
        parent.stems.clear();
        let literals: Vec<_> = parent.children.extract_if(|_, child| child.literal).collect();
        for (text, child) in literals {
            let into = self.typed_child(node, &any(&text, depth));
            self.absorb(into, child.node, depth + 1);
        }
    }

    /// Moves all that is below and at `from` to `into`, which stands at `depth`.
    fn absorb(&mut self, into: NodeId, from: NodeId, depth: usize) {
        let node = std::mem::take(&mut self.nodes[from.0 as usize]);
        if let Some(class) = node.class {
            let class = self.resolve(class);
            match self.nodes[into.0 as usize].class {
                None => self.nodes[into.0 as usize].class = Some(class),
                Some(present) => {
                    let present = self.resolve(present);
                    let moved = std::mem::replace(&mut self.classes[class.0 as usize], (T::default(), present)).0;
                    self.stats(present).merge(moved);
                }
            }
        }
        if node.collapsed {
            self.collapse(into, depth);
        }
        for (text, child) in node.children {
            let target = &self.nodes[into.0 as usize];
            let text = if child.literal && target.collapsed { any(&text, depth).into() } else { text };
            match target.children.get(&text) {
                Some(present) => {
                    let present = present.node;
                    self.absorb(present, child.node, depth + 1);
                }
                None if child.literal && target.collapsed => {
                    let present = self.typed_child(into, &text);
                    self.absorb(present, child.node, depth + 1);
                }
                None => self.attach(into, text, child, depth),
            }
        }
    }

    /// Takes the children of `node` that hold one `<narrow>` into those that differ only in `<wide>`, where these have many more keys.
    fn widen_at(&mut self, node: NodeId, depth: usize, narrow: &str, wide: &str) {
        let place = &self.nodes[node.0 as usize];
        let mut pairs: Vec<(Text, Text)> = place
            .children
            .keys()
            .filter_map(|text| {
                let text = std::str::from_utf8(text).ok()?;
                let wider = text.replacen(&format!("<{narrow}>"), &format!("<{wide}>"), 1);
                let found = wider != text && place.children.contains_key(wider.as_bytes());
                found.then(|| (text.as_bytes().into(), wider.as_bytes().into()))
            })
            .collect();
        pairs.sort();
        for (text, wider) in pairs {
            let children = &self.nodes[node.0 as usize].children;
            let (Some(from), Some(into)) = (children.get(&text), children.get(&wider)) else { continue };
            let (from, into) = (from.node, into.node);
            if self.keys_below(into) >= self.keys_below(from).saturating_mul(OUTNUMBERS) {
                self.absorb(into, from, depth + 1);
                let place = &mut self.nodes[node.0 as usize];
                place.children.remove(&text);
                place.stems.clear();
                place.widened.insert(text, wider);
            }
        }
    }

    fn keys_below(&self, node: NodeId) -> u64 {
        let mut keys = 0;
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let node = &self.nodes[node.0 as usize];
            keys += node.class.map_or(0, |id| self.classes[self.resolve(id).0 as usize].0.keys());
            open.extend(node.children.values().map(|child| child.node));
        }
        keys
    }

    fn new_node(&mut self) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        id
    }

    fn class_at(&mut self, node: NodeId) -> ClassId {
        if let Some(id) = self.nodes[node.0 as usize].class {
            return id;
        }
        let id = ClassId(self.classes.len() as u32);
        self.classes.push((T::default(), id));
        self.nodes[node.0 as usize].class = Some(id);
        id
    }

    fn resolve(&self, mut id: ClassId) -> ClassId {
        loop {
            let now = self.classes[id.0 as usize].1;
            if now == id {
                return id;
            }
            id = now;
        }
    }

    #[inline]
    fn stats(&mut self, id: ClassId) -> &mut T {
        let id = self.resolve(id);
        &mut self.classes[id.0 as usize].0
    }
}

/// The text of a collapsed part: the separator in front of `text`, which every part but the first has, and `<*>`.
fn any(text: &[u8], depth: usize) -> Vec<u8> {
    let separator = if depth == 0 { &[] } else { text.get(..1).unwrap_or_default() };
    [separator, ANY].concat()
}

/// A part of a shape, and the same with its kinds of identifiers widened as [`Discovery::widen`] may do.
pub fn wider(part: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let text = std::str::from_utf8(part).unwrap_or_default();
    let mut all: Vec<String> = Vec::new();
    if text.contains('<') {
        let mut open = vec![text.to_string()];
        while let Some(text) = open.pop() {
            for (narrow, wide) in WIDER {
                let next = text.replacen(&format!("<{narrow}>"), &format!("<{wide}>"), 1);
                if next != text && !all.contains(&next) {
                    all.push(next.clone());
                    open.push(next);
                }
            }
        }
    }
    std::iter::once(Cow::Borrowed(part)).chain(all.into_iter().map(|text| Cow::Owned(text.into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Separators;
    use proptest::prelude::*;

    #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
    struct Count(u64);

    impl Merge for Count {
        fn merge(&mut self, other: Self) {
            self.0 += other.0;
        }

        fn keys(&self) -> u64 {
            self.0
        }
    }

    fn discover(keys: &[String]) -> Discovery<Count> {
        let mut discovery = Discovery::<Count>::default();
        let mut shape = Shape::default();
        for key in keys {
            let key = UntypedKey { bytes: key.as_bytes(), separators: &Separators::default(), shape: &mut shape };
            discovery.class(key).0.0 += 1;
        }
        discovery
    }

    fn sorted(discovery: Discovery<Count>) -> Vec<(String, u64)> {
        let mut classes: Vec<_> = discovery.into_classes().into_iter().map(|(text, count)| (text, count.0)).collect();
        classes.sort();
        classes
    }

    fn word(n: usize) -> String {
        n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'g')).collect()
    }

    #[test]
    fn literal_values_collapse_above_the_limit() {
        let at: Vec<String> = (0..64).map(|n| format!("user:{}:x", word(n))).collect();
        assert_eq!(sorted(discover(&at)).len(), 64);
        let above: Vec<String> = (0..65).map(|n| format!("user:{}:x", word(n))).collect();
        assert_eq!(sorted(discover(&above)), [("user:<*>:x".to_string(), 65)]);
        let first: Vec<String> = (0..1025).map(word).collect();
        assert_eq!(sorted(discover(&first)), [("<*>".to_string(), 1025)]);
        assert_eq!(sorted(discover(&first[..1024])).len(), 1024);
    }

    #[test]
    fn placeholders_are_not_counted() {
        let keys: Vec<String> = (0..500).map(|n| format!("user:{n}:{}", ["a", "b"][n % 2])).collect();
        assert_eq!(sorted(discover(&keys)), [("user:<digits>:a".to_string(), 250), ("user:<digits>:b".to_string(), 250)]);
    }

    #[test]
    fn what_is_below_a_collapse_counts_together() {
        // 65 users with two names each below them: the users collapse, 130 names are then under one parent and collapse too.
        let keys: Vec<String> = (0..65).flat_map(|n| [0, 1].map(|m| format!("user:{}:{}", word(n), word(2 * n + m)))).collect();
        assert_eq!(sorted(discover(&keys)), [("user:<*>:<*>".to_string(), 130)]);
    }

    #[test]
    fn an_accident_of_digits_joins_the_tokens_around_it() {
        let token = |n: u64| format!("s:sess_{:08x}:x", n.wrapping_mul(0x9e37_79b9) & 0xffff_ffff | 0xa000_0000);
        let mut keys: Vec<String> = (0..160).map(token).collect();
        keys.extend((0..10).map(|n| format!("s:sess_1234567{n}:x")));
        let mut discovery = discover(&keys);
        discovery.widen();
        let mut shape = Shape::default();
        shape.take(b"s:sess_12345670:x", &Separators::default());
        assert_eq!(discovery.name(&shape), "s:sess_<hex>:x");
        assert_eq!(sorted(discovery), [("s:sess_<hex>:x".to_string(), 170)]);
        keys.push("s:sess_12345600:x".into());
        let mut discovery = discover(&keys);
        discovery.widen();
        assert_eq!(sorted(discovery).len(), 2, "eleven of 160 are no accident");
    }

    proptest! {
        /// However the keys are ordered and divided, the classes are the same.
        #[test]
        fn order_and_division_change_nothing(
            numbers in proptest::collection::vec((0usize..3, 0usize..90, 0usize..90), 1..600),
            cuts in proptest::collection::vec(0usize..600, 0..4),
            rotate in 0usize..600,
        ) {
            let keys: Vec<String> =
                numbers.iter().map(|(a, b, c)| format!("{}:{}:{}", word(*a), word(*b), if c % 7 == 0 { c.to_string() } else { word(*c) })).collect();
            let whole = sorted(discover(&keys));
            let mut moved = keys.clone();
            moved.rotate_left(rotate % keys.len());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (moved.len() + 1)).chain([0, moved.len()]).collect();
            cuts.sort();
            let mut parts: Vec<_> = cuts.windows(2).map(|cut| discover(&moved[cut[0]..cut[1]])).collect();
            let mut merged = parts.pop().unwrap_or_default();
            for part in parts {
                merged.merge(part);
            }
            prop_assert_eq!(sorted(merged), whole);
        }

        /// Where no place is crowded, and however often a key like it came before, a class is a shape.
        #[test]
        fn classes_are_shapes(keys in proptest::collection::vec("[a-c{]{0,2}(:{1,2}[a-f0-9_@.]{0,4}[-_]?[0-9]{0,11}){0,3}", 1..40)) {
            let keys = [keys.clone(), keys.clone(), keys].concat();
            let mut shapes = std::collections::BTreeMap::new();
            let mut shape = Shape::default();
            for key in &keys {
                shape.take(key.as_bytes(), &Separators::default());
                *shapes.entry(String::from_utf8_lossy(shape.text()).into_owned()).or_insert(0) += 1;
            }
            let mut classes = sorted(discover(&keys));
            classes.sort();
            prop_assert_eq!(classes, shapes.into_iter().collect::<Vec<_>>());
        }
    }
}
