//! IPv4 (RFC 791). A total length of 0 is what Linux writes on packets above 64 KiB before segmentation.

use super::bytes::{u16_at, u32_at};
use super::packet::{Addresses, Inner};

const MIN_HEADER_BYTES: usize = 20;

#[inline]
pub(super) fn read(data: &[u8], available_bytes: u32) -> Result<Inner<'_>, &'static str> {
    if data.len() < MIN_HEADER_BYTES {
        return Err("ipv4_header_cut_off");
    }
    let header_bytes = usize::from(data[0] & 0x0f) * 4;
    if header_bytes < MIN_HEADER_BYTES {
        return Err("ipv4_header_length_below_20");
    }
    let ip_bytes = match u32::from(u16_at(data, 2)) {
        0 => available_bytes.max(header_bytes as u32),
        total => total,
    };
    let Some(payload_bytes) = ip_bytes.checked_sub(header_bytes as u32) else {
        return Err("ipv4_total_length_below_header");
    };
    let payload_offset = header_bytes.min(data.len());
    let captured = &data[payload_offset..];
    let (id, fragment) = (u16_at(data, 4), u16_at(data, 6));
    const MORE_FRAGMENTS: u16 = 0x2000;
    const OFFSET: u16 = 0x1fff;
    Ok(Inner {
        protocol: data[9],
        addresses: Addresses::V4 { source: u32_at(data, 12), destination: u32_at(data, 16) },
        ip_bytes,
        is_later_fragment: fragment & OFFSET != 0,
        ip_id: Some(id),
        fragment_id: (fragment & (MORE_FRAGMENTS | OFFSET) != 0).then_some(u32::from(id)),
        payload_bytes,
        payload: &captured[..captured.len().min(payload_bytes as usize)],
        payload_offset,
    })
}
