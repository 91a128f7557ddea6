//! The classic file format: a 24-byte header, then records. Micro- and nanoseconds, both byte orders, and
//! the "modified" record header of Alexey Kuznetsov's libpcap.
//!
//! Before version 2.3 a record has its original length first, then its captured length; of 2.3 there are files of both
//! kinds, and a captured length above the original one tells them apart (libpcap's sf-pcap.c). Version 543.0 is that of
//! DG/UX's tcpdump.

use super::frame::{Frame, LinkType, Step, MAX_CAPTURED_BYTES};
use super::likeness::likeness;
use crate::error::{Error, Result};

pub(super) const FILE_HEADER_BYTES: usize = 24;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// The order of a record's two lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// The smaller one is the captured length.
    Either,
}

impl Lengths {
    fn of_version(major: u16, minor: u16) -> Self {
        match (major, minor) {
            (2, 0..=2) | (543, _) => Lengths::OriginalFirst,
            (2, 3) => Lengths::Either,
            _ => Lengths::CapturedFirst,
        }
    }

    /// Captured and original length.
    #[inline(always)]
    fn ordered(self, first: u32, second: u32) -> (u32, u32) {
        match self {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        }
    }
}

pub(super) struct Pcap {
    big_endian: bool,
    lengths: Lengths,
    fraction_ns: i64,
    record_header_bytes: usize,
    link: LinkType,
}

/// Whether a file that begins so is a pcap file.
pub(super) fn is_magic(start: [u8; 4]) -> bool {
    byte_order(start).is_some()
}

/// The magic number, and whether it is in big-endian order.
fn byte_order(start: [u8; 4]) -> Option<(u32, bool)> {
    let known = |value: &u32| matches!(*value, MICROSECONDS | NANOSECONDS | MODIFIED);
    let little = Some(u32::from_le_bytes(start)).filter(known).map(|number| (number, false));
    little.or_else(|| Some(u32::from_be_bytes(start)).filter(known).map(|number| (number, true)))
}

impl Pcap {
    /// Reads the file header; `None` while fewer than its 24 bytes are there.
    pub(super) fn open(input: &[u8]) -> Result<Option<Self>> {
        let magic = [input[0], input[1], input[2], input[3]];
        let Some((number, big_endian)) = byte_order(magic) else {
            let [a, b, c, d] = magic;
            return Err(Error::Value {
                layer: "capture file",
                offset: 0,
                field: "magic number",
                found: format!("{a:02x} {b:02x} {c:02x} {d:02x}, which looks like {}", likeness(input)),
                expected: "that of pcap (a1b2c3d4, a1b23c4d, either byte order) or pcapng (0a0d0d0a)".into(),
            });
        };
        if input.len() < FILE_HEADER_BYTES {
            return Ok(None);
        }
        let mut pcap = Pcap {
            big_endian,
            lengths: Lengths::CapturedFirst,
            fraction_ns: if number == NANOSECONDS { 1 } else { 1_000 },
            record_header_bytes: if number == MODIFIED { 24 } else { 16 },
            link: LinkType(0),
        };
        pcap.lengths = Lengths::of_version(pcap.u16_at(input, 4), pcap.u16_at(input, 6));
        // The upper half holds the length of the frame check sequence and reserved bits.
        pcap.link = LinkType(pcap.u32_at(input, 20) as u16);
        Ok(Some(pcap))
    }

    fn u16_at(&self, input: &[u8], at: usize) -> u16 {
        let bytes = [input[at], input[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    #[inline(always)]
    fn u32_at(&self, input: &[u8], at: usize) -> u32 {
        let bytes = [input[at], input[at + 1], input[at + 2], input[at + 3]];
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    /// The record that `input` begins with, and the bytes it takes; `None` where it is not whole or cannot be one:
    /// [`Pcap::step`] says which.
    #[inline(always)]
    pub(super) fn whole<'a>(&self, input: &'a [u8]) -> Option<(Frame<'a>, usize)> {
        let words = input.first_chunk::<16>()?;
        let (captured_bytes, original_bytes) = self.lengths.ordered(self.u32_at(words, 8), self.u32_at(words, 12));
        if captured_bytes > MAX_CAPTURED_BYTES {
            return None;
        }
        let end = self.record_header_bytes + captured_bytes as usize;
        let data = input.get(self.record_header_bytes..end)?;
        let fraction_ns = i64::from(self.u32_at(words, 4)) * self.fraction_ns;
        let time_ns = i64::from(self.u32_at(words, 0)) * 1_000_000_000 + fraction_ns;
        Some((Frame { time_ns: Some(time_ns), original_bytes, link: self.link, data }, end))
    }

    #[inline]
    pub(super) fn step<'a>(&mut self, input: &'a [u8], offset: u64) -> Result<Step<'a>> {
        if let Some((frame, consumed)) = self.whole(input) {
            return Ok(Step::Frame { consumed, frame });
        }
        let header = self.record_header_bytes;
        if input.len() < header {
            return Ok(Step::More { needed: header, layer: "pcap record header", claimed_by: "the format" });
        }
        let (captured_bytes, _) = self.lengths.ordered(self.u32_at(input, 8), self.u32_at(input, 12));
        if captured_bytes > MAX_CAPTURED_BYTES {
            let at = if self.lengths == Lengths::OriginalFirst { 12 } else { 8 };
            return Err(Error::Value {
                layer: "pcap record header",
                offset: offset + at,
                field: "captured length",
                found: captured_bytes.to_string(),
                expected: format!("at most {MAX_CAPTURED_BYTES}"),
            });
        }
        let needed = header + captured_bytes as usize;
        Ok(Step::More { needed, layer: "pcap record", claimed_by: "its captured length" })
    }
}
