//! Personal data in key names: found, masked, or replaced so that joins still work.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::classify::{Separators, is_word};

/// How names of keys appear.
#[derive(Debug, Clone, Default)]
pub enum Names {
    /// As they are.
    Exact,
    /// What looks like personal data or a token keeps its first 3 and last 2 characters.
    #[default]
    Masked,
    /// Every identifier is a keyed hash: equal ones stay equal, and nothing can be told of them without the secret.
    Redacted(Box<Redaction>),
}

/// How identifiers are hashed.
#[derive(Debug, Clone)]
pub struct Redaction {
    secret: [u8; 32],
    separators: Separators,
}

impl Names {
    /// Identifiers hashed with a key that is derived from `secret`.
    pub fn redacted(secret: &[u8], separators: Separators) -> Self {
        let secret = blake3::derive_key("rdbscope key names", secret);
        Self::Redacted(Box::new(Redaction { secret, separators }))
    }

    /// The name as it appears.
    pub fn of<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(key),
            Self::Masked => mask(key),
            Self::Redacted(redaction) => Cow::Owned(redact(key, &redaction.secret, &redaction.separators)),
        }
    }

    /// A class name or pattern as it appears. Its identifiers are placeholders already, so only words are looked at.
    pub fn of_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Exact => Cow::Borrowed(text),
            Self::Masked | Self::Redacted(_) => match mask(text.as_bytes()) {
                Cow::Borrowed(_) => Cow::Borrowed(text),
                Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
            },
        }
    }
}

/// What a part of a key name looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sensitive {
    /// A Chinese mobile number, or an international number with its `+`.
    Phone,
    /// An e-mail address.
    Email,
    /// A Chinese identity number with a true check digit.
    Identity,
    /// The number of a payment card: a known issuer, a possible length, a true check digit.
    Card,
    /// A JSON web token, an API key with a known prefix, or a random token of mixed case.
    Token,
}

/// The parts of `key` that look like personal data, in order, without overlap.
pub fn find(key: &[u8]) -> Vec<(Range<usize>, Sensitive)> {
    // Nothing here is shorter than an address such as a@b.cc, and most keys have neither a long number nor any of the other signs.
    let plausible = key.len() >= 6
        && (longest_run_of_digits(key) >= 8 || key.contains(&b'@') || key.windows(3).any(|w| w == b"%40") || key.len() >= 20);
    if !plausible {
        return Vec::new();
    }
    let mut found: Vec<(Range<usize>, Sensitive)> = Vec::new();
    for candidate in candidates().find_iter(key) {
        let range = candidate.range();
        match candidate.pattern().as_usize() {
            RANDOM if crate::classify::is_random_token(&key[range.clone()]) => found.push((range, Sensitive::Token)),
            // A long run that is no token as a whole may be words and a number, or a key, joined.
            RANDOM => {
                for part in parts().find_iter(Input::new(key).span(range)) {
                    judge(key, part.range(), part.pattern().as_usize(), &mut found);
                }
            }
            pattern => judge(key, range, pattern, &mut found),
        }
    }
    found
}

/// Adds a candidate that has the form of a pattern but [`RANDOM`], where it is what it looks like.
fn judge(key: &[u8], range: Range<usize>, pattern: usize, found: &mut Vec<(Range<usize>, Sensitive)>) {
    match pattern {
        JWT | PREFIXED => found.push((range, Sensitive::Token)),
        EMAIL => found.push((range, Sensitive::Email)),
        _ => match number(key, &range) {
            Some(kind) => found.push((range, kind)),
            // What is no number in groups may be several, a date and a telephone number say.
            None => {
                // The pattern may have ended inside the last one.
                let cut_off = key[range.end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let mut at = range.start;
                for group in key[range.start..range.end + cut_off].split(|byte| matches!(byte, b' ' | b'-')) {
                    let group = at..at + group.len();
                    at = group.end + 1;
                    found.extend(number(key, &group).map(|kind| (group, kind)));
                }
            }
        },
    }
}

const JWT: usize = 0;
const PREFIXED: usize = 1;
const EMAIL: usize = 2;
const RANDOM: usize = 4;

const PATTERNS: [&str; 5] = [
    r"eyJ[0-9A-Za-z_-]{5,}\.[0-9A-Za-z_-]{5,}\.[0-9A-Za-z_-]{5,}",
    r"(?:sk_live_|sk_test_|rk_live_|ghp_|gho_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|sk-)[0-9A-Za-z_-]{16,}",
    r"[0-9A-Za-z_.%+\x80-\xff-]+(?:@|%40)[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*\.[A-Za-z]{2,}",
    r"\+?[0-9](?:[ -]?[0-9]){6,18}[Xx]?",
    r"[0-9A-Za-z_-]{24,}",
];

/// Candidates by form alone; what a number means is checked by its digits.
fn candidates() -> &'static Regex {
    static CANDIDATES: OnceLock<Regex> = OnceLock::new();
    CANDIDATES.get_or_init(|| compile(&PATTERNS))
}

/// The same without runs that are only long.
fn parts() -> &'static Regex {
    static PARTS: OnceLock<Regex> = OnceLock::new();
    PARTS.get_or_init(|| compile(&PATTERNS[..RANDOM]))
}

fn compile(patterns: &[&str]) -> Regex {
    Regex::builder()
        .configure(Regex::config().utf8_empty(false))
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build_many(patterns)
        .unwrap_or_else(|error| unreachable!("constant expressions compile, and a test uses them: {error}"))
}

/// What a run of digits, perhaps grouped by spaces or dashes, looks like.
fn number(key: &[u8], range: &Range<usize>) -> Option<Sensitive> {
    let text = &key[range.clone()];
    // A part of a longer token is no number of its own: before it may be a word, which has letters that no hexadecimal number has,
    // behind it nothing.
    let letters = key[..range.start].iter().rev().take_while(|b| b.is_ascii_alphanumeric());
    let is_word = letters.clone().all(u8::is_ascii_alphabetic) && !letters.clone().all(u8::is_ascii_hexdigit);
    let joined_before = letters.count() > 0 && !is_word;
    let joined_behind = key.get(range.end).is_some_and(u8::is_ascii_alphanumeric);
    if joined_before || joined_behind {
        return None;
    }
    let plus = text.starts_with(b"+");
    let ends_in_x = text.ends_with(b"x") || text.ends_with(b"X");
    let digits: Vec<u8> = text.iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect();
    let grouped = text.iter().any(|b| matches!(b, b' ' | b'-'));
    if plus {
        return ((8..=15).contains(&digits.len()) && !ends_in_x && digits[0] > 0).then_some(Sensitive::Phone);
    }
    if digits.len() + usize::from(ends_in_x) == 18 && !grouped && is_identity(&digits, ends_in_x) {
        return Some(Sensitive::Identity);
    }
    if ends_in_x {
        return None;
    }
    if is_chinese_mobile(&digits) && (!grouped || groups(text) == [3, 4, 4]) {
        return Some(Sensitive::Phone);
    }
    let groups_fit = !grouped || matches!(groups(text)[..], [4, 4, 4, 4] | [4, 6, 5]);
    (groups_fit && is_card(&digits)).then_some(Sensitive::Card)
}

/// Lengths of the groups of digits.
fn groups(text: &[u8]) -> Vec<usize> {
    text.split(|b| matches!(b, b' ' | b'-')).map(<[u8]>::len).collect()
}

/// Eleven digits that begin with 13 to 19, with the country code 86 or without.
fn is_chinese_mobile(digits: &[u8]) -> bool {
    let national = match digits {
        [8, 6, rest @ ..] if rest.len() == 11 => rest,
        _ => digits,
    };
    matches!(national, [1, 3..=9, ..]) && national.len() == 11
}

/// A Chinese identity number: region, date of birth, order, check digit (GB 11643).
fn is_identity(digits: &[u8], ends_in_x: bool) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    const CHECKS: [u8; 11] = [1, 0, 10, 9, 8, 7, 6, 5, 4, 3, 2];
    let Some(body) = digits.get(..17) else { return false };
    let value = |range: Range<usize>| body[range].iter().fold(0u32, |n, d| n * 10 + u32::from(*d));
    let plausible = (11..=82).contains(&value(0..2))
        && (1900..2100).contains(&value(6..10))
        && (1..=12).contains(&value(10..12))
        && (1..=31).contains(&value(12..14));
    let sum: u32 = body.iter().zip(WEIGHTS).map(|(digit, weight)| u32::from(*digit) * weight).sum();
    let check = if ends_in_x { Some(10) } else { digits.get(17).copied() };
    plausible && check == Some(CHECKS[(sum % 11) as usize])
}

/// A card number: issuer and length belong together (ISO/IEC 7812), and the Luhn check holds.
fn is_card(digits: &[u8]) -> bool {
    let lead = |n: usize| digits.get(..n).map_or(0, |d| d.iter().fold(0u32, |n, d| n * 10 + u32::from(*d)));
    let length_fits = match digits.len() {
        16 => {
            lead(1) == 4
                || (51..=55).contains(&lead(2))
                || (2221..=2720).contains(&lead(4))
                || lead(2) == 62
                || lead(4) == 6011
                || lead(2) == 65
                || (3528..=3589).contains(&lead(4))
        }
        15 => matches!(lead(2), 34 | 37),
        17..=19 => lead(2) == 62,
        _ => false,
    };
    let luhn = digits.iter().rev().enumerate().map(|(at, &digit)| {
        let doubled = if at % 2 == 1 { digit * 2 } else { digit };
        u32::from(if doubled > 9 { doubled - 9 } else { doubled })
    });
    length_fits && luhn.sum::<u32>() % 10 == 0
}

/// Digits in the longest run of digits, spaces and dashes: a number of a person may be grouped by these.
pub fn longest_run_of_digits(key: &[u8]) -> usize {
    let (mut longest, mut digits) = (0, 0);
    for byte in key {
        match byte {
            b'0'..=b'9' => digits += 1,
            b' ' | b'-' => {}
            _ => digits = 0,
        }
        longest = longest.max(digits);
    }
    longest
}

fn mask(key: &[u8]) -> Cow<'_, [u8]> {
    replace(key, &find(key), |part, out| {
        let text = String::from_utf8_lossy(part);
        let n = text.chars().count();
        let (head, tail) = if n > 5 { (3, 2) } else { (0, 0) };
        out.extend(text.chars().take(head).collect::<String>().into_bytes());
        out.extend_from_slice(b"***");
        out.extend(text.chars().skip(n - tail).collect::<String>().into_bytes());
    })
}

fn redact(key: &[u8], secret: &[u8; 32], separators: &Separators) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 32);
    for segment in separators.segments(key) {
        // The run of separators stays as it is.
        out.extend_from_slice(segment.front);
        redact_segment(segment.text, secret, &mut out);
    }
    out
}

fn redact_segment(segment: &[u8], secret: &[u8; 32], out: &mut Vec<u8>) {
    let printable = std::str::from_utf8(segment).is_ok_and(|text| !text.chars().any(char::is_control));
    if !printable {
        return hash(segment, secret, out);
    }
    let found = find(segment);
    let mut at = 0;
    for (range, _) in found.iter().chain([&(segment.len()..segment.len(), Sensitive::Token)]) {
        let words = segment[at..range.start].chunk_by(|a, b| is_run(*a) == is_run(*b));
        for run in words {
            if !is_run(run[0]) || is_word(run) { out.extend_from_slice(run) } else { hash(run, secret, out) }
        }
        if !range.is_empty() {
            hash(&segment[range.clone()], secret, out);
        }
        at = range.end;
    }
}

fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Sixteen hexadecimal digits of a keyed hash.
fn hash(part: &[u8], secret: &[u8; 32], out: &mut Vec<u8>) {
    let hash = blake3::keyed_hash(secret, part);
    out.extend_from_slice(&hash.to_hex().as_bytes()[..16]);
}

fn replace<'k>(key: &'k [u8], found: &[(Range<usize>, Sensitive)], with: impl Fn(&[u8], &mut Vec<u8>)) -> Cow<'k, [u8]> {
    if found.is_empty() {
        return Cow::Borrowed(key);
    }
    let mut out = Vec::with_capacity(key.len());
    let mut at = 0;
    for (range, _) in found {
        out.extend_from_slice(&key[at..range.start]);
        with(&key[range.clone()], &mut out);
        at = range.end;
    }
    out.extend_from_slice(&key[at..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, masked: &str) {
        assert_eq!(String::from_utf8_lossy(&mask(key.as_bytes())), masked, "{key}");
    }

    #[test]
    fn personal_data_is_masked() {
        check("ark:verify:login:13800000002", "ark:verify:login:138***02");
        check("ark:verify:login:+8613800000001", "ark:verify:login:+86***01");
        check("sms:8613800000001", "sms:861***01");
        check("tel13800000002", "tel138***02");
        check("phone13800000002", "phone138***02");
        check("u:bob%40example.com", "u:bob***om");
        check("sms:138-0000-0002:x", "sms:138***02:x");
        check("user:{bob.smith@example.com}:cart", "user:{bob***om}:cart");
        // Check digits computed by hand: 11010519491231002X is the specimen of the standard.
        check("id:11010519491231002X", "id:110***2X");
        check("pay:4111111111111111", "pay:411***11");
        check("pay:4111-1111-1111-1111", "pay:411***11");
        check("pay:378282246310005", "pay:378***05");
        check("t:eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123", "t:eyJ***23");
        check("key:sk_live_4eC39HqLyjWDarjtT1zdp7dc", "key:sk_***dc");
        check("s:aB3dE6gH9jK2mN5pQ8rS1tU4", "s:aB3***U4");
    }

    #[test]
    fn also_where_they_are_joined_to_other_text() {
        check("verification-code-13812345678", "verification-code-138***78");
        check("customer_profile_13812345678:1", "customer_profile_138***78:1");
        check("2026-11-30-13812345678", "2026-11-30-138***78");
        check("3f9293990003ebbf-13812345678", "3f9293990003ebbf-138***78");
        check("550e8400-e29b-41d4-a716-446655440000-13812345678", "550e8400-e29b-41d4-a716-446655440000-138***78");
        check("13812345678-13912345678", "138***78-139***78");
        check("13812345678-2026-11-30T10", "138***78-2026-11-30T10");
        check("86-13812345678", "86-138***78");
        check("v2-13812345678", "v2-138***78");
        check("long-prefix-of-words-4111111111111111", "long-prefix-of-words-411***11");
        check("longlongprefix-11010519491231002X", "longlongprefix-110***2X");
        check("sms-ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ:1", "sms-ghp***IJ:1");
    }

    #[test]
    fn identifiers_are_not() {
        for key in [
            "order:20260819000123",
            "ts:1796043305722",
            "ts:1796043305",
            "snow:1541815603606036480",
            "u:550e8400-e29b-41d4-a716-446655440000",
            "u:01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "h:d41d8cd98f00b204e9800998ecf8427e",
            "pay:4111111111111112",
            "id:110105194912310021",
            "hex:a13800000002",
            "n:138000000021",
            "a@b",
            "prod:shop-7:session:sess_003d999cd33a",
            "very-long-descriptive-name-of-a-key-in-words",
            "userProfileCacheEntryForTheFrontPage",
        ] {
            check(key, key);
        }
    }

    #[test]
    fn redaction_keeps_words_and_joins() {
        let names = Names::redacted(b"one secret", Separators::default());
        let of = |key: &str| String::from_utf8_lossy(&names.of(key.as_bytes())).into_owned();
        let (profile, cart) = (of("prod:shop-7:user:profile:1001"), of("cart:{shop-7:1001}::items"));
        let user = profile.rsplit(':').next().expect("five segments").to_string();
        assert_eq!(user.len(), 16);
        assert!(profile.starts_with("prod:shop-") && !profile.contains("1001"));
        assert!(cart.contains(&format!(":{user}}}::items")), "{cart}");
        let other = Names::redacted(b"another secret", Separators::default());
        assert_ne!(other.of(b"user:1001"), names.of(b"user:1001"));
        assert!(!of("u:bob@example.com").contains("example"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_a_name(key: Vec<u8>) {
            let _ = mask(&key);
            let _ = redact(&key, &[0; 32], &Separators::default());
        }
    }
}
