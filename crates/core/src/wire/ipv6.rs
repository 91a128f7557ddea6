//! IPv6 (RFC 8200) with its extension headers, and the jumbo payload option (RFC 2675) that BIG TCP writes.
//! A payload length of 0 without that option is a packet before segmentation: the frame's length counts.

use super::bytes::{u16_at, u32_at};
use super::packet::{Addresses, Inner};

const HEADER_BYTES: usize = 40;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
const NO_NEXT_HEADER: u8 = 59;
const JUMBO_PAYLOAD: u8 = 0xc2;

#[inline]
pub(super) fn read(data: &[u8], available_bytes: u32) -> Result<Inner<'_>, &'static str> {
    let Some((header, captured)) = data.split_first_chunk::<HEADER_BYTES>() else {
        return Err("ipv6_header_cut_off");
    };
    let mut protocol = header[6];
    let mut payload_bytes = match u32::from(u16_at(header, 4)) {
        0 if protocol != NO_NEXT_HEADER => match jumbo_payload_bytes(protocol, captured) {
            Some(jumbo) => jumbo,
            None => available_bytes.saturating_sub(HEADER_BYTES as u32),
        },
        length => length,
    };
    let ip_bytes = payload_bytes.saturating_add(HEADER_BYTES as u32);
    let mut payload = &captured[..captured.len().min(payload_bytes as usize)];
    let mut payload_offset = HEADER_BYTES;
    let mut is_later_fragment = false;
    let mut fragment_id = None;
    // A later fragment's data is no header, whatever its first byte's neighbour says.
    while !is_later_fragment {
        let length = match (protocol, payload.get(1)) {
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6, Some(&units)) => {
                (usize::from(units) + 1) * 8
            }
            (AUTHENTICATION, Some(&units)) => (usize::from(units) + 2) * 4,
            (FRAGMENT, Some(_)) => 8,
            (
                HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HOST_IDENTITY | SHIM6 | AUTHENTICATION | FRAGMENT,
                None,
            ) => return Err("ipv6_extension_header_cut_off"),
            _ => break,
        };
        let Some(rest_bytes) = payload_bytes.checked_sub(length as u32) else {
            return Err("ipv6_extension_header_beyond_payload");
        };
        if payload.len() < length {
            return Err("ipv6_extension_header_cut_off");
        }
        if protocol == FRAGMENT {
            is_later_fragment = u16_at(payload, 2) & 0xfff8 != 0;
            // An "atomic" fragment (offset 0 and no more) is a whole packet.
            fragment_id = (u16_at(payload, 2) & 0xfff9 != 0).then(|| u32_at(payload, 4));
        }
        protocol = payload[0];
        payload = &payload[length..];
        payload_offset += length;
        payload_bytes = rest_bytes;
    }
    Ok(Inner {
        protocol,
        addresses: Addresses::V6 { source: u128_at(header, 8), destination: u128_at(header, 24) },
        ip_bytes,
        is_later_fragment,
        ip_id: None,
        fragment_id,
        payload_bytes,
        payload,
        payload_offset,
    })
}

/// The length in the jumbo payload option. Linux writes it as the first option of a hop-by-hop header.
fn jumbo_payload_bytes(protocol: u8, hop_by_hop: &[u8]) -> Option<u32> {
    if protocol != HOP_BY_HOP || hop_by_hop.len() < 8 {
        return None;
    }
    let length = (usize::from(hop_by_hop[1]) + 1) * 8;
    let mut options = &hop_by_hop[2..length.min(hop_by_hop.len())];
    while let Some(&kind) = options.first() {
        if kind == 0 {
            options = &options[1..];
            continue;
        }
        let size = usize::from(*options.get(1)?);
        if kind == JUMBO_PAYLOAD && size == 4 && options.len() >= 6 {
            return Some(u32_at(options, 2));
        }
        options = options.get(2 + size..)?;
    }
    None
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    let mut number = [0; 16];
    number.copy_from_slice(&bytes[at..at + 16]);
    u128::from_be_bytes(number)
}
