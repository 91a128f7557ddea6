//! Linux's "cooked" headers, in which captures on any device stand (LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2): the
//! device's type, and a protocol that is an EtherType on most of them.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 16;
const HEADER_V2_BYTES: usize = 20;

pub(super) fn read(data: &[u8]) -> Next {
    if data.len() < HEADER_BYTES {
        return Err(End::Unusable("cooked_header_cut_off"));
    }
    Ok((carried(u16_at(data, 2), u16_at(data, 14))?, HEADER_BYTES))
}

pub(super) fn read_v2(data: &[u8]) -> Next {
    if data.len() < HEADER_V2_BYTES {
        return Err(End::Unusable("cooked_header_cut_off"));
    }
    Ok((carried(u16_at(data, 8), u16_at(data, 0))?, HEADER_V2_BYTES))
}

fn carried(device: u16, protocol: u16) -> Result<Layer, End> {
    const WLAN: u16 = 801;
    const WLAN_RADIOTAP: u16 = 803;
    const NETLINK: u16 = 824;
    const LEAST_ETHER_TYPE: u16 = 0x0600;
    match (device, protocol) {
        (WLAN, _) => Ok(Layer::Wlan { is_padded: false }),
        (WLAN_RADIOTAP, _) => Ok(Layer::Radiotap),
        (NETLINK, _) => Err(End::NotIp("netlink")),
        (_, 0x0001) => Err(End::NotIp("ipx")),
        (_, 0x0004) => Ok(Layer::Llc),
        (_, 0x000c..=0x000e) => Err(End::NotIp("can")),
        (_, LEAST_ETHER_TYPE..) => Ok(Layer::EtherType(protocol)),
        _ => Err(End::NotIp("cooked_without_ether_type")),
    }
}
