//! Capture files, as a decoder that is handed bytes and asks for more when it needs them.
//!
//! One decoder serves a mapped file ([`read_slice`]) and a stream ([`read_stream`]); [`Decompressed`] makes a
//! compressed stream one. Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
//!
//! Own code rather than pcap-parser: errors have to tell a cut-off record, an impossible length and a plain
//! end apart and name the byte, and packets must not allocate. `tests/differential.rs` holds the two equal.

mod compressed;
mod frame;
pub(crate) mod likeness;
mod merge;
mod pcap;
mod pcapng;
mod source;

pub use compressed::{Compression, Decompressed};
pub use frame::{add, Counts, Frame, LinkType, Origin, Step, MAX_CAPTURED_BYTES};
pub use merge::{read_merged, Batch, Batches, Place, Unreadable};
pub(crate) use source::Source;
pub use source::{read_until_stop, Ended, Stop};

use std::io::Read;

use crate::error::{Error, ReadError, Result};

enum Format {
    Unknown,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Turns capture bytes into frames, wherever the bytes come from.
pub struct Decoder {
    format: Format,
    /// No bytes follow the input.
    has_ended: bool,
    offset: u64,
    origin: Origin,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    pub fn new() -> Self {
        Decoder { format: Format::Unknown, has_ended: false, offset: 0, origin: Origin::default() }
    }

    /// Reads what is at the start of `input`, which must begin where the last step's `consumed` ended.
    #[inline]
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>> {
        let step = match &mut self.format {
            Format::Pcap(pcap) => pcap.step(input, self.offset)?,
            Format::Pcapng(pcapng) => pcapng.step(input, self.offset, &mut self.origin)?,
            Format::Unknown => self.open(input)?,
        };
        match &step {
            Step::Frame { consumed, .. } | Step::Other { consumed } => self.offset += *consumed as u64,
            Step::More { .. } => {}
        }
        Ok(step)
    }

    /// As [`Decoder::step`], for the usual case: a whole record of a pcap file.
    #[inline(always)]
    fn record<'a>(&mut self, input: &'a [u8]) -> Option<(Frame<'a>, usize)> {
        let Format::Pcap(pcap) = &self.format else { return None };
        let (frame, consumed) = pcap.whole(input)?;
        self.offset += consumed as u64;
        Some((frame, consumed))
    }

    fn open<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>> {
        let Some(magic) = input.first_chunk::<4>() else {
            return Ok(Step::More { needed: 4, layer: "capture file", claimed_by: "its magic number" });
        };
        if u32::from_le_bytes(*magic) == pcapng::SECTION_HEADER {
            self.format = Format::Pcapng(pcapng::Pcapng::default());
            return Ok(Step::Other { consumed: 0 });
        }
        if !pcap::is_magic(*magic) && input.len() < likeness::START_BYTES && !self.has_ended {
            // What the file looks like must not depend on how much of it was read at once.
            let needed = likeness::START_BYTES;
            return Ok(Step::More { needed, layer: "capture file", claimed_by: "the search for its format" });
        }
        match pcap::Pcap::open(input)? {
            None => {
                Ok(Step::More { needed: pcap::FILE_HEADER_BYTES, layer: "pcap file header", claimed_by: "the format" })
            }
            Some(pcap) => {
                self.format = Format::Pcap(pcap);
                self.origin.interfaces = 1;
                Ok(Step::Other { consumed: pcap::FILE_HEADER_BYTES })
            }
        }
    }

    /// Says that no bytes follow `rest`. A cut-off last record is counted; a file without a header is an error.
    pub fn finish(mut self, rest: &[u8]) -> Result<Origin> {
        match self.cut_off(rest)? {
            Some(error) if self.is_headless() => return Err(error),
            Some(_) => *self.origin.skipped.entry("last_record_cut_off").or_default() += 1,
            None => {}
        }
        Ok(self.origin)
    }

    /// What is wrong if no bytes follow `rest`, although [`Decoder::step`] asked for more.
    fn cut_off(&mut self, rest: &[u8]) -> Result<Option<Error>> {
        self.has_ended = true;
        match self.step(rest)? {
            Step::More { needed, layer, claimed_by } if !rest.is_empty() || self.is_headless() => {
                Ok(Some(Error::Length {
                    layer,
                    offset: self.offset,
                    needed: needed as u64,
                    available: rest.len() as u64,
                    claimed_by,
                }))
            }
            Step::More { .. } | Step::Frame { .. } | Step::Other { .. } => Ok(None),
        }
    }

    /// No header has been read yet: an error now concerns the file as a whole.
    pub fn is_headless(&self) -> bool {
        match &self.format {
            Format::Unknown => true,
            Format::Pcap(_) => false,
            Format::Pcapng(pcapng) => !pcapng.has_section(),
        }
    }

    /// Bytes decoded.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn into_origin(self) -> Origin {
        self.origin
    }
}

/// Hands every frame of a whole capture to `sink`.
pub fn read_slice(bytes: &[u8], mut sink: impl FnMut(&Frame)) -> Result<Origin> {
    let mut decoder = Decoder::new();
    let mut rest = bytes;
    loop {
        match decoder.step(rest)? {
            Step::Frame { consumed, frame } => {
                sink(&frame);
                rest = &rest[consumed..];
            }
            Step::Other { consumed } => rest = &rest[consumed..],
            Step::More { .. } => return decoder.finish(rest),
        }
    }
}

/// As [`read_slice`], from a stream. At most one record and one read's worth of bytes are held.
pub fn read_stream(reader: impl Read, mut sink: impl FnMut(&Frame)) -> std::result::Result<Origin, ReadError> {
    let mut decoder = Decoder::new();
    let mut window = Window::new(reader);
    loop {
        let needed = match decoder.step(window.bytes())? {
            Step::Frame { consumed, frame } => {
                sink(&frame);
                window.consume(consumed);
                continue;
            }
            Step::Other { consumed } => {
                window.consume(consumed);
                continue;
            }
            Step::More { needed, .. } => needed,
        };
        if !window.fill(needed)? {
            return Ok(decoder.finish(window.bytes())?);
        }
    }
}

/// The bytes of a stream that have been read and not yet used.
pub struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: Read> Window<R> {
    const READ_BYTES: usize = 1 << 17;

    pub fn new(reader: R) -> Self {
        Window { reader, buffer: vec![0; Self::READ_BYTES], start: 0, end: 0 }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Gives away the buffer with its content, and continues with the unread rest in `fresh`.
    fn exchange(&mut self, mut fresh: Vec<u8>) -> Vec<u8> {
        fresh.resize(self.buffer.len(), 0);
        fresh[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
        (self.start, self.end) = (0, self.end - self.start);
        std::mem::replace(&mut self.buffer, fresh)
    }

    /// Reads on until `needed` bytes are there; false at the stream's end.
    pub fn fill(&mut self, needed: usize) -> std::io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // A length field may claim 16 MiB that are not there: grow by what has really arrived.
        if self.end == self.buffer.len() && needed > self.end {
            let bytes = (self.buffer.len() * 2).min(needed.max(Self::READ_BYTES));
            self.buffer.resize(bytes, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
