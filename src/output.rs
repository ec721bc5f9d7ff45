//! Files that are whole or not there: written beside their place and renamed into it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that gets its name when it is complete. What is no regular file, such as a device or a pipe, is written to as it is.
pub enum WholeFile {
    /// A file beside its place.
    Named(BufWriter<NamedTempFile>, PathBuf),
    /// A device or pipe.
    Special(File),
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
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = temporary_in(folder)?;
        Ok(Self::Named(BufWriter::with_capacity(1 << 16, temporary), path))
    }

    /// Gives the file its name.
    pub fn finish(self) -> io::Result<()> {
        let (temporary, path) = match self {
            Self::Named(temporary, path) => (temporary.into_inner().map_err(io::IntoInnerError::into_error)?, path),
            Self::Special(mut file) => return file.flush(),
        };
        // A temporary file is private; a report is as readable as any new file.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o644))?;
        }
        temporary.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Named(file, _) => file.write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Named(file, _) => file.flush(),
            Self::Special(file) => file.flush(),
        }
    }
}

/// A new file beside those that are wanted.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    // The name of the temporary file would only confuse.
    tempfile::Builder::new().prefix(".rdbscope-").tempfile_in(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "its folder is not there, or takes no files"),
        kind => kind.into(),
    })
}

/// A folder that files are written to. One that was made for them and gets none is taken away again.
pub struct Folder {
    path: PathBuf,
    is_new: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_new {
            // Only an empty folder can be removed this way.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

impl Folder {
    /// Makes sure that `path` is a folder to write to: new, empty, or any with `force`.
    pub fn prepare(path: &Path, force: bool) -> io::Result<Self> {
        let mut is_new = false;
        match fs::read_dir(path).map(|entries| entries.count()) {
            Ok(1..) if !force => {
                let why = "the folder is not empty; name another one, or give --force to replace the files of a report in it";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path)?;
                is_new = true;
            }
            Err(error) => return Err(error),
        }
        // Found out now rather than after the scan.
        temporary_in(path)?;
        Ok(Self { path: path.into(), is_new })
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> io::Result<WholeFile> {
        WholeFile::create(&self.path.join(name)).map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }
}
