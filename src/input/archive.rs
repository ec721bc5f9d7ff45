//! Archives of dumps (tar): where their members are.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use tar::{EntryType, Header, PaxExtensions};

use super::decode::{Fault, Layer, Reader, skip};
use super::manifest::{MOST_MANIFEST, is_manifest};
use super::stream::{self, Source};

/// Bytes of a header; members begin at multiples of it.
const BLOCK: u64 = 512;

/// Most bytes of what describes a member: its name, above all.
const MOST_DESCRIPTION: u64 = 1 << 20;

/// Most blocks behind the end that are looked at: programs fill up the last twenty.
const MOST_BEHIND: usize = 2048;

/// Most bytes of the names of all members.
const MOST_NAMES: usize = 64 << 20;

/// Types of members that only tars of GNU have: the name of the archive, and what was in a folder.
const VOLUME_LABEL: u8 = b'V';
const FOLDER_LIST: u8 = b'D';

/// Most members that are told of; more are counted.
const MOST_MEMBERS: usize = 1 << 16;

/// Why an archive that ends between two members is not taken for whole.
const UNENDED: &str = "it ends without the empty blocks that every archive ends with: it may have been cut off between two members, and further \
                       ones be missing; compare its size with the original, or copy it again";

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path.
    pub name: Vec<u8>,
    /// Where its bytes begin in the uncompressed archive, and how many there are.
    pub offset: u64,
    pub size: u64,
    /// Unix milliseconds, where the archive tells.
    pub modified_ms: Option<i64>,
    /// Its first bytes, and all of them where they are few.
    pub start: Vec<u8>,
    /// Only the parts of it that are no holes are stored.
    pub is_sparse: bool,
}

/// True for a header whose checksum is right.
pub(super) fn is_header(block: &[u8; BLOCK as usize]) -> bool {
    let header = Header::from_byte_slice(block);
    // Its own eight bytes count as spaces.
    let sum =
        block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) }).sum::<u32>();
    header.cksum().is_ok_and(|cksum| cksum == sum)
}

/// Tells of each file in an archive, from its first byte on, with its first `start` bytes, or all of a manifest; and returns how much else there
/// is, but folders.
///
/// Descriptions are read here and not by a library, which would believe a name of any length.
///
/// # Errors
/// What cannot be read on. Everything before it was told of.
pub(super) fn list(mut from: impl Read, start: usize, mut tell: impl FnMut(Member)) -> (u64, io::Result<()>) {
    let mut others = 0;
    let end = walk(&mut from, start, &mut others, &mut tell);
    (others, end)
}

fn walk(from: &mut impl Read, start: usize, others: &mut u64, tell: &mut impl FnMut(Member)) -> io::Result<()> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    let mut at = 0u64;
    let (mut members, mut names) = (0, 0);
    let mut long_name = None;
    let mut described = Described::default();
    loop {
        let mut block = [0; BLOCK as usize];
        match from.read(&mut block[..1])? {
            0 => return Err(io::Error::other(Fault { reading: "tar archive", why: UNENDED.into() })),
            _ => from.read_exact(&mut block[1..])?,
        }
        if block.iter().all(|&byte| byte == 0) {
            return look_behind_end(from);
        }
        if !is_header(&block) {
            return Err(bad("the checksum of a member's header is wrong"));
        }
        at += BLOCK;
        let header = Header::from_byte_slice(&block);
        let kind = header.entry_type();
        let is_description = kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions();
        // A label of a volume has no size.
        let size = if block[124..136].iter().all(|byte| matches!(byte, 0 | b' ')) { 0 } else { header.entry_size()? };
        let size = if is_description { size } else { described.size.take().unwrap_or(size) };
        let padded = size.checked_next_multiple_of(BLOCK).ok_or_else(|| bad("a member is larger than any file"))?;
        let mut next = at.checked_add(padded).ok_or_else(|| bad("a member is larger than any file"))?;
        let mut kept = Vec::new();
        if is_description {
            if size > MOST_DESCRIPTION {
                return Err(bad("a name is longer than any name"));
            }
            from.by_ref().take(size).read_to_end(&mut kept)?;
            if (kept.len() as u64) < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if kind.is_gnu_longname() {
                long_name = Some(kept.iter().copied().take_while(|&byte| byte != 0).collect());
            } else if kind.is_pax_local_extensions() {
                described = Described::of(&kept);
            }
        } else {
            let name = long_name.take().or(described.name.take()).unwrap_or_else(|| header.path_bytes().into_owned());
            let modified = described.modified_s.take().or(header.mtime().ok()).filter(|seconds| *seconds > 0);
            let is_sparse = described.is_sparse || kind.is_gnu_sparse();
            described = Described::default();
            if kind.is_gnu_sparse() && header.as_gnu().is_some_and(tar::GnuHeader::is_extended) {
                next = next.saturating_add(skip_sparse_map(from)?);
                at = next - padded;
            }
            names += name.len();
            if names > MOST_NAMES {
                return Err(bad("its names are longer than any names"));
            }
            let start = if is_manifest(&name) { MOST_MANIFEST } else { start as u64 };
            match kind {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse
                    if !name.ends_with(b"/") && members < MOST_MEMBERS =>
                {
                    members += 1;
                    let read = from.by_ref().take(size.min(start)).read_to_end(&mut kept);
                    at += kept.len() as u64;
                    let modified_ms = modified.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(1000));
                    let offset = at - kept.len() as u64;
                    // Told of also where the archive ends in it: what is there of it can be read.
                    tell(Member { name, offset, size, modified_ms, start: std::mem::take(&mut kept), is_sparse });
                    read?;
                }
                EntryType::Directory | EntryType::XGlobalHeader => {}
                _ if matches!(kind.as_byte(), VOLUME_LABEL | FOLDER_LIST) => {}
                _ if name.ends_with(b"/") => {}
                _ => *others += 1,
            }
        }
        at += kept.len() as u64;
        skip(from, next - at)?;
        at = next;
    }
}

/// Looks whether another archive follows the end of this one, which programs pass over in silence.
fn look_behind_end(from: &mut impl Read) -> io::Result<()> {
    for _ in 0..MOST_BEHIND {
        let mut block = Vec::new();
        from.by_ref().take(BLOCK).read_to_end(&mut block)?;
        let Ok(block) = <[u8; BLOCK as usize]>::try_from(block) else { break };
        if block.iter().any(|&byte| byte != 0) {
            let why = "another archive follows its end, and was not read: unpack it with tar -i, or give each archive by itself";
            let fault = Fault { reading: "tar archive", why: why.into() };
            return if is_header(&block) { Err(io::Error::other(fault)) } else { Ok(()) };
        }
    }
    Ok(())
}

/// Passes the headers that go on with the map of a sparse member of GNU, and returns their bytes.
fn skip_sparse_map(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = 0;
    loop {
        let mut block = [0; BLOCK as usize];
        from.read_exact(&mut block)?;
        bytes += BLOCK;
        // Behind 21 parts of 24 bytes each.
        if block[504] == 0 {
            return Ok(bytes);
        }
    }
}

/// What a header in front of a member's own says of it.
#[derive(Debug, Default)]
struct Described {
    is_sparse: bool,
    name: Option<Vec<u8>>,
    size: Option<u64>,
    modified_s: Option<u64>,
}

impl Described {
    fn of(extensions: &[u8]) -> Self {
        let mut described = Self::default();
        for extension in PaxExtensions::new(extensions).flatten() {
            let value = extension.value_bytes();
            // Times have fractions.
            let number = || std::str::from_utf8(value).ok()?.split('.').next()?.parse().ok();
            match extension.key_bytes() {
                b"GNU.sparse.name" => (described.is_sparse, described.name) = (true, Some(value.to_vec())),
                key if key.starts_with(b"GNU.sparse.") => described.is_sparse = true,
                // In front of that of a sparse member stands another one, for programs that know of none.
                b"path" if described.is_sparse && described.name.is_some() => {}
                b"path" => described.name = Some(value.to_vec()),
                b"size" => described.size = number(),
                b"mtime" => described.modified_s = number(),
                _ => {}
            }
        }
        described
    }
}

/// An archive that is a stream, whose members are read one after the other.
#[derive(Debug)]
pub(super) struct Archive {
    source: Source,
    layers: Vec<Layer>,
    /// Where the last member that was read ended.
    open: Mutex<Option<Open>>,
}

struct Open {
    at: u64,
    reader: Reader,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Archive {
    pub(super) fn new(source: Source, layers: Vec<Layer>) -> Self {
        Self { source, layers, open: Mutex::default() }
    }

    /// The whole archive.
    pub(super) fn reader(&self) -> io::Result<Reader> {
        stream::open(&self.source, &self.layers)
    }

    /// The bytes of a member: read on from where the one before it ended, or from the beginning of the archive.
    pub(super) fn member(archive: &Arc<Self>, offset: u64, size: u64) -> io::Result<MemberReader> {
        let open = archive.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut open = match open {
            Some(open) if open.at <= offset => open,
            _ => Open { at: 0, reader: archive.reader()? },
        };
        skip(&mut open.reader, offset - open.at)?;
        open.at = offset;
        Ok(MemberReader { archive: Arc::clone(archive), open: Some(open), left: size })
    }
}

/// Reads one member of an archive.
#[derive(Debug)]
pub(super) struct MemberReader {
    archive: Arc<Archive>,
    open: Option<Open>,
    left: u64,
}

impl Read for MemberReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let Some(open) = &mut self.open else { return Ok(0) };
        if most == 0 {
            return Ok(0);
        }
        let n = match open.reader.read(&mut buf[..most]) {
            // The archive ends inside the member.
            Ok(0) => {
                self.open = None;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(n) => n,
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.open = None;
                }
                return Err(error);
            }
        };
        open.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

impl Drop for MemberReader {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            *self.archive.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
        }
    }
}
