//! VLAN tags (IEEE 802.1Q, 802.1ad): priority and identifier, then the next EtherType, or a length as in Ethernet.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const TAG_BYTES: usize = 4;
const MAX_LENGTH: u16 = 1500;

#[inline]
pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < TAG_BYTES {
        return Err(End::Unusable("vlan_tag_cut_off"));
    }
    Ok(match u16_at(data, 2) {
        0..=MAX_LENGTH => (Layer::Llc, TAG_BYTES),
        ether_type => (Layer::EtherType(ether_type), TAG_BYTES),
    })
}
