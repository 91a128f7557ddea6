//! GENEVE (RFC 8926): 8 bytes and options, whose length is in words of 4 bytes; then what its protocol number names.

use super::bytes::u16_at;
use super::layer::Layer;

pub(super) const PORT: u16 = 6081;

/// What `data`, a UDP payload, carries, and how many bytes before it are GENEVE's.
pub(super) fn carried(data: &[u8]) -> Option<(Layer, usize)> {
    const HEADER_BYTES: usize = 8;
    const CONTROL: u8 = 0x80;
    if data.len() < HEADER_BYTES || data[0] >> 6 != 0 || data[1] & CONTROL != 0 {
        return None;
    }
    Some((Layer::EtherType(u16_at(data, 2)), HEADER_BYTES + usize::from(data[0] & 0x3f) * 4))
}
