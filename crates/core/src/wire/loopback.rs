//! BSD loopback: four bytes of address family in the capturing host's byte order (NULL) or the network's (LOOP).
//! The families differ between systems (IPv6 is 24, 28 or 30), and the IP version says the same. So only
//! the two known groups are distinguished from others.

use super::ip::dissect_ip;
use super::packet::Dissected;

pub(super) fn dissect(data: &[u8], original_bytes: u32) -> Dissected {
    const HEADER_BYTES: usize = 4;
    let Some((family, packet)) = data.split_first_chunk::<HEADER_BYTES>() else {
        return Dissected::Unusable { reason: "loopback_header_cut_off" };
    };
    let known = |family: u32| matches!(family, 2 | 10 | 24 | 28 | 30);
    if known(u32::from_le_bytes(*family)) || known(u32::from_be_bytes(*family)) {
        dissect_ip(packet, original_bytes.saturating_sub(HEADER_BYTES as u32))
    } else {
        Dissected::NonIp
    }
}
