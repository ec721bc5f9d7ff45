//! The summary that a person reads first: one screen.

use std::fmt::Write as _;

use bytesize::ByteSize;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::HumanCount;

use rdbscope::advice::{self, Advice, Kind};
use rdbscope::analyse::Dump;
use rdbscope::census::TTL_BUCKETS;
use rdbscope::findings::{Severity, Status, Verdict};
use rdbscope::key_text;
use rdbscope::privacy::Names;
use rdbscope::recover::Recovery;
use rdbscope::report::Report;
use rdbscope::skew::Skew;
use rdbscope::time;

/// Rows of the longest list on the screen.
const CLASS_ROWS: usize = 10;
const KEY_ROWS: usize = 5;

/// Characters of a line.
const SCREEN_WIDTH: usize = 100;

/// Characters of a class or key before it is cut.
const NAME_WIDTH: usize = 40;

/// `1.2 MiB`; below 1 KiB plain bytes.
pub fn bytes_text(bytes: u64) -> String {
    if bytes < 1024 { format!("{bytes} B") } else { ByteSize(bytes).display().iec().to_string() }
}

/// `1,234,567`.
pub fn count_text(n: u64) -> String {
    HumanCount(n).to_string()
}

/// The summary of a report; `filter` is what was asked for, and empty where nothing was.
pub fn summary(report: &Report, dumps: &[Dump], names: &Names, filter: &str, colours: bool) -> String {
    let mut text = String::new();
    let name = |key: &[u8]| cut(&key_text::escape(&names.of(key)));
    let heading = |name: &str| if colours { format!("\x1b[1m{name}\x1b[0m") } else { name.to_string() };
    let total = &report.total;
    // Writing to a String does not fail.
    if !filter.is_empty() {
        let _ = writeln!(text, "Filtered: {} of {} keys matched {filter}", total.keys, report.keys_walked);
    }
    for (dump, outcome) in dumps.iter().zip(&report.outcomes).take(KEY_ROWS) {
        let version = dump
            .head
            .server_version()
            .map_or_else(|| "of unknown version".into(), |v| key_text::escape(v.as_bytes()).into_owned());
        let snapshot = dump.model.snapshot.map_or_else(
            || format!("no snapshot time: it has no ctime, and {} (--as-of sets one)", dump.input.undated_because()),
            |s| format!("snapshot {} ({})", time::rfc3339(s.at_ms).unwrap_or_else(|| s.at_ms.to_string()), s.source.name()),
        );
        let partial = if outcome.is_partial() { "  PARTIAL" } else { "" };
        let _ = writeln!(text, "{}{partial}", heading(&dump.name()));
        let facts = format!(
            "  {} {}, {}, {}, checksum {},",
            dump.head.product(),
            cut(&version),
            String::from_utf8_lossy(&dump.head.dialect().header()),
            bytes_text(dump.input.stored_bytes()),
            outcome.end.checksum.name(),
        );
        let fits = facts.chars().count() + snapshot.len() < SCREEN_WIDTH;
        let _ = writeln!(text, "{facts}{}{snapshot}", if fits { " " } else { "\n  " });
        if let Some(bytes) = outcome.end.window_grown_to {
            let _ = writeln!(text, "  a record was larger than a window, which grew to {} for it", bytes_text(bytes));
        }
    }
    if dumps.len() > KEY_ROWS {
        let _ = writeln!(text, "and {}", plural(dumps.len() as u64 - KEY_ROWS as u64, "more dump", "more dumps"));
    }
    let _ = writeln!(
        text,
        "{}  {} in {}, {}; {} in memory, {} in the dump\n  {} permanent ({}), {} volatile, {} expired",
        heading("Totals"),
        plural(total.keys, "key", "keys"),
        plural(report.databases.len() as u64, "database", "databases"),
        plural(total.elements, "element", "elements"),
        bytes_text(total.memory_bytes),
        bytes_text(report.bytes()),
        count_text(total.permanent_keys),
        percent(total.permanent_keys, total.keys),
        count_text(total.volatile_keys()),
        count_text(total.expired_keys),
    );
    if total.not_modelled_keys > 0 {
        let keys = plural(total.not_modelled_keys, "key is", "keys are");
        let _ = writeln!(text, "  {keys} of types whose memory is not modelled, and in no memory figure");
    }
    if report.fields.keys > 0 {
        let fields = &report.fields;
        let _ = writeln!(
            text,
            "  {} with field expiries: {}, {} expired; {} permanent in name only: every field expires",
            plural(fields.keys, "key", "keys"),
            plural(fields.fields, "field", "fields"),
            count_text(fields.expired),
            count_text(fields.permanent_keys_emptied),
        );
    }
    if let Some(recovered) = &report.recovered {
        let skipped: u64 = recovered.recoveries.iter().map(Recovery::skipped_bytes).sum();
        let is_unsearched = recovered.recoveries.iter().any(|recovery| recovery.needs_file.is_some());
        let unsearched = if is_unsearched { ", and what is behind the faults of streams, which were not searched" } else { "" };
        let _ = writeln!(
            text,
            "{}  {} behind faults, {} in the dump, in no other figure; {} skipped{unsearched}",
            heading("Recovered"),
            plural(recovered.total.keys, "key", "keys"),
            bytes_text(recovered.total.serialized_bytes),
            bytes_text(skipped),
        );
    }
    if total.keys == 0 {
        return text;
    }
    let shown = report.classes.len().min(CLASS_ROWS) as u64;
    let of = count_text(report.classes.len() as u64);
    let _ = writeln!(text, "\n{} ({} of {of})", heading("Classes by memory"), count_text(shown));
    let rows = report.classes.iter().take(CLASS_ROWS).map(|class| {
        let stats = &class.stats;
        let counts = &stats.counts;
        let [p99] = stats.memory.quantiles([0.99]);
        let modelled = counts.not_modelled_keys < counts.keys || counts.keys == 0;
        [
            cut(&names.of_text(&class.name)),
            count_text(counts.keys),
            if modelled { bytes_text(counts.memory_bytes) } else { String::new() },
            percent(counts.memory_bytes, total.memory_bytes),
            p99.map_or_else(String::new, bytes_text),
            count_text(counts.permanent_keys),
            stats.ttl_seconds.max().map_or_else(String::new, duration_text),
        ]
    });
    text.push_str(&grid(["class", "keys", "memory", "share", "p99", "permanent", "TTL max"], &[], rows));
    if !report.big_keys.is_empty() {
        let _ = writeln!(text, "\n{}", heading("Big keys"));
        let rows = report.big_keys.iter().take(KEY_ROWS).map(|big| {
            [
                name(&big.row.key),
                format!("{} {}", big.row.key_type, big.row.encoding),
                big.row.elements.map_or_else(String::new, count_text),
                big.row.memory_bytes.map_or_else(|| "not modelled".into(), bytes_text),
                big.rules.join(";"),
            ]
        });
        text.push_str(&grid(["key", "type", "elements", "memory", "rule"], &[1, 4], rows));
    }
    let _ = writeln!(
        text,
        "\n{}  {}, {} ({} of memory)",
        heading("Permanent"),
        plural(total.permanent_keys, "key", "keys"),
        bytes_text(total.permanent_memory_bytes),
        percent(total.permanent_memory_bytes, total.memory_bytes),
    );
    if !report.permanent_keys.is_empty() {
        let rows = report.permanent_keys.iter().take(3).map(|(row, class)| {
            let memory = row.memory_bytes.map_or_else(|| "not modelled".into(), bytes_text);
            [name(&row.key), memory, cut(&names.of_text(class))]
        });
        text.push_str(&grid(["largest", "memory", "class"], &[2], rows));
    }
    let _ = writeln!(text, "\n{}  {}", heading("TTL"), ttl_line(report));
    let _ = writeln!(text, "{}  {}", heading("Slots"), slot_lines(report));
    let advice = advice_lines(report, names);
    if !advice.is_empty() {
        let _ = writeln!(text, "{}  (more in advice.csv)\n{advice}", heading("Would save memory"));
    }
    text
}

/// The best advice of each kind, where it saves at least one percent.
fn advice_lines(report: &Report, names: &Names) -> String {
    let best = |kind: Kind| {
        let of_kind = |advice: &&Advice| advice.kind == kind && (kind != Kind::RaiseLimit || advice.class == advice::ALL);
        let best = report.advice.iter().find(of_kind)?;
        let Advice { class, from, to, keys, saved_bytes, .. } = best;
        let share = *saved_bytes as f64 / report.total.memory_bytes.max(1) as f64;
        let what = match kind {
            Kind::RaiseLimit => format!("{to} instead of {}", from.rsplit(' ').next().unwrap_or_default()),
            Kind::OneHash => format!("one hash {} for the strings of each", cut(&names.of_text(class))),
            Kind::ShorterPrefix => format!("{} instead of {}", cut(&names.of_text(to)), cut(&names.of_text(from))),
        };
        (share >= 0.01).then(|| format!("  {}  {what}, {}", bytes_text(*saved_bytes), plural(*keys, "key", "keys")))
    };
    [Kind::RaiseLimit, Kind::OneHash, Kind::ShorterPrefix].into_iter().filter_map(best).collect::<Vec<_>>().join("\n")
}

/// Keys in each TTL bucket that has any.
fn ttl_line(report: &Report) -> String {
    let mut parts = Vec::new();
    for (at, bucket) in TTL_BUCKETS.iter().enumerate() {
        let keys: u64 = report.classes.iter().map(|class| class.stats.ttl[at].0).sum();
        if keys > 0 {
            let upto = if bucket.upper_seconds.is_some() { "≤" } else { "" };
            parts.push(format!("{upto}{} {}", bucket.name, count_text(keys)));
        }
    }
    parts.join(" · ")
}

/// Use of slots, and the fullest by keys and by memory, a line each.
fn slot_lines(report: &Report) -> String {
    let keys = Skew::of_keys(report);
    let memory = Skew::of_memory(report);
    let fullest = |skew: &Skew, value: String| match (skew.max_slot, skew.max_over_mean) {
        (Some(slot), Some(ratio)) => {
            let chance = skew.expected_max_over_mean.map_or_else(String::new, |x| format!("; chance alone gives {x:.1} ×"));
            format!("slot {slot}, {value}: {ratio:.1} × the mean{chance}")
        }
        _ => "none".into(),
    };
    format!(
        "{} of {} used\n  most keys    {}\n  most memory  {}",
        count_text(keys.used),
        count_text(keys.population),
        fullest(&keys, plural(keys.max, "key", "keys")),
        fullest(&memory, bytes_text(memory.max)),
    )
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "0 %".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

fn duration_text(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=3599 => format!("{}m", seconds / 60),
        3600..=7199 => format!("1h {}m", seconds / 60 % 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Cuts a long name in its middle, so that both ends can be told.
fn cut(name: &str) -> String {
    let n = name.chars().count();
    if n <= NAME_WIDTH {
        return name.into();
    }
    let half = (NAME_WIDTH - 1) / 2;
    let head: String = name.chars().take(half).collect();
    let tail: String = name.chars().skip(n - half).collect();
    format!("{head}…{tail}")
}

/// A table without lines: the first column and those in `left` to the left, the others to the right.
fn grid<const N: usize>(header: [&str; N], left: &[usize], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if at == 0 { 2 } else { 1 }, 1));
        let is_left = at == 0 || left.contains(&at);
        column.set_cell_alignment(if is_left { CellAlignment::Left } else { CellAlignment::Right });
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}

/// `1 key`, `1,234 keys`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count_text(n), if n == 1 { one } else { many })
}

/// Findings for people: the new ones with all there is to say, the others in a line each.
pub fn findings(verdict: &Verdict, keys: u64, colours: bool) -> String {
    let mut text = String::new();
    let paint = |severity: Severity| {
        let name = severity.name();
        match severity {
            _ if !colours => name.to_string(),
            Severity::Error => format!("\x1b[1;31m{name}\x1b[0m"),
            Severity::Warning => format!("\x1b[1;33m{name}\x1b[0m"),
            Severity::Note => format!("\x1b[1m{name}\x1b[0m"),
        }
    };
    let of = |status: Status| verdict.findings.iter().filter(move |finding| finding.status == status);
    let place = |place: &str| if place.is_empty() { String::new() } else { format!(" ({place})") };
    // Writing to a String does not fail.
    for finding in of(Status::New) {
        let owner = finding.owner.as_ref().map_or_else(String::new, |owner| format!(", {owner}"));
        let _ = writeln!(
            text,
            "{} {}  {}{owner}{}: {}, {}",
            paint(finding.severity),
            finding.rule,
            finding.class,
            place(&finding.place),
            plural(finding.keys, "key", "keys"),
            bytes_text(finding.memory_bytes),
        );
        let _ = writeln!(text, "  {}", finding.message);
        for key in &finding.examples {
            let _ = writeln!(text, "  e.g. {key}");
        }
        let _ = writeln!(text, "  → {}\n", finding.fix);
    }
    for finding in of(Status::Known) {
        let _ = writeln!(
            text,
            "known    {}  {}{}: {}",
            finding.rule,
            finding.class,
            place(&finding.place),
            plural(finding.keys, "key", "keys")
        );
    }
    for entry in &verdict.gone {
        let _ = writeln!(
            text,
            "gone     {}  {}{}: {} before",
            entry.id.rule,
            entry.id.class,
            place(&entry.id.place),
            plural(entry.keys, "key", "keys")
        );
    }
    let count = |severity: Severity| of(Status::New).filter(|finding| finding.severity == severity).count() as u64;
    let mut sums = vec![
        plural(count(Severity::Error), "error", "errors"),
        plural(count(Severity::Warning), "warning", "warnings"),
        plural(count(Severity::Note), "note", "notes"),
    ];
    if verdict.has_baseline {
        sums.push(format!("{} known", count_text(of(Status::Known).count() as u64)));
        sums.push(format!("{} gone", count_text(verdict.gone.len() as u64)));
    }
    let _ = writeln!(text, "{}: {}", plural(keys, "key", "keys"), sums.join(", "));
    text
}
