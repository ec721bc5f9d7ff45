//! The manifest of an append-only file in several parts: which of them is a dump, and which are commands.

/// Longest manifest that is read; a server writes one line for each part.
pub(super) const MOST_MANIFEST: u64 = 1 << 20;

/// What a manifest lists: names of files beside it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The part that is a dump.
    pub base: String,
    /// Commands that follow it.
    pub increments: Vec<String>,
    /// What the server is about to delete.
    pub history: Vec<String>,
}

/// True for the name of a manifest.
pub(super) fn is_manifest(name: &[u8]) -> bool {
    name.to_ascii_lowercase().ends_with(b".manifest")
}

impl Manifest {
    /// Reads the text of a manifest.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "its manifest is no text".to_string())?;
        let (mut base, mut increments, mut history) = (None, Vec::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, kind) = part(line).ok_or_else(|| format!("its manifest cannot be understood in line {number}"))?;
            // Parts stand beside the manifest, and nowhere else.
            if std::path::Path::new(&name).file_name() != Some(name.as_ref()) {
                return Err(format!("its manifest names a file in another folder in line {number}"));
            }
            match kind {
                'b' => base = Some(name),
                'i' => increments.push(name),
                _ => history.push(name),
            }
        }
        let base = base.ok_or("its manifest names no base: every key is in commands; run BGREWRITEAOF, or take a dump")?;
        Ok(Self { base, increments, history })
    }
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
