//! PPP over Ethernet, in a session (RFC 2516): version and type, code, session and length, then PPP's protocol number.

use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 6;

pub(super) fn read(data: &[u8]) -> Next {
    match data {
        // Codes other than 0 are discovery's.
        [_, 0, ..] if data.len() >= HEADER_BYTES => Ok((Layer::Ppp, HEADER_BYTES)),
        _ if data.len() >= HEADER_BYTES => Err(End::NotIp("pppoe_discovery")),
        _ => Err(End::Unusable("pppoe_header_cut_off")),
    }
}
