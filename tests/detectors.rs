//! How often the detectors of personal data take an identifier for it: on every id of the fixtures, and on a million generated ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use rayon::prelude::*;
use rdbscope::privacy::{self, Sensitive};
use support::dumps_in;
use support::truth::Truth;

/// True where the rule `personal-data` would speak: a token is no data of a person.
fn is_personal(name: &str) -> bool {
    privacy::find(name.as_bytes()).iter().any(|(_, kind)| *kind != Sensitive::Token)
}

/// Numbers that look random and are the same each time (Steele, Lea and Flood, SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Milliseconds of some moment from 2020 to 2029.
fn moment(random: &mut Random) -> u64 {
    1_577_836_800_000 + random.below(10 * 365 * 86_400_000)
}

fn uuid(random: &mut Random) -> String {
    let (a, b) = (random.next(), random.next());
    format!("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, a >> 16 & 0xffff, a & 0xfff, 0x8000 | b >> 50, b & 0xffff_ffff_ffff)
}

fn ulid(random: &mut Random) -> String {
    const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let bits = u128::from(moment(random)) << 80 | u128::from(random.next()) << 16 | u128::from(random.below(1 << 16));
    (0..26).rev().map(|n| char::from(CROCKFORD[(bits >> (5 * n) & 31) as usize])).collect()
}

/// Twitter's: milliseconds since 2010-11-04, ten bits of a machine, twelve of a sequence.
fn snowflake(random: &mut Random) -> String {
    ((moment(random) - 1_288_834_974_657) << 22 | random.below(1 << 22)).to_string()
}

fn seconds(random: &mut Random) -> String {
    (moment(random) / 1000).to_string()
}

fn milliseconds(random: &mut Random) -> String {
    moment(random).to_string()
}

/// A day and a number within it: `2026113000012345`.
fn dated_order(random: &mut Random) -> String {
    format!(
        "20{:02}{:02}{:02}{:08}",
        20 + random.below(10),
        1 + random.below(12),
        1 + random.below(28),
        random.below(100_000_000)
    )
}

fn counted_order(random: &mut Random) -> String {
    random.below(1_000_000_000).to_string()
}

/// Digits of which the first is no zero.
fn digits<const N: u32>(random: &mut Random) -> String {
    let first = 10u64.pow(N - 1);
    (first + random.below(9 * first)).to_string()
}

/// Draws an id.
type Form = fn(&mut Random) -> String;

/// Ids drawn of each form.
const DRAWN: u64 = 1_000_000;

/// Of [`DRAWN`] ids of a form, in names, how many are taken for personal data, and one of them.
fn taken(form: Form) -> (u64, Option<String>) {
    const AT_ONCE: u64 = 10_000;
    let batch = |seed: u64| {
        let mut random = Random(seed);
        let names = (0..AT_ONCE).map(|_| format!("order:{}:items", form(&mut random)));
        let wrong: Vec<String> = names.filter(|name| is_personal(name)).collect();
        (wrong.len() as u64, wrong.into_iter().next())
    };
    (0..DRAWN / AT_ONCE).into_par_iter().map(batch).reduce(|| (0, None), |a, b| (a.0 + b.0, a.1.or(b.1)))
}

#[test]
fn ids_in_names_are_rarely_taken_for_personal_data() {
    let forms: [(&str, Form); 7] = [
        ("UUID", uuid),
        ("ULID", ulid),
        ("snowflake", snowflake),
        ("seconds", seconds),
        ("milliseconds", milliseconds),
        ("order number with its date", dated_order),
        ("order number of up to nine digits", counted_order),
    ];
    let docs = include_str!("../docs/rules.md");
    for (name, form) in forms {
        let (wrong, example) = taken(form);
        assert_eq!(wrong, 0, "{name}: of {DRAWN} such as {example:?}");
        assert!(docs.contains(&format!("| {name} | 0 |")), "{name} is not documented");
    }
}

#[test]
fn numbers_of_the_length_of_personal_ones_are_taken_for_them() {
    // What cannot be told apart is said. Of eleven digits without a leading zero, 13 to 19 begin 7 of 90. Of sixteen, 4, 51 to 55, 2221 to
    // 2720, 62, 65, 6011 and 3528 to 3589 are issuers of cards: 2,263 of 9,000 beginnings, and one of ten has the check digit.
    let forms: [(Form, f64, &str); 2] =
        [(digits::<11>, 7.0 / 90.0, "eleven random digits"), (digits::<16>, 2263.0 / 90_000.0, "sixteen random digits")];
    let docs = include_str!("../docs/rules.md");
    for (form, share, name) in forms {
        let (wrong, _) = taken(form);
        let deviation = (DRAWN as f64 * share * (1.0 - share)).sqrt();
        assert!((wrong as f64 - DRAWN as f64 * share).abs() < 4.0 * deviation, "{name}: {wrong}");
        let thousands = format!("{},{:03}", wrong / 1000, wrong % 1000);
        assert!(docs.contains(&format!("| {name} | {thousands} |")), "{name}: {thousands} is not documented");
    }
}

#[test]
fn ids_of_the_fixtures() {
    let mut names = 0;
    for dump in dumps_in("truth") {
        for line in Truth::beside(&dump).lines {
            let name = String::from_utf8_lossy(&line.key).into_owned();
            // Invented phone numbers and addresses are there on purpose.
            let is_meant = name.to_lowercase().contains("verify:login:") || name.contains('@') || name.contains("phone");
            names += 1;
            assert!(!is_personal(&name) || is_meant, "{name}");
        }
    }
    assert!(names > 10_000);
}
