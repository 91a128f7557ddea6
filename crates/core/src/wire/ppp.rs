//! PPP (RFC 1661, RFC 1662): address and control bytes unless compressed away, then a protocol number of two bytes,
//! or of one where it is odd.

use super::ip::dissect_ip;
use super::packet::Dissected;

const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;

pub(super) fn dissect(data: &[u8], original_bytes: u32) -> Dissected {
    const CUT_OFF: Dissected = Dissected::Unusable { reason: "ppp_header_cut_off" };
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
        _ => return CUT_OFF,
    };
    match protocol {
        IPV4 | IPV6 => dissect_ip(&data[at..], original_bytes.saturating_sub(at as u32)),
        _ => Dissected::NonIp,
    }
}

/// LINKTYPE_PPP_WITH_DIR: a byte before it says which way the packet went.
pub(super) fn dissect_directed(data: &[u8], original_bytes: u32) -> Dissected {
    match data.split_first() {
        Some((_, rest)) => dissect(rest, original_bytes.saturating_sub(1)),
        None => Dissected::Unusable { reason: "ppp_header_cut_off" },
    }
}
