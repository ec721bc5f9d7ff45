//! What tests share: running the program, reading its tables, building dumps.

// Each test crate uses a part of this.
#![allow(dead_code)]

pub mod facts;
pub mod truth;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// 2026-01-01T00:00:00Z, the moment that the cases count from.
pub const T0: i64 = 1_767_225_600;

/// A row of a table by column name; what is empty in the file is the empty string.
pub type Row = BTreeMap<String, String>;

/// The program, ready for arguments.
pub fn rdbscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdbscope"));
    command.stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let stderr = String::from_utf8(stderr).expect("messages are UTF-8");
        // A signal has no code, and no test expects one.
        let code = status.code().expect("the program exits");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { code, stdout, stderr }
    }

    /// Standard output, which is text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("tables are UTF-8")
    }

    /// The same run, which must have gone well.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.ended_with(0)
    }

    /// The same run, which must have ended with `code`.
    #[track_caller]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stderr: {}", self.stderr);
        self
    }
}

/// Runs the program with `arguments`.
pub fn run<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Run {
    Run::of(rdbscope().args(arguments))
}

/// Header and rows of a CSV file; a row that is shorter or longer than the header is an error.
pub fn read_csv(bytes: &[u8]) -> (Vec<String>, Vec<Row>) {
    let mut reader = csv::Reader::from_reader(bytes);
    let header: Vec<String> = reader.headers().expect("a header").iter().map(str::to_string).collect();
    let rows = reader
        .records()
        .map(|record| {
            let record = record.expect("as many cells as columns");
            header.iter().cloned().zip(record.iter().map(str::to_string)).collect()
        })
        .collect();
    (header, rows)
}

/// Values of one column, in row order.
pub fn column<'r>(rows: &'r [Row], name: &str) -> Vec<&'r str> {
    rows.iter().map(|row| row[name].as_str()).collect()
}

/// The one row whose column `name` is `value`.
#[track_caller]
pub fn row<'r>(rows: &'r [Row], name: &str, value: &str) -> &'r Row {
    let mut found = rows.iter().filter(|row| row[name] == value);
    match (found.next(), found.next()) {
        (Some(row), None) => row,
        (None, _) => panic!("no row with {name} = {value} in {rows:#?}"),
        _ => panic!("more than one row with {name} = {value}"),
    }
}

/// A cell that holds a number.
#[track_caller]
pub fn number(row: &Row, name: &str) -> u64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name} is {:?}", row[name]))
}

/// Sum of a column of numbers.
pub fn sum(rows: &[Row], name: &str) -> u64 {
    rows.iter().map(|row| number(row, name)).sum()
}

/// The tables that `report -o` wrote.
#[derive(Debug)]
pub struct Report {
    pub run: Run,
    /// Bytes of each file, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Report {
    /// Runs `report` with `arguments` and reads what it wrote. Nothing is said of its exit code.
    pub fn of<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let run = Run::of(rdbscope().arg("report").arg("-o").arg(folder.path()).args(arguments));
        Self::read(run, folder.path())
    }

    /// What such a run has written into `folder`.
    pub fn read(run: Run, folder: &Path) -> Self {
        let files = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().into_string().expect("file names are UTF-8");
                (name, std::fs::read(entry.path()).expect("the file can be read"))
            })
            .collect();
        Self { run, files }
    }

    /// The rows of one table.
    #[track_caller]
    pub fn table(&self, name: &str) -> Vec<Row> {
        let bytes = self.files.get(&format!("{name}.csv"));
        read_csv(bytes.unwrap_or_else(|| panic!("no table {name}: {}", self.run.stderr))).1
    }

    /// A value of the table of totals.
    #[track_caller]
    pub fn total(&self, name: &str) -> u64 {
        number(row(&self.table("summary"), "name", name), "value")
    }
}

/// The folder of fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Every dump in a folder of fixtures, by name.
pub fn dumps_in(folder: &str) -> Vec<PathBuf> {
    let mut dumps: Vec<PathBuf> = std::fs::read_dir(fixtures().join(folder))
        .expect("fixtures are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "rdb"))
        .collect();
    dumps.sort();
    dumps
}

/// Every dump that is a fixture.
pub fn all_dumps() -> Vec<PathBuf> {
    [dumps_in("truth"), dumps_in("cases")].concat()
}

/// File name without folders.
pub fn name(path: &Path) -> String {
    path.file_name().and_then(OsStr::to_str).expect("fixtures have names").to_string()
}

/// A dump in a temporary file.
#[derive(Debug)]
pub struct TempDump {
    folder: TempDir,
}

impl TempDump {
    pub fn new(bytes: &[u8]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::write(folder.path().join("dump.rdb"), bytes).expect("the file is written");
        Self { folder }
    }

    /// A dump that a case gives as hexadecimal digits.
    pub fn from_hex(digits: &str) -> Self {
        Self::new(&hex(digits))
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("dump.rdb")
    }

    /// Runs `keys` with `arguments` on it.
    pub fn run_keys(&self, arguments: &[&str]) -> Run {
        Run::of(rdbscope().arg("keys").arg(self.path()).args(arguments))
    }

    /// Rows of `keys`, which must go well, as CSV.
    #[track_caller]
    pub fn keys(&self, arguments: &[&str]) -> Vec<Row> {
        read_csv(&self.run_keys(arguments).ok().stdout).1
    }

    /// Rows of `keys`, which must go well, as JSON.
    #[track_caller]
    pub fn keys_json(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let run = self.run_keys(&[&["--format", "jsonl"], arguments].concat()).ok();
        run.text().lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// What `report -o` with `arguments` writes of it.
    pub fn report(&self, arguments: &[&str]) -> Report {
        let path = self.path();
        let arguments = arguments.iter().map(OsStr::new);
        Report::of(std::iter::once(path.as_os_str()).chain(arguments))
    }
}

/// Bytes of hexadecimal digits.
pub fn hex(digits: &str) -> Vec<u8> {
    assert_eq!(digits.len() % 2, 0, "an odd number of digits");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

/// `body` as a dump of `header`: with an end mark and the checksum of its bytes, which formats before 5 do not have.
pub fn dump(header: &[u8; 9], body: &[u8]) -> Vec<u8> {
    let mut bytes = [&header[..], body, &[0xff]].concat();
    if header >= b"REDIS0005" {
        let crc = crc::Crc::<u64>::new(&crc::CRC_64_REDIS).checksum(&bytes);
        bytes.extend(crc.to_le_bytes());
    }
    bytes
}

/// A string as a dump holds it: its length in 14 or 32 bits, then its bytes.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).expect("a short string");
    let prefix = match len {
        0..64 => vec![len as u8],
        64..16_384 => (0x4000 | len as u16).to_be_bytes().to_vec(),
        _ => [&[0x80][..], &len.to_be_bytes()].concat(),
    };
    [&prefix, bytes].concat()
}
