//! A frame's headers by the type of its link, layer by layer, to its IP packet.

use super::ip::dissect_ip;
use super::layer::{End, Layer};
use super::packet::Dissected;
use super::{
    cooked, ether_type, ethernet, fabric_path, fddi, hdlc, llc, loopback, mpls, pbb, ppp, pppoe, radiotap, token_ring,
    vlan, vn_tag, wlan,
};
use crate::capture::LinkType;

/// Frames nest at most this deep: tags and labels without end are no traffic.
const MAX_LAYERS: usize = 64;

#[inline]
pub(crate) fn dissect_link(link: LinkType, data: &[u8], original_bytes: u32) -> Dissected {
    let (layer, header_bytes) = match link {
        LinkType::ETHERNET => (Layer::Ethernet, 0),
        LinkType::LINUX_SLL => (Layer::Cooked, 0),
        LinkType::LINUX_SLL2 => (Layer::CookedV2, 0),
        LinkType::NULL | LinkType::LOOP => (Layer::Loopback, 0),
        LinkType::PPP | LinkType::PPP_HDLC => (Layer::Ppp, 0),
        // A byte before it says which way the packet went.
        LinkType::PPP_DIRECTED => (Layer::Ppp, 1),
        LinkType::PPP_ETHERNET => (Layer::Pppoe, 0),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => (Layer::Ip, 0),
        LinkType::WLAN => (Layer::Wlan { is_padded: false }, 0),
        LinkType::WLAN_RADIOTAP => (Layer::Radiotap, 0),
        LinkType::FDDI => (Layer::Fddi, 0),
        LinkType::TOKEN_RING => (Layer::TokenRing, 0),
        LinkType::ATM_RFC1483 => (Layer::Llc, 0),
        LinkType::CISCO_HDLC => (Layer::CiscoHdlc, 0),
        other => return Dissected::Unusable { reason: not_read(other) },
    };
    match data.get(header_bytes..) {
        Some(rest) => dissect_layers(layer, rest, original_bytes.saturating_sub(header_bytes as u32)),
        None => Dissected::Unusable { reason: "ppp_header_cut_off" },
    }
}

/// The IP packet that `data`, which begins with `layer`, leads to.
pub(super) fn dissect_layers(mut layer: Layer, mut data: &[u8], mut original_bytes: u32) -> Dissected {
    for _ in 0..MAX_LAYERS {
        let next = match layer {
            Layer::Ip => return dissect_ip(data, original_bytes),
            Layer::Ethernet => ethernet::read(data),
            Layer::EtherType(number) => ether_type::read(number),
            Layer::Vlan => vlan::read(data),
            Layer::Mpls => mpls::read(data),
            Layer::ProviderBackbone => pbb::read(data),
            Layer::VnTag => vn_tag::read(data),
            Layer::FabricPath => fabric_path::read(data),
            Layer::Pppoe => pppoe::read(data),
            Layer::Ppp => ppp::read(data),
            Layer::Llc => llc::read(data),
            Layer::Radiotap => radiotap::read(data),
            Layer::Wlan { is_padded } => wlan::read(data, is_padded),
            Layer::Fddi => fddi::read(data),
            Layer::TokenRing => token_ring::read(data),
            Layer::Cooked => cooked::read(data),
            Layer::CookedV2 => cooked::read_v2(data),
            Layer::CiscoHdlc => hdlc::read(data),
            Layer::Loopback => loopback::read(data),
        };
        let (after, header_bytes) = match next {
            Ok(next) => next,
            Err(End::NotIp(kind)) => return Dissected::NonIp { kind },
            Err(End::Unusable(reason)) => return Dissected::Unusable { reason },
        };
        let Some(rest) = data.get(header_bytes..) else {
            return Dissected::Unusable { reason: "link_header_cut_off" };
        };
        (layer, data) = (after, rest);
        original_bytes = original_bytes.saturating_sub(header_bytes as u32);
    }
    Dissected::Unusable { reason: "link_layers_nested_too_deep" }
}

/// The count of frames whose link type is not read, with the type's name in the registry of link types where it is a
/// known one.
fn not_read(link: LinkType) -> &'static str {
    match link.0 {
        3 => "link_type_ax25_not_read",
        7 => "link_type_arcnet_not_read",
        8 => "link_type_slip_not_read",
        107 => "link_type_frame_relay_not_read",
        117 => "link_type_pflog_not_read",
        119 => "link_type_prism_not_read",
        122 => "link_type_ip_over_fibre_channel_not_read",
        123 => "link_type_sunatm_not_read",
        138 => "link_type_ieee1394_not_read",
        147..=162 => "link_type_private_use_not_read",
        163 => "link_type_avs_not_read",
        187 | 201 => "link_type_bluetooth_not_read",
        189 | 220 | 249 => "link_type_usb_not_read",
        190 | 227 => "link_type_can_not_read",
        192 => "link_type_ppi_not_read",
        197 => "link_type_erf_not_read",
        195 | 215 | 230 | 283 => "link_type_ieee802_15_4_not_read",
        239 => "link_type_nflog_not_read",
        240 => "link_type_netanalyzer_not_read",
        247 => "link_type_infiniband_not_read",
        251 | 256 => "link_type_bluetooth_low_energy_not_read",
        253 => "link_type_netlink_not_read",
        274 => "link_type_ethernet_mpacket_not_read",
        _ => "link_type_not_read",
    }
}
