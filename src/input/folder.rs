//! Folders: of dumps, and of an append-only file in several parts.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::manifest::{MOST_MANIFEST, Manifest, is_manifest};
use super::payload;
use super::stream::START;

/// What a folder of dumps holds.
#[derive(Debug, Default)]
pub struct Found {
    /// Files that begin as a dump does, or are compressed or archives, by name.
    pub dumps: Vec<PathBuf>,
    /// Files that a server writes a dump to before it gets its name.
    pub temporary: Vec<PathBuf>,
    /// Other files: how many.
    pub others: u64,
    /// Folders, which are not looked into: how many.
    pub folders: u64,
    /// Bytes of commands in the parts of an append-only file that follow its base.
    pub command_bytes: u64,
    /// Such parts that its manifest names and that are not there.
    pub missing: Vec<PathBuf>,
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
        if !path.is_file() && !named_dump {
            *(if path.is_dir() { &mut found.folders } else { &mut found.others }) += 1;
            continue;
        }
        if is_temporary(entry.file_name().as_encoded_bytes()) {
            found.temporary.push(path);
            continue;
        }
        if is_manifest(entry.file_name().as_encoded_bytes()) && path.is_file() {
            manifests.push(path);
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

/// True for a dump or the answer to `DUMP`, and for what is compressed or an archive: opening it will tell whether there is one inside.
fn may_hold_dump(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(START as u64).read_to_end(&mut start)?;
    Ok(match Kind::of(&start) {
        Kind::Other if start.first().is_some_and(|byte| payload::may_begin(*byte)) => {
            payload::dump_of(&super::map(path)?.0).is_some()
        }
        kind => kind != Kind::Other,
    })
}

/// The parts that a manifest lists are no dumps of their own: the base is one, the others are commands.
fn apply(manifest: &Path, found: &mut Found) -> io::Result<()> {
    let mut text = Vec::new();
    File::open(manifest)?.take(MOST_MANIFEST).read_to_end(&mut text)?;
    let Manifest { base, increments, history } =
        Manifest::parse(&text).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
    let beside = |name: &str| manifest.parent().unwrap_or(Path::new(".")).join(name);
    for (name, is_increment) in increments.iter().map(|name| (name, true)).chain(history.iter().map(|name| (name, false))) {
        let path = beside(name);
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        match (&metadata, found.dumps.iter().position(|dump| *dump == path)) {
            (_, Some(at)) => drop(found.dumps.remove(at)),
            (Some(_), None) => found.others = found.others.saturating_sub(1),
            (None, None) if is_increment => found.missing.push(path),
            (None, None) => {}
        }
        if is_increment {
            found.command_bytes += metadata.map_or(0, |metadata| metadata.len());
        }
    }
    let base = beside(&base);
    if !found.dumps.contains(&base) {
        // A base that is missing, or no dump, must not go unnoticed.
        found.others = found.others.saturating_sub(u64::from(base.exists()));
        found.dumps.push(base);
        found.dumps.sort();
    }
    Ok(())
}
