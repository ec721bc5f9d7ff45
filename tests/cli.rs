//! The command line, files and messages: what a person meets who gets something wrong, or whose machine does.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::truth::Truth;
use support::{Report, Run, T0, TempDump, column, dump, fixtures, number, rdbscope, read_csv, row, run, string};
use tempfile::TempDir;

fn contracts() -> PathBuf {
    fixtures().join("truth/redis-7.4.1-contracts.rdb")
}

/// Names of what is in a folder, in order.
fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A dump of one string.
fn one_key(key: &[u8]) -> Vec<u8> {
    dump(b"REDIS0010", &[&[0xfe, 0, 0][..], &string(key), &string(b"v")].concat())
}

// Outputs.

#[test]
fn a_dump_is_never_written_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dump.rdb");
    fs::copy(contracts(), &path).unwrap();
    let before = fs::read(&path).unwrap();
    let mut others = vec![path.clone(), folder.path().join(".").join("dump.rdb")];
    fs::hard_link(&path, folder.path().join("hard")).unwrap();
    others.push(folder.path().join("hard"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("dump.rdb", folder.path().join("soft")).unwrap();
        others.push(folder.path().join("soft"));
    }
    let names = names_in(folder.path());
    for output in others {
        let refused = run([Path::new("keys"), &path, Path::new("-o"), &output]).ended_with(4);
        assert!(refused.stderr.contains("is one of the dumps"), "{}", refused.stderr);
        assert_eq!(refused.text(), "");
        assert_eq!(names_in(folder.path()), names);
        assert!(fs::read(&path).unwrap() == before, "{output:?}");
    }
}

#[test]
fn keys_in_a_file_or_on_standard_output() {
    let folder = TempDir::new().unwrap();
    let dump = TempDump::new(&one_key(b"k"));
    let stdout = dump.run_keys(&[]).ok().stdout;
    assert_eq!(read_csv(&stdout).1.len(), 1);
    assert_eq!(dump.run_keys(&["-o", "-"]).ok().stdout, stdout);
    let file = folder.path().join("keys.csv");
    let output = ["-o", file.to_str().unwrap()];
    for _ in 0..2 {
        assert_eq!(dump.run_keys(&output).ok().text(), "");
        assert_eq!(fs::read(&file).unwrap(), stdout);
    }
    assert_eq!(names_in(folder.path()), ["keys.csv"]);
    // What was there stays where nothing can be read.
    let gone = folder.path().join("no.rdb");
    run([Path::new("keys"), &gone, Path::new("-o"), &file]).ended_with(3);
    assert_eq!(fs::read(&file).unwrap(), stdout);
    assert_eq!(names_in(folder.path()), ["keys.csv"]);
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_not_replaced() {
    let folder = TempDir::new().unwrap();
    let dump = TempDump::new(&one_key(b"k"));
    let stdout = dump.run_keys(&[]).ok().stdout;
    // To a file that is there, and to one that is not there yet.
    for (link, target) in [("link", "target.csv"), ("early", "later.csv")] {
        if link == "link" {
            fs::write(folder.path().join(target), "old").unwrap();
        }
        let link = folder.path().join(link);
        let target = folder.path().join(target);
        std::os::unix::fs::symlink(&target, &link).unwrap();
        dump.run_keys(&["-o", link.to_str().unwrap()]).ok();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&target).unwrap().is_file());
        assert_eq!(fs::read(&target).unwrap(), stdout);
    }
}

/// Makes a pipe with a name.
#[cfg(target_os = "linux")]
fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_written_through_and_stays() {
    use std::os::unix::fs::FileTypeExt as _;

    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    let dump = TempDump::new(&one_key(b"k"));
    let stdout = dump.run_keys(&[]).ok().stdout;
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    dump.run_keys(&["-o", pipe.to_str().unwrap()]).ok();
    assert_eq!(reader.join().unwrap(), stdout);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    dump.run_keys(&["-o", "/dev/null"]).ok();
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(dump.run_keys(&["-o", "/dev/stdout"]).ok().stdout, stdout);
    // A device that takes nothing.
    let full = dump.run_keys(&["-o", "/dev/full"]).ended_with(4);
    assert!(full.stderr.contains("cannot write the keys"), "{}", full.stderr);
}

#[test]
fn an_output_that_cannot_be() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "something").unwrap();
    let nowhere = folder.path().join("no/keys.csv");
    let mut outputs = vec![
        ("report", file.clone()),
        ("report", file.join("below")),
        ("keys", folder.path().into()),
        ("keys", file.join("keys.csv")),
        ("keys", nowhere),
    ];
    // Nobody can make anything here, whoever runs the tests.
    if cfg!(target_os = "linux") {
        outputs.extend([("report", "/proc/rdbscope".into()), ("report", "/proc".into()), ("keys", "/proc/keys.csv".into())]);
    }
    for (command, output) in outputs {
        let force: &[&str] = if output == Path::new("/proc") { &["--force"] } else { &[] };
        let failed = Run::of(rdbscope().arg(command).arg(contracts()).arg("-o").arg(&output).args(force)).ended_with(4);
        let lines: Vec<&str> = failed.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{command} {output:?}: {lines:?}");
        assert!(lines[0].starts_with(&format!("rdbscope: {}: ", output.display())), "{command} {output:?}: {lines:?}");
        assert!(!lines[0].contains(".rdbscope-"), "{command} {output:?}: {lines:?}");
        assert_eq!(failed.text(), "", "{command} {output:?}: refused before the long run");
        assert_eq!(names_in(folder.path()), ["file"], "{command} {output:?}");
        assert_eq!(fs::read(&file).unwrap(), b"something");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_not_ours() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    let is_root = fs::write(closed.join("probe"), "").is_ok();
    let keys = closed.join("keys.csv");
    for (command, output) in [("report", &closed), ("keys", &keys)] {
        let ended = Run::of(rdbscope().arg(command).arg(contracts()).arg("-o").arg(output).arg("--quiet"));
        if is_root {
            // To whom nothing is closed: the folder that holds the probe, and the file.
            assert_eq!(ended.code, if command == "report" { 4 } else { 0 });
            continue;
        }
        assert_eq!(ended.code, 4, "{}", ended.stderr);
        assert!(ended.stderr.contains(output.to_str().unwrap()), "{}", ended.stderr);
        assert_eq!(names_in(&closed), [""; 0]);
    }
}

#[test]
fn a_folder_that_is_not_empty() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    fs::write(folder.path().join("classes.csv"), "old").unwrap();
    let report = |more: &[&str]| Run::of(rdbscope().arg("report").arg(contracts()).arg("-o").arg(folder.path()).args(more));
    let refused = report(&[]).ended_with(4);
    assert!(refused.stderr.contains("not empty") && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(refused.text(), "");
    assert_eq!(names_in(folder.path()), ["classes.csv", "notes.txt"]);
    assert_eq!(fs::read(folder.path().join("classes.csv")).unwrap(), b"old");
    report(&["--force"]).ok();
    assert_eq!(fs::read(folder.path().join("notes.txt")).unwrap(), b"mine");
    assert!(fs::read(folder.path().join("classes.csv")).unwrap().starts_with(b"class,pattern,"));
    assert!(names_in(folder.path()).contains(&"summary.csv".to_string()));
    assert!(names_in(folder.path()).iter().all(|name| !name.starts_with('.')));
    run(["report", contracts().to_str().unwrap(), "--force"]).ended_with(2);
}

/// Whoever read the messages may be gone, or have no room.
#[test]
fn nobody_reads_the_messages() {
    let damaged = TempDump::new(&one_key(b"k")[..14]);
    let whole = TempDump::new(&one_key(b"k"));
    let path = |dump: &TempDump| dump.path().to_str().unwrap().to_string();
    let runs = [
        (3, vec!["report".into(), path(&damaged)]),
        (3, vec!["keys".into(), path(&damaged)]),
        (3, vec!["verify".into(), path(&damaged)]),
        (3, vec!["info".into(), path(&damaged), "--full".into()]),
        (3, vec!["report".into(), "no.rdb".into()]),
        (0, vec!["report".into(), path(&whole)]),
        (0, vec!["keys".into(), path(&whole)]),
        (0, vec!["verify".into(), path(&whole)]),
        (2, vec![path(&whole)]),
        (2, vec!["report".into()]),
        (2, vec!["keys".into(), path(&whole), "--columns".into(), "none".into()]),
        (2, vec!["report".into(), path(&whole), "-c".into(), "no.toml".into()]),
        (4, vec!["keys".into(), path(&whole), "-o".into(), path(&whole)]),
    ];
    for (code, arguments) in runs {
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let mut outputs: Vec<Stdio> = vec![closed.into()];
        if cfg!(target_os = "linux") {
            outputs.push(fs::File::options().write(true).open("/dev/full").unwrap().into());
        }
        for stderr in outputs {
            let status = rdbscope().args(&arguments).stdout(Stdio::null()).stderr(stderr).status().unwrap();
            // A panic is 101.
            assert_eq!(status.code(), Some(code), "{arguments:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_without_room() {
    for command in ["report", "keys", "info", "verify"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let status = rdbscope().arg(command).arg(contracts()).stdout(full).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(4), "{command}");
    }
}

// Messages.

#[test]
fn a_key_in_a_message_is_masked() {
    // Cut inside the value: the key was read.
    let body = [&[0xfe, 0, 0][..], &string(b"login:13800000002"), &string(&[b'v'; 40])].concat();
    let whole = dump(b"REDIS0010", &body);
    let cut = TempDump::new(&whole[..whole.len() - 20]);
    let redacted = TempDir::new().unwrap();
    let secret = redacted.path().join("secret");
    fs::write(&secret, "0123456789abcdef").unwrap();
    let path = cut.path();
    let path = path.to_str().unwrap();
    for arguments in [
        &["report", path][..],
        &["report", path, "--show-sensitive"],
        &["keys", path],
        &["keys", path, "--mask"],
        &["keys", path, "--redact", secret.to_str().unwrap()],
        &["info", path, "--full"],
        &["verify", path],
    ] {
        let failed = run(arguments).ended_with(3);
        let said = [failed.text(), &failed.stderr].concat();
        assert!(said.contains("of key \"login:138***02\""), "{arguments:?}: {said}");
        assert!(!said.contains("13800000002"), "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_name_gives_no_orders() {
    let folder = TempDir::new().unwrap();
    let name = "a\x1b[31m\nb\u{202e}.rdb";
    let escaped = "a\\x1b[31m\\nb\\xe2\\x80\\xae.rdb";
    let path = folder.path().join(name);
    let damaged = folder.path().join(format!("cut {name}"));
    fs::write(&path, one_key(b"k")).unwrap();
    fs::write(&damaged, &one_key(b"k")[..14]).unwrap();
    let is_plain = |text: &str| !text.contains(['\x1b', '\u{202e}']) && text.contains(escaped) && !text.contains("\nb");
    for command in ["report", "info", "verify"] {
        let whole = run([Path::new(command), &path]).ok();
        assert!(is_plain(whole.text()), "{command}: {:?}", whole.text());
    }
    for command in ["report", "keys", "verify"] {
        let failed = run([Path::new(command), &damaged]).ended_with(3);
        let said = if command == "verify" { failed.text() } else { &failed.stderr };
        assert!(is_plain(said), "{command}: {said:?}");
    }
    let gone = folder.path().join(format!("gone {name}"));
    for command in ["report", "keys", "verify", "info"] {
        let failed = run([Path::new(command), &gone]).ended_with(3);
        assert!(is_plain(&failed.stderr), "{command}: {:?}", failed.stderr);
        assert_eq!(failed.stderr.lines().count(), 1, "{command}: {:?}", failed.stderr);
    }
    let refused = run([Path::new("keys"), &path, Path::new("-o"), &path]).ended_with(4);
    assert!(is_plain(&refused.stderr), "{:?}", refused.stderr);
    let asked = run([&path]).ended_with(2);
    assert!(is_plain(&asked.stderr), "{:?}", asked.stderr);
}

#[test]
fn one_of_a_thing() {
    let dump = TempDump::new(&one_key(b"k"));
    let report = dump.report(&[]);
    let totals = report.run.text().lines().find(|line| line.starts_with("Totals")).unwrap().to_string();
    assert!(totals.contains(" 1 key in 1 database, 0 elements;"), "{totals}");
    assert!(report.run.text().contains("slot 7629, 1 key: "), "{}", report.run.text());
    assert!(dump.run_keys(&[]).ok().stderr.starts_with("rdbscope: 1 key; "));
    let cut = TempDump::new(&[&one_key(b"k")[..16], &[0]].concat());
    let stderr = cut.report(&[]).run.stderr;
    assert!(stderr.contains("partial: 1 key before byte 16 was read"), "{stderr}");
}

#[test]
fn a_summary_is_no_wider_than_a_hundred_characters() {
    let of = |arguments: &[&Path]| {
        let run = run([Path::new("report")].iter().chain(arguments)).ok();
        for line in run.text().lines() {
            assert!(line.chars().count() <= 100, "{arguments:?}: {} characters: {line}", line.chars().count());
        }
    };
    let dumps = support::all_dumps();
    dumps.iter().for_each(|dump| of(&[dump]));
    // Long names, at whatever depth, and a version that is one.
    let aux = [&[0xfa][..], &string(b"redis-ver"), &string(&[b'7'; 300])].concat();
    let keys = [[b'k'; 300].to_vec(), [b"prod:".repeat(40), b"1".repeat(50)].concat(), "é".repeat(200).into_bytes()];
    let records = keys.iter().flat_map(|key| [&[0][..], &string(key), &string(&[b'v'; 20_000])].concat()).collect::<Vec<u8>>();
    let long = TempDump::new(&dump(b"REDIS0010", &[&aux[..], &[0xfe, 0], &records].concat()));
    of(&[&long.path()]);
}

// Inputs.

#[cfg(unix)]
#[test]
fn what_is_named_as_a_dump_and_is_none() {
    let folder = TempDir::new().unwrap();
    let add = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    add("good.rdb", &one_key(b"k"));
    add("no-ending", &one_key(b"other"));
    add("empty.rdb", b"");
    add("short.RDB", b"REDIS");
    add("zeros.rdb", &[0; 4096]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.rdb")).unwrap();
    // Three that are left out, and one that a save has not finished.
    add("notes.txt", b"nothing");
    add("nodes.conf", b"REDIS is not a header here");
    fs::create_dir(folder.path().join("older")).unwrap();
    add("temp-4711.rdb", &one_key(b"k"));
    let bad = ["empty.rdb: ", "short.RDB: ", "zeros.rdb: ", "dangling.rdb: "];
    for command in ["report", "keys", "verify"] {
        let run = run([Path::new(command), folder.path()]).ended_with(3);
        let (warnings, errors): (Vec<&str>, Vec<&str>) =
            run.stderr.lines().partition(|line| line.starts_with("rdbscope: warning: "));
        let place = folder.path().display();
        for name in bad {
            let of_file = errors.iter().filter(|line| line.starts_with(&format!("rdbscope: {place}/{name}")));
            assert_eq!(of_file.count(), 1, "{command}, {name}: {errors:?}");
        }
        let others = format!("rdbscope: warning: {place}: 2 other files left out: no dumps");
        assert!(warnings.contains(&&*others), "{command}: {warnings:?}");
        let folders = format!("rdbscope: warning: {place}: 1 folder in it not looked into: give those that hold dumps, too");
        assert!(warnings.contains(&&*folders), "{command}: {warnings:?}");
        let temporary = warnings.iter().filter(|line| line.contains("temp-4711.rdb") && line.contains("left out"));
        assert_eq!(temporary.count(), 1, "{command}: {warnings:?}");
        assert_eq!(warnings.len(), 3, "{command}: {warnings:?}");
        // The two that are dumps are read all the same.
        match command {
            "keys" => assert_eq!(read_csv(&run.stdout).1.len(), 2),
            "report" => assert!(run.text().contains("Totals  2 keys in 1 database"), "{}", run.text()),
            _ => assert_eq!(run.text().lines().filter(|line| line.ends_with(": ok, 1 key, checksum ok")).count(), 2),
        }
    }
    fs::remove_file(folder.path().join("notes.txt")).unwrap();
    let one = run([Path::new("report"), folder.path()]).ended_with(3);
    assert!(one.stderr.contains(": 1 other file left out: no dumps"), "{}", one.stderr);
}

/// Nobody can tell that it is no dump; the others are read all the same.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let closed = folder.path().join("closed");
    fs::write(folder.path().join("good.rdb"), one_key(b"k")).unwrap();
    fs::write(&closed, "a secret of somebody else").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    // To root nothing is closed.
    let is_root = fs::read(&closed).is_ok();
    let run = run([Path::new("report"), folder.path()]).ended_with(if is_root { 0 } else { 3 });
    assert!(run.text().contains("Totals  1 key in 1 database"), "{}", run.text());
    assert_eq!(run.stderr.contains(&format!("rdbscope: {}: ", closed.display())), !is_root, "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe.rdb");
    make_pipe(&pipe);
    // Nobody writes to it: opening it would wait for ever.
    for command in ["report", "keys", "verify", "info"] {
        let run = run([Path::new(command), &pipe]).ended_with(3);
        assert!(run.stderr.contains("not a regular file"), "{command}: {}", run.stderr);
        assert_eq!(run.text(), "", "{command}");
    }
    let run = run([Path::new("report"), folder.path()]).ended_with(3);
    assert!(run.stderr.contains("not a regular file"), "{}", run.stderr);
}

#[test]
fn info_tells_whether_a_file_is_whole() {
    let info = |bytes: &[u8]| run([Path::new("info"), &TempDump::new(bytes).path()]);
    let aux = [&[0xfa][..], &string(b"aof-preamble"), &string(b"1")].concat();
    let record = [&[0xfe, 0, 0][..], &string(b"k"), &string(b"v")].concat();
    let whole = dump(b"REDIS0010", &record);
    info(&whole).ok();
    let cut = info(&whole[..whole.len() - 9]).ended_with(3);
    assert!(cut.text().contains("truncated"), "{}", cut.text());
    info(&whole[..whole.len() - 1]).ended_with(3);
    // An old format ends with its mark.
    let old = dump(b"REDIS0003", &record);
    info(&old).ok();
    info(&old[..old.len() - 1]).ended_with(3);
    let aof = [&dump(b"REDIS0010", &[aux, record].concat())[..], b"*1\r\n$4\r\nPING\r\n"].concat();
    let aof = info(&aof).ok();
    assert!(aof.text().contains("append-only"), "{}", aof.text());
    // Real dumps: a whole one, and one that was cut.
    run([Path::new("info"), &contracts()]).ok();
    let bytes = fs::read(contracts()).unwrap();
    info(&bytes[..bytes.len() / 2]).ended_with(3);
}

#[test]
fn a_compressed_key_longer_than_is_accepted() {
    const MOST: u32 = 16 << 20;
    for (declared, code) in [(MOST + 1, 3), (1 << 31, 3)] {
        // Every three bytes of it can stand for 264, so many could be so long.
        let packed = vec![0; (declared as usize).div_ceil(88)];
        let mut body = vec![0xfe, 0, 0, 0xc3, 0x80];
        body.extend((packed.len() as u32).to_be_bytes());
        body.push(0x80);
        body.extend(declared.to_be_bytes());
        body.extend(&packed);
        body.extend(string(b"v"));
        let dump = TempDump::new(&dump(b"REDIS0010", &body));
        // 9 of header, 2 of database, 1 of type, 1 of form, 5 of each length: the compressed bytes begin at 23, of a record at 11.
        let run = dump.run_keys(&[]).ended_with(code);
        assert!(run.stderr.contains("at byte 23, reading") && run.stderr.contains(&declared.to_string()), "{}", run.stderr);
        assert!(run.stderr.contains("16777216"), "{}", run.stderr);
        assert!(run.stderr.contains("partial: 0 keys before byte 11 were read"), "{}", run.stderr);
        assert_eq!(read_csv(&run.stdout).1.len(), 0);
    }
}

#[test]
fn a_newer_version_with_unknown_content() {
    // Type 200 is no type of any version.
    let dump = TempDump::new(&dump(b"REDIS0099", &[&[0xfe, 0, 200][..], &string(b"k"), &string(b"v")].concat()));
    for run in [dump.run_keys(&[]), dump.report(&[]).run, run([Path::new("verify"), &dump.path()])] {
        assert_eq!(run.code, 3);
        assert!(run.stderr.contains("REDIS0099 is newer") && run.stderr.contains("could not be read"), "{}", run.stderr);
        assert!(!run.stderr.contains("understood"), "{}", run.stderr);
    }
}

// Arguments.

#[test]
fn a_dump_in_the_place_of_a_command() {
    let path = contracts();
    let path = path.to_str().unwrap();
    let asked = run([path]).ended_with(2);
    assert_eq!(asked.stderr, format!("rdbscope: did you mean `rdbscope report {path}`?\n"));
    assert_eq!(run(["--threads", "2", path]).ended_with(2).stderr, asked.stderr);
    // A command that there is not is that, whatever follows.
    for arguments in [&["reprot", path][..], &["no-such-command"], &["no-such.rdb"]] {
        let refused = run(arguments).ended_with(2);
        assert!(
            refused.stderr.contains(arguments[0]) && refused.stderr.contains("unrecognized subcommand"),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains("did you mean `rdbscope report"), "{}", refused.stderr);
    }
    run([""; 0]).ended_with(2);
}

#[test]
fn a_moment_that_is_none() {
    let path = contracts();
    let path = path.to_str().unwrap();
    for (moment, hint) in [
        ("1767225600000", "milliseconds"),
        ("-5", "Unix seconds"),
        ("1767225600.5", "Unix seconds"),
        ("yesterday", "2026-01-31T06:00:00Z"),
        ("", "Unix seconds"),
    ] {
        for command in ["report", "keys"] {
            let refused = run([command, path, "--as-of", moment]).ended_with(2);
            assert!(refused.stderr.contains(hint), "{moment}: {}", refused.stderr);
            assert_eq!(refused.text(), "", "{moment}");
        }
    }
}

#[test]
fn types_by_name() {
    let path = contracts();
    let path = path.to_str().unwrap();
    let refused = run(["keys", path, "--type", "sorted"]).ended_with(2);
    assert!(refused.stderr.contains("no type 'sorted'") && refused.stderr.contains("zset"), "{}", refused.stderr);
    // As many as the truth file has.
    let truth = fs::read_to_string(path.replace(".rdb", ".truth.jsonl")).unwrap();
    let expected = truth
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["type"] == "zset")
        .count();
    assert!(expected > 0);
    for name in ["zset", "ZSET", "Zset"] {
        let rows = read_csv(&run(["keys", path, "--type", name]).ok().stdout).1;
        assert_eq!(column(&rows, "type"), vec!["zset"; expected], "{name}");
    }
}

#[test]
fn names_of_columns() {
    let dump = TempDump::new(&one_key(b"k"));
    let header = |names: &str| dump.run_keys(&["--columns", names]).ok().text().lines().next().unwrap().to_string();
    assert_eq!(header("slot,key,db"), "slot,key,db");
    assert_eq!(header(" slot , key,\tdb "), "slot,key,db");
    for (names, said) in [
        ("db,key,db", "'db' is named twice"),
        ("db, db", "'db' is named twice"),
        ("db,size", "no column 'size'"),
        ("", "no column ''"),
    ] {
        let refused = dump.run_keys(&["--columns", names]).ended_with(2);
        assert!(refused.stderr.contains(said), "{names}: {}", refused.stderr);
        assert_eq!(refused.text(), "", "{names}");
    }
    let unknown = dump.run_keys(&["--columns", "size"]).ended_with(2);
    assert!(unknown.stderr.contains("memory_bytes"), "the names that there are: {}", unknown.stderr);
}

/// Where a report has put narrower classes into a wider one, its name takes what its row counts.
#[test]
fn a_class_by_the_name_that_a_report_gives() {
    let classes = Report::of([contracts()]).table("classes");
    let widened = "prod:shop-<digits>:session:sess_<hex>";
    // Every session of the truth file, whatever its token looks like by accident.
    let path = contracts();
    let truth = Truth::beside(&path);
    let is_session = |key: &[u8]| key.split(|byte| *byte == b':').nth(2) == Some(b"session") && key.starts_with(b"prod:");
    let sessions = truth.lines.iter().filter(|line| is_session(&line.key)).count() as u64;
    assert_eq!(number(row(&classes, "class", widened), "keys"), sessions);
    for class in classes.iter().filter(|class| class["class"] != "(other)") {
        let name = &class["class"];
        let filtered = Run::of(rdbscope().arg("keys").arg(&path).args(["--columns", "key", "--class", name])).ok();
        assert_eq!(read_csv(&filtered.stdout).1.len() as u64, number(class, "keys"), "{name}");
    }
}

/// As Python writes a moment, which scripts for the other tool parse.
#[test]
fn expiries_of_the_rdbtools_columns() {
    let record = |at_ms: i64, key: &[u8]| [&[0xfc][..], &at_ms.to_le_bytes(), &[0], &string(key), &string(b"v")].concat();
    // 2013-06-21 is day 15,877: 15,877 × 86,400 = 1,371,772,800, and 60,248 seconds are 16:44:08. 2022-12-25 is day 19,351:
    // 19,351 × 86,400 = 1,671,926,400, and 36,672 seconds are 10:11:12. The third is the moment that cases count from.
    let body = [record(1_371_833_048_000, b"whole"), record(1_671_963_072_573, b"ms"), record(T0 * 1000, b"new-year")].concat();
    let never = [&[0][..], &string(b"never"), &string(b"v")].concat();
    let dump = TempDump::new(&dump(b"REDIS0010", &[&[0xfe, 0][..], &body, &never].concat()));
    let rows = dump.keys(&["--preset", "rdbtools"]);
    assert_eq!(column(&rows, "key"), ["whole", "ms", "new-year", "never"]);
    assert_eq!(column(&rows, "expiry"), ["2013-06-21T16:44:08", "2022-12-25T10:11:12.573000", "2026-01-01T00:00:00", ""]);
}

#[test]
fn a_folder_that_gets_no_report_is_taken_away_again() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    let missing = folder.path().join("missing.rdb");
    let run = run(["report", missing.to_str().unwrap(), "-o", new.to_str().unwrap()]);
    assert_eq!(run.code, 3);
    assert!(!new.exists());
}

#[test]
fn a_size_that_no_server_takes_is_damage_and_in_no_sum() {
    // Four compressed bytes that declare 2^30.
    let body = [&b"\xfe\x00\x00\x03big\xc3\x04\x80\x40\x00\x00\x00"[..], b"\xe0\xff\xff\xff", b"\x00\x01k\x01v"].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.rdb");
    std::fs::write(&path, support::dump(b"REDIS0010", &body)).unwrap();
    let run = run(["keys", path.to_str().unwrap(), "--format", "jsonl"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("declared size 1073741824 is above 352"), "{}", run.stderr);
    let rows: Vec<serde_json::Value> = run.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["memory_bytes"].as_u64().unwrap() < 1000, "{}", rows[0]);
}
