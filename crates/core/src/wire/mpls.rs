//! MPLS label stacks (RFC 3032). Nothing in a stack says what it carries. By RFC 4928 and RFC 4385 the first four bits
//! do: 4 and 6 are IP's versions, 0 begins a pseudowire's control word, 1 an associated channel. After a control word
//! Ethernet is read (RFC 4448), which is what nearly all pseudowires carry; one without a control word is not read.

use super::layer::{End, Layer, Next};

const LABEL_BYTES: usize = 4;
const CONTROL_WORD_BYTES: usize = 4;

pub(super) fn read(data: &[u8]) -> Next {
    const BOTTOM_OF_STACK: u8 = 0x01;
    let (labels, _) = data.as_chunks::<LABEL_BYTES>();
    let Some(bottom) = labels.iter().position(|label| label[2] & BOTTOM_OF_STACK != 0) else {
        return Err(End::Unusable("mpls_labels_cut_off"));
    };
    let header_bytes = (bottom + 1) * LABEL_BYTES;
    match data.get(header_bytes).map(|first| first >> 4) {
        Some(4 | 6) => Ok((Layer::Ip, header_bytes)),
        Some(0) => Ok((Layer::Ethernet, header_bytes + CONTROL_WORD_BYTES)),
        Some(1) => Err(End::NotIp("mpls_associated_channel")),
        Some(_) => Err(End::NotIp("mpls_pseudowire")),
        None => Err(End::Unusable("mpls_labels_cut_off")),
    }
}
