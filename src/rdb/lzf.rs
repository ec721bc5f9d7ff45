//! LZF, as Redis compresses strings: the whole of one, or just its first bytes.

/// The most bytes that `packed` compressed bytes can stand for: 264 from each three-byte back reference.
pub fn most_plain(packed: usize) -> u64 {
    (packed as u64).saturating_mul(88)
}

/// Decompresses the whole of `packed` into `out`, which becomes `plain_len` bytes long; what was in it is overwritten.
///
/// # Errors
/// Says why the bytes are no LZF stream of exactly `plain_len` bytes. `plain_len` above [`most_plain`] is refused before anything is
/// allocated.
pub fn decompress(packed: &[u8], plain_len: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    const TOO_LONG: &str = "compressed bytes expand past the declared length";
    if plain_len as u64 > most_plain(packed.len()) {
        return Err("compressed bytes cannot expand to the declared length");
    }
    // Only what a longer string has not left behind is set to zero.
    out.resize(plain_len, 0);
    let mut rest = packed;
    let mut filled = 0;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        if control < 32 {
            let run = usize::from(control) + 1;
            // A copy of fixed length costs less than one of the right length; what is too much is overwritten later.
            match (rest.first_chunk::<32>(), out[filled..].first_chunk_mut::<32>()) {
                (Some(from), Some(to)) => *to = *from,
                _ => {
                    let from = rest.get(..run).ok_or("literal run passes the end of the compressed bytes")?;
                    out.get_mut(filled..filled + run).ok_or(TOO_LONG)?.copy_from_slice(from);
                }
            }
            rest = rest.get(run..).unwrap_or_default();
            filled += run;
        } else {
            let (length, distance, after) =
                back_reference(control, rest).ok_or("back reference passes the end of the compressed bytes")?;
            rest = after;
            let from = filled.checked_sub(distance).ok_or("back reference before the start of the string")?;
            let end = filled + length;
            if end > out.len() {
                return Err(TOO_LONG);
            }
            copy_back(out, from, filled, end);
            filled = end;
        }
    }
    if filled == plain_len { Ok(()) } else { Err("compressed bytes end before the declared length") }
}

/// Copies from `from` on to `to..end` in the same bytes, where the source may run into the copy and then repeats.
#[inline]
fn copy_back(out: &mut [u8], mut from: usize, mut to: usize, end: usize) {
    const STEP: usize = 16;
    if to - from >= STEP {
        // Sixteen bytes at a time never read what they have not written yet.
        while to < end && to + STEP <= out.len() {
            let mut step = [0; STEP];
            step.copy_from_slice(&out[from..from + STEP]);
            out[to..to + STEP].copy_from_slice(&step);
            (from, to) = (from + STEP, to + STEP);
        }
    }
    while to < end {
        out[to] = out[from];
        (from, to) = (from + 1, to + 1);
    }
}

/// Decompresses until `out` is full or the input ends or is no LZF, and returns how many bytes stand in `out`.
pub fn decompress_head(packed: &[u8], out: &mut [u8]) -> usize {
    let mut rest = packed;
    let mut filled = 0;
    while filled < out.len() {
        let Some((&control, after)) = rest.split_first() else { break };
        rest = after;
        if control < 32 {
            let run = usize::from(control) + 1;
            let n = run.min(out.len() - filled).min(rest.len());
            out[filled..filled + n].copy_from_slice(&rest[..n]);
            filled += n;
            rest = rest.get(run..).unwrap_or_default();
        } else {
            let Some((length, distance, after)) = back_reference(control, rest) else { break };
            rest = after;
            let Some(from) = filled.checked_sub(distance) else { break };
            let end = out.len().min(filled + length);
            for (at, to) in (from..).zip(filled..end) {
                out[to] = out[at];
            }
            filled = end;
        }
    }
    filled
}

/// Length, distance and rest of a back reference whose control byte was taken.
fn back_reference(control: u8, rest: &[u8]) -> Option<(usize, usize, &[u8])> {
    let mut length = usize::from(control >> 5);
    let mut rest = rest;
    if length == 7 {
        let (&more, after) = rest.split_first()?;
        length += usize::from(more);
        rest = after;
    }
    let (&low, rest) = rest.split_first()?;
    let distance = (usize::from(control & 31) << 8 | usize::from(low)) + 1;
    Some((length + 2, distance, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_of_a_real_aux_value() {
        // From a server's own file: 15 bytes hold the 22 bytes of "0xa" + 15 times "0" + "9p-5", with a trailing newline-free text.
        let packed = [0x04, 0x30, 0x78, 0x61, 0x2e, 0x61, 0xe0, 0x03, 0x00, 0x04, 0x39, 0x65, 0x70, 0x2d, 0x35];
        let mut out = Vec::new();
        decompress(&packed, 22, &mut out).expect("a valid stream");
        assert_eq!(out, b"0xa.aaaaaaaaaaaaa9ep-5".as_slice());
        let mut head = [0; 8];
        assert_eq!(decompress_head(&packed, &mut head), 8);
        assert_eq!(&head, b"0xa.aaaa");
    }

    #[test]
    fn a_broken_stream_says_why() {
        let mut out = Vec::new();
        assert!(decompress(&[0xe0, 0xff, 0xff, 0xff], 1000, &mut out).is_err());
        assert!(decompress(&[0xe0, 0xff, 0xff], 200, &mut out).is_err());
        assert!(decompress(&[0x05, b'a'], 6, &mut out).is_err());
        assert!(decompress(&[0x00, b'a'], 2, &mut out).is_err());
        assert!(decompress(&[0x01, b'a', b'b'], 1, &mut out).is_err());
    }

    proptest! {
        #[test]
        fn equals_the_lzf_crate(words in proptest::collection::vec(0u8..4, 0..3000)) {
            let Ok(packed) = lzf::compress(&words) else { return Ok(()) };
            let mut out = Vec::new();
            prop_assert_eq!(decompress(&packed, words.len(), &mut out), Ok(()));
            prop_assert_eq!(&out, &words);
            let mut head = vec![0; words.len().min(17)];
            prop_assert_eq!(decompress_head(&packed, &mut head), head.len());
            prop_assert_eq!(&head[..], &words[..head.len()]);
        }

        #[test]
        fn never_panics_and_head_agrees(packed: Vec<u8>, want in 0usize..400) {
            let mut head = vec![0; want];
            let filled = decompress_head(&packed, &mut head);
            prop_assert!(filled <= want);
            let mut out = Vec::new();
            if decompress(&packed, want, &mut out).is_ok() {
                prop_assert_eq!(&out, &head);
            }
        }
    }
}
