//! 802.11 data frames (IEEE 802.11, section 9.2): addresses as many as the way to or from the distribution system asks
//! for, then LLC. Encrypted frames, fragments and aggregates (A-MSDU) are not opened; they are counted.

use super::bytes::u16_at;
use super::layer::{End, Layer, Next};

const BASE_BYTES: usize = 24;

pub(super) fn read(data: &[u8], is_padded: bool) -> Next {
    const CUT_OFF: Next = Err(End::Unusable("wlan_header_cut_off"));
    const TO_AND_FROM: u8 = 0x03;
    const MORE_FRAGMENTS: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const HIGH_THROUGHPUT_CONTROL: u8 = 0x80;
    const NO_DATA: u8 = 0x40;
    const QUALITY_OF_SERVICE: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    let &[kind, flags, ..] = data else { return CUT_OFF };
    if kind & 0x03 != 0 {
        return Err(End::Unusable("wlan_version_not_0"));
    }
    match kind >> 2 & 0x03 {
        0 => return Err(End::NotIp("wlan_management")),
        1 => return Err(End::NotIp("wlan_control")),
        2 => {}
        _ => return Err(End::NotIp("wlan_extension")),
    }
    if kind & NO_DATA != 0 {
        return Err(End::NotIp("wlan_without_data"));
    }
    if flags & PROTECTED != 0 {
        return Err(End::NotIp("wlan_encrypted"));
    }
    let mut header_bytes = BASE_BYTES;
    if flags & TO_AND_FROM == TO_AND_FROM {
        header_bytes += 6;
    }
    if data.len() < header_bytes {
        return CUT_OFF;
    }
    let fragment = u16_at(data, 22).swap_bytes() & 0x000f;
    if fragment != 0 || flags & MORE_FRAGMENTS != 0 {
        return Err(End::NotIp("wlan_fragment"));
    }
    if kind & QUALITY_OF_SERVICE != 0 {
        let Some(control) = data.get(header_bytes) else { return CUT_OFF };
        if control & AGGREGATE != 0 {
            return Err(End::NotIp("wlan_aggregate"));
        }
        header_bytes += if flags & HIGH_THROUGHPUT_CONTROL != 0 { 6 } else { 2 };
    }
    if is_padded {
        header_bytes = header_bytes.next_multiple_of(4);
    }
    Ok((Layer::Llc, header_bytes))
}
