//! Ethernet II with any number of VLAN tags (802.1Q, 802.1ad, the old 0x9100), and Linux's "cooked" headers,
//! which end in an EtherType too. Sources: IEEE 802.3, LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2; RFC 2516 (PPPoE).

use super::bytes::u16_at;
use super::ip::dissect_ip;
use super::packet::Dissected;
use super::ppp;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
const QINQ_OLD: u16 = 0x9100;
const PPPOE_SESSION: u16 = 0x8864;
const PPPOE_HEADER_BYTES: usize = 6;

#[inline]
pub(super) fn dissect(data: &[u8], original_bytes: u32) -> Dissected {
    const HEADER_BYTES: usize = 14;
    if data.len() < HEADER_BYTES {
        return Dissected::Unusable { reason: "ethernet_header_cut_off" };
    }
    from_ether_type(u16_at(data, 12), data, HEADER_BYTES, original_bytes)
}

#[inline]
fn from_ether_type(mut ether_type: u16, data: &[u8], mut at: usize, original_bytes: u32) -> Dissected {
    loop {
        match ether_type {
            IPV4 | IPV6 => return dissect_ip(&data[at..], original_bytes.saturating_sub(at as u32)),
            VLAN | QINQ | QINQ_OLD => {
                if data.len() < at + 4 {
                    return Dissected::Unusable { reason: "vlan_tag_cut_off" };
                }
                ether_type = u16_at(data, at + 2);
                at += 4;
            }
            PPPOE_SESSION => {
                let at = at + PPPOE_HEADER_BYTES;
                return match data.get(at..) {
                    Some(inner) => ppp::dissect(inner, original_bytes.saturating_sub(at as u32)),
                    None => Dissected::Unusable { reason: "pppoe_header_cut_off" },
                };
            }
            _ => return Dissected::NonIp,
        }
    }
}

pub(super) fn dissect_cooked(data: &[u8], original_bytes: u32) -> Dissected {
    const HEADER_BYTES: usize = 16;
    if data.len() < HEADER_BYTES {
        return Dissected::Unusable { reason: "cooked_header_cut_off" };
    }
    from_ether_type(u16_at(data, 14), data, HEADER_BYTES, original_bytes)
}

pub(super) fn dissect_cooked_v2(data: &[u8], original_bytes: u32) -> Dissected {
    const HEADER_BYTES: usize = 20;
    if data.len() < HEADER_BYTES {
        return Dissected::Unusable { reason: "cooked_header_cut_off" };
    }
    from_ether_type(u16_at(data, 0), data, HEADER_BYTES, original_bytes)
}
