//! Folders: of dumps, and of an append-only file in several parts.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::stream::START;

/// Longest manifest that is read; a server writes one line for each part.
const MOST_MANIFEST: u64 = 1 << 20;

/// What a folder of dumps holds.
#[derive(Debug, Default)]
pub struct Found {
    /// Files that begin as a dump does, or are compressed or archives, by name.
    pub dumps: Vec<PathBuf>,
    /// Files that a server writes a dump to before it gets its name.
    pub temporary: Vec<PathBuf>,
    /// Everything else: how much of it.
    pub others: u64,
    /// Bytes of commands in the parts of an append-only file that follow its base.
    pub command_bytes: u64,
}

/// Looks for dumps in a folder, not in folders within it. Of an append-only file in several parts, which a manifest lists, the
/// base is taken.
///
/// # Errors
/// What the system says when the folder cannot be read; a manifest that names no base.
pub fn dumps_in(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let mut manifests = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let ends = |ending: &str| path.extension().is_some_and(|with| with.eq_ignore_ascii_case(ending));
        let named_dump = ends("rdb");
        if ends("manifest") && path.is_file() {
            manifests.push(path);
            continue;
        }
        if !path.is_file() && !named_dump {
            found.others += 1;
            continue;
        }
        if is_temporary(entry.file_name().as_encoded_bytes()) {
            found.temporary.push(path);
            continue;
        }
        // What is named as a dump and is none, or cannot be read, must not go unnoticed: opening it will tell why.
        if named_dump || may_hold_dump(&path).unwrap_or(true) {
            found.dumps.push(path);
        } else {
            found.others += 1;
        }
    }
    found.dumps.sort();
    found.temporary.sort();
    for manifest in manifests {
        apply(&manifest, &mut found)?;
    }
    Ok(found)
}

/// True for names that a server gives to what it has not finished.
pub(super) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(b"temp-")
}

/// True for a dump, and for what is compressed or an archive: opening it will tell whether there is one inside.
fn may_hold_dump(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(START as u64).read_to_end(&mut start)?;
    Ok(!matches!(Kind::of(&start), Kind::Other))
}

/// The parts that a manifest lists are no dumps of their own: the base is one, the others are commands.
fn apply(manifest: &Path, found: &mut Found) -> io::Result<()> {
    let mut text = String::new();
    File::open(manifest)?.take(MOST_MANIFEST).read_to_string(&mut text)?;
    let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("its manifest {why}"));
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let mut base = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, kind) = part(line).ok_or_else(|| bad(format!("cannot be understood in line {number}")))?;
        let path = folder.join(&name);
        // Parts stand beside the manifest, and nowhere else.
        if Path::new(&name).file_name() != Some(name.as_ref()) {
            return Err(bad(format!("names a file in another folder in line {number}")));
        }
        let listed = found.dumps.iter().position(|dump| *dump == path);
        match (kind, listed) {
            ('b', _) => base = Some(path),
            ('i', listed) => {
                found.command_bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
                match listed {
                    Some(at) => drop(found.dumps.remove(at)),
                    None => found.others = found.others.saturating_sub(1),
                }
            }
            // History: what the server is about to delete.
            (_, Some(at)) => drop(found.dumps.remove(at)),
            (_, None) => {}
        }
    }
    let base = base.ok_or_else(|| bad("names no base: every key is in commands; run BGREWRITEAOF, or take a dump".into()))?;
    if !found.dumps.contains(&base) {
        // A base that is missing, or no dump, must not go unnoticed.
        found.others = found.others.saturating_sub(u64::from(base.exists()));
        found.dumps.push(base);
        found.dumps.sort();
    }
    Ok(())
}

/// Name and type of `file <name> seq <n> type <b, i or h>`; a name with spaces or other bytes stands in quotes.
fn part(line: &str) -> Option<(String, char)> {
    let rest = line.strip_prefix("file ")?.trim_start();
    let (name, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => rest.split_once(' ').map(|(name, rest)| (name.to_string(), rest))?,
    };
    let mut words = rest.split_whitespace();
    let mut kind = None;
    while let (Some(word), Some(value)) = (words.next(), words.next()) {
        if word == "type" {
            kind = value.chars().next();
        }
    }
    kind.map(|kind| (name, kind))
}

/// The text up to the closing quote, and what is behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = Vec::new();
    let mut bytes = text.bytes().enumerate();
    loop {
        match bytes.next()?.1 {
            b'\\' => name.push(match bytes.next()?.1 {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'a' => 7,
                b'b' => 8,
                b'x' => {
                    let (high, _) = bytes.next()?;
                    bytes.next()?;
                    u8::from_str_radix(text.get(high..high + 2)?, 16).ok()?
                }
                other => other,
            }),
            b'"' => break,
            byte => name.push(byte),
        }
    }
    let rest = bytes.next().and_then(|(at, _)| text.get(at..)).unwrap_or_default();
    Some((String::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_manifest() {
        let part = |line| part(line);
        assert_eq!(part("file appendonly.aof.1.base.rdb seq 1 type b"), Some(("appendonly.aof.1.base.rdb".into(), 'b')));
        assert_eq!(part("file a.incr.aof seq 12 type i startoffset 7"), Some(("a.incr.aof".into(), 'i')));
        assert_eq!(part(r#"file "a \"b\"\x2e\\.rdb" seq 1 type b"#), Some((r#"a "b".\.rdb"#.into(), 'b')));
        for wrong in ["", "seq 1 type b", "file a seq 1", r#"file "a seq 1 type b"#, "file"] {
            assert_eq!(part(wrong), None, "{wrong}");
        }
    }
}
