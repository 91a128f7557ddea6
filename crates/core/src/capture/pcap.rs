//! The classic file format: a 24-byte header, then records. Micro- and nanoseconds, both byte orders, and
//! the "modified" record header of Alexey Kuznetsov's libpcap.

use super::frame::{Frame, LinkType, Step, MAX_CAPTURED_BYTES};
use super::likeness::likeness;
use crate::error::{Error, Result};

pub(super) const FILE_HEADER_BYTES: usize = 24;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

pub(super) struct Pcap {
    big_endian: bool,
    fraction_ns: i64,
    record_header_bytes: usize,
    link: LinkType,
}

impl Pcap {
    /// Reads the file header; `None` while fewer than its 24 bytes are there.
    pub(super) fn open(input: &[u8]) -> Result<Option<Self>> {
        let magic = [input[0], input[1], input[2], input[3]];
        let known = |value| matches!(value, MICROSECONDS | NANOSECONDS | MODIFIED);
        let (number, big_endian) = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (little, _) if known(little) => (little, false),
            (_, big) if known(big) => (big, true),
            _ => {
                return Err(Error::Value {
                    layer: "capture file",
                    offset: 0,
                    field: "magic number",
                    found: format!(
                        "{:02x} {:02x} {:02x} {:02x}, which looks like {}",
                        magic[0],
                        magic[1],
                        magic[2],
                        magic[3],
                        likeness(input)
                    ),
                    expected: "that of pcap (a1b2c3d4, a1b23c4d, either byte order) or pcapng (0a0d0d0a)".into(),
                })
            }
        };
        if input.len() < FILE_HEADER_BYTES {
            return Ok(None);
        }
        let mut pcap = Pcap {
            big_endian,
            fraction_ns: if number == NANOSECONDS { 1 } else { 1_000 },
            record_header_bytes: if number == MODIFIED { 24 } else { 16 },
            link: LinkType(0),
        };
        // The upper half holds the length of the frame check sequence and reserved bits.
        pcap.link = LinkType(pcap.u32_at(input, 20) as u16);
        Ok(Some(pcap))
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
        let captured_bytes = self.u32_at(words, 8);
        if captured_bytes > MAX_CAPTURED_BYTES {
            return None;
        }
        let end = self.record_header_bytes + captured_bytes as usize;
        let data = input.get(self.record_header_bytes..end)?;
        let fraction_ns = i64::from(self.u32_at(words, 4)) * self.fraction_ns;
        let time_ns = i64::from(self.u32_at(words, 0)) * 1_000_000_000 + fraction_ns;
        let original_bytes = self.u32_at(words, 12);
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
        let captured_bytes = self.u32_at(input, 8);
        if captured_bytes > MAX_CAPTURED_BYTES {
            return Err(Error::Value {
                layer: "pcap record header",
                offset: offset + 8,
                field: "captured length",
                found: captured_bytes.to_string(),
                expected: format!("at most {MAX_CAPTURED_BYTES}"),
            });
        }
        let needed = header + captured_bytes as usize;
        Ok(Step::More { needed, layer: "pcap record", claimed_by: "its captured length" })
    }
}
