//! Which servers' dumps are read, and how that is known.

use std::fmt;

/// A server line whose dumps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLine {
    /// Product and versions.
    pub server: &'static str,
    /// First nine bytes of its dumps.
    pub header: &'static str,
    /// What its dumps have that earlier ones do not.
    pub brings: &'static str,
    /// How its dumps were verified.
    pub verified: &'static [Verified],
}

/// A way in which the reading of a dump was verified, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verified {
    /// Dumps of a real server in `fixtures/truth`, every key held against what that server answered.
    Fixtures,
    /// Dumps that a live server writes while the tests run, every key held against what it answers.
    Live,
    /// Bytes that a server wrote or loaded, from the description of the format.
    Examples,
    /// Bytes made by hand from the description, or by the independent writer in `tests`; no server was asked.
    Layout,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixtures => "fixtures",
            Self::Live => "live",
            Self::Examples => "worked examples",
            Self::Layout => "layout only",
        })
    }
}

use Verified::{Examples, Fixtures, Layout, Live};

const fn line(server: &'static str, header: &'static str, brings: &'static str, verified: &'static [Verified]) -> ServerLine {
    ServerLine { server, header, brings, verified }
}

/// All server lines whose dumps are read; README.md holds the same table.
pub const SUPPORTED: &[ServerLine] = &[
    line(
        "Redis up to 3.0",
        "REDIS0001 to REDIS0006",
        "strings, lists, sets, sorted sets, hashes, zipmaps, ziplists, intsets",
        &[Layout],
    ),
    line("Redis 3.2", "REDIS0007", "lists of ziplists, attributes of the file", &[Layout]),
    line("Redis 4.0", "REDIS0008", "modules, 64-bit lengths, binary scores", &[Layout]),
    line("Redis 5.0, 6.0, 6.2", "REDIS0009", "streams, idle times and frequencies, module data", &[Fixtures, Live]),
    line("Redis 7.0", "REDIS0010", "listpacks, functions, streams with deleted ids", &[Fixtures, Live]),
    line("Redis 7.2; Valkey 7.2, 8.0, 8.1", "REDIS0011", "sets as listpacks, active times of consumers", &[Layout]),
    line("Redis 7.4, release candidates", "REDIS0012", "field expiries in types 22 and 23", &[Layout]),
    line("Redis 7.4, 8.0, 8.2, 8.4", "REDIS0012", "field expiries, slot records, vector sets", &[Fixtures, Live]),
    line("Redis 8.6", "REDIS0013", "streams that tell producers apart, metadata of keys", &[Fixtures, Examples]),
    line("Redis 8.8", "REDIS0014", "streams with entries handed back, arrays", &[Examples]),
    line("Redis 8.10", "REDIS0015", "hash templates", &[Layout]),
    line(
        "Redis 8.12",
        "REDIS0016",
        "read as far as REDIS0015 goes; its bitmaps, member expiries and flag are refused by number",
        &[Layout],
    ),
    line("Valkey 9.0, 9.1", "VALKEY080", "field expiries, slot imports, slots as attributes", &[Fixtures, Live, Examples]),
    line(
        "Valkey 9.2, development",
        "VALKEY081",
        "hashes of paths, the LZ4 envelope; commands among records are refused",
        &[Layout],
    ),
    line("KeyDB 6.3", "REDIS0009", "member expiries, time stamps, cron jobs", &[Layout]),
    line(
        "Dragonfly",
        "REDIS0009",
        "records compressed together or in chunks, member expiries, JSON, filters and sketches",
        &[Layout],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Dialect;

    #[test]
    fn every_header_is_one() {
        for line in SUPPORTED {
            for header in line.header.split(" to ") {
                let bytes = header.as_bytes().try_into().expect("nine bytes");
                assert!(Dialect::parse(bytes).is_some(), "{header}");
            }
        }
        // What is newer than these is read with a warning.
        for newest in [b"REDIS0016", b"VALKEY082"] {
            assert!(Dialect::parse(newest).is_some_and(|dialect| dialect.is_newer_than_known()));
        }
    }

    #[test]
    fn the_readme_has_the_same_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        let readme = std::fs::read_to_string(path).expect("README.md is there");
        let header = "| server | header | what is new | verified by |\n| --- | --- | --- | --- |\n";
        let row = |line: &ServerLine| {
            let verified: Vec<String> = line.verified.iter().map(Verified::to_string).collect();
            let headers: Vec<String> = line.header.split(" to ").map(|header| format!("`{header}`")).collect();
            format!("| {} | {} | {} | {} |\n", line.server, headers.join(" to "), line.brings, verified.join(", "))
        };
        let table: String = std::iter::once(header.to_string()).chain(SUPPORTED.iter().map(row)).collect();
        assert!(readme.contains(&format!("\n{table}\n")), "README.md should hold:\n{table}");
    }
}
