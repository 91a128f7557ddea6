//! Internet checksums (RFC 1071) of IPv4 headers (RFC 791), TCP (RFC 9293), UDP (RFC 768), ICMP (RFC 792) and ICMPv6
//! (RFC 4443), over what was captured.
//!
//! A host that leaves the checksum to its NIC hands over packets whose field holds only the folded sum of the
//! pseudo-header (Linux's CHECKSUM_PARTIAL), and receive offload writes the same into what it merges. Captures on
//! that host hold such packets. They are no errors and have a verdict of their own. So have IPv4 headers whose field is
//! wrong and 0: some hosts leave that checksum to their NIC too, and then nothing has been written into it.

use super::bytes::{u16_at, u32_at};
use super::packet::{Addresses, Packet, Transport};
use super::{tcp, udp};

pub const ICMP: u8 = 1;
pub const ICMPV6: u8 = 58;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Good,
    Bad,
    /// The folded pseudo-header alone, or 0 in an IPv4 header: to be finished by hardware, or merged by it.
    Partial,
    /// The packet is not wholly captured or is a fragment, or there is no checksum.
    NotChecked,
}

/// The ones' complement sum of 16-bit words in the host's byte order, folded to 16 bits (RFC 1071, section 2).
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    fold(sum_wide(bytes))
}

/// Not folded: at most 2^32 words of 32 bits fit.
#[inline]
fn sum_wide(bytes: &[u8]) -> u64 {
    const LANES: usize = 8;
    let mut lanes = [0u64; LANES];
    let mut chunks = bytes.chunks_exact(4 * LANES);
    for chunk in chunks.by_ref() {
        let (words, _) = chunk.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let mut total = 0u64;
    for lane in lanes {
        total += lane;
    }
    let (words, rest) = chunks.remainder().as_chunks::<4>();
    for word in words {
        total += u64::from(u32::from_ne_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        total += u64::from(u32::from_ne_bytes(last));
    }
    total
}

#[inline]
fn fold(wide: u64) -> u16 {
    let folded = (wide >> 32) + (wide & 0xffff_ffff);
    let folded = (folded >> 32) + (folded & 0xffff_ffff);
    let folded = (folded >> 16) + (folded & 0xffff);
    let folded = (folded >> 16) + (folded & 0xffff);
    ((folded >> 16) + (folded & 0xffff)) as u16
}

/// The IPv4 header's verdict; `None` for IPv6, which has no such checksum. `data` is the frame's.
#[inline]
pub fn ip(packet: &Packet, data: &[u8]) -> Option<Verdict> {
    if packet.addresses.is_v6() {
        return None;
    }
    Some(match header(packet, data) {
        Some(header) if sum(header) == 0xffff => Verdict::Good,
        Some(header) if header[10..12] == [0, 0] => Verdict::Partial,
        Some(_) => Verdict::Bad,
        None => Verdict::NotChecked,
    })
}

/// Return the verdict on TCP, UDP, ICMP or ICMPv6; `NotChecked` for what is none of them or has no header that can be read.
/// `data` is the frame's.
#[inline]
pub fn transport(packet: &Packet, data: &[u8]) -> Verdict {
    let whole = packet.transport_captured == packet.transport_bytes && packet.fragment_id.is_none();
    if !whole || matches!(packet.transport, Transport::Fragment | Transport::Unusable { .. }) {
        return Verdict::NotChecked;
    }
    let bytes = packet.transport_data(data);
    match packet.protocol {
        tcp::PROTOCOL => match bytes.get(16..18) {
            Some(field) => with_pseudo_header(packet, data, bytes, [field[0], field[1]]),
            None => Verdict::NotChecked,
        },
        udp::PROTOCOL => udp(packet, data, bytes),
        ICMP if bytes.len() >= 8 => match sum(bytes) {
            0xffff => Verdict::Good,
            _ => Verdict::Bad,
        },
        ICMPV6 if bytes.len() >= 4 => with_pseudo_header(packet, data, bytes, [bytes[2], bytes[3]]),
        _ => Verdict::NotChecked,
    }
}

#[inline]
fn udp(packet: &Packet, data: &[u8], bytes: &[u8]) -> Verdict {
    if bytes.len() < udp::HEADER_BYTES as usize {
        return Verdict::NotChecked;
    }
    let field = [bytes[6], bytes[7]];
    if field == [0, 0] {
        // In IPv4 there is none; in IPv6 it must be there (RFC 8200, section 8.1).
        return if packet.addresses.is_v6() { Verdict::Bad } else { Verdict::NotChecked };
    }
    match usize::from(u16_at(bytes, 4)) {
        // A jumbogram (RFC 2675), or too long for the field before segmentation.
        0 => with_pseudo_header(packet, data, bytes, field),
        length if length >= udp::HEADER_BYTES as usize && length <= bytes.len() => {
            with_pseudo_header(packet, data, &bytes[..length], field)
        }
        _ => Verdict::NotChecked,
    }
}

#[inline]
fn with_pseudo_header(packet: &Packet, data: &[u8], bytes: &[u8], field: [u8; 2]) -> Verdict {
    if has_other_destination(packet, data) {
        return Verdict::NotChecked;
    }
    let addresses = match packet.addresses {
        Addresses::V4 { source, destination } => wide(source.to_be()) + wide(destination.to_be()),
        Addresses::V6 { source, destination } => sum_wide(&source.to_be_bytes()) + sum_wide(&destination.to_be_bytes()),
    };
    let pseudo = addresses + wide((bytes.len() as u32).to_be()) + wide(u32::from(packet.protocol).to_be());
    if fold(pseudo + sum_wide(bytes)) == 0xffff {
        return Verdict::Good;
    }
    if fold(pseudo) == u16::from_ne_bytes(field) {
        return Verdict::Partial;
    }
    Verdict::Bad
}

#[inline(always)]
fn wide(word: u32) -> u64 {
    u64::from(word)
}

/// The captured IP headers, extension headers included; `None` where they are cut off.
#[inline]
fn header<'a>(packet: &Packet, data: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = packet.ip_bytes.checked_sub(packet.transport_bytes)?;
    let end = packet.transport_offset as usize;
    let header = data.get(end.checked_sub(bytes as usize)?..end)?;
    // Where the header is cut, the captured part ends where the transport would begin.
    let first = *header.first()?;
    let is_header = match packet.addresses {
        Addresses::V4 { destination, .. } => {
            usize::from(first & 0x0f) * 4 == header.len() && first >> 4 == 4 && u32_at(header, 16) == destination
        }
        Addresses::V6 { .. } => header.len() >= 40 && first >> 4 == 6,
    };
    is_header.then_some(header)
}

/// A routing header on the way names the final destination, which the pseudo-header would have to hold.
#[inline]
fn has_other_destination(packet: &Packet, data: &[u8]) -> bool {
    const FIXED_BYTES: u32 = 40;
    let header_bytes = packet.ip_bytes.saturating_sub(packet.transport_bytes);
    packet.addresses.is_v6() && header_bytes > FIXED_BYTES && header(packet, data).is_none_or(is_on_the_way)
}

#[cold]
fn is_on_the_way(header: &[u8]) -> bool {
    const ROUTING: u8 = 43;
    const AUTHENTICATION: u8 = 51;
    const FRAGMENT: u8 = 44;
    let mut kind = header[6];
    let mut rest = &header[40..];
    while let &[next, units, _, segments_left, ..] = rest {
        if kind == ROUTING {
            return segments_left > 0;
        }
        let length = match kind {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(units) + 2) * 4,
            _ => (usize::from(units) + 1) * 8,
        };
        kind = next;
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}
