//! Files that are whole or not there: written beside their place and renamed into it.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that gets its name when it is complete.
pub struct WholeFile {
    temporary: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl WholeFile {
    /// Begins a file that will be `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder: name a file"));
        }
        let temporary = tempfile::Builder::new().prefix(".rdbscope-").tempfile_in(folder)?;
        Ok(Self { temporary: BufWriter::with_capacity(1 << 16, temporary), path: path.into() })
    }

    /// Gives the file its name.
    pub fn finish(self) -> io::Result<()> {
        let temporary = self.temporary.into_inner().map_err(io::IntoInnerError::into_error)?;
        // A temporary file is private; a report is as readable as any new file.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o644))?;
        }
        temporary.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}

/// A folder that files are written to.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes sure that `path` is a folder to write to: new, empty, or any with `force`.
    pub fn prepare(path: &Path, force: bool) -> io::Result<Self> {
        match fs::read_dir(path).map(|entries| entries.count()) {
            Ok(1..) if !force => {
                let why = "the folder is not empty; name another one, or give --force to replace the files of a report in it";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(path)?,
            Err(error) => return Err(error),
        }
        // Found out now rather than after the scan.
        tempfile::Builder::new().prefix(".rdbscope-").tempfile_in(path)?;
        Ok(Self(path.into()))
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> io::Result<WholeFile> {
        WholeFile::create(&self.0.join(name))
    }
}
