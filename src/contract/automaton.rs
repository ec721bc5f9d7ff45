//! Deterministic automata over the bytes of one segment.

use std::collections::{HashSet, VecDeque};

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

use crate::classify::{SHORTEST_HEX, Separators};

/// Largest automaton of the segments at one place, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// Most states that are looked at to tell whether digits lead anywhere else than others.
const MOST_STATES: usize = 256;

/// Runs of bytes that can be told apart by their digits alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// One decimal digit or more.
    Decimal,
    /// Eight hexadecimal digits or more, the letters small, with a letter and a decimal digit among them.
    Hex,
}

/// Tells which of several segments a run of bytes matches, in one pass.
#[derive(Debug)]
pub struct SegmentSet {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl SegmentSet {
    /// Joins the segments that `regexes` describe.
    ///
    /// # Errors
    /// Segments too complex to be joined.
    pub fn new(regexes: &[String]) -> Result<Self, String> {
        let too_complex =
            |_| "these patterns are too complex together: use fewer or shorter placeholders in one segment".to_string();
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(MOST_BYTES))
            .determinize_size_limit(Some(MOST_BYTES));
        let dfa = dense::Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(regex_automata::nfa::thompson::Config::new().utf8(false))
            .build_many(regexes)
            .map_err(|_| too_complex(()))?;
        let start = dfa.start_state(&start::Config::new().anchored(Anchored::Yes)).map_err(|_| too_complex(()))?;
        Ok(Self { dfa, start })
    }

    /// Calls `each` with the index of every segment that matches all of `bytes`.
    #[inline]
    pub fn matches(&self, bytes: &[u8], mut each: impl FnMut(usize)) {
        let mut state = self.start;
        for &byte in bytes {
            state = self.dfa.next_state(state, byte);
            if self.dfa.is_dead_state(state) {
                return;
            }
        }
        let end = self.dfa.next_eoi_state(state);
        if self.dfa.is_match_state(end) {
            for at in 0..self.dfa.match_len(end) {
                each(self.dfa.match_pattern(end, at).as_usize());
            }
        }
    }

    /// True where segment `at` matches all of `bytes`.
    pub fn matches_one(&self, at: usize, bytes: &[u8]) -> bool {
        let mut matched = false;
        self.matches(bytes, |found| matched |= found == at);
        matched
    }

    /// True where every run of such digits between `before` and `behind` matches the same segments; false also where that takes too long to
    /// tell.
    pub fn is_uniform(&self, before: &[u8], digits: Digits, behind: &[u8]) -> bool {
        let pass = |from, bytes: &[u8]| bytes.iter().fold(from, |state, &byte| self.dfa.next_state(state, byte));
        let matched = |state| {
            let end = self.dfa.next_eoi_state(pass(state, behind));
            let patterns = if self.dfa.is_match_state(end) { self.dfa.match_len(end) } else { 0 };
            (0..patterns).map(|at| self.dfa.match_pattern(end, at)).collect::<Vec<_>>()
        };
        let alphabet: &[u8] = match digits {
            Digits::Decimal => b"0123456789",
            Digits::Hex => b"0123456789abcdef",
        };
        // With how many digits there were, as far as that counts, and whether a letter and a digit were among them.
        let begin = (pass(self.start, before), 0u8, false, false);
        let (mut seen, mut open) = (HashSet::from([begin]), vec![begin]);
        let mut all: Option<Vec<_>> = None;
        while let Some((state, len, letter, decimal)) = open.pop() {
            let is_whole = match digits {
                Digits::Decimal => len > 0,
                Digits::Hex => usize::from(len) >= SHORTEST_HEX && letter && decimal,
            };
            if is_whole {
                let here = matched(state);
                if all.get_or_insert_with(|| here.clone()) != &here {
                    return false;
                }
            }
            for &byte in alphabet {
                let len = (len + 1).min(SHORTEST_HEX as u8);
                let next = (
                    self.dfa.next_state(state, byte),
                    len,
                    letter || byte.is_ascii_lowercase(),
                    decimal || byte.is_ascii_digit(),
                );
                if seen.insert(next) {
                    open.push(next);
                }
            }
            if seen.len() > MOST_STATES {
                return false;
            }
        }
        true
    }

    /// The shortest text that both sets match without a separator in it, where there is any.
    pub fn shared(&self, other: &Self, separators: &Separators) -> Option<Vec<u8>> {
        let accepts = |set: &Self, state| {
            let end = set.dfa.next_eoi_state(state);
            set.dfa.is_match_state(end)
        };
        let mut seen = HashSet::from([(self.start, other.start)]);
        let mut open = VecDeque::from([(self.start, other.start, Vec::new())]);
        // Readable bytes first, so that the example is one that a person would write.
        let order: Vec<u8> = (b'0'..=b'9').chain(b'a'..=b'z').chain(0..=255).filter(|&byte| !separators.has(byte)).collect();
        while let Some((a, b, text)) = open.pop_front() {
            if !text.is_empty() && accepts(self, a) && accepts(other, b) {
                return Some(text);
            }
            for &byte in &order {
                let (x, y) = (self.dfa.next_state(a, byte), other.dfa.next_state(b, byte));
                if !self.dfa.is_dead_state(x) && !other.dfa.is_dead_state(y) && seen.insert((x, y)) {
                    open.push_back((x, y, [&text[..], &[byte]].concat()));
                }
            }
        }
        None
    }
}
