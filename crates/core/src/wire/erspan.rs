//! Cisco's mirrored frames in GRE (draft-foschiano-erspan): type II with a header of 8 bytes, type III with one of 12
//! and, where its last bit says so, 8 more of the platform's.

use super::bytes::u16_at;
use super::layer::Layer;

pub(super) fn carried_by_ii(data: &[u8]) -> Option<(Layer, usize)> {
    (data.first()? >> 4 == 1).then_some((Layer::Ethernet, 8))
}

pub(super) fn carried_by_iii(data: &[u8]) -> Option<(Layer, usize)> {
    const HEADER_BYTES: usize = 12;
    const PLATFORM_BYTES: usize = 8;
    const HAS_PLATFORM: u16 = 0x0001;
    if data.len() < HEADER_BYTES || data[0] >> 4 != 2 {
        return None;
    }
    let kind = u16_at(data, 10);
    let layer = match kind >> 10 & 0x1f {
        0 => Layer::Ethernet,
        2 => Layer::Ip,
        _ => return None,
    };
    Some((layer, HEADER_BYTES + if kind & HAS_PLATFORM != 0 { PLATFORM_BYTES } else { 0 }))
}
