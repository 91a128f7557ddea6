//! A frame's headers by the type of its link.

use super::ip::dissect_ip;
use super::packet::Dissected;
use super::{ethernet, loopback, ppp};
use crate::capture::LinkType;

#[inline]
pub(crate) fn dissect_link(link: LinkType, data: &[u8], original_bytes: u32) -> Dissected {
    match link {
        LinkType::ETHERNET => ethernet::dissect(data, original_bytes),
        LinkType::LINUX_SLL => ethernet::dissect_cooked(data, original_bytes),
        LinkType::LINUX_SLL2 => ethernet::dissect_cooked_v2(data, original_bytes),
        LinkType::NULL | LinkType::LOOP => loopback::dissect(data, original_bytes),
        LinkType::PPP | LinkType::PPP_HDLC => ppp::dissect(data, original_bytes),
        LinkType::PPP_DIRECTED => ppp::dissect_directed(data, original_bytes),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            dissect_ip(data, original_bytes)
        }
        _ => Dissected::Unusable { reason: "link_type_not_read" },
    }
}
