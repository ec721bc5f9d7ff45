//! Contracts: what patterns match, which class a key belongs to, and what is said of a file with mistakes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::cmp::{Ordering, Reverse};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use rdbscope::contract::{Budget, Capacity, Contracts, Limits, Ttl};
use rdbscope::findings::{Rule, Severity};
use rdbscope::key_text;

/// The segments that every generated file defines; the model below knows them by itself.
const SEGMENTS: &str = "\
[segments]
env = [\"prod\", \"staging\", \"dev\"]
num = [\"1\", \"22\", \"2026-08\"]
tenant = \"shop-<digits>\"
word = \"user\"
";

const ENV: &[&str] = &["prod", "staging", "dev"];
const NUM: &[&str] = &["1", "22", "2026-08"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Digits,
    Int,
    Uuid,
    Ulid,
    Hex,
    Hex4,
    Slug,
    Date,
    Hour,
    Week,
    Month,
    Version,
    Base64Url,
    Email,
    Phone,
    Ip,
    Any,
}

const KINDS: [Kind; 17] = [
    Kind::Digits,
    Kind::Int,
    Kind::Uuid,
    Kind::Ulid,
    Kind::Hex,
    Kind::Hex4,
    Kind::Slug,
    Kind::Date,
    Kind::Hour,
    Kind::Week,
    Kind::Month,
    Kind::Version,
    Kind::Base64Url,
    Kind::Email,
    Kind::Phone,
    Kind::Ip,
    Kind::Any,
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(&'static str),
    OneOf(&'static str, &'static [&'static str]),
    Kind(Kind),
    /// `shop-<digits>` by its name.
    Tenant,
    /// `user` by its name.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Exact,
    Optional,
    Repeated,
    Rest,
}

/// A pattern as a test thinks of it.
#[derive(Debug, Clone)]
struct Model {
    segments: Vec<Vec<Piece>>,
    end: End,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits",
            Self::Int => "int",
            Self::Uuid => "uuid",
            Self::Ulid => "ulid",
            Self::Hex => "hex",
            Self::Hex4 => "hex(4)",
            Self::Slug => "slug",
            Self::Date => "date",
            Self::Hour => "hour",
            Self::Week => "week",
            Self::Month => "month",
            Self::Version => "version",
            Self::Base64Url => "base64url",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Ip => "ip",
            Self::Any => "*",
        }
    }

    /// The place in the order that the design gives.
    fn width(self) -> usize {
        match self {
            Self::Date | Self::Hour | Self::Week | Self::Month | Self::Version => 3,
            Self::Uuid | Self::Ulid | Self::Hex | Self::Hex4 | Self::Email | Self::Phone | Self::Ip => 4,
            Self::Digits => 5,
            Self::Int => 6,
            Self::Slug | Self::Base64Url => 7,
            Self::Any => 8,
        }
    }

    /// A text of this kind; none has a separator of these tests in it.
    fn texts(self) -> BoxedStrategy<String> {
        let date = (1970u32..2100, 1u32..13, 1u32..32);
        match self {
            Self::Digits => "[0-9]{1,12}".boxed(),
            Self::Int => "-?[0-9]{1,9}".boxed(),
            Self::Uuid => "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".boxed(),
            Self::Ulid => "[0-7][0-9A-HJKMNP-TV-Z]{25}".boxed(),
            Self::Hex => "[0-9a-fA-F]{1,20}".boxed(),
            Self::Hex4 => "[0-9a-fA-F]{4}".boxed(),
            Self::Slug => "[0-9A-Za-z_.é商-]{1,12}".boxed(),
            Self::Date => {
                (date, select(vec!["-", "_", ".", ""])).prop_map(|((y, m, d), j)| format!("{y}{j}{m:02}{j}{d:02}")).boxed()
            }
            Self::Hour => (date, 0u32..24, select(vec!["T", "t", "_", "-", ""]))
                .prop_map(|((y, m, d), h, joiner)| match joiner {
                    "" => format!("{y}{m:02}{d:02}{h:02}"),
                    _ => format!("{y}-{m:02}-{d:02}{joiner}{h:02}"),
                })
                .boxed(),
            Self::Week => {
                (1970u32..2100, 1u32..54, select(vec!["W", "w"])).prop_map(|(y, w, mark)| format!("{y}-{mark}{w:02}")).boxed()
            }
            Self::Month => (1970u32..2100, 1u32..13).prop_map(|(y, m)| format!("{y}-{m:02}")).boxed(),
            Self::Version => "v?[0-9]{1,4}([.][0-9]{1,4}){0,3}".boxed(),
            Self::Base64Url => "[0-9A-Za-z_-]{1,20}={0,2}".boxed(),
            Self::Email => "[0-9A-Za-z_.%+-]{1,8}@[0-9A-Za-z-]{1,8}([.][0-9A-Za-z-]{1,8}){1,2}".boxed(),
            Self::Phone => "[+][0-9]{8,15}|1[3-9][0-9]{9}".boxed(),
            Self::Ip => "[0-9]{1,3}([.][0-9]{1,3}){3}".boxed(),
            Self::Any => "[^:/|]{1,10}".boxed(),
        }
    }

    /// Whether all of `text` is of this kind, said by hand.
    fn takes(self, text: &[u8]) -> bool {
        let all = |text: &[u8], is: fn(u8) -> bool| !text.is_empty() && text.iter().all(|b| is(*b));
        let digits = |text: &[u8]| all(text, |b| b.is_ascii_digit());
        let hex = |text: &[u8]| all(text, |b| b.is_ascii_hexdigit());
        let between = |text: &[u8], least: u32, most: u32| {
            digits(text) && std::str::from_utf8(text).unwrap().parse::<u32>().is_ok_and(|n| (least..=most).contains(&n))
        };
        let year = |text: &[u8]| text.len() == 4 && between(text, 1970, 2099);
        let month = |text: &[u8]| text.len() == 2 && between(text, 1, 12);
        let day = |text: &[u8]| text.len() == 2 && between(text, 1, 31);
        let compact_date = |text: &[u8]| text.len() == 8 && year(&text[..4]) && month(&text[4..6]) && day(&text[6..]);
        let joined_date = |text: &[u8], joiners: &[u8]| {
            text.len() == 10
                && joiners.contains(&text[4])
                && text[4] == text[7]
                && year(&text[..4])
                && month(&text[5..7])
                && day(&text[8..])
        };
        let hour = |text: &[u8]| text.len() == 2 && between(text, 0, 23);
        let split = |text: &[u8], at: u8| text.split(|b| *b == at).map(<[u8]>::to_vec).collect::<Vec<_>>();
        match self {
            Self::Digits => digits(text),
            Self::Int => digits(text.strip_prefix(b"-").unwrap_or(text)),
            Self::Uuid => {
                let parts = split(text, b'-');
                parts.iter().map(Vec::len).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| hex(part))
            }
            Self::Ulid => {
                text.len() == 26
                    && text[0] <= b'7'
                    && all(text, |b| (b.is_ascii_digit() || b.is_ascii_uppercase()) && !b"ILOU".contains(&b))
            }
            Self::Hex => hex(text),
            Self::Hex4 => hex(text) && text.len() == 4,
            Self::Slug => all(text, |b| b.is_ascii_alphanumeric() || b >= 0x80 || b"_.-".contains(&b)),
            Self::Date => compact_date(text) || joined_date(text, b"-_."),
            Self::Hour => {
                (text.len() == 10 && compact_date(&text[..8]) && hour(&text[8..]))
                    || (text.len() == 13 && joined_date(&text[..10], b"-") && b"Tt_-".contains(&text[10]) && hour(&text[11..]))
            }
            Self::Week => {
                text.len() == 8 && year(&text[..4]) && text[4] == b'-' && b"Ww".contains(&text[5]) && between(&text[6..], 1, 53)
            }
            Self::Month => text.len() == 7 && year(&text[..4]) && text[4] == b'-' && month(&text[5..]),
            Self::Version => {
                let parts = split(text.strip_prefix(b"v").unwrap_or(text), b'.');
                parts.len() <= 4 && parts.iter().all(|part| digits(part))
            }
            Self::Base64Url => {
                let ends = text.iter().rev().take_while(|b| **b == b'=').count();
                ends <= 2 && all(&text[..text.len() - ends], |b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
            }
            Self::Email => {
                let parts = split(text, b'@');
                parts.len() == 2
                    && all(&parts[0], |b| b.is_ascii_alphanumeric() || b >= 0x80 || b"_.%+-".contains(&b))
                    && parts[1].contains(&b'.')
                    && split(&parts[1], b'.')
                        .iter()
                        .all(|label| all(label, |b| b.is_ascii_alphanumeric() || b >= 0x80 || b == b'-'))
            }
            Self::Phone => match text {
                [b'+', rest @ ..] => digits(rest) && (8..=15).contains(&rest.len()),
                [b'1', second, ..] => digits(text) && text.len() == 11 && *second >= b'3',
                _ => false,
            },
            Self::Ip => {
                let parts = split(text, b'.');
                let v4 = parts.len() == 4 && parts.iter().all(|part| digits(part) && part.len() <= 3);
                v4 || (text.contains(&b':') && all(text, |b| b.is_ascii_hexdigit() || b".:".contains(&b)))
            }
            Self::Any => !text.is_empty(),
        }
    }
}

impl Piece {
    fn written(&self) -> String {
        match self {
            Self::Text(text) => (*text).into(),
            Self::OneOf(name, _) => format!("<{name}>"),
            Self::Kind(kind) => format!("<{}>", kind.name()),
            Self::Tenant => "<tenant>".into(),
            Self::Word => "<word>".into(),
        }
    }

    /// What its name stands for.
    fn meaning(&self) -> Vec<Self> {
        match self {
            Self::Tenant => vec![Self::Text("shop-"), Self::Kind(Kind::Digits)],
            Self::Word => vec![Self::Text("user")],
            piece => vec![piece.clone()],
        }
    }

    fn texts(&self) -> BoxedStrategy<String> {
        match self {
            Self::Text(text) => Just(text.to_string()).boxed(),
            Self::OneOf(_, values) => select(*values).prop_map(str::to_string).boxed(),
            Self::Kind(kind) => kind.texts(),
            Self::Tenant => Kind::Digits.texts().prop_map(|n| format!("shop-{n}")).boxed(),
            Self::Word => Just("user".to_string()).boxed(),
        }
    }
}

fn meaning(segment: &[Piece]) -> Vec<Piece> {
    segment.iter().flat_map(Piece::meaning).collect()
}

/// Whether the pieces match all of `text`, tried at every length.
fn matches_segment(pieces: &[Piece], text: &[u8]) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return text.is_empty() };
    match first {
        Piece::Text(literal) => text.strip_prefix(literal.as_bytes()).is_some_and(|after| matches_segment(rest, after)),
        Piece::OneOf(_, values) => {
            values.iter().any(|value| text.strip_prefix(value.as_bytes()).is_some_and(|after| matches_segment(rest, after)))
        }
        Piece::Kind(kind) => (1..=text.len()).any(|n| kind.takes(&text[..n]) && matches_segment(rest, &text[n..])),
        Piece::Tenant | Piece::Word => unreachable!("named pieces are replaced by what they mean"),
    }
}

/// How narrow a segment is, and the bytes of its text where it is mixed.
fn width(segment: &[Piece]) -> (usize, Reverse<usize>) {
    let pieces = meaning(segment);
    let text: usize = pieces.iter().map(|piece| if let Piece::Text(text) = piece { text.len() } else { 0 }).sum();
    match &pieces[..] {
        pieces if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) => (0, Reverse(0)),
        [Piece::OneOf(..)] => (1, Reverse(0)),
        [Piece::Kind(kind)] => (kind.width(), Reverse(0)),
        _ => (2, Reverse(text)),
    }
}

/// Segments of a key; a run of separators is one.
fn segments_of(key: &[u8], separators: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = vec![Vec::new()];
    let mut in_run = false;
    for byte in key {
        let separates = separators.contains(byte);
        if separates && !in_run {
            segments.push(Vec::new());
        } else if !separates {
            segments.last_mut().unwrap().push(*byte);
        }
        in_run = separates;
    }
    segments
}

impl Model {
    fn written(&self, separator: char) -> String {
        let last = self.segments.len() - 1;
        let segment = |(at, pieces): (usize, &Vec<Piece>)| {
            let text: String = pieces.iter().map(Piece::written).collect();
            match self.end {
                End::Optional if at == last => text.replace('>', "?>"),
                End::Repeated if at == last => text.replace('>', "+>"),
                _ => text,
            }
        };
        let mut texts: Vec<String> = self.segments.iter().enumerate().map(segment).collect();
        if self.end == End::Rest {
            texts.push("<**>".into());
        }
        texts.join(&separator.to_string())
    }

    fn matches(&self, key: &[u8], separators: &[u8]) -> bool {
        let key = segments_of(key, separators);
        let n = self.segments.len();
        let fits = match self.end {
            End::Exact => key.len() == n,
            End::Optional => key.len() == n || key.len() + 1 == n,
            End::Repeated | End::Rest => key.len() >= n,
        };
        let pieces = |at: usize| match self.end {
            End::Rest if at >= n => None,
            _ => Some(meaning(&self.segments[at.min(n - 1)])),
        };
        fits && key.iter().enumerate().all(|(at, text)| pieces(at).is_none_or(|pieces| matches_segment(&pieces, text)))
    }

    /// The order of the design: `<**>` last of all, then more literal segments, then the narrower segment from the left. What may be
    /// repeated stands for as many segments as one likes; where nothing follows is narrower than where anything may.
    fn precedence(&self, other: &Self) -> Ordering {
        let literals = |model: &Self| Reverse(model.segments.iter().filter(|segment| width(segment).0 == 0).count());
        let at = |model: &Self, place: usize| match model.segments.get(place) {
            Some(segment) => Some(width(segment)),
            None if model.end == End::Rest => Some((9, Reverse(0))),
            None if model.end == End::Repeated => model.segments.last().map(|segment| width(segment)),
            None => None,
        };
        let places = self.segments.len().max(other.segments.len()) + 2;
        (self.end == End::Rest)
            .cmp(&(other.end == End::Rest))
            .then_with(|| literals(self).cmp(&literals(other)))
            .then_with(|| (0..places).map(|place| at(self, place)).cmp((0..places).map(|place| at(other, place))))
            .then_with(|| self.end.cmp(&other.end))
            .then_with(|| other.segments.len().cmp(&self.segments.len()))
    }

    fn keys(&self, separators: &'static [u8]) -> BoxedStrategy<Vec<u8>> {
        let n = self.segments.len();
        let text = |at: usize| {
            self.segments[at]
                .iter()
                .map(Piece::texts)
                .collect::<Vec<_>>()
                .prop_map(|texts: Vec<String>| texts.concat().into_bytes())
        };
        let whole: Vec<_> = (0..n).map(text).collect();
        let more = match self.end {
            End::Exact => Just((false, Vec::new())).boxed(),
            End::Optional => (any::<bool>(), Just(Vec::new())).boxed(),
            End::Repeated => (Just(false), vec(text(n - 1), 0..3)).boxed(),
            End::Rest => (Just(false), vec("[^:/|]{0,6}".prop_map(String::into_bytes), 0..3)).boxed(),
        };
        (whole, more, vec(select(separators), 8))
            .prop_map(|(mut segments, (shorter, more), separators)| {
                if shorter && segments.len() > 1 {
                    segments.pop();
                }
                segments.extend(more);
                // Two empty segments in a row are one run of separators.
                let inner = segments.len() - 1;
                let kept = segments.into_iter().enumerate().filter(|(at, text)| !text.is_empty() || *at == 0 || *at == inner);
                let mut key = Vec::new();
                for (at, (_, text)) in kept.enumerate() {
                    if at > 0 {
                        key.push(separators[at % separators.len()]);
                    }
                    key.extend(text);
                }
                key
            })
            .boxed()
    }
}

fn segments() -> impl Strategy<Value = Vec<Piece>> {
    let text = || select(vec!["user", "order", "a", "v", "1"]).prop_map(Piece::Text);
    let kind = || select(KINDS.to_vec()).prop_map(Piece::Kind);
    // Two kinds of fixed length within one segment make automata that are refused, and long in the making.
    let short =
        vec![Kind::Digits, Kind::Int, Kind::Hex, Kind::Hex4, Kind::Slug, Kind::Week, Kind::Month, Kind::Version, Kind::Any];
    let short = select(short).prop_map(Piece::Kind);
    let joined = select(vec!["shop-", "v", "{", "}", "1", "a_", ".", "商"]).prop_map(Piece::Text);
    let named = || select(vec![Piece::OneOf("env", ENV), Piece::OneOf("num", NUM), Piece::Tenant, Piece::Word]);
    prop_oneof![
        6 => text().prop_map(|piece| vec![piece]),
        4 => kind().prop_map(|piece| vec![piece]),
        3 => named().prop_map(|piece| vec![piece]),
        3 => vec(prop_oneof![2 => joined, 2 => short, 1 => named()], 2..4),
    ]
}

fn models() -> impl Strategy<Value = Model> {
    let ends = prop_oneof![6 => Just(End::Exact), 1 => Just(End::Optional), 1 => Just(End::Repeated), 1 => Just(End::Rest)];
    (vec(segments(), 1..5), ends).prop_map(|(segments, end)| {
        // Only a whole segment that is a placeholder can be optional or repeated.
        let whole = matches!(segments.last().unwrap()[..], [ref piece] if !matches!(piece, Piece::Text(_)));
        let end = if whole || end == End::Rest { end } else { End::Exact };
        Model { segments, end }
    })
}

fn file(models: &[Model], separators: &[u8]) -> String {
    let list: Vec<String> = separators.iter().map(|byte| format!("\"{}\"", char::from(*byte))).collect();
    let mut text = format!("separator = [{}]\n{SEGMENTS}", list.join(", "));
    for (at, model) in models.iter().enumerate() {
        let pattern = model.written(char::from(separators[at % separators.len()]));
        text.push_str(&format!("[[class]]\nname = \"c{at}\"\npattern = '{pattern}'\n"));
    }
    text
}

const SEPARATORS: [&[u8]; 3] = [b":", b":/", b"|"];

/// A key of one of the models, or one like it.
fn keys_like(models: Vec<Model>, separators: &'static [u8]) -> impl Strategy<Value = (Vec<Model>, &'static [u8], Vec<Vec<u8>>)> {
    let key = |model: &Model| (model.keys(separators), 0usize..7, any::<Index>(), any::<u8>(), segments());
    let per_model: Vec<_> = models.iter().map(|model| vec(key(model), 2..5)).collect();
    per_model.prop_map(move |groups| {
        let keys =
            groups.into_iter().flatten().map(|(key, what, at, byte, other)| mutated(key, what, at, byte, &other, separators[0]));
        (models.clone(), separators, keys.collect())
    })
}

fn mutated(mut key: Vec<u8>, what: usize, at: Index, byte: u8, other: &[Piece], separator: u8) -> Vec<u8> {
    let place = at.index(key.len() + 1);
    match what {
        0 if place < key.len() => key[place] = byte,
        1 => key.insert(place, separator),
        2 if place < key.len() => drop(key.remove(place)),
        3 => {
            key.push(separator);
            key.extend(other.iter().map(Piece::written).collect::<String>().into_bytes());
        }
        4 => key.truncate(place),
        _ => {}
    }
    key
}

fn sets() -> impl Strategy<Value = (Vec<Model>, &'static [u8], Vec<Vec<u8>>)> {
    (vec(models(), 1..8), select(SEPARATORS.to_vec())).prop_flat_map(|(models, separators)| keys_like(models, separators))
}

fn one() -> impl Strategy<Value = (Model, &'static [u8], Vec<u8>)> {
    (models(), select(SEPARATORS.to_vec()))
        .prop_flat_map(|(model, separators)| (Just(model.clone()), Just(separators), model.keys(separators)))
}

fn parse(models: &[Model], separators: &[u8]) -> Result<Contracts, Vec<rdbscope::contract::Mistake>> {
    Contracts::parse(&file(models, separators))
}

/// The example of an ambiguity: between `take the key '` and `', and neither`.
fn example(message: &str) -> Option<Vec<u8>> {
    let (_, after) = message.split_once("both take the key '")?;
    let (text, _) = after.split_once("', and neither is narrower")?;
    Some(key_text::unescape(text).unwrap())
}

/// The numbers of the classes that a message on an ambiguity names.
fn named(message: &str) -> [usize; 2] {
    let number = |after: &str| {
        let text = &message[message.find(after).unwrap() + after.len()..];
        text[..text.find('\'').unwrap()].parse().unwrap()
    };
    [number("the pattern of 'c"), number("that of 'c")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_key_of_a_pattern_belongs_to_its_class((model, separators, key) in one()) {
        let contracts = parse(std::slice::from_ref(&model), separators).unwrap();
        prop_assert_eq!(contracts.class_of(&key), Some(0), "{} and {}", model.written('|'), key_text::escape(&key));
        // The reference of the next test is held against the same keys.
        prop_assert!(model.matches(&key, separators));
    }

    #[test]
    fn the_compiled_matcher_is_the_naive_one((models, separators, keys) in sets()) {
        let contracts = match parse(&models, separators) {
            Ok(contracts) => contracts,
            Err(mistakes) => {
                for mistake in mistakes {
                    let key = example(&mistake.message).unwrap_or_else(|| panic!("{mistake}"));
                    let [a, b] = named(&mistake.message).map(|at| &models[at]);
                    prop_assert!(a.matches(&key, separators) && b.matches(&key, separators), "{}", mistake);
                    prop_assert_eq!(a.precedence(b), Ordering::Equal, "{}", mistake);
                }
                return Ok(());
            }
        };
        for key in keys {
            let mut matching: Vec<usize> = (0..models.len()).filter(|at| models[*at].matches(&key, separators)).collect();
            matching.sort_by(|a, b| models[*a].precedence(&models[*b]));
            if let [first, second, ..] = matching[..] {
                prop_assert_eq!(models[first].precedence(&models[second]), Ordering::Less, "not reported: {}", key_text::escape(&key));
            }
            prop_assert_eq!(contracts.class_of(&key), matching.first().copied(), "{}\n{}", file(&models, separators), key_text::escape(&key));
        }
    }

    #[test]
    fn a_run_of_separators_is_one((models, separators, keys) in sets(), times in 2usize..4) {
        let Ok(contracts) = parse(&models, separators) else { return Ok(()) };
        for key in keys {
            let again: Vec<u8> = key
                .iter()
                .flat_map(|byte| std::iter::repeat_n(*byte, if separators.contains(byte) { times } else { 1 }))
                .collect();
            prop_assert_eq!(contracts.class_of(&again), contracts.class_of(&key), "{}", key_text::escape(&key));
        }
    }
}

/// Which of several patterns takes a key.
#[track_caller]
fn winner(patterns: &[&str], key: &str) -> Option<String> {
    let classes: Vec<String> =
        patterns.iter().map(|pattern| format!("[[class]]\nname = '{pattern}'\npattern = '{pattern}'\n")).collect();
    // The order of the file means nothing.
    let of = |text: String| {
        let contracts = Contracts::parse(&format!("{SEGMENTS}{text}")).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        contracts.class_of(key.as_bytes()).map(|at| contracts.classes[at].name.clone())
    };
    let found = of(classes.concat());
    assert_eq!(of(classes.iter().rev().cloned().collect()), found);
    found
}

#[test]
fn the_more_constrained_pattern_wins() {
    // Each takes the key; they stand from the narrowest to the widest.
    let order = [
        ("2026-08", vec!["a:2026-08", "a:<num>", "a:2026<int>", "a:<month>", "a:<slug>", "a:<*>", "a:<**>"]),
        ("13800000002", vec!["a:138<digits>", "a:1<digits>", "a:<phone>", "a:<digits>", "a:<int>", "a:<base64url>", "a:<any>"]),
        ("v2", vec!["a:v<digits>", "a:<version>", "a:<slug>", "a:<*>"]),
    ];
    for (segment, patterns) in order {
        let key = format!("a:{segment}");
        for first in 0..patterns.len() {
            assert_eq!(winner(&patterns[first..], &key).as_deref(), Some(patterns[first]), "{key}");
        }
    }
    // More literal segments win before anything else, wherever they are.
    assert_eq!(winner(&["<*>:x:y", "a:<digits>:<digits>"], "a:x:y").as_deref(), Some("<*>:x:y"));
    assert_eq!(winner(&["a:<env>:<*>", "a:<*>:<digits>"], "a:prod:1").as_deref(), Some("a:<env>:<*>"));
    assert_eq!(winner(&["a:b:<**>", "a:<*>:<*>"], "a:b:c").as_deref(), Some("a:<*>:<*>"));
}

#[test]
fn a_tail_that_takes_more_is_wider() {
    let cases: [(&[&str], &str, &str); 11] = [
        (&["a", "a:<digits?>"], "a", "a"),
        (&["a", "a:<digits?>"], "a:1", "a:<digits?>"),
        (&["a:<digits>", "a:<digits?>"], "a:1", "a:<digits>"),
        (&["a:<digits?>", "a:<digits+>"], "a:1", "a:<digits?>"),
        (&["a:<digits>:<digits>", "a:<digits+>"], "a:1:2", "a:<digits>:<digits>"),
        (&["a:<digits>:<*>", "a:<digits+>"], "a:1:2", "a:<digits+>"),
        (&["a:<digits>:<digits+>", "a:<digits+>"], "a:1:2", "a:<digits>:<digits+>"),
        (&["a:<digits>:<digits+>", "a:<digits+>"], "a:1", "a:<digits+>"),
        (&["a:<digits>:<**>", "a:<**>"], "a:1:x", "a:<digits>:<**>"),
        (&["a:<digits>:<**>", "a:<**>"], "a:x", "a:<**>"),
        (&["a:b:<**>", "a:<digits>:<**>", "a:<**>"], "a:b", "a:b:<**>"),
    ];
    for (patterns, key, expected) in cases {
        assert_eq!(winner(patterns, key).as_deref(), Some(expected), "{patterns:?} and {key}");
    }
}

#[test]
fn a_class_for_the_rest() {
    let patterns = ["<**>", "<*>", "a:<**>", "<any+>"];
    for (key, pattern) in [
        ("", "<**>"),
        (":", "<**>"),
        ("x", "<*>"),
        ("a", "<*>"),
        ("a:b:", "a:<**>"),
        ("a:b", "<any+>"),
        ("x:y", "<any+>"),
        ("x:", "<**>"),
    ] {
        assert_eq!(winner(&patterns, key).as_deref(), Some(pattern), "{key:?}");
    }
    let two = "[[class]]\nname = 'a'\npattern = '<**>'\n[[class]]\nname = 'b'\npattern = '<**>'\n";
    assert!(mistakes(two)[0].starts_with("6:11: the pattern of 'b' and that of 'a' in line 3 both take the key ''"));
}

#[test]
fn a_hash_tag_is_literal() {
    assert_eq!(
        winner(&["cart:{<tenant>:<digits>}:items"], "cart:{shop-7:1001}:items").as_deref(),
        Some("cart:{<tenant>:<digits>}:items")
    );
    assert_eq!(winner(&["cart:{<tenant>:<digits>}:items"], "cart:shop-7:1001:items"), None);
}

#[test]
fn several_separators() {
    let contracts =
        Contracts::parse("separator = [\":\", \"/\"]\n[[class]]\nname = \"a\"\npattern = \"x/<digits>:y\"\n").unwrap();
    for (key, class) in [("x:1:y", Some(0)), ("x/1/y", Some(0)), ("x:/1//y", Some(0)), ("x|1|y", None), ("x/1", None)] {
        assert_eq!(contracts.class_of(key.as_bytes()), class, "{key}");
    }
}

/// Every mistake in a file as its message says it.
fn mistakes(text: &str) -> Vec<String> {
    match Contracts::parse(text) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
    }
}

/// What is said of a class with `pattern` in line 2.
#[track_caller]
fn pattern_mistake(pattern: &str, expected: &str) {
    let text = format!("[[class]]\npattern = '{pattern}'\nname = 'a'\n");
    assert_eq!(mistakes(&text), [format!("2:11: {expected}")], "{pattern}");
}

const NAMES: &str =
    "digits, int, uuid, ulid, hex, hex(n), slug, date, hour, week, month, version, base64url, email, phone, ip, any or *";

#[test]
fn mistakes_in_patterns() {
    pattern_mistake("a:<digit>", "no placeholder '<digit>': did you mean '<digits>'?");
    pattern_mistake("a:<UUID>", "no placeholder '<UUID>': did you mean '<uuid>'?");
    pattern_mistake("a:<customer>", &format!("no placeholder '<customer>': define it under [segments], or use {NAMES}"));
    pattern_mistake("a:<hex(0)>", &format!("no placeholder '<hex(0)>': define it under [segments], or use {NAMES}"));
    pattern_mistake("a:<>", &format!("a placeholder has no name: define it under [segments], or use {NAMES}"));
    pattern_mistake("a:<digits+>:b", "'<digits+>' can only be the last segment");
    pattern_mistake("a:<digits?>:b", "'<digits?>' can only be the last segment");
    pattern_mistake("a:<**>:b", "'<**>' can only be the last segment");
    pattern_mistake("a:<digits", "a placeholder is not closed: write '>' after its name");
    pattern_mistake("a:<di<gits>", "'<' inside a placeholder: close the one before with '>'");
    pattern_mistake("a>:b", "'>' without '<': escape literal brackets as \\x3c and \\x3e");
    pattern_mistake("a::b", "a segment is empty: a run of separators counts as one, so write one");
    pattern_mistake("a\\xzz:b", "'a\\xzz' has an escape that key text does not have");
    pattern_mistake("", "a pattern is empty: write the text of a key, with <placeholders> for what varies");
}

#[test]
fn a_placeholder_is_looked_for_among_the_definitions_too() {
    let text = "[segments]\ncustomer = \"<digits>\"\n[[class]]\nname = \"a\"\npattern = \"a:<custmer>\"\n";
    assert_eq!(mistakes(text), ["5:11: no placeholder '<custmer>': did you mean '<customer>'?"]);
}

/// A file whose mistake is in the line after the first two, which are a class.
#[track_caller]
fn class_mistake(line: &str, expected: &str) {
    let text = format!("[[class]]\nname = \"a\"\npattern = \"a\"\n{line}\n");
    assert_eq!(mistakes(&text), [expected], "{line}");
}

#[test]
fn mistakes_in_classes() {
    let ttl = "write \"permanent\", or a table such as { min = \"120s\", max = \"150s\" }";
    class_mistake("ttl = { min = \"soon\" }", "4:7: 'soon' is no duration: write 120s, 15m, 6h or 30d");
    class_mistake("ttl = { min = \"2h\", max = \"1h\" }", "4:7: ttl min is above max: the shorter one is min");
    class_mistake("ttl = \"1h\"", "4:7: ttl '1h' is neither \"permanent\" nor a range: write ttl = { max = \"1h\" }");
    class_mistake("ttl = {}", "4:7: a ttl range needs min, max or both");
    class_mistake("ttl = 120", &format!("4:7: {ttl}"));
    class_mistake("ttl = { maximum = \"1h\" }", &format!("4:7: {ttl}"));
    class_mistake(
        "type = \"strin\"",
        "4:8: no type 'strin': use string, list, set, zset, hash, stream, array, or the nine characters of a module's type",
    );
    class_mistake(
        "owners = \"x\"",
        "4:1: unknown field `owners`, expected one of `name`, `pattern`, `owner`, `source`, `type`, `ttl`, `version`, `rebuild`, \
         `delete`, `backup`, `budget`, `limits`, `rules`: did you mean `owner`?",
    );
    class_mistake("version = \"v2\"", "4:11: invalid type: string \"v2\", expected u64");
    class_mistake("rebuild = \"yes\"", "4:11: invalid type: string \"yes\", expected a boolean");
    class_mistake("budget = { keys = 1, peak_factor = 0.5 }", "4:10: peak_factor is the peak over the usual: 1 or more");
    class_mistake(
        "budget = { key = 1 }",
        "4:12: unknown field `key`, expected one of `keys`, `memory_bytes`, `peak_factor`: did you mean `keys`?",
    );
    class_mistake("limits = { databases = [0] }", "4:24: databases belong into [limits] of the whole file");
    class_mistake(
        "limits = { key_bytes = \"10xb\" }",
        "4:24: '10xb' is no size: write 512, 10KB (10,240 bytes), 10k (10,000), 1mb or 64gb",
    );
    class_mistake(
        "[[class]]\nname = \"a\"\npattern = \"b\"",
        "5:8: a class named 'a' is there already, in line 2: give it another name",
    );
    class_mistake(
        "[[class]]\nname = \"(b\"\npattern = \"b\"",
        "5:8: a class needs a printable name that does not begin with '('",
    );
    class_mistake("[[class]]\nname = \"b\"", "4:1: missing field `pattern`");
    class_mistake("rules = { ttl-lots = \"off\" }", "4:11: no rule 'ttl-lots': did you mean 'ttl-lost'?");
    class_mistake(
        "rules = { everything = \"off\" }",
        "4:11: no rule 'everything': docs/rules.md lists them, and the kinds that stand for several",
    );
    class_mistake("rules = { ttl-lost = \"fatal\" }", "4:22: no severity 'fatal': use error, warning, note or off");
}

#[test]
fn two_patterns_that_share_a_key_with_equal_right() {
    class_mistake(
        "[[class]]\nname = \"b\"\npattern = \"b:<slug>\"\n[[class]]\nname = \"c\"\npattern = \"b:<base64url>\"",
        "9:11: the pattern of 'c' and that of 'b' in line 6 both take the key 'b:0', and neither is narrower: put literal text or a \
         narrower placeholder into one of them",
    );
    // Where the last segment is missing, nothing keeps them apart.
    let optional = "[segments]\nx = [\"p\"]\ny = [\"q\"]\n[[class]]\nname = \"b\"\npattern = \"b:<x?>\"\n[[class]]\nname = \"c\"\npattern = \"b:<y?>\"\n";
    assert_eq!(
        mistakes(optional),
        [
            "9:11: the pattern of 'c' and that of 'b' in line 6 both take the key 'b', and neither is narrower: put literal text or a \
             narrower placeholder into one of them"
        ]
    );
    assert_eq!(mistakes(&optional.replace('?', "")), [""; 0], "with it they are apart");
    // A separator cannot be part of the example: these two share dates without a dash only.
    let dash =
        "separator = \"-\"\n[[class]]\nname = \"b\"\npattern = \"b-<date>\"\n[[class]]\nname = \"c\"\npattern = \"b-<hour>\"\n";
    assert_eq!(mistakes(dash), [""; 0]);
}

#[test]
fn mistakes_elsewhere() {
    let separator = "use one ASCII punctuation character such as \":\", \"/\" or \"|\"";
    let cases = [
        ("separator = \"ab\"\n", format!("1:13: 'ab' is no separator: {separator}")),
        ("separator = [\":\", \"a\"]\n", format!("1:13: 'a' is no separator: {separator}")),
        ("separator = []\n", "1:13: the list of separators is empty: name one, or leave it out for \":\"".into()),
        ("separator = 5\n", "1:13: write a text, or a list of texts such as [\"a\", \"b\"]".into()),
        ("[segments]\nx = \"a:b\"\n", "2:5: 'a:b' holds a separator: a placeholder is one segment or a part of one".into()),
        ("[segments]\nx = \"\"\n", "2:5: a placeholder cannot be empty: write the text or the type of the segment".into()),
        ("[segments]\nx = []\n", "2:5: the list of 'x' is empty or has an empty value: list what the segment may be".into()),
        (
            "[segments]\nx = [\"a\", \"\"]\n",
            "2:5: the list of 'x' is empty or has an empty value: list what the segment may be".into(),
        ),
        ("[segments]\n\"x y\" = \"a\"\n", "2:9: 'x y' is no name for a placeholder: use letters, digits, - and _".into()),
        ("[segments]\nx = \"<digit>\"\n", "2:5: no placeholder '<digit>': did you mean '<digits>'?".into()),
        ("[limits]\nkey_bytes = -1\n", "2:13: write a size such as 512, \"10KB\" or \"1mb\"".into()),
        ("[limits]\nelements = \"many\"\n", "2:12: invalid type: string \"many\", expected u64".into()),
        ("[limits]\ndatabases = 0\n", "2:13: invalid type: integer `0`, expected a sequence".into()),
        (
            "limit = 1\n",
            "1:1: unknown field `limit`, expected one of `separator`, `segments`, `limits`, `class`, `capacity`, `server`, `rules`: did you mean `limits`?".into(),
        ),
        (
            "[capacity]\nmaxmemory = \"64gb\"\npolicy = \"lru\"\n",
            "3:10: no policy 'lru': use noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, volatile-lfu, \
             volatile-random, volatile-ttl"
                .into(),
        ),
        ("[capacity]\nmaxmemory = \"64gb\"\nfragmentation = 0.5\n", "3:17: fragmentation must be from 1 to 10".into()),
        ("[capacity]\nmaxmemory = \"64gb\"\nrewrite_margin = -1\n", "3:18: rewrite_margin must be from 0 to 10".into()),
        ("[capacity]\npolicy = \"noeviction\"\n", "1:1: missing field `maxmemory`".into()),
        ("[[class]]\nname = \"a\npattern = \"a\"\n", "2:10: invalid basic string, expected `\"`".into()),
        // Columns are characters, not bytes.
        ("\"é\" = 商\n", "1:7: string values must be quoted, expected literal string".into()),
    ];
    for (text, expected) in cases {
        assert_eq!(mistakes(text), [expected], "{text}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_named_in_its_order() {
    let text = "\
separator = \":\"
[segments]
x = []
[[class]]
name = \"a\"
pattern = \"a:<nope>\"
type = \"strings\"
[[class]]
name = \"b\"
pattern = \"b\"
ttl = { min = \"1x\", max = \"1h\" }
[capacity]
maxmemory = \"64zb\"
";
    let places: Vec<String> =
        mistakes(text).iter().map(|mistake| mistake.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect();
    assert_eq!(places, ["3:5", "6:11", "7:8", "11:7", "13:13"]);
}

#[test]
fn a_mistake_of_form_hides_no_other() {
    let text = "\
seperator = \":\"
[segments]
x = 5
[limits]
elements = \"many\"
pending = -1
[[class]]
name = \"a\"
owners = \"x\"
pattern = \"a:<nope>\"
[[class]]
name = \"b\"
[[class]]
name = \"c\"
pattern = \"c\"
ttl = 7
limits = { databases = [0], elements = true }
";
    let found = mistakes(text);
    let starts = [
        "1:1: unknown",
        "3:5: write",
        "5:12: invalid",
        "6:11: invalid",
        "9:1: unknown",
        "10:11: no",
        "11:1: missing",
        "16:7: write",
        "17:24: databases",
        "17:40: invalid",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (mistake, start) in found.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake} does not begin with {start}");
    }
    assert!(found[0].ends_with(": did you mean `separator`?"), "{}", found[0]);
    // Of a text that is no TOML, too, more than the first.
    let found = mistakes("a = \nb = \n[limits\n");
    assert_eq!(found.iter().map(|m| m.split(':').next().unwrap()).collect::<Vec<_>>(), ["1", "2", "3"]);
}

#[test]
fn every_field_has_its_value() {
    let text = r#"
separator = [":", "/"]

[segments]
env    = ["prod", "staging", "dev"]
tenant = "shop-<digits>"
user   = "<digits>"

[limits]
key_bytes = 100
string_bytes = "10KB"
member_bytes = "10k"
elements = 5000
memory_bytes = "2MiB"
pending = 30
databases = [0, 3]

[rules]
name = "note"
name-space = "off"

[[class]]
name    = "user-profile"
pattern = "<env>:<tenant>:user:profile:<user>"
owner   = "user-team"
source  = "mysql users"
type    = "string"
ttl     = { min = "120s", max = "150s" }
version = 2
rebuild = true
delete  = "expires by itself"
backup  = false
budget  = { keys = 2_000_000, memory_bytes = "1gb", peak_factor = 1.3 }
rules   = { ttl-lost = "warning" }

[[class]]
name    = "cart-items"
pattern = "<env>:cart:{<tenant>:<user>}:items"
type    = ["hash", "ReJSON-RL"]
ttl     = "permanent"
limits  = { elements = 200, string_bytes = 1 }

[[class]]
name    = "lock"
pattern = "lock:<uuid>"
ttl     = { max = "30d" }
budget  = { keys = 5 }

[capacity]
maxmemory = "64gb"
policy    = "allkeys-lfu"
rewrite_margin = 0.25
fragmentation  = 1.15
"#;
    let contracts = Contracts::parse(text).unwrap();
    assert_eq!(contracts.separators, b"/:");
    let limits = Limits {
        key_bytes: Some(100),
        string_bytes: Some(10_240),
        member_bytes: Some(10_000),
        elements: Some(5000),
        memory_bytes: Some(2 * 1024 * 1024),
        pending: Some(30),
    };
    assert_eq!((contracts.limits, contracts.databases.as_deref()), (limits, Some(&[0, 3][..])));
    let [profile, cart, lock] = &contracts.classes[..] else { panic!("three classes") };
    assert_eq!((&*profile.name, &*profile.pattern), ("user-profile", "<env>:<tenant>:user:profile:<user>"));
    assert_eq!((profile.owner.as_deref(), profile.source.as_deref()), (Some("user-team"), Some("mysql users")));
    assert_eq!(profile.types, ["string"]);
    let seconds = |n| Some(Duration::from_secs(n));
    assert_eq!(profile.ttl, Some(Ttl::Range { min: seconds(120), max: seconds(150) }));
    assert_eq!((profile.version, profile.rebuild, profile.backup), (Some(2), Some(true), Some(false)));
    assert_eq!(profile.delete.as_deref(), Some("expires by itself"));
    assert_eq!(profile.budget, Some(Budget { keys: Some(2_000_000), memory_bytes: Some(1 << 30), peak_factor: 1.3 }));
    assert_eq!(profile.limits, Limits::default());
    assert_eq!(profile.limits.or(contracts.limits), limits);
    assert_eq!(profile.rules.of(Rule::TtlLost), Some(Some(Severity::Warning)));
    assert_eq!((profile.line, cart.line, cart.rules.of(Rule::TtlLost)), (23, 37, None));
    let of = |rule| contracts.rules.of(rule);
    assert_eq!((of(Rule::NameQuote), of(Rule::NameSpace), of(Rule::TtlLost)), (Some(Some(Severity::Note)), Some(None), None));
    assert_eq!((cart.types.join(" "), cart.ttl), ("hash ReJSON-RL".into(), Some(Ttl::Permanent)));
    assert_eq!((&cart.owner, cart.version, cart.rebuild, cart.backup, cart.budget), (&None, None, None, None, None));
    let own = Limits { elements: Some(200), string_bytes: Some(1), ..limits };
    assert_eq!(cart.limits.or(contracts.limits), own);
    assert_eq!(lock.ttl, Some(Ttl::Range { min: None, max: seconds(30 * 86_400) }));
    assert_eq!(lock.budget, Some(Budget { keys: Some(5), memory_bytes: None, peak_factor: 1.0 }));
    let capacity =
        Capacity { maxmemory: 64 << 30, policy: Some("allkeys-lfu".into()), rewrite_margin: 0.25, fragmentation: 1.15 };
    assert_eq!(contracts.capacity, Some(capacity));
    let class = |key: &str| contracts.class_of(key.as_bytes());
    assert_eq!(class("prod:shop-7:user:profile:1001"), Some(0));
    assert_eq!(class("dev/cart/{shop-7/1001}/items"), Some(1));
    assert_eq!(class("lock:550e8400-e29b-41d4-a716-446655440000"), Some(2));
    assert_eq!(class("test:shop-7:user:profile:1001"), None);
}

#[test]
fn an_empty_file_names_nothing() {
    let contracts = Contracts::parse("").unwrap();
    assert_eq!(contracts.separators, b":");
    assert_eq!((contracts.classes.len(), contracts.capacity.is_none(), contracts.class_of(b"a")), (0, true, None));
}
