//! Outputs: all of them or none, with the permissions that they are to have, and a standard output that is not there.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Run, TempDump, dump, string};
use tempfile::TempDir;

/// A dump with so many keys that never expire.
fn keys(n: u32) -> TempDump {
    let record = |at: u32| [&[0][..], &string(format!("user:{at:06}").as_bytes()), &string(b"value")].concat();
    TempDump::new(&dump(b"REDIS0011", &[vec![0xfe, 0], (0..n).flat_map(record).collect()].concat()))
}

fn contracts(folder: &Path) -> PathBuf {
    let path = folder.join("contracts.toml");
    fs::write(&path, "[[class]]\nname = \"user\"\npattern = \"user:<digits>\"\nttl = { max = \"1h\" }\n").unwrap();
    path
}

/// Runs a line of the shell in which `$0` is the program.
fn shell(line: &str) -> Run {
    Run::of(Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_rdbscope")]).env("NO_COLOR", "1"))
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_keep_their_permissions_and_new_ones_follow_the_umask() {
    let folder = TempDir::new().unwrap();
    let dump = keys(3);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let file = folder.path().join("keys.csv");
    for (umask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        let _ = fs::remove_file(&file);
        shell(&format!("umask {umask}; \"$0\" keys {} -o {}", dump.path().display(), file.display())).ok();
        assert_eq!(mode(&file), expected, "umask {umask}");
        let report = folder.path().join(umask);
        shell(&format!("umask {umask}; \"$0\" report {} -o {}", dump.path().display(), report.display())).ok();
        assert_eq!(mode(&report.join("classes.csv")), expected, "umask {umask}");
        assert_eq!(mode(&report.join("manifest.json")), expected, "umask {umask}");
    }
    for kept in [0o600, 0o640, 0o666, 0o755] {
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(kept)).unwrap();
        shell(&format!("umask 027; \"$0\" keys {} -o {}", dump.path().display(), file.display())).ok();
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap().lines().count()), (kept, 4));
    }
}

/// One output cannot be written: none is, and what was there is as it was.
#[test]
fn a_check_writes_all_of_its_outputs_or_none() {
    let dump = keys(2000);
    let setup = || {
        let folder = TempDir::new().unwrap();
        let contracts = contracts(folder.path());
        let tables = folder.path().join("tables");
        fs::create_dir(&tables).unwrap();
        for name in
            ["tables/findings.csv", "tables/permanent_register.csv", "tables/expiry_timeline.csv", "out.json", "base.json"]
        {
            fs::write(folder.path().join(name), "old").unwrap();
        }
        let line = format!(
            "\"$0\" check {} -c {} --format json -o {at}/out.json --write-baseline {at}/base.json --tables {at}/tables --force",
            dump.path().display(),
            contracts.display(),
            at = folder.path().display()
        );
        (folder, line)
    };
    let is_old = |folder: &Path| {
        assert_eq!(names_in(folder), ["base.json", "contracts.toml", "out.json", "tables"]);
        assert_eq!(names_in(&folder.join("tables")), ["expiry_timeline.csv", "findings.csv", "permanent_register.csv"]);
        for name in
            ["tables/findings.csv", "tables/permanent_register.csv", "tables/expiry_timeline.csv", "out.json", "base.json"]
        {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "old", "{name}");
        }
    };
    // 512 bytes, or 1,024: the tables may fit, the findings as JSON do not.
    let (folder, line) = setup();
    let full = shell(&format!("ulimit -f 1; {line} --examples 100")).ended_with(4);
    assert!(full.stderr.contains("cannot write the findings"), "{}", full.stderr);
    assert!(full.stderr.contains("nothing was left behind: raise the limit"), "{}", full.stderr);
    is_old(folder.path());
    // Without a limit all of them are written.
    let (folder, line) = setup();
    shell(&line).ok();
    for name in ["tables/findings.csv", "out.json", "base.json"] {
        assert_ne!(fs::read_to_string(folder.path().join(name)).unwrap(), "old", "{name}");
    }
    assert_eq!(names_in(folder.path()), ["base.json", "contracts.toml", "out.json", "tables"]);
    // Findings that go to a full device are an error, and the baseline is not accepted for it.
    let (folder, line) = setup();
    let full = shell(&line.replace(&format!("-o {}/out.json", folder.path().display()), "> /dev/full")).ended_with(4);
    assert!(full.stderr.contains("standard output: No space left"), "{}", full.stderr);
    assert!(!full.stderr.contains("nothing was left behind"), "{}", full.stderr);
    is_old(folder.path());
}

/// A target that turns into a folder while the program works: names that were given before are taken back.
#[test]
fn a_name_that_cannot_be_taken() {
    let folder = TempDir::new().unwrap();
    let (dump, contracts) = (keys(2000), contracts(folder.path()));
    let at = folder.path();
    fs::write(at.join("out.json"), "old").unwrap();
    // The dump comes by a pipe, so that the test decides when the run goes on.
    let mut child = Command::new(env!("CARGO_BIN_EXE_rdbscope"))
        .args(["check", "-", "--format", "json", "-c"])
        .arg(&contracts)
        .arg("-o")
        .arg(at.join("out.json"))
        .arg("--write-baseline")
        .arg(at.join("base.json"))
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = std::time::Instant::now();
    while names_in(at).iter().filter(|name| name.starts_with(".rdbscope-")).count() < 2 {
        assert!(begin.elapsed().as_secs() < 60, "{:?}", names_in(at));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    fs::create_dir(at.join("base.json")).unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &fs::read(dump.path()).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("cannot write the findings") && stderr.contains("base.json"), "{stderr}");
    assert_eq!(names_in(at), ["base.json", "contracts.toml", "out.json"]);
    assert_eq!(fs::read_to_string(at.join("out.json")).unwrap(), "old");
}

#[test]
fn too_many_open_files() {
    let folder = TempDir::new().unwrap();
    let dump = keys(3);
    let report = folder.path().join("report");
    let run = shell(&format!("ulimit -n 16; \"$0\" report {} -o {}", dump.path().display(), report.display())).ended_with(4);
    assert!(run.stderr.contains("too many files are open: raise the limit (ulimit -n)"), "{}", run.stderr);
    assert_eq!(names_in(folder.path()), [""; 0]);
}

/// What is on a full disk by way of the shell stays there, and nobody says that it does not.
#[test]
fn rows_that_were_redirected_to_a_full_disk() {
    let folder = TempDir::new().unwrap();
    let dump = keys(20_000);
    let file = folder.path().join("keys.csv");
    let run = shell(&format!("ulimit -f 8; \"$0\" keys {} > {}", dump.path().display(), file.display())).ended_with(4);
    assert!(!run.stderr.contains("nothing was left behind"), "{}", run.stderr);
    assert!(run.stderr.contains("what was written before is not complete: remove it"), "{}", run.stderr);
    assert!(fs::metadata(&file).unwrap().len() > 0);
}
