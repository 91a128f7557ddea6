//! Ethernet (IEEE 802.3): addresses, then an EtherType, or up to 1500 a length, after which LLC follows.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 14;
const MAX_LENGTH: u16 = 1500;

#[inline]
pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < HEADER_BYTES {
        return Err(End::Unusable("ethernet_header_cut_off"));
    }
    Ok(match u16_at(data, 12) {
        0..=MAX_LENGTH => (Layer::Llc, HEADER_BYTES),
        ether_type => (Layer::EtherType(ether_type), HEADER_BYTES),
    })
}
