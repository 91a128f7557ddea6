//! TCP segments (RFC 9293). Options are read where they are needed: the maximum segment size from SYNs at once, the
//! others by [`syn_options`] and [`sack`] (RFC 2018, RFC 7323).

use super::bytes::{u16_at, u32_at};

pub const PROTOCOL: u8 = 6;
const MIN_HEADER_BYTES: usize = 20;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: u8,
    pub window: u16,
    pub urgent_pointer: u16,
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
pub(super) fn read(payload: &[u8], segment_bytes: u32) -> Result<Segment, &'static str> {
    if payload.len() < MIN_HEADER_BYTES {
        return Err(if (segment_bytes as usize) < MIN_HEADER_BYTES {
            "tcp_header_beyond_ip_length"
        } else {
            "tcp_header_cut_off"
        });
    }
    let header_bytes = usize::from(payload[12] >> 4) * 4;
    if header_bytes < MIN_HEADER_BYTES {
        return Err("tcp_data_offset_below_20");
    }
    let Some(payload_bytes) = segment_bytes.checked_sub(header_bytes as u32) else {
        return Err("tcp_header_beyond_ip_length");
    };
    let flags = payload[13];
    let max_segment_bytes = if flags & SYN != 0 {
        max_segment_option(&payload[MIN_HEADER_BYTES..header_bytes.min(payload.len())])
    } else {
        None
    };
    Ok(Segment {
        source_port: u16_at(payload, 0),
        destination_port: u16_at(payload, 2),
        sequence: u32_at(payload, 4),
        acknowledgment: u32_at(payload, 8),
        flags,
        window: u16_at(payload, 14),
        urgent_pointer: u16_at(payload, 18),
        header_bytes: header_bytes as u8,
        payload_bytes,
        max_segment_bytes,
    })
}

/// The captured part of the options of the segment whose captured bytes, header first, are `payload`.
#[inline]
pub fn captured_options<'a>(payload: &'a [u8], segment: &Segment) -> &'a [u8] {
    payload.get(MIN_HEADER_BYTES..usize::from(segment.header_bytes).min(payload.len())).unwrap_or_default()
}

/// What a SYN offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynOptions {
    pub max_segment_bytes: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: bool,
}

pub fn syn_options(options: &[u8]) -> SynOptions {
    let mut offered = SynOptions::default();
    // By places rather than by slices: of all that is done for a short connection, this would take a twentieth.
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let Some(&length) = options.get(at + 1).filter(|&&length| kind != END && length >= 2) else { break };
        let end = at + usize::from(length);
        if end > options.len() {
            break;
        }
        match (kind, length) {
            (MAX_SEGMENT, 4) => {
                offered.max_segment_bytes = Some(u16::from_be_bytes([options[at + 2], options[at + 3]]))
            }
            (WINDOW_SCALE, 3) => offered.window_scale = Some(options[at + 2]),
            (SACK_PERMITTED, 2) => offered.sack_permitted = true,
            (TIMESTAMPS, 10) => offered.timestamps = true,
            _ => {}
        }
        at = end;
    }
    offered
}

/// The blocks of a segment's last SACK option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sack {
    pub blocks: u8,
    pub first: (u32, u32),
    pub second: Option<(u32, u32)>,
}

/// `None` without a whole block.
#[inline]
pub fn sack(options: &[u8]) -> Option<Sack> {
    if are_timestamps_or_none(options) {
        return None;
    }
    any_sack(options)
}

/// Whether options are what nearly all segments carry: nothing, or timestamps alone.
#[inline]
pub fn are_timestamps_or_none(options: &[u8]) -> bool {
    const TIMESTAMPS_ALONE: [u8; 4] = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10];
    options.is_empty() || options.len() == 12 && options.starts_with(&TIMESTAMPS_ALONE)
}

fn any_sack(options: &[u8]) -> Option<Sack> {
    let block = |bytes: &[u8]| (u32_at(bytes, 0), u32_at(bytes, 4));
    let mut sack = None;
    for (kind, value) in each_option(options) {
        if kind == SACK && value.len() >= 8 {
            sack = Some(Sack {
                blocks: (value.len() / 8) as u8,
                first: block(value),
                second: value.get(8..16).map(block),
            });
        }
    }
    sack
}

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAX_SEGMENT: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Kind and value of every whole option.
#[inline]
fn each_option(mut options: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || loop {
        match options {
            [NO_OPERATION, rest @ ..] => options = rest,
            [] | [_] | [END, ..] => return None,
            [kind, length, ..] => {
                let length = usize::from(*length);
                let value = options.get(2..length)?;
                options = &options[length..];
                return Some((*kind, value));
            }
        }
    })
}

/// The maximum segment size among a SYN's options.
#[cold]
pub(super) fn max_segment_option(options: &[u8]) -> Option<u16> {
    each_option(options).find_map(|option| match option {
        (MAX_SEGMENT, &[high, low]) => Some(u16::from_be_bytes([high, low])),
        _ => None,
    })
}

/// The sender's value of the timestamps option.
pub fn timestamp(options: &[u8]) -> Option<u32> {
    each_option(options).find_map(|option| match option {
        (TIMESTAMPS, value @ [_, _, _, _, _, _, _, _]) => Some(u32_at(value, 0)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn finds_the_timestamp() {
        assert_eq!(timestamp(&[1, 1, 8, 10, 0, 0, 1, 2, 9, 9, 9, 9]), Some(258));
        assert_eq!(timestamp(&[2, 4, 5, 180, 4, 2, 8, 10, 1, 0, 0, 0, 0, 0, 0, 0]), Some(1 << 24));
        assert_eq!(timestamp(&[1, 1, 8, 10, 0, 0]), None);
        assert_eq!(timestamp(&[3, 0, 3, 0, 0]), None);
        assert_eq!(timestamp(&[]), None);
    }
}
