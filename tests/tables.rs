//! Figures of tables, worked out again from the rows of `keys`; and every cell safe for a spreadsheet.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use support::{Report, Row, column, dumps_in, fixtures, name, number, read_csv, row, run};

const DUMPS: [&str; 3] = ["redis-7.4.1-contracts", "redis-5.0.14-zoo", "redis-8.2.3-zoo"];

/// The report of a dump with the rows of `keys`, by class.
struct Whole {
    report: Report,
    by_class: BTreeMap<String, Vec<Row>>,
}

impl Whole {
    /// Classes are those of the report: a key's own shape, or one that it was taken into.
    fn of(dump: &str) -> Self {
        let path = fixtures().join(format!("truth/{dump}.rdb"));
        let path = path.to_str().unwrap();
        let report = Report::of([path, "--show-sensitive"]);
        assert_eq!(report.run.code, 0);
        let names: BTreeSet<String> = report.table("classes").iter().map(|row| row["class"].clone()).collect();
        let mut by_class = BTreeMap::<String, Vec<Row>>::new();
        for key in read_csv(&run(["keys", path]).ok().stdout).1 {
            let shape = &key["shape"];
            // A date or a number among tokens, and whatever is too rare for a row of its own.
            let wider = ["digits", "hex", "slug"].into_iter().flat_map(|wide| {
                ["date", "hour", "phone", "digits", "hex"].into_iter().flat_map(move |narrow| {
                    let narrow = format!("<{narrow}>");
                    let places = shape.match_indices(&narrow).map(|(at, _)| at).collect::<Vec<_>>();
                    places.into_iter().map(move |at| format!("{}<{wide}>{}", &shape[..at], &shape[at + narrow.len()..]))
                })
            });
            let class = [shape.clone()].into_iter().chain(wider).find(|class| names.contains(class)).unwrap_or("(other)".into());
            by_class.entry(class).or_default().push(key);
        }
        Self { report, by_class }
    }
}

/// The values of a column that are there, in ascending order.
fn values(rows: &[Row], name: &str) -> Vec<u64> {
    let mut values: Vec<u64> = rows.iter().filter(|row| !row[name].is_empty()).map(|row| number(row, name)).collect();
    values.sort_unstable();
    values
}

fn nearest_rank(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1).map(|at| sorted[at])
}

#[track_caller]
fn within_one_percent(found: &str, exact: Option<u64>, what: &str) {
    let Some(exact) = exact else { return assert_eq!(found, "", "{what}") };
    let found: u64 = found.parse().unwrap_or_else(|_| panic!("{what}: {found:?}"));
    assert!(found.abs_diff(exact) as f64 <= 0.01 * exact as f64, "{what}: {found} for {exact}");
}

#[test]
fn percentiles_and_sums_of_classes() {
    for dump in DUMPS {
        let Whole { report, by_class } = Whole::of(dump);
        let classes = report.table("classes");
        assert_eq!(classes.len(), by_class.len(), "{dump}");
        let (mut keys, mut memory) = (0, 0);
        for class in &classes {
            let what = format!("{dump}: {}", class["class"]);
            let rows = &by_class[&class["class"]];
            let sizes = values(rows, "memory_bytes");
            let sum: u64 = sizes.iter().sum();
            assert_eq!(number(class, "keys"), rows.len() as u64, "{what}");
            assert_eq!(number(class, "memory_bytes"), sum, "{what}");
            assert_eq!(
                class["avg_memory_bytes"],
                sum.checked_div(sizes.len() as u64).map_or(String::new(), |n| n.to_string()),
                "{what}"
            );
            assert_eq!(number(class, "max_memory_bytes"), sizes.last().copied().unwrap_or(0), "{what}");
            assert_eq!(number(class, "not_modelled_keys"), (rows.len() - sizes.len()) as u64, "{what}");
            for (column, percent) in [("p50_memory_bytes", 50), ("p90_memory_bytes", 90), ("p99_memory_bytes", 99)] {
                within_one_percent(&class[column], nearest_rank(&sizes, percent), &format!("{what} {column}"));
            }
            for name in ["serialized_bytes", "elements"] {
                assert_eq!(number(class, name), values(rows, name).iter().sum::<u64>(), "{what} {name}");
            }
            let volatile: Vec<Row> = rows
                .iter()
                .filter(|row| {
                    !row["ttl_seconds"].is_empty()
                        && !row["ttl_seconds"].contains("\\x2d")
                        && !row["ttl_seconds"].starts_with('-')
                })
                .cloned()
                .collect();
            let left = values(&volatile, "ttl_seconds");
            within_one_percent(&class["ttl_p50_seconds"], nearest_rank(&left, 50), &format!("{what} ttl p50"));
            within_one_percent(&class["ttl_p90_seconds"], nearest_rank(&left, 90), &format!("{what} ttl p90"));
            assert_eq!(class["ttl_max_seconds"], left.last().map_or(String::new(), u64::to_string), "{what}");
            let permanent = rows.iter().filter(|row| row["ttl_seconds"].is_empty()).count();
            assert_eq!(number(class, "permanent_keys"), permanent as u64, "{what}");
            assert_eq!(number(class, "expired_keys"), (rows.len() - permanent - left.len()) as u64, "{what}");
            let mut types = BTreeMap::<&str, u64>::new();
            rows.iter().for_each(|row| *types.entry(&row["type"]).or_default() += 1);
            let mut types: Vec<(u64, &str)> = types.into_iter().map(|(name, n)| (n, name)).collect();
            types.sort_by(|(n, a), (m, b)| m.cmp(n).then(a.cmp(b)));
            let types: Vec<String> = types.iter().map(|(n, name)| format!("{name}:{n}")).collect();
            assert_eq!(class["types"], types.join(" "), "{what}");
            let share = |name: &str, total: &str| format!("{:.6}", number(class, name) as f64 / report.total(total) as f64);
            assert_eq!(class["keys_share"], share("keys", "keys"), "{what}");
            assert_eq!(class["memory_share"], share("memory_bytes", "memory_bytes"), "{what}");
            keys += number(class, "keys");
            memory += sum;
        }
        assert_eq!((keys, memory), (report.total("keys"), report.total("memory_bytes")), "{dump}");
    }
}

/// Upper edges in milliseconds; the last two have none.
const TTL_EDGES: [(&str, u64); 11] = [
    ("1m", 60_000),
    ("5m", 300_000),
    ("15m", 900_000),
    ("1h", 3_600_000),
    ("6h", 21_600_000),
    ("1d", 86_400_000),
    ("3d", 259_200_000),
    ("7d", 604_800_000),
    ("30d", 2_592_000_000),
    ("90d", 7_776_000_000),
    ("1y", 31_536_000_000),
];

#[test]
fn histograms_count_the_keys() {
    for dump in DUMPS {
        let Whole { report, by_class } = Whole::of(dump);
        let snapshot = &report.table("inputs")[0]["snapshot_time"];
        let snapshot =
            humantime::parse_rfc3339(snapshot).unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
        let bucket = |key: &Row| {
            if key["expires_at_ms"].is_empty() {
                return "none";
            }
            let left = key["expires_at_ms"].parse::<i64>().unwrap() - snapshot;
            if left <= 0 {
                return "expired";
            }
            TTL_EDGES.iter().find(|(_, edge)| left as u64 <= *edge).map_or("over 1y", |(name, _)| name)
        };
        let mut lifetimes = BTreeMap::<(String, String), (u64, u64)>::new();
        let mut sizes = BTreeMap::<(String, u64, u64), (u64, u64)>::new();
        for (class, rows) in &by_class {
            for key in rows {
                let memory = key["memory_bytes"].parse::<u64>().ok();
                let (keys, bytes) = lifetimes.entry((class.clone(), bucket(key).into())).or_default();
                (*keys, *bytes) = (*keys + 1, *bytes + memory.unwrap_or(0));
                if let Some(memory) = memory {
                    let least = (0..64).map(|power| 1u64 << power).take_while(|least| *least <= memory).last().unwrap();
                    let (keys, bytes) = sizes.entry((class.clone(), least, 2 * least - 1)).or_default();
                    (*keys, *bytes) = (*keys + 1, *bytes + memory);
                }
            }
        }
        let found: BTreeMap<_, _> = report
            .table("ttl_histogram")
            .iter()
            .map(|row| ((row["class"].clone(), row["bucket"].clone()), (number(row, "keys"), number(row, "memory_bytes"))))
            .collect();
        assert_eq!(found, lifetimes, "{dump}");
        let found: BTreeMap<_, _> = report
            .table("size_histogram")
            .iter()
            .map(|row| {
                let bucket = (row["class"].clone(), number(row, "bucket_min_bytes"), number(row, "bucket_max_bytes"));
                (bucket, (number(row, "keys"), number(row, "memory_bytes")))
            })
            .collect();
        assert_eq!(found, sizes, "{dump}");
    }
}

#[track_caller]
fn near(row: &Row, name: &str, expected: f64) {
    let found: f64 = row[name].parse().unwrap();
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{name}: {found} for {expected} in {row:?}");
}

#[test]
fn skew_over_slots() {
    // Over all slots, and over those that slot records name.
    for (dump, population) in [("redis-7.4.1-contracts", 16_384), ("redis-7.4.1-zoo", 16_384), ("redis-8.2.3-cluster", 768)] {
        let path = fixtures().join(format!("truth/{dump}.rdb"));
        let report = Report::of([&path]);
        let slots = report.table("slots");
        let keys = read_csv(&run(["keys", path.to_str().unwrap()]).ok().stdout).1;
        for measure in ["keys", "memory_bytes"] {
            let skew = row(&report.table("slot_skew"), "measure", measure).clone();
            let used: Vec<u64> = slots.iter().map(|slot| number(slot, measure)).collect();
            let mut values = used.clone();
            values.resize(population, 0);
            values.sort_unstable();
            let n = population as f64;
            let sum: f64 = values.iter().map(|v| *v as f64).sum();
            let mean = sum / n;
            let cv = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n).sqrt() / mean;
            // Half the mean difference of all pairs, over the mean: each value counts against all smaller ones.
            let mut below = 0.0;
            let mut differences = 0.0;
            for (at, value) in values.iter().enumerate() {
                differences += *value as f64 * at as f64 - below;
                below += *value as f64;
            }
            let gini = differences / (n * n * mean);
            let top = population.div_ceil(100);
            let top_sum: u64 = values[population - top..].iter().sum();
            let max = *values.last().unwrap();
            assert_eq!(number(&skew, "population"), population as u64, "{dump}");
            assert_eq!(number(&skew, "used"), slots.len() as u64, "{dump}");
            assert_eq!(number(&skew, "max"), max, "{dump}");
            let first = slots.iter().zip(&used).find(|(_, value)| **value == max).unwrap().0;
            assert_eq!(skew["max_slot"], first["slot"], "{dump}");
            near(&skew, "mean", mean);
            near(&skew, "max_over_mean", max as f64 / mean);
            near(&skew, "cv", cv);
            near(&skew, "gini", gini);
            near(&skew, "top1_share", top_sum as f64 / sum);
            // What chance gives: the sum of independent keys, each in one slot of n with the same chance.
            let weights: Vec<f64> = match measure {
                "keys" => vec![1.0; keys.len()],
                _ => self::values(&keys, "memory_bytes").iter().map(|v| *v as f64).collect(),
            };
            let squares: f64 = weights.iter().map(|w| w * w).sum();
            near(&skew, "expected_cv", (squares * (n - 1.0)).sqrt() / weights.iter().sum::<f64>());
            let expected: f64 = skew["expected_max_over_mean"].parse().unwrap();
            assert!(expected >= 1.0, "{dump}: {expected}");
        }
    }
}

/// A colleague would keep these: few rows, and little that has no name.
#[test]
fn discovered_classes_of_the_contracts_dump() {
    let report = Report::of([fixtures().join("truth/redis-7.4.1-contracts.rdb")]);
    let classes = report.table("classes");
    assert!(classes.len() <= 40, "{}", classes.len());
    let other: u64 = classes.iter().filter(|row| row["class"] == "(other)").map(|row| number(row, "keys")).sum();
    assert!(other * 100 < report.total("keys"), "{other}");
    for (class, keys) in [
        ("prod:shop-<digits>:user:profile:<digits>", "500"),
        ("order:{shop-<digits>}:<digits>", "400"),
        ("cart:{shop-<digits>:<digits>}:items", "100"),
    ] {
        assert_eq!(row(&classes, "class", class)["keys"], keys, "{class}");
    }
    assert_eq!(classes.last().unwrap()["class"], "(other)");
}

/// The example in the folder of examples is one that works.
#[test]
fn the_example_contracts_register_most_keys() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml");
    let dump = fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let report = Report::of([dump.to_str().unwrap(), "-c", example.to_str().unwrap()]);
    assert_eq!(report.run.code, 0, "{}", report.run.stderr);
    let classes = report.table("classes");
    let registered: u64 = classes.iter().filter(|row| row["registered"] == "true").map(|row| number(row, "keys")).sum();
    assert!(registered * 10 >= report.total("keys") * 9, "{registered}");
    let profile = row(&classes, "class", "user-profile");
    assert_eq!((&*profile["keys"], &*profile["owner"]), ("501", "user-team"), "500 of prod, one of staging");
    assert_eq!(profile["pattern"], "<env>:<tenant>:user:profile:<user>");
    let keys = read_csv(&run(["keys", dump.to_str().unwrap(), "-c", example.to_str().unwrap()]).ok().stdout).1;
    let of_class = keys.iter().filter(|row| row["class"] == "user-profile").count();
    assert_eq!(of_class, 501);
    assert!(column(&keys, "class").contains(&""), "some keys have no contract");
}

#[test]
fn no_cell_is_a_formula() {
    let mut cells = 0;
    for dump in dumps_in("truth") {
        let report = Report::of([dump.to_str().unwrap(), "--show-sensitive"]);
        let keys = run(["keys", dump.to_str().unwrap()]).ok().stdout;
        let rdbtools = run(["keys", dump.to_str().unwrap(), "--preset", "rdbtools"]).ok().stdout;
        let tables = report.files.iter().filter(|(name, _)| name.ends_with(".csv")).map(|(name, file)| (name.as_str(), file));
        for (table, file) in tables.chain([("keys", &keys), ("rdbtools", &rdbtools)]) {
            // The reader of the test fails on a row that is longer or shorter than the header.
            let mut reader = csv::Reader::from_reader(&file[..]);
            let width = reader.headers().unwrap().len();
            for record in reader.records() {
                let record = record.unwrap_or_else(|error| panic!("{}: {table}: {error}", name(&dump)));
                assert_eq!(record.len(), width);
                for cell in &record {
                    cells += 1;
                    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
                    assert!(!formula, "{}: {table}: {cell:?}", name(&dump));
                }
            }
        }
    }
    assert!(cells > 100_000, "{cells}");
}

/// The truth tells of each hash how many fields it has and how many of them expire; a key without expiry all of whose fields do is
/// permanent in name only.
#[test]
fn permanent_keys_that_empty_themselves_are_those_of_the_server() {
    let truth = support::truth::Truth::beside(&support::fixtures().join("truth/redis-8.2.3-zoo.rdb"));
    let emptied = |line: &&support::truth::TruthLine| {
        line.expire_at_ms.is_none() && line.hfe_fields > Some(0) && line.hfe_fields == line.count
    };
    let live: std::collections::BTreeSet<Vec<u8>> = truth.lines.iter().filter(emptied).map(|line| line.key.clone()).collect();
    assert!(live.len() >= 5, "{}", live.len());
    let report = support::Report::of([support::fixtures().join("truth/redis-8.2.3-zoo.rdb")]);
    let listed: std::collections::BTreeSet<Vec<u8>> =
        report.table("permanent_keys_emptied").iter().map(|row| rdbscope::key_text::unescape(&row["key"]).unwrap()).collect();
    // What the server dropped while loading has no answer.
    let dropped = |key: &Vec<u8>| truth.meta.expired_on_load.iter().chain(&truth.meta.lost_fields).any(|(_, gone)| gone == key);
    assert_eq!(listed.iter().filter(|key| !dropped(key)).cloned().collect::<std::collections::BTreeSet<_>>(), live);
}
