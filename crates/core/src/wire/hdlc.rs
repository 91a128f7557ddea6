//! Cisco's HDLC (RFC 1547, section 4.3.1): address and control, then an EtherType.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 4;

pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < HEADER_BYTES {
        return Err(End::Unusable("hdlc_header_cut_off"));
    }
    Ok((Layer::EtherType(u16_at(data, 2)), HEADER_BYTES))
}
