//! Provider backbone bridges (IEEE 802.1ah): a service tag of four bytes after its EtherType, then the customer's frame
//! with addresses of its own.

use super::layer::{End, Layer, Next};

const TAG_BYTES: usize = 4;

pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < TAG_BYTES {
        return Err(End::Unusable("pbb_tag_cut_off"));
    }
    Ok((Layer::Ethernet, TAG_BYTES))
}
