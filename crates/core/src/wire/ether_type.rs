//! What an EtherType names (IEEE 802 numbers, IANA's registry).

use super::layer::{End, Layer, Next};

/// Ethernet inside GRE, GENEVE and others (RFC 1701's list).
pub(super) const TRANSPARENT_ETHERNET: u16 = 0x6558;

#[inline]
pub(super) fn read(ether_type: u16) -> Next {
    let layer = match ether_type {
        0x0800 | 0x86dd => Layer::Ip,
        // 802.1Q, 802.1ad, and what was used before it.
        0x8100 | 0x88a8 | 0x9100 => Layer::Vlan,
        0x8847 | 0x8848 => Layer::Mpls,
        0x8864 => Layer::Pppoe,
        0x88e7 => Layer::ProviderBackbone,
        0x8926 => Layer::VnTag,
        0x8903 => Layer::FabricPath,
        TRANSPARENT_ETHERNET => Layer::Ethernet,
        other => return Err(End::NotIp(kind(other))),
    };
    Ok((layer, 0))
}

#[cold]
fn kind(ether_type: u16) -> &'static str {
    match ether_type {
        ..0x0600 => "ether_type_below_1536",
        0x0806 => "arp",
        0x0842 => "wake_on_lan",
        0x22ea => "stream_reservation",
        0x22f0 => "avtp",
        0x22f3 => "trill",
        0x4305 => "batman",
        0x6000..=0x6009 => "decnet",
        0x8035 => "rarp",
        0x809b | 0x80f3 => "appletalk",
        0x8137 | 0x8138 => "ipx",
        0x8808 => "ethernet_flow_control",
        0x8809 => "ethernet_slow_protocols",
        0x8863 => "pppoe_discovery",
        0x888e | 0x88c7 => "eapol",
        0x8892 => "profinet",
        0x88a2 => "ata_over_ethernet",
        0x88a4 => "ethercat",
        0x88cc => "lldp",
        0x88e5 => "macsec",
        0x88f5 => "mvrp",
        0x88f6 => "mmrp",
        0x88f7 => "ptp",
        0x8902 => "connectivity_fault_management",
        0x8906 | 0x8914 => "fcoe",
        0x8915 => "roce",
        0x893f => "bridge_port_extension",
        0x894f => "nsh",
        0x9000 => "ethernet_loopback_test",
        _ => "ether_type_not_read",
    }
}
