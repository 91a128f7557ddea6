//! Cuts a snapshot file: `@ INDEX MONOTONIC REALTIME`, then `# SOURCE BYTES`, that many bytes and a newline
//! for each source, `# SOURCE -` for one that was not there.

use crate::error::{shown, Error, Result};

const LAYER: &str = "counter snapshots";

#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot<'a> {
    pub index: u64,
    pub monotonic_s: f64,
    pub realtime_s: f64,
    pub sources: Vec<Source<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Source<'a> {
    /// A path, or a command with its arguments.
    pub name: &'a str,
    /// `None` where the host does not have it.
    pub content: Option<&'a [u8]>,
    /// Line of the file on which the content starts, from 1.
    pub first_line: usize,
}

/// Whole snapshots, and what is wrong with a last one that was cut off.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshots<'a> {
    pub snapshots: Vec<Snapshot<'a>>,
    pub cut_off: Option<Error>,
}

/// Cuts a file. One that ends within its last snapshot gives the others; within its first, an error.
pub fn snapshots(bytes: &[u8]) -> Result<Snapshots<'_>> {
    let mut reader = Reader { bytes, at: 0, line: 1 };
    let mut whole = Vec::new();
    while reader.at < bytes.len() {
        match reader.snapshot() {
            Ok(snapshot) => whole.push(snapshot),
            Err(error @ Error::Length { .. }) if !whole.is_empty() => {
                return Ok(Snapshots { snapshots: whole, cut_off: Some(error) });
            }
            Err(error) => return Err(error),
        }
    }
    if whole.is_empty() {
        return Err(Error::Missing {
            layer: LAYER,
            expected: "a line \"@ INDEX MONOTONIC REALTIME\"".into(),
            found: String::new(),
        });
    }
    Ok(Snapshots { snapshots: whole, cut_off: None })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn cut_off(&self, needed: usize, claimed_by: &'static str) -> Error {
        Error::Length {
            layer: LAYER,
            offset: self.at as u64,
            needed: needed as u64,
            available: (self.bytes.len() - self.at) as u64,
            claimed_by,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// A heading, without its newline, and the number of its line.
    fn heading(&mut self) -> Result<(&'a str, usize)> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(self.cut_off(rest.len() + 1, "a heading without its end of line"));
        };
        let line = self.line;
        let text = std::str::from_utf8(&rest[..length])
            .map_err(|_| Error::line(LAYER, line, &String::from_utf8_lossy(&rest[..length]), "a heading in UTF-8"))?;
        self.at += length + 1;
        self.line += 1;
        Ok((text, line))
    }

    fn snapshot(&mut self) -> Result<Snapshot<'a>> {
        const EXPECTED: &str = "\"@ INDEX MONOTONIC REALTIME\"";
        let (text, line) = self.heading()?;
        let wrong = || Error::line(LAYER, line, text, EXPECTED);
        let words: Vec<&str> = text.split(' ').collect();
        let ["@", index, monotonic, realtime] = words[..] else { return Err(wrong()) };
        let seconds = |text: &str| text.parse::<f64>().ok().filter(|seconds| seconds.is_finite()).ok_or_else(wrong);
        let mut snapshot = Snapshot {
            index: index.parse().map_err(|_| wrong())?,
            monotonic_s: seconds(monotonic)?,
            realtime_s: seconds(realtime)?,
            sources: Vec::new(),
        };
        while self.peek() == Some(b'#') {
            snapshot.sources.push(self.source()?);
        }
        match self.peek() {
            None | Some(b'@') => Ok(snapshot),
            Some(_) => {
                let rest = String::from_utf8_lossy(&self.bytes[self.at..self.bytes.len().min(self.at + 200)]);
                Err(Error::line(LAYER, self.line, &shown(&rest), "a line with @ or # at its start"))
            }
        }
    }

    fn source(&mut self) -> Result<Source<'a>> {
        const EXPECTED: &str = "\"# SOURCE BYTES\" or \"# SOURCE -\"";
        let (text, line) = self.heading()?;
        let wrong = || Error::line(LAYER, line, text, EXPECTED);
        let (name, length) = text.strip_prefix("# ").and_then(|rest| rest.rsplit_once(' ')).ok_or_else(wrong)?;
        let first_line = self.line;
        if length == "-" {
            return Ok(Source { name, content: None, first_line });
        }
        let length: usize = length.parse().map_err(|_| wrong())?;
        let rest = &self.bytes[self.at..];
        let (Some(content), Some(end)) = (rest.get(..length), rest.get(length)) else {
            return Err(self.cut_off(length.saturating_add(1), "the source's byte count"));
        };
        if *end != b'\n' {
            return Err(Error::Value {
                layer: LAYER,
                offset: (self.at + length) as u64,
                field: "byte after a source's content",
                found: format!("{end:#04x}"),
                expected: "a newline".into(),
            });
        }
        self.at += length + 1;
        self.line += content.iter().filter(|byte| **byte == b'\n').count() + 1;
        Ok(Source { name, content: Some(content), first_line })
    }
}
