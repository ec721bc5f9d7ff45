//! Files that are whole or not there: written beside their place and renamed into it.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{NamedTempFile, TempPath};

use crate::commands;

/// What the names of files begin with that are not finished.
const TEMPORARY: &str = ".rdbscope-";

/// A file that gets its name when it is complete. What is no regular file, such as a device or a pipe, is written to as it is.
pub enum WholeFile {
    /// A file beside its place, its present path, its place, and the permissions of the file that it replaces there.
    Named(BufWriter<File>, TempPath, PathBuf, Option<Permissions>),
    /// A device or pipe.
    Special(File),
}

/// What is to be removed where the run is interrupted.
#[derive(Default)]
struct Unfinished {
    files: Vec<PathBuf>,
    /// Folders that were made for them, the outer ones first.
    folders: Vec<PathBuf>,
}

static UNFINISHED: Mutex<Unfinished> = Mutex::new(Unfinished { files: Vec::new(), folders: Vec::new() });

fn unfinished() -> MutexGuard<'static, Unfinished> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is not finished, and lets nothing begin or finish any more: the process is about to end. Files that are getting their names at
/// this moment get them first.
pub fn give_up() {
    let mut unfinished = unfinished();
    for file in mem::take(&mut unfinished.files) {
        let _ = fs::remove_file(file);
    }
    remove_folders(mem::take(&mut unfinished.folders));
    mem::forget(unfinished);
}

/// Removes folders, the inner ones first, as far as they are empty.
fn remove_folders(folders: Vec<PathBuf>) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// What to do about an output that cannot be written; `is_gone` where nothing is left of it, as of files that have no name yet.
pub fn advice(error: &io::Error, is_gone: bool) -> &'static str {
    // Formats wrap the errors of what they write to.
    let inner = error.get_ref().and_then(|inner| inner.source()).and_then(|inner| inner.downcast_ref::<io::Error>());
    match (inner.unwrap_or(error).kind(), is_gone) {
        (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, true) => {
            "; nothing was left behind: free some space, or name a place on another disk"
        }
        (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, false) => {
            "; what was written before is not complete: remove it, and free some space, or name a place on another disk"
        }
        (io::ErrorKind::FileTooLarge, true) => {
            "; nothing was left behind: raise the limit (ulimit -f), or name a place on another file system"
        }
        (io::ErrorKind::FileTooLarge, false) => {
            "; what was written before is not complete: remove it, and raise the limit (ulimit -f), or name a place on another file system"
        }
        (io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied, _) => ": name a place that you may write to",
        _ => "",
    }
}

/// True where two paths lead to the same file that is there.
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b || is_same_node(&a, &b),
        _ => false,
    }
}

/// True for two names of one file.
fn is_same_node(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let node = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
        node(a).is_some() && node(a) == node(b)
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        false
    }
}

impl WholeFile {
    /// Begins a file that will be `path`; a link is followed.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path).or_else(|_| fs::read_link(path)).unwrap_or_else(|_| path.into());
        match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder: name a file")),
            Ok(there) if !there.is_file() => return Ok(Self::Special(File::options().write(true).open(&path)?)),
            _ => {}
        }
        let replaced = fs::metadata(&path).ok().map(|there| there.permissions());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut unfinished = unfinished();
        let temporary = temporary_in(folder, replaced.is_some())?;
        unfinished.files.push(temporary.path().into());
        // Its errors then do not name the temporary path.
        let (file, temporary) = temporary.into_parts();
        Ok(Self::Named(BufWriter::with_capacity(1 << 16, file), temporary, path, replaced))
    }

    /// True where nothing is left of it unless it is finished.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Named(..))
    }

    /// Gives files their names, once all of them are complete. Where one cannot get it, none has it, and what was there before is there again.
    pub fn finish(files: impl IntoIterator<Item = Self>) -> io::Result<()> {
        let complete = files.into_iter().map(Self::complete).collect::<io::Result<Vec<_>>>()?;
        // Whoever interrupts this waits until all have their names.
        let mut unfinished = unfinished();
        let is_one = complete.len() == 1;
        let mut named: Vec<(PathBuf, Option<TempPath>)> = Vec::new();
        for (temporary, path) in complete.into_iter().flatten() {
            unfinished.files.retain(|file| **file != *temporary);
            // One gets its name or not.
            let before = if is_one { Ok(None) } else { second_name(&path) };
            let done = before.and_then(|before| match temporary.persist(&path) {
                Ok(()) => Ok(before),
                Err(error) => {
                    // A name that was taken away is given back.
                    let back = before.filter(|_| !path.exists()).map(|before| before.persist(&path));
                    back.transpose().map_err(|error| error.error)?;
                    Err(error.error)
                }
            });
            match done {
                Ok(before) => named.push((path, before)),
                Err(error) => {
                    let why = format!("{}: {error}", commands::shown(&path));
                    return Err(io::Error::new(error.kind(), why + &take_back(named)));
                }
            }
        }
        Ok(())
    }

    /// Writes out what is still in memory; a file without a name gets it next.
    fn complete(self) -> io::Result<Option<(TempPath, PathBuf)>> {
        match self {
            Self::Named(mut file, temporary, path, replaced) => {
                file.flush()?;
                if let Some(permissions) = replaced {
                    fs::set_permissions(&temporary, permissions)?;
                }
                Ok(Some((temporary, path)))
            }
            Self::Special(mut file) => file.flush().map(|()| None),
        }
    }
}

/// Gives what is at `path` a name beside, under which it is to be found once another has taken its place.
fn second_name(path: &Path) -> io::Result<Option<TempPath>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = |name: fn(&Path, &Path) -> io::Result<()>| {
        let made = tempfile::Builder::new().prefix(TEMPORARY).make_in(folder, |beside| name(path, beside));
        made.map(|made| Some(made.into_temp_path()))
    };
    let named = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A folder that has come there cannot be replaced, and is not moved either.
        Ok(there) if there.is_dir() => return Ok(None),
        // Not everywhere has a file two names.
        _ => beside(|path, beside| fs::hard_link(path, beside)).or_else(|_| beside(|path, beside| fs::rename(path, beside))),
    };
    named.map_err(|error| plain(&error))
}

/// Takes names back that were given, the last ones first; tells of those where that failed.
fn take_back(named: Vec<(PathBuf, Option<TempPath>)>) -> String {
    let mut left = String::new();
    for (path, before) in named.into_iter().rev() {
        let taken = match before {
            Some(before) => before.persist(&path).map_err(|error| error.error),
            None => fs::remove_file(&path),
        };
        if let Err(error) = taken {
            left += &format!("; {} is new and could not be taken back: {error}", commands::shown(&path));
        }
    }
    left
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Named(file, ..) => file.write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Named(file, ..) => file.flush(),
            Self::Special(file) => file.flush(),
        }
    }
}

/// A new file beside those that are wanted: for its owner alone, or with the permissions of any new file.
fn temporary_in(folder: &Path, private: bool) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    if !private {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(Permissions::from_mode(0o666));
    }
    // The name of the temporary file would only confuse.
    builder.tempfile_in(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "its folder is not there, or takes no files"),
        _ => plain(&error),
    })
}

/// An error without the temporary path that it names.
fn plain(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let text = text.split(" at path ").next().unwrap_or_default();
    #[cfg(unix)]
    if [libc::EMFILE, libc::ENFILE].iter().any(|code| text.ends_with(&format!("(os error {code})"))) {
        return io::Error::other("too many files are open: raise the limit (ulimit -n), and run this again");
    }
    match error.kind() {
        // Kinds that have no name are told of by the system alone.
        kind if kind.to_string() == "uncategorized error" => io::Error::other(text),
        kind => kind.into(),
    }
}

/// A folder that files are written to. One that was made for them and gets none is taken away again.
pub struct Folder {
    path: PathBuf,
    /// It and those around it that were made, the outer ones first.
    made: Vec<PathBuf>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove_folders(mem::take(&mut self.made));
    }
}

impl Folder {
    /// Makes sure that `path` is a folder to write to: new, empty, or any with `force`.
    pub fn prepare(path: &Path, force: bool) -> io::Result<Self> {
        let mut folder = Self { path: path.into(), made: Vec::new() };
        match fs::read_dir(path).map(|entries| entries.count()) {
            Ok(1..) if !force => {
                let why = "the folder is not empty; name another one, or give --force to replace the files of a report in it";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
                folder.made = path.ancestors().take_while(missing).map(Path::to_path_buf).collect();
                folder.made.reverse();
                let mut unfinished = unfinished();
                unfinished.folders.extend(folder.made.iter().cloned());
                fs::create_dir_all(path)?;
            }
            Err(error) => return Err(error),
        }
        // Found out now rather than after the scan.
        temporary_in(path, true)?;
        Ok(folder)
    }

    /// Removes a file of an earlier report, if there is one.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> io::Result<WholeFile> {
        WholeFile::create(&self.path.join(name)).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }
}
