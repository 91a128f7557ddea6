//! TCP segments (RFC 9293). Options are read only from SYNs, where the maximum segment size is.

use super::{u16_at, u32_at, Transport};

pub const PROTOCOL: u8 = 6;
const MIN_HEADER_BYTES: usize = 20;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    pub header_bytes: u8,
    pub payload_bytes: u32,
    /// From a SYN's options.
    pub max_segment_bytes: Option<u16>,
}

impl Segment {
    #[inline(always)]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// `payload` is the captured part of the segment's `segment_bytes`.
#[inline]
pub(super) fn read(payload: &[u8], segment_bytes: u32) -> Transport {
    if payload.len() < MIN_HEADER_BYTES {
        return Transport::Unusable {
            reason: if (segment_bytes as usize) < MIN_HEADER_BYTES {
                "tcp_header_beyond_ip_length"
            } else {
                "tcp_header_cut_off"
            },
        };
    }
    let header_bytes = usize::from(payload[12] >> 4) * 4;
    if header_bytes < MIN_HEADER_BYTES {
        return Transport::Unusable { reason: "tcp_data_offset_below_20" };
    }
    let Some(payload_bytes) = segment_bytes.checked_sub(header_bytes as u32) else {
        return Transport::Unusable { reason: "tcp_header_beyond_ip_length" };
    };
    let flags = payload[13];
    let max_segment_bytes = if flags & SYN != 0 {
        max_segment_option(&payload[MIN_HEADER_BYTES..header_bytes.min(payload.len())])
    } else {
        None
    };
    Transport::Tcp(Segment {
        source_port: u16_at(payload, 0),
        destination_port: u16_at(payload, 2),
        sequence: u32_at(payload, 4),
        acknowledgment: u32_at(payload, 8),
        flags,
        window: u16_at(payload, 14),
        header_bytes: header_bytes as u8,
        payload_bytes,
        max_segment_bytes,
    })
}

fn max_segment_option(mut options: &[u8]) -> Option<u16> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const MAX_SEGMENT: u8 = 2;
    loop {
        match *options.first()? {
            END => return None,
            NO_OPERATION => options = &options[1..],
            kind => {
                let length = usize::from(*options.get(1)?);
                if kind == MAX_SEGMENT && length == 4 && options.len() >= 4 {
                    return Some(u16_at(options, 2));
                }
                options = options.get(length.max(2)..)?;
            }
        }
    }
}
