//! The block format: sections of either byte order, each with its interfaces, their clock resolution and offset.
//! Read: section header, interface description, enhanced, simple and (obsolete) packet, interface statistics.
//! Other blocks are passed over.

use super::frame::{Frame, LinkType, Origin, Step, MAX_CAPTURED_BYTES};
use crate::error::{Error, Result};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Of sysdig: the machine, processes, events and the like (libscap's savefile, block types 0x201 to 0x22a).
const SCAP: std::ops::RangeInclusive<u32> = 0x201..=0x22a;
/// Blocks beside packets: names, journal entries, secrets, custom ones.
const BESIDE_PACKETS: [u32; 5] = [4, 9, 10, 0xbad, 0x4000_0bad];

const OPTION_END: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// Packets must fit; blocks of other kinds (secrets, names) have the same limit.
const MAX_BLOCK_BYTES: u32 = MAX_CAPTURED_BYTES + 4096;

/// How an interface's ticks become nanoseconds.
#[derive(Clone, Copy)]
enum Clock {
    Multiply(u64),
    TicksPerSecond(u128),
}

struct Interface {
    link: LinkType,
    snap_bytes: u32,
    clock: Clock,
    offset_s: i64,
    dropped: Option<u64>,
}

impl Interface {
    #[inline]
    fn time_ns(&self, ticks: u64) -> i64 {
        let since = match self.clock {
            Clock::Multiply(factor) => u128::from(ticks) * u128::from(factor),
            Clock::TicksPerSecond(rate) => {
                let whole = u128::from(ticks) / rate;
                let part = u128::from(ticks) % rate;
                // part < rate <= 2^127: shed low bits rather than overflow.
                let shift = 128u32.saturating_sub(rate.leading_zeros()).saturating_sub(96);
                whole * 1_000_000_000 + (part >> shift) * 1_000_000_000 / (rate >> shift).max(1)
            }
        };
        let total = i128::try_from(since).unwrap_or(i128::MAX);
        let total = total.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        total.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// if_tsresol: a power of ten, or of two with the top bit set.
fn clock(resolution: u8) -> Clock {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 != 0 {
        return Clock::TicksPerSecond(1u128 << exponent.min(126));
    }
    match exponent {
        0..=9 => Clock::Multiply(10u64.pow(9 - exponent)),
        _ => Clock::TicksPerSecond(10u128.pow(exponent.min(38))),
    }
}

#[derive(Default)]
pub(super) struct Pcapng {
    in_section: bool,
    big_endian: bool,
    interfaces: Vec<Interface>,
}

impl Pcapng {
    pub(super) fn has_section(&self) -> bool {
        self.in_section
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

    fn u16_at(&self, input: &[u8], at: usize) -> u16 {
        let bytes = [input[at], input[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn u64_at(&self, input: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32_at(input, at)), u64::from(self.u32_at(input, at + 4)));
        if self.big_endian {
            first << 32 | second
        } else {
            second << 32 | first
        }
    }

    pub(super) fn step<'a>(&mut self, input: &'a [u8], offset: u64, origin: &mut Origin) -> Result<Step<'a>> {
        const BLOCK: &str = "pcapng block";
        if input.len() < 12 {
            return Ok(Step::More { needed: 12, layer: BLOCK, claimed_by: "the format" });
        }
        let kind = self.u32_at(input, 0);
        if kind == SECTION_HEADER {
            self.big_endian = match u32::from_le_bytes([input[8], input[9], input[10], input[11]]) {
                BYTE_ORDER => false,
                swapped if swapped.swap_bytes() == BYTE_ORDER => true,
                other => {
                    return Err(Error::Value {
                        layer: "pcapng section header",
                        offset: offset + 8,
                        field: "byte-order magic",
                        found: format!("{other:08x}"),
                        expected: "1a2b3c4d in either byte order".into(),
                    })
                }
            };
        }
        let length = self.u32_at(input, 4);
        if length < 12 || !length.is_multiple_of(4) || length > MAX_BLOCK_BYTES {
            return Err(Error::Value {
                layer: BLOCK,
                offset: offset + 4,
                field: "total length",
                found: length.to_string(),
                expected: format!("a multiple of 4 from 12 to {MAX_BLOCK_BYTES}"),
            });
        }
        let length = length as usize;
        if input.len() < length {
            return Ok(Step::More { needed: length, layer: BLOCK, claimed_by: "its total length" });
        }
        let trailer = self.u32_at(input, length - 4);
        if trailer as usize != length {
            return Err(Error::Value {
                layer: BLOCK,
                offset: offset + length as u64 - 4,
                field: "total length at its end",
                found: trailer.to_string(),
                expected: format!("{length}, as at its start"),
            });
        }
        let body = &input[8..length - 4];
        let other = Step::Other { consumed: length };
        match kind {
            SECTION_HEADER => {
                self.in_section = true;
                self.interfaces.clear();
                Ok(other)
            }
            INTERFACE => {
                self.interface(body, offset, origin)?;
                Ok(other)
            }
            STATISTICS => {
                self.statistics(body, origin);
                Ok(other)
            }
            ENHANCED_PACKET | PACKET => self.packet(kind, body, length, offset, origin),
            SIMPLE_PACKET => self.simple_packet(body, length, offset, origin),
            kind if SCAP.contains(&kind) => Err(Error::Value {
                layer: BLOCK,
                offset,
                field: "type",
                found: format!("{kind:#x}, of sysdig's recording of system calls"),
                expected: "packets; `sysdig -r FILE` prints it as text, which `twinbed chain` reads".into(),
            }),
            kind => {
                if !BESIDE_PACKETS.contains(&kind) {
                    *origin.skipped.entry("pcapng_block_of_a_type_that_is_not_read").or_default() += 1;
                }
                Ok(other)
            }
        }
    }

    fn interface(&mut self, body: &[u8], offset: u64, origin: &mut Origin) -> Result<()> {
        let body = fixed(body, 8, "pcapng interface description", offset)?;
        let mut interface = Interface {
            link: LinkType(self.u16_at(body, 0)),
            snap_bytes: self.u32_at(body, 4),
            clock: clock(6),
            offset_s: 0,
            dropped: None,
        };
        self.options(&body[8..], |code, value| match (code, value.len()) {
            (IF_TSRESOL, 1..) => interface.clock = clock(value[0]),
            (IF_TSOFFSET, 8..) => interface.offset_s = self.u64_at(value, 0) as i64,
            _ => {}
        });
        self.interfaces.push(interface);
        origin.interfaces += 1;
        Ok(())
    }

    /// Statistics are running totals: an interface's last ones count.
    fn statistics(&mut self, body: &[u8], origin: &mut Origin) {
        if body.len() < 12 {
            return;
        }
        let mut dropped = None;
        self.options(&body[12..], |code, value| {
            if matches!(code, ISB_IFDROP | ISB_OSDROP) && value.len() >= 8 {
                dropped = Some(dropped.unwrap_or(0u64).saturating_add(self.u64_at(value, 0)));
            }
        });
        let number = self.u32_at(body, 0) as usize;
        if let (Some(dropped), Some(interface)) = (dropped, self.interfaces.get_mut(number)) {
            let before = interface.dropped.replace(dropped).unwrap_or(0);
            let total = origin.dropped_packets.unwrap_or(0);
            origin.dropped_packets = Some(total.saturating_sub(before).saturating_add(dropped));
        }
    }

    #[inline]
    fn packet<'a>(
        &self,
        kind: u32,
        body: &'a [u8],
        consumed: usize,
        offset: u64,
        origin: &mut Origin,
    ) -> Result<Step<'a>> {
        let body = fixed(body, 20, "pcapng packet block", offset)?;
        let number = match kind {
            PACKET => usize::from(self.u16_at(body, 0)),
            _ => self.u32_at(body, 0) as usize,
        };
        let Some(interface) = self.interfaces.get(number) else {
            *origin.skipped.entry("pcapng_interface_not_declared").or_default() += 1;
            return Ok(Step::Other { consumed });
        };
        let ticks = u64::from(self.u32_at(body, 4)) << 32 | u64::from(self.u32_at(body, 8));
        let captured_bytes = self.u32_at(body, 12);
        let Some(data) = body[20..].get(..captured_bytes as usize) else {
            return Err(Error::Length {
                layer: "pcapng packet block",
                offset: offset + 28,
                needed: u64::from(captured_bytes),
                available: body.len() as u64 - 20,
                claimed_by: "its captured length",
            });
        };
        let frame = Frame {
            time_ns: Some(interface.time_ns(ticks)),
            original_bytes: self.u32_at(body, 16),
            link: interface.link,
            data,
        };
        Ok(Step::Frame { consumed, frame })
    }

    fn simple_packet<'a>(&self, body: &'a [u8], consumed: usize, offset: u64, origin: &mut Origin) -> Result<Step<'a>> {
        let body = fixed(body, 4, "pcapng simple packet block", offset)?;
        let Some(interface) = self.interfaces.first() else {
            *origin.skipped.entry("pcapng_interface_not_declared").or_default() += 1;
            return Ok(Step::Other { consumed });
        };
        let original_bytes = self.u32_at(body, 0);
        let snap_bytes = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
        let captured_bytes = (original_bytes.min(snap_bytes) as usize).min(body.len() - 4);
        let data = &body[4..4 + captured_bytes];
        let frame = Frame { time_ns: None, original_bytes, link: interface.link, data };
        Ok(Step::Frame { consumed, frame })
    }

    /// Calls `each` with every whole option; a damaged list ends where the damage starts.
    fn options<'a>(&self, mut list: &'a [u8], mut each: impl FnMut(u16, &'a [u8])) {
        while list.len() >= 4 {
            let (code, length) = (self.u16_at(list, 0), usize::from(self.u16_at(list, 2)));
            let Some(value) = list.get(4..4 + length) else { return };
            if code == OPTION_END {
                return;
            }
            each(code, value);
            list = list.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn fixed<'a>(body: &'a [u8], needed: usize, layer: &'static str, offset: u64) -> Result<&'a [u8]> {
    if body.len() < needed {
        return Err(Error::Length {
            layer,
            offset: offset + 8,
            needed: needed as u64,
            available: body.len() as u64,
            claimed_by: "the format",
        });
    }
    Ok(body)
}
