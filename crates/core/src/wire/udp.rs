//! UDP datagrams (RFC 768). The payload is counted by the IP length, which segmentation offload keeps right.

use super::bytes::u16_at;

pub const PROTOCOL: u8 = 17;
pub const HEADER_BYTES: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    pub source_port: u16,
    pub destination_port: u16,
    pub payload_bytes: u32,
}

#[inline]
pub(super) fn read(payload: &[u8], datagram_bytes: u32) -> Result<Datagram, &'static str> {
    let Some(payload_bytes) = datagram_bytes.checked_sub(HEADER_BYTES) else {
        return Err("udp_header_beyond_ip_length");
    };
    if payload.len() < 4 {
        return Err("udp_header_cut_off");
    }
    Ok(Datagram { source_port: u16_at(payload, 0), destination_port: u16_at(payload, 2), payload_bytes })
}
