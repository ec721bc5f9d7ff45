//! `check`: what is planted in the dumps is found, and nothing else; formats, severities, baselines and exit codes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::truth::{Truth, TruthLine};
use support::{Run, T0, TempDump, column, dump, dumps_in, rdbscope, read_csv, row, string};
use tempfile::TempDir;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/contracts.toml")
}

/// Runs `check` on `dump` with a contracts file and `arguments`.
fn check(dump: &Path, contracts: &Path, arguments: &[&str]) -> Run {
    Run::of(rdbscope().arg("check").arg(dump).arg("-c").arg(contracts).args(arguments))
}

fn findings(run: &Run) -> Vec<Value> {
    serde_json::from_slice::<Value>(&run.stdout).unwrap()["findings"].as_array().unwrap().clone()
}

/// Keys by class of the findings of a rule.
fn keys_by_class(found: &[Value], rule: &str) -> BTreeMap<String, u64> {
    let of_rule = found.iter().filter(|finding| finding["rule"] == rule);
    let mut sums = BTreeMap::new();
    for finding in of_rule {
        *sums.entry(finding["class"].as_str().unwrap().to_string()).or_default() += finding["keys"].as_u64().unwrap();
    }
    sums
}

fn expected<'e>(classes: impl IntoIterator<Item = (&'e str, u64)>) -> BTreeMap<String, u64> {
    classes.into_iter().map(|(class, keys)| (class.to_string(), keys)).collect()
}

/// How many keys of the truth are as asked for.
fn count(truth: &Truth, is: impl Fn(&str, &TruthLine) -> bool) -> u64 {
    truth.lines.iter().filter(|line| is(&String::from_utf8_lossy(&line.key), line)).count() as u64
}

/// The tests' own idea of which class of the example a key belongs to.
fn class_of(key: &str) -> Option<&'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let tenant = |text: &str| text.strip_prefix("shop-").is_some_and(digits);
    let is_phone = |text: &str| match text.strip_prefix('+') {
        Some(number) => digits(number),
        None => digits(text) && text.len() == 11,
    };
    let parts: Vec<&str> = key.split(':').collect();
    Some(match &parts[..] {
        [env, shop, rest @ ..] if ["prod", "staging", "dev"].contains(env) && tenant(shop) => match rest {
            ["user", "profile", id] if digits(id) => "user-profile",
            ["session", id] if id.len() == 17 => "session",
            ["rate", "user", _, hour] if hour.len() == 13 => "rate-limit",
            ["article", "views", _] => "article-views",
            ["rank", "weekly", week] if week.contains("-W") => "weekly-rank",
            ["tag", "members", _] => "tag-members",
            ["config", "flags"] => "feature-flags",
            _ => return None,
        },
        ["cart", shop, user, "items"] if shop.starts_with('{') && user.ends_with('}') => "cart-items",
        ["cart", _, _, "summary"] => "cart-summary",
        ["cart", _, _, "coupon"] => "cart-coupons",
        ["order", "{shop-7}", _] => "order",
        ["cache", "v1", "user", _] => "cache-user-v1",
        ["cache", "v2", "user", _] => "cache-user",
        ["ark", "verify", "login", number] if is_phone(number) => "login-code",
        ["ark", "user", "info", _] => "ark-user",
        ["queue", _] => "mail-queue",
        _ => return None,
    })
}

#[test]
fn exactly_what_is_planted_in_the_dumps() {
    let dumps: Vec<PathBuf> =
        dumps_in("truth").into_iter().filter(|path| path.to_str().unwrap().ends_with("-contracts.rdb")).collect();
    assert!(dumps.len() >= 3);
    for path in dumps {
        let truth = Truth::beside(&path);
        let run = check(&path, &example(), &["--format", "json"]).ended_with(1);
        let found = findings(&run);
        let by_rule = |rule: &str| keys_by_class(&found, rule);
        let total = |rule: &str| by_rule(rule).values().sum::<u64>();

        // Classes with an agreed TTL, by what the server says of their keys.
        let ttl_classes = [
            "user-profile",
            "session",
            "rate-limit",
            "weekly-rank",
            "cart-items",
            "cart-summary",
            "cart-coupons",
            "cache-user-v1",
            "cache-user",
            "login-code",
            "ark-user",
        ];
        let (mut lost, mut permanent) = (Vec::new(), Vec::new());
        for class in ttl_classes {
            let keys = count(&truth, |key, _| class_of(key) == Some(class));
            let never = count(&truth, |key, line| class_of(key) == Some(class) && line.expire_at_ms.is_none());
            match never {
                0 => {}
                never if never * 2 < keys => lost.push((class, never)),
                never => permanent.push((class, never)),
            }
        }
        assert_eq!(by_rule("ttl-lost"), expected(lost), "{path:?}");
        let registered_permanent: BTreeMap<String, u64> =
            by_rule("permanent-unregistered").into_iter().filter(|(class, _)| ttl_classes.contains(&&**class)).collect();
        assert_eq!(registered_permanent, expected(permanent.iter().copied()));
        assert_eq!(permanent, [("cache-user-v1", 125), ("ark-user", 135)]);
        // Every permanent key outside the register is in a finding, beside those lost.
        let outside = count(&truth, |key, line| class_of(key).is_none() && line.expire_at_ms.is_none());
        assert_eq!(total("permanent-unregistered"), 260 + outside);
        let unregistered = count(&truth, |key, _| class_of(key).is_none());
        assert_eq!(total("class-unregistered"), unregistered);

        // Capitals in words: not in weeks and hours, which are no words.
        let is_upper = |key: &str| {
            let text = key.replace("-W", "").replace("2026W34", "").replace("T1", "").replace("T2", "").replace("T0", "");
            text.bytes().any(|b| b.is_ascii_uppercase())
        };
        assert_eq!(total("name-uppercase"), count(&truth, |key, _| is_upper(key)));
        assert_eq!(total("name-space"), count(&truth, |key, _| key.contains(' ')));
        assert_eq!(total("name-control"), count(&truth, |key, _| key.contains('\n')));
        assert_eq!(total("name-non-ascii"), count(&truth, |key, _| key.contains("商店")));
        assert_eq!(total("name-no-namespace"), count(&truth, |key, _| !key.contains(':')));
        assert_eq!(
            total("segment-empty"),
            count(&truth, |key, _| key.contains("::") || key.starts_with(':') || key.ends_with(':'))
        );
        // The missing tenant, and the missing user, environment, and version.
        let lacking = [
            ("prod:user:profile:<digits>", count(&truth, |key, _| key == "prod::user:profile:4")),
            ("user:profile:<digits>", count(&truth, |key, _| key.starts_with("user:profile:"))),
            ("prod:shop-<digits>:user:profile", count(&truth, |key, _| key == "prod:shop-7:user:profile")),
            ("prod:shop-<digits>:user:profile:", count(&truth, |key, _| key == "prod:shop-7:user:profile:")),
            ("cache:user:<digits>", count(&truth, |key, _| key == "cache:user:1")),
        ];
        assert!(lacking.iter().all(|(_, keys)| *keys > 0));
        assert_eq!(by_rule("segment-missing"), expected(lacking));
        let unknown: BTreeSet<String> = by_rule("segment-unknown").into_keys().collect();
        let in_error = [
            "backup_of_prod:shop-<digits>:user:profile:<digits>",
            "prod:shop <digits>:user:profile:<digits>",
            "prod:商店-<digits>:user:profile:<digits>",
            "prod:shop-<digits>:rank:weekly:<digits>-<digits>",
            "prod:shop-<digits>:rank:weekly:<slug>",
            "prod:shop-<digits>:user:profile:<*>",
            "prod:shop-<digits>:user:profile:<digits> <digits>",
            "ark:verify:login:not-a-phone",
            "order:{shop-<digits>:<digits>",
        ];
        assert_eq!(unknown, in_error.iter().map(ToString::to_string).collect());

        // Phone numbers, whole ones in words of any case.
        let is_phone = |key: &str| key.to_lowercase().starts_with("ark:verify:login:") && !key.ends_with("not-a-phone");
        assert_eq!(total("personal-data"), count(&truth, |key, _| is_phone(key)));
        assert!(found.iter().filter(|f| f["rule"] == "personal-data").all(|f| f["place"] == "phone number"));
        assert!(!run.text().contains("13800000002"), "a phone number is shown");

        // One tag for all orders, the braces that do not close, and the tags left out.
        let orders = count(&truth, |key, _| key.starts_with("order:{shop-7}:"));
        assert_eq!(by_rule("tag-hot"), expected([("order", orders)]));
        assert!(found.iter().any(|f| f["rule"] == "tag-hot" && f["place"] == "tag shop-7"));
        assert_eq!(by_rule("braces-unbalanced"), expected([("order:{shop-<digits>:<digits>", 1)]));
        assert_eq!(
            by_rule("tag-differs"),
            expected([("order:shop-<digits>:<digits>", 1), ("cart:shop-<digits>:<digits>:items", 1)])
        );

        // v1 beside v2, which the contract says is current.
        let old = [
            ("cache-user-v1", count(&truth, |key, _| key.starts_with("cache:v1:user:"))),
            ("cache:v01:user:<digits>", count(&truth, |key, _| key.starts_with("cache:v01:"))),
        ];
        assert_eq!(by_rule("version-old"), expected(old));
        let v1 = found.iter().find(|f| f["rule"] == "version-old" && f["class"] == "cache-user-v1").unwrap();
        let message = v1["message"].as_str().unwrap();
        assert!(message.starts_with("250 keys of v1 beside v2, 55.3 % of all: 125 of them never expire"), "{message}");

        // Nothing else.
        let rules: BTreeSet<&str> = found.iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
        assert_eq!(
            rules,
            BTreeSet::from([
                "ttl-lost",
                "permanent-unregistered",
                "name-uppercase",
                "name-space",
                "name-control",
                "name-non-ascii",
                "name-no-namespace",
                "segment-empty",
                "segment-missing",
                "segment-unknown",
                "personal-data",
                "tag-hot",
                "braces-unbalanced",
                "tag-differs",
                "version-old",
                "class-unregistered",
            ]),
            "{path:?}"
        );
    }
}

/// A dump of strings with these expiries, in milliseconds after T0, when it was made; `None` is permanent.
fn strings(keys: impl IntoIterator<Item = (String, Option<i64>)>) -> TempDump {
    let mut body = [&[0xfa][..], &string(b"ctime"), &string(T0.to_string().as_bytes()), &[0xfe, 0]].concat();
    for (key, left_ms) in keys {
        if let Some(left) = left_ms {
            body.push(0xfc);
            body.extend((T0 * 1000 + left).to_le_bytes());
        }
        body.push(0);
        body.extend(string(key.as_bytes()));
        body.extend(string(b"v"));
    }
    TempDump::new(&dump(b"REDIS0010", &body))
}

/// What `check` finds with a contracts file of this text: rules with their keys.
fn found_with(dump: &TempDump, contracts: &str) -> Vec<(String, u64)> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, contracts).unwrap();
    let run = check(&dump.path(), &path, &["--format", "json", "--fail-on", "never"]).ok();
    findings(&run).iter().map(|f| (f["rule"].as_str().unwrap().into(), f["keys"].as_u64().unwrap())).collect()
}

const CACHE: &str = "[[class]]\nname = 'cache'\npattern = 'cache:user:<digits>'\n";

#[test]
fn a_class_in_steady_state_has_no_finding() {
    // A TTL of 120 to 150 s, and keys of all ages: the n-th was written some time in the last 150 s.
    let steady = (0..3000i64).map(|n| {
        let ttl = 120_000 + (n * 7919) % 30_000;
        let age = (n * 104_729) % 150_000;
        (format!("cache:user:{n}"), ttl - age)
    });
    let steady: Vec<_> = steady.filter(|(_, left)| *left > 0).map(|(key, left)| (key, Some(left))).collect();
    assert!(steady.len() > 2000);
    let dump = strings(steady);
    for ttl in ["{ min = '120s', max = '150s' }", "{ max = '150s' }", "{ min = '120s' }"] {
        assert_eq!(found_with(&dump, &format!("{CACHE}ttl = {ttl}\n")), [], "{ttl}");
    }
    assert_eq!(found_with(&dump, CACHE), []);
}

/// Keys of the class whose n-th has so many milliseconds left.
fn left(keys: i64, left_ms: impl Fn(i64) -> Option<i64>) -> TempDump {
    strings((0..keys).map(|n| (format!("cache:user:{n}"), left_ms(n))))
}

#[test]
fn rules_of_lifetime() {
    let with = |dump: &TempDump, ttl: &str| found_with(dump, &format!("{CACHE}ttl = {ttl}\n"));
    let found = |rule: &str, keys: u64| vec![(rule.to_string(), keys)];
    let range = "{ min = '100s', max = '200s' }";
    // The snapshot time has whole seconds: one more is no breach.
    assert_eq!(with(&left(10, |n| Some(200_000 + n * 200)), range), found("ttl-above-max", 4));
    // As many permanent keys as volatile ones are no exception.
    assert_eq!(with(&left(10, |n| (n >= 5).then_some(150_000)), range), found("permanent-unregistered", 5));
    assert_eq!(with(&left(10, |n| (n >= 4).then_some(150_000)), range), found("ttl-lost", 4));
    assert_eq!(with(&left(100, |n| Some(1000 + n * 900)), range), found("ttl-below-min", 100));
    assert_eq!(with(&left(99, |n| Some(1000 + n * 900)), range), [], "too few to tell");
    assert_eq!(with(&left(100, |n| Some(1100 + n * 1000)), range), [], "the last has 100.1 s left");
    // 200 s written as milliseconds: nothing has more than 0.2 s left.
    assert_eq!(with(&left(100, |n| Some(1 + n * 2)), range), found("ttl-unit", 100));
    assert_eq!(with(&left(5, |n| Some(150_000_000 + n)), range), found("ttl-unit", 5));
    assert_eq!(with(&left(5, |n| Some(if n == 0 { 100_000_001 } else { 100_000_000 })), range).len(), 2, "500 times is the edge");
    // Expired ones are told, and are in no other rule of lifetimes.
    assert_eq!(with(&left(4, |n| Some(if n < 3 { -1 } else { 150_000 })), range), found("expired-keys", 3));
    let register = "'permanent'\nowner = 'o'\nsource = 's'\ndelete = 'd'\nbackup = true\nrebuild = false\nbudget = { keys = 10 }";
    assert_eq!(with(&left(10, |_| None), register), []);
    assert_eq!(with(&left(11, |_| None), register), found("budget-keys", 11));
    assert_eq!(with(&left(10, |_| None), &register.replace("'o'", "'TODO'")).len(), 2);
    assert_eq!(with(&left(10, |_| None), &register.replace("backup = true\n", "")), found("register-incomplete", 10));
    assert_eq!(with(&left(10, |n| (n > 7).then_some(1000)), register), found("ttl-unexpected", 2));
}

#[test]
fn expiry_in_one_second_or_minute() {
    let with = |dump: &TempDump, ttl: &str| found_with(dump, &format!("{CACHE}ttl = {ttl}\n"));
    let hour = "{ max = '1h' }";
    // Half of 400 in one second, the others evenly over the hour.
    let second = left(400, |n| Some(if n < 200 { 1_800_000 + n } else { n * 8000 + 4000 }));
    let found = with(&second, hour);
    assert_eq!(found, [("expiry-aligned".to_string(), 200)]);
    // A minute in which each second has four.
    let minute = left(480, |n| Some(if n < 240 { 1_800_000 + n * 250 } else { n * 7000 }));
    // Of the multiples of 7 s, eight lie in that minute too: 258 to 265.
    assert_eq!(with(&minute, hour), [("expiry-aligned".to_string(), 248)]);
    // Where one minute is all the jitter that is agreed, that is what they have.
    assert_eq!(with(&minute, "{ min = '55m', max = '56m' }"), []);
    assert_eq!(with(&left(99, |n| Some(1_800_000 + n)), hour), [], "too few");
}

#[test]
fn severities_and_rules_of_the_file_and_of_a_class() {
    let dump = left(10, |n| (n >= 2).then_some(1000));
    let with = |text: &str, fail_on: &str| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("c.toml");
        fs::write(&path, text).unwrap();
        let run = check(&dump.path(), &path, &["--format", "json", "--fail-on", fail_on]);
        (run.code, findings(&run).iter().map(|f| f["severity"].as_str().unwrap().to_string()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(with(CACHE, "warning"), (1, "error".into()));
    assert_eq!(with(CACHE, "never"), (0, "error".into()));
    for (own, wide, severity) in [
        ("", "lifetime = 'note'", "note"),
        ("", "ttl-lost = 'off'", ""),
        ("ttl-lost = 'warning'", "ttl-lost = 'off'", "warning"),
        ("lifetime = 'off'", "ttl-lost = 'note'", ""),
    ] {
        let text = format!("[rules]\n{wide}\n{CACHE}rules = {{ {own} }}\n");
        assert_eq!(with(&text, "error"), (0, severity.into()), "{text}");
        assert_eq!(with(&text, "note").0, i32::from(!severity.is_empty()), "{text}");
    }
}

#[test]
fn a_baseline_accepts_what_is_known_until_it_grows() {
    let folder = TempDir::new().unwrap();
    let contracts = folder.path().join("c.toml");
    fs::write(&contracts, CACHE).unwrap();
    let baseline = folder.path().join("known.json");
    let at = baseline.to_str().unwrap();
    let lost = |keys: i64| left(1000, move |n| (n >= keys).then_some(1000 + n));
    // What is written is accepted at once.
    check(&lost(100).path(), &contracts, &["--write-baseline", at]).ok();
    let text = fs::read_to_string(&baseline).unwrap();
    assert!(text.contains("{\"rule\":\"ttl-lost\",\"class\":\"cache\",\"keys\":100}"), "{text}");
    let with = |dump: &TempDump| {
        let run = check(&dump.path(), &contracts, &["--format", "csv", "--baseline", at]);
        let (_, rows) = read_csv(&run.stdout);
        (run.code, column(&rows, "status").join(" "))
    };
    assert_eq!(with(&lost(100)), (0, "known".into()));
    assert_eq!(with(&lost(110)), (0, "known".into()), "ten more");
    assert_eq!(with(&lost(111)), (1, "new".into()), "eleven more, and eleven in a hundred");
    assert_eq!(with(&lost(20)), (0, "known".into()));
    assert_eq!(with(&lost(0)), (0, "gone".into()));
    // A file that is none is a mistake of the command line.
    fs::write(&baseline, "{}").unwrap();
    assert!(check(&lost(1).path(), &contracts, &["--baseline", at]).ended_with(2).stderr.contains("known.json"));
    assert_eq!(check(&lost(1).path(), &contracts, &["--baseline", "nowhere.json"]).code, 2);
}

#[test]
fn the_same_findings_however_the_dump_is_cut() {
    let path = support::fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let whole = check(&path, &example(), &["--format", "json", "--threads", "1"]).ended_with(1);
    for arguments in [["--threads", "4"], ["--piece-bytes", "1000"], ["--piece-bytes", "20000"]] {
        let cut = check(&path, &example(), &[&["--format", "json"], &arguments[..]].concat()).ended_with(1);
        assert!(cut.stdout == whole.stdout, "{arguments:?}");
    }
}

#[test]
fn damage_is_not_hidden_by_findings() {
    let bytes = fs::read(support::fixtures().join("truth/redis-7.4.1-contracts.rdb")).unwrap();
    let cut = TempDump::new(&bytes[..bytes.len() / 2]);
    let run = check(&cut.path(), &example(), &["--format", "csv"]).ended_with(3);
    let (_, rows) = read_csv(&run.stdout);
    assert!(!rows.is_empty() && run.stderr.contains("partial"));
    assert!(!column(&rows, "rule").contains(&"pattern-unmatched"), "not all keys were seen");
}

#[test]
fn a_pattern_that_matches_nothing() {
    let dump = left(1, |_| Some(1000));
    let text = format!("{CACHE}[[class]]\nname = 'b'\npattern = 'b:<digits>'\n");
    assert_eq!(found_with(&dump, &text), [("pattern-unmatched".to_string(), 0)]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, text).unwrap();
    let report = Run::of(rdbscope().arg("report").arg(dump.path()).arg("-c").arg(&path)).ok();
    assert!(report.stderr.contains("class 'b': no key matches its pattern"), "{}", report.stderr);
}

#[test]
fn rows_and_files() {
    let path = support::fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("findings.csv");
    let run = check(&path, &example(), &["--format", "csv", "-o", out.to_str().unwrap(), "--examples", "2"]).ended_with(1);
    assert_eq!(run.text(), "");
    let (header, rows) = read_csv(&fs::read(&out).unwrap());
    assert_eq!(
        header,
        ["severity", "rule", "kind", "status", "class", "owner", "place", "keys", "memory_bytes", "examples", "message", "fix"]
    );
    let hot = row(&rows, "rule", "tag-hot");
    assert_eq!((&*hot["severity"], &*hot["kind"], &*hot["owner"], &*hot["keys"]), ("warning", "placement", "order-team", "400"));
    assert_eq!(hot["examples"].lines().count(), 2);
    // Σ memory_usage of the truth over the class.
    assert_eq!(hot["memory_bytes"], "56752");
    let exact = check(&path, &example(), &["--format", "csv", "--show-sensitive"]);
    assert!(exact.text().contains("13800000002"));
    // A dump is never written over.
    assert_eq!(check(&path, &example(), &["-o", path.to_str().unwrap()]).code, 4);
}

/// The tables that `check --tables` writes.
fn tables(dump: &Path, contracts: &Path) -> BTreeMap<String, Vec<support::Row>> {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("tables");
    let run = check(dump, contracts, &["--tables", to.to_str().unwrap(), "--fail-on", "never", "-q"]).ok();
    assert!(!run.text().is_empty());
    let table = |name: &str| (name.to_string(), read_csv(&fs::read(to.join(format!("{name}.csv"))).unwrap()).1);
    assert_eq!(fs::read_dir(&to).unwrap().count(), 5);
    ["findings", "permanent_register", "expiry_timeline", "versions"].into_iter().map(table).collect()
}

#[test]
fn the_permanent_register_sets_agreed_beside_actual() {
    let path = support::fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let truth = Truth::beside(&path);
    let tables = tables(&path, &example());
    let register = &tables["permanent_register"];
    let registered: Vec<&str> = register.iter().filter(|row| row["registered"] == "true").map(|row| &*row["class"]).collect();
    // By permanent memory as the server counts it: 56,752, 21,600, 19,376, 10,408 and 3,840 bytes.
    assert_eq!(registered, ["order", "article-views", "mail-queue", "tag-members", "feature-flags"]);
    assert!(register[..5].iter().all(|row| row["lacking"].is_empty()));
    let order = row(register, "class", "order");
    let cells = ["owner", "source", "backup", "rebuild", "budget_keys", "keys", "permanent_keys", "permanent_memory_bytes"]
        .map(|name| &*order[name]);
    assert_eq!(cells, ["order-team", "postgres orders", "true", "true", "500", "400", "400", "56752"]);
    // Every permanent key is in one row.
    assert_eq!(support::sum(register, "permanent_keys"), count(&truth, |_, line| line.expire_at_ms.is_none()));
    let sessions = row(register, "class", "session");
    assert_eq!((&*sessions["registered"], &*sessions["permanent_keys"], &*sessions["lacking"]), ("false", "10", ""));
}

#[test]
fn the_timeline_of_expiry() {
    let hour = 3_600_000i64;
    let dump = strings([
        ("cache:user:1".into(), Some(60_000)),
        ("cache:user:2".into(), Some(60_001)),
        ("cache:user:3".into(), Some(hour + 1)),
        ("cache:user:4".into(), Some(24 * hour + 1)),
        ("cache:user:5".into(), Some(24 * hour * 100)),
        ("cache:user:6".into(), Some(-1)),
        ("other:1".into(), Some(1)),
        ("other:2".into(), None),
    ]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, CACHE).unwrap();
    let timeline = &tables(&dump.path(), &path)["expiry_timeline"];
    let of = |class: &str| -> Vec<(String, u64, u64)> {
        let rows = timeline.iter().filter(|row| row["class"] == class && row["keys"] != "0");
        rows.map(|row| (row["unit"].clone(), support::number(row, "from_seconds"), support::number(row, "keys"))).collect()
    };
    let expected =
        |spans: &[(&str, u64, u64)]| spans.iter().map(|(unit, from, keys)| (unit.to_string(), *from, *keys)).collect::<Vec<_>>();
    let cache = [("minute", 0, 1), ("minute", 60, 1), ("hour", 0, 2), ("hour", 3600, 1), ("day", 0, 3), ("day", 86_400, 1)];
    assert_eq!(of("cache"), expected(&cache));
    let all = [("minute", 0, 2), ("minute", 60, 1), ("hour", 0, 3), ("hour", 3600, 1), ("day", 0, 4), ("day", 86_400, 1)];
    assert_eq!(of("(all)"), expected(&all));
    // All together, empty spans are there too.
    assert_eq!(timeline.iter().filter(|row| row["class"] == "(all)").count(), 60 + 24 + 90);
    assert_eq!(timeline.iter().filter(|row| row["keys"] == "0" && row["class"] != "(all)").count(), 0);
}

#[test]
fn rules_of_size_type_and_place() {
    // Database 0: a string of 11 bytes, one of 10, a set of three members, a list; database 3: a string.
    let set = [&[2][..], &string(b"s:1"), &[3], &string(b"aaaa"), &string(b"b"), &string(b"c")].concat();
    let list = [&[1][..], &string(b"s:2"), &[1], &string(b"x")].concat();
    let text = |key: &[u8], value: &[u8]| [&[0][..], &string(key), &string(value)].concat();
    let body = [
        &[0xfe, 0][..],
        &text(b"t:1", b"12345678901"),
        &text(b"t:2", b"abcdefghij"),
        &set,
        &list,
        &[0xfe, 3],
        &text(b"t:3", b"x"),
    ]
    .concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &body));
    let classes = |t: &str, s: &str| {
        format!(
            "[rules]\nlifetime = 'off'\n[[class]]\nname = 't'\npattern = 't:<digits>'\n{t}\n[[class]]\nname = 's'\npattern = 's:<digits>'\n{s}\n"
        )
    };
    let found = |t: &str, s: &str| {
        let found = found_with(&dump, &classes(t, s));
        found.iter().map(|(rule, keys)| format!("{rule} {keys}")).collect::<Vec<_>>().join(", ")
    };
    let agreed = "type = ['set', 'list']";
    assert_eq!(found("", agreed), "db-unexpected 1");
    // Of as many of both types, the list counts as the usual one, since it is before the set.
    assert_eq!(found("", ""), "type-mixed 1, db-unexpected 1");
    assert_eq!(found("", "type = 'set'"), "type-unexpected 1, db-unexpected 1");
    assert_eq!(found("limits = { string_bytes = 10 }", agreed), "string-too-long 1, db-unexpected 1");
    assert_eq!(found("limits = { string_bytes = 9 }", agreed), "string-too-long 2, db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ member_bytes = 3 }}")), "member-too-long 1, db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ member_bytes = 4 }}")), "db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ elements = 2 }}")), "elements-too-many 1, db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ elements = 3 }}")), "db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ key_bytes = 2 }}")), "name-too-long 2, db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nlimits = {{ memory_bytes = 1 }}")), "memory-too-large 2, db-unexpected 1");
    // Two keys are the peak of one with a factor of 2, and not that of one with 1.9.
    assert_eq!(found("", &format!("{agreed}\nbudget = {{ keys = 1, peak_factor = 2 }}")), "db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nbudget = {{ keys = 1, peak_factor = 1.9 }}")), "budget-keys 2, db-unexpected 1");
    assert_eq!(found("", &format!("{agreed}\nbudget = {{ memory_bytes = 1 }}")), "budget-memory 2, db-unexpected 1");
    let wide = classes("", agreed);
    assert_eq!(found_with(&dump, &format!("[limits]\ndatabases = [0, 3]\n{wide}")), []);
    assert_eq!(found_with(&dump, &format!("[limits]\ndatabases = [3]\n{wide}")).iter().map(|(_, keys)| keys).sum::<u64>(), 4);
}

#[test]
fn versions_in_a_segment_of_their_own() {
    let dump = strings([1, 1, 2, 3, 4].into_iter().enumerate().map(|(n, version)| (format!("c:v{version}:{n}"), Some(1000))));
    let class = "[[class]]\nname = 'c'\npattern = 'c:<version>:<digits>'\n";
    assert_eq!(found_with(&dump, class), []);
    let found = found_with(&dump, &format!("{class}version = 3\n"));
    assert_eq!(found, [("version-old".to_string(), 2), ("version-old".to_string(), 1)], "v1 and v2");
}

/// Cells of `versions.csv`, without memory.
fn versions(rows: &[support::Row]) -> Vec<String> {
    const COLUMNS: [&str; 10] = [
        "pattern",
        "version",
        "class",
        "is_current",
        "keys",
        "keys_share",
        "permanent_keys",
        "volatile_keys",
        "expired_keys",
        "gone_at",
    ];
    rows.iter().map(|row| COLUMNS.map(|name| &*row[name]).join(" ")).collect()
}

#[test]
fn versions_of_a_pattern_side_by_side() {
    for name in ["redis-6.2.5-contracts.rdb", "redis-7.4.1-contracts.rdb", "valkey-9.1.2-contracts.rdb"] {
        let path = support::fixtures().join("truth").join(name);
        let truth = Truth::beside(&path);
        let meta: Value = serde_json::from_slice(&fs::read(path.with_extension("meta.json")).unwrap()).unwrap();
        let ctime = meta["aux"].as_array().unwrap().iter().find(|aux| aux[0] == "ctime").unwrap()[1].as_str().unwrap();
        let snapshot_ms = ctime.parse::<i64>().unwrap() * 1000;
        let of = |version: &str| -> Vec<&TruthLine> {
            let prefix = format!("cache:{version}:user:");
            truth.lines.iter().filter(|line| line.key.starts_with(prefix.as_bytes())).collect()
        };
        let all: usize = ["v1", "v01", "v2", "v3"].iter().map(|version| of(version).len()).sum();
        let row = |version: &str, class: &str, current: bool| {
            let lines = of(version);
            let expiries: Vec<i64> = lines.iter().filter_map(|line| line.expire_at_ms).collect();
            let expired = expiries.iter().filter(|at| **at <= snapshot_ms).count();
            let permanent = lines.len() - expiries.len();
            let last = expiries.iter().filter(|at| **at > snapshot_ms).max().filter(|_| permanent == 0);
            let number = version.trim_start_matches(['v', '0']);
            format!(
                "cache:<version>:user:<user> v{number} {class} {current} {} {:.6} {permanent} {} {expired} {}",
                lines.len(),
                lines.len() as f64 / all as f64,
                expiries.len() - expired,
                last.and_then(|at| rdbscope::time::rfc3339_millis(*at)).unwrap_or_default(),
            )
        };
        let expected = [
            row("v1", "cache-user-v1", false),
            row("v01", "cache:v01:user:<digits>", false),
            row("v2", "cache-user", true),
            // Ahead of what is agreed.
            row("v3", "cache:v3:user:<digits>", false),
        ];
        let tables = tables(&path, &example());
        let rows: Vec<_> = tables["versions"].iter().filter(|row| row["pattern"].starts_with("cache:")).cloned().collect();
        let mut found = versions(&rows);
        found.iter_mut().for_each(|row| *row = row.replace("<digits> v", "<user> v"));
        assert_eq!(found, expected, "{path:?}");
        // That of Valkey is within what docs/memory-accuracy.md says, and not to the byte.
        if name.starts_with("redis") {
            let memory: u64 = of("v1").iter().filter_map(|line| line.memory_usage).sum();
            assert_eq!(support::number(&rows[0], "memory_bytes"), memory, "{name}");
        }
    }
}

#[test]
fn versions_within_one_class() {
    let second = 1000i64;
    let dump = strings([
        ("c:v1:1".into(), Some(5 * second)),
        ("c:v1:2".into(), Some(9 * second + 1)),
        ("c:v2:3".into(), Some(7 * second)),
        ("c:v2:4".into(), None),
        ("c:3.4.1:5".into(), Some(-1)),
        ("d:v1:x".into(), Some(second)),
    ]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    let with = |text: &str| {
        fs::write(&path, text).unwrap();
        versions(&tables(&dump.path(), &path)["versions"])
    };
    // The dump was made at T0, 2026-01-01T00:00:00Z.
    let class = "[[class]]\nname = 'c'\npattern = 'c:<version>:<digits>'\n";
    let rows = [
        "c:<version>:<digits> v1 c false 2 0.400000 0 2 0 2026-01-01T00:00:09.001Z",
        "c:<version>:<digits> v2 c false 2 0.400000 1 1 0 ",
        "c:<version>:<digits> v3 c true 1 0.200000 0 0 1 ",
        "d:<version>:x v1 d:v1:x true 1 1.000000 0 1 0 2026-01-01T00:00:01.000Z",
    ];
    assert_eq!(with(class), rows);
    // What is agreed is current, also where higher ones are there.
    let agreed = with(&format!("{class}version = 2\n"));
    assert!(agreed[1].contains(" v2 c true ") && agreed[2].contains(" v3 c false "), "{agreed:?}");
    // Without a contract, the words of names tell versions apart, and numbers with dots do not.
    let discovered = with("[[class]]\nname = 'e'\npattern = 'e'\n");
    assert_eq!(
        discovered[..3],
        [
            "c:<version>:<digits>  c:<version>:<digits> false 1 0.200000 0 0 1 ",
            "c:<version>:<digits> v1 c:v1:<digits> false 2 0.400000 0 2 0 2026-01-01T00:00:09.001Z",
            "c:<version>:<digits> v2 c:v2:<digits> true 2 0.400000 1 1 0 ",
        ]
    );
}

#[test]
fn sarif_for_code_hosts() {
    let path = support::fixtures().join("truth/redis-7.4.1-contracts.rdb");
    let run = check(&path, &example(), &["--format", "sarif"]).ended_with(1);
    let log: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    let lines: Vec<String> = fs::read_to_string(example()).unwrap().lines().map(String::from).collect();
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "contracts.toml");
        if !result["properties"]["owner"].is_null() {
            let line = place["region"]["startLine"].as_u64().unwrap() as usize;
            let class = result["properties"]["class"].as_str().unwrap();
            assert_eq!(lines[line - 1], format!("name    = \"{class}\""));
        }
        assert!(result.get("baselineState").is_none());
    }
    let prints: BTreeSet<&str> =
        results.iter().map(|r| r["partialFingerprints"]["rdbscopeFinding/v1"].as_str().unwrap()).collect();
    assert_eq!(prints.len(), results.len());
}

#[test]
fn junit_for_build_servers() {
    let dump = left(10, |n| (n >= 2).then_some(1000));
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.toml");
    fs::write(&path, CACHE.replace("'cache'", "'a<b&\"c\"'")).unwrap();
    let run = check(&dump.path(), &path, &["--format", "junit"]).ended_with(1);
    let text = run.text();
    assert_eq!(text.matches("<failure ").count(), 1);
    assert!(text.contains("failures=\"1\""), "{text}");
    assert!(text.contains("error: a&lt;b&amp;&quot;c&quot;: 2 of 10 keys never expire, 20.0 %\n  cache:user:0\n"), "{text}");
    let passed = check(&dump.path(), &path, &["--format", "junit", "--fail-on", "never"]).ok();
    assert!(passed.text().contains("failures=\"0\"") && passed.text().contains("<system-out>error: "));
    assert_eq!(text.matches("<testcase ").count(), rdbscope::findings::Rule::ALL.len());
}

#[test]
fn every_rule_has_its_section_and_every_section_its_rule() {
    let text = include_str!("../docs/rules.md");
    let sections: Vec<&str> = text.split("\n### ").skip(1).collect();
    assert_eq!(sections.len(), rdbscope::findings::Rule::ALL.len());
    for (rule, section) in rdbscope::findings::Rule::ALL.iter().zip(sections) {
        assert_eq!(section.lines().next(), Some(rule.id()));
        assert!(section.contains(&format!("Severity: {}.", rule.severity())), "{rule}");
        for part in ["**Means.**", "**Hurts.**", "**Fix.**", "**Silence.**"] {
            assert!(section.contains(part), "{rule} {part}");
        }
    }
    for kind in rdbscope::findings::Kind::ALL {
        assert!(text.contains(&format!("\nKind `{}`.\n", kind.name())), "{}", kind.name());
    }
}
