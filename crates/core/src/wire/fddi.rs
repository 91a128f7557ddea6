//! FDDI (ANSI X3.139): frame control and addresses, then LLC in frames whose control says so.

use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 13;

pub(super) fn read(data: &[u8]) -> Next {
    // Synchronous or asynchronous LLC with addresses of 48 bits.
    const KIND: u8 = 0x70;
    const LLC: u8 = 0x50;
    if data.len() < HEADER_BYTES {
        return Err(End::Unusable("fddi_header_cut_off"));
    }
    if data[0] & KIND != LLC {
        return Err(End::NotIp("fddi_control"));
    }
    Ok((Layer::Llc, HEADER_BYTES))
}
