//! Which members of an archive count: by the rules for files of a folder, and as unpacking it would leave them.

use std::collections::HashMap;
use std::io;

use super::archive::Member;
use super::folder::is_temporary;
use super::kind::Kind;
use super::manifest::{Manifest, is_manifest};
use super::{Fault, Input};
use crate::key_text;

/// Why a member cannot be read, and what to do.
const SPARSE: &str = "is stored sparse: unpack the archive, and give the file";
const ARCHIVE: &str = "is an archive inside an archive: unpack the outer one, and give what is in it";
const LOST_BASE: &str =
    "the manifest beside it names it as the base of the append-only file, and it is not in the archive: find it";
const NO_BASE: &str = "the manifest beside it names it as the base of the append-only file, and it is no dump: an append-only file without an RDB \
                       part; run BGREWRITEAOF with aof-use-rdb-preamble, or take a dump";

const MANIFESTS: &str =
    "is a manifest of an append-only file, of which the archive has too many: unpack it, and give what is in it";

/// Most bytes of all manifests in an archive.
const MOST_MANIFESTS: usize = 16 << 20;

/// What was found where dumps were opened.
#[derive(Debug)]
pub struct Opened<T> {
    /// What was made of each dump.
    pub dumps: Vec<T>,
    /// Members of an archive that a save has not finished, by name.
    pub temporary: Vec<String>,
    /// Members that a later one of the same name replaces.
    pub replaced: Vec<String>,
    /// Members that cannot be read, each with the reason and what to do.
    pub unread: Vec<(String, &'static str)>,
    /// Members that are no dumps.
    pub others: u64,
    /// Bytes of commands in the parts of append-only files that follow their bases.
    pub command_bytes: u64,
    /// Such parts that a manifest names and that are not there.
    pub missing: Vec<String>,
    /// Why an archive could not be read to its end.
    pub fault: Option<Fault>,
}

impl<T> Opened<T> {
    /// What a file is that is no archive.
    pub(super) fn one(dump: T) -> Self {
        Self { dumps: vec![dump], ..Self::default() }
    }

    /// The one dump that was opened.
    pub(super) fn the_one(mut self) -> io::Result<T> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        match (self.dumps.pop(), self.dumps.len(), self.fault) {
            (Some(input), 0, _) => Ok(input),
            (None, _, Some(fault)) => Err(io::Error::other(fault)),
            (None, ..) => Err(invalid("is an archive without dumps".into())),
            (_, more, _) => Err(invalid(format!("is an archive of {} dumps", more + 1))),
        }
    }
}

impl<T> Default for Opened<T> {
    fn default() -> Self {
        Self {
            dumps: Vec::new(),
            temporary: Vec::new(),
            replaced: Vec::new(),
            unread: Vec::new(),
            others: 0,
            command_bytes: 0,
            missing: Vec::new(),
            fault: None,
        }
    }
}

/// What a member is.
enum What<T> {
    Dump(T),
    Temporary,
    Manifest(Vec<u8>),
    Unread(&'static str),
    Other,
    /// Neither to be read nor to be told of.
    Nothing,
}

/// Members of an archive, in its order.
pub(super) struct Members<T> {
    /// Path that unpacking gives, path as it is told, bytes.
    members: Vec<(Vec<u8>, String, u64, What<T>)>,
    manifest_bytes: usize,
}

impl<T> Members<T> {
    pub(super) fn new() -> Self {
        Self { members: Vec::new(), manifest_bytes: 0 }
    }

    /// Takes the next member, which `open` opens where that may be a dump.
    pub(super) fn take(
        &mut self,
        member: Member,
        each: &mut dyn FnMut(Input) -> T,
        open: impl FnOnce(Vec<u8>, Vec<u8>) -> (Input, Kind),
    ) {
        let Member { name, start, size, is_sparse, .. } = member;
        let path = unpacked(&name);
        let shown = key_text::escape(&name).into_owned();
        let file_name = file_name(&path);
        let what = if is_temporary(file_name) {
            What::Temporary
        } else if is_sparse {
            What::Unread(SPARSE)
        } else if is_manifest(file_name) {
            self.manifest_bytes += start.len();
            if self.manifest_bytes > MOST_MANIFESTS { What::Unread(MANIFESTS) } else { What::Manifest(start) }
        } else {
            let named_dump = file_name.to_ascii_lowercase().ends_with(b".rdb");
            match open(name, start) {
                (_, Kind::Tar) => What::Unread(ARCHIVE),
                (input, kind) if named_dump || input.is_payload() || matches!(kind, Kind::Dump | Kind::Capture(..)) => {
                    What::Dump(each(input))
                }
                _ => What::Other,
            }
        };
        self.members.push((path, shown, size, what));
    }

    /// What counts of them, once all were taken.
    ///
    /// # Errors
    /// A manifest that cannot be obeyed.
    pub(super) fn settle(mut self) -> io::Result<Opened<T>> {
        let mut opened = Opened::default();
        let mut last = HashMap::new();
        for at in 0..self.members.len() {
            // Unpacking writes the later one over the earlier.
            if let Some(before) = last.insert(self.members[at].0.clone(), at) {
                let (_, shown, _, what) = &mut self.members[before];
                if !matches!(std::mem::replace(what, What::Nothing), What::Other | What::Temporary | What::Nothing) {
                    opened.replaced.push(std::mem::take(shown));
                }
            }
        }
        for at in 0..self.members.len() {
            let (path, _, _, what) = &mut self.members[at];
            if !matches!(what, What::Manifest(_)) {
                continue;
            }
            let What::Manifest(text) = std::mem::replace(what, What::Nothing) else { continue };
            let folder = path[..path.len() - file_name(path).len()].to_vec();
            self.obey(&folder, &text, &last, &mut opened)?;
        }
        for (_, shown, _, what) in self.members {
            match what {
                What::Dump(dump) => opened.dumps.push(dump),
                What::Temporary => opened.temporary.push(shown),
                What::Unread(why) => opened.unread.push((shown, why)),
                What::Other => opened.others += 1,
                What::Manifest(_) | What::Nothing => {}
            }
        }
        Ok(opened)
    }

    /// Leaves of the parts that a manifest lists the base.
    fn obey(&mut self, folder: &[u8], text: &[u8], at: &HashMap<Vec<u8>, usize>, opened: &mut Opened<T>) -> io::Result<()> {
        let invalid = |why: String| {
            let folder = key_text::escape(folder.strip_suffix(b"/").unwrap_or(b"."));
            io::Error::new(io::ErrorKind::InvalidData, format!("append-only file in {folder}: {why}"))
        };
        let Manifest { base, increments, history } = Manifest::parse(text).map_err(invalid)?;
        let beside = |name: &str| [folder, name.as_bytes()].concat();
        for name in increments {
            match at.get(&beside(&name)) {
                Some(&at) => {
                    opened.command_bytes += self.members[at].2;
                    self.members[at].3 = What::Nothing;
                }
                None => opened.missing.push(key_text::escape(&beside(&name)).into_owned()),
            }
        }
        for name in history {
            if let Some(&at) = at.get(&beside(&name)) {
                self.members[at].3 = What::Nothing;
            }
        }
        match at.get(&beside(&base)).map(|&at| &mut self.members[at].3) {
            None => opened.unread.push((key_text::escape(&beside(&base)).into_owned(), LOST_BASE)),
            Some(what @ (What::Other | What::Nothing)) => *what = What::Unread(NO_BASE),
            Some(_) => {}
        }
        Ok(())
    }
}

/// The path that unpacking a member gives: `./a//b` is `a/b`.
fn unpacked(name: &[u8]) -> Vec<u8> {
    let parts = name.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.collect::<Vec<_>>().join(&b'/')
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
