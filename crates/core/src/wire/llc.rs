//! LLC and SNAP (IEEE 802.2, RFC 1042): service access points and control, and with SNAP an organisation and a protocol
//! number, which is an EtherType where the organisation is 0 (or Apple's, that of bridge tunnels, 00-00-f8).

use super::bytes::{u16_at, u32_at};
use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 3;
const SNAP_HEADER_BYTES: usize = 8;
const UNNUMBERED_INFORMATION: u8 = 0x03;

pub(super) fn read(data: &[u8]) -> Next {
    let &[destination, source, control, ..] = data else {
        return Err(End::Unusable("llc_header_cut_off"));
    };
    match (destination, source, control) {
        (0xaa, 0xaa, UNNUMBERED_INFORMATION) => read_snap(data),
        (0x06, 0x06, UNNUMBERED_INFORMATION) => Ok((Layer::Ip, HEADER_BYTES)),
        (0x42, 0x42, _) => Err(End::NotIp("spanning_tree")),
        (0xe0, 0xe0, _) | (0xff, 0xff, _) => Err(End::NotIp("ipx")),
        (0xf0, 0xf0 | 0xf1, _) => Err(End::NotIp("netbios")),
        (0xfe, 0xfe, _) => Err(End::NotIp("osi")),
        _ => Err(End::NotIp("llc_not_read")),
    }
}

fn read_snap(data: &[u8]) -> Next {
    const ENCAPSULATED_ETHERNET: u32 = 0x0000_0000;
    const BRIDGE_TUNNEL: u32 = 0x0000_00f8;
    const CISCO: u32 = 0x0000_000c;
    if data.len() < SNAP_HEADER_BYTES {
        return Err(End::Unusable("snap_header_cut_off"));
    }
    match u32_at(data, 2) & 0x00ff_ffff {
        ENCAPSULATED_ETHERNET | BRIDGE_TUNNEL => Ok((Layer::EtherType(u16_at(data, 6)), SNAP_HEADER_BYTES)),
        CISCO => Err(End::NotIp("cisco_discovery_and_others")),
        _ => Err(End::NotIp("snap_not_read")),
    }
}
