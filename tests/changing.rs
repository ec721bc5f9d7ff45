//! Files that change while they are read, outputs that do not fit, and runs that are interrupted.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;
#[path = "support/writer.rs"]
mod writer;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::{rdbscope, read_csv, run};
use tempfile::TempDir;
use writer::{DumpWriter, Magic};

/// Keys of a dump whose rows do not fit into a pipe: more than 4 MB of them.
const KEYS: usize = 40_000;

/// A dump of some 6 MB; without a checksum it brings a warning.
fn large_dump(folder: &Path) -> PathBuf {
    let mut w = DumpWriter::in_memory(Magic::Redis(11));
    w.aux("ctime", "1767225600").select_db(0);
    for at in 0..KEYS {
        w.key(&format!("a:long:name:{at:05}:{}", "n".repeat(80))).string("v".repeat(60));
    }
    let mut bytes = w.into_bytes();
    let end = bytes.len() - 8;
    bytes[end..].fill(0);
    let path = folder.join("dump.rdb");
    fs::write(&path, bytes).unwrap();
    // The time of a file has steps: a later write is to have another one.
    sleep(Duration::from_millis(50));
    path
}

/// `keys` in the middle of its work: it has begun to write rows, which nobody reads further.
fn keys_under_way(dump: &Path) -> Child {
    let mut child = rdbscope()
        .args(["keys", "--piece-bytes", "4096", "--threads", "2"])
        .arg(dump)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

/// Reads the rest, and returns code, output without its first byte, and messages.
fn rest_of(child: Child) -> (Option<i32>, Vec<u8>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_dump_that_is_truncated_while_it_is_read() {
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let len = fs::metadata(&dump).unwrap().len();
    let child = keys_under_way(&dump);
    File::options().write(true).open(&dump).unwrap().set_len(2_000_000).unwrap();
    let (code, rows, stderr) = rest_of(child);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains(&format!("it was truncated while it was read, from {len} bytes to 2000000")), "{stderr}");
    assert!(stderr.contains("a save or a copy is still writing it"), "{stderr}");
    // Bytes of the page in which the file ends, and of those behind it, are zeros.
    assert!(stderr.contains("zeros from here to the end of the file"), "{stderr}");
    let rows = rows.iter().filter(|byte| **byte == b'\n').count() - 1;
    assert!((10_000..15_000).contains(&rows), "{rows} rows of what was left");
}

#[test]
fn a_dump_that_is_emptied_while_a_report_is_made() {
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let child = keys_under_way(&dump);
    File::options().write(true).truncate(true).open(&dump).unwrap();
    let (code, _, stderr) = rest_of(child);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("bytes to 0"), "{stderr}");
}

#[test]
fn a_dump_that_is_written_to_while_it_is_read() {
    for (change, expected) in [(0u64, "it was written to while it was read"), (100, "it grew while it was read")] {
        let folder = TempDir::new().unwrap();
        let dump = large_dump(folder.path());
        let temporary = folder.path().join("temp-4711.rdb");
        fs::rename(&dump, &temporary).unwrap();
        let child = keys_under_way(&temporary);
        let mut bytes = fs::read(&temporary).unwrap();
        bytes.resize(bytes.len() + change as usize, b'*');
        // In place, as a copy does.
        File::options().write(true).open(&temporary).unwrap().write_all(&bytes).unwrap();
        let (code, _, stderr) = rest_of(child);
        assert_eq!(code, Some(3), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
        assert!(stderr.contains("a save is still writing it, and gives it its name when it is complete"), "{stderr}");
    }
}

/// A save gives a new file the name of the old one: what is read stays as it was.
#[test]
fn a_dump_that_is_replaced_while_it_is_read() {
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let whole = run(["keys".as_ref(), dump.as_os_str()]).ok();
    let child = keys_under_way(&dump);
    fs::write(folder.path().join("new.rdb"), b"REDIS0011").unwrap();
    fs::rename(folder.path().join("new.rdb"), &dump).unwrap();
    let (code, rows, stderr) = rest_of(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(rows == whole.stdout[1..]);
}

/// A bus error of anything else ends the process as ever.
#[test]
fn a_bus_error_that_is_not_ours() {
    use std::os::unix::process::ExitStatusExt as _;

    let folder = TempDir::new().unwrap();
    let child = keys_under_way(&large_dump(folder.path()));
    signal(&child, "BUS");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(7), "{output:?}");
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

/// A pipe that takes nothing more: whoever writes to it waits.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    // What a pipe holds on Linux unless told otherwise.
    (&writer).write_all(&[b' '; 65_536]).unwrap();
    (reader, writer)
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited for {what}");
        sleep(Duration::from_millis(2));
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whoever started the tests may have signals ignored, as `nohup` has, which the program would take over.
#[allow(unsafe_code)]
fn heed_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the default runs no code.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The rows are written and a warning cannot be: the file has no name yet.
#[test]
fn an_interrupt_leaves_no_file() {
    heed_interrupts();
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = TempDir::new().unwrap();
        let dump = large_dump(folder.path());
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("keys.csv"), "old").unwrap();
        let (mut reader, writer) = full_pipe();
        let mut child = rdbscope().arg("keys").arg(&dump).arg("-o").arg(out.join("keys.csv")).stderr(writer).spawn().unwrap();
        let has_rows =
            || fs::read_dir(&out).unwrap().any(|entry| entry.unwrap().metadata().is_ok_and(|file| file.len() > 3_000_000));
        wait_until("the rows", has_rows);
        signal(&child, name);
        wait_until("the file to go", || names_in(&out) == ["keys.csv"]);
        let mut stderr = String::new();
        let drain = std::thread::spawn(move || reader.read_to_string(&mut stderr).map(|_| stderr));
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(drain.join().unwrap().unwrap().contains("interrupted; no output is left half-written"));
        assert_eq!(fs::read(out.join("keys.csv")).unwrap(), b"old");
    }
}

/// The summary cannot be printed, and the tables come after it: the folders that were made for them go.
#[test]
fn an_interrupt_leaves_no_folder() {
    heed_interrupts();
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let out = folder.path().join("new/folder");
    let (mut reader, writer) = full_pipe();
    let mut child =
        rdbscope().arg("report").arg(&dump).arg("-o").arg(&out).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the folder", || out.exists());
    sleep(Duration::from_millis(100));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names_in(folder.path()), ["dump.rdb"]);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("interrupted"), "{stderr}");
    drop(child);
    reader.read_to_end(&mut Vec::new()).unwrap();
}

/// Who starts a program with interrupts ignored does not want it interrupted.
#[test]
fn an_interrupt_that_is_ignored() {
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let script = format!("trap '' INT; exec {} keys --piece-bytes 4096 {}", env!("CARGO_BIN_EXE_rdbscope"), dump.display());
    let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
    signal(&child, "INT");
    sleep(Duration::from_millis(100));
    let (code, rows, stderr) = rest_of(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(rows.iter().filter(|byte| **byte == b'\n').count(), KEYS + 1);
}

/// `ulimit -f` counts blocks of 512 or 1024 bytes: four of them take the header and little more.
#[test]
fn files_that_may_not_grow() {
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    for (command, out) in [("keys", "keys.csv"), ("report", "new/report")] {
        let script = format!(
            "ulimit -f 4; exec {} {command} {} -o {}",
            env!("CARGO_BIN_EXE_rdbscope"),
            dump.display(),
            folder.path().join(out).display()
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{command}: {stderr}");
        assert!(stderr.contains("cannot write the"), "{command}: {stderr}");
        assert!(stderr.contains("nothing was left behind: raise the limit (ulimit -f)"), "{command}: {stderr}");
        assert_eq!(names_in(folder.path()), ["dump.rdb"], "{command}");
    }
}

/// A small file system, where one may be mounted; elsewhere the test above stands for this one.
#[test]
fn a_disk_that_is_full() {
    struct Mounted<'p>(&'p Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0).status();
        }
    }
    let folder = TempDir::new().unwrap();
    let dump = large_dump(folder.path());
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&small).stderr(Stdio::null()).status();
    if !mount.is_ok_and(|status| status.success()) {
        // A device that is always full.
        let full = run(["keys".as_ref(), dump.as_os_str(), "-o".as_ref(), "/dev/full".as_ref()]).ended_with(4);
        assert!(full.stderr.contains("free some space"), "{}", full.stderr);
        return;
    }
    let _mounted = Mounted(&small);
    let keys = small.join("keys.csv");
    let full = run(["keys".as_ref(), dump.as_os_str(), "-o".as_ref(), keys.as_os_str()]).ended_with(4);
    assert!(full.stderr.contains("nothing was left behind: free some space"), "{}", full.stderr);
    assert_eq!(names_in(&small), [""; 0]);
    // All of a report is written before any of it gets its name.
    fs::write(small.join("filler"), [0; 1000 << 10]).unwrap();
    let report = small.join("report");
    let full = run(["report".as_ref(), dump.as_os_str(), "-o".as_ref(), report.as_os_str()]).ended_with(4);
    assert!(full.stderr.contains("cannot write the report") && full.stderr.contains("free some space"), "{}", full.stderr);
    assert_eq!(names_in(&small), ["filler"]);
    fs::remove_file(small.join("filler")).unwrap();
    let whole = run(["report".as_ref(), dump.as_os_str(), "-o".as_ref(), report.as_os_str()]);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert_eq!(read_csv(&fs::read(report.join("classes.csv")).unwrap()).1.len(), 1);
}
