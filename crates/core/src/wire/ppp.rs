//! PPP (RFC 1661, RFC 1662): address and control bytes unless compressed away, then a protocol number of two bytes,
//! or of one where it is odd.

use super::layer::{End, Layer, Next};

const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];

pub(super) fn read(data: &[u8]) -> Next {
    let mut at = if data.starts_with(&ADDRESS_AND_CONTROL) { 2 } else { 0 };
    let protocol = match (data.get(at), data.get(at + 1)) {
        (Some(&low), _) if low & 1 == 1 => {
            at += 1;
            u16::from(low)
        }
        (Some(&high), Some(&low)) => {
            at += 2;
            u16::from_be_bytes([high, low])
        }
        _ => return Err(End::Unusable("ppp_header_cut_off")),
    };
    match protocol {
        0x0021 | 0x0057 => Ok((Layer::Ip, at)),
        // RFC 3032, section 4.
        0x0281 | 0x0283 => Ok((Layer::Mpls, at)),
        // Link and network control protocols.
        0x8000.. => Err(End::NotIp("ppp_control")),
        0x003d => Err(End::NotIp("ppp_multilink")),
        0x00fb | 0x00fd | 0x002d | 0x002f => Err(End::NotIp("ppp_compressed")),
        _ => Err(End::NotIp("ppp_protocol_not_read")),
    }
}
