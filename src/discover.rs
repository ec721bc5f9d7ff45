//! A contracts file drafted from what dumps hold, ready to be edited.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::analyse::{self, Advance, Dump, Options, Outcome};
use crate::census::{BigLimits, ClassStats};
use crate::contract::{Contracts, Type, texts};
use crate::findings::{self, ALL, Finding, Kind, Policy, Rule};
use crate::key_text;
use crate::privacy::Names;
use crate::report::Population;

/// Most classes that get an entry of their own, those with most memory.
const MOST_CLASSES: usize = 1000;

/// How often the dumps are walked.
pub const PASSES: u64 = 3;

/// Name of the class that takes what no other does.
const REST: &str = "rest";

/// What the separator is, unless somebody says otherwise.
const SEPARATORS: &[u8] = b":";

/// Words that name an environment.
const ENVIRONMENTS: [&str; 18] = [
    "prod",
    "production",
    "prd",
    "live",
    "staging",
    "stage",
    "stg",
    "preprod",
    "uat",
    "qa",
    "test",
    "testing",
    "dev",
    "develop",
    "development",
    "sandbox",
    "demo",
    "local",
];

/// Seconds of lifetimes that people agree on; above the last, whole years.
const FIGURES: [u64; 40] = [
    1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400, 21_600,
    28_800, 43_200, 64_800, 86_400, 129_600, 172_800, 259_200, 432_000, 604_800, 864_000, 1_209_600, 1_296_000, 2_592_000,
    5_184_000, 7_776_000, 15_552_000,
];

const YEAR: u64 = 365 * 86_400;

/// A class that is being drafted.
#[derive(Debug)]
struct Entry {
    name: String,
    pattern: String,
    fields: Vec<String>,
    /// What its keys break, by what the file says so far.
    broken: Vec<Finding>,
}

/// Text of a contracts file for `dumps`, and what was found in each of them.
///
/// # Errors
/// A draft that cannot be read back, which a test would have found.
pub fn draft(dumps: &[Dump], options: &Options, progress: impl Fn(Advance) + Sync) -> Result<(String, Vec<Outcome>), String> {
    let plain = Options { contracts: None, policy: None, ..options.clone() };
    let (mut census, outcomes) = analyse::census(dumps, &plain, &progress);
    census.discovered.widen();
    let databases: Vec<u64> = census.databases.keys().copied().collect();
    let mut shapes: Vec<(String, ClassStats)> = std::mem::take(&mut census.discovered).into_classes();
    shapes.sort_by(|(a, x), (b, y)| {
        (y.counts.memory_bytes, y.counts.keys).cmp(&(x.counts.memory_bytes, x.counts.keys)).then_with(|| a.cmp(b))
    });
    shapes.truncate(MOST_CLASSES);
    let segments = Segments::of(shapes.iter().map(|(shape, _)| &**shape));
    let mut entries = entries(shapes.iter().map(|(shape, _)| segments.replace(shape)));
    let head = head(&segments, &databases);

    // Patterns take keys by their own order: the figures are those of the classes as they will be.
    let contracts = readable(&head, &mut entries)?;
    let with = |contracts: Arc<Contracts>| {
        let policy = Arc::new(Policy::new(Some(Arc::clone(&contracts)), 1));
        let options = Options { contracts: Some(contracts), policy: Some(Arc::clone(&policy)), ..options.clone() };
        let (census, outcomes) = analyse::census(dumps, &options, &progress);
        (census, policy, Population::of(&outcomes))
    };
    let (census, policy, population) = with(contracts);
    let stats: Vec<ClassStats> = census.registered.clone();
    let found = findings::judge(census, &policy, &population, true).findings;
    for (at, (entry, stats)) in entries.iter_mut().zip(&stats).enumerate() {
        let large = |rule| found.iter().any(|finding| finding.registered == Some(at) && finding.rule == rule);
        entry.fields = fields(stats, large(Rule::StringTooLong), large(Rule::MemberTooLong));
    }
    // A shape all of whose keys a narrower pattern takes is no class.
    let mut held = stats.iter().map(|stats| stats.counts.keys > 0);
    entries.retain(|entry| held.next().unwrap_or(true) || entry.name == REST);
    let contracts = readable(&head, &mut entries)?;
    let (census, policy, population) = with(contracts);
    let mut hot_slots = false;
    for finding in findings::judge(census, &policy, &population, true).findings {
        hot_slots |= finding.class == ALL;
        if let Some(entry) = finding.registered.and_then(|at| entries.get_mut(at)) {
            entry.broken.push(finding);
        }
    }
    let rules = if hot_slots { "[rules]\nslot-hot = \"off\" # to be looked into\n\n" } else { "" };
    let text = format!("{head}{rules}{}", entries.iter().map(Entry::text).collect::<String>());
    Contracts::parse(&text).map_err(|mistakes| mistake_text(&mistakes))?;
    Ok((text, outcomes))
}

fn mistake_text(mistakes: &[crate::contract::Mistake]) -> String {
    mistakes.first().map_or_else(String::new, |mistake| format!("the draft cannot be read back: {mistake}"))
}

/// The contracts of the entries; those that make a mistake of the file, since another takes the same keys with equal right, are left out, and
/// their keys fall to that other or to the rest.
fn readable(head: &str, entries: &mut Vec<Entry>) -> Result<Arc<Contracts>, String> {
    loop {
        let text: String = std::iter::once(head.to_string()).chain(entries.iter().map(Entry::text)).collect();
        let mistakes = match Contracts::parse(&text) {
            Ok(contracts) => return Ok(Arc::new(contracts)),
            Err(mistakes) => mistakes,
        };
        // Line of the first of each entry.
        let mut line = head.lines().count() + 1;
        let before = entries.len();
        entries.retain(|entry| {
            let lines = line..line + entry.text().lines().count();
            line = lines.end;
            !mistakes.iter().any(|mistake| lines.contains(&mistake.line))
        });
        if entries.len() == before {
            return Err(mistake_text(&mistakes));
        }
    }
}

/// Placeholders that are worth a name: environments, and words with a number that stand in several classes.
#[derive(Debug, Default)]
struct Segments {
    environments: BTreeSet<String>,
    /// Name by text, such as `shop` for `shop-<digits>`.
    numbered: BTreeMap<String, String>,
}

impl Segments {
    fn of<'s>(shapes: impl Iterator<Item = &'s str>) -> Self {
        let mut segments = Self::default();
        let mut numbered: BTreeMap<String, usize> = BTreeMap::new();
        // A segment alone is no part of anything.
        for shape in shapes.filter(|shape| shape.contains(':')) {
            let of_shape: BTreeSet<&str> = texts(shape, SEPARATORS).into_iter().map(|text| core(text).1).collect();
            for text in of_shape {
                if ENVIRONMENTS.contains(&text) {
                    segments.environments.insert(text.into());
                } else if word_of_numbered(text).is_some() {
                    *numbered.entry(text.into()).or_default() += 1;
                }
            }
        }
        let mut taken = BTreeSet::from(["env".to_string()]);
        for (text, _) in numbered.into_iter().filter(|(_, classes)| *classes > 1) {
            let word = word_of_numbered(&text).unwrap_or_default().to_lowercase();
            let name = if Type::named(&word).is_some() { format!("{word}-id") } else { word };
            if taken.insert(name.clone()) {
                segments.numbered.insert(text, name);
            }
        }
        segments
    }

    /// A shape with the names of placeholders in place of what they stand for.
    fn replace(&self, shape: &str) -> String {
        if !shape.contains(':') {
            return shape.into();
        }
        let mut out = Vec::new();
        for text in texts(shape, SEPARATORS) {
            let (before, inner, after) = core(text);
            let name = if self.environments.contains(inner) { Some("env") } else { self.numbered.get(inner).map(String::as_str) };
            out.push(name.map_or_else(|| text.to_string(), |name| format!("{before}<{name}>{after}")));
        }
        out.join(":")
    }
}

/// The word of `shop-<digits>`.
fn word_of_numbered(text: &str) -> Option<&str> {
    let word = text.strip_suffix("<digits>")?.strip_suffix(['-', '_', '.'])?;
    (!word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic())).then_some(word)
}

/// A segment without the braces of a hash tag.
fn core(text: &str) -> (&str, &str, &str) {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let core = inner.strip_suffix('}').unwrap_or(inner);
    (&text[..text.len() - inner.len()], core, &inner[core.len()..])
}

/// An entry for each pattern, the first of equal ones, and one for the rest.
fn entries(patterns: impl Iterator<Item = String>) -> Vec<Entry> {
    let mut seen = BTreeSet::new();
    let mut names = BTreeSet::from([REST.to_string()]);
    let mut entries: Vec<Entry> = Vec::new();
    for pattern in patterns.filter(|pattern| seen.insert(pattern.clone())) {
        let base = class_name(&pattern);
        let name = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") }).find(|name| !names.contains(name));
        let name = name.unwrap_or_default();
        names.insert(name.clone());
        entries.push(Entry { name, pattern, fields: Vec::new(), broken: Vec::new() });
    }
    entries.push(Entry { name: REST.into(), pattern: "<**>".into(), fields: Vec::new(), broken: Vec::new() });
    entries
}

/// The words of a pattern, else the names of its placeholders.
fn class_name(pattern: &str) -> String {
    let mut words = String::new();
    let mut inside = false;
    for c in pattern.chars() {
        inside = (inside || c == '<') && c != '>';
        words.push(if inside || !(c.is_ascii_alphanumeric() || c == '_') { '-' } else { c.to_ascii_lowercase() });
    }
    let of_placeholders: String = pattern.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let joined = |text: &str| {
        text.split('-').map(|word| word.trim_matches('_')).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    };
    [joined(&words), joined(&of_placeholders)].into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "keys".into())
}

fn head(segments: &Segments, databases: &[u64]) -> String {
    let mut text = String::from(
        "# Drafted from a dump: fill in what is TODO, and correct what is only what was seen. docs/contracts.md explains each field,\n\
         # docs/rules.md each rule that a comment names.\n\nseparator = \":\"\n\n",
    );
    // Writing to a String does not fail.
    if !segments.environments.is_empty() || !segments.numbered.is_empty() {
        text.push_str("[segments]\n");
        if !segments.environments.is_empty() {
            let values: Vec<String> = segments.environments.iter().map(|value| quoted(value)).collect();
            let _ = writeln!(text, "env = [{}]", values.join(", "));
        }
        for (pattern, name) in &segments.numbered {
            let _ = writeln!(text, "{name} = {}", quoted(pattern));
        }
        text.push('\n');
    }
    let databases: Vec<String> = databases.iter().map(u64::to_string).collect();
    let _ = write!(text, "[limits]\ndatabases = [{}]\n\n", databases.join(", "));
    text
}

/// What the figures of a class say of its contract.
fn fields(stats: &ClassStats, long_strings: bool, long_members: bool) -> Vec<String> {
    let counts = &stats.counts;
    let mut fields = Vec::new();
    let [p50, p99] = stats.memory.quantiles([0.5, 0.99]);
    let memory = match (p50, p99) {
        (Some(p50), Some(p99)) => format!(
            ", {} bytes: half up to {p50}, 99 % up to {p99}, the largest {}",
            counts.memory_bytes, counts.max_memory_bytes
        ),
        _ => String::new(),
    };
    fields.push(format!("# {}{memory}", plural(counts.keys)));
    if let Some(example) = stats.example_key.get() {
        fields.push(format!("# e.g. {}", key_text::escape(&Names::Masked.of(example))));
    }
    let mut types: Vec<(u64, String)> = stats.types.iter().map(|(key_type, keys)| (keys, key_type.to_string())).collect();
    types.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.cmp(y)));
    // Types that servers add on their own have names that no contract takes.
    const CORE: [&str; 7] = ["string", "list", "set", "zset", "hash", "stream", "array"];
    if !types.is_empty() && types.iter().all(|(_, name)| CORE.contains(&&**name) || name.len() == 9) {
        let names: Vec<String> = types.iter().map(|(_, name)| quoted(name)).collect();
        let keys: Vec<String> = types.iter().map(|(keys, name)| format!("{keys} {name}")).collect();
        match &names[..] {
            [name] => fields.push(format!("type    = {name}")),
            names => fields.push(format!("type    = [{}] # {}", names.join(", "), keys.join(", "))),
        }
    }
    if let Some(longest) = stats.ttl_seconds.max() {
        let [shortest] = stats.ttl_seconds.quantiles([0.0]);
        let range = format!("{} to {} left", lifetime(shortest.unwrap_or(0)), lifetime(longest));
        fields.push(format!("ttl     = {{ max = \"{}\" }} # {range}", lifetime(figure(longest.saturating_add(1)))));
    } else if counts.permanent_keys > 0 {
        fields.push("ttl     = \"permanent\"".into());
        fields.push(format!("budget  = {{ keys = {}, peak_factor = 1.5 }}", counts.keys));
    }
    let limits = BigLimits::default();
    let memory = rounded(counts.max_memory_bytes);
    let above = [
        ("elements", counts.max_elements > limits.elements, rounded(counts.max_elements)),
        ("memory_bytes", counts.max_memory_bytes > limits.memory_bytes, memory),
        // Neither is longer than the key is large.
        ("string_bytes", long_strings, memory),
        ("member_bytes", long_members, memory),
    ];
    let own: Vec<String> =
        above.iter().filter(|(_, above, _)| *above).map(|(name, _, limit)| format!("{name} = {limit}")).collect();
    if !own.is_empty() {
        fields.push(format!("limits  = {{ {} }}", own.join(", ")));
    }
    fields
}

impl Entry {
    fn text(&self) -> String {
        let mut text = String::from("[[class]]\n");
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "name    = {}\npattern = {}\nowner   = \"TODO\"\nsource  = \"TODO\"",
            quoted(&self.name),
            quoted(&self.pattern)
        );
        let mut off = Vec::new();
        if self.name == REST {
            text.push_str(
                "# Whatever no other class takes. Remove it once the list is complete, so that new classes are told.\n",
            );
            off.push(Rule::PatternUnmatched);
        }
        for field in &self.fields {
            let _ = writeln!(text, "{field}");
        }
        for finding in self.broken.iter().filter(|finding| finding.rule.kind() != Kind::Contract) {
            let message = Names::Masked.of_text(&finding.message).into_owned();
            let _ = writeln!(text, "# {}: {}", finding.rule, printable(&message));
            // What the types, sizes and places are is taken as agreed; what is wrong with names and lifetimes is not.
            if matches!(finding.rule.kind(), Kind::Type | Kind::Size | Kind::Placement) && !off.contains(&finding.rule) {
                off.push(finding.rule);
            }
        }
        if !off.is_empty() {
            let rules: Vec<String> = off.iter().map(|rule| format!("{rule} = \"off\"")).collect();
            let _ = writeln!(text, "rules   = {{ {} }}", rules.join(", "));
        }
        text.push('\n');
        text
    }
}

/// A text as TOML has it: what JSON writes is a basic string, but for one control character.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007f")
}

/// A comment on one line.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The next figure that people agree on.
fn figure(seconds: u64) -> u64 {
    FIGURES.into_iter().find(|figure| *figure >= seconds).unwrap_or_else(|| seconds.div_ceil(YEAR).saturating_mul(YEAR))
}

/// A number rounded up to two digits.
fn rounded(n: u64) -> u64 {
    let mut unit = 1u64;
    while n / unit >= 100 {
        unit *= 10;
    }
    n.div_ceil(unit).saturating_mul(unit)
}

/// Seconds in the largest unit that they are a whole number of, else in one that is near enough.
fn lifetime(seconds: u64) -> String {
    for (unit, name) in [(86_400, 'd'), (3600, 'h'), (60, 'm')] {
        if seconds >= unit && seconds.is_multiple_of(unit) {
            return format!("{}{name}", seconds / unit);
        }
    }
    match seconds {
        0..3600 => format!("{seconds}s"),
        3600..86_400 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}

fn plural(keys: u64) -> String {
    if keys == 1 { "1 key".into() } else { format!("{keys} keys") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_up() {
        assert_eq!([figure(1), figure(299), figure(300), figure(301), figure(3661)], [1, 300, 300, 600, 5400]);
        assert_eq!([figure(15_552_001), figure(YEAR + 1)], [YEAR, 2 * YEAR]);
        assert!(FIGURES.is_sorted());
        assert_eq!([rounded(7), rounded(99), rounded(101), rounded(5001), rounded(1_048_577)], [7, 99, 110, 5100, 1_100_000]);
        assert!(rounded(u64::MAX) > 0 && figure(u64::MAX) > 0);
        assert_eq!([lifetime(45), lifetime(300), lifetime(5400), lifetime(7 * 86_400)], ["45s", "5m", "90m", "7d"]);
    }

    #[test]
    fn environments_and_tenants_get_names() {
        let shapes = [
            "prod:shop-<digits>:a",
            "dev:shop-<digits>:a",
            "cart:{shop-<digits>:<digits>}:items",
            "x:node-<digits>",
            "d:date-<digits>",
            "e:date-<digits>",
        ];
        let segments = Segments::of(shapes.into_iter());
        let replaced: Vec<String> = shapes.iter().map(|shape| segments.replace(shape)).collect();
        let expected =
            ["<env>:<shop>:a", "<env>:<shop>:a", "cart:{<shop>:<digits>}:items", "x:node-<digits>", "d:<date-id>", "e:<date-id>"];
        assert_eq!(replaced, expected);
        assert_eq!(class_name("<env>:<shop>:user:profile:<digits>"), "user-profile");
        assert_eq!(class_name("<digits>"), "digits");
        assert_eq!(class_name("TMP_<hex>"), "tmp");
    }
}
