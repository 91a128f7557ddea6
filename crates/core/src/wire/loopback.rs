//! BSD loopback: four bytes of address family in the capturing host's byte order (NULL) or the network's (LOOP).
//! The families differ between systems (IPv6 is 24, 28 or 30), and the IP version says the same. So only
//! the two known groups are distinguished from others.

use super::layer::{End, Layer, Next};

const HEADER_BYTES: usize = 4;

pub(super) fn read(data: &[u8]) -> Next {
    let Some(family) = data.first_chunk::<HEADER_BYTES>() else {
        return Err(End::Unusable("loopback_header_cut_off"));
    };
    let known = |family: u32| matches!(family, 2 | 10 | 24 | 28 | 30);
    if known(u32::from_le_bytes(*family)) || known(u32::from_be_bytes(*family)) {
        Ok((Layer::Ip, HEADER_BYTES))
    } else {
        Err(End::NotIp("loopback_family_not_ip"))
    }
}
