//! FabricPath (Cisco): hierarchical addresses in the place of Ethernet's, EtherType 0x8903, two bytes of forwarding tag
//! and time to live, then the frame as it entered the fabric.

use super::layer::{End, Layer, Next};

const TAG_BYTES: usize = 2;

pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < TAG_BYTES {
        return Err(End::Unusable("fabric_path_tag_cut_off"));
    }
    Ok((Layer::Ethernet, TAG_BYTES))
}
