//! Frames of LZ4 one behind the other, those of old among them.

use std::io::{self, Chain, Cursor, Read};

use lz4_flex::frame::FrameDecoder;

use super::decode::skip;

/// Magic numbers of frames, little endian; those of frames that hold no data have four free bits.
const MODERN: u32 = 0x184d_2204;
const LEGACY: u32 = 0x184c_2102;
const SKIPPABLE: u32 = 0x184d_2a50;

/// Bytes that a block of a frame of old gives, but the last.
const LEGACY_BLOCK: usize = 8 << 20;

/// Most bytes that such a block is stored in: those that do not compress grow a little.
const MOST_STORED: u32 = (LEGACY_BLOCK + LEGACY_BLOCK / 255 + 16) as u32;

/// Remembers that the end was met.
struct Ending<R> {
    inner: R,
    ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.ended |= n == 0 && !buf.is_empty();
        Ok(n)
    }
}

/// What a frame is read from: its magic number, which was looked at, then the rest.
type FrameSource<R> = Ending<Chain<Cursor<[u8; 4]>, R>>;

/// Frames one behind the other, which the decoder of one frame leaves to its caller.
pub(super) struct Frames<R: Read> {
    state: State<R>,
    /// Frames that are still read.
    frames: usize,
}

enum State<R: Read> {
    /// And the magic number of the next frame, where it was read.
    Between(R, Option<u32>),
    Inside(Box<FrameDecoder<FrameSource<R>>>),
    Legacy(LegacyFrame<R>),
    Ended,
}

/// A frame of old: blocks with their stored lengths in front, up to the end of the file or the next magic number.
struct LegacyFrame<R> {
    inner: R,
    stored: Vec<u8>,
    block: Vec<u8>,
    /// What was not handed out yet.
    from: usize,
    to: usize,
}

/// A number of four bytes; `None` at the end.
fn number(inner: &mut impl Read) -> io::Result<Option<u32>> {
    let mut bytes = [0; 4];
    let mut read = 0;
    while read < bytes.len() {
        match inner.read(&mut bytes[read..])? {
            0 if read == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => read += n,
        }
    }
    Ok(Some(u32::from_le_bytes(bytes)))
}

fn is_magic(number: u32) -> bool {
    number == MODERN || number == LEGACY || number & !0xf == SKIPPABLE
}

impl<R: Read> LegacyFrame<R> {
    fn new(inner: R) -> Self {
        Self { inner, stored: Vec::new(), block: Vec::new(), from: 0, to: 0 }
    }

    /// Decodes the next block; without one what ends the frame: the next magic number, or the end of the file.
    fn next_block(&mut self) -> io::Result<Option<Option<u32>>> {
        let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let len = match number(&mut self.inner)? {
            None => return Ok(Some(None)),
            Some(magic) if is_magic(magic) => return Ok(Some(Some(magic))),
            Some(len) if len == 0 || len > MOST_STORED => return Err(bad("what follows is neither a block nor a frame".into())),
            Some(len) => len,
        };
        self.stored.clear();
        self.inner.by_ref().take(len.into()).read_to_end(&mut self.stored)?;
        if self.stored.len() < len as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.block.resize(LEGACY_BLOCK, 0);
        self.from = 0;
        self.to = lz4_flex::block::decompress_into(&self.stored, &mut self.block).map_err(|error| bad(error.to_string()))?;
        Ok(None)
    }
}

impl<R: Read> Frames<R> {
    /// Reads so many frames.
    pub(super) fn new(inner: R, frames: usize) -> Self {
        Self { state: State::Between(inner, None), frames }
    }

    /// Goes on to the next frame with data in it.
    fn next_frame(&mut self, mut inner: R, mut magic: Option<u32>) -> io::Result<State<R>> {
        if self.frames == 0 {
            return Ok(State::Ended);
        }
        loop {
            let read = match magic.take() {
                None => number(&mut inner)?,
                magic => magic,
            };
            let Some(magic) = read else { return Ok(State::Ended) };
            if magic & !0xf == SKIPPABLE {
                let mut len = [0; 4];
                inner.read_exact(&mut len)?;
                skip(&mut inner, u64::from(u32::from_le_bytes(len)))?;
                continue;
            }
            if !is_magic(magic) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what follows is no frame"));
            }
            self.frames -= 1;
            if magic == LEGACY {
                return Ok(State::Legacy(LegacyFrame::new(inner)));
            }
            let source = Ending { inner: Cursor::new(magic.to_le_bytes()).chain(inner), ended: false };
            return Ok(State::Inside(Box::new(FrameDecoder::new(source))));
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            let mut next = None;
            match &mut self.state {
                State::Ended => return Ok(0),
                State::Inside(decoder) => {
                    let n = decoder.read(buf)?;
                    if n > 0 {
                        return Ok(n);
                    }
                    // The decoder takes the end of its bytes for the end of the frame.
                    if decoder.get_ref().ended {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                State::Legacy(frame) => {
                    if frame.from == frame.to {
                        next = frame.next_block()?;
                    }
                    if next.is_none() {
                        let rest = &frame.block[frame.from..frame.to];
                        let n = rest.len().min(buf.len());
                        buf[..n].copy_from_slice(&rest[..n]);
                        frame.from += n;
                        if n > 0 {
                            return Ok(n);
                        }
                        // A block of nothing.
                        continue;
                    }
                }
                State::Between(..) => {}
            }
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Between(inner, magic) => self.next_frame(inner, magic)?,
                State::Inside(decoder) => State::Between(decoder.into_inner().inner.into_inner().1, None),
                State::Legacy(frame) => match next.flatten() {
                    Some(magic) => State::Between(frame.inner, Some(magic)),
                    None => State::Ended,
                },
                State::Ended => return Ok(0),
            };
        }
    }
}
