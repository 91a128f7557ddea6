//! VN-Tag (Cisco, once proposed as IEEE 802.1Qbh): four bytes that name interfaces, then the next EtherType, or a length
//! as in Ethernet.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const TAG_BYTES: usize = 6;
const MAX_LENGTH: u16 = 1500;

pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < TAG_BYTES {
        return Err(End::Unusable("vn_tag_cut_off"));
    }
    Ok(match u16_at(data, 4) {
        0..=MAX_LENGTH => (Layer::Llc, TAG_BYTES),
        ether_type => (Layer::EtherType(ether_type), TAG_BYTES),
    })
}
